"""Changes ordinary tables of Quipu and of PostgreSQL in the same way, and says where they come to differ.

    postgres_tables_differential.py BINARY [--seed N] [--count N] [--show N]

Statements are made from a seed. After each of them what it answered is compared, and from time to time all
rows of all tables are. Numbers that are given out are not asked for: here those of rows that were refused
come again.
"""

import argparse
import collections
import random
import sys

import psycopg

from postgres_differential import connected, postgresql, quipu, shown

TYPES = {
    "b": ("boolean", ["true", "'f'", "'yes'", "NULL", "'maybe'", "1"]),
    "i": ("integer", ["0", "1", "-7", "2147483647", "2147483648", "2.5", "3.5", "'12'", "' 5 '", "'x'", "NULL", "1e3"]),
    "l": ("bigint", ["0", "9223372036854775807", "'9223372036854775808'", "7.49", "NULL"]),
    "s": ("smallint", ["1", "-32768", "32768", "NULL"]),
    "f": ("double precision", ["0", "1.5", "-1e300", "'NaN'", "'Infinity'", "'abc'", "NULL", "0.1"]),
    "r": ("real", ["1.5", "0.1", "1e39", "NULL"]),
    "n": ("numeric(8,3)", ["1.0005", "-1.0005", "12345.6789", "99999.9999", "123456", "'7.10'", "'x'", "NULL", "1e2"]),
    "t": ("text", ["'a'", "'b'", "''", "'é'", "'a b'", "'it''s'", "NULL", "'10'", "'A'"]),
    "v": ("varchar(3)", ["'abc'", "'abcd'", "'ab  '", "'abc  '", "NULL", "'é€x'"]),
    "z": ("timestamptz", ["'2024-02-29 12:00:00+00'", "'2024-02-29'", "'nonsense'", "NULL", "'infinity'"]),
    "w": ("timestamp", ["'2024-02-29 12:00:00.123456'", "'1969-12-31 23:59:59'", "NULL"]),
    "d": ("date", ["'2024-02-29'", "'2024-02-30'", "NULL", "'1900-01-01'"]),
    "c": ("time", ["'10:11:12.5'", "'25:00'", "NULL", "'00:00'"]),
    "p": ("interval", ["'1 day'", "'1 month 02:00'", "'30 days'", "NULL", "'x'"]),
    "j": ("jsonb", ["'{\"b\": 1, \"a\": [true, null]}'", "'[]'", "'{'", "NULL", "'\"x\"'"]),
    "u": ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'{a0eebc999c0b4ef8bb6d6bb9bd380a12}'", "'x'", "NULL"]),
    "x": ("int[]", ["'{1,2,NULL}'", "'{}'", "'{x}'", "NULL", "ARRAY[3,4]"]),
    "y": ("text[]", ["'{a,\"b c\",NULL}'", "NULL", "ARRAY['q']"]),
}
DEFAULTS = {"i": "7", "t": "'none'", "b": "false", "n": "1.5", "f": "1 + 1.5", "z": "'2024-01-01 00:00:00+00'::timestamptz"}


class Statements:
    def __init__(self, rng):
        self.rng = rng
        self.tables = {}
        self.made = 0
        self.depth = 0

    def one(self, choices):
        return self.rng.choice(list(choices))

    def create(self):
        self.made += 1
        name = f"t{self.made}"
        kinds = self.rng.sample(list(TYPES), self.rng.randrange(2, 8))
        parts, columns = ["k integer"], {"k": "i"}
        if self.rng.random() < 0.8:
            parts[0] += " PRIMARY KEY"
        for kind in kinds:
            column = f"c{kind}"
            columns[column] = kind
            text = f"{column} {TYPES[kind][0]}"
            if kind in DEFAULTS and self.rng.random() < 0.5:
                text += f" DEFAULT {DEFAULTS[kind]}"
            if self.rng.random() < 0.1:
                text += " NOT NULL"
            if kind in "itvludbz" and self.rng.random() < 0.2:
                text += " UNIQUE"
            parts.append(text)
        if self.rng.random() < 0.15 and "ct" in columns:
            parts.append("UNIQUE (k, ct)")
        self.tables[name] = columns
        return f"CREATE TABLE {name} ({', '.join(parts)})"

    def value(self, kind):
        return str(self.rng.randrange(20)) if kind == "i" and self.rng.random() < 0.6 else self.one(TYPES[kind][1])

    def key(self):
        return str(self.rng.randrange(30))

    def insert(self, name, columns):
        chosen = ["k"] + [one for one in columns if one != "k" and self.rng.random() < 0.7]
        cell = lambda one: self.key() if one == "k" else ("DEFAULT" if self.rng.random() < 0.05 else self.value(columns[one]))
        rows = [f"({', '.join(cell(one) for one in chosen)})" for _ in range(self.one([1, 1, 1, 2, 3]))]
        text = f"INSERT INTO {name} ({', '.join(chosen)}) VALUES {', '.join(rows)}"
        choice = self.rng.random()
        if choice < 0.2:
            text += " ON CONFLICT DO NOTHING"
        elif choice < 0.45:
            others = [one for one in columns if one != "k"]
            column = self.one(others)
            value = self.one([f"EXCLUDED.{column}", f"{name}.{column}", self.value(columns[column])])
            text += f" ON CONFLICT (k) DO UPDATE SET {column} = {value}"
            if self.rng.random() < 0.3:
                text += f" WHERE {name}.k > {self.key()}"
        if self.rng.random() < 0.4:
            text += " RETURNING *"
        return text

    def copied(self, name, columns):
        other, theirs = self.one(self.tables.items())
        both = [one for one in columns if one in theirs and one != "k"]
        chosen = ", ".join(["k", *both])
        return f"INSERT INTO {name} ({chosen}) SELECT {', '.join(['k + 100', *both])} FROM {other} WHERE k < {self.key()} ORDER BY k"

    def condition(self, name, columns):
        column = self.one(columns)
        plain = {"i": ["> 5", "= 7", "IS NULL"], "t": ["= 'a'", "LIKE 'a%'", "IS NOT NULL", "IN ('a', 'b')"],
                 "f": ["> 1", "= 1.5"], "b": ["IS TRUE", "= true"], "n": ["> 1", "<> 1.001"], "d": ["< '2024-01-01'"],
                 "z": ["= '2024-02-29'", "IS NULL"], "u": ["= 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]}
        tail = self.one(plain.get(columns[column], ["IS NULL", "IS NOT NULL"]))
        return self.one([f"k = {self.key()}", f"k = {self.key()}", f"k < {self.key()}", f"{column} {tail}",
                         f"k IN (SELECT k FROM {self.one(self.tables)} WHERE k < {self.key()})"])

    def update(self, name, columns):
        sets = {}
        for column in self.rng.sample(list(columns), min(len(columns), self.rng.randrange(1, 3))):
            kind = columns[column]
            sums = {"i": f"{column} + 1", "l": f"{column} - 1", "f": f"{column} * 2", "n": f"{column} + 0.001", "t": f"{column} || 'x'", "b": f"NOT {column}"}
            sets[column] = self.one([sums.get(kind, column), self.value(kind), "DEFAULT"])
        if self.rng.random() < 0.3:
            sets["k"] = f"k + {self.one([1, -1, 100, 0])}"
        text = f"UPDATE {name} SET {', '.join(f'{column} = {value}' for column, value in sets.items())}"
        text += f" WHERE {self.condition(name, columns)}" if self.rng.random() < 0.9 else ""
        return text + (" RETURNING *" if self.rng.random() < 0.3 else "")

    def alter(self, name, columns):
        kind = self.one(TYPES)
        new = f"a{kind}{self.rng.randrange(3)}"
        choice = self.rng.random()
        if choice < 0.5:
            default = f" DEFAULT {DEFAULTS[kind]}" if kind in DEFAULTS and self.rng.random() < 0.7 else ""
            if new not in columns:
                columns[new] = kind
            return f"ALTER TABLE {name} ADD COLUMN {new} {TYPES[kind][0]}{default}"
        others = [one for one in columns if one != "k"]
        if choice < 0.7 and 1 < len(others):
            gone = self.one(others)
            del columns[gone]
            return f"ALTER TABLE {name} DROP COLUMN {gone}"
        column = self.one(others)
        return f"ALTER TABLE {name} ALTER COLUMN {column} {self.one(['SET NOT NULL', 'DROP NOT NULL', 'DROP DEFAULT'])}"

    def statement(self):
        if len(self.tables) < 2 or self.rng.random() < 0.01:
            return self.create()
        name = self.one(self.tables)
        columns = self.tables[name]
        kind = self.rng.random()
        if kind < 0.4:
            return self.insert(name, columns)
        if kind < 0.65:
            return self.update(name, columns)
        if kind < 0.72:
            return f"DELETE FROM {name} WHERE {self.condition(name, columns)}" + self.one(["", " RETURNING k"])
        if kind < 0.78:
            return self.copied(name, columns)
        if kind < 0.80:
            return self.alter(name, columns)
        if kind < 0.805 and 2 < len(self.tables):
            del self.tables[name]
            return f"DROP TABLE {name}"
        if kind < 0.81:
            return f"TRUNCATE {name}"
        if kind < 0.87:
            return self.one(["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s"])
        return f"SELECT {self.one(['*', 'count(*)', 'k'])} FROM {name} WHERE {self.condition(name, columns)}"


def asked(connection, statement):
    try:
        cursor = connection.execute(statement)
    except psycopg.Error as error:
        return error.sqlstate, str(error).split("\n")[0]
    rows = cursor.fetchall() if cursor.description else []
    return None, (cursor.statusmessage, sorted(map(str, (tuple(shown(cell) for cell in row) for row in rows))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4_000)
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    with quipu(options.binary) as one, postgresql() as other:
        return compared(options, connected(one), connected(other))


def compared(options, ours, theirs):
    statements, counts, told = Statements(random.Random(options.seed)), collections.Counter(), 0

    def compare(number, statement):
        nonlocal told
        one, other = asked(ours, statement), asked(theirs, statement)
        if one[0] is None and other[0] is None:
            kind = "same" if one[1] == other[1] else "DIFFERENT"
        elif one[0] is not None and other[0] is not None:
            kind = "both refuse" if one[0] == other[0] else "other codes"
        elif other[0] == "23505" and statement.startswith("UPDATE"):
            # PostgreSQL compares keys row by row, we once all rows have changed.
            kind = "keys that are exchanged"
        else:
            kind = "ONLY OURS REFUSES" if one[0] else "ONLY THEIRS REFUSES"
        counts[kind] += 1
        if kind not in ("same", "both refuse", "other codes", "keys that are exchanged") and told < options.show:
            told += 1
            print(f"-- {kind} ({number})\n{statement}\n   ours:   {str(one)[:400]}\n   theirs: {str(other)[:400]}")
        return kind

    for number in range(options.count):
        statement = statements.statement()
        kind = compare(number, statement)
        # What went otherwise is made the same again, so that what follows tells something.
        if kind not in ("same", "both refuse", "other codes"):
            for name in list(statements.tables):
                for server in (ours, theirs):
                    asked(server, "ROLLBACK")
                    asked(server, f"DROP TABLE IF EXISTS {name}")
            statements.tables.clear()
        elif number % 50 == 49:
            for name in statements.tables:
                compare(number, f"SELECT * FROM {name}")
    print(dict(counts))
    return 1 if counts["DIFFERENT"] + counts["ONLY THEIRS REFUSES"] + counts["ONLY OURS REFUSES"] else 0


if __name__ == "__main__":
    sys.exit(main())
