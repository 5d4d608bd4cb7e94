"""Builds the series that the campaign `http_api` loads into Quipu, Prometheus and VictoriaMetrics alike."""

import math
import random

import dictionary
import http_api_wire as wire

START = 1_709_208_000  # 2024-02-29T12:00:00Z, seconds
STEP = 15
COUNT = 41
END = START + STEP * (COUNT - 1)
RECENT_SECONDS = 2 * 3600 + 600
METRICS = ("up", "http_requests_total", "temperature", "latency_bucket", "a:b", "servers.web1.cpu.user",
           "servers.web1.cpu.system", "servers.web2.cpu.user", "servers.web2.load", "edge")
LABEL_NAMES = ("job", "instance", "code", "le", "text", "kind")
# Values that VictoriaMetrics' decimals hold exactly.
EDGES = [0.0, 1.0, -1.0, 0.1, -2.5, 1e-7, 123456789.125, 1e15, 1e16, 1e20, 2.0**31, 2.0**53, math.inf, -math.inf]


def build_series(seed):
    """Series of ten minutes in the past: dictionaries of `labels` and `samples`, times in milliseconds."""
    chance = random.Random(f"http_api/{seed}")
    series = []

    def add(labels, values):
        samples = [((START + idx * STEP) * 1000, float(value)) for idx, value in enumerate(values)]
        series.append({"labels": sorted(labels.items()), "samples": samples})

    for number in range(3):
        where = {"job": "node" if number < 2 else "db", "instance": f"host{number}:9100"}
        add({"__name__": "up", **where}, [chance.random() < 0.9 for _ in range(COUNT)])
        walk = 20.0
        values = []
        for _ in range(COUNT):
            walk += chance.choice((-0.5, 0, 0.5, 1))
            values.append(walk)
        add({"__name__": "temperature", **where}, values)
        for code in ("200", "404", "500"):
            total, values = chance.randint(0, 1000), []
            for _ in range(COUNT):
                total = 0 if chance.random() < 0.03 else total + chance.randint(0, 20)
                values.append(total)
            add({"__name__": "http_requests_total", "code": code, **where}, values)
    for le, share in (("0.1", 1), ("0.5", 2), ("1", 3), ("+Inf", 4)):
        add({"__name__": "latency_bucket", "le": le, "job": "node"}, [idx * share for idx in range(COUNT)])
    add({"__name__": "a:b", "job": "node"}, range(COUNT))
    for name in METRICS[5:9]:
        add({"__name__": name}, [chance.randint(0, 100) for _ in range(COUNT)])
    texts = [text for text in dictionary.STRINGS if text]
    for text in chance.sample(texts, 12):
        add({"__name__": "texts", "text": text}, [chance.randint(-9, 9)] * COUNT)
    for idx, value in enumerate(EDGES):
        add({"__name__": "edge", "kind": str(idx)}, [value] * COUNT)
    return series


def build_recent_series(now):
    """Series of constant values from ten minutes before `now` on, for requests that name no time."""
    series = []
    for name, labels, value in (("fresh", {"job": "node", "instance": "host0:9100"}, 1.5), ("fresh", {"job": "db"}, -2.0),
                                ("fresh_total", {"job": "node", "text": 'a"b\\c\nd'}, 1e20)):
        samples = [((now - 600 + at) * 1000, value) for at in range(0, RECENT_SECONDS, 60)]
        series.append({"labels": sorted({"__name__": name, **labels}.items()), "samples": samples})
    return series


def build_exemplars():
    """Series with exemplars and no samples besides those of `build_series`."""
    labels = [("__name__", "http_requests_total"), ("code", "200"), ("instance", "host0:9100"), ("job", "node")]
    exemplars = [([("trace_id", f"t{idx}")], float(idx), (START + idx * 60) * 1000) for idx in range(8)]
    return [{"labels": labels, "exemplars": exemplars}]


def encode(series):
    return wire.compress_snappy(wire.encode_write(series))


HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy",
           "X-Prometheus-Remote-Write-Version": "0.1.0"}
