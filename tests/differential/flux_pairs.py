"""Draws pairs of queries with equal answers: two of Flux, or one of Flux and one of InfluxQL."""

import re

from flux_chains import Chains
from influxql_data import LONG_OFFSET, LONG_STEP, ROWS, START

# Functions by hand, as the manual of Flux explains them. BASE is a source of numbers with its time and tags.
IDENTITIES = [
    ("BASE |> top(n: N)", "BASE |> sort(desc: true) |> limit(n: N)"),
    ("BASE |> bottom(n: N)", "BASE |> sort() |> limit(n: N)"),
    ("BASE |> median()", "BASE |> quantile(q: 0.5)"),
    ('BASE |> median(method: "exact_mean")', 'BASE |> quantile(q: 0.5, method: "exact_mean")'),
    ('BASE |> median(method: "exact_selector")', 'BASE |> quantile(q: 0.5, method: "exact_selector")'),
    ('BASE |> quantile(q: 0.0, method: "exact_selector") |> keep(columns: ["_value", "host"])',
     'BASE |> min() |> keep(columns: ["_value", "host"])'),
    ('BASE |> quantile(q: 1.0, method: "exact_selector") |> keep(columns: ["_value", "host"])',
     'BASE |> max() |> keep(columns: ["_value", "host"])'),
    ('BASE |> quantile(q: 1.0, method: "exact_mean")', "BASE |> toFloat() |> max() |> drop(columns: [\"_time\"])"),
    ("BASE |> timedMovingAverage(every: EVERY, period: PERIOD)",
     'BASE |> window(every: EVERY, period: PERIOD) |> mean() |> duplicate(column: "_stop", as: "_time") |> window(every: inf)'),
    ("BASE |> aggregateWindow(every: EVERY, fn: FOLD)",
     'BASE |> window(every: EVERY, createEmpty: true) |> FOLD() |> duplicate(column: "_stop", as: "_time") |> window(every: inf)'),
    ("BASE |> aggregateWindow(every: EVERY, fn: FN, createEmpty: false)",
     'BASE |> window(every: EVERY) |> FN() |> duplicate(column: "_stop", as: "_time") |> window(every: inf)'),
    ("BASE |> aggregateWindow(every: EVERY, fn: FN, createEmpty: false)",
     "BASE |> map(fn: (r) => r) |> aggregateWindow(every: EVERY, fn: FN, createEmpty: false)"),
    ("BASE |> aggregateWindow(every: EVERY, period: PERIOD, fn: FN, createEmpty: false)",
     "BASE |> filter(fn: (r) => true) |> sort(columns: [\"_time\"]) |> aggregateWindow(every: EVERY, period: PERIOD, fn: FN, "
     "createEmpty: false)"),
    ("BASE |> spread()", "BASE |> reduce(identity: {_value: ZERO, low: HIGH, high: LOW}, fn: (r, accumulator) => ({low: if r._value < "
     "accumulator.low then r._value else accumulator.low, high: if r._value > accumulator.high then r._value else accumulator.high, "
     "_value: accumulator._value})) |> map(fn: (r) => ({r with _value: r.high - r.low})) |> drop(columns: [\"low\", \"high\"])"),
    ("BASE |> sum()", "BASE |> reduce(identity: {_value: ZERO}, fn: (r, accumulator) => ({_value: r._value + accumulator._value}))"),
    ("BASE |> count()", "BASE |> reduce(identity: {_value: 0}, fn: (r, accumulator) => ({_value: accumulator._value + 1}))"),
    ("BASE |> sum()", "BASE |> cumulativeSum() |> last() |> drop(columns: [\"_time\"])"),
    ("BASE |> count()", 'BASE |> stateCount(fn: (r) => true, column: "_value") |> last() |> drop(columns: ["_time"])'),
    ("BASE |> count()", "BASE |> toFloat() |> histogram(bins: [float(v: \"+Inf\")]) |> toInt() |> drop(columns: [\"le\"])"),
    ("BASE |> highestMax(n: N, groupColumns: TAGS) |> keep(columns: [\"_value\"])",
     'BASE |> max() |> group() |> top(n: N) |> keep(columns: ["_value"])'),
    ("BASE |> lowestMin(n: N, groupColumns: TAGS) |> keep(columns: [\"_value\"])",
     'BASE |> min() |> group() |> bottom(n: N) |> keep(columns: ["_value"])'),
    ("BASE |> highestAverage(n: N, groupColumns: [\"host\"]) |> keep(columns: [\"_value\"])",
     'BASE |> group(columns: ["host"]) |> mean() |> group() |> top(n: N) |> keep(columns: ["_value"])'),
    ("BASE |> highestCurrent(n: N, groupColumns: [\"_field\", \"host\"]) |> keep(columns: [\"_value\"])",
     'BASE |> last() |> group() |> top(n: N) |> keep(columns: ["_value"])'),
    ("BASE", "union(tables: [BASE |> filter(fn: (r) => r._value > BOUND), BASE |> filter(fn: (r) => not (r._value > BOUND))]) |> "
     'sort(columns: ["_time"])'),
    ("BASE", "union(tables: [BASE |> limit(n: N), BASE |> limit(n: 1000000, offset: N)]) |> sort(columns: [\"_time\"])"),
    ("BASE |> filter(fn: (r) => r._value > BOUND and r.host != \"b\")",
     "BASE |> filter(fn: (r) => r._value > BOUND) |> filter(fn: (r) => not (r.host == \"b\"))"),
    ("BASE |> group() |> count()", "BASE |> count() |> group() |> sum()"),
    ("BASE |> group() |> max() |> keep(columns: [\"_value\"])", "BASE |> max() |> group() |> max() |> keep(columns: [\"_value\"])"),
    ("BASE |> group(columns: [\"host\"]) |> count()", "BASE |> count() |> group(columns: [\"host\"]) |> sum()"),
    ("BASE |> sum()", "BASE |> window(every: EVERY) |> sum() |> window(every: inf, timeColumn: \"_start\") |> sum()"),
    ("BASE |> count()", "BASE |> pivot(rowKey: [\"_time\"], columnKey: [\"_field\"], valueColumn: \"_value\") |> count(column: \"FIELD\") |> "
     'rename(columns: {FIELD: "_value"}) |> map(fn: (r) => ({r with _field: "FIELD"})) |> group(columns: ["_time", "_value"], mode: "except")'),
    ("BASE |> keep(columns: [\"_time\", \"_value\"])", "BASE |> pivot(rowKey: [\"_time\"], columnKey: [\"_field\"], valueColumn: \"_value\") |> "
     'rename(columns: {FIELD: "_value"}) |> keep(columns: ["_time", "_value"])'),
    ("BASE |> unique(column: \"host\") |> keep(columns: [\"host\"]) |> group()", "BASE |> first() |> keep(columns: [\"host\"]) |> group()"),
    ("BASE |> sample(n: 3, pos: 0) |> count()", "BASE |> count() |> map(fn: (r) => ({r with _value: (r._value + 2) / 3}))"),
    ("BASE |> difference()", "BASE |> difference(keepFirst: true) |> filter(fn: (r) => exists r._value)"),
    ("BASE |> derivative(unit: 1m)", "BASE |> derivative(unit: 1s) |> map(fn: (r) => ({r with _value: r._value * 60.0}))"),
    ("BASE |> integral(unit: 1m)", "BASE |> integral(unit: 1s) |> map(fn: (r) => ({r with _value: r._value / 60.0}))"),
    ("BASE |> elapsed(unit: 1ms) |> keep(columns: [\"elapsed\"])",
     'BASE |> map(fn: (r) => ({r with _value: int(v: r._time)})) |> difference() |> map(fn: (r) => ({elapsed: r._value / 1000000}))'),
    ("BASE |> duplicate(column: \"_value\", as: \"v\") |> map(fn: (r) => ({r with _value: r.v - r._value})) |> sum()",
     "BASE |> map(fn: (r) => ({r with _value: r._value - r._value})) |> sum()"),
    ("x = BASE |> max() |> findColumn(fn: (key) => key.host == \"a\", column: \"_value\")\nBASE |> filter(fn: (r) => r.host == \"a\") |> "
     "filter(fn: (r) => r._value == x[0]) |> limit(n: 1)", "BASE |> filter(fn: (r) => r.host == \"a\") |> max()"),
    ("x = (BASE |> max() |> findRecord(fn: (key) => key.host == \"a\", idx: 0))._value\nBASE |> filter(fn: (r) => r.host == \"a\" and "
     "r._value == x) |> limit(n: 1)", "BASE |> filter(fn: (r) => r.host == \"a\") |> max()"),
    ('join(tables: {a: BASE, b: BASE}, on: ["_time", "_field", "host"]) |> count(column: "_value_a") |> keep(columns: ["_value_a"]) |> '
     'rename(columns: {_value_a: "_value"})', 'BASE |> count() |> keep(columns: ["_value"])'),
    ("import \"influxdata/influxdb/schema\"\nschema.tagValues(bucket: \"x\", tag: \"host\", predicate: (r) => r._measurement == \"NAME\", "
     "start: 0)", 'from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "NAME" and exists r.host) |> '
     'keep(columns: ["host"]) |> group() |> distinct(column: "host") |> sort()'),
    ("import \"influxdata/influxdb/schema\"\nschema.measurementFieldKeys(bucket: \"x\", measurement: \"NAME\", start: 0)",
     'from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "NAME") |> keep(columns: ["_field"]) |> group() |> '
     'distinct(column: "_field") |> sort()'),
    ("import \"math\"\nBASE |> map(fn: (r) => ({r with _value: math.abs(x: float(v: r._value))}))",
     "BASE |> map(fn: (r) => ({r with _value: if float(v: r._value) < 0.0 then -float(v: r._value) else float(v: r._value)}))"),
    ("import \"strings\"\nBASE |> map(fn: (r) => ({r with _value: strings.strlen(v: string(v: r._value))})) |> sum()",
     "import \"strings\"\nBASE |> toString() |> map(fn: (r) => ({r with _value: strings.strlen(v: r._value)})) |> sum()"),
    ("f = (tables=<-, n) => tables |> limit(n: n)\nBASE |> f(n: N)", "BASE |> limit(n: N)"),
    ("BASE |> truncateTimeColumn(unit: 1m) |> last() |> keep(columns: [\"_value\"])", "BASE |> last() |> keep(columns: [\"_value\"])"),
    ("BASE |> aggregateWindow(every: EVERY, fn: mean, createEmpty: false)", "BASE |> aggregateWindow(every: EVERY, fn: (column, tables=<-) => "
     "tables |> mean(column: column), createEmpty: false)"),
    ("BASE |> aggregateWindow(every: EVERY, fn: mean, createEmpty: true) |> filter(fn: (r) => exists r._value)",
     "BASE |> aggregateWindow(every: EVERY, fn: mean, createEmpty: false)"),
]

AGGREGATES = ["count", "sum", "mean", "min", "max", "first", "last", "spread", "stddev", "median"]


class Pairs(Chains):
    """Draws pairs; a pair is (texts, kind) with kind `flux` or `influxql`."""

    def numbers_source(self):
        """Draws a source of one field of numbers; returns its text, its field, its type and its measurement."""
        name, field, kind = self.pick([("cpu", "usage", "double"), ("cpu", "idle", "double"), ("cpu", "n", "long"), ("mem", "used", "long"),
                                       ("mem", "free", "double"), ("long", "v", "double"), ("long", "big", "long"), ("even", "i", "long"),
                                       ("even", "f", "double")])
        start, stop = self.bounds(name)
        tag = self.pick(["", "", ' and r.host == "a"', ' and r.host =~ /[abc]/'])
        return (f'from(bucket: "x") |> range(start: {start}, stop: {stop}) |> filter(fn: (r) => r._measurement == "{name}" and '
                f'r._field == "{field}"{tag})', field, kind, name)

    def bounds(self, name):
        offset, length = (LONG_OFFSET, ROWS * LONG_STEP) if name == "long" else (0, 1_200)
        start = START + offset - length // 10 + self.chance.randrange(length)
        return start, start + length // 5 + self.chance.randrange(length)

    def identity(self):
        base, field, kind, name = self.numbers_source()
        one, other = self.pick(IDENTITIES)
        while "host" in one and name in ("even", "long"):
            # Not all of their series have the tag, or one of its own.
            base, field, kind, name = self.numbers_source()
        every = self.pick(["1d", "2d", "1w", "36h", "1mo"] if name == "long" else ["1m", "90s", "2m", "7m", "1h"])
        period = self.pick(["3d", "1w"] if name == "long" else ["5m", "3m", "10m"])
        values = {"EVERY": every, "PERIOD": period, "FN": self.pick(["mean", "sum", "count", "min", "max", "first", "last", "spread"]),
                  "FOLD": self.pick(["mean", "sum", "count", "spread", "stddev"]), "N": str(self.chance.randint(1, 5)),
                  "BOUND": "5" if kind == "long" else "50.0", "ZERO": "0" if kind == "long" else "0.0",
                  "HIGH": str(2**62) if kind == "long" else "1000000000.0", "LOW": str(-2**62) if kind == "long" else "-1000000000.0",
                  "FIELD": field, "NAME": name, "TAGS": '["_field", "host", "rack", "region", "zone", "path"]'}
        texts = []
        for text in (one, other):
            for word, value in values.items():
                text = replace_word(text, word, value)
            texts.append(text.replace("BASE", base))
        return texts

    def influxql(self):
        """Draws a pipeline and an InfluxQL statement that ask the same."""
        name, field, kind = self.pick([("cpu", "usage", "double"), ("cpu", "n", "long"), ("mem", "free", "double"), ("long", "v", "double"),
                                       ("long", "big", "long"), ("even", "f", "double"), ("even", "i", "long"), ("disk io", "value", "double")])
        start, stop = self.bounds(name)
        source = f'from(bucket: "x") |> range(start: {start}, stop: {stop})'
        test, where = f'r._measurement == "{name}" and r._field == "{field}"', f"time >= {start}s AND time < {stop}s"
        tag = self.pick([None, None, ('r.host == "a"', "host = 'a'"), ('r.host != "a"', "host != 'a'"), ("r.host =~ /[bc]/", "host =~ /[bc]/"),
                         ('(r.host == "a" or r.host == "c")', "(host = 'a' OR host = 'c')")])
        if tag:
            test, where = f"{test} and {tag[0]}", f"{where} AND {tag[1]}"
        base = f"{source} |> filter(fn: (r) => {test})"
        call = self.pick(AGGREGATES)
        fn = f'{call}(method: "exact_mean")' if call == "median" else f"{call}()"
        # Of several series with one time it is not said which one is the first.
        tags = self.pick(["*", "*", "host", ""]) if kind == "long" and call not in ("first", "last") else "*"
        piped = base if tags == "*" else f'{base} |> group(columns: {"[" + chr(34) + tags + chr(34) + "]" if tags else "[]"}) |> ' \
                                         'sort(columns: ["_time"])'
        groups = f" GROUP BY {tags}" if tags else ""
        by_time = f" GROUP BY TIME, {tags}" if tags else " GROUP BY TIME"
        form = self.chance.randrange(5)
        every = self.pick(["1d", "2d", "1w", "36h"] if name == "long" else ["1m", "90s", "2m", "7m", "1h"])
        if form == 0:
            return (f"{piped} |> {fn}", f'SELECT {call}({field}) FROM "{name}" WHERE {where}{groups}', "value")
        if form in (1, 2):
            empty = self.pick(["true", "false"])
            fill = {"true": "" if call != "count" else " fill(0)", "false": " fill(none)"}[empty]
            offset = self.pick(["", "", "5s"]) if name != "long" else self.pick(["", "3h"])
            more, interval = (f", offset: {offset}", f"time({every}, {offset})") if offset else ("", f"time({every})")
            function = call if call != "median" else '(column, tables=<-) => tables |> median(method: "exact_mean", column: column)'
            return (f'{piped} |> aggregateWindow(every: {every}, fn: {function}{more}, createEmpty: {empty}, timeSrc: "_start")',
                    f'SELECT {call}({field}) FROM "{name}" WHERE {where}{by_time.replace("TIME", interval)}{fill}', f"windows {start}")
        if form == 3:
            step, function = self.pick([("difference()", "difference"), ("derivative(unit: 1s)", "derivative"),
                                        ("cumulativeSum()", "cumulative_sum"), ("difference(nonNegative: true) |> filter(fn: (r) => exists r._value)",
                                                                               "non_negative_difference"),
                                        ("derivative(unit: 1s, nonNegative: true) |> filter(fn: (r) => exists r._value)",
                                         "non_negative_derivative"), ("movingAverage(n: 2)", "moving_average")])
            more = ", 2" if function == "moving_average" else ""
            return (f"{base} |> {step}", f'SELECT {function}({field}{more}) FROM "{name}" WHERE {where} GROUP BY *', "rows")
        count = self.chance.randint(1, 9)
        return self.pick([
            (base, f'SELECT {field} FROM "{name}" WHERE {where} GROUP BY *', "rows"),
            (f"{base} |> limit(n: {count})", f'SELECT {field} FROM "{name}" WHERE {where} GROUP BY * LIMIT {count}', "rows"),
            (f"{base} |> tail(n: {count})", f'SELECT {field} FROM "{name}" WHERE {where} GROUP BY * ORDER BY time DESC LIMIT {count}', "reversed"),
            (f"{base} |> filter(fn: (r) => r._value > {'5' if kind == 'long' else '50.0'})",
             f'SELECT {field} FROM "{name}" WHERE {where} AND {field} > {"5" if kind == "long" else "50.0"} GROUP BY *', "rows")])

    def dialect(self):
        """Draws the `dialect` of a request."""
        dialect = {}
        if self.is_true(50):
            dialect["delimiter"] = self.pick([",", ";", "\t", "|", " ", "ä"])
        if self.is_true(50):
            dialect["annotations"] = self.chance.sample(["datatype", "group", "default"], self.chance.randrange(4))
        if self.is_true(30):
            dialect["header"] = self.pick([True, False])
        if self.is_true(20):
            dialect["commentPrefix"] = self.pick(["#", "//", ""])
        if self.is_true(10):
            dialect["dateTimeFormat"] = self.pick(["RFC3339", "RFC3339Nano"])
        return dialect


def replace_word(text, word, value):
    return re.sub(rf"\b{word}\b", lambda _: value, text)
