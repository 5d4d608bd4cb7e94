//! What the observed answers leave open: limits, orders of groups, hostile arguments.

use super::*;
use crate::time::Grid;
use model::Labels;

const GRID: Grid = Grid { start_ms: 0, step_ms: 1000, len: 2 };

fn run(
    name: &str,
    arguments: Vec<Argument>,
    by: Option<&[&str]>,
    limit: u64,
) -> Result<Vec<Series>> {
    let context = CallContext::new(name, GRID);
    let grouping = by.map(|names| Grouping::By(names.iter().map(ToString::to_string).collect()));
    call(&context, arguments, grouping.as_ref(), limit)
}

fn number(value: f64) -> Argument {
    Argument::Series(vec![Series { labels: Labels::default(), values: vec![value; GRID.len] }])
}

/// Series `m{g="a",i="0"}` and so on.
fn members(list: &[(&str, [f64; 2])]) -> Argument {
    let one = |(idx, (group, values)): (usize, &(&str, [f64; 2]))| Series {
        labels: Labels::from_pairs(&[("__name__", "m"), ("g", group), ("i", &idx.to_string())]),
        values: values.to_vec(),
    };
    Argument::Series(list.iter().enumerate().map(one).collect())
}

fn sample() -> Argument {
    members(&[
        ("b", [1.0, 2.0]),
        ("a", [3.0, 4.0]),
        ("c", [f64::NAN, f64::NAN]),
        ("b", [5.0, f64::NAN]),
        ("d", [7.0, 8.0]),
    ])
}

/// The values of a label, series by series.
fn values_of(rows: &[Series], label: &str) -> String {
    rows.iter().map(|row| row.labels.get(label).unwrap_or("-")).collect()
}

#[test]
fn all_aggregates_are_known() {
    let names = "any avg bottomk bottomk_avg bottomk_last bottomk_max bottomk_median \
        bottomk_min count count_values distinct geomean group histogram limitk mad max median \
        min mode outliers_iqr outliers_mad outliersk quantile quantiles share stddev stdvar sum \
        sum2 topk topk_avg topk_last topk_max topk_median topk_min zscore";
    for name in names.split_whitespace() {
        let text = run(name, Vec::new(), None, 0).unwrap_err().to_string();
        assert!(text.contains("0 arguments given"), "{text}");
    }
    for name in ["summ", "topk_", "topk_sum", "bottomk_first"] {
        let error = run(name, vec![number(1.0), sample()], None, 0).unwrap_err().to_string();
        assert!(error.ends_with("no such aggregate"), "{error}");
    }
}

#[test]
fn groups_come_as_they_are_met_and_end_at_the_limit() {
    let by = Some(["g"].as_slice());
    let groups = |limit| values_of(&run("sum", vec![sample()], by, limit).unwrap(), "g");
    assert_eq!(groups(0), "bad");
    assert_eq!(groups(2), "ba");
    // The limit is one of groups: further series of the first ones still count.
    let rows = run("sum", vec![sample()], by, 1).unwrap();
    assert_eq!(rows[0].values, [6.0, 2.0]);
    let any = |limit| values_of(&run("any", vec![sample()], by, limit).unwrap(), "i");
    assert_eq!(any(0), "014");
    assert_eq!(any(3), "0");
}

#[test]
fn the_best_come_first_and_the_rest_before_them() {
    let top = |name, k| values_of(&run(name, vec![number(k), sample()], None, 0).unwrap(), "i");
    assert_eq!(top("topk_max", 3.0), "431");
    assert_eq!(top("bottomk_max", 3.0), "013");
    assert_eq!(top("topk", 2.0), "413");
    assert_eq!(top("topk", f64::NAN), "");
    assert_eq!(top("topk", 1e300), "4103");
    let rest = Argument::text("i=rest".to_string());
    let rows = run("topk_max", vec![number(1.0), sample(), rest], None, 0).unwrap();
    assert_eq!(rows[0].labels, Labels::from_pairs(&[("i", "rest")]));
    assert_eq!(rows[0].values, [9.0, 6.0]);
    assert_eq!(values_of(&rows[1..], "i"), "4");
}

#[test]
fn what_multiplies_series_ends_at_a_limit() {
    let context = CallContext::new("q", GRID);
    assert!(context.check_made(10_000_000).is_ok());
    assert!(context.check_made(10_000_001).is_err());
    let wide = Grid { len: 20_000_001, ..GRID };
    let context = CallContext::new("q", wide);
    assert!(context.check_made(1).is_err());
}
