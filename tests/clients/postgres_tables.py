"""psycopg 3, SQLAlchemy and asyncpg with ordinary tables, against a server at the port that the first argument
says; silent when all is well."""

import asyncio
import datetime
import decimal
import sys
import threading
import uuid

import asyncpg
import psycopg
import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column

PORT = int(sys.argv[1])
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)
DSN = f"host=127.0.0.1 port={PORT} user=me dbname=metrics"
WRITERS, EACH = 6, 25


def refused(code, act):
    try:
        act()
    except psycopg.Error as error:
        assert error.sqlstate == code, (error.sqlstate, error)
        assert code != "23505" or error.diag.message_detail.startswith("Key ("), error
        return
    raise AssertionError(f"{code} was expected")


def values():
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE v (id bigserial PRIMARY KEY, k text UNIQUE, n numeric, m numeric(20,6), f float8, u uuid, "
            "z timestamptz, d date, c time, p interval, j jsonb, a int[], s text[], b bool)")
        day, clock = NOON.date(), datetime.time(1, 2, 3, 500_000)
        row = ("x", decimal.Decimal("12345678901234567.125"), decimal.Decimal("1.5"), 1.5, uuid.UUID(int=5), NOON, day,
               clock, datetime.timedelta(days=1, seconds=5), Jsonb({"a": [1, None]}), [1, None, 3], ["q", None], True)
        marks = ", ".join(["%s"] * len(row))
        names = "k, n, m, f, u, z, d, c, p, j, a, s, b"
        for binary in (False, True):
            written = (f"x{binary}", *row[1:])
            answer = connection.execute(f"INSERT INTO v ({names}) VALUES ({marks}) RETURNING {names}", written, binary=binary)
            assert answer.statusmessage == "INSERT 0 1", answer.statusmessage
            expected = tuple(one.obj if isinstance(one, Jsonb) else one for one in written)
            assert (read := answer.fetchone()) == expected, (read, expected)
        answer = connection.execute("UPDATE v SET n = %s, f = f + %s WHERE k = %s", (decimal.Decimal("0.1"), 1, "xTrue"))
        assert answer.rowcount == 1
        assert connection.execute("SELECT n, f FROM v WHERE k = %s", ["xTrue"]).fetchone() == (decimal.Decimal("0.1"), 2.5)
        upsert = "INSERT INTO v (k, f) VALUES (%s, %s) ON CONFLICT (k) DO UPDATE SET f = v.f + EXCLUDED.f RETURNING f"
        assert connection.execute(upsert, ("xTrue", 1)).fetchone() == (3.5,)
        refused("23505", lambda: connection.execute("INSERT INTO v (k) VALUES (%s)", ["xTrue"]))
        refused("22P02", lambda: connection.execute("INSERT INTO v (u) VALUES (%s)", ["no"]))
        refused("22003", lambda: connection.execute("INSERT INTO v (a) VALUES (%s)", [[2**40]]))
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO v (k, f) VALUES (%s, %s)", [(f"m{one}", one) for one in range(50)])
        assert connection.execute("DELETE FROM v WHERE k LIKE 'm%' RETURNING id").rowcount == 50
        # What was prepared is planned anew once its table has changed.
        select = lambda: connection.execute("SELECT * FROM v WHERE k = %s", ["xTrue"], prepare=True).fetchone()
        before = select()
        with psycopg.connect(DSN, autocommit=True) as other:
            other.execute("ALTER TABLE v ADD COLUMN more int DEFAULT 7")
        refused("0A000", select)
        connection.execute("DEALLOCATE ALL")
        assert connection.execute("SELECT * FROM v WHERE k = %s", ["xTrue"]).fetchone() == (*before, 7)


def copies():
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute("CREATE TABLE c (id serial PRIMARY KEY, name text NOT NULL, n numeric(8,2), j jsonb, u uuid)")
        cursor = connection.cursor()
        with cursor.copy("COPY c (name, n) FROM STDIN") as copy:
            for one in range(1000):
                copy.write_row((f"tab\t{one}", decimal.Decimal(one) / 4))
        assert cursor.rowcount == 1000
        with cursor.copy("COPY c (name, n, j, u) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["text", "numeric", "jsonb", "uuid"])
            copy.write_row(("binary", decimal.Decimal("-1.255"), Jsonb([1]), uuid.UUID(int=9)))
        row = connection.execute("SELECT id, n, j, u FROM c WHERE name = 'binary'").fetchone()
        assert row == (1001, decimal.Decimal("-1.26"), [1], uuid.UUID(int=9)), row

        def bad(body, options=""):
            with connection.cursor().copy(f"COPY c (id, name) FROM STDIN {options}") as copy:
                copy.write(body)

        refused("23505", lambda: bad("2000\tx\n2000\ty\n"))
        refused("22P02", lambda: bad("2000\tx\nnone\ty\n"))
        refused("22P04", lambda: bad("2000\n"))
        refused("23502", lambda: bad("2000\t\\N\n"))
        assert connection.execute("SELECT count(*) FROM c").fetchone() == (1001,)
        bad("none\ty\n2000\tx\n", "(ON_ERROR ignore)")
        assert connection.execute("SELECT count(*), max(id) FROM c").fetchone() == (1002, 2000)

        def altered_meanwhile():
            with connection.cursor().copy("COPY altered FROM STDIN") as copy:
                copy.write("1\t2\n")
                with psycopg.connect(DSN, autocommit=True) as other:
                    other.execute("ALTER TABLE altered DROP COLUMN a, ADD COLUMN c int")

        connection.execute("CREATE TABLE altered (a int, b int)")
        refused("40001", altered_meanwhile)
        assert connection.execute("SELECT count(*) FROM altered").fetchone() == (0,)
        with cursor.copy("COPY c TO STDOUT (FORMAT csv)") as copy:
            out = b"".join(copy)
        connection.execute("CREATE TABLE c2 (id int, name text, n numeric(8,2), j jsonb, u uuid)")
        with cursor.copy("COPY c2 FROM STDIN (FORMAT csv)") as copy:
            copy.write(out)
        differ = "SELECT count(*) FROM c JOIN c2 ON c.id = c2.id AND c.name = c2.name WHERE c.n = c2.n OR c.n IS NULL AND c2.n IS NULL"
        assert connection.execute(differ).fetchone() == (1002,)


def transactions():
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
        connection.execute("INSERT INTO t VALUES (1, 0)")
    first, second = psycopg.connect(DSN), psycopg.connect(DSN)
    first.execute("UPDATE t SET n = n + 1")
    assert second.execute("SELECT n FROM t").fetchone() == (0,), "what is not committed is seen"
    second.execute("UPDATE t SET n = n + 10")
    first.commit()
    refused("40001", second.commit)
    assert second.execute("SELECT n FROM t").fetchone() == (1,)
    second.rollback()
    with first.transaction():
        first.execute("INSERT INTO t VALUES (2, 0)")
        try:
            with first.transaction():
                first.execute("DELETE FROM t")
                first.execute("INSERT INTO t VALUES (2, 0), (2, 0)")
        except psycopg.errors.UniqueViolation:
            pass
        assert first.execute("SELECT count(*) FROM t").fetchone() == (2,)
    # Others are seen as long as nothing was changed.
    assert second.execute("SELECT count(*) FROM t").fetchone() == (2,)
    first.execute("INSERT INTO t VALUES (3, 0)")
    first.commit()
    assert second.execute("SELECT count(*) FROM t").fetchone() == (3,)
    second.rollback()
    second.commit()
    # What was read to be changed, or is to stay as it was read, is relied on.
    for isolation, select in [("", " FOR UPDATE"), ("ISOLATION LEVEL REPEATABLE READ", ""), ("ISOLATION LEVEL SERIALIZABLE", "")]:
        with psycopg.connect(DSN, autocommit=True) as one, psycopg.connect(DSN, autocommit=True) as other:
            for connection in (one, other):
                connection.execute(f"BEGIN {isolation}")
                assert connection.execute(f"SELECT n FROM t WHERE id = 3{select}").fetchone() is not None
            one.execute("UPDATE t SET n = n + 1 WHERE id = 3")
            one.execute("COMMIT")
            other.execute("UPDATE t SET n = n + 1 WHERE id = 3")
            refused("40001", lambda: other.execute("COMMIT"))
    # A text of several statements is one transaction.
    refused("42P01", lambda: first.execute("INSERT INTO t VALUES (4, 0); INSERT INTO nowhere VALUES (1)"))
    first.rollback()
    assert first.execute("SELECT count(*) FROM t").fetchone() == (3,)
    first.close()
    second.close()


def writers():
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute("CREATE TABLE w (id serial PRIMARY KEY, who int, n int)")
        connection.execute("CREATE TABLE counter (n int)")
        connection.execute("INSERT INTO counter VALUES (0)")
    failures = []

    def write(who):
        try:
            with psycopg.connect(DSN, autocommit=True) as connection:
                for n in range(EACH):
                    connection.execute("INSERT INTO w (who, n) VALUES (%s, %s)", (who, n))
                    connection.execute("UPDATE counter SET n = n + 1")
        except psycopg.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(WRITERS)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    assert not failures, failures[:3]
    with psycopg.connect(DSN) as connection:
        told = connection.execute("SELECT count(*), count(DISTINCT id), count(DISTINCT (who, n)) FROM w").fetchone()
        assert told == (WRITERS * EACH,) * 3, told
        assert connection.execute("SELECT n FROM counter").fetchone() == (WRITERS * EACH,)


class Base(DeclarativeBase):
    pass


class Host(Base):
    __tablename__ = "orm_hosts"
    id = mapped_column(sa.Integer, primary_key=True)
    name = mapped_column(sa.String(40), unique=True, nullable=False)
    price = mapped_column(sa.Numeric(10, 2))
    details = mapped_column(JSONB)
    made = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())


def sqlalchemy():
    engine = sa.create_engine(f"postgresql+psycopg://me@127.0.0.1:{PORT}/metrics")
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        hosts = [Host(name=f"h{one}", price=decimal.Decimal("1.25"), details={"n": one}) for one in range(5)]
        session.add_all(hosts)
        session.commit()
        assert [host.id for host in hosts] == [1, 2, 3, 4, 5]
        assert hosts[0].made is not None
        hosts[2].name = "renamed"
        session.delete(hosts[4])
        session.commit()
        with session.begin_nested():
            session.execute(sa.update(Host).values(price=Host.price * 2))
        session.commit()
        found = session.scalars(sa.select(Host).where(Host.name == "renamed")).one()
        assert (found.price, found.details) == (decimal.Decimal("2.50"), {"n": 2}), (found.price, found.details)
        upsert = insert(Host).values(name="h0", price=9)
        session.execute(upsert.on_conflict_do_update(index_elements=["name"], set_={"price": upsert.excluded.price}))
        session.commit()
        assert session.scalar(sa.select(Host.price).where(Host.name == "h0")) == 9
    inspector = sa.inspect(engine)
    assert inspector.has_table("orm_hosts")
    columns = {column["name"]: column for column in inspector.get_columns("orm_hosts")}
    assert columns["name"]["type"].length == 40 and not columns["name"]["nullable"], columns
    assert (columns["price"]["type"].precision, columns["price"]["type"].scale) == (10, 2), columns
    key = inspector.get_pk_constraint("orm_hosts")
    assert (key["name"], key["constrained_columns"]) == ("orm_hosts_pkey", ["id"]), key
    unique = [(one["name"], one["column_names"]) for one in inspector.get_unique_constraints("orm_hosts")]
    assert unique == [("orm_hosts_name_key", ["name"])], unique
    assert columns["id"]["autoincrement"] and columns["made"]["default"] == "now()", columns
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE numbered (a int, b text, c bigint GENERATED ALWAYS AS IDENTITY, UNIQUE (b, a))"))
        connection.execute(sa.text("CREATE UNIQUE INDEX numbered_a ON numbered (a)"))
    inspector = sa.inspect(engine)
    indexes = {one["name"]: (one["unique"], one["column_names"], one.get("duplicates_constraint"))
               for one in inspector.get_indexes("numbered")}
    both = "numbered_b_a_key"
    assert indexes == {both: (True, ["b", "a"], both), "numbered_a": (True, ["a"], None)}, indexes
    assert inspector.get_foreign_keys("numbered") == []
    assert inspector.get_pk_constraint("numbered")["constrained_columns"] == []
    identity = {one["name"]: one.get("identity") for one in inspector.get_columns("numbered")}
    assert identity["a"] is None and identity["c"]["always"] and identity["c"]["start"] == 1, identity
    read = sa.MetaData()
    read.reflect(engine, only=["orm_hosts", "numbered"])
    assert [column.name for column in read.tables["orm_hosts"].primary_key] == ["id"]
    read.tables["numbered"].drop(engine)
    Base.metadata.drop_all(engine)
    assert not sa.inspect(engine).has_table("orm_hosts")
    engine.dispose()


async def asynchronous():
    connection = await asyncpg.connect(host="127.0.0.1", port=PORT, user="me", database="metrics")
    await connection.execute(
        "CREATE TABLE a (id serial PRIMARY KEY, n numeric(12,3), u uuid, t timestamp, d date, c time, j jsonb, "
        "x text[], p interval, b bool, v varchar(5), i smallint)")
    row = (decimal.Decimal("3.1415"), uuid.UUID(int=7), NOON.replace(tzinfo=None), NOON.date(), datetime.time(1, 2, 3),
           '{"a": 1}', ["q"], datetime.timedelta(days=1, seconds=5), True, "abc", 7)
    marks = ", ".join(f"${at + 1}" for at in range(len(row)))
    names = "n, u, t, d, c, j, x, p, b, v, i"
    read = await connection.fetchrow(f"INSERT INTO a ({names}) VALUES ({marks}) RETURNING {names}", *row)
    assert tuple(read) == (decimal.Decimal("3.142"), *row[1:]), read
    await connection.executemany("INSERT INTO a (n) VALUES ($1)", [(decimal.Decimal(one),) for one in range(100)])
    assert await connection.fetchval("SELECT count(*) FROM a") == 101
    await connection.copy_records_to_table("a", records=[(decimal.Decimal(one), "copy") for one in range(10)], columns=["n", "v"])
    assert await connection.fetchval("SELECT count(*) FROM a WHERE v = 'copy'") == 10
    try:
        async with connection.transaction():
            await connection.execute("DELETE FROM a")
            await connection.execute("INSERT INTO a (v) VALUES ('too long')")
    except asyncpg.StringDataRightTruncationError:
        pass
    assert await connection.fetchval("SELECT count(*) FROM a") == 111
    # Arrays other than those of texts are looked up in PostgreSQL's own tables first.
    for declared, value in [("int[]", [1, None]), ("bigint[]", [2**40]), ("float8[]", [1.5]), ("timestamptz[]", [NOON]), ("bool[]", [True])]:
        assert await connection.fetchval(f"SELECT $1::{declared}", value) == value, declared
    assert await connection.fetchval("SELECT count(*) FROM a WHERE id = any($1::int[])", [1, 2, 1000]) == 2
    assert await connection.fetchval("SELECT conkey FROM pg_constraint WHERE conname = 'a_pkey'") == [1]
    assert await connection.fetchval("SELECT indkey FROM pg_index WHERE indexrelid = 'a_pkey'::regclass") == [1]
    await inferred_parameters(connection)
    await column_types(connection)
    await connection.close()


async def inferred_parameters(connection):
    """The server infers the types of parameters that the client does not declare."""
    exact = decimal.Decimal("12345678901234567890.5")
    await connection.execute("CREATE TABLE y (i int, n numeric, t timestamp, d date, c time, p interval, u uuid, b bytea)")
    row = (1, exact, NOON.replace(tzinfo=None), NOON.date(), datetime.time(1, 2, 3), datetime.timedelta(hours=1),
           uuid.UUID(int=7), b"\x01")
    await connection.execute("INSERT INTO y VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", *row)
    await connection.execute("INSERT INTO y (i) VALUES (2)")
    assert await connection.fetchval("SELECT n::text FROM y WHERE i = 1") == str(exact)
    for column, value in zip("ntdcpub", row[1:]):
        found = await connection.fetchval(f"SELECT i FROM y WHERE {column} = ANY($1)", [value])
        assert found == 1, (column, value, found)
    filled = await connection.fetchrow(
        "SELECT coalesce(n, $1), coalesce(d, $2), coalesce(p, $3), coalesce(b, $4), CASE WHEN i = 1 THEN n ELSE $5 END, "
        "least(n, $6), left($7, $8), nullif(i, $9) FROM y WHERE i = 2",
        decimal.Decimal("7.50"), NOON.date(), datetime.timedelta(days=1), b"z", exact, exact, "abc", 2, 2)
    expected = (decimal.Decimal("7.50"), NOON.date(), datetime.timedelta(days=1), b"z", exact, exact, "ab", None)
    assert tuple(filled) == expected, filled
    await connection.execute("UPDATE y SET b = CASE WHEN i = $1 THEN $2 ELSE b END", 2, b"\xde\xad")
    assert await connection.fetchval("SELECT b FROM y WHERE i = 2") == b"\xde\xad"
    listed = [decimal.Decimal("1.10"), decimal.Decimal("99999999999999999999.99")]
    assert await connection.fetchval("SELECT $1::numeric[]", listed) == listed


async def column_types(connection):
    """Columns have the precision, the elements and the digits of their types, for binary COPY and parameters, too."""
    await connection.execute("CREATE TABLE precise (t timestamp(3), c time(0), z timestamptz(0), p interval(1), q interval day to minute)")
    at = NOON.replace(microsecond=123456)
    row = (at.replace(tzinfo=None), datetime.time(1, 2, 3, 600000), at.replace(microsecond=500000),
           datetime.timedelta(seconds=1, microseconds=260000), datetime.timedelta(days=1, minutes=2, seconds=3))
    await connection.execute("INSERT INTO precise VALUES ($1, $2, $3, $4, $5)", *row)
    await connection.copy_records_to_table("precise", records=[row])
    await connection.execute("INSERT INTO precise SELECT timestamp '2024-01-01 00:00:00.9996'")
    rounded = (at.replace(tzinfo=None, microsecond=123000), datetime.time(1, 2, 4), NOON.replace(second=NOON.second + 1, microsecond=0),
               datetime.timedelta(seconds=1, microseconds=300000), datetime.timedelta(days=1, minutes=2))
    found = await connection.fetch("SELECT * FROM precise ORDER BY t")
    assert [tuple(one) for one in found if one["c"]] == [rounded, rounded], found
    assert await connection.fetchval("SELECT max(t) FROM precise WHERE c IS NULL") == datetime.datetime(2024, 1, 1, 0, 0, 1)

    await connection.execute("CREATE TABLE padded (c char(4) PRIMARY KEY)")
    await connection.execute("INSERT INTO padded VALUES ('ab  ')")
    try:
        await connection.execute("INSERT INTO padded VALUES ('ab')")
        raise AssertionError("a second key that is equal")
    except asyncpg.UniqueViolationError:
        pass
    assert await connection.fetchval("SELECT length(c) FROM padded WHERE c = 'ab'") == 2

    await connection.execute("CREATE TABLE listed (id int PRIMARY KEY, u uuid[], n numeric[], v varchar(3)[], j jsonb[], b bytea[], t time[])")
    exact = decimal.Decimal("12345678901234567890.50")
    row = (1, [uuid.UUID(int=7), None], [exact], ["abc", "d"], ['{"a": 1.50}'], [b"\x00\xff"], [datetime.time(1, 2)])
    await connection.execute("INSERT INTO listed VALUES ($1, $2, $3, $4, $5, $6, $7)", *row)
    await connection.copy_records_to_table("listed", records=[(2, *row[1:]), (3, [], None, [], None, [], [])])
    for found in await connection.fetch("SELECT * FROM listed WHERE id < 3 ORDER BY id"):
        assert tuple(found)[1:] == row[1:], found
    assert await connection.fetchval("SELECT id FROM listed WHERE u = '{}' AND n IS NULL") == 3
    assert await connection.fetchval("SELECT count(*) FROM listed WHERE $1 = ANY(u)", uuid.UUID(int=7)) == 2
    assert await connection.fetchval("SELECT count(*) FROM unnest($1::uuid[]) e WHERE e = $2", row[1], uuid.UUID(int=7)) == 1
    assert [one["id"] for one in await connection.fetch("SELECT id, cardinality(v) FROM listed GROUP BY id ORDER BY id")] == [1, 2, 3]

    await connection.execute("CREATE TABLE document (id int, d jsonb)")
    await connection.execute("INSERT INTO document VALUES (1, $1), (2, to_jsonb(3.14)), (3, to_jsonb($2::numeric))", '{"a": 12345678901234567890.50}', exact)
    assert [one["d"] for one in await connection.fetch("SELECT d FROM document ORDER BY id")] == ['{"a": 12345678901234567890.50}', "3.14", str(exact)]
    assert await connection.fetchval("SELECT (d->>'a')::numeric FROM document WHERE id = 1") == exact

    assert await connection.execute("UPDATE document SET id = id + 10 WHERE id >= ALL (SELECT id FROM document)") == "UPDATE 1"
    assert await connection.execute("UPDATE document SET id = CASE WHEN id = 13 THEN NULL ELSE id * 2 END") == "UPDATE 3"
    assert await connection.execute("DELETE FROM document WHERE id < ANY (SELECT id FROM document)") == "DELETE 1"
    assert [one["id"] for one in await connection.fetch("SELECT id FROM document ORDER BY id")] == [4, None]


values()
copies()
transactions()
writers()
sqlalchemy()
asyncio.run(asynchronous())
