//! Series by their labels, from the store and from the keys without samples.

use super::news;
use super::samples;
use super::series::{Found, check_database, record_in};
use super::words::{NOT_READABLE, error};
use crate::dispatch::Context;
use kv::CommandError;
use kv::series::SERIES_DB;
use model::{METRIC_NAME, MatchOp, Matcher};
use std::collections::BTreeMap;

/// Values of one filter.
const VALUES_MAX: usize = 1000;

/// One condition on one label.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    name: String,
    /// Any of these; a single empty one is the label's absence.
    values: Vec<String>,
    is_equal: bool,
}

impl Filter {
    /// Reads `l=v`, `l!=v`, `l=`, `l!=`, `l=(a,b)`, `l!=(a,b)`, `l=()` or `l!=()`.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn parse(text: &[u8]) -> Result<Filter, CommandError> {
        let failed = || error("failed parsing labels");
        let text = std::str::from_utf8(text).map_err(|_| failed())?;
        let (name, value) = text.split_once('=').ok_or_else(failed)?;
        let (name, is_equal) = match name.strip_suffix('!') {
            Some(name) => (name, false),
            None => (name, true),
        };
        if name.is_empty() {
            return Err(failed());
        }
        let unquoted = |value: &str| value.trim().trim_matches(['"', '\'']).to_owned();
        let values: Vec<String> = match value.strip_prefix('(') {
            Some(")") => Vec::new(),
            Some(list) => {
                list.strip_suffix(')').ok_or_else(failed)?.split(',').map(unquoted).collect()
            }
            None => vec![unquoted(value)],
        };
        let is_list = value.starts_with('(');
        if is_list && values.iter().any(String::is_empty) || VALUES_MAX < values.len() {
            return Err(failed());
        }
        Ok(Filter { name: name.to_owned(), values, is_equal })
    }

    /// Whether it names values that a series must have.
    fn is_demanding(&self) -> bool {
        self.is_equal && self.values.iter().all(|value| !value.is_empty())
    }

    fn matches(&self, value: Option<&str>) -> bool {
        self.values.iter().any(|wanted| wanted == value.unwrap_or_default()) == self.is_equal
    }

    /// The same for the store.
    fn matcher(&self) -> Matcher {
        let (op, value) = match (self.values.as_slice(), self.is_equal) {
            ([value], true) => (MatchOp::Equal, value.clone()),
            ([value], false) => (MatchOp::NotEqual, value.clone()),
            // None of no values: what no text fits, and all do.
            ([], true) => (MatchOp::NotRegex, ".*".to_owned()),
            ([], false) => (MatchOp::Regex, ".*".to_owned()),
            (values, is_equal) => {
                let escaped: Vec<String> = values.iter().map(|value| escape(value)).collect();
                (if is_equal { MatchOp::Regex } else { MatchOp::NotRegex }, escaped.join("|"))
            }
        };
        Matcher::new(&*self.name, op, value)
    }
}

/// A regular expression that matches nothing but this text.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// What of a series was looked up: its record is not needed to compare.
fn matches(found: &Found, filters: &[Filter]) -> bool {
    filters.iter().all(|filter| match &*filter.name {
        METRIC_NAME => filter.matches(found.sets.last().map(|labels| labels.metric_name())),
        name => filter.matches(found.label(name)),
    })
}

/// The matchers of filters.
pub fn matchers(filters: &[Filter]) -> Vec<Matcher> {
    let mut all: Vec<Matcher> = filters.iter().map(Filter::matcher).collect();
    // Series without a name have no key.
    all.push(Matcher::new(METRIC_NAME, MatchOp::NotEqual, ""));
    all
}

/// The series that match, by key. Those of other doors may have no sample any more.
///
/// # Errors
/// When the store or a key cannot be read, no filter demands a value, or the client may not read one
/// of them.
pub fn find_all(
    context: &mut Context<'_, '_>,
    filters: &[Filter],
) -> Result<Vec<Found>, CommandError> {
    demand(filters)?;
    let found = find_any(context, filters)?;
    match found.iter().all(|one| context.may_read(&one.key)) {
        true => Ok(found),
        false => Err(NOT_READABLE),
    }
}

/// The same, without those that the client may not read.
///
/// # Errors
/// When the store or a key cannot be read.
pub fn find_readable(
    context: &mut Context<'_, '_>,
    filters: &[Filter],
) -> Result<Vec<Found>, CommandError> {
    let mut found = find_any(context, filters)?;
    found.retain(|one| context.may_read(&one.key));
    Ok(found)
}

/// Fails unless a filter names values that a series must have.
///
/// # Errors
/// Then.
pub fn demand(filters: &[Filter]) -> Result<(), CommandError> {
    match filters.iter().any(Filter::is_demanding) {
        true => Ok(()),
        false => Err(error("please provide at least one matcher")),
    }
}

fn find_any(context: &mut Context<'_, '_>, filters: &[Filter]) -> Result<Vec<Found>, CommandError> {
    check_database(context)?;
    news::settle(context)?;
    let mut all: BTreeMap<Vec<u8>, Found> = BTreeMap::new();
    for labels in samples::series(&context.redis.app, &[matchers(filters)])? {
        let key = labels.metric_name().as_bytes();
        let own = record_of(context, key)?.filter(|own| own.sets.contains(&labels));
        let found = own.unwrap_or_else(|| Found::foreign(&labels));
        if matches(&found, filters) {
            all.insert(found.key.clone(), found);
        }
    }
    for key in context.keys.listed_series(true)? {
        if let Some(found) = record_of(context, &key)?.filter(|found| matches(found, filters)) {
            all.insert(key, found);
        }
    }
    Ok(all.into_values().collect())
}

/// The series of this door of that key.
fn record_of(context: &mut Context<'_, '_>, key: &[u8]) -> Result<Option<Found>, CommandError> {
    match context.keys.value(SERIES_DB, key)? {
        Some(kv::Value::Series(_)) => {
            let record = record_in(context.keys, key)?;
            Ok(record.map(|record| Found::own(key, record)))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_as_clients_write_them() {
        let parse = |text: &str| Filter::parse(text.as_bytes()).expect("a filter");
        assert!(parse("a=b").matches(Some("b")) && !parse("a=b").matches(None));
        assert!(parse("a!=b").matches(None) && !parse("a!=b").matches(Some("b")));
        assert!(parse("a=").matches(None) && parse("a!=").matches(Some("x")));
        assert!(parse("a=(b,c)").matches(Some("c")) && !parse("a!=(b,c)").matches(Some("c")));
        assert!(!parse("a=").is_demanding() && parse("a=(b)").is_demanding());
        assert!(!parse("a=()").matches(Some("b")) && !parse("a=()").matches(None));
        assert!(parse("a!=()").matches(Some("b")) && parse("a!=()").matches(None));
        assert!(Filter::parse(b"a").is_err() && Filter::parse(b"a=(b").is_err());
        assert_eq!(parse("a=(b.c,d)").matcher().value, "b\\.c|d");
    }
}
