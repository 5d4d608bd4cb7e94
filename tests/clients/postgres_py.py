"""psycopg 3, SQLAlchemy and asyncpg against a server at the port that the first argument says; silent
when all is well."""

import asyncio
import datetime
import decimal
import json
import sys
import uuid

import asyncpg
import psycopg
import sqlalchemy as sa
from psycopg.types import TypeInfo
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB

PORT = int(sys.argv[1])
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)
LINES = "".join(
    f'cpu{{host="{host}"}} {value} {int(NOON.timestamp()) * 1000 + value}\n'
    for host in "ab"
    for value in range(10)
)
DSN = f"host=127.0.0.1 port={PORT} user=me dbname=metrics"


def refused(code, cursor, statement, *arguments):
    try:
        cursor.execute(statement, *arguments)
    except psycopg.Error as error:
        assert error.sqlstate == code, (statement, error.sqlstate, error)
        return
    raise AssertionError(f"{statement} passed")


def psycopg3():
    with psycopg.connect(DSN, autocommit=True) as connection:
        cursor = connection.cursor()
        with cursor.copy("COPY metrics FROM STDIN") as copy:
            copy.write(LINES)
        assert cursor.rowcount == 20, cursor.rowcount
        one = lambda statement, *arguments: cursor.execute(statement, *arguments).fetchone()
        assert one("SELECT count(*) FROM metrics WHERE name = %s", ["cpu"]) == (20,)
        assert one("SELECT time, value, labels FROM metrics WHERE labels @> %s ORDER BY time LIMIT %s",
                   ['{"host": "b"}', 1]) == (NOON, 0.0, {"host": "b"})
        assert one("SELECT count(*) FROM metrics WHERE labels->>'host' = ANY(%s)", [["a", "c"]]) == (10,)
        assert one("SELECT count(*) FROM metrics WHERE value < %s", [2.5]) == (6,)
        assert one("SELECT x FROM (VALUES (1), (2), (3)) v(x) WHERE x < %s ORDER BY x DESC", [2.7]) == (2,)
        assert one("SELECT count(*) FROM metrics WHERE time > %s - %s", [NOON, datetime.timedelta(days=1)]) == (20,)
        assert one("SELECT count(*) FROM metrics WHERE time > %s", [NOON.date()]) == (20,)
        assert one("SELECT %s::int, %s::text, %s::float8, %s::bool", [1, "x", 1.5, True]) == (1, "x", 1.5, True)
        assert one("SELECT 1, 1, NULL") == (1, 1, None)
        binary = connection.cursor(binary=True)
        row = binary.execute("SELECT time, value, labels, name FROM metrics ORDER BY 2 DESC, 3 LIMIT 1").fetchone()
        assert row == (NOON + datetime.timedelta(milliseconds=9), 9.0, {"host": "a"}, "cpu"), row
        for code, statement in [("42601", "SELEC 1"), ("42P01", "SELECT * FROM nowhere"), ("22012", "SELECT 1/0")]:
            refused(code, cursor, statement)
        with connection.pipeline():
            cursor.execute("SELECT 1")
            second = connection.execute("SELECT 2")
        assert second.fetchone() == (2,)
        with cursor.copy("COPY (SELECT name, value FROM metrics ORDER BY 2 LIMIT 2) TO STDOUT") as copy:
            assert [bytes(line) for line in copy] == [b"cpu\t0\n", b"cpu\t0\n"]
        assert TypeInfo.fetch(connection, "jsonb").oid == 3802
        try:
            with cursor.copy("COPY metrics FROM STDIN") as copy:
                copy.write("lost 1\n")
                raise ValueError("on purpose")
        except ValueError:
            pass
        assert one("SELECT count(*) FROM metrics WHERE name = 'lost'") == (0,)
    with psycopg.connect(DSN) as connection:
        cursor = connection.cursor()
        refused("42P01", cursor, "SELECT * FROM nowhere")
        refused("25P02", cursor, "SELECT 1")
        connection.rollback()
        with connection.cursor(name="Some") as named:
            named.execute("SELECT value FROM metrics WHERE value < %s ORDER BY value", [5.0])
            assert named.fetchmany(3) == [(0.0,), (0.0,), (1.0,)] and len(named.fetchall()) == 7
        connection.commit()
        with connection.transaction(), connection.transaction():
            assert cursor.execute("SELECT 1").fetchone() == (1,)


def everyday():
    """What people type to PostgreSQL; answers are those of PostgreSQL 15."""
    with psycopg.connect(DSN, autocommit=True) as connection:
        cursor = connection.cursor()
        one = lambda statement, *arguments: cursor.execute(statement, *arguments).fetchone()
        at = "timestamptz '2024-02-29 13:04:05.678+00'"
        assert one(f"SELECT to_char({at}, 'FMDay, FMDDth Mon YYYY HH12:MI am'), to_char(1234.567, '9,999.99')") == (
            "Thursday, 29th Feb 2024 01:04 pm", " 1,234.57")
        assert one("SELECT to_date('05 Dec 2000', 'DD Mon YYYY'), age(timestamp '2001-04-10', timestamp '1957-06-13')::text") == (
            datetime.date(2000, 12, 5), "43 years 9 mons 27 days")
        assert one(f"SELECT ({at} AT TIME ZONE 'Europe/Berlin')::text, extract(century FROM {at})::int") == (
            "2024-02-29 14:04:05.678", 21)
        assert one("SELECT json_agg(x ORDER BY x DESC) FROM (VALUES (1), (2)) v(x)") == ([2, 1],)
        assert one("SELECT 'abc' SIMILAR TO '(a|x)%', md5('hello'), format('%I %L', 'a b', 'it''s')") == (
            True, "5d41402abc4b2a76b9719d911017c592", "\"a b\" 'it''s'")
        assert cursor.execute("SELECT regexp_matches('foobarbaz', 'ba.', 'g')").fetchall() == [(["bar"],), (["baz"],)]
        assert one("SELECT mode() WITHIN GROUP (ORDER BY x), width_bucket(5, 0, 10, 5) FROM (VALUES (1), (2), (2)) v(x)") == (2, 3)
        query = "SELECT (SELECT y FROM (VALUES (1, 'b'), (1, 'a')) w(k, y) WHERE k = x ORDER BY y LIMIT 1) FROM (VALUES (1), (2)) v(x) ORDER BY x"
        assert cursor.execute(query).fetchall() == [("a",), (None,)]
        # Bytes, as text and in binary.
        assert one("SELECT '\\xdead'::bytea, length(%s), %s::bytea", [b"\x00\x01", b"\x00\xff"]) == (b"\xde\xad", 2, b"\x00\xff")
        cursor.execute("CREATE TABLE files (id int PRIMARY KEY, content bytea)")
        cursor.execute("INSERT INTO files VALUES (1, %s), (2, '\\x0102')", [b"\x00\xff"])
        with psycopg.connect(DSN, autocommit=True, cursor_factory=psycopg.ClientCursor) as other:
            assert other.execute("SELECT content FROM files ORDER BY id").fetchall() == [(b"\x00\xff",), (b"\x01\x02",)]
        with cursor.copy("COPY (SELECT id, content FROM files ORDER BY id) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int4", "bytea"])
            assert list(copy.rows()) == [(1, b"\x00\xff"), (2, b"\x01\x02")]
        cursor.execute("DROP TABLE files")
        # Prepared by statements.
        cursor.execute("PREPARE sum (int, int) AS SELECT $1 + $2")
        assert one("EXECUTE sum(3, 4)") == (7,)
        refused("42601", cursor, "EXECUTE sum(3)")
        refused("42P05", cursor, "PREPARE sum AS SELECT 1")
        cursor.execute("DEALLOCATE sum")
        refused("26000", cursor, "EXECUTE sum(3, 4)")
        assert [column.name for column in cursor.execute("EXPLAIN (FORMAT JSON) SELECT 1").description] == ["QUERY PLAN"]
        assert json.loads(cursor.fetchone()[0])[0]["Plan"]["Node Type"]
        cursor.execute("SET statement_timeout = '200ms'")
        refused("57014", cursor, "SELECT pg_sleep(60)")


def held_cursors():
    """Cursors WITH HOLD, which Django's iterator() declares outside transactions."""
    with psycopg.connect(DSN, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE held (a int)")
        cursor.execute("INSERT INTO held SELECT * FROM generate_series(1, 1000)")
        with connection.cursor("page", withhold=True) as page:
            page.execute("SELECT a, %s::text FROM held WHERE a > %s ORDER BY a", ("x", 10))
            assert page.description[0].name == "a" and page.fetchmany(2) == [(11, "x"), (12, "x")]
            # Rows that come later are not in the answer.
            cursor.execute("INSERT INTO held VALUES (2000)")
            assert len(page.fetchall()) == 988
        connection.autocommit = False
        cursor.execute("DECLARE one CURSOR WITH HOLD FOR SELECT a FROM held ORDER BY a")
        connection.commit()
        for expected in (1, 2):
            assert cursor.execute("FETCH FROM one").fetchone() == (expected,)
            connection.rollback()
        cursor.execute("CLOSE one")
        connection.commit()
        cursor.execute("DECLARE lost CURSOR WITH HOLD FOR SELECT 1")
        connection.rollback()
        for name in ("one", "lost"):
            refused("34000", cursor, f"FETCH FROM {name}")
            connection.rollback()
        # The name of an index is dropped once, though no index was made.
        cursor.execute("CREATE INDEX held_a ON held (a)")
        refused("42P07", cursor, "CREATE INDEX held_a ON held (a)")
        connection.rollback()
        cursor.execute("CREATE INDEX held_a ON held (a)")
        cursor.execute("CREATE INDEX IF NOT EXISTS held_a ON held (a)")
        cursor.execute("DROP INDEX held_a")
        refused("42704", cursor, "DROP INDEX held_a")
        connection.rollback()
        cursor.execute("DROP TABLE held")
        assert cursor.execute("EXPLAIN SELECT 1").statusmessage == "EXPLAIN"
        connection.commit()


def notifications():
    """LISTEN and NOTIFY between two connections."""
    with psycopg.connect(DSN, autocommit=True) as one, psycopg.connect(DSN) as other:
        one.execute("LISTEN news")
        other.execute("NOTIFY news, 'lost'")
        other.rollback()
        other.execute("NOTIFY news, 'first'")
        other.execute("SELECT pg_notify('news', %s)", ["second"])
        other.execute("NOTIFY elsewhere")
        other.commit()
        heard = [(note.channel, note.payload, note.pid) for note in one.notifies(timeout=30, stop_after=2)]
        sender = other.info.backend_pid
        assert heard == [("news", "first", sender), ("news", "second", sender)], heard
        own = []
        one.add_notify_handler(lambda note: own.append(note.payload))
        one.execute("NOTIFY news, 'own'")
        one.execute("UNLISTEN *")
        one.execute("NOTIFY news, 'unheard'")
        one.execute("SELECT 1")
        assert own == ["own"], own
        refused("22023", one, f"NOTIFY news, '{'x' * 8000}'")


def sqlalchemy():
    engine = sa.create_engine(f"postgresql+psycopg://me@127.0.0.1:{PORT}/metrics")
    looked = sa.inspect(engine)
    assert {"metrics", "metrics_cx", "metrics_labels"} <= set(looked.get_table_names())
    assert looked.has_table("metrics") and "public" in looked.get_schema_names()
    types = {column["name"]: type(column["type"]).__name__ for column in looked.get_columns("metrics")}
    assert types == {"sample": "TEXT", "time": "TIMESTAMP", "name": "TEXT",
                     "value": "DOUBLE_PRECISION", "labels": "JSONB"}, types
    metrics = sa.Table("metrics", sa.MetaData(), sa.Column("labels", JSONB), autoload_with=engine)
    with engine.connect() as connection:
        host = metrics.c.labels["host"].astext.label("host")
        asked = sa.select(host, sa.func.max(metrics.c.value)).where(metrics.c.name == "cpu")
        rows = connection.execute(asked.group_by(sa.text("1")).order_by(sa.text("1"))).all()
        assert rows == [("a", 9.0), ("b", 9.0)], rows
        assert connection.execute(sa.select(sa.exists(sa.select(metrics.c.name)))).scalar() is True
        asked = sa.select(metrics.c.value).where(metrics.c.name == "cpu")
        rows = connection.execute(asked, execution_options={"stream_results": True, "max_row_buffer": 3})
        assert sum(1 for _ in rows) == 20
        with connection.begin_nested():
            connection.execute(sa.text("SELECT 1"))


async def asyncpgs():
    async with asyncpg.create_pool(host="127.0.0.1", port=PORT, user="me", database="metrics",
                                   min_size=2, max_size=2) as pool:
        for _ in range(3):
            async with pool.acquire() as connection:
                assert await connection.fetchval("SELECT $1::int + 1", 1) == 2
        async with pool.acquire() as connection:
            rows = await connection.fetch(
                "SELECT value FROM metrics WHERE labels->>'host' = ANY($1) AND time >= $2 ORDER BY value LIMIT $3",
                ["a"], NOON, 2)
            assert [row["value"] for row in rows] == [0.0, 1.0]
            count = "SELECT count(*) FROM metrics WHERE time < now() - $1"
            assert await connection.fetchval(count, datetime.timedelta(hours=1)) == 20
            async with connection.transaction():
                cursor = await connection.cursor("SELECT value FROM metrics ORDER BY value")
                assert len(await cursor.fetch(3)) == 3 and len(await cursor.fetch(30)) == 17
            try:
                await connection.fetch("SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
                                       timeout=0.3)
            except TimeoutError:
                pass
            assert await connection.fetchval("SELECT 3") == 3


INSERT = "INSERT INTO metrics (time, name, value, labels) VALUES "
FLOORS = "SELECT array_agg(labels->>'floor' ORDER BY value) FROM metrics WHERE name = 'room'"


def psycopg3_inserts():
    with psycopg.connect(DSN, autocommit=True) as connection:
        cursor = connection.cursor()
        rows = [(NOON, "room", float(floor), Jsonb({"floor": str(floor)})) for floor in range(3)]
        cursor.executemany(INSERT + "(%s, %s, %s, %s)", rows)
        assert cursor.rowcount == 3, cursor.rowcount
        assert cursor.execute(FLOORS).fetchone() == (["0", "1", "2"],)


async def asyncpg_inserts():
    connection = await asyncpg.connect(host="127.0.0.1", port=PORT, user="me", database="metrics")
    rows = [(NOON, "room", 3.5, '{"floor": "3"}'), (NOON, "room", 4.5, '{"floor": "4"}')]
    await connection.executemany(INSERT + "($1, $2, $3, $4)", rows)
    assert await connection.fetchval(FLOORS) == list("01234")
    await connection.close()


async def asyncpg_types():
    """Parameters whose types the server says: numbers with all their digits, uuids, arrays, numbers of locks."""
    connection = await asyncpg.connect(host="127.0.0.1", port=PORT, user="me", database="metrics")
    await connection.execute("CREATE TABLE typed (id int PRIMARY KEY, price numeric(10,2), mark uuid, parts int[])")
    mark, share = uuid.uuid4(), decimal.Decimal("1.19")
    await connection.execute("INSERT INTO typed VALUES ($1, $2, $3, $4)", 1, decimal.Decimal("2.50"), mark, [1, 2])
    assert str(await connection.fetchval("SELECT price * $1 FROM typed", share)) == "2.9750"
    assert await connection.fetchval("SELECT id FROM typed WHERE mark = $1", mark) == 1
    assert await connection.fetchval("SELECT id FROM typed WHERE mark = $1::uuid", uuid.uuid4()) is None
    assert await connection.fetchval("SELECT id FROM typed WHERE (id, price) >= ($1, $2)", 1, share) == 1
    assert await connection.fetchval("SELECT count(*) FROM generate_series($1::int, $2::int)", 1, 3) == 3
    assert await connection.fetchval("SELECT pg_try_advisory_lock($1)", 77) is True
    await connection.close()
    with psycopg.connect(DSN) as other:
        for share in (1.19, decimal.Decimal("1.19")):
            found = other.execute("SELECT price * %b FROM typed", (share,), binary=True).fetchone()[0]
            assert abs(float(found) - 2.975) < 1e-9, found
        other.execute("DROP TABLE typed")


def rows_in():
    """Rows that drivers write by themselves: psycopg's in text and binary, asyncpg's."""
    columns = "time, name, value, labels"
    with psycopg.connect(DSN, autocommit=True) as connection:
        cursor = connection.cursor()
        with cursor.copy(f"COPY metrics ({columns}) FROM STDIN") as copy:
            copy.write_row((NOON, "row text", 1.5, Jsonb({"a": "tab\tquote\"backslash\\"})))
            copy.write_row((NOON, "row text", float("nan"), Jsonb({})))
        with cursor.copy(f"COPY metrics ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["timestamptz", "text", "float8", "jsonb"])
            copy.write_row((NOON, "row binary", 2.5, Jsonb({"b": "\n"})))

    async def records():
        connection = await asyncpg.connect(host="127.0.0.1", port=PORT, user="me", database="metrics")
        rows = [(NOON, "row records", float(number), '{"c": "d"}') for number in range(3)]
        said = await connection.copy_records_to_table("metrics", records=rows, columns=columns.split(", "))
        assert said == "COPY 3", said
        await connection.close()

    asyncio.run(records())
    with psycopg.connect(DSN) as connection:
        found = connection.execute("SELECT name, labels, count(*), max(value) FROM metrics"
                                   " WHERE name LIKE 'row %' GROUP BY 1, 2 ORDER BY 1, 2 DESC").fetchall()
        assert [row[:3] for row in found] == [
            ("row binary", {"b": "\n"}, 1),
            ("row records", {"c": "d"}, 1),
            ("row text", {"a": "tab\tquote\"backslash\\"}, 1),
            ("row text", {}, 1),
        ], found
        # Three at one time are one, the later one.
        assert [row[3] for row in found][:2] == [2.5, 2.0], found


psycopg3()
sqlalchemy()
asyncio.run(asyncpgs())
psycopg3_inserts()
asyncio.run(asyncpg_inserts())
asyncio.run(asyncpg_types())
rows_in()
everyday()
held_cursors()
notifications()
