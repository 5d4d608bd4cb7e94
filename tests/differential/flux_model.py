"""A model of Flux: streams of tables in Python, and what each function makes of them.

A table has a group key, typed columns and rows. Each function takes a list of tables and returns a list of
tables, as the manual of Flux describes it. A `Refusal` is a query that Flux refuses.
"""

import collections
import math

SECOND = 10**9


class Refusal(Exception):
    """An error that the query must have."""


class Time(int):
    """Nanoseconds since 1970."""

    __slots__ = ()


class Table:
    """`key` maps the columns of the group key to values, `columns` names to types; a row maps names to values."""

    def __init__(self, key, columns, rows):
        self.key, self.columns, self.rows = key, columns, rows

    def identity(self):
        return tuple(sorted((name, type(value).__name__, value) for name, value in self.key.items()))

    def with_rows(self, rows):
        return Table(self.key, self.columns, rows)

    def column(self, name):
        if name not in self.columns:
            raise Refusal(f"no column {name}")
        return [row.get(name) for row in self.rows]


def type_of(value):
    return {bool: "boolean", int: "long", float: "double", str: "string", Time: "dateTime:RFC3339"}[type(value)]


def merge(tables):
    """Merges tables with equal group keys; refuses a column of two types."""
    found = {}
    for table in tables:
        other = found.setdefault(table.identity(), Table(table.key, {}, []))
        for name, kind in table.columns.items():
            if other.columns.setdefault(name, kind) != kind:
                raise Refusal("schema collision")
        other.rows = other.rows + table.rows
    return list(found.values())


def regroup(tables, is_key):
    """Groups all rows anew."""
    pieces = []
    for table in tables:
        names = [name for name in table.columns if is_key(name)]
        rows = collections.defaultdict(list)
        for row in table.rows:
            rows[tuple((name, type(row.get(name)).__name__, row.get(name)) for name in names)].append(row)
        for key, members in rows.items():
            pieces.append(Table({name: value for name, _, value in key}, dict(table.columns), members))
    return merge(pieces)


# Rows.

def filter_rows(test):
    return lambda tables: [table.with_rows(rows) for table in tables if (rows := [row for row in table.rows if test(row)])]


def limit(count, offset=0):
    return lambda tables: [table.with_rows(table.rows[offset:offset + count]) for table in tables]


def tail(count, offset=0):
    def apply(tables):
        ends = [(table, max(0, len(table.rows) - offset)) for table in tables]
        return [table.with_rows(table.rows[max(0, end - count):end]) for table, end in ends]
    return apply


def order_key(value):
    """Nulls come first."""
    return (value is not None, value if value is not None else 0)


def sort(columns, is_descending=False):
    def apply(tables):
        found = []
        for table in tables:
            known = [name for name in columns if name in table.columns]
            rows = table.rows
            for name in reversed(known):
                rows = sorted(rows, key=lambda row, name=name: order_key(row.get(name)), reverse=is_descending)
            found.append(table.with_rows(rows))
        return found
    return apply


def pick_row(name):
    """Returns first, last, min or max of the column _value: whole rows."""
    def choose(rows):
        rows = [row for row in rows if row.get("_value") is not None]
        if not rows:
            return []
        if name in ("first", "last"):
            return [rows[0 if name == "first" else -1]]
        best = rows[0]
        for row in rows[1:]:
            if row["_value"] < best["_value"] if name == "min" else row["_value"] > best["_value"]:
                best = row
        return [best]

    def apply(tables):
        for table in tables:
            kind = table.columns.get("_value")
            if kind is None:
                raise Refusal("no column _value")
            if name in ("min", "max") and kind not in ("double", "long"):
                raise Refusal(f"{name} of {kind}")
        return [table.with_rows(choose(table.rows)) for table in tables]
    return apply


# Aggregates.

def wrap(value):
    """Wraps to 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def mean(values):
    return add(values) / len(values) if values else None


def add(values):
    total = 0.0
    for value in values:
        total += value
    return total


def stddev(values):
    if not values:
        return None
    count, average, squares = 0, 0.0, 0.0
    for value in values:
        count += 1
        distance = value - average
        average += distance / count
        squares += distance * (value - average)
    return math.sqrt(squares / (count - 1)) if count > 1 else math.nan


def exact_median(values):
    if not values:
        return None
    values, middle = sorted(values), (len(values) - 1) * 0.5
    low, high = values[math.floor(middle)], values[math.ceil(middle)]
    return float(low) if math.floor(middle) == math.ceil(middle) else low * 0.5 + high * 0.5


def total(values):
    if not values:
        return None
    return add(values) if isinstance(values[0], float) else wrap(sum(values))


def spread(values):
    if not values:
        return None
    width = max(values) - min(values)
    return width if isinstance(width, float) else wrap(width)


# name: (function of the values that are not null, type of the result or None for that of the column)
AGGREGATES = {"mean": (lambda values: mean([float(value) for value in values]), "double"), "sum": (total, None),
              "spread": (spread, None), "stddev": (lambda values: stddev([float(value) for value in values]), "double"),
              "median": (exact_median, "double"), "count": (len, "long")}


def aggregate(name):
    function, result = AGGREGATES[name]

    def apply(tables):
        found = []
        for table in tables:
            values = table.column("_value")
            kind = table.columns["_value"]
            if name != "count" and kind not in ("double", "long"):
                raise Refusal(f"{name} of {kind}")
            if name != "count":
                values = [value for value in values if value is not None]
            columns = {column: table.columns[column] for column in table.key} | {"_value": result or kind}
            found.append(Table(table.key, columns, [{**table.key, "_value": function(values)}]))
        return found
    return apply


def distinct(tables):
    found = []
    for table in tables:
        values = list(dict.fromkeys(table.column("_value")))
        columns = {name: table.columns[name] for name in table.key} | {"_value": table.columns["_value"]}
        found.append(Table(table.key, columns, [{**table.key, "_value": value} for value in values]))
    return found


def unique(column):
    def apply(tables):
        found = []
        for table in tables:
            table.column(column)
            seen = {}
            for row in table.rows:
                seen.setdefault(row.get(column), row)
            found.append(table.with_rows(list(seen.values())))
        return found
    return apply


# Neighbours.

def neighbours(change, kind=None, column="_value", needs=("double", "long")):
    """Makes a row of each row but the first: `change` takes the row before and the row."""
    def apply(tables):
        found = []
        for table in tables:
            table.column("_value")
            if table.columns["_value"] not in needs:
                raise Refusal("not a number")
            rows = [{**row, column: change(before, row)} for before, row in zip(table.rows, table.rows[1:])]
            found.append(Table(table.key, table.columns | {column: kind or table.columns["_value"]}, rows))
        return found
    return apply


def difference(is_non_negative):
    def change(before, row):
        value = row["_value"] - before["_value"]
        if is_non_negative and row["_value"] < before["_value"]:
            return None
        return wrap(value) if isinstance(value, int) else value
    return neighbours(change)


def derivative(unit, is_non_negative):
    def change(before, row):
        value = float(row["_value"] - before["_value"]) / ((row["_time"] - before["_time"]) / unit)
        return None if is_non_negative and value < 0 else value
    return neighbours(change, "double")


def elapsed(unit):
    return neighbours(lambda before, row: (row["_time"] - before["_time"]) // unit, "long", "elapsed",
                      ("double", "long", "string", "boolean"))


def running(step, zero=None):
    """Replaces each value by `step` of all values up to it."""
    def apply(tables):
        found = []
        for table in tables:
            values = table.column("_value")
            if table.columns["_value"] not in ("double", "long"):
                raise Refusal("not a number")
            rows = [{**row, "_value": value} for row, value in zip(table.rows, step(values))]
            found.append(table.with_rows(rows))
        return found
    return apply


def cumulate(values):
    sums, so_far = [], None
    for value in values:
        so_far = value if so_far is None else so_far + value
        so_far = wrap(so_far) if isinstance(so_far, int) else so_far
        sums.append(so_far)
    return sums


def increase(values):
    sums, so_far = [], 0
    for before, value in zip([None, *values], values):
        if before is not None:
            so_far += value - before if value >= before else value
        sums.append(so_far)
    return [float(value) if isinstance(values[0], float) else wrap(value) for value in sums]


def moving_average(count):
    def apply(tables):
        found = []
        for table in tables:
            values = table.column("_value")
            if table.columns["_value"] not in ("double", "long"):
                raise Refusal("not a number")
            rows = [{**row, "_value": mean([float(value) for value in values[at + 1 - count:at + 1]])}
                    for at, row in enumerate(table.rows) if at + 1 >= count]
            if table.rows and len(table.rows) < count:
                rows = [{**table.rows[-1], "_value": mean([float(value) for value in values])}]
            found.append(Table(table.key, table.columns | {"_value": "double"}, rows))
        return found
    return apply


# Windows.

def window(every, bounds, offset=0, is_empty_wanted=False):
    """Cuts tables into windows of `every` nanoseconds, aligned to 1970 and `offset`; `bounds` are those of `range`."""
    def apply(tables):
        found = []
        start, stop = bounds
        for table in tables:
            rows = collections.OrderedDict()
            first = (start - offset) // every * every + offset
            if is_empty_wanted:
                for begin in range(first, stop, every):
                    rows[begin] = []
            for row in table.rows:
                rows.setdefault((row["_time"] - offset) // every * every + offset, []).append(row)
            for begin in sorted(rows):
                ends = {"_start": Time(max(begin, start)), "_stop": Time(min(begin + every, stop))}
                if ends["_start"] < ends["_stop"]:
                    found.append(Table({**table.key, **ends}, table.columns, [{**row, **ends} for row in rows[begin]]))
        return merge(found)
    return apply


def aggregate_window(every, bounds, offset, function, is_empty_wanted, time="_stop"):
    whole = {"_start": Time(bounds[0]), "_stop": Time(bounds[1])}

    def apply(tables):
        found = []
        for piece in function(window(every, bounds, offset, is_empty_wanted)(tables)):
            # An empty window has a row of nulls, also of functions that pick rows.
            rows = piece.rows or ([{**dict.fromkeys(piece.columns), **piece.key}] if is_empty_wanted else [])
            rows = [{**row, "_time": piece.key[time], **whole} for row in rows]
            found.append(Table({**piece.key, **whole}, piece.columns | {"_time": "dateTime:RFC3339"}, rows))
        return merge(found)
    return apply


# Columns.

def group(columns, is_except=False):
    return lambda tables: regroup(tables, lambda name: (name in columns) != is_except)


def keep(is_kept):
    def apply(tables):
        pieces = []
        for table in tables:
            columns = {name: kind for name, kind in table.columns.items() if is_kept(name)}
            key = {name: value for name, value in table.key.items() if is_kept(name)}
            if columns:
                pieces.append(Table(key, columns, [{name: row.get(name) for name in columns} for row in table.rows]))
        return merge(pieces)
    return apply


def rename(old, new):
    def apply(tables):
        found = []
        for table in tables:
            if old in table.columns and new in table.columns:
                raise Refusal("two columns with one name")
            name_of = lambda name: new if name == old else name
            found.append(Table({name_of(name): value for name, value in table.key.items()},
                               {name_of(name): kind for name, kind in table.columns.items()},
                               [{name_of(name): value for name, value in row.items()} for row in table.rows]))
        return found
    return apply


def replace_column(name, kind_of, value_of):
    """Sets a column of each row, also one of the group key."""
    def apply(tables):
        pieces = []
        for table in tables:
            rows = [{**row, name: value_of(row)} for row in table.rows]
            columns = table.columns | {name: kind_of(table)}
            if name not in table.key:
                pieces.append(Table(table.key, columns, rows))
                continue
            pieces += regroup([Table({}, columns, rows)], lambda column, table=table: column in table.key)
        return merge(pieces)
    return apply


def convert(function, kind):
    def apply(tables):
        return [Table(table.key, table.columns | {"_value": kind},
                      [{**row, "_value": function(row["_value"])} for row in table.rows]) for table in tables]
    return apply


def fill(value, kind):
    def apply(tables):
        for table in tables:
            if table.columns.get("_value", kind) != kind:
                raise Refusal("fill of another type")
        return [table.with_rows([{**row, "_value": value if row.get("_value") is None else row["_value"]} for row in table.rows])
                for table in tables]
    return apply


def fill_previous(tables):
    found = []
    for table in tables:
        rows, before = [], None
        for row in table.rows:
            before = row["_value"] if row.get("_value") is not None else before
            rows.append({**row, "_value": before})
        found.append(table.with_rows(rows))
    return found


def pivot(row_key, column_key):
    """Makes a column of each value of `column_key`; values are those of _value."""
    def apply(tables):
        grouped = collections.OrderedDict()
        gone = {column_key, "_value"}
        for table in tables:
            key = {name: value for name, value in table.key.items() if name not in gone}
            kept = {name: kind for name, kind in table.columns.items() if name in key or name in row_key}
            made = grouped.setdefault(Table(key, {}, []).identity(), (key, {}, collections.OrderedDict()))
            made[1].update(kept)
            for row in table.rows:
                cell = made[2].setdefault(tuple(row[name] for name in row_key), {name: row[name] for name in kept})
                name = row[column_key]
                if made[1].setdefault(name, table.columns["_value"]) != table.columns["_value"]:
                    raise Refusal("schema collision")
                cell[name] = row["_value"]
        return [Table(key, columns, list(rows.values())) for key, columns, rows in grouped.values()]
    return apply


def join(left, right, on, names=("a", "b")):
    """Joins two lists of tables where the columns `on` are equal."""
    pieces = []
    for one in left:
        for other in right:
            if not all(name in one.columns and name in other.columns for name in on):
                continue
            both = {name for name in one.columns if name in other.columns and name not in on}
            name_of = [lambda name, at=at, both=both: f"{name}_{names[at]}" if name in both else name for at in (0, 1)]
            columns, key = {}, {}
            for at, table in enumerate((one, other)):
                columns |= {name_of[at](name): kind for name, kind in table.columns.items()}
                key |= {name_of[at](name): value for name, value in table.key.items()}
            rows = collections.defaultdict(list)
            for row in other.rows:
                rows[tuple(row[name] for name in on)].append(row)
            found = [{**{name_of[0](name): value for name, value in row.items()},
                      **{name_of[1](name): value for name, value in match.items()}}
                     for row in one.rows for match in rows.get(tuple(row[name] for name in on), [])]
            if found:
                pieces += regroup([Table({}, columns, found)], lambda name, key=key: name in key)
    return merge(pieces)
