//! Types of fields, as the first line of each kind says them: samples are floats, whatever they were.

use super::keys::{Escapes, MEASUREMENT_ESCAPES, TAG_ESCAPES, of_percent, unescape, unescaped};
use super::long::LONG_MIN;
use super::scan::{name_end, string_end};
use crate::narrow::whole;
use model::{LabelsBuilder, Row, WriteBatch};
use std::collections::{BTreeMap, HashMap};

/// What a field's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// A number with a point, or one that might have.
    Float,
    /// A whole number, `1i` or `1u`.
    Integer,
    /// The same, and some of them are beyond what float64 holds ([`super::long`]).
    Long,
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

impl TypedFields {
    /// The same with names as they are, if they stand there with these escapes.
    pub fn with_escapes(self, escapes: Escapes) -> TypedFields {
        if escapes == Escapes::Backslashes {
            return self;
        }
        let name = |text: String| of_percent(text.as_bytes()).unwrap_or(text);
        let fields = self.fields.into_iter().map(|(field, kind)| (name(field), kind));
        let fields: BTreeMap<String, FieldType> = fields.collect();
        let fields = fields.into_iter().collect();
        TypedFields { measurement: name(self.measurement), fields }
    }
}

/// The kinds of lines of a batch of `body`: each measurement and list of fields once. The first line
/// of a kind says its types; a value further on that a type has no room for makes it a float.
pub fn kinds_of_lines(body: &[u8], batch: &WriteBatch<'_>) -> Vec<TypedFields> {
    kinds_by_shape(body, batch).into_iter().map(|(_, line)| line).collect()
}

/// The same, each with the bytes of its measurement and the number of its rows' shape.
pub fn kinds_by_shape<'b>(
    body: &[u8],
    batch: &'b WriteBatch<'_>,
) -> Vec<((&'b [u8], u32), TypedFields)> {
    let mut kinds: Vec<Kind> = Vec::new();
    let mut known: HashMap<(&[u8], u32), usize> = HashMap::new();
    let (mut last, mut at): ((&[u8], u32), usize) = ((&[], u32::MAX), 0);
    for row in &batch.rows {
        let key = batch.key(row);
        let (measurement, shape) = last;
        let goes_on = shape == row.shape
            && key.starts_with(measurement)
            && matches!(key.get(measurement.len()), None | Some(b','))
            && !measurement.ends_with(b"\\");
        if !goes_on {
            let end = unescaped(key, b',').unwrap_or(key.len());
            last = (&key[..end], row.shape);
            at = *known.entry(last).or_insert_with(|| {
                kinds.push(Kind::of(body, batch, row));
                kinds.len() - 1
            });
        }
        if let Some(kind) = kinds.get_mut(at) {
            kind.check(batch.row_values(row));
        }
    }
    let lines = known
        .into_iter()
        .filter_map(|(key, at)| Some((at, (key, kinds.get_mut(at)?.line.take()?))));
    // In the order in which they came.
    let lines: BTreeMap<usize, _> = lines.collect();
    lines.into_values().collect()
}

/// Whether a row of a kind, by its measurement and its shape as [`kinds_by_shape`] tells them, has tags that
/// a store takes.
pub fn has_valid_row(batch: &WriteBatch<'_>, (measurement, shape): (&[u8], u32)) -> bool {
    let mut tags = LabelsBuilder::new();
    batch.rows.iter().filter(|row| row.shape == shape).any(|row| {
        let key = batch.key(row);
        let end = unescaped(key, b',').unwrap_or(key.len());
        tags.clear();
        &key[..end] == measurement && batch.decoder.tags(key, &mut tags).is_ok()
    })
}

/// A kind of lines.
struct Kind {
    /// None where the first of them is no line.
    line: Option<TypedFields>,
    /// Places in the rows' values of fields that are no floats so far, and in `line`.
    narrow: Vec<(usize, usize)>,
}

impl Kind {
    fn of(body: &[u8], batch: &WriteBatch<'_>, row: &Row) -> Kind {
        let line = typed_fields(body, row);
        let shape = batch.shapes.get(row.shape as usize);
        let columns = shape.map(|shape| shape.fields.iter().map(|name| &**name));
        let columns = columns.into_iter().flatten().enumerate();
        let place = |(column, name): (usize, &str)| {
            let fields = &line.as_ref()?.fields;
            let at = fields.binary_search_by(|(other, _)| other.as_str().cmp(name)).ok()?;
            (fields[at].1 != FieldType::Float).then_some((column, at))
        };
        Kind { narrow: columns.filter_map(place).collect(), line }
    }

    fn check(&mut self, values: &[f64]) {
        let Some(line) = &mut self.line else { return };
        self.narrow.retain(|(column, at)| {
            let (Some(value), Some((_, kind))) = (values.get(*column), line.fields.get_mut(*at))
            else {
                return false;
            };
            let fits = match kind {
                FieldType::Float => false,
                // Nearly all are told by the first, which is no call of a function as `fract` is.
                FieldType::Integer | FieldType::Long => {
                    whole(*value) as f64 == *value || value.fract() == 0.0
                }
                FieldType::Boolean => *value == 0.0 || *value == 1.0,
                FieldType::String => true,
            };
            if !fits {
                *kind = FieldType::Float;
            }
            fits
        });
    }
}

/// The fields of the line of a row in `body`, with their types; `None` for what is no such line.
fn typed_fields(body: &[u8], row: &Row) -> Option<TypedFields> {
    let start = row.key_offset as usize;
    let key = body.get(start..start + row.key_size as usize)?;
    let measurement = &key[..unescaped(key, b',').unwrap_or(key.len())];
    let mut buffer = String::new();
    let measurement = unescape(measurement, MEASUREMENT_ESCAPES, &mut buffer).ok()?.to_string();
    let mut fields: BTreeMap<String, FieldType> = BTreeMap::new();
    let mut at = start + key.len();
    while matches!(body.get(at), Some(b' ' | b'\t' | 0)) {
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
        b'0'..=b'9' | b'-' | b'+' | b'.' => FieldType::Float,
        _ => FieldType::Boolean,
    };
    let rest = &body[at..];
    let size = rest.iter().position(|byte| matches!(byte, b',' | b' ' | b'\n' | b'\r'));
    let end = at + size.unwrap_or(rest.len());
    let is_whole = matches!(body.get(end.checked_sub(1)?), Some(b'i' | b'u'));
    let kind = match (is_whole, kind) {
        (true, FieldType::Float) if is_long(&body[at..end - 1]) => FieldType::Long,
        (true, FieldType::Float) => FieldType::Integer,
        _ => kind,
    };
    Some((kind, end))
}

/// Whether an integer is beyond what float64 holds.
fn is_long(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let digits = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    digits.is_some_and(|magnitude: u64| LONG_MIN <= magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Start;
    use crate::extra_labels::ExtraLabels;
    use crate::influx::{InfluxKeys, Options, Precision, decode};
    use model::KeyHasher;

    #[test]
    fn types_of_each_kind_of_lines() {
        let body = "a\\,b,t=1 x=1,y=2i,z=t,s=\"x=1i, \",time=5 1\n\
                    a\\,b,t=2 x=1,y=2i,z=f,s=\"\",time=5 1\n\
                    cpu x=3u 2\ncpu2 x=-1.5 3\ncpu x=4u 4\n\
                    mixed,t=1 b=1i,a=1i,c=t 1\nmixed,t=2 b=2i,a=2.5,c=t 2\nmixed b=3i,a=1i,c=7i 3\n";
        let keys = InfluxKeys::new(ExtraLabels::none());
        let options = Options { precision: Precision::Nanosecond, now: 0 };
        let hasher = KeyHasher::new(1);
        let decoded =
            decode(body.as_bytes(), Start::default(), &options, &hasher, &keys).expect("lines");
        let found = kinds_of_lines(body.as_bytes(), &decoded.batch);
        let of = |measurement: &str, fields: &[(&str, FieldType)]| TypedFields {
            measurement: measurement.to_string(),
            fields: fields.iter().map(|(name, kind)| ((*name).to_string(), *kind)).collect(),
        };
        use FieldType::{Boolean, Float, Integer, Long, String as Text};
        let longs =
            b"m,t=1 a=9007199254740991i,b=-9007199254740992i,c=0018446744073709551615u,d=1i 1\n\
                      n a=1i 1\nn a=9007199254740993i 2\n";
        let keys = keys.with_long_integers();
        let decoded = decode(longs, Start::default(), &options, &hasher, &keys).expect("lines");
        let of_longs = kinds_of_lines(longs, &decoded.batch);
        let m = of("m", &[("a", Integer), ("b", Long), ("c", Long), ("d", Integer)]);
        let (n, later) = (of("n", &[("a", Integer)]), of("n", &[("a", Long)]));
        assert_eq!(of_longs, [m.clone(), m, n, later], "low bits are lines of their own");
        let expected = [
            of("a,b", &[("s", Text), ("x", Float), ("y", Integer), ("z", Boolean)]),
            of("cpu", &[("x", Integer)]),
            of("cpu2", &[("x", Float)]),
            of("mixed", &[("a", Float), ("b", Integer), ("c", Float)]),
        ];
        assert_eq!(found, expected);
    }
}
