"""Random expressions of MetricsQL over the series of promql_data.py, as trees."""

import dictionary
from promql_data import LABEL_VALUES, START_MS
from promql_expressions import EDGE_NUMBERS, REGEXES, REPLACEMENTS, quote
from promql_tree import Node, call

METRICS = ["gauge", "requests_total", "jittered", "gappy", "state", "info", "lonely", "nothing", "unequal", "mortal",
           "gauge", "requests_total", "gappy"]
# Series with a sample every 15 s: VictoriaMetrics changed how it bridges gaps.
REGULAR_METRICS = ["gauge", "requests_total", "state", "info", "nothing", "unequal", "gauge", "requests_total"]
REGULAR_WINDOWS = ["1m", "5m", "17m", "1h", "1h30m", "300"]
WINDOWS = ["10s", "45s", "1m", "5m", "17m", "1h", "90s", "1h30m", "1d", "3i", "1.5m", "300", "500ms", "1i"]
OFFSETS = ["30s", "5m", "-2m", "1h", "-1h", "1d", "2i", "-1i"]
STEPS = ["15s", "1m", "40s", "", "7m", "2i"]
GROUPINGS = ["job", "job, instance", "instance", "", "nothing", "index", "version, job", "__name__", "le"]
LABELS = ["job", "instance", "x", "version", "value", "__name__", "le", "index", "nothing"]

ROLLUPS = """absent_over_time ascent_over_time avg_over_time changes changes_prometheus count_over_time
decreases_over_time default_rollup delta delta_prometheus deriv deriv_fast descent_over_time distinct_over_time
first_over_time geomean_over_time histogram_over_time idelta ideriv increase increase_prometheus increase_pure
increases_over_time integrate irate lag last_over_time lifetime mad_over_time max_over_time median_over_time
min_over_time mode_over_time outlier_iqr_over_time present_over_time range_over_time rate rate_over_sum
rate_prometheus resets scrape_interval stale_samples_over_time stddev_over_time stdvar_over_time sum2_over_time
sum_over_time tfirst_over_time timestamp timestamp_with_name tlast_change_over_time tlast_over_time tmax_over_time
tmin_over_time zscore_over_time""".split()
NUMBER_LAST_ROLLUPS = """count_eq_over_time count_gt_over_time count_le_over_time count_ne_over_time
share_eq_over_time share_gt_over_time share_le_over_time sum_eq_over_time sum_gt_over_time sum_le_over_time
predict_linear duration_over_time""".split()
NUMBER_FIRST_ROLLUPS = ["quantile_over_time", "hoeffding_bound_lower", "hoeffding_bound_upper"]
SPLIT_ROLLUPS = """rollup rollup_rate rollup_deriv rollup_delta rollup_increase rollup_scrape_interval
rollup_candlestick""".split()
TRANSFORMS = """abs acos acosh asin asinh atan atanh ceil cos cosh day_of_month day_of_week day_of_year days_in_month
deg drop_empty_series exp floor hour interpolate keep_last_value keep_next_value ln log10 log2 minute month rad
range_avg range_first range_last range_linear_regression range_mad range_max range_median range_min range_normalize
range_stddev range_stdvar range_sum range_zscore remove_resets running_avg running_max running_min running_sum scalar
sgn sin sinh sort sort_desc sqrt tan tanh vector year absent round prometheus_buckets drop_common_labels""".split()
NUMBER_LAST_TRANSFORMS = """bitmap_and bitmap_or bitmap_xor clamp_max clamp_min round smooth_exponential""".split()
NUMBER_FIRST_TRANSFORMS = """range_quantile range_trim_outliers range_trim_spikes range_trim_zscore buckets_limit
histogram_share histogram_quantile""".split()
BUCKETS = ["histogram_avg", "histogram_stddev", "histogram_stdvar", "prometheus_buckets"]
AGGREGATES = """sum avg count min max group stddev stdvar distinct geomean mad median mode share sum2 zscore histogram
outliers_iqr""".split()
NUMBER_FIRST_AGGREGATES = """quantile topk bottomk topk_avg topk_max topk_min topk_median topk_last bottomk_avg
bottomk_max bottomk_min bottomk_median bottomk_last outliers_mad outliersk""".split()
ARITHMETIC = ["+", "-", "*", "/", "%", "^", "atan2"]
COMPARISONS = ["==", "!=", ">", "<", ">=", "<="]
SETS = ["and", "or", "unless", "default", "if", "ifnot"]
NUMBERS = EDGE_NUMBERS + ["1k", "2Ki", "1.5M", "3Gi", "1h", "5m30s", "1e6"]
# What VictoriaMetrics changed between 1.79 and 1.151.
CHANGED_FUNCTIONS = set("""zscore label_transform bitmap_and bitmap_or bitmap_xor rollup rollup_increase rollup_delta
rollup_scrape_interval rollup_deriv rollup_rate rollup_candlestick integrate increase_pure deriv deriv_fast
sort_by_label sort_by_label_desc buckets_limit timestamp mode_over_time range_quantile limit_offset holt_winters
label_replace label_join topk_last bottomk_last topk_median bottomk_median topk_avg bottomk_avg topk_max bottomk_max
topk_min bottomk_min aggr_over_time rate_over_sum histogram_quantile histogram_quantiles histogram_share
quantiles_over_time""".split())
# Functions of counters: VictoriaMetrics changed what it takes for a reset.
COUNTER_FUNCTIONS = {"rate", "irate", "increase", "increase_prometheus"}
ALL_FUNCTIONS = sorted({*ROLLUPS, *NUMBER_LAST_ROLLUPS, *NUMBER_FIRST_ROLLUPS, *SPLIT_ROLLUPS, *TRANSFORMS,
                        *NUMBER_LAST_TRANSFORMS, *NUMBER_FIRST_TRANSFORMS, *BUCKETS, *AGGREGATES,
                        *NUMBER_FIRST_AGGREGATES, "label_set", "label_del", "label_keep", "label_copy", "label_move",
                        "label_map", "label_match", "label_mismatch", "label_replace", "label_join", "label_transform",
                        "label_uppercase", "label_lowercase", "label_value", "labels_equal", "sort_by_label",
                        "sort_by_label_desc", "sort_by_label_numeric", "aggr_over_time", "quantiles_over_time",
                        "count_values_over_time", "quantiles", "count_values", "union", "limit_offset", "start", "end",
                        "step", "now", "time", "pi", "alias", "histogram_quantiles", "histogram_fraction", "clamp",
                        "label_graphite_group", "timezone_offset", "ru", "ttf"})


class ExpressionGenerator:
    """Makes expressions of the functions that the peer knows."""

    def __init__(self, chance, functions, is_newer):
        self.chance, self.is_newer = chance, is_newer
        self.functions = functions if is_newer else functions - CHANGED_FUNCTIONS
        self.metrics = METRICS if is_newer else REGULAR_METRICS
        self.windowed = ["rate(q[5m])", "q[5m]"] if is_newer else []
        self.windows = WINDOWS if is_newer else REGULAR_WINDOWS

    def pick(self, *choices):
        return self.chance.choice(choices)

    def function(self, names):
        """One of the names that the peer knows."""
        return self.chance.choice([name for name in names if name in self.functions] or ["sum"])

    def often(self, percent):
        return self.chance.random() * 100 < percent

    def expression(self):
        return self.vector(self.chance.randint(1, 3))

    # Leaves

    def number(self):
        if self.often(35):
            return Node("scalar", self.chance.choice(NUMBERS))
        return Node("scalar", str(self.chance.randint(0, 20)))

    def share(self):
        return Node("scalar", self.pick("0.5", "0.9", "0.99", "0", "1", "0.25")) if self.often(70) else self.number()

    def label(self):
        return Node("string", f'"{self.chance.choice(LABELS)}"')

    def string(self):
        return Node("string", quote(dictionary.draw_string(self.chance)))

    def option(self, percent, *texts):
        return Node("option", self.chance.choice(texts) if self.often(percent) else "")

    def matchers(self):
        kind = self.chance.random()
        if kind < 0.6:
            return ""
        if kind < 0.85:
            return self.pick('{job="api"}', '{job=~"a.*"}', '{instance!="2"}', '{instance=~"1|3"}', '{job!~"db"}',
                             '{job="api",instance="1"}', '{nothing=""}', '{nothing!=""}', '{job="api",}', "{}",
                             "{index='1'}", '{le="+Inf"}', '{job=""}')
        if kind < 0.89 and self.is_newer:
            return self.pick('{job="api" or instance="2"}', '{job="db",instance="1" or job="api"}',
                             '{job="x" or job=""}')
        if kind < 0.95:
            return f'{{{self.chance.choice(LABELS)}{self.pick("=~", "!~")}"{self.chance.choice(REGEXES)}"}}'
        return f'{{value{self.pick("=", "!=")}{quote(self.chance.choice(LABEL_VALUES))}}}'

    def metric(self):
        kind = self.chance.random()
        if kind < 0.07 and self.is_newer:
            return self.pick("edge", "strings")
        return self.chance.choice(self.metrics)

    def selector_alone(self):
        if self.often(4) and self.is_newer:
            return Node("vector", self.pick('{__name__=~"gauge|state",job="api"}', '{__name__="gauge"}', '{job="api"}'))
        return Node("vector", self.metric(), Node("option", self.matchers()))

    def modifiers(self):
        parts = []
        if self.often(12):
            parts.append(f" offset {self.chance.choice(OFFSETS)}")
        if self.often(6) and self.is_newer:
            seconds = START_MS // 1000 + self.chance.randrange(-600, 7800, 15)
            parts.append(f" @ {self.pick('start()', 'end()', seconds, *['(end() - 10m)'] * self.is_newer)}")
        self.chance.shuffle(parts)
        return Node("option", "".join(parts))

    def selector(self, _=0):
        return Node("vector", self.selector_alone(), self.modifiers())

    def window(self):
        return Node("duration", self.chance.choice(self.windows))

    def rolled(self, depth):
        """What a rollup function reads: a selector or an expression, with or without a window."""
        kind = self.chance.random()
        if kind < 0.2 and self.is_newer:
            return self.selector() if self.often(70) or not depth else self.vector(depth - 1)
        if kind < 0.4 and depth and self.is_newer:
            step = Node("option", ":" + self.chance.choice(STEPS) if self.often(80) else "")
            return Node("matrix", "(", self.vector(depth - 1), ")[", self.window(), step, "]", self.modifiers())
        return Node("matrix", self.selector_alone(), "[", self.window(), "]", self.modifiers())

    def names_kept(self):
        return (self.option(12, " keep_metric_names"),)

    # Vectors

    def vector(self, depth):
        if depth <= 0:
            return self.selector()
        kinds = [(self.selector, 3), (self.rollup, 8), (self.aggregate, 5), (self.binary, 6), (self.transform, 5),
                 (self.relabel, 3), (self.buckets, 1), (self.other, 2)]
        return self.chance.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0](depth)

    def rollup(self, depth):
        kind = self.chance.random()
        inner = self.rolled(depth)
        if kind < 0.08:
            # Nested, VictoriaMetrics gives their series the label `rollup` twice.
            inner = Node("matrix", self.selector_alone(), "[", self.window(), "]")
            which = [Node("string", self.pick('"min"', '"max"', '"avg"'))] if self.often(20) else []
            return call("vector", self.function(SPLIT_ROLLUPS), inner, *which)
        if kind < 0.24:
            return call("vector", self.function(NUMBER_LAST_ROLLUPS), inner, self.number(), after=self.names_kept())
        if kind < 0.3:
            return call("vector", self.function(NUMBER_FIRST_ROLLUPS), self.share(), inner, after=self.names_kept())
        if kind < 0.33 and self.is_newer:
            return call("vector", "holt_winters", inner, Node("scalar", self.pick("0.1", "0.5", "0.9", "1", "0")),
                        Node("scalar", self.pick("0.1", "0.5", "2")))
        if kind < 0.36:
            return call("vector", self.function(["count_values_over_time", "quantiles_over_time", "aggr_over_time"]),
                        *self.pick([Node("string", '"x"'), inner], [Node("string", '"x"'), self.number(), inner],
                                   [Node("string", '("min_over_time", "rate")'), inner]))
        name = self.function(ROLLUPS)
        if name in COUNTER_FUNCTIONS and not self.is_newer:
            inner = Node("matrix", "requests_total", Node("option", self.matchers()), "[", self.window(), "]")
        return call("vector", name, inner, after=self.names_kept())

    def grouping(self):
        return Node("option", f" {self.pick('by', 'without')} ({self.chance.choice(GROUPINGS)}) " if self.often(60)
                    else "")

    def aggregate(self, depth):
        inner, grouping = self.vector(depth - 1), self.grouping()
        limit = self.option(4, " limit 100")
        kind = self.chance.random()
        arguments, name = [inner], self.function(AGGREGATES)
        if kind < 0.2:
            name = self.function(NUMBER_FIRST_AGGREGATES)
            if "topk" in name or "bottomk" in name or name == "outliersk":
                # All values of `unequal` differ: with equal ones any row may be picked.
                inner = Node("vector", "unequal", self.option(50, '{job="api"}', '{instance!="2"}'),
                             self.option(40, " * 2", " - 7"))
            arguments = [self.number(), inner]
            if "_" in name and "k_" in name and self.often(40):
                arguments.append(Node("string", self.pick('"x=others"', '"others"', '"job=rest"')))
        elif kind < 0.26:
            name, arguments = "count_values", [Node("string", self.pick('"x"', '"job"', '"value"')), inner]
        elif kind < 0.3:
            name, arguments = "quantiles", [Node("string", '"q"'), self.number(), self.number(), inner]
        elif kind < 0.34:
            arguments.append(self.vector(depth - 1))
        if self.often(60):
            return call("vector", Node("text", name, grouping), *arguments, after=(limit,))
        return call("vector", name, *arguments, after=(grouping, limit))

    def binary(self, depth):
        left, right = self.vector(depth - 1), self.vector(depth - 1)
        kind = self.chance.random()
        names = self.option(6 if self.is_newer else 0, " keep_metric_names")
        if kind < 0.25:
            operator = self.chance.choice(SETS if self.is_newer else SETS[:-1])
            return Node("vector", "(", left, f") {operator}", self.matching(), " (", right, ")")
        operator = self.chance.choice(ARITHMETIC if self.often(55) else COMPARISONS)
        returns_bool = Node("option", " bool" if operator in COMPARISONS and self.often(30) else "")
        if kind < 0.5:
            sides = [("(", left, ")"), (self.scalar(0),)]
            self.chance.shuffle(sides)
            return Node("vector", "(", *sides[0], f" {operator}", returns_bool, " ", *sides[1], ")", names)
        if kind < 0.62:
            grouped = self.pick(" on (job) group_left () ", " on (job) group_left (version) ",
                                " ignoring (instance) group_left () ", " on (job) group_left (*) prefix \"p_\" "
                                if self.is_newer else " on (job) group_left (x) ")
            return Node("vector", "(", left, f") {operator}", returns_bool, Node("option", grouped),
                        " (", self.pick("info", "state", right), ")")
        if kind < 0.66:
            grouped = self.pick(" on (job) group_right () ", " on (job) group_right (version) ")
            return Node("vector", "(", self.pick("info", "state", left), f") {operator}", returns_bool,
                        Node("option", grouped), " (", right, ")")
        return Node("vector", "(", left, f") {operator}", returns_bool, self.matching(), " (", right, ")")

    def matching(self):
        return self.option(50, " on (job)", " on (job, instance)", " ignoring (instance)", " on ()", " ignoring ()",
                           " ignoring (le, index)")

    def transform(self, depth):
        inner, kind = self.vector(depth - 1), self.chance.random()
        if kind < 0.1:
            return call("vector", self.function(NUMBER_LAST_TRANSFORMS), inner, self.number(), after=self.names_kept())
        if kind < 0.18:
            return call("vector", self.function(NUMBER_FIRST_TRANSFORMS), self.number(), inner)
        if kind < 0.22:
            return call("vector", "clamp", inner, self.number(), self.number(), after=self.names_kept())
        return call("vector", self.function(TRANSFORMS), inner, after=self.names_kept())

    def relabel(self, depth):
        inner, label = self.vector(depth - 1), self.label()
        name = self.function(["label_set", "label_del", "label_keep", "label_copy", "label_move", "label_map",
                              "label_match", "label_mismatch", "label_replace", "label_join", "label_transform",
                              "label_uppercase", "label_lowercase", "label_value", "labels_equal", "sort_by_label",
                              "sort_by_label_desc", "sort_by_label_numeric", "alias", "label_graphite_group"])
        pattern = Node("string", f'"{self.chance.choice(REGEXES)}"')
        replacement = Node("string", f'"{self.chance.choice(REPLACEMENTS)}"')
        arguments = {"label_set": [label, self.string()], "label_copy": [label, self.label()],
                     "label_move": [label, self.label()], "label_map": [label, self.string(), self.string()],
                     "label_match": [label, pattern], "label_mismatch": [label, pattern],
                     "label_replace": [self.label(), replacement, label, pattern],
                     "label_join": [self.label(), Node("string", self.pick('"/"', '""', '"ä"')), label, self.label()],
                     "label_transform": [label, pattern, replacement], "alias": [self.string()],
                     "labels_equal": [label, self.label()],
                     "label_graphite_group": [Node("scalar", self.pick("0", "1"))]}
        return call("vector", name, inner, *arguments.get(name, [label]))

    def buckets(self, depth):
        inner = Node("vector", self.pick("latency_bucket", "rate(latency_bucket[5m])", "latency_bucket{job='api'}",
                                         "sum by (le) (rate(latency_bucket[5m]))", "histogram(gauge) by (job)",
                                         "histogram_over_time(gauge[5m])", "increase(latency_bucket)"))
        kind = self.chance.random()
        if kind < 0.4 and self.is_newer:
            bounds = [Node("string", '"b"')] if self.often(15) else []
            name = self.function(["histogram_quantile", "histogram_share"])
            return call("vector", name, self.share(), inner, *bounds)
        if kind < 0.55 and self.is_newer:
            return call("vector", self.function(["histogram_quantiles"]), Node("string", '"q"'), self.number(),
                        self.number(), inner)
        if kind < 0.65 and self.is_newer:
            return call("vector", "buckets_limit", self.number(), inner)
        return call("vector", self.function(BUCKETS), inner)

    def other(self, depth):
        inner, kind = self.vector(depth - 1), self.chance.random()
        if kind < 0.2:
            return call("vector", self.function(["union"]), inner, self.vector(depth - 1))
        if kind < 0.23 and self.is_newer:
            # Which series come first is not defined.
            return Node("vector", "count(", call("vector", "limit_offset", Node("scalar", self.pick("0", "1", "3")),
                                                 Node("scalar", self.pick("0", "2")), inner), ")")
        if kind < 0.35:
            return Node("vector", "(", inner, ", ", self.vector(depth - 1), ")")
        if kind < 0.5:
            return Node("vector", f"WITH (f(q) = {self.pick('sum(q) by (job)', 'q + 1', *self.windowed)}) f(",
                        inner, ")")
        if kind < 0.6:
            return Node("vector", 'WITH (c = {job="api"}) gauge{c}', self.modifiers())
        if kind < 0.7:
            return Node("vector", "(", inner, ")", self.modifiers())
        if kind < 0.8:
            return Node("vector", "-", "(", inner, ")")
        return Node("vector", "(", inner, f") {self.pick('*', '+', '>')} ",
                    self.pick("start()", "end()", "step()", "time()", "pi()", "hour()", "(end() - start())"))

    # Scalars: also series, without labels

    def scalar(self, depth):
        if depth <= 0 and self.often(93):
            return self.number()
        return Node("scalar", self.pick("time()", "pi()", "scalar(lonely)", "(1 + 2)", "-(3)", "(1, 2)", "step()"))
