//! Histogram messages, as both versions of remote write and remote read have them.

use super::encode::{MillisSample, RequestV1, RequestV2, Started, put_sample, put_started_sample};
use crate::narrow::{body_offset, whole};
use crate::protobuf::{put_bytes, put_double, put_number, put_varint};
use histogram::{Bucket, Histogram, ResetHint};

/// How counts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountForm {
    /// Integers, buckets as deltas; all counts must be whole.
    Whole,
    /// float64.
    Float,
}

/// A histogram as remote write has it.
#[derive(Clone, Debug, PartialEq)]
pub struct MillisHistogram {
    /// Milliseconds since the epoch.
    pub millis: i64,
    /// What it tells.
    pub histogram: Histogram,
    /// How its counts are written.
    pub form: CountForm,
}

impl RequestV1 {
    /// Adds a series with histograms; labels in the order given, which should be by name.
    pub fn mixed_series(
        &mut self,
        labels: &[(&str, &str)],
        samples: &[MillisSample],
        histograms: &[MillisHistogram],
    ) {
        self.series_and(labels, samples, |series| put_histograms(series, 4, histograms));
    }
}

impl RequestV2 {
    /// Adds a series with histograms; labels in the order given, which should be by name.
    pub fn mixed_series(
        &mut self,
        labels: &[(&str, &str)],
        samples: &[MillisSample],
        histograms: &[MillisHistogram],
    ) {
        let mut part = Vec::new();
        let mut message = Vec::new();
        for sample in samples {
            put_sample(&mut message, &mut part, sample);
        }
        put_histograms(&mut message, 3, histograms);
        self.series_of(labels, &message);
    }

    /// Adds a series whose samples say since when they count; labels in the order given, which
    /// should be by name.
    pub fn started_series(
        &mut self,
        labels: &[(&str, &str)],
        samples: &[Started<MillisSample>],
        histograms: &[Started<MillisHistogram>],
    ) {
        let (mut part, mut message) = (Vec::new(), Vec::new());
        for sample in samples {
            put_started_sample(&mut message, &mut part, sample);
        }
        for Started { sample, start_millis } in histograms {
            part.clear();
            push_histogram(&mut part, &sample.histogram, sample.millis, sample.form);
            if *start_millis != 0 {
                // The number 17 takes a tag of two bytes.
                put_varint(&mut part, 17 << 3);
                put_varint(&mut part, *start_millis as u64);
            }
            put_bytes(&mut message, 3, &part);
        }
        self.series_of(labels, &message);
    }
}

fn put_histograms(out: &mut Vec<u8>, number: u8, histograms: &[MillisHistogram]) {
    let mut message = Vec::new();
    for MillisHistogram { millis, histogram, form } in histograms {
        message.clear();
        push_histogram(&mut message, histogram, *millis, *form);
        put_bytes(out, number, &message);
    }
}

/// Appends the message of one histogram.
pub(crate) fn push_histogram(
    out: &mut Vec<u8>,
    histogram: &Histogram,
    millis: i64,
    form: CountForm,
) {
    put_count(out, 1, histogram.count, form);
    put_double_unless_zero(out, 3, histogram.sum);
    put_unless_zero(out, 4, zigzag(i64::from(histogram.schema)));
    put_double_unless_zero(out, 5, histogram.zero_threshold);
    put_count(out, 6, histogram.zero_count, form);
    put_side(out, 8, &histogram.negative, form);
    put_side(out, 11, &histogram.positive, form);
    let hint = match histogram.reset_hint {
        ResetHint::Unknown => 0,
        ResetHint::Reset => 1,
        ResetHint::NoReset => 2,
        ResetHint::Gauge => 3,
    };
    put_unless_zero(out, 14, hint);
    put_unless_zero(out, 15, millis as u64);
    if !histogram.custom_bounds.is_empty() {
        // The number 16 takes a tag of two bytes.
        put_varint(out, 16 << 3 | 2);
        put_varint(out, 8 * histogram.custom_bounds.len() as u64);
        push_doubles(out, histogram.custom_bounds.iter().copied());
    }
}

/// A field that is zero is left out, as every encoder of the protocol does.
fn put_unless_zero(out: &mut Vec<u8>, number: u8, value: u64) {
    if value != 0 {
        put_number(out, number, value);
    }
}

fn put_double_unless_zero(out: &mut Vec<u8>, number: u8, value: f64) {
    if value.to_bits() != 0 {
        put_double(out, number, value);
    }
}

/// Field `number` of an integer, the one after it of a float.
#[expect(clippy::cast_possible_truncation, reason = "the histogram says that it is whole")]
fn put_count(out: &mut Vec<u8>, number: u8, count: f64, form: CountForm) {
    match form {
        CountForm::Whole => put_number(out, number, count as u64),
        CountForm::Float => put_double(out, number + 1, count),
    }
}

/// Spans in field `number`, then deltas or counts.
fn put_side(out: &mut Vec<u8>, number: u8, buckets: &[Bucket], form: CountForm) {
    let mut part = Vec::new();
    for (offset, length) in spans(buckets) {
        part.clear();
        put_unless_zero(&mut part, 1, zigzag(i64::from(offset)));
        put_number(&mut part, 2, u64::from(length));
        put_bytes(out, number, &part);
    }
    if buckets.is_empty() {
        return;
    }
    part.clear();
    match form {
        CountForm::Whole => {
            let mut last = 0;
            for bucket in buckets {
                put_varint(&mut part, zigzag(whole(bucket.count) - last));
                last = whole(bucket.count);
            }
            put_bytes(out, number + 1, &part);
        }
        CountForm::Float => {
            push_doubles(&mut part, buckets.iter().map(|bucket| bucket.count));
            put_bytes(out, number + 2, &part);
        }
    }
}

fn push_doubles(out: &mut Vec<u8>, values: impl Iterator<Item = f64>) {
    for value in values {
        out.extend_from_slice(&value.to_bits().to_le_bytes());
    }
}

/// Runs of buckets with neighbouring indexes: how many indexes lie between a run and the one
/// before (of the first, its index), and how many buckets it has.
pub(crate) fn spans(buckets: &[Bucket]) -> impl Iterator<Item = (i32, u32)> {
    let mut next = 0i32;
    buckets.chunk_by(|a, b| a.index.checked_add(1) == Some(b.index)).map(move |run| {
        let first = run.first().map_or(0, |bucket| bucket.index);
        let offset = first.wrapping_sub(next);
        let len = body_offset(run.len());
        next = first.wrapping_add_unsigned(len);
        (offset, len)
    })
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}
