//! What people look up: every function of a dialect in one shape, and the reference pages made of
//! it. Both come from the tables that parser and engine work with.
//!
//! ```text
//! functions::FUNCTIONS, AGGREGATIONS ────────────► entries(PromQl) ────┐
//! metricsql::FUNCTIONS, metricsql::TEMPLATES ────► entries(MetricsQl) ─┴► page, completion
//! ```

use crate::Dialect;
use crate::aggregations::{AGGREGATIONS, Aggregation};
use crate::ast::ValueType;
use crate::functions::{Arity, FUNCTIONS, Function, FunctionKind};
use crate::metricsql;
use std::fmt::Write;

/// What there is to know about one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it works on, in one word.
    pub kind: &'static str,
    /// How it is called.
    pub usage: String,
    /// What it does.
    pub doc: &'static str,
    /// A use of it that needs no data.
    pub example: &'static str,
    /// What the example gives, a series each; `None` if it is not the same each time.
    pub answer: Option<&'static str>,
    /// Whether Prometheus hides it behind a feature flag, as this server does.
    pub is_experimental: bool,
}

/// One kind: its word and what the functions of it have in common.
struct Kind {
    word: &'static str,
    heading: &'static str,
    doc: &'static str,
}

const fn kind(word: &'static str, heading: &'static str, doc: &'static str) -> Kind {
    Kind { word, heading, doc }
}

const ROLLUP: Kind = kind("rollup", "Rollups", "Windows of samples, a value per series.");
const AGGREGATE: Kind = kind("aggregate", "Aggregations", "Many series to one per group.");
const LABEL: Kind = kind("label", "Labels", "The labels of series.");

/// The kinds of PromQL, in the order of the page.
const PROMQL_KINDS: &[Kind] = &[
    ROLLUP,
    AGGREGATE,
    kind("math", "Mathematics", "Each sample by itself."),
    kind("date", "Dates", "Each sample's value taken as a time; without an argument, now."),
    kind("histogram", "Histograms", "Buckets with the label `le`."),
    LABEL,
    kind("sort", "Order", "The order of series, which only instant queries have."),
    kind("absent", "Absence", "Where there is no series."),
    kind("scalar", "Scalars", "Numbers, and what the query knows about itself."),
];

/// The kinds of MetricsQL, in the order of the page.
const METRICSQL_KINDS: &[Kind] = &[
    ROLLUP,
    kind("transform", "Transforms", "Values of series, each by itself or over the query's range."),
    LABEL,
    AGGREGATE,
    kind("template", "Templates", "What `WITH` needs not define."),
];

/// Every function of a dialect: those of the tables, aggregations and built-in templates, by name
/// within each table.
pub fn entries(dialect: Dialect) -> Vec<Entry> {
    match dialect {
        Dialect::PromQl => {
            let functions = FUNCTIONS.iter().map(function_entry);
            functions.chain(AGGREGATIONS.iter().map(aggregation_entry)).collect()
        }
        Dialect::MetricsQl => {
            let functions = metricsql::FUNCTIONS.iter().map(metricsql_entry);
            functions.chain(metricsql::TEMPLATES.iter().map(template_entry)).collect()
        }
    }
}

fn function_entry(function: &'static Function) -> Entry {
    Entry {
        name: function.name,
        kind: match function.kind {
            FunctionKind::Rollup => "rollup",
            FunctionKind::Math => "math",
            FunctionKind::Date => "date",
            FunctionKind::Histogram => "histogram",
            FunctionKind::Label => "label",
            FunctionKind::Sort => "sort",
            FunctionKind::Absent => "absent",
            FunctionKind::Scalar => "scalar",
        },
        usage: usage(function),
        doc: function.doc,
        example: function.example,
        answer: Some(function.answer),
        is_experimental: function.is_experimental,
    }
}

/// `round(instant vector[, scalar])`: types, as those are what a call is checked for.
fn usage(function: &Function) -> String {
    let types: Vec<&str> = function.arguments.iter().map(|of| of.documented()).collect();
    let arguments = match (function.arity, types.split_last()) {
        (Arity::Exact, _) | (_, None) => types.join(", "),
        (Arity::LastUpTo(_), Some((last, []))) => format!("[{last}]"),
        (Arity::LastUpTo(_), Some((last, first))) => format!("{}[, {last}]", first.join(", ")),
        (Arity::LastRepeats, Some((last, first))) => format!("{}[, {last}, ...]", first.join(", ")),
    };
    format!("{}({arguments})", function.name)
}

fn aggregation_entry(row: &'static Aggregation) -> Entry {
    let name = row.op.as_str();
    let parameter = row.op.parameter().map_or(String::new(), |of| format!("{}, ", of.documented()));
    Entry {
        name,
        kind: "aggregate",
        usage: format!("{name}({parameter}{}) by (labels)", ValueType::Vector.documented()),
        doc: row.doc,
        example: row.example,
        answer: Some(row.answer),
        is_experimental: row.op.is_experimental(),
    }
}

fn metricsql_entry(function: &'static metricsql::Function) -> Entry {
    Entry {
        name: function.name,
        kind: match function.kind {
            metricsql::FunctionKind::Rollup => "rollup",
            metricsql::FunctionKind::Transform => "transform",
            metricsql::FunctionKind::Label => "label",
            metricsql::FunctionKind::Aggregate => "aggregate",
        },
        usage: function.usage.to_string(),
        doc: function.doc,
        example: function.example,
        answer: Some(function.answer).filter(|answer| *answer != "?"),
        is_experimental: false,
    }
}

fn template_entry(template: &'static metricsql::Template) -> Entry {
    Entry {
        name: template.name,
        kind: "template",
        usage: template.usage.to_string(),
        doc: template.doc,
        example: template.example,
        answer: Some(template.answer),
        is_experimental: false,
    }
}

/// `docs/promql-functions.md` or `docs/metricsql-functions.md`, generated.
pub fn page(dialect: Dialect) -> String {
    let (head, kinds) = match dialect {
        Dialect::PromQl => (PROMQL_HEAD, PROMQL_KINDS),
        Dialect::MetricsQl => (METRICSQL_HEAD, METRICSQL_KINDS),
    };
    let entries = entries(dialect);
    let mut page = head.to_string();
    for kind in kinds {
        push_kind(&mut page, kind, entries.iter().filter(|entry| entry.kind == kind.word));
    }
    page
}

fn push_kind<'a>(page: &mut String, kind: &Kind, entries: impl Iterator<Item = &'a Entry>) {
    let Kind { heading, doc, .. } = kind;
    let head = "| usage | what it does | example | answer |\n|---|---|---|---|";
    // Writing to a `String` does not fail.
    let _ = writeln!(page, "\n## {heading}\n{doc}\n\n{head}");
    for entry in entries {
        let mark = if entry.is_experimental { " *Experimental.*" } else { "" };
        let answer = match entry.answer {
            Some("") => "no series".to_string(),
            Some(answer) => code(answer),
            None => "not always the same".to_string(),
        };
        let (usage, example) = (code(&entry.usage), code(entry.example));
        let _ = writeln!(page, "| {usage} | {}{mark} | {example} | {answer} |", entry.doc);
    }
}

/// Text as code in a cell of a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

const PROMQL_HEAD: &str = "\
# Functions of PromQL

Generated from `crates/promql/src/functions.rs` and `aggregations.rs`; a test compares.
PromQL is what a query is in unless it says `dialect=metricsql`, or the server was started with `--query.dialect metricsql`; then `dialect=promql` asks for it:

```sh
curl 'http://127.0.0.1:8428/api/v1/query' --data-urlencode 'query=rate(node_cpu_seconds_total[5m])' -d dialect=promql
```

Names, types and results are those of Prometheus 3.
*Experimental* functions are those that Prometheus hides behind `--enable-feature=promql-experimental-functions`; a query that uses one is refused with these words, as there without the flag.
Each example is evaluated at 01:00:00 on the first day of 1970 over no data at all, and must give the answer beside it: a test.
`/api/v1/functions?dialect=promql` gives this list as JSON.

MetricsQL has [more functions](metricsql-functions.md), and some of the same name count differently:
- `rate`, `increase`, `delta`, `changes` there look at the sample before the window and are not extrapolated; `rate_prometheus`, `increase_prometheus`, `delta_prometheus`, `changes_prometheus` do not look there.
- A window may be left out there, a function of windows may be given any expression, and a number is a series without labels.
- [Decision 11](decisions/0011-metricsql.md) says why the two are evaluated apart.
";

const METRICSQL_HEAD: &str = "\
# Functions of MetricsQL

Generated from `crates/promql/src/metricsql/functions.rs` and `templates.rs`; a test compares.
A query is in MetricsQL when it says `dialect=metricsql`; with `--query.dialect metricsql` all are that do not say `dialect=promql`:

```sh
curl 'http://127.0.0.1:8428/api/v1/query' --data-urlencode 'query=topk_avg(3, rate(node_cpu_seconds_total), \"cpu=others\")' -d dialect=metricsql
```

Names and results are those of VictoriaMetrics; names are known in upper and lower case.
In a usage, `q` is any expression, `series_selector[d]` an expression whose window may be left out, and what stands in brackets after a comma may be left out too.
Aggregations take `by` or `without`, and `limit N` for at most so many groups.
Each example is evaluated at 01:00:00 on the second day of 1970 with a step of a minute over no data at all, and must give the answer beside it: a test.
`/api/v1/functions?dialect=metricsql` gives this list as JSON.

Functions that [PromQL](promql-functions.md) has too do not always count the same:
- `rate`, `increase`, `delta`, `changes` look at the sample before the window and are not extrapolated.
- There are no range vectors: a window that is left out is guessed from the step and the samples' interval, and `rate(sum(m))` is a subquery.
- Functions drop the metric's name, except where the value still means the same; `keep_metric_names` after a call keeps it.
- [Decision 11](decisions/0011-metricsql.md) says why the two are evaluated apart, and where answers differ from those of VictoriaMetrics.
";

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE=1 cargo test -p promql` writes the page anew.
    #[track_caller]
    fn check_page(name: &str, dialect: Dialect) {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        let page = page(dialect);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &page).expect("write the page");
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stored == page, "docs/{name} is old; run UPDATE=1 cargo test -p promql");
    }

    #[test]
    fn the_reference_page_of_promql_is_current() {
        check_page("promql-functions.md", Dialect::PromQl);
    }

    #[test]
    fn the_reference_page_of_metricsql_is_current() {
        check_page("metricsql-functions.md", Dialect::MetricsQl);
    }

    #[test]
    fn every_entry_is_on_its_page_once() {
        for dialect in [Dialect::PromQl, Dialect::MetricsQl] {
            let page = page(dialect);
            for entry in entries(dialect) {
                let row = format!("\n| {} |", code(&entry.usage));
                assert_eq!(page.matches(&row).count(), 1, "{}", entry.name);
            }
        }
    }

    #[test]
    fn usages_of_promql_show_what_may_be_left_out() {
        let usage = |name| {
            let entry = entries(Dialect::PromQl).into_iter().find(|entry| entry.name == name);
            entry.expect(name).usage
        };
        assert_eq!(usage("time"), "time()");
        assert_eq!(usage("rate"), "rate(range vector)");
        assert_eq!(usage("hour"), "hour([instant vector])");
        assert_eq!(usage("round"), "round(instant vector[, scalar])");
        assert_eq!(usage("sort_by_label"), "sort_by_label(instant vector[, string, ...])");
        assert_eq!(usage("topk"), "topk(scalar, instant vector) by (labels)");
        assert_eq!(usage("sum"), "sum(instant vector) by (labels)");
    }
}
