//! Values, and the types that columns have.

use crate::calendar;
use std::fmt;

/// The type of a value that is no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// True or false.
    Bool,
    /// 16 bits.
    Int2,
    /// 32 bits.
    Int4,
    /// 64 bits.
    Int8,
    /// 32 bits, IEEE 754.
    Float4,
    /// 64 bits, IEEE 754.
    Float8,
    /// Decimal digits, as many as there are.
    Numeric,
    /// Any characters but the one with code 0 are usual; that one is not refused.
    Text,
    /// A moment.
    Timestamptz,
    /// What a clock on the wall shows, wherever it hangs.
    Timestamp,
    /// A day.
    Date,
    /// JSON, as the text that it came in: whoever wants it checked or in order does that before.
    Jsonb,
    /// Months, days and microseconds.
    Interval,
    /// 128 bits.
    Uuid,
    /// Bytes.
    Bytea,
    /// A time of day.
    Time,
}

impl Scalar {
    /// All, in the order of their numbers in files, which begin with 1.
    pub const ALL: [Scalar; 16] = [
        Scalar::Bool,
        Scalar::Int2,
        Scalar::Int4,
        Scalar::Int8,
        Scalar::Float4,
        Scalar::Float8,
        Scalar::Numeric,
        Scalar::Text,
        Scalar::Timestamptz,
        Scalar::Timestamp,
        Scalar::Date,
        Scalar::Jsonb,
        Scalar::Interval,
        Scalar::Uuid,
        Scalar::Bytea,
        Scalar::Time,
    ];

    /// PostgreSQL's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::Int2 => "int2",
            Scalar::Int4 => "int4",
            Scalar::Int8 => "int8",
            Scalar::Float4 => "float4",
            Scalar::Float8 => "float8",
            Scalar::Numeric => "numeric",
            Scalar::Text => "text",
            Scalar::Timestamptz => "timestamptz",
            Scalar::Timestamp => "timestamp",
            Scalar::Date => "date",
            Scalar::Jsonb => "jsonb",
            Scalar::Interval => "interval",
            Scalar::Uuid => "uuid",
            Scalar::Bytea => "bytea",
            Scalar::Time => "time",
        }
    }

    /// Whether keys may have it. JSON has no order that its text shows.
    pub fn is_key(self) -> bool {
        self != Scalar::Jsonb
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ColumnType {
    /// Single values.
    One(Scalar),
    /// Arrays of one dimension; elements may be null.
    Array(Scalar),
}

impl ColumnType {
    /// The type of its values, or of their elements.
    pub fn scalar(self) -> Scalar {
        match self {
            ColumnType::One(scalar) | ColumnType::Array(scalar) => scalar,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnType::One(scalar) => f.write_str(scalar.name()),
            ColumnType::Array(scalar) => write!(f, "{}[]", scalar.name()),
        }
    }
}

/// A span of time whose parts have no fixed ratio, as in PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// Microseconds, where a month has 30 days and a day 24 hours: what PostgreSQL compares.
    pub fn comparable(self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(calendar::MICROS_PER_DAY) + i128::from(self.micros)
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// None.
    Null,
    /// `bool`
    Bool(bool),
    /// `int2`
    Int2(i16),
    /// `int4`
    Int4(i32),
    /// `int8`
    Int8(i64),
    /// `float4`
    Float4(f32),
    /// `float8`
    Float8(f64),
    /// `numeric`: `-12.50`, `1e-7`, `NaN`, `Infinity`, `-Infinity`; kept with its zeros.
    Numeric(String),
    /// `text`
    Text(String),
    /// `timestamptz`: microseconds since 1970 UTC; the least and the greatest are the infinities.
    Timestamptz(i64),
    /// `timestamp`: microseconds since 1970; the least and the greatest are the infinities.
    Timestamp(i64),
    /// `date`: days since 1970; the least and the greatest are the infinities.
    Date(i32),
    /// `jsonb`
    Jsonb(String),
    /// `interval`
    Interval(Interval),
    /// `uuid`: 36 characters, such as `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11`; capitals become small.
    Uuid(String),
    /// `bytea`
    Bytea(Vec<u8>),
    /// `time`: microseconds since midnight, 24:00 included.
    Time(i64),
    /// An array of one dimension: elements of one type, or null.
    Array(Vec<Datum>),
}

impl Datum {
    /// What kind of value it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self.scalar() {
            Some(scalar) => scalar.name(),
            None if matches!(self, Datum::Null) => "null",
            None => "an array",
        }
    }

    /// Its type, unless it is null or an array.
    pub fn scalar(&self) -> Option<Scalar> {
        Some(match self {
            Datum::Null | Datum::Array(_) => return None,
            Datum::Bool(_) => Scalar::Bool,
            Datum::Int2(_) => Scalar::Int2,
            Datum::Int4(_) => Scalar::Int4,
            Datum::Int8(_) => Scalar::Int8,
            Datum::Float4(_) => Scalar::Float4,
            Datum::Float8(_) => Scalar::Float8,
            Datum::Numeric(_) => Scalar::Numeric,
            Datum::Text(_) => Scalar::Text,
            Datum::Timestamptz(_) => Scalar::Timestamptz,
            Datum::Timestamp(_) => Scalar::Timestamp,
            Datum::Date(_) => Scalar::Date,
            Datum::Jsonb(_) => Scalar::Jsonb,
            Datum::Interval(_) => Scalar::Interval,
            Datum::Uuid(_) => Scalar::Uuid,
            Datum::Bytea(_) => Scalar::Bytea,
            Datum::Time(_) => Scalar::Time,
        })
    }
}

impl fmt::Display for Datum {
    /// As messages show it; `sql` has forms of its own for clients.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Null => f.write_str("null"),
            Datum::Bool(value) => write!(f, "{}", if *value { "t" } else { "f" }),
            Datum::Int2(value) => write!(f, "{value}"),
            Datum::Int4(value) => write!(f, "{value}"),
            Datum::Int8(value) => write!(f, "{value}"),
            Datum::Float4(value) => write!(f, "{value}"),
            Datum::Float8(value) => write!(f, "{value}"),
            Datum::Numeric(text) | Datum::Text(text) | Datum::Jsonb(text) | Datum::Uuid(text) => {
                f.write_str(text)
            }
            Datum::Timestamptz(micros) => {
                calendar::write_timestamp(f, *micros)?;
                f.write_str("+00")
            }
            Datum::Timestamp(micros) => calendar::write_timestamp(f, *micros),
            Datum::Date(days) => calendar::write_date(f, i64::from(*days)),
            Datum::Interval(Interval { months, days, micros }) => {
                write!(f, "{months} mons {days} days {micros} us")
            }
            Datum::Bytea(bytes) => {
                f.write_str("\\x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Datum::Time(micros) => calendar::write_time(f, *micros),
            Datum::Array(elements) => {
                for (at, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if at == 0 { "{" } else { "," })?;
                }
                f.write_str(if elements.is_empty() { "{}" } else { "}" })
            }
        }
    }
}
