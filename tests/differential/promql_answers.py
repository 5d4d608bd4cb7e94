"""Compares answers of Prometheus' HTTP API: results, values, warnings and classes of errors."""

import collections
import json
import math
import re

from campaign import Difference

RELATIVE_TOLERANCE = 1e-9
DETAIL_LENGTH_MAX = 600
OMITTED = re.compile(r"\d+ more (warning|info) annotations omitted$")


class Reply:
    """An answer, decoded: `head` is its class, `series` maps labels to points."""

    def __init__(self, answer):
        self.status, self.body = answer.status, answer.text
        self.error = self.type = None
        self.names, self.series, self.notes = [], {}, []
        try:
            document = json.loads(self.body)
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.get("status") not in ("success", "error"):
            self.head, self.error = f"error {self.status} malformed", self.body
            return
        self.notes = sorted(document.get("warnings") or []) + sorted(document.get("infos") or [])
        if document["status"] == "error":
            self.error = document.get("error", "")
            self.head = f"error {self.status} {document.get('errorType')}"
            return
        data = document["data"]
        self.type = self.head = data["resultType"]
        if self.status != 200:
            self.head = f"{self.type} {self.status}"
        self.read_result(data["result"])

    def read_result(self, result):
        if self.type in ("scalar", "string"):
            result = [{"metric": {}, "value": result}]
        for one in result or []:
            name = json.dumps(one["metric"], sort_keys=True, ensure_ascii=False)
            points = list(one.get("values") or []) + list(one.get("histograms") or [])
            points += [one[key] for key in ("value", "histogram") if key in one]
            self.names.append(name)
            if name in self.series:
                self.head, self.error = f"error {self.status} duplicate", f"series {name} twice"
            self.series[name] = points

    def ordered(self, key):
        return [key(name, self.series[name]) for name in self.names]

    def describe(self, detail=""):
        if self.error is not None:
            return f"{self.head}: {self.error[:DETAIL_LENGTH_MAX]}"
        return f"{self.head} of {len(self.series)} series: {detail[:DETAIL_LENGTH_MAX]}"

    def excerpt(self):
        return ", ".join(f"{name} {json.dumps(points[:3])}" for name, points in list(self.series.items())[:3])


def compare_replies(quipu, peer, is_exact=True, has_notes=True, has_equal_rows=False, reads_text=True,
                    order_key=None):
    """Returns a `Difference` or None.

    `is_exact` wants equal floats; `has_equal_rows` lets the server pick any of several rows with equal values;
    `reads_text` wants equal texts of equal floats; `order_key` makes of a name and its points what the order of
    series shows."""
    def differ(what, ours="", theirs=""):
        return Difference(quipu.describe(ours), peer.describe(theirs), (quipu.head, peer.head, what))

    if quipu.head != peer.head:
        return differ("class", quipu.excerpt(), peer.excerpt())
    if quipu.error is not None:
        return None
    rules = (is_exact, reads_text)
    missing = [name for name in peer.series if name not in quipu.series]
    surplus = [name for name in quipu.series if name not in peer.series]
    if missing or surplus:
        if has_equal_rows and equal_values(quipu, peer, rules):
            return None
        return differ("series", f"without {missing[:2]}" if missing else f"with {surplus[0]} "
                      f"{json.dumps(quipu.series[surplus[0]][:2])}",
                      f"with {missing[0]} {json.dumps(peer.series[missing[0]][:2])}" if missing
                      else f"without {surplus[:2]}")
    for name, points in quipu.series.items():
        found = first_difference(points, peer.series[name], rules)
        if found and not (has_equal_rows and equal_values(quipu, peer, rules)):
            return differ(found[0], f"{name} {found[1]}", f"{name} {found[2]}")
    if order_key and quipu.ordered(order_key) != peer.ordered(order_key):
        return differ("order", str(quipu.names), str(peer.names))
    if has_notes and sorted(quipu_notes := without_repetitions(quipu.notes, peer.notes)) != sorted(peer.notes):
        return differ("notes", f"notes {[one for one in quipu_notes if one not in peer.notes]}",
                      f"notes {[one for one in peer.notes if one not in quipu_notes]}")
    return None


def without_repetitions(notes, peer_notes):
    """Quipu's notes without those that repeat the text of another at another position: Prometheus keeps one.

    Of many notes of a level Prometheus shows any ten: where both leave some out, all of the level count as equal."""
    for level in ("warning", "info"):
        if all(any(OMITTED.match(note) and level in note for note in one) for one in (notes, peer_notes)):
            own = [note for note in notes if not is_of_level(note, level)]
            return without_repetitions(own, [note for note in peer_notes if not is_of_level(note, level)]) + \
                [note for note in peer_notes if is_of_level(note, level)]
    texts = collections.Counter(map(note_text, notes))
    told = set(map(note_text, peer_notes))
    return [note for note in notes if note in peer_notes or texts[note_text(note)] == 1 or note_text(note) not in told]


def is_of_level(note, level):
    return note.startswith(f"PromQL {level}") or bool(OMITTED.match(note) and level in note)


def note_text(note):
    return note.rpartition(" (")[0]


def first_difference(ours, theirs, rules):
    """The first point that differs: its kind, and both points."""
    for left, right in zip(ours, theirs):
        if left[0] != right[0]:
            return "times", json.dumps(left), json.dumps(right)
        what = differ_values(left[1], right[1], rules)
        if what:
            return what, json.dumps(left), json.dumps(right)
    if len(ours) != len(theirs):
        short = min(len(ours), len(theirs))
        return "points", f"{len(ours)} points {json.dumps(ours[short:short + 1])}", \
            f"{len(theirs)} points {json.dumps(theirs[short:short + 1])}"
    return None


def differ_values(left, right, rules):
    if left == right:
        return None
    if isinstance(left, dict) != isinstance(right, dict):
        return "kinds"
    if isinstance(left, dict):
        return differ_histograms(left, right, rules)
    return differ_numbers(left, right, rules)


def differ_histograms(left, right, rules):
    if len(left.get("buckets") or []) != len(right.get("buckets") or []):
        return "buckets"
    pairs = [(left["count"], right["count"]), (left["sum"], right["sum"])]
    for ours, theirs in zip(left.get("buckets") or [], right.get("buckets") or []):
        if ours[0] != theirs[0]:
            return "buckets"
        pairs += list(zip(ours[1:], theirs[1:]))
    return next((what for ours, theirs in pairs if (what := differ_numbers(ours, theirs, rules))), None)


def differ_numbers(left, right, rules):
    is_exact, reads_text = rules
    if left == right:
        return None
    try:
        ours, theirs = float(left), float(right)
    except ValueError:
        return "value"
    if ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs) or ours != ours and theirs != theirs:
        return "format" if reads_text else None
    return None if not is_exact and is_close(ours, theirs) else "value"


def is_close(ours, theirs):
    if ours == theirs:
        return True
    scale = max(abs(ours), abs(theirs), 1.0)
    return math.isfinite(scale) and abs(ours - theirs) <= RELATIVE_TOLERANCE * scale


def equal_values(quipu, peer, rules):
    """Whether both have the same values, in whatever series."""
    ours, theirs = [sorted((json.dumps(point) for points in one.series.values() for point in points))
                    for one in (quipu, peer)]
    return ours == theirs

