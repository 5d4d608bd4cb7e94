"""Campaign `migration`: moves random data sets from other databases to Quipu, and compares totals of both sides.

A case is a whole move: a new source with its data, a new Quipu, `quipu migrate` (or `quipu kv import`, or
`REPLICAOF`), then totals of the source that `migrate` does not ask for. `Quipu` in a difference is what Quipu has.
"""

import gzip
import itertools
import json
import math
import shutil
import subprocess
import time

import http_api_wire as wire
import migration_data as data
import migration_redis as redis
import servers
from campaign import BaseCampaign, Difference
from http_api_views import read_json_lines

QUIPU_FLAGS = ("--self-scrape-interval=0", "--future-retention=100y", "--durability=relaxed")
WRITE_HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
READ_HEADERS = {**WRITE_HEADERS, "X-Prometheus-Remote-Read-Version": "0.1.0"}
START_MILLIS, END_MILLIS = data.ANCHORS[0] - 10**8, data.ANCHORS[-1] + 10**8
MIGRATE_SECONDS_MAX = 300
KINDS = ("prometheus", "prometheus-blocks", "victoriametrics", "victoriametrics-files", "influxdb", "influx-lines", "quipu", "redis-dump", "redis-replica")
TIMES = (("--end", "2024-03-05"), ("--end", "2024-03-05"), ("--start", "2024-02-27", "--end", "2024-03-05"), ("--start", "2024-02-29", "--end", "2024-02-29T23:59:59.999Z"))
FILTERS = (("--match", '{__name__=~"cpu.*"}'), ("--match", "up", "--match", '{job!=""}'), ("--drop-label", "z_9"), ("--set-label", "moved=yes"), ("--rename-label", "le=bound"))
MOMENTS = {"2024-02-27": 1_708_992_000_000, "2024-02-29": 1_709_164_800_000, "2024-02-29T23:59:59.999Z": 1_709_251_199_999, "2024-03-05": 1_709_596_800_000}
NEGATIVE_ZERO = "8000000000000000"
EVERYTHING = '{__name__!=""}'


class Campaign(BaseCampaign):
    page = "migration.md"
    default_count = 5

    def start(self):
        self.numbers = itertools.count()
        self.running = []

    def stop(self):
        for server in getattr(self, "running", []):
            server.kill()

    def generate(self, chance):
        kind = chance.choice(KINDS)
        case = {"kind": kind, "flags": ()}
        if kind == "victoriametrics" or kind == "victoriametrics-files":
            case["series"] = data.draw_series(chance, data.draw_exact_value)
            case["format"] = chance.choice(("jsonl", "native"))
            case["is_compressed"] = chance.random() < 0.5
        elif kind.startswith("influx"):
            case["databases"] = data.draw_influx(chance, kind == "influx-lines")
            case["is_compressed"] = kind == "influx-lines" and chance.random() < 0.5
        elif kind.startswith("redis"):
            case["commands"] = data.draw_redis(chance)
        else:
            draw = data.draw_ordinary_value if kind == "prometheus-blocks" else data.draw_any_value
            names = data.METRICS if kind != "quipu" else data.METRICS + data.UTF8_NAMES
            case["series"] = data.draw_series(chance, draw, names)
        if "series" in case:
            # Servers that are read by remote read are asked for each day until the end.
            case["flags"] = chance.choice(((), *TIMES)) if kind.startswith("victoria") else chance.choice(TIMES)
            if chance.random() < 0.3:
                case["flags"] += chance.choice(FILTERS)
        return case

    def compare(self, case):
        directory = self.options.directory / f"case-{next(self.numbers)}"
        directory.mkdir()
        first = len(self.running)
        try:
            move = MOVES[case["kind"]](self, case, directory)
            return move.run()
        finally:
            for server in self.running[first:]:
                server.kill()
            del self.running[first:]
            shutil.rmtree(directory, ignore_errors=True)

    def text(self, case):
        words = [case["kind"], *case["flags"]]
        words += [f"{key}={case[key]!r}" for key in ("format", "is_compressed", "series", "databases", "commands") if key in case]
        return " ".join(words)

    def reductions(self, case):
        if case["flags"]:
            yield {**case, "flags": ()}
            yield {**case, "flags": TIMES[0]}
        for key in ("series", "commands", "databases"):
            yield from ({**case, key: smaller} for smaller in reduce_list(case.get(key, [])))
        for idx, one in enumerate(case.get("series", [])):
            for samples in reduce_list(one["samples"]):
                yield with_item(case, "series", idx, {**one, "samples": samples})
            for labels in reduce_list(one["labels"]) if len(case["series"]) == 1 else ():
                if any(name == "__name__" for name, _ in labels):
                    yield with_item(case, "series", idx, {**one, "labels": labels})
        for idx, one in enumerate(case.get("databases", [])):
            for policies in reduce_list(one["policies"]):
                if case["kind"] == "influx-lines" and policies[0]["name"] != "autogen":
                    continue
                yield with_item(case, "databases", idx, {**one, "policies": policies})
            for at, policy in enumerate(one["policies"]):
                for lines in reduce_list(policy["lines"]):
                    smaller = with_item(one, "policies", at, {**policy, "lines": lines})
                    yield with_item(case, "databases", idx, smaller)


def with_item(holder, key, idx, item):
    return {**holder, key: holder[key][:idx] + [item] + holder[key][idx + 1:]}


def reduce_list(items):
    """Halves of a list, then the list without one item; never an empty list."""
    if len(items) > 1:
        yield items[:len(items) // 2]
        yield items[len(items) // 2:]
        for idx in range(len(items) if len(items) <= 12 else 0):
            yield items[:idx] + items[idx + 1:]


class Move:
    """A move of one case. Kinds define `start_source`, `place`, `source_totals` and `quipu_totals`."""

    name = None

    def __init__(self, campaign, case, directory):
        self.campaign, self.case, self.directory = campaign, case, directory
        self.options = campaign.options
        self.output = ""

    def keep(self, server):
        self.campaign.running.append(server)
        return server

    def start_quipu(self, name):
        return self.keep(servers.start_quipu(self.options.binary, self.directory / name, *QUIPU_FLAGS))

    def run(self):
        self.start_source()
        self.quipu = self.start_quipu("quipu")
        failure = self.copy()
        if failure:
            return failure
        peer, quipu = self.source_totals(), self.quipu_totals()
        if not self.quipu.is_running() or self.quipu.panics():
            return Difference(f"crash {self.quipu.log_tail()}", "goes on", ("crash",))
        different = find_difference(quipu, peer)
        if different:
            where, found, expected = different
            return Difference(f"{where}: {found}", f"{where}: {expected}", ("totals", where.split(" ")[0]))
        return None

    def copy(self):
        """Runs `quipu migrate`, and `verify` behind it; a difference if one of them fails."""
        words = [self.name, *self.place(), "--url", f"http://127.0.0.1:{self.quipu.http}", *self.case["flags"]]
        failure = self.run_command("migrate", [self.options.binary, "migrate", *words, "--progress", str(self.directory / "progress")])
        failure = failure or self.run_command("verify", [self.options.binary, "migrate", "verify", *words])
        # Where a label that is dropped makes one series of two, verify counts the samples that are lost.
        is_told = failure and failure.kind[0] == "verify" and "--drop-label" in self.case["flags"] and "get the labels of another one" in failure.quipu
        return None if is_told else failure

    def run_command(self, what, command):
        ended = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", timeout=MIGRATE_SECONDS_MAX, cwd=self.directory, check=False)
        self.output += ended.stdout
        if ended.returncode or "panicked" in ended.stdout:
            return Difference(f"{what} exits with {ended.returncode}: {ended.stdout[-1_500:]}", "can be copied", (what, ended.returncode))
        return None

    def write_series(self, port, series, size=50_000):
        """Remote write, samples of each series by time."""
        batch, count = [], 0
        for one in series:
            samples = sorted(one["samples"], key=lambda sample: sample[0])
            batch.append({"labels": [tuple(label) for label in one["labels"]], "samples": samples})
            count += len(samples)
            if count >= size:
                self.post_series(port, batch)
                batch, count = [], 0
        self.post_series(port, batch)

    def post_series(self, port, batch):
        body = wire.compress_snappy(wire.encode_write(batch))
        answer = servers.request(port, "POST", "/api/v1/write", body=body, headers=WRITE_HEADERS)
        if answer.status >= 300:
            raise SystemExit(f"{self.case['kind']}: remote write answers {answer.status}: {answer.text[:500]}")


def find_difference(quipu, peer, where="totals"):
    """The first place where two trees of totals differ, with both values; floats within 1e-9."""
    if isinstance(quipu, dict) and isinstance(peer, dict):
        for key in sorted(set(quipu) | set(peer), key=str):
            found = find_difference(quipu.get(key, "nothing"), peer.get(key, "nothing"), f"{where} {key}")
            if found:
                return found
        return None
    if isinstance(quipu, list) and isinstance(peer, list) and len(quipu) == len(peer):
        return next((found for idx, pair in enumerate(zip(quipu, peer)) if (found := find_difference(*pair, f"{where} [{idx}]"))), None)
    if isinstance(quipu, float) and isinstance(peer, float):
        is_same = quipu == peer or math.isnan(quipu) and math.isnan(peer) or math.isclose(quipu, peer, rel_tol=1e-9)
        return None if is_same else (where, quipu, peer)
    return None if quipu == peer else (where, quipu, peer)


def is_taken(case, labels):
    """Whether the flags of a case choose a series."""
    flags = case["flags"]
    if "--match" not in flags:
        return True
    if '{__name__=~"cpu.*"}' in flags:
        return labels["__name__"].startswith("cpu")
    return labels["__name__"] == "up" or bool(labels.get("job"))


def relabel(case, labels):
    labels, flags = dict(labels), case["flags"]
    if "--drop-label" in flags:
        labels.pop("z_9", None)
    if "--rename-label" in flags and "le" in labels:
        labels["bound"] = labels.pop("le")
    if "--set-label" in flags:
        labels["moved"] = "yes"
    return labels


def is_in_time(case, millis):
    flags = case["flags"]
    start, end = (MOMENTS[flags[flags.index(name) + 1]] if name in flags else None for name in ("--start", "--end"))
    return (start is None or start <= millis) and (end is None or millis <= end)


def chosen_samples(case, found):
    """Samples of a map of labels (as JSON) that the flags of a case choose, under the labels they get.

    Where `--drop-label` makes one series of two, either sample of an equal time may count, so all are in a set."""
    chosen = {}
    for text, samples in found.items():
        labels = json.loads(text)
        kept = [sample for sample in samples if is_in_time(case, sample[0])]
        if is_taken(case, labels) and kept:
            chosen.setdefault(json.dumps(relabel(case, labels), sort_keys=True, ensure_ascii=False), []).append(kept)
    return chosen


def merge_samples(pieces):
    """Times with the set of their values."""
    merged = {}
    for samples in pieces:
        for millis, value in samples:
            merged.setdefault(millis, set()).add(value)
    return merged


class SeriesMove(Move):
    """A move of series with milliseconds. The source's samples come by a reader that `migrate` does not use."""

    def source_totals(self):
        chosen = chosen_samples(self.case, self.read_source())
        self.merged = {labels: merge_samples(pieces) for labels, pieces in chosen.items()}
        totals = {"series": len(self.merged), "samples": sum(len(times) for times in self.merged.values())}
        totals["by series"] = {labels: [len(times), min(times), max(times)] for labels, times in self.merged.items()}
        totals["values"] = "those of the source"
        return totals

    def quipu_totals(self):
        found = self.read_quipu()
        totals = {"series": len(found), "samples": sum(len(samples) for samples in found.values())}
        totals["by series"] = {labels: [len(samples), min(samples)[0], max(samples)[0]] for labels, samples in found.items()}
        wrong = [(labels, millis, value, sorted(self.merged.get(labels, {}).get(millis, [])))
                 for labels, samples in found.items() for millis, value in samples if value not in self.merged.get(labels, {}).get(millis, set())]
        totals["values"] = f"{len(wrong)} other values, the first: {wrong[0]}" if wrong else "those of the source"
        return totals

    def read_quipu(self):
        return read_by_remote_read(self.quipu.http)


def read_by_remote_read(port):
    """Samples with the bits of their values of each series, by labels; stale markers and NaNs are among them."""
    body = wire.compress_snappy(wire.encode_read([(-2**50, 2**50, [("__name__", "!=", "")])]))
    answer = servers.request(port, "POST", "/api/v1/read", body=body, headers=READ_HEADERS)
    found = {}
    for labels, samples in wire.decode_read_response(answer.body)[0]:
        found[json.dumps(dict(labels), sort_keys=True, ensure_ascii=False)] = [tuple(sample) for sample in samples]
    return found


def read_by_range(port, span_millis=10**10):
    """The same by a range selector of an instant query, whose values are texts; stale markers are left out."""
    query = {"query": f'{EVERYTHING}[{span_millis}ms]', "time": END_MILLIS / 1000}
    answer = json.loads(servers.request(port, "GET", "/api/v1/query", query).text)
    found = {}
    for one in answer["data"]["result"]:
        key = json.dumps(one["metric"], sort_keys=True, ensure_ascii=False)
        found[key] = [(round(seconds * 1000), value) for seconds, value in one["values"]]
    return found


class PrometheusMove(SeriesMove):
    """Remote read of a Prometheus. Totals: range selectors, and remote read of whole series for stale markers."""

    name = "prometheus"

    def start_source(self):
        self.source = self.keep(servers.start_prometheus(self.directory / "source", self.options.peer))
        self.write_series(self.source.http, self.case["series"])

    def place(self):
        return [f"http://127.0.0.1:{self.source.http}"]

    def read_source(self):
        bits, texts = read_by_remote_read(self.source.http), read_by_range(self.source.http)
        for labels, samples in bits.items():
            shown = dict(texts.get(labels, []))
            is_stale = {millis for millis, value in samples if value == "7ff0000000000002"}
            if shown.keys() != {millis for millis, _ in samples} - is_stale:
                raise SystemExit(f"Prometheus' remote read and range selector differ: {labels}")
            # Its messages of samples have no sign of a zero, its texts have.
            bits[labels] = [(millis, NEGATIVE_ZERO if shown.get(millis) == "-0" else value) for millis, value in samples]
        return bits

    def quipu_totals(self):
        totals = super().quipu_totals()
        if not self.case["flags"]:
            texts = [read_by_range(server.http) for server in (self.quipu, self.source)]
            different = find_difference(*texts)
            totals["values"] = f"range selector {different}" if different else totals["values"]
        return totals


class BlocksMove(SeriesMove):
    """Blocks that promtool makes of OpenMetrics. Totals: range selectors of a Prometheus on the same blocks."""

    name = "prometheus-blocks"

    def start_source(self):
        blocks = self.directory / "source" / "data"
        lines = []
        for name in sorted({dict(one["labels"])["__name__"] for one in self.case["series"]}):
            lines.append(f"# TYPE {name} unknown\n")
            for one in self.case["series"]:
                labels = dict(one["labels"])
                if labels.pop("__name__") == name:
                    text = ",".join(f'{key}="{escape_text(value)}"' for key, value in labels.items())
                    lines += [f"{name}{{{text}}} {show(value)} {millis / 1000:.3f}\n" for millis, value in sorted(one["samples"], key=lambda sample: sample[0])]
        path = self.directory / "series.om"
        path.write_text("".join(lines) + "# EOF\n", encoding="utf-8")
        subprocess.run([servers.find_program("promtool"), "tsdb", "create-blocks-from", "openmetrics", path, blocks], check=True, stdout=subprocess.DEVNULL)
        self.source = self.keep(servers.start_prometheus(self.directory / "source", self.options.peer))

    def place(self):
        return [str(self.directory / "source" / "data")]

    def read_source(self):
        return read_by_range(self.source.http)

    def read_quipu(self):
        return read_by_range(self.quipu.http)


def escape_text(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def show(value):
    return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value) or repr(value)


class VictoriaMetricsMove(SeriesMove):
    """JSON lines of a VictoriaMetrics. Totals: its query of a range, and its number of series."""

    name = "victoriametrics"

    def start_source(self):
        self.source = self.keep(servers.start_victoriametrics(self.directory / "source", self.options.peer, "-search.latencyOffset=0s", "-search.disableCache"))
        self.write_series(self.source.http, self.case["series"])
        servers.request(self.source.http, "GET", "/internal/force_flush")
        count = json.loads(servers.request(self.source.http, "GET", "/api/v1/series/count").text)["data"][0]
        if count != len(self.case["series"]):
            raise SystemExit(f"VictoriaMetrics has {count} series instead of {len(self.case['series'])}")

    def place(self):
        return [f"http://127.0.0.1:{self.source.http}"]

    def read_source(self):
        return self.read_promapi(self.source.http)

    def read_quipu(self):
        return self.read_promapi(self.quipu.http)

    def read_promapi(self, port):
        """Samples by a range selector, in VictoriaMetrics' language."""
        prefix = "/metricsql" if port == self.quipu.http else ""
        query = {"query": f'{EVERYTHING}[{10**7}s]', "time": END_MILLIS // 1000, "nocache": 1}
        answer = json.loads(servers.request(port, "GET", prefix + "/api/v1/query", query).text)
        found = {}
        for one in answer["data"]["result"]:
            key = json.dumps(one["metric"], sort_keys=True, ensure_ascii=False)
            found[key] = [(round(seconds * 1000), str(float(value))) for seconds, value in one["values"]]
        return found


class VictoriaMetricsFilesMove(VictoriaMetricsMove):
    """Files of exports."""

    name = "victoriametrics-files"

    def place(self):
        path = "/api/v1/export/native" if self.case["format"] == "native" else "/api/v1/export"
        answer = servers.request(self.source.http, "GET", path, {"match[]": EVERYTHING})
        name = self.directory / "export"
        name.write_bytes(gzip.compress(answer.body) if self.case["is_compressed"] else answer.body)
        return [str(name)]


class QuipuMove(SeriesMove):
    """Another Quipu. Totals: its export of JSON lines."""

    name = "quipu"

    def start_source(self):
        self.source = self.start_quipu("source")
        self.write_series(self.source.http, self.case["series"])

    def place(self):
        return [f"http://127.0.0.1:{self.source.http}"]

    def read_source(self):
        return self.read_export(self.source.http)

    def read_quipu(self):
        return self.read_export(self.quipu.http)

    def read_export(self, port):
        answer = servers.request(port, "GET", "/api/v1/export", {"match[]": EVERYTHING})
        return {labels: [(millis, str(value)) for millis, value in samples] for labels, samples in read_json_lines(answer.text).items()}


class InfluxMove(Move):
    """InfluxQL of an InfluxDB. Totals: all rows of each policy, numbers of values by field, lists of names."""

    name = "influxdb"

    def start_source(self):
        self.source = self.keep(servers.start_influxdb(self.directory / "source", self.options.peer))
        for database in self.case["databases"]:
            self.query("CREATE DATABASE " + quoted(database["name"]) + f' WITH NAME {quoted(database["policies"][0]["name"])}')
            for policy in database["policies"]:
                if policy is not database["policies"][0]:
                    self.query(f"CREATE RETENTION POLICY {quoted(policy['name'])} ON {quoted(database['name'])} DURATION INF REPLICATION 1")
                self.write(database["name"], policy)

    def query(self, text, database=""):
        answer = servers.post_form(self.source.http, "/query", {"q": text, "db": database, "epoch": "ns"})
        found = json.loads(answer.text)
        if "error" in found or "error" in found["results"][0]:
            raise SystemExit(f"InfluxDB: {text}: {answer.text[:500]}")
        return found

    def write(self, database, policy):
        body = "".join(line + "\n" for line in policy["lines"])
        answer = servers.request(self.source.http, "POST", "/write", {"db": database, "rp": policy["name"]}, body=body)
        if answer.status not in (204, 400):
            raise SystemExit(f"InfluxDB: {answer.status} {answer.text[:500]}")

    def place(self):
        return [f"http://127.0.0.1:{self.source.http}"]

    def source_totals(self):
        return {database["name"]: self.read_database(self.source.http, database) for database in self.case["databases"]}

    def quipu_totals(self):
        return {database["name"]: self.read_database(self.quipu.http, database) for database in self.case["databases"]}

    def read_database(self, port, database):
        """Rows, numbers of values and names of a database."""
        name, found = database["name"], {}
        for policy in database["policies"]:
            place = f"{quoted(name)}.{quoted(policy['name'])}"
            rows = ask_influx(port, name, f"SELECT * FROM {place}./.*/ GROUP BY *")
            found[f"rows {policy['name']}"] = {name_of(one): rows_of(one) for one in rows}
            counts = ask_influx(port, name, f"SELECT count(*) FROM {place}./.*/")
            found[f"counts {policy['name']}"] = {one["name"]: dict(zip(one["columns"][1:], one["values"][0][1:])) for one in counts}
        policies = ask_influx(port, name, f"SHOW RETENTION POLICIES ON {quoted(name)}")
        found["policies"] = sorted([row[0], row[-1]] for one in policies for row in one["values"])
        for list_of in ("SHOW MEASUREMENTS", "SHOW FIELD KEYS", "SHOW TAG KEYS", "SHOW SERIES"):
            found[list_of] = {one.get("name", ""): sorted(map(str, one["values"])) for one in ask_influx(port, name, list_of)}
        return found


def quoted(name):
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def ask_influx(port, database, text):
    """Series of the one statement, or its error as a series."""
    answer = servers.request(port, "GET", "/query", {"q": text, "db": database, "epoch": "ns"})
    found = json.loads(answer.text, parse_float=float)
    found = found.get("results", [found])[0]
    return found.get("series", []) if "error" not in found else [{"name": "error", "columns": ["error"], "values": [[text, found["error"]]]}]


def name_of(series):
    """Measurement and tags of a series, without the tags that it does not have."""
    tags = {key: value for key, value in (series.get("tags") or {}).items() if value}
    return json.dumps([series["name"], tags], sort_keys=True, ensure_ascii=False)


def rows_of(series):
    """Rows of a series, with the values by column. Of equal times the order is not defined."""
    return sorted((dict(zip(series["columns"], row)) for row in series["values"]), key=lambda row: json.dumps(row, sort_keys=True))


class InfluxLinesMove(InfluxMove):
    """Lines in a file, as `influx_inspect export` writes it."""

    name = "influx-lines"

    def place(self):
        name = self.directory / "export.lp"
        lines = ["# INFLUXDB EXPORT: 1677-09-21T00:12:43Z - 2262-04-11T23:47:16Z", "# DDL"]
        lines += [f"CREATE DATABASE {database['name']} WITH NAME autogen" for database in self.case["databases"]]
        lines.append("# DML")
        for database in self.case["databases"]:
            for policy in database["policies"]:
                lines += [f"# CONTEXT-DATABASE:{database['name']}", f"# CONTEXT-RETENTION-POLICY:{policy['name']}", "# writing tsm data"]
                lines += policy["lines"]
        text = ("\n".join(lines) + "\n").encode()
        name.write_bytes(gzip.compress(text) if self.case["is_compressed"] else text)
        return [str(name)]


class RedisDumpMove(Move):
    """`quipu kv import` of a dump of Redis. Totals: counts by commands, and the digest of a Redis with Quipu's export."""

    is_replicated = False

    def start_source(self):
        self.source = self.keep(servers.start_redis(self.directory / "source", self.options.peer))
        self.client = redis.Client(self.source.redis)
        self.client.call_all(self.case["commands"])

    def copy(self):
        self.client.call("SAVE")
        return self.run_command("kv import", [self.options.binary, "kv", "import", self.directory / "source" / "dump.rdb", "--url", f"redis://127.0.0.1:{self.quipu.redis}"])

    def source_totals(self):
        return {"keys": redis.read_totals(self.client), "digests": redis.read_values(self.client), "groups": redis.read_groups(self.client, self.is_replicated),
                "digest": self.client.call("DEBUG", "DIGEST"), "functions": repr(self.client.call("FUNCTION", "LIST"))}

    def quipu_totals(self):
        client = redis.Client(self.quipu.redis)
        target = self.directory / "back"
        target.mkdir()
        failure = self.run_command("kv export", [self.options.binary, "kv", "export", target / "dump.rdb", "--url", f"redis://127.0.0.1:{self.quipu.redis}"])
        if failure:
            return {"keys": failure.quipu}
        again = self.keep(servers.start_redis(target, self.options.peer, "--dbfilename", "dump.rdb"))
        back = redis.Client(again.redis)
        return {"keys": redis.read_totals(client), "digests": redis.read_values(back), "groups": redis.read_groups(back, self.is_replicated),
                "digest": back.call("DEBUG", "DIGEST"), "functions": repr(client.call("FUNCTION", "LIST"))}


class RedisReplicaMove(RedisDumpMove):
    """`REPLICAOF` while the second half of the commands is under way."""

    is_replicated = True

    def start_source(self):
        self.source = self.keep(servers.start_redis(self.directory / "source", self.options.peer, "--repl-diskless-sync-delay", "0"))
        self.client = redis.Client(self.source.redis)
        self.commands = self.case["commands"]
        self.client.call_all(self.commands[:len(self.commands) // 2])

    def copy(self):
        quipu = redis.Client(self.quipu.redis)
        quipu.call("REPLICAOF", "127.0.0.1", self.source.redis)
        self.client.call_all(self.commands[len(self.commands) // 2:])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            info = parse_info(quipu.call("INFO", "replication"))
            mine = parse_info(self.client.call("INFO", "replication"))
            if info.get("master_link_status") == "up" and info.get("slave_repl_offset") == mine.get("master_repl_offset"):
                quipu.call("REPLICAOF", "NO", "ONE")
                quipu.close()
                return None
            time.sleep(0.01)
        return Difference(f"REPLICAOF is not done after 60 s: {info}", "can be copied", ("replica",))


def parse_info(text):
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


MOVES = {"prometheus": PrometheusMove, "prometheus-blocks": BlocksMove, "victoriametrics": VictoriaMetricsMove, "victoriametrics-files": VictoriaMetricsFilesMove,
         "quipu": QuipuMove, "influxdb": InfluxMove, "influx-lines": InfluxLinesMove, "redis-dump": RedisDumpMove, "redis-replica": RedisReplicaMove}
