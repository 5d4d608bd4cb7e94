//! Batches for tests: keys are canonical labels without the metric's name, fields are metric names.

#![allow(dead_code, reason = "each test file uses a part")]

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
