"""Random writes through every protocol, with duplicates, deletions, flushes, merges, restarts and kill -9,
compared with a model that is a Python dictionary. `make test-random-writes`; half a minute for 100,000.

    random_writes.py BINARY [--writes 100000] [--seed 1] [--directory DIR]

Samples of one series come by line protocol, exposition text, JSON lines, COPY and TCP in turn; the last
write of a time counts. Keys and rows of a table change besides. Everything is read back every 2,000 writes
and after each restart.
"""

import argparse
import json
import random
import struct
import sys
import tempfile
import time
import urllib.parse

from kill_rounds import Mismatch, Server, request

START = 1_790_000_000_000  # milliseconds; 2026-09-21
HOSTS = 40
TIMES = 3_000
CHECK_EVERY = 2_000
EXTREMES = [0.0, -0.0, 1.0, -1.0, 2.0**31, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 1e308, -1e308, 5e-324,
            -5e-324, 2.2250738585072014e-308, 0.1, 1 / 3, 1e-7, 123456789.125]


def bits(value):
    return struct.pack(">d", value)


class Random:
    """What is written next."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def value(self):
        kind = self.chance.random()
        if kind < 0.3:
            return self.chance.choice(EXTREMES)
        if kind < 0.6:
            return float(self.chance.randint(-1000, 1000))
        if kind < 0.8:
            return round(self.chance.uniform(-1e6, 1e6), 3)
        return self.chance.uniform(-1, 1) * 10.0 ** self.chance.randint(-300, 300)

    def time(self):
        # Some are a month back: another partition.
        month = 0 if self.chance.random() < 0.8 else 35 * 86_400_000
        return START + self.chance.randrange(TIMES) * 1000 - month

    def samples(self):
        count = self.chance.choice([1, 1, 2, 10, 60])
        return [(self.chance.randrange(HOSTS), self.time(), self.value()) for _ in range(count)]


class Samples:
    """Series by host, each a dictionary of times and values."""

    def __init__(self):
        self.model = {}

    def take(self, rows):
        for host, at, value in rows:
            self.model.setdefault(host, {})[at] = value

    def check(self, server):
        query = urllib.parse.urlencode({"match[]": "rw_v", "start": START / 1000 - 90 * 86_400, "end": START / 1000 + 90 * 86_400})
        found = {}
        for line in request(f"{server.url}/api/v1/export?{query}", patience=120).splitlines():
            series = json.loads(line, parse_int=float)  # the sign of -0 stays
            if set(series["metric"]) != {"__name__", "host"}:
                raise Mismatch(f"labels {series['metric']}")
            values = found.setdefault(int(series["metric"]["host"]), {})
            for at, value in zip(series["timestamps"], series["values"]):
                if at in values:
                    raise Mismatch(f"host {series['metric']['host']} has two samples at {at}")
                values[at] = float(value)
        expected = {host: values for host, values in self.model.items() if values}
        if found.keys() != expected.keys():
            raise Mismatch(f"hosts {sorted(found.keys() ^ expected.keys())}")
        for host, values in expected.items():
            compare(f"host {host}", {at: bits(value) for at, value in values.items()},
                    {at: bits(value) for at, value in found[host].items()})


def compare(name, expected, found):
    if expected == found:
        return
    lost = sorted(expected.keys() - found.keys())
    invented = sorted(found.keys() - expected.keys())
    changed = [key for key in expected.keys() & found.keys() if expected[key] != found[key]]
    example = (changed or lost or invented)[0]
    raise Mismatch(f"{name}: {len(lost)} lost, {len(invented)} invented, {len(changed)} changed; "
                   f"{example}: {found.get(example)!r} instead of {expected.get(example)!r}")


class Run:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.random = Random(options.seed)
        self.chance = self.random.chance
        self.samples, self.keys, self.rows = Samples(), {}, {}
        self.writes = self.restarts = self.deletions = self.next_row = 0
        self.start()

    def start(self):
        self.server = Server(self.options.binary, self.directory, ["--wal-size=4MiB", "--head-size=16MiB"])
        self.redis = self.server.keys(decode_responses=True)
        self.sql = self.server.sql()
        self.sql.execute("CREATE TABLE IF NOT EXISTS t (n int8, v float8, s text)")

    # Writes; each returns the samples that it wrote.

    def write_line_protocol(self, rows):
        lines = "".join(f"rw,host={host} v={value!r} {at}\n" for host, at, value in rows)
        request(f"{self.server.url}/write?precision=ms", lines)

    def write_exposition(self, rows):
        request(f"{self.server.url}/api/v1/import/prometheus", "".join(f'rw_v{{host="{host}"}} {value!r} {at}\n' for host, at, value in rows))

    def write_json(self, rows):
        lines = [json.dumps({"metric": {"__name__": "rw_v", "host": str(host)}, "values": [value], "timestamps": [at]}) for host, at, value in rows]
        request(f"{self.server.url}/api/v1/import", "\n".join(lines))

    def write_copy(self, rows):
        with self.sql.cursor() as cursor, cursor.copy("COPY metrics FROM STDIN") as copy:
            copy.write("".join(f'rw_v{{host="{host}"}} {value!r} {at}\n' for host, at, value in rows))

    def write_samples(self):
        rows = self.random.samples()
        write = self.chance.choice([self.write_line_protocol, self.write_exposition, self.write_json, self.write_copy])
        write(rows)
        self.samples.take(rows)
        self.writes += len(rows)

    def write_keys(self):
        kind, number = self.chance.choice("shlz"), self.chance.randrange(200)
        key, value = f"{kind}{number}", str(self.chance.randint(-10**12, 10**12))
        if self.chance.random() < 0.1:
            self.redis.delete(key)
            self.keys.pop(key, None)
        elif kind == "s":
            self.redis.set(key, value)
            self.keys[key] = value
        elif kind == "h":
            field = f"f{self.chance.randrange(20)}"
            self.redis.hset(key, field, value)
            self.keys.setdefault(key, {})[field] = value
        elif kind == "l":
            self.redis.rpush(key, value)
            self.keys.setdefault(key, []).append(value)
        else:
            self.redis.zadd(key, {value: int(value)})
            self.keys.setdefault(key, {})[value] = float(value)
        self.writes += 1

    def write_row(self):
        action = self.chance.random()
        if action < 0.7 or not self.rows:
            number, value = self.next_row, self.random.value()
            self.next_row += 1
            self.sql.execute("INSERT INTO t VALUES (%s, %s, %s)", (number, value, f"row {number}"))
            self.rows[number] = (bits(value), f"row {number}")
        else:
            number = self.chance.choice(list(self.rows))
            if action < 0.85:
                self.sql.execute("DELETE FROM t WHERE n = %s", (number,))
                del self.rows[number]
            else:
                value = self.random.value()
                self.sql.execute("UPDATE t SET v = %s WHERE n = %s", (value, number))
                self.rows[number] = (bits(value), self.rows[number][1])
        self.writes += 1

    def delete_series(self):
        host = self.chance.randrange(HOSTS)
        request(f"{self.server.url}/api/v1/admin/tsdb/delete_series?" + urllib.parse.urlencode({"match[]": f'rw_v{{host="{host}"}}'}), "")
        self.samples.model.pop(host, None)
        self.deletions += 1

    def restart(self):
        self.sql.close()
        if self.chance.random() < 0.5:
            self.server.kill()
        else:
            self.server.child.terminate()
            self.server.child.wait()
        self.restarts += 1
        self.start()
        self.check()

    def order(self, path):
        request(f"{self.server.url}{path}", "")

    def check(self):
        self.samples.check(self.server)
        found = {}
        for key in self.redis.keys("*"):
            kind = key[0]
            if kind == "s":
                found[key] = self.redis.get(key)
            elif kind == "h":
                found[key] = self.redis.hgetall(key)
            elif kind == "l":
                found[key] = self.redis.lrange(key, 0, -1)
            else:
                found[key] = dict(self.redis.zrange(key, 0, -1, withscores=True))
        compare("keys", self.keys, found)
        rows = self.sql.execute("SELECT n, v, s FROM t").fetchall()
        if len(rows) != len({row[0] for row in rows}):
            raise Mismatch("a row is there twice")
        compare("rows", self.rows, {number: (bits(value), text) for number, value, text in rows})

    def run(self):
        began, checked = time.time(), 0
        while self.writes < self.options.writes:
            action = self.chance.random()
            if action < 0.55:
                self.write_samples()
            elif action < 0.8:
                self.write_keys()
            elif action < 0.99:
                self.write_row()
            elif action < 0.993:
                self.delete_series()
            elif action < 0.996:
                self.order("/internal/force_flush")
            elif action < 0.998:
                self.order("/internal/force_merge")
            else:
                self.restart()
            if CHECK_EVERY <= self.writes - checked:
                checked = self.writes
                self.check()
                print(f"{self.writes} writes, {self.restarts} restarts, {time.time() - began:.0f} s", flush=True)
        self.restart()
        self.server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--writes", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", help="where the store is; a temporary directory otherwise")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run = Run(options, options.directory or temporary)
        try:
            run.run()
        except Mismatch as error:
            run.server.kill()
            sys.exit(f"after {run.writes} writes, seed {options.seed}: {error}\n{run.server.tail()}")
        print(f"{run.writes} writes, {run.deletions} deletions, {run.restarts} restarts: 0 lost, 0 changed, 0 invented")


if __name__ == "__main__":
    main()
