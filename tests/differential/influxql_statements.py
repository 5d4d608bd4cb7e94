"""Draws SELECT statements of InfluxQL over the measurements of influxql_data."""

import datetime

from influxql_data import BY_NAME, LONG_OFFSET, LONG_STEP, ROWS, START

COMPARISONS = ["<", "<=", ">", ">=", "=", "!="]
ZONES = ["America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "Etc/GMT+12"]
AGGREGATES = ["count", "distinct", "integral", "mean", "median", "mode", "spread", "stddev", "sum"]
SELECTORS = ["first", "last", "max", "min"]
TRANSFORMATIONS = ["derivative", "non_negative_derivative", "difference", "non_negative_difference",
                   "cumulative_sum", "moving_average", "elapsed"]
# No abs: the peer's leaves negative integers as they are, so its arguments are floats here.
ROW_FUNCTIONS = ["acos", "asin", "atan", "ceil", "cos", "exp", "floor", "ln", "log2", "log10", "round",
                 "sin", "sqrt", "tan"]
FILLS = ["", "", "", " fill(null)", " fill(none)", " fill(none)", " fill(0)", " fill(previous)", " fill(linear)",
         " fill(7.5)", " fill(-3)", " fill(9007199254740993)"]


def format_time(seconds, between="T"):
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime(f"%Y-%m-%d{between}%H:%M:%S")


class Shape:
    """A FROM clause with the names that its statements may use."""

    def __init__(self, source, *names):
        self.source = source
        self.measurements = [BY_NAME[name] for name in names]
        merge = lambda lists: list(dict.fromkeys(name for one in lists for name in one))
        self.numbers = merge(one.numbers for one in self.measurements)
        self.floats = merge(one.of_type("float") for one in self.measurements)
        self.integers = merge(one.of_type("integer", "big", "tie") for one in self.measurements)
        self.booleans = merge(one.of_type("boolean") for one in self.measurements)
        self.strings = merge(one.of_type("string") for one in self.measurements)
        self.tags = merge(one.tags for one in self.measurements)

    @property
    def fields(self):
        return self.numbers + self.booleans + self.strings

    @property
    def is_long(self):
        return any(one.name == "long" for one in self.measurements)

    @property
    def is_edge(self):
        return any(one.name == "edge" for one in self.measurements)

    @property
    def has_equal_times(self):
        return any(one.name in ("even", "ties", "edge") for one in self.measurements)


SHAPES = [(9, Shape("cpu", "cpu")), (4, Shape("mem", "mem")), (2, Shape('"disk io"', "disk io")),
          (6, Shape("even", "even")), (6, Shape("long", "long")), (3, Shape("ties", "ties")),
          (5, Shape("edge", "edge")), (1, Shape("cpu, mem", "cpu", "mem")), (1, Shape("/c|m/", "cpu", "mem")),
          (1, Shape("/ev|mem/", "even", "mem")), (1, Shape('/^c/, "disk io"', "cpu", "disk io")),
          (1, Shape("x.autogen.cpu", "cpu")), (1, Shape("short.cpu", "cpu")), (1, Shape("y..mem", "mem")),
          (1, Shape("x.short././", "cpu"))]


class Statements:
    """Draws statements; `chance` is a `random.Random`."""

    def __init__(self, chance):
        self.chance = chance
        self.pick = chance.choice

    def is_true(self, percent):
        return self.chance.random() * 100 < percent

    def shape(self):
        return self.chance.choices([shape for _, shape in SHAPES], [weight for weight, _ in SHAPES])[0]

    def name(self, name):
        """Quotes a name where it needs quotes, and sometimes where not."""
        return f'"{name}"' if " " in name or self.is_true(8) else name

    def number(self, shape):
        return self.name(self.pick(shape.numbers))

    def tag(self, shape):
        return self.name(self.pick(shape.tags))

    # Times.

    def moment(self, seconds):
        """Writes a time in one of the forms of InfluxQL."""
        form = self.chance.randrange(14)
        if form < len(WRITERS):
            return WRITERS[form](seconds)
        return f"{seconds}s"

    def bounds(self, shape):
        """Draws the first and the last second of a WHERE clause."""
        if shape.is_edge:
            first = self.chance.choice([-100, 0, 1_500_000_000, 1_583_000_000, 1_709_000_000])
            return first, first + self.chance.choice([200, 90_000, 900_000, 31_000_000, 200_000_000])
        offset, length = (LONG_OFFSET, ROWS * LONG_STEP) if shape.is_long else (0, 1_200)
        first = START + offset - length // 10 + self.chance.randrange(length)
        return first, first + length // 20 + self.chance.randrange(length // 2)

    def times(self, shape, is_bounded):
        first, last = self.bounds(shape)
        first, last = self.moment(first), self.moment(last)
        form = self.chance.randrange(14)
        if not is_bounded:
            if form == 0:
                return ""
            if form == 1:
                return f"time >= {first}"
            if form == 2:
                return f"time < {last}"
            if form == 3:
                return f"time = {first}"
            if form == 4:
                return "time > now() - 90000d"
        return self.pick([f"time >= {first} AND time < {last}", f"time > {first} AND time <= {last}",
                          f"{first} <= time AND {last} > time", f"time >= {first} and time <= {last}",
                          f"time >= {first} AND time <= {last} AND time < now()",
                          f"time >= {first} AND (time < {last} AND time < {last})"])

    def interval(self, shape):
        if shape.is_edge:
            width = self.pick(["1w", "30d", "1d", "365d", "10w"])
        elif shape.is_long:
            width = self.pick(["1h", "6h", "1d", "1d", "36h", "1w", "30d"])
        else:
            width = self.pick(["10s", "30s", "1m", "2m", "7m", "1h", "90s", "20s"])
        if self.is_true(25):
            offset = self.pick(["5s", "-7s", "1m", "0s", "-90m", "3h", "1w", "'2020-01-01T00:00:07Z'", "now()"])
            if offset != "now()" or width in ("1w", "30d", "365d"):
                return f"time({width}, {offset})" if offset != "now()" else f"time({width})"
        return f"time({width})"

    # Clauses.

    def condition(self, shape, depth=0):
        host = self.pick(["a", "b", "c", "d", "x", "", "日本"])
        tag, number = self.tag(shape), self.number(shape)
        bound = self.chance.randrange(400) / 2 - 50
        comparison = self.pick(COMPARISONS)
        field = self.name(self.pick(shape.fields))
        form = self.chance.randrange(28 if depth < 2 else 22)
        if form >= 22:
            word = self.pick(["AND", "OR"])
            return f"({self.condition(shape, depth + 1)} {word} {self.condition(shape, depth + 1)})"
        if form == 7 and shape.booleans:
            return f"{self.pick(shape.booleans)} {self.pick(['=', '!='])} {self.pick(['true', 'false'])}"
        if form in (8, 9) and shape.strings:
            string = self.pick(shape.strings)
            return self.pick([f"{string} = 'x y'", f"{string} != ''", f"{string} =~ /^[ax]/", f"{string} !~ /y/",
                              f"{string} = 'a'", f"{string} =~ /日|🦀|e/"])
        return [f"{tag} = '{host}'", f"{tag} != '{host}'", f"{tag} =~ /^({host}|eu)$/", f"{tag} =~ /{host}/",
                f"{tag} !~ /^[{host}u]/", f"{number} {comparison} {bound:.1f}", f"{number} {comparison} {int(bound)}",
                f"{number} + 1 > {bound:.1f}", f"{bound:.1f} < {number}", f"{number} {comparison} {self.number(shape)}",
                f"{tag} {self.pick(['=', '!='])} {self.tag(shape)}",
                f"{number} {self.pick('%*-/+')} 3 {comparison} 2", f"{tag}::tag = '{host}'",
                f"{number}::{self.pick(['integer', 'float', 'field'])} {comparison} {bound}",
                f"nothing {self.pick(['=', '!='])} '{host}'", f"{tag} = '{host}' AND {number} {comparison} {bound:.1f}",
                f"({tag} = '{host}' OR {number} {comparison} {bound:.1f})", f"{field} != '{host}'",
                f"{field} {comparison} {self.pick(['0', '-1.5', 'true', chr(39) * 2, '9223372036854775807', '1e3'])}",
                f"{number} {comparison} {self.pick(['9007199254740993', '-9223372036854775808', '0.1', '5e-324'])}",
                f"{number} & 3 {comparison} 1",
                # The peer finds nothing if the argument is an expression.
                f"abs({self.name(self.pick(shape.floats))}) {comparison} 10" if shape.floats else f"{number} {comparison} 1"][form]

    def where(self, shape, is_bounded=False):
        parts = [self.times(shape, is_bounded)]
        if self.is_true(40):
            parts.append(self.condition(shape))
        if self.is_true(10):
            parts.reverse()
        parts = [part for part in parts if part]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def groups(self, shape, interval=None):
        parts = [interval] if interval else []
        form = self.chance.randrange(10)
        if form == 4:
            parts.append(self.pick(["*", "*", "*::tag"]))
        elif form == 5:
            parts.append(self.pick(["/ho|re/", "/./", "/^z/", "nothing", "host, nothing"]))
        elif form == 6:
            parts += shape.tags
        elif form > 6:
            parts.append(self.tag(shape))
        if self.is_true(10):
            self.chance.shuffle(parts)
        return f" GROUP BY {', '.join(parts)}" if parts else ""

    def pages(self, shape):
        text = ""
        if self.is_true(25):
            text += self.pick([" ORDER BY time DESC", " ORDER BY time DESC", " ORDER BY time ASC", " ORDER BY time"])
        if self.is_true(15):
            text += f" LIMIT {self.chance.randint(1, 5)}"
            # Over several weeks the peer skips twice in series that it does not merge.
            if self.is_true(40) and not shape.is_long and not shape.is_edge:
                text += f" OFFSET {self.chance.randint(0, 3)}"
        # The peer applies SLIMIT in each week of samples.
        if self.is_true(8) and not shape.is_long and not shape.is_edge:
            text += f" SLIMIT {self.chance.randint(1, 2)}"
            if self.is_true(40):
                text += " SOFFSET 1"
        if self.is_true(12):
            text += f" tz('{self.pick(ZONES)}')"
        return text

    # Statements.

    def select(self):
        draw = self.chance.choices([self.nested, self.raw, self.transformation, self.arithmetic, self.strings,
                                    self.forecast, self.aggregate, self.integral], [12, 16, 14, 11, 5, 1, 28, 2])[0]
        return draw()

    def raw(self):
        shape = self.shape()
        fields = ", ".join(self.raw_field(shape) for _ in range(self.chance.randint(1, 3)))
        fill = self.pick(["", "", "", "", "", " fill(0)", " fill(previous)"])
        return (f"SELECT {fields} FROM {shape.source}{self.where(shape)}{self.groups(shape)}{fill}"
                f"{self.pages(shape)}")

    def raw_field(self, shape):
        number, other = self.number(shape), self.number(shape)
        form = self.chance.randrange(19)
        if form == 9 and shape.booleans:
            return self.pick(shape.booleans)
        if form == 10 and shape.strings:
            return self.pick(shape.strings)
        if form < 12:
            return ["*", self.tag(shape), f"{number} {self.pick('+-*/%')} {other}", f"{number} * 2 AS twice",
                    self.row_function(shape), f"{number}::{self.pick(['float', 'integer', 'field'])}",
                    "/us|n/", f"-{number}", self.pick(["*::field", "*::tag", "/.*/", "/^[a-m]/, *"]), "nothing",
                    f"{self.pick(shape.fields)}::{self.pick(['float', 'integer', 'string', 'boolean', 'tag'])}"
                    .replace("odd name", '"odd name"'),
                    f"time, {number} AS {self.pick(['a', 'time', 'b', chr(34) + 'a b' + chr(34)])}"][form]
        return number

    def row_function(self, shape):
        number = self.name(self.pick(shape.floats or shape.numbers))
        form = self.chance.randrange(12)
        if form < 8:
            return [f"abs({number} * 1.0)", f"round({number} / 3)", f"floor({number})", f"ceil({number} * 0.5)",
                    f"sqrt(abs({number} * 1.0))", f"pow({number}, 2)", f"atan2({number}, 3)",
                    f"log2(abs({number} * 1.0) + 1000)"][form]
        if form == 8:
            return f"log({number}, {self.pick(['2', '10', '0.5', number])})"
        return f"{self.pick(ROW_FUNCTIONS)}({self.number(shape)})"

    def aggregate_call(self, shape):
        number = self.pick(["*", "/us|n/"]) if self.is_true(15) else self.number(shape)
        distinct = self.name(self.pick(shape.floats or shape.numbers))
        form = self.chance.randrange(24)
        if form < 8:
            return f"{self.pick(['count', 'sum', 'mean', 'median', 'spread', 'stddev'])}({number})"
        if form < 13:
            return f"{self.pick(SELECTORS)}({number})"
        if form < 15:
            return f"percentile({distinct}, {self.pick(['99.5', '0.1', '100', str(50 + self.chance.randrange(51))])})"
        if form == 15:
            return f"count(distinct({self.number(shape)}))"
        if form == 16 and shape.booleans:
            return f"{self.pick(['count', 'first', 'last', 'min', 'max', 'mode'])}({self.pick(shape.booleans)})"
        if form == 17 and shape.strings:
            return f"{self.pick(['count', 'first', 'last', 'mode'])}({self.pick(shape.strings)})"
        if form == 18:
            return f"count({self.pick(['*', '*::field', '/./', 'host', 'nothing'])})"
        if form == 19:
            return f"{self.pick(['max', 'last'])}({number}) - {self.pick(['min', 'first'])}({number})"
        if form == 20:
            cast = self.pick(["integer", "float", "field"])
            return f"{self.pick(['sum', 'mean', 'max'])}({distinct}::{cast})"
        if form == 21:
            return f"mode({number})"
        if form == 22:
            return f"{self.pick(AGGREGATES + SELECTORS)}({self.name(self.pick(shape.fields))})"
        return f"mean({number})"

    def aggregate_fields(self, shape):
        number = self.number(shape)
        distinct = self.name(self.pick(shape.floats or shape.numbers))
        if shape.has_equal_times:
            # Of equal values at one time the peer picks any.
            number = distinct
        count = self.chance.randint(1, 4)
        form = self.chance.randrange(22)
        if form < 14:
            return [f"distinct({number})", f"top({number}, {count})", f"bottom({number}, {count})",
                    f"top({number}, {self.tag(shape)}, 2)", f"bottom({number}, {self.tag(shape)}, 3), {self.number(shape)}",
                    f"top({number}, 3), host, {self.number(shape)}", f"max({number}), {self.number(shape)}, host",
                    f"first({number}), {self.name(self.pick(shape.fields))}", f"percentile({distinct}, 50), host",
                    f"max({number}) - min({number}) AS range", f"mean({number}) * 100 / sum({number}), count({number})",
                    f"round(mean({number}))", f"mean({number}) AS a, max({number}) AS a_1", f"DISTINCT {number}"][form]
        return ", ".join(self.aggregate_call(shape) for _ in range(self.chance.randint(1, 3)))

    def aggregate(self):
        shape = self.shape()
        fields = self.aggregate_fields(shape)
        interval = self.interval(shape) if self.is_true(60) else None
        is_bounded = interval is not None
        if self.is_true(10):
            interval, is_bounded = self.pick(["time(1w)", "time(30d)", "time(53w)"]), False
        where = self.where(shape, is_bounded)
        # The peer takes the LIMIT before it looks for the top.
        pages = "" if "top(" in fields or "bottom(" in fields else self.pages(shape)
        return f"SELECT {fields} FROM {shape.source}{where}{self.groups(shape, interval)}{self.pick(FILLS)}{pages}"

    def integral(self):
        # Of several groups the peer answers last windows apart from the others, and of integers windows that
        # begin with the value of the point before.
        unit = self.pick(["", ", 1m", ", 10s"])
        groups = f" GROUP BY {self.interval(BY_SHAPE['cpu'])}" if self.is_true(50) else ""
        number = "idle" if groups else self.pick(["idle", "n", "usage"])
        return f"SELECT integral({number}{unit}) FROM cpu{self.where(BY_SHAPE['cpu'], is_bounded=True)}{groups}"

    def transformation(self):
        shape = self.shape()
        interval = self.interval(shape) if self.is_true(50) else None
        inner = self.number(shape)
        if interval:
            name = self.pick(["mean", "max", "sum", "count", "last", "first", "median", "spread", "min"])
            inner = f"{name}({inner})"
        unit = self.pick(["", "", ", 1s", ", 10s", ", 1m"])
        calls = [f"derivative({inner}{unit})", f"non_negative_derivative({inner}{unit})", f"difference({inner})",
                 f"non_negative_difference({inner})", f"cumulative_sum({inner})",
                 f"moving_average({inner}, {self.chance.randint(2, 4)})", f"elapsed({inner}{unit})",
                 f"derivative({inner}) * 2, difference({inner})"]
        fill = self.pick(FILLS) if interval else ""
        where = self.where(shape, is_bounded=interval is not None)
        return (f"SELECT {self.pick(calls)} FROM {shape.source}{where}{self.groups(shape, interval)}{fill}"
                f"{self.pages(shape)}")

    def arithmetic(self):
        shape = self.shape()
        call = self.pick(["max", "sum", "last", "count", "mean"]) if self.is_true(33) else None
        fields = ", ".join(self.expression(shape, call) for _ in range(self.chance.randint(1, 2)))
        return (f"SELECT {fields} FROM {shape.source}{self.where(shape, is_bounded=True)}{self.groups(shape)}"
                f"{self.pages(shape)}")

    def expression(self, shape, call, depth=0):
        operand = f"{call}({self.number(shape)})" if call else self.number(shape)
        form = self.chance.randrange(14 if depth < 3 else 4)
        if form in (1, 2) and depth:
            return self.pick(["1", "2", "5", "8", "0.5", "3.0", "7", "0", "1000000007", "9223372036854775807", "-1"])
        if form < 4:
            return operand
        if form == 4 and not depth and not call and shape.booleans:
            boolean = self.pick(shape.booleans)
            return f"{boolean} {self.pick('&|^')} {self.pick(['true', 'false', boolean])}"
        if form == 5:
            return f"-{operand}"
        if form == 6:
            return f"({self.expression(shape, call, depth + 1)})"
        if form == 7:
            return f"{self.pick(ROW_FUNCTIONS)}({self.expression(shape, call, depth + 1)})"
        operator = self.pick("+-*/%&|^")
        return f"{self.expression(shape, call, depth + 1)} {operator} {self.expression(shape, call, depth + 1)}"

    def strings(self):
        name = self.pick(["even", "even", "ties", "edge"])
        shape = BY_SHAPE[name]
        string = shape.strings[0]
        field = self.pick([string, f"{string}, host", f"{string}, {self.number(shape)}", f"count(distinct({string}))",
                           f"distinct({string})", f"first({string})", f"last({string})", f"count({string})",
                           f"mode({string})", f"elapsed({string}, 1s)", f"sample({string}, 1000)", f"{string} AS a, *"])
        groups = " GROUP BY host"
        if "(" in field and "sample" not in field and "elapsed" not in field:
            groups = f" GROUP BY {self.interval(shape)}"
            groups += self.pick(["", ", rack fill(none)", " fill(previous)", " fill(0)"])
        groups = self.pick(["", "", groups, groups, " GROUP BY *"])
        return (f"SELECT {field} FROM {shape.source}{self.where(shape, is_bounded=True)}{groups}"
                f"{self.pick(['', '', ' ORDER BY time DESC', ' LIMIT 3'])}")

    def forecast(self):
        shape = self.pick([BY_SHAPE["cpu"], BY_SHAPE["mem"]])
        call = f"{self.pick(['mean', 'max', 'sum', 'count'])}({self.number(shape)})"
        name = self.pick(["holt_winters", "holt_winters_with_fit"])
        where = self.where(shape, is_bounded=True)
        return (f"SELECT {name}({call}, {self.chance.randint(1, 5)}, {self.chance.randrange(6)}) FROM {shape.source}"
                f"{where}{self.groups(shape, self.interval(shape))}{self.pick(['', ' fill(none)', ' fill(0)'])}")

    # Subqueries.

    def nested(self):
        return self.pick([self.nested_once, self.nested_once, self.nested_in_order, self.nested_twice,
                          self.nested_sources])()

    def inner_call(self, shape):
        # Of several series at one time the peer takes another last value than in a query of its own.
        names = ["mean", "max", "min", "sum", "count"] + ([] if shape.has_equal_times else ["last"])
        return self.pick(names)

    def nested_once(self):
        shape, source = self.narrow_shape()
        inner, outer = self.inner_call(shape), self.pick(["mean", "max", "min", "sum", "count", "spread", "median"])
        number, tag, where = self.number(shape), self.tag(shape), self.where(shape, is_bounded=True)
        interval = self.interval(shape)
        fill = self.pick(["", " fill(0)", " fill(previous)", " fill(none)"])
        forms = [
            f"SELECT {outer}(v) FROM (SELECT {inner}({number}) AS v FROM {source}{where} GROUP BY {interval}, {tag}) "
            f"GROUP BY {tag}",
            f"SELECT {outer}(v) FROM (SELECT {inner}({number}) AS v FROM {source} GROUP BY {tag}){where}",
            f"SELECT {outer}({inner}) FROM (SELECT {inner}({number}) FROM {source}{where} GROUP BY {tag})",
            f"SELECT v FROM (SELECT {number} * 2 AS v FROM {source}{where}) WHERE v > 10",
            f"SELECT {outer}(v) FROM (SELECT {number} + 1 AS v FROM {source}{where} GROUP BY {tag}) GROUP BY {tag}",
            f"SELECT * FROM (SELECT {inner}({number}), {outer}({number}) FROM {source}{where} GROUP BY {interval} "
            "fill(none))",
            f"SELECT {outer}(v) FROM (SELECT {number} AS v FROM {source}{where} GROUP BY {tag}){where} GROUP BY "
            f"{interval}, {tag}{fill}",
            f"SELECT {outer}(v) FROM (SELECT {number} AS v FROM {source}{where} GROUP BY *) GROUP BY {tag}",
            f"SELECT {outer}(a) FROM (SELECT {self.pick(ROW_FUNCTIONS)}({number}) AS a FROM {source}{where}) GROUP BY "
            f"{tag}"]
        if not shape.is_long and not shape.is_edge:
            forms.append(f"SELECT {outer}(v) FROM (SELECT {number} AS v FROM {source}{where} GROUP BY {tag}) GROUP BY {tag} SLIMIT 1")
        if not shape.has_equal_times:
            forms.append(f"SELECT {outer}(d) FROM (SELECT difference({number}) AS d FROM {source}{where} GROUP BY {tag})")
        return self.pick(forms)

    def narrow_shape(self):
        shape = self.shape()
        return shape, shape.source

    def nested_in_order(self):
        shape, source = self.narrow_shape()
        inner, number, tag = self.inner_call(shape), self.number(shape), self.tag(shape)
        where, interval = self.where(shape, is_bounded=True), self.interval(shape)
        fill = self.pick(["", " fill(none)"])
        order = self.pick(["", " ORDER BY time DESC"])
        page = f" LIMIT {self.chance.randint(1, 4)}"
        changed = self.pick(["derivative", "difference", "cumulative_sum", "elapsed"])
        return self.pick([
            f"SELECT {tag}, v FROM (SELECT {number} AS v FROM {source}{where} GROUP BY {tag}){order}",
            f"SELECT v FROM (SELECT {inner}({number}) AS v FROM {source}{where} GROUP BY {interval}{fill}){order}",
            f"SELECT v, {tag} FROM (SELECT {inner}({number}) AS v FROM {source}{where} GROUP BY {interval}, {tag}{fill}) "
            f"GROUP BY {tag}{order}",
            f"SELECT v FROM (SELECT {number} AS v FROM {source}{where} GROUP BY {tag}{order}{page}) GROUP BY {tag}{order}",
            f"SELECT v FROM (SELECT {inner}({number}) AS v FROM {source}{where} GROUP BY {interval}{fill}{page}){order}",
            f"SELECT {changed}(v) FROM (SELECT {inner}({number}) AS v FROM {source}{where} GROUP BY {interval}{fill})"
            f"{order}",
            f"SELECT v * 2, v / w FROM (SELECT {inner}({number}) AS v, max({number}) AS w FROM {source}{where} GROUP BY "
            f"{interval}{fill}){order}"])

    def nested_twice(self):
        shape, source = self.narrow_shape()
        first, second, third = (self.pick(["mean", "max", "min", "sum", "count"]) for _ in range(3))
        number, tag, where = self.number(shape), self.tag(shape), self.where(shape, is_bounded=True)
        interval = self.interval(shape)
        return self.pick([
            f"SELECT {first}(w) FROM (SELECT {second}(v) AS w FROM (SELECT {third}({number}) AS v FROM {source}{where} "
            f"GROUP BY {interval}, {tag}) GROUP BY {tag})",
            f"SELECT {first}(w) FROM (SELECT {second}(v) AS w FROM (SELECT {number} AS v FROM {source}{where} GROUP BY "
            f"{tag}) GROUP BY {tag}) GROUP BY {tag}",
            f"SELECT w + 1 FROM (SELECT v * 2 AS w FROM (SELECT {number} - 3 AS v FROM {source}{where} GROUP BY {tag}) "
            "WHERE v > 0) WHERE w < 100",
            f"SELECT {first}(w) FROM (SELECT v / 2 AS w FROM (SELECT {third}({number}) AS v FROM {source}{where} GROUP BY "
            f"{interval}, *) GROUP BY *)",
            f"SELECT {first}(w), {second}(w) FROM (SELECT v AS w, {tag} FROM (SELECT {number} AS v FROM {source}{where} "
            f"GROUP BY {tag}) WHERE {tag} != 'a')"])

    def nested_sources(self):
        times = self.where(BY_SHAPE["times"], is_bounded=True)
        call = self.pick(["mean", "max", "min", "sum", "count"])
        return self.pick([
            f"SELECT {call}(v) FROM (SELECT n AS v FROM cpu{times}), (SELECT free AS v FROM mem{times})",
            f"SELECT {call}(v) FROM (SELECT mean(n) AS v FROM cpu{times} GROUP BY time(1m)), (SELECT max(free) AS v FROM "
            f"mem{times} GROUP BY time(1m)) GROUP BY host",
            f"SELECT top, host FROM (SELECT top(usage, host, 2) FROM cpu{times})"
            f"{self.pick(['', ' WHERE top > 50', ' GROUP BY host'])}",
            f"SELECT v, host FROM (SELECT {call}(usage) AS v FROM cpu{times} GROUP BY time(1m), host) "
            f"WHERE host = '{self.pick(['a', 'b', ''])}' OR v > 10"])


BY_SHAPE = {name: Shape(f'"{name}"' if " " in name else name, name) for name in BY_NAME}
# Names that both cpu and mem have.
BY_SHAPE["times"] = Shape("cpu", "cpu")
BY_SHAPE["times"].numbers, BY_SHAPE["times"].booleans, BY_SHAPE["times"].tags = ["n"], [], ["host"]

# Forms of a time of N seconds since 1970.
WRITERS = [
    lambda seconds: f"{seconds}000ms", lambda seconds: f"{seconds}000000u", lambda seconds: f"{seconds}000000000",
    lambda seconds: f"'{format_time(seconds)}Z'", lambda seconds: f"'{format_time(seconds)}.25Z'",
    lambda seconds: f"'{format_time(seconds, ' ')}'", lambda seconds: f"'{format_time(seconds, ' ')}.000000001'",
    lambda seconds: f"'{format_time(seconds + 7200)}+02:00'", lambda seconds: f"'{format_time(seconds - 90)}Z' + 90s",
    lambda seconds: f"{seconds // 60}m", lambda seconds: f"{seconds - 46}s + 1m - 7s * 2",
    lambda seconds: f"'{format_time(seconds)[:10]}'"]
