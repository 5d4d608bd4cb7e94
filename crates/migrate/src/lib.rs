//! `quipu migrate`: copies the history of another database to a running Quipu, and compares both.
//!
//! ```text
//! source (a kind each) ─ series, points ─► filter ─► requests ─► Quipu ─► FILE.progress
//!        windows, the newest first                            204
//! ```
//! The old server answers questions all the while, and so does the new one.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

mod arguments;
mod copy;
mod exact;
mod later;
mod nameless;
mod points;
mod series;
mod source;
mod sources;
mod verify;

use anyhow::{Context as _, ensure};
use arguments::{text, time_of};
use clap::{Arg, ArgAction, ArgMatches, Command};
use cli::arguments::{option, switch};
use cli::calendar::rfc3339;
use cli::checkpoint::Checkpoint;
use cli::error_text::sentence;
use cli::quantity::{count_of, format_count, format_size};
use copy::kept::KeptCounts;
use copy::progress::{Days, Progress, begin};
use copy::target::KnownPolicies;
use copy::{Copied, Copier, kept, overlap, until};
use http_client::client::{Client, arguments, without_logins};
use http_client::target_store;
use model::TimeRange;
use model::sample::NANOS_PER_SECOND;
use nameless::Nameless;
use series::Filter;
use source::{Source, Window};
use sources::kinds::{self, Kind};
use sources::source_arguments::places;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Nanoseconds without samples that are told of.
const GAP: i64 = 3600 * NANOS_PER_SECOND;
/// Words of `--help` behind the kinds.
const ABOUT: &str = "\
A copy that was interrupted goes on where it stopped when it is run again: the progress file remembers.
The newest day, or block, comes first. `quipu migrate verify KIND PLACE` compares both sides then.
Times: 2026-01-31, 2026-01-31T12:00:00Z, Unix seconds, now-7d.";

/// The subcommand.
pub fn command() -> Command {
    let verify = common(Command::new("verify"))
        .about("Compares what the source has with what this Quipu has, series by series and day by day")
        .arg(option("show", "COUNT", "Differences that are named").default_value("20"));
    common(Command::new("migrate"))
        .about("Copies the history of another database to a running server")
        .after_help(format!("Kinds and places:\n{}\n{ABOUT}", kinds::about()))
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .subcommand(verify)
        .arg(option("rate", "SAMPLES", "Samples a second at most, so that both servers have time for others"))
        .arg(option("progress", "FILE", "Remembers how far it is, in FILE.progress [default: quipu-migrate-KIND-.., for each copy its own]"))
        .arg(option("keys-url", "URL", "Of redistimeseries and its files: makes the keys, too, by the Redis door of the new server, as redis://127.0.0.1:7379"))
        .arg(switch("move-until", "Moves the until of the same legacy backend of the server back over what is copied whole, so that the old one is not asked for it any more"))
        .arg(switch("dry-run", "Tells what would be copied, and copies nothing"))
}

fn common(command: Command) -> Command {
    let many = |name, value, help| option(name, value, help).action(ArgAction::Append);
    let kind = Arg::new("kind").value_name("KIND").required(true).value_parser(kinds::names());
    let place = Arg::new("place").value_name("PLACE").required(true).num_args(1..);
    let command = command
        .arg(kind.help("What is copied from"))
        .arg(place.help("Its URL, its directory or its files"))
        .arg(option("start", "TIME", "First instant to copy [default: all that there is]"))
        .arg(option("end", "TIME", "Last instant to copy [default: now]"))
        .arg(many(
            "database",
            "NAME",
            "Of influxdb: copies this database; may be given many times [default: all]. Of redistimeseries-files its number [default: 0]",
        ))
        .arg(
            option(
                "default-policy",
                "NAME",
                "Of influx-lines: the retention policy that is called after the database alone",
            )
            .default_value("autogen"),
        )
        .arg(option("from-user", "NAME", "User of basic authentication at the source"))
        .arg(option("from-password-file", "PATH", "File with that user's password"))
        .arg(option("from-bearer-token-file", "PATH", "File with a bearer token for the source"))
        .arg(option("from-tls-ca", "PATH", "PEM file with certificates to trust of the source"));
    arguments(bucket_arguments(series::arguments(command)))
}

#[cfg(feature = "s3")]
fn bucket_arguments(command: Command) -> Command {
    http_client::object_store::arguments(command)
}

#[cfg(not(feature = "s3"))]
fn bucket_arguments(command: Command) -> Command {
    command
}

/// Copies or compares; exit code 1 when samples were refused, or differ.
///
/// # Errors
/// When one side does not answer, or an argument makes no sense.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    match matches.subcommand() {
        Some(("verify", matches)) => verify::run(matches).or_else(|error| {
            eprintln!("quipu: {}", sentence(&error));
            Ok(ExitCode::from(verify::COULD_NOT_RUN))
        }),
        _ => copy_all(matches),
    }
}

/// What a copy is told apart from others by.
fn asked(matches: &ArgMatches) -> BTreeMap<String, String> {
    let names = [
        "place",
        "database",
        "default-policy",
        "match",
        "drop-label",
        "rename-label",
        "set-label",
        "start",
        "end",
    ];
    let many = |name: &str| {
        let all: Vec<&String> = matches.get_many(name).into_iter().flatten().collect();
        all.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(" ")
    };
    let said = names.map(|name| (name.to_string(), many(name)));
    let place = ["kind", "url"].map(|name| (name.to_string(), text(matches, name).into()));
    // Copies that were begun before there were buckets have none.
    let endpoint = matches.try_get_one::<String>("endpoint").ok().flatten();
    let endpoint = endpoint.map(|said| ("endpoint".to_string(), said.clone()));
    // It stands in a file.
    let all = said.into_iter().chain(place).chain(endpoint);
    all.map(|(name, value)| (name, without_logins(&value))).collect()
}

/// FNV-1a of what is asked.
fn digest(asked: &BTreeMap<String, String>) -> u32 {
    let text: String = asked.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

/// Samples a second at most.
fn rate_of(matches: &ArgMatches) -> anyhow::Result<Option<f64>> {
    let said = text(matches, "rate");
    if said.is_empty() {
        return Ok(None);
    }
    let rate = said.parse::<f64>().ok().filter(|rate| rate.is_finite() && 1.0 <= *rate);
    rate.map(Some).with_context(|| format!("--rate {said}: no number of samples"))
}

/// What remembers how far it is; each copy has a file of its own.
fn progress_name(matches: &ArgMatches, kind: &Kind, asked: &BTreeMap<String, String>) -> String {
    match text(matches, "progress") {
        "" => format!("quipu-migrate-{}-{:08x}", kind.name, digest(asked)),
        name => name.to_string(),
    }
}

/// Progress of a copy that begins now.
fn new_progress(matches: &ArgMatches, asked: BTreeMap<String, String>) -> anyhow::Result<Progress> {
    let range = time_of(matches)?;
    let store = match matches.get_flag("dry-run") {
        true => None,
        false => target_store::identify(&mut Client::new(matches)?)?,
    };
    Ok(Progress { asked, store, time: (range.start, range.end), ..Progress::default() })
}

fn copy_all(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let kind = Kind::of(matches)?;
    let asked = asked(matches);
    let name = progress_name(matches, kind, &asked);
    let rate_max = rate_of(matches)?;
    let url = text(matches, "url").trim_end_matches('/');
    ensure!(
        places(matches).iter().all(|place| place.trim_end_matches('/') != url),
        "{} is where it is to be copied to: name the old server, or another --url",
        without_logins(url)
    );
    let filter = Arc::new(Filter::of(matches)?);
    let checkpoint = Checkpoint::of(Path::new(&name));
    let (mut progress, mut is_going_on) = begin(&checkpoint, new_progress(matches, asked)?)?;
    // As it was when the copy began: days have the same ends.
    let range = TimeRange::new(progress.time.0, progress.time.1);
    let mut source = kind.open(matches, &filter, range)?;
    // It may wait for what came last: what there is to copy is looked up behind that.
    let mover = match matches.get_flag("dry-run") {
        true => None,
        false => until::Mover::new(matches, kind, &mut progress)?,
    };
    if mover.is_none() {
        // Nobody says who copies what comes now: a later run does not move anything over it.
        progress.has_moved = false;
    }
    let windows = source.windows()?;
    later::say(source.as_mut(), &filter, range.end);
    // A file that was mended may have other pieces behind that place.
    progress.undone.retain(|name, _| windows.iter().any(|one| one.name == *name));
    let is_dry = matches.get_flag("dry-run");
    is_going_on &= is_dry || has_what_was_sent(matches, &mut progress, &windows)?;
    let had = if is_going_on { None } else { had_before(matches, &filter, &windows) };
    if matches.get_flag("dry-run") {
        tell(source.as_ref(), &windows, &progress);
        overlap::tell(had.as_ref().unwrap_or(&progress.had), &windows);
        source.left_out().iter().for_each(|words| cli::print_line!("left out: {words}"));
        return Ok(ExitCode::SUCCESS);
    }
    progress.had.extend(had.into_iter().flatten());
    if is_going_on {
        say_where(&progress, &windows);
    }
    let client = Client::new(matches)?;
    let (saved, nameless, kept) = (None, Nameless::default(), KeptCounts::default());
    let policies = KnownPolicies::default();
    let filter = &filter;
    let mut copier = Copier {
        client,
        policies,
        filter,
        rate_max,
        checkpoint,
        progress,
        saved,
        nameless,
        kept,
        mover,
    };
    let copied = copier.run(source.as_mut(), &windows)?;
    say_copied(source.as_ref(), &copier, &copied, &windows);
    let place = without_logins(&places(matches).join(" "));
    let url = text(matches, "url");
    cli::print_line!("compare both sides: quipu migrate verify {} {place} --url {url}", kind.name);
    if copier.progress.undone.is_empty() && kind.is_legacy && copier.mover.is_none() {
        say_until(matches, &range);
    }
    Ok(finish(&copier))
}

/// Says what was sent, and what was not.
fn say_copied(source: &dyn Source, copier: &Copier<'_>, copied: &Copied, windows: &[Window]) {
    say_gaps(windows, &copier.progress);
    overlap::say(&copier.progress);
    let count = windows.len();
    cli::print_line!(
        "{} of {} sent; {} had some that were refused",
        count_of(copied.samples, "sample"),
        count_of(count, "window"),
        count_of(copied.refused, "request")
    );
    if let Some(read) = source.bytes_read() {
        cli::print_line!("{} read", format_size(read.load(Ordering::Relaxed)));
    }
    for words in source.left_out().into_iter().chain(copier.nameless.left_out()) {
        eprintln!("left out: {words}");
    }
    copier.filter.losses().iter().for_each(|words| eprintln!("quipu: {words}"));
}

/// Whether the server still has what earlier runs sent; else the copy starts anew, which is said.
fn has_what_was_sent(
    matches: &ArgMatches,
    progress: &mut Progress,
    windows: &[Window],
) -> anyhow::Result<bool> {
    if progress.done.is_empty() && progress.part.is_none() {
        return Ok(true);
    }
    let Some(words) = kept::find_loss(&mut Client::new(matches)?, progress, windows) else {
        return Ok(true);
    };
    progress.start_anew();
    eprintln!("quipu: {words}: it begins anew, up to {}", rfc3339(progress.time.1));
    Ok(false)
}

/// Says where a copy goes on.
fn say_where(progress: &Progress, windows: &[Window]) {
    let (done, all) = (progress.done.len(), windows.len());
    let end = rfc3339(progress.time.1);
    let part = progress.part.as_ref();
    let part = part.map(|part| format!(", and {} series of {}", part.mark.count, part.window));
    let part = part.unwrap_or_default();
    eprintln!("going on: {done} of {all} windows are done{part}; up to {end}, when it began");
}

/// What was here before the copy began; nothing where that cannot be found out, which is said.
fn had_before(matches: &ArgMatches, filter: &Filter, windows: &[Window]) -> Option<Days> {
    let client = Client::new(matches);
    let counted = client.and_then(|mut client| overlap::count(&mut client, filter, windows));
    let say = |error: &anyhow::Error| {
        eprintln!("quipu: what is here already was not counted: {}", sentence(error));
    };
    counted.inspect_err(say).ok()
}

/// Says from when on a server needs its legacy backend no more, where all of a time was copied as it
/// was.
fn say_until(matches: &ArgMatches, copied: &TimeRange) {
    if !until::is_whole(matches) {
        return;
    }
    let (place, end) = (without_logins(&places(matches).join(" ")), rfc3339(copied.end));
    let advice = match copied.start {
        i64::MIN => "start it without that".to_string(),
        start => format!("until={} is enough", rfc3339(start)),
    };
    cli::print_line!(
        "where both are alike, and the server has --legacy 'url={place} ..' with an until of no more \
         than {end}: {advice}"
    );
}

/// Forgets the copy if all of it is stored; else says what is not.
fn finish(copier: &Copier<'_>) -> ExitCode {
    let undone = &copier.progress.undone;
    if undone.is_empty() {
        copier.checkpoint.remove();
        return ExitCode::SUCCESS;
    }
    let named: Vec<&str> = undone.keys().take(10).map(String::as_str).collect();
    let more = if named.len() < undone.len() { ", .." } else { "" };
    eprintln!(
        "not done: {}: {}{more}; mend the cause that was said and run it again, which copies these alone",
        count_of(undone.len(), "window"),
        named.join(", ")
    );
    ExitCode::FAILURE
}

fn tell(source: &dyn Source, windows: &[Window], progress: &Progress) {
    for window in windows {
        let (start, end) = (rfc3339(window.range.start), rfc3339(window.range.end));
        let samples = window.samples.map(|count| format!(", {} samples", format_count(count)));
        let state = if progress.done.contains_key(&window.name) { ", done" } else { "" };
        let size = source.size(window).map(|size| format!(", {}", format_size(size)));
        let (samples, size) = (samples.unwrap_or_default(), size.unwrap_or_default());
        cli::print_line!("{window}: {start} to {end}{samples}{size}{state}");
    }
    cli::print_line!("{}; nothing was copied", count_of(windows.len(), "window"));
}

/// Says of which times nothing came between others of which something did: somebody may have expected
/// samples there.
fn say_gaps(windows: &[Window], progress: &Progress) {
    let count = |window: &Window| progress.done.get(&window.name).copied().unwrap_or(0);
    let mut times: Vec<TimeRange> =
        windows.iter().filter(|one| 0 < count(one)).map(|one| one.range).collect();
    times.sort_by_key(|one| (one.start, one.end));
    let mut end = times.first().map_or(0, |one| one.end);
    for time in times {
        if GAP < time.start.saturating_sub(end) {
            eprintln!("no samples from {} to {}", rfc3339(end), rfc3339(time.start));
        }
        end = end.max(time.end);
    }
}
