//! Advice for expressions that PromQL's parser refuses.

use engine::{MemorySource, QueryOptions};
use model::similar_name::similar_name;
use promql::reference::entries;
use promql::{Dialect, ParseError};

/// Samples of a trial evaluation: constants over subqueries have some without any series.
const TRIAL_SAMPLES_MAX: u64 = 100_000;
/// Longest expression that is repeated with a correction.
const SHOWN_SIZE_MAX: usize = 200;

const IS_METRICSQL: &str = "MetricsQL accepts this: ask with dialect=metricsql or below the path \
                            /metricsql, or start the server with --query.dialect=metricsql";

/// Advice for an expression that cannot be parsed: the function that was meant, the missing range, and
/// MetricsQL where that evaluates what PromQL refuses.
pub fn advice(query: &str, error: &ParseError, options: &QueryOptions) -> Option<String> {
    if options.dialect == Dialect::MetricsQl {
        return similar_function(query, error, Dialect::MetricsQl);
    }
    let range = with_range(query, error).map(|fixed| format!("say {fixed}"));
    match (range, is_metricsql(query, options)) {
        (Some(range), true) => Some(format!("{range}; {IS_METRICSQL}")),
        (None, true) => Some(IS_METRICSQL.to_string()),
        (Some(range), false) => Some(range),
        (None, false) => similar_function(query, error, Dialect::PromQl),
    }
}

/// Asks for the function whose name is like an unknown one.
fn similar_function(query: &str, error: &ParseError, dialect: Dialect) -> Option<String> {
    if !error.message.starts_with("unknown function") {
        return None;
    }
    let name = query.get(error.span.start as usize..error.span.end as usize)?;
    let entries = entries(dialect);
    let similar = similar_name(name, entries.iter().map(|entry| entry.name))?;
    Some(format!("did you mean {similar}?"))
}

/// The expression with a range where the parser misses one: `rate(up[5m])` for `rate(up)`.
fn with_range(query: &str, error: &ParseError) -> Option<String> {
    if !error.message.contains("expected type range vector") || SHOWN_SIZE_MAX < query.len() {
        return None;
    }
    let (before, after) = query.split_at_checked(error.span.end as usize)?;
    let fixed = ["[5m]", "[5m:]"].map(|range| format!("{}{range}{after}", before.trim_end()));
    fixed.into_iter().find(|fixed| promql::parse(fixed).is_ok())
}

/// Whether MetricsQL evaluates an expression. Arguments are checked while it is evaluated, here without
/// any series.
fn is_metricsql(query: &str, options: &QueryOptions) -> bool {
    if promql::metricsql::parse(query).is_err() {
        return false;
    }
    let mut options = QueryOptions { dialect: Dialect::MetricsQl, ..options.clone() };
    options.limits.samples_max = options.limits.samples_max.min(TRIAL_SAMPLES_MAX);
    engine::instant(&MemorySource::new(), query, 0, &options).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice_of(query: &str) -> Option<String> {
        let error = promql::parse(query).expect_err(query);
        advice(query, &error, &QueryOptions::default())
    }

    #[test]
    fn metricsql_is_named_where_it_evaluates_the_query() {
        for query in [
            "rate(up)",
            "sum(rate(up)) by (job) limit 3",
            "up default 0",
            "median_over_time(up[5m])",
        ] {
            let advice = advice_of(query);
            assert!(
                advice.as_ref().is_some_and(|a| a.contains("MetricsQL accepts this: ")),
                "{query}: {advice:?}"
            );
        }
        for query in [
            "histogram_quantile(0.9)",
            "topk(up, 5)",
            "up @ foo",
            "quantile_over_time(up[5m])",
            "nothing(up[5m])",
            "sum(",
        ] {
            assert_eq!(advice_of(query), None, "{query}");
        }
    }

    #[test]
    fn misspelled_functions_have_a_suggestion() {
        assert_eq!(advice_of("rat(up[5m])").as_deref(), Some("did you mean rate?"));
        assert_eq!(advice_of("1 + summ(up)").as_deref(), Some("did you mean sum?"));
        let options = QueryOptions { dialect: Dialect::MetricsQl, ..QueryOptions::default() };
        let error = promql::metricsql::parse("rollup_rat(up)").expect_err("unknown");
        let advice = advice("rollup_rat(up)", &error, &options);
        assert_eq!(advice.as_deref(), Some("did you mean rollup_rate?"));
    }

    #[test]
    fn missing_range_is_shown() {
        for (query, fixed) in [
            ("rate(up)", "say rate(up[5m]); "),
            ("sum(rate(up{a=\"b\"}))", "say sum(rate(up{a=\"b\"}[5m])); "),
            ("rate(sum(up))", "say rate(sum(up)[5m:])"),
        ] {
            let advice = advice_of(query).expect(query);
            assert!(advice.starts_with(fixed), "{query}: {advice}");
        }
    }
}
