"""Encodes remote-write requests of Prometheus with the standard library: protobuf, in snappy blocks of literals."""

import struct

HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy",
           "X-Prometheus-Remote-Write-Version": "0.1.0"}
LITERAL_LENGTH_MAX = 60_000


class Histogram:
    """A native histogram with counts as integers.

    `positive` and `negative` map bucket indexes to counts; `bounds` makes it one of custom bounds."""

    def __init__(self, schema, positive, negative=None, zero_count=0, zero_threshold=0.001, total=0.0, bounds=None,
                 hint=0):
        self.schema, self.positive, self.negative = schema, positive, negative or {}
        self.zero_count, self.zero_threshold, self.sum = zero_count, zero_threshold, total
        self.bounds, self.hint = bounds, hint

    @property
    def count(self):
        return self.zero_count + sum(self.positive.values()) + sum(self.negative.values())


class Series:
    """Labels with a name, and samples: pairs of milliseconds and a float or a `Histogram`."""

    def __init__(self, name, labels, samples):
        self.labels = dict(labels, __name__=name)
        self.samples = samples


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number):
    return varint(((number << 1) ^ (number >> 63)) & (2**64 - 1))


def bytes_field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def double_field(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def varint_field(number, value):
    return varint(number << 3) + varint(value & (2**64 - 1))


def signed_field(number, value):
    return varint(number << 3) + zigzag(value)


def encode_spans(number, deltas_number, counts):
    """Spans and deltas of buckets, as fields `number` and `deltas_number`."""
    spans, deltas, last_count, last_index = [], [], 0, None
    for index in sorted(counts):
        if last_index is not None and index == last_index + 1:
            spans[-1][1] += 1
        else:
            spans.append([index if last_index is None else index - last_index - 1, 1])
        deltas.append(counts[index] - last_count)
        last_count, last_index = counts[index], index
    out = b"".join(bytes_field(number, signed_field(1, offset) + varint_field(2, length)) for offset, length in spans)
    return out + (bytes_field(deltas_number, b"".join(map(zigzag, deltas))) if deltas else b"")


def encode_histogram(timestamp, histogram):
    out = varint_field(1, histogram.count) + double_field(3, histogram.sum) + signed_field(4, histogram.schema)
    if histogram.bounds is None:
        out += double_field(5, histogram.zero_threshold) + varint_field(6, histogram.zero_count)
    out += encode_spans(8, 9, histogram.negative) + encode_spans(11, 12, histogram.positive)
    out += varint_field(14, histogram.hint) + varint_field(15, timestamp)
    if histogram.bounds is not None:
        out += bytes_field(16, b"".join(struct.pack("<d", bound) for bound in histogram.bounds))
    return out


def encode_series(series, is_wanted):
    samples = [sample for sample in series.samples if is_wanted(sample[0])]
    if not samples:
        return b""
    out = b"".join(bytes_field(1, bytes_field(1, name.encode()) + bytes_field(2, value.encode()))
                   for name, value in sorted(series.labels.items()) if value)
    for timestamp, value in samples:
        if isinstance(value, Histogram):
            out += bytes_field(4, encode_histogram(timestamp, value))
        else:
            out += bytes_field(2, double_field(1, value) + varint_field(2, timestamp))
    return bytes_field(1, out)


def compress_snappy(plain):
    out = [varint(len(plain))]
    for start in range(0, len(plain), LITERAL_LENGTH_MAX):
        chunk = plain[start:start + LITERAL_LENGTH_MAX]
        out.append(b"\xf4" + struct.pack("<H", len(chunk) - 1) + chunk)
    return b"".join(out)


def encode_requests(all_series, piece_ms=600_000):
    """Bodies of requests, each with all series of `piece_ms` milliseconds, in order of time.

    Prometheus refuses histograms that are much older than the newest sample of any series."""
    pieces = sorted({timestamp // piece_ms for series in all_series for timestamp, _ in series.samples})
    for piece in pieces:
        plain = b"".join(encode_series(series, lambda timestamp, piece=piece: timestamp // piece_ms == piece)
                         for series in all_series)
        yield compress_snappy(plain)
