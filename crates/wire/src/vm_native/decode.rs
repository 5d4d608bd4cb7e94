//! Blocks of a body to rows.
//!
//! A block that is none is refused, the others are kept; behind one whose size is a lie nothing is found.

use super::content::{ContentReader, EVER};
use super::{HEAD_SIZE, PIECE_SIZE_MAX, columns};
use crate::Error;
use crate::decoded::{Decoded, Growing, ROWS_PER_BATCH, Start, check_body_size};
use crate::narrow::body_offset;
use model::sample::NANOS_PER_MILLI;
use model::{KeyDecoder, KeyHasher, LabelError, LabelsBuilder, METRIC_NAME, Row, Shape, Timestamp};
use std::borrow::Cow;

use crate::extra_labels::ExtraLabels;

/// Samples of one request: a block of some bytes may have thousands.
pub const SAMPLES_PER_REQUEST_MAX: u64 = 64 << 20;

/// Decodes blocks from `start` on, until the body or the batch is full ([`Decoded::rest`]).
///
/// # Errors
/// A body that is larger than [`model::limits::BODY_SIZE_MAX`], or has no head; bad blocks are in
/// [`Decoded::errors`].
pub fn decode<'a>(
    body: &'a [u8],
    start: Start,
    hasher: &KeyHasher,
    keys: &'a NativeKeys,
) -> Result<Decoded<'a>, Error> {
    check_body_size(body)?;
    let no_head = || Error::malformed("native format", 0, "16 bytes with the first and last time");
    let head = body.first_chunk::<HEAD_SIZE>().ok_or_else(no_head)?;
    let time = |at: usize| {
        let bytes = head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        columns::unzigzag(u64::from_be_bytes(bytes.unwrap_or_default()))
    };
    let fields: Vec<Box<str>> = vec!["".into()];
    let shape_hash = hasher.shape(&keys.context, &fields);
    let mut grown = Growing::default();
    grown.shapes.push(Shape { fields, hash: shape_hash });
    let range = (time(0), time(8));
    let reader = ContentReader::default();
    let mut blocks = Blocks { body, hasher, shape_hash, range, reader, grown };
    let rest = blocks.decode(Start { offset: start.offset.max(HEAD_SIZE), ..start });
    let decoded = blocks.grown.finish(Cow::Borrowed(body), keys, rest);
    Ok(Decoded { context: &keys.context, ..decoded })
}

/// The state between blocks.
struct Blocks<'a, 'h> {
    body: &'a [u8],
    hasher: &'h KeyHasher,
    shape_hash: u64,
    /// First and last time that count, in milliseconds; others are passed over, as VictoriaMetrics does.
    range: (i64, i64),
    reader: ContentReader,
    grown: Growing,
}

impl Blocks<'_, '_> {
    fn decode(&mut self, start: Start) -> Option<Start> {
        let Start { offset: mut at, mut line } = start;
        while at < self.body.len() {
            if ROWS_PER_BATCH <= self.grown.rows.len() {
                return Some(Start { offset: at, line });
            }
            self.grown.counts.lines += 1;
            let Some((name, content)) = self.piece(at).and_then(|name| {
                let content = self.piece(name.1)?;
                Some((name, content))
            }) else {
                let words = format!(
                    "the body ends within a block, or its pieces are of more than {PIECE_SIZE_MAX} bytes"
                );
                self.grown.errors.push(line, || words);
                return None;
            };
            let before = self.grown.values.len();
            if let Err(reason) = self.block(name, content, line) {
                self.grown.values.truncate(before);
                self.grown.rows.truncate(before);
                self.grown.errors.push(line, || format!("cannot read block: {reason}"));
            }
            at = content.1;
            line = line.saturating_add(1);
        }
        None
    }

    /// Where the piece is whose size stands at a place.
    fn piece(&self, at: usize) -> Option<(usize, usize)> {
        let size = self.body.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)? as usize;
        let (start, end) = (at + 4, at + 4 + size);
        (size <= PIECE_SIZE_MAX && end <= self.body.len()).then_some((start, end))
    }

    fn block(
        &mut self,
        name: (usize, usize),
        content: (usize, usize),
        position: u32,
    ) -> Result<(), &'static str> {
        let key = self.body.get(name.0..name.1).unwrap_or_default();
        let content = self.body.get(content.0..content.1).unwrap_or_default();
        self.reader.read(content, EVER)?;
        let hash = self.hasher.hash(key, self.shape_hash);
        let (key_offset, key_size) = (body_offset(name.0), body_offset(key.len()));
        for (&millis, &value) in self.reader.millis.iter().zip(&self.reader.values) {
            if millis < self.range.0 || self.range.1 < millis {
                continue;
            }
            let timestamp: Timestamp =
                millis.checked_mul(NANOS_PER_MILLI).ok_or("times in the years 1677 to 2262")?;
            let values_start = body_offset(self.grown.values.len());
            self.grown.values.push(value);
            let row =
                Row { hash, timestamp, key_offset, key_size, shape: 0, values_start, position };
            self.grown.rows.push(row);
        }
        Ok(())
    }
}

/// Decodes the keys of one request.
#[derive(Clone, Debug)]
pub struct NativeKeys {
    extra: ExtraLabels,
    context: Vec<u8>,
}

impl NativeKeys {
    /// Keys that get the extra labels.
    pub fn new(extra: ExtraLabels) -> NativeKeys {
        let context = extra.context("vm_native");
        NativeKeys { extra, context }
    }
}

impl KeyDecoder for NativeKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        push_tags(key, tags)?;
        self.extra.complete(tags)
    }

    fn metric_name(&self, key: &[u8], _field: &str, name: &mut String) -> Result<(), LabelError> {
        name.push_str(&name_of(key)?);
        Ok(())
    }
}

/// The metric of a name.
pub(super) fn name_of(key: &[u8]) -> Result<Cow<'_, str>, LabelError> {
    let name = texts(key).next().ok_or(LabelError::MissingMetricName)??;
    if name.is_empty() { Err(LabelError::MissingMetricName) } else { Ok(name) }
}

/// Adds the labels of a name.
pub(super) fn push_tags(key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
    let mut texts = texts(key);
    let _ = texts.next();
    while let Some(name) = texts.next() {
        let value = texts.next().ok_or_else(|| refused("a label without a value"))??;
        let name = name?;
        if name.is_empty() || name == METRIC_NAME {
            return Err(LabelError::EmptyName);
        }
        tags.push(&name, &value);
    }
    Ok(())
}

fn refused(words: &str) -> LabelError {
    LabelError::Refused(format!("labels: {words}"))
}

/// The texts of a name: the metric, then names and values of its labels in turn.
fn texts<'a>(key: &'a [u8]) -> impl Iterator<Item = Result<Cow<'a, str>, LabelError>> {
    // Each ends with a byte, so behind the last there is nothing.
    let (whole, is_ended) = match key.split_last() {
        Some((1, rest)) => (rest, true),
        _ => (key, false),
    };
    let cut = (!is_ended).then(|| Err(refused("a text without its end")));
    let no_text = |_| refused("bytes that are no UTF-8");
    let text = move |piece: &'a [u8]| {
        if !piece.contains(&0) {
            return std::str::from_utf8(piece).map(Cow::Borrowed).map_err(no_text);
        }
        let mut bytes = Vec::with_capacity(piece.len());
        let mut rest = piece.iter();
        while let Some(&byte) = rest.next() {
            match (byte, (byte == 0).then(|| rest.next())) {
                (_, None) => bytes.push(byte),
                (_, Some(Some(digit @ b'0'..=b'2'))) => bytes.push(digit - b'0'),
                (_, Some(_)) => return Err(refused("an escape that is not known")),
            }
        }
        String::from_utf8(bytes).map(Cow::Owned).map_err(|error| no_text(error.utf8_error()))
    };
    let pieces = is_ended.then(|| whole.split(|byte| *byte == 1).map(text));
    cut.into_iter().chain(pieces.into_iter().flatten())
}
