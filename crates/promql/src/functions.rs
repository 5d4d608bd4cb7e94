//! The table of functions: name, arguments, kind, a sentence, an example and its answer.
//!
//! One table serves the parser (names and types), the engine (kind), the reference page and
//! the tests: each example is evaluated at 01:00:00 on the first day of 1970 over no data at all
//! and must give the answer beside it.

use crate::value_type::ValueType::{self, Matrix, Scalar, String as Text, Vector};

/// What a function works on; the engine dispatches by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// Windows of samples to one value per series.
    Rollup,
    /// Each sample by itself.
    Math,
    /// Each sample's time or value taken as a date.
    Date,
    /// Histogram buckets.
    Histogram,
    /// The labels of series.
    Label,
    /// The order of series.
    Sort,
    /// The absence of series.
    Absent,
    /// Scalars and the query itself.
    Scalar,
}

/// How many arguments more or fewer than listed a call may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly those listed.
    Exact,
    /// The last one listed may occur this often, or not at all.
    LastUpTo(usize),
    /// The last one listed may occur any number of times, or not at all.
    LastRepeats,
}

/// One function of the language.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments.
    pub arguments: &'static [ValueType],
    /// How many of them.
    pub arity: Arity,
    /// What it returns.
    pub returns: ValueType,
    /// Whether Prometheus calls it experimental: [`crate::EXPERIMENTAL_FLAG`] is needed.
    pub is_experimental: bool,
    /// What it works on.
    pub kind: FunctionKind,
    /// What it does.
    pub doc: &'static str,
    /// A use of it that needs no data.
    pub example: &'static str,
    /// What the example gives at 01:00:00 on the first day of 1970.
    pub answer: &'static str,
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

/// The function of that name.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok().map(|at| &FUNCTIONS[at])
}

const fn row(
    kind: FunctionKind,
    name: &'static str,
    arguments: &'static [ValueType],
    doc: &'static str,
    example: &'static str,
    answer: &'static str,
) -> Function {
    Function {
        name,
        arguments,
        arity: Arity::Exact,
        returns: if matches!(kind, FunctionKind::Scalar) { Scalar } else { Vector },
        is_experimental: false,
        kind,
        doc,
        example,
        answer,
    }
}

impl Function {
    const fn arity(mut self, arity: Arity) -> Function {
        self.arity = arity;
        self
    }

    const fn experimental(mut self) -> Function {
        self.is_experimental = true;
        self
    }

    const fn returns(mut self, returns: ValueType) -> Function {
        self.returns = returns;
        self
    }
}

use FunctionKind::{Absent, Date, Histogram, Label, Math, Rollup, Sort};

/// All functions, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = &[
    row(Math, "abs", &[Vector], "The absolute value.", "abs(vector(-2))", "{} 2"),
    row(Absent, "absent", &[Vector], "1 where the vector has no series, with the labels that the selector demands.", r#"absent(nothing{job="a"})"#, r#"{job="a"} 1"#),
    row(Absent, "absent_over_time", &[Matrix], "1 where no series has a sample in the window.", r#"absent_over_time(nothing{job="a"}[5m])"#, r#"{job="a"} 1"#),
    row(Math, "acos", &[Vector], "The arc cosine.", "acos(vector(1))", "{} 0"),
    row(Math, "acosh", &[Vector], "The inverse hyperbolic cosine.", "acosh(vector(1))", "{} 0"),
    row(Math, "asin", &[Vector], "The arc sine.", "asin(vector(0))", "{} 0"),
    row(Math, "asinh", &[Vector], "The inverse hyperbolic sine.", "asinh(vector(0))", "{} 0"),
    row(Math, "atan", &[Vector], "The arc tangent.", "atan(vector(0))", "{} 0"),
    row(Math, "atanh", &[Vector], "The inverse hyperbolic tangent.", "atanh(vector(0))", "{} 0"),
    row(Rollup, "avg_over_time", &[Matrix], "The mean of the samples in the window.", "avg_over_time(vector(time())[3m:1m])", "{} 3540"),
    row(Math, "ceil", &[Vector], "The next integer above.", "ceil(vector(1.2))", "{} 2"),
    row(Rollup, "changes", &[Matrix], "How often the value changed within the window.", "changes(vector(time())[5m:1m])", "{} 4"),
    row(Math, "clamp", &[Vector, Scalar, Scalar], "The value, bounded below and above.", "clamp(vector(7), 1, 5)", "{} 5"),
    row(Math, "clamp_max", &[Vector, Scalar], "The value, bounded above.", "clamp_max(vector(7), 5)", "{} 5"),
    row(Math, "clamp_min", &[Vector, Scalar], "The value, bounded below.", "clamp_min(vector(7), 9)", "{} 9"),
    row(Math, "cos", &[Vector], "The cosine.", "cos(vector(0))", "{} 1"),
    row(Math, "cosh", &[Vector], "The hyperbolic cosine.", "cosh(vector(0))", "{} 1"),
    row(Rollup, "count_over_time", &[Matrix], "How many samples the window has.", "count_over_time(vector(1)[5m:1m])", "{} 5"),
    row(Date, "day_of_month", &[Vector], "The day of the month, from 1, in UTC.", "day_of_month()", "{} 1").arity(Arity::LastUpTo(1)),
    row(Date, "day_of_week", &[Vector], "The day of the week, 0 for Sunday, in UTC.", "day_of_week()", "{} 4").arity(Arity::LastUpTo(1)),
    row(Date, "day_of_year", &[Vector], "The day of the year, from 1, in UTC.", "day_of_year(vector(86400))", "{} 2").arity(Arity::LastUpTo(1)),
    row(Date, "days_in_month", &[Vector], "How many days the month has.", "days_in_month()", "{} 31").arity(Arity::LastUpTo(1)),
    row(Math, "deg", &[Vector], "Radians to degrees.", "deg(vector(pi()))", "{} 180"),
    row(Rollup, "delta", &[Matrix], "The difference between the window's ends, extrapolated to the whole window; for gauges.", "delta(vector(time())[5m:1m])", "{} 300"),
    row(Rollup, "deriv", &[Matrix], "The slope per second of the straight line that fits the window best.", "deriv(vector(time())[5m:1m])", "{} 1"),
    row(Rollup, "double_exponential_smoothing", &[Matrix, Scalar, Scalar], "The window's end, smoothed by a smoothing and a trend factor.", "double_exponential_smoothing(vector(time())[5m:1m], 0.5, 0.5)", "{} 3600").experimental(),
    row(FunctionKind::Scalar, "end", &[], "The end of the query, in seconds since the epoch.", "end()", "3600").experimental(),
    row(Math, "exp", &[Vector], "e to the power of the value.", "exp(vector(0))", "{} 1"),
    row(Rollup, "first_over_time", &[Matrix], "The oldest sample in the window.", "first_over_time(vector(time())[5m:1m])", "{} 3360"),
    row(Math, "floor", &[Vector], "The next integer below.", "floor(vector(1.8))", "{} 1"),
    row(Histogram, "histogram_avg", &[Vector], "The mean observation of native histograms.", "histogram_avg(vector(1))", ""),
    row(Histogram, "histogram_count", &[Vector], "The number of observations of native histograms.", "histogram_count(vector(1))", ""),
    row(Histogram, "histogram_fraction", &[Scalar, Scalar, Vector], "The share of observations between two bounds.", r#"histogram_fraction(0, 1, label_replace(vector(10), "le", "1", "", "") or label_replace(vector(20), "le", "+Inf", "", ""))"#, "{} 0.5"),
    row(Histogram, "histogram_quantile", &[Scalar, Vector], "The quantile of a histogram, interpolated within its bucket.", r#"histogram_quantile(0.25, label_replace(vector(10), "le", "1", "", "") or label_replace(vector(20), "le", "+Inf", "", ""))"#, "{} 0.5"),
    row(Histogram, "histogram_quantiles", &[Vector, Text, Scalar, Scalar], "Up to ten quantiles of a histogram, told apart by a label.", r#"histogram_quantiles(label_replace(vector(10), "le", "1", "", "") or label_replace(vector(20), "le", "+Inf", "", ""), "q", 0.25)"#, r#"{q="0.25"} 0.5"#).arity(Arity::LastUpTo(9)).experimental(),
    row(Histogram, "histogram_stddev", &[Vector], "The standard deviation of the observations of native histograms.", "histogram_stddev(vector(1))", ""),
    row(Histogram, "histogram_stdvar", &[Vector], "The variance of the observations of native histograms.", "histogram_stdvar(vector(1))", ""),
    row(Histogram, "histogram_sum", &[Vector], "The sum of the observations of native histograms.", "histogram_sum(vector(1))", ""),
    row(Rollup, "holt_winters", &[Matrix, Scalar, Scalar], "The name that `double_exponential_smoothing` had before Prometheus 3.", "holt_winters(vector(time())[5m:1m], 0.5, 0.5)", "{} 3600"),
    row(Date, "hour", &[Vector], "The hour of the day, in UTC.", "hour()", "{} 1").arity(Arity::LastUpTo(1)),
    row(Rollup, "idelta", &[Matrix], "The difference of the window's last two samples.", "idelta(vector(time())[5m:1m])", "{} 60"),
    row(Rollup, "increase", &[Matrix], "How much a counter grew within the window, extrapolated to the whole window.", "increase(vector(time())[5m:1m])", "{} 300"),
    row(Label, "info", &[Vector, Vector], "Adds the labels that an info metric, `target_info` unless the second argument names others, has for the series' `instance` and `job`.", "info(vector(1))", "{} 1").arity(Arity::LastUpTo(1)).experimental(),
    row(Rollup, "irate", &[Matrix], "The growth per second of a counter between the window's last two samples.", "irate(vector(time())[5m:1m])", "{} 1"),
    row(Label, "label_join", &[Vector, Text, Text, Text], "Sets a label to the values of other labels, joined by a separator.", r#"label_join(vector(1), "a", "-", "b", "c")"#, r#"{a="-"} 1"#).arity(Arity::LastRepeats),
    row(Label, "label_replace", &[Vector, Text, Text, Text, Text], "Sets a label from what a regular expression found in another label.", r#"label_replace(vector(1), "a", "x$1", "b", "(.*)")"#, r#"{a="x"} 1"#),
    row(Rollup, "last_over_time", &[Matrix], "The newest sample in the window.", "last_over_time(vector(time())[5m:1m])", "{} 3600"),
    row(Math, "ln", &[Vector], "The natural logarithm.", "ln(vector(1))", "{} 0"),
    row(Math, "log10", &[Vector], "The decimal logarithm.", "log10(vector(1000))", "{} 3"),
    row(Math, "log2", &[Vector], "The binary logarithm.", "log2(vector(8))", "{} 3"),
    row(Rollup, "mad_over_time", &[Matrix], "The median of the distances from the median.", "mad_over_time(vector(time())[5m:1m])", "{} 60").experimental(),
    row(FunctionKind::Scalar, "max_of", &[Scalar, Scalar], "The larger of two scalars.", "max_of(1, 2)", "2").experimental(),
    row(Rollup, "max_over_time", &[Matrix], "The largest sample in the window.", "max_over_time(vector(time())[5m:1m])", "{} 3600"),
    row(FunctionKind::Scalar, "min_of", &[Scalar, Scalar], "The smaller of two scalars.", "min_of(1, 2)", "1").experimental(),
    row(Rollup, "min_over_time", &[Matrix], "The smallest sample in the window.", "min_over_time(vector(time())[5m:1m])", "{} 3360"),
    row(Date, "minute", &[Vector], "The minute of the hour, in UTC.", "minute(vector(150))", "{} 2").arity(Arity::LastUpTo(1)),
    row(Date, "month", &[Vector], "The month of the year, from 1, in UTC.", "month()", "{} 1").arity(Arity::LastUpTo(1)),
    row(FunctionKind::Scalar, "pi", &[], "The ratio of a circle's circumference to its diameter.", "pi()", "3.141592653589793"),
    row(Rollup, "predict_linear", &[Matrix, Scalar], "Where the straight line that fits the window best will be in so many seconds.", "predict_linear(vector(time())[5m:1m], 400)", "{} 4000"),
    row(Rollup, "present_over_time", &[Matrix], "1 for each series with a sample in the window.", "present_over_time(vector(7)[5m:1m])", "{} 1"),
    row(Rollup, "quantile_over_time", &[Scalar, Matrix], "The quantile of the samples in the window.", "quantile_over_time(0.5, vector(time())[5m:1m])", "{} 3480"),
    row(Math, "rad", &[Vector], "Degrees to radians.", "rad(vector(0))", "{} 0"),
    row(FunctionKind::Scalar, "range", &[], "The length of the query's time range in seconds.", "range()", "0").experimental(),
    row(Rollup, "rate", &[Matrix], "The growth per second of a counter within the window, extrapolated to the whole window.", "rate(vector(time())[5m:1m])", "{} 1"),
    row(Rollup, "resets", &[Matrix], "How often a counter fell within the window.", "resets(vector(time() % 120)[5m:1m])", "{} 2"),
    row(Math, "round", &[Vector, Scalar], "The nearest multiple of the second argument, else of 1.", "round(vector(7.6))", "{} 8").arity(Arity::LastUpTo(1)),
    row(FunctionKind::Scalar, "scalar", &[Vector], "The value of a vector of one series; NaN for any other.", "scalar(vector(5))", "5"),
    row(Math, "sgn", &[Vector], "-1, 0 or 1, by the sign.", "sgn(vector(-7))", "{} -1"),
    row(Math, "sin", &[Vector], "The sine.", "sin(vector(0))", "{} 0"),
    row(Math, "sinh", &[Vector], "The hyperbolic sine.", "sinh(vector(0))", "{} 0"),
    row(Sort, "sort", &[Vector], "Orders series by value, upwards; for instant queries.", "sort(vector(1))", "{} 1"),
    row(Sort, "sort_by_label", &[Vector, Text], "Orders series by labels, numbers within them by value.", r#"sort_by_label(vector(1), "a")"#, "{} 1").arity(Arity::LastRepeats).experimental(),
    row(Sort, "sort_by_label_desc", &[Vector, Text], "As `sort_by_label`, downwards.", r#"sort_by_label_desc(vector(1), "a")"#, "{} 1").arity(Arity::LastRepeats).experimental(),
    row(Sort, "sort_desc", &[Vector], "Orders series by value, downwards; for instant queries.", "sort_desc(vector(1))", "{} 1"),
    row(Math, "sqrt", &[Vector], "The square root.", "sqrt(vector(9))", "{} 3"),
    row(FunctionKind::Scalar, "start", &[], "The start of the query, in seconds since the epoch.", "start()", "3600").experimental(),
    row(Math, "start_timestamp", &[Vector], "Since when each sample counts, in seconds since the epoch, 0 where nothing says so; nothing without `--query.start-timestamps`.", "start_timestamp(vector(1))", "").experimental(),
    row(Rollup, "stddev_over_time", &[Matrix], "The standard deviation of the samples in the window.", "stddev_over_time(vector(1)[5m:1m])", "{} 0"),
    row(Rollup, "stdvar_over_time", &[Matrix], "The variance of the samples in the window.", "stdvar_over_time(vector(time())[3m:1m])", "{} 2400"),
    row(FunctionKind::Scalar, "step", &[], "The step of the query in seconds.", "step()", "0").experimental(),
    row(Rollup, "sum_over_time", &[Matrix], "The sum of the samples in the window.", "sum_over_time(vector(2)[5m:1m])", "{} 10"),
    row(Math, "tan", &[Vector], "The tangent.", "tan(vector(0))", "{} 0"),
    row(Math, "tanh", &[Vector], "The hyperbolic tangent.", "tanh(vector(0))", "{} 0"),
    row(FunctionKind::Scalar, "time", &[], "The time of the evaluation in seconds since the epoch.", "time()", "3600"),
    row(Math, "timestamp", &[Vector], "The time of each sample in seconds since the epoch.", "timestamp(vector(1))", "{} 3600"),
    row(Rollup, "ts_of_first_over_time", &[Matrix], "The time of the oldest sample in the window.", "ts_of_first_over_time(vector(1)[5m:1m])", "{} 3360").experimental(),
    row(Rollup, "ts_of_last_over_time", &[Matrix], "The time of the newest sample in the window.", "ts_of_last_over_time(vector(1)[5m:1m])", "{} 3600").experimental(),
    row(Rollup, "ts_of_max_over_time", &[Matrix], "The time of the newest of the largest samples in the window.", "ts_of_max_over_time(vector(time())[5m:1m])", "{} 3600").experimental(),
    row(Rollup, "ts_of_min_over_time", &[Matrix], "The time of the newest of the smallest samples in the window.", "ts_of_min_over_time(vector(time())[5m:1m])", "{} 3360").experimental(),
    row(Math, "vector", &[Scalar], "A vector of one series without labels.", "vector(1)", "{} 1").returns(Vector),
    row(Date, "year", &[Vector], "The year, in UTC.", "year()", "{} 1970").arity(Arity::LastUpTo(1)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_complete() {
        assert!(FUNCTIONS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for function in FUNCTIONS {
            assert_eq!(find(function.name), Some(function));
            assert!(function.doc.ends_with('.'), "{}", function.name);
            assert!(function.example.starts_with(&format!("{}(", function.name)));
        }
        assert_eq!(find("no_such_function"), None);
    }
}
