//! Native histograms of both versions: protobuf to rows.
//!
//! ```text
//! Histogram  { count_int = 1 | count_float = 2, sum = 3, schema = 4, zero_threshold = 5,
//!              zero_count_int = 6 | zero_count_float = 7,
//!              negative: spans = 8, deltas = 9 | counts = 10, positive: spans = 11, deltas = 12 | counts = 13,
//!              reset_hint = 14, timestamp = 15, custom_values = 16, start_timestamp = 17 }
//! BucketSpan { offset = 1, length = 2 }
//! ```
//!
//! Which of count's two fields is there says whether buckets are deltas of integers or floats.
//! A bad histogram is refused alone: one that contradicts itself here, one that makes no sense by
//! [`Histogram::validate`]. Schemas finer than ours are made coarser, as Prometheus does.

use super::Series;
use crate::decoded::Growing;
use crate::narrow::low_half;
use crate::number;
use crate::protobuf::{Message, Value};
use crate::{Error, Limit};
use histogram::{Bucket, Histogram, HistogramRow, ResetHint};
use std::borrow::Cow;

/// Buckets of one histogram, both sides together; as many bounds may be given one by one.
/// Histograms in use have some hundred.
pub const BUCKETS_MAX: usize = model::limits::HISTOGRAM_BUCKETS_MAX;
/// Histograms of one request: without it two bytes for each would fill gigabytes.
pub const HISTOGRAMS_MAX: usize = 256 << 10;
/// Buckets of all histograms of one request: 64 MiB.
pub const REQUEST_BUCKETS_MAX: usize = 4 << 20;

/// The histograms of a request while it is read.
#[derive(Default)]
pub(crate) struct GrownHistograms {
    pub rows: Vec<HistogramRow>,
    /// In all rows.
    bucket_count: usize,
    /// Reused for each histogram.
    parts: Parts,
}

/// A histogram's message, taken apart.
#[derive(Default)]
struct Parts {
    count: Count,
    zero_count: Count,
    sum: f64,
    schema: i64,
    zero_threshold: f64,
    negative: SideParts,
    positive: SideParts,
    reset_hint: ResetHint,
    millis: i64,
    /// 0 for none.
    start_ms: i64,
    custom_bounds: Vec<f64>,
}

/// The two forms of a count.
#[derive(Clone, Copy)]
enum Count {
    Whole(u64),
    Float(f64),
}

impl Default for Count {
    fn default() -> Count {
        Count::Whole(0)
    }
}

impl Count {
    fn to_float(self) -> f64 {
        match self {
            Count::Whole(whole) => whole as f64,
            Count::Float(float) => float,
        }
    }

    fn whole(self) -> u64 {
        match self {
            Count::Whole(whole) => whole,
            Count::Float(_) => 0,
        }
    }

    fn is_exact(self) -> bool {
        number::is_exact_integer(self.whole())
    }
}

/// Buckets of one sign.
#[derive(Default)]
struct SideParts {
    spans: Vec<Span>,
    deltas: Vec<i64>,
    counts: Vec<f64>,
    /// Spans or buckets were left out, as there are too many.
    is_cut: bool,
}

/// Buckets in a row.
#[derive(Clone, Copy, Default)]
struct Span {
    /// Indexes between it and the span before; of the first, its index.
    offset: i64,
    length: u64,
}

/// Why one histogram is refused.
type Refusal = Cow<'static, str>;

/// Reads a histogram of the series into a row, or tells why it is refused; returns its start
/// timestamp, or 0.
#[cold]
pub(super) fn push_histogram(
    grown: &mut Growing,
    series: &Series,
    bytes: &[u8],
) -> Result<i64, Error> {
    let histograms = &mut grown.histograms;
    if HISTOGRAMS_MAX <= histograms.rows.len() {
        return Err(exceeded(Limit::Histograms, HISTOGRAMS_MAX));
    }
    histograms.parts.read(bytes)?;
    let parts = &mut histograms.parts;
    let start_ms = parts.start_ms;
    let made = timestamp_of(parts.millis).and_then(|timestamp| {
        Ok((timestamp, parts.histogram(&mut grown.counts.rounded_histograms)?))
    });
    match made {
        Ok((timestamp, histogram)) => {
            let count = histogram.positive.len() + histogram.negative.len();
            histograms.bucket_count += count.max(histogram.custom_bounds.len());
            if REQUEST_BUCKETS_MAX < histograms.bucket_count {
                return Err(exceeded(Limit::HistogramBuckets, REQUEST_BUCKETS_MAX));
            }
            histograms.rows.push(HistogramRow {
                key_offset: series.key_offset,
                key_size: series.key_size,
                timestamp,
                position: series.position,
                histogram,
            });
            Ok(start_ms)
        }
        Err(reason) => {
            grown.counts.histograms += 1;
            grown.errors.push(series.position, || format!("histogram: {reason}"));
            Ok(0)
        }
    }
}

/// A histogram's message as milliseconds and what it tells; for clients and tests.
///
/// # Errors
/// The bytes are no such message, or no histogram.
pub(crate) fn decode_histogram(bytes: &[u8]) -> Result<(i64, Histogram), Error> {
    let mut parts = Parts::default();
    parts.read(bytes)?;
    let histogram = parts.histogram(&mut 0);
    let histogram = histogram.map_err(|reason| Error::Invalid(format!("histogram: {reason}")))?;
    Ok((parts.millis, histogram))
}

fn exceeded(limit: Limit, max: usize) -> Error {
    Error::LimitExceeded { limit, value: max as u64 + 1, max: max as u64 }
}

fn timestamp_of(millis: i64) -> Result<i64, Refusal> {
    let timestamp = millis.checked_mul(model::sample::NANOS_PER_MILLI);
    timestamp
        .ok_or_else(|| format!("timestamp {millis} ms is outside the years 1677 to 2262").into())
}

impl Parts {
    fn clear(&mut self) {
        for side in [&mut self.negative, &mut self.positive] {
            side.spans.clear();
            side.deltas.clear();
            side.counts.clear();
            side.is_cut = false;
        }
        self.custom_bounds.clear();
        let (negative, positive) =
            (std::mem::take(&mut self.negative), std::mem::take(&mut self.positive));
        let custom_bounds = std::mem::take(&mut self.custom_bounds);
        *self = Parts { negative, positive, custom_bounds, ..Parts::default() };
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.clear();
        let mut message = Message::new(bytes);
        while let Some((number, field)) = message.next_field()? {
            match number {
                1 => self.count = Count::Whole(field.signed()? as u64),
                2 => self.count = Count::Float(field.double()?),
                3 => self.sum = field.double()?,
                4 => self.schema = zigzag(field.signed()? as u64),
                5 => self.zero_threshold = field.double()?,
                6 => self.zero_count = Count::Whole(field.signed()? as u64),
                7 => self.zero_count = Count::Float(field.double()?),
                8..=10 => self.negative.read(number - 8, field)?,
                11..=13 => self.positive.read(number - 11, field)?,
                14 => self.reset_hint = reset_hint(field.signed()?),
                15 => self.millis = field.signed()?,
                16 => {
                    self.negative.is_cut |= !push_doubles(&mut self.custom_bounds, field)?;
                }
                17 => self.start_ms = field.signed()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The histogram, if it is one.
    fn histogram(&mut self, rounded: &mut u64) -> Result<Histogram, Refusal> {
        if self.negative.is_cut || self.positive.is_cut {
            return Err(too_many());
        }
        let is_float = matches!(self.count, Count::Float(_));
        let (positive, positive_total) = self.positive.buckets(is_float)?;
        let (negative, negative_total) = self.negative.buckets(is_float)?;
        if BUCKETS_MAX < positive.len() + negative.len() {
            return Err(too_many());
        }
        if !is_float {
            let total = positive_total + negative_total + u128::from(self.zero_count.whole());
            self.check_total(total)?;
            *rounded += u64::from(!self.count.is_exact());
        }
        let mut histogram = Histogram {
            schema: i8::try_from(self.schema).map_err(|_| unknown_schema(self.schema))?,
            reset_hint: self.reset_hint,
            zero_threshold: self.zero_threshold,
            zero_count: self.zero_count.to_float(),
            count: self.count.to_float(),
            sum: self.sum,
            positive,
            negative,
            custom_bounds: self.custom_bounds.clone(),
        };
        histogram.adopt_schema();
        histogram.validate().map_err(|invalid| invalid.to_string())?;
        Ok(if histogram.is_stale() { Histogram::stale() } else { histogram })
    }

    /// Observations that are not a number are in no bucket, and make the sum one.
    fn check_total(&self, total: u128) -> Result<(), Refusal> {
        let count = u128::from(self.count.whole());
        let is_right = if self.sum.is_nan() { total <= count } else { total == count };
        if is_right {
            return Ok(());
        }
        Err(format!("{total} observations in its buckets, but its count is {count}").into())
    }
}

impl SideParts {
    /// Reads spans (0), deltas (1) or counts (2).
    fn read(&mut self, number: u32, field: Value<'_>) -> Result<(), Error> {
        match number {
            0 if BUCKETS_MAX <= self.spans.len() => self.is_cut = true,
            0 => self.spans.push(span(field.bytes()?)?),
            1 => self.read_deltas(field)?,
            _ => self.is_cut |= !push_doubles(&mut self.counts, field)?,
        }
        Ok(())
    }

    fn read_deltas(&mut self, field: Value<'_>) -> Result<(), Error> {
        let packed = match field {
            Value::Bytes(packed) => packed,
            _ => {
                let one = field.signed()? as u64;
                self.is_cut |= BUCKETS_MAX <= self.deltas.len();
                if !self.is_cut {
                    self.deltas.push(zigzag(one));
                }
                return Ok(());
            }
        };
        let mut packed = Message::new(packed);
        while !packed.is_done() {
            if BUCKETS_MAX <= self.deltas.len() {
                self.is_cut = true;
                return Ok(());
            }
            self.deltas.push(zigzag(packed.varint()?));
        }
        Ok(())
    }

    /// The buckets and, of integers, how many observations they have together.
    fn buckets(&self, is_float: bool) -> Result<(Vec<Bucket>, u128), Refusal> {
        let len = if is_float { self.counts.len() } else { self.deltas.len() };
        let mut made = Vec::with_capacity(len);
        let (mut total, mut last) = (0u128, 0i64);
        let (mut taken, mut next) = (0usize, 0i64);
        for (idx, span) in self.spans.iter().enumerate() {
            if 0 < idx && span.offset < 0 {
                return Err(format!("span {idx} has the negative offset {}", span.offset).into());
            }
            // Offsets have 32 bits and spans are few: no sum of them overflows.
            next += span.offset;
            if ((len - taken) as u64) < span.length {
                return Err("its spans have more buckets than there are".into());
            }
            for _ in 0..span.length {
                let count = if is_float {
                    self.counts.get(taken).copied().unwrap_or(0.0)
                } else {
                    let delta = self.deltas.get(taken).copied().unwrap_or(0);
                    last = last.checked_add(delta).ok_or("a bucket's count is beyond 2^63")?;
                    total += u128::from(last.unsigned_abs());
                    last as f64
                };
                let index =
                    i32::try_from(next).map_err(|_| "a bucket's index is beyond 32 bits")?;
                made.push(Bucket { index, count });
                taken += 1;
                next += 1;
            }
        }
        if taken != len {
            return Err("its spans have fewer buckets than there are".into());
        }
        Ok((made, total))
    }
}

#[cold]
fn too_many() -> Refusal {
    format!("more than {BUCKETS_MAX} buckets; send a coarser schema").into()
}

#[cold]
fn unknown_schema(schema: i64) -> Refusal {
    format!("schema {schema} is not known").into()
}

/// Appends what is there and fits; tells whether all did.
fn push_doubles(out: &mut Vec<f64>, field: Value<'_>) -> Result<bool, Error> {
    let (packed, one) = match field {
        Value::Bytes(packed) => match packed.as_chunks::<8>() {
            (packed, []) => (packed, None),
            _ => return Err(Error::malformed("packed numbers", 0, "a multiple of 8 bytes")),
        },
        _ => (&[][..], Some(field.double()?)),
    };
    let count = packed.len() + usize::from(one.is_some());
    let room = BUCKETS_MAX.saturating_sub(out.len());
    let packed = packed.iter().map(|bytes| f64::from_le_bytes(*bytes));
    out.extend(packed.chain(one).take(room));
    Ok(count <= room)
}

fn span(bytes: &[u8]) -> Result<Span, Error> {
    let mut span = Span::default();
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            // As every decoder of the protocol's 32-bit fields: the bits above are cut off.
            1 => {
                span.offset =
                    i64::from(low_half(zigzag(field.signed()? as u64) as u64).cast_signed())
            }
            2 => span.length = u64::from(low_half(field.signed()? as u64)),
            _ => {}
        }
    }
    Ok(span)
}

fn zigzag(bits: u64) -> i64 {
    (bits >> 1) as i64 ^ -((bits & 1) as i64)
}

fn reset_hint(number: i64) -> ResetHint {
    match number {
        1 => ResetHint::Reset,
        2 => ResetHint::NoReset,
        3 => ResetHint::Gauge,
        _ => ResetHint::Unknown,
    }
}
