//! Batches for tests: keys are canonical labels without the metric's name, fields are metric names.

#![allow(dead_code, reason = "each test file uses a part")]

use histogram::{Bucket, Histogram, HistogramBatch, HistogramRow, ResetHint};
use model::{
    KeyDecoder, KeyHasher, LabelError, Labels, LabelsBuilder, METRIC_NAME, Row, Shape, WriteBatch,
};
use std::borrow::Cow;

/// Decodes the keys of [`Rows`].
pub struct CanonicalKeys;

impl KeyDecoder for CanonicalKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        for (name, value) in Labels::from_canonical(key).expect("canonical key").iter() {
            tags.push(name, value);
        }
        Ok(())
    }

    fn metric_name(&self, _: &[u8], field: &str, name: &mut String) -> Result<(), LabelError> {
        name.push_str(field);
        Ok(())
    }
}

/// A batch being built.
#[derive(Default)]
pub struct Rows {
    bytes: Vec<u8>,
    shapes: Vec<Shape>,
    rows: Vec<Row>,
    values: Vec<f64>,
}

impl Rows {
    /// Adds a row: tags, time and fields with their values.
    pub fn push(
        &mut self,
        hasher: &KeyHasher,
        tags: &[(&str, &str)],
        timestamp: i64,
        fields: &[(&str, f64)],
    ) {
        let names: Vec<Box<str>> = fields.iter().map(|(name, _)| (*name).into()).collect();
        let shape = match self.shapes.iter().position(|shape| shape.fields == names) {
            Some(idx) => idx,
            None => {
                let hash = hasher.shape(b"test", &names);
                self.shapes.push(Shape { fields: names, hash });
                self.shapes.len() - 1
            }
        };
        let key = Labels::from_pairs(tags);
        let key_offset = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key.as_bytes());
        self.rows.push(Row {
            hash: hasher.hash(key.as_bytes(), self.shapes[shape].hash),
            timestamp,
            key_offset,
            key_size: key.as_bytes().len() as u32,
            shape: shape as u32,
            values_start: self.values.len() as u32,
            position: self.rows.len() as u32,
        });
        self.values.extend(fields.iter().map(|(_, value)| value));
    }

    /// The batch.
    pub fn batch(self) -> WriteBatch<'static> {
        WriteBatch {
            bytes: Cow::Owned(self.bytes),
            shapes: self.shapes,
            rows: self.rows,
            values: self.values,
            decoder: &CanonicalKeys,
        }
    }
}

/// The labels of one field of a row.
pub fn labels(tags: &[(&str, &str)], name: &str) -> Labels {
    let mut pairs = tags.to_vec();
    pairs.push((METRIC_NAME, name));
    Labels::from_pairs(&pairs)
}

/// Decodes keys that are canonical labels with the metric's name among them.
pub struct WholeKeys;

impl KeyDecoder for WholeKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        let labels = Labels::from_canonical(key).expect("canonical key");
        let others = labels.iter().filter(|(name, _)| *name != METRIC_NAME);
        others.for_each(|(name, value)| tags.push(name, value));
        Ok(())
    }

    fn metric_name(&self, key: &[u8], _: &str, name: &mut String) -> Result<(), LabelError> {
        name.push_str(Labels::from_canonical(key).expect("canonical key").metric_name());
        Ok(())
    }
}

/// A batch of histograms: their series, times, and what they are.
pub fn histograms(list: &[(Labels, i64, Histogram)]) -> HistogramBatch<'static> {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for (position, (labels, timestamp, histogram)) in list.iter().enumerate() {
        rows.push(HistogramRow {
            key_offset: bytes.len() as u32,
            key_size: labels.as_bytes().len() as u32,
            timestamp: *timestamp,
            position: position as u32,
            histogram: histogram.clone(),
        });
        bytes.extend_from_slice(labels.as_bytes());
    }
    let context = Cow::Borrowed(&b"whole"[..]);
    HistogramBatch { bytes: Cow::Owned(bytes), rows, decoder: &WholeKeys, context }
}

/// Floats of series whose keys are those of [`histograms`].
pub fn floats(hasher: &KeyHasher, list: &[(Labels, i64, f64)]) -> WriteBatch<'static> {
    let fields: Vec<Box<str>> = vec!["".into()];
    let shape = Shape { hash: hasher.shape(b"whole", &fields), fields };
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for (idx, (labels, timestamp, _)) in (0..).zip(list) {
        rows.push(Row {
            hash: hasher.hash(labels.as_bytes(), shape.hash),
            timestamp: *timestamp,
            key_offset: bytes.len() as u32,
            key_size: labels.as_bytes().len() as u32,
            shape: 0,
            values_start: idx,
            position: idx,
        });
        bytes.extend_from_slice(labels.as_bytes());
    }
    let values = list.iter().map(|(_, _, value)| *value).collect();
    WriteBatch { bytes: Cow::Owned(bytes), shapes: vec![shape], rows, values, decoder: &WholeKeys }
}

/// A histogram as a number: equal ones have the same.
pub fn hash_of(histogram: &Histogram) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(&format!("{histogram:?}"), &mut hasher);
    std::hash::Hasher::finish(&hasher)
}

/// Some histogram, told by a number: neighbours often have the same layout, all have other counts.
pub fn histogram(number: u64) -> Histogram {
    let mix = |salt: u64| (number ^ salt << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    // Few kinds, so that layouts repeat.
    let kind = mix(1) % 7;
    let buckets = |first: i32, count: u64, step: i32| -> Vec<Bucket> {
        let one = |i: i32| Bucket { index: first + i * step, count: (mix(2) + i as u64) as f64 };
        (0..count as i32).map(one).collect()
    };
    let mut histogram = Histogram {
        schema: [-4, 0, 3, 3, 3, 8, histogram::CUSTOM_SCHEMA][kind as usize],
        reset_hint: [ResetHint::Unknown, ResetHint::Reset, ResetHint::NoReset, ResetHint::Gauge]
            [mix(3) as usize % 4],
        zero_threshold: if mix(4) % 5 == 0 { 0.0 } else { 1e-128 },
        zero_count: (mix(5) % 10) as f64,
        count: mix(6) as f64,
        sum: mix(7) as f64 / 7.0,
        ..Histogram::default()
    };
    match kind {
        0 => {}
        1 => histogram.positive = buckets(-20, 40, 1),
        2 | 3 => {
            histogram.positive = buckets(3, 20, 1);
            histogram.negative = buckets(-1, 3, 17);
        }
        4 => histogram.negative = buckets(-16, 16, 1),
        5 => histogram.positive = buckets(-100_000, 5, 40_000),
        _ => {
            histogram.positive = buckets(0, 19, 1);
            histogram.custom_bounds = (0..18).map(|i| f64::from(i) - 2.5).collect();
        }
    }
    histogram
}
