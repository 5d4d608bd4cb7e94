//! The table of PromQL's functions: what evaluates each.
//!
//! Names, arguments and words are in `promql::functions`; a test holds the two tables against each
//! other.

use crate::call::CallContext;
use crate::date;
use crate::error::Result;
use crate::rollup::Rollup;
use crate::scalar::Scalar;
use crate::transform::{absent, histogram, info, label, math, scalar, sort};
use crate::vector::Vector;
use ::histogram::Histogram;

/// A function's part of the evaluation.
#[derive(Debug)]
pub(crate) struct Function {
    name: &'static str,
    pub kernel: Kernel,
    /// It sorts what it looks at, at each step: much work for few samples.
    pub sorts: bool,
    /// Its value at a step depends on what its arguments are there and on nothing else, so that it
    /// may be kept for other queries. How far rollups see is told by `crate::cache`.
    pub is_cacheable: bool,
}

/// What evaluates a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// From windows of samples to a value each.
    Rollup(Rollup),
    /// From each number to another.
    Number(fn(f64) -> f64),
    /// From seconds since the epoch to a part of the date; without argument of the step's time.
    Date(fn(i64) -> f64),
    /// From count and sum of each native histogram to a number.
    Totals(fn(&Histogram) -> f64),
    /// From each native histogram to a number.
    Buckets(fn(&Histogram) -> f64),
    /// From arguments to an instant vector.
    Vector(fn(&CallContext<'_>) -> Result<Vector>),
    /// From arguments to a scalar.
    Scalar(fn(&CallContext<'_>) -> Result<Scalar>),
}

impl Function {
    const fn sorts(mut self) -> Function {
        self.sorts = true;
        self
    }

    const fn not_cacheable(mut self) -> Function {
        self.is_cacheable = false;
        self
    }
}

/// The function of that name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok().map(|at| &FUNCTIONS[at])
}

/// The rollup of that name.
pub(crate) fn rollup(name: &str) -> Option<Rollup> {
    match find(name)?.kernel {
        Kernel::Rollup(rollup) => Some(rollup),
        _ => None,
    }
}

/// The function of one number of that name.
pub(crate) fn number(name: &str) -> Option<fn(f64) -> f64> {
    match find(name)?.kernel {
        Kernel::Number(function) => Some(function),
        _ => None,
    }
}

const fn function(name: &'static str, kernel: Kernel) -> Function {
    Function { name, kernel, sorts: false, is_cacheable: true }
}

const fn rollup_row(name: &'static str, rollup: Rollup) -> Function {
    function(name, Kernel::Rollup(rollup))
}

const fn number_row(name: &'static str, of: fn(f64) -> f64) -> Function {
    function(name, Kernel::Number(of))
}

const fn vector_row(name: &'static str, of: fn(&CallContext<'_>) -> Result<Vector>) -> Function {
    function(name, Kernel::Vector(of))
}

const fn scalar_row(name: &'static str, of: fn(&CallContext<'_>) -> Result<Scalar>) -> Function {
    function(name, Kernel::Scalar(of))
}

/// All functions, by name.
static FUNCTIONS: &[Function] = &[
    number_row("abs", f64::abs),
    vector_row("absent", absent::absent),
    vector_row("absent_over_time", absent::absent_over_time),
    number_row("acos", f64::acos),
    number_row("acosh", math::acosh),
    number_row("asin", f64::asin),
    number_row("asinh", math::asinh),
    number_row("atan", f64::atan),
    number_row("atanh", f64::atanh),
    rollup_row("avg_over_time", Rollup::Avg),
    number_row("ceil", f64::ceil),
    rollup_row("changes", Rollup::Changes),
    vector_row("clamp", math::clamp),
    vector_row("clamp_max", math::clamp_max),
    vector_row("clamp_min", math::clamp_min),
    number_row("cos", f64::cos),
    number_row("cosh", f64::cosh),
    rollup_row("count_over_time", Rollup::Count),
    function("day_of_month", Kernel::Date(date::day_of_month)),
    function("day_of_week", Kernel::Date(date::day_of_week)),
    function("day_of_year", Kernel::Date(date::day_of_year)),
    function("days_in_month", Kernel::Date(date::days_in_month)),
    number_row("deg", math::degrees),
    rollup_row("delta", Rollup::Delta),
    rollup_row("deriv", Rollup::Deriv),
    rollup_row("double_exponential_smoothing", Rollup::DoubleExponentialSmoothing),
    scalar_row("end", scalar::end).not_cacheable(),
    number_row("exp", f64::exp),
    rollup_row("first_over_time", Rollup::First),
    number_row("floor", f64::floor),
    function("histogram_avg", Kernel::Totals(Histogram::average)).not_cacheable(),
    function("histogram_count", Kernel::Totals(|one| one.count)).not_cacheable(),
    vector_row("histogram_fraction", histogram::fraction),
    vector_row("histogram_quantile", histogram::quantile).sorts(),
    vector_row("histogram_quantiles", histogram::quantiles).sorts().not_cacheable(),
    function("histogram_stddev", Kernel::Buckets(Histogram::standard_deviation)).not_cacheable(),
    function("histogram_stdvar", Kernel::Buckets(Histogram::variance)).not_cacheable(),
    function("histogram_sum", Kernel::Totals(|one| one.sum)).not_cacheable(),
    rollup_row("holt_winters", Rollup::DoubleExponentialSmoothing),
    function("hour", Kernel::Date(date::hour)),
    rollup_row("idelta", Rollup::Idelta),
    rollup_row("increase", Rollup::Increase),
    vector_row("info", info::info).not_cacheable(),
    rollup_row("irate", Rollup::Irate),
    vector_row("label_join", label::join),
    vector_row("label_replace", label::replace),
    rollup_row("last_over_time", Rollup::Last),
    number_row("ln", f64::ln),
    number_row("log10", f64::log10),
    number_row("log2", f64::log2),
    rollup_row("mad_over_time", Rollup::Mad).sorts(),
    scalar_row("max_of", scalar::max_of).not_cacheable(),
    rollup_row("max_over_time", Rollup::Max),
    scalar_row("min_of", scalar::min_of).not_cacheable(),
    rollup_row("min_over_time", Rollup::Min),
    function("minute", Kernel::Date(date::minute)),
    function("month", Kernel::Date(date::month)),
    scalar_row("pi", scalar::pi),
    rollup_row("predict_linear", Rollup::PredictLinear),
    rollup_row("present_over_time", Rollup::Present),
    rollup_row("quantile_over_time", Rollup::Quantile).sorts(),
    number_row("rad", math::radians),
    scalar_row("range", scalar::range).not_cacheable(),
    rollup_row("rate", Rollup::Rate),
    rollup_row("resets", Rollup::Resets),
    vector_row("round", math::round),
    scalar_row("scalar", scalar::scalar),
    number_row("sgn", math::sign),
    number_row("sin", f64::sin),
    number_row("sinh", f64::sinh),
    vector_row("sort", sort::ascending).not_cacheable(),
    vector_row("sort_by_label", sort::by_label).not_cacheable(),
    vector_row("sort_by_label_desc", sort::by_label_descending).not_cacheable(),
    vector_row("sort_desc", sort::descending).not_cacheable(),
    number_row("sqrt", f64::sqrt),
    scalar_row("start", scalar::start).not_cacheable(),
    vector_row("start_timestamp", math::start_timestamp),
    rollup_row("stddev_over_time", Rollup::Stddev),
    rollup_row("stdvar_over_time", Rollup::Stdvar),
    scalar_row("step", scalar::step).not_cacheable(),
    rollup_row("sum_over_time", Rollup::Sum),
    number_row("tan", f64::tan),
    number_row("tanh", f64::tanh),
    scalar_row("time", scalar::time),
    vector_row("timestamp", math::timestamp),
    rollup_row("ts_of_first_over_time", Rollup::TimeOfFirst),
    rollup_row("ts_of_last_over_time", Rollup::TimeOfLast),
    rollup_row("ts_of_max_over_time", Rollup::TimeOfMax),
    rollup_row("ts_of_min_over_time", Rollup::TimeOfMin),
    vector_row("vector", math::vector),
    function("year", Kernel::Date(date::year)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use promql::{FunctionKind, ValueType};

    #[test]
    fn the_language_and_the_kernels_are_the_same_functions() {
        let known: Vec<&str> = promql::FUNCTIONS.iter().map(|function| function.name).collect();
        let here: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
        assert_eq!(here, known);
        for function in promql::FUNCTIONS {
            let kernel = find(function.name).map(|found| found.kernel);
            let is_rollup = matches!(kernel, Some(Kernel::Rollup(_)));
            assert_eq!(is_rollup, function.kind == FunctionKind::Rollup, "{}", function.name);
            let is_scalar = matches!(kernel, Some(Kernel::Scalar(_)));
            assert_eq!(is_scalar, function.returns == ValueType::Scalar, "{}", function.name);
        }
    }
}
