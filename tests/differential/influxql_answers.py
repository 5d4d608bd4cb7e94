"""Reads answers of InfluxQL and line protocol, and says how two of them differ."""

import csv
import datetime
import io
import json
import math
import os
import re

TOLERANCE = 1e-9
# Functions whose last digits depend on the order of additions or on the library of the language.
INEXACT = re.compile(r"\b(mean|sum|stddev|integral|derivative|non_negative_derivative|moving_average|median|cumulative_sum|"
                     r"holt_winters|holt_winters_with_fit|exp|ln|log|log2|log10|pow|sin|cos|tan|asin|acos|atan|atan2)\s*\(",
                     re.IGNORECASE)


REFUSED_LINE = re.compile(r"unable to parse '(.*?)': ", re.DOTALL)
# With this variable the words of errors must be equal, and not only their class.
IS_STRICT = os.environ.get("QUIPU_DIFFERENTIAL_TEXTS") == "1"


def error_class(text):
    """Returns the class of an error: what was wrong, without names, numbers and places."""
    if text.startswith("error parsing query"):
        return "error parsing query"
    if text.startswith("type error"):
        return "type error"
    if "unable to parse" in text or text.startswith("partial write: unable"):
        return "unable to parse: " + ", ".join(sorted(line.strip() for line in REFUSED_LINE.findall(text)))
    text = re.sub(r"iterator type.*", "iterator type", text)
    text = re.sub(r"\*influxql\.\w+", "type", text)
    return " ".join(re.sub(r"at line \d+, char \d+|'[^']*'|\"[^\"]*\"|\d+", "", text).split())


class Number(str):
    """A number as the answer writes it."""

    __slots__ = ()


class Reply:
    """An answer as a tree: status, type of content, and the body."""

    def __init__(self, answer, form="json"):
        self.status = answer.status
        self.text = answer.text
        self.content_type = (answer.headers.get("Content-Type") or "").replace("; charset=utf-8", "")
        try:
            self.body = self.read(form)
        except ValueError:
            self.body = ("not JSON", self.text)

    def read(self, form):
        if form == "csv" and self.status == 200:
            rows = [[read_cell(cell) for cell in row] for row in csv.reader(io.StringIO(self.text))]
            # The peer leaves the error of a statement out.
            return rows[:rows.index(["error"])] if ["error"] in rows else rows
        if form == "csv" and not self.text.startswith("{"):
            return {"error": "\n".join(row[0] for row in csv.reader(io.StringIO(self.text)) if row and row != ["error"])}
        if form == "chunked":
            return [read_json(line) for line in self.text.splitlines()]
        return read_json(self.text) if self.text.strip() else ""

    def errors(self):
        bodies = self.body if isinstance(self.body, list) else [self.body]
        plain = [str(body["error"]) for body in bodies if isinstance(body, dict) and "error" in body]
        if plain:
            return plain
        return [str(result["error"]) for result in self.results() if "error" in result]

    def results(self):
        bodies = self.body if isinstance(self.body, list) else [self.body]
        return [result for body in bodies if isinstance(body, dict) for result in body.get("results") or []
                if isinstance(result, dict)]

    def kind(self):
        """Returns a word or two: `http 400: ...`, `error: ...`, `broken`, `empty` or `rows`."""
        if self.status == 0:
            return f"dead {self.text}"
        if self.status not in (200, 204):
            return f"http {self.status}: {' '.join(self.errors()) or self.text}"
        if isinstance(self.body, tuple):
            return "broken"
        if self.errors():
            return f"error: {self.errors()[0]}"
        return "rows" if '"values"' in self.text or isinstance(self.body, list) and self.body else "empty"


def read_json(text):
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)


def read_cell(text):
    return Number(text) if re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", text) else text


def find_difference(ours, theirs, is_exact, path="", slack=0):
    """Returns (kind, path, our part, their part) of the first difference, or None.

    Times that differ by at most `slack` seconds count as equal."""
    if isinstance(ours, Number) and isinstance(theirs, Number):
        word = compare_numbers(ours, theirs, is_exact)
        return (word, path, ours, theirs) if word else None
    if type(ours) is not type(theirs):
        return ("type", path, ours, theirs)
    if isinstance(ours, dict):
        if list(ours) != list(theirs):
            return ("keys" if set(ours) != set(theirs) else "key order", path, list(ours), list(theirs))
        pairs = [(ours[key], theirs[key], f"{path}.{key}") for key in ours]
    elif isinstance(ours, (list, tuple)):
        if len(ours) != len(theirs):
            return ("length", path, f"{len(ours)} {ours}", f"{len(theirs)} {theirs}")
        pairs = [(one, other, f"{path}.{at}") for at, (one, other) in enumerate(zip(ours, theirs))]
    else:
        is_same = ours == theirs or slack and are_close_times(ours, theirs, slack)
        if not is_same and path.endswith(".error") and not IS_STRICT:
            is_same = error_class(ours) == error_class(theirs)
        return None if is_same else ("value", path, ours, theirs)
    for one, other, place in pairs:
        found = find_difference(one, other, is_exact, place, slack)
        if found:
            if found[0] == "value" and isinstance(ours, list) and is_permutation(ours, theirs):
                return ("order", path, ours, theirs)
            return found
    return None


def are_close_times(one, other, seconds):
    try:
        one, other = (datetime.datetime.fromisoformat(text[:19]) for text in (one, other))
    except (TypeError, ValueError):
        return False
    return abs((one - other).total_seconds()) <= seconds


def is_permutation(ours, theirs):
    as_text = lambda items: sorted(json.dumps(item, sort_keys=True) for item in items)
    return as_text(ours) == as_text(theirs)


def compare_numbers(ours, theirs, is_exact):
    """Returns `value`, `digits` (the same number written otherwise), or None."""
    if ours == theirs:
        return None
    if is_integer(ours) and is_integer(theirs) and abs(int(ours)) < 2**64 > abs(int(theirs)):
        if is_exact or abs(int(ours) - int(theirs)) > 1:
            return "value" if is_exact or not is_close(float(ours), float(theirs)) else None
        return None
    one, other = float(ours), float(theirs)
    if one == other:
        return "digits" if is_exact else None
    return "value" if is_exact or not is_close(one, other) else None


def is_integer(text):
    return text.removeprefix("-").isdigit()


def is_close(one, other):
    if math.isnan(one) or math.isnan(other) or math.isinf(one) or math.isinf(other):
        return one == other
    return abs(one - other) <= TOLERANCE * max(abs(one), abs(other), 1.0)


def compare_replies(ours, theirs, is_exact, is_pretty=False, slack=0):
    """Returns (kind, path, our part, their part) of the first difference, or None."""
    if ours.text == theirs.text and ours.status == theirs.status and ours.content_type == theirs.content_type:
        return None
    if ours.status != theirs.status:
        return ("status", "", ours.status, theirs.status)
    found = find_difference(ours.body, theirs.body, is_exact, slack=slack)
    if found:
        return found
    if ours.status == 400 and not IS_STRICT:
        return None
    if ours.content_type != theirs.content_type and ours.status != 204:
        return ("content-type", "", ours.content_type, theirs.content_type)
    if is_pretty and is_exact and ours.status == 200 and not ours.errors():
        return ("spaces", "", ours.text, theirs.text)
    return None
