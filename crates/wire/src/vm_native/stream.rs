//! Blocks of a stream that comes in pieces, for a client that takes series: the counterpart of what
//! `/api/v1/export/native` sends.

use super::content::ContentReader;
use super::decode::{name_of, push_tags};
use super::{HEAD_SIZE, PIECE_SIZE_MAX};
use crate::Error;
use model::{LabelError, Labels, LabelsBuilder, METRIC_NAME};

/// Bytes that are taken in at a time: what is kept of a piece stays small.
const STEP: usize = 256 << 10;

/// Reads a stream.
#[derive(Default)]
pub struct BlockReader {
    /// What has come of a block that is not whole.
    rest: Vec<u8>,
    /// Whether the head was there.
    is_begun: bool,
    /// Bytes before `rest`.
    offset: usize,
    content: ContentReader,
}

/// A block: some samples of a series, each later than the one before or at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    key: &'a [u8],
    /// When, in milliseconds. A block is sent whole, so some may be outside of what was asked.
    pub millis: &'a [i64],
    /// As many numbers; the marker of a series' end may be among them.
    pub values: &'a [f64],
}

/// What takes blocks.
pub type OnBlock<'a, E> = dyn FnMut(Block<'_>) -> Result<(), E> + 'a;

impl<'a> Block<'a> {
    /// The bytes that stand for its labels: equal for blocks of the same series.
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// Whose samples they are. A series may have no name.
    ///
    /// # Errors
    /// Bytes that are no labels.
    pub fn labels(&self) -> Result<Labels, LabelError> {
        let mut labels = LabelsBuilder::new();
        match name_of(self.key) {
            Ok(name) => labels.push(METRIC_NAME, &name),
            Err(LabelError::MissingMetricName) => {}
            Err(error) => return Err(error),
        }
        push_tags(self.key, &mut labels)?;
        Ok(labels.finish())
    }
}

impl BlockReader {
    /// Takes bytes as they come and hands on the blocks that are whole.
    ///
    /// # Errors
    /// Bytes that are no block, or what `sink` says.
    pub fn push<E: From<Error>>(
        &mut self,
        bytes: &[u8],
        sink: &mut OnBlock<'_, E>,
    ) -> Result<(), E> {
        for step in bytes.chunks(STEP) {
            self.rest.extend_from_slice(step);
            self.hand_on(sink)?;
        }
        Ok(())
    }

    /// Says that all has come.
    ///
    /// # Errors
    /// A stream that ends within a block, or before its head.
    pub fn end(self) -> Result<(), Error> {
        match self.is_begun && self.rest.is_empty() {
            true => Ok(()),
            false => Err(self.bad(0, "the rest of a block")),
        }
    }

    fn hand_on<E: From<Error>>(&mut self, sink: &mut OnBlock<'_, E>) -> Result<(), E> {
        let mut at = 0;
        if !self.is_begun {
            if self.rest.len() < HEAD_SIZE {
                return Ok(());
            }
            (self.is_begun, at) = (true, HEAD_SIZE);
        }
        while let Some((key, after)) = self.piece(at)? {
            let Some((content, end)) = self.piece(after)? else { break };
            let read = self.content.read(&self.rest[content]);
            read.map_err(|reason| self.bad(at, reason))?;
            let ContentReader { millis, values, .. } = &self.content;
            sink(Block { key: &self.rest[key], millis, values })?;
            at = end;
        }
        self.rest.drain(..at);
        self.offset += at;
        Ok(())
    }

    /// The piece whose size stands at a place, and where it ends; none when it is not there yet.
    fn piece(&self, at: usize) -> Result<Option<(std::ops::Range<usize>, usize)>, Error> {
        let Some(size) = self.rest.get(at..).and_then(|rest| rest.first_chunk::<4>()) else {
            return Ok(None);
        };
        let size = u32::from_be_bytes(*size) as usize;
        if PIECE_SIZE_MAX < size {
            return Err(self.bad(at, "a piece of 1 MiB at most"));
        }
        let (start, end) = (at + 4, at + 4 + size);
        Ok((end <= self.rest.len()).then_some((start..end, end)))
    }

    fn bad(&self, at: usize, expected: &'static str) -> Error {
        Error::malformed("native format", self.offset + at, expected)
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::{Heads, push_head, push_series};
    use super::*;
    use crate::remote_write::encode::MillisSample;

    /// Labels and samples of a block.
    type Read = (Labels, Vec<(i64, f64)>);

    fn read(pieces: &[&[u8]]) -> Result<Vec<Read>, Error> {
        let (mut reader, mut found) = (BlockReader::default(), Vec::new());
        for bytes in pieces {
            reader.push(bytes, &mut |block: Block<'_>| {
                let samples = block.millis.iter().copied().zip(block.values.iter().copied());
                let labels = block.labels().map_err(|_| Error::malformed("name", 0, "labels"))?;
                found.push((labels, samples.collect()));
                Ok::<(), Error>(())
            })?;
        }
        reader.end()?;
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
        let mut random = random::Random::seeded(7);
        for _ in 0..2000 {
            let mut changed = bytes[..600].to_vec();
            let at = random.below(600) as usize;
            changed[at] = random.next() as u8;
            let _ = read(&[&changed]);
        }
    }
}
