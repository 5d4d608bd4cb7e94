"""Turns an answer into what is compared of it: the class of its status, its media type, its data in one order."""

import csv
import gzip
import io
import itertools
import json
import re
import urllib.parse
import zlib

import http_api_wire as wire

ORDERED = re.compile(r"^\s*(sort|sort_desc|topk|bottomk)\b")
# Status pages whose numbers belong to a server: the keys and the types of the values count.
SHAPES = {"/api/v1/status/config", "/api/v1/status/runtimeinfo", "/api/v1/status/buildinfo", "/api/v1/status/walreplay",
          "/api/v1/status/top_queries", "/api/v1/targets", "/api/v1/alertmanagers"}
# Pages whose text is for people.
TEXTS = {"/-/healthy", "/-/ready", "/health", "/ping", "/metrics", "/", "/favicon.ico", "/api/v1/status/active_queries", "/snapshot/list"}
CARDINALITY = ("totalSeries", "totalLabelValuePairs", "seriesCountByMetricName", "seriesCountByLabelName", "seriesCountByFocusLabelValue", "seriesCountByLabelValuePair",
               "labelValueCountByLabelName")
SHOWN_MAX = 3_000
CLOCK_MILLIS = 1_750_000_000_000  # Later times are those of the clock.


class View:
    """Status, media type, error type and data of an answer, as compared and as shown."""

    def __init__(self, status, media, error, data, text):
        self.status, self.media, self.error, self.data, self.text = status, media, error, data, text

    def __str__(self):
        return f"{self.status} {self.media or '-'} {self.error or '-'} {self.text}"


def decode_content(answer):
    encoding = (answer.headers.get("Content-Encoding") or "") if answer.headers else ""
    if encoding == "gzip" and answer.body:
        return gzip.decompress(answer.body)
    return zlib.decompress(answer.body) if encoding == "deflate" and answer.body else answer.body


def view_answer(case, answer):
    """The view of an answer to a case; a body that breaks its own format is an error."""
    media = (answer.headers.get("Content-Type") or "").split(";")[0].strip().lower() if answer.headers else ""
    try:
        body = decode_content(answer)
    except (OSError, zlib.error) as error:
        return View(answer.status, media, "broken", None, f"content encoding: {error}")
    text = body.decode("utf-8", "replace")
    if case["method"] == "HEAD":
        return View(answer.status, media, "", None, "")
    if not 200 <= answer.status < 300:
        return View(answer.status, media, read_error_type(text, media), None, text[:400])
    try:
        data = read_data(case, media, body, text)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return View(answer.status, media, "broken", None, f"{type(error).__name__}: {error} in {text[:300]!r}")
    return View(answer.status, media, "", data, json.dumps(data, ensure_ascii=False, default=str)[:SHOWN_MAX])


def read_error_type(text, media):
    if media != "application/json":
        return ""
    try:
        answer = json.loads(text)
    except ValueError:
        return "broken"
    return str(answer.get("errorType", "")) if isinstance(answer, dict) else ""


def route_of(case):
    """The path without prefixes that all servers take alike."""
    path = re.sub("^/+", "/", case["path"]).rstrip("/") or "/"
    for prefix in ("/prometheus", "/graphite"):
        if path.startswith(prefix + "/"):
            path = re.sub("^/+", "/", path[len(prefix):])
    return path


def parameters_of(case):
    pairs = case["url"] + urllib.parse.parse_qsl(case["raw"], keep_blank_values=True) + (case["form"] or [])
    return {name: value for name, value in reversed(pairs)}


def read_data(case, media, body, text):
    route = route_of(case)
    if case["body"] and case["body"]["kind"] == "read":
        return read_remote(media, body)
    if case["body"]:
        return None
    if route in TEXTS:
        return {"text": bool(text)} if case["peer"] == "prometheus" else None
    if route == "/federate":
        return read_exposition(text)
    if route in ("/api/v1/export", "/api/v1/export/csv"):
        return read_export(case, text)
    if media != "application/json":
        return text
    answer = json.loads(text)
    if route == "/api/v1/status/flags":
        # Each server has flags of its own.
        return {"status": answer["status"], "data": sorted({type(value).__name__ for value in answer["data"].values()})}
    if route in SHAPES:
        return shape(answer)
    if route == "/api/v1/status/tsdb":
        return read_cardinality(case, answer)
    if isinstance(answer, dict) and isinstance(answer.get("data"), dict) and "resultType" in answer["data"]:
        return read_result(case, answer)
    if isinstance(answer, dict) and case["peer"] == "victoriametrics":
        # VictoriaMetrics does not say that a limit has cut a list.
        answer = {key: value for key, value in answer.items() if key not in ("isPartial", "trace", "warnings")}
    if isinstance(answer, dict) and isinstance(answer.get("data"), list) and route != "/api/v1/query_exemplars":
        answer["data"] = sorted(answer["data"], key=lambda one: json.dumps(one, sort_keys=True))
    return count_limited(case, answer)


def count_limited(case, answer):
    """The number of entries where a limit may have cut them: which ones stay is not defined."""
    limit = parameters_of(case).get("limit", "")
    if not limit.isdigit() or limit == "0" or case["peer"] != "victoriametrics":
        return answer
    if isinstance(answer, list):
        return len(answer)
    lists = {key: len(value) if isinstance(value, list) else value for key, value in answer.items()}
    return lists


def shape(value):
    """Types in the place of values; maps of the same types of values have one key."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def covers(quipu, peer):
    """Whether each key of the peer is there, with a value of the same type. Lists may be empty."""
    if isinstance(peer, dict):
        return isinstance(quipu, dict) and all(key in quipu and covers(quipu[key], value) for key, value in peer.items())
    if isinstance(peer, list):
        return isinstance(quipu, list) and (not peer or not quipu or covers(quipu[0], peer[0]))
    return quipu == peer


def find_place(quipu, peer, place=""):
    """The first place where two values differ: (place, value, value)."""
    if isinstance(quipu, dict) and isinstance(peer, dict):
        for key in [*peer, *[key for key in quipu if key not in peer]]:
            if key not in quipu or key not in peer:
                return f"{place}.{key}", quipu.get(key, "missing"), peer.get(key, "missing")
            found = find_place(quipu[key], peer[key], f"{place}.{key}")
            if found:
                return found
        return None
    if isinstance(quipu, (list, tuple)) and isinstance(peer, (list, tuple)) and len(quipu) == len(peer):
        return next((found for idx, pair in enumerate(zip(quipu, peer)) if (found := find_place(*pair, f"{place}[{idx}]"))), None)
    return None if quipu == peer else (place, quipu, peer)


def read_result(case, answer):
    """Data of a query: vectors in one order, without times where the request names none, statistics by their names."""
    data, parameters = dict(answer["data"]), parameters_of(case)
    result = data["result"]
    if data["resultType"] == "vector" and ORDERED.match(parameters.get("query", "")):
        # The order of equal values is not defined.
        groups = itertools.groupby(result, key=lambda one: one.get("value", [0, 0])[1])
        result = [one for _, group in groups for one in sorted(group, key=lambda one: json.dumps(one["metric"], sort_keys=True))]
    elif data["resultType"] in ("vector", "matrix"):
        result = sorted(result, key=lambda one: json.dumps(one["metric"], sort_keys=True))
    if not has_time(case):
        result = strip_times(data["resultType"], result, parameters.get("query", ""))
    data["result"] = result if case["peer"] == "prometheus" else plain_numbers(result)
    if "stats" in data:
        data["stats"] = shape(data["stats"])
    return {"status": answer["status"], "data": data, "warnings": bool(answer.get("warnings"))}


def has_time(case):
    parameters = parameters_of(case)
    names = ("time",) if route_of(case).endswith("/query") else ("start", "end")
    has_all = all(re.match(r"^\+?[-\d.]+(e\d+)?$|^\d{4}-\d\d-\d\d[Tt ]\d\d:", parameters.get(name, "")) for name in names)
    return has_all


def plain_numbers(value):
    """Numbers in texts as Python prints them: VictoriaMetrics writes `0.0000001`, Quipu `1e-07`."""
    if isinstance(value, dict):
        return {key: one if key == "metric" else plain_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain_numbers(one) for one in value]
    try:
        return str(float(value)) if isinstance(value, str) else value
    except ValueError:
        return value


def strip_times(kind, result, query):
    if "time()" in query or "@ end()" in query:
        return "depends on the clock"
    if kind in ("scalar", "string"):
        return result[1]
    if kind == "vector":
        return [{"metric": one["metric"], "value": one.get("value", [0, 0])[1]} for one in result]
    return [{"metric": one["metric"], "values": sorted({value for _, value in one.get("values", [])})} for one in result]


def read_cardinality(case, answer):
    if case["peer"] == "prometheus":
        return shape(answer)
    # Lists are cut at `topN` among equal counts in an order that nobody promises.
    data = {key: sorted((one["value"] for one in value), reverse=True) if isinstance(value, list) else value for key, value in answer["data"].items()}
    return {"status": answer["status"], "data": {key: data[key] for key in CARDINALITY if key in data}}


def read_exposition(text):
    """Lines of samples with sorted labels; lines of types are left out, and `instance=""`."""
    samples = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, labels, rest = re.match(r'^("?[^{ ]*"?)(?:\{(.*)\})? (.*)$', line).groups()
        if quoted := re.match(r'^"((?:[^"\\]|\\.)*)"(?:,|$)', labels or ""):
            # Quipu writes names that are no identifiers as Prometheus 3 does.
            name, labels = quoted[1], labels[quoted.end():]
        # VictoriaMetrics escapes quotes as JSON does.
        labels = (labels or "").replace("\\u0027", "'").replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")
        found = sorted(re.findall(r'([^=,{]+)="((?:[^"\\]|\\.)*)"', labels))
        value, *times = rest.split(" ")
        samples.append([name, [pair for pair in found if pair != ("instance", "")], str(float(value)), times])
    return sorted(samples)


def read_export(case, text):
    parameters = parameters_of(case)
    if not re.match(r"\d", parameters.get("end", "")):
        # Without an end, Quipu exports samples later than now.
        return "depends on the clock"
    if route_of(case).endswith("/csv"):
        return sorted([plain_numbers(cell) for cell in row] for row in csv.reader(io.StringIO(text)))
    kind = parameters.get("format", "")
    if kind == "prometheus":
        return read_exposition(text)
    if kind == "promapi":
        answer = json.loads(text)
        return plain_numbers(sorted(answer["data"]["result"], key=lambda one: json.dumps(one["metric"], sort_keys=True)))
    return read_json_lines(text)


def read_json_lines(text):
    """Samples of each series of JSON lines, by labels."""
    found = {}
    for line in text.split("\n"):
        if line.strip():
            # VictoriaMetrics 1.79 writes infinite values as no JSON.
            one = json.loads(re.sub(r"(?<=[\[,])([+-])Inf(?=[\],])", r'"\1Infinity"', line).replace('"+Infinity"', '"Infinity"'))
            key = json.dumps(one["metric"], sort_keys=True, ensure_ascii=False)
            # VictoriaMetrics keeps about 12 digits. A sample without a time has that of the request.
            values = [f"{value:.12g}" if isinstance(value, (int, float)) else value for value in one["values"]]
            times = [millis if millis < CLOCK_MILLIS else "now" for millis in one["timestamps"]]
            found.setdefault(key, []).extend(zip(times, values))
    return {key: sorted(samples, key=str) for key, samples in sorted(found.items())}


def read_remote(media, body):
    """Samples of each query and series, whichever kind of answer it is."""
    if media == "application/x-streamed-protobuf":
        found = wire.decode_frames(body)
        return sorted([query, labels, samples] for query, labels, samples in found)
    results = wire.decode_read_response(body)
    return sorted([query, labels, samples] for query, series in enumerate(results) for labels, samples in series)
