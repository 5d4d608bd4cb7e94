"""Regular expressions of PromQL, MetricsQL, InfluxQL and Flux beside Go's regexp package: tests/clients/go-regexp."""

import csv
import io
import json
import pathlib
import random
import re
import subprocess

import servers
from campaign import BaseCampaign, Difference
from promql_data import START_MS
from promql_expressions import quote
from promql_write import HEADERS, Series, encode_requests
from regexp_patterns import draw_pattern, draw_template, draw_texts

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "clients" / "go-regexp"
TIME = str(START_MS // 1000)
FLUX_TEXTS = 12
INVALID = object()


class Case:
    """A place where a pattern stands, the pattern, and the replacement that some places have."""

    def __init__(self, place, pattern, template):
        self.place, self.pattern, self.template = place, pattern, template

    def __str__(self):
        return f"{self.place}: /{self.pattern}/ {json.dumps(self.template, ensure_ascii=False)}"


class Campaign(BaseCampaign):
    page = "regexp.md"
    default_count = 1_000

    def start(self):
        self.program = self.options.directory / "go-regexp"
        subprocess.run(["go", "build", "-o", self.program, "."], cwd=PROGRAM, check=True)
        self.texts = draw_texts(random.Random(f"texts {self.options.seed}"))
        self.line_texts = [text for text in self.texts if text.strip() == text and "\n" not in text and
                           not text.endswith("\\")]
        self.quipu = servers.start_quipu(self.options.binary, self.options.directory / "quipu",
                                         "--self-scrape-interval=0")
        self.fill()
        self.alike = self.refused = 0
        self.answers = {}
        numbers = range(self.options.count) if self.options.case is None else [self.options.case]
        self.ask_go([self.make_questions(self.generate(random.Random(f"{self.options.seed}/{number}")))
                     for number in numbers])

    def stop(self):
        if getattr(self, "quipu", None):
            self.quipu.kill()

    def fill(self):
        series = [Series("strings", {"value": text}, [(START_MS, 1.0)]) for text in self.texts]
        for body in encode_requests(series):
            answer = servers.request(self.quipu.http, "POST", "/api/v1/write", body=body, headers=HEADERS)
            if answer.status != 204:
                raise SystemExit(f"remote write failed with {answer.status}: {answer.text}")
        lines = "".join(f"texts,value={escape_tag(text)} number=1 {START_MS}000000\n" for text in self.line_texts)
        answer = servers.request(self.quipu.http, "POST", "/write?db=regexps", body=lines)
        if answer.status != 204:
            raise SystemExit(f"line protocol failed with {answer.status}: {answer.text}")

    def generate(self, chance):
        place = chance.choice(list(PLACES))
        pattern = draw_pattern(chance)
        if not place.startswith(("promql", "metricsql")):
            # Literals of regular expressions have no line ends and are not empty.
            pattern = pattern.replace("\n", "n") or "(?:)"
        if place.startswith("influxql"):
            # A backslash at the end escapes the delimiter, whatever stands before it.
            pattern = pattern.rstrip("\\") or "a"
        template = draw_template(chance) if PLACES[place].has_template else ""
        return Case(place, pattern, template)

    # Go's answers

    def make_questions(self, case):
        """The pattern alone, which must be valid, and as the place wraps it."""
        place = PLACES[case.place]
        texts = place.texts(self)
        return [{"pattern": case.pattern, "texts": [], "template": ""},
                {"pattern": place.wrapping.format(case.pattern) if place.wrapping else case.pattern, "texts": texts,
                 "template": case.template}]

    def ask_go(self, groups):
        questions = [question for group in groups for question in group]
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        output = subprocess.run([self.program], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout
        for question, line in zip(questions, output.decode().splitlines()[1:]):
            self.answers[json.dumps(question)] = json.loads(line)

    def answers_of_go(self, case):
        questions = self.make_questions(case)
        if any(json.dumps(question) not in self.answers for question in questions):
            self.ask_go([questions])
        return [self.answers[json.dumps(question)] for question in questions]

    def compare(self, case):
        place = PLACES[case.place]
        alone, wrapped = self.answers_of_go(case)
        answer = place.ask(self, case)
        if answer.status == 0 or answer.status >= 500 or self.quipu.panics():
            text = f"failure {answer.status}: {answer.text[:600]} {self.quipu.panics()[-1:]}"
            if not self.quipu.is_running():
                raise SystemExit(f"Quipu ended at {case}:\n{self.quipu.log_tail()}")
            return Difference(text, alone["error"] or "valid")
        refusal = place.refusal(answer)
        if bool(alone["error"]) != bool(wrapped["error"]):
            # `a)(b` is valid only within brackets, `\\Q` only without: who wraps by text has other errors.
            return None
        error = alone["error"]
        if refusal is not None or error:
            if refusal is not None and error:
                self.refused += 1
                return None
            return Difference("accepts" if refusal is None else f"refuses {answer.status}: {refusal[:600]}",
                              f"refuses: {error}" if error else "accepts")
        ours = place.read(self, answer)
        theirs = place.expect(self, case, wrapped["matches"])
        if ours == theirs:
            self.alike += 1
            return None
        left = {key: value for key, value in ours.items() if theirs.get(key, INVALID) != value}
        right = {key: value for key, value in theirs.items() if ours.get(key, INVALID) != value}
        return Difference(f"answers {json.dumps(left, ensure_ascii=False)[:600]}",
                          f"answers {json.dumps(right, ensure_ascii=False)[:600]}")

    def reductions(self, case):
        # A backslash at the end escapes the delimiter.
        return (smaller for smaller in self.smaller_cases(case) if not smaller.pattern.endswith("\\"))

    def smaller_cases(self, case):
        if case.template:
            yield Case(case.place, case.pattern, "")
            for at in range(len(case.template)):
                yield Case(case.place, case.pattern, case.template[:at] + case.template[at + 1:])
        length = len(case.pattern) // 2
        while length:
            for at in range(0, len(case.pattern), length):
                yield Case(case.place, case.pattern[:at] + case.pattern[at + length:], case.template)
            length //= 2

    def summary(self):
        return [f"{self.alike} alike, {self.refused} refused by both"]


def escape_tag(text):
    return text.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")


class Place:
    """A place of a query language where a regular expression stands.

    `wrapping` is what the server puts around it, or the query does."""

    has_template = False
    wrapping = "^(?:{})$"

    def texts(self, campaign):
        return campaign.texts

    def refusal(self, answer):
        return answer.text if answer.status != 200 else None


class Query(Place):
    """A query of Prometheus' HTTP API, whose answer has the series whose label is a text."""

    dialect = "promql"

    def __init__(self, template, is_negated=False):
        self.template, self.is_negated = template, is_negated

    def ask(self, campaign, case):
        query = self.template.replace("REGEXP", quote(case.pattern)).replace("TEMPLATE", quote(case.template))
        return servers.post_form(campaign.quipu.http, "/api/v1/query",
                                 {"query": query, "time": TIME, "dialect": self.dialect})

    def read(self, campaign, answer):
        metrics = [one["metric"] for one in json.loads(answer.body)["data"]["result"]]
        return {metric.get("value", ""): metric.get("out", "") for metric in metrics}

    def expect(self, campaign, case, matches):
        return {text: "" for text, match in zip(campaign.texts, matches) if (match["index"] is None) == self.is_negated}


class PromQuery(Query):
    wrapping = "^(?s:{})$"


class PromReplace(PromQuery):
    has_template = True

    def expect(self, campaign, case, matches):
        return {text: match["expanded"] if match["index"] is not None else ""
                for text, match in zip(campaign.texts, matches)}


class MetricsqlQuery(Query):
    dialect = "metricsql"


class MetricsqlSelector(PromQuery):
    dialect = "metricsql"


class MetricsqlReplace(PromReplace):
    dialect = "metricsql"
    wrapping = Query.wrapping


class MetricsqlTransform(MetricsqlQuery):
    """Replaces what is found at the start: it is found once at most."""

    has_template = True
    wrapping = "^(?:{})"

    def ask(self, campaign, case):
        return super().ask(campaign, Case(case.place, self.wrapping.format(case.pattern), case.template))

    def expect(self, campaign, case, matches):
        return {text: match["expanded"] + text.encode()[match["index"][1]:].decode()
                if match["index"] is not None else text for text, match in zip(campaign.texts, matches)}

    def read(self, campaign, answer):
        metrics = [one["metric"] for one in json.loads(answer.body)["data"]["result"]]
        return {metric.get("value", ""): metric.get("out", "") for metric in metrics}


class InfluxQuery(Place):
    wrapping = None

    def __init__(self, operator):
        self.operator = operator

    def texts(self, campaign):
        return campaign.line_texts

    def ask(self, campaign, case):
        pattern = case.pattern.replace("/", "\\/")
        query = f"SELECT number FROM texts WHERE value {self.operator} /{pattern}/ GROUP BY value"
        return servers.post_form(campaign.quipu.http, "/query", {"q": query, "db": "regexps"})

    def refusal(self, answer):
        if answer.status != 200:
            return answer.text
        return json.loads(answer.body)["results"][0].get("error")

    def read(self, campaign, answer):
        all_series = json.loads(answer.body)["results"][0].get("series", [])
        return {one["tags"]["value"]: "" for one in all_series}

    def expect(self, campaign, case, matches):
        return {text: "" for text, match in zip(campaign.line_texts, matches)
                if (match["index"] is None) == (self.operator == "!~")}


class FluxQuery(Place):
    """A column made of each text by an expression with the regular expression and the text."""

    wrapping = None

    def __init__(self, expression, expect):
        self.expression, self.expected = expression, expect
        self.has_template = "TEMPLATE" in expression

    def texts(self, campaign):
        return [text for text in campaign.texts if "${" not in text][:FLUX_TEXTS]

    def ask(self, campaign, case):
        regexp = f"/{escape_slashes(case.pattern)}/"
        texts = self.texts(campaign)
        expression = self.expression.replace("REGEXP", regexp).replace("TEMPLATE", quote_flux(case.template))
        rows = ", ".join(f"{{number: {number}, v: {quote_flux(text)}}}" for number, text in enumerate(texts))
        query = (f'import "array"\nimport "regexp"\narray.from(rows: [{rows}]) '
                 f"|> map(fn: (r) => ({{number: r.number, made: {expression}}}))")
        return servers.request(campaign.quipu.http, "POST", "/api/v2/query", body=query,
                               headers={"Content-Type": "application/vnd.flux"})

    def read(self, campaign, answer):
        texts = self.texts(campaign)
        rows = [row for row in csv.reader(io.StringIO(answer.text, newline="")) if row]
        columns = rows[0]
        return {texts[int(row[columns.index("number")])]: row[columns.index("made")] for row in rows[1:]}

    def expect(self, campaign, case, matches):
        return {text: self.expected(text, match) for text, match in zip(self.texts(campaign), matches)}


class FluxReplaceStart(FluxQuery):
    """Replaces what is found at the start: it is found once at most."""

    wrapping = "^(?:{})"

    def ask(self, campaign, case):
        return super().ask(campaign, Case(case.place, self.wrapping.format(case.pattern), case.template))


def escape_slashes(pattern):
    """Escapes the slashes that are not escaped."""
    return re.sub(r"\\.|/", lambda found: "\\/" if found.group() == "/" else found.group(), pattern, flags=re.DOTALL)


def quote_flux(text):
    return quote(text).replace("\t", "\\t").replace("${", "\\${")


def found_text(text, match):
    return text.encode()[match["index"][0]:match["index"][1]].decode() if match["index"] is not None else ""


def replaced_start(text, match):
    if match["index"] is None:
        return text
    return match["expanded"] + text.encode()[match["index"][1]:].decode()


def is_match(text, match):
    return "true" if match["index"] is not None else "false"


PLACES = {
    "promql =~": PromQuery("strings{value=~REGEXP}"),
    "promql !~": PromQuery("strings{value!~REGEXP}", is_negated=True),
    "promql label_replace": PromReplace('label_replace(strings, "out", TEMPLATE, "value", REGEXP)'),
    "metricsql =~": MetricsqlSelector("strings{value=~REGEXP}"),
    "metricsql label_match": MetricsqlQuery('label_match(strings, "value", REGEXP)'),
    "metricsql label_mismatch": MetricsqlQuery('label_mismatch(strings, "value", REGEXP)', is_negated=True),
    "metricsql label_replace": MetricsqlReplace('label_replace(strings, "out", TEMPLATE, "value", REGEXP)'),
    "metricsql label_transform": MetricsqlTransform(
        'label_transform(label_copy(strings, "value", "out"), "out", REGEXP, TEMPLATE)'),
    "influxql =~": InfluxQuery("=~"),
    "influxql !~": InfluxQuery("!~"),
    "flux =~": FluxQuery("string(v: r.v =~ REGEXP)", is_match),
    "flux matchRegexpString": FluxQuery("string(v: regexp.matchRegexpString(r: REGEXP, v: r.v))", is_match),
    "flux findString": FluxQuery("regexp.findString(r: REGEXP, v: r.v)", found_text),
    "flux replaceAllString": FluxReplaceStart("regexp.replaceAllString(r: REGEXP, v: r.v, t: TEMPLATE)",
                                              replaced_start),
}
