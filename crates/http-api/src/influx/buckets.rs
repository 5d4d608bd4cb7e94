//! `/api/v2/buckets` and `/api/v2/delete`: buckets are databases, and a predicate is a DELETE of
//! InfluxQL, which refuses what would take another measurement's samples along.

use super::handshakes::bucket_json;
use super::policies::database_and_policy;
use super::query::{Bounds, run};
use crate::http::answer::Answer;
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::unpack;
use app::App;
use hyper::StatusCode;
use influxql::ast::Statement;
use net::failure::Failure;
use serde_json::Value;
use std::sync::Arc;

/// Conditions of one predicate.
const CONDITIONS_MAX: usize = 100;

fn json(app: &Arc<App>, request: &Request) -> Result<Value, Failure> {
    let body = unpack::body(app, request)?;
    let parsed = serde_json::from_slice(&body);
    body.give_back(app);
    parsed.map_err(|error| Failure::bad_input(format!("invalid JSON: {error}")))
}

fn text<'v>(json: &'v Value, name: &str) -> Result<&'v str, Failure> {
    let found = json.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    found.ok_or_else(|| Failure::bad_input(format!("the request has no {name:?}")))
}

fn run_one(
    app: &Arc<App>,
    request: &Request,
    named: (&str, &str),
    statements: &[Statement],
) -> Result<(), Failure> {
    let partial = Partial::of(app, request)?;
    let bounds = Bounds::of(app, request)?;
    let answers = run(app, request, (named, statements), (&partial, &bounds))?;
    match answers.into_iter().find_map(|answer| answer.error) {
        Some(error) => Err(Failure::bad_input(error)),
        None => Ok(()),
    }
}

fn parsed(text: &str) -> Result<Vec<Statement>, Failure> {
    let parsed = influxql::parse(text, &influxql::Parameters::default());
    parsed.map_err(|error| Failure::bad_input(format!("error parsing predicate: {error}")))
}

/// `POST /api/v2/buckets`: a database. Its retention is the server's.
pub fn create(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let json = json(app, request)?;
    let name = text(&json, "name")?;
    if name.contains(['/', '\0']) {
        // Lines for `a/b` are lines for the retention policy `b` of the database `a`.
        return Err(Failure::bad_input(format!(
            "a bucket's name has no slash and no zero byte: {name:?}"
        )));
    }
    if super::query::buckets(app, request)?.iter().any(|other| other == name) {
        return Err(Failure::bad_input(format!("bucket with name {name} already exists")));
    }
    run_one(app, request, (name, ""), &parsed(&format!("CREATE DATABASE {}", identifier(name)))?)?;
    let body = format!("{}\n", bucket_json(name)).into_bytes();
    Ok(Answer::bytes(StatusCode::CREATED, "application/json", body))
}

/// `POST /api/v2/delete?bucket=..`: samples from `start` to `stop`, both included.
pub fn delete(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let json = json(app, request)?;
    let named = request.params.filled("bucket").or_else(|| request.params.filled("bucketID"));
    let named = named.ok_or_else(|| Failure::bad_input("the request has no \"bucket\""))?;
    let all = super::query::buckets(app, request)?;
    let bucket = bucket_of(app, &all, named)
        .ok_or_else(|| Failure::not_found(format!("bucket {named:?} not found")))?;
    let (database, policy) = database_and_policy(bucket);
    let policies = app.policies.get(database);
    let policy = policy.unwrap_or(&policies.default);
    let time = |name: &str| {
        let text = text(&json, name)?;
        let words = || Failure::bad_input(format!("invalid {name}: {text:?} is no RFC 3339"));
        flux::parse_time(text).ok_or_else(words)
    };
    let (start, stop) = (time("start")?, time("stop")?);
    if stop < start {
        return Err(Failure::bad_input("invalid time range: stop is before start"));
    }
    let predicate = match json.get("predicate") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text,
        // To be taken for no predicate would delete everything.
        Some(other) => {
            return Err(Failure::bad_input(format!("invalid predicate: {other} is no string")));
        }
    };
    let statement = statement(predicate, (start, stop)).map_err(Failure::bad_input)?;
    run_one(app, request, (database, policy), &parsed(&statement)?)?;
    Ok(Answer::no_content())
}

/// The bucket of a request: by its name, or by its number. The default policy may be named, too.
fn bucket_of<'b>(app: &App, all: &'b [String], bucket: &'b str) -> Option<&'b str> {
    let named = || {
        let (database, policy) = database_and_policy(bucket);
        let is_there = all.iter().any(|other| other == database);
        (is_there && app.policies.stored_name(database, policy).is_ok()).then_some(bucket)
    };
    let numbered = || all.iter().find(|name| flux::bucket_id(name) == bucket);
    named().or_else(|| numbered().map(String::as_str))
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}

/// The DELETE that a predicate is.
fn statement(predicate: &str, (start, stop): (i64, i64)) -> Result<String, String> {
    let mut from = String::new();
    let mut conditions = vec![format!("time >= {start} AND time <= {stop}")];
    for (key, op, value) in conditions_of(predicate)? {
        match key.as_str() {
            "_measurement" if op == "=" && from.is_empty() => {
                from = format!(" FROM {}", identifier(&value));
            }
            "_measurement" | "_field" | "_value" | "_time" | "time" => {
                return Err(format!(
                    "predicate: {key} {op} is not supported: _measurement = once, and tags"
                ));
            }
            _ => conditions.push(format!("{} {op} {}", identifier(&key), literal(&value))),
        }
    }
    Ok(format!("DELETE{from} WHERE {}", conditions.join(" AND ")))
}

/// `key = "value" AND key != "value"`
fn conditions_of(predicate: &str) -> Result<Vec<(String, &'static str, String)>, String> {
    let mut found = Vec::new();
    let mut rest = predicate.trim();
    while !rest.is_empty() {
        if CONDITIONS_MAX <= found.len() {
            return Err(format!("predicate: more than {CONDITIONS_MAX} conditions"));
        }
        if !found.is_empty() {
            let word = rest.get(..3).filter(|word| word.eq_ignore_ascii_case("and"));
            let behind = rest.get(3..).filter(|behind| behind.starts_with([' ', '\t', '\n']));
            rest = word
                .and(behind)
                .ok_or_else(|| format!("predicate: expected AND before {rest:?}"))?
                .trim_start();
        }
        let (key, behind) = word(rest)?;
        let (op, behind) = match behind.trim_start() {
            text if text.starts_with("=~") || text.starts_with("!~") => {
                return Err(format!("predicate: patterns are not supported: {text:?}"));
            }
            text if text.starts_with("!=") => ("!=", &text[2..]),
            text if text.starts_with("==") => ("=", &text[2..]),
            text if text.starts_with('=') => ("=", &text[1..]),
            text => return Err(format!("predicate: expected = or != before {text:?}")),
        };
        let (value, behind) = word(behind.trim_start())?;
        found.push((key, op, value));
        rest = behind.trim();
    }
    Ok(found)
}

/// A name or a value, in quotes or not, and what is behind it.
fn word(text: &str) -> Result<(String, &str), String> {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        let end = text.find([' ', '\t', '\n', '=', '!', '"', '\'', '(', ')']).unwrap_or(text.len());
        return match end {
            0 => Err(format!("predicate: expected a name or a value before {text:?}")),
            end => Ok((text[..end].to_string(), &text[end..])),
        };
    };
    let mut found = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => found.extend(chars.next().map(|(_, escaped)| escaped)),
            c if c == quote => return Ok((found, &text[at + 1..])),
            c => found.push(c),
        }
    }
    Err(format!("predicate: {text:?} has no end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(predicate: &str, expected: Result<&str, &str>) {
        let found = statement(predicate, (1, 2));
        let found = found.as_deref().map_err(String::as_str);
        assert_eq!(found, expected, "{predicate}");
    }

    #[test]
    fn predicates_are_deletes() {
        let time = "time >= 1 AND time <= 2";
        check("", Ok(&format!("DELETE WHERE {time}")));
        check(
            r#"_measurement="a b" AND host = 'x"y' and rack != "1""#,
            Ok(&format!(r#"DELETE FROM "a b" WHERE {time} AND "host" = 'x"y' AND "rack" != '1'"#)),
        );
        check(
            r#"_field="f""#,
            Err("predicate: _field = is not supported: _measurement = once, and tags"),
        );
        check("a=1 OR b=2", Err("predicate: expected AND before \"OR b=2\""));
        check("a=~/b/", Err("predicate: patterns are not supported: \"=~/b/\""));
        check("a>1", Err("predicate: expected = or != before \"\""));
        check(r#"a="b"#, Err("predicate: \"\\\"b\" has no end"));
        check(r#"it's=1"#, Err("predicate: expected = or != before \"'s=1\""));
        check(r#"t="it's""#, Ok(&format!(r#"DELETE WHERE {time} AND "t" = 'it\'s'"#)));
    }
}
