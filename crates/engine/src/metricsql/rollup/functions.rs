//! The table of all rollups: what makes their values, and how they treat a series.

use super::samples::{Change, to_deltas, to_intervals, to_slopes};
use super::window::Window;
use super::{candlestick, counter, interval, over_time, spread, trend};

/// One rollup.
#[derive(Debug)]
pub(super) struct Function {
    /// Its name in lower case.
    pub name: &'static str,
    /// What makes its values.
    pub kind: Kind,
    /// Where it may stand.
    pub standing: Standing,
    /// It looks at the sample before a window, so samples before the first window are needed.
    pub reads_before: bool,
    /// A window that was not given is drawn out to hold two samples.
    pub stretches: bool,
    /// Resets of counters are removed first.
    pub is_counter: bool,
    /// The result is of the metric's own kind and keeps its name.
    pub keeps_name: bool,
    /// Stale markers are samples to it.
    pub keeps_stale: bool,
}

/// What makes the values of a rollup.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// One row: a kernel, and how many scalar arguments it has.
    Row(Kernel, usize),
    /// Least, largest and mean of the values, after a change.
    Extremes(Change),
    /// Open, close, low and high.
    Candlestick,
    /// The rollups whose names are the arguments.
    Several,
    /// A label and quantiles.
    Quantiles,
    /// A label.
    Values,
    /// Buckets.
    Histogram,
}

/// What makes one value out of one window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kernel {
    /// Out of the samples as they are.
    Plain(fn(&Window<'_>) -> f64),
    /// With memory to sort them in.
    Sorting(fn(&Window<'_>, &mut Vec<f64>) -> f64),
}

/// Where a rollup may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// As a function, and as a name in `aggr_over_time`.
    Anywhere,
    /// As a function only.
    Alone,
    /// As a name in `aggr_over_time` only.
    Inside,
}

impl Function {
    /// The rollup of that name, if it may stand alone.
    pub fn alone(name: &str) -> Option<&'static Function> {
        FUNCTIONS.iter().find(|entry| entry.name == name && entry.standing != Standing::Inside)
    }

    /// The kernel of that name, if it may stand in `aggr_over_time`.
    pub fn inside(name: &str) -> Option<(&'static Function, Kernel)> {
        let entry = FUNCTIONS.iter().find(|entry| entry.name == name)?;
        match (entry.standing, entry.kind) {
            (Standing::Anywhere | Standing::Inside, Kind::Row(kernel, 0)) => Some((entry, kernel)),
            _ => None,
        }
    }

    const fn new(name: &'static str, kind: Kind) -> Function {
        Function {
            name,
            kind,
            standing: Standing::Anywhere,
            reads_before: false,
            stretches: false,
            is_counter: false,
            keeps_name: false,
            keeps_stale: false,
        }
    }

    const fn numbers(mut self, count: usize) -> Function {
        if let Kind::Row(kernel, _) = self.kind {
            self.kind = Kind::Row(kernel, count);
        }
        self
    }

    const fn alone_only(mut self) -> Function {
        self.standing = Standing::Alone;
        self
    }

    const fn inside_only(mut self) -> Function {
        self.standing = Standing::Inside;
        self
    }

    const fn reads_before(mut self) -> Function {
        self.reads_before = true;
        self
    }

    const fn stretches(mut self) -> Function {
        self.stretches = true;
        self
    }

    const fn of_counter(mut self) -> Function {
        self.is_counter = true;
        self
    }

    const fn keeps_name(mut self) -> Function {
        self.keeps_name = true;
        self
    }

    const fn keeps_stale(mut self) -> Function {
        self.keeps_stale = true;
        self
    }
}

/// A kernel without arguments.
const fn plain(name: &'static str, kernel: fn(&Window<'_>) -> f64) -> Function {
    Function::new(name, Kind::Row(Kernel::Plain(kernel), 0))
}

/// A kernel that sorts.
const fn sorting(name: &'static str, kernel: fn(&Window<'_>, &mut Vec<f64>) -> f64) -> Function {
    Function::new(name, Kind::Row(Kernel::Sorting(kernel), 0))
}

/// Least, largest and mean.
const fn extremes(name: &'static str, change: Change) -> Function {
    Function::new(name, Kind::Extremes(change)).reads_before()
}

/// No change of a series.
fn as_is(_timestamps: &[i64], _values: &mut [f64]) {}

/// All rollups, by name.
static FUNCTIONS: &[Function] = &[
    plain("absent_over_time", over_time::absent),
    Function::new("aggr_over_time", Kind::Several),
    plain("ascent_over_time", counter::ascent).reads_before(),
    plain("avg_over_time", over_time::average).keeps_name(),
    plain("changes", counter::changes).reads_before(),
    plain("changes_prometheus", counter::changes_inside).alone_only(),
    plain("count_eq_over_time", over_time::count_equal).numbers(1),
    plain("count_gt_over_time", over_time::count_above).numbers(1),
    plain("count_le_over_time", over_time::count_up_to).numbers(1),
    plain("count_ne_over_time", over_time::count_not_equal).numbers(1),
    plain("count_over_time", over_time::samples),
    Function::new("count_values_over_time", Kind::Values),
    plain("decreases_over_time", counter::falls).reads_before(),
    plain("default_rollup", over_time::last).reads_before().stretches().keeps_name().keeps_stale(),
    plain("delta", counter::delta).reads_before(),
    plain("delta_prometheus", counter::delta_inside).alone_only(),
    plain("deriv", trend::slope).stretches(),
    plain("deriv_fast", counter::rate).reads_before().stretches(),
    plain("descent_over_time", counter::descent).reads_before(),
    sorting("distinct_over_time", spread::distinct),
    plain("duration_over_time", interval::duration).numbers(1),
    plain("first_over_time", over_time::first).keeps_name(),
    plain("geomean_over_time", over_time::geometric_mean).keeps_name(),
    Function::new("histogram_over_time", Kind::Histogram),
    plain("hoeffding_bound_lower", spread::hoeffding_lower).numbers(1).keeps_name(),
    plain("hoeffding_bound_upper", spread::hoeffding_upper).numbers(1).keeps_name(),
    plain("holt_winters", trend::smoothing).numbers(2).keeps_name(),
    plain("idelta", counter::last_delta).reads_before(),
    plain("ideriv", counter::last_rate).reads_before().stretches(),
    plain("increase", counter::delta).reads_before().of_counter(),
    plain("increase_prometheus", counter::delta_inside).alone_only().of_counter(),
    plain("increase_pure", counter::increase_pure).reads_before().of_counter(),
    plain("increases_over_time", counter::rises).reads_before(),
    plain("integrate", trend::area).reads_before(),
    sorting("iqr_over_time", spread::outlier).inside_only(),
    plain("irate", counter::last_rate).reads_before().stretches().of_counter(),
    plain("lag", interval::lag).reads_before(),
    plain("last_over_time", over_time::last).keeps_name(),
    plain("lifetime", interval::lifetime).reads_before(),
    sorting("mad_over_time", spread::median_distance),
    plain("max_over_time", over_time::max).keeps_name(),
    sorting("median_over_time", spread::median).keeps_name(),
    plain("min_over_time", over_time::min).keeps_name(),
    sorting("mode_over_time", spread::mode).keeps_name(),
    sorting("outlier_iqr_over_time", spread::outlier).alone_only(),
    plain("predict_linear", trend::prediction).numbers(1).keeps_name(),
    plain("present_over_time", over_time::present),
    sorting("quantile_over_time", spread::quantile_asked).numbers(1).keeps_name(),
    Function::new("quantiles_over_time", Kind::Quantiles).keeps_name(),
    plain("range_over_time", over_time::range),
    plain("rate", counter::rate).reads_before().stretches().of_counter(),
    plain("rate_over_sum", over_time::rate_of_sum).stretches(),
    plain("rate_prometheus", counter::rate_inside).alone_only().of_counter(),
    plain("resets", counter::falls).reads_before(),
    extremes("rollup", as_is).stretches().keeps_name(),
    Function::new("rollup_candlestick", Kind::Candlestick).reads_before().stretches().keeps_name(),
    extremes("rollup_delta", to_deltas),
    extremes("rollup_deriv", to_slopes).stretches(),
    extremes("rollup_increase", to_deltas).of_counter(),
    extremes("rollup_rate", to_slopes).stretches().of_counter(),
    extremes("rollup_scrape_interval", to_intervals).stretches(),
    plain("scrape_interval", interval::scrape_interval).reads_before().stretches(),
    plain("share_eq_over_time", over_time::share_equal).numbers(1),
    plain("share_gt_over_time", over_time::share_above).numbers(1),
    plain("share_le_over_time", over_time::share_up_to).numbers(1),
    plain("stale_samples_over_time", over_time::stale_samples).keeps_stale(),
    plain("stddev_over_time", spread::deviation),
    plain("stdvar_over_time", spread::variance),
    plain("sum2_over_time", over_time::sum_of_squares),
    plain("sum_eq_over_time", over_time::sum_equal).numbers(1),
    plain("sum_gt_over_time", over_time::sum_above).numbers(1),
    plain("sum_le_over_time", over_time::sum_up_to).numbers(1),
    plain("sum_over_time", over_time::sum),
    plain("tfirst_over_time", over_time::time_of_first),
    plain("timestamp", over_time::time_of_last).stretches(),
    plain("timestamp_with_name", over_time::time_of_last).keeps_name(),
    plain("tlast_change_over_time", over_time::time_of_last_change).reads_before(),
    plain("tlast_over_time", over_time::time_of_last),
    plain("tmax_over_time", over_time::time_of_max),
    plain("tmin_over_time", over_time::time_of_min),
    plain("zscore_over_time", spread::standard_score),
];

/// The rows of [`Kind::Candlestick`].
pub(super) const CANDLESTICK: [(&str, Kernel); 4] = [
    ("open", Kernel::Plain(candlestick::open)),
    ("close", Kernel::Plain(candlestick::close)),
    ("low", Kernel::Plain(candlestick::low)),
    ("high", Kernel::Plain(candlestick::high)),
];

/// The rows of [`Kind::Extremes`].
pub(super) const EXTREMES: [(&str, Kernel); 3] = [
    ("min", Kernel::Plain(over_time::min)),
    ("max", Kernel::Plain(over_time::max)),
    ("avg", Kernel::Plain(over_time::average)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        assert!(FUNCTIONS.windows(2).all(|pair| pair[0].name < pair[1].name));
        let inside = FUNCTIONS.iter().filter(|entry| Function::inside(entry.name).is_some());
        assert_eq!(inside.count(), 49);
        assert_eq!(FUNCTIONS.iter().filter(|entry| entry.standing != Standing::Inside).count(), 80);
    }
}
