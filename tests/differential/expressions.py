"""Expressions of dashboards and rules, read from files, and series that their selectors find."""

import json
import pathlib
import random
import re

import yaml

from promql_data import LAST_MS, START_MS, walk
from promql_write import Series

SERIES_PER_NAME = 4
INTERVAL_MS = 30_000
NAMES_MAX = 20_000  # metric names that get series
LABELS_MAX = 12  # labels of a series
WORDS = ("v1", "v2", "v3")
BUCKETS = ("0.1", "1", "10", "+Inf")
NAME = re.compile(r"(?<![\w:.$\"'])[a-zA-Z_:][\w:]*")
MATCHER = re.compile(r"""\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)""")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)", re.IGNORECASE)
STRING = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`""")
COUNTER = re.compile(r"_(total|count|sum|bucket|seconds|bytes)$")
# Variables of Grafana by what they stand for; others are a word, or a number outside of strings.
DURATIONS = re.compile(r"\$\{?__(rate_interval|interval|range)(:\w+)?\}?|\[\[__interval\]\]")
NUMBERS = re.compile(r"\$\{?__(interval_ms|range_ms|range_s|from|to)(:\w+)?\}?")
VARIABLE = re.compile(r"\$\{(?!\d)\w+(?:[:.][^{}]*)?\}|\$(?!\d)\w+|\[\[\w+(?::\w+)?\]\]")


def read_expressions(directory):
    """Returns the sorted distinct expressions of all JSON and YAML files below a directory."""
    found = set()
    for path in sorted(pathlib.Path(directory).rglob("*")):
        if path.suffix in (".json", ".yml", ".yaml") and path.is_file():
            found.update(substitute(text) for text in read_file(path))
    return sorted(text for text in found if text.strip())


def read_file(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        documents = [json.loads(text)] if path.suffix == ".json" else list(yaml.safe_load_all(text))
    except (ValueError, yaml.YAMLError):
        return []  # templates of other tools
    return list(find_expressions(documents))


def find_expressions(document):
    """Yields the values of all keys `expr` that are strings."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "expr" and isinstance(value, str):
                yield value
            else:
                yield from find_expressions(value)
    elif isinstance(document, list):
        for value in document:
            yield from find_expressions(value)


def substitute(text):
    """Replaces Grafana's variables by what Grafana would write; `$1` is a group of a regular expression."""
    text = DURATIONS.sub("5m", NUMBERS.sub("300000", text))
    text = re.sub(rf"(\[\s*|offset\s+)({VARIABLE.pattern})", r"\g<1>5m", text)
    text = re.sub(rf":\s*({VARIABLE.pattern})\s*\]", ":1m]", text)
    text = GROUPING.sub(lambda found: VARIABLE.sub("instance", found.group(0)), text)
    text = STRING.sub(lambda found: VARIABLE.sub("v1", found.group(0)), text)
    return VARIABLE.sub("5", text)


def draw_series(expressions, seed, shift_ms=0):
    """Series for all names in the expressions, `shift_ms` later, with labels and values that the matchers ask for."""
    names = {}
    for text in expressions:
        grouping = [label.strip() for found in GROUPING.finditer(text) for label in found.group(1).split(",")]
        grouping = [label for label in grouping if re.fullmatch(r"[a-zA-Z_]\w*", label)]
        for name, matchers in find_selectors(text):
            labels = names.setdefault(name, {})
            for label in grouping:
                labels.setdefault(label, set())
            for label, value in matchers:
                labels.setdefault(label, set()).update(literals(value))
    chance = random.Random(f"dashboards {seed}")
    times = range(START_MS + shift_ms, LAST_MS + 1, INTERVAL_MS)
    for name in sorted(names)[:NAMES_MAX]:
        yield from draw_name(chance, name, names[name], times)


def find_selectors(text):
    """Yields metric names with the labels and values of their matchers."""
    blank = STRING.sub(lambda found: '"' + "." * (len(found.group(0)) - 2) + '"', text)
    for found in NAME.finditer(blank):
        rest = blank[found.end():].lstrip()
        if rest.startswith("(") or blank.count("{", 0, found.start()) > blank.count("}", 0, found.start()):
            continue
        matchers = []
        if rest.startswith("{"):
            start = len(blank) - len(rest)
            matchers = read_matchers(text[start + 1:start + rest.find("}")])
        yield found.group(0), matchers


def read_matchers(text):
    return [(found.group(1), found.group(3)[1:-1]) for found in MATCHER.finditer(text) if found.group(1) != "__name__"]


def literals(pattern):
    """Words that a pattern may match."""
    words = [re.sub(r"\\+(.)", r"\1", word) for word in re.split(r"[|()]", pattern)]
    words = [re.sub(r"\.[*+]|\[[^\]]*\][*+]?", "1", word).strip("^$?:") for word in words]
    return [word for word in words if word and len(word) < 60][:6]


def draw_name(chance, name, labels, times):
    chosen = dict(sorted(labels.items())[:LABELS_MAX])
    kind = "counter" if COUNTER.search(name) else chance.choice(("gauge", "state"))
    is_histogram = name.endswith("_bucket")
    seen = set()
    for index in range(SERIES_PER_NAME):
        own = {label: draw_value(chance, label, values) for label, values in chosen.items()
               if label not in ("le", "__name__")}
        own.setdefault("instance", f"v{index % 3 + 1}")
        own.setdefault("job", "v1")
        key = tuple(sorted(own.items()))
        if key in seen:
            continue
        seen.add(key)
        samples = walk(chance, kind, times)
        if not is_histogram:
            yield Series(name, own, samples)
            continue
        for number, bound in enumerate(BUCKETS):
            yield Series(name, dict(own, le=bound), [(when, value * (number + 1)) for when, value in samples])


def draw_value(chance, label, values):
    options = sorted(values) + [word for word in WORDS if word not in values]
    return options[min(int(chance.expovariate(0.7)), len(options) - 1)]
