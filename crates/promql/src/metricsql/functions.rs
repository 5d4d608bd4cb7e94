//! The table of MetricsQL's functions: name, kind, a sentence, an example and its answer.
//!
//! One table serves the parser (which names there are), the engine (kind), the reference page and
//! the tests: each example is evaluated at 01:00:00 on the second day of 1970 with a step of a
//! minute over no data at all and must give the answer beside it.

/// What a function works on; the engine dispatches by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// Windows of samples.
    Rollup,
    /// Values of series.
    Transform,
    /// Labels of series.
    Label,
    /// Many series to one.
    Aggregate,
}

/// One function of the language.
#[derive(Debug)]
pub struct Function {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What it works on.
    pub kind: FunctionKind,
    /// How it is called: `rate(series_selector[d])`.
    pub usage: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// A use of it that needs no data.
    pub example: &'static str,
    /// What the example gives at 01:00:00 on the second day of 1970; `?` if it is not the same
    /// each time.
    pub answer: &'static str,
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name && self.kind == other.kind
    }
}

/// The function of that name, in any case. No name is an aggregation and something else as well.
pub fn find(name: &str) -> Option<&'static Function> {
    let wanted = || name.bytes().map(|byte| byte.to_ascii_lowercase());
    let found = FUNCTIONS.binary_search_by(|function| function.name.bytes().cmp(wanted()));
    found.ok().map(|at| &FUNCTIONS[at])
}

const fn row(
    kind: FunctionKind,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    example: &'static str,
    answer: &'static str,
) -> Function {
    Function { name, kind, usage, doc, example, answer }
}

use FunctionKind::{Aggregate, Label, Rollup, Transform};

/// All functions, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = &[
    row(Transform, "", "(q1, ..., qN)", "All series of all arguments, of equal ones the first; what several expressions in parentheses mean.", r#"(label_set(1, "a", "x"), label_set(3, "a", "y"))"#, r#"{a="x"} 1, {a="y"} 3"#),
    row(Transform, "abs", "abs(q)", "The absolute value.", "abs(-2)", "{} 2"),
    row(Transform, "absent", "absent(q)", "1 where there is no series, with the labels that the selector demands.", r#"absent(nothing{job="a"})"#, r#"{job="a"} 1"#),
    row(Rollup, "absent_over_time", "absent_over_time(series_selector[d])", "1 where no series has a sample in the window.", r#"absent_over_time(nothing{job="a"}[5m])"#, r#"{job="a"} 1"#),
    row(Transform, "acos", "acos(q)", "The arc cosine.", "acos(1)", "{} 0"),
    row(Transform, "acosh", "acosh(q)", "The inverse hyperbolic cosine.", "acosh(1)", "{} 0"),
    row(Rollup, "aggr_over_time", r#"aggr_over_time(("rollup_func1", "rollup_func2", ...), series_selector[d])"#, "Several rollup functions at once, told apart by the label `rollup`.", r#"aggr_over_time(("min_over_time", "max_over_time"), time()[5m:1m])"#, r#"{rollup="max_over_time"} 90000, {rollup="min_over_time"} 89760"#),
    row(Aggregate, "any", "any(q) by (group_labels)", "Any one series of each group.", r#"any(label_set(1, "a", "x"), label_set(1, "a", "y")) by (b)"#, r#"{a="x"} 1"#),
    row(Rollup, "ascent_over_time", "ascent_over_time(series_selector[d])", "The sum of all rises within the window.", "ascent_over_time(time()[5m:1m])", "{} 300"),
    row(Transform, "asin", "asin(q)", "The arc sine.", "asin(0)", "{} 0"),
    row(Transform, "asinh", "asinh(q)", "The inverse hyperbolic sine.", "asinh(0)", "{} 0"),
    row(Transform, "atan", "atan(q)", "The arc tangent.", "atan(0)", "{} 0"),
    row(Transform, "atanh", "atanh(q)", "The inverse hyperbolic tangent.", "atanh(0)", "{} 0"),
    row(Aggregate, "avg", "avg(q) by (group_labels)", "The mean.", r#"avg(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 4"),
    row(Rollup, "avg_over_time", "avg_over_time(series_selector[d])", "The mean of the samples in the window.", "avg_over_time(time()[5m:1m])", "{} 89880"),
    row(Transform, "bitmap_and", "bitmap_and(q, mask)", "The bits that both have.", "bitmap_and(6, 3)", "{} 2"),
    row(Transform, "bitmap_or", "bitmap_or(q, mask)", "The bits that either has.", "bitmap_or(6, 3)", "{} 7"),
    row(Transform, "bitmap_xor", "bitmap_xor(q, mask)", "The bits that one of both has.", "bitmap_xor(6, 3)", "{} 5"),
    row(Aggregate, "bottomk", "bottomk(k, q) by (group_labels)", "At each point so many series with the smallest values.", r#"bottomk(2, union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, r#"{a="x"} 1, {a="y"} 3"#),
    row(Aggregate, "bottomk_avg", r#"bottomk_avg(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the smallest mean over the query's range, the others summed up if a label is given.", r#"bottomk_avg(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 3, {a="x"} 1"#),
    row(Aggregate, "bottomk_last", r#"bottomk_last(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the smallest last value over the query's range, the others summed up if a label is given.", r#"bottomk_last(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 3, {a="x"} 1"#),
    row(Aggregate, "bottomk_max", r#"bottomk_max(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the smallest largest value over the query's range, the others summed up if a label is given.", r#"bottomk_max(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 3, {a="x"} 1"#),
    row(Aggregate, "bottomk_median", r#"bottomk_median(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the smallest median over the query's range, the others summed up if a label is given.", r#"bottomk_median(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 3, {a="x"} 1"#),
    row(Aggregate, "bottomk_min", r#"bottomk_min(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the smallest smallest value over the query's range, the others summed up if a label is given.", r#"bottomk_min(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 3, {a="x"} 1"#),
    row(Transform, "buckets_limit", "buckets_limit(limit, buckets)", "Merges buckets of a histogram until few enough are left.", r#"buckets_limit(3, union(label_set(10, "le", "1"), label_set(20, "le", "2"), label_set(20, "le", "+Inf")))"#, r#"{le="+Inf"} 20, {le="1"} 10, {le="2"} 20"#),
    row(Transform, "ceil", "ceil(q)", "The next integer above.", "ceil(1.2)", "{} 2"),
    row(Rollup, "changes", "changes(series_selector[d])", "How often the value changed, the sample before the window included.", "changes(time()[5m:1m])", "{} 5"),
    row(Rollup, "changes_prometheus", "changes_prometheus(series_selector[d])", "How often the value changed between samples of the window.", "changes_prometheus(time()[5m:1m])", "{} 4"),
    row(Transform, "clamp", "clamp(q, min, max)", "The value, bounded below and above.", "clamp(7, 1, 5)", "{} 5"),
    row(Transform, "clamp_max", "clamp_max(q, max)", "The value, bounded above.", "clamp_max(7, 5)", "{} 5"),
    row(Transform, "clamp_min", "clamp_min(q, min)", "The value, bounded below.", "clamp_min(7, 9)", "{} 9"),
    row(Transform, "cos", "cos(q)", "The cosine.", "cos(0)", "{} 1"),
    row(Transform, "cosh", "cosh(q)", "The hyperbolic cosine.", "cosh(0)", "{} 1"),
    row(Aggregate, "count", "count(q) by (group_labels)", "How many series there are.", r#"count(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 3"),
    row(Rollup, "count_eq_over_time", "count_eq_over_time(series_selector[d], eq)", "How many samples are equal to the number.", "count_eq_over_time(time()[5m:1m], 89940)", "{} 1"),
    row(Rollup, "count_gt_over_time", "count_gt_over_time(series_selector[d], gt)", "How many samples are larger than the number.", "count_gt_over_time(time()[5m:1m], 89900)", "{} 2"),
    row(Rollup, "count_le_over_time", "count_le_over_time(series_selector[d], le)", "How many samples are not larger than the number.", "count_le_over_time(time()[5m:1m], 89940)", "{} 4"),
    row(Rollup, "count_ne_over_time", "count_ne_over_time(series_selector[d], ne)", "How many samples are not equal to the number.", "count_ne_over_time(time()[5m:1m], 89940)", "{} 4"),
    row(Rollup, "count_over_time", "count_over_time(series_selector[d])", "How many samples the window has.", "count_over_time(time()[5m:1m])", "{} 5"),
    row(Aggregate, "count_values", r#"count_values("label", q) by (group_labels)"#, "How many series have each value, the value written into a label.", r#"count_values("v", union(label_set(1, "a", "x"), label_set(3, "a", "y")))"#, r#"{v="1"} 1, {v="3"} 1"#),
    row(Rollup, "count_values_over_time", r#"count_values_over_time("label", series_selector[d])"#, "How often each value occurs, the value written into a label.", r#"count_values_over_time("v", vector(7)[5m:1m])"#, r#"{v="7"} 5"#),
    row(Transform, "day_of_month", "day_of_month([q])", "The day of the month, from 1, in UTC.", "day_of_month()", "{} 2"),
    row(Transform, "day_of_week", "day_of_week([q])", "The day of the week, 0 for Sunday, in UTC.", "day_of_week()", "{} 5"),
    row(Transform, "day_of_year", "day_of_year([q])", "The day of the year, from 1, in UTC.", "day_of_year()", "{} 2"),
    row(Transform, "days_in_month", "days_in_month([q])", "How many days the month has.", "days_in_month()", "{} 31"),
    row(Rollup, "decreases_over_time", "decreases_over_time(series_selector[d])", "How often the value fell within the window.", "decreases_over_time((time() % 120)[5m:1m])", "{} 3"),
    row(Rollup, "default_rollup", "default_rollup(series_selector[d])", "The newest sample, unless the series ended since; what a bare selector means.", "default_rollup(time()[5m:1m])", "{} 90000"),
    row(Transform, "deg", "deg(q)", "Radians to degrees.", "deg(pi())", "{} 180"),
    row(Rollup, "delta", "delta(series_selector[d])", "The last sample less the one before the window.", "delta(time()[5m:1m])", "{} 300"),
    row(Rollup, "delta_prometheus", "delta_prometheus(series_selector[d])", "The last sample less the first of the window.", "delta_prometheus(time()[5m:1m])", "{} 240"),
    row(Rollup, "deriv", "deriv(series_selector[d])", "The slope per second of the straight line that fits the window best.", "deriv(time()[5m:1m])", "{} 1"),
    row(Rollup, "deriv_fast", "deriv_fast(series_selector[d])", "The slope per second between the first and the last sample.", "deriv_fast(time()[5m:1m])", "{} 1"),
    row(Rollup, "descent_over_time", "descent_over_time(series_selector[d])", "The sum of all falls within the window.", "descent_over_time((0 - time())[5m:1m])", "{} 300"),
    row(Aggregate, "distinct", "distinct(q) by (group_labels)", "How many different values there are.", r#"distinct(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 3"),
    row(Rollup, "distinct_over_time", "distinct_over_time(series_selector[d])", "How many different values the window has.", "distinct_over_time(time()[5m:1m])", "{} 5"),
    row(Label, "drop_common_labels", "drop_common_labels(q1, ..., qN)", "Drops labels that all series have with the same value.", r#"drop_common_labels(label_set(1, "a", "x", "b", "z"), label_set(3, "a", "y", "b", "z"))"#, r#"{a="x"} 1, {a="y"} 3"#),
    row(Transform, "drop_empty_series", "drop_empty_series(q)", "Leaves out series without any value.", r#"sort(drop_empty_series(union(label_set(1, "a", "x"), label_set(3, "a", "y") > 7)) default 5)"#, r#"{a="x"} 1"#),
    row(Rollup, "duration_over_time", "duration_over_time(series_selector[d], max_interval)", "For how many seconds there were samples, longer gaps left out.", "duration_over_time(time()[5m:1m], 2m)", "{} 240"),
    row(Transform, "end", "end()", "The end of the query, in seconds since the epoch.", "end()", "{} 90000"),
    row(Transform, "exp", "exp(q)", "e to the power of the value.", "exp(0)", "{} 1"),
    row(Rollup, "first_over_time", "first_over_time(series_selector[d])", "The oldest sample in the window.", "first_over_time(time()[5m:1m])", "{} 89760"),
    row(Transform, "floor", "floor(q)", "The next integer below.", "floor(1.8)", "{} 1"),
    row(Aggregate, "geomean", "geomean(q) by (group_labels)", "The geometric mean.", r#"geomean(union(label_set(2, "a", "x"), label_set(8, "a", "y")))"#, "{} 4"),
    row(Rollup, "geomean_over_time", "geomean_over_time(series_selector[d])", "The geometric mean of the samples in the window.", "geomean_over_time(vector(1)[5m:1m])", "{} 1"),
    row(Aggregate, "group", "group(q) by (group_labels)", "1 for each group.", r#"group(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 1"),
    row(Aggregate, "histogram", "histogram(q) by (group_labels)", "A histogram of the values, its buckets told apart by the label `le`.", "histogram(7)", r#"{le="+Inf"} 1, {le="6.813e+00"} 0, {le="7.743e+00"} 1"#),
    row(Transform, "histogram_avg", "histogram_avg(buckets)", "The mean observation of a histogram, from the middles of its buckets.", r#"histogram_avg(union(label_set(10, "le", "1"), label_set(20, "le", "2"), label_set(20, "le", "+Inf")))"#, "{} 1"),
    row(Transform, "histogram_fraction", "histogram_fraction(lowerLe, upperLe, buckets)", "The share of observations between two bounds.", r#"histogram_fraction(0, 1, union(label_set(10, "le", "1"), label_set(20, "le", "2"), label_set(20, "le", "+Inf")))"#, "{} 0.5"),
    row(Rollup, "histogram_over_time", "histogram_over_time(series_selector[d])", "A histogram of the samples, its buckets told apart by the label `vmrange`.", "histogram_over_time(vector(7)[5m:1m])", r#"{vmrange="6.813e+00...7.743e+00"} 5"#),
    row(Transform, "histogram_quantile", r#"histogram_quantile(phi, buckets[, "boundsLabel"])"#, "The quantile of a histogram, interpolated within its bucket.", r#"histogram_quantile(0.25, union(label_set(10, "le", "1"), label_set(20, "le", "2"), label_set(20, "le", "+Inf")))"#, "{} 0.5"),
    row(Transform, "histogram_quantiles", r#"histogram_quantiles("phiLabel", phi1, ..., phiN, buckets)"#, "Several quantiles of a histogram at once, each written into a label.", r#"histogram_quantiles("q", 0.25, 0.75, union(label_set(10, "le", "1"), label_set(20, "le", "2"), label_set(20, "le", "+Inf")))"#, r#"{q="0.25"} 0.5, {q="0.75"} 1.5"#),
    row(Transform, "histogram_share", r#"histogram_share(le, buckets[, "boundsLabel"])"#, "The share of observations below a bound.", r#"histogram_share(1, union(label_set(10, "le", "1"), label_set(20, "le", "2"), label_set(20, "le", "+Inf")))"#, "{} 0.5"),
    row(Transform, "histogram_stddev", "histogram_stddev(buckets)", "The standard deviation of a histogram, from the middles of its buckets.", r#"histogram_stddev(union(label_set(10, "le", "1"), label_set(20, "le", "2"), label_set(20, "le", "+Inf")))"#, "{} 0.5"),
    row(Transform, "histogram_stdvar", "histogram_stdvar(buckets)", "The variance of a histogram, from the middles of its buckets.", r#"histogram_stdvar(union(label_set(10, "le", "1"), label_set(20, "le", "2"), label_set(20, "le", "+Inf")))"#, "{} 0.25"),
    row(Rollup, "hoeffding_bound_lower", "hoeffding_bound_lower(phi, series_selector[d])", "The lower Hoeffding bound of the mean at a confidence.", "hoeffding_bound_lower(0.5, vector(4)[5m:1m])", "{} 4"),
    row(Rollup, "hoeffding_bound_upper", "hoeffding_bound_upper(phi, series_selector[d])", "The upper Hoeffding bound of the mean at a confidence.", "hoeffding_bound_upper(0.5, vector(4)[5m:1m])", "{} 4"),
    row(Rollup, "holt_winters", "holt_winters(series_selector[d], sf, tf)", "The window's end, smoothed by a smoothing and a trend factor.", "holt_winters(time()[5m:1m], 0.5, 0.5)", "{} 90000"),
    row(Transform, "hour", "hour([q])", "The hour of the day, in UTC.", "hour()", "{} 1"),
    row(Rollup, "idelta", "idelta(series_selector[d])", "The difference of the last two samples.", "idelta(time()[5m:1m])", "{} 60"),
    row(Rollup, "ideriv", "ideriv(series_selector[d])", "The difference of the last two samples per second between them.", "ideriv(time()[5m:1m])", "{} 1"),
    row(Rollup, "increase", "increase(series_selector[d])", "How much a counter grew since the sample before the window.", "increase(time()[5m:1m])", "{} 300"),
    row(Rollup, "increase_prometheus", "increase_prometheus(series_selector[d])", "How much a counter grew from the first to the last sample of the window.", "increase_prometheus(time()[5m:1m])", "{} 240"),
    row(Rollup, "increase_pure", "increase_pure(series_selector[d])", "As `increase`, with every counter taken to begin at 0.", "increase_pure(time()[5m:1m])", "{} 300"),
    row(Rollup, "increases_over_time", "increases_over_time(series_selector[d])", "How often the value rose within the window.", "increases_over_time(time()[5m:1m])", "{} 5"),
    row(Rollup, "integrate", "integrate(series_selector[d])", "The area under the samples: values times seconds.", "integrate(time()[5m:1m])", "{} 26946000"),
    row(Transform, "interpolate", "interpolate(q)", "Fills gaps with straight lines between the values around them.", "interpolate(time())", "{} 90000"),
    row(Rollup, "irate", "irate(series_selector[d])", "The growth per second of a counter between the last two samples.", "irate(time()[5m:1m])", "{} 1"),
    row(Transform, "keep_last_value", "keep_last_value(q)", "Fills gaps with the value before them.", "keep_last_value(time())", "{} 90000"),
    row(Transform, "keep_next_value", "keep_next_value(q)", "Fills gaps with the value after them.", "keep_next_value(time())", "{} 90000"),
    row(Label, "label_copy", r#"label_copy(q, "src1", "dst1", ..., "srcN", "dstN")"#, "Copies values from one label to another.", r#"label_copy(label_set(1, "a", "x"), "a", "b")"#, r#"{a="x",b="x"} 1"#),
    row(Label, "label_del", r#"label_del(q, "label1", ..., "labelN")"#, "Drops labels.", r#"label_del(label_set(1, "a", "x"), "a")"#, "{} 1"),
    row(Label, "label_graphite_group", "label_graphite_group(q, group1, ..., groupN)", "Makes the metric's name of chosen parts of it, which are separated by dots.", r#"label_graphite_group(label_set(1, "__name__", "a.b.c"), 0, 2)"#, r#"{"a.c"} 1"#),
    row(Label, "label_join", r#"label_join(q, "dst", "separator", "src1", ..., "srcN")"#, "Sets a label to the values of other labels, joined by a separator.", r#"label_join(label_set(1, "a", "x"), "b", "-", "a", "a")"#, r#"{a="x",b="x-x"} 1"#),
    row(Label, "label_keep", r#"label_keep(q, "label1", ..., "labelN")"#, "Drops all labels but these.", r#"label_keep(label_set(1, "a", "x", "b", "y"), "a")"#, r#"{a="x"} 1"#),
    row(Label, "label_lowercase", r#"label_lowercase(q, "label1", ..., "labelN")"#, "Values of labels in lower case.", r#"label_lowercase(label_set(1, "a", "X"), "a")"#, r#"{a="x"} 1"#),
    row(Label, "label_map", r#"label_map(q, "label", "src1", "dst1", ..., "srcN", "dstN")"#, "Replaces values of a label by others.", r#"label_map(label_set(1, "a", "x"), "a", "x", "y")"#, r#"{a="y"} 1"#),
    row(Label, "label_match", r#"label_match(q, "label", "regexp")"#, "Series of which a label matches a regular expression.", r#"label_match(union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a", "x.*")"#, r#"{a="x"} 1"#),
    row(Label, "label_mismatch", r#"label_mismatch(q, "label", "regexp")"#, "Series of which a label does not match a regular expression.", r#"label_mismatch(union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a", "x.*")"#, r#"{a="y"} 3"#),
    row(Label, "label_move", r#"label_move(q, "src1", "dst1", ..., "srcN", "dstN")"#, "Renames labels.", r#"label_move(label_set(1, "a", "x"), "a", "b")"#, r#"{b="x"} 1"#),
    row(Label, "label_replace", r#"label_replace(q, "dst", "replacement", "src", "regexp")"#, "Sets a label from what a regular expression found in another label.", r#"label_replace(label_set(1, "a", "x"), "b", "${1}y", "a", "(.*)")"#, r#"{a="x",b="xy"} 1"#),
    row(Label, "label_set", r#"label_set(q, "label1", "value1", ..., "labelN", "valueN")"#, "Sets labels.", r#"label_set(1, "a", "x")"#, r#"{a="x"} 1"#),
    row(Label, "label_transform", r#"label_transform(q, "label", "regexp", "replacement")"#, "Replaces all that a regular expression finds in a label.", r#"label_transform(label_set(1, "a", "x-y-z"), "a", "-", "_")"#, r#"{a="x_y_z"} 1"#),
    row(Label, "label_uppercase", r#"label_uppercase(q, "label1", ..., "labelN")"#, "Values of labels in upper case.", r#"label_uppercase(label_set(1, "a", "x"), "a")"#, r#"{a="X"} 1"#),
    row(Label, "label_value", r#"label_value(q, "label")"#, "The number in a label.", r#"label_value(label_set(1, "a", "7"), "a")"#, r#"{a="7"} 7"#),
    row(Label, "labels_equal", r#"labels_equal(q, "label1", ..., "labelN")"#, "Series of which all these labels have the same value.", r#"labels_equal(label_set(1, "a", "x", "b", "x"), "a", "b")"#, r#"{a="x",b="x"} 1"#),
    row(Rollup, "lag", "lag(series_selector[d])", "The seconds since the newest sample.", "lag(time()[5m:1m])", "{} 0"),
    row(Rollup, "last_over_time", "last_over_time(series_selector[d])", "The newest sample in the window.", "last_over_time(time()[5m:1m])", "{} 90000"),
    row(Rollup, "lifetime", "lifetime(series_selector[d])", "The seconds from the first to the last sample.", "lifetime(time()[5m:1m])", "{} 300"),
    row(Transform, "limit_offset", "limit_offset(limit, offset, q)", "So many series, from an index on.", r#"limit_offset(1, 1, union(label_set(1, "a", "x"), label_set(3, "a", "y")))"#, r#"{a="y"} 3"#),
    row(Aggregate, "limitk", "limitk(k, q) by (group_labels)", "So many series, always the same ones.", r#"limitk(1, label_set(1, "a", "x"))"#, r#"{a="x"} 1"#),
    row(Transform, "ln", "ln(q)", "The natural logarithm.", "ln(1)", "{} 0"),
    row(Transform, "log10", "log10(q)", "The decimal logarithm.", "log10(1000)", "{} 3"),
    row(Transform, "log2", "log2(q)", "The binary logarithm.", "log2(8)", "{} 3"),
    row(Aggregate, "mad", "mad(q) by (group_labels)", "The median of the distances from the median.", r#"mad(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 2"),
    row(Rollup, "mad_over_time", "mad_over_time(series_selector[d])", "The median of the distances from the median.", "mad_over_time(time()[5m:1m])", "{} 60"),
    row(Aggregate, "max", "max(q) by (group_labels)", "The largest value.", r#"max(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 8"),
    row(Rollup, "max_over_time", "max_over_time(series_selector[d])", "The largest sample in the window.", "max_over_time(time()[5m:1m])", "{} 90000"),
    row(Aggregate, "median", "median(q) by (group_labels)", "The median.", r#"median(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 3"),
    row(Rollup, "median_over_time", "median_over_time(series_selector[d])", "The median of the samples in the window.", "median_over_time(time()[5m:1m])", "{} 89880"),
    row(Aggregate, "min", "min(q) by (group_labels)", "The smallest value.", r#"min(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 1"),
    row(Rollup, "min_over_time", "min_over_time(series_selector[d])", "The smallest sample in the window.", "min_over_time(time()[5m:1m])", "{} 89760"),
    row(Transform, "minute", "minute([q])", "The minute of the hour, in UTC.", "minute(150)", "{} 2"),
    row(Aggregate, "mode", "mode(q) by (group_labels)", "The value that occurs most.", r#"mode(union(label_set(3, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 3"),
    row(Rollup, "mode_over_time", "mode_over_time(series_selector[d])", "The value that occurs most.", "mode_over_time(vector(7)[5m:1m])", "{} 7"),
    row(Transform, "month", "month([q])", "The month of the year, from 1, in UTC.", "month()", "{} 1"),
    row(Transform, "now", "now()", "The time of the server's clock, in seconds since the epoch.", "now()", "?"),
    row(Rollup, "outlier_iqr_over_time", "outlier_iqr_over_time(series_selector[d])", "The newest sample where it lies far outside the middle half of the window.", "outlier_iqr_over_time((time() > bool 89999)[1h:1m])", "{} 1"),
    row(Aggregate, "outliers_iqr", "outliers_iqr(q) by (group_labels)", "Series with a value far outside the middle half of the group.", r#"outliers_iqr(union(label_set(1, "a", "x"), label_set(1, "a", "y"), label_set(1, "a", "z"), label_set(9, "a", "w")))"#, r#"{a="w"} 9"#),
    row(Aggregate, "outliers_mad", "outliers_mad(tolerance, q) by (group_labels)", "Series further from the median than so many times the median distance.", r#"outliers_mad(2, union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, r#"{a="z"} 8"#),
    row(Aggregate, "outliersk", "outliersk(k, q) by (group_labels)", "So many series with the largest deviation from the median.", r#"outliersk(1, union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, r#"{a="z"} 8"#),
    row(Transform, "pi", "pi()", "The ratio of a circle's circumference to its diameter.", "pi()", "{} 3.141592653589793"),
    row(Rollup, "predict_linear", "predict_linear(series_selector[d], t)", "Where the straight line that fits the window best will be in so many seconds.", "predict_linear(time()[5m:1m], 600)", "{} 90600"),
    row(Rollup, "present_over_time", "present_over_time(series_selector[d])", "1 where the window has a sample.", "present_over_time(time()[5m:1m])", "{} 1"),
    row(Transform, "prometheus_buckets", "prometheus_buckets(buckets)", "Buckets by `vmrange` as buckets by `le`.", r#"prometheus_buckets(label_set(3, "vmrange", "1...2"))"#, r#"{le="+Inf"} 3, {le="1"} 0, {le="2"} 3"#),
    row(Aggregate, "quantile", "quantile(phi, q) by (group_labels)", "The quantile.", r#"quantile(0.5, union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 3"),
    row(Rollup, "quantile_over_time", "quantile_over_time(phi, series_selector[d])", "The quantile of the samples in the window.", "quantile_over_time(0.5, time()[5m:1m])", "{} 89880"),
    row(Aggregate, "quantiles", r#"quantiles("phiLabel", phi1, ..., phiN, q) by (group_labels)"#, "Several quantiles at once, each written into a label.", r#"quantiles("q", 0.5, 1, union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, r#"{q="0.5"} 3, {q="1"} 8"#),
    row(Rollup, "quantiles_over_time", r#"quantiles_over_time("phiLabel", phi1, ..., phiN, series_selector[d])"#, "Several quantiles at once, each written into a label.", r#"quantiles_over_time("q", 0.5, 1, time()[5m:1m])"#, r#"{q="0.5"} 89880, {q="1"} 90000"#),
    row(Transform, "rad", "rad(q)", "Degrees to radians.", "rad(0)", "{} 0"),
    row(Transform, "rand", "rand([seed])", "Random numbers from 0 to 1, the same ones for a seed.", "rand()", "?"),
    row(Transform, "rand_exponential", "rand_exponential([seed])", "Random numbers of an exponential distribution.", "rand_exponential()", "?"),
    row(Transform, "rand_normal", "rand_normal([seed])", "Random numbers of a normal distribution.", "rand_normal()", "?"),
    row(Transform, "range_avg", "range_avg(q)", "The mean of each series over the query's range.", "range_avg(time())", "{} 90000"),
    row(Transform, "range_first", "range_first(q)", "The first value of each series in the query's range.", "range_first(time())", "{} 90000"),
    row(Transform, "range_last", "range_last(q)", "The last value of each series in the query's range.", "range_last(time())", "{} 90000"),
    row(Transform, "range_linear_regression", "range_linear_regression(q)", "The straight line that fits each series best over the query's range.", "range_linear_regression(time())", "{} 90000"),
    row(Transform, "range_mad", "range_mad(q)", "The median of the distances from the median over the query's range.", "range_mad(time())", "{} 0"),
    row(Transform, "range_max", "range_max(q)", "The largest value of each series over the query's range.", "range_max(time())", "{} 90000"),
    row(Transform, "range_min", "range_min(q)", "The smallest value of each series over the query's range.", "range_min(time())", "{} 90000"),
    row(Transform, "range_normalize", "range_normalize(q1, ..., qN)", "Each series stretched to reach from 0 to 1 over the query's range.", "range_normalize(time())", ""),
    row(Rollup, "range_over_time", "range_over_time(series_selector[d])", "The largest sample less the smallest.", "range_over_time(time()[5m:1m])", "{} 240"),
    row(Transform, "range_quantile", "range_quantile(phi, q)", "The quantile of each series over the query's range.", "range_quantile(0.5, time())", "{} 90000"),
    row(Transform, "range_stddev", "range_stddev(q)", "The standard deviation of each series over the query's range.", "range_stddev(time())", "{} 0"),
    row(Transform, "range_stdvar", "range_stdvar(q)", "The variance of each series over the query's range.", "range_stdvar(time())", "{} 0"),
    row(Transform, "range_sum", "range_sum(q)", "The sum of each series over the query's range.", "range_sum(time())", "{} 90000"),
    row(Transform, "range_trim_outliers", "range_trim_outliers(k, q)", "Drops values further from the median than so many times `range_mad`.", "range_trim_outliers(10, time())", "{} 90000"),
    row(Transform, "range_trim_spikes", "range_trim_spikes(phi, q)", "Drops that share of the largest and smallest values.", "range_trim_spikes(0.1, time())", "{} 90000"),
    row(Transform, "range_trim_zscore", "range_trim_zscore(z, q)", "Drops values further from the mean than so many standard deviations.", "range_trim_zscore(3, time())", "{} 90000"),
    row(Transform, "range_zscore", "range_zscore(q)", "How many standard deviations each value is from the mean over the query's range.", "range_zscore(time())", ""),
    row(Rollup, "rate", "rate(series_selector[d])", "The growth per second of a counter since the sample before the window.", "rate(time()[5m:1m])", "{} 1"),
    row(Rollup, "rate_over_sum", "rate_over_sum(series_selector[d])", "The sum of the samples per second of the window.", "rate_over_sum(time()[5m:1m])", "{} 1498"),
    row(Rollup, "rate_prometheus", "rate_prometheus(series_selector[d])", "The growth per second of a counter from the first to the last sample of the window.", "rate_prometheus(time()[5m:1m])", "{} 0.8"),
    row(Transform, "remove_resets", "remove_resets(q)", "Makes a counter never fall.", "remove_resets(time())", "{} 90000"),
    row(Rollup, "resets", "resets(series_selector[d])", "How often a counter fell within the window.", "resets((time() % 120)[5m:1m])", "{} 3"),
    row(Rollup, "rollup", r#"rollup(series_selector[d], "min|max|avg")"#, "Smallest, largest and mean of the samples in the window, or only the one that is named.", r#"rollup(time()[5m:1m], "max")"#, "{} 90000"),
    row(Rollup, "rollup_candlestick", r#"rollup_candlestick(series_selector[d], "open|close|low|high")"#, "First, last, largest and smallest sample, or only the one that is named.", r#"rollup_candlestick(time()[5m:1m], "high")"#, r#"{rollup="high"} 90000"#),
    row(Rollup, "rollup_delta", r#"rollup_delta(series_selector[d], "min|max|avg")"#, "Smallest, largest and mean of the differences of neighbours, or only the one that is named.", r#"rollup_delta(time()[5m:1m], "max")"#, "{} 60"),
    row(Rollup, "rollup_deriv", r#"rollup_deriv(series_selector[d], "min|max|avg")"#, "Smallest, largest and mean of the slopes between neighbours, or only the one that is named.", r#"rollup_deriv(time()[5m:1m], "max")"#, "{} 1"),
    row(Rollup, "rollup_increase", r#"rollup_increase(series_selector[d], "min|max|avg")"#, "Smallest, largest and mean of the growths between neighbours, or only the one that is named.", r#"rollup_increase(time()[5m:1m], "max")"#, "{} 60"),
    row(Rollup, "rollup_rate", r#"rollup_rate(series_selector[d], "min|max|avg")"#, "Smallest, largest and mean of the growths per second between neighbours, or only the one that is named.", r#"rollup_rate(time()[5m:1m], "max")"#, "{} 1"),
    row(Rollup, "rollup_scrape_interval", r#"rollup_scrape_interval(series_selector[d], "min|max|avg")"#, "Smallest, largest and mean of the seconds between neighbours, or only the one that is named.", r#"rollup_scrape_interval(time()[5m:1m], "max")"#, "{} 60"),
    row(Transform, "round", "round(q[, nearest])", "The nearest multiple of the second argument, else of 1.", "round(7.6)", "{} 8"),
    row(Transform, "running_avg", "running_avg(q)", "The mean of all values up to each point of the query's range.", "running_avg(time())", "{} 90000"),
    row(Transform, "running_max", "running_max(q)", "The largest value up to each point of the query's range.", "running_max(time())", "{} 90000"),
    row(Transform, "running_min", "running_min(q)", "The smallest value up to each point of the query's range.", "running_min(time())", "{} 90000"),
    row(Transform, "running_sum", "running_sum(q)", "The sum of all values up to each point of the query's range.", "running_sum(time())", "{} 90000"),
    row(Transform, "scalar", "scalar(q)", "The only series without its labels, or the number in a string; nothing for several series.", r#"scalar("5")"#, "{} 5"),
    row(Rollup, "scrape_interval", "scrape_interval(series_selector[d])", "The mean of the seconds between samples.", "scrape_interval(time()[5m:1m])", "{} 60"),
    row(Transform, "sgn", "sgn(q)", "-1, 0 or 1, by the sign.", "sgn(-7)", "{} -1"),
    row(Aggregate, "share", "share(q) by (group_labels)", "Each value's share of the group's sum.", r#"share(union(label_set(1, "a", "x"), label_set(3, "a", "y")))"#, r#"{a="x"} 0.25, {a="y"} 0.75"#),
    row(Rollup, "share_eq_over_time", "share_eq_over_time(series_selector[d], eq)", "The share of samples that are equal to the number.", "share_eq_over_time(time()[5m:1m], 89940)", "{} 0.2"),
    row(Rollup, "share_gt_over_time", "share_gt_over_time(series_selector[d], gt)", "The share of samples that are larger than the number.", "share_gt_over_time(time()[5m:1m], 89940)", "{} 0.2"),
    row(Rollup, "share_le_over_time", "share_le_over_time(series_selector[d], le)", "The share of samples that are not larger than the number.", "share_le_over_time(time()[5m:1m], 89940)", "{} 0.8"),
    row(Transform, "sin", "sin(q)", "The sine.", "sin(0)", "{} 0"),
    row(Transform, "sinh", "sinh(q)", "The hyperbolic sine.", "sinh(0)", "{} 0"),
    row(Transform, "smooth_exponential", "smooth_exponential(q, sf)", "Smooths by an exponential moving average.", "smooth_exponential(time(), 0.5)", "{} 90000"),
    row(Transform, "sort", "sort(q)", "Orders series by value, upwards.", r#"sort(union(label_set(1, "a", "x"), label_set(3, "a", "y")))"#, r#"{a="x"} 1, {a="y"} 3"#),
    row(Label, "sort_by_label", r#"sort_by_label(q, "label1", ..., "labelN")"#, "Orders series by labels.", r#"sort_by_label(union(label_set(1, "a", "x10"), label_set(2, "a", "x9")), "a")"#, r#"{a="x10"} 1, {a="x9"} 2"#),
    row(Label, "sort_by_label_desc", r#"sort_by_label_desc(q, "label1", ..., "labelN")"#, "Orders series by labels, downwards.", r#"sort_by_label_desc(union(label_set(1, "a", "x10"), label_set(2, "a", "x9")), "a")"#, r#"{a="x9"} 2, {a="x10"} 1"#),
    row(Label, "sort_by_label_numeric", r#"sort_by_label_numeric(q, "label1", ..., "labelN")"#, "Orders series by labels, numbers within them by value.", r#"sort_by_label_numeric(union(label_set(1, "a", "x10"), label_set(2, "a", "x9")), "a")"#, r#"{a="x9"} 2, {a="x10"} 1"#),
    row(Label, "sort_by_label_numeric_desc", r#"sort_by_label_numeric_desc(q, "label1", ..., "labelN")"#, "Orders series by labels, numbers within them by value, downwards.", r#"sort_by_label_numeric_desc(union(label_set(1, "a", "x10"), label_set(2, "a", "x9")), "a")"#, r#"{a="x10"} 1, {a="x9"} 2"#),
    row(Transform, "sort_desc", "sort_desc(q)", "Orders series by value, downwards.", r#"sort_desc(union(label_set(1, "a", "x"), label_set(3, "a", "y")))"#, r#"{a="y"} 3, {a="x"} 1"#),
    row(Transform, "sqrt", "sqrt(q)", "The square root.", "sqrt(9)", "{} 3"),
    row(Rollup, "stale_samples_over_time", "stale_samples_over_time(series_selector[d])", "How many marks of an ended series the window has.", "stale_samples_over_time(time()[5m:1m])", "{} 0"),
    row(Transform, "start", "start()", "The start of the query, in seconds since the epoch.", "start()", "{} 90000"),
    row(Aggregate, "stddev", "stddev(q) by (group_labels)", "The standard deviation.", r#"stddev(union(label_set(1, "a", "x"), label_set(3, "a", "y")))"#, "{} 1"),
    row(Rollup, "stddev_over_time", "stddev_over_time(series_selector[d])", "The standard deviation of the samples in the window.", "stddev_over_time(vector(1)[5m:1m])", "{} 0"),
    row(Aggregate, "stdvar", "stdvar(q) by (group_labels)", "The variance.", r#"stdvar(union(label_set(1, "a", "x"), label_set(3, "a", "y")))"#, "{} 1"),
    row(Rollup, "stdvar_over_time", "stdvar_over_time(series_selector[d])", "The variance of the samples in the window.", "stdvar_over_time(time()[5m:1m])", "{} 7200"),
    row(Transform, "step", "step()", "The step of the query in seconds.", "step()", "{} 60"),
    row(Aggregate, "sum", "sum(q) by (group_labels)", "The sum.", r#"sum(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 12"),
    row(Aggregate, "sum2", "sum2(q) by (group_labels)", "The sum of the squares.", r#"sum2(union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, "{} 74"),
    row(Rollup, "sum2_over_time", "sum2_over_time(series_selector[d])", "The sum of the squares of the samples.", "sum2_over_time(vector(3)[5m:1m])", "{} 45"),
    row(Rollup, "sum_eq_over_time", "sum_eq_over_time(series_selector[d], eq)", "The sum of the samples that are equal to the number.", "sum_eq_over_time(time()[5m:1m], 89940)", "{} 89940"),
    row(Rollup, "sum_gt_over_time", "sum_gt_over_time(series_selector[d], gt)", "The sum of the samples that are larger than the number.", "sum_gt_over_time(time()[5m:1m], 89940)", "{} 90000"),
    row(Rollup, "sum_le_over_time", "sum_le_over_time(series_selector[d], le)", "The sum of the samples that are not larger than the number.", "sum_le_over_time(time()[5m:1m], 89940)", "{} 359400"),
    row(Rollup, "sum_over_time", "sum_over_time(series_selector[d])", "The sum of the samples in the window.", "sum_over_time(vector(2)[5m:1m])", "{} 10"),
    row(Transform, "tan", "tan(q)", "The tangent.", "tan(0)", "{} 0"),
    row(Transform, "tanh", "tanh(q)", "The hyperbolic tangent.", "tanh(0)", "{} 0"),
    row(Rollup, "tfirst_over_time", "tfirst_over_time(series_selector[d])", "The time of the oldest sample in the window.", "tfirst_over_time(time()[5m:1m])", "{} 89760"),
    row(Transform, "time", "time()", "The time of each point in seconds since the epoch.", "time()", "{} 90000"),
    row(Rollup, "timestamp", "timestamp(series_selector[d])", "The time of the newest sample.", "timestamp(time()[5m:1m])", "{} 90000"),
    row(Rollup, "timestamp_with_name", "timestamp_with_name(series_selector[d])", "The time of the newest sample, the metric's name kept.", "timestamp_with_name(time()[5m:1m])", "{} 90000"),
    row(Transform, "timezone_offset", r#"timezone_offset("tz")"#, "By how many seconds a time zone is ahead of UTC.", r#"timezone_offset("Asia/Tokyo")"#, "{} 32400"),
    row(Rollup, "tlast_change_over_time", "tlast_change_over_time(series_selector[d])", "The time of the newest change of the value.", "tlast_change_over_time(time()[5m:1m])", "{} 90000"),
    row(Rollup, "tlast_over_time", "tlast_over_time(series_selector[d])", "The time of the newest sample in the window.", "tlast_over_time(time()[5m:1m])", "{} 90000"),
    row(Rollup, "tmax_over_time", "tmax_over_time(series_selector[d])", "The time of the largest sample in the window.", "tmax_over_time(time()[5m:1m])", "{} 90000"),
    row(Rollup, "tmin_over_time", "tmin_over_time(series_selector[d])", "The time of the smallest sample in the window.", "tmin_over_time(time()[5m:1m])", "{} 89760"),
    row(Aggregate, "topk", "topk(k, q) by (group_labels)", "At each point so many series with the largest values.", r#"topk(2, union(label_set(1, "a", "x"), label_set(3, "a", "y"), label_set(8, "a", "z")))"#, r#"{a="z"} 8, {a="y"} 3"#),
    row(Aggregate, "topk_avg", r#"topk_avg(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the largest mean over the query's range, the others summed up if a label is given.", r#"topk_avg(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 1, {a="y"} 3"#),
    row(Aggregate, "topk_last", r#"topk_last(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the largest last value over the query's range, the others summed up if a label is given.", r#"topk_last(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 1, {a="y"} 3"#),
    row(Aggregate, "topk_max", r#"topk_max(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the largest largest value over the query's range, the others summed up if a label is given.", r#"topk_max(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 1, {a="y"} 3"#),
    row(Aggregate, "topk_median", r#"topk_median(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the largest median over the query's range, the others summed up if a label is given.", r#"topk_median(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 1, {a="y"} 3"#),
    row(Aggregate, "topk_min", r#"topk_min(k, q[, "other_label=other_value"]) by (group_labels)"#, "So many series with the largest smallest value over the query's range, the others summed up if a label is given.", r#"topk_min(1, union(label_set(1, "a", "x"), label_set(3, "a", "y")), "a=others")"#, r#"{a="others"} 1, {a="y"} 3"#),
    row(Transform, "union", "union(q1, ..., qN)", "All series of all arguments, of equal ones the first.", r#"union(label_set(1, "a", "x"), label_set(3, "a", "y"))"#, r#"{a="x"} 1, {a="y"} 3"#),
    row(Transform, "vector", "vector(q)", "The argument itself.", "vector(1)", "{} 1"),
    row(Transform, "year", "year([q])", "The year, in UTC.", "year()", "{} 1970"),
    row(Aggregate, "zscore", "zscore(q) by (group_labels)", "How many standard deviations each value is from the group's mean.", r#"zscore(union(label_set(1, "a", "x"), label_set(3, "a", "y")))"#, r#"{a="x"} -1, {a="y"} 1"#),
    row(Rollup, "zscore_over_time", "zscore_over_time(series_selector[d])", "How many standard deviations the newest sample is from the mean.", "zscore_over_time(vector(7)[5m:1m])", "{} 0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_complete() {
        for pair in FUNCTIONS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{}", pair[1].name);
        }
        for function in FUNCTIONS {
            assert_eq!(function.name, function.name.to_ascii_lowercase());
            assert!(function.doc.ends_with('.'), "{}", function.name);
            assert!(function.usage.starts_with(function.name), "{}", function.usage);
        }
        let count = |kind| FUNCTIONS.iter().filter(|function| function.kind == kind).count();
        assert_eq!(count(Rollup), 80);
        assert_eq!(count(Transform) + count(Label), 112);
        assert_eq!(count(Aggregate), 37);
    }

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(find("RATE").map(|function| function.name), Some("rate"));
        assert_eq!(find("Sum").map(|function| function.kind), Some(Aggregate));
        assert_eq!(find("").map(|function| function.kind), Some(Transform));
        assert!(find("nope").is_none());
    }

    #[test]
    fn examples_parse_and_use_their_function() {
        for function in FUNCTIONS {
            let expr = crate::metricsql::parse(function.example)
                .unwrap_or_else(|error| panic!("{}: {error}", function.example));
            let printed = expr.to_string();
            assert!(printed.contains(&format!("{}(", function.name)), "{printed}");
        }
    }
}
