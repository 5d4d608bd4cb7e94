//! The content of a block to times and numbers.

use super::BLOCK_ROWS_MAX;
use super::columns::{self, Unpacker, unzigzag};
use super::decimal::Scale;
use super::encode::Heads;
use crate::protobuf::Message;

/// Rows of a block that are read: VictoriaMetrics reads twice as many as it writes.
pub(super) const ROWS_MAX: usize = 2 * BLOCK_ROWS_MAX;

const _: () = assert!(ROWS_MAX == 16_384);

/// Reads one block after the other, and keeps its memory.
#[derive(Default)]
pub(super) struct ContentReader {
    unpacker: Unpacker,
    /// Milliseconds of the block that was read, rising.
    pub millis: Vec<i64>,
    numbers: Vec<i64>,
    /// As many numbers.
    pub values: Vec<f64>,
}

impl ContentReader {
    /// Reads a block. The head of blocks that VictoriaMetrics wrote before 1.82 is tried where that
    /// of later ones makes no sense: each says things that the other contradicts.
    ///
    /// # Errors
    /// What should have stood there.
    pub fn read(&mut self, content: &[u8]) -> Result<(), &'static str> {
        match self.read_as(content, Heads::Current) {
            Ok(()) => Ok(()),
            Err(reason) => self.read_as(content, Heads::Older).map_err(|_| reason),
        }
    }

    fn read_as(&mut self, content: &[u8], heads: Heads) -> Result<(), &'static str> {
        let mut message = Message::new(content);
        let mut number = || message.varint().map_err(|_| "a head");
        let first_ms = unzigzag(number()?);
        let last_ms = if heads == Heads::Current { Some(unzigzag(number()?)) } else { None };
        let first = unzigzag(number()?);
        let count = usize::try_from(number()?).ok();
        let count =
            count.filter(|count| (1..=ROWS_MAX).contains(count)).ok_or("1 to 16384 rows")?;
        let scale = i16::try_from(unzigzag(number()?)).map_err(|_| "a power of ten")?;
        // Bytes, which have no eighth bit.
        let (times_kind, numbers_kind) = (number()?, number()?);
        if heads == Heads::Current && !(1..=64).contains(&number()?) {
            return Err("1 to 64 bits of values");
        }
        let mut column = || message.sized().map_err(|_| "two columns");
        let (times, numbers) = (column()?, column()?);
        if !message.is_done() {
            return Err("nothing behind its columns");
        }
        columns::decode(
            times_kind,
            times,
            (first_ms, count),
            &mut self.unpacker,
            &mut self.millis,
        )?;
        let is_last = last_ms.is_none_or(|last| self.millis.last() == Some(&last));
        if !self.millis.is_sorted() || !is_last {
            return Err("times that rise to the last that it tells");
        }
        let Self { unpacker, numbers: whole, values, .. } = self;
        columns::decode(numbers_kind, numbers, (first, count), unpacker, whole)?;
        Scale::new(i32::from(scale)).meanings(whole, values);
        Ok(())
    }
}
