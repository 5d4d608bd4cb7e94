//! What an expression can be, and arithmetic with it.

use crate::ast::Function;
use crate::builtins::Builtin;
use crate::error::{Error, Result};
use crate::stream::Stream;
use crate::time::Duration;
use std::cmp::Ordering;
use std::sync::Arc;

/// Bytes of a string that a query makes.
const STRING_SIZE_MAX: usize = 1 << 20;
/// Arrays, records and functions within each other: what is dropped calls itself that often.
pub(crate) const DEPTH_MAX: u32 = 500;
/// Bytes of memory that a value takes beside what it holds, about.
const HEADER_SIZE: usize = 48;
/// Bytes of a name that is bound to a value, or of a record's field.
pub(crate) const NAME_SIZE: usize = 96;

/// A value.
#[derive(Clone, Debug, Default)]
pub(crate) enum Value {
    #[default]
    Null,
    Boolean(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(Arc<str>),
    Time(i64),
    Duration(Duration),
    Regex(Arc<influxql::Pattern>),
    Array(Arc<List>),
    Dictionary(Arc<Dictionary>),
    Record(Arc<Record>),
    Closure(Arc<Closure>),
    Builtin(&'static Builtin),
    Package(Arc<str>),
    Stream(Arc<Stream>),
}

/// Values in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    items: Vec<Value>,
    depth: u32,
}

impl std::ops::Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

/// The depth of what holds these.
fn depth_over<'v>(values: impl Iterator<Item = &'v Value>) -> u32 {
    values.map(Value::depth).max().unwrap_or(0) + 1
}

/// Values by keys of one type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dictionary {
    /// Sorted by key.
    entries: Vec<(Value, Value)>,
    depth: u32,
}

impl Dictionary {
    /// Sorts entries; the last one of a key counts.
    ///
    /// # Errors
    /// When a key has no order, or another type than the first one.
    pub(crate) fn new(mut entries: Vec<(Value, Value)>) -> Result<Dictionary> {
        let first = entries.first().map(|(key, _)| key.kind());
        for (key, _) in &entries {
            if key.kind().is_none() || Some(key.kind()) != first {
                let found = key.type_words();
                let message = format!("keys of a dictionary must have one type, found {found}");
                return Err(Error::runtime(message));
            }
        }
        entries.reverse();
        entries.sort_by(|one, other| one.0.order(&other.0));
        entries.dedup_by(|one, other| one.0.order(&other.0).is_eq());
        let depth = depth_over(entries.iter().map(|(_, value)| value));
        Ok(Dictionary { entries, depth })
    }

    pub(crate) fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    pub(crate) fn get(&self, key: &Value) -> Option<&Value> {
        let at = self.entries.binary_search_by(|(other, _)| other.order(key)).ok()?;
        self.entries.get(at).map(|(_, value)| value)
    }

    /// Type of the keys, if there are any.
    pub(crate) fn key_kind(&self) -> Option<Kind> {
        self.entries.first().and_then(|(key, _)| key.kind())
    }
}

/// Names and values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) fields: Vec<(Arc<str>, Value)>,
    /// Whether it is a row, in which what is not there is null.
    pub(crate) is_row: bool,
    depth: u32,
}

impl Record {
    pub(crate) fn new(fields: Vec<(Arc<str>, Value)>) -> Record {
        let depth = depth_over(fields.iter().map(|(_, value)| value));
        Record { fields, is_row: false, depth }
    }

    /// A row.
    pub(crate) fn row(fields: Vec<(Arc<str>, Value)>) -> Record {
        Record { is_row: true, ..Record::new(fields) }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().rev().find(|(other, _)| &**other == name).map(|(_, value)| value)
    }

    pub(crate) fn set(&mut self, name: &Arc<str>, value: Value) {
        self.depth = self.depth.max(value.depth() + 1);
        match self.fields.iter_mut().find(|(other, _)| other == name) {
            Some(field) => field.1 = value,
            None => self.fields.push((name.clone(), value)),
        }
    }
}

/// A function of the text, with the names that it sees.
#[derive(Debug)]
pub(crate) struct Closure {
    pub(crate) function: Arc<Function>,
    pub(crate) names: Names,
}

/// Names in sight, the newest first; shared, as closures keep them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Option<Arc<Bound>>);

#[derive(Debug)]
struct Bound {
    name: Arc<str>,
    value: Value,
    older: Names,
    /// Of the value, or of an older one.
    depth: u32,
}

impl Names {
    pub(crate) fn with(&self, name: Arc<str>, value: Value) -> Names {
        let depth = value.depth().max(self.depth());
        Names(Some(Arc::new(Bound { name, value, older: self.clone(), depth })))
    }

    /// The depth of the deepest value.
    pub(crate) fn depth(&self) -> u32 {
        self.0.as_ref().map_or(0, |bound| bound.depth)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let mut at = self.0.as_deref();
        while let Some(bound) = at {
            if &*bound.name == name {
                return Some(&bound.value);
            }
            at = bound.older.0.as_deref();
        }
        None
    }

    /// The names, the newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let bounds = std::iter::successors(self.0.as_deref(), |bound| bound.older.0.as_deref());
        bounds.map(|bound| &*bound.name)
    }
}

impl Drop for Names {
    /// One after the other: there may be many, and each holds the next.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut bound) = next.and_then(Arc::into_inner) {
            next = bound.older.0.take();
        }
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Boolean,
    Integer,
    Unsigned,
    Float,
    Text,
    Time,
    Duration,
}

impl Kind {
    /// As annotated CSV calls it.
    pub(crate) fn datatype(self) -> &'static str {
        match self {
            Kind::Boolean => "boolean",
            Kind::Integer => "long",
            Kind::Unsigned => "unsignedLong",
            Kind::Float => "double",
            Kind::Text => "string",
            Kind::Time => "dateTime:RFC3339",
            Kind::Duration => "duration",
        }
    }

    /// As Flux calls it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Kind::Boolean => "bool",
            Kind::Integer => "int",
            Kind::Unsigned => "uint",
            Kind::Float => "float",
            Kind::Text => "string",
            Kind::Time => "time",
            Kind::Duration => "duration",
        }
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Kind::Integer | Kind::Unsigned | Kind::Float)
    }
}

impl Value {
    /// An array.
    pub(crate) fn list(items: Vec<Value>) -> Value {
        let depth = depth_over(items.iter());
        Value::Array(Arc::new(List { items, depth }))
    }

    /// How many values are within each other here.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Value::Array(list) => list.depth,
            Value::Dictionary(dictionary) => dictionary.depth,
            Value::Record(record) => record.depth,
            Value::Closure(closure) => closure.names.depth() + 1,
            Value::Stream(stream) => stream.depth() + 1,
            _ => 0,
        }
    }

    pub(crate) fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// Bytes of memory of a value that was just made, without those of the values in it, which were
    /// counted when they were made.
    pub(crate) fn size(&self) -> usize {
        match self {
            Value::Text(text) => HEADER_SIZE + text.len(),
            Value::Regex(regex) => HEADER_SIZE + regex.text.len() + regex.memory(),
            Value::Array(items) => HEADER_SIZE + items.len() * size_of::<Value>(),
            Value::Dictionary(dictionary) => {
                HEADER_SIZE + dictionary.entries.len() * size_of::<(Value, Value)>()
            }
            Value::Record(record) => HEADER_SIZE + record.fields.len() * NAME_SIZE,
            Value::Closure(_) => NAME_SIZE,
            Value::Stream(stream) => HEADER_SIZE + stream.size(),
            _ => 0,
        }
    }

    /// Bytes of memory of the value and all that it refers to; nothing where that is not told at a
    /// glance: values within each other may be shared, and functions hold what they see.
    pub(crate) fn whole_size(&self) -> Option<usize> {
        let cell = |value: &Value| match value {
            Value::Array(_) | Value::Record(_) | Value::Dictionary(_) => None,
            value => value.whole_size(),
        };
        match self {
            Value::Closure(_) | Value::Dictionary(_) => None,
            Value::Stream(stream) => stream.is_ready().then(|| self.size()),
            Value::Array(list) => sum_of(self.size(), list.iter().map(cell)),
            Value::Record(record) => {
                sum_of(self.size(), record.fields.iter().map(|(_, value)| cell(value)))
            }
            value => Some(value.size()),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The type of a column that it can stand in.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Value::Boolean(_) => Some(Kind::Boolean),
            Value::Integer(_) => Some(Kind::Integer),
            Value::Unsigned(_) => Some(Kind::Unsigned),
            Value::Float(_) => Some(Kind::Float),
            Value::Text(_) => Some(Kind::Text),
            Value::Time(_) => Some(Kind::Time),
            Value::Duration(_) => Some(Kind::Duration),
            _ => None,
        }
    }

    /// As Flux calls its type.
    pub(crate) fn type_words(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Regex(_) => "regexp",
            Value::Array(_) => "array",
            Value::Dictionary(_) => "dictionary",
            Value::Record(_) => "record",
            Value::Closure(_) | Value::Builtin(_) => "function",
            Value::Package(_) => "package",
            Value::Stream(_) => "stream of tables",
            value => value.kind().map_or("value", Kind::words),
        }
    }

    /// The number that it is, or as near as a float comes.
    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            Value::Integer(value) => Some(*value as f64),
            Value::Unsigned(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The order of two cells: null before all, types before values.
    pub(crate) fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
            (Value::Unsigned(a), Value::Unsigned(b)) => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            (Value::Time(a), Value::Time(b)) => a.cmp(b),
            (Value::Duration(a), Value::Duration(b)) => {
                (a.months, a.nanos).cmp(&(b.months, b.nanos))
            }
            (a, b) => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                _ => a.kind().cmp(&b.kind()),
            },
        }
    }

    /// As `string()` and `${}` print it.
    pub(crate) fn print(&self) -> Result<String> {
        Ok(match self {
            Value::Null => String::new(),
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Unsigned(value) => value.to_string(),
            Value::Float(value) => print_float(*value),
            Value::Text(text) => text.to_string(),
            Value::Time(time) => print_time(*time),
            Value::Duration(duration) => duration.words(),
            Value::Regex(regex) => regex.text.clone(),
            other => {
                let message = format!("a {} cannot be made a string", other.type_words());
                return Err(Error::runtime(message));
            }
        })
    }
}

/// All of these together, if all are known.
fn sum_of(own: usize, mut sizes: impl Iterator<Item = Option<usize>>) -> Option<usize> {
    sizes.try_fold(own, |sum, size| Some(sum + size?))
}

/// Without an exponent, with as many digits as tell it from its neighbours.
pub(crate) fn print_float(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_string(),
        f64::INFINITY => "+Inf".to_string(),
        f64::NEG_INFINITY => "-Inf".to_string(),
        value => format!("{value}"),
    }
}

/// RFC 3339.
pub(crate) fn print_time(time: i64) -> String {
    let mut out = String::new();
    influxql::format_time(time, None, &mut out);
    out
}

/// Two strings as one.
pub(crate) fn joined(a: &str, b: &str) -> Result<Value> {
    check_size(a.len() + b.len())?;
    Ok(Value::Text(format!("{a}{b}").into()))
}

/// Fails where a string would be too long.
pub(crate) fn check_size(size: usize) -> Result<()> {
    match STRING_SIZE_MAX < size {
        true => {
            let message = format!("a string of {size} bytes, the limit is {STRING_SIZE_MAX}");
            Err(Error::limit(message))
        }
        false => Ok(()),
    }
}

/// `left op right`; null where one of them is.
pub(crate) fn binary(op: &str, left: &Value, right: &Value) -> Result<Value> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    let found = match op {
        "==" | "!=" | "<" | "<=" | ">" | ">=" => compare(op, left, right),
        "=~" | "!~" => matched(op, left, right),
        _ => arithmetic(op, left, right)?,
    };
    found.ok_or_else(|| {
        let (left, right) = (left.type_words(), right.type_words());
        Error::runtime(format!("unsupported binary expression {left} {op} {right}"))
    })
}

/// Whether a number is less than another; NaN is neither less nor more than any.
pub(crate) fn is_less(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => left < right,
        _ => left.order(right) == Ordering::Less,
    }
}

/// Two values compared; nothing where they have no order.
pub(crate) fn compare(op: &str, left: &Value, right: &Value) -> Option<Value> {
    let order = match (left, right) {
        (Value::Float(_), Value::Integer(_) | Value::Unsigned(_) | Value::Float(_))
        | (Value::Integer(_) | Value::Unsigned(_), Value::Float(_)) => {
            left.as_f64()?.partial_cmp(&right.as_f64()?)
        }
        (Value::Integer(a), Value::Unsigned(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Unsigned(a), Value::Integer(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (a, b) if a.kind().is_some() && a.kind() == b.kind() => Some(a.order(b)),
        _ => return None,
    };
    let is_true = match op {
        "==" => order == Some(Ordering::Equal),
        "!=" => order != Some(Ordering::Equal),
        "<" => order == Some(Ordering::Less),
        "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        ">" => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    };
    Some(Value::Boolean(is_true))
}

fn matched(op: &str, left: &Value, right: &Value) -> Option<Value> {
    let (Value::Text(text), Value::Regex(regex)) = (left, right) else { return None };
    Some(Value::Boolean(regex.regex().is_match(text) == (op == "=~")))
}

fn arithmetic(op: &str, left: &Value, right: &Value) -> Result<Option<Value>> {
    Ok(match (left, right) {
        (Value::Float(a), Value::Float(b)) => floats(op, *a, *b),
        (Value::Integer(a), Value::Integer(b)) => integers(op, *a, *b)?,
        (Value::Unsigned(a), Value::Unsigned(b)) => unsigned(op, *a, *b)?,
        (Value::Text(a), Value::Text(b)) if op == "+" => Some(joined(a, b)?),
        (Value::Time(time), Value::Duration(duration)) => match op {
            "+" => Some(Value::Time(duration.after(*time))),
            "-" => Some(Value::Time(duration.negated().after(*time))),
            _ => None,
        },
        (Value::Duration(a), Value::Duration(b)) => match op {
            "+" => a.plus(*b).map(Value::Duration),
            "-" => a.plus(b.negated()).map(Value::Duration),
            _ => None,
        },
        (Value::Duration(a), Value::Integer(b)) if op == "*" => a.times(*b).map(Value::Duration),
        (Value::Integer(a), Value::Duration(b)) if op == "*" => b.times(*a).map(Value::Duration),
        _ => None,
    })
}

fn floats(op: &str, a: f64, b: f64) -> Option<Value> {
    Some(Value::Float(match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "%" => a % b,
        "^" => a.powf(b),
        _ => return None,
    }))
}

fn by_zero() -> Error {
    Error::runtime("cannot divide by zero")
}

fn integers(op: &str, a: i64, b: i64) -> Result<Option<Value>> {
    Ok(Some(Value::Integer(match op {
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => return Err(by_zero()),
        "/" => a.wrapping_div(b),
        "%" => a.wrapping_rem(b),
        "^" => return Ok(Some(Value::Float((a as f64).powf(b as f64)))),
        _ => return Ok(None),
    })))
}

fn unsigned(op: &str, a: u64, b: u64) -> Result<Option<Value>> {
    Ok(Some(Value::Unsigned(match op {
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => return Err(by_zero()),
        "/" => a.wrapping_div(b),
        "%" => a.wrapping_rem(b),
        "^" => return Ok(Some(Value::Float((a as f64).powf(b as f64)))),
        _ => return Ok(None),
    })))
}
