//! A case's table: a row per figure, a column per contender, and how much better the first is.

use super::figures::{Better, Figure};
use super::{Case, CompareOptions, Run};
use std::fmt::Write;

/// The whole file.
pub(super) fn table(case: &dyn Case, options: &CompareOptions, runs: &[Run]) -> String {
    let names = options.contenders.iter().map(|one| one.peer.name).collect::<Vec<_>>();
    let mut text = format!("# {}\n\n", case.title());
    put_environment(&mut text, options, runs);
    put_stops(&mut text, runs);
    let mut header = format!("| | {} |", names.join(" | "));
    for other in names.iter().skip(1) {
        let _ = write!(header, " {} better than {other} |", names[0]);
    }
    let columns = 1 + names.len() + names.len().saturating_sub(1);
    let _ = writeln!(text, "{header}\n|{}", " --- |".repeat(columns));
    for figure in figure_names(runs) {
        let _ = writeln!(text, "{}", row(&figure, &names, runs));
    }
    if runs.iter().any(|run| run.outcome.timeline.len() > 2) {
        let _ = writeln!(text, "\n![rate and memory over time]({}.svg)", case.file_name());
    }
    text
}

fn put_environment(text: &mut String, options: &CompareOptions, runs: &[Run]) {
    let repeats = options.repeats;
    if let Some(run) = runs.last() {
        let _ = writeln!(text, "Machine: {}; the loader shares it with the server.", run.machine);
        let _ = writeln!(text, "Ended: {}.", run.ended);
    }
    let _ = writeln!(
        text,
        "Runs of each server: {repeats}, interleaved; medians, with smallest and largest in brackets."
    );
    let _ = writeln!(text, "Again: `{}`.\n", options.command_line);
    for contender in &options.contenders {
        let (name, version) = (contender.peer.name, &contender.version);
        let _ = writeln!(text, "- {name}: {version}, `{}`", contender.shown_command());
    }
    text.push('\n');
}

/// Runs that did not finish are results too.
fn put_stops(text: &mut String, runs: &[Run]) {
    let mut has_stops = false;
    for run in runs {
        if let Some(reason) = &run.outcome.stopped {
            let reason = reason.lines().next().unwrap_or_default();
            let _ = writeln!(text, "- {}, run {}: **{reason}**", run.contender, run.repeat);
            has_stops = true;
        }
    }
    if has_stops {
        text.push('\n');
    }
}

/// The names of all figures, in the order of the run that has most.
fn figure_names(runs: &[Run]) -> Vec<Figure> {
    let most = runs.iter().max_by_key(|run| run.outcome.figures.len());
    most.map(|run| run.outcome.figures.clone()).unwrap_or_default()
}

fn row(figure: &Figure, names: &[&str], runs: &[Run]) -> String {
    let spreads = names.iter().map(|name| spread(name, &figure.name, runs)).collect::<Vec<_>>();
    let mut row = format!("| {} |", figure.name);
    for spread in &spreads {
        let _ = write!(row, " {} |", spread.as_ref().map_or("-".to_string(), Spread::text));
    }
    for other in spreads.iter().skip(1) {
        let ratio = match (&spreads[0], other) {
            (Some(ours), Some(theirs)) => ratio(ours.median, theirs.median, figure.better),
            _ => String::new(),
        };
        let _ = write!(row, " {ratio} |");
    }
    row
}

struct Spread {
    smallest: f64,
    median: f64,
    largest: f64,
    count: usize,
}

impl Spread {
    fn text(&self) -> String {
        let median = number(self.median);
        if self.count < 2 {
            return median;
        }
        format!("{median} ({}..{})", number(self.smallest), number(self.largest))
    }
}

fn spread(contender: &str, figure: &str, runs: &[Run]) -> Option<Spread> {
    let of_contender = runs.iter().filter(|run| run.contender == contender);
    let mut values = of_contender
        .flat_map(|run| run.outcome.figures.iter())
        .filter(|other| other.name == figure)
        .map(|other| other.value)
        .collect::<Vec<_>>();
    values.sort_by(f64::total_cmp);
    Some(Spread {
        smallest: *values.first()?,
        median: (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0,
        largest: *values.last()?,
        count: values.len(),
    })
}

/// How many times better the first is.
fn ratio(ours: f64, theirs: f64, better: Better) -> String {
    let ratio = match better {
        Better::Higher => ours / theirs,
        Better::Lower => theirs / ours,
        Better::Neither => return String::new(),
    };
    if ratio.is_finite() { format!("{ratio:.2} x") } else { String::new() }
}

/// Large numbers whole, small ones with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        0.0 => "0".to_string(),
        _ => format!("{value:.3}"),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (idx, digit) in digits.chars().enumerate() {
        let left = digits.len() - idx;
        if idx > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.1234), "0.123");
        assert_eq!(number(0.0), "0");
    }

    #[test]
    fn ratios_say_how_much_better_the_first_is() {
        assert_eq!(ratio(10.0, 5.0, Better::Higher), "2.00 x");
        assert_eq!(ratio(10.0, 5.0, Better::Lower), "0.50 x");
        assert_eq!(ratio(1.0, 0.0, Better::Higher), "");
        assert_eq!(ratio(1.0, 2.0, Better::Neither), "");
    }
}
