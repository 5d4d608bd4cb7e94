"""A whole move, as docs/migrate.md's morning tells it, from a real VictoriaMetrics, Prometheus and InfluxDB
to the Quipu binary that the first argument names. `make test-moving-in`; minutes.

The old server has a history of hosts and their CPUs, as TSBS makes it. Then Quipu is put before it with
--legacy, clients write to Quipu alone, dashboards ask all the time, the history is copied meanwhile, the
copy is killed in its middle and run again, a comparison is made, the old server is killed, and Quipu is
started without --legacy. In each state every question must get the answer that a Quipu gives that has had
all from the beginning.

--hosts, --hours and --interval say how much there is, --kinds of whom.
"""

import argparse
import json
import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

FIELDS = ["usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq", "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice"]
REGIONS = ["eu-west-1", "us-east-1", "ap-south-1"]
START = 1_788_048_000  # 2026-08-30 00:00 UTC


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url, patience=60):
    with urllib.request.urlopen(url, timeout=patience) as answer:
        return answer.read().decode()


def post(url, body, patience=60):
    request = urllib.request.Request(url, data=body.encode(), method="POST")
    with urllib.request.urlopen(request, timeout=patience) as answer:
        return answer.read().decode()


class Program:
    """A server as a child, with its log in a file."""

    def __init__(self, arguments, url, ready, log):
        self.url, self.log = url, log
        self.child = subprocess.Popen(arguments, stdout=open(log, "ab"), stderr=subprocess.STDOUT)
        for _ in range(1200):
            if self.child.poll() is not None:
                sys.exit(f"{arguments[0]} ended: {open(log).read()[-800:]}")
            try:
                get(url + ready, 5)
                return
            except (urllib.error.URLError, ConnectionError, socket.timeout):
                time.sleep(0.05)
        sys.exit(f"{arguments[0]} does not come up: {log}")

    def end(self, how=signal.SIGKILL):
        self.child.send_signal(how)
        self.child.wait()


class History:
    """Rows of hosts and their CPUs: walks, as TSBS makes them."""

    def __init__(self, hosts, interval, seed):
        self.rng, self.interval = random.Random(seed), interval
        self.values = [[self.rng.randint(0, 100) for _ in FIELDS] for _ in range(hosts)]
        self.tags = [f"hostname=host_{h},region={REGIONS[h % 3]},rack={h % 7}" for h in range(hosts)]
        self.row = 0

    def at(self, row):
        return START + row * self.interval

    def next_rows(self, count):
        """The next rows, a list of (seconds, tags, values)."""
        rows = []
        for _ in range(count):
            for host, values in enumerate(self.values):
                for field in range(len(values)):
                    values[field] = min(100, max(0, values[field] + self.rng.choice([-2, -1, 0, 1, 2])))
                rows.append((self.at(self.row), self.tags[host], list(values)))
            self.row += 1
        return rows


def lines(rows):
    return "".join(
        f"cpu,{tags} {','.join(f'{name}={value}i' for name, value in zip(FIELDS, values))} {at}\n" for at, tags, values in rows
    )


def write_lines(url, rows):
    for first in range(0, len(rows), 5000):
        post(f"{url}/write?precision=s", lines(rows[first : first + 5000]))


# Each kind: how it is started with a history, and the words of --legacy and `quipu migrate`.


def victoriametrics(scratch, rows):
    port = free_port()
    flags = [f"-httpListenAddr=127.0.0.1:{port}", f"-storageDataPath={scratch}/victoria", "-retentionPeriod=100y", "-search.latencyOffset=0s", "-search.disableCache"]
    server = Program([program("victoria-metrics"), *flags], f"http://127.0.0.1:{port}", "/health", f"{scratch}/old.log")
    write_lines(server.url, rows)
    get(server.url + "/internal/force_flush")
    return server


def prometheus(scratch, rows):
    text = []
    for column, name in enumerate(FIELDS):
        text.append(f"# TYPE cpu_{name} gauge\n")
        for tags in sorted({tags for _, tags, _ in rows}):
            labels = ",".join('{}="{}"'.format(*tag.split("=")) for tag in tags.split(","))
            text.extend(f"cpu_{name}{{{labels}}} {values[column]} {at}\n" for at, of, values in rows if of == tags)
    path = f"{scratch}/history.om"
    with open(path, "w") as file:
        file.writelines(text)
        file.write("# EOF\n")
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", path, f"{scratch}/prometheus"], check=True, stdout=subprocess.DEVNULL)
    os.remove(path)
    with open(f"{scratch}/prometheus.yml", "w") as file:
        file.write("global: {scrape_interval: 1h}\n")
    port = free_port()
    flags = [f"--web.listen-address=127.0.0.1:{port}", f"--storage.tsdb.path={scratch}/prometheus", f"--config.file={scratch}/prometheus.yml", "--storage.tsdb.retention.time=100y"]
    return Program([program("prometheus"), *flags], f"http://127.0.0.1:{port}", "/-/ready", f"{scratch}/old.log")


def influxdb(scratch, rows):
    port, inner = free_port(), free_port()
    with open(f"{scratch}/influxdb.conf", "w") as file:
        file.write(
            f'reporting-disabled = true\nbind-address = "127.0.0.1:{inner}"\n[meta]\ndir = "{scratch}/influx/meta"\n[data]\ndir = "{scratch}/influx/data"\n'
            f'wal-dir = "{scratch}/influx/wal"\n[http]\nbind-address = "127.0.0.1:{port}"\nlog-enabled = false\n[monitor]\nstore-enabled = false\n'
        )
    server = Program([program("influxd"), "-config", f"{scratch}/influxdb.conf"], f"http://127.0.0.1:{port}", "/ping", f"{scratch}/old.log")
    post(f"{server.url}/query?q=CREATE+DATABASE+tsbs", "")
    for first in range(0, len(rows), 5000):
        post(f"{server.url}/write?db=tsbs&precision=s", lines(rows[first : first + 5000]))
    return server


KINDS = {"victoriametrics": victoriametrics, "prometheus": prometheus, "influxdb": influxdb}


def program(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/bin")
    return found or sys.exit(f"{name} is not installed")


class Quipu(Program):
    def __init__(self, binary, directory, log, port, legacy=None):
        flags = ["--data-dir", directory, "--http-listen", f"127.0.0.1:{port}", "--redis-listen", "", "--postgres-listen", "", "--self-scrape-interval", "0"]
        flags += ["--legacy", legacy] if legacy else []
        super().__init__([binary, "serve", *flags], f"http://127.0.0.1:{port}", "/-/ready", log)


class Writer(threading.Thread):
    """Clients: each row to the server that has all, and to the new one, again until it has taken it."""

    def __init__(self, history, database, truth, subject):
        super().__init__(daemon=True)
        self.history, self.database, self.truth, self.subject = history, database, truth, subject
        self.written, self.is_over, self.failure = history.row, False, None

    def run(self):
        try:
            while not self.is_over:
                text = lines(self.history.next_rows(1))
                post(f"{self.truth.url}/write?precision=s{self.database}", text)
                while not self.is_over and not self.is_taken(text):
                    time.sleep(0.05)
                self.written = self.history.row
                time.sleep(0.05)
        except Exception as error:  # noqa: BLE001: told by who waits for it
            self.failure = error

    def is_taken(self, text):
        """Whether the new server has it; it may be away just now."""
        try:
            post(f"{self.subject.url}/write?precision=s{self.database}", text)
            return True
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, ConnectionError):
            return False


QUERIES = [
    ("max(max_over_time(cpu_usage_user{{hostname=~'host_1|host_2'{more}}}[5m])) by (hostname)", 300),
    ("avg(avg_over_time(cpu_usage_user{{{more}}}[1h])) by (hostname)", 3600),
    ("max(max_over_time({{__name__=~'cpu_usage_(user|system|idle|nice|iowait)',hostname=~'host_[12]'{more}}}[1h])) by (__name__)", 3600),
    ("topk(3, sum by (hostname) (cpu_usage_user{{{more}}}))", 1800),
    ("count(cpu_usage_idle{{region='eu-west-1'{more}}} > 50)", 600),
    ("sum by (region, rack) (cpu_usage_steal{{{more}}})", 600),
    ("quantile_over_time(0.9, cpu_usage_guest{{hostname='host_0'{more}}}[30m])", 600),
    ("increase(cpu_usage_nice{{hostname='host_3'{more}}}[2h])", 1800),
    ("stddev by (rack) (cpu_usage_irq{{{more}}}) / on (rack) avg by (rack) (cpu_usage_softirq{{{more}}})", 3600),
]
INFLUXQL = [
    "SELECT mean(usage_user) FROM cpu WHERE {time} GROUP BY time(1h), hostname",
    "SELECT max(usage_user), max(usage_idle) FROM cpu WHERE hostname = 'host_1' AND {time} GROUP BY time(5m)",
    "SELECT * FROM cpu WHERE hostname = 'host_2' AND usage_user > 90 AND {time}",
    "SELECT count(usage_irq) FROM cpu WHERE {time} GROUP BY region",
]


class Dashboards:
    """What is asked, and compared."""

    def __init__(self, kind, subject, truth):
        self.kind, self.subject, self.truth, self.asked = kind, subject, truth, 0
        self.more = ",db='tsbs'" if kind == "influxdb" else ""

    def paths(self, last):
        for query, step in QUERIES:
            asked = {"query": query.format(more=self.more), "start": START, "end": last, "step": step, "nocache": 1}
            yield "/api/v1/query_range?" + urllib.parse.urlencode(asked)
        for at in (START + 3600, START + (last - START) // 2, last):
            yield "/api/v1/query?" + urllib.parse.urlencode({"query": f"sum by (rack) (cpu_usage_user{{hostname!=''{self.more}}})", "time": at})
        between = urllib.parse.urlencode({"start": START, "end": last})
        yield f"/api/v1/labels?{between}"
        yield f"/api/v1/label/hostname/values?{between}"
        yield f"/api/v1/series?match[]=cpu_usage_user&{between}"
        if self.kind == "influxdb":
            when = f"time >= {START}s AND time <= {last}s"
            for query in INFLUXQL:
                yield "/query?" + urllib.parse.urlencode({"db": "tsbs", "epoch": "s", "q": query.format(time=when)})

    def compare(self, state, last):
        for path in self.paths(last):
            expected, found = json.loads(get(self.truth.url + path)), json.loads(get(self.subject.url + path))
            if found.get("isPartial"):
                sys.exit(f"{state}: {urllib.parse.unquote(path)} is partial: {found.get('warnings')}")
            if not same(plain(expected), plain(found)):
                sys.exit(f"{state}: {urllib.parse.unquote(path)}\n  expected {json.dumps(expected)[:600]}\n  found    {json.dumps(found)[:600]}")
            self.asked += 1


def plain(answer):
    """What counts of an answer, lists of series in one order."""
    data = answer.get("data", answer.get("results"))
    if isinstance(data, dict) and "result" in data:
        data = data["result"]
    if not data:
        sys.exit(f"an answer says nothing: {json.dumps(answer)[:300]}")
    return sorted(data, key=lambda one: json.dumps(one.get("metric", one) if isinstance(one, dict) else one, sort_keys=True))


def same(a, b):
    """Whether two answers are the same, but for the last digits of sums."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if a == b:
        return True
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-12)
    except (TypeError, ValueError):
        return False


class Move:
    """One kind's move, and the states that it goes through."""

    def __init__(self, binary, kind, arguments, scratch):
        self.binary, self.kind, self.scratch = binary, kind, scratch
        self.history = History(arguments.hosts, arguments.interval, 7)
        rows = self.history.next_rows(arguments.hours * 3600 // arguments.interval)
        self.samples = len(rows) * len(FIELDS)
        database = "&db=tsbs" if kind == "influxdb" else ""
        self.old = KINDS[kind](scratch, rows)
        self.truth = Quipu(binary, f"{scratch}/truth", f"{scratch}/truth.log", free_port())
        for first in range(0, len(rows), 5000):
            post(f"{self.truth.url}/write?precision=s{database}", lines(rows[first : first + 5000]))
        self.legacy = f"url={self.old.url} kind={kind} until={self.history.at(self.history.row)}"
        self.port = free_port()
        self.new = Quipu(binary, f"{scratch}/new", f"{scratch}/new.log", self.port, self.legacy)
        self.writer = Writer(self.history, database, self.truth, self.new)
        self.board = Dashboards(kind, self.new, self.truth)
        self.writer.start()

    def compare(self, state):
        before = time.monotonic()
        self.board.compare(state, self.history.at(self.writer.written - 1))
        if self.writer.failure:
            sys.exit(f"{state}: clients cannot write: {self.writer.failure!r}")
        print(f"  {state}: {time.monotonic() - before:.1f} s", flush=True)

    def restart(self, how, legacy):
        """The clients write on meanwhile."""
        self.new.end(how)
        self.new = Quipu(self.binary, f"{self.scratch}/new", f"{self.scratch}/new.log", self.port, legacy)
        self.writer.subject = self.board.subject = self.new

    def command(self, *words):
        return [self.binary, "migrate", *words, self.kind, self.old.url, "--url", self.new.url]

    def copy(self, *flags):
        command = [*self.command(), "--progress", f"{self.scratch}/move.progress", *flags]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self):
        self.compare("right after: all history in the old server")
        copy = self.copy("--rate", str(self.samples // 12))
        rounds = 0
        while rounds < 3 and copy.poll() is None:
            rounds += 1
            self.compare(f"while it is copied, round {rounds}")
        was_killed = copy.poll() is None
        copy.kill()
        said = copy.communicate()[0]
        if not was_killed:
            sys.exit(f"the copy ended before it could be killed: {said[-800:]}")
        self.compare("half and half: the copy was killed")
        self.restart(signal.SIGKILL, self.legacy)
        self.compare("half and half, after kill -9 of Quipu")
        copy = self.copy()
        said = copy.communicate()[0]
        if copy.returncode != 0:
            sys.exit(f"migrate: {said[-800:]}")
        self.compare("long after: all is copied")
        verify = subprocess.run(self.command("verify"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if verify.returncode != 0:
            sys.exit(f"verify: {verify.stdout[-800:]}")
        print(f"  verify: {verify.stdout.strip().splitlines()[-1]}")
        self.old.end()
        self.restart(signal.SIGTERM, None)
        self.compare("the old one killed, Quipu without --legacy")

    def end(self):
        self.writer.is_over = True
        for server in (self.old, self.new, self.truth):
            server.child.kill()
            server.child.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--hours", type=int, default=72)
    parser.add_argument("--interval", type=int, default=60, help="seconds")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.binary)
    for kind in arguments.kinds:
        print(kind, flush=True)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            move = Move(binary, kind, arguments, scratch)
            try:
                move.run()
            finally:
                move.end()
            print(f"{kind}: {move.samples} samples moved, {move.board.asked} answers compared, 0 differ", flush=True)
    print(f"{len(arguments.kinds)} passed, 0 failed")


if __name__ == "__main__":
    main()
