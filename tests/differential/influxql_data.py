"""Lines that the `influxql` and `flux` campaigns load, from a seed, and the measurements as queries name them."""

import dictionary

START = 1_600_000_000  # seconds: 2020-09-13T12:26:40Z, a Sunday
ROWS = 60  # of one series
STEP = 20  # seconds between two rows of a series
# The clocks change on 2020-10-25 in Berlin and on 2020-11-01 in New York.
LONG_OFFSET, LONG_STEP = 3_000_000, 7 * 3_600
SECOND = 10**9

# Sums of these integers are exact in a float64.
BIG_MAX = 1 << 44


class Measurement:
    """A measurement: its series, and its fields with their types.

    float, integer, big (an integer up to 2^44), tie (a small integer), boolean, string,
    and `edge_` forms of them with values of the dictionary."""

    def __init__(self, name, series, fields):
        self.name, self.series, self.fields = name, series, fields

    def of_type(self, *types):
        return [name for name, kind in self.fields.items() if kind.removeprefix("edge_") in types]

    @property
    def numbers(self):
        return self.of_type("float", "integer", "big", "tie")

    @property
    def tags(self):
        return list(dict.fromkeys(key for tags in self.series for key in tags))


MEASUREMENTS = [
    Measurement("cpu", [{"host": "a", "region": "eu"}, {"host": "b", "region": "eu"},
                        {"host": "c", "region": "us west"}, {"host": "d"}],
                {"usage": "float", "idle": "float", "n": "integer", "up": "boolean"}),
    Measurement("mem", [{"host": "a"}, {"host": "c"}], {"used": "integer", "free": "float", "n": "float"}),
    Measurement("disk io", [{"path": "/", "host": "b"}, {"path": "/var lib"}], {"value": "float"}),
    # All series have the same times.
    Measurement("even", [{"host": "a", "rack": "1"}, {"host": "b"}, {"host": "b", "rack": "2"},
                         {"host": "c", "rack": "1"}, {"rack": "3"}],
                {"f": "float", "i": "integer", "b": "boolean", "s": "string"}),
    # Samples of nine weeks, and names that need quotes.
    Measurement("long", [{"host": "a", "zone": "x=1,y"}, {"host": "b"}, {}],
                {"v": "float", "big": "big", "flag": "boolean", "odd name": "integer"}),
    # Many equal values.
    Measurement("ties", [{"host": "a"}, {"host": "b"}], {"i": "tie", "s": "string"}),
    # Values and times of the dictionary.
    Measurement("edge", [{}, {"host": "a"}, {"host": "日本", "rack": "a b"}, {"rack": "x\"y"}],
                {"x": "edge_float", "k": "edge_integer", "t": "edge_string", "o": "boolean"}),
]
BY_NAME = {one.name: one for one in MEASUREMENTS}


class Line:
    """A line of line protocol; `fields` maps names to values as line protocol writes them."""

    def __init__(self, measurement, tags, fields, time):
        self.measurement, self.tags, self.fields, self.time = measurement, tags, fields, time

    def __str__(self):
        tags = "".join(f",{escape(key)}={escape(value)}" for key, value in self.tags.items())
        fields = ",".join(f"{escape(name)}={value}" for name, value in self.fields.items())
        name = self.measurement.replace(",", "\\,").replace(" ", "\\ ")
        return f"{name}{tags} {fields} {self.time}"


def escape(text):
    return text.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")


def quote(text):
    """Writes a string value."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def draw_value(chance, kind):
    if kind == "integer":
        return f"{chance.randint(-10, 29)}i"
    if kind == "big":
        return f"{chance.randrange(-BIG_MAX, BIG_MAX)}i"
    if kind == "tie":
        return f"{chance.randint(0, 4)}i"
    if kind == "boolean":
        return chance.choice(["true", "false"])
    if kind == "string":
        return quote(chance.choice(["x y", "a", "", "b,=", "xyz"]))
    if kind == "edge_float":
        return repr(dictionary.draw_float(chance))
    if kind == "edge_integer":
        return f"{dictionary.draw_integer(chance)}i"
    if kind == "edge_string":
        return quote(dictionary.draw_string(chance))
    # Seldom twice the same value: of equal ones the peer's percentile takes any.
    return repr(chance.randrange(512_000) / 1024 - 100)


def draw_lines(chance):
    """Draws the lines of all measurements."""
    lines = []
    number = 0
    for measurement in MEASUREMENTS:
        for tags in measurement.series:
            number += 1
            for time in draw_times(chance, measurement.name, number):
                fields = {name: draw_value(chance, kind) for name, kind in measurement.fields.items()
                          if chance.random() < 0.8}
                if fields:
                    lines.append(Line(measurement.name, tags, fields, time))
    return lines


def draw_times(chance, name, number):
    """Returns the times of a series in nanoseconds; `number` is the series' number."""
    if name == "edge":
        return [second * SECOND + chance.choice([0, 0, 1, 999_999_999]) for second in dictionary.TIMES
                if chance.random() < 0.7]
    first, step = (LONG_OFFSET, LONG_STEP) if name == "long" else (0, STEP)
    times = [(START + first + row * step) * SECOND for row in range(ROWS)]
    if name in ("even", "ties"):
        return times
    return [time + chance.randrange(4) * SECOND + number * 37_000_000 for time in times]
