//! `extra_label=name=value`, `extra_filters[]=selector` and `extra_filters=selector`: label filters
//! by which a proxy such as vmauth confines a tenant to its own series.
//!
//! ```text
//! extra_label=a=1&extra_label=b=2                            {a="1",b="2"}
//! extra_filters[]={c="3"}&extra_filters[]={d="4"}            {c="3"} or {d="4"}
//! extra_label=a=1&extra_filters[]={c="3"}&extra_filters[]={d="4"}   {c="3",a="1"} or {d="4",a="1"}
//! extra_filters[]={c="3"}&extra_filters={d="4"}              {c="3",d="4"}
//! ```
//!
//! Filters of one name and one place (the URL or the form) are alternatives, as in VictoriaMetrics.
//! Those of another name or place confine further: a client whose proxy writes into the URL must not
//! free itself by a filter in the form. A series is seen if it matches what the request selects and one of the filters. Whoever reads
//! through [`crate::http::partial::Partial`] is confined; a route that cannot be refuses the parameters.

use super::selection::invalid;
use super::{LabelFilters, Params};
use crate::http::router::{Confinement, Route};
use model::Matcher;
use net::failure::Failure;
use promql::metricsql::{self, Expr};

/// Adds a matcher to every selector; on routes that store samples, a label to every series.
pub const EXTRA_LABEL: &str = "extra_label";
/// Selectors; each series must match at least one.
pub const EXTRA_FILTERS: [&str; 2] = ["extra_filters[]", "extra_filters"];

/// Labels and filters of one request.
const FILTERS_MAX: usize = 100;

/// The filters of a request to a route.
///
/// # Errors
/// 400 for a filter that makes no sense, and where the route cannot be confined.
pub(in crate::http) fn label_filters(
    route: &Route,
    params: &Params,
) -> Result<LabelFilters, Failure> {
    let refuse = |names: &[&str]| match names.iter().find(|name| params.get(name).is_some()) {
        None => Ok(LabelFilters::default()),
        Some(name) => Err(invalid(name, &"this path cannot be confined to some series")
            .advised("leave the parameter out, or let the proxy refuse this path")),
    };
    match route.confinement {
        Confinement::Applied => parse(params),
        Confinement::Harmless => Ok(LabelFilters::default()),
        Confinement::AddsLabels => refuse(&EXTRA_FILTERS),
        Confinement::Refused => refuse(&[EXTRA_LABEL, EXTRA_FILTERS[0], EXTRA_FILTERS[1]]),
    }
}

fn parse(params: &Params) -> Result<LabelFilters, Failure> {
    let labels: Vec<Matcher> =
        params.all(EXTRA_LABEL).map(label).collect::<Result<_, Failure>>()?;
    check_count(labels.len())?;
    let mut filters: Vec<Vec<Matcher>> = vec![Vec::new()];
    for name in EXTRA_FILTERS {
        for texts in params.by_source(name) {
            let mut alternatives = Vec::new();
            for text in texts {
                alternatives.extend(selector(name, text)?);
            }
            filters = join(&filters, &alternatives)?;
        }
    }
    check_count(labels.len() + filters.len())?;
    filters.iter_mut().for_each(|set| set.extend_from_slice(&labels));
    filters.retain(|set| !set.is_empty());
    Ok(filters.into())
}

/// Every filter with every alternative; the filters alone if there are none.
fn join(
    filters: &[Vec<Matcher>],
    alternatives: &[Vec<Matcher>],
) -> Result<Vec<Vec<Matcher>>, Failure> {
    if alternatives.is_empty() {
        return Ok(filters.to_vec());
    }
    check_count(filters.len().saturating_mul(alternatives.len()))?;
    let both = |filter: &Vec<Matcher>, other: &Vec<Matcher>| [filter.as_slice(), other].concat();
    let of_filter = |filter| alternatives.iter().map(move |other| both(filter, other));
    Ok(filters.iter().flat_map(of_filter).collect())
}

fn check_count(count: usize) -> Result<(), Failure> {
    if count <= FILTERS_MAX {
        return Ok(());
    }
    let reason = format!("{count} labels and filters, the limit is {FILTERS_MAX}");
    Err(invalid(EXTRA_FILTERS[0], &reason))
}

/// `name=value`
fn label(text: &str) -> Result<Matcher, Failure> {
    match text.split_once('=').filter(|(name, _)| !name.is_empty()) {
        Some((name, value)) => Ok(Matcher::equal(name, value)),
        None => Err(invalid(EXTRA_LABEL, &format!("{text:?} is not of the form name=value"))),
    }
}

/// The matcher sets of a selector in MetricsQL, whose `or` is an alternative.
fn selector(name: &str, text: &str) -> Result<Vec<Vec<Matcher>>, Failure> {
    match metricsql::parse(text).map_err(|error| invalid(name, &error))? {
        // One without matchers would confine to nothing.
        Expr::Selector(selector) if !selector.sets.is_empty() => Ok(selector.sets),
        _ => Err(invalid(name, &format!("{text:?} is no series selector with matchers"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: &[&str]) {
        let found = parse(&Params::parse(query)).expect(query);
        let text = |set: &Vec<Matcher>| set.iter().map(Matcher::to_string).collect::<Vec<_>>();
        let found: Vec<String> = found.iter().map(|set| text(set).join(",")).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn labels_are_joined_and_filters_are_alternatives() {
        check("query=up", &[]);
        check("extra_label=a=1&extra_label=b=c=d", &["a=\"1\",b=\"c=d\""]);
        check("extra_label=a=", &["a=\"\""]);
        check("extra_filters[]={c=\"3\"}&extra_filters[]={d!=\"4\"}", &["c=\"3\"", "d!=\"4\""]);
        check("extra_filters={c=\"3\"}&extra_filters={d!=\"4\"}", &["c=\"3\"", "d!=\"4\""]);
        check(
            "extra_label=a=1&extra_filters[]={c=\"3\" or d=~\"4|5\"}",
            &["c=\"3\",a=\"1\"", "d=~\"4|5\",a=\"1\""],
        );
        check("extra_filters[]=up{a=\"1\"}", &["__name__=\"up\",a=\"1\""]);
    }

    #[test]
    fn filters_of_another_name_or_place_confine_further() {
        check("extra_filters[]={c=\"3\"}&extra_filters={d!=\"4\"}", &["c=\"3\",d!=\"4\""]);
        let mut params = Params::parse("extra_filters[]={team=\"dev\"}&extra_label=a=1");
        params.append(b"extra_filters[]={x=\"1\" or x=\"2\"}").expect("a form");
        let found = parse(&params).expect("filters");
        let text = |set: &Vec<Matcher>| set.iter().map(Matcher::to_string).collect::<Vec<_>>();
        let found: Vec<String> = found.iter().map(|set| text(set).join(",")).collect();
        assert_eq!(found, ["team=\"dev\",x=\"1\",a=\"1\"", "team=\"dev\",x=\"2\",a=\"1\""]);
        let many = |name: &str| format!("{name}={{a=\"1\"}}&").repeat(11);
        let both = many("extra_filters[]") + &many("extra_filters");
        assert!(parse(&Params::parse(&both)).is_err(), "121 combinations");
    }

    #[test]
    fn filters_that_confine_to_nothing_are_refused() {
        for query in [
            "extra_label=",
            "extra_label=a",
            "extra_label==a",
            "extra_filters[]=",
            "extra_filters={}",
            "extra_filters[]={a=\"1\"} offset 5m",
            "extra_filters[]=sum(up)",
            "extra_filters[]={a=~\"(\"}",
            "extra_filters[]={a=",
        ] {
            assert!(parse(&Params::parse(query)).is_err(), "{query}");
        }
        let many = "extra_label=a=1&".repeat(FILTERS_MAX + 1);
        assert!(parse(&Params::parse(&many)).is_err());
    }
}
