"""Draws pipelines of Flux with what the model of flux_model makes of them."""

import json

import flux_model as model
from flux_model import SECOND, Refusal, Table, Time
from influxql_data import LONG_OFFSET, LONG_STEP, ROWS, START
from influxql_statements import format_time

TIME = "dateTime:RFC3339"
UNITS = [("s", SECOND), ("m", 60 * SECOND), ("h", 3_600 * SECOND), ("d", 86_400 * SECOND), ("w", 604_800 * SECOND)]
ORDER = ["_time", "_measurement", "_field", "host", "region", "path", "rack", "zone", "_value"]
NAMES = ["cpu", "cpu", "cpu", "mem", "disk io", "even", "even", "long", "long", "ties", "edge"]


class Series:
    """A series of one field, as InfluxDB's storage has it."""

    def __init__(self, bucket, measurement, tags, field, kind):
        self.bucket, self.measurement, self.tags, self.field, self.kind = bucket, measurement, tags, field, kind
        self.points = {}


def read_value(text):
    """Reads a value of line protocol; returns it with its type in annotated CSV."""
    if text in ("true", "false"):
        return text == "true", "boolean"
    if text.startswith('"'):
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\"), "string"
    return (int(text[:-1]), "long") if text.endswith("i") else (float(text), "double")


def collect_series(lines_of_buckets):
    """Sorts the lines of each bucket into series, in the order of InfluxDB's storage."""
    found = {}
    for bucket, lines in lines_of_buckets.items():
        for line in lines:
            tags = dict(sorted(line.tags.items()))
            for field, text in line.fields.items():
                value, kind = read_value(text)
                one = found.setdefault((bucket, line.measurement, tuple(tags.items()), field),
                                       Series(bucket, line.measurement, tags, field, kind))
                one.points[line.time] = value
    for one in found.values():
        one.points = sorted(one.points.items())
    return list(found.values())


class Step:
    """A function of a pipeline: its text, and what the model makes of tables."""

    def __init__(self, text, apply):
        self.text, self.apply = text, apply


class Source(Step):
    """`from`, `range` and a first `filter`."""

    def __init__(self, series, bucket, start, stop, times, condition, test):
        self.series, self.bucket, self.start, self.stop, self.test = series, bucket, start, stop, test
        text = f'from(bucket: "{bucket}") |> range(start: {times[0]}, stop: {times[1]})'
        super().__init__(f"{text} |> filter(fn: (r) => {condition})", self.read)

    def read(self, _=None):
        tables = []
        for one in self.series:
            if one.bucket != self.bucket:
                continue
            key = {"_start": Time(self.start), "_stop": Time(self.stop), "_field": one.field,
                   "_measurement": one.measurement, **one.tags}
            if not self.test(key):
                continue
            columns = {name: model.type_of(value) for name, value in key.items()} | {"_time": TIME, "_value": one.kind}
            rows = [{**key, "_time": Time(time), "_value": value} for time, value in one.points
                    if self.start <= time < self.stop]
            if rows:
                tables.append(Table(key, columns, rows))
        return tables


class Chains:
    """Draws pipelines; `chance` is a `random.Random`, `series` the stored series."""

    def __init__(self, chance, series):
        self.chance, self.series = chance, series
        self.pick = chance.choice

    def is_true(self, percent):
        return self.chance.random() * 100 < percent

    # Sources.

    def moment(self, nanoseconds):
        seconds, rest = divmod(nanoseconds, SECOND)
        if rest:
            return f"{format_time(seconds)}.{rest:09}".rstrip("0") + "Z"
        return self.pick([f"{format_time(seconds)}Z", f"{format_time(seconds)}Z", str(seconds),
                          f"{format_time(seconds + 7_200)}+02:00", f'time(v: "{format_time(seconds)}Z")',
                          f"time(v: {nanoseconds})", f"{format_time(seconds)}.000Z"])

    def source(self, name=None):
        name = name or self.pick(NAMES)
        bucket = self.pick(["x"] * 8 + (["x/short"] if name == "cpu" else []) + (["y"] if name == "mem" else []))
        if name == "edge":
            start = self.pick([-10, 0, 1, 86_400, 1_600_000_000])
            stop = start + self.pick([100, 90_000, 2 * 10**8, 2 * 10**9])
        else:
            offset, length = (LONG_OFFSET, ROWS * LONG_STEP) if name == "long" else (0, 1_200)
            start = START + offset - length // 10 + self.chance.randrange(length)
            stop = start + length // 20 + self.chance.randrange(length)
        start, stop = start * SECOND, stop * SECOND
        if self.is_true(10):
            start += self.pick([1, 500_000_000, 37_000_000])
        condition, test = self.condition(name)
        return Source(self.series, bucket, start, stop, (self.moment(start), self.moment(stop)), condition, test)

    def condition(self, name):
        """Draws a condition on a measurement, on fields and on tags; returns its text and its function."""
        fields = sorted({one.field for one in self.series if one.measurement == name})
        chosen = self.chance.sample(fields, 1 if self.is_true(75) else min(2, len(fields)))
        terms = [(f'r._measurement == "{name}"', lambda row: row["_measurement"] == name)]
        by_name = " or ".join(f'r._field == "{field}"' for field in chosen)
        terms.append((f"({by_name})" if len(chosen) > 1 else by_name, lambda row: row["_field"] in chosen))
        if len(chosen) > 1 and self.is_true(30):
            terms[1] = (f"contains(value: r._field, set: {json.dumps(chosen)})", terms[1][1])
        elif self.is_true(20):
            terms[1] = (f"r._field =~ /^({'|'.join(chosen)})$/", terms[1][1])
        tags = sorted({tag for one in self.series if one.measurement == name for tag in one.tags})
        if tags and self.is_true(35):
            terms.append(self.tag_condition(self.pick(tags), self.pick(["a", "b", "c", "eu", "1", "", "日本"])))
        return " and ".join(text for text, _ in terms), lambda row: all(test(row) for _, test in terms)

    def tag_condition(self, tag, value):
        # The index compares a tag that a series does not have as the empty string.
        own = lambda row: row.get(tag) or ""
        return self.pick([(f'r.{tag} == "{value}"', lambda row: own(row) == value),
                          (f'r.{tag} != "{value}"', lambda row: own(row) != value),
                          (f'r["{tag}"] =~ /^{value}/', lambda row: own(row).startswith(value)),
                          (f"r.{tag} !~ /^{value}/", lambda row: not own(row).startswith(value)),
                          (f"exists r.{tag}", lambda row: own(row) != ""),
                          (f"not exists r.{tag}", lambda row: own(row) == ""),
                          (f'(r.{tag} == "{value}" or r.{tag} == "b")', lambda row: own(row) in (value, "b")),
                          (f'not (r.{tag} == "{value}")', lambda row: own(row) != value)])

    # Steps.

    def steps(self, source, count):
        """Draws steps; each one is drawn for the tables that the steps before it make."""
        steps, tables = [], source.read()
        for _ in range(count):
            step = self.step(State(tables), source)
            steps.append(step)
            try:
                tables = step.apply(tables)
            except Refusal:
                break
            # It is not promised which functions pass on tables without rows.
            if any(not table.rows for table in tables) and "createEmpty: true" not in step.text:
                break
        return steps

    def step(self, state, source):
        draws = [self.inert, self.rows, self.rows, self.columns, self.grouping]
        if state.has("_value"):
            draws += [self.values, self.whole_values]
            if state.is_plain:
                draws += [self.numbers] * (2 if state.is_number else 1)
            if state.is_windowed and state.is_within(source.start, source.stop):
                draws += [self.windows, self.windows]
        for _ in range(20):
            step = self.pick(draws)(state, source)
            if step:
                return step
        return Step("limit(n: 1000)", model.limit(1_000))

    def inert(self, state, _):
        """Draws functions that change nothing, and that no push-down knows."""
        same = lambda tables: tables
        texts = ["filter(fn: (r) => true)", "limit(n: 1000000)", "tail(n: 1000000)"]
        if state.has("_value"):
            texts += ['rename(columns: {_value: "zz"}) |> rename(columns: {zz: "_value"})',
                      'duplicate(column: "_value", as: "zz") |> drop(columns: ["zz"])',
                      'set(key: "zz", value: "a") |> drop(columns: ["zz"])', 'drop(columns: ["nothing"])']
            if state.is_plain:
                texts += ["map(fn: (r) => r)", 'map(fn: (r) => ({r with zz: 1})) |> drop(columns: ["zz"])',
                          "filter(fn: (r) => exists r._value)", "map(fn: (r) => ({r with _value: r._value}))"]
        if state.is_windowed:
            texts += ["timeShift(duration: 1h) |> timeShift(duration: -1h)"]
        return Step(self.pick(texts), same)

    def rows(self, state, _):
        count, offset = self.pick([0, 1, 2, 3, 10, 1_000]), self.pick([0, 0, 1, 5, 1_000])
        more = f", offset: {offset}" if offset else ""
        return self.pick([lambda: Step(f"limit(n: {count}{more})", model.limit(count, offset)),
                          lambda: Step(f"tail(n: {count}{more})", model.tail(count, offset)),
                          lambda: self.sorting(state), lambda: self.filtering(state)])()

    def sorting(self, state):
        is_descending = self.is_true(40)
        columns = self.pick([["_value"], ["_time"], ["_time", "_value"], ["host", "_time"], ["nothing"]])
        if not state.is_sortable(columns):
            return None
        text = "" if columns == ["_value"] else f"columns: {json.dumps(columns)}"
        text = ", ".join(part for part in (text, "desc: true" if is_descending else "") if part)
        return Step(f"sort({text})", model.sort(columns, is_descending))

    def filtering(self, state):
        if not state.is_plain or not state.has("_value") or len(state.kinds) != 1:
            return None
        kind = next(iter(state.kinds))
        if kind in ("double", "long"):
            bound = self.chance.randrange(400) / 2 - 50 if kind == "double" else self.chance.randint(-10, 30)
            return self.pick([
                Step(f"filter(fn: (r) => r._value > {bound})", model.filter_rows(lambda row: row["_value"] > bound)),
                Step(f"filter(fn: (r) => r._value <= {bound} or r._value == {bound + 1})",
                     model.filter_rows(lambda row: row["_value"] <= bound or row["_value"] == bound + 1)),
                Step(f"filter(fn: (r) => not (r._value < {bound}))", model.filter_rows(lambda row: not row["_value"] < bound))])
        if kind == "boolean":
            return Step("filter(fn: (r) => r._value)", model.filter_rows(lambda row: row["_value"]))
        if kind == "string":
            return self.pick([Step('filter(fn: (r) => r._value != "a")', model.filter_rows(lambda row: row["_value"] != "a")),
                              Step("filter(fn: (r) => r._value =~ /x/)", model.filter_rows(lambda row: "x" in row["_value"]))])
        return None

    def columns(self, state, _):
        tag = self.pick(["host", "region", "_field", "_measurement", "rack"])
        gone = self.pick([["_start", "_stop"], [tag], ["nothing"], [tag, "_field"]])
        kept = self.pick([["_time", "_value"], ["_time", "_value", tag], ["_value"], ["_start", "_stop", "_time", "_value", tag]])
        # Tables that become one have no order of rows.
        draws = [lambda: self.ordered(state, f'set(key: "{tag}", value: "z")', model.replace_column(tag, lambda _: "string", lambda _: "z")),
                 lambda: Step('set(key: "k", value: "")', model.replace_column("k", lambda _: "string", lambda _: ""))]
        if state.is_everywhere(tag) and not state.has("server"):
            draws.append(lambda: Step(f'rename(columns: {{{tag}: "server"}})', model.rename(tag, "server")))
        if state.has("_value") and not state.has("c"):
            draws.append(lambda: Step('duplicate(column: "_value", as: "c")', model.replace_column(
                "c", lambda table: table.columns["_value"], lambda row: row["_value"])))
        # Merged tables have their rows in no order that is promised.
        draws += [lambda: self.ordered(state, f"drop(columns: {json.dumps(gone)})", model.keep(lambda name: name not in gone)),
                  lambda: self.ordered(state, f"keep(columns: {json.dumps(kept)})", model.keep(lambda name: name in kept))]
        return self.pick(draws)()

    def grouping(self, state, _):
        columns = self.pick([[], [], ["host"], ["_field"], ["host", "_field"], ["_measurement"], ["nothing"], ["region", "host"]])
        if self.is_true(20):
            columns = self.pick([["_time", "_value"], ["_start", "_stop", "_time", "_value"], ["host", "_time", "_value"]])
            return self.ordered(state, f'group(columns: {json.dumps(columns)}, mode: "except")', model.group(columns, True))
        text = f"group(columns: {json.dumps(columns)})" if columns or self.is_true(50) else "group()"
        return self.ordered(state, text, model.group(columns))

    def ordered(self, state, text, apply):
        """Adds a sort by all columns that tell rows apart, so that the order of rows is known."""
        columns = [name for name in ORDER if state.has(name)]
        if not state.is_plain or not state.has("_value"):
            return None
        # A refusal needs no order; rows whose columns are null in some tables have none.
        try:
            made = State(apply(state.tables))
        except Refusal:
            return Step(text, apply)
        columns = [name for name in columns if made.has(name)]
        if not made.is_sortable(columns):
            return None
        sort = model.sort(columns)
        return Step(f"{text} |> sort(columns: {json.dumps(columns)})", lambda tables: sort(apply(tables)))

    def values(self, state, _):
        """Draws selectors and functions of values of any type."""
        name = self.pick(["first", "last", "count"])
        draws = [lambda: Step(f"{name}()", model.aggregate("count") if name == "count" else model.pick_row(name)),
                 lambda: Step("distinct()", model.distinct) if state.is_plain else None,
                 lambda: Step('distinct(column: "_value")', model.distinct) if state.is_plain else None,
                 lambda: Step("unique()", model.unique("_value")) if state.is_plain else None,
                 lambda: Step("fill(usePrevious: true)", model.fill_previous),
                 lambda: Step("fill(value: 0.5)", model.fill(0.5, "double")) if state.kinds == {"double"} else None,
                 lambda: Step("fill(value: 7)", model.fill(7, "long")) if state.kinds == {"long"} else None,
                 lambda: Step("filter(fn: (r) => exists r._value)",
                              model.filter_rows(lambda row: row.get("_value") is not None))]
        return self.pick(draws)()

    def whole_values(self, state, _):
        """Draws aggregates and selectors of numbers; some fail for the type of the values."""
        if not state.is_number and self.is_true(80):
            return None
        name = self.pick(["mean", "sum", "spread", "stddev", "median", "min", "max", "count"])
        if name in ("min", "max"):
            return Step(f"{name}()", model.pick_row(name))
        argument = self.pick(["", 'column: "_value"'])
        if name == "median":
            argument = 'method: "exact_mean"'
        return Step(f"{name}({argument})", model.aggregate(name))

    def numbers(self, state, _):
        """Draws functions of neighbours and arithmetic, for tables without nulls."""
        if not state.is_number and self.is_true(85):
            return None
        unit, length = self.pick(UNITS[:3])
        is_rising = state.is_rising
        draws = [lambda: Step("difference()", model.difference(False)),
                 lambda: Step("difference(nonNegative: true)", model.difference(True)),
                 lambda: Step("cumulativeSum()", model.running(model.cumulate)),
                 lambda: Step(f"derivative(unit: 1{unit})", model.derivative(length, False)) if is_rising else None,
                 lambda: Step(f"derivative(unit: 1{unit}, nonNegative: true)", model.derivative(length, True)) if is_rising else None,
                 lambda: Step(f"elapsed(unit: 1{unit})", model.elapsed(length)) if is_rising and not state.has("elapsed") else None,
                 lambda: Step("movingAverage(n: 2)", model.moving_average(2)) if state.rows_min >= 2 and state.is_number else None,
                 lambda: Step("increase()", model.running(model.increase)) if state.least >= 0 else None, lambda: self.mapping(state),
                 lambda: self.mapping(state), lambda: self.conversion(state)]
        return self.pick(draws)()

    def mapping(self, state):
        if state.kinds == {"double"}:
            text, change = self.pick([("r._value * 2.0", lambda v: v * 2.0), ("r._value + r._value", lambda v: v + v),
                                      ("-r._value", lambda v: -v), ("r._value - 1.5", lambda v: v - 1.5), ("r._value / 4.0", lambda v: v / 4.0),
                                      ("if r._value > 50.0 then 1.0 else 0.0", lambda v: 1.0 if v > 50 else 0.0)])
        elif state.kinds == {"long"}:
            text, change = self.pick([("r._value * 2", lambda v: model.wrap(v * 2)), ("r._value + 1", lambda v: model.wrap(v + 1)),
                                      ("-r._value", lambda v: model.wrap(-v)),
                                      ("r._value / 3", lambda v: model.wrap(abs(v) // 3 * (1 if v >= 0 else -1))),
                                      ("r._value % 5", lambda v: abs(v) % 5 * (1 if v >= 0 else -1))])
        elif state.kinds == {"boolean"}:
            text, change = "not r._value", lambda v: not v
        elif state.kinds == {"string"}:
            text, change = self.pick([('r._value + "!"', lambda v: v + "!"), ('"${r._value}"', lambda v: v)])
        else:
            return None
        column = self.pick(["_value", "_value", "d"])
        return Step(f"map(fn: (r) => ({{r with {column}: {text}}}))", model.replace_column(
            column, lambda table: table.columns["_value"], lambda row: change(row["_value"])))

    def conversion(self, state):
        if state.kinds == {"long"}:
            return self.pick([Step("toFloat()", model.convert(float, "double")), Step("toString()", model.convert(str, "string"))])
        if state.kinds == {"double"}:
            return Step("toInt()", model.convert(int, "long")) if all(
                abs(row["_value"]) < 2**62 for table in state.tables for row in table.rows) else None
        return Step("toString()", model.convert(lambda value: str(value).lower(), "string")) if state.kinds == {"boolean"} else None

    def windows(self, state, source):
        bounds = (source.start, source.stop)
        width = source.stop - source.start
        unit, length = self.pick([one for one in UNITS if width // one[1] < 200] or UNITS[-1:])
        count = self.pick([1, 2, 3, 5, 7, 10, 30])
        every = count * length
        if width // every > 300:
            return None
        offset = self.pick([0, 0, 0, every // 3 // SECOND * SECOND, -SECOND])
        more = f", offset: {offset // SECOND}s" if offset else ""
        is_empty = self.is_true(40)
        if self.is_true(30):
            empty = self.pick(["", ", createEmpty: false"]) if not is_empty else ", createEmpty: true"
            return Step(f"window(every: {count}{unit}{more}{empty})", model.window(every, bounds, offset, is_empty))
        name = self.pick(["count", "first", "last"] + (["mean", "sum", "min", "max", "spread", "stddev", "median"] if state.is_number else []))
        function = model.aggregate(name) if name in model.AGGREGATES else model.pick_row(name)
        fn = name if name != "median" else '(column, tables=<-) => tables |> median(method: "exact_mean", column: column)'
        empty = self.pick(["", ", createEmpty: true"]) if is_empty else ", createEmpty: false"
        if not state.is_plain and name in ("first", "last"):
            return None
        time, key = self.pick([("", "_stop"), ("", "_stop"), (', timeSrc: "_start"', "_start")])
        return Step(f"aggregateWindow(every: {count}{unit}, fn: {fn}{more}{empty}{time})",
                    model.aggregate_window(every, bounds, offset, function, is_empty, key))


class State:
    """What a generator needs to know of a list of tables."""

    def __init__(self, tables):
        self.tables = tables
        self.names = {name for table in tables for name in table.columns}
        self.kinds = {table.columns["_value"] for table in tables if "_value" in table.columns}

    def has(self, name):
        return name in self.names

    def is_everywhere(self, name):
        return bool(self.tables) and all(name in table.columns for table in self.tables)

    @property
    def is_plain(self):
        """No table has a null, a NaN or no rows."""
        return all(table.rows and all(row.get(name) is not None and row[name] == row[name] for row in table.rows for name in table.columns)
                   for table in self.tables) and self.is_everywhere("_value")

    @property
    def is_number(self):
        return bool(self.kinds) and self.kinds <= {"double", "long"}

    @property
    def is_windowed(self):
        return bool(self.tables) and all({"_start", "_stop"} <= table.key.keys() and "_time" in table.columns
                                         and all(row.get("_time") is not None for row in table.rows) for table in self.tables)

    def is_within(self, start, stop):
        """All tables have the bounds of `range`, and no row is at its end: the engine of InfluxData is at odds with itself
        in windows of windows, and where a window left a row at the end."""
        return all(table.key["_start"] == start and table.key["_stop"] == stop and row["_time"] < stop
                   for table in self.tables for row in table.rows)

    @property
    def is_rising(self):
        times = [[row.get("_time") for row in table.rows] for table in self.tables]
        return all(None not in of_table and all(one < other for one, other in zip(of_table, of_table[1:])) for of_table in times)

    @property
    def least(self):
        return min((row["_value"] for table in self.tables for row in table.rows if not isinstance(row["_value"], str)), default=-1)

    @property
    def rows_min(self):
        return min((len(table.rows) for table in self.tables), default=0)

    def is_sortable(self, columns):
        return all(row.get(name) is not None for table in self.tables for name in columns if name in table.columns
                   for row in table.rows)
