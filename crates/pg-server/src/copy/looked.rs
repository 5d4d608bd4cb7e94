//! What was decoded of lines when they were looked at: kept until they are stored, so that nobody decodes
//! them again.

use model::{KeyDecoder, Metadata, Row, Shape, WriteBatch};
use std::borrow::Cow;
use std::collections::HashMap;
use wire::{Counts, Decoded, LineErrors};

/// Rows that are kept, of one `COPY`; where there are more all are decoded again.
const ROWS_MAX: usize = 256 << 10;
/// Bytes that a kept row takes.
const ROW_SIZE: usize = size_of::<Row>() + size_of::<f64>();

/// Batches in the order of their lines.
#[derive(Default)]
pub struct Looked {
    batches: Vec<Kept>,
    rows: usize,
    /// What lines say about metrics, by the names of those.
    metadata: HashMap<String, Metadata>,
    /// Whether there was something that is not kept.
    has_more: bool,
}

/// One batch without the bytes that its keys are in.
#[derive(Default)]
struct Kept {
    shapes: Vec<Shape>,
    rows: Vec<Row>,
    values: Vec<f64>,
    context: Vec<u8>,
    counts: Counts,
}

impl Looked {
    /// Keeps a batch, none of whose lines is bad.
    pub fn keep(&mut self, decoded: Decoded<'_>) {
        let Decoded { batch, histograms, starts, context, metadata, exemplars, counts, .. } =
            decoded;
        self.rows += batch.rows.len();
        self.has_more |= ROWS_MAX < self.rows
            || !(histograms.is_empty() && starts.is_empty() && exemplars.is_empty());
        if self.has_more {
            self.batches.clear();
            self.metadata.clear();
            return;
        }
        metadata.into_iter().for_each(|one| self.learn(one));
        let WriteBatch { shapes, rows, values, .. } = batch;
        // The last one waits for the disk, which one without rows does not.
        if rows.is_empty() {
            return;
        }
        self.batches.push(Kept { shapes, rows, values, context: context.to_vec(), counts });
    }

    /// What later lines say of a metric goes first.
    fn learn(&mut self, told: Metadata) {
        let Some(known) = self.metadata.get_mut(&told.metric) else {
            self.metadata.insert(told.metric.clone(), told);
            return;
        };
        let Metadata { kind, help, unit, .. } = told;
        if kind != Metadata::default().kind {
            known.kind = kind;
        }
        if !help.is_empty() {
            known.help = help;
        }
        if !unit.is_empty() {
            known.unit = unit;
        }
    }

    /// Bytes that it takes, about.
    pub fn size(&self) -> usize {
        if self.has_more { 0 } else { self.rows * ROW_SIZE }
    }

    /// Gives all lines as they were decoded; `take` learns whether they are the last. Whether it has all.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn give<E>(
        &mut self,
        (bytes, decoder): (&[u8], &dyn KeyDecoder),
        take: &mut dyn FnMut(Decoded<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.has_more {
            return Ok(false);
        }
        let mut metadata: Vec<Metadata> = self.metadata.drain().map(|(_, one)| one).collect();
        if self.batches.is_empty() && !metadata.is_empty() {
            self.batches.push(Kept::default());
        }
        for kept in std::mem::take(&mut self.batches) {
            let Kept { shapes, rows, values, context, counts } = kept;
            let decoded = Decoded {
                batch: WriteBatch { bytes: Cow::Borrowed(bytes), shapes, rows, values, decoder },
                histograms: Vec::new(),
                starts: Vec::new(),
                context: &context,
                errors: LineErrors::default(),
                metadata: std::mem::take(&mut metadata),
                exemplars: Vec::new(),
                counts,
                rest: None,
            };
            take(decoded)?;
        }
        Ok(true)
    }
}
