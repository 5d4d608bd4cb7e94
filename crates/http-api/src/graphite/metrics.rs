//! `/metrics/find`, `/metrics/expand` and `/metrics/index.json`: the tree of paths.

use super::answers::{self, Listing};
use super::paths::{self, Kept};
use super::{asks, check_entries, moment, refuse_jsonp};
use crate::http::answer::Answer;
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use model::{METRIC_NAME, MatchOp, Matcher, PathPattern, TimeRange};
use net::failure::Failure;
use std::sync::Arc;
use store::SelectLimits;

/// Patterns in one request.
const QUERIES_MAX: usize = 1000;

/// What the three routes ask the store.
struct Walk<'a> {
    app: &'a App,
    /// Whose values the paths are.
    label: &'a str,
    range: TimeRange,
    limits: SelectLimits,
    delimiter: &'a str,
    kept: Kept,
    partial: Partial,
}

impl<'a> Walk<'a> {
    fn new(app: &'a App, request: &'a Request) -> Result<Walk<'a>, Failure> {
        refuse_jsonp(request)?;
        Ok(Walk {
            app,
            label: request.params.filled("label").unwrap_or(METRIC_NAME),
            range: moment::range(request)?,
            limits: selection::limits(app, request)?,
            delimiter: request.params.filled("delimiter").unwrap_or("."),
            kept: if asks(request, "leavesOnly") { Kept::Leaves } else { Kept::All },
            partial: Partial::of(app, request)?,
        })
    }

    fn pattern(&self, query: &str) -> Result<PathPattern, Failure> {
        PathPattern::parse(query, self.delimiter)
            .map_err(|error| selection::invalid("query", &error))
    }

    /// The live names of the pattern's subtree, sorted.
    fn names(&self, pattern: &PathPattern) -> Result<Vec<String>, Failure> {
        let sets = [vec![Matcher::new(self.label, MatchOp::Regex, pattern.subtree())]];
        let noting = self.partial.noting(self.app);
        Ok(noting.label_values(self.label, &sets, self.range, &self.limits)?)
    }
}

/// `/metrics/find?query=web.*&format=treejson`: the nodes at the pattern's last part.
///
/// # Errors
/// 400 for a pattern or parameter that makes no sense, 422 for too long an answer.
pub fn find(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let walk = Walk::new(app, request)?;
    let listing = match request.params.filled("format") {
        None | Some("treejson") => Listing::Tree,
        Some("completer") => Listing::Completer,
        Some(other) => {
            let reason = format!("{other:?} is not known; use treejson or completer");
            return Err(selection::invalid("format", &reason));
        }
    };
    let Some(query) = request.params.filled("query") else {
        return Err(Failure::bad_input(
            "no query parameter provided; query=* lists the first parts",
        ));
    };
    let mut query = query.to_string();
    if asks(request, "automatic_variants") {
        query = with_braces(&query, walk.delimiter);
    }
    if listing == Listing::Completer {
        query = query.replace("..", ".*");
        if !query.ends_with('*') {
            query.push('*');
        }
    }
    let pattern = walk.pattern(&query)?;
    let pieces = paths::last_parts(walk.names(&pattern)?, &pattern, walk.kept);
    check_entries(pieces.len())?;
    let found = answers::Found {
        head: pattern.head().to_string(),
        pieces,
        delimiter: pattern.delimiter(),
        has_wildcard: asks(request, "wildcards"),
    };
    walk.partial.finish(app, answers::nodes(found, listing))
}

/// `a,b.c` is `{a,b}.c` for clients that ask with `automatic_variants=1`.
fn with_braces(query: &str, delimiter: &str) -> String {
    let parts =
        query.split(delimiter).map(|part| match part.contains(',') && !part.contains('{') {
            true => format!("{{{part}}}"),
            false => part.to_string(),
        });
    parts.collect::<Vec<_>>().join(delimiter)
}

/// `/metrics/expand?query=web.*.cpu`: the concrete paths that patterns mean.
///
/// # Errors
/// As [`find`].
pub fn expand(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let walk = Walk::new(app, request)?;
    let mut queries: Vec<&str> = Vec::new();
    for query in request.params.all("query") {
        if !queries.contains(&query) {
            queries.push(query);
        }
        if QUERIES_MAX < queries.len() {
            let reason = format!("more than {QUERIES_MAX} of them; use several requests");
            return Err(selection::invalid("query", &reason));
        }
    }
    if queries.iter().all(|query| query.is_empty()) {
        return Err(Failure::bad_input(
            "no query parameter provided; query=* lists the first parts",
        ));
    }
    let (mut by_query, mut count) = (Vec::with_capacity(queries.len()), 0);
    for query in queries {
        let pattern = walk.pattern(query)?;
        let found = paths::whole_paths(walk.names(&pattern)?, &pattern, walk.kept);
        count += found.len();
        check_entries(count)?;
        by_query.push((query.to_string(), found));
    }
    let delimiter = walk.delimiter.chars().next().expect("the patterns have one");
    if asks(request, "groupByExpr") {
        by_query.iter_mut().for_each(|(_, found)| paths::nodes_first(found, delimiter));
        return walk.partial.finish(app, answers::groups(by_query));
    }
    let mut all: Vec<String> = by_query.into_iter().flat_map(|(_, found)| found).collect();
    paths::nodes_first(&mut all, delimiter);
    walk.partial.finish(app, answers::strings(all))
}

/// `/metrics/index.json`: every metric name of all time.
///
/// # Errors
/// 422 for too long an answer.
pub fn index(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    refuse_jsonp(request)?;
    let (limits, partial) = (selection::limits(app, request)?, Partial::of(app, request)?);
    let names = partial.noting(app).label_values(METRIC_NAME, &[], TimeRange::ALL, &limits)?;
    check_entries(names.len())?;
    partial.finish(app, answers::strings(names))
}

#[cfg(test)]
mod tests {
    use super::with_braces;

    #[test]
    fn automatic_variants() {
        for (query, delimiter, expected) in [
            ("", ".", ""),
            ("foo,bar.baz", ".", "{foo,bar}.baz"),
            ("foo,bar.baz", "_", "{foo,bar.baz}"),
            ("a.b*r,b[a-xz]z,aa.bb,cc", ".", "a.{b*r,b[a-xz]z,aa}.{bb,cc}"),
            ("{a,b}.c", ".", "{a,b}.c"),
        ] {
            assert_eq!(with_braces(query, delimiter), expected);
        }
    }
}
