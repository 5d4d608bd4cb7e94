//! What VictoriaMetrics exports to files: JSON lines, or its native format, told apart by their first bytes.

use super::{Behind, Cut, Format, Out, PIECE_SIZE, Piece, cut_lines};
use crate::series::Series;
use crate::source::Given;
use anyhow::{bail, ensure};
use model::sample::NANOS_PER_MILLI;
use model::{KeyHasher, LabelError, Labels, LabelsBuilder, METRIC_NAME, Row, WriteBatch};
use wire::remote_write::encode::MillisSample;
use wire::vm_native::{NativeKeys, PIECE_SIZE_MAX, decode};
use wire::{ExtraLabels, Start};

/// Bytes before the first block of the native format.
const HEAD_SIZE: usize = 16;
/// A head whose times leave nothing out.
const HEAD: [u8; HEAD_SIZE] = [0xff; HEAD_SIZE];

/// How a file with that beginning is read.
///
/// # Errors
/// When it is neither.
pub fn format_of(head: &[u8]) -> anyhow::Result<Box<dyn Format>> {
    if head.trim_ascii_start().first().is_none_or(|byte| *byte == b'{') {
        return Ok(Box::new(JsonLines));
    }
    // Two times, then the size of a name.
    let word = |at: usize| {
        let bytes = head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_be_bytes)
    };
    let time = |at: usize| word(at).map(|zigzag| (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
    let size = head.get(HEAD_SIZE..).and_then(|rest| rest.first_chunk().copied());
    let is_size = |bytes| u32::from_be_bytes(bytes) as usize <= PIECE_SIZE_MAX;
    let is_native = matches!((time(0), time(8)), (Some(first), Some(last)) if first <= last)
        && size.is_none_or(is_size);
    ensure!(is_native, "neither JSON lines nor an export in the native format");
    Ok(Box::new(Native { is_begun: false }))
}

struct JsonLines;

impl Format for JsonLines {
    fn cut(&mut self, coming: &[u8], behind: Behind) -> anyhow::Result<Cut> {
        Ok(cut_lines(coming, behind))
    }

    fn read(&self, piece: &Piece, bytes: &[u8], out: &mut Out<'_>) -> anyhow::Result<()> {
        for (line, number) in bytes.split(|byte| *byte == b'\n').zip(piece.first..) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match wire::json_lines::read_line(line) {
                Ok((labels, samples)) => {
                    let mut series =
                        Series { labels, samples, histograms: Vec::new(), repeated: Vec::new() };
                    // It has none that are no number: they mark where it had nothing.
                    series.samples.retain(|one| !one.value.is_nan());
                    out.give(Given::Series(series))?;
                }
                Err(error) => out.fault(number, error),
            }
        }
        Ok(())
    }
}

struct Native {
    is_begun: bool,
}

impl Format for Native {
    fn is_of_lines(&self) -> bool {
        false
    }

    fn cut(&mut self, coming: &[u8], behind: Behind) -> anyhow::Result<Cut> {
        if !self.is_begun {
            self.is_begun = true;
            return Ok(Cut { size: HEAD_SIZE, records: 0, context: None });
        }
        let (mut at, mut records) = (0, 0);
        while at < coming.len().min(PIECE_SIZE) {
            let Some(end) = block_end(coming, at)? else { break };
            at = end;
            records += 1;
        }
        if at == 0 && behind == Behind::Nothing {
            bail!("the file ends within a block");
        }
        Ok(Cut { size: at, records, context: Some(String::new()) })
    }

    fn read(&self, piece: &Piece, bytes: &[u8], out: &mut Out<'_>) -> anyhow::Result<()> {
        let body = [&limits()[..], bytes].concat();
        let keys = NativeKeys::new(ExtraLabels::none());
        let hasher = KeyHasher::new(1);
        let mut start = Start { offset: 0, line: piece.first };
        loop {
            let decoded = decode(&body, start, &hasher, &keys)?;
            let kept = decoded.errors.kept();
            for error in kept {
                out.fault(error.position, &error.reason);
            }
            out.faults(decoded.errors.count() - kept.len() as u64, || "..".to_string());
            let batch = &decoded.batch;
            for rows in batch.rows.chunk_by(|a, b| a.key_offset == b.key_offset) {
                let Some(first) = rows.first() else { continue };
                match labels_of(batch, first) {
                    Ok(labels) => out.give(Given::Series(series_of(batch, labels, rows)))?,
                    Err(error) => out.fault(first.position, error),
                }
            }
            match decoded.rest {
                Some(next) => start = next,
                None => return Ok(()),
            }
        }
    }
}

/// Where the block at a place ends: two pieces, each behind its size.
fn block_end(coming: &[u8], at: usize) -> anyhow::Result<Option<usize>> {
    let mut end = at;
    for _ in 0..2 {
        let size = coming.get(end..end + 4).and_then(|bytes| bytes.try_into().ok());
        let Some(size) = size.map(u32::from_be_bytes) else { return Ok(None) };
        ensure!(size as usize <= PIECE_SIZE_MAX, "a block of {size} bytes is none");
        end += 4 + size as usize;
    }
    Ok((end <= coming.len()).then_some(end))
}

/// The head of all times.
fn limits() -> [u8; HEAD_SIZE] {
    let mut head = HEAD;
    // Zigzag: the last time is even.
    head[HEAD_SIZE - 1] = 0xfe;
    head
}

fn labels_of(batch: &WriteBatch<'_>, row: &Row) -> Result<Labels, LabelError> {
    let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
    batch.decoder.tags(batch.key(row), &mut labels)?;
    batch.decoder.metric_name(batch.key(row), "", &mut name)?;
    labels.push(METRIC_NAME, &name);
    Ok(labels.sorted()?.into_labels())
}

fn series_of(batch: &WriteBatch<'_>, labels: Labels, rows: &[Row]) -> Series {
    let sample = |row: &Row| {
        let value = batch.row_values(row).first().copied()?;
        Some(MillisSample { millis: row.timestamp.div_euclid(NANOS_PER_MILLI), value })
    };
    Series {
        labels,
        samples: rows.iter().filter_map(sample).collect(),
        histograms: Vec::new(),
        repeated: Vec::new(),
    }
}
