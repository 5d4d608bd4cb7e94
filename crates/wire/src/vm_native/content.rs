//! The content of a block to times and numbers.

use super::BLOCK_ROWS_MAX;
use super::columns::{self, Told, Unpacker, unzigzag};
use super::decimal::Scale;
use super::encode::Heads;
use crate::protobuf::Message;
use std::ops::Range;

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
        let places = self.read_times(&head, span)?;
        let Self { unpacker, millis, numbers: whole, values } = self;
        let count = head.count;
        let told = Told { first: head.first, count };
        columns::decode(head.kinds.1, head.numbers, told, places, unpacker, whole)?;
        Scale::new(i32::from(head.scale)).meanings(whole, values);
        debug_assert_eq!(millis.len(), values.len());
        Ok(())
    }

    /// Reads the times that are wanted; returns their places.
    fn read_times(&mut self, head: &Head<'_>, span: Span) -> Result<Range<usize>, &'static str> {
        let Self { unpacker, millis, .. } = self;
        let (kind, bytes) = (head.kinds.0, head.times);
        let told = Told { first: head.first_ms, count: head.count };
        let is_last = |last: i64| head.last_ms.is_none_or(|told| told == last);
        if let Some(line) = columns::rising_line(kind, bytes, told) {
            if !is_last(line.at(head.count - 1)) {
                return Err(RISING);
            }
            let places = line.places(span);
            millis.clear();
            millis.extend(places.clone().map(|place| line.at(place)));
            return Ok(places);
        }
        columns::decode(kind, bytes, told, 0..told.count, unpacker, millis)?;
        if !millis.is_sorted() || !millis.last().is_some_and(|last| is_last(*last)) {
            return Err(RISING);
        }
        let places = millis.partition_point(|one| *one < span.0)
            ..millis.partition_point(|one| *one <= span.1);
        let places = if places.is_empty() { 0..0 } else { places };
        millis.truncate(places.end);
        millis.drain(..places.start);
        Ok(places)
    }
}

const RISING: &str = "times that rise to the last that it tells";

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
