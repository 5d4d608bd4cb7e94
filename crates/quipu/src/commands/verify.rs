//! `quipu verify`: walks every checksum and invariant of a data directory that nobody has open, and
//! repairs it when a person says so.

use clap::{ArgMatches, Command};
use cli::arguments::{option, switch};
use cli::quantity::{count_of, format_size};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use influx_schema::records;
use influx_schema::records::repair::SchemaRepair;
use kv::repair::KvRepair;
use redis_server::saved_files;
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use store::{
    Finding, LossLine, LostSeries, PartitionLength, Progress, RepairPlan, Snapshots, VerifyReport,
};
use tables::repair::TablesRepair;
use vfs::{RealVfs, Vfs};

/// Exit code when something is wrong with the data.
const PROBLEMS: u8 = 1;
/// Exit code when that could not be found out.
const COULD_NOT_RUN: u8 = 2;
/// Lines of what is lost that are shown; all are in the report file.
const LOSSES_SHOWN_MAX: u64 = 1000;

const HELP: &str = "\
Stop the server first: a directory in use is refused.

Problems are what an answer lacks, or may lack. Notes cost nothing: what a crash left, a torn end of
the log, names that are not of the store.

  quipu verify --data-dir DIR                what is wrong
  quipu verify --data-dir DIR --dry-run      what a repair would do, and what is lost
  quipu verify --data-dir DIR --repair       the same, then asks, then does it

A repair deletes nothing. What is damaged moves to DIR/damaged/TIME/ under the path it had, beside a
file REPORT that says what was done and what is lost, by series and time. Interrupt it whenever you
like, and run it again.

Exit codes: 0 no problems (notes are fine), 1 problems, or a repair that was not done, 2 could not run.
More in docs/repair.md.";

/// The subcommand.
pub fn command() -> Command {
    Command::new("verify")
        .about("Checks every checksum and invariant of a data directory that is not in use")
        .after_help(HELP)
        .arg(option("data-dir", "PATH", "The directory").default_value("./quipu-data"))
        .arg(switch("snapshots", "Check the snapshots in it, too, each as the store that it is"))
        .arg(switch("json", "Print the report as one JSON document"))
        .arg(switch("dry-run", "Say what a repair would do, and do nothing"))
        .arg(switch("repair", "Say what is to be done, ask, and do it"))
        .arg(switch("yes", "Do not ask").requires("repair"))
}

/// How the outcome is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

/// Checks the directory, and repairs it if asked; exit code 1 when something is wrong.
///
/// # Errors
/// When standard output is closed. That the directory cannot be read, or is in use, is exit code 2.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    match run_asked(matches) {
        Err(error) if error.is::<store::Error>() || is_of_others(&error) => {
            eprintln!("quipu: {error}");
            Ok(ExitCode::from(COULD_NOT_RUN))
        }
        done => done,
    }
}

fn is_of_others(error: &anyhow::Error) -> bool {
    error.is::<kv::Error>() || error.is::<tables::Error>()
}

/// Repairs of what shares a data directory with the store.
struct Others {
    keys: Option<KvRepair>,
    tables: Option<TablesRepair>,
    schema: Option<SchemaRepair>,
    /// Records of keys in the log that are lost with a part of them.
    lost_records: Vec<String>,
}

impl Others {
    fn plan(vfs: &dyn Vfs, directory: &Path) -> anyhow::Result<Others> {
        let log = directory.join(store::WAL_DIR);
        let tables = tables::repair::plan(vfs, directory, &log)?;
        let schema = records::repair::plan(vfs, directory, &log)?;
        let left_out = kv::verify::verify(vfs, directory)?.map(|keys| keys.left_out);
        let lost = |(file, what): (PathBuf, String)| format!("{}: {what}", file.display());
        let lost_records = left_out.unwrap_or_default().into_iter().map(lost).collect();
        let keys = match store::is_file_lost(vfs, directory, &kv::kv::manifest_file()) {
            true => kv::repair::plan_lost(vfs, directory)?,
            false => None,
        };
        let keys = match keys {
            None => kv::repair::plan(vfs, directory)?,
            lost => lost,
        };
        Ok(Others { keys, tables, schema, lost_records })
    }

    fn is_empty(&self) -> bool {
        self.keys.is_none() && self.tables.is_none() && self.schema.is_none()
    }

    fn steps(&self) -> impl Iterator<Item = &String> {
        let of_tables = self.tables.iter().flat_map(|tables| tables.steps());
        let of_schema = self.schema.iter().flat_map(|schema| schema.steps());
        self.keys.iter().flat_map(|keys| keys.steps()).chain(of_tables).chain(of_schema)
    }

    fn losses(&self) -> impl Iterator<Item = &String> {
        let of_tables = self.tables.iter().flat_map(|tables| tables.losses());
        let of_keys = self.keys.iter().flat_map(|keys| keys.losses());
        let of_schema = self.schema.iter().flat_map(|schema| schema.losses());
        of_keys.chain(of_tables).chain(of_schema).chain(&self.lost_records)
    }

    /// Does it. Returns the folders with what was moved aside.
    fn apply(&self, vfs: &dyn Vfs) -> anyhow::Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        self.steps().for_each(|says| eprintln!("{says}"));
        if let Some(keys) = &self.keys {
            folders.push(keys.apply(vfs)?);
        }
        if let Some(tables) = &self.tables {
            folders.push(tables.apply(vfs)?);
        }
        if let Some(schema) = &self.schema {
            folders.push(schema.apply(vfs)?);
        }
        Ok(folders)
    }
}

fn run_asked(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let directory = matches.get_one::<String>("data-dir").map(String::as_str).unwrap_or_default();
    let directory = Path::new(directory);
    let form = if matches.get_flag("json") { Form::Json } else { Form::Text };
    let is_dry = matches.get_flag("dry-run");
    let snapshots = match matches.get_flag("snapshots") {
        true => Snapshots::Check,
        false => Snapshots::Skip,
    };
    if !is_dry && !matches.get_flag("repair") {
        let report = verify(directory, snapshots)?;
        print_report(&report, form)?;
        return Ok(exit_code(&report));
    }
    let plan = with_bar(|on_progress| {
        store::plan_repair(Arc::new(RealVfs::new()), directory, on_progress)
    })?;
    // The plan holds the directory's lock.
    let vfs = RealVfs::new();
    let others = Others::plan(&vfs, directory)?;
    print_plan(&plan, &others, form)?;
    if plan.is_empty() && others.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if is_dry || !(matches.get_flag("yes") || is_confirmed()?) {
        eprintln!("nothing was changed");
        return Ok(ExitCode::from(PROBLEMS));
    }
    let mut folders = Vec::new();
    // Lost keys have a manifest again before the root manifest accepts the loss.
    folders.extend(others.apply(&vfs)?);
    if !plan.is_empty() {
        folders.push(plan.apply(&mut |says| eprintln!("{says}"))?);
    }
    // Verification takes the lock.
    drop(plan);
    for folder in folders {
        eprintln!("what was moved aside, and a report, are in {}", folder.display());
    }
    let report = verify(directory, snapshots)?;
    print_report(&report, form)?;
    Ok(exit_code(&report))
}

fn verify(directory: &Path, snapshots: Snapshots) -> Result<VerifyReport, store::Error> {
    let vfs = Arc::new(RealVfs::new());
    let mut report =
        with_bar(|on_progress| store::verify_with(vfs.clone(), directory, snapshots, on_progress))?;
    add_keys(vfs.as_ref(), directory, &mut report);
    add_tables(vfs.as_ref(), directory, &mut report);
    add_schema(vfs.as_ref(), directory, &mut report);
    if snapshots == Snapshots::Check {
        let root = directory.join(store::SNAPSHOTS_DIR);
        for name in vfs.list(&root).unwrap_or_default() {
            add_keys(vfs.as_ref(), &root.join(&name), &mut report);
            add_tables(vfs.as_ref(), &root.join(&name), &mut report);
            add_schema(vfs.as_ref(), &root.join(&name), &mut report);
        }
    }
    Ok(report)
}

/// Adds what a walk over the keys beside a store finds.
fn add_keys(vfs: &dyn Vfs, directory: &Path, report: &mut VerifyReport) {
    match kv::verify::verify(vfs, directory) {
        Ok(None) => {}
        Ok(Some(mut keys)) => {
            keys.problems.extend(saved_files::check(vfs, directory));
            report.files += keys.files;
            report.bytes += keys.bytes;
            report.keys += keys.keys;
            let finding = |(file, what)| Finding { file, what };
            report.problems.extend(keys.problems.into_iter().map(finding));
            report.notes.extend(keys.left_out.into_iter().map(finding));
            let what = "no checkpoint of the keys names it; the next start removes it";
            let note = |file| Finding { file, what: what.to_owned() };
            report.notes.extend(keys.leftovers.into_iter().map(note));
        }
        Err(error) => {
            let finding = Finding { file: directory.to_path_buf(), what: error.to_string() };
            report.problems.push(finding);
        }
    }
}

/// Adds what a walk over the tables beside a store finds.
fn add_tables(vfs: &dyn Vfs, directory: &Path, report: &mut VerifyReport) {
    match tables::verify::verify(vfs, directory, &directory.join(store::WAL_DIR)) {
        Ok(None) => {}
        Ok(Some(tables)) => {
            report.files += tables.files;
            report.bytes += tables.bytes;
            report.tables += tables.tables;
            report.table_rows += tables.rows;
            let finding = |(file, what)| Finding { file, what };
            report.problems.extend(tables.problems.into_iter().map(finding));
            let what = "no checkpoint of the tables names it; the next start removes it";
            let note = |file| Finding { file, what: what.to_owned() };
            report.notes.extend(tables.leftovers.into_iter().map(note));
        }
        Err(error) => {
            let finding = Finding { file: directory.to_path_buf(), what: error.to_string() };
            report.problems.push(finding);
        }
    }
}

/// Adds what a check of the schema records beside a store finds.
fn add_schema(vfs: &dyn Vfs, directory: &Path, report: &mut VerifyReport) {
    match records::verify::verify(vfs, directory, &directory.join(store::WAL_DIR)) {
        Ok(None) => {}
        Ok(Some(schema)) => {
            report.files += schema.files;
            report.bytes += schema.bytes;
            let finding = |(file, what)| Finding { file, what };
            report.problems.extend(schema.problems.into_iter().map(finding));
            report.notes.extend(schema.notes.into_iter().map(finding));
        }
        Err(error) => {
            let finding = Finding { file: directory.to_path_buf(), what: error.to_string() };
            report.problems.push(finding);
        }
    }
}

/// Does something while a bar shows how far it has come.
fn with_bar<T>(act: impl FnOnce(&mut dyn FnMut(&Progress<'_>)) -> T) -> T {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let template = "{bar:30} {bytes}/{total_bytes} {elapsed} {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    let done = act(&mut |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done.min(progress.total));
        bar.set_message(progress.path.display().to_string());
    });
    bar.finish_and_clear();
    done
}

/// Whether a person at a terminal says yes.
fn is_confirmed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        eprintln!("this is no terminal to ask at: --yes does it without asking");
        return Ok(false);
    }
    eprint!("do this? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn exit_code(report: &VerifyReport) -> ExitCode {
    match report.problem_count() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(PROBLEMS),
    }
}

fn print_report(report: &VerifyReport, form: Form) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if form == Form::Json {
        return writeln!(out, "{:#}", report_json(report));
    }
    writeln!(
        out,
        "{}, {}, {}, {}",
        count_of(report.files, "file"),
        format_size(report.bytes),
        count_of(report.series, "series"),
        count_of(report.samples, "sample")
    )?;
    if 0 < report.keys {
        writeln!(out, "{}", count_of(report.keys, "key"))?;
    }
    if 0 < report.tables {
        let (tables, rows) = (report.tables, report.table_rows);
        writeln!(out, "{}, {}", count_of(tables, "table"), count_of(rows, "row"))?;
    }
    if let Some(length) = report.partition_length {
        writeln!(out, "partitions of a {length} each")?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    for problem in &report.problems {
        writeln!(out, "problem: {problem}")?;
    }
    match report.problem_count() {
        0 => writeln!(out, "no problems"),
        1 => writeln!(out, "1 problem; `quipu verify --dry-run` says what a repair would do"),
        count => {
            writeln!(out, "{count} problems; `quipu verify --dry-run` says what a repair would do")
        }
    }
}

fn report_json(report: &VerifyReport) -> Value {
    let list = |findings: &[Finding]| -> Vec<Value> {
        let one = |finding: &Finding| json!({ "file": finding.file, "what": finding.what });
        findings.iter().map(one).collect()
    };
    json!({
        "files": report.files,
        "bytes": report.bytes,
        "series": report.series,
        "keys": report.keys,
        "tables": report.tables,
        "tableRows": report.table_rows,
        "samples": report.samples,
        "partitionLength": report.partition_length.map(PartitionLength::word),
        "problemCount": report.problem_count(),
        "problems": list(&report.problems),
        "notes": list(&report.notes),
    })
}

fn print_plan(plan: &RepairPlan, others: &Others, form: Form) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if form == Form::Json {
        return writeln!(out, "{:#}", plan_json(plan, others));
    }
    if plan.is_empty() && others.is_empty() {
        return writeln!(out, "nothing to repair");
    }
    writeln!(out, "to be done, in this order:")?;
    for says in plan.steps().chain(others.steps().map(String::as_str)) {
        writeln!(out, "  {says}")?;
    }
    let count = plan.losses().len();
    let lost_of_others: Vec<&String> = others.losses().collect();
    if count == 0 && lost_of_others.is_empty() {
        return writeln!(out, "nothing is lost");
    }
    writeln!(out, "lost with the damage, whether it is repaired or not:")?;
    for line in lost_of_others {
        writeln!(out, "  {line}")?;
    }
    let mut shown = 0;
    let mut written = Ok(());
    plan.losses().for_each(&mut |line| {
        shown += 1;
        if shown <= LOSSES_SHOWN_MAX && written.is_ok() {
            written = writeln!(out, "  {line}");
        }
    });
    written?;
    match count.saturating_sub(LOSSES_SHOWN_MAX) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more, which the report of the repair will list"),
    }
}

fn loss_json(line: &LossLine<'_>) -> Value {
    let labels = match &line.series {
        LostSeries::Labels(labels) => {
            let pairs = labels.iter().map(|(name, value)| (name.to_string(), Value::from(value)));
            Value::Object(pairs.collect())
        }
        LostSeries::Ordinal(_) | LostSeries::Unknown(_) => Value::Null,
    };
    json!({
        "file": line.file,
        "what": line.to_string(),
        "labels": labels,
        "startNs": line.range.start,
        "endNs": line.range.end,
    })
}

fn plan_json(plan: &RepairPlan, others: &Others) -> Value {
    let lost_keys = others.keys.as_ref().map(KvRepair::losses).unwrap_or_default();
    let lost_tables = others.tables.as_ref().map(TablesRepair::losses).unwrap_or_default();
    let steps = plan.steps().chain(others.steps().map(String::as_str));

    let mut lost = Vec::new();
    plan.losses().for_each(&mut |line| {
        if (lost.len() as u64) < LOSSES_SHOWN_MAX {
            lost.push(loss_json(line));
        }
    });
    json!({
        "steps": steps.collect::<Vec<_>>(),
        "lostKeys": lost_keys,
        "lostTables": lost_tables,
        "lostCount": plan.losses().len(),
        "lost": lost,
    })
}
