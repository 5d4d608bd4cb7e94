//! `quipu backup list` and `show`: what there is.

use super::place::{self, Place};
use super::shelf::{self, LATEST};
use super::text;
use clap::{Arg, ArgMatches, Command};
use cli::arguments::switch;
use cli::error_text::sentence;
use cli::quantity::format_size;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;
use store::BackupManifest;

/// Exit code when a manifest cannot be read.
const PROBLEMS: u8 = 1;

/// The subcommand `list`.
pub fn list_command() -> Command {
    let command = Command::new("list")
        .about("Lists backups, oldest first")
        .after_help("Exit code 1 when the manifest of one cannot be read; the others are listed.");
    place::arguments(command).arg(json_switch())
}

/// The subcommand `show`.
pub fn show_command() -> Command {
    let files = switch("files", "List every file of it, with its size");
    let command = Command::new("show").about("Shows what a backup has").arg(backup_argument());
    place::arguments(command).arg(json_switch()).arg(files)
}

/// Which backup.
pub fn backup_argument() -> Arg {
    Arg::new("backup")
        .value_name("BACKUP")
        .default_value(LATEST)
        .help("Its name, a beginning that only it has, or latest")
}

fn json_switch() -> Arg {
    switch("json", "Print one JSON document")
}

/// Lists.
///
/// # Errors
/// When the place cannot be read.
pub fn list(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let place = place::open(matches)?;
    shelf::check(place.as_ref())?;
    let mut code = ExitCode::SUCCESS;
    let mut backups = Vec::new();
    for id in shelf::ids(place.as_ref())? {
        match shelf::read(place.as_ref(), &id) {
            Ok(manifest) => backups.push((id, manifest)),
            Err(error) => {
                eprintln!("quipu: {id}: {}", sentence(&error));
                code = ExitCode::from(PROBLEMS);
            }
        }
    }
    let mut out = std::io::stdout().lock();
    if matches.get_flag("json") {
        let all: Vec<Value> = backups.iter().map(|(id, backup)| as_json(id, backup)).collect();
        writeln!(out, "{:#}", Value::Array(all))?;
        return Ok(code);
    }
    writeln!(out, "{:<30} {:<20} {:>7} {:>10} {:>10}", "BACKUP", "MADE", "FILES", "SIZE", "SENT")?;
    for (id, backup) in &backups {
        writeln!(
            out,
            "{id:<30} {:<20} {:>7} {:>10} {:>10}",
            shelf::made(backup),
            backup.files.len(),
            format_size(backup.size()),
            format_size(backup.sent_bytes),
        )?;
    }
    Ok(code)
}

/// Shows.
///
/// # Errors
/// When there is no such backup or it cannot be read.
pub fn show(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let place = place::open(matches)?;
    let id = shelf::find(place.as_ref(), text(matches, "backup").unwrap_or(LATEST))?;
    let backup = shelf::read(place.as_ref(), &id)?;
    let with_files = matches.get_flag("files");
    if matches.get_flag("json") {
        let mut shown = as_json(&id, &backup);
        if with_files {
            let file = |file: &store::BackupFile| json!({ "path": file.path, "size": file.size });
            shown["list"] = backup.files.iter().map(file).collect();
        }
        writeln!(std::io::stdout(), "{shown:#}")?;
        return Ok(ExitCode::SUCCESS);
    }
    print(place.as_ref(), &id, &backup)?;
    if with_files {
        let mut out = std::io::stdout().lock();
        for file in &backup.files {
            writeln!(out, "{:>14} {}", file.size, file.path)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(place: &dyn Place, id: &str, backup: &BackupManifest) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "backup {id} in {}", place.name())?;
    writeln!(out, "made {} by quipu {}", shelf::made(backup), backup.program)?;
    writeln!(out, "{} files, {}", backup.files.len(), format_size(backup.size()))?;
    let sent = format_size(backup.sent_bytes);
    writeln!(out, "{} blobs were sent for it, {sent}", backup.sent_blobs)?;
    for (folder, (files, size)) in by_folder(backup) {
        writeln!(out, "  {folder:<24} {files:>7} files {:>10}", format_size(size))?;
    }
    Ok(())
}

/// Files and bytes by folder, of partitions each by itself.
fn by_folder(backup: &BackupManifest) -> BTreeMap<String, (usize, u64)> {
    let mut folders = BTreeMap::new();
    for file in &backup.files {
        let mut names = file.path.split('/');
        let folder = match (names.next(), names.next(), names.next()) {
            (Some(one), Some(two), Some(_)) => format!("{one}/{two}"),
            (Some(one), Some(_), None) => one.to_owned(),
            _ => ".".to_owned(),
        };
        let (files, size) = folders.entry(folder).or_insert((0, 0));
        *files += 1;
        *size += file.size;
    }
    folders
}

fn as_json(id: &str, backup: &BackupManifest) -> Value {
    json!({
        "backup": id,
        "made": shelf::made(backup),
        "files": backup.files.len(),
        "size": backup.size(),
        "sentBlobs": backup.sent_blobs,
        "sentBytes": backup.sent_bytes,
        "snapshot": backup.snapshot,
        "program": backup.program,
    })
}
