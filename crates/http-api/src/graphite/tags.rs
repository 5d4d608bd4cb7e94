//! Graphite's tags: `/tags`, the series of expressions, and completion for input fields.
//!
//! A tag is a label; the tag `name` is the metric's name. Tags are those of all time, as Graphite
//! has no time here.

use super::{answers, check_entries, refuse_jsonp};
use crate::http::answer::Answer;
use crate::http::partial::Partial;
use crate::http::request::selection;
use crate::http::request::{Request, decode_percent};
use app::App;
use model::{Labels, METRIC_NAME, MatchOp, Matcher, TimeRange};
use net::failure::Failure;
use std::sync::Arc;

/// The tag of a metric's name.
const NAME_TAG: &str = "name";
/// Entries of a completion that says no `limit`, as in Graphite.
const COMPLETION_DEFAULT: usize = 100;
/// Expressions in one request.
const EXPRESSIONS_MAX: usize = 1000;

/// `/tags?filter=ho&limit=10`: the tags whose names start with a match of `filter`.
///
/// # Errors
/// 400 for a filter that is no regular expression.
pub fn tags(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let partial = Partial::of(app, request)?;
    let mut found = tag_names(app, request, &partial, &[])?;
    if let Some(filter) = request.params.filled("filter") {
        let regexp = re2::Expression::parse(filter, false)
            .and_then(|parsed| parsed.compile_prefix(re2::Limits::new(promql::REGEX_SIZE_MAX)))
            .map_err(|error| selection::invalid("filter", &error))?;
        found.retain(|tag| regexp.is_match(tag));
    }
    cut(&mut found, selection::limit(request)?);
    partial.finish(app, answers::tags(found))
}

/// `/tags/host?filter=web&limit=10`: the values of one tag that start with a match of `filter`.
///
/// # Errors
/// As [`tags`].
pub fn values(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let tag = decode_percent(request.captured.as_bytes()).into_owned();
    let filter = request.params.filled("filter");
    let matchers: Vec<Matcher> =
        filter.map(|text| starts_with(label_of(&tag), text)).into_iter().collect();
    let partial = Partial::of(app, request)?;
    let mut found = tag_values(app, request, &partial, &tag, &matchers)?;
    cut(&mut found, selection::limit(request)?);
    check_entries(found.len())?;
    partial.finish(app, answers::values(tag, found))
}

/// `/tags/findSeries?expr=name=cpu&expr=host=~web`: the series as `name;tag=value;...`.
///
/// # Errors
/// 400 for an expression that is none, 422 for too many series.
pub fn find_series(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let matchers = expressions(request)?;
    if matchers.is_empty() {
        let message = "no expr parameter provided; expr=name=NAME asks for one metric";
        return Err(Failure::bad_input(message));
    }
    let limits = selection::limits(app, request)?;
    let partial = Partial::of(app, request)?;
    let found = partial.noting(app).series(&[matchers], TimeRange::ALL, &limits)?;
    let mut paths: Vec<String> = found.iter().map(canonical).collect();
    paths.sort_unstable();
    cut(&mut paths, selection::limit(request)?);
    check_entries(paths.len())?;
    partial.finish(app, answers::strings(paths))
}

/// `/tags/autoComplete/tags?tagPrefix=ho&expr=...`: tags to choose from.
///
/// # Errors
/// As [`find_series`].
pub fn complete_tags(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    refuse_jsonp(request)?;
    let partial = Partial::of(app, request)?;
    let mut found = tag_names(app, request, &partial, &expressions(request)?)?;
    if let Some(prefix) = request.params.filled("tagPrefix") {
        found.retain(|tag| tag.starts_with(prefix));
    }
    cut(&mut found, selection::limit(request)?.or(Some(COMPLETION_DEFAULT)));
    partial.finish(app, answers::strings(found))
}

/// `/tags/autoComplete/values?tag=host&valuePrefix=web&expr=...`: values to choose from.
///
/// # Errors
/// As [`find_series`].
pub fn complete_values(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    refuse_jsonp(request)?;
    let Some(tag) = request.params.filled("tag") else {
        return Err(Failure::bad_input("no tag parameter provided; tag=name lists metrics"));
    };
    let mut matchers = expressions(request)?;
    if let Some(prefix) = request.params.filled("valuePrefix") {
        matchers.push(starts_with(label_of(tag), &regex::escape(prefix)));
    }
    let partial = Partial::of(app, request)?;
    let mut found = tag_values(app, request, &partial, tag, &matchers)?;
    cut(&mut found, selection::limit(request)?.or(Some(COMPLETION_DEFAULT)));
    partial.finish(app, answers::strings(found))
}

fn tag_names(
    app: &App,
    request: &Request,
    partial: &Partial,
    matchers: &[Matcher],
) -> Result<Vec<String>, Failure> {
    let limits = selection::limits(app, request)?;
    let noting = partial.noting(app);
    let mut found = noting.label_names(&[matchers.to_vec()], TimeRange::ALL, &limits)?;
    for name in &mut found {
        if name == METRIC_NAME {
            *name = NAME_TAG.to_string();
        }
    }
    found.sort_unstable();
    found.dedup();
    check_entries(found.len())?;
    Ok(found)
}

fn tag_values(
    app: &App,
    request: &Request,
    partial: &Partial,
    tag: &str,
    matchers: &[Matcher],
) -> Result<Vec<String>, Failure> {
    let limits = selection::limits(app, request)?;
    let (noting, sets) = (partial.noting(app), [matchers.to_vec()]);
    Ok(noting.label_values(label_of(tag), &sets, TimeRange::ALL, &limits)?)
}

fn cut(list: &mut Vec<String>, limit: Option<usize>) {
    list.truncate(limit.unwrap_or(usize::MAX));
}

fn label_of(tag: &str) -> &str {
    if tag == NAME_TAG { METRIC_NAME } else { tag }
}

/// Graphite's expressions are anchored at the start only.
fn starts_with(label: &str, regex: &str) -> Matcher {
    Matcher::new(label, MatchOp::Regex, format!("(?:{regex}).*"))
}

fn expressions(request: &Request) -> Result<Vec<Matcher>, Failure> {
    let texts: Vec<&str> = request.params.all("expr").collect();
    if EXPRESSIONS_MAX < texts.len() {
        let reason = format!("{} of them, the limit is {EXPRESSIONS_MAX}", texts.len());
        return Err(selection::invalid("expr", &reason));
    }
    texts.into_iter().map(expression).collect()
}

/// `tag=value`, `tag!=value`, `tag=~regex`, `tag!=~regex`
fn expression(text: &str) -> Result<Matcher, Failure> {
    let Some((tag, value)) = text.split_once('=').filter(|(tag, _)| !matches!(*tag, "" | "!"))
    else {
        let reason = format!("{text:?} is no expression; write tag=value or tag=~regex");
        return Err(selection::invalid("expr", &reason));
    };
    let (tag, is_negated) = match tag.strip_suffix('!') {
        Some(tag) => (tag, true),
        None => (tag, false),
    };
    let mut matcher = match value.strip_prefix('~') {
        Some(regex) => starts_with(label_of(tag), regex),
        None => Matcher::equal(label_of(tag), value),
    };
    if is_negated {
        matcher.op = match matcher.op {
            MatchOp::Equal => MatchOp::NotEqual,
            _ => MatchOp::NotRegex,
        };
    }
    Ok(matcher)
}

/// `name;a=1;b=2`
fn canonical(labels: &Labels) -> String {
    let mut path = labels.metric_name().to_string();
    for (name, value) in labels.iter().filter(|(name, _)| *name != METRIC_NAME) {
        path.push(';');
        path.push_str(name);
        path.push('=');
        path.push_str(value);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_matchers() {
        let check = |text: &str, expected: Matcher| {
            assert_eq!(expression(text).expect(text), expected, "{text}");
        };
        check("name=cpu", Matcher::equal(METRIC_NAME, "cpu"));
        check("host=", Matcher::equal("host", ""));
        check("host=a=b", Matcher::equal("host", "a=b"));
        check("host!=a", Matcher::new("host", MatchOp::NotEqual, "a"));
        check("host=~a|b", Matcher::new("host", MatchOp::Regex, "(?:a|b).*"));
        check("host!=~a", Matcher::new("host", MatchOp::NotRegex, "(?:a).*"));
        for text in ["", "host", "=x", "!=x"] {
            assert!(expression(text).is_err(), "{text}");
        }
    }

    #[test]
    fn series_have_one_canonical_path() {
        let labels = Labels::from_pairs(&[(METRIC_NAME, "cpu"), ("host", "a"), ("Dc", "x;y")]);
        assert_eq!(canonical(&labels), "cpu;Dc=x;y;host=a");
        assert_eq!(canonical(&Labels::from_pairs(&[("host", "a")])), ";host=a");
    }
}
