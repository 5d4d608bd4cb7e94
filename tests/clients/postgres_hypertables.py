"""A hypertable beside an ordinary table with the same rows: every query says the same of both. Against a server at
the port that the first argument says; silent when all is well."""

import datetime
import math
import random
import sys

import psycopg

PORT = int(sys.argv[1])
DSN = f"host=127.0.0.1 port={PORT} user=me dbname=metrics"
START = datetime.datetime(2024, 2, 29, 23, 30, tzinfo=datetime.timezone.utc)
COLUMNS = ("time timestamptz NOT NULL, host text, rack int, is_new boolean, note jsonb DEFAULT NULL, usage float8, "
           "idle double precision, errors bigint, load real")
HOSTS, RACKS, POINTS = 7, 3, 60
OPERATORS = ["<", "<=", "=", "<>", ">=", ">"]


def made(connection, name, is_dense):
    connection.execute(f"CREATE TABLE {name} ({COLUMNS})")
    connection.execute(f"CREATE TABLE {name}_twin ({COLUMNS})")
    row = connection.execute(
        f"SELECT create_hypertable('{name}'::regclass, 'time'::name, chunk_time_interval => 86400000000)").fetchone()
    assert row[0].endswith(f",public,{name},t)"), row
    connection.execute(f"ALTER TABLE {name} SET (timescaledb.compress, timescaledb.compress_segmentby = 'rack')")
    rows = list(rows_of(random.Random(7), is_dense))
    types = ["timestamptz", "text", "int4", "bool", "float8", "float8", "int8", "float4"]
    for table in (name, f"{name}_twin"):
        with connection.cursor() as cursor:
            columns = "time, host, rack, is_new, usage, idle, errors, load"
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(types)
                for row in rows[:len(rows) // 2]:
                    copy.write_row(row)
            rest = rows[len(rows) // 2:]
            marks = ", ".join(["%s"] * len(types))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rest)


def rows_of(chance, is_dense):
    for host in range(HOSTS):
        for rack in range(RACKS):
            is_new = chance.choice([None, False, True])
            step = chance.choice([1, 17, 60, 600])
            for point in range(POINTS):
                time = START + datetime.timedelta(seconds=step * point, microseconds=host)
                values = [float(chance.randint(0, 100)), chance.gauss(0, 1e3), chance.randint(-2**53, 2**53),
                          float(chance.randint(0, 8)) / 4]
                if not is_dense:
                    lost = chance.sample(range(4), chance.randint(0, 4))
                    values = [None if at in lost else value for at, value in enumerate(values)]
                elif chance.random() < 0.01:
                    values[0] = chance.choice([math.nan, math.inf, -math.inf])
                yield (time, f"h.{host}|x" if host else None, rack, is_new, *values)


def condition(chance):
    time = START + datetime.timedelta(seconds=chance.randint(-100, 20_000))
    host, rack = f"h.{chance.randint(1, HOSTS)}|x", chance.randint(0, RACKS)
    return chance.choice([
        f"time >= '{time}'", f"time < '{time}'", f"'{time}' <= time", f"time = '{START}'",
        f"host = '{host}'", f"host IN ('{host}', 'h.1|x', NULL)", f"host <> '{host}'", "host IS NULL",
        "host IS NOT NULL", f"host = '{host}' OR host = 'h.2|x'", "host LIKE 'h.%'", "host = ''",
        f"rack = {rack}", f"rack IN ({rack}, 1)", f"rack < {rack}", f"rack NOT IN ({rack})",
        f"rack IN (SELECT id FROM racks WHERE id <> {rack})", f"rack NOT IN (SELECT id FROM racks WHERE id = {rack})",
        "rack IN (SELECT id FROM racks WHERE id > 99)", "is_new", "is_new IS NULL", "NOT is_new",
        "usage > 50", "usage IS NULL", "errors > 0 OR idle < 0", "load = 1.5", "note IS NULL",
    ])


def question(chance):
    where = " AND ".join(f"({condition(chance)})" for _ in range(chance.randint(0, 3))) or "true"
    width = chance.choice(["1 minute", "90 seconds", "1 hour", "1 day", "7 days", "1 month"])
    bucket = f"time_bucket('{width}', time)"
    of = chance.choice(["usage", "idle", "errors", "load"])
    what = chance.choice(["max(usage), count(*)", "min(usage), max(idle)", "avg(usage), count(usage)", "count(1)",
                          "sum(load)", f"max({of}), min({of})", "count(DISTINCT host)", "max(usage) FILTER (WHERE rack = 1)"])
    return chance.choice([
        f"SELECT * FROM {{}} WHERE {where} ORDER BY time, host, rack, usage, idle, errors",
        f"SELECT {bucket} AS b, {what} FROM {{}} WHERE {where} GROUP BY b ORDER BY b",
        f"SELECT {bucket} AS b, {what} FROM {{}} WHERE {where} GROUP BY 1 ORDER BY 1 DESC LIMIT 3",
        f"SELECT {bucket}, host, rack, {what} FROM {{}} c WHERE {where} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        f"SELECT host, rack, is_new, note, {what} FROM {{}} WHERE {where} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3",
        f"SELECT rack, {what} FROM {{}} WHERE {where} GROUP BY rack HAVING count(*) > 3 ORDER BY rack",
        f"SELECT {what} FROM {{}} WHERE {where}",
        f"SELECT count(*), min(time), max(time) FROM {{}} WHERE {where}",
        f"SELECT time, rack FROM {{}} WHERE {where} ORDER BY time DESC, rack, host LIMIT 7",
        f"WITH w AS (SELECT {bucket} AS b, rack, {what} FROM {{}} WHERE {where} GROUP BY 1, 2) "
        "SELECT w.*, r.name FROM w JOIN racks r ON r.id = w.rack ORDER BY b, r.name",
        f"SELECT r.name, l.* FROM racks r, LATERAL (SELECT time, usage, rack, idle FROM {{}} c WHERE c.rack = r.id "
        f"ORDER BY time DESC, usage, idle LIMIT {chance.randint(1, 3)}) l ORDER BY r.name, l.time, l.usage, l.idle",
        f"SELECT r.name, l.time FROM racks r INNER JOIN LATERAL (SELECT * FROM {{}} c WHERE c.rack = r.id "
        "ORDER BY time DESC LIMIT 1) AS l ON true ORDER BY r.name",
        f"SELECT DISTINCT ON (rack) rack, time FROM {{}} WHERE {where} ORDER BY rack, time DESC",
        # What is asked of the store without a plan, and what only looks as if it were.
        f"SELECT date_trunc('{chance.choice(['minute', 'hour', 'day', 'week', 'month'])}', time) AS time, {what} FROM {{}} "
        f"WHERE {where} GROUP BY 1 ORDER BY 1",
        f"SELECT {bucket} AS time, max(idle) AS usage FROM {{}} WHERE {where} GROUP BY 1 ORDER BY time, usage",
        f"SELECT max(usage) AS idle, min(idle) AS usage, count(*) n, c.rack FROM {{}} AS c WHERE {where} GROUP BY rack "
        "ORDER BY c.rack DESC NULLS LAST, n LIMIT 2",
        f"SELECT usage AS idle, idle AS usage, rack r, time FROM {{}} WHERE {where} AND usage {chance.choice(OPERATORS)} "
        f"{chance.choice(['50', '-1', '7.5', '0'])} ORDER BY time, r, usage, idle",
        f"SELECT * FROM {{}} WHERE time BETWEEN '{START}' AND '{START + datetime.timedelta(hours=1)}' AND "
        f"{chance.randint(0, 60)} {chance.choice(OPERATORS)} usage AND {where} ORDER BY 1, 2, 3, usage, 7",
        f"SELECT count(*) FROM (SELECT * FROM {{}} WHERE {where} LIMIT {chance.randint(0, 200)}) AS some",
        f"SELECT host, {bucket}, {what} FROM {{}} WHERE {where} AND time >= timestamptz '{START}' GROUP BY 2, host "
        "ORDER BY 1, 2 LIMIT 9",
        f"SELECT {bucket}, {what} FROM {{}} WHERE {where} AND rack IN (SELECT id FROM racks r WHERE r.name IN "
        f"('r1', 'r{chance.randint(0, 9)}')) GROUP BY 1 ORDER BY 1",
    ])


def told(connection, text, is_binary):
    def same(value):
        if isinstance(value, float):
            return "NaN" if math.isnan(value) else float(f"{value:.9e}")
        return value
    try:
        answer = connection.execute(text, binary=is_binary)
        rows = [tuple(same(value) for value in row) for row in answer.fetchall()]
        return [[(column.name, column.type_code) for column in answer.description], *rows]
    except psycopg.Error as error:
        return error.sqlstate


def main():
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute("CREATE TABLE racks (id int PRIMARY KEY, name text)")
        connection.execute("INSERT INTO racks SELECT v, 'r' || v FROM generate_series(0, 5) AS g(v)")
        made(connection, "dense", True)
        made(connection, "sparse", False)
        chance, failures, refused = random.Random(11), 0, 0
        for at in range(1200):
            table = chance.choice(["dense", "sparse"])
            text, is_binary = question(chance), chance.random() < 0.5
            one, other = (told(connection, text.format(name), is_binary) for name in (table, f"{table}_twin"))
            refused += isinstance(one, str)
            if one != other:
                failures += 1
                print(f"{at}: {text.format(table)}\n  {str(one)[:300]}\n  {str(other)[:300]}")
        assert failures == 0, failures
        # What both refuse proves nothing: most of what is asked must be answered.
        assert refused < 60, refused


main()
