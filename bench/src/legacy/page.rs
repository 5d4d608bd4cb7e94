//! The tables.

use super::measure::Measured;
use super::states::State;
use crate::instant;
use crate::observe::machine;
use anyhow::{Context, Result};
use std::path::Path;

/// The whole report.
pub struct Page {
    text: String,
}

impl Page {
    /// One without tables.
    pub fn new(command_line: &str, versions: &[String]) -> Page {
        let versions: String = versions.iter().map(|version| format!("- {version}\n")).collect();
        let text = format!(
            "# Moving in: what questions take meanwhile\n\n\
             Machine: {}; the servers and who asks share it.\n\
             Began: {}. Again: `{command_line}`.\n\n{versions}\n\
             Milliseconds of the client, medians. Each round puts a question to all servers in \
             turn; quotients are medians of the rounds' quotients.\n\
             \"Before\" is the old server itself, \"right after\" Quipu with all samples there, \
             \"half and half\" with the newer half copied, \"long after\" with all copied and the \
             backend still named, \"alone\" without it.\n\
             \"Answers\" says whether the four states of Quipu gave the same, but for the order \
             of series and digits behind the tenth.\n",
            machine::describe(),
            instant::format_rfc3339(instant::now_ns()),
        );
        Page { text }
    }

    /// Adds a section.
    pub fn push(&mut self, section: &str) {
        self.text.push('\n');
        self.text.push_str(section);
    }

    /// As Markdown.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes what there is, if somebody wants it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, out: Option<&Path>) -> Result<()> {
        let Some(out) = out else { return Ok(()) };
        std::fs::write(out, &self.text).with_context(|| format!("cannot write {}", out.display()))
    }
}

/// A data set's table.
pub fn section(title: &str, rows: &[(String, Measured)]) -> String {
    let mut text = format!(
        "## {title}\n\n\
         | question | before | right after | / before | half and half | / before | long after | \
         alone | long after / alone | rounds | answers |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for (name, measured) in rows {
        let ms = |state| format!("{:.2}", measured.median_ms(state));
        let ratio = |one, other| format!("{:.2}", measured.ratio(one, other));
        let cells = [
            name.clone(),
            ms(State::Before),
            ms(State::RightAfter),
            ratio(State::RightAfter, State::Before),
            ms(State::HalfAndHalf),
            ratio(State::HalfAndHalf, State::Before),
            ms(State::LongAfter),
            ms(State::Alone),
            ratio(State::LongAfter, State::Alone),
            measured.rounds().to_string(),
            measured.word().to_string(),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}
