//! The overview: one table of the headline figures of all cases, with links to the cases' own.

use super::spread::{ratio, spread};
use super::{Case, CompareOptions, Run};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the overview says of a case.
pub struct Entry<'a> {
    /// The case.
    pub case: &'a dyn Case,
    /// Its results so far; a case without any is listed as not run.
    pub runs: Vec<Run>,
}

/// The whole page.
pub fn page(entries: &[Entry<'_>], options: &CompareOptions) -> String {
    let names = super::names(options);
    let mut text = String::from("# Results\n\n");
    put_head(&mut text, entries, &names);
    let _ = write!(text, "| figure | {} |", names.join(" | "));
    for other in names.iter().skip(1) {
        let _ = write!(text, " {} better than {other} |", names[0]);
    }
    let columns = 2 * names.len();
    let _ = writeln!(text, "\n|{}", " --- |".repeat(columns));
    for entry in entries {
        put_case(&mut text, entry, &names);
    }
    put_unfinished(&mut text, entries);
    text
}

fn put_head(text: &mut String, entries: &[Entry<'_>], names: &[&str]) {
    let runs = || entries.iter().flat_map(|entry| &entry.runs);
    let machines = runs().map(|run| run.machine.to_string()).collect::<BTreeSet<_>>();
    for machine in machines {
        let _ = writeln!(text, "Machine: {machine}; the loader shares it with the server.");
    }
    let (first, last) = (runs().map(|run| &run.ended).min(), runs().map(|run| &run.ended).max());
    if let Some((first, last)) = first.zip(last) {
        let _ = writeln!(text, "First case ended {first}, last {last}.");
    }
    text.push_str("Each case's page has its command, all its figures and plots.\n\n");
    for name in names {
        let of_name = runs().filter(|run| run.contender == *name);
        let versions = of_name.map(|run| run.version.as_str()).collect::<BTreeSet<_>>();
        let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "- {name}: {versions}");
    }
    text.push('\n');
}

fn put_case(text: &mut String, entry: &Entry<'_>, names: &[&str]) {
    let (title, file) = (entry.case.title(), entry.case.file_name());
    if entry.runs.is_empty() {
        let _ = writeln!(text, "| **{title}**: not run |{}", " |".repeat(2 * names.len() - 1));
        return;
    }
    let _ = writeln!(text, "| **[{title}]({file}.md)** |{}", " |".repeat(2 * names.len() - 1));
    for figure in entry.case.headline() {
        let _ = writeln!(text, "{}", row(&figure, &entry.runs, names));
    }
}

fn row(figure: &str, runs: &[Run], names: &[&str]) -> String {
    let spreads = names.iter().map(|name| spread(name, figure, runs)).collect::<Vec<_>>();
    let mut row = format!("| {figure} |");
    for spread in &spreads {
        let text = spread.as_ref().map_or("-".to_string(), |spread| spread.text());
        let _ = write!(row, " {text} |");
    }
    let all = runs.iter().flat_map(|run| &run.outcome.figures);
    let better = all.filter(|one| one.name == figure).map(|one| one.better).next();
    for other in spreads.iter().skip(1) {
        let ratio = match (&spreads[0], other, better) {
            (Some(ours), Some(theirs), Some(better)) => ratio(ours.median, theirs.median, better),
            _ => String::new(),
        };
        let _ = write!(row, " {ratio} |");
    }
    row
}

/// Runs that ended early are results; here they are in one list.
fn put_unfinished(text: &mut String, entries: &[Entry<'_>]) {
    text.push_str("\n## Stopped, refused, not able to\n\n");
    for entry in entries {
        for run in &entry.runs {
            let Some(reason) = &run.outcome.stopped else { continue };
            let reason = reason.lines().next().unwrap_or_default();
            let file = entry.case.file_name();
            let _ = writeln!(text, "- [{file}]({file}.md), {}: {reason}", run.contender);
        }
    }
}
