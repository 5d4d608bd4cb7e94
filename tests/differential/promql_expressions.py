"""Random expressions of PromQL over the series of promql_data.py, as trees."""

import dictionary
from promql_data import LABEL_VALUES, START_MS
from promql_tree import Node, call

METRICS = ["gauge", "requests_total", "jittered", "gappy", "state", "info", "lonely", "nothing", "unequal", "mortal",
           "gauge", "requests_total", "gappy"]
EDGE_METRICS = ["edge", "edges"]
HISTOGRAMS = ["native", "native_gauge", "mixed"]
WINDOWS = ["10s", "45s", "1m", "5m", "17m", "1h", "90s", "1h30m", "500ms", "1d"]
OFFSETS = ["30s", "5m", "-2m", "1h", "-1h", "1d"]
STEPS = ["15s", "1m", "40s", "", "7m"]
GROUPINGS = ["job", "job, instance", "instance", "", "nothing", "index", "version, job", "__name__", "le"]

ROLLUPS = ["rate", "increase", "delta", "irate", "idelta", "changes", "resets", "deriv", "avg_over_time",
           "sum_over_time", "min_over_time", "max_over_time", "count_over_time", "present_over_time",
           "last_over_time", "stddev_over_time", "stdvar_over_time", "absent_over_time"]
NEWER_ROLLUPS = ["first_over_time", "mad_over_time", "ts_of_first_over_time", "ts_of_last_over_time",
                 "ts_of_max_over_time", "ts_of_min_over_time"]
MATH = ["abs", "ceil", "floor", "sqrt", "exp", "ln", "log2", "log10", "sgn", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "deg", "rad"]
DATES = ["hour", "minute", "month", "year", "day_of_month", "day_of_week", "day_of_year", "days_in_month"]
AGGREGATES = ["sum", "avg", "count", "min", "max", "group", "stddev", "stdvar"]
ARITHMETIC = ["+", "-", "*", "/", "%", "^", "atan2"]
COMPARISONS = ["==", "!=", ">", "<", ">=", "<="]
SETS = ["and", "or", "unless"]
HISTOGRAM_FUNCTIONS = ["histogram_avg", "histogram_count", "histogram_sum", "histogram_stddev", "histogram_stdvar"]
REGEXES = [".*", ".+", "a.*", "1|3", "api|db", "[0-9]+", "", "^a", "(a|d).+", "a{1,2}.*", "(?i)API", "a$", "(.)(.*)",
           "\\\\d", "(.).*", "x*", "."]
REPLACEMENTS = ["$1", "${1}x", "$2-$1", "", "$$", "y", "$name", "${1", "$1x", "$0", "ä"]
LABELS = ["job", "instance", "x", "version", "value", "__name__", "le", "index", "nothing"]
EDGE_NUMBERS = ["0", "-0", "1", "-1", "0.5", "1e308", "5e-324", "Inf", "-Inf", "NaN", "0x1F", "1e3", "007", ".5",
                "2.", "9007199254740993", "3", "100", "-0.1", "1.5"]


class ExpressionGenerator:
    """Makes valid expressions, nearly always; the server decides.

    `is_newer` allows what Prometheus 3 brought; `fraction` ends every literal time."""

    def __init__(self, chance, is_newer, fraction):
        self.chance, self.is_newer, self.fraction = chance, is_newer, fraction
        self.in_subquery = False

    def pick(self, *choices):
        return self.chance.choice(choices)

    def often(self, percent):
        return self.chance.random() * 100 < percent

    def expression(self):
        depth = self.chance.randint(1, 3)
        kind = self.chance.random()
        if kind < 0.86:
            return self.vector(depth)
        if kind < 0.94:
            return self.scalar(depth)
        return self.matrix(1) if kind < 0.98 else self.string()

    # Leaves

    def number(self):
        if self.often(40):
            return Node("scalar", self.chance.choice(EDGE_NUMBERS))
        if self.is_newer and self.often(4):
            return Node("scalar", self.pick("5m", "1h30m", "1_000", "0b11"))
        return Node("scalar", str(self.chance.randint(0, 20)))

    def share(self):
        """A number that is a quantile, mostly."""
        return Node("scalar", self.pick("0.5", "0.9", "0.99", "0", "1", "0.25")) if self.often(70) else self.scalar(0)

    def string(self):
        return Node("string", quote(dictionary.draw_string(self.chance)))

    def option(self, percent, text):
        return Node("option", text if self.often(percent) else "")

    def matchers(self):
        kind = self.chance.random()
        if kind < 0.6:
            return ""
        if kind < 0.85:
            return self.pick('{job="api"}', '{job=~"a.*"}', '{instance!="2"}', '{instance=~"1|3"}', '{job!~"db"}',
                             '{job="api",instance="1"}', '{nothing=""}', '{nothing!=""}', '{job="api",}', "{}",
                             "{index='1'}", '{le="+Inf"}', '{job=""}', '{instance!~""}')
        if kind < 0.95:
            operator = self.pick("=~", "!~")
            return f'{{{self.chance.choice(LABELS)}{operator}"{self.chance.choice(REGEXES)}"}}'
        return f'{{value{self.pick("=", "!=")}{quote(self.chance.choice(LABEL_VALUES))}}}'

    def metric(self):
        kind = self.chance.random()
        if kind < 0.06:
            return self.chance.choice(EDGE_METRICS)
        if kind < 0.1:
            return "strings"
        if kind < 0.2 and self.is_newer:
            return self.chance.choice(HISTOGRAMS)
        return self.chance.choice(METRICS)

    def selector_alone(self):
        kind = self.chance.random()
        if kind < 0.02:
            return '{__name__=~"(gauge|state)",job="api"}'
        if kind < 0.04:
            return f'{{__name__="{self.metric()}"}}'
        if self.is_newer and kind < 0.07:
            return self.pick('{"gauge"}', '{"gauge", job="api"}', '{"job"="api", "gauge"}', '{gauge="x"}',
                             '{"gauge", "job"=~"a.*"}')
        return Node("vector", self.metric(), Node("option", self.matchers()))

    def modifiers(self):
        parts = []
        if self.often(12):
            parts.append(f" offset {self.chance.choice(OFFSETS)}")
        if self.often(8):
            seconds = START_MS // 1000 + self.chance.randrange(-600, 7800, 15)
            parts.append(f" @ {self.pick('start()', 'end()', f'{seconds}{self.fraction}')}")
        self.chance.shuffle(parts)
        return Node("option", "".join(parts))

    def window(self):
        if self.is_newer and self.often(4):
            return Node("duration", self.pick("300", "1e2", "2*1m", "step()*3", "max_of(1m,step())", "5m+30s", "90"))
        return Node("duration", self.chance.choice(WINDOWS))

    # Vectors

    def vector(self, depth):
        if depth <= 0:
            return Node("vector", self.selector_alone(), self.modifiers())
        kinds = [(self.selector, 3), (self.rollup, 5), (self.aggregate, 4), (self.binary, 5), (self.math, 2),
                 (self.relabel, 2), (self.quantile_of_buckets, 1), (self.date, 1), (self.other, 2)]
        if self.is_newer:
            kinds += [(self.histogram, 3), (self.newer, 1)]
        make = self.chance.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0]
        return make(depth)

    def selector(self, _):
        return Node("vector", self.selector_alone(), self.modifiers())

    def matrix(self, depth):
        # Edges of windows within subqueries fall on steps, which Prometheus 2 counts twice.
        if depth > 0 and self.often(25) and (self.is_newer or not self.in_subquery):
            step = Node("option", self.chance.choice(STEPS))
            was_in_subquery, self.in_subquery = self.in_subquery, True
            inner = self.vector(depth - 1)
            self.in_subquery = was_in_subquery
            return Node("matrix", "(", inner, ")[", self.window(), ":", step, "]", self.modifiers())
        edges = ""
        if self.is_newer and self.often(4):
            edges = self.pick(" anchored", " smoothed")
        return Node("matrix", self.selector_alone(), "[", self.window(), "]", edges, self.modifiers())

    def rollup(self, depth):
        kind = self.chance.random()
        if kind < 0.08:
            return call("vector", "quantile_over_time", self.share(), self.matrix(depth))
        if kind < 0.14:
            return call("vector", "predict_linear", self.matrix(depth), self.scalar(0))
        if kind < 0.17 and self.is_newer:
            factors = [Node("scalar", self.pick("0.1", "0.5", "0.9", "1", "0")) for _ in range(2)]
            return call("vector", "double_exponential_smoothing", self.matrix(depth), *factors)
        name = self.chance.choice(ROLLUPS + NEWER_ROLLUPS if self.is_newer else ROLLUPS)
        if name in ("rate", "increase") and not self.is_newer:
            # Prometheus 3 extrapolates in another way where a series begins within the window, near 0.
            return call("vector", name, Node("matrix", "requests_total", Node("option", self.matchers()), "[",
                                             self.window(), "]", self.modifiers()))
        return call("vector", name, self.matrix(depth))

    def grouping(self):
        if self.often(40):
            return Node("option", "")
        return Node("option", f" {self.pick('by', 'without')} ({self.chance.choice(GROUPINGS)}) ")

    def aggregate(self, depth):
        inner, grouping = self.vector(depth - 1), self.grouping()
        kind = self.chance.random()
        if kind < 0.1:
            arguments, name = (self.share(), inner), "quantile"
        elif kind < 0.2:
            # All values of `unequal` differ: with equal ones any row may be picked.
            inner = Node("vector", "unequal", Node("option", self.pick("", '{job="api"}', '{instance!="2"}')),
                         Node("option", self.pick("", "", " * 2", " - 7", " > 20")))
            arguments, name = (self.scalar(0), inner), self.pick("topk", "bottomk")
        elif kind < 0.28:
            arguments, name = (Node("string", self.pick('"x"', '"job"', '"value"', '"ä"' if self.is_newer else '"y"')),
                               inner), "count_values"
        elif kind < 0.3 and self.is_newer:
            arguments, name = (Node("scalar", self.pick("0", "1", "2", "9")), inner), "limitk"
            return Node("vector", "count(", call("vector", Node("option", ""), *arguments).replaced((0,), Node(
                "text", name, grouping)), ")")
        elif kind < 0.32 and self.is_newer:
            arguments, name = (Node("scalar", self.pick("0.5", "-0.3", "1", "0", "-1", "2")), inner), "limit_ratio"
        else:
            arguments, name = (inner,), self.chance.choice(AGGREGATES)
        if self.often(70):
            return call("vector", Node("text", name, grouping), *arguments)
        return call("vector", name, *arguments, after=(grouping,))

    def binary(self, depth):
        left, right = self.vector(depth - 1), self.vector(depth - 1)
        kind = self.chance.random()
        if kind < 0.2:
            return Node("vector", "(", left, f") {self.chance.choice(SETS)}", self.matching(), " (", right, ")")
        operator = self.chance.choice(ARITHMETIC if self.often(55) else COMPARISONS)
        returns_bool = Node("option", " bool" if operator in COMPARISONS and self.often(30) else "")
        if kind < 0.45:
            sides = [("(", left, ")"), (self.scalar(0),)]
            self.chance.shuffle(sides)
            return Node("vector", *sides[0], f" {operator}", returns_bool, " ", *sides[1])
        if kind < 0.6:
            grouped = self.pick(" on (job) group_left () ", " on (job) group_left (version) ",
                                " ignoring (instance) group_left () ", " ignoring (instance, version) group_left () ")
            return Node("vector", "(", left, f") {operator}", returns_bool, Node("option", grouped),
                        " (", self.pick("info", "state", right), ")")
        if kind < 0.65:
            grouped = self.pick(" on (job) group_right () ", " on (job) group_right (version) ",
                                " ignoring (instance) group_right (x, job) ")
            return Node("vector", "(", self.pick("info", "state", left), f") {operator}", returns_bool,
                        Node("option", grouped), " (", right, ")")
        filled = ""
        if self.is_newer and self.often(6):
            filled = self.pick(" fill (0) ", " fill_left (1) ", " fill_right (-1) ", " fill_left (1) fill_right (2) ")
        return Node("vector", "(", left, f") {operator}", returns_bool, self.matching(), Node("option", filled),
                    " (", right, ")")

    def matching(self):
        return Node("option", self.pick("", "", "", " on (job)", " on (job, instance)", " ignoring (instance)",
                                        " on ()", " ignoring ()", " ignoring (le, index)", " on (__name__, job)"))

    def math(self, depth):
        kind = self.chance.random()
        inner = self.vector(depth - 1)
        if kind < 0.1:
            return call("vector", "round", inner, *([self.scalar(0)] if self.often(60) else []))
        if kind < 0.16:
            return call("vector", "clamp", inner, self.scalar(0), self.scalar(0))
        if kind < 0.24:
            return call("vector", self.pick("clamp_min", "clamp_max"), inner, self.scalar(0))
        if kind < 0.34:
            return Node("vector", self.pick("-", "+", "--"), "(", inner, ")")
        return call("vector", self.chance.choice(MATH), inner)

    def relabel(self, depth):
        inner = self.vector(depth - 1)
        label = self.chance.choice(LABELS[:-1])
        if self.often(60):
            pattern = Node("string", f'"{self.chance.choice(REGEXES)}"')
            replacement = Node("string", f'"{self.chance.choice(REPLACEMENTS)}"')
            target = Node("string", f'"{self.chance.choice(LABELS)}"')
            source = Node("string", f'"{label}"')
            return call("vector", "label_replace", inner, target, replacement, source, pattern)
        sources = [Node("string", f'"{self.chance.choice(LABELS)}"') for _ in range(self.chance.randint(0, 3))]
        separator = Node("string", self.pick('"/"', '""', '"\\n"', '"ä"'))
        return call("vector", "label_join", inner, Node("string", f'"{label}"'), separator, *sources)

    def quantile_of_buckets(self, depth):
        buckets = self.pick("latency_bucket", "rate(latency_bucket[5m])", "sum by (le) (rate(latency_bucket[5m]))",
                            "sum by (job, le) (latency_bucket)", 'latency_bucket{le!="+Inf"}',
                            "increase(latency_bucket[1h])", "-latency_bucket")
        inner = Node("vector", buckets) if self.often(80) else self.vector(depth - 1)
        return call("vector", "histogram_quantile", self.share(), inner)

    def date(self, depth):
        if self.often(30):
            return Node("vector", f"{self.chance.choice(DATES)}()")
        inner = self.vector(depth - 1)
        factor = self.pick("", "", " * 86400", " * 1e6", " * -1e5")
        return call("vector", self.chance.choice(DATES), Node("vector", "(", inner, ")", Node("option", factor)))

    def other(self, depth):
        kind = self.chance.random()
        inner = self.vector(depth - 1)
        if kind < 0.25:
            return call("vector", "absent", inner)
        if kind < 0.45:
            return call("vector", "timestamp", inner)
        if kind < 0.65:
            return call("vector", "vector", self.scalar(depth - 1))
        if kind < 0.85:
            return call("vector", self.pick("sort", "sort_desc"), inner)
        return Node("vector", "(", inner, ")")

    def histogram(self, depth):
        """An expression of native histograms."""
        name = Node("vector", self.chance.choice(HISTOGRAMS),
                    Node("option", self.pick("", '{schema="0"}', '{schema!="-53"}')), self.modifiers())
        inner = self.pick(name, call("vector", self.pick("rate", "increase", "delta", "sum_over_time", "avg_over_time",
                                                         "last_over_time", "irate", "idelta"),
                                     Node("matrix", self.chance.choice(HISTOGRAMS), "[", self.window(), "]")))
        if self.often(30):
            name = self.pick("sum", "avg", "count", "group", "min")
            inner = call("vector", Node("text", name, self.grouping()), inner)
        kind = self.chance.random()
        if kind < 0.2:
            return call("vector", "histogram_quantile", self.share(), inner)
        if kind < 0.3:
            return call("vector", "histogram_fraction", self.scalar(0), self.scalar(0), inner)
        if kind < 0.55:
            return call("vector", self.chance.choice(HISTOGRAM_FUNCTIONS), inner)
        if kind < 0.65:
            return Node("vector", "(", inner, f") {self.pick('+', '-', '==', '!=', '*', '/', 'or')} ", self.vector(0))
        if kind < 0.75:
            return Node("vector", "(", inner, f") {self.pick('*', '/', '+', '<', '%')} ", self.scalar(0))
        return inner

    def newer(self, depth):
        inner = self.vector(depth - 1)
        kind = self.chance.random()
        if kind < 0.3:
            return call("vector", self.pick("sort_by_label", "sort_by_label_desc"), inner,
                        *[Node("string", f'"{self.chance.choice(LABELS)}"') for _ in range(self.chance.randint(1, 2))])
        if kind < 0.5:
            return call("vector", "info", inner, *([Node("vector", self.pick(
                '{zone=~".+"}', '{__name__="target_info"}', '{__name__=~".*_info"}', '{zone="z1"}'))]
                if self.often(60) else []))
        if kind < 0.6:
            return call("vector", "histogram_quantiles", Node("vector", self.pick("latency_bucket", "native")),
                        Node("string", '"q"'), *[self.share() for _ in range(self.chance.randint(1, 3))])
        return Node("vector", "(", inner, f") {self.pick('*', '+', '>')} ",
                    self.pick("start()", "end()", "range()", "step()", "max_of(1, 2)", "min_of(3, NaN)"))

    # Scalars

    def scalar(self, depth):
        if depth <= 0:
            if self.often(93):
                return self.number()
            return Node("scalar", self.pick("time()", "pi()", "scalar(lonely)", "scalar(gauge)", "(1 + 2)", "-(3)"))
        kind = self.chance.random()
        if kind < 0.3:
            return call("scalar", "scalar", self.vector(depth - 1))
        if kind < 0.7:
            operator = self.chance.choice(ARITHMETIC + [one + " bool" for one in COMPARISONS])
            return Node("scalar", self.scalar(depth - 1), f" {operator} ", self.scalar(depth - 1))
        if kind < 0.85:
            return Node("scalar", self.pick("-", "+"), "(", self.scalar(depth - 1), ")")
        return self.scalar(0)


def quote(text):
    out = []
    for letter in text:
        if letter in '"\\':
            out.append("\\" + letter)
        elif letter == "\n":
            out.append("\\n")
        else:
            out.append(letter)
    return '"' + "".join(out) + '"'
