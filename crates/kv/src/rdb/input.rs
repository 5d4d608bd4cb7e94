//! The bytes of a dump: numbers, sizes, strings.

use super::crc64::crc64;
use super::lzf;
use crate::commands::string::STRING_SIZE_MAX;
use std::io::Read;

/// Bytes that are taken on trust.
const STEP: usize = 64 << 10;

/// Why a dump cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Its bytes cannot be had.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// They are not those of a dump.
    #[error("corrupt at byte {offset}: {what}")]
    Corrupt {
        /// Where.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// They are those of a dump, but some of them are others than were written.
    #[error("corrupt at byte {offset}: the checksum does not hold")]
    Checksum {
        /// Behind it.
        offset: u64,
    },
    /// They say more than a value may be.
    #[error("at byte {offset} is a value of more than {size_max} bytes of memory")]
    TooLarge {
        /// Where.
        offset: u64,
        /// What may be.
        size_max: usize,
    },
}

/// Bytes of a dump, one after the other.
pub struct Input<'a> {
    source: &'a mut dyn Read,
    offset: u64,
    crc: u64,
    /// A byte that was looked at.
    ahead: Option<u8>,
    /// Bytes of memory that a value may take: few bytes may say many.
    size_max: usize,
}

/// A length, or how a string is written instead.
pub enum Length {
    Plain(u64),
    Coded(u8),
}

impl<'a> Input<'a> {
    /// Those of a source, with values of so many bytes of memory at most.
    pub fn new(source: &'a mut dyn Read, size_max: usize) -> Input<'a> {
        Input { source, offset: 0, crc: 0, ahead: None, size_max }
    }

    /// Refuses a value that takes more memory than it may.
    pub fn may_take(&self, size: usize) -> Result<(), Failure> {
        match size <= self.size_max {
            true => Ok(()),
            false => Err(Failure::TooLarge { offset: self.offset, size_max: self.size_max }),
        }
    }

    /// Whether a value takes no more than it may.
    pub fn has_room_for(&self, size: usize) -> bool {
        size <= self.size_max
    }

    /// How many were read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The checksum of those.
    pub fn crc(&self) -> u64 {
        self.crc
    }

    /// An error here.
    pub fn corrupt(&self, what: &'static str) -> Failure {
        Failure::Corrupt { offset: self.offset, what }
    }

    /// Whether nothing follows.
    pub fn is_at_end(&mut self) -> Result<bool, Failure> {
        if self.ahead.is_some() {
            return Ok(false);
        }
        let mut byte = [0];
        match self.source.read(&mut byte)? {
            0 => Ok(true),
            _ => {
                self.ahead = Some(byte[0]);
                Ok(false)
            }
        }
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<(), Failure> {
        let mut done = 0;
        if let (Some(byte), Some(first)) = (self.ahead, out.first_mut()) {
            *first = byte;
            (self.ahead, done) = (None, 1);
        }
        let offset = self.offset;
        self.source.read_exact(&mut out[done..]).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Failure::Corrupt { offset, what: "cut short" },
            _ => Failure::Io(error),
        })?;
        self.offset += out.len() as u64;
        self.crc = crc64(self.crc, out);
        Ok(())
    }

    /// So many bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let mut array = [0; N];
        self.fill(&mut array)?;
        Ok(array)
    }

    pub fn u8(&mut self) -> Result<u8, Failure> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u32(&mut self) -> Result<u32, Failure> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Failure> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn i64(&mut self) -> Result<i64, Failure> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// So many bytes, if they are no more than may be; memory is taken as they come.
    fn bytes(&mut self, size: u64, size_max: usize) -> Result<Vec<u8>, Failure> {
        let size = usize::try_from(size).ok().filter(|size| *size <= size_max);
        let size = size.ok_or_else(|| self.corrupt("a string beyond all limits"))?;
        let mut bytes = Vec::with_capacity(size.min(STEP));
        while bytes.len() < size {
            let start = bytes.len();
            let step = (size - start).min(STEP.max(start));
            bytes.resize(start + step, 0);
            self.fill(&mut bytes[start..])?;
        }
        Ok(bytes)
    }

    /// A length, or a coding.
    pub fn length_or_coding(&mut self) -> Result<Length, Failure> {
        let first = self.u8()?;
        let low = first & 0x3f;
        Ok(match first >> 6 {
            0 => Length::Plain(u64::from(low)),
            1 => Length::Plain(u64::from(low) << 8 | u64::from(self.u8()?)),
            2 if first == 0x80 => Length::Plain(u64::from(u32::from_be_bytes(self.array()?))),
            2 if first == 0x81 => Length::Plain(u64::from_be_bytes(self.array()?)),
            2 => return Err(self.corrupt("unknown length")),
            _ => Length::Coded(low),
        })
    }

    /// A length.
    pub fn length(&mut self) -> Result<u64, Failure> {
        match self.length_or_coding()? {
            Length::Plain(length) => Ok(length),
            Length::Coded(_) => Err(self.corrupt("a coding where a length should be")),
        }
    }

    /// Passes over bytes; memory is taken for some of them.
    pub fn skip(&mut self, mut size: u64) -> Result<(), Failure> {
        let mut piece = [0; 4096];
        while 0 < size {
            let step = size.min(piece.len() as u64);
            // No more than the piece has.
            self.fill(&mut piece[..step as usize])?;
            size -= step;
        }
        Ok(())
    }

    /// Passes over a string.
    pub fn skip_string(&mut self) -> Result<(), Failure> {
        match self.length_or_coding()? {
            Length::Plain(size) => self.skip(size),
            Length::Coded(0) => self.skip(1),
            Length::Coded(1) => self.skip(2),
            Length::Coded(2) => self.skip(4),
            Length::Coded(3) => {
                let packed_size = self.length()?;
                self.length()?;
                self.skip(packed_size)
            }
            Length::Coded(_) => Err(self.corrupt("unknown coding")),
        }
    }

    /// A string.
    pub fn string(&mut self) -> Result<Vec<u8>, Failure> {
        self.string_up_to(STRING_SIZE_MAX)
    }

    /// A string of no more than so many bytes.
    pub fn string_up_to(&mut self, size_max: usize) -> Result<Vec<u8>, Failure> {
        let digits = |int: i64| itoa::Buffer::new().format(int).as_bytes().to_vec();
        match self.length_or_coding()? {
            Length::Plain(size) => self.bytes(size, size_max),
            Length::Coded(0) => Ok(digits(i64::from(self.u8()? as i8))),
            Length::Coded(1) => Ok(digits(i64::from(i16::from_le_bytes(self.array()?)))),
            Length::Coded(2) => Ok(digits(i64::from(i32::from_le_bytes(self.array()?)))),
            Length::Coded(3) => {
                let packed_size = self.length()?;
                let size = self.length()?;
                let packed = self.bytes(packed_size, size_max)?;
                let size = usize::try_from(size).ok().filter(|size| *size <= size_max);
                let unpacked = size.and_then(|size| lzf::unpack(&packed, size));
                unpacked.ok_or_else(|| self.corrupt("not compressed as it says"))
            }
            Length::Coded(_) => Err(self.corrupt("unknown coding")),
        }
    }
}
