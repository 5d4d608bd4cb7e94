//! The content of a block to times and numbers.

use super::BLOCK_ROWS_MAX;
use super::columns::{self, Told, Unpacker, unzigzag};
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
    /// Milliseconds of what was read of the block, rising.
    pub millis: Vec<i64>,
    numbers: Vec<i64>,
    /// As many numbers.
    pub values: Vec<f64>,
}

/// First and last milliseconds that are wanted.
pub(super) type Span = (i64, i64);

/// All that a block has.
pub(super) const EVER: Span = (i64::MIN, i64::MAX);

/// What a block says first.
struct Head<'a> {
    first_ms: i64,
    last_ms: Option<i64>,
    first: i64,
    count: usize,
    scale: i16,
    kinds: (u64, u64),
    times: &'a [u8],
    numbers: &'a [u8],
}

impl ContentReader {
    /// Reads what a block has of a time. The head of blocks that VictoriaMetrics wrote before 1.82 is
    /// tried where that of later ones makes no sense: each says things that the other contradicts.
    ///
    /// # Errors
    /// What should have stood there.
    pub fn read(&mut self, content: &[u8], span: Span) -> Result<(), &'static str> {
        match self.read_as(content, Heads::Current, span) {
            Ok(()) => Ok(()),
            Err(reason) => self.read_as(content, Heads::Older, span).map_err(|_| reason),
        }
    }

    fn read_as(&mut self, content: &[u8], heads: Heads, span: Span) -> Result<(), &'static str> {
        let head = Head::read(content, heads)?;
        let Head { first_ms: first, count, .. } = head;
        let Self { unpacker, millis, numbers: whole, values } = self;
        columns::decode(
            head.kinds.0,
            head.times,
            Told { first, count },
            0..count,
            unpacker,
            millis,
        )?;
        let is_last = head.last_ms.is_none_or(|last| millis.last() == Some(&last));
        if !millis.is_sorted() || !is_last {
            return Err("times that rise to the last that it tells");
        }
        let places = millis.partition_point(|one| *one < span.0)
            ..millis.partition_point(|one| *one <= span.1);
        let places = if places.is_empty() { 0..0 } else { places };
        millis.truncate(places.end);
        millis.drain(..places.start);
        let told = Told { first: head.first, count };
        columns::decode(head.kinds.1, head.numbers, told, places, unpacker, whole)?;
        Scale::new(i32::from(head.scale)).meanings(whole, values);
        debug_assert_eq!(millis.len(), values.len());
        Ok(())
    }
}

impl<'a> Head<'a> {
    fn read(content: &'a [u8], heads: Heads) -> Result<Head<'a>, &'static str> {
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
        let kinds = (number()?, number()?);
        if heads == Heads::Current && !(1..=64).contains(&number()?) {
            return Err("1 to 64 bits of values");
        }
        let mut column = || message.sized().map_err(|_| "two columns");
        let (times, numbers) = (column()?, column()?);
        if !message.is_done() {
            return Err("nothing behind its columns");
        }
        Ok(Head { first_ms, last_ms, first, count, scale, kinds, times, numbers })
    }
}
