"""Reads annotated CSV, and says how two lists of tables differ."""

import csv
import datetime
import io
import math
import re

from flux_model import SECOND, Table, Time

TOLERANCE = 1e-9
EPOCH = datetime.datetime(1970, 1, 1)


def read_time(text):
    """Reads RFC 3339 with up to nine digits of a second."""
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z", text)
    if not found:
        raise ValueError(f"no time: {text!r}")
    moment = datetime.datetime(*(int(part) for part in found.groups()[:6]))
    rest = int((found[7] or "0").ljust(9, "0"))
    return Time(int((moment - EPOCH).total_seconds()) * SECOND + rest)


def read_cell(kind, text):
    if kind == "string":
        return text or None
    if text == "":
        return None
    if kind in ("long", "unsignedLong"):
        return int(text)
    if kind == "double":
        return float(text)
    if kind == "boolean":
        if text not in ("true", "false"):
            raise ValueError(f"no boolean: {text!r}")
        return text == "true"
    if kind == "dateTime:RFC3339":
        return read_time(text)
    raise ValueError(f"unknown type {kind!r}")


def read_tables(text, delimiter=",", prefix="#"):
    """Reads an answer with all annotations; returns tables by the names of results.

    Raises ValueError where it is not what the manual of annotated CSV says."""
    results, annotations, names, last = {}, {}, None, None
    for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
        if not cells or cells == [""]:
            names, annotations, last = None, {}, None
            continue
        if cells[0].startswith(prefix) and cells[0] != prefix:
            if names:
                names, annotations, last = None, {}, None
            annotations[cells[0].removeprefix(prefix)] = cells[1:]
            continue
        if names is None:
            names = cells[1:]
            if names[:2] != ["result", "table"]:
                raise ValueError(f"header {names}")
            continue
        cells = [cell or default for cell, default in zip(cells[1:], annotations["default"], strict=True)]
        values = [read_cell(kind, cell) for kind, cell in zip(annotations["datatype"], cells, strict=True)]
        row = dict(zip(names[2:], values[2:], strict=True))
        if last is None or last[0] != values[:2]:
            key = {name: row[name] for name, is_key in zip(names[2:], annotations["group"][2:]) if is_key == "true"}
            table = Table(key, dict(zip(names[2:], annotations["datatype"][2:])), [])
            results.setdefault(values[0], []).append(table)
            last = (values[:2], table)
        last[1].rows.append(row)
    return results


def is_same_cell(one, other):
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other) or math.isinf(one) or math.isinf(other):
            return one == other or math.isnan(one) and math.isnan(other)
        return abs(one - other) <= TOLERANCE * max(abs(one), abs(other), 1.0)
    return one == other and type(one) is type(other) or one in (None, "") and other in (None, "")


def compare_tables(ours, theirs, is_ordered=True):
    """Returns (kind, our part, their part) of the first difference, or None."""
    order = lambda table: sorted((name, str(value if value is not None else "")) for name, value in table.key.items())
    ours, theirs = (sorted((table for table in tables if table.rows), key=order) for tables in (ours, theirs))
    keys = [[order(table) for table in tables] for tables in (ours, theirs)]
    if keys[0] != keys[1]:
        missing = [key for key in keys[1] if key not in keys[0]]
        extra = [key for key in keys[0] if key not in keys[1]]
        return ("keys", f"{len(keys[0])} tables, besides: {extra[:2]}", f"{len(keys[1])} tables, besides: {missing[:2]}")
    for one, other in zip(ours, theirs):
        if one.columns != other.columns:
            return ("columns", sorted(one.columns.items()), sorted(other.columns.items()))
        rows, others = one.rows, other.rows
        if not is_ordered:
            rows, others = sorted(rows, key=row_order), sorted(others, key=row_order)
        if len(rows) != len(others):
            return ("row count", f"{len(rows)} rows: {shown(rows)}", f"{len(others)} rows: {shown(others)}")
        for row, wanted in zip(rows, others):
            if not all(is_same_cell(row.get(name), wanted.get(name)) for name in one.columns):
                if is_ordered and compare_tables([one], [other], is_ordered=False) is None:
                    return ("row order", shown(rows), shown(others))
                return ("values", row, {name: wanted.get(name) for name in row})
    return None


def row_order(row):
    return [f"{cell:.6g}" if isinstance(cell, float) else str(cell if cell is not None else "") for _, cell in sorted(row.items())]


def shown(rows):
    return [{name: value for name, value in row.items() if name not in ("_start", "_stop", "_measurement")} for row in rows[:6]]
