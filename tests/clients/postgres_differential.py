"""Asks Quipu and PostgreSQL the same, and says where they answer otherwise: `make test-sql`.

    postgres_differential.py BINARY [--seed N] [--count N] [--show N]

Both servers are started here, in temporary directories, and stopped again. Statements are made from a
seed, over the same rows in a table `metrics`. Numbers are compared in six digits: sums depend on
their order. Where one server refuses what the other answers, that is counted and shown, too.
"""

import argparse
import collections
import contextlib
import datetime
import glob
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import psycopg

NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)
NAMES = ["cpu", "cpu_total", "up", "http.requests", "Up"]
KEYS = ["host", "job", "path", "le"]
VALUES = ["a", "b", "A", "a<b", "a>b", "x_y", "x%y", "é", 'q"q', "back\\slash", "a b", "0.5", "+Inf",
          "line\nbreak", "a.b", "a+b", "(a)", "[a]", "^a", "a$", "b|c"]
NUMBERS = [0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, 1e9, 1.5e300, 1e-7, 1e15, 1e16, 123456789.125,
           math.nan, math.inf, -math.inf, 100.0, 7.0]


def rows_of(rng):
    seen, rows = set(), []
    while len(rows) < 400:
        labels = {key: rng.choice(VALUES) for key in rng.sample(KEYS, rng.randrange(4))}
        name = rng.choice(NAMES)
        at = NOON + datetime.timedelta(milliseconds=rng.choice([0, 1, 999, 1000, 60_000, 3_600_000, 86_400_000 * 40, -86_400_000]) * rng.randrange(1, 5))
        key = (name, json.dumps(labels, sort_keys=True), at)
        if key not in seen:
            seen.add(key)
            rows.append((at, name, rng.choice(NUMBERS), labels))
    return rows


def line(at, name, value, labels):
    quoted = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    pairs = [quoted(name)] + [f"{key}={quoted(one)}" for key, one in labels.items()]
    number = "NaN" if math.isnan(value) else "+Inf" if value == math.inf else "-Inf" if value == -math.inf else repr(value)
    return f"{{{','.join(pairs)}}} {number} {int(at.timestamp() * 1000)}\n"


class Statements:
    def __init__(self, rng):
        self.rng = rng

    def one(self, *choices):
        return self.rng.choice(choices)

    def text(self, text):
        return "'" + text.replace("'", "''") + "'"

    def string(self, depth=1):
        r = self.rng
        plain = [lambda: "name", lambda: f"(labels->>{self.text(r.choice(KEYS))})", lambda: self.text(r.choice(VALUES))]
        if depth <= 0:
            return r.choice(plain)()
        inner = lambda: self.string(depth - 1)
        made = [
            lambda: f"lower({inner()})", lambda: f"upper({inner()})", lambda: f"reverse({inner()})",
            lambda: f"substr({inner()}, {r.randrange(1, 4)}, {r.randrange(0, 4)})",
            lambda: f"replace({inner()}, 'a', 'zz')", lambda: f"split_part({inner()}, '_', {r.randrange(1, 3)})",
            lambda: f"left({inner()}, {r.randrange(-2, 4)})", lambda: f"right({inner()}, {r.randrange(-2, 4)})",
            lambda: f"({inner()} || {inner()})", lambda: f"concat({inner()}, {inner()})",
            lambda: f"coalesce({inner()}, 'none')", lambda: f"nullif({inner()}, 'a')",
            lambda: f"trim({inner()})", lambda: f"lpad({inner()}, 5, '*')", lambda: f"translate({inner()}, 'ab', 'x')",
            lambda: f"CASE WHEN {self.condition(0)} THEN {inner()} ELSE {inner()} END",
            lambda: f"(labels->{self.text(r.choice(KEYS))})::text", lambda: "labels::text", lambda: "value::text", lambda: "time::text",
            lambda: f"initcap({inner()})", lambda: f"repeat({inner()}, {r.randrange(0, 3)})",
            lambda: f"to_char(time, {self.text(self.time_template())})", lambda: f"to_char({self.whole()}, {self.text(self.number_template())})",
            lambda: f"to_char(time - '2024-01-01'::timestamptz, 'DD HH24:MI:SS.MS')",
            lambda: f"md5({inner()})", lambda: f"format('%s-%L-%I', {inner()}, {inner()}, 'a b')", lambda: f"encode(convert_to({inner()}, 'UTF8'), {self.text(r.choice(['hex', 'base64']))})",
            lambda: f"(time AT TIME ZONE {self.text(self.zone())})::text", lambda: f"quote_nullable({inner()})",
            lambda: f"array_to_string(regexp_split_to_array({inner()}, '[_.]'), '|')", lambda: f"(regexp_match({inner()}, '(.)(.)'))[1]",
            lambda: f"(time::timestamp AT TIME ZONE {self.text(self.zone())})::text", lambda: f"age(time, '2023-05-31 10:00+00'::timestamptz)::text",
            lambda: f"regexp_replace({inner()}, 'a', 'b')", lambda: f"to_hex(length({inner()}))", lambda: f"greatest({inner()}, {inner()})",
        ]
        return r.choice(plain + made)()

    def time_template(self):
        """Fields of a time with what stands between them."""
        r = self.rng
        fields = ["YYYY", "YY", "MM", "Mon", "FMMonth", "MONTH", "DD", "FMDDth", "DDD", "D", "ID", "Day", "dy", "HH24", "HH12", "MI", "SS",
                  "MS", "US", "AM", "p.m.", "Q", "WW", "IW", "IYYY", "J", "CC", "W", "TZ", "OF", "SSSS", "RM", "\"at\"", "Y,YYY", "FF3"]
        return "".join(r.choice(fields) + r.choice(["-", " ", ":", ".", "/", ""]) for _ in range(r.randrange(1, 6)))

    def number_template(self):
        r = self.rng
        whole = "".join(r.choice(["9", "9", "0", ",", "G"]) for _ in range(r.randrange(1, 8))) + "9"
        behind = r.choice(["", ".9", ".00", "D99", ".09"])
        return r.choice(["", "FM", "S", "FMS"]) + whole + behind if r.random() < 0.7 else whole + behind + r.choice(["MI", "PR", "S", ""])

    def whole(self):
        return self.one("length(name)", "length(name) * -1000", "(value IS NULL)::int", "123456", "-7", "0")

    def zone(self):
        return self.one("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "+02:30", "Australia/Lord_Howe")

    def string_length(self):
        return f"length({self.string(0)})"

    def number(self, depth=1):
        r = self.rng
        plain = [lambda: "value", lambda: repr(r.choice([0, 1, 2, 2.5, -3, 10])), lambda: f"length({self.string(0)})"]
        if depth <= 0:
            return r.choice(plain)()
        inner = lambda: self.number(depth - 1)
        made = [
            lambda: f"({inner()} {r.choice('+-*')} {inner()})", lambda: f"abs({inner()})", lambda: f"floor({inner()})",
            lambda: f"ceil({inner()})", lambda: f"sign({self.string_length()})", lambda: f"round(({inner()})::float8)",
            lambda: f"coalesce({inner()}, 0)", lambda: f"greatest({inner()}, {inner()})", lambda: f"least({inner()}, {inner()})",
            lambda: f"extract({r.choice(['hour', 'minute', 'day', 'month', 'year', 'dow', 'epoch', 'doy', 'week', 'quarter', 'second', 'milliseconds', 'microseconds', 'century', 'decade', 'isoyear', 'isodow', 'millennium'])} FROM time)",
            lambda: f"extract({r.choice(['day', 'hour', 'minute', 'second', 'epoch'])} FROM time - '2024-01-01'::timestamptz)",
            lambda: f"width_bucket(length({self.string(0)}), 0, 20, 5)", lambda: f"date_part('second', time)",
            lambda: f"strpos({self.string(0)}, 'a')", lambda: f"ascii({self.string(0)})", lambda: f"char_length({self.string(0)})",
            lambda: f"octet_length({self.string(0)})", lambda: f"CASE WHEN {self.condition(0)} THEN {inner()} END",
            lambda: f"date_part('hour', time)", lambda: f"trunc(({inner()})::float8)", lambda: f"-({inner()})",
        ]
        return r.choice(plain + made)()

    def instant(self):
        r = self.rng
        at = NOON + datetime.timedelta(milliseconds=r.choice([0, 1, 1000, -1000, 3_600_000, 86_400_000 * 41, -86_400_000]))
        return r.choice([
            f"'{at.isoformat()}'", f"'{at:%Y-%m-%d %H:%M:%S}.{at.microsecond:06}+00'", f"'{at:%Y-%m-%d}'",
            f"timestamptz '{at.isoformat()}'", f"'{at:%Y-%m-%d %H:%M:%S}+00'::timestamptz", f"to_timestamp({at.timestamp()})",
            f"('{at.isoformat()}'::timestamptz - interval '1 hour')", f"date_trunc('day', '{at.isoformat()}'::timestamptz)",
        ])

    def pattern(self):
        return self.text(self.one("a%", "%a%", "_", "x\\_y", "%b", "%", "", "a<%", "x%y", "%.%", "%\\%%", "(%", "é", "cpu%", "%up"))

    def regex(self):
        return self.text(self.one("a", "^a", "a$", "^a.b$", "a|b", "[ab]", "^(a|b)$", "x.y", "a<b", "^.$", "\\.", "^cpu", "a+b", "[^a]", "^$", "b\\|c", "\\w", "^\\S+$"))

    def json(self):
        r = self.rng
        pairs = {key: r.choice(VALUES) for key in r.sample(KEYS, r.randrange(3))}
        return self.text(json.dumps(pairs, ensure_ascii=r.random() < 0.5))

    def condition(self, depth=2):
        r = self.rng
        if 0 < depth and r.random() < 0.5:
            inner = lambda: self.condition(depth - 1)
            return r.choice([
                lambda: f"({inner()} AND {inner()})", lambda: f"({inner()} OR {inner()})", lambda: f"NOT ({inner()})",
                lambda: f"({inner()}) IS NOT TRUE", lambda: f"({inner()}) IS NULL",
            ])()
        key = self.text(r.choice(KEYS))
        subject = r.choice(["name", f"labels->>{key}", f"(labels->>{key})", self.string(1)])
        value = lambda: self.text(r.choice(VALUES + NAMES))
        return r.choice([
            lambda: f"{subject} = {value()}", lambda: f"{value()} = {subject}", lambda: f"{subject} <> {value()}",
            lambda: f"{subject} IN ({value()}, {value()}, {value()}, {value()})", lambda: f"{subject} NOT IN ({value()}, {value()})",
            lambda: f"{subject} LIKE {self.pattern()}", lambda: f"{subject} NOT LIKE {self.pattern()}", lambda: f"{subject} ILIKE {self.pattern()}",
            lambda: f"{subject} ~ {self.regex()}", lambda: f"{subject} !~ {self.regex()}", lambda: f"{subject} ~* {self.regex()}",
            lambda: f"{subject} IS NULL", lambda: f"{subject} IS NOT NULL", lambda: f"{subject} = ANY(ARRAY[{value()}, {value()}])",
            lambda: f"{subject} < {value()}", lambda: f"{subject} >= {value()}", lambda: f"{subject} BETWEEN {value()} AND {value()}",
            lambda: f"{subject} SIMILAR TO {self.text(self.one('a%', '(a|b)', '_', '%(a|x)%', 'cpu(_total)?', '[a-c]+', 'x.y'))}",
            lambda: f"{subject} LIKE {self.pattern()} ESCAPE ''" if r.random() < 0.3 else f"starts_with({subject}, 'a')",
            lambda: f"labels @> {self.json()}", lambda: f"labels <@ {self.json()}", lambda: f"labels = {self.json()}", lambda: f"labels <> {self.json()}",
            lambda: f"labels ? {key}", lambda: f"labels->{key} = {self.text(json.dumps(r.choice(VALUES)))}",
            lambda: f"time {r.choice(['<', '<=', '=', '>=', '>', '<>'])} {self.instant()}", lambda: f"{self.instant()} {r.choice(['<', '>='])} time",
            lambda: f"time BETWEEN {self.instant()} AND {self.instant()}",
            lambda: f"{self.number(1)} {r.choice(['<', '<=', '=', '>=', '>', '<>'])} {self.number(0)}",
            lambda: f"value = 'NaN'", lambda: f"(value IS DISTINCT FROM 1)", lambda: f"({subject} IS DISTINCT FROM {value()})",
            lambda: f"name IN (SELECT name FROM metrics WHERE {self.condition(0)})",
            lambda: f"value > (SELECT avg(value) FROM metrics WHERE value BETWEEN -10 AND 10)",
        ])()

    def statement(self):
        r = self.rng
        where = f" WHERE {self.condition(2)}" if r.random() < 0.9 else ""
        group = r.choice(["name", "labels->>'host'", "date_trunc('hour', time)", "value > 1", "time::date", "length(name)"])
        finite = "FILTER (WHERE value BETWEEN -1e10 AND 1e10)"
        total = r.choice(["count(*)", "count(labels->>'job')", f"sum(value) {finite}", f"avg(value) {finite}", "min(value)", "max(value)", "count(DISTINCT name)", "min(time)", "max(name)", "bool_or(value > 1)", f"stddev(value) {finite}"])
        return r.choice([
            lambda: f"SELECT count(*) FROM metrics{where}",
            lambda: f"SELECT name, time, labels FROM metrics{where}",
            lambda: f"SELECT {self.string(2)}, {self.number(2)} FROM metrics{where}",
            lambda: f"SELECT {group}, {total}, {total} FROM metrics{where} GROUP BY 1",
            lambda: f"SELECT {group} AS g, count(*) FROM metrics{where} GROUP BY 1 HAVING count(*) > 2",
            lambda: f"SELECT DISTINCT {self.string(1)} FROM metrics{where}",
            lambda: f"SELECT name, value, labels, time FROM metrics{where} ORDER BY time, name, labels::text LIMIT {r.randrange(0, 20)} OFFSET {r.randrange(0, 3)}",
            lambda: f"SELECT name, row_number() OVER (PARTITION BY name ORDER BY time, labels::text) FROM metrics{where}",
            lambda: f"SELECT a.name, b.time FROM metrics a JOIN metrics b ON a.labels = b.labels AND a.time = b.time AND a.name < b.name",
            lambda: f"SELECT name FROM metrics{where} {r.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'])} SELECT name FROM metrics WHERE {self.condition(1)}",
            lambda: f"WITH found AS (SELECT * FROM metrics{where}) SELECT name, count(*) FROM found GROUP BY name",
            lambda: f"SELECT EXISTS (SELECT 1 FROM metrics{where})",
            lambda: f"SELECT name, json_agg(labels->>'host' ORDER BY time, labels::text)::text FROM metrics{where} GROUP BY name",
            lambda: f"SELECT name, mode() WITHIN GROUP (ORDER BY labels->>'job') FROM metrics{where} GROUP BY name",
            lambda: f"SELECT name, percentile_cont(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY length(labels::text)) FROM metrics{where} GROUP BY name",
            lambda: f"SELECT name, (SELECT b.labels->>'job' FROM metrics b WHERE b.name = a.name ORDER BY b.time DESC, b.labels::text LIMIT 1) FROM (SELECT DISTINCT name FROM metrics{where}) a",
            lambda: f"SELECT m FROM metrics, regexp_matches(name, '[a-u]', 'g') AS m{where}",
            lambda: f"SELECT to_date(to_char(time, 'YYYY-MM-DD'), 'YYYY-MM-DD'), to_timestamp(to_char(time, 'YYYYMMDD HH24MISS'), 'YYYYMMDD HH24MISS') FROM metrics{where}",
            lambda: f"SELECT date_trunc('{r.choice(['day', 'hour', 'month'])}', time, {self.text(self.zone())}) FROM metrics{where}",
            lambda: f"SELECT {self.one('value::int', 'value::bigint', 'value::numeric::text', 'value::float4', 'time::date', 'time::text')} FROM metrics WHERE value BETWEEN -1000 AND 1000 AND ({self.condition(1)})",
        ])()


def asked(connection, statement):
    try:
        cursor = connection.execute(statement)
        return None, collections.Counter(tuple(shown(cell) for cell in row) for row in cursor.fetchall())
    except psycopg.Error as error:
        return error.sqlstate, str(error).split("\n")[0]


def shown(cell):
    """Numbers alike are alike: in how many digits they are said is told apart elsewhere."""
    if isinstance(cell, str):
        try:
            number = float(cell)
        except ValueError:
            return cell
        return "NaN" if math.isnan(number) else f"{number:.6g}"
    return tuple(cell) if isinstance(cell, list) else cell


def connected(dsn):
    connection = psycopg.connect(dsn, autocommit=True)
    for oid in (16, 20, 21, 23, 700, 701, 1700, 25, 1184, 1114, 1082, 3802, 1186, 705):
        connection.adapters.register_loader(oid, psycopg.types.string.TextLoader)
    return connection


@contextlib.contextmanager
def quipu(binary):
    with quipu_by_both(binary) as (sql, _):
        yield sql


@contextlib.contextmanager
def quipu_by_both(binary):
    """Where it is asked by SQL, and by HTTP."""
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log")
        flags = ["--data-dir", os.path.join(directory, "data"), "--http-listen", "127.0.0.1:0",
                 "--postgres-listen", "127.0.0.1:0", "--redis-listen", "", "--self-scrape-interval", "0"]
        with open(log, "w") as output:
            server = subprocess.Popen([binary, "serve", *flags], stdout=output, stderr=output)
        try:
            for _ in range(300):
                found = re.search(r"clients are served at \S+:(\d+) \(--postgres", open(log).read())
                if found:
                    break
                time.sleep(0.1)
            else:
                raise SystemExit(open(log).read())
            url = re.search(r"listens on (http://\S+)", open(log).read())[1]
            yield f"host=127.0.0.1 port={found[1]} user=me dbname=metrics", url
        finally:
            server.terminate()
            server.wait()


@contextlib.contextmanager
def postgresql():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        raise SystemExit("PostgreSQL is not there: apt-get install postgresql")
    with tempfile.TemporaryDirectory() as directory:
        # It does not run as root.
        account = ["runuser", "-u", "nobody", "--"] if os.getuid() == 0 else []
        if account:
            shutil.chown(directory, "nobody")
        data = os.path.join(directory, "data")
        run = lambda *words: subprocess.run([*account, *words], check=True, stdout=subprocess.DEVNULL, cwd="/")
        run(f"{found[-1]}/initdb", "-D", data, "-U", "me", "-A", "trust", "-E", "UTF8", "--lc-collate=C",
            "--lc-ctype=C.UTF-8", "--lc-messages=C")
        settings = f"-c listen_addresses='' -k {directory} -c fsync=off -c timezone=UTC"
        control = [f"{found[-1]}/pg_ctl", "-D", data, "-l", os.path.join(directory, "log")]
        run(*control, "-o", settings, "-w", "start")
        try:
            yield f"host={directory} user=me dbname=postgres"
        finally:
            run(*control, "-m", "immediate", "stop")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    with quipu(options.binary) as one, postgresql() as other:
        return compared(options, connected(one), connected(other))


def compared(options, ours, theirs):
    rng = random.Random(options.seed)
    rows = rows_of(rng)
    theirs.execute("DROP TABLE IF EXISTS metrics")
    theirs.execute("CREATE TABLE metrics (time timestamptz, name text, value float8, labels jsonb)")
    with theirs.cursor() as cursor:
        cursor.executemany("INSERT INTO metrics VALUES (%s, %s, %s, %s)",
                           [(at, name, value, json.dumps(labels)) for at, name, value, labels in rows])
    with ours.cursor().copy("COPY metrics FROM STDIN") as copy:
        copy.write("".join(line(*row) for row in rows))
    counts, told = collections.Counter(), 0
    for number in range(options.count):
        statement = Statements(rng).statement()
        one, other = asked(ours, statement), asked(theirs, statement)
        if one[0] is None and other[0] is None:
            kind = "same" if one[1] == other[1] else "DIFFERENT ROWS"
        elif one[0] is not None and other[0] is not None:
            kind = "both refuse" if one[0] == other[0] else "other codes"
        else:
            kind = "ours refuses" if one[0] else "only theirs refuses"
        counts[kind] += 1
        if kind not in ("same", "both refuse", "other codes") and told < options.show:
            told += 1
            print(f"-- {kind} ({number})\n{statement}")
            if kind == "DIFFERENT ROWS":
                print("   ours only:  ", list((one[1] - other[1]).items())[:3])
                print("   theirs only:", list((other[1] - one[1]).items())[:3])
            else:
                print("   ours:  ", one[0], one[1] if one[0] else len(one[1]))
                print("   theirs:", other[0], other[1] if other[0] else len(other[1]))
    print(dict(counts))
    return 1 if counts["DIFFERENT ROWS"] else 0


if __name__ == "__main__":
    sys.exit(main())
