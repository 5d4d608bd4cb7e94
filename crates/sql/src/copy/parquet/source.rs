//! Where a Parquet file's bytes are: in memory, or in a file that is read here and there.

use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::{Buf as _, Bytes};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// Bytes of a file.
#[derive(Clone, Debug)]
pub enum Source {
    /// In memory.
    Memory(Bytes),
    /// In a file of so many bytes when it was opened.
    File(Arc<File>, u64),
}

impl Source {
    /// Of an open file.
    ///
    /// # Errors
    /// When its size cannot be told.
    pub fn of_file(file: File) -> io::Result<Source> {
        let size = file.metadata()?.len();
        Ok(Source::File(Arc::new(file), size))
    }

    /// How many there are.
    pub fn size(&self) -> u64 {
        match self {
            Source::Memory(bytes) => bytes.len() as u64,
            Source::File(_, size) => *size,
        }
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.size()
    }
}

impl ChunkReader for Source {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Box<dyn Read>> {
        match self {
            Source::Memory(bytes) => {
                let start = usize::try_from(start)?;
                let rest = bytes.get(start..).ok_or_else(|| past_end(start as u64, 0))?;
                Ok(Box::new(bytes.slice_ref(rest).reader()))
            }
            Source::File(file, _) => {
                Ok(Box::new(BufReader::new(From { file: file.clone(), at: start })))
            }
        }
    }

    /// What a file says of its own sizes may be a lie: no memory is taken for more than there is.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.size());
        let end = end.ok_or_else(|| past_end(start, length))?;
        match self {
            Source::Memory(bytes) => {
                let range = usize::try_from(start)?..usize::try_from(end)?;
                Ok(bytes.slice(range))
            }
            Source::File(file, _) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, start)?;
                Ok(bytes.into())
            }
        }
    }
}

fn past_end(start: u64, length: usize) -> ParquetError {
    ParquetError::EOF(format!("{length} bytes at {start} are past the end of the file"))
}

/// A file from one place on. It moves no common place, so that columns may be read in turns.
struct From {
    file: Arc<File>,
    at: u64,
}

impl Read for From {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
