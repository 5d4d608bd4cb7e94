"""Parameters whose types the client declares (psycopg 3), with what PostgreSQL 15 answers.

    postgres_parameters.py PORT

Other arguments are libpq's, for PostgreSQL itself: `postgres_parameters.py "host=.. user=.."`.
"""
import datetime
import sys
from decimal import Decimal

import psycopg
from psycopg.types.numeric import Int2, Int4, Int8

TZ = datetime.timezone.utc
NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=TZ)
DAY = datetime.timedelta(days=1)

# A statement, its parameters, and the rows, or the code of the error.
ASKED = [
    ("SELECT %s + 1", [1.5], [(2.5,)]),
    ("SELECT 1 + %s", [1.5], [(2.5,)]),
    ("SELECT %s + 1", [float("inf")], [(float("inf"),)]),
    ("SELECT (%s + 1)::text", [float("nan")], [("NaN",)]),
    ("SELECT %s + 1", [Decimal("1.5")], [(Decimal("2.5"),)]),
    ("SELECT %s + 1", [Decimal(2**70)], [(Decimal(2**70 + 1),)]),
    ("SELECT %s * 2, %s", [Decimal("0.10"), "x"], [(Decimal("0.20"), "x")]),
    ("SELECT %s + 1", [datetime.date(2024, 1, 1)], [(datetime.date(2024, 1, 2),)]),
    ("SELECT %s - 1", [datetime.date(2024, 1, 1)], [(datetime.date(2023, 12, 31),)]),
    ("SELECT %s + interval '1 hour'", [NOON], [(NOON + datetime.timedelta(hours=1),)]),
    ("SELECT %s - %s", [NOON, NOON - DAY], [(DAY,)]),
    ("SELECT %s::int", [2.5], [(2,)]),
    ("SELECT %s::int", [Decimal("2.5")], [(3,)]),
    ("SELECT id FROM p WHERE i = %s", [Decimal("1.5")], []),
    ("SELECT id FROM p WHERE i < %s ORDER BY 1", [1.5], [(1,)]),
    ("SELECT id FROM p WHERE n = %s", [Decimal("1.50")], [(1,)]),
    ("SELECT id FROM p WHERE f = %s", [Int2(2)], [(2,)]),
    ("SELECT id FROM p WHERE id = ANY(%s) ORDER BY 1", [[1, 2]], [(1,), (2,)]),
    ("SELECT id FROM p WHERE t = ANY(%s)", [["b"]], [(2,)]),
    ("SELECT id FROM p WHERE t = %s AND i = %s AND at = %s", ["a", 1, NOON], [(1,)]),
    ("SELECT id FROM p WHERE at > %s", [7], "42883"),
    ("SELECT id FROM p WHERE j = %s", [b"\x00\xff"], "42883"),
    ("SELECT id FROM p ORDER BY id LIMIT %s", [Int2(1)], [(1,)]),
    ("SELECT time_ + %s FROM (SELECT at AS time_ FROM p WHERE id = 1) q", [DAY], [(NOON + DAY,)]),
    ("SELECT %s || t FROM p WHERE id = 1", ["x"], [("xa",)]),
    ("SELECT sum(i * %s) FROM p GROUP BY i > %s ORDER BY 1", [0.5, "1"], [(0.5,), (1.0,)]),
    ("SELECT CASE WHEN %s THEN i ELSE %s END FROM p WHERE id = 1", [True, 7], [(1,)]),
    ("SELECT coalesce(%s, %s)", [None, 5], [(5,)]),
]

# What a column becomes by UPDATE and by INSERT: the value, and the text of what is there then, or the code.
STORED = [
    ("a", [1, 2], "{1,2}"),
    ("t", [1, 2], "{1,2}"),
    ("t", ["a b", "", None, 'q"', "null", "{"], '{"a b","",NULL,"q\\"","null","{"}'),
    ("t", Decimal(2**70), "1180591620717411303424"),
    ("t", Decimal("0.10"), "0.10"),
    ("t", DAY, "1 day"),
    ("t", datetime.timedelta(days=3, hours=1), "3 days 01:00:00"),
    ("t", 1.5, "1.5"),
    ("t", True, "true"),
    ("t", NOON, "2024-01-01 12:00:00+00"),
    ("t", datetime.date(2024, 2, 29), "2024-02-29"),
    ("s", 1.5, "2"),
    ("s", 2.5, "2"),
    ("s", Decimal("2.5"), "3"),
    ("s", Decimal("-0.5"), "-1"),
    ("s", Int8(70000), "22003"),
    ("i", 2.5, "2"),
    ("i", Decimal("2.5"), "3"),
    ("i", True, "42804"),
    ("bi", NOON, "42804"),
    ("bi", Decimal("2.5"), "3"),
    ("bo", float("nan"), "42804"),
    ("bo", Int4(1), "42804"),
    ("tt", "1", "22007"),
    ("tt", "01:02:03", "01:02:03"),
    ("tt", datetime.time(1, 2, 3), "01:02:03"),
    ("n", Decimal("1.005"), "1.01"),
    ("n", 1.25, "1.25"),
    ("n", Int2(7), "7.00"),
    ("f", Decimal("1.5"), "1.5"),
    ("f", Int8(3), "3"),
    ("at", datetime.date(2024, 1, 2), "2024-01-02 00:00:00+00"),
    ("at", "2024-01-02 03:00+01", "2024-01-02 02:00:00+00"),
    ("j", "[1]", "[1]"),
]


def outcome(connection, statement, parameters):
    try:
        cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        return error.sqlstate


def main():
    target = sys.argv[1]
    target = f"host=127.0.0.1 port={target} user=me dbname=metrics" if target.isdigit() else target
    wrong = []
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("DROP TABLE IF EXISTS p")
        connection.execute(
            "CREATE TABLE p (id int PRIMARY KEY, s smallint, i int, bi bigint, f float8, n numeric(10,2), "
            "t text, bo boolean, tt time, at timestamptz, a int[], j jsonb)"
        )
        connection.execute(
            "INSERT INTO p (id, i, f, n, t, at) VALUES (1, 1, 1, 1.5, 'a', %s), (2, 2, 2, 2.5, 'b', NULL)",
            [NOON],
        )

        def check(expected, statement, parameters):
            found = outcome(connection, statement, parameters)
            if found != expected:
                wrong.append(f"{statement} {parameters!r}: {found!r}, not {expected!r}")

        for statement, parameters, expected in ASKED:
            # The second time a plan may be there that was made for the first one.
            check(expected, statement, parameters)
            check(expected, statement, parameters)
        # One text, and other types.
        for value, expected in [(1, 2), (1.5, 2.5), (Decimal("1.5"), Decimal("2.5")), (1, 2)]:
            check([(expected,)], "SELECT %s + 1", [value])
        for column, value, expected in STORED:
            is_code = len(expected) == 5 and expected.isalnum() and column != "t"
            shown = f"SELECT {column}::text FROM p WHERE id = %s"
            rows = [] if not is_code else expected
            check(rows, f"UPDATE p SET {column} = %s WHERE id = 2", [value])
            if not is_code:
                check([(expected,)], shown, [2])
            connection.execute("DELETE FROM p WHERE id = 3")
            check(rows, f"INSERT INTO p (id, {column}) VALUES (3, %s)", [value])
            if not is_code:
                check([(expected,)], shown, [3])
    if wrong:
        sys.exit("\n".join(wrong))


main()
