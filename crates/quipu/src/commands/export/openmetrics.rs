//! OpenMetrics text with times: metric by metric, as all samples of a family stand together, each asked for
//! in its whole time. The server reads series by series, so neither side holds more than one.
//!
//! An export that was interrupted goes on behind the last metric that is complete in FILE.part.

use super::file::PartFile;
use super::metrics::{answer, metric_path, names};
use super::pieces::{Piece, Pieces};
use super::told::{Shown, Told};
use super::{Asked, asked, reply_of};
use crate::commands::output_error;
use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::ArgMatches;
use cli::checkpoint::Checkpoint;
use cli::quantity::{count_of, format_size};
use http_client::client::Client;
use hyper::Method;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, Metadata, MetricKind};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use wire::exposition::openmetrics::{Known, has_plain_names, line_head, push_line, push_metric};

/// Bytes that are gathered before they are written.
const BUFFER_SIZE: usize = 256 << 10;
/// How often it is written down how far an export is, at most: metrics may be many and small.
const SAVED_EVERY: Duration = Duration::from_secs(1);
/// What ends the text.
const EOF: &[u8] = b"# EOF\n";

/// How far an export is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    #[serde(flatten)]
    asked: Asked,
    /// Tells the file from those of other formats.
    openmetrics: Names,
    /// The last metric that is done.
    done: Option<String>,
    /// Bytes up to its end.
    size: u64,
    told: Told,
}

/// Which names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Names {
    /// Those that OpenMetrics 1.0 knows.
    Plain,
    /// All, those that it does not know in quotes.
    Quoted,
}

/// Exports to a file, or to standard output.
///
/// # Errors
/// When the server does not answer or the file cannot be written.
pub fn run(matches: &ArgMatches, client: &mut Client, output: &str) -> anyhow::Result<()> {
    if output == "-" {
        let progress = begin(matches, client)?;
        let mut out = std::io::stdout().lock();
        let mut export = Export::new(client, progress)?;
        export.run(&mut |bytes| out.write_all(bytes).map_err(output_error), &mut |_| Ok(()))?;
        out.flush().map_err(output_error)?;
        export.progress.told.say();
        return Ok(());
    }
    let output = Path::new(output);
    let (checkpoint, shown) = (Checkpoint::of(output), output.display());
    // First: another run may write down how far it is.
    let mut file = PartFile::open(output)?;
    let found = checkpoint.read::<Progress>();
    let found = found.with_context(|| format!("{shown} was begun in another format"))?;
    let progress = match found {
        Some(found) if found.openmetrics != names_of(matches) => {
            bail!("{shown} was begun with other --quoted-names; remove its .progress")
        }
        Some(mut found) => {
            found.asked.go_on(matches, &shown.to_string())?;
            found
        }
        None => begin(matches, client)?,
    };
    file.cut_to(progress.size)?;
    let file = RefCell::new(file);
    let mut export = Export::new(client, progress)?;
    let mut saved = Instant::now();
    let mut save = |progress: &Progress| {
        if saved.elapsed() < SAVED_EVERY {
            return Ok(());
        }
        saved = Instant::now();
        file.borrow().sync()?;
        checkpoint.write(progress)
    };
    export.run(&mut |bytes| file.borrow_mut().write(bytes), &mut save)?;
    let progress = export.progress;
    file.into_inner().finish()?;
    checkpoint.remove();
    progress.told.say();
    cli::print_line!(
        "{}, {} in {shown}",
        count_of(progress.told.samples, "sample"),
        format_size(progress.size)
    );
    Ok(())
}

fn names_of(matches: &ArgMatches) -> Names {
    if matches.get_flag("quoted-names") { Names::Quoted } else { Names::Plain }
}

fn begin(matches: &ArgMatches, client: &mut Client) -> anyhow::Result<Progress> {
    let asked = asked(matches, client)?;
    let openmetrics = names_of(matches);
    Ok(Progress { asked, openmetrics, done: None, size: 0, told: Told::default() })
}

/// Takes bytes of the file.
type OnBytes<'a> = &'a mut dyn FnMut(&[u8]) -> anyhow::Result<()>;

/// An export under way.
struct Export<'a> {
    client: &'a mut Client,
    progress: Progress,
    known: Known,
    metrics: BTreeSet<String>,
    shown: Shown,
}

impl<'a> Export<'a> {
    fn new(client: &'a mut Client, progress: Progress) -> anyhow::Result<Export<'a>> {
        let asked = &progress.asked;
        let found = names(client, asked, (asked.start, asked.end))?;
        let metrics: BTreeSet<String> = found.into_iter().collect();
        let is_done = |name: &&String| progress.done.as_ref().is_some_and(|done| *name <= done);
        let done = metrics.iter().filter(is_done).count() as u64;
        let shown = Shown::new("metrics", metrics.len() as u64, done, progress.told.samples)?;
        let known = metadata(client)?;
        Ok(Export { client, progress, known, metrics, shown })
    }

    fn run(
        &mut self,
        write: OnBytes<'_>,
        on_metric: &mut dyn FnMut(&Progress) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let is_left = |name: &&String| self.progress.done.as_ref().is_none_or(|done| done < *name);
        let left: Vec<String> = self.metrics.iter().filter(is_left).cloned().collect();
        for name in left {
            self.metric(&name, write)?;
            self.shown.step();
            self.progress.done = Some(name);
            on_metric(&self.progress)?;
        }
        write(EOF)?;
        self.progress.size += EOF.len() as u64;
        self.shown.clear();
        Ok(())
    }

    fn metric(&mut self, name: &str, write: OnBytes<'_>) -> anyhow::Result<()> {
        let asked = &self.progress.asked;
        let path = metric_path(asked, (asked.start, asked.end), name)?;
        let Progress { size, told, openmetrics, .. } = &mut self.progress;
        let mut head = Vec::new();
        push_metric(&mut head, name, &self.known, &self.metrics);
        let mut lines =
            Lines { names: *openmetrics, head, out: Vec::new(), series: None, millis: None, told };
        let mut count = |bytes: &[u8]| {
            write(bytes)?;
            *size += bytes.len() as u64;
            Ok(())
        };
        let shown = &self.shown;
        let mut pieces = Pieces::new();
        let mut take = |piece: &Piece| {
            lines.push(piece);
            shown.samples(lines.told.samples);
            match BUFFER_SIZE <= lines.out.len() {
                true => count(&std::mem::take(&mut lines.out)),
                false => Ok(()),
            }
        };
        let mut arrived = |bytes: &[u8]| pieces.push(bytes, &mut take);
        reply_of(self.client.send(Method::GET, &path, Bytes::new(), &mut arrived))?;
        pieces.finish(&mut take)?;
        count(&lines.out)
    }
}

/// Lines of one family.
struct Lines<'a> {
    names: Names,
    /// What stands before the first of its lines.
    head: Vec<u8>,
    out: Vec<u8>,
    /// The series of the last piece, and what its lines begin with.
    series: Option<(Labels, Vec<u8>)>,
    /// The millisecond of its last line.
    millis: Option<i64>,
    told: &'a mut Told,
}

impl Lines<'_> {
    fn push(&mut self, piece: &Piece) {
        let histograms = piece.histograms.len() as u64;
        self.told.leave_out("native histograms, which OpenMetrics has none of", histograms);
        if self.names == Names::Plain && !has_plain_names(&piece.labels) {
            let what =
                "samples of series with names that OpenMetrics 1.0 does not know (--quoted-names)";
            return self.told.leave_out(what, piece.samples.len() as u64);
        }
        if self.series.as_ref().is_none_or(|(labels, _)| *labels != piece.labels) {
            self.series = Some((piece.labels.clone(), line_head(&piece.labels)));
            self.millis = None;
        }
        let Some((_, line)) = &self.series else { return };
        let (mut ended, mut hidden) = (0, 0);
        for (time, value) in &piece.samples {
            if model::is_stale_marker(*value) {
                ended += 1;
                continue;
            }
            self.out.append(&mut self.head);
            push_line(&mut self.out, line, *value, *time);
            self.told.samples += 1;
            let millis = Some(time.div_euclid(NANOS_PER_MILLI));
            hidden += u64::from(self.millis == millis);
            self.millis = millis;
        }
        let what = "samples that are there, of a millisecond that has an earlier one: Prometheus keeps that";
        self.told.leave_out(what, hidden);
        self.told.leave_out("marks of a series' end, which OpenMetrics has none of", ended);
    }
}

/// What the server knows of metrics.
fn metadata(client: &mut Client) -> anyhow::Result<Known> {
    #[derive(Deserialize)]
    struct One {
        r#type: String,
        help: String,
        unit: String,
    }
    #[derive(Deserialize)]
    struct Answer {
        data: BTreeMap<String, Vec<One>>,
    }
    let answer: Answer = serde_json::from_slice(&answer(client, "/api/v1/metadata")?)?;
    let of = |(metric, all): (String, Vec<One>)| {
        let One { r#type, help, unit } = all.into_iter().next()?;
        let kind = MetricKind::parse(&r#type);
        Some((metric.clone(), Metadata { metric, kind, help, unit }))
    };
    Ok(answer.data.into_iter().filter_map(of).collect())
}
