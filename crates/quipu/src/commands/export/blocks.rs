//! Prometheus' blocks in a directory, one for each span of time that begins at a multiple of its length.
//!
//! ```text
//! DIR/ULID           a block, whole         DIR.progress    blocks that are done
//! DIR/ULID.tmp-for-creation    the one under way, removed when a run goes on
//! DIR/wal            empty
//! ```
//!
//! That a block is done is written down when it is whole, and before it gets its name: whoever goes on gives
//! it the name, so no block is there twice.

use super::block::{BlockWriter, UNFINISHED, name};
use super::file::lock_directory;
use super::metrics::export_path;
use super::pieces::{Piece, Pieces};
use super::told::{Shown, Told};
use super::{Asked, asked, reply_of};
use anyhow::{Context as _, anyhow, bail, ensure};
use bytes::Bytes;
use clap::ArgMatches;
use cli::checkpoint::Checkpoint;
use cli::quantity::{count_of, parse_duration};
use http_client::client::Client;
use hyper::Method;
use model::sample::NANOS_PER_MILLI;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Prometheus cuts its blocks at multiples of this, and joins them to three times, nine times, .. of it.
const SHORTEST: i64 = 2 * 3_600_000_000_000;
/// How often it is written down how far an export is where years have no samples.
const SAVED_EVERY: Duration = Duration::from_secs(1);
/// Blocks of one export: there is a request for each.
const BLOCKS_MAX: i64 = 1_000_000;

/// How far an export is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    #[serde(flatten)]
    asked: Asked,
    /// Nanoseconds of a block.
    block_duration: i64,
    /// Which block is next, as the number of its duration since 1970.
    next_block: i64,
    /// The block that was written last, and may not have its name.
    last_written: Option<String>,
    /// Blocks that have samples.
    blocks: u64,
    told: Told,
}

/// Exports to a directory.
///
/// # Errors
/// When the server does not answer, or a block cannot be written.
pub fn run(matches: &ArgMatches, client: &mut Client, output: &str) -> anyhow::Result<()> {
    if output == "-" {
        bail!("--format prometheus-blocks writes blocks into a directory: give it by --output");
    }
    // Without a slash at its end, behind which the progress would be within.
    let output: PathBuf = Path::new(output).components().collect();
    let (checkpoint, shown) = (Checkpoint::of(&output), output.display().to_string());
    let duration = block_duration(matches)?;
    std::fs::create_dir_all(&output).with_context(|| shown.clone())?;
    // First: another run may write down how far it is.
    let _lock = lock_directory(&output)?;
    let found = checkpoint.read::<Progress>();
    let found = found.with_context(|| format!("{shown} was begun in another format"))?;
    let mut progress = match found {
        Some(mut found) => {
            found.asked.go_on(matches, &shown)?;
            if found.block_duration != duration {
                bail!("{shown} was begun with another --block-duration; remove its .progress")
            }
            found
        }
        None => begin(matches, client, (output.as_path(), duration))?,
    };
    // Without a log, which Prometheus makes when it starts, promtool does not look at blocks.
    std::fs::create_dir_all(output.join("wal")).with_context(|| shown.clone())?;
    if let Some(ulid) = &progress.last_written {
        name(&output, ulid)?;
    }
    remove_unfinished(&output)?;
    checkpoint.write(&progress)?;
    let duration = progress.block_duration;
    let first = progress.asked.start.div_euclid(duration);
    let last = progress.asked.end.div_euclid(duration);
    let done = (progress.next_block - first).unsigned_abs();
    let bar = Shown::new("blocks", (last - first + 1).unsigned_abs(), done, progress.told.samples)?;
    let mut saved = Instant::now();
    while progress.next_block <= last {
        let written = block(client, &mut progress, &output, &bar);
        if written.is_err() {
            // Of a disk that is full it gives room back; where it stays, the next run removes it.
            let _ = remove_unfinished(&output);
        }
        let written = written?;
        progress.next_block += 1;
        bar.step();
        if SAVED_EVERY <= saved.elapsed() && written.is_none() {
            saved = Instant::now();
            checkpoint.write(&progress)?;
        }
        if let Some(ulid) = written {
            progress.blocks += 1;
            progress.last_written = Some(ulid.clone());
            checkpoint.write(&progress)?;
            name(&output, &ulid)?;
        }
    }
    bar.clear();
    checkpoint.remove();
    progress.told.say();
    cli::print_line!(
        "{}, {} in {shown}",
        count_of(progress.told.samples, "sample"),
        count_of(progress.blocks, "block")
    );
    Ok(())
}

fn begin(
    matches: &ArgMatches,
    client: &mut Client,
    (output, block_duration): (&Path, i64),
) -> anyhow::Result<Progress> {
    let is_used = std::fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        bail!("{} is there, and not empty: give another --output", output.display());
    }
    let asked = asked(matches, client)?;
    let next_block = asked.start.div_euclid(block_duration);
    let count = asked.end.div_euclid(block_duration) - next_block;
    ensure!(
        count < BLOCKS_MAX,
        "{count} blocks, with a request for each, the limit is {BLOCKS_MAX}: say --start, or a longer \
         --block-duration"
    );
    Ok(Progress {
        asked,
        block_duration,
        next_block,
        last_written: None,
        blocks: 0,
        told: Told::default(),
    })
}

/// Nanoseconds of a block.
fn block_duration(matches: &ArgMatches) -> anyhow::Result<i64> {
    let text = matches.get_one::<String>("block-duration").map(String::as_str).unwrap_or("18h");
    let duration = parse_duration(text).map_err(|why| anyhow!("--block-duration: {why}"))?;
    let duration = i64::try_from(duration)?;
    ensure!(
        0 < duration && duration % SHORTEST == 0,
        "--block-duration {text}: say a multiple of 2h, best 2h, 6h, 18h, 54h or 162h"
    );
    Ok(duration)
}

/// What an earlier run did not finish comes again.
fn remove_unfinished(output: &Path) -> anyhow::Result<()> {
    let shown = || output.display().to_string();
    for entry in std::fs::read_dir(output).with_context(shown)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(UNFINISHED) {
            std::fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// Writes the next block; returns how it will be called, if there is anything in it.
fn block(
    client: &mut Client,
    progress: &mut Progress,
    output: &Path,
    bar: &Shown,
) -> anyhow::Result<Option<String>> {
    let Progress { asked, block_duration, next_block, told, .. } = progress;
    let start = next_block.saturating_mul(*block_duration);
    let last = start.saturating_add(*block_duration - 1);
    let path = export_path(asked, start.max(asked.start), last.min(asked.end));
    let mut writer: Option<BlockWriter> = None;
    let mut samples = told.samples;
    // What a block that breaks off left out is not counted.
    let mut told_now = told.clone();
    let mut pieces = Pieces::new();
    let mut take = |piece: &Piece| {
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(BlockWriter::begin(output)?),
        };
        samples += (piece.samples.len() + piece.histograms.len()) as u64;
        bar.samples(samples);
        writer.push(piece, &mut told_now)
    };
    let mut arrived = |bytes: &[u8]| pieces.push(bytes, &mut take);
    let sent = reply_of(client.send(Method::GET, &path, Bytes::new(), &mut arrived));
    sent.and_then(|()| pieces.finish(&mut take))?;
    let Some(writer) = writer else { return Ok(None) };
    let meta = writer.finish(&mut told_now)?;
    *told = told_now;
    if let Some(meta) = &meta {
        let (first, last) = (start / NANOS_PER_MILLI, last / NANOS_PER_MILLI);
        debug_assert!(first <= meta.min_time && meta.max_time <= last + 1);
    }
    Ok(meta.map(|meta| meta.ulid))
}
