//! Rows as bytes, by the schema of their table; see `docs/format/tables.md`.
//!
//! ```text
//! row   nulls: a bit a column, 1 for null │ value of each column that is not null
//! ```
//!
//! A row's bytes are checked once, when it comes: from SQL by [`encode`], from a file by [`check`].
//! After that they decode.

use crate::calendar::MICROS_PER_DAY;
use crate::datum::{ColumnType, Datum, Interval, Scalar};
use crate::error::{Error, Result, check_limit};
use crate::limits::{ELEMENTS_MAX, ROW_SIZE_MAX};
use crate::numeric;
use crate::schema::{Column, Schema};
use codec::{Reader, put_i64_zigzag, put_varint};

/// Bytes of a value that a message shows.
const SHOWN_SIZE_MAX: usize = 100;
const UUID_SIZE: usize = 16;
/// Where dashes stand in a UUID's text.
const UUID_DASHES: [usize; 4] = [8, 13, 18, 23];
const UUID_TEXT_SIZE: usize = 36;

type Decoded<T> = std::result::Result<T, codec::Error>;

/// The bytes of a row, whose values are checked.
pub(crate) fn encode(table: &str, schema: &Schema, values: &[Datum]) -> Result<Vec<u8>> {
    let (expected, found) = (schema.columns.len(), values.len());
    if expected != found {
        return Err(Error::ColumnCount { table: table.to_owned(), expected, found });
    }
    let mut out = vec![0; expected.div_ceil(8)];
    for (at, (column, value)) in schema.columns.iter().zip(values).enumerate() {
        if *value == Datum::Null {
            if !column.is_nullable {
                let column = column.name.clone();
                return Err(Error::NotNull { table: table.to_owned(), column });
            }
            out[at / 8] |= 1 << (at % 8);
            continue;
        }
        put_value(&mut out, column.ty, value).map_err(|wrong| wrong.in_column(table, column))?;
        check_limit("bytes of a row", out.len(), ROW_SIZE_MAX)?;
    }
    Ok(out)
}

/// What is wrong with a value.
pub(crate) enum Wrong {
    Type(&'static str),
    Value(String),
    Elements(usize),
}

impl Wrong {
    fn value(value: &Datum) -> Wrong {
        let mut text = value.to_string();
        let end = (0..=SHOWN_SIZE_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        Wrong::Value(text)
    }

    pub(crate) fn in_column(self, table: &str, column: &Column) -> Error {
        let (table, expected) = (table.to_owned(), column.ty.to_string());
        let column = column.name.clone();
        match self {
            Wrong::Type(found) => Error::WrongType { table, column, expected, found },
            Wrong::Value(value) => Error::InvalidValue { table, column, expected, value },
            Wrong::Elements(count) => Error::TooLarge {
                what: "elements of an array",
                size: count as u64,
                max: ELEMENTS_MAX as u64,
            },
        }
    }
}

fn put_value(out: &mut Vec<u8>, ty: ColumnType, value: &Datum) -> std::result::Result<(), Wrong> {
    match (ty, value) {
        (ColumnType::One(scalar), value) => put_scalar(out, scalar, value),
        (ColumnType::Array(scalar), Datum::Array(elements)) => {
            if ELEMENTS_MAX < elements.len() {
                return Err(Wrong::Elements(elements.len()));
            }
            put_varint(out, elements.len() as u64);
            for element in elements {
                let is_null = *element == Datum::Null;
                out.push(u8::from(is_null));
                if !is_null {
                    put_scalar(out, scalar, element)?;
                }
            }
            Ok(())
        }
        (ColumnType::Array(_), other) => Err(Wrong::Type(other.kind())),
    }
}

fn put_scalar(out: &mut Vec<u8>, scalar: Scalar, value: &Datum) -> std::result::Result<(), Wrong> {
    if value.scalar() != Some(scalar) {
        return Err(Wrong::Type(value.kind()));
    }
    match value {
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int2(value) => put_i64_zigzag(out, i64::from(*value)),
        Datum::Int4(value) | Datum::Date(value) => put_i64_zigzag(out, i64::from(*value)),
        Datum::Int8(value) | Datum::Timestamptz(value) | Datum::Timestamp(value) => {
            put_i64_zigzag(out, *value);
        }
        Datum::Float4(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Float8(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Numeric(text) if !numeric::is_numeric(text) => return Err(Wrong::value(value)),
        Datum::Numeric(text) | Datum::Text(text) | Datum::Jsonb(text) => {
            put_bytes(out, text.as_bytes());
        }
        Datum::Interval(Interval { months, days, micros }) => {
            put_i64_zigzag(out, i64::from(*months));
            put_i64_zigzag(out, i64::from(*days));
            put_i64_zigzag(out, *micros);
        }
        Datum::Uuid(text) => {
            let bytes = parse_uuid(text).ok_or_else(|| Wrong::value(value))?;
            out.extend_from_slice(&bytes);
        }
        Datum::Bytea(bytes) => put_bytes(out, bytes),
        Datum::Time(micros) if !(0..=MICROS_PER_DAY).contains(micros) => {
            return Err(Wrong::Value(format!("{micros} us")));
        }
        Datum::Time(micros) => put_i64_zigzag(out, *micros),
        Datum::Null | Datum::Array(_) => unreachable!("they have no scalar type"),
    }
    Ok(())
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The bytes of a UUID.
pub(crate) fn parse_uuid(text: &str) -> Option<[u8; UUID_SIZE]> {
    let text = text.as_bytes();
    if text.len() != UUID_TEXT_SIZE || UUID_DASHES.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut digits = text.iter().enumerate().filter(|(at, _)| !UUID_DASHES.contains(at));
    let mut digit = || char::from(*digits.next()?.1).to_digit(16);
    let mut out = [0; UUID_SIZE];
    for byte in &mut out {
        *byte = u8::try_from(digit()? * 16 + digit()?).ok()?;
    }
    Some(out)
}

fn uuid_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(UUID_TEXT_SIZE);
    for byte in bytes {
        if UUID_DASHES.contains(&out.len()) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// Whether bytes are a row of that schema, and nothing else.
pub(crate) fn check(schema: &Schema, bytes: &[u8]) -> Decoded<()> {
    let mut cursor = RowCursor::new(schema, bytes)?;
    while let Some((column, value)) = cursor.next()? {
        if value == Datum::Null && !column.is_nullable {
            return Err(cursor.reader.corrupt("null in a column without nulls"));
        }
    }
    let unused = schema.columns.len()..8 * cursor.nulls.len();
    let mut unused = unused.map(|at| cursor.is_null(at));
    match cursor.reader.is_empty() && !unused.any(|is_set| is_set) {
        true => Ok(()),
        false => Err(cursor.reader.corrupt("more than a row")),
    }
}

/// All values of a row.
pub(crate) fn decode(schema: &Schema, bytes: &[u8]) -> Decoded<Vec<Datum>> {
    let mut cursor = RowCursor::new(schema, bytes)?;
    let mut values = Vec::with_capacity(schema.columns.len());
    while let Some((_, value)) = cursor.next()? {
        values.push(value);
    }
    Ok(values)
}

/// The values of some columns, in their order in `columns`.
pub(crate) fn project(schema: &Schema, bytes: &[u8], columns: &[usize]) -> Decoded<Vec<Datum>> {
    let mut cursor = RowCursor::new(schema, bytes)?;
    let mut values = vec![Datum::Null; columns.len()];
    let end = columns.iter().max().map_or(0, |last| last + 1);
    for at in 0..end.min(schema.columns.len()) {
        if !columns.contains(&at) {
            cursor.skip()?;
            continue;
        }
        let Some((_, value)) = cursor.next()? else { break };
        let places = columns.iter().zip(&mut values).filter(|(column, _)| **column == at);
        places.for_each(|(_, place)| *place = value.clone());
    }
    Ok(values)
}

/// Goes over the values of a row.
struct RowCursor<'a> {
    schema: &'a Schema,
    nulls: &'a [u8],
    reader: Reader<'a>,
    at: usize,
}

impl<'a> RowCursor<'a> {
    fn new(schema: &'a Schema, bytes: &'a [u8]) -> Decoded<RowCursor<'a>> {
        let mut reader = Reader::new(bytes);
        let nulls = reader.slice(schema.columns.len().div_ceil(8))?;
        Ok(RowCursor { schema, nulls, reader, at: 0 })
    }

    fn is_null(&self, at: usize) -> bool {
        self.nulls.get(at / 8).is_some_and(|byte| byte & 1 << (at % 8) != 0)
    }

    fn next(&mut self) -> Decoded<Option<(&'a Column, Datum)>> {
        let Some(column) = self.schema.columns.get(self.at) else { return Ok(None) };
        let value = match self.is_null(self.at) {
            true => Datum::Null,
            false => read_value(&mut self.reader, column.ty)?,
        };
        self.at += 1;
        Ok(Some((column, value)))
    }

    /// Passes a value whose column nobody asks for; texts are not copied.
    fn skip(&mut self) -> Decoded<()> {
        if let Some(column) = self.schema.columns.get(self.at)
            && !self.is_null(self.at)
        {
            match column.ty {
                ColumnType::One(Scalar::Text | Scalar::Jsonb | Scalar::Numeric | Scalar::Bytea) => {
                    read_bytes(&mut self.reader).map(drop)?;
                }
                ty => read_value(&mut self.reader, ty).map(drop)?,
            }
        }
        self.at += 1;
        Ok(())
    }
}

fn read_value(reader: &mut Reader<'_>, ty: ColumnType) -> Decoded<Datum> {
    let scalar = match ty {
        ColumnType::One(scalar) => return read_scalar(reader, scalar),
        ColumnType::Array(scalar) => scalar,
    };
    let count = reader.varint_size(ELEMENTS_MAX.min(reader.remaining()))?;
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        elements.push(match reader.u8()? {
            0 => read_scalar(reader, scalar)?,
            1 => Datum::Null,
            _ => return Err(reader.corrupt("an element that is neither there nor null")),
        });
    }
    Ok(Datum::Array(elements))
}

fn read_scalar(reader: &mut Reader<'_>, scalar: Scalar) -> Decoded<Datum> {
    Ok(match scalar {
        Scalar::Bool => match reader.u8()? {
            0 => Datum::Bool(false),
            1 => Datum::Bool(true),
            _ => return Err(reader.corrupt("neither true nor false")),
        },
        Scalar::Int2 => Datum::Int2(read_int(reader)?),
        Scalar::Int4 => Datum::Int4(read_int(reader)?),
        Scalar::Int8 => Datum::Int8(reader.i64_zigzag()?),
        Scalar::Float4 => Datum::Float4(f32::from_bits(reader.u32()?)),
        Scalar::Float8 => Datum::Float8(f64::from_bits(reader.u64()?)),
        Scalar::Numeric => {
            let text = read_string(reader)?;
            if !numeric::is_numeric(&text) {
                return Err(reader.corrupt("digits"));
            }
            Datum::Numeric(text)
        }
        Scalar::Text => Datum::Text(read_string(reader)?),
        Scalar::Timestamptz => Datum::Timestamptz(reader.i64_zigzag()?),
        Scalar::Timestamp => Datum::Timestamp(reader.i64_zigzag()?),
        Scalar::Date => Datum::Date(read_int(reader)?),
        Scalar::Jsonb => Datum::Jsonb(read_string(reader)?),
        Scalar::Interval => Datum::Interval(Interval {
            months: read_int(reader)?,
            days: read_int(reader)?,
            micros: reader.i64_zigzag()?,
        }),
        Scalar::Uuid => Datum::Uuid(uuid_text(reader.slice(UUID_SIZE)?)),
        Scalar::Bytea => Datum::Bytea(read_bytes(reader)?.to_vec()),
        Scalar::Time => match reader.i64_zigzag()? {
            micros if (0..=MICROS_PER_DAY).contains(&micros) => Datum::Time(micros),
            _ => return Err(reader.corrupt("a time of day")),
        },
    })
}

fn read_int<T: TryFrom<i64>>(reader: &mut Reader<'_>) -> Decoded<T> {
    T::try_from(reader.i64_zigzag()?).map_err(|_| reader.corrupt("a number over its type"))
}

fn read_bytes<'a>(reader: &mut Reader<'a>) -> Decoded<&'a [u8]> {
    let size = reader.varint_size(ROW_SIZE_MAX)?;
    reader.slice(size)
}

fn read_string(reader: &mut Reader<'_>) -> Decoded<String> {
    let bytes = read_bytes(reader)?;
    let text = std::str::from_utf8(bytes).map_err(|_| reader.corrupt("a text that is no UTF-8"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<Datum> {
        let interval = Interval { months: -1, days: 40, micros: i64::MIN };
        vec![
            Datum::Bool(true),
            Datum::Int2(-32_768),
            Datum::Int4(i32::MIN),
            Datum::Int8(i64::MAX),
            Datum::Float4(-1.5),
            Datum::Float8(f64::INFINITY),
            Datum::Numeric("12.500".into()),
            Datum::Text("naïve".into()),
            Datum::Timestamptz(i64::MAX),
            Datum::Timestamp(-1),
            Datum::Date(i32::MIN),
            Datum::Jsonb("{\"a\": 1}".into()),
            Datum::Interval(interval),
            Datum::Uuid("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11".into()),
            Datum::Bytea(vec![0, 1, 255]),
            Datum::Time(MICROS_PER_DAY),
        ]
    }

    /// A column of each type, and one of arrays of each.
    fn schema() -> Schema {
        let one = |scalar: &Scalar| Column::new(scalar.name(), ColumnType::One(*scalar));
        let array = |scalar: &Scalar| {
            Column::new(&format!("{}s", scalar.name()), ColumnType::Array(*scalar))
        };
        let columns = Scalar::ALL.iter().map(one).chain(Scalar::ALL.iter().map(array));
        Schema { columns: columns.collect(), ..Schema::default() }
    }

    fn row() -> Vec<Datum> {
        let arrays = values().into_iter().map(|one| Datum::Array(vec![one, Datum::Null]));
        values().into_iter().chain(arrays).collect()
    }

    #[test]
    fn rows_come_back_whole_and_in_part() {
        let (schema, row) = (schema(), row());
        let nulls = vec![Datum::Null; row.len()];
        let mixed: Vec<Datum> = (0..row.len())
            .map(|at| if at % 3 == 0 { Datum::Null } else { row[at].clone() })
            .collect();
        for values in [row, nulls, mixed] {
            let bytes = encode("t", &schema, &values).unwrap();
            check(&schema, &bytes).unwrap();
            assert_eq!(decode(&schema, &bytes).unwrap(), values);
            for columns in [vec![], vec![0], vec![31, 7, 7], (0..32).collect()] {
                let expected: Vec<Datum> = columns.iter().map(|at| values[*at].clone()).collect();
                assert_eq!(project(&schema, &bytes, &columns).unwrap(), expected);
            }
            for cut in 0..bytes.len() {
                assert!(check(&schema, &bytes[..cut]).is_err(), "cut at {cut}");
            }
            assert!(check(&schema, &[&bytes[..], &[0]].concat()).is_err());
        }
    }

    /// Values at the ends of what each type has, and beside them.
    fn extremes() -> Vec<(Scalar, Vec<Datum>)> {
        let integers = |bits: u32| {
            let end = |bits: u32| (1i64 << (bits - 1)).wrapping_sub(1);
            let powers = (0..bits - 1).flat_map(|bit| [1i64 << bit, (1i64 << bit) - 1]);
            let all = powers.flat_map(|n| [n, -n, -n - 1]).chain([end(bits), -end(bits) - 1]);
            all.collect::<Vec<i64>>()
        };
        let patterns: Vec<u64> = (0..64).flat_map(|bit| [1u64 << bit, !(1u64 << bit)]).collect();
        let doubles = patterns.iter().map(|bits| f64::from_bits(*bits));
        let doubles =
            doubles.chain([0.0, -0.0, f64::MIN_POSITIVE, f64::MAX, f64::NAN, f64::INFINITY]);
        let singles = patterns.iter().map(|bits| f32::from_bits((bits >> 32) as u32));
        let texts = ["", "\0", "\u{10ffff}", "a\nb"].map(str::to_owned);
        let texts = || texts.iter().cloned().chain([" ".repeat(70_000)]);
        let interval = |at: i64| Interval { months: at as i32, days: !at as i32, micros: at };
        vec![
            (Scalar::Bool, vec![Datum::Bool(false), Datum::Bool(true)]),
            (Scalar::Int2, integers(16).into_iter().map(|n| Datum::Int2(n as i16)).collect()),
            (Scalar::Int4, integers(32).into_iter().map(|n| Datum::Int4(n as i32)).collect()),
            (Scalar::Int8, integers(64).into_iter().map(Datum::Int8).collect()),
            (Scalar::Float4, singles.map(Datum::Float4).collect()),
            (Scalar::Float8, doubles.map(Datum::Float8).collect()),
            (Scalar::Text, texts().map(Datum::Text).collect()),
            (Scalar::Bytea, texts().map(|text| Datum::Bytea(text.into_bytes())).collect()),
            (Scalar::Timestamptz, integers(64).into_iter().map(Datum::Timestamptz).collect()),
            (Scalar::Timestamp, integers(64).into_iter().map(Datum::Timestamp).collect()),
            (Scalar::Date, integers(32).into_iter().map(|n| Datum::Date(n as i32)).collect()),
            (
                Scalar::Interval,
                integers(64).into_iter().map(|n| Datum::Interval(interval(n))).collect(),
            ),
        ]
    }

    #[test]
    fn extreme_values_come_back_bit_by_bit() {
        for (scalar, values) in extremes() {
            let columns = vec![
                Column::new("one", ColumnType::One(scalar)),
                Column::new("all", ColumnType::Array(scalar)),
            ];
            let schema = Schema { columns, ..Schema::default() };
            for value in &values {
                let pair = vec![value.clone(), Datum::Null, value.clone()];
                let row = [value.clone(), Datum::Array(pair)];
                let bytes = encode("t", &schema, &row).expect("a value of its type");
                check(&schema, &bytes).expect("just encoded");
                let decoded = decode(&schema, &bytes).expect("just encoded");
                // Bytes are compared: NaN is not equal to itself.
                assert_eq!(encode("t", &schema, &decoded).expect("again"), bytes, "{value:?}");
                match (value, &decoded[0]) {
                    (Datum::Float8(a), Datum::Float8(b)) => assert_eq!(a.to_bits(), b.to_bits()),
                    (Datum::Float4(a), Datum::Float4(b)) => assert_eq!(a.to_bits(), b.to_bits()),
                    (a, b) => assert_eq!(a, b),
                }
            }
        }
    }

    #[track_caller]
    fn refused(ty: ColumnType, value: Datum, words: &str) {
        let columns = vec![Column::new("c", ty).not_null()];
        let schema = Schema { columns, ..Schema::default() };
        let error = encode("t", &schema, &[value]).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn what_is_no_value_of_its_column_is_refused() {
        use ColumnType::{Array, One};
        refused(One(Scalar::Int4), Datum::Null, "null value in column \"c\"");
        refused(One(Scalar::Int4), Datum::Int8(1), "is int4, not int8");
        refused(One(Scalar::Int4), Datum::Array(vec![]), "is int4, not an array");
        refused(Array(Scalar::Int4), Datum::Int4(1), "is int4[], not int4");
        refused(Array(Scalar::Int4), Datum::Array(vec![Datum::Array(vec![])]), "not an array");
        refused(One(Scalar::Numeric), Datum::Numeric("1,5".into()), "\"1,5\" is no numeric");
        refused(One(Scalar::Uuid), Datum::Uuid("a0eebc99".into()), "is no uuid");
        refused(One(Scalar::Time), Datum::Time(-1), "is no time");
        let long = Datum::Array(vec![Datum::Null; ELEMENTS_MAX + 1]);
        refused(Array(Scalar::Bool), long, "the limit is 1048576");
        let long = "x".repeat(ROW_SIZE_MAX);
        refused(One(Scalar::Text), Datum::Text(long), "bytes of a row");
        let error = encode("t", &schema(), &[]).unwrap_err();
        assert!(error.to_string().contains("a row of 0 values for the 32 columns"));
    }

    #[test]
    fn a_uuid_has_one_form() {
        let columns = vec![Column::new("c", ColumnType::One(Scalar::Uuid))];
        let schema = Schema { columns, ..Schema::default() };
        let text = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11";
        let bytes = encode("t", &schema, &[Datum::Uuid(text.into())]).unwrap();
        assert_eq!(decode(&schema, &bytes).unwrap(), [Datum::Uuid(text.to_lowercase())]);
    }
}
