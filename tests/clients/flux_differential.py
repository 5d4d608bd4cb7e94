"""Quipu's Flux and InfluxData's own engine asked the same: `make test-flux ENGINE=PATH`, minutes.

The first argument is the Quipu binary, the second the engine (tests/clients/go-flux says how it is built).
A seeded data set goes to Quipu as line protocol and to the engine as annotated CSV. Pipelines are built
from a grammar: each function in each of its forms, then chains of them. Of each answer the tables are
compared: group keys, names and types of columns, and rows in their order. The order of columns is not: of
aggregates InfluxDB's storage answers in another one than its engine.

--seed and --count change the chains, --only WORD asks pipelines with that word alone, --all-forms 0 leaves
the single functions out. Pipelines of flux_known.txt differ, for the reason that stands there.
"""

import argparse
import collections
import csv
import io
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

from moving_in import Program, free_port, get
import urllib.error
import urllib.request

START = 1_600_000_000  # 2020-09-13T12:26:40Z
HOUR = 3600
RANGE = "range(start: 2020-09-13T12:26:40Z, stop: 2020-09-13T13:26:40Z)"
ODD_RANGE = "range(start: 2020-09-13T12:31:07Z, stop: 2020-09-13T13:02:33Z)"
LONG_RANGE = "range(start: 2020-08-20T00:00:00Z, stop: 2021-01-10T12:00:00Z)"


class Series:
    def __init__(self, measurement, tags, field, kind, points):
        self.measurement, self.tags, self.field, self.kind, self.points = measurement, tags, field, kind, points


def line_value(kind, value):
    if kind == "long":
        return f"{value}i"
    if kind == "string":
        return f'"{value}"'
    if kind == "boolean":
        return "true" if value else "false"
    return repr(value)


def cell(kind, value):
    if kind == "boolean":
        return "true" if value else "false"
    return str(value) if kind != "double" else repr(value)


def made(seed):
    """The data set: ties, gaps, falls of counters, times that are off the grid, a series without a tag."""
    rng = random.Random(seed)
    found = []
    for host, region in [("a", "eu"), ("b", "eu"), ("c", "us")]:
        tags = {"host": host, "region": region}
        offset = {"a": 0, "b": 3_500_000_000, "c": 0}[host]
        times = [(START + 20 * i) * 10**9 + offset for i in range(180) if rng.random() > 0.1]
        if host == "c":
            times = [t for t in times if not START + 900 <= t // 10**9 < START + 1900]
        walk, counter = 50.0, 0
        usage, load, n, requests, up, state = [], [], [], [], [], []
        for t in times:
            walk = round(min(100.0, max(0.0, walk + rng.uniform(-8, 8))), 2)
            counter = 0 if rng.random() < 0.04 else counter + rng.randint(0, 9)
            usage.append((t, walk))
            load.append((t, float(rng.randint(0, 6))))
            n.append((t, rng.randint(-4, 12)))
            requests.append((t, counter))
            up.append((t, rng.random() < 0.7))
            state.append((t, rng.choice(["ok", "ok", "slow", "down"])))
        for field, kind, points in [
            ("load", "double", load), ("n", "long", n), ("requests", "long", requests),
            ("state", "string", state), ("up", "boolean", up), ("usage", "double", usage),
        ]:
            # Fields of one host do not all have the same rows.
            points = [p for p in points if field == "usage" or rng.random() > 0.15]
            found.append(Series("cpu", tags, field, kind, points))
    for room in ["attic", "cellar"]:
        points = [((START + 60 * i) * 10**9, round(rng.gauss(20, 3), 1)) for i in range(60) if rng.random() > 0.2]
        found.append(Series("air", {"room": room}, "temperature", "double", points))
    first = 1_597_881_600  # 2020-08-20
    points = [((first + 5 * HOUR * i + rng.randint(0, 900)) * 10**9, rng.randint(0, 40)) for i in range(680)]
    found.append(Series("days", {"shop": "s"}, "sales", "long", points))
    found.append(Series("days", {"shop": "t"}, "sales", "long", points[::3]))
    return found


def as_lines(data):
    lines = []
    for series in data:
        tags = "".join(f",{k}={v}" for k, v in series.tags.items())
        for time, value in series.points:
            lines.append(f"{series.measurement}{tags} {series.field}={line_value(series.kind, value)} {time}")
    return "\n".join(lines)


def rfc3339(nanos):
    import datetime
    whole = datetime.datetime.fromtimestamp(nanos // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    rest = f"{nanos % 10**9:09}".rstrip("0")
    return whole + (f".{rest}" if rest else "") + "Z"


def as_csv(data):
    """One table for each series, with the columns and in the order of InfluxDB's storage."""
    out = []
    order = lambda s: (s.measurement, sorted(s.tags.items()), s.field)
    for number, series in enumerate(sorted(data, key=order)):
        tags = sorted(series.tags)
        kinds = ["string", "long", "dateTime:RFC3339", "dateTime:RFC3339", "dateTime:RFC3339", series.kind]
        out.append("#datatype," + ",".join(kinds + ["string"] * (2 + len(tags))))
        out.append("#group,false,false,true,true,false,false" + ",true" * (2 + len(tags)))
        out.append("#default,_result" + "," * (7 + len(tags)))
        out.append(",result,table,_start,_stop,_time,_value,_field,_measurement" + "".join(f",{t}" for t in tags))
        rest = f"{series.field},{series.measurement}" + "".join(f",{series.tags[t]}" for t in tags)
        for time, value in series.points:
            ends = "2000-01-01T00:00:00Z,2030-01-01T00:00:00Z"
            out.append(f",,{number},{ends},{rfc3339(time)},{cell(series.kind, value)},{rest}")
        out.append("")
    return "\r\n".join(out) + "\r\n"


# ---- The grammar. -----------------------------------------------------------------------------------

def cpu(field, range_=RANGE):
    return f'DATA |> {range_} |> filter(fn: (r) => r._measurement == "cpu" and r._field == "{field}")'


BASES = {
    "float": [cpu("usage"), cpu("load"), cpu("usage", ODD_RANGE), cpu("load", ODD_RANGE),
              f'DATA |> {RANGE} |> filter(fn: (r) => r._measurement == "cpu" and (r._field == "usage" or r._field == "load"))',
              f'DATA |> {RANGE} |> filter(fn: (r) => r._measurement == "cpu" and r._field == "usage" and r._value > 60.0)',
              f'DATA |> {RANGE} |> filter(fn: (r) => r._measurement == "air")'],
    "int": [cpu("n"), cpu("requests"), cpu("n", ODD_RANGE), cpu("requests", ODD_RANGE),
            f'DATA |> {RANGE} |> filter(fn: (r) => r._measurement == "cpu" and (r._field == "n" or r._field == "requests"))'],
    "string": [cpu("state"), cpu("state", ODD_RANGE)],
    "bool": [cpu("up"), cpu("up", ODD_RANGE)],
    "days": [f'DATA |> {LONG_RANGE} |> filter(fn: (r) => r._measurement == "days")'],
}
NUMBERS = ("float", "int", "days")
ANY = ("float", "int", "string", "bool")

WINDOWS = [
    "every: 5m", "every: 7m", "every: 90s", "every: 1h", "every: 5m, offset: 1m", "every: 5m, offset: -2m",
    "every: 5m, offset: 13m", "every: 5m, period: 10m", "every: 10m, period: 4m", "every: 5m, period: 12m, offset: 30s",
    "every: 2h", "period: 5m", "every: 5m, period: -5m", "every: 20s", "every: 1d",
]
LONG_WINDOWS = [
    "every: 1mo", "every: 1w", "every: 1d", "every: 3mo", "every: 1mo, offset: 2d", "every: 1mo, period: 2mo",
    "every: 1w, offset: 3d", "every: 1y", "every: 1mo, offset: -1d", "every: 1mo, period: 10d", "every: 2w, period: 3w",
    "every: 1mo, offset: 1mo", "every: 36h",
]
ZONES = ['timezone.location(name: "America/New_York")', 'timezone.location(name: "Asia/Kolkata")', "timezone.fixed(offset: -5h)"]
AGGREGATES = ["mean", "sum", "count", "min", "max", "first", "last", "median", "spread", "stddev", "skew", "mode", "integral", "quantile",
              "distinct", "unique"]
OF_ANY = ["count", "first", "last", "mode", "unique", "distinct"]


def windows(kind):
    return LONG_WINDOWS if kind == "days" else WINDOWS


def forms(kind):
    """Every function, in every form, for values of that kind."""
    number = kind in NUMBERS
    out = []
    for window in windows(kind):
        for empty in ["", ", createEmpty: true"]:
            out.append(f"window({window}{empty})")
        out.append(f"window({window}) |> count()")
        for name in (["mean", "last", "count"] if number else ["last", "count"]):
            for empty in ["true", "false"]:
                out.append(f"aggregateWindow({window}, fn: {name}, createEmpty: {empty})")
    window = windows(kind)[0]
    for name in AGGREGATES if number else OF_ANY:
        for empty in ["true", "false"]:
            fn = "(column, tables=<-) => tables |> quantile(q: 0.9, column: column)" if name == "quantile" else name
            out.append(f"aggregateWindow({window}, fn: {fn}, createEmpty: {empty})")
            out.append(f'aggregateWindow({window}, fn: {fn}, createEmpty: {empty}, timeSrc: "_start", timeDst: "_at")')
            out.append(f'aggregateWindow({window}, fn: {fn}, createEmpty: {empty}, timeSrc: "_start")')
        out.append(f"window({window}) |> {name if name != 'quantile' else 'median'}()")
        out.append(f"window({window}, createEmpty: true) |> {name if name != 'quantile' else 'median'}()")
        if name != "quantile":
            out.append(f"{name}()")
            out.append(f"group() |> {name}()")
            out.append(f'group(columns: ["host"]) |> {name}()')
            if name != "integral":
                out.append(f'{name}(column: "_value")')
    if kind == "days":
        for zone in ZONES:
            for window in ["every: 1mo", "every: 1d", "every: 1w", "every: 1d, offset: 6h", "every: 12h", "every: 1mo, period: 2mo"]:
                out.append(f"aggregateWindow({window}, fn: sum, location: {zone})")
                out.append(f"window({window}, location: {zone}) |> count()")
    if number:
        out += number_forms(kind)
    out += any_forms(kind)
    return out


def number_forms(kind):
    out = []
    for q in ["0.0", "0.25", "0.5", "0.9", "0.99", "1.0"]:
        for method in ["", ', method: "exact_mean"', ', method: "exact_selector"', ', method: "estimate_tdigest", compression: 1000.0']:
            out.append(f"quantile(q: {q}{method})")
    out += ['median(method: "exact_mean")', 'median(method: "exact_selector")', 'stddev(mode: "population")', 'stddev(mode: "sample")']
    for unit in ["", "unit: 1m", "unit: 1h", "unit: 1ms"]:
        out.append(f"integral({unit})")
        out.append(f"derivative({unit})")
        more = unit + ", " if unit else ""
        out.append(f"derivative({more}nonNegative: false)")
        out.append(f"derivative({more}nonNegative: true)")
        out.append(f"derivative({more}nonNegative: true, initialZero: true)")
        out.append(f"elapsed({unit})")
    out += ['integral(unit: 1m, interpolate: "linear")', 'window(every: 5m) |> integral(unit: 1m, interpolate: "linear")',
            "difference()", "difference(nonNegative: true)", "difference(keepFirst: true)",
            "difference(nonNegative: true, keepFirst: true)", "difference(nonNegative: true, initialZero: true)",
            "difference(nonNegative: true, initialZero: true, keepFirst: true)", "increase()", "cumulativeSum()",
            'elapsed(columnName: "d")', 'elapsed(unit: 1s, timeColumn: "_time")',
            "timedMovingAverage(every: 5m, period: 10m)", "timedMovingAverage(every: 2m, period: 2m)", "timedMovingAverage(every: 10m, period: 5m)",
            "limit(n: 3) |> derivative()", "limit(n: 1) |> derivative()", "limit(n: 1) |> difference()", "limit(n: 1) |> increase()",
            "limit(n: 1) |> elapsed()", "limit(n: 1) |> stddev()", "limit(n: 1) |> skew()", "limit(n: 2) |> skew()", "limit(n: 1) |> integral()",
            "toFloat() |> histogram(bins: [0.0, 5.0, 10.0, 50.0, 100.0])", "toFloat() |> histogram(bins: [0.0, 5.0, 10.0, 50.0], normalize: true)",
            'toFloat() |> histogram(bins: linearBins(start: 0.0, width: 10.0, count: 5), upperBoundColumn: "ub", countColumn: "c")',
            "toFloat() |> histogram(bins: linearBins(start: 0.0, width: 10.0, count: 5, infinity: false))",
            "toFloat() |> histogram(bins: logarithmicBins(start: 1.0, factor: 2.0, count: 6))",
            "toFloat() |> group() |> histogram(bins: [0.0, 10.0, 60.0])",
            "toFloat() |> histogram(bins: [0.0, 5.0, 10.0, 50.0, 100.0]) |> histogramQuantile(quantile: 0.5)",
            "chandeMomentumOscillator(n: 5)", "relativeStrengthIndex(n: 5)", "kaufmansAMA(n: 5)", "kaufmansER(n: 5)",
            "tripleExponentialDerivative(n: 3)", "doubleEMA(n: 4)", "tripleEMA(n: 3)",
            "holtWinters(n: 3, interval: 10m)",
            ]
    for n in [1, 2, 5, 500]:
        out += [f"movingAverage(n: {n})", f"exponentialMovingAverage(n: {n})"]
    for name in ["highestMax", "highestAverage", "highestCurrent", "lowestMin", "lowestAverage", "lowestCurrent"]:
        out.append(f"{name}(n: 2)")
        out.append(f'{name}(n: 2, groupColumns: ["host"])')
        out.append(f'{name}(n: 1, column: "_value", groupColumns: ["_field", "host"])')
    zero = "0.0" if kind == "float" else "0"
    five = "5.0" if kind == "float" else "5"
    for window in windows(kind)[:2] + ([] if kind == "days" else ["every: 20s"]):
        empty = f"aggregateWindow({window}, fn: mean)"
        out += [f"{empty} |> fill(value: 0.5)", f"{empty} |> fill(usePrevious: true)", f'{empty} |> fill(column: "_value", value: -1.0)',
                f"{empty} |> derivative(unit: 1m)", f"{empty} |> derivative(unit: 1m, nonNegative: true)", f"{empty} |> difference()",
                f"{empty} |> difference(nonNegative: true)", f"{empty} |> difference(keepFirst: true)",
                f"{empty} |> cumulativeSum()", f"{empty} |> increase()",
                f"{empty} |> movingAverage(n: 3)", f"{empty} |> exponentialMovingAverage(n: 3)", f"{empty} |> sort()",
                f"{empty} |> sort(desc: true)", f"{empty} |> top(n: 3)", f"{empty} |> bottom(n: 3)", f"{empty} |> min()", f"{empty} |> max()",
                f"{empty} |> first()", f"{empty} |> last()", f"{empty} |> count()", f"{empty} |> sum()", f"{empty} |> mean()", f"{empty} |> spread()",
                f"{empty} |> median()", f'{empty} |> median(method: "exact_mean")', f"{empty} |> mode()", f"{empty} |> stddev()", f"{empty} |> skew()",
                f"{empty} |> integral(unit: 1m)", f"{empty} |> unique()", f"{empty} |> distinct()", f"{empty} |> filter(fn: (r) => exists r._value)",
                f"{empty} |> map(fn: (r) => ({{r with _value: r._value * 2.0}}))", f"{empty} |> stateCount(fn: (r) => r._value > 10.0)",
                f"{empty} |> filter(fn: (r) => r._value > 10.0)", f"{empty} |> elapsed()", f"{empty} |> toInt()", f"{empty} |> toString()",
                f"{empty} |> limit(n: 2)", f"{empty} |> tail(n: 2)", f"{empty} |> histogram(bins: [0.0, 10.0, 50.0])",
                f'{empty} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")', f"{empty} |> quantile(q: 0.3, method: \"exact_selector\")"]
    out += [f"stateCount(fn: (r) => r._value > {five})", f'stateCount(fn: (r) => r._value > {five}, column: "c")',
            f"stateDuration(fn: (r) => r._value > {five})", f'stateDuration(fn: (r) => r._value > {five}, unit: 1m, column: "d")',
            f"stateDuration(fn: (r) => r._value > {five}, unit: 1ns)",
            f"map(fn: (r) => ({{r with _value: r._value + r._value}}))", f"map(fn: (r) => ({{r with double: r._value + r._value}}))",
            f"map(fn: (r) => ({{_time: r._time, _value: r._value}}))", f"map(fn: (r) => ({{_value: r._value, host: \"x\"}}))",
            f"map(fn: (r) => ({{r with _value: if r._value > {five} then \"high\" else \"low\"}}))",
            f"map(fn: (r) => ({{r with _value: float(v: r._value) / 3.0}}))", f"map(fn: (r) => ({{r with _value: -r._value}}))",
            f"reduce(identity: {{n: 0, s: {zero}}}, fn: (r, accumulator) => ({{n: accumulator.n + 1, s: accumulator.s + r._value}}))",
            f"reduce(identity: {{_value: {zero}}}, fn: (r, accumulator) => ({{_value: r._value + accumulator._value}}))",
            f"filter(fn: (r) => r._value > {five})", f"filter(fn: (r) => r._value >= {five} and r._value < {five} + {five})",
            f"filter(fn: (r) => r._value > {five} or r._value == {zero})",
            "toString()", "toInt()", "toFloat()", "toUInt() |> limit(n: 5)" if kind == "float" else "filter(fn: (r) => r._value >= 0) |> toUInt()",
            "sum() |> rename(columns: {_value: \"total\"})", "mean() |> group()", "mean() |> group() |> sort()", "count() |> group() |> sum()",
            "sort() |> first()", "sort(desc: true) |> limit(n: 2, offset: 1)", "spread() |> group() |> max()",
            "skew() |> group() |> count()",
            ]
    return out


def any_forms(kind):
    tag = "shop" if kind == "days" else "host"
    out = ["limit(n: 3)", "limit(n: 3, offset: 2)", "limit(n: 0)", "limit(n: 1000)", "limit(n: 2, offset: 10000)", "tail(n: 3)", "tail(n: 3, offset: 2)",
           "tail(n: 1000)", "tail(n: 2, offset: 10000)", "sort()", "sort(desc: true)", 'sort(columns: ["_time"], desc: true)', 'sort(columns: ["_value", "_time"])',
           f'sort(columns: ["{tag}", "_value"])', 'sort(columns: ["nothing"])', 'sort(columns: ["nothing", "_value"])',
           "first()", "last()", "count()", "unique()", "distinct()", f'distinct(column: "{tag}")', f'unique(column: "{tag}")', 'distinct(column: "_time")', 'distinct(column: "nothing")',
           "keys()", 'keys(column: "k")', "columns()", 'columns(column: "k")', "group() |> keys()", f'group(columns: ["{tag}"])', f'group(columns: ["{tag}", "_field"])',
           "group()", f'group(columns: ["{tag}"], mode: "except")', 'group(columns: ["_time", "_value"], mode: "except")',
           'group(columns: ["_start", "_stop", "_time", "_value"], mode: "except")', 'group(columns: ["nothing"])', f'group(columns: ["nothing", "{tag}"])',
           'group(columns: [], mode: "except")', f'group(columns: ["_measurement", "{tag}"]) |> count()', f'group(columns: ["_field"]) |> sort(columns: ["_time", "{tag}"])',
           f'group(columns: ["{tag}"]) |> sort(columns: ["_time"]) |> limit(n: 4)', f'group(columns: ["_value"]) |> count(column: "_time")',
           f'group() |> distinct(column: "{tag}")', f'group() |> unique(column: "{tag}")', 'group() |> distinct(column: "_value")',
           f'group() |> sort(columns: ["{tag}", "_time"])', "group() |> first()", "group() |> last()", "group() |> limit(n: 3)",
           f'drop(columns: ["_start", "_stop"])', f'drop(columns: ["{tag}"])', f'drop(columns: ["_value"])', 'drop(columns: ["nothing"])', 'drop(fn: (column) => column =~ /^_/)',
           f'keep(columns: ["_time", "_value"])', f'keep(columns: ["_time", "_value", "{tag}"])', f'keep(columns: ["_value"])', 'keep(columns: ["nothing"])',
           f'keep(columns: ["{tag}"])', 'keep(fn: (column) => column =~ /^_/)', f'keep(columns: ["nothing", "_value"])',
           f'rename(columns: {{{tag}: "server"}})', 'rename(columns: {_value: "v", _time: "t"})', 'rename(fn: (column) => column + "_x")', f'rename(columns: {{{tag}: "_field"}})',
           f'duplicate(column: "{tag}", as: "server")', 'duplicate(column: "_value", as: "v")', 'duplicate(column: "_stop", as: "_time")', 'duplicate(column: "_start", as: "x")',
           'duplicate(column: "nothing", as: "x")', f'duplicate(column: "_field", as: "{tag}")', f'duplicate(column: "_value", as: "{tag}")',
           f'set(key: "{tag}", value: "z")', 'set(key: "new", value: "z")', 'set(key: "_field", value: "z")', f'set(key: "new", value: "z") |> group(columns: ["new"]) |> count()',
           'pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")', f'pivot(rowKey: ["_time"], columnKey: ["{tag}"], valueColumn: "_value")',
           f'group() |> pivot(rowKey: ["_time"], columnKey: ["{tag}"], valueColumn: "_value")', f'group() |> pivot(rowKey: ["_time"], columnKey: ["_field", "{tag}"], valueColumn: "_value")',
           f'pivot(rowKey: ["_time", "{tag}"], columnKey: ["_field"], valueColumn: "_value")', f'group(columns: ["_measurement"]) |> pivot(rowKey: ["_time", "{tag}"], columnKey: ["_field"], valueColumn: "_value")',
           f'group() |> sort(columns: ["_time"], desc: true) |> pivot(rowKey: ["_time"], columnKey: ["{tag}"], valueColumn: "_value")',
           f'drop(columns: ["_start", "_stop"]) |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")',
           f'group() |> pivot(rowKey: ["_time"], columnKey: ["{tag}"], valueColumn: "_value") |> limit(n: 3)',
           f'group() |> pivot(rowKey: ["{tag}"], columnKey: ["_field"], valueColumn: "_value")',
           'map(fn: (r) => ({r with n: 1}))', f'map(fn: (r) => ({{r with {tag}: r.{tag} + "x"}}))', f'map(fn: (r) => ({{_time: r._time, {tag}: r.{tag}}}))', f'map(fn: (r) => ({{{tag}: r.{tag}}})) |> group()',
           'map(fn: (r) => ({r with _time: r._start}))', 'map(fn: (r) => ({r with missing: r.missing}))', 'map(fn: (r) => ({r with is: exists r.missing}))', f'map(fn: (r) => ({{b: 1, a: 2.0, _value: r._value}}))',
           'map(fn: (r) => ({r with _stop: r._time}))', 'map(fn: (r) => ({r with _value: string(v: r._value) + "!"}))',
           'map(fn: (r) => ({r with h: int(v: r._time)}))', 'map(fn: (r) => ({r with u: uint(v: r._time)}))',
           'timeShift(duration: 1h)', 'timeShift(duration: -5m, columns: ["_time"])', "truncateTimeColumn(unit: 1m)", "truncateTimeColumn(unit: 5m)", 'truncateTimeColumn(unit: 1h)',
           'elapsed(unit: 1s)', "sample(n: 3, pos: 0)", "sample(n: 5, pos: 2)", "sample(n: 1000, pos: 0)", "sample(n: 5, pos: 4) |> count()",
           f'range(start: 2020-09-13T12:40:00Z, stop: 2020-09-13T12:50:00Z)', f'range(start: 2020-09-13T12:40:00Z, stop: 2020-09-13T12:50:00Z) |> count()',
           'range(start: 2020-09-13T12:00:00Z, stop: 2020-09-13T14:00:00Z) |> limit(n: 1)',
           f'filter(fn: (r) => r.{tag} == "a")', f'filter(fn: (r) => r.{tag} != "a")', f'filter(fn: (r) => r.{tag} =~ /[ab]/)', f'filter(fn: (r) => r.{tag} !~ /[ab]/)',
           f'filter(fn: (r) => exists r.{tag})', f'filter(fn: (r) => exists r.nothing)', f'filter(fn: (r) => r.{tag} == "nowhere") |> count()', f'filter(fn: (r) => r.{tag} == "nowhere", onEmpty: "keep") |> count()',
           f'filter(fn: (r) => contains(value: r.{tag}, set: ["a", "c"]))', f'limit(n: 1) |> group() |> sort(columns: ["{tag}"])',
           f'last() |> group(columns: ["_field"]) |> count()', f'count() |> map(fn: (r) => ({{r with _value: r._value * 2}}))',
           f'first() |> keep(columns: ["_value", "{tag}"])', f'last() |> drop(columns: ["_start", "_stop", "_time"])', f'count() |> keep(columns: ["_value", "{tag}"])',
           'window(every: 10m) |> first() |> window(every: inf)', 'window(every: 10m) |> count() |> duplicate(column: "_stop", as: "_time") |> window(every: inf)',
           'window(every: 10m) |> limit(n: 2) |> group(columns: ["_start", "_stop"], mode: "except")', 'window(every: 10m) |> last() |> group()',
           'window(every: 10m, startColumn: "a", stopColumn: "b")', 'window(every: 10m, timeColumn: "_start")', 'window(every: inf)',
           'drop(columns: ["_start", "_stop"]) |> window(every: 10m)', 'drop(columns: ["_start", "_stop"]) |> aggregateWindow(every: 10m, fn: count)',
           'group() |> window(every: 10m)', 'group() |> aggregateWindow(every: 10m, fn: count)', f'group(columns: ["{tag}"]) |> aggregateWindow(every: 10m, fn: count)', f'group(columns: ["{tag}"]) |> aggregateWindow(every: 10m, fn: last)',
           f'group(columns: ["{tag}"]) |> window(every: 10m) |> count()',
           'yield(name: "x")', f'group(columns: ["{tag}"]) |> yield(name: "x")',
           'limit(n: 5) |> map(fn: (r) => ({r with _value: r._value}))',
           f'group(columns: ["{tag}"]) |> map(fn: (r) => ({{_value: r._value, _time: r._time}}))',
           'timeWeightedAvg(unit: 1m)' if kind in NUMBERS else 'limit(n: 1)',
           'hourSelection(start: 12, stop: 12)', 'hourSelection(start: 13, stop: 20)',
           ]
    return out


def joins():
    one = cpu("usage") + ' |> aggregateWindow(every: 5m, fn: mean, createEmpty: false)'
    two = cpu("load") + ' |> aggregateWindow(every: 5m, fn: max, createEmpty: false)'
    ints = cpu("n") + ' |> aggregateWindow(every: 5m, fn: count)'
    out = []
    for on in ['["_time", "host"]', '["_time", "host", "region"]', '["host"]', '["_time"]', '["_time", "_start", "_stop", "host", "region", "_measurement"]',
               '["_time", "_start", "_stop", "host", "region", "_measurement", "_field"]']:
        out.append(f"a = {one}\nb = {two}\njoin(tables: {{a: a, b: b}}, on: {on})")
        out.append(f"a = {one}\nb = {ints}\njoin(tables: {{x: a, y: b}}, on: {on})")
        out.append(f"a = {one}\nb = {two}\njoin(tables: {{b: b, a: a}}, on: {on})")
        out.append(f"a = {one}\nb = {two}\njoin(tables: {{b: b, a: a}}, on: {on}, method: \"inner\")")
        out.append(f"a = {one} |> group(columns: [\"host\"])\nb = {two} |> group(columns: [\"host\"])\njoin(tables: {{a: a, b: b}}, on: {on})")
        out.append(f"a = {one} |> group()\nb = {two} |> group()\njoin(tables: {{a: a, b: b}}, on: {on})")
        out.append(f"a = {one} |> keep(columns: [\"_time\", \"_value\", \"host\"])\nb = {two} |> keep(columns: [\"_time\", \"_value\", \"host\"])\njoin(tables: {{a: a, b: b}}, on: {on})"
                   )
    calc = '|> map(fn: (r) => ({r with _value: r._value_a / r._value_b}))'
    out.append(f'a = {one}\nb = {two}\njoin(tables: {{a: a, b: b}}, on: ["_time", "host"]) {calc}')
    out.append(f'a = {one} |> mean()\nb = {two} |> mean()\njoin(tables: {{a: a, b: b}}, on: ["host"])')
    for tail in ["", " |> group()", ' |> group(columns: ["host"]) |> sort(columns: ["_time", "_value"])', " |> count()",
                 ' |> sort(columns: ["_time", "_value"])', ' |> group(columns: ["host"]) |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")']:
        out.append(f"a = {one}\nb = {two}\nunion(tables: [a, b]){tail}")
        out.append(f"a = {one}\nb = {one}\nunion(tables: [a, b]){tail}")
        out.append(f"a = {one} |> mean()\nb = {two}\nunion(tables: [a, b]){tail}")
        out.append(f"a = {one} |> keep(columns: [\"_value\", \"host\"])\nb = {two} |> keep(columns: [\"_value\", \"_time\"])\nunion(tables: [a, b]){tail}")
        out.append(f"a = {cpu('n')} |> count()\nb = {cpu('state')} |> count()\nunion(tables: [a, b]){tail}")
    out.append(f"a = {cpu('n')}\nb = {cpu('usage')}\nunion(tables: [a, b])")
    out.append(f"a = {cpu('n')}\nb = {cpu('usage')}\nunion(tables: [a, b]) |> group()")
    out.append(f'{cpu("usage")} |> yield(name: "a")\n{cpu("usage")} |> count() |> yield(name: "b")')
    out.append(f'x = {cpu("usage")} |> max() |> findRecord(fn: (key) => key.host == "b", idx: 0)\n{cpu("usage")} |> map(fn: (r) => ({{r with _value: r._value / x._value}}))')
    out.append(f'x = {cpu("usage")} |> findColumn(fn: (key) => true, column: "_value")\n{cpu("usage")} |> filter(fn: (r) => r._value == x[0])')
    every = f'DATA |> {RANGE} |> filter(fn: (r) => r._measurement == "cpu")'
    out += [f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")', f"{every} |> first()", f"{every} |> last()", f"{every} |> count()",
            f'{every} |> group(columns: ["host"]) |> count()', f'{every} |> schema.fieldsAsCols()', f"{every} |> keys()", f"{every} |> columns()",
            f'{every} |> aggregateWindow(every: 10m, fn: last, createEmpty: false) |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")',
            f'{every} |> aggregateWindow(every: 10m, fn: last) |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> map(fn: (r) => ({{r with t: r.usage + r.load}}))',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> filter(fn: (r) => exists r.n and r.n > 3)',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> fill(column: "n", value: 0)',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> fill(column: "state", usePrevious: true)',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> sort(columns: ["n", "load"])',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> sort(columns: ["state", "up"], desc: true)',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> group(columns: ["state"])',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> group(columns: ["up"]) |> count(column: "n")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> cumulativeSum(columns: ["n", "usage"])',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> difference(columns: ["n", "usage"])',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> difference(columns: ["n", "usage"], nonNegative: true)',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> derivative(columns: ["n", "usage"])',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> derivative(columns: ["n", "load"], nonNegative: true)',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> increase(columns: ["requests"])',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> min(column: "n")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> last(column: "state")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> mean(column: "n")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> count(column: "up")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> mode(column: "state")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> distinct(column: "n")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> unique(column: "state")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> top(n: 3, columns: ["n"])',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> bottom(n: 3, columns: ["n", "load"])',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> quantile(column: "n", q: 0.4, method: "exact_mean")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> integral(column: "n")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> aggregateWindow(every: 10m, fn: mean, column: "n")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> aggregateWindow(every: 10m, fn: max, column: "n")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> window(every: 10m) |> count(column: "load")',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> stateCount(fn: (r) => r.up)',
            f'{every} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value") |> reduce(identity: {{s: 0.0}}, fn: (r, accumulator) => ({{s: accumulator.s + r.usage}}))',
            ]
    return out


def steps(kind, rng, is_long):
    """Functions that a chain may have in its midst, and the kind of what comes out."""
    number = kind in NUMBERS
    window = rng.choice(LONG_WINDOWS if is_long else WINDOWS)
    tag = "shop" if is_long else "host"
    same = [f'group(columns: ["{tag}"])', "group()", f'group(columns: ["{tag}", "_field"])', 'group(columns: ["_measurement"])', "sort()", "sort(desc: true)",
            'sort(columns: ["_time"])', f"limit(n: {rng.randint(1, 60)})", f"tail(n: {rng.randint(1, 60)})", f"window({window})", f"window({window}, createEmpty: true)",
            "window(every: inf)", f"aggregateWindow({window}, fn: last)", f"aggregateWindow({window}, fn: first, createEmpty: false)", "unique()", "fill(usePrevious: true)",
            'drop(columns: ["_start", "_stop"])', f'drop(columns: ["{tag}"])', f'keep(columns: ["_time", "_value", "{tag}"])', 'duplicate(column: "_value", as: "v")', 'duplicate(column: "_stop", as: "_time")',
            'set(key: "k", value: "v")', 'timeShift(duration: 3m)', "truncateTimeColumn(unit: 1m)", "first()", "last()", "elapsed()", f'range(start: 2020-09-13T12:40:00Z, stop: 2020-09-13T13:10:00Z)',
            f'filter(fn: (r) => r.{tag} != "b")', "filter(fn: (r) => exists r._value)", f'map(fn: (r) => ({{r with {tag}: r.{tag} + "!"}}))', 'map(fn: (r) => ({r with c: 1}))',
            f'rename(columns: {{{tag}: "server"}}) |> rename(columns: {{server: "{tag}"}})', f"sample(n: {rng.randint(1, 7)}, pos: 0)"]
    found = [(text, kind) for text in same]
    found += [("count()", "int"), (f"aggregateWindow({window}, fn: count)", "int"), ("mode()", kind), ("distinct()", kind)]
    if number:
        found += [(text, kind) for text in ["min()", "max()", "sum()", "spread()", "cumulativeSum()", "difference()", "difference(nonNegative: true)", "increase()",
                                            f"aggregateWindow({window}, fn: sum)", f"aggregateWindow({window}, fn: max)", f"aggregateWindow({window}, fn: min, createEmpty: false)",
                                            f"top(n: {rng.randint(1, 9)})", f"bottom(n: {rng.randint(1, 9)})", "map(fn: (r) => ({r with _value: r._value + r._value}))"]]
        found += [(text, "float") for text in ["mean()", "stddev()", 'quantile(q: 0.3, method: "exact_mean")', 'median(method: "exact_mean")', "skew()", "integral(unit: 1m)",
                                               "derivative(unit: 1m)", "derivative(unit: 10s, nonNegative: true)", f"movingAverage(n: {rng.randint(1, 8)})", f"exponentialMovingAverage(n: {rng.randint(1, 8)})",
                                               f"aggregateWindow({window}, fn: mean)", f"aggregateWindow({window}, fn: mean, createEmpty: false)", "timedMovingAverage(every: 1w, period: 2w)" if is_long else "timedMovingAverage(every: 5m, period: 10m)", "toFloat()"]]
        found += [('quantile(q: 0.6, method: "exact_selector")', kind)]
    found.append(("toString()", "string"))
    return found


def chain(rng):
    kind = rng.choice(["float", "float", "int", "int", "string", "bool", "days"])
    text = rng.choice(BASES[kind])
    is_long = kind == "days"
    for _ in range(rng.randint(2, 4)):
        step, kind = rng.choice(steps(kind, rng, is_long))
        text += f" |> {step}"
    return text


def pipelines(options):
    found = []
    if options.all_forms:
        for kind, bases in BASES.items():
            for form in forms(kind):
                for base in bases if options.all_forms > 1 else bases[:1]:
                    found.append(f"{base} |> {form}")
        found += joins()
    rng = random.Random(options.seed)
    found += [chain(rng) for _ in range(options.count)]
    found = list(dict.fromkeys(found))
    return [text for text in found if all(word in text for word in options.only or [])]


# ---- Asking. ----------------------------------------------------------------------------------------

IMPORTS = {"timezone.": "timezone", "schema.": "influxdata/influxdb/schema", "date.": "date", "math.": "math", "strings.": "strings"}


def head(text):
    return "".join(f'import "{path}"\n' for word, path in IMPORTS.items() if re.search(r"\b" + re.escape(word), text))


class Engine:
    def __init__(self, path, file):
        self.path, self.file = path, file
        self.start()

    def start(self):
        self.child = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30)))

    def ask(self, text):
        query = 'import "csv"\n' + head(text) + text.replace("DATA", f'csv.from(file: "{self.file}")')
        self.child.stdin.write(json.dumps(query) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            # More memory than it may have.
            self.start()
            return "", "the engine died"
        answer = json.loads(line)
        return answer["csv"], answer.get("error")


def ask(url, text):
    query = head(text) + text.replace("DATA", 'from(bucket: "x")')
    body = {"query": query, "dialect": {"annotations": ["datatype", "group", "default"]}}
    request = urllib.request.Request(f"{url}/api/v2/query?org=o", data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode(), None
    except urllib.error.HTTPError as error:
        return "", error.read().decode()


# ---- Comparing. -------------------------------------------------------------------------------------

Table = collections.namedtuple("Table", "result key columns rows")


def value(kind, text):
    if kind == "double" and text not in ("", None):
        return float(text)
    return text


def tables(text):
    """The tables of an answer that have rows."""
    found, marks, names = [], {}, None
    current = None
    for row in csv.reader(io.StringIO(text)):
        if not row or row == [""]:
            names, marks = (None, {}) if names else (names, marks)
            continue
        if row[0].startswith("#"):
            if names:
                names, marks = None, {}
            marks[row[0]] = row[1:]
            continue
        if names is None:
            names, current = row[1:], None
            kinds, groups, defaults = marks["#datatype"], marks["#group"], marks["#default"]
            continue
        cells = [c if c else d for c, d in zip(row[1:], defaults)]
        cells = [value(k, c) for k, c in zip(kinds, cells)]
        if current is None or current[0] != cells[1]:
            key = tuple(sorted((n, str(c)) for n, g, c in zip(names[2:], groups[2:], cells[2:]) if g == "true"))
            columns = tuple(zip(names[2:], kinds[2:]))
            table = Table(cells[0], key, columns, [])
            current = (cells[1], table)
            found.append(table)
        current[1].rows.append(tuple(cells[2:]))
    return found


def same_cell(one, two):
    if isinstance(one, float) and isinstance(two, float):
        return one == two or (math.isnan(one) and math.isnan(two)) or abs(one - two) <= 1e-9 * max(abs(one), abs(two), 1e-3)
    return one == two


def same_rows(one, two):
    return len(one) == len(two) and all(len(a) == len(b) and all(map(same_cell, a, b)) for a, b in zip(one, two))


def in_order(table, columns):
    places = [table.columns.index(column) for column in columns]
    return [tuple(row[at] for at in places) for row in table.rows]


def sortable(row):
    return [f"{c:.6g}" if isinstance(c, float) else str(c) for c in row]


def compare(expected, found):
    """What differs, in a word and in words."""
    order = lambda t: (t.result, t.key, t.columns)
    expected, found = sorted(expected, key=order), sorted(found, key=order)
    ours, theirs = [(t.result, t.key) for t in found], [(t.result, t.key) for t in expected]
    if ours != theirs:
        missing = [k for k in theirs if k not in ours]
        extra = [k for k in ours if k not in theirs]
        return "keys", f"{len(theirs)} tables wanted, {len(ours)} found; missing {missing[:2]}, extra {extra[:2]}"
    for want, have in zip(expected, found):
        if sorted(want.columns) != sorted(have.columns):
            return "columns", f"{want.columns} wanted, {have.columns} found, of {want.key}"
        rows = in_order(have, want.columns)
        if not same_rows(want.rows, rows):
            if same_rows(sorted(want.rows, key=sortable), sorted(rows, key=sortable)):
                return "row order", first_difference(want, rows)
            return "rows", first_difference(want, rows)
    return None, ""


def first_difference(want, rows):
    for at, (a, b) in enumerate(zip(want.rows, rows)):
        if not same_rows([a], [b]):
            return f"row {at} of {len(want.rows)} ({len(rows)} found) of {want.key}: {dict(zip([c for c, _ in want.columns], a))} wanted, {b} found"
    return f"{len(want.rows)} rows wanted, {len(rows)} found, of {want.key}"


# Of rows that come from several tables Flux does not say which are first.
MERGING = re.compile(r"\b(group|union|join|drop|keep)\(")


def verdict(engine, url, text):
    wanted, error = engine.ask(text)
    found, refusal = ask(url, text)
    if error and refusal:
        return "both refuse", f"{error[:200]} | {refusal[:200]}"
    if error:
        return "engine refuses", error[:300]
    if refusal:
        return "refused", refusal[:300]
    word, words = compare(tables(wanted), tables(found))
    if word == "row order" and MERGING.search(text):
        return "same", words
    return word or "same", words


def known():
    """Pipelines that differ for a reason: a regular expression and a kind of difference on each line."""
    path = os.path.join(os.path.dirname(__file__), "flux_known.txt")
    lines = [line.rstrip("\n") for line in open(path)] if os.path.exists(path) else []
    rules = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [(re.compile(pattern), set(words.split(", "))) for pattern, words in rules]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("quipu")
    parser.add_argument("engine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=600, help="chains")
    parser.add_argument("--all-forms", type=int, default=1, help="0: chains alone, 2: each form of each base")
    parser.add_argument("--only", action="append", help="pipelines that have this word")
    parser.add_argument("--say", action="append", help="kinds of outcome to print besides differences")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="quipu-flux-")
    data = made(7)
    file = os.path.join(folder, "data.csv")
    with open(file, "w", newline="") as out:
        out.write(as_csv(data))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    quipu = Program([options.quipu, "serve", "--data-dir", os.path.join(folder, "data"), "--http-listen", f"127.0.0.1:{port}"], url, "/health", os.path.join(folder, "log"))
    try:
        request = urllib.request.Request(f"{url}/api/v2/write?bucket=x&org=o&precision=ns", data=as_lines(data).encode(), method="POST")
        urllib.request.urlopen(request, timeout=60).read()
        engine = Engine(options.engine, file)
        rules, counts = known(), collections.Counter()
        for text in pipelines(options):
            word, words = verdict(engine, url, text)
            if word not in ("same", "both refuse") and any(word in kinds and rule.search(text) for rule, kinds in rules):
                word = "known"
            counts[word] += 1
            if word not in ("same", "both refuse", "known") or word in (options.say or []):
                print(f"{word}\t{text}\n\t{words}")
            if options.verbose:
                print(engine.ask(text)[0], ask(url, text)[0], sep="\n---- found\n")
        print(dict(counts))
    finally:
        quipu.end()
    differ = sum(count for word, count in counts.items() if word not in ("same", "both refuse", "known"))
    print(f"{counts['same'] + counts['both refuse'] + counts['known']} passed, {differ} failed")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
