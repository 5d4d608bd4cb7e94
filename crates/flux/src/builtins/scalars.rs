//! Functions of values: conversions, `math`, `strings`, `regexp`, `date`.

use super::{Builtin, Call, function};
use crate::error::{Error, Result};
use crate::time::{Duration, Windows, parse_time};
use crate::value::{Record, Value, check_size};
use jiff::tz::TimeZone;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "now", now),
    function("system", "time", now),
    function("", "today", today),
    function("", "int", conversion),
    function("", "uint", conversion),
    function("", "float", conversion),
    function("", "string", conversion),
    function("", "bool", conversion),
    function("", "time", conversion),
    function("", "duration", conversion),
    function("", "bytes", conversion),
    function("", "length", length),
    function("", "contains", contains),
    function("math", "abs", of_float),
    function("math", "ceil", of_float),
    function("math", "floor", of_float),
    function("math", "round", of_float),
    function("math", "trunc", of_float),
    function("math", "sqrt", of_float),
    function("math", "cbrt", of_float),
    function("math", "exp", of_float),
    function("math", "log", of_float),
    function("math", "log2", of_float),
    function("math", "log10", of_float),
    function("math", "sin", of_float),
    function("math", "cos", of_float),
    function("math", "tan", of_float),
    function("math", "pow", of_floats),
    function("math", "mod", of_floats),
    function("math", "mMin", of_floats),
    function("math", "mMax", of_floats),
    function("strings", "trimSpace", of_text),
    function("strings", "strlen", string_length),
    function("strings", "trim", trimmed),
    function("strings", "trimPrefix", trimmed),
    function("strings", "trimSuffix", trimmed),
    function("strings", "containsStr", has_piece),
    function("strings", "hasPrefix", has_piece),
    function("strings", "hasSuffix", has_piece),
    function("strings", "joinStr", join_text),
    function("strings", "substring", substring),
    function("regexp", "compile", compile),
    function("regexp", "quoteMeta", of_text),
    function("regexp", "matchRegexpString", match_regex),
    function("regexp", "findString", match_regex),
    function("regexp", "findStringIndex", find_index),
    function("regexp", "getString", pattern_text),
    function("regexp", "splitRegexp", split_regex),
    function("regexp", "replaceAllString", match_regex),
    function("date", "truncate", truncate),
    function("date", "year", part_of_date),
    function("date", "month", part_of_date),
    function("date", "monthDay", part_of_date),
    function("date", "yearDay", part_of_date),
    function("date", "weekDay", part_of_date),
    function("date", "hour", part_of_date),
    function("date", "minute", part_of_date),
    function("date", "second", part_of_date),
    function("date", "millisecond", part_of_date),
    function("date", "microsecond", part_of_date),
    function("date", "nanosecond", part_of_date),
    function("date", "quarter", part_of_date),
    function("date", "week", part_of_date),
    function("date", "add", move_date),
    function("date", "sub", move_date),
    function("experimental", "addDuration", move_date),
    function("experimental", "subDuration", move_date),
];

/// What packages have that is no function.
pub(super) fn constant(path: &str, name: &str) -> Option<Value> {
    match (path, name) {
        ("math", name) => super::mathematics::constant(name),
        ("timezone", "utc") => {
            let fields = vec![
                ("zone".into(), Value::text("UTC")),
                ("offset".into(), Value::Duration(Duration::default())),
            ];
            Some(Value::Record(Arc::new(Record::new(fields))))
        }
        _ => None,
    }
}

fn now(call: Call<'_>) -> Result<Value> {
    call.done()?;
    Ok(Value::Time(call.evaluation.now()))
}

fn today(call: Call<'_>) -> Result<Value> {
    call.done()?;
    let day = 86_400 * 1_000_000_000;
    let now = call.evaluation.now();
    Ok(Value::Time(now.saturating_sub(now.rem_euclid(day))))
}

fn conversion(call: Call<'_>) -> Result<Value> {
    let value = call.required("v")?;
    call.done()?;
    converted(call.name, &value)
}

/// A value as that type.
pub(super) fn converted(kind: &str, value: &Value) -> Result<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let made = match kind {
        "int" => match value {
            Value::Unsigned(value) => Some(Value::Integer(*value as i64)),
            Value::Float(value) => Some(Value::Integer(*value as i64)),
            Value::Boolean(value) => Some(Value::Integer(i64::from(*value))),
            Value::Time(time) => Some(Value::Integer(*time)),
            Value::Duration(duration) => Some(Value::Integer(duration.nanos)),
            Value::Text(text) => text.parse().ok().map(Value::Integer),
            value => Some(value.clone()).filter(|value| matches!(value, Value::Integer(_))),
        },
        "uint" => match value {
            Value::Integer(value) => Some(Value::Unsigned(*value as u64)),
            Value::Float(value) => Some(Value::Unsigned(*value as u64)),
            Value::Boolean(value) => Some(Value::Unsigned(u64::from(*value))),
            Value::Time(time) => Some(Value::Unsigned(*time as u64)),
            Value::Duration(duration) => Some(Value::Unsigned(duration.nanos as u64)),
            Value::Text(text) => text.parse().ok().map(Value::Unsigned),
            value => Some(value.clone()).filter(|value| matches!(value, Value::Unsigned(_))),
        },
        "float" => match value {
            Value::Boolean(value) => Some(Value::Float(f64::from(u8::from(*value)))),
            Value::Text(text) => text.parse().ok().map(Value::Float),
            value => value.as_f64().map(Value::Float),
        },
        "bool" => to_bool(value),
        "time" => match value {
            Value::Integer(time) => Some(Value::Time(*time)),
            Value::Unsigned(time) => i64::try_from(*time).ok().map(Value::Time),
            Value::Text(text) => parse_time(text).map(Value::Time),
            value => Some(value.clone()).filter(|value| matches!(value, Value::Time(_))),
        },
        "duration" => match value {
            Value::Integer(nanos) => Some(Value::Duration(Duration::of_nanos(*nanos))),
            Value::Unsigned(nanos) => Some(Value::Duration(Duration::of_nanos(*nanos as i64))),
            Value::Text(text) => match text.strip_prefix('-') {
                Some(text) => Duration::parse(text).map(Duration::negated),
                None => Duration::parse(text),
            }
            .map(Value::Duration),
            value => Some(value.clone()).filter(|value| matches!(value, Value::Duration(_))),
        },
        _ => Some(Value::Text(value.print()?.into())),
    };
    made.ok_or_else(|| {
        let words = match value {
            Value::Text(text) => format!("string {:?}", text.chars().take(64).collect::<String>()),
            other => other.type_words().to_string(),
        };
        Error::runtime(format!("cannot convert {words} to {kind}"))
    })
}

fn to_bool(value: &Value) -> Option<Value> {
    match value {
        Value::Boolean(value) => Some(Value::Boolean(*value)),
        Value::Text(text) => text.parse().ok().map(Value::Boolean),
        value => match value.as_f64() {
            Some(0.0) => Some(Value::Boolean(false)),
            Some(1.0) => Some(Value::Boolean(true)),
            _ => None,
        },
    }
}

fn length(call: Call<'_>) -> Result<Value> {
    let array = call.required("arr")?;
    call.done()?;
    match &array {
        Value::Array(items) => Ok(Value::Integer(i64::try_from(items.len()).unwrap_or(i64::MAX))),
        other => Err(call.wrong("arr", "array", other)),
    }
}

fn contains(call: Call<'_>) -> Result<Value> {
    let (value, set) = (call.required("value")?, call.required("set")?);
    call.done()?;
    let Value::Array(items) = &set else { return Err(call.wrong("set", "array", &set)) };
    call.evaluation.look_through(items.len() * size_of::<Value>())?;
    let is_it = |item: &Value| item.kind() == value.kind() && item.order(&value).is_eq();
    Ok(Value::Boolean(items.iter().any(is_it)))
}

fn of_float(call: Call<'_>) -> Result<Value> {
    let x = match call.required("x")? {
        Value::Float(x) => x,
        Value::Null => return Ok(Value::Null),
        other => return Err(call.wrong("x", "float", &other)),
    };
    call.done()?;
    Ok(Value::Float(match call.name {
        "abs" => x.abs(),
        "ceil" => x.ceil(),
        "floor" => x.floor(),
        "round" => x.round(),
        "trunc" => x.trunc(),
        "sqrt" => x.sqrt(),
        "cbrt" => x.cbrt(),
        "exp" => x.exp(),
        "log" => x.ln(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        _ => x.tan(),
    }))
}

fn of_floats(call: Call<'_>) -> Result<Value> {
    let (x, y) = (call.required("x")?, call.required("y")?);
    call.done()?;
    let (Value::Float(x), Value::Float(y)) = (&x, &y) else {
        return Err(call.wrong("x", "two floats", if x.kind().is_some() { &y } else { &x }));
    };
    Ok(Value::Float(match call.name {
        "pow" => x.powf(*y),
        "mod" => x % y,
        "mMin" => x.min(*y),
        _ => x.max(*y),
    }))
}

/// The string that a function is of; null passes through.
pub(super) fn subject(call: &Call<'_>) -> Result<Option<Arc<str>>> {
    match call.required("v")? {
        Value::Text(text) => {
            call.evaluation.look_through(text.len())?;
            Ok(Some(text))
        }
        Value::Null => Ok(None),
        other => Err(call.wrong("v", "string", &other)),
    }
}

fn of_text(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    call.done()?;
    Ok(Value::text(&match call.name {
        "trimSpace" => text.trim().to_string(),
        _ => regex::escape(&text),
    }))
}

fn string_length(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    call.done()?;
    Ok(Value::Integer(i64::try_from(text.chars().count()).unwrap_or(i64::MAX)))
}

fn trimmed(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let (which, other) = match call.name {
        "trim" => (0, call.required_text("cutset")?),
        "trimPrefix" => (1, call.required_text("prefix")?),
        _ => (2, call.required_text("suffix")?),
    };
    call.done()?;
    Ok(Value::text(match which {
        0 => {
            let set: std::collections::BTreeSet<char> = other.chars().collect();
            text.trim_matches(|c: char| set.contains(&c))
        }
        1 => text.strip_prefix(&*other).unwrap_or(&text),
        _ => text.strip_suffix(&*other).unwrap_or(&text),
    }))
}

fn has_piece(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let has = match call.name {
        "hasPrefix" => text.starts_with(&*call.required_text("prefix")?),
        "hasSuffix" => text.ends_with(&*call.required_text("suffix")?),
        _ => text.contains(&*call.required_text("substr")?),
    };
    call.done()?;
    Ok(Value::Boolean(has))
}

/// Pieces with something between them, within the limit of strings.
pub(super) fn glued(pieces: &[&str], between: &str) -> Result<Value> {
    check_size(pieces.iter().map(|piece| piece.len() + between.len()).sum())?;
    Ok(Value::text(&pieces.join(between)))
}

fn join_text(call: Call<'_>) -> Result<Value> {
    let pieces = call.texts("arr")?.unwrap_or_default();
    let between = call.required_text("v")?;
    call.done()?;
    call.evaluation.look_through(pieces.len() * size_of::<Value>())?;
    let pieces: Vec<&str> = pieces.iter().map(|piece| &**piece).collect();
    glued(&pieces, &between)
}

fn substring(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let start = call.integer("start")?.unwrap_or(0).max(0);
    let end = call.integer("end")?.unwrap_or(i64::MAX);
    call.done()?;
    let count = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let skipped = usize::try_from(start).unwrap_or(usize::MAX);
    let piece: String = text.chars().skip(skipped).take(count).collect();
    Ok(Value::text(&piece))
}

fn compile(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    call.done()?;
    let regex = influxql::pattern(&text).map_err(Error::runtime)?;
    Ok(Value::Regex(Arc::new(regex)))
}

fn match_regex(call: Call<'_>) -> Result<Value> {
    let regex = match call.required("r")? {
        Value::Regex(regex) => regex,
        other => return Err(call.wrong("r", "regexp", &other)),
    };
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let replacement = match call.name {
        "replaceAllString" => Some(call.required_text("t")?),
        _ => None,
    };
    call.done()?;
    call.evaluation.match_through(&regex, text.len())?;
    Ok(match (call.name, replacement) {
        ("matchRegexpString", _) => Value::Boolean(regex.regex().is_match(&text)),
        (_, Some(new)) => return replaced(&call, &regex, (&text, &new)),
        _ => Value::text(regex.regex().find(&text).map_or("", |found| found.as_str())),
    })
}

/// A regular expression and the string that it is matched with; nothing if the string is null.
fn regex_and_text(call: &Call<'_>) -> Result<Option<(Arc<influxql::Pattern>, Arc<str>)>> {
    let regex = match call.required("r")? {
        Value::Regex(regex) => regex,
        other => return Err(call.wrong("r", "regexp", &other)),
    };
    let Some(text) = subject(call)? else { return Ok(None) };
    call.evaluation.match_through(&regex, text.len())?;
    Ok(Some((regex, text)))
}

/// `regexp.findStringIndex(r:, v:)`: bytes from and to, or an empty array.
fn find_index(call: Call<'_>) -> Result<Value> {
    let found = regex_and_text(&call)?;
    call.done()?;
    let Some((regex, text)) = found else { return Ok(Value::Null) };
    let place = |at: usize| Value::Integer(i64::try_from(at).unwrap_or(i64::MAX));
    let found = regex.regex().find(&text);
    let bounds = found.map(|found| vec![place(found.start()), place(found.end())]);
    Ok(Value::list(bounds.unwrap_or_default()))
}

/// `regexp.getString(r:)`
fn pattern_text(call: Call<'_>) -> Result<Value> {
    let regex = call.required("r")?;
    call.done()?;
    match &regex {
        Value::Regex(regex) => Ok(Value::text(&regex.text)),
        other => Err(call.wrong("r", "regexp", other)),
    }
}

/// `regexp.splitRegexp(r:, v:, i:)`: at most `i` pieces, all if it is negative.
fn split_regex(call: Call<'_>) -> Result<Value> {
    let found = regex_and_text(&call)?;
    let missing = || Error::name("splitRegexp: missing required argument i");
    let most = call.integer("i")?.ok_or_else(missing)?;
    call.done()?;
    let Some((regex, text)) = found else { return Ok(Value::Null) };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let (mut pieces, mut start) = (Vec::new(), 0);
    let mut push = |piece: &str| {
        let piece = Value::text(piece);
        call.evaluation.hold(size_of::<Value>() + piece.size())?;
        pieces.push(piece);
        Ok::<usize, Error>(pieces.len())
    };
    if most == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let mut count = 0;
    for found in regex.regex().find_iter(&text) {
        call.evaluation.match_through(&regex, text.len() - found.end())?;
        if count + 1 == most {
            break;
        }
        // Go makes no piece before an empty match at the start, and looks for none at the end.
        if found.end() == 0 || (found.is_empty() && found.start() == text.len()) {
            continue;
        }
        count = push(text.get(start..found.start()).unwrap_or(""))?;
        start = found.end();
    }
    push(text.get(start..).unwrap_or(""))?;
    Ok(Value::list(pieces))
}

/// All places that match, replaced.
fn replaced(
    call: &Call<'_>,
    regex: &influxql::Pattern,
    (text, new): (&str, &str),
) -> Result<Value> {
    let mut out = String::new();
    let mut end = 0;
    for captures in regex.regex().captures_iter(text) {
        let Some(found) = captures.get(0) else { break };
        // The next match may be looked for to the end.
        call.evaluation.match_through(regex, text.len() - found.end())?;
        out.push_str(text.get(end..found.start()).unwrap_or(""));
        let longest = influxql::Pattern::expanded_size_max(new, found.as_str());
        check_size(out.len().saturating_add(longest))?;
        regex.expand(new, &captures, &mut out);
        end = found.end();
    }
    out.push_str(text.get(end..).unwrap_or(""));
    check_size(out.len())?;
    Ok(Value::text(&out))
}

/// The time that a function of `date` is of.
fn moment(call: &Call<'_>, name: &'static str) -> Result<Option<i64>> {
    match call.required(name)? {
        Value::Null => Ok(None),
        value => call.as_time(name, &value).map(Some),
    }
}

/// The zone that a call names, or that of the query.
///
/// # Errors
/// When there is no such zone.
pub(super) fn zone(call: &Call<'_>) -> Result<Option<TimeZone>> {
    match call.optional("location") {
        Some(value) => super::zone_of(&value),
        None => Ok(call.evaluation.zone.borrow().clone()),
    }
}

fn truncate(call: Call<'_>) -> Result<Value> {
    let Some(time) = moment(&call, "t")? else { return Ok(Value::Null) };
    let missing = || Error::name("truncate: missing required argument unit");
    let unit = call.duration("unit")?.ok_or_else(missing)?;
    let zone = zone(&call)?;
    call.done()?;
    let windows =
        Windows { every: unit, period: unit, offset: Duration::default(), zone: zone.as_ref() };
    Ok(Value::Time(windows.start_of(time)))
}

fn part_of_date(call: Call<'_>) -> Result<Value> {
    let Some(time) = moment(&call, "t")? else { return Ok(Value::Null) };
    let zone = zone(&call)?.unwrap_or(TimeZone::UTC);
    call.done()?;
    let moment = jiff::Timestamp::from_nanosecond(i128::from(time))
        .map_err(|_| Error::runtime("a time out of range"))?;
    let civil = zone.to_datetime(moment);
    Ok(Value::Integer(match call.name {
        "year" => i64::from(civil.year()),
        "month" => i64::from(civil.month()),
        "monthDay" => i64::from(civil.day()),
        "yearDay" => i64::from(civil.date().day_of_year()),
        "weekDay" => i64::from(civil.weekday().to_sunday_zero_offset()),
        "hour" => i64::from(civil.hour()),
        "minute" => i64::from(civil.minute()),
        "millisecond" => i64::from(civil.subsec_nanosecond()) / 1_000_000,
        "microsecond" => i64::from(civil.subsec_nanosecond()) / 1_000,
        "nanosecond" => i64::from(civil.subsec_nanosecond()),
        "quarter" => i64::from(civil.month() - 1) / 3 + 1,
        "week" => i64::from(civil.date().iso_week_date().week()),
        _ => i64::from(civil.second()),
    }))
}

fn move_date(call: Call<'_>) -> Result<Value> {
    let is_later = call.name.starts_with("add");
    let name = if is_later { "to" } else { "from" };
    let Some(time) = moment(&call, name)? else { return Ok(Value::Null) };
    let missing = || Error::name(format!("{}: missing required argument d", call.name));
    let distance = call.duration("d")?.ok_or_else(missing)?;
    zone(&call)?;
    call.done()?;
    let distance = if is_later { distance } else { distance.negated() };
    Ok(Value::Time(distance.after(time)))
}
