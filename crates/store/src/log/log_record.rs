//! What the store writes to the log, described byte for byte in `docs/format/wal.md`.
//!
//! ```text
//! rows      = varint partition code (zigzag)  varint size  registrations  unit u8  row*
//! row       = varint (zigzag(entity - entity before) << 1 | single)  [column varint]
//!             varint zigzag((timestamp - timestamp before) / unit)  value*
//! value     = varint zigzag(integer) << 1  |  0x01 bits u64
//! metadata  = { kind u8, varint size metric, varint size help, varint size unit }*
//! ```
//!
//! A row has as many values as its entity's block has columns, a single has one.

use crate::base::narrow::whole;
use codec::{Reader, put_i64_zigzag, put_u64, put_varint, unzigzag, zigzag};
use model::{Metadata, MetricKind, Timestamp};

use crate::base::period::{PartitionLength, Period};

/// The store's kinds: rows of one partition with the registrations they need, descriptions of
/// metrics, and exemplars, which [`crate::log::exemplar_record`] encodes.
pub use wal::kinds::{KIND_EXEMPLARS, KIND_METADATA, KIND_ROWS};

/// Units timestamps are scaled by: nanosecond, microsecond, millisecond, second.
const UNITS_NS: [i64; 4] = [1, 1_000, 1_000_000, 1_000_000_000];
/// The place of the largest.
const UNIT_MAX: u8 = 3;
const _: () = assert!(UNIT_MAX as usize + 1 == UNITS_NS.len());
/// Integers up to here are exact in a float64 and short as a varint.
const INTEGER_MAX: f64 = 4_503_599_627_370_496.0;
/// Lengths of strings in metadata; longer ones do not reach the log.
const TEXT_SIZE_MAX: usize = 1 << 20;
/// The most bytes of the description of a metric.
pub const METADATA_SIZE_MAX: usize = 1 + 3 * (10 + TEXT_SIZE_MAX);

/// The most bytes that a record has besides its registrations and rows.
pub const RECORD_HEAD_SIZE_MAX: usize = 24;
/// The most bytes of a value that stands alone: entity, column, time and value.
const SINGLE_SIZE_MAX: usize = 5 + 3 + 10 + 9;

/// The most bytes that rows of so many values take, whether each row is one or in pieces: a row of
/// n values, 5 + 10 + 9 n, is never more than n singles.
#[inline]
pub const fn rows_size_max(values: usize) -> usize {
    values * SINGLE_SIZE_MAX
}

/// Encodes the rows of one record, in two buffers so that registrations can come first.
#[derive(Default)]
pub struct RowsEncoder {
    /// Registrations, written by the index.
    pub registrations: Vec<u8>,
    rows: Vec<u8>,
    unit_idx: u8,
    entity: i64,
    timestamp: Timestamp,
}

impl RowsEncoder {
    /// Starts a record whose timestamps are multiples of the unit of [`unit_of`].
    pub fn start(&mut self, unit_idx: u8) {
        assert!(unit_idx <= UNIT_MAX, "a unit of the table");
        self.registrations.clear();
        self.rows.clear();
        self.unit_idx = unit_idx;
        self.entity = 0;
        self.timestamp = 0;
    }

    /// Whether nothing is in the record.
    pub fn is_empty(&self) -> bool {
        self.registrations.is_empty() && self.rows.is_empty()
    }

    /// Adds a row of all columns of an entity.
    #[inline]
    pub fn row(&mut self, entity: u32, timestamp: Timestamp, values: &[f64]) {
        let delta = zigzag(i64::from(entity) - self.entity) << 1;
        self.row_head(delta, entity);
        self.row_time(timestamp);
        for value in values {
            put_value(&mut self.rows, *value);
        }
    }

    /// Adds a value of one column of an entity.
    pub fn single(&mut self, entity: u32, column: u16, timestamp: Timestamp, value: f64) {
        let delta = zigzag(i64::from(entity) - self.entity) << 1 | 1;
        self.row_head(delta, entity);
        put_varint(&mut self.rows, u64::from(column));
        self.row_time(timestamp);
        put_value(&mut self.rows, value);
    }

    /// Head, registrations and rows of the record, to be logged as one.
    pub fn finish(&mut self, period: Period, head: &mut Vec<u8>) -> [&[u8]; 2] {
        head.clear();
        put_i64_zigzag(head, period.code());
        put_varint(head, self.registrations.len() as u64);
        head.extend_from_slice(&self.registrations);
        head.push(self.unit_idx);
        assert!(head.len() - self.registrations.len() <= RECORD_HEAD_SIZE_MAX, "room was reserved");
        [&[], &self.rows]
    }

    #[inline]
    fn row_head(&mut self, code: u64, entity: u32) {
        self.entity = i64::from(entity);
        put_varint(&mut self.rows, code);
    }

    #[inline]
    fn row_time(&mut self, timestamp: Timestamp) {
        let unit = UNITS_NS[usize::from(self.unit_idx)];
        let delta = timestamp.wrapping_sub(self.timestamp);
        // A difference that wrapped is no multiple of the unit; only nanoseconds can wrap back.
        let scaled = if delta == 0 { 0 } else { delta / unit };
        debug_assert!(scaled.wrapping_mul(unit) == delta);
        put_varint(&mut self.rows, zigzag(scaled));
        self.timestamp = timestamp;
    }
}

/// The index of the largest unit that divides every timestamp, and whose deltas cannot wrap.
pub fn unit_of(timestamps: impl Iterator<Item = Timestamp>) -> u8 {
    let mut idx = UNIT_MAX;
    for timestamp in timestamps {
        if i64::MAX.unsigned_abs() / 4 < timestamp.unsigned_abs() {
            return 0;
        }
        while timestamp % UNITS_NS[usize::from(idx)] != 0 {
            idx -= 1;
        }
        if idx == 0 {
            break;
        }
    }
    idx
}

#[inline]
fn put_value(out: &mut Vec<u8>, value: f64) {
    let integer = whole(value);
    if (integer as f64).to_bits() == value.to_bits() && value.abs() <= INTEGER_MAX {
        put_varint(out, zigzag(integer) << 1);
    } else {
        out.push(1);
        put_u64(out, value.to_bits());
    }
}

/// A rows record split into its pieces; the rows are decoded by [`RowsDecoder`].
pub struct RowsRecord<'a> {
    /// The partition.
    pub period: Period,
    /// For the index.
    pub registrations: &'a [u8],
    /// Index into the units.
    unit_idx: u8,
    rows: &'a [u8],
}

impl<'a> RowsRecord<'a> {
    /// Splits a payload of kind [`KIND_ROWS`]. `None` for a record without rows of the period behind
    /// the last one, which earlier versions logged: it holds nothing.
    pub fn parse(payload: &'a [u8]) -> Result<Option<RowsRecord<'a>>, codec::Error> {
        let mut reader = Reader::new(payload);
        let code = reader.i64_zigzag()?;
        let period = Period::from_code(code);
        if period.is_none() && !PartitionLength::is_code_behind_time(code) {
            return Err(reader.corrupt("no code of a partition"));
        }
        let size = reader.varint_size(payload.len())?;
        let registrations = reader.slice(size)?;
        let unit_idx = reader.u8()?;
        if UNITS_NS.len() <= usize::from(unit_idx) {
            return Err(reader.corrupt("unknown time unit"));
        }
        let rows = &payload[reader.offset()..];
        match period {
            Some(period) => Ok(Some(RowsRecord { period, registrations, unit_idx, rows })),
            None if rows.is_empty() => Ok(None),
            None => Err(reader.corrupt("rows of a partition behind the end of time")),
        }
    }

    /// A decoder of the rows; the registrations must be replayed first.
    pub fn rows(&self) -> RowsDecoder<'a> {
        RowsDecoder {
            reader: Reader::new(self.rows),
            unit: UNITS_NS[usize::from(self.unit_idx)],
            entity: 0,
            timestamp: 0,
        }
    }
}

/// Decodes rows one by one.
pub struct RowsDecoder<'a> {
    reader: Reader<'a>,
    unit: i64,
    entity: i64,
    timestamp: Timestamp,
}

/// The start of a row: whose it is, and which column if it is a single.
pub struct RowHead {
    /// The entity.
    pub entity: u32,
    /// The column, when the row is a single.
    pub column: Option<u32>,
}

impl RowsDecoder<'_> {
    /// The next row's head, `None` at the end. [`RowsDecoder::values`] must follow.
    pub fn head(&mut self) -> Result<Option<RowHead>, codec::Error> {
        if self.reader.is_empty() {
            return Ok(None);
        }
        let code = self.reader.varint()?;
        let entity = self.entity.checked_add(unzigzag(code >> 1));
        let entity = entity.and_then(|entity| u32::try_from(entity).ok());
        let entity = entity.ok_or_else(|| self.reader.corrupt("entity out of range"))?;
        self.entity = i64::from(entity);
        let column = if code & 1 == 1 { Some(self.reader.varint_u32()?) } else { None };
        Ok(Some(RowHead { entity, column }))
    }

    /// The row's time, and its `count` values, which replace what `values` holds.
    pub fn values(
        &mut self,
        count: usize,
        values: &mut Vec<f64>,
    ) -> Result<Timestamp, codec::Error> {
        let delta = self.reader.i64_zigzag()?.wrapping_mul(self.unit);
        self.timestamp = self.timestamp.wrapping_add(delta);
        values.clear();
        for _ in 0..count {
            let code = self.reader.varint()?;
            values.push(match code & 1 {
                0 => unzigzag(code >> 1) as f64,
                _ => f64::from_bits(self.reader.u64()?),
            });
        }
        Ok(self.timestamp)
    }
}

/// Encodes descriptions of metrics as one record.
pub fn encode_metadata<'a>(metadata: impl IntoIterator<Item = &'a Metadata>) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in metadata {
        out.push(kind_code(entry.kind));
        for text in [&entry.metric, &entry.help, &entry.unit] {
            let text = &text.as_bytes()[..text.floor_char_boundary(TEXT_SIZE_MAX)];
            put_varint(&mut out, text.len() as u64);
            out.extend_from_slice(text);
        }
    }
    out
}

/// Decodes what [`encode_metadata`] wrote.
pub fn decode_metadata(payload: &[u8]) -> Result<Vec<Metadata>, codec::Error> {
    let mut reader = Reader::new(payload);
    let mut metadata = Vec::new();
    while !reader.is_empty() {
        let kind = KINDS.get(usize::from(reader.u8()?)).copied();
        let kind = kind.ok_or_else(|| reader.corrupt("unknown metric kind"))?;
        let mut text = || -> Result<String, codec::Error> {
            let size = reader.varint_size(TEXT_SIZE_MAX)?;
            let bytes = reader.slice(size)?;
            String::from_utf8(bytes.to_vec()).map_err(|_| reader.corrupt("invalid UTF-8"))
        };
        metadata.push(Metadata { kind, metric: text()?, help: text()?, unit: text()? });
    }
    Ok(metadata)
}

/// The kinds by their code on disk.
const KINDS: [MetricKind; 8] = [
    MetricKind::Unknown,
    MetricKind::Counter,
    MetricKind::Gauge,
    MetricKind::Histogram,
    MetricKind::GaugeHistogram,
    MetricKind::Summary,
    MetricKind::Info,
    MetricKind::StateSet,
];

fn kind_code(kind: MetricKind) -> u8 {
    let code = KINDS.iter().zip(0..).find(|(known, _)| **known == kind);
    code.expect("every kind has a code").1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(number: i64) -> Period {
        PartitionLength::Month.period(number).unwrap()
    }

    #[test]
    fn rows_come_back() {
        let values = [0.0, -0.0, 58.0, -1.5, f64::NAN, 9e15, 1e300, f64::INFINITY];
        let values = [&values[..], &[model::stale_marker(), 4e15, -4e15]].concat();
        for times in [[0i64, 5, -5], [i64::MIN, i64::MAX, 7], [1_000_000_000, 0, 3_000_000_000]] {
            let mut encoder = RowsEncoder::default();
            encoder.start(unit_of(times.iter().copied()));
            encoder.registrations.extend_from_slice(b"new");
            encoder.row(7, times[0], &values);
            encoder.single(1 << 31, 3, times[1], 4.25);
            encoder.row(0, times[2], &values);
            let mut head = Vec::new();
            let pieces = encoder.finish(period(-20), &mut head);
            let payload = [&head, pieces[0], pieces[1]].concat();

            let record = RowsRecord::parse(&payload).unwrap().unwrap();
            assert_eq!((record.period, record.registrations), (period(-20), &b"new"[..]));
            let mut rows = record.rows();
            let mut out = Vec::new();
            for (entity, column, timestamp) in
                [(7, None, times[0]), (1 << 31, Some(3), times[1]), (0, None, times[2])]
            {
                let head = rows.head().unwrap().unwrap();
                assert_eq!((head.entity, head.column), (entity, column));
                let count = if column.is_some() { 1 } else { values.len() };
                assert_eq!(rows.values(count, &mut out).unwrap(), timestamp);
                let expected = if column.is_some() { &[4.25][..] } else { &values };
                assert!(out.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
            assert!(rows.head().unwrap().is_none());
            for cut in 0..payload.len() {
                decode_all(&payload[..cut]);
            }
        }
    }

    /// Floats and timestamps where encodings change: signed zeros, powers of two and their
    /// neighbours, the ends of `i64`, infinities, NaNs.
    #[test]
    fn extreme_rows_come_back() {
        let powers = (0..64).flat_map(|p| [-1.0, 0.0, 1.0].map(|by| 2f64.powi(p) + by));
        let mut values: Vec<f64> = powers.collect();
        values.extend([0.0, f64::MIN_POSITIVE, 5e-324, 0.1, 1e300, f64::INFINITY, f64::NAN]);
        values.extend([model::stale_marker(), f64::from_bits(u64::MAX)]);
        values.extend(values.clone().iter().map(|value| -value));
        let times = (0..63).flat_map(|p| [-1i64, 0, 1].map(|by| (1i64 << p).wrapping_add(by)));
        let mut times: Vec<i64> = times.collect();
        times.extend(times.clone().iter().map(|time| time.wrapping_neg()));
        times.extend([i64::MIN, i64::MIN + 1, i64::MAX]);
        for pair in times.windows(2) {
            let mut encoder = RowsEncoder::default();
            encoder.start(unit_of(pair.iter().copied()));
            pair.iter().for_each(|time| encoder.row(9, *time, &values));
            let mut head = Vec::new();
            let pieces = encoder.finish(period(600), &mut head);
            let payload = [&head, pieces[0], pieces[1]].concat();
            let record = RowsRecord::parse(&payload).unwrap().unwrap();
            let (mut rows, mut back) = (record.rows(), Vec::new());
            for time in pair {
                assert_eq!(rows.head().unwrap().unwrap().entity, 9);
                assert_eq!(rows.values(values.len(), &mut back).unwrap(), *time);
                assert!(back.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
            assert!(rows.head().unwrap().is_none());
        }
    }

    #[test]
    fn registrations_behind_the_end_of_time_hold_nothing() {
        for length in PartitionLength::ALL {
            let last = length.of(i64::MAX).code();
            let payload = |code: i64, rows: &[u8]| {
                let mut payload = Vec::new();
                put_i64_zigzag(&mut payload, code);
                payload.extend_from_slice(b"\x03new\x00");
                payload.extend_from_slice(rows);
                payload
            };
            assert!(matches!(RowsRecord::parse(&payload(last, b"")), Ok(Some(_))));
            assert!(matches!(RowsRecord::parse(&payload(last + 1, b"")), Ok(None)));
            assert!(RowsRecord::parse(&payload(last + 1, b"\x00\x00\x00")).is_err());
            assert!(RowsRecord::parse(&payload(last + 2, b"")).is_err());
        }
    }

    fn decode_all(payload: &[u8]) {
        let Ok(Some(record)) = RowsRecord::parse(payload) else { return };
        let (mut rows, mut values) = (record.rows(), Vec::new());
        while let Ok(Some(_)) = rows.head() {
            if rows.values(1, &mut values).is_err() {
                return;
            }
        }
    }

    #[test]
    fn no_record_is_larger_than_its_bound() {
        let worst = [i64::MAX, i64::MIN, i64::MAX];
        for value in [f64::NAN, -INTEGER_MAX, 1e300] {
            for count in [1, 2, 50] {
                let mut encoder = RowsEncoder::default();
                encoder.start(unit_of(worst.iter().copied()));
                for (entity, time) in [u32::MAX, 0, u32::MAX].into_iter().zip(worst) {
                    encoder.row(entity, time, &vec![value; count]);
                    for column in 0..count {
                        encoder.single(!entity, u16::MAX - column as u16, !time, value);
                    }
                }
                let mut head = Vec::new();
                // The largest code there is.
                let day = PartitionLength::Day.of(i64::MAX);
                let pieces = encoder.finish(day, &mut head);
                assert!(head.len() <= RECORD_HEAD_SIZE_MAX);
                assert!(pieces[0].len() + pieces[1].len() <= rows_size_max(6 * count));
            }
        }
    }

    #[test]
    fn metadata_comes_back() {
        let metadata = KINDS.map(|kind| Metadata {
            metric: format!("m_{}", kind.as_str()),
            kind,
            help: "what it is".into(),
            unit: String::new(),
        });
        let bytes = encode_metadata(&metadata);
        assert_eq!(decode_metadata(&bytes).unwrap(), metadata);
        assert!(decode_metadata(&bytes[..bytes.len() - 1]).is_err());
        assert!(decode_metadata(&[9]).is_err());
    }
}
