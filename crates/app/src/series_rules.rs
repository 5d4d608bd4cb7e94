//! The text of `--series-limits`: bounds on the series of each metric, or of those that match.
//!
//! ```text
//! each-metric active=100000; {namespace="dev"} active=50000 hourly=10000 daily=20000
//! ```

use promql::matchers_of;
use store::{LimitScope, SeriesLimit};

/// The word that stands for a limit of its own for every metric.
const EACH_METRIC: &str = "each-metric";

/// Parses all rules; no text is no rule.
///
/// # Errors
/// What is wrong with the first rule that is.
pub fn parse(text: &str) -> Result<Vec<SeriesLimit>, String> {
    let rules = split(text, ';');
    rules.into_iter().map(str::trim).filter(|rule| !rule.is_empty()).map(parse_rule).collect()
}

fn parse_rule(rule: &str) -> Result<SeriesLimit, String> {
    let (scope_text, bounds) = match split(rule, '}').as_slice() {
        [selector, ..] if selector.contains('{') => rule.split_at(selector.len() + 1),
        _ => rule.split_at(rule.find(char::is_whitespace).unwrap_or(rule.len())),
    };
    let scope = match scope_text {
        EACH_METRIC => LimitScope::EachMetric,
        selector => LimitScope::Matching(parse_selector(selector)?),
    };
    let mut limit = SeriesLimit {
        name: format!("series-limits: {scope_text}"),
        scope,
        active_max: u64::MAX,
        new_hourly_max: u64::MAX,
        new_daily_max: u64::MAX,
    };
    for bound in bounds.split([' ', ',']).filter(|word| !word.is_empty()) {
        let (name, count) = bound.split_once('=').unwrap_or((bound, ""));
        let place = match name {
            "active" => &mut limit.active_max,
            "hourly" => &mut limit.new_hourly_max,
            "daily" => &mut limit.new_daily_max,
            _ => return Err(format!("{bound:?} is none of active=N, hourly=N, daily=N")),
        };
        *place = count.parse().map_err(|_| format!("{bound:?} has no whole number behind ="))?;
    }
    if [limit.active_max, limit.new_hourly_max, limit.new_daily_max] == [u64::MAX; 3] {
        return Err(format!("{rule:?} limits nothing; add active=N, hourly=N or daily=N"));
    }
    Ok(limit)
}

fn parse_selector(text: &str) -> Result<Vec<model::Matcher>, String> {
    let expr = promql::parse(text)
        .map_err(|error| format!("{text:?} is neither {EACH_METRIC} nor a selector: {error}"))?;
    matchers_of(expr).ok_or_else(|| format!("{text:?} is no series selector"))
}

/// Splits at a character that is not inside quotes.
fn split(text: &str, at: char) -> Vec<&str> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    let (mut quote, mut is_escaped) = (None, false);
    for (idx, c) in text.char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some('"' | '\'') if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == at => {
                pieces.push(&text[start..idx]);
                start = idx + c.len_utf8();
            }
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Matcher;

    #[test]
    fn rules_of_both_kinds() {
        let rules =
            parse(r#" each-metric active=9; up{job="a;}\"=b"} hourly=1, daily=2; ;cpu active=3 "#);
        let rules = rules.expect("rules");
        let limit = |scope, active_max, new_hourly_max, new_daily_max| {
            (scope, active_max, new_hourly_max, new_daily_max)
        };
        let up = vec![Matcher::equal("__name__", "up"), Matcher::equal("job", "a;}\"=b")];
        let cpu = vec![Matcher::equal("__name__", "cpu")];
        let found: Vec<_> = rules
            .iter()
            .map(|rule| {
                let scope = rule.scope.clone();
                limit(scope, rule.active_max, rule.new_hourly_max, rule.new_daily_max)
            })
            .collect();
        let none = u64::MAX;
        let sorted = |mut matchers: Vec<Matcher>| {
            matchers.sort_by(|a, b| a.name.cmp(&b.name));
            LimitScope::Matching(matchers)
        };
        assert_eq!(found[0], limit(LimitScope::EachMetric, 9, none, none));
        let LimitScope::Matching(of_up) = found[1].0.clone() else { panic!("a selector") };
        assert_eq!(sorted(of_up), sorted(up));
        assert_eq!((found[1].1, found[1].2, found[1].3), (none, 1, 2));
        assert_eq!(found[2], limit(LimitScope::Matching(cpu), 3, none, none));
        assert_eq!(rules[0].name, "series-limits: each-metric");
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("each-metric", "limits nothing"),
            ("each-metric active=x", "no whole number"),
            ("each-metric actve=1", "none of active"),
            ("{a=} active=1", "nor a selector"),
            ("sum(a) active=1", "no series selector"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{error:?} does not say {part:?}");
        }
    }
}
