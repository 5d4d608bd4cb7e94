"""Rounds of kill -9 under load through every protocol at once: what was acknowledged is there afterwards,
nothing is there that was not sent. `make test-kill`; some 20 minutes for 1,000 rounds.

    kill_rounds.py BINARY [--rounds 1000] [--seed 1] [--seconds 0.4] [--directory DIR]

Each protocol has a writer that numbers what it writes. Every 25 rounds all of it is read back and
compared, in the other rounds the newest part. The last line counts rounds, acknowledged writes, lost ones
and ones that were never sent.
"""

import argparse
import json
import random
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

import psycopg
import redis

START = 1_790_000_000_000  # milliseconds; 2026-09-21
BATCH = 20
FULL_EVERY = 25
TAIL = 4000


class Mismatch(Exception):
    pass


def request(url, body=None, patience=120):
    data = body.encode() if isinstance(body, str) else body
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=patience) as answer:
        return answer.read().decode()


LISTENERS = ["http", "redis", "postgres", "influx"]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Server:
    """The server as a child, ready on all its ports."""

    def __init__(self, binary, directory, flags):
        self.log = f"{directory}/server.log"
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS))))
        listeners = [f"--{name}-listen=127.0.0.1:{port}" for name, port in self.ports.items()]
        arguments = [binary, "serve", f"--data-dir={directory}/data", "--kv-durability=always", *listeners, *flags]
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT)
        self.url = f"http://127.0.0.1:{self.ports['http']}"
        deadline = time.time() + 60
        while not self.is_ready():
            if self.child.poll() is not None:
                raise Mismatch(f"the server ended with {self.child.returncode}: {self.tail()}")
            if deadline < time.time():
                raise Mismatch("the server does not start within a minute")
            time.sleep(0.01)

    def is_ready(self):
        try:
            request(f"{self.url}/-/ready")
            for port in self.ports.values():
                socket.create_connection(("127.0.0.1", port)).close()
            return True
        except (OSError, urllib.error.URLError):
            return False

    def sql(self):
        return psycopg.connect(host="127.0.0.1", port=self.ports["postgres"], user="quipu", dbname="quipu", autocommit=True)

    def keys(self, **options):
        return redis.Redis(port=self.ports["redis"], socket_timeout=60, **options)

    def tail(self):
        with open(self.log, "rb") as log:
            return log.read()[-1500:].decode(errors="replace")

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()


class Writer:
    """One client: everything below `acknowledged` is durable, nothing from `sent` on was sent."""

    name = ""

    def __init__(self):
        self.acknowledged = self.sent = 0

    def run(self, server):
        try:
            self.connect(server)
            while True:
                first = self.acknowledged
                self.sent = max(self.sent, first + BATCH)
                self.write(first, first + BATCH)
                self.acknowledged = first + BATCH
        except (OSError, urllib.error.URLError, redis.ConnectionError, redis.TimeoutError, psycopg.OperationalError):
            return
        except Exception as error:  # a refusal is a failure of the test
            if server.child.poll() is None:
                self.failure = f"{self.name}: {error!r}"

    failure = None

    def connect(self, server):
        self.server = server

    def check_range(self, found, first):
        """`found` are the numbers from `first` on that are there, in order."""
        if first < self.acknowledged:
            missing = set(range(first, self.acknowledged)) - set(found)
            if missing:
                raise Mismatch(f"{self.name}: {len(missing)} acknowledged ones are lost, the first is {min(missing)}")
        invented = [number for number in found if self.sent <= number]
        if invented:
            raise Mismatch(f"{self.name}: {invented[:5]} were never sent")


class Samples(Writer):
    """Samples of one series, whose values are their numbers."""

    metric = ""

    def check(self, server, is_full):
        first = 0 if is_full else max(0, self.acknowledged - TAIL)
        query = urllib.parse.urlencode({"match[]": self.metric, "start": (START + first) / 1000, "end": (START + self.sent + 10_000) / 1000})
        found = []
        for line in request(f"{server.url}/api/v1/export?{query}").splitlines():
            series = json.loads(line)
            for at, value in zip(series["timestamps"], series["values"]):
                if at - START != value:
                    raise Mismatch(f"{self.name}: {value} at {at}")
                found.append(int(value))
        if len(found) != len(set(found)):
            raise Mismatch(f"{self.name}: samples are there twice")
        self.check_range(found, first)


class LineProtocol(Samples):
    name, metric = "line protocol over HTTP", "lp_v"

    def write(self, first, end):
        lines = "".join(f"lp,host=a v={number} {START + number}\n" for number in range(first, end))
        request(f"{self.server.url}/write?precision=ms", lines)


class Prometheus(Samples):
    name, metric = "exposition text over HTTP", "prom_v"

    def write(self, first, end):
        lines = "".join(f'prom_v{{host="a"}} {number} {START + number}\n' for number in range(first, end))
        request(f"{self.server.url}/api/v1/import/prometheus", lines)


class JsonLines(Samples):
    name, metric = "JSON lines over HTTP", "json_v"

    def write(self, first, end):
        numbers = list(range(first, end))
        series = {"metric": {"__name__": "json_v"}, "values": numbers, "timestamps": [START + number for number in numbers]}
        request(f"{self.server.url}/api/v1/import", json.dumps(series))


class Copy(Samples):
    name, metric = "PostgreSQL COPY of samples", "copy_v"

    def connect(self, server):
        self.client = server.sql()

    def write(self, first, end):
        with self.client.cursor() as cursor, cursor.copy("COPY metrics FROM STDIN") as copy:
            copy.write("".join(f'copy_v{{host="a"}} {number} {START + number}\n' for number in range(first, end)))


class Hypertable(Samples):
    """Rows of a hypertable are samples, too."""

    name, metric = "PostgreSQL INSERT into a hypertable", "hyper_v"
    is_made = False

    def connect(self, server):
        self.client = server.sql()
        if not self.is_made:
            self.client.execute("CREATE TABLE IF NOT EXISTS hyper (time timestamptz NOT NULL, host text, v float8)")
            self.client.execute("SELECT create_hypertable('hyper', 'time', if_not_exists => true)")
            self.is_made = True

    def write(self, first, end):
        rows = ",".join(f"(to_timestamp({(START + number) / 1000}), 'a', {number})" for number in range(first, end))
        self.client.execute(f"INSERT INTO hyper VALUES {rows}")


class Table(Writer):
    name = "PostgreSQL INSERT into a table"

    def connect(self, server):
        self.client = server.sql()
        self.client.execute("CREATE TABLE IF NOT EXISTS heap (n int8, text text)")
        # A statement that was not acknowledged may have been executed.
        there = self.client.execute("SELECT count(*) FROM heap").fetchone()[0]
        self.acknowledged = self.sent = there

    def write(self, first, end):
        rows = ",".join(f"({number}, 'row {number}')" for number in range(first, end))
        self.client.execute(f"INSERT INTO heap VALUES {rows}")

    def check(self, server, is_full):
        if self.sent == 0:
            return
        with server.sql() as client:
            first = 0 if is_full else max(0, self.acknowledged - TAIL)
            rows = client.execute(f"SELECT n, text FROM heap WHERE n >= {first} ORDER BY n").fetchall()
        found = [number for number, _ in rows]
        if any(text != f"row {number}" for number, text in rows) or len(found) != len(set(found)):
            raise Mismatch(f"{self.name}: other rows than were inserted")
        if len(found) % BATCH:
            raise Mismatch(f"{self.name}: a part of a statement")
        self.check_range(found, first)


class Keys(Writer):
    """A list, a counter and strings; each batch is one transaction."""

    name = "Redis transactions"

    def connect(self, server):
        self.client = server.keys()
        there = self.client.llen("list")
        self.acknowledged = self.sent = there

    def write(self, first, end):
        with self.client.pipeline(transaction=True) as batch:
            batch.rpush("list", *range(first, end))
            batch.incrby("counter", end - first)
            batch.hset("hash", mapping={f"f{number % 1000}": number for number in range(first, end)})
            batch.set(f"s{first % 10_000}", first)
            batch.execute()

    def check(self, server, is_full):
        client = server.keys()
        length, counter = client.llen("list"), int(client.get("counter") or 0)
        if length != counter or length % BATCH:
            raise Mismatch(f"{self.name}: a list of {length}, a counter of {counter}")
        first = 0 if is_full else max(0, length - TAIL)
        found = [int(number) for number in client.lrange("list", first, -1)]
        if found != list(range(first, length)):
            raise Mismatch(f"{self.name}: the list has other elements")
        fields = {int(field[1:]): int(value) for field, value in client.hgetall("hash").items()}
        for field, value in fields.items():
            expected = (length - 1 - field) // 1000 * 1000 + field
            if value != expected:
                raise Mismatch(f"{self.name}: field {field} is {value}, not {expected}")
        self.check_range(found, first)


class TimeSeries(Samples):
    name = "Redis TS.ADD"

    def connect(self, server):
        self.client = server.keys()

    def write(self, first, end):
        with self.client.pipeline(transaction=False) as batch:
            for number in range(first, end):
                batch.execute_command("TS.ADD", "ts", START + number, number, "ON_DUPLICATE", "LAST")
            batch.execute()

    def check(self, server, is_full):
        client = server.keys()
        if not client.exists("ts"):
            if self.acknowledged:
                raise Mismatch(f"{self.name}: the series is lost")
            return
        first = 0 if is_full else max(0, self.acknowledged - TAIL)
        rows = client.execute_command("TS.RANGE", "ts", START + first, "+")
        if any(int(at) - START != float(value) for at, value in rows):
            raise Mismatch(f"{self.name}: another value")
        self.check_range([int(float(value)) for _, value in rows], first)


class Socket(Samples):
    """Line protocol over TCP is not acknowledged: nothing may be invented or changed."""

    name, metric = "line protocol over TCP", "tcp_v"

    def connect(self, server):
        self.stream = socket.create_connection(("127.0.0.1", server.ports["influx"]))
        self.next = self.sent

    def write(self, first, end):
        self.sent = self.next + BATCH
        self.stream.sendall("".join(f"tcp v={number} {(START + number) * 1_000_000}\n" for number in range(self.next, self.sent)).encode())
        self.next = self.sent
        time.sleep(0.001)

    def check_range(self, found, first):
        self.acknowledged = 0
        super().check_range(found, first)
        self.acknowledged = 0


WRITERS = [LineProtocol, Prometheus, JsonLines, Copy, Hypertable, Table, Keys, TimeSeries, Socket]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.4, help="load of a round, at most")
    parser.add_argument("--directory", help="where the store is; a temporary directory otherwise")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    writers = [writer() for writer in WRITERS]
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.directory or temporary
        flags = ["--wal-size=4MiB", "--head-size=16MiB", "--future-retention=10y"]
        began = time.time()
        for number in range(options.rounds + 1):
            server = Server(options.binary, directory, flags)
            try:
                is_last = number == options.rounds
                for writer in writers:
                    writer.check(server, is_last or number % FULL_EVERY == 0)
                if is_last:
                    break
                threads = [threading.Thread(target=writer.run, args=(server,)) for writer in writers]
                for thread in threads:
                    thread.start()
                time.sleep(chance.uniform(0.02, options.seconds))
                server.kill()
                for thread in threads:
                    thread.join()
                failures = [writer.failure for writer in writers if writer.failure]
                if failures:
                    raise Mismatch("; ".join(failures))
            except Mismatch as error:
                server.kill()
                sys.exit(f"round {number}, seed {options.seed}: {error}\n{server.tail()}")
            if number % FULL_EVERY == 0:
                counts = ", ".join(f"{writer.sent}" for writer in writers)
                print(f"round {number}, {time.time() - began:.0f} s; sent: {counts}", flush=True)
        server.kill()
        for writer in writers:
            print(f"{writer.name}: {options.rounds} rounds, {writer.sent} sent, {writer.acknowledged} acknowledged, 0 lost, 0 invented")


if __name__ == "__main__":
    main()
