//! What VictoriaMetrics 1.150 was seen to answer, and we have to.
//!
//! Text files hold series, calls and rows; a point that is missing is `_`. Arguments are strings,
//! numbers, names of series (several with `|` between them) and `$name`, which is that series as a
//! number. Rows come in any order, unless the call is marked as `ordered`.

use super::*;
use model::METRIC_NAME;
use promql::Grouping;

const GRID: Grid = Grid { start_ms: 1_700_000_040_000, step_ms: 60_000, len: 6 };

#[derive(Clone, Copy, PartialEq)]
enum Family {
    Transform,
    Label,
    Aggregate,
}

#[test]
fn transforms() {
    run(Family::Transform, include_str!("../../../../testdata/metricsql/transform.txt"));
}

#[test]
fn labels() {
    run(Family::Label, include_str!("../../../../testdata/metricsql/label.txt"));
}

#[test]
fn aggregates() {
    run(Family::Aggregate, include_str!("../../../../testdata/metricsql/aggregate.txt"));
}

/// Checks every call of a file against the rows below it.
fn run(family: Family, text: &str) {
    let loaded: Vec<Series> = include_str!("../../../../testdata/metricsql/series.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(parse_row)
        .collect();
    let mut failures = Vec::new();
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let mut expected = Vec::new();
        while let Some(row) = lines.next_if(|next| next.starts_with(' ')) {
            expected.push(row.trim());
        }
        if let Err(message) = check(family, &loaded, line, &expected) {
            failures.push(format!("{line}\n{message}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(
    family: Family,
    loaded: &[Series],
    line: &str,
    expected: &[&str],
) -> std::result::Result<(), String> {
    let (text, is_ordered) = match line.strip_prefix("ordered ") {
        Some(text) => (text, true),
        None => (line, false),
    };
    let answer = Call::parse(text, loaded).run(family);
    let mut rows = match answer {
        Err(error) if expected == ["error"] => {
            assert!(error.to_string().contains(':'), "{error}");
            return Ok(());
        }
        Err(error) => return Err(error.to_string()),
        Ok(rows) => rows,
    };
    // The evaluator does the same at the end.
    rows.retain(|row| row.values.iter().any(|value| !value.is_nan()));
    let mut expected: Vec<Series> = expected.iter().map(|row| parse_row(row)).collect();
    if !is_ordered {
        rows.sort_by(|a, b| a.labels.cmp(&b.labels));
        expected.sort_by(|a, b| a.labels.cmp(&b.labels));
    }
    let is_same = rows.len() == expected.len()
        && rows.iter().zip(&expected).all(|(a, b)| {
            a.labels == b.labels && a.values.iter().zip(&b.values).all(|(a, b)| is_close(*a, *b))
        });
    if is_same { Ok(()) } else { Err(format!("got\n{}expected\n{}", show(&rows), show(&expected))) }
}

fn show(rows: &[Series]) -> String {
    rows.iter().map(|row| format!("  {}{:?}\n", row.labels, row.values)).collect()
}

fn is_close(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

/// `name{label="value"} 1 _ 3`
fn parse_row(line: &str) -> Series {
    let (head, values) = match line.split_once('}') {
        Some((head, values)) => (head, values),
        None => line.split_once(' ').unwrap(),
    };
    let (name, pairs) = head.split_once('{').unwrap_or((head, ""));
    let mut builder = LabelsBuilder::new();
    builder.push(METRIC_NAME, name);
    let mut parts = pairs.split('"');
    while let (Some(label), Some(value)) = (parts.next(), parts.next()) {
        builder.push(label.trim_start_matches(',').trim_end_matches('='), value);
    }
    let value = |text: &str| if text == "_" { f64::NAN } else { text.parse().unwrap() };
    Series { labels: builder.finish(), values: values.split_whitespace().map(value).collect() }
}

struct Call {
    name: String,
    arguments: Vec<Argument>,
    grouping: Option<Grouping>,
    limit: u64,
    keep_metric_names: bool,
}

impl Call {
    /// `name(argument, argument) by (label) limit 2 keep_metric_names`
    fn parse(text: &str, loaded: &[Series]) -> Call {
        let (name, rest) = text.split_once('(').unwrap();
        let mut is_quoted = false;
        let end = rest.find(|character| {
            is_quoted ^= character == '"';
            character == ')' && !is_quoted
        });
        let (arguments, tail) = rest.split_at(end.unwrap());
        let mut call = Call {
            name: name.to_string(),
            arguments: split_arguments(arguments)
                .iter()
                .map(|argument| parse_argument(argument, loaded))
                .collect(),
            grouping: None,
            limit: 0,
            keep_metric_names: tail.contains("keep_metric_names"),
        };
        for (word, make) in [
            ("by (", Grouping::By as fn(Vec<String>) -> Grouping),
            ("without (", Grouping::Without),
        ] {
            if let Some((_, names)) = tail.split_once(word) {
                let (names, _) = names.split_once(')').unwrap();
                let names = names.split(',').map(|name| name.trim().to_string());
                call.grouping = Some(make(names.filter(|name| !name.is_empty()).collect()));
            }
        }
        if let Some((_, limit)) = tail.split_once("limit ") {
            call.limit = limit.parse().unwrap();
        }
        call
    }

    fn run(self, family: Family) -> Result<Vec<Series>> {
        let context = CallContext {
            keep_metric_names: self.keep_metric_names,
            ..CallContext::new(&self.name, GRID)
        };
        match family {
            Family::Transform => transform::call(&context, self.arguments),
            Family::Label => label::call(&context, self.arguments),
            Family::Aggregate => {
                aggregate::call(&context, self.arguments, self.grouping.as_ref(), self.limit)
            }
        }
    }
}

/// Splits at commas outside of quotes.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let parts = text.split(|character| {
        is_quoted ^= character == '"';
        character == ',' && !is_quoted
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn parse_argument(text: &str, loaded: &[Series]) -> Argument {
    if let Some(text) = text.strip_prefix('"') {
        return Argument::text(text.trim_end_matches('"').to_string());
    }
    if let Ok(number) = text.parse::<f64>() {
        let values = vec![number; GRID.len];
        return Argument::Series(vec![Series { labels: Labels::default(), values }]);
    }
    let names = text.trim_start_matches('$');
    let mut series: Vec<Series> = loaded
        .iter()
        .filter(|one| names.split('|').any(|name| name == one.labels.metric_name()))
        .cloned()
        .collect();
    if text.starts_with('$') {
        series.iter_mut().for_each(|one| one.labels = Labels::default());
    }
    Argument::Series(series)
}
