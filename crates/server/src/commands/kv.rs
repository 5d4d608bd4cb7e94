//! `quipu kv`: keys, moved in and out.
//!
//! ```text
//! dump.rdb ─ key by key ─► RESTORE key expiry value REPLACE ABSTTL ─► the server's Redis door
//! ```
//! Sending the same file twice does no harm: keys are replaced by what they were.

use super::arguments::option;
use super::redis::{Answer, Connection};
use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use indicatif::{ProgressBar, ProgressStyle};
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
    Command::new("kv")
        .about("Works on the keys of a running server, through its Redis door")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(import_command())
}

fn import_command() -> Command {
    Command::new("import")
        .about("Sends the keys of a dump of Redis (dump.rdb) to a running server")
        .after_help(
            "Databases, expiries and functions are taken along; values of modules are left out. \
             The same file may be sent again.",
        )
        .arg(Arg::new("file").value_name("FILE").required(true).help("The dump"))
        .arg(option("url", "URL", "The server").default_value("redis://127.0.0.1:7379"))
        .arg(option("user", "NAME", "User to log in as").default_value("default"))
        .arg(option("password-file", "PATH", "File with that user's password"))
        .arg(
            Arg::new("keep-existing")
                .long("keep-existing")
                .action(ArgAction::SetTrue)
                .help("Leave keys alone that the server has"),
        )
}

/// Runs the subcommand that the arguments name.
///
/// # Errors
/// As it does.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    match matches.subcommand() {
        Some(("import", matches)) => import(matches),
        _ => unreachable!("clap asks for a subcommand"),
    }
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
fn import(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let name = Path::new(text("file").unwrap_or_default());
    let file = File::open(name).with_context(|| name.display().to_string())?;
    let size = file.metadata()?.len();
    let mut connection = Connection::open(text("url").unwrap_or_default())?;
    if let Some(path) = text("password-file") {
        let password = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
        let user = text("user").unwrap_or_default().as_bytes();
        connection.call(&[b"AUTH", user, password.trim_end().as_bytes()])?;
    }
    connection.call(&[b"PING"])?;
    let bar = bar(size)?;
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
    let Counts { sent, done, kept, of_modules, refused } = counts;
    println!(
        "{done} of {sent} keys and functions are in; {kept} were there and kept, {refused} refused, \
         {of_modules} of modules left out"
    );
    walked.with_context(|| name.display().to_string())?;
    Ok(ExitCode::from(u8::from(0 < refused)))
}

fn bar(size: u64) -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::new(size);
    let template =
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar)
}

/// Gathers the command that makes what was found.
fn add(connection: &mut Connection, found: Found, keeps: bool, counts: &mut Counts) {
    let (key, value, expire_ms) = match found {
        Found::Function(code) => {
            counts.sent += 1;
            let about = b"a library of functions";
            return connection.add(about, &[b"FUNCTION", b"LOAD", b"REPLACE", &code]);
        }
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
