"""Generates requests that store or delete samples, and encodes their bodies.

Names of metrics and measurements begin with `TOKEN`, which each comparison replaces by a word of its own, so that
what one request stored is never seen by another.
"""

import gzip
import json
import math
import struct
import zlib

import dictionary
import http_api_wire as wire
from http_api_cases import draw_damage, make_case
from http_api_data import HEADERS, START
from http_api_influx import WRITE_DATABASE

TOKEN = "TOKEN"
TIMESTAMPS = [(START + idx * 15) * 1000 for idx in range(8)]
# VictoriaMetrics keeps decimals of about 15 digits.
VALUES = [0, 1, -1, 2, 0.5, -2.5, 100, 1e15, 123456.125, 7]
LABEL_VALUES = [text for text in dictionary.STRINGS if text]
DAMAGED_LINES = {
    "jsonl": ['{"metric":{"__name__":"TOKEN_x"},"values":[1,2],"timestamps":[1709208000000]}', "{", "[]", "null", "x", '{"metric":{}}', "",
              '{"metric":{"__name__":"TOKEN_x"},"values":[true],"timestamps":[1709208000000]}', '{"metric":{"__name__":"TOKEN_x"},"values":["x"],"timestamps":[1709208000000]}',
              '{"metric":{"__name__":"TOKEN_x"},"values":[1],"timestamps":["x"]}', '{"metric":{"__name__":"TOKEN_x"},"values":1,"timestamps":1709208000000}',
              '{"metric":{"job":"TOKEN"},"values":[1],"timestamps":[1709208000000]}', '{"metric":{"__name__":5},"values":[1],"timestamps":[1709208000000]}',
              '{"metric":{"__name__":"TOKEN_x"},"values":[],"timestamps":[]}', '{"metric":{"__name__":"TOKEN_x"}}', '{"values":[1],"timestamps":[1709208000000]}',
              '{"metric":{"__name__":"TOKEN_x"},"values":[1e999],"timestamps":[1709208000000]}', '{"metric":{"__name__":"TOKEN_x"},"values":[1],"timestamps":[1709208000000]}}',
              '{"metric":{"__name__":"TOKEN_x"},"values":[1],"timestamps":[1709208000000]} {"metric":{"__name__":"TOKEN_y"},"values":[1],"timestamps":[1709208000000]}'],
    "prometheus": ["TOKEN_x", "TOKEN_x{", "TOKEN_x one", "TOKEN_x 1 2 3", 'TOKEN_x{a="b" 1', "TOKEN_x{a=b} 1", 'TOKEN_x{a="b",a="c"} 1 1709208000000', "{} 1", "1 1",
                   "# TYPE TOKEN_x counter", "# HELP TOKEN_x text", "# comment", "", "TOKEN_x 0x10 1709208000000", "TOKEN_x 1e999 1709208000000", "TOKEN_x 1 1.5", "TOKEN_x 1 x",
                   'TOKEN_x{a="\\q"} 1 1709208000000', "TOKEN_x{a=\"b\",} 1 1709208000000", "TOKEN-x 1 1709208000000", "TOKEN_x\t1\t1709208000000", "  TOKEN_x 1 1709208000000",
                   "TOKEN_x{} 1 1709208000000", 'TOKEN_x{a=""} 1 1709208000000', "TOKEN_x 1_000 1709208000000", "TOKEN_x +Inf 1709208000000", "TOKEN_x NaN 1709208000000",
                   'TOKEN_x 1 1709208000000 # {trace_id="a"} 1', "TOKEN_x,a=b 1", "TOKEN_x 1709208000000 1 "],
    "influx": ["TOKENx", "TOKENx a=", "TOKENx a=1x", "TOKENx a=yes", 'TOKENx a="half', "TOKENx a=1 soon", "TOKENx,host= a=1", "TOKENx,host=a,host=b a=1 1709208000000000000",
               "TOKENx a=1,b", ",a=b c=1", "# comment", "", "TOKENx a=1i,b=2u 1709208000000000000", "TOKENx a=9223372036854775808i", "TOKENx a=1 1.5", "TOKENx a=NaN",
               "TOKENx a=1e999", "TOKENx  a=1 1709208000000000000", "TOKENx,a a=1", "TOKENx, a=1", "TOKENx,=b a=1", "TOKENx =1", "TOKENx a=1 1709208000000000000 x",
               "TOKENx a=1\\", "TOKENx a==1", "TOKENx a=1,a=2 1709208000000000000", "TOKENx time=1 1709208000000000000", "TOKENx,time=1 a=1 1709208000000000000",
               "TOKENx a=t,b=F 1709208000000000000", "TOKENx a=tru", 'TOKENx a="x"y', "TOKENx a=--1", "TOKENx a=+1 1709208000000000000", "TOKENx a=1.i", "TOKENx a=.5 1709208000000000000",
               "TOKENx a=1 9223372036854775807", "TOKENx a=1 -9223372036854775808", "TOKENx a=1 99999999999999999999", "\tTOKENx a=1 1709208000000000000"],
    "csv": ["TOKEN", "TOKEN,a", "TOKEN,a,x,1709208000", "TOKEN,a,1,x", ",,,", "", "TOKEN,a,1,1709208000,5,6", 'TOKEN,"a,1,1709208000', 'TOKEN,"a""b",1,1709208000', "TOKEN,,1,1709208000",
            "TOKEN,a,,1709208000", "TOKEN,a,NaN,1709208000", "TOKEN,a,1e999,1709208000", "TOKEN, a , 1 ,1709208000", "TOKEN,a,1,", "# comment"],
}
CSV_FORMATS = ["1:label:__name__,2:label:host,3:metric:value,4:time:unix_s", "1:label:t,2:label:host,3:metric:TOKEN_m,4:time:unix_s", "3:metric:TOKEN_m,4:time:unix_s,2:label:host"]
BAD_CSV_FORMATS = ["", "x", "1:metric", "0:metric:TOKEN_m", "1:label:", "1:time:unix_x", "1:label:a", "3:metric:TOKEN_m,3:label:b", "3:metric:TOKEN_m,4:time:unix_s,4:time:unix_s",
                   "-1:metric:a", "99:metric:TOKEN_m", "3:metric:TOKEN_m,4:time:custom:", "3:metric:TOKEN_m;4:time:unix_s", "3:metric:", "a:metric:b", "3:metrics:TOKEN_m"]
ENCODINGS = ("", "", "", "gzip", "gzip", "identity", "deflate", "zstd", "x", "br")
DELETE_MATCHERS = ["TOKEN_a", '{__name__="TOKEN_b"}', '{__name__=~"TOKEN.*"}', '{__name__=~"TOKEN.*",k="1"}', "TOKEN_nothing", 'TOKEN_a{k!="1"}']
BAD_DELETE_MATCHERS = ["", "{", "TOKEN_a[5m]", "sum(TOKEN_a)", "TOKEN_a{", "TOKEN_a offset 5m", '{k=~"("}', "1", "TOKEN_a + 1", "\x00"]


def generate_write(chance):
    """A request that stores or deletes, half of them with a fault."""
    kind = chance.choices(("remote_write", "jsonl", "prometheus", "influx", "csv", "delete", "order"), (6, 4, 4, 5, 3, 3, 0.4))[0]
    return {"remote_write": generate_remote_write, "delete": generate_delete, "order": generate_order}.get(kind, generate_lines)(chance, kind)


def draw_labels(chance, name):
    labels = {"__name__": f"{TOKEN}_{name}"}
    for _ in range(chance.randrange(3)):
        labels[chance.choice(("job", "host", "k", "le", "z_9"))] = chance.choice(LABEL_VALUES)
    return sorted(labels.items())


def generate_remote_write(chance, _kind):
    peer = chance.choice(("prometheus", "prometheus", "victoriametrics"))
    series = []
    for name in "abc"[:chance.choice((1, 1, 2, 3))]:
        times = sorted(chance.sample(TIMESTAMPS, chance.choice((1, 1, 2, 5))))
        values = [draw_value(chance, peer) for _ in times]
        series.append({"labels": draw_labels(chance, name), "samples": list(zip(times, values)), "exemplars": [], "histograms": []})
    if peer == "prometheus" and chance.random() < 0.2:
        one = series[-1]
        one["exemplars"] = [([("trace_id", chance.choice(LABEL_VALUES[:20]))], draw_value(chance, "victoriametrics"), one["samples"][-1][0])]
    if peer == "prometheus" and chance.random() < 0.2:
        series.append({"labels": draw_labels(chance, "h"), "samples": [], "exemplars": [], "histograms": [draw_histogram(chance)]})
    case = make_case(peer, "POST", "/api/v1/write", headers=list(HEADERS.items()),
                     body={"kind": "remote_write", "series": series, "damage": []})
    if chance.random() < 0.5:
        add_write_fault(chance, case)
    return case


def draw_value(chance, peer):
    if peer != "prometheus":
        return float(chance.choice(VALUES))
    kind = chance.random()
    if kind < 0.1:
        return chance.choice([*dictionary.NAN_PAYLOADS, dictionary.STALE_MARKER, math.inf, -math.inf])
    return dictionary.draw_float(chance)


def draw_histogram(chance):
    counts = [chance.randint(0, 9) for _ in range(chance.choice((1, 2, 4)))]
    deltas = [count - previous for previous, count in zip([0, *counts], counts)]
    return {"count": sum(counts) + 1, "sum": float(chance.choice(VALUES)), "schema": chance.choice((-4, 0, 1, 3, 8)), "zero_count": 1,
            "spans": [(chance.choice((-3, 0, 2)), len(counts))], "deltas": deltas, "millis": TIMESTAMPS[0]}


def add_write_fault(chance, case):
    """Breaks a remote write: labels, order, histograms, the bytes of the body or a header."""
    body, one = case["body"], case["body"]["series"][0]
    kind = chance.randrange(14)
    if kind == 0:
        one["labels"] = list(reversed(one["labels"] + [("job", "x")]))
    elif kind == 1:
        one["labels"] = one["labels"] + [one["labels"][-1]]
    elif kind == 2:
        one["labels"] = one["labels"] + [("", "x")]
    elif kind == 3:
        one["labels"] = one["labels"] + [("zz", "")]
    elif kind == 4:
        one["labels"] = [label for label in one["labels"] if label[0] != "__name__"]
    elif kind == 5:
        one["samples"] = list(reversed(one["samples"])) + one["samples"][:1]
    elif kind == 6:
        one["samples"] = one["samples"] + [(one["samples"][-1][0], one["samples"][-1][1] if chance.random() < 0.5 else 77.5)]
    elif kind == 7:
        one["labels"] = one["labels"] + [(chance.choice(("zz\udc80", "a-b", "1a", "ä")), chance.choice(("x", "x\udcff")))]
    elif kind == 8:
        body["series"] = [] if chance.random() < 0.5 else [{**one, "samples": []}]
    elif kind == 9:
        histogram = {**draw_histogram(chance), **chance.choice(({"count": 10_000}, {"schema": 99}, {"spans": [(0, 99)]}, {"deltas": [-5]}, {"spans": []}))}
        body["series"].append({"labels": draw_labels(chance, "bad"), "samples": [], "histograms": [histogram]})
    elif kind == 10:
        name, value = chance.choice((("Content-Encoding", "gzip"), ("Content-Encoding", ""), ("Content-Encoding", "zstd"), ("Content-Type", "text/plain"), ("Content-Type", ""),
                                     ("Content-Type", "application/x-protobuf;proto=x"), ("X-Prometheus-Remote-Write-Version", "9.9.9")))
        case["headers"] = [(key, value if key == name else other) for key, other in case["headers"]]
    elif kind == 11:
        case["method"] = chance.choice(("GET", "PUT", "DELETE", "HEAD", "PATCH"))
    else:
        body["damage"] = draw_damage(chance)


def generate_lines(chance, kind):
    """A text body: JSON lines, text of Prometheus, CSV or line protocol."""
    peer = chance.choice(("influxdb", "victoriametrics")) if kind == "influx" else "victoriametrics"
    path = {"jsonl": "/api/v1/import", "prometheus": "/api/v1/import/prometheus", "csv": "/api/v1/import/csv"}.get(kind)
    if kind == "influx":
        paths = ("/write",) if peer == "influxdb" else ("/write", "/influx/write", "/api/v2/write", "/influx/api/v2/write")
        path = chance.choice(paths)
    lines = [draw_line(chance, kind) for _ in range(chance.choice((1, 1, 2, 4)))]
    case = make_case(peer, "POST", path, body={"kind": kind, "lines": lines, "encoding": "", "damage": []})
    if kind == "csv":
        case["url"].append(("format", chance.choice(CSV_FORMATS)))
    if kind == "influx":
        precision = chance.choice(("", "", "", "ns", "n"))
        if peer == "influxdb" or chance.random() < 0.3:
            case["url"].append(("db", WRITE_DATABASE))
        if precision:
            case["url"].append(("precision", precision))
    if kind != "influx" and chance.random() < 0.1:
        case["url"].append(("extra_label", chance.choice(("team=dev", "host=x", "a=b=c"))))
    if chance.random() < 0.5:
        add_line_fault(chance, case, kind)
    return case


def draw_line(chance, kind):
    millis = chance.choice(TIMESTAMPS)
    value, name, host = chance.choice(VALUES), chance.choice("abc"), chance.choice(LABEL_VALUES)
    if kind == "jsonl":
        times = sorted(chance.sample(TIMESTAMPS, chance.choice((1, 2, 4))))
        members = [("metric", {"__name__": f"{TOKEN}_{name}", "host": host}), ("values", [chance.choice(VALUES) for _ in times]), ("timestamps", times)]
        chance.shuffle(members)
        return json.dumps(dict(members), ensure_ascii=chance.random() < 0.5)
    if kind == "prometheus":
        escaped = host.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        labels = chance.choice(("", f'{{host="{escaped}"}}', f'{{host="{escaped}",k="1"}}', f'{{ k = "1" , host="{escaped}" }}'))
        return f"{TOKEN}_{name}{labels} {value} {millis}"
    if kind == "csv":
        quoted = '"' + host.replace('"', '""') + '"' if set(host) & set(',"\n') or chance.random() < 0.3 else host
        return f"{TOKEN}_{name},{quoted},{value},{millis // 1000}"
    escaped = host.strip("\n\\ ").replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ").replace("\n", "") or "x"
    tags = chance.choice(("", f",host={escaped}", f",k=1,host={escaped}"))
    fields = chance.choice((f"f={value}", f"f={value},g={chance.choice(VALUES)}", f"i={chance.randint(-9, 9)}i", "b=true", f"f={value},b=f", 's="text"'))
    return f"{TOKEN}{name}{tags} {fields} {millis * 1_000_000}"


def add_line_fault(chance, case, kind):
    body, which = case["body"], chance.random()
    if which < 0.6:
        at = chance.randrange(len(body["lines"]) + 1)
        body["lines"].insert(at, chance.choice(DAMAGED_LINES[kind]))
    elif which < 0.68:
        body["encoding"] = chance.choice(ENCODINGS)
        if chance.random() < 0.3:
            body["damage"] = draw_damage(chance)
    elif which < 0.74:
        body["damage"] = draw_damage(chance)
    elif which < 0.8:
        case["method"] = chance.choice(("GET", "PUT", "DELETE", "HEAD"))
    elif which < 0.84:
        body["lines"] = []
    elif kind == "csv":
        case["url"] = [("format", chance.choice(BAD_CSV_FORMATS))] if chance.random() < 0.8 else []
    elif kind == "influx":
        name, value = chance.choice((("precision", "x"), ("precision", "ms"), ("precision", "s"), ("precision", "h"), ("precision", "us"), ("precision", "NS"), ("db", ""), ("db", "elsewhere"),
                                     ("consistency", "all"), ("consistency", "x"), ("rp", "nowhere"), ("u", "x")))
        case["url"] = [pair for pair in case["url"] if pair[0] != name] + [(name, value)]
    else:
        case["url"].append(chance.choice((("extra_label", "x"), ("extra_label", ""), ("extra_label", "=x"), ("timestamp", "x"), ("timestamp", "1709208000000"))))


def generate_delete(chance, _kind):
    """A deletion among series that the case stores before."""
    peer = chance.choice(("prometheus", "victoriametrics"))
    setup = [{"labels": [("__name__", f"{TOKEN}_{name}"), ("k", str(k))], "samples": [(millis, 1.0) for millis in TIMESTAMPS]} for name in "ab" for k in (1, 2)]
    pairs = [("match[]", chance.choice(DELETE_MATCHERS))]
    if chance.random() < 0.2:
        pairs.append(("match[]", chance.choice(DELETE_MATCHERS)))
    if peer == "prometheus" and chance.random() < 0.5:
        pairs += [("start", str(START + 30)), ("end", str(START + chance.choice((30, 60, 3_600))))][:chance.choice((1, 2))]
    case = make_case(peer, "POST", "/api/v1/admin/tsdb/delete_series", url=pairs, body={"kind": "none", "damage": []}, setup=setup)
    if chance.random() < 0.5:
        kind = chance.randrange(5)
        if kind == 0:
            case["url"] = case["url"][1:]
        elif kind == 1:
            case["method"] = chance.choice(("GET", "HEAD", "DELETE", "PATCH"))
        elif kind == 2:
            case["url"] = pairs + [(chance.choice(("start", "end")), chance.choice(("x", "NaN", "2024-02-30T00:00:00Z", "1e400")))]
        else:
            case["url"] = [("match[]", chance.choice(BAD_DELETE_MATCHERS))] + pairs[:chance.randrange(2)]
    if chance.random() < 0.3 and case["method"] == "POST":
        case["form"], case["url"] = case["url"], []
        case["headers"] = [("Content-Type", "application/x-www-form-urlencoded")]
    return case


def generate_order(chance, _kind):
    path = chance.choice(("/api/v1/admin/tsdb/clean_tombstones", "/api/v1/admin/tsdb/snapshot", "/api/v1/admin/tsdb/nothing"))
    method = chance.choice(("POST", "PUT", "GET", "DELETE"))
    url = [("skip_head", chance.choice(("false", "x", "0")))] if "snapshot" in path and chance.random() < 0.5 else []
    return make_case("prometheus", method, path, url=url, body={"kind": "none", "damage": []})


def build_body(body, token):
    """Bytes of a body, with the token in the place of its name, encoded and then damaged."""
    kind = body["kind"]
    if kind == "none":
        return None
    if kind == "read":
        data = wire.compress_snappy(wire.encode_read([tuple(query) for query in body["queries"]], body["accepted"]))
    elif kind == "remote_write":
        replaced = [{**one, "labels": [(name, value.replace(TOKEN, token)) for name, value in one["labels"]]} for one in body["series"]]
        data = wire.compress_snappy(encode_surrogates(replaced))
    else:
        text = "".join(line + "\n" for line in body["lines"])
        data = compress(text.replace(TOKEN, token).encode(), body["encoding"])
    return damage(data, body["damage"])


def encode_surrogates(series):
    """Bytes of a write request in which lone surrogates stand for bytes that are no UTF-8."""
    fixed = []
    for one in series:
        labels = [(name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")) for name, value in one["labels"]]
        fixed.append({**one, "labels": labels})
    return wire.encode_write(fixed)


def compress(data, encoding):
    if encoding == "gzip":
        return gzip.compress(data, 0, mtime=0)
    return zlib.compress(data, 0) if encoding == "deflate" else data


def damage(data, operations):
    """Applies operations (kind, place as a share of the length, byte)."""
    for kind, share, byte in operations:
        at = min(int(len(data) * share), max(len(data) - 1, 0))
        if kind == "flip" and data:
            data = data[:at] + bytes([data[at] ^ byte]) + data[at + 1:]
        elif kind == "cut":
            data = data[:at]
        elif kind == "insert":
            data = data[:at] + bytes([byte]) * 3 + data[at:]
        elif kind == "append":
            data += bytes([byte]) * 5
        elif kind == "empty":
            data = b""
        elif kind == "plain":
            data = bytes(byte for byte in data if byte >= 32)
    return data


def bits(value):
    return f"{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"
