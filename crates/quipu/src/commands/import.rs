//! `quipu import`: sends a file of JSON lines to a running server, and goes on where it stopped.
//!
//! ```text
//! FILE ─ whole lines, 4 MiB at a time ─► POST /api/v1/import ─► 204 ─► FILE.progress = offset
//! ```
//!
//! Parquet goes another way, in `import_parquet`.
//! Sending the same lines twice does no harm: the same samples are stored once.

#[cfg(feature = "sql")]
use super::import_parquet::{is_parquet, run as send_parquet};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::{Arg, ArgMatches, Command};
use cli::arguments::option;
use cli::checkpoint::Checkpoint;
use cli::line_counter::LineCounter;
use cli::quantity::{count_of, format_size};
use http_client::client::{Client, arguments};
use http_client::target_store;
use http_client::target_store::{IS_ANOTHER, is_same};
use hyper::{Method, StatusCode};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitCode;

/// Bytes of lines in one request.
const REQUEST_SIZE: usize = 4 << 20;

/// Bytes of a file that tell what it is instead.
const HEAD_SIZE: usize = 64;
/// Lines that could not be read which are looked at.
const REFUSALS_READ: usize = 20;
/// Lines that could not be read which are shown where none could.
const REFUSALS_SHOWN: usize = 3;

/// How far an import came.
#[derive(Serialize, Deserialize)]
struct Progress {
    /// Bytes of the file that the server has stored.
    offset: u64,
    /// Store that they were sent to, where the server names it.
    #[serde(default)]
    store: Option<String>,
}

/// The subcommand.
pub fn command() -> Command {
    let command = Command::new("import")
        .about("Sends JSON lines or Parquet, as `quipu export` writes them, to a running server")
        .after_help(
            "An import that was interrupted goes on where it stopped: FILE.progress remembers.\n\
             A file is Parquet if it begins so; of a directory all files are sent that end in \
             .parquet, also those of directories within it. Their columns are name, value, and as far \
             as they are there time, labels, and what `quipu export` writes beside these.",
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .help("The file, or a directory of Parquet files; - is standard input"),
        )
        .arg(option("durability", "WORD", "synced or relaxed, when not as the server is set"));
    arguments(command)
}

/// Sends the file; exit code 1 when the server refused some lines.
///
/// # Errors
/// When the file cannot be read or the server does not take it.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let name = matches.get_one::<String>("file").map(String::as_str).unwrap_or_default();
    let mut client = Client::new(matches)?;
    let path = match matches.get_one::<String>("durability") {
        Some(word) => format!("/api/v1/import?durability={}", http_client::client::encode(word)),
        None => "/api/v1/import".to_string(),
    };
    let refused = if name == "-" {
        let bar = bar(None)?;
        send_lines(&mut client, &path, std::io::stdin().lock(), &bar, &mut |_| Ok(()))?
    } else if is_parquet(Path::new(name)) {
        send_parquet(&mut client, &path, Path::new(name))?
    } else {
        send_file(&mut client, &path, Path::new(name))?
    };
    Ok(ExitCode::from(u8::from(0 < refused)))
}

#[cfg(not(feature = "sql"))]
fn is_parquet(name: &Path) -> bool {
    name.is_dir() || name.extension().is_some_and(|end| end == "parquet")
}

#[cfg(not(feature = "sql"))]
fn send_parquet(_: &mut Client, _: &str, _: &Path) -> anyhow::Result<u64> {
    bail!("this build is without the feature sql, and knows no Parquet")
}

fn send_file(client: &mut Client, path: &str, name: &Path) -> anyhow::Result<u64> {
    let mut file = File::open(name).with_context(|| name.display().to_string())?;
    let size = file.metadata()?.len();
    let checkpoint = Checkpoint::of(name);
    let store = target_store::identify(client)?;
    let offset = match checkpoint.read::<Progress>()? {
        None => 0,
        Some(before) if is_same(before.store.as_ref(), store.as_ref()) => before.offset,
        Some(_) => {
            eprintln!("quipu: {IS_ANOTHER}");
            0
        }
    };
    if size < offset {
        bail!("{} is shorter than what was sent of it; remove its .progress file", name.display());
    }
    let bar = bar(Some(size))?;
    if 0 < offset {
        let (done, all) = (format_size(offset), format_size(size));
        bar.suspend(|| eprintln!("going on at {done} of {all}"));
        bar.set_position(offset);
        bar.reset_eta();
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut save =
        |sent: u64| checkpoint.write(&Progress { offset: offset + sent, store: store.clone() });
    let refused = send_lines(client, path, BufReader::new(file), &bar, &mut save)?;
    checkpoint.remove();
    Ok(refused)
}

fn bar(size: Option<u64>) -> anyhow::Result<ProgressBar> {
    let bar = match size {
        Some(size) => ProgressBar::new(size),
        None => ProgressBar::no_length(),
    };
    let template =
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar)
}

/// Sends all lines; returns how many requests had lines that were refused.
fn send_lines(
    client: &mut Client,
    path: &str,
    mut reader: impl BufRead,
    bar: &ProgressBar,
    save: &mut dyn FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let (mut sent, mut counter) = (Sent::default(), LineCounter::default());
    loop {
        let lines = next_lines(&mut reader)?;
        if lines.is_empty() {
            break;
        }
        counter.push(&lines);
        let before = sent.size;
        send(client, path, lines, bar, &mut sent)?;
        bar.inc(sent.size - before);
        save(sent.size)?;
    }
    bar.finish_and_clear();
    let Sent { size, refused } = sent;
    let requests = count_of(refused, "request");
    cli::print_line!(
        "{} sent, {}; {requests} had lines that were refused",
        format_size(size),
        counter.finish()
    );
    Ok(refused)
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// Bytes of lines.
    pub size: u64,
    /// Requests that had lines which were refused.
    pub refused: u64,
}

/// Sends some lines, and says which were refused.
///
/// # Errors
/// When the server does not take them.
pub(super) fn send(
    client: &mut Client,
    path: &str,
    lines: Vec<u8>,
    bar: &ProgressBar,
    sent: &mut Sent,
) -> anyhow::Result<()> {
    let size = lines.len() as u64;
    let head: Vec<u8> = lines.iter().take(HEAD_SIZE).copied().collect();
    let reply = client.send(Method::POST, path, Bytes::from(lines), &mut |_| Ok(()))?;
    match reply.status {
        status if status.is_success() => {}
        // The server has stored the good lines.
        StatusCode::BAD_REQUEST if sent.size == 0 && is_no_line(&reply.error) => {
            bail!(
                "nothing of the first {} is a JSON line{}; the rest was not sent: {}",
                format_size(size),
                instead(&head),
                first_lines(&reply.error)
            )
        }
        StatusCode::BAD_REQUEST => {
            sent.refused += 1;
            bar.suspend(|| eprintln!("from byte {}: {}", sent.size, reply.error));
        }
        status => bail!("{status}: {}; run again to go on from here", reply.error),
    }
    sent.size += size;
    Ok(())
}

/// Whether a server says that it could read none of what it got.
fn is_no_line(error: &str) -> bool {
    let mut lines = error.lines();
    let is_nothing = lines.next().is_some_and(|line| line.starts_with("0 samples stored"));
    // The last one may be cut off.
    let mut some = lines.filter(|line| *line != "...").take(REFUSALS_READ);
    is_nothing && some.all(|line| line.contains("cannot parse JSON line"))
}

fn first_lines(error: &str) -> String {
    let lines: Vec<&str> = error.lines().skip(1).take(REFUSALS_SHOWN).collect();
    lines.join("; ")
}

/// What may be done with what begins so, where that is known.
fn instead(head: &[u8]) -> &'static str {
    let is_text = std::str::from_utf8(head).is_ok_and(|text| !text.contains('\0'));
    if head.starts_with(&[0x1f, 0x8b]) {
        return ": it is compressed by gzip, `gunzip -c FILE | quipu import -` sends what is in it";
    }
    if head.starts_with(b"PAR1") {
        return ": it is Parquet, which goes by its name and not by standard input";
    }
    if head.starts_with(b"# HELP") || head.starts_with(b"# TYPE") {
        return ": it is text as servers are scraped, which POST /api/v1/import/prometheus takes";
    }
    if head.starts_with(b"# ") {
        return ": line protocol is copied by `quipu migrate influx-lines FILE`";
    }
    match is_text {
        true => {
            ", as `quipu export` writes them: line protocol is copied by `quipu migrate influx-lines \
             FILE`, what VictoriaMetrics exports by `quipu migrate victoriametrics-files FILE`"
        }
        false => ", as `quipu export` writes them",
    }
}

/// Whole lines of about [`REQUEST_SIZE`] bytes; at least one line, nothing at the end.
fn next_lines(reader: &mut impl BufRead) -> anyhow::Result<Vec<u8>> {
    let mut lines = Vec::new();
    reader.by_ref().take(REQUEST_SIZE as u64).read_to_end(&mut lines)?;
    if lines.last().is_some_and(|byte| *byte != b'\n') {
        let line_size_max = model::limits::LINE_SIZE_MAX as u64;
        reader.by_ref().take(line_size_max).read_until(b'\n', &mut lines)?;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_format_is_told_from_lines_that_are_refused() {
        let no = "0 samples stored, 2 lines or samples refused:\nline 1: cannot parse JSON line: x\nline 2: \
                  cannot parse JSON line: y\n...";
        assert!(is_no_line(no));
        assert!(!is_no_line(&no.replacen('0', "1", 1)), "one was a line");
        assert!(!is_no_line(&no.replace("line 2: cannot parse JSON line", "line 2: too old")));
        assert!(first_lines(no).starts_with("line 1: cannot"));
        assert!(instead(&[0x1f, 0x8b, 8]).contains("gunzip"));
        assert!(instead(b"cpu,host=a v=1").contains("influx-lines"));
        assert!(!instead(&[0xff, 0, 1]).contains("influx-lines"));
    }

    #[test]
    fn requests_end_with_lines() {
        let line = format!("{}\n", "x".repeat(999));
        let text = line.repeat(10_000) + "last";
        let mut reader = text.as_bytes();
        let mut all = Vec::new();
        loop {
            let lines = next_lines(&mut reader).expect("memory reads");
            if lines.is_empty() {
                break;
            }
            assert!(lines.ends_with(b"\n") || lines.ends_with(b"last"));
            assert!(lines.len() <= REQUEST_SIZE + 1000);
            all.extend(lines);
        }
        assert!(all == text.as_bytes());
    }
}
