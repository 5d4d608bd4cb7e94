//! Types of fields, as the first line of each kind says them: samples are floats, whatever they were.

use super::keys::{MEASUREMENT_ESCAPES, TAG_ESCAPES, unescape, unescaped};
use super::scan::{name_end, string_end};
use model::{Row, WriteBatch};
use std::collections::{BTreeMap, HashSet};

/// What a field's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// A number with a point, or one that might have.
    Float,
    /// A whole number, `1i` or `1u`.
    Integer,
    /// True or false.
    Boolean,
    /// Text.
    String,
}

/// A measurement and the fields of one of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedFields {
    /// Its name.
    pub measurement: String,
    /// Their names and types, by name; of equal names the last.
    pub fields: Vec<(String, FieldType)>,
}

/// A row of each measurement and list of fields of a batch, with the bytes of its measurement.
pub fn first_rows<'b>(batch: &'b WriteBatch<'_>) -> Vec<(&'b [u8], &'b Row)> {
    let mut found: Vec<(&[u8], &Row)> = Vec::new();
    let mut seen: HashSet<(&[u8], u32)> = HashSet::new();
    let mut last: (&[u8], u32) = (&[], u32::MAX);
    for row in &batch.rows {
        let key = batch.key(row);
        let (measurement, shape) = last;
        let goes_on = shape == row.shape
            && key.starts_with(measurement)
            && matches!(key.get(measurement.len()), None | Some(b','));
        if goes_on && !measurement.ends_with(b"\\") {
            continue;
        }
        let end = unescaped(key, b',').unwrap_or(key.len());
        last = (&key[..end], row.shape);
        if seen.insert(last) {
            found.push((last.0, row));
        }
    }
    found
}

/// The fields of the line of a row in `body`, with their types; `None` for what is no such line.
pub fn typed_fields(body: &[u8], row: &Row) -> Option<TypedFields> {
    let start = row.key_offset as usize;
    let key = body.get(start..start + row.key_size as usize)?;
    let measurement = &key[..unescaped(key, b',').unwrap_or(key.len())];
    let mut buffer = String::new();
    let measurement = unescape(measurement, MEASUREMENT_ESCAPES, &mut buffer).ok()?.to_string();
    let mut fields: BTreeMap<String, FieldType> = BTreeMap::new();
    let mut at = start + key.len();
    while body.get(at) == Some(&b' ') {
        at += 1;
    }
    loop {
        let value_start = name_end(body, at).ok()?;
        let name = body.get(at..value_start.checked_sub(1)?)?;
        let (kind, end) = value_type(body, value_start)?;
        let name = unescape(name, TAG_ESCAPES, &mut buffer).ok()?;
        if name != "time" {
            fields.insert(name.to_string(), kind);
        }
        if body.get(end) != Some(&b',') {
            return Some(TypedFields { measurement, fields: fields.into_iter().collect() });
        }
        at = end + 1;
    }
}

/// The type of the value at `at`, and where it ends.
fn value_type(body: &[u8], at: usize) -> Option<(FieldType, usize)> {
    let kind = match body.get(at)? {
        b'"' => return Some((FieldType::String, string_end(body, at).ok()?)),
        b'0'..=b'9' | b'-' | b'.' => FieldType::Float,
        _ => FieldType::Boolean,
    };
    let rest = &body[at..];
    let size = rest.iter().position(|byte| matches!(byte, b',' | b' ' | b'\n' | b'\r'));
    let end = at + size.unwrap_or(rest.len());
    let is_whole = matches!(body.get(end.checked_sub(1)?), Some(b'i' | b'u'));
    let kind = if is_whole && kind == FieldType::Float { FieldType::Integer } else { kind };
    Some((kind, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Start;
    use crate::extra_labels::ExtraLabels;
    use crate::influx::{InfluxKeys, Options, Precision, decode};
    use model::KeyHasher;

    #[test]
    fn types_of_the_first_line_of_each_kind() {
        let body = "a\\,b,t=1 x=1,y=2i,z=t,s=\"x=1i, \",time=5 1\n\
                    a\\,b,t=2 x=1,y=2i,z=f,s=\"\",time=5 1\n\
                    cpu x=3u 2\ncpu2 x=-1.5 3\ncpu x=4u 4\n";
        let keys = InfluxKeys::new(ExtraLabels::none());
        let options = Options { precision: Precision::Nanosecond, now: 0 };
        let hasher = KeyHasher::new(1);
        let decoded =
            decode(body.as_bytes(), Start::default(), &options, &hasher, &keys).expect("lines");
        let rows = first_rows(&decoded.batch);
        let found: Vec<TypedFields> =
            rows.iter().filter_map(|(_, row)| typed_fields(body.as_bytes(), row)).collect();
        let of = |measurement: &str, fields: &[(&str, FieldType)]| TypedFields {
            measurement: measurement.to_string(),
            fields: fields.iter().map(|(name, kind)| ((*name).to_string(), *kind)).collect(),
        };
        use FieldType::{Boolean, Float, Integer, String as Text};
        let expected = [
            of("a,b", &[("s", Text), ("x", Float), ("y", Integer), ("z", Boolean)]),
            of("cpu", &[("x", Integer)]),
            of("cpu2", &[("x", Float)]),
        ];
        assert_eq!(found, expected);
    }
}
