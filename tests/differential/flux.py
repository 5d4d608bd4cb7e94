"""Asks Quipu Flux, and compares with a model in Python, with other queries that ask the same, and with InfluxQL."""

import collections
import csv
import io
import json
import math
import random

import flux_answers as answers
import flux_chains as chains
import flux_invalid as invalid
import flux_model as model
import servers
from campaign import BaseCampaign, Difference
from flux_model import Refusal, Table
from flux_pairs import Pairs
from influxql_data import SECOND, draw_lines

QUIPU_FLAGS = ("--self-scrape-interval=0", "--durability=relaxed", "--future-retention=290y")
ANNOTATIONS = ["datatype", "group", "default"]

# A pipeline and what the model makes of it; two queries; a query and a statement; requests that may fail.
Pipeline = collections.namedtuple("Pipeline", "source steps")
Identity = collections.namedtuple("Identity", "texts")
InfluxQL = collections.namedtuple("InfluxQL", "text statement form")
Dialect = collections.namedtuple("Dialect", "text dialect")
Invalid = collections.namedtuple("Invalid", "text must_fail")
Body = collections.namedtuple("Body", "content_type body")


class Combination(chains.Step):
    """Two sources in one stream; its rows have no order."""

    def __init__(self, text, read):
        super().__init__(text, read)
        self.read = lambda: read(None)


class Campaign(BaseCampaign):
    page = "flux.md"
    default_count = 2_000

    def start(self):
        self.counts = collections.Counter()
        self.quipu = servers.start_quipu(self.options.binary, self.options.directory / "quipu", *QUIPU_FLAGS)
        lines = draw_lines(random.Random(f"{self.options.seed}/data"))
        short = [line for line in lines if line.measurement == "cpu"][::2]
        for statement in ("CREATE DATABASE x", "CREATE DATABASE y", "CREATE RETENTION POLICY short ON x DURATION INF REPLICATION 1"):
            self.must(servers.post_form(self.quipu.http, "/query", {"q": statement}))
        buckets = {"x": lines, "x/short": short, "y": [line for line in lines if line.measurement == "mem"]}
        for bucket, of_bucket in buckets.items():
            body = "\n".join(str(line) for line in of_bucket)
            self.must(servers.request(self.quipu.http, "POST", "/api/v2/write", {"bucket": bucket, "org": "o", "precision": "ns"}, body))
        self.series = chains.collect_series(buckets)

    def must(self, answer):
        if answer.status not in (200, 204) or '"error"' in answer.text:
            raise SystemExit(f"cannot load the data: {answer.status} {answer.text[:500]}")

    def stop(self):
        if getattr(self, "quipu", None):
            self.quipu.stop()

    # Cases.

    def generate(self, chance):
        draws = Pairs(chance, self.series)
        form = chance.random()
        if form < 0.28:
            source = draws.source()
            return Pipeline(source, draws.steps(source, chance.randint(0, 4)))
        if form < 0.33:
            return Pipeline(self.combination(draws, chance), [])
        if form < 0.42:
            return Identity(draws.identity())
        if form < 0.5:
            return InfluxQL(*draws.influxql())
        if form < 0.54:
            return Dialect(self.valid_text(draws, chance), draws.dialect())
        if form < 0.65:
            return Invalid(chance.choice(invalid.WRONG), True)
        if form < 0.68:
            return Body(*chance.choice(invalid.BODIES))
        return Invalid(invalid.mutate(chance, self.valid_text(draws, chance)), False)

    def valid_text(self, draws, chance):
        if chance.random() < 0.4:
            return chance.choice(draws.identity())
        source = draws.source()
        return self.text(Pipeline(source, draws.steps(source, chance.randint(0, 3))))

    def combination(self, draws, chance):
        """Draws a pivot, a union or a join."""
        form = chance.randrange(3)
        if form == 0:
            source = draws.source(chance.choice(["cpu", "mem", "even", "long"]))
            step = model.pivot(["_time"], "_field")
            return Combination(f'{source.text} |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")',
                               lambda _: step(source.read()))
        name = chance.choice(["cpu", "mem", "even", "long"])
        pair = [draws.source(name), draws.source(name)]
        every = ("6h", 6 * 3_600) if name == "long" else ("2m", 120)
        call = chance.choice(["count", "last", "first"])
        function = model.aggregate(call) if call == "count" else model.pick_row(call)
        steps = [model.aggregate_window(every[1] * SECOND, (one.start, one.stop), 0, function, False) for one in pair]
        texts = [f"{one.text} |> aggregateWindow(every: {every[0]}, fn: {call}, createEmpty: false)" for one in pair]
        streams = lambda: [step(one.read()) for step, one in zip(steps, pair)]
        if form == 1:
            return Combination(f"a = {texts[0]}\nb = {texts[1]}\nunion(tables: [a, b])", lambda _: model.merge(sum(streams(), [])))
        on = chance.choice([["_time", "host"], ["_time"], ["_time", "_field", "host"], ["host"],
                            ["_time", "_start", "_stop", "_measurement", "_field", "host"]])
        return Combination(f"a = {texts[0]}\nb = {texts[1]}\njoin(tables: {{a: a, b: b}}, on: {json.dumps(on)})",
                           lambda _: model.join(*streams(), on))

    def text(self, case):
        if isinstance(case, Pipeline):
            return " |> ".join([case.source.text, *(step.text for step in case.steps)])
        if isinstance(case, Identity):
            return "\n== ".join(case.texts)
        if isinstance(case, InfluxQL):
            return f"{case.text}\n== {case.statement}"
        if isinstance(case, Dialect):
            return f"{case.text}\ndialect {json.dumps(case.dialect, ensure_ascii=False)}"
        if isinstance(case, Invalid):
            return f"must fail: {case.text}" if case.must_fail else f"may fail: {case.text}"
        return f"{case.content_type}: {case.body}"

    # Comparisons.

    def compare(self, case):
        compare = {Pipeline: self.compare_pipeline, Identity: self.compare_identity, InfluxQL: self.compare_influxql,
                   Dialect: self.compare_dialect, Invalid: self.compare_invalid, Body: self.compare_body}[type(case)]
        try:
            difference = compare(case)
        except Failure as failure:
            difference = Difference(failure, "an answer or an error of the client", str(failure)[:12])
        if not self.quipu.is_running():
            difference = Difference(f"crash {self.quipu.log_tail()[-1_500:]}", "up")
            self.options.directory /= "again"
            self.start()
        elif panics := self.quipu.panics():
            difference = Difference(f"panic {panics[-1]}", "no panic")
        return difference

    def send(self, body, content_type="application/json"):
        headers = {"Content-Type": content_type, "Accept": "application/csv"}
        return servers.request(self.quipu.http, "POST", "/api/v2/query", {"org": "o"}, body, headers)

    def ask(self, text):
        """Returns tables by result, or an error as text."""
        answer = self.send(json.dumps({"query": text, "dialect": {"annotations": ANNOTATIONS}}))
        return self.read(answer)

    def read(self, answer):
        if answer.status == 200:
            try:
                return answers.read_tables(answer.text)
            except (ValueError, KeyError) as error:
                raise Failure(f"broken CSV, {error}: {answer.text[:1_000]}") from None
        return self.check_error(answer)

    def check_error(self, answer):
        """Returns the message of an error of the client; raises Failure for any other answer."""
        if not 400 <= answer.status < 500:
            raise Failure(f"status {answer.status}: {answer.text[:1_000]}")
        try:
            body = json.loads(answer.text)
            return f"{answer.status} {body['code']}: {body['message']}"
        except (ValueError, KeyError, TypeError):
            raise Failure(f"error is not JSON with code and message: {answer.status} {answer.text[:500]}") from None

    def compare_pipeline(self, case):
        found = self.ask(self.text(case))
        try:
            wanted = case.source.read()
            for step in case.steps:
                wanted = step.apply(wanted)
        except Refusal as refusal:
            return None if isinstance(found, str) else Difference("rows", f"refused: {refusal}", "accepted")
        if isinstance(found, str):
            return Difference(f"refused: {found}", describe(wanted), "refused")
        is_ordered = not isinstance(case.source, Combination)
        return describe_difference(found.get("_result", []), wanted, is_ordered)

    def compare_identity(self, case):
        found = [self.ask(text) for text in case.texts]
        if all(isinstance(one, str) for one in found):
            return Difference(found[0], found[1], "both refused")
        if any(isinstance(one, str) for one in found):
            return Difference(*(one if isinstance(one, str) else f"rows {describe(one.get('_result', []))}" for one in found), "refused")
        return describe_difference(*(one.get("_result", []) for one in found), is_ordered=False)

    def compare_influxql(self, case):
        found = self.ask(case.text)
        if isinstance(found, str):
            return Difference(f"refused: {found}", "rows", "refused")
        answer = servers.request(self.quipu.http, "GET", "/query", {"db": "x", "q": case.statement, "epoch": "ns"})
        (result,) = json.loads(answer.text)["results"]
        if "error" in result:
            return Difference("rows", f"InfluxQL refused: {result['error']}", "InfluxQL refused")
        ours, theirs = {}, {}
        for table in found.get("_result", []):
            key = tuple(sorted((name, value) for name, value in table.key.items()
                               if name not in ("_start", "_stop", "_field", "_measurement") and value is not None))
            ours[key] = [(row.get("_time"), row.get("_value")) for row in table.rows]
        for series in result.get("series", []):
            key = tuple(sorted((name, value) for name, value in series.get("tags", {}).items() if value))
            theirs[key] = [tuple(row[:2]) for row in series["values"]]
        for key in {*ours, *theirs}:
            one, other = ours.get(key, []), theirs.get(key, [])
            if case.form == "reversed":
                other = other[::-1]
            if case.form.startswith("windows"):
                start = int(case.form.split()[1]) * SECOND
                other = [(max(time, start), value) for time, value in other]
            if not is_same_list(one, other, case.form):
                return Difference(f"{dict(key)}: {len(one)} rows {one[:8]}", f"{dict(key)}: {len(other)} rows {other[:8]}", "rows")
        return None

    def compare_dialect(self, case):
        """Compares the cells of an answer with those of the answer with all annotations."""
        plain = self.send(json.dumps({"query": case.text, "dialect": {"annotations": ANNOTATIONS}}))
        other = self.send(json.dumps({"query": case.text, "dialect": case.dialect}))
        if plain.status != 200 or other.status != 200:
            one, two = self.read(plain), self.read(other)
            return None if isinstance(one, str) and one == two else Difference(two, one, "status")
        delimiter = case.dialect.get("delimiter", ",")
        prefix = case.dialect.get("commentPrefix") or "#"
        names = [f"#{name}" for name in case.dialect.get("annotations", [])]
        rows, head = [], {}
        for row in csv.reader(io.StringIO(plain.text, newline="")):
            if row and row[0].startswith("#"):
                head[row[0]] = row[1:]
                continue
            if head:
                rows += [[prefix + name[1:], *head[name]] for name in names]
                rows += [row] if case.dialect.get("header", True) else []
                head = {}
                continue
            if row and "#default" not in names:
                row[1] = row[1] or "_result"
            rows.append(row)
        found = list(csv.reader(io.StringIO(other.text, newline=""), delimiter=delimiter))
        if any("yield" in text for text in (case.text,)) or found == rows:
            return None
        at = next((at for at, (one, two) in enumerate(zip(found, rows)) if one != two), min(len(found), len(rows)))
        return Difference(f"row {at} of {len(found)}: {found[at:at + 2]}", f"row {at} of {len(rows)}: {rows[at:at + 2]}", "dialect")

    def compare_invalid(self, case):
        found = self.ask(case.text)
        if case.must_fail and not isinstance(found, str):
            return Difference(f"rows {describe(found.get('_result', []))}", "refused", "accepted")
        return None

    def compare_body(self, case):
        answer = self.send(case.body, case.content_type)
        message = self.check_error(answer)
        return None if message else Difference(f"{answer.status}", "refused", "accepted")

    # Smaller cases.

    def reductions(self, case):
        if isinstance(case, Pipeline):
            for at in range(len(case.steps)):
                yield Pipeline(case.source, case.steps[:at] + case.steps[at + 1:])
        elif isinstance(case, Invalid):
            tokens = invalid.split_tokens(case.text)
            size = len(tokens) // 2
            while size and not case.must_fail:
                for at in range(0, len(tokens) - size + 1, max(1, size // 2)):
                    yield Invalid("".join(tokens[:at] + tokens[at + size:]), False)
                size = size * 2 // 3 if size > 1 else 0
        elif isinstance(case, Dialect):
            for key in case.dialect:
                yield Dialect(case.text, {name: value for name, value in case.dialect.items() if name != key})
            steps = case.text.split(" |> ")
            for at in range(3, len(steps)):
                yield Dialect(" |> ".join(steps[:at] + steps[at + 1:]), case.dialect)

    def summary(self):
        return [f"{count:>7}  {name}" for name, count in self.counts.most_common()]


class Failure(Exception):
    """An answer that no request may get: a status of 500, a broken connection, CSV that is none."""


def is_same_list(one, other, form):
    if len(one) != len(other):
        return False
    for (time, value), (their_time, their_value) in zip(one, other):
        if form != "value" and time != their_time:
            return False
        # JSON has no NaN: the deviation of one value is null.
        value = None if isinstance(value, float) and math.isnan(value) else value
        if isinstance(value, float) and isinstance(their_value, int):
            their_value = float(their_value)
        if not answers.is_same_cell(value, their_value):
            return False
    return True


def describe(tables):
    return json.dumps([{"key": table.key, "rows": answers.shown(table.rows)} for table in tables[:4]], ensure_ascii=False)[:1_500]


def describe_difference(ours, theirs, is_ordered):
    found = answers.compare_tables(ours, theirs, is_ordered)
    if not found:
        return None
    word, one, other = found
    return Difference(f"{word}: {one}"[:2_000], f"{word}: {other}"[:2_000], word)


__all__ = ["Campaign", "Table"]
