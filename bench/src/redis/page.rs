//! The report: a section for each case, with the commands that it ran.

use super::server::{Kind, Program, Setting};
use std::fmt;

/// The whole report.
pub struct Page {
    head: String,
    ended: String,
    sections: String,
}

impl Page {
    /// One without sections.
    pub fn new(machine: &str, programs: &[Program], command_line: &str) -> Page {
        let versions: Vec<String> = programs
            .iter()
            .map(|program| format!("- {}: {}\n", program.name(), program.version))
            .collect();
        let head = format!(
            "# Keys: Quipu's door for Redis' clients beside Redis\n\n\
             Machine: {machine}; the load shares it with the servers.\n\
             Again: `{command_line}`.\n\n{}\n\
             Rounds of both servers alternate; each figure is the median of the rounds, and \
             \"Quipu / Redis\" the median of the rounds' quotients.\n\
             CPU is that of the server's process for an operation, from `/proc/PID/stat`; what a \
             child of Redis does (a rewrite of its append-only file) is not in it.\n",
            versions.concat()
        );
        Page { head, ended: String::new(), sections: String::new() }
    }

    /// Adds a section.
    pub fn push(&mut self, section: &str) {
        self.sections.push('\n');
        self.sections.push_str(section);
    }

    /// Notes when the last section was done.
    pub fn ended(&mut self, at: &str) {
        self.ended = format!("Ended: {at}.\n");
    }

    /// As Markdown.
    pub fn text(&self) -> String {
        format!("{}{}{}", self.head, self.ended, self.sections)
    }
}

/// What a case found.
pub struct Section {
    title: String,
    lines: String,
}

impl Section {
    /// Of a case without figures yet.
    pub fn new(title: &str) -> Section {
        Section { title: title.to_string(), lines: String::new() }
    }

    /// Says how the servers were started.
    pub fn started(&mut self, programs: &[Program], setting: &Setting) {
        for program in programs {
            self.say(&format!("`{}`", setting.shown(program.kind)));
        }
    }

    /// Says how Quipu was started.
    pub fn started_quipu(&mut self, what: &str, setting: &Setting) {
        self.say(&format!("{what}: `{}`", setting.shown(Kind::Quipu)));
    }

    /// A sentence, in a line of its own.
    pub fn say(&mut self, text: &str) {
        self.lines.push_str(text);
        self.lines.push_str("  \n");
    }

    /// The head of a table.
    pub fn head(&mut self, cells: &[&str]) {
        self.lines.push('\n');
        self.row(cells);
        self.lines.push_str(&"| --- ".repeat(cells.len()));
        self.lines.push_str("|\n");
    }

    /// A row of it.
    pub fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        for cell in cells {
            self.lines.push_str("| ");
            self.lines.push_str(cell.as_ref());
            self.lines.push(' ');
        }
        self.lines.push_str("|\n");
        // A person waits.
        let shown: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        eprintln!("   {}", shown.join("  "));
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n\n{}", self.title, self.lines.trim_end())
    }
}

/// A number with as many digits as say something.
pub fn short(number: f64) -> String {
    match number.abs() {
        huge if 1e6 <= huge => format!("{:.2} M", number / 1e6),
        large if 1e4 <= large => format!("{:.0} K", number / 1e3),
        large if 100.0 <= large => format!("{number:.0}"),
        middle if 10.0 <= middle => format!("{number:.1}"),
        middle if 1.0 <= middle => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

/// Bytes as megabytes of a million.
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", short(bytes as f64 / 1e6))
}
