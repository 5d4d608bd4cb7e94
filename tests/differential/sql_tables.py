"""Tables that both servers have: their columns, and rows made from the seed.

`mild` and `edge` have a column of each type, with usual values and with those at the edges. `a`, `b` and `c` are
small, with NULL and duplicates, for joins. `h` is a hypertable of Quipu and an ordinary table of PostgreSQL, `p` an
ordinary table of both with the same rows. `w` and `v` are changed.
"""

import datetime

from sql_types import TYPES, draw_value, quote


class Relation:
    """A table or an item of FROM: its columns and their types, and the columns that tell rows apart."""

    def __init__(self, name, columns, key=()):
        self.name, self.columns, self.key = name, columns, key


EVERY = {"id": "i4"} | {f"c{kind}": kind for kind in TYPES}
SMALL = {"id": "i4", "k": "i4", "w": "i4", "x": "f8", "n": "nu", "s": "t", "d": "d"}
HYPER = {"time": "tz", "host": "t", "region": "t", "rack": "i4", "usage": "f8", "temp": "f8", "n": "i8"}
WRITTEN = {"id": "i4", "k": "i4", "t": "t", "n": "nu", "f": "f8", "v": "v", "d": "d", "ts": "ts", "b": "b", "jb": "jb", "ai": "ai", "s": "i2"}
WRITTEN_SQL = ("id int primary key, k int unique, t text not null default 'none', n numeric(8,2), f float8 default 1.5, v varchar(5), d date, "
               "ts timestamp, b bool default false, jb jsonb, ai int[], s smallint")
HYPER_KEY = ("time", "host", "region", "rack")
RELATIONS = [Relation("mild", EVERY, ("id",)), Relation("edge", EVERY, ("id",)), Relation("a", SMALL, ("id",)),
             Relation("b", SMALL, ("id",)), Relation("c", SMALL, ("id",)), Relation("h", HYPER, HYPER_KEY), Relation("p", HYPER, HYPER_KEY)]
WRITTEN_RELATIONS = [Relation("w", WRITTEN, ("id",)), Relation("v", WRITTEN, ("id",))]
BY_NAME = {one.name: one for one in RELATIONS + WRITTEN_RELATIONS}

# Values of `edge` that Quipu's documentation says its tables do not take: dates without an end, numerics of more than
# 38 digits, and what is neither.
NOT_STORED = {"d": ("infinity", "-infinity", "4713-01-01 BC"), "ts": ("infinity", "-infinity", "294276-12-31 23:59:59", "0044-03-15 10:00:00 BC"),
              "tz": ("infinity", "-infinity"), "nu": ("NaN", "Infinity", "99999999999999999999.9999999999", "12345678901234567890123456789.5",
                                                      "1e-20", "0.30000000000000004", "123456789.123456789"),
              "iv": ("1000000 hours",), "tm": ("24:00:00",)}


def columns_sql(columns, not_null=()):
    return ", ".join(f"{name} {TYPES[kind][0]}{' not null' if name in not_null else ''}" for name, kind in columns.items())


def make_tables():
    """Yields the statements that make the tables on both servers."""
    for name in ("mild", "edge"):
        yield f"create table {name} ({columns_sql(EVERY)}, primary key (id))"
    for name in ("a", "b"):
        yield f"create table {name} ({columns_sql(SMALL, ('id',))})"
    yield f"create table c ({columns_sql(SMALL, SMALL)})"
    yield f"create table h ({columns_sql(HYPER, ('time',))})"
    yield f"create table p ({columns_sql(HYPER, ('time',))})"
    for name in ("w", "v", "w0"):
        yield f"create table {name} ({WRITTEN_SQL})"


# Quipu alone: `rack` tells rows apart, `n` is a value.
HYPERTABLE = ["select create_hypertable('h', 'time')", "alter table h set (timescaledb.segmentby = 'host, region, rack')"]


def draw_cell(chance, kind, is_edge):
    if chance.random() < 0.15:
        return "null"
    value = draw_value(chance, kind, is_edge)
    while value in NOT_STORED.get(kind, ()):
        value = draw_value(chance, kind, is_edge)
    return f"{quote(value)}::{TYPES[kind][0]}"


def make_rows(chance):
    """Yields (table, rows as VALUES) of the tables that queries read."""
    for name in ("mild", "edge"):
        for number in range(1, 21):
            yield name, f"({number}, {', '.join(draw_cell(chance, kind, name == 'edge') for kind in TYPES)})"
    for name, count in (("a", 9), ("b", 8), ("c", 6)):
        for number in range(1, count + 1):
            yield name, draw_small_row(chance, number, name == "c")
    for row in draw_hyper_rows(chance, 60):
        yield "h", row
        yield "p", row
    for table, numbers in (("w0", range(1, 9)),):
        for number in numbers:
            yield table, draw_written_row(chance, number)


def draw_small_row(chance, number, is_whole):
    cell = [str(number), str(chance.randint(1, 5)), str(chance.randint(1, 3)), chance.choice(["0.5", "1", "-2.25", "3", "'NaN'"]),
            chance.choice(["0.5", "1.25", "2", "-3.10"]), quote(chance.choice(["a", "b", "ab", "A", "x"])),
            f"'2024-01-0{chance.randint(1, 4)}'"]
    return "(" + ", ".join(one if not at or is_whole or chance.random() > 0.2 else "null" for at, one in enumerate(cell)) + ")"


def draw_hyper_rows(chance, count):
    start = datetime.datetime(2024, 1, 30, 22, 0, 0)
    rows = {}
    while len(rows) < count:
        seconds = chance.choice([chance.randint(0, 7200), 60 * chance.randint(0, 60), chance.randint(0, 86_400 * 45)])
        key = (start + datetime.timedelta(seconds=seconds, microseconds=chance.choice([0, 0, 1, 500_000])),
               chance.choice(["a", "b", "c", "ü", "x y", "o'k", "%_", "A"]), chance.choice(["eu", "us", None]), chance.choice([1, 2, 3, None]))
        number = lambda: chance.choice(["null", "0", "0.25", "'NaN'", "-3", repr(round(chance.uniform(-100, 100), 3)), str(chance.randint(-5, 5))])
        values = [number(), number(), chance.choice(["null", str(chance.randint(-3, 3)), str(chance.randint(-10**12, 10**12))])]
        rows[key] = values if set(values) != {"null"} else ["1", "null", "null"]
    write = lambda one: "null" if one is None else str(one) if isinstance(one, int) else quote(f"{one}+00" if isinstance(one, datetime.datetime) else one)
    return ["(" + ", ".join([*map(write, key), *values]) + ")" for key, values in rows.items()]


def draw_written_row(chance, number):
    cells = [str(number), str(number * 10) if chance.random() < 0.8 else "null", quote(chance.choice(["a", "b", "none", ""]))]
    cells += [draw_cell(chance, kind, False) for kind in list(WRITTEN.values())[3:]]
    return "(" + ", ".join(cells) + ")"
