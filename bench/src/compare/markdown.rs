//! A case's table: a row per figure, a column per contender, and how much better the first is.

use super::figures::Figure;
use super::spread::{Spread, number, ratio, spread};
use super::{Case, CompareOptions, Published, Run};
use std::fmt::Write;

/// The whole file.
pub(super) fn table(case: &dyn Case, options: &CompareOptions, runs: &[Run]) -> String {
    // A server without any figure has its reason above the table and no column in it.
    let has_figures = |name: &&str| {
        runs.iter().any(|run| run.contender == *name && !run.outcome.figures.is_empty())
    };
    let names = super::names(options).into_iter().filter(has_figures).collect::<Vec<_>>();
    let published = case.published();
    let mut text = format!("# {}\n\n", case.title());
    put_environment(&mut text, options, runs);
    put_stops(&mut text, runs);
    if names.is_empty() {
        return text;
    }
    let mut header = format!("| | {} |", names.join(" | "));
    for other in names.iter().skip(1) {
        let _ = write!(header, " {} better than {other} |", names[0]);
    }
    for other in &published {
        let _ = write!(header, " {} |", other.name);
    }
    let columns = 1 + names.len() + names.len().saturating_sub(1) + published.len();
    let _ = writeln!(text, "{header}\n|{}", " --- |".repeat(columns));
    for figure in figure_names(runs) {
        let _ = writeln!(text, "{}", row(&figure, &names, runs, &published));
    }
    for tally in case.tallies() {
        super::tally::put(&mut text, &tally, &names, runs);
    }
    for (idx, chart) in case.charts().iter().enumerate() {
        let file = format!("{}{}", case.file_name(), super::chart_ending(idx));
        let _ = writeln!(text, "\n![{}]({file})", chart.title);
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

/// All figures: those of the run that has most in its order, then what only others have.
fn figure_names(runs: &[Run]) -> Vec<Figure> {
    let most = runs.iter().max_by_key(|run| run.outcome.figures.len());
    let mut figures = most.map(|run| run.outcome.figures.clone()).unwrap_or_default();
    for figure in runs.iter().flat_map(|run| &run.outcome.figures) {
        if figures.iter().all(|known| known.name != figure.name) {
            figures.push(figure.clone());
        }
    }
    figures
}

fn row(figure: &Figure, names: &[&str], runs: &[Run], published: &[Published]) -> String {
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
    for other in published {
        let value = other.values.iter().find(|(name, _)| *name == figure.name);
        let _ = write!(row, " {} |", value.map_or("-".to_string(), |(_, value)| number(*value)));
    }
    row
}
