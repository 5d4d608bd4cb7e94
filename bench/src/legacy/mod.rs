//! Moving in: what a question takes while its samples are still in a VictoriaMetrics, half of them,
//! or none.
//!
//! ```text
//! load ─► VictoriaMetrics ◄─ legacy ─ Quipu "right after"  (nothing copied)
//!                         ◄─ legacy ─ Quipu "half and half" (the newer half copied)
//!                         ◄─ legacy ─ Quipu "long after"    (all copied, `until` is past)
//!                                     Quipu "alone"         (all copied, no legacy backend)
//! ```
//!
//! Each question goes to all of them in turn, in an order that moves on, so that what the machine
//! does meanwhile hits them alike; shown are medians, and medians of the quotients of each round.

mod measure;
mod options;
mod page;
mod states;

use crate::cases::index_operations::Operation;
use crate::cases::index_queries::unique_names;
use crate::instant::{DAY_NS, SECOND_NS, parse_rfc3339};
use crate::random::stream;
use crate::shapes::unique_names::SHARED_VALUE;
use crate::tsbs::queries::{Language, QUERY_TYPES, RequestForm};
use crate::tsbs::{CpuOnly, Scale};
use crate::workload::Workload;
use anyhow::{Context, Result, bail};
use measure::Measured;
pub use options::LegacyOptions;
use options::Question;
use page::Page;
use states::Moving;
use std::fs;

/// Loads each data set, moves it, and asks.
///
/// # Errors
/// When a server cannot be run, refuses a question, or a table cannot be written.
pub fn run(options: &LegacyOptions, command_line: &str) -> Result<()> {
    fs::create_dir_all(&options.work_dir)?;
    let versions = [&options.victoria_metrics, &options.quipu].map(|one| one.version.clone());
    let mut page = Page::new(command_line, &versions);
    if let Some(scale) = options.scale {
        let workload = CpuOnly::new(scale)?;
        let title =
            format!("TSBS cpu-only: {} series, {} samples", workload.series(), workload.samples());
        page.push(&section(options, &title, &workload, tsbs_questions(&scale, options.rounds)?)?);
        page.write(options.out.as_deref())?;
    }
    for series in &options.series {
        // Servers are asked in whole seconds, so the last second has no sample.
        let (start_ns, span_ns) = (parse_rfc3339("2026-01-01T00:00:00Z")?, DAY_NS - SECOND_NS);
        let workload = unique_names(*series, 0, start_ns, span_ns, SHARED_VALUE);
        let title = format!("Index queries: {series} series of one day, a sample each");
        let questions = index_questions(start_ns, start_ns + span_ns);
        page.push(&section(options, &title, &workload, questions)?);
        page.write(options.out.as_deref())?;
    }
    println!("{}", page.text());
    Ok(())
}

/// The query types of TSBS, each with as many different questions as there may be rounds.
fn tsbs_questions(scale: &Scale, rounds: usize) -> Result<Vec<Question>> {
    let mut random = stream(scale.seed);
    let mut questions = Vec::new();
    for query_type in &QUERY_TYPES {
        let mut paths = Vec::new();
        for _ in 0..rounds {
            let request = query_type.query(scale, &mut random)?.request(Language::PromQl);
            match request.form {
                RequestForm::Path(path) => paths.push(path),
                RequestForm::Statement => bail!("PromQL is asked by paths"),
            }
        }
        questions.push(Question { name: query_type.name.to_string(), paths });
    }
    Ok(questions)
}

fn index_questions(start_ns: i64, end_ns: i64) -> Vec<Question> {
    let question = |operation: &Operation| Question {
        name: operation.name().to_string(),
        paths: vec![operation.path(start_ns, end_ns)],
    };
    Operation::ALL.iter().map(question).collect()
}

/// One data set: the servers in their states, and what they took.
fn section(
    options: &LegacyOptions,
    title: &str,
    workload: &dyn Workload,
    questions: Vec<Question>,
) -> Result<String> {
    eprintln!("== {title}");
    let dir = tempfile::tempdir_in(&options.work_dir)?;
    let moving = Moving::prepare(options, workload, dir.path())?;
    let mut rows: Vec<(String, Measured)> = Vec::new();
    for question in questions {
        let measured = measure::ask(&moving, &question, options)
            .with_context(|| format!("{title}: {}", question.name))?;
        eprintln!("   {}: {measured}", question.name);
        rows.push((question.name, measured));
    }
    moving.stop()?;
    Ok(page::section(title, &rows))
}
