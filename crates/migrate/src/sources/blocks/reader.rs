//! A file of a block, read from its beginning to its end with jumps: pieces of it are in memory, small ones
//! where it is jumped about, larger ones the longer it is read on.

use anyhow::ensure;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the first piece behind a jump.
const PIECE_SIZE_MIN: u64 = 64 << 10;
/// Bytes of a piece.
const PIECE_SIZE_MAX: u64 = 4 << 20;

/// A file at a place.
pub trait At: Send {
    /// Its bytes.
    fn size(&self) -> u64;

    /// Some of them, which are within it.
    ///
    /// # Errors
    /// When they do not come, or fewer.
    fn read(&mut self, range: Range<u64>) -> anyhow::Result<Vec<u8>>;

    /// Bytes that will be asked for next: they may be fetched meanwhile.
    fn expect(&mut self, _range: Range<u64>) {}
}

/// The reader of a file.
pub struct Reader {
    file: Box<dyn At>,
    piece: Vec<u8>,
    /// Where the piece begins.
    start: u64,
    /// Where the next byte is read.
    at: u64,
    piece_size: u64,
    read: Arc<AtomicU64>,
    /// Why the last read failed, which an error of `Read` cannot say.
    failed: Option<anyhow::Error>,
}

impl Reader {
    /// At the beginning of a file; bytes that are fetched are counted.
    pub fn new(file: Box<dyn At>, read: Arc<AtomicU64>) -> Reader {
        let piece_size = PIECE_SIZE_MIN;
        Reader { file, piece: Vec::new(), start: 0, at: 0, piece_size, read, failed: None }
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.file.size()
    }

    /// Where the next byte is read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Goes to a byte.
    pub fn seek(&mut self, at: u64) {
        self.at = at;
    }

    fn end(&self) -> u64 {
        self.start + self.piece.len() as u64
    }

    /// Has a piece with the next byte, if there is one.
    fn fill(&mut self) -> anyhow::Result<()> {
        if (self.start..self.end()).contains(&self.at) || self.size() <= self.at {
            return Ok(());
        }
        let end = self.end();
        // Padding, and what nobody asks for, are read over.
        let is_on = !self.piece.is_empty() && (end..end + PIECE_SIZE_MIN).contains(&self.at);
        self.piece_size = match is_on {
            true => (self.piece_size * 2).min(PIECE_SIZE_MAX),
            false => PIECE_SIZE_MIN,
        };
        let size = self.size();
        let until = |start: u64, size_max: u64| start..(start + size_max).min(size);
        let range = until(if is_on { end } else { self.at }, self.piece_size);
        let wanted = range.end - range.start;
        let piece = self.file.read(range.clone())?;
        ensure!(piece.len() as u64 == wanted, "the file ends within what was asked for");
        self.read.fetch_add(wanted, Ordering::Relaxed);
        (self.piece, self.start) = (piece, range.start);
        if is_on && range.end < size {
            // As large as the next one will be.
            self.file.expect(until(range.end, (self.piece_size * 2).min(PIECE_SIZE_MAX)));
        }
        Ok(())
    }

    /// The next byte.
    ///
    /// # Errors
    /// When it does not come, or the file has ended.
    fn byte(&mut self) -> anyhow::Result<u8> {
        self.fill()?;
        let byte = self.piece.get((self.at.wrapping_sub(self.start)) as usize).copied();
        ensure!(byte.is_some(), "the file ends within it");
        self.at += 1;
        Ok(byte.unwrap_or_default())
    }

    /// A number of varying length, and its bytes.
    ///
    /// # Errors
    /// When it is longer than any, and as [`Reader::exact`].
    pub fn number(&mut self) -> anyhow::Result<(u64, u64)> {
        let mut value = 0u64;
        for at in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                return Ok((value, at + 1));
            }
        }
        anyhow::bail!("a number of more than ten bytes")
    }

    /// So many bytes in `out`, and no more memory than there are.
    ///
    /// # Errors
    /// When they do not come, or the file ends before.
    pub fn exact(&mut self, out: &mut Vec<u8>, size: u64) -> anyhow::Result<()> {
        out.clear();
        self.failed = None;
        let read = self.by_ref().take(size).read_to_end(out);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        ensure!(read? as u64 == size, "the file ends within it");
        Ok(())
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if let Err(error) = self.fill() {
            let words = std::io::Error::other(error.to_string());
            self.failed = Some(error);
            return Err(words);
        }
        let from = usize::try_from(self.at.wrapping_sub(self.start)).unwrap_or(usize::MAX);
        let rest = self.piece.get(from..).unwrap_or_default();
        let size = rest.len().min(out.len());
        out[..size].copy_from_slice(&rest[..size]);
        self.at += size as u64;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Bytes {
        all: Vec<u8>,
        asked: Arc<Mutex<Vec<Range<u64>>>>,
    }

    impl At for Bytes {
        fn size(&self) -> u64 {
            self.all.len() as u64
        }

        fn read(&mut self, range: Range<u64>) -> anyhow::Result<Vec<u8>> {
            self.asked.lock().unwrap().push(range.clone());
            Ok(self.all[range.start as usize..range.end as usize].to_vec())
        }
    }

    #[test]
    fn pieces_grow_while_it_is_read_on() {
        let all: Vec<u8> = (0..1_000_000u32).map(|at| (at % 251) as u8).collect();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let read = Arc::new(AtomicU64::new(0));
        let file = Bytes { all: all.clone(), asked: asked.clone() };
        let mut reader = Reader::new(Box::new(file), read.clone());
        let mut out = Vec::new();
        reader.exact(&mut out, 300_000).unwrap();
        assert_eq!((out.as_slice(), reader.at()), (&all[..300_000], 300_000));
        let k = 64 << 10;
        assert_eq!(*asked.lock().unwrap(), [0..k, k..3 * k, 3 * k..7 * k]);
        assert_eq!(read.load(Ordering::Relaxed), 7 * k);
        // Over a gap it is read on.
        reader.seek(7 * k + 100);
        reader.exact(&mut out, 10).unwrap();
        assert_eq!(out, all[7 * k as usize + 100..][..10]);
        assert_eq!(asked.lock().unwrap().last(), Some(&(7 * k..15 * k)));
        reader.seek(10);
        reader.exact(&mut out, 10).unwrap();
        assert_eq!(asked.lock().unwrap().last(), Some(&(10..10 + k)));
        reader.seek(999_990);
        reader.exact(&mut out, 10).unwrap();
        assert_eq!(out, all[999_990..]);
        assert!(reader.exact(&mut out, 1).is_err());
        reader.seek(5_000_000);
        assert!(reader.byte().is_err() && reader.number().is_err());
        reader.seek(0);
        assert_eq!(reader.number().unwrap(), (0, 1));
        reader.seek(200);
        assert!(reader.number().is_err(), "51 bytes that go on");
    }
}
