"""Encodes and decodes the bodies of remote write and remote read: protobuf, snappy, frames of chunks."""

import struct

SAMPLES, STREAMED_XOR_CHUNKS = 0, 1
MATCHERS = {"=": 0, "!=": 1, "=~": 2, "!~": 3}


def varint(number):
    number &= 2**64 - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field_bytes(number, data):
    data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return varint(number << 3 | 2) + varint(len(data)) + data


def field_varint(number, value):
    return varint(number << 3) + varint(value)


def field_double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def zigzag(number):
    return number << 1 ^ number >> 63


def encode_label(name, value):
    return field_bytes(1, name) + field_bytes(2, value)


def encode_sample(value, millis):
    return field_double(1, value) + field_varint(2, millis)


def encode_exemplar(labels, value, millis):
    text = b"".join(field_bytes(1, encode_label(*label)) for label in labels)
    return text + field_double(2, value) + field_varint(3, millis)


def encode_histogram(histogram):
    """Encodes a native histogram of whole numbers: count, sum, schema, zero, positive spans and deltas, time."""
    out = field_varint(1, histogram["count"]) + field_double(3, histogram["sum"])
    out += field_varint(4, zigzag(histogram["schema"])) + field_double(5, histogram.get("zero_threshold", 0.001))
    out += field_varint(6, histogram.get("zero_count", 0))
    for offset, length in histogram.get("spans", []):
        out += field_bytes(11, field_varint(1, zigzag(offset)) + field_varint(2, length))
    deltas = b"".join(varint(zigzag(delta)) for delta in histogram.get("deltas", []))
    if deltas:
        out += field_bytes(12, deltas)
    return out + field_varint(15, histogram["millis"])


def encode_series(series):
    out = b"".join(field_bytes(1, encode_label(name, value)) for name, value in series["labels"])
    out += b"".join(field_bytes(2, encode_sample(value, millis)) for millis, value in series.get("samples", []))
    out += b"".join(field_bytes(3, encode_exemplar(*exemplar)) for exemplar in series.get("exemplars", []))
    return out + b"".join(field_bytes(4, encode_histogram(one)) for one in series.get("histograms", []))


def encode_write(series):
    """Encodes `prometheus.WriteRequest`; a series is a dictionary of labels, samples, exemplars, histograms."""
    return b"".join(field_bytes(1, encode_series(one)) for one in series)


def encode_read(queries, accepted=()):
    """Encodes `prometheus.ReadRequest`; a query is (start, end, [(name, operator, value)]) in milliseconds."""
    out = b""
    for start, end, matchers in queries:
        query = field_varint(1, start) + field_varint(2, end)
        for name, operator, value in matchers:
            matcher = field_varint(1, MATCHERS.get(operator, 9)) + field_bytes(2, name) + field_bytes(3, value)
            query += field_bytes(3, matcher)
        out += field_bytes(1, query)
    if accepted:
        out += field_bytes(2, b"".join(varint(kind) for kind in accepted))
    return out


def compress_snappy(data):
    """Snappy block format with literals alone."""
    out = bytearray(varint(len(data)))
    for start in range(0, len(data), 60):
        piece = data[start:start + 60]
        out.append(len(piece) - 1 << 2)
        out += piece
    return bytes(out)


def decompress_snappy(data):
    size, at = read_varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                width = length - 59
                length = int.from_bytes(data[at:at + width], "little")
                at += width
            out += data[at:at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at:at + width], "little")
            at += width
        for _ in range(length):
            out.append(out[-offset])
    if len(out) != size:
        raise ValueError(f"snappy: {len(out)} bytes instead of {size}")
    return bytes(out)


def read_varint(data, at):
    shift = value = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def read_fields(data):
    """Yields (number, value) of a message; values are numbers or bytes."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 1:
            value, at = data[at:at + 8], at + 8
        elif tag & 7 == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        elif tag & 7 == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"protobuf: wire type {tag & 7}")
        yield tag >> 3, value


def signed(number):
    return number - 2**64 if number >= 2**63 else number


def read_label(data):
    fields = dict(read_fields(data))
    return fields.get(1, b"").decode("utf-8", "replace"), fields.get(2, b"").decode("utf-8", "replace")


def decode_read_response(data):
    """Lists of series of each query: (labels, [(milliseconds, bits of the value)])."""
    results = []
    for number, result in read_fields(decompress_snappy(data)):
        if number != 1:
            continue
        series = []
        for _, one in read_fields(result):
            labels, samples = [], []
            for kind, value in read_fields(one):
                if kind == 1:
                    labels.append(read_label(value))
                elif kind == 2:
                    fields = dict(read_fields(value))
                    bits = struct.unpack("<Q", fields.get(1, bytes(8)))[0]
                    samples.append([signed(fields.get(2, 0)), f"{bits:016x}"])
            if samples:
                series.append([labels, samples])
        results.append(series)
    return results


def decode_frames(data):
    """Series of a stream of chunks: (number of the query, labels, [(milliseconds, bits)])."""
    found, at = [], 0
    while at < len(data):
        size, at = read_varint(data, at)
        at += 4  # CRC-32C
        query, series = 0, []
        for number, value in read_fields(data[at:at + size]):
            if number == 1:
                series.append(value)
            elif number == 2:
                query = value
        at += size
        for one in series:
            labels, samples = [], []
            for number, value in read_fields(one):
                if number == 1:
                    labels.append(read_label(value))
                elif number == 2:
                    chunk = dict(read_fields(value))
                    samples += decode_xor(chunk.get(4, b"")) if chunk.get(3, 0) == 1 else [["histograms", ""]]
            if found and found[-1][:2] == [query, labels]:
                found[-1][2].extend(samples)
            else:
                found.append([query, labels, samples])
    return found


class Bits:
    def __init__(self, data):
        self.data, self.at = data, 0

    def read(self, count):
        value = 0
        for _ in range(count):
            value = value << 1 | self.data[self.at >> 3] >> 7 - (self.at & 7) & 1
            self.at += 1
        return value

    def read_varint(self):
        value = shift = 0
        while True:
            byte = self.read(8)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value


def decode_xor(data):
    """Samples of a chunk of Prometheus' encoding `XOR`."""
    bits, samples = Bits(data), []
    count = bits.read(16)
    millis = value = delta = leading = trailing = 0
    for idx in range(count):
        if idx == 0:
            raw = bits.read_varint()
            millis, value = raw >> 1 ^ -(raw & 1), bits.read(64)
        else:
            if idx == 1:
                delta = bits.read_varint()
            else:
                delta += read_delta_of_delta(bits)
            millis += delta
            if bits.read(1):
                if bits.read(1):
                    leading = bits.read(5)
                    size = bits.read(6) or 64
                    trailing = 64 - leading - size
                value ^= bits.read(64 - leading - trailing) << trailing
        samples.append([millis, f"{value:016x}"])
    return samples


def read_delta_of_delta(bits):
    for width in (0, 14, 17, 20):
        if not bits.read(1):
            break
    else:
        width = 64
    if width == 0:
        return 0
    raw = bits.read(width)
    limit = 1 << width - 1
    return raw - (1 << width) if raw > limit or width == 64 and raw >= limit else raw
