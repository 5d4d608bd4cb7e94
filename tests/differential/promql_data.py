"""Series that the campaigns `promql` and `metricsql` load into both servers; their values come from the seed."""

import random

import dictionary
from promql_write import Histogram, Series

START_MS = 1_701_385_200_000  # 2023-11-30T23:00:00Z: the data crosses the edge of a month
SPAN_MS = 2 * 3_600_000
INTERVAL_MS = 15_000
LAST_MS = START_MS + SPAN_MS
BOUNDS = ["0.1", "0.5", "1", "5", "+Inf"]
CUSTOM_BOUNDS = [0.1, 0.5, 1.0, 5.0]
LABEL_VALUES = [value for value in dictionary.STRINGS if value and value != "x" * 300] + ["x" * 60]


def draw_series(seed, shift_ms=0, is_rounding_safe=False):
    """All series of a seed, `shift_ms` later.

    `is_rounding_safe` leaves out what VictoriaMetrics cannot store: values of far apart magnitudes in one
    series, NaN payloads, native histograms."""
    chance = random.Random(f"data {seed}")
    start = START_MS + shift_ms
    times = [start + index * INTERVAL_MS for index in range(SPAN_MS // INTERVAL_MS)]
    all_series = draw_regular(chance, times)
    all_series += draw_buckets(chance, times)
    all_series += [Series("strings", {"value": value}, [(when, float(index)) for when in times[::4]])
                   for index, value in enumerate(LABEL_VALUES)]
    all_series += draw_stale(chance, times)
    if is_rounding_safe:
        safe = [value for value in dictionary.FLOATS if 1e-7 <= abs(value) <= 1e16 or not value]
        all_series += [Series("edge", {"index": str(index)}, [(when, value) for when in times[::4]])
                       for index, value in enumerate(safe)]
        return all_series
    values = dictionary.FLOATS + dictionary.NOT_FINITE + dictionary.NAN_PAYLOADS
    all_series += [Series("edge", {"index": str(index)}, [(when, value) for when in times[::4]])
                   for index, value in enumerate(values)]
    all_series += [Series("edges", {"index": str(index)}, [(when, chance.choice(values)) for when in times])
                   for index in range(3)]
    all_series += draw_histograms(chance, times)
    return all_series


def walk(chance, kind, times, gap_percent=0, jitter=0):
    """Samples of a gauge, a counter that resets, or a state with few values; with gaps and jitter of milliseconds."""
    value, is_gap, samples = float(chance.randint(10, 50)), False, []
    if kind == "unequal":
        value += chance.randint(1, 999) / 1e5
    for when in times:
        if kind == "gauge":
            value += chance.randint(-8, 8) / 4
        elif kind == "counter":
            value = float(chance.randint(0, 5)) if chance.random() < 0.02 else value + chance.randint(0, 6)
        elif kind == "unequal":
            value = round(value + chance.randint(-999, 999) / 1000, 5)
        elif chance.random() < 0.2:
            value = float(chance.randint(0, 3))
        if chance.random() * 100 < gap_percent:
            is_gap = not is_gap
        if not is_gap:
            samples.append((when + 10 * chance.randint(0, jitter // 10), value))
    return samples


def draw_regular(chance, times):
    out = []
    for job in ("api", "db"):
        for instance in ("1", "2", "3"):
            labels = {"job": job, "instance": instance}
            out.append(Series("gauge", labels, walk(chance, "gauge", times)))
            out.append(Series("requests_total", labels, walk(chance, "counter", times)))
            out.append(Series("jittered", labels, walk(chance, "gauge", times, 0, 4_000)))
            out.append(Series("gappy", labels, walk(chance, "gauge", times, 8, 2_000)))
            out.append(Series("unequal", labels, walk(chance, "unequal", times)))
        out.append(Series("state", {"job": job}, walk(chance, "state", times)))
        out.append(Series("info", {"job": job, "version": "7" if job == "db" else "12"},
                          [(when, 1.0) for when in times]))
        for instance in ("1", "2"):
            out.append(Series("target_info", {"job": job, "instance": instance, "zone": "z" + instance},
                              [(when, 1.0) for when in times]))
    out.append(Series("lonely", {}, walk(chance, "gauge", times, 3)))
    return out


def draw_buckets(chance, times):
    """Classic histograms whose buckets grow together."""
    out = []
    for job in ("api", "db"):
        counts, rows = [20, 40, 60, 80, 100], []
        for _ in times:
            for _ in range(chance.randint(0, 5)):
                for index in range(chance.randrange(len(BOUNDS)), len(BOUNDS)):
                    counts[index] += 1
            rows.append(list(counts))
        for index, bound in enumerate(BOUNDS):
            samples = [(when, float(row[index])) for when, row in zip(times, rows)]
            out.append(Series("latency_bucket", {"job": job, "le": bound}, samples))
    return out


def draw_stale(chance, times):
    """Series that end with a stale marker and begin again."""
    out = []
    for index in range(3):
        samples, is_alive = [], True
        for when in times:
            was_alive, is_alive = is_alive, is_alive != (chance.random() < 0.03)
            if is_alive:
                samples.append((when, float(chance.randint(0, 99))))
            elif was_alive:
                samples.append((when, dictionary.STALE_MARKER))
        out.append(Series("mortal", {"index": str(index)}, samples))
    return out


def draw_histograms(chance, times):
    """Native histograms that grow and reset, with another schema each; a series that changes its kind."""
    out = []
    for schema in (0, 3, -2, -53):
        out.append(Series("native", {"schema": str(schema)}, grow_histogram(chance, times, schema)))
    out.append(Series("native_gauge", {}, grow_histogram(chance, times, 1, hint=3)))
    histograms = grow_histogram(chance, times, 0)
    floats = walk(chance, "counter", times)
    mixed = [floats[index] if index // 20 % 2 else histograms[index] for index in range(len(times))]
    out.append(Series("mixed", {}, mixed))
    return out


def grow_histogram(chance, times, schema, hint=0):
    """Samples of a histogram: all have a positive bucket, those of schema 3 a negative one, the others never.

    Prometheus adds the buckets of later samples of a chunk to earlier ones, empty, and the signs of a histogram's
    buckets decide how far its zero bucket reaches."""
    bounds = CUSTOM_BOUNDS if schema == -53 else None
    first_negative = {0: 1} if schema == 3 else {}
    positive, negative, zero, total, samples = {0: 1}, first_negative, 0, 0.0, []
    for when in times:
        if chance.random() < 0.01 or hint == 3:
            positive, negative, zero, total = {0: 1}, first_negative, 0, 0.0
        for _ in range(chance.randint(0, 4)):
            index = chance.randint(0, 4) if bounds else chance.randint(-3, 6)
            positive[index] = positive.get(index, 0) + 1
            total += 1.25
        if negative and chance.random() < 0.1:
            index = chance.randint(-1, 2)
            negative = {**negative, index: negative.get(index, 0) + 1}
            total -= 0.5
        if not bounds:
            zero += chance.randint(0, 1)
        samples.append((when, Histogram(schema, dict(positive), negative, zero, 0.001, total, bounds, hint)))
    return samples
