//! `quipu kv export`: all keys of a server as a dump of Redis, of one moment.
//!
//! ```text
//! SYNC ─► $EOF:mark or $size ─► FILE.part, checked as a whole ─► FILE
//! ```
//! The server takes this for a replica that is content with the first dump. A Redis does, too.

use super::bar;
use anyhow::{Context as _, bail, ensure};
use clap::{Arg, ArgMatches, Command};
use cli::quantity::{count_of, format_size};
use http_client::resp::{Connection, arguments};
use indicatif::ProgressBar;
use kv::rdb::{self, Found, LeftOut};
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes of the mark behind a dump whose size is not known before.
const MARK_SIZE: usize = 40;

/// The subcommand.
pub fn command() -> Command {
    let command = Command::new("export")
        .about("Writes all keys of a running server to a dump of Redis (dump.rdb)")
        .after_help(
            "The dump is of one moment, while the server goes on; Redis 7.0 and newer load it, and \
             so does quipu kv import.\n\
             What Redis 7.0 has not is left out, counted and named: bloom filters, time series, and \
             the times at which fields of hashes expire.\n\
             FILE is replaced once the dump is whole; until then there is FILE.part. The server may \
             be a Redis, too.\n\n\
             quipu kv export dump.rdb\n\
             quipu kv export dump.rdb --url redis://10.0.0.7:7379 --password-file /run/secrets/redis",
        )
        .arg(Arg::new("file").value_name("FILE").required(true).help("The dump to write"));
    arguments(command)
}

/// Writes a dump.
///
/// # Errors
/// When the server refuses or goes away, or the file cannot be written.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let name = matches.get_one::<String>("file").map(String::as_str).unwrap_or_default();
    let (name, mut part) = (Path::new(name), PathBuf::from(name).into_os_string());
    part.push(".part");
    let part = PathBuf::from(part);
    let mut connection = Connection::open(matches)?;
    // What does not know it sends the dump's size before it.
    let _ = connection.call(&[b"REPLCONF", b"capa", b"eof"]);
    connection.say(&[b"SYNC"])?;
    let file = File::create(&part).with_context(|| part.display().to_string())?;
    let size = receive(&mut connection, file).with_context(|| part.display().to_string())?;
    let contents = check(&part)?;
    std::fs::rename(&part, name).with_context(|| name.display().to_string())?;
    let libraries = match contents.functions {
        1 => "1 library".to_string(),
        count => format!("{count} libraries"),
    };
    cli::print_line!(
        "{} and {} of functions, {} in {}",
        count_of(contents.keys, "key"),
        libraries,
        format_size(size),
        name.display()
    );
    let left_out = &contents.left_out;
    if !left_out.is_empty() {
        cli::print_line!("left out, for Redis 7.0 has none: {}", left_out.words());
        left_out.named.iter().for_each(|name| cli::print_line!("  {name}"));
        let sum = left_out.blooms + left_out.series + left_out.field_expiries;
        let unnamed = sum.saturating_sub(left_out.named.len() as u64);
        if 0 < unnamed {
            cli::print_line!("  and {unnamed} more");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Receives a dump. Returns its size.
fn receive(connection: &mut Connection, file: File) -> anyhow::Result<u64> {
    // Empty lines say that it is being made.
    let head = loop {
        let line = connection.line()?;
        if !line.is_empty() {
            break line;
        }
    };
    if let Some(reason) = head.strip_prefix('-') {
        bail!("SYNC: {reason}");
    }
    let mut out = BufWriter::new(file);
    let size = match head.strip_prefix("$EOF:") {
        Some(mark) => {
            ensure!(mark.len() == MARK_SIZE, "a dump whose end is marked in an unknown way");
            let bar = bar(0, "{spinner} {binary_bytes} at {binary_bytes_per_sec}")?;
            let size = copy_marked(connection.reader(), &mut out, mark.as_bytes(), &bar)?;
            bar.finish_and_clear();
            size
        }
        None => {
            let size = head.strip_prefix('$').and_then(|size| size.parse().ok());
            let size: u64 = size.with_context(|| format!("no dump, but {head}"))?;
            let bar = bar(size, "{bar:30} {binary_bytes} of {binary_total_bytes}, {eta} left")?;
            let mut source = bar.wrap_read(connection.reader().take(size));
            let copied = std::io::copy(&mut source, &mut out)?;
            ensure!(copied == size, "the server went away after {copied} of {size} bytes");
            bar.finish_and_clear();
            size
        }
    };
    out.flush()?;
    out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    Ok(size)
}

/// Copies until what was read ends with the mark, which is left out.
fn copy_marked(
    source: &mut BufReader<impl Read>,
    out: &mut impl Write,
    mark: &[u8],
    bar: &ProgressBar,
) -> anyhow::Result<u64> {
    let (mut kept, mut size) = (Vec::new(), 0);
    loop {
        let read = source.fill_buf().context("the server went away")?;
        let count = read.len();
        ensure!(0 < count, "the server went away after {size} bytes: its log says why");
        kept.extend_from_slice(read);
        source.consume(count);
        let end = kept.len().saturating_sub(MARK_SIZE);
        out.write_all(&kept[..end])?;
        size += end as u64;
        bar.set_position(size);
        if kept.ends_with(mark) {
            return Ok(size);
        }
        kept.drain(..end);
    }
}

/// What a dump has.
#[derive(Default)]
struct Contents {
    keys: u64,
    functions: u64,
    left_out: LeftOut,
}

/// Reads a whole dump.
fn check(part: &Path) -> anyhow::Result<Contents> {
    let name = || part.display().to_string();
    let file = File::open(part).with_context(name)?;
    let bar = bar(file.metadata()?.len(), "checking {bar:30} {binary_bytes}, {eta} left")?;
    let mut reader = BufReader::new(file);
    let mut contents = Contents::default();
    let walked = rdb::walk(&mut reader, |found, offset| {
        match found {
            Found::Key { .. } => contents.keys += 1,
            Found::Function(_) => contents.functions += 1,
            Found::Note(name, value) => contents.left_out.read(&name, &value),
        }
        bar.set_position(offset);
        Ok::<(), rdb::Failure>(())
    });
    bar.finish_and_clear();
    walked.with_context(name)?;
    Ok(contents)
}
