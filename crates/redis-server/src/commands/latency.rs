//! `LATENCY`: what took long, and how the times of commands spread.

use crate::commands::definition::{DoorCommand, Flow, command, container, help};
use crate::dispatch::Context;
use crate::registry::{Entry, registry};
use crate::stats::bound_of;
use kv::commands::{ADMIN, Group, LOADING, NO_SCRIPT, STALE};
use kv::{CommandError, Reply as _};
use std::fmt::Write as _;

const FLAGS: u32 = ADMIN | NO_SCRIPT | LOADING | STALE;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("latency", -2, 0, Group::Server, "2.8.13", "What took long.", container),
    command("latency|doctor", 2, FLAGS, Group::Server, "2.8.13", "What took long, in words.", doctor),
    command("latency|graph", 3, FLAGS, Group::Server, "2.8.13", "Events of a kind, drawn.", graph),
    command("latency|help", 2, LOADING | STALE, Group::Server, "2.8.13", "What LATENCY can do.", show_help),
    command("latency|histogram", -2, FLAGS, Group::Server, "7.0.0", "How the times of commands spread.", histogram),
    command("latency|history", 3, FLAGS, Group::Server, "2.8.13", "Events of a kind.", history),
    command("latency|latest", 2, FLAGS, Group::Server, "2.8.13", "The last event of each kind.", latest),
    command("latency|reset", -2, FLAGS, Group::Server, "2.8.13", "Forgets events.", reset),
];

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "DOCTOR",
            "    What took long, in words.",
            "GRAPH <event>",
            "    Events of a kind, drawn.",
            "HISTORY <event>",
            "    Events of a kind: when, and how many milliseconds.",
            "LATEST",
            "    The last event of each kind.",
            "RESET [<event> ...]",
            "    Forgets events of these kinds, or all.",
            "HISTOGRAM [<command> ...]",
            "    How the times of commands spread.",
        ],
    )
}

fn latest(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let events = &context.hub.latency.events;
    let out = &mut context.session.out;
    out.array(events.len());
    for (name, spikes) in events {
        let (at_s, ms) = spikes.times.back().copied().unwrap_or_default();
        out.array(4);
        out.text(name);
        out.int(at_s);
        out.int(i64::try_from(ms).unwrap_or(i64::MAX));
        out.int(i64::try_from(spikes.longest_ms).unwrap_or(i64::MAX));
    }
    Ok(Flow::Next)
}

fn history(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let name = String::from_utf8_lossy(context.args[2]);
    let spikes = context.hub.latency.events.get(&*name);
    let times: Vec<(i64, u64)> =
        spikes.map(|spikes| spikes.times.iter().copied().collect()).unwrap_or_default();
    let out = &mut context.session.out;
    out.array(times.len());
    for (at_s, ms) in times {
        out.array(2);
        out.int(at_s);
        out.int(i64::try_from(ms).unwrap_or(i64::MAX));
    }
    Ok(Flow::Next)
}

/// Rows of a drawing.
const ROWS: u64 = 4;
/// Events that are drawn.
const COLUMNS: usize = 80;

fn graph(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let name = String::from_utf8_lossy(context.args[2]).into_owned();
    let Some(spikes) = context.hub.latency.events.get(name.as_str()) else {
        return Err(CommandError::new(format!("ERR No samples available for event '{name}'")));
    };
    let skipped = spikes.times.len().saturating_sub(COLUMNS);
    let shown: Vec<u64> = spikes.times.iter().skip(skipped).map(|(_, ms)| *ms).collect();
    let (high, low) =
        (shown.iter().max().copied().unwrap_or(0), shown.iter().min().copied().unwrap_or(0));
    let mut text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        spikes.longest_ms,
        "-".repeat(COLUMNS)
    );
    for row in (1..=ROWS).rev() {
        let line: String = shown
            .iter()
            .map(|ms| if row * high.max(1) <= *ms * ROWS { '#' } else { ' ' })
            .collect();
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = writeln!(text, "{}", "_".repeat(shown.len()));
    context.session.out.verbatim("txt", text.as_bytes());
    Ok(Flow::Next)
}

fn doctor(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let from_ms = context.hub.settings.hot.latency_from_ms;
    let mut text = String::new();
    if from_ms == 0 {
        text += "Nothing is watched: latency-monitor-threshold is 0. CONFIG SET latency-monitor-threshold 100 notes what takes 100 milliseconds or more.\n";
    } else if context.hub.latency.events.is_empty() {
        let _ = writeln!(text, "Nothing has taken {from_ms} milliseconds or more.");
    }
    for (name, spikes) in &context.hub.latency.events {
        let count = spikes.times.len() as u64;
        let mean = spikes.times.iter().map(|(_, ms)| ms).sum::<u64>() / count.max(1);
        let _ = writeln!(
            text,
            "{name}: {count} latency spikes (average {mean}ms). Worst all time event {}ms.",
            spikes.longest_ms
        );
    }
    context.session.out.verbatim("txt", text.as_bytes());
    Ok(Flow::Next)
}

fn reset(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let events = &mut context.hub.latency.events;
    let before = events.len();
    match &context.args[2..] {
        [] => events.clear(),
        names => events.retain(|event, _| !names.contains(&event.as_bytes())),
    }
    let gone = before - events.len();
    context.session.out.len(gone);
    Ok(Flow::Next)
}

/// The commands of those names with their subcommands; all without names.
fn named(names: &[&[u8]]) -> Vec<&'static Entry> {
    if names.is_empty() {
        return registry().all().iter().collect();
    }
    let found = names.iter().filter_map(|name| registry().named(name));
    found
        .flat_map(|entry| {
            let children = entry.children.iter().map(|child| &registry().all()[*child]);
            std::iter::once(entry).chain(children)
        })
        .collect()
}

fn histogram(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let stats = &context.hub.stats.commands;
    let shown: Vec<_> = named(&context.args[2..])
        .into_iter()
        .filter_map(|entry| stats.get(entry.number).map(|stats| (entry, stats)))
        .filter(|(_, stats)| 0 < stats.tracked)
        .collect();
    let out = &mut context.session.out;
    out.map(shown.len());
    for (entry, stats) in shown {
        out.text(entry.info.name);
        out.map(2);
        out.text("calls");
        out.int(i64::try_from(stats.tracked).unwrap_or(i64::MAX));
        out.text("histogram_usec");
        let filled = stats.buckets.iter().enumerate().filter(|(_, count)| 0 < **count);
        let filled: Vec<(usize, u64)> = filled.map(|(bucket, count)| (bucket, *count)).collect();
        out.map(filled.len());
        let mut sum = 0;
        for (bucket, count) in filled {
            sum += count;
            out.int(i64::try_from(bound_of(bucket)).unwrap_or(i64::MAX));
            out.int(i64::try_from(sum).unwrap_or(i64::MAX));
        }
    }
    Ok(Flow::Next)
}
