//! Prometheus remote write, versions 1.0 and 2.0: uncompressed protobuf to rows.
//!
//! ```text
//! 1.0  prometheus.WriteRequest        { timeseries = 1 { labels = 1, samples = 2, exemplars = 3,
//!                                       histograms = 4 }, metadata = 3 }
//! 2.0  io.prometheus.write.v2.Request { symbols = 4, timeseries = 5 { labels_refs = 1, samples = 2,
//!                                       histograms = 3, exemplars = 4, metadata = 5,
//!                                       created_timestamp = 6 } }
//! ```
//!
//! A row's key is the run of label messages of 1.0 as it stands; for 2.0 the same bytes are put
//! together from the symbols, so both versions name the same series alike.
//! A start timestamp is that of a sample or histogram, in the protocol's last form, or of a series
//! in the one before, where it holds for all samples that have none of their own.
//! Labels are looked at only when the store meets a key for the first time.
//!
//! Lies about lengths refuse the whole request; a timestamp out of range refuses its sample, a
//! native histogram or an exemplar that is none is refused alone.

pub mod encode;
pub mod encode_histograms;
mod exemplars;
#[cfg(test)]
mod histogram_tests;
pub mod histograms;
pub mod keys;
#[cfg(test)]
mod tests;
mod symbols;
pub mod v1;
pub mod v2;

pub use keys::RemoteWriteKeys;

use crate::decoded::Growing;
use crate::narrow::body_offset;
use crate::protobuf::Message;
use crate::{Error, Limit};
use model::start::START_MS_MAX;
use model::{MetricKind, Row, StartRow};

/// Bytes of one series' labels.
pub const KEY_SIZE_MAX: usize = 512 << 10;
/// Metadata entries taken from one request; more are left aside, as they come again.
pub const METADATA_MAX: usize = 16 << 10;
/// Samples of one request. Senders send some thousand; without it a few kilobytes that decompress
/// to empty samples would fill gigabytes.
pub const SAMPLES_MAX: usize = 1 << 20;

const _: () = assert!(SAMPLES_MAX <= model::limits::BATCH_ROWS_MAX);

/// What rows of one series have in common.
#[derive(Clone, Copy)]
struct Series {
    hash: u128,
    key_offset: u32,
    key_size: u32,
    /// Its number in the request, from 0.
    position: u32,
}

/// Reads a sample message `{ value = 1, timestamp = 2, start_timestamp = 3 }` into a row; returns
/// the start timestamp, of which version 1.0 knows nothing, or 0.
#[inline(always)]
fn push_sample(grown: &mut Growing, series: &Series, bytes: &[u8]) -> Result<i64, Error> {
    let (value, millis, start) = match usual_sample(bytes) {
        Some((value, millis)) => (value, millis, 0),
        None => any_sample(bytes)?,
    };
    let Some(timestamp) = millis.checked_mul(model::sample::NANOS_PER_MILLI) else {
        grown.errors.push(series.position, || {
            format!("timestamp {millis} ms is outside the years 1677 to 2262")
        });
        return Ok(0);
    };
    if SAMPLES_MAX <= grown.rows.len() {
        return Err(Error::LimitExceeded {
            limit: Limit::Samples,
            value: grown.rows.len() as u64 + 1,
            max: SAMPLES_MAX as u64,
        });
    }
    let values_start = body_offset(grown.values.len());
    grown.values.push(value);
    grown.rows.push(Row {
        hash: series.hash,
        timestamp,
        key_offset: series.key_offset,
        key_size: series.key_size,
        shape: 0,
        values_start,
        position: series.position,
    });
    Ok(start)
}

/// Gives the sample of this time of the series its start timestamp.
#[cold]
fn push_start(grown: &mut Growing, series: &Series, timestamp: Option<i64>, start_ms: i64) {
    let Some(timestamp) = timestamp.filter(|_| start_ms.unsigned_abs() <= START_MS_MAX as u64)
    else {
        grown.counts.created_timestamps += 1;
        return;
    };
    let Series { key_offset, key_size, position, .. } = *series;
    grown.starts.push(StartRow { timestamp, start_ms, key_offset, key_size, position });
}

/// The form nearly every sender writes: value, then timestamp, nothing else.
#[inline(always)]
fn usual_sample(bytes: &[u8]) -> Option<(f64, i64)> {
    let (&[first, ref rest @ ..], after) = bytes.split_first_chunk::<9>()?;
    let (&second, digits) = after.split_first()?;
    if first != 0x09 || second != 0x10 {
        return None;
    }
    let mut millis = 0u64;
    for (idx, &byte) in digits.iter().enumerate() {
        if 9 <= idx {
            return None;
        }
        millis |= u64::from(byte & 0x7f) << (7 * idx);
        if byte < 0x80 {
            let is_last = idx + 1 == digits.len();
            return is_last.then_some((f64::from_le_bytes(*rest), millis as i64));
        }
    }
    None
}

fn any_sample(bytes: &[u8]) -> Result<(f64, i64, i64), Error> {
    let (mut value, mut millis, mut start) = (0.0, 0, 0);
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => value = field.double()?,
            2 => millis = field.signed()?,
            3 => start = field.signed()?,
            _ => {}
        }
    }
    Ok((value, millis, start))
}

/// The kind that both versions' enumerations number alike.
fn kind(number: i64) -> MetricKind {
    match number {
        1 => MetricKind::Counter,
        2 => MetricKind::Gauge,
        3 => MetricKind::Histogram,
        4 => MetricKind::GaugeHistogram,
        5 => MetricKind::Summary,
        6 => MetricKind::Info,
        7 => MetricKind::StateSet,
        _ => MetricKind::Unknown,
    }
}

/// Refuses a series whose labels are too large; its samples are left out.
#[cold]
fn refuse_key(grown: &mut Growing, position: u32, size: usize) {
    grown.errors.push(position, || format!("labels of {size} bytes, the limit is {KEY_SIZE_MAX}"));
}
