//! `quipu kv import`: a dump of Redis, sent to a server.
//!
//! ```text
//! dump.rdb ─ key by key ─► RESTORE key expiry value REPLACE ABSTTL ─► the server's Redis door
//! ```
//! Sending the same file twice does no harm: keys are replaced by what they were.

use super::bar;
use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http_client::resp::{Answer, Connection, arguments};
use indicatif::ProgressBar;
use kv::rdb::{self, Found};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

/// Refused keys that are named; the others are counted.
const NAMED_COUNT_MAX: u64 = 20;
/// Bytes of a key that messages show.
const SHOWN_SIZE_MAX: usize = 128;

/// The subcommand.
pub fn command() -> Command {
    let command = Command::new("import")
        .about("Sends the keys of a dump of Redis (dump.rdb) to a running server")
        .after_help(
            "Databases, expiries and functions are taken along; values of modules are left out.\n\
             The same file may be sent again: keys are replaced by what they were. Keys that the \
             file does not have stay.\n\
             Where the file breaks off, all keys before that are in, and the exit code is 1; it is \
             1, too, when the server refused some.\n\n\
             quipu kv import /var/lib/redis/dump.rdb\n\
             quipu kv import dump.rdb --url redis://10.0.0.7:7379 --password-file /run/secrets/redis",
        )
        .arg(Arg::new("file").value_name("FILE").required(true).help("The dump"))
        .arg(
            Arg::new("keep-existing")
                .long("keep-existing")
                .action(ArgAction::SetTrue)
                .help("Leave keys alone that the server has"),
        );
    arguments(command)
}

/// What became of what the file has.
#[derive(Default)]
struct Counts {
    sent: u64,
    done: u64,
    kept: u64,
    of_modules: u64,
    refused: u64,
}

/// Sends a dump; exit code 1 when the server refused some of it.
///
/// # Errors
/// When the file is none or breaks off, or the server goes away.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let name = matches.get_one::<String>("file").map(String::as_str).unwrap_or_default();
    let name = Path::new(name);
    let file = File::open(name).with_context(|| name.display().to_string())?;
    let size = file.metadata()?.len();
    let mut connection = Connection::open(matches)?;
    let bar = bar(
        size,
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
    )?;
    let keeps = matches.get_flag("keep-existing");
    let mut counts = Counts::default();
    let mut reader = BufReader::new(file);
    let mut db = 0;
    let walked = rdb::walk(&mut reader, |found, offset| {
        let is_elsewhere = matches!(&found, Found::Key { db: of, .. } if *of != db);
        if is_elsewhere || connection.is_full() {
            connection.flush(&mut |about, answer| note(about, answer, &mut counts, &bar))?;
        }
        if let (Found::Key { db: of, .. }, true) = (&found, is_elsewhere) {
            // Nothing is to land in another database.
            db = *of;
            connection.call(&[b"SELECT", db.to_string().as_bytes()])?;
        }
        add(&mut connection, found, keeps, &mut counts);
        bar.set_position(offset);
        anyhow::Ok(())
    });
    // What is whole was sent, whatever comes behind it in the file.
    connection.flush(&mut |about, answer| note(about, answer, &mut counts, &bar))?;
    bar.finish_and_clear();
    cli::print_line!("{}", counts.words());
    walked.map_err(|error| match error.is::<rdb::Failure>() {
        true => error.context(format!("{}: all that stands before is in", name.display())),
        false => error.context(name.display().to_string()),
    })?;
    Ok(ExitCode::from(u8::from(0 < counts.refused)))
}

impl Counts {
    fn words(&self) -> String {
        let Counts { sent, done, kept, of_modules, refused } = self;
        format!(
            "{done} of {sent} keys and functions are in; {kept} were there and kept, {refused} \
             refused, {of_modules} of modules left out"
        )
    }
}

/// Gathers the command that makes what was found.
fn add(connection: &mut Connection, found: Found, keeps: bool, counts: &mut Counts) {
    let (key, value, expire_ms) = match found {
        Found::Function(code) => {
            counts.sent += 1;
            let about = b"a library of functions";
            return connection.add(about, &[b"FUNCTION", b"LOAD", b"REPLACE", &code]);
        }
        Found::Note(..) => return,
        Found::Key { key, value, expire_ms, .. } => (key, value, expire_ms),
    };
    let payload = value.filter(|value| !value.is_empty()).and_then(|value| rdb::dump(&value));
    let Some(payload) = payload else {
        counts.of_modules += 1;
        return;
    };
    counts.sent += 1;
    let expire = expire_ms.unwrap_or(0).to_string();
    let mut words: Vec<&[u8]> = vec![b"RESTORE", &key, expire.as_bytes(), &payload, b"ABSTTL"];
    if !keeps {
        words.push(b"REPLACE");
    }
    connection.add(&key, &words);
}

/// Notes what the server said.
fn note(about: &[u8], answer: Answer, counts: &mut Counts, bar: &ProgressBar) {
    let Answer::Refused(reason) = answer else {
        counts.done += 1;
        return;
    };
    if reason.starts_with("BUSYKEY") {
        counts.kept += 1;
        return;
    }
    counts.refused += 1;
    if counts.refused <= NAMED_COUNT_MAX {
        let shown = about.get(..SHOWN_SIZE_MAX).unwrap_or(about);
        bar.suspend(|| eprintln!("{}: {reason}", String::from_utf8_lossy(shown)));
    }
}
