//! Blocks of a stream that comes in pieces, for a client that takes series: the counterpart of what
//! `/api/v1/export/native` sends.
//!
//! ```text
//! pieces ─ Runs ─► runs of whole blocks ─ RunReader, on any thread ─► blocks
//! ```

use super::content::ContentReader;
use super::decode::{name_of, push_tags};
use super::{HEAD_SIZE, PIECE_SIZE_MAX};
use crate::Error;
use model::{LabelError, Labels, LabelsBuilder, METRIC_NAME};
use std::ops::Range;

/// Bytes of a run, about: less than a millisecond of reading, unless a block alone has more.
const RUN_SIZE: usize = 64 << 10;

/// Cuts a stream into runs of whole blocks.
#[derive(Default)]
pub struct Runs {
    /// What has come and was not handed on.
    rest: Vec<u8>,
    /// Before it, all are whole blocks.
    whole: usize,
    /// Whether the head was there.
    is_begun: bool,
    /// Bytes before `rest`.
    offset: usize,
}

/// Some whole blocks.
#[derive(Debug)]
pub struct Run {
    bytes: Vec<u8>,
    /// Where in the stream it stands.
    offset: usize,
}

/// Reads runs one after the other, and keeps its memory.
#[derive(Default)]
pub struct RunReader {
    content: ContentReader,
}

/// What a block has of the time that is wanted: some samples of a series, or none, each later than the
/// one before or at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    key: &'a [u8],
    /// When, in milliseconds.
    pub millis: &'a [i64],
    /// As many numbers; the marker of a series' end may be among them.
    pub values: &'a [f64],
}

/// What takes blocks.
pub type OnBlock<'a, E> = dyn FnMut(Block<'_>) -> Result<(), E> + 'a;

/// What takes runs.
pub type OnRun<'a, E> = dyn FnMut(Run) -> Result<(), E> + 'a;

impl<'a> Block<'a> {
    /// The bytes that stand for its labels: equal for blocks of the same series.
    pub fn key(&self) -> &'a [u8] {
        self.key
    }
}

/// The labels that a block's key stands for. A series may have no name.
///
/// # Errors
/// Bytes that are no labels.
pub fn labels_of_key(key: &[u8]) -> Result<Labels, LabelError> {
    let mut labels = LabelsBuilder::new();
    match name_of(key) {
        Ok(name) => labels.push(METRIC_NAME, &name),
        Err(LabelError::MissingMetricName) => {}
        Err(error) => return Err(error),
    }
    push_tags(key, &mut labels)?;
    Ok(labels.finish())
}

impl Runs {
    /// Takes bytes as they come and hands on runs.
    ///
    /// # Errors
    /// Bytes that are no block, or what `sink` says.
    pub fn push<E: From<Error>>(&mut self, bytes: &[u8], sink: &mut OnRun<'_, E>) -> Result<(), E> {
        for step in bytes.chunks(RUN_SIZE) {
            self.rest.extend_from_slice(step);
            self.look()?;
            if RUN_SIZE <= self.whole {
                self.hand_on(sink)?;
            }
        }
        Ok(())
    }

    /// Hands on what is left, now that all has come.
    ///
    /// # Errors
    /// A stream that ends within a block, or before its head; what `sink` says.
    pub fn end<E: From<Error>>(mut self, sink: &mut OnRun<'_, E>) -> Result<(), E> {
        if !self.is_begun || self.whole < self.rest.len() {
            return Err(bad(self.offset + self.whole, "the rest of a block").into());
        }
        if 0 < self.whole { self.hand_on(sink) } else { Ok(()) }
    }

    /// Finds the blocks that are whole by now.
    fn look(&mut self) -> Result<(), Error> {
        if !self.is_begun {
            if self.rest.len() < HEAD_SIZE {
                return Ok(());
            }
            self.rest.drain(..HEAD_SIZE);
            (self.is_begun, self.offset) = (true, HEAD_SIZE);
        }
        let bad = |(at, expected)| bad(self.offset + at, expected);
        while let Some((_, _, end)) = block_at(&self.rest, self.whole).map_err(bad)? {
            self.whole = end;
        }
        Ok(())
    }

    fn hand_on<E: From<Error>>(&mut self, sink: &mut OnRun<'_, E>) -> Result<(), E> {
        let rest = self.rest.split_off(self.whole);
        let run = Run { bytes: std::mem::replace(&mut self.rest, rest), offset: self.offset };
        self.offset += std::mem::take(&mut self.whole);
        sink(run)
    }
}

impl RunReader {
    /// Hands on the blocks of a run, with what they have from a first to a last millisecond.
    ///
    /// # Errors
    /// Bytes that are no block, or what `sink` says.
    pub fn read<E: From<Error>>(
        &mut self,
        run: &Run,
        span: (i64, i64),
        sink: &mut OnBlock<'_, E>,
    ) -> Result<(), E> {
        let bad = |(at, expected)| bad(run.offset + at, expected);
        let mut at = 0;
        while let Some((key, content, end)) = block_at(&run.bytes, at).map_err(bad)? {
            let key = run.bytes.get(key).unwrap_or_default();
            let content = run.bytes.get(content).unwrap_or_default();
            self.content.read(content, span).map_err(|expected| bad((at, expected)))?;
            let ContentReader { millis, values, .. } = &self.content;
            sink(Block { key, millis, values })?;
            at = end;
        }
        Ok(())
    }
}

/// Places of the name and the content of a block, and where it ends.
type Places = (Range<usize>, Range<usize>, usize);

/// What should have stood at a place.
type Bad = (usize, &'static str);

/// The block at a place; none when it is not there yet.
fn block_at(bytes: &[u8], at: usize) -> Result<Option<Places>, Bad> {
    let Some(key) = piece(bytes, at)? else { return Ok(None) };
    let Some(content) = piece(bytes, key.end)? else { return Ok(None) };
    let end = content.end;
    Ok(Some((key, content, end)))
}

/// The piece whose size stands at a place; none when it is not there yet.
fn piece(bytes: &[u8], at: usize) -> Result<Option<Range<usize>>, Bad> {
    let Some(size) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else {
        return Ok(None);
    };
    let size = u32::from_be_bytes(*size) as usize;
    if PIECE_SIZE_MAX < size {
        return Err((at, "a piece of 1 MiB at most"));
    }
    let (start, end) = (at + 4, at + 4 + size);
    Ok((end <= bytes.len()).then_some(start..end))
}

fn bad(at: usize, expected: &'static str) -> Error {
    Error::malformed("native format", at, expected)
}

#[cfg(test)]
mod tests {
    use super::super::encode::{Heads, push_head, push_series};
    use super::*;
    use crate::remote_write::encode::MillisSample;

    /// Labels and samples of a block.
    type Read = (Labels, Vec<(i64, f64)>);

    fn read(pieces: &[&[u8]]) -> Result<Vec<Read>, Error> {
        read_span(pieces, (i64::MIN, i64::MAX))
    }

    fn read_span(pieces: &[&[u8]], span: (i64, i64)) -> Result<Vec<Read>, Error> {
        let (mut runs, mut found) = (Runs::default(), Vec::new());
        let mut reader = RunReader::default();
        let mut take = |run: Run| {
            reader.read(&run, span, &mut |block: Block<'_>| {
                let samples = block.millis.iter().copied().zip(block.values.iter().copied());
                let labels = labels_of_key(block.key())
                    .map_err(|_| Error::malformed("name", 0, "labels"))?;
                found.push((labels, samples.collect()));
                Ok::<(), Error>(())
            })
        };
        pieces.iter().try_for_each(|bytes| runs.push(bytes, &mut take))?;
        runs.end(&mut take)?;
        Ok(found)
    }

    fn stream(heads: Heads) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_head(&mut bytes, 0, 9);
        let sample = |millis: i64| MillisSample { millis, value: millis as f64 / 8.0 };
        for (name, count) in [("a", 1), ("b", 9_000), ("c", 300)] {
            let labels = Labels::from_pairs(&[("__name__", name), ("x", "y")]);
            let samples: Vec<MillisSample> =
                (0..count).map(|at| sample(at * at % 7 + at * 1000)).collect();
            push_series(&mut bytes, heads, &labels, &samples);
        }
        bytes
    }

    #[test]
    fn blocks_come_however_their_bytes_are_cut() {
        for heads in [Heads::Current, Heads::Older] {
            let bytes = stream(heads);
            let whole = read(&[&bytes]).unwrap();
            let counts: Vec<usize> = whole.iter().map(|(_, samples)| samples.len()).collect();
            assert_eq!(counts, [1, 8192, 808, 300]);
            assert_eq!(whole[3].1[299], (299_004, 37375.5));
            for size in [1, 7, 1000] {
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                assert_eq!(read(&pieces).unwrap(), whole);
            }
        }
    }

    #[test]
    fn only_what_is_wanted_is_read() {
        for heads in [Heads::Current, Heads::Older] {
            let bytes = stream(heads);
            let whole = read(&[&bytes]).unwrap();
            for span in [(0, 0), (100_000, 150_000), (8_191_000, 8_193_000), (5, 4), (i64::MAX, 0)]
            {
                let is_within = |(millis, _): &(i64, f64)| span.0 <= *millis && *millis <= span.1;
                let expected: Vec<Read> = whole
                    .iter()
                    .map(|(labels, samples)| {
                        (labels.clone(), samples.iter().copied().filter(is_within).collect())
                    })
                    .collect();
                assert_eq!(read_span(&[&bytes], span).unwrap(), expected, "{span:?}");
            }
        }
    }

    #[test]
    fn runs_are_no_larger_than_they_must_be() {
        let bytes: Vec<u8> = stream(Heads::Current);
        let many: Vec<u8> = [&bytes[..16], &bytes[16..].repeat(300)].concat();
        let (mut runs, mut sizes) = (Runs::default(), Vec::new());
        let mut take = |run: Run| {
            sizes.push(run.bytes.len());
            Ok::<(), Error>(())
        };
        runs.push(&many, &mut take).unwrap();
        runs.end(&mut take).unwrap();
        assert_eq!(sizes.iter().sum::<usize>(), many.len() - 16);
        assert!(1 < sizes.len() && sizes.iter().all(|size| *size < 3 * RUN_SIZE), "{sizes:?}");
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let bytes = stream(Heads::Current);
        assert!(read(&[]).is_err(), "no head");
        assert_eq!(read(&[&bytes[..16]]).unwrap(), []);
        for cut in [5, 17, 39, 41, bytes.len() - 1] {
            assert!(read(&[&bytes[..cut]]).is_err(), "cut at {cut}");
        }
        let mut long = bytes.clone();
        long[16] = 1;
        assert!(read(&[&long]).is_err(), "a piece of 16 MiB");
        // Whatever a byte is changed to, it is an answer or an error.
        let mut random = rng::Random::seeded(7);
        for _ in 0..2000 {
            let mut changed = bytes[..600].to_vec();
            let at = random.below(600) as usize;
            changed[at] = random.next() as u8;
            let _ = read(&[&changed]);
        }
    }
}
