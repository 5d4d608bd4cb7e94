#!/usr/bin/env python3
"""Makes a golden store: what one version of Quipu leaves on disk, and what it answered from it.

    make.py BINARY NAME

writes NAME.tar.gz beside this file: `store/`, the data directory as a kill left it (parts, indexes, rows
that are in the log alone), and `expected.json`, what that version said just before. Whatever the version
does not know yet (histograms, keys, tables) is left out, and `expected.json` has nothing of it.

Stores are never made anew: a later version must open what an earlier one wrote.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HOSTS, FIELDS = 6, 4
# 2026-08-30 00:00 UTC: rows go over the end of a month, and of a week.
START = 1_788_048_000


class Ended(Exception):
    """A binary that ended instead of getting ready: its status, and the last line that it said."""

    def __init__(self, status, words):
        super().__init__(f"status {status}: {words}")
        self.status, self.words = status, words


class Server:
    """The binary as a child."""

    def __init__(self, binary, directory):
        self.ports = [free_port() for _ in range(3)]
        self.url = f"http://127.0.0.1:{self.ports[0]}"
        known = subprocess.run([binary, "serve", "--help"], capture_output=True, text=True).stdout
        flags = ["--data-dir", directory, "--http-listen", f"127.0.0.1:{self.ports[0]}"]
        self.has_keys = "--redis-listen" in known
        self.has_sql = "--postgres-listen" in known
        if self.has_keys:
            flags += ["--redis-listen", f"127.0.0.1:{self.ports[1]}"]
        if self.has_sql:
            flags += ["--postgres-listen", f"127.0.0.1:{self.ports[2]}"]
        if "--self-scrape-interval" in known:
            flags += ["--self-scrape-interval", "0"]
        self.said = tempfile.TemporaryFile()
        self.child = subprocess.Popen([binary, "serve", *flags], stdout=subprocess.DEVNULL, stderr=self.said)
        for _ in range(1200):
            if self.child.poll() is not None:
                raise Ended(self.child.returncode, self.last_line())
            try:
                self.get("/-/ready")
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        self.stop(signal.SIGKILL)
        raise Ended(None, "it does not get ready")

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as answer:
            return answer.read().decode()

    def post(self, path, body, headers=None):
        """The status of an answer."""
        request = urllib.request.Request(self.url + path, data=body.encode(), method="POST", headers=headers or {})
        try:
            return urllib.request.urlopen(request).status
        except urllib.error.HTTPError as error:
            print(f"  {path}: {error.code} {error.read().decode()[:120]}")
            return error.code

    def last_line(self):
        """What it said last, when it has ended."""
        with self.said as said:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def stop(self, how):
        self.child.send_signal(how)
        self.child.wait()
        self.said.close()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def rows(first, count, rng):
    """Line protocol: numbers of several kinds, some hosts with a hole."""
    lines = []
    for row in range(first, first + count):
        for host in range(HOSTS):
            if (row + host) % 17 == 0:
                continue
            fields = [f"f0={rng.randint(0, 100)}i", f"f1={rng.gauss(50, 10)!r}", f"f2={row * 1.5 + host}", f"f3={1 / (row + 1)!r}"]
            at = (START + row * 600) * 1_000_000_000 + host
            lines.append(f"cpu,host=h{host},région=eu\\ {host % 2} {','.join(fields[:FIELDS])} {at}")
    return "\n".join(lines) + "\n"


def samples_in(server, rng):
    """The first half is in parts when the server has stopped, the second one in the log."""
    server.post("/write", rows(0, 300, rng))
    old = "".join(f"old,meter=m{m} v={m * y} {(1_420_070_400 + y * 31_536_000) * 10**9}\n" for m in range(5) for y in range(10))
    server.post("/write", old)
    text = "".join(
        f'odd{{a="x\\"y",b="\\\\ \\n é"}} {value} {START * 1000 + at * 1000}\n'
        for at, value in enumerate(["1", "-0", "NaN", "+Inf", "-Inf", "5e-324", "1.7976931348623157e308", "0.1"])
    )
    server.post("/api/v1/import/prometheus", text)
    gone = "".join(f"gone,host=h{h} v={h} {START * 10**9 + r * 10**9}\n" for h in range(4) for r in range(50))
    server.post("/write", gone)


def histograms_in(server):
    """Whether it knows them."""
    lines = ""
    for at in range(20):
        one = {"schema": 1, "zero_threshold": 0.001, "zero_count": 2, "count": 9 + at, "sum": 12.5 * (at + 1), "positive": [[0, 4 + at], [3, 3]]}
        metric = {"__name__": "latency", "job": "a"}
        lines += json.dumps({"metric": metric, "histograms": [one], "histogram_timestamps": [(START + at * 15) * 1000]}) + "\n"
    return server.post("/api/v1/import", lines) // 100 == 2


def exemplars_in(server):
    text = "# TYPE hits counter\n"
    for at in range(5):
        text += f'hits_total{{path="/"}} {at} {START + at * 60} # {{trace_id="t{at}"}} 0.5 {START + at * 60}\n'
    text += f'hits_created{{path="/"}} {START - 60}\n# EOF\n'
    server.post("/api/v1/import/prometheus", text, {"Content-Type": "application/openmetrics-text; version=1.0.0"})


STATES = ["up", "down", 'half \\"up\\", ü', "up"]
INFLUXQL = [
    "SELECT count(state), last(state) FROM service GROUP BY host",
    "SELECT state, ok FROM service ORDER BY time DESC LIMIT 3",
    "SELECT n, v, v::string FROM meter ORDER BY time LIMIT 8",
    "SELECT max(n), min(n) FROM meter",
    "SHOW FIELD KEYS FROM meter",
]


def strings_in(server):
    lines = "".join(f'service,host=h{at % 2} state="{STATES[at % 4]}",ok=t {(START + at * 60) * 10**9}\n' for at in range(40))
    # Integers beyond float64, and a field that comes as text and as numbers.
    for at in range(20):
        number = (-1) ** at * (2**53 + 2**at * 1001)
        both = f'"text {at}"' if at % 3 == 0 else str(at)
        lines += f"meter,id=m n={number}i,v={both} {(START + at * 60) * 10**9}\n"
    return server.post("/write?db=shop", lines) // 100 == 2


POLICIES_ASKED = ["SHOW RETENTION POLICIES", "SHOW DATABASES", "SELECT * FROM valve"]


def policies_in(server):
    """Whether it knows retention policies."""
    for statement in ("CREATE DATABASE empty", "CREATE RETENTION POLICY week ON shop DURATION 7d REPLICATION 1"):
        server.post("/query", urllib.parse.urlencode({"q": statement, "db": "shop"}))
    return "week" in json.dumps(influxql(server, POLICIES_ASKED[0]))


def more_schema_in(server):
    """A field and a string that are in the log alone."""
    server.post("/write?db=shop", f'valve,id=v state="shut",turns=7i {START * 10**9}\n')


def influxql(server, query):
    """What InfluxQL's door answered; none where there is none."""
    try:
        asked = urllib.parse.urlencode({"q": query, "epoch": "s", "db": "shop"})
        return json.loads(server.get(f"/query?{asked}"))["results"]
    except (urllib.error.HTTPError, json.JSONDecodeError, KeyError):
        return None


def keys_in(server, count, tag):
    script = "".join(
        f"SET k:{tag}:{i} {'v' * (i % 90)}{i}\r\nHSET h:{tag} f{i} {i}\r\nRPUSH l:{tag} {i}\r\nZADD z:{tag} {i}.5 m{i}\r\nSADD s:{tag} {i}\r\n"
        for i in range(count)
    )
    script += f"XADD x:{tag} 1-1 a 1\r\nSET gone:{tag} 1\r\nDEL gone:{tag}\r\nTS.ADD ts:{tag} 1788048000000 4.5\r\n"
    return redis(server, script)


def redis(server, script):
    """What was answered, a reply a line as redis-cli prints them."""
    cli = ["redis-cli", "-p", str(server.ports[1])]
    return subprocess.run(cli, input=script.replace("\r", ""), capture_output=True, text=True).stdout


KEYS_ASKED = "\n".join(
    line
    for tag in ("a", "b")
    for line in (f"GET k:{tag}:37", f"HGET h:{tag} f11", f"LRANGE l:{tag} 0 -1", f"ZRANGE z:{tag} 0 -1 WITHSCORES",
                 f"SCARD s:{tag}", f"XRANGE x:{tag} - +", f"GET gone:{tag}", f"TS.RANGE ts:{tag} - +")
) + "\nDBSIZE\n"

TABLES = [
    "CREATE TABLE pets (id bigint PRIMARY KEY, name text NOT NULL, weight numeric(6,2), born date, tags jsonb)",
    "INSERT INTO pets VALUES (1, 'Ada', 3.25, '2020-02-29', '{\"a\": [1, 2]}'), (2, 'Bo', NULL, NULL, NULL), (3, 'Cy', 12, '1999-12-31', '{}')",
    "UPDATE pets SET weight = 4.5 WHERE id = 3",
    "DELETE FROM pets WHERE id = 2",
    "CREATE TABLE load (time timestamptz NOT NULL, host text, v double precision)",
    "SELECT create_hypertable('load', 'time')",
    "INSERT INTO load VALUES ('2026-08-30 00:00:00Z', 'h1', 1.5), ('2026-08-30 00:01:00Z', 'h1', 2.5)",
]
# Known since later: what is refused is left out.
VIEWS = ["CREATE VIEW heavy AS SELECT name FROM pets WHERE weight > 4", "SELECT add_retention_policy('load', INTERVAL '100 years')"]
MORE_TABLES = ["INSERT INTO pets VALUES (4, 'Di', 1, NULL, NULL)", "INSERT INTO load VALUES ('2026-09-30 00:00:00Z', 'h2', 3.5)"]
SQL_ASKED = [
    "SELECT * FROM pets ORDER BY id",
    "SELECT * FROM load ORDER BY time",
    "SELECT * FROM heavy",
    "SELECT count(*) FROM metrics WHERE name = 'cpu_f0'",
]


def sql(server, statement):
    """What psql printed; none where it failed."""
    psql = ["psql", "-h", "127.0.0.1", "-p", str(server.ports[2]), "-U", "quipu", "-AtX", "-v", "ON_ERROR_STOP=1", "-c", statement]
    done = subprocess.run(psql, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"  {statement[:60]}: {done.stderr.strip()[:120]}")
        return None
    return done.stdout


QUERIES = [
    "sum by (host) (avg_over_time(cpu_f1[1h]))",
    "count({__name__=~\"cpu_.*\"})",
    "max_over_time(cpu_f2[3d])",
    "rate(cpu_f2[1h])",
    "sum(old_v)",
    "histogram_quantile(0.9, latency)",
]


def expected(server, has):
    match = urllib.parse.quote('{__name__!=""}')
    said = {"made": has, "export": server.get(f"/api/v1/export?match[]={match}").splitlines(), "queries": {}}
    for query in QUERIES:
        asked = urllib.parse.urlencode({"query": query, "start": START, "end": START + 400 * 600, "step": 7200})
        said["queries"][query] = json.loads(server.get(f"/api/v1/query_range?{asked}"))["data"]["result"]
    asked = urllib.parse.urlencode({"query": "hits_total", "start": START - 1, "end": START + 600})
    try:
        said["exemplars"] = json.loads(server.get(f"/api/v1/query_exemplars?{asked}"))["data"]
    except urllib.error.HTTPError:
        pass
    if "strings" in has:
        asked = INFLUXQL + (POLICIES_ASKED if "policies" in has else [])
        said["influxql"] = {one: influxql(server, one) for one in asked}
    if "keys" in has:
        said["keys"] = redis(server, KEYS_ASKED)
    if "tables" in has:
        said["sql"] = {one: told for one in SQL_ASKED if (told := sql(server, one)) is not None}
    return said


def fill(binary, store):
    """Fills a store with all that the version knows, as a kill leaves it; what it said of it."""
    rng = random.Random(7)
    server = Server(binary, store)
    has = []
    samples_in(server, rng)
    exemplars_in(server)
    if histograms_in(server):
        has.append("histograms")
    if strings_in(server) and "half" in json.dumps(influxql(server, INFLUXQL[1])):
        has.append("strings")
        if policies_in(server):
            has.append("policies")
    if server.has_keys and "OK" in keys_in(server, 60, "a"):
        has.append("keys")
    if server.has_sql and all([sql(server, one) is not None for one in TABLES]):
        has.append("tables")
        all([sql(server, one) is not None for one in VIEWS])
    server.stop(signal.SIGTERM)
    server = Server(binary, store)
    gone = urllib.parse.quote('gone_v{host=~"h[12]"}')
    server.post(f"/api/v1/admin/tsdb/delete_series?match[]={gone}", "")
    server.post("/write", rows(300, 100, rng))
    if "policies" in has:
        more_schema_in(server)
    if "keys" in has:
        keys_in(server, 30, "b")
    if "tables" in has:
        all([sql(server, one) is not None for one in MORE_TABLES])
    told = expected(server, has)
    server.stop(signal.SIGKILL)
    return told


def main():
    binary, name = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as scratch:
        store = os.path.join(scratch, "store")
        told = fill(binary, store)
        Path(scratch, "expected.json").write_text(json.dumps(told, ensure_ascii=False))
        out = Path(__file__).parent / f"{name}.tar.gz"
        with tarfile.open(out, "w:gz", compresslevel=9) as tar:
            tar.add(store, "store")
            tar.add(Path(scratch, "expected.json"), "expected.json")
    print(f"{out.name}: {out.stat().st_size} bytes, {len(told['export'])} series, {' '.join(told['made'])}")


if __name__ == "__main__":
    main()
