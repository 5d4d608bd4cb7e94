"""Asks a hypertable of Quipu and an ordinary table of PostgreSQL with the same rows the same, and says where they
answer otherwise: `make test-sql`.

    postgres_hypertables_differential.py BINARY [--seed N] [--count N] [--show N]

Rows come late and early, in many partitions, without some of their labels and values; between questions rows are
added and deleted, and what is in memory is written to parts. Numbers are compared to nine digits: sums depend on
their order. What PostgreSQL calls an overflow is infinite here, and not compared.
"""

import argparse
import collections
import datetime
import decimal
import math
import random
import sys
import urllib.request

import psycopg

from postgres_differential import postgresql, quipu_by_both

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
HOSTS = ["a", "b", "c", "host_1", "host_2", "ü", "x y", "o'k", "%_", "A"]
REGIONS = ["eu", "us", None, "ap"]
LABELS = ["host", "region", "rack"]
VALUES = ["usage", "temp", "n"]
COLUMNS = "(time timestamptz NOT NULL, host text, region text, rack int, usage double precision, temp double precision, n bigint)"
BUCKETS = ["date_trunc('hour', time)", "date_trunc('day', time)", "date_trunc('minute', time)",
           "date_bin('7 minutes', time, '2000-01-01')"]
# What is ordered by is all that tells rows apart.
REST = {"host": "host, time DESC, region, rack", "host, region": "host, region, time DESC, rack",
        "region": "region, time DESC, host, rack"}


def literal(value):
    match value:
        case None:
            return "NULL"
        case datetime.datetime():
            return f"'{value.isoformat()}'"
        case float() if not math.isfinite(value):
            return f"'{value}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return repr(value)


class Statements:
    def __init__(self, rng):
        self.rng = rng
        self.seen = set()

    def one(self, *choices):
        return self.rng.choice(choices)

    def time(self):
        r = self.rng
        return START + datetime.timedelta(seconds=self.one(r.randint(-100, 3700), r.randint(0, 86_400 * 41), 60 * r.randint(0, 60)))

    def value(self):
        r = self.rng
        return self.one(None, math.nan, math.inf, -math.inf, 0.0, 0.25, 1e6, *[float(r.randint(-5, 5))] * 8,
                        *[round(r.uniform(-100, 100), 3)] * 8)

    def insert(self, count):
        rows = []
        for _ in range(count):
            key = (self.time(), self.one(*HOSTS), self.one(*REGIONS), self.one(1, 2, 3, None))
            if key in self.seen:
                continue
            self.seen.add(key)
            values = (self.value(), self.value(), self.one(None, self.rng.randint(-10**12, 10**12), self.rng.randint(-3, 3)))
            # A row of labels alone is no sample.
            rows.append(key + (values if any(one is not None for one in values) else (1.0, None, None)))
        return "INSERT INTO h VALUES " + ", ".join(f"({', '.join(map(literal, row))})" for row in rows)

    def delete(self):
        time, host = literal(self.time()), literal(self.one(*HOSTS))
        return "DELETE FROM h WHERE " + self.one(
            f"time < {time} AND host = {host}", f"host = {host} AND time BETWEEN {time} AND {literal(self.time())}",
            f"region = 'eu' AND time < {time} AND rack = 1", "host IN ('a', 'b') AND time >= '2024-02-05'")

    def condition(self):
        r = self.rng
        host, nothing = literal(self.one(*HOSTS, "none", "")), self.one("IS NULL", "IS NOT NULL")
        made = [
            lambda: f"time {self.one('>=', '<', '=', '>')} {literal(self.time())}",
            lambda: f"time BETWEEN {literal(self.time())} AND {literal(self.time())}",
            lambda: f"host {self.one('=', '<>', '>')} {host}", lambda: f"host IN ({host}, {literal(self.one(*HOSTS))})",
            lambda: "host LIKE " + literal(self.one("a%", "%o%", "host_%", "host\\_%", "_", "", "%")),
            lambda: f"region {nothing}", lambda: f"temp {nothing}",
            lambda: f"usage {self.one('>', '<', '>=', '=', '<>')} {self.one('0', '1', '-3', '50.5')}",
            lambda: f"rack {self.one('=', '<>', '<', '>=')} {r.randint(0, 4)}",
            lambda: "host ~ " + literal(self.one("^a", "o", "host_[12]$", "^$", "A|b")),
            lambda: f"({self.condition()} OR {self.condition()})", lambda: f"NOT ({self.condition()})",
            lambda: f"region NOT IN ('eu', '{self.one('us', 'zz')}')", lambda: f"n {self.one('>', '<', '=')} {r.randint(-3, 3)}",
        ]
        return r.choice(made)()

    def where(self):
        all_of = [self.condition() for _ in range(self.one(0, 1, 1, 2, 2, 3))]
        return " WHERE " + " AND ".join(all_of) if all_of else ""

    def aggregates(self):
        value = lambda: self.one(*VALUES)
        made = lambda: self.one("count(*)", f"count({value()})", f"min({value()})", f"max({value()})", f"sum({value()})",
                                f"avg({value()})", "count(DISTINCT host)", "min(host)", "max(time)", "min(time)")
        return f"{made()}, {made()}"

    def query(self):
        """A question, and whether its answer has an order."""
        r, where, aggregates = self.rng, self.where(), self.aggregates()
        by = ", ".join(r.sample(LABELS, r.randint(1, 2)))
        also = self.one("", ", host", ", host, region")
        columns = ", ".join(r.sample(LABELS + VALUES, r.randint(1, 4)))
        last = self.one(*REST)
        newest = f"SELECT time, usage FROM h AS t WHERE t.host = l.host ORDER BY time DESC, region, rack LIMIT {r.randint(1, 3)}"
        return self.one(
            (f"SELECT time, {columns} FROM h{where}", False),
            (f"SELECT time, {columns} FROM h{where} ORDER BY time {self.one('', 'DESC')}, host, region, rack "
             f"LIMIT {r.randint(0, 20)} OFFSET {self.one(0, 0, 3)}", True),
            (f"SELECT {aggregates} FROM h{where}", True),
            (f"SELECT {by}, {aggregates} FROM h{where} GROUP BY {by} ORDER BY {by}", True),
            (f"SELECT {self.one(*BUCKETS)} AS b{also}, {aggregates} FROM h{where} GROUP BY 1{also} ORDER BY 1{also}", True),
            (f"SELECT DISTINCT ON ({last}) {last}, time, usage, temp FROM h{where} ORDER BY {REST[last]}", True),
            (f"SELECT DISTINCT {self.one(*LABELS)} FROM h{where}", False),
            (f"SELECT time, usage FROM h{where} ORDER BY usage DESC NULLS LAST, time, host, region, rack LIMIT {r.randint(1, 9)}", True),
            (f"SELECT host, time, lag(usage) OVER w, row_number() OVER w FROM h{where} "
             "WINDOW w AS (PARTITION BY host ORDER BY time, region, rack) ORDER BY host, time, region, rack", True),
            (f"SELECT host, {aggregates} FROM h{where} GROUP BY host HAVING count(*) > {r.randint(0, 20)} ORDER BY 1", True),
            (f"SELECT l.host, x.time, x.usage FROM (SELECT DISTINCT host FROM h{where}) AS l CROSS JOIN LATERAL ({newest}) AS x "
             "ORDER BY 1, 2, 3", True),
        )


def plain(value):
    if isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
        value = float(value)
        return "NaN" if math.isnan(value) else value
    return value


def alike(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


def asked(connection, statement, is_ordered):
    try:
        cursor = connection.execute(statement)
    except psycopg.Error as error:
        return error.sqlstate, str(error).split("\n")[0]
    if not cursor.description:
        return None, [(cursor.rowcount,)]
    rows = [tuple(plain(cell) for cell in row) for row in cursor.fetchall()]
    return None, rows if is_ordered else sorted(rows, key=lambda row: [(cell is None, str(cell)) for cell in row])


def kind_of(one, other):
    if one[0] or other[0]:
        both = one[0] is not None and other[0] is not None
        overflows = one[0] is None and other[0] == "22003"
        return "both refuse" if both else "overflows" if overflows else "ONLY OURS REFUSES" if one[0] else "ONLY THEIRS REFUSES"
    same = len(one[1]) == len(other[1]) and all(map(alike, sum(one[1], ()), sum(other[1], ())))
    return "same" if same else "DIFFERENT"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4_000)
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    with quipu_by_both(options.binary) as (one, url), postgresql() as other:
        servers = [psycopg.connect(where, autocommit=True) for where in (one, other)]
        return compared(options, *servers, url)


def compared(options, ours, theirs, url):
    rng = random.Random(options.seed)
    statements, counts = Statements(rng), collections.Counter()

    def compare(number, statement, is_ordered=True):
        one, other = (asked(server, statement, is_ordered) for server in (ours, theirs))
        kind = kind_of(one, other)
        counts[kind] += 1
        if kind.isupper() and sum(counts[kind] for kind in counts if kind.isupper()) <= options.show:
            print(f"-- {kind} ({number})\n{statement}\n   ours:   {str(one)[:400]}\n   theirs: {str(other)[:400]}")

    for server in (ours, theirs):
        server.execute(f"CREATE TABLE h {COLUMNS}")
    ours.execute("SELECT create_hypertable('h', 'time')")
    compare(0, statements.insert(400))
    for number in range(options.count):
        chance = rng.random()
        if chance < 0.02:
            compare(number, statements.insert(20))
        elif chance < 0.024:
            compare(number, statements.delete())
        elif chance < 0.04:
            order = urllib.request.Request(f"{url}/internal/{rng.choice(['force_flush', 'force_flush', 'force_merge'])}", method="POST")
            urllib.request.urlopen(order).read()
        compare(number, *statements.query())
    print(dict(counts))
    return 1 if any(kind.isupper() for kind in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
