//! Random expressions of either dialect over the data's metrics.
//!
//! Only what both servers must answer alike is made; what may differ and why is in
//! `docs/decisions/`.

use crate::random::Random;

/// Whose language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Prometheus'.
    PromQl,
    /// VictoriaMetrics'.
    MetricsQl,
}

const METRICS: [&str; 8] =
    ["gauge", "requests_total", "jittered", "gappy", "state", "info", "lonely", "nothing"];
const WINDOWS: [&str; 6] = ["10s", "45s", "1m", "5m", "17m", "1h"];
const OFFSETS: [&str; 4] = ["30s", "5m", "-2m", "1h"];

const PROMQL_ROLLUPS: [&str; 20] = [
    "rate",
    "increase",
    "delta",
    "irate",
    "idelta",
    "changes",
    "resets",
    "deriv",
    "avg_over_time",
    "sum_over_time",
    "min_over_time",
    "max_over_time",
    "count_over_time",
    "present_over_time",
    "last_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "quantile_over_time",
    "predict_linear",
    "absent_over_time",
];
/// Rollups of one argument.
const METRICSQL_ROLLUPS: [&str; 53] = [
    "rate",
    "increase",
    "delta",
    "irate",
    "idelta",
    "ideriv",
    "changes",
    "resets",
    "deriv",
    "deriv_fast",
    "avg_over_time",
    "sum_over_time",
    "min_over_time",
    "max_over_time",
    "count_over_time",
    "present_over_time",
    "last_over_time",
    "first_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "absent_over_time",
    "ascent_over_time",
    "descent_over_time",
    "changes_prometheus",
    "decreases_over_time",
    "increases_over_time",
    "default_rollup",
    "delta_prometheus",
    "distinct_over_time",
    "geomean_over_time",
    "median_over_time",
    "mode_over_time",
    "mad_over_time",
    "range_over_time",
    "sum2_over_time",
    "zscore_over_time",
    "increase_prometheus",
    "increase_pure",
    "integrate",
    "lag",
    "lifetime",
    "outlier_iqr_over_time",
    "rate_prometheus",
    "rate_over_sum",
    "scrape_interval",
    "stale_samples_over_time",
    "tfirst_over_time",
    "tlast_over_time",
    "tmin_over_time",
    "tmax_over_time",
    "tlast_change_over_time",
    "timestamp",
    "timestamp_with_name",
];
/// Rollups of which each series becomes three.
const METRICSQL_SPLIT_ROLLUPS: [&str; 7] = [
    "rollup",
    "rollup_rate",
    "rollup_deriv",
    "rollup_delta",
    "rollup_increase",
    "rollup_scrape_interval",
    "rollup_candlestick",
];
/// Rollups with a number behind the series.
const METRICSQL_ROLLUPS_WITH: [&str; 11] = [
    "count_eq_over_time",
    "count_gt_over_time",
    "count_le_over_time",
    "count_ne_over_time",
    "share_eq_over_time",
    "share_gt_over_time",
    "share_le_over_time",
    "sum_eq_over_time",
    "sum_gt_over_time",
    "sum_le_over_time",
    "predict_linear",
];
const MATH: [&str; 10] =
    ["abs", "ceil", "floor", "round", "sqrt", "exp", "ln", "sgn", "sin", "atan"];
const METRICSQL_TRANSFORMS: [&str; 24] = [
    "interpolate",
    "keep_last_value",
    "keep_next_value",
    "range_avg",
    "range_first",
    "range_last",
    "range_max",
    "range_min",
    "range_sum",
    "range_mad",
    "range_median",
    "range_stddev",
    "range_stdvar",
    "range_zscore",
    "range_linear_regression",
    "range_normalize",
    "remove_resets",
    "running_avg",
    "running_min",
    "running_max",
    "running_sum",
    "drop_empty_series",
    "sort",
    "hour",
];
const AGGREGATES: [&str; 8] = ["sum", "avg", "count", "min", "max", "group", "stddev", "stdvar"];
const METRICSQL_AGGREGATES: [&str; 9] =
    ["distinct", "geomean", "mad", "median", "mode", "share", "sum2", "zscore", "histogram"];
const GROUPINGS: [&str; 5] =
    ["", " by (job)", " by (job, instance)", " without (instance)", " by (nothing)"];
const BINARY: [&str; 15] =
    ["+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">=", "<=", "and", "or", "unless"];
const METRICSQL_BINARY: [&str; 3] = ["default", "if", "ifnot"];

/// Makes expressions.
pub struct Generator {
    random: Random,
    dialect: Dialect,
}

impl Generator {
    /// The expressions of a seed.
    pub fn new(seed: u64, dialect: Dialect) -> Generator {
        Generator { random: Random::new(seed), dialect }
    }

    /// The next expression.
    pub fn expression(&mut self) -> String {
        let depth = 1 + self.random.below(3) as u32;
        self.vector(depth)
    }

    /// The next step of a range query in seconds; none for an instant query.
    pub fn step_seconds(&mut self) -> Option<i64> {
        [None, Some(15), Some(60), Some(47), Some(600)][self.random.below(5) as usize]
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.random.below(list.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn is_metricsql(&self) -> bool {
        self.dialect == Dialect::MetricsQl
    }

    fn vector(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.selector();
        }
        match self.random.below(if self.is_metricsql() { 9 } else { 7 }) {
            0 => self.selector(),
            1 | 2 => self.rollup(depth),
            3 => self.aggregate(depth),
            4 => self.binary(depth),
            5 => {
                let function = self.pick(&MATH);
                format!("{function}({})", self.vector(depth - 1))
            }
            6 => self.labels(depth),
            7 => {
                let function = self.pick(&METRICSQL_TRANSFORMS);
                format!("{function}({})", self.vector(depth - 1))
            }
            _ => self.metricsql_aggregate(depth),
        }
    }

    fn matchers(&mut self) -> &'static str {
        const MATCHERS: [&str; 6] =
            ["", "", "{job=\"api\"}", "{job=~\"a.*\"}", "{instance!=\"2\"}", "{instance=~\"1|3\"}"];
        MATCHERS[self.random.below(MATCHERS.len() as u64) as usize]
    }

    fn modifiers(&mut self) -> String {
        if !self.chance(15) {
            return String::new();
        }
        format!(" offset {}", self.pick(&OFFSETS))
    }

    fn selector_alone(&mut self) -> String {
        let metric = self.pick(&METRICS);
        format!("{metric}{}", self.matchers())
    }

    fn selector(&mut self) -> String {
        format!("{}{}", self.selector_alone(), self.modifiers())
    }

    /// What a rollup looks at, window included.
    fn window(&mut self, depth: u32) -> String {
        let window = self.pick(&WINDOWS);
        if self.is_metricsql() && self.chance(20) {
            // Without a window; of an expression it is a subquery of the query's step.
            return if self.chance(70) { self.selector() } else { self.vector(depth - 1) };
        }
        if self.chance(20) {
            let step = self.pick(&["15s", "1m", "40s"]);
            return format!("({})[{window}:{step}]", self.vector(depth - 1));
        }
        format!("{}[{window}]{}", self.selector_alone(), self.modifiers())
    }

    fn rollup(&mut self, depth: u32) -> String {
        if self.is_metricsql() && self.chance(10) {
            // Nested, VictoriaMetrics gives their series the label `rollup` twice.
            let function = self.pick(&METRICSQL_SPLIT_ROLLUPS);
            return format!("{function}({}[{}])", self.selector_alone(), self.pick(&WINDOWS));
        }
        let window = self.window(depth);
        if self.is_metricsql() && self.chance(20) {
            let function = self.pick(&METRICSQL_ROLLUPS_WITH);
            return format!("{function}({window}, {})", self.random.below(40));
        }
        let function = match self.is_metricsql() {
            true => self.pick(&METRICSQL_ROLLUPS),
            false => self.pick(&PROMQL_ROLLUPS),
        };
        let keeps = if self.is_metricsql() && self.chance(15) { " keep_metric_names" } else { "" };
        match function {
            "quantile_over_time" => format!("{function}(0.{}, {window})", self.random.below(10)),
            "predict_linear" => format!("{function}({window}, {})", self.random.below(600)),
            _ => format!("{function}({window}){keeps}"),
        }
    }

    fn aggregate(&mut self, depth: u32) -> String {
        let inner = self.vector(depth - 1);
        let grouping = self.pick(&GROUPINGS);
        match self.random.below(5) {
            0 => format!("quantile{grouping} (0.{}, {inner})", self.random.below(10)),
            _ => format!("{}{grouping} ({inner})", self.pick(&AGGREGATES)),
        }
    }

    fn metricsql_aggregate(&mut self, depth: u32) -> String {
        let inner = self.vector(depth - 1);
        let grouping = self.pick(&GROUPINGS);
        format!("{}({inner}){grouping}", self.pick(&METRICSQL_AGGREGATES))
    }

    fn binary(&mut self, depth: u32) -> String {
        let left = self.vector(depth - 1);
        let op = match self.is_metricsql() && self.chance(25) {
            true => self.pick(&METRICSQL_BINARY),
            false => self.pick(&BINARY),
        };
        let is_set = matches!(op, "and" | "or" | "unless" | "default" | "if" | "ifnot");
        if !is_set && self.chance(40) {
            return format!("({left}) {op} {}", self.random.below(20));
        }
        let is_comparison = matches!(op, "==" | "!=" | ">" | "<" | ">=" | "<=");
        let returns_bool = if is_comparison && self.chance(30) { " bool" } else { "" };
        let matching =
            self.pick(&["", "", " on (job)", " on (job, instance)", " ignoring (instance)"]);
        format!("({left}) {op}{returns_bool}{matching} ({})", self.vector(depth - 1))
    }

    fn labels(&mut self, depth: u32) -> String {
        let inner = self.vector(depth - 1);
        if self.is_metricsql() && self.chance(50) {
            return match self.random.below(5) {
                0 => format!("label_set({inner}, \"x\", \"y\")"),
                1 => format!("label_del({inner}, \"instance\")"),
                2 => format!("label_copy({inner}, \"job\", \"role\")"),
                3 => format!("alias({inner}, \"other\")"),
                _ => format!("label_match({inner}, \"job\", \"a.+\")"),
            };
        }
        match self.random.below(3) {
            0 => format!("label_replace({inner}, \"x\", \"$1-y\", \"job\", \"(.).*\")"),
            1 => format!("label_join({inner}, \"x\", \"/\", \"job\", \"instance\")"),
            _ => {
                format!("histogram_quantile(0.{}, rate(latency_bucket[5m]))", self.random.below(10))
            }
        }
    }
}
