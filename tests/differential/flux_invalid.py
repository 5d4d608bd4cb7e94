"""Makes invalid queries of Flux: a list of them, and mutations of valid ones."""

import json
import re

import dictionary

BASE = 'from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "cpu" and r._field == "usage")'
# Each of these must be refused.
WRONG = [text.replace("BASE", BASE) for text in r'''
from
from(
from()
from(bucket: )
from(bucket: "x"
from(bucket: 5)
from(bucket: "nobucket") |> range(start: 0)
from(bucket: "x")
from(bucket: "x") |> range()
from(bucket: "x") |> range(start: "x")
from(bucket: "x") |> range(start: 0) |>
from(bucket: "x") |> range(start: 0) | count()
from(bucket: "x") |> range(start: 2020-13-01T00:00:00Z)
from(bucket: "x") |> range(start: 2020-02-30T00:00:00Z)
from(bucket: "x") |> range(begin: 0)
from(buckets: "x") |> range(start: 0)
from(bucket: "x") |> mean()
x = 1
1 + 1
"a"
import "nopackage"
import sql
import "strings" strings.nothing(v: "a")
option now =
option nothing
package
package main
BASE |> nothing()
BASE |> mean(foo: 1)
BASE |> limit()
BASE |> limit(n: "a")
BASE |> limit(n: -1)
BASE |> limit(n: 1.5)
BASE |> limit(n: 9223372036854775808)
BASE |> limit(n: 1, offset: -1)
BASE |> tail()
BASE |> top()
BASE |> filter()
BASE |> filter(fn: 5)
BASE |> filter(fn: (r) => nothing)
BASE |> filter(fn: (r) => r._value =~ "a")
BASE |> map()
BASE |> map(fn: (r) => 5)
BASE |> map(fn: (r) => ({r with _value: r._value * 2}))
BASE |> map(fn: (r) => ({r with _value: r._value + "a"}))
BASE |> map(fn: (r) => ({r with _value: [1, 2]}))
BASE |> map(fn: (r) => ({r with _value: nothing(v: 1)}))
BASE |> map(fn: (r) => ({r with _value: float(v: "a")}))
BASE |> map(fn: (r) => ({r with _value: int(v: "1.5")}))
BASE |> map(fn: (r) => ({r with _value: bool(v: "maybe")}))
BASE |> map(fn: (r) => ({r with _value: time(v: "yesterday")}))
BASE |> group(columns: "host")
BASE |> group(columns: ["host"], mode: "what")
BASE |> group(columns: [1])
BASE |> keep()
BASE |> keep(columns: 5)
BASE |> drop(columns: "host")
BASE |> rename(columns: {_value: "_time"})
BASE |> rename()
BASE |> rename(columns: {_value: 5})
BASE |> duplicate(column: "nothing", as: "x")
BASE |> duplicate(column: "_value")
BASE |> set(key: "a")
BASE |> set(key: "a", value: 5)
BASE |> sort(columns: "_time")
BASE |> sort(desc: "yes")
BASE |> window()
BASE |> window(every: 0s)
BASE |> window(every: -1m)
BASE |> window(every: 5)
BASE |> window(every: "5m")
BASE |> aggregateWindow(every: 5m)
BASE |> aggregateWindow(fn: mean)
BASE |> aggregateWindow(every: 5m, fn: "mean")
BASE |> aggregateWindow(every: 5m, fn: nothing)
BASE |> aggregateWindow(every: 5m, fn: mean, createEmpty: 1)
BASE |> mean(column: "nothing")
BASE |> sum(column: "host")
BASE |> max(column: "nothing")
BASE |> quantile()
BASE |> quantile(q: 2.0)
BASE |> quantile(q: -0.1)
BASE |> quantile(q: 0.5, method: "what")
BASE |> movingAverage(n: 0)
BASE |> movingAverage(n: -1)
BASE |> derivative(unit: "1s")
BASE |> cumulativeSum(columns: ["host"])
BASE |> difference(columns: 5)
BASE |> pivot()
BASE |> pivot(rowKey: ["_time"], columnKey: ["_field"])
BASE |> pivot(rowKey: "_time", columnKey: ["_field"], valueColumn: "_value")
BASE |> pivot(rowKey: ["nothing"], columnKey: ["_field"], valueColumn: "_value")
BASE |> fill()
BASE |> fill(value: "a")
BASE |> histogram()
BASE |> histogram(bins: ["a"])
BASE |> reduce(fn: (r, accumulator) => ({}))
BASE |> reduce(identity: {n: 0}, fn: (r, accumulator) => ({n: accumulator.m + 1}))
BASE |> reduce(identity: 5, fn: (r, accumulator) => 5)
BASE |> stateCount()
BASE |> timeShift()
BASE |> timeShift(duration: 5)
BASE |> elapsed(unit: 5)
BASE |> yield(name: 5)
BASE |> yield(name: "a")  BASE |> yield(name: "a")
BASE BASE
union()
union(tables: BASE)
union(tables: [5])
join(tables: {a: BASE}, on: ["_time"])
join(tables: {a: BASE, b: BASE})
join(tables: {a: BASE, b: BASE}, on: "_time")
join(tables: {a: BASE, b: BASE}, on: ["_time"], method: "cross")
from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "cpu") |> group() |> sum()
from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "even" and r._field == "s") |> mean()
from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "even" and r._field == "s") |> sum()
from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "even" and r._field == "b") |> derivative()
from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement =~ /[/)
f = (x) => f(x: x) f(x: 1)
a = b
(
)
{
[
"
'
/
|>
=>
@
$
\
import "array" array.from(rows: [{a: 1}, {a: "b"}])
import "array" array.from(rows: 5)
import "csv" csv.from(csv: "a,b\n1,2")
import "csv" csv.from(file: "/etc/passwd")
import "timezone" option location = timezone.location(name: "Nowhere/City") BASE |> window(every: 1d)
import "regexp" BASE |> filter(fn: (r) => regexp.matchRegexpString(r: regexp.compile(v: "["), v: "a"))
'''.strip().split("\n")]

# These are text of Flux, but of wrong types or names.
WRONG += [text.replace("BASE", BASE) for text in (
    "BASE |> filter(fn: (r) => 5)", "BASE |> filter(fn: () => true)", 'BASE |> filter(fn: (r) => "a")', "BASE |> filter(fn: (r) => r._value + 1)",
    "BASE |> map(fn: (r) => ({r with _value: if r._value then 1 else 2}))", "a = 1 a = 2 BASE", 'import "array" array.from(rows: [])',
    'from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "even" and r._field == "b") |> max()',
    'from(bucket: "x") |> range(start: 0) |> filter(fn: (r) => r._measurement == "even" and r._field == "s") |> min()')]
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|/(?:[^/\\\s]|\\.)+/|\d[\w.:-]*|\w+|\|>|=>|<-|==|!=|<=|>=|=~|!~|\s+|.', re.DOTALL)
WORDS = ["|>", "=>", "(", ")", "{", "}", "[", "]", ",", ":", ".", "=", "==", "!=", "=~", "<", ">=", "+", "-", "*", "/", "%", "^", "and", "or", "not",
         "exists", "if", "then", "else", "true", "false", "null", "r", "with", "import", "option", "package", "return", "from", "range", "filter",
         "map", "group", "mean", "limit", "window", "columns", "fn", "every", '"x"', '"host"', '""', "5", "-1", "0", "1.5", "1h", "1mo", "0s",
         "9223372036854775808", "2020-09-13T12:30:00Z", "2020-09-13", "now()", "/a/", "nothing", "tables", "<-", "$", "@", "#", "\\", "//", "'", '"',
         "${", "inf", "1e5", "0x1", "01", "é", "\u200b", "\x00"]


def split_tokens(text):
    return TOKEN.findall(text)


def mutate(chance, text):
    tokens = split_tokens(text)
    for _ in range(chance.choice([1, 1, 1, 2])):
        form, at = chance.randrange(9), chance.randrange(len(tokens))
        if form == 0:
            del tokens[at]
        elif form == 1:
            tokens.insert(at, tokens[at])
        elif form == 2:
            other = chance.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif form in (3, 4):
            tokens[at] = chance.choice(WORDS)
        elif form == 5:
            tokens.insert(at, f" {chance.choice(WORDS)} ")
        elif form == 6:
            del tokens[at:]
        elif form == 7:
            tokens[at] = json.dumps(chance.choice(dictionary.STRINGS), ensure_ascii=False)
        else:
            place = chance.randrange(len(tokens[at]))
            tokens[at] = tokens[at][:place] + chance.choice(["", "x", "É", "_", '"']) + tokens[at][place + 1:]
        tokens = tokens or [" "]
    return "".join(tokens)


# Bodies of requests that are no query: (content type, body).
BODIES = [("application/json", body) for body in (
    b"", b"{", b"{}", b"[]", b"null", b"5", b'"x"', b'{"query": 5}', b'{"query": ""}', b'{"query": null}', b'{"query": "x", "type": "influxql"}',
    b'{"query": "buckets()", "dialect": {"delimiter": "ab"}}', b'{"query": "buckets()", "dialect": {"annotations": ["x"]}}',
    b'{"query": "buckets()", "now": "yesterday"}', b'{"query": "buckets()", "params": {"a": [}', b'\xff\xfe', b'{"query": "\xff"}',
    b'{"query": "buckets() |> filter(fn: (r) => r.name == params.a)"}', b'{"query": "buckets()", "extern": {"type": "File", "body": [{"type": "x"}]}}',
    b"{'query': 'buckets()'}")]
BODIES += [("application/json", b'{"query": "buckets()", "extern": 5}')]
BODIES += [("application/vnd.flux", body) for body in (b"", b" ", b"\xff", b"x", b"from(", b"// comment", b"\x00")]
BODIES += [("text/plain", b"buckets()"), ("application/x-www-form-urlencoded", b"query=buckets()")]
