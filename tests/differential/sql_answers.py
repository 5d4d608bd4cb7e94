"""Asks a server over the protocol of PostgreSQL and compares the answers of two.

Statements go through libpq as they are, without adaptation of values: the answers are the bytes that servers send.
"""

import collections
import decimal
import math
import re
import select
import struct
import time

from psycopg import pq

from campaign import Difference
from sql_types import NAMES_OF_OIDS

ANSWER_SECONDS_MAX = 60
FLOATS = {700: ">f", 701: ">d"}
FLOAT_ARRAYS = (1021, 1022)
NUMERIC_OIDS = (20, 21, 23, 26, 700, 701, 1700)
INTERVAL, BPCHAR = 1186, 1042
INTERVAL_PART = re.compile(r"(-?\+?\d+) (year|mon|day)s?|([-+]?)(\d+):(\d\d):(\d\d(?:\.\d+)?)")
# Statements in which one of several equal values stands for all of them.
REPRESENTATIVES = re.compile(r"\b(distinct|union|group by|intersect|except|max|min|rollup|cube|using|mode|greatest|least)\b", re.IGNORECASE)
ROWS_SHOWN = 3


class Result:
    """One result of a statement: rows, a command, or an error."""

    def __init__(self, status, tag="", names=(), oids=(), rows=(), state="", message="", is_binary=False):
        self.status, self.tag, self.names, self.oids, self.rows = status, tag, names, oids, rows
        self.state, self.message, self.is_binary = state, message, is_binary

    def __str__(self):
        if self.status == "error":
            return f"error {self.state}: {self.message}"
        if self.status == "rows":
            return f"rows ({', '.join(map(type_name, self.oids))}): {len(self.rows)}"
        return f"{self.status} {self.tag}{self.message}"


def type_name(oid):
    return NAMES_OF_OIDS.get(oid, str(oid))


class Session:
    """A connection that is made again when it is lost."""

    def __init__(self, port, *settings):
        self.conninfo = f"host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=30".encode()
        self.settings, self.connection = ("statement_timeout = '20s'", "client_min_messages = error", *settings), None

    def connect(self):
        self.connection = pq.PGconn.connect(self.conninfo)
        if self.connection.status != pq.ConnStatus.OK:
            message = self.connection.get_error_message()
            self.connection = None
            raise OSError(message)
        for setting in self.settings:
            self.ask(f"set {setting}")

    def close(self):
        if self.connection:
            self.connection.finish()
        self.connection = None

    def ask(self, statement, parameters=None, is_binary=False):
        """Sends a statement, with parameters as (type, text) by the extended protocol; returns its results."""
        if not self.connection:
            self.connect()
        connection = self.connection
        try:
            if parameters is None:
                connection.send_query(statement.encode())
            else:
                connection.send_query_params(statement.encode(), [None if value is None else value.encode() for _, value in parameters],
                                             [oid for oid, _ in parameters], None, pq.Format.BINARY if is_binary else pq.Format.TEXT)
            return self.read_results(is_binary)
        except Exception as error:  # noqa: BLE001: psycopg's and system errors alike mean a lost connection
            self.close()
            return [Result("broken", message=f"{type(error).__name__}: {error}".strip(), tag="connection")]

    def read_results(self, is_binary):
        connection, results = self.connection, []
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            connection.consume_input()
            while connection.is_busy():
                if time.monotonic() > deadline:
                    raise OSError(f"no answer in {ANSWER_SECONDS_MAX} s")
                select.select([connection.socket], [], [], 1)
                connection.consume_input()
            result = connection.get_result()
            if result is None:
                return results
            results.append(read_result(result, is_binary))
            if result.status in (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH):
                raise OSError("COPY")
            if connection.status != pq.ConnStatus.OK:
                raise OSError("connection closed")

    def end_transaction(self):
        if self.connection and self.connection.transaction_status != pq.TransactionStatus.IDLE:
            self.ask("rollback")


def read_result(result, is_binary):
    if result.status == pq.ExecStatus.TUPLES_OK:
        columns = range(result.nfields)
        rows = [tuple(decode(result.get_value(row, column), is_binary) for column in columns) for row in range(result.ntuples)]
        return Result("rows", (result.command_status or b"").decode(), [(result.fname(column) or b"").decode() for column in columns],
                      [result.ftype(column) for column in columns], rows, is_binary=is_binary)
    if result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY):
        return Result("command", (result.command_status or b"").decode())
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message or b"").decode("utf-8", "replace")
    return Result("error" if state else "broken", state=state, message=message)


def decode(cell, is_binary):
    if cell is None or is_binary:
        return cell
    return cell.decode("utf-8", "backslashreplace")


# Comparison

def compare_answers(ours, theirs, statement, order, is_exact, has_limit):
    """Compares the results of one statement; returns a `Difference` or None.

    `order` has the numbers of the columns by which rows are ordered. With `has_limit` and an order that leaves out
    columns, any of equal rows may be cut off: only their number is compared."""
    if len(ours) != len(theirs) and all(one.status not in ("error", "broken") for one in ours + theirs):
        return Difference(f"results {', '.join(map(str, ours))}", f"results {', '.join(map(str, theirs))}", ("results", len(ours), len(theirs)))
    for one, other in zip(ours, theirs):
        found = compare_results(one, other, statement, order, is_exact, has_limit)
        if found:
            return found
    return None


def compare_results(one, other, statement, order, is_exact, has_limit):
    if one.status == "broken" or one.state.startswith("XX"):
        return Difference(f"broken {one}", describe(other), ("broken", one.state, message_shape(one)))
    if one.status != other.status or one.status == "error":
        if one.status == other.status and one.state == other.state:
            return None
        # Of two errors one fault is known by the codes; of one alone by its text, too.
        shape = message_shape(one) if other.status != "error" else ""
        return Difference(describe(one), describe(other), (one.status, one.state, other.status, other.state, shape))
    if one.status != "rows":
        return None if one.tag == other.tag else Difference(f"tag {one.tag}", f"tag {other.tag}", ("tag", one.tag, other.tag))
    if len(one.oids) != len(other.oids):
        return Difference(describe(one), describe(other), ("columns",))
    return (compare_rows(one, other, statement, order, is_exact, has_limit) or compare_types(one, other) or compare_names(one, other)
            or (one.tag != other.tag and Difference(f"tag {one.tag}", f"tag {other.tag}", ("tag", one.tag, other.tag))) or None)


def describe(result):
    if result.status != "rows":
        return str(result)
    return f"{result}: {show_rows(result.rows, result)}"


def message_shape(result):
    """Returns the message without names and numbers."""
    return re.sub(r"\d+", "N", re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`", "..", result.message))[:60]


def show_rows(rows, result):
    rows = list(rows)
    shown = "; ".join("(" + ", ".join(show_cell(cell, oid) for cell, oid in zip(row, result.oids)) + ")" for row in rows[:ROWS_SHOWN])
    return shown + (" .." if len(rows) > ROWS_SHOWN else "")


def show_cell(cell, oid):
    if cell is None:
        return "NULL"
    if isinstance(cell, bytes):
        return repr(struct.unpack(FLOATS[oid], cell)[0]) if oid in FLOATS and len(cell) == struct.calcsize(FLOATS[oid]) else "0x" + cell.hex()
    return cell


def compare_types(one, other):
    if list(one.oids) == list(other.oids):
        return None
    pairs = [(type_name(ours), type_name(theirs)) for ours, theirs in zip(one.oids, other.oids) if ours != theirs]
    return Difference("types " + ", ".join(ours for ours, _ in pairs), "types " + ", ".join(theirs for _, theirs in pairs), ("types", pairs[0]))


def compare_names(one, other):
    pairs = [pair for pair in zip(one.names, other.names) if pair[0] != pair[1]]
    return Difference(f"names {pairs[0][0]}", f"names {pairs[0][1]}", ("names",)) if pairs else None


def compare_rows(one, other, statement, order, is_exact, has_limit):
    if len(one.rows) != len(other.rows):
        return different_rows(one, other, one.rows, other.rows, "rows", "count")
    if one.is_binary and list(one.oids) != list(other.oids):
        return None
    order = [number - 1 for number in order if number <= len(one.oids)]
    if has_limit and len(set(order)) < len(one.oids):
        return None
    if one.rows == other.rows:
        return None
    key = Keys(one.oids, other.oids, is_exact, one.is_binary)
    ours, theirs = collections.Counter(one.rows), collections.Counter(other.rows)
    only_ours, only_theirs = list((ours - theirs).elements()), list((theirs - ours).elements())
    if only_ours:
        unmatched = match_rows(only_ours, only_theirs, key)
        if unmatched:
            return different_rows(one, other, *unmatched, "rows", differing_columns(*unmatched, key))
        may_stand_for = REPRESENTATIVES.search(statement)
        if not may_stand_for and key.has_other_texts(only_ours, only_theirs):
            return different_rows(one, other, only_ours, only_theirs, "digits", ())
    for mine, its in zip(one.rows, other.rows) if order else ():
        if [key.of(mine[at], at, 0) for at in order] != [key.of(its[at], at, 1) for at in order] and not all(
                key.is_alike(mine[at], its[at], at) for at in order):
            return different_rows(one, other, one.rows, other.rows, "order", ())
    return None


def different_rows(one, other, ours, theirs, kind, detail):
    return Difference(f"{kind} ({', '.join(map(type_name, one.oids))}) {len(one.rows)}, differ: {show_rows(ours, one)}",
                      f"{kind} ({', '.join(map(type_name, other.oids))}) {len(other.rows)}, differ: {show_rows(theirs, other)}", (kind, detail))


def match_rows(ours, theirs, key):
    """Returns the rows of both without a partner of the same values, or None if all have one."""
    left = sorted(theirs, key=lambda row: key.sortable(row, 1))
    missing = []
    for row in sorted(ours, key=lambda row: key.sortable(row, 0)):
        found = next((number for number, their in enumerate(left) if key.are_alike(row, their)), None)
        if found is None:
            missing.append(row)
        else:
            del left[found]
    return (missing, left) if missing or left else None


def differing_columns(ours, theirs, key):
    """Names the types of the columns that differ in the first rows."""
    if not ours or not theirs:
        return "count"
    return tuple(type_name(key.oids[1][at]) for at in range(len(ours[0])) if not key.is_alike(ours[0][at], theirs[0][at], at))


class Keys:
    """Compares cells by value: numbers of any type as numbers, and floats with a tolerance unless `is_exact`."""

    def __init__(self, our_oids, their_oids, is_exact, is_binary):
        self.oids, self.is_exact, self.is_binary = (our_oids, their_oids), is_exact, is_binary

    def of(self, cell, at, side):
        oid = self.oids[side][at]
        if cell is None:
            return None
        if self.is_binary:
            return number_key(struct.unpack(FLOATS[oid], cell)[0]) if oid in FLOATS else cell.rstrip(b" ") if oid == BPCHAR else cell
        if oid in FLOATS:
            return number_key(float(cell))
        if oid in NUMERIC_OIDS:
            return number_key(decimal.Decimal(cell))
        if oid == INTERVAL:
            return interval_key(cell)
        if oid == BPCHAR:
            return cell.rstrip(" ")
        return cell

    def is_alike(self, mine, its, at):
        if mine == its:
            return True
        one, other = self.of(mine, at, 0), self.of(its, at, 1)
        if one == other and one is not None:
            return True
        if isinstance(one, float) or isinstance(other, float):
            is_narrow = 700 in (self.oids[0][at], self.oids[1][at])
            return is_close(one, other, self.is_exact and not is_narrow, 1e-5 if is_narrow else 1e-9)
        if self.oids[1][at] in FLOAT_ARRAYS and isinstance(one, str) and isinstance(other, str):
            return are_arrays_close(one, other, self.is_exact)
        return False

    def are_alike(self, mine, its):
        return all(self.is_alike(cell, other, at) for at, (cell, other) in enumerate(zip(mine, its)))

    def has_other_texts(self, ours, theirs):
        """Returns true if cells that are no inexact floats are written in another way."""
        plain = [at for at, oid in enumerate(self.oids[1]) if self.oids[0][at] == oid and (oid not in FLOATS or self.is_exact) and oid not in FLOAT_ARRAYS]
        write = lambda rows: collections.Counter(tuple(row[at] for at in plain) for row in rows)
        return write(ours) != write(theirs)

    def sortable(self, row, side):
        return [(cell is None, f"{key:.6g}" if isinstance(key := self.of(cell, at, side), (float, decimal.Decimal)) else str(key)) for at, cell in enumerate(row)]


def number_key(number):
    if number != number:
        return "NaN"
    if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
        return int(number)
    return number


def is_close(one, other, is_exact, tolerance):
    if isinstance(one, str) or isinstance(other, str) or one is None or other is None:
        return False
    one, other = float(one), float(other)
    return one == other if is_exact else math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def are_arrays_close(one, other, is_exact):
    ours, theirs = re.split(r"[{},]", one), re.split(r"[{},]", other)
    if len(ours) != len(theirs):
        return False
    for mine, its in zip(ours, theirs):
        if mine != its:
            try:
                if not is_close(float(mine), float(its), is_exact, 1e-9):
                    return False
            except ValueError:
                return False
    return True


def interval_key(text):
    """Returns the microseconds of an interval as PostgreSQL compares them: months of 30 days."""
    total, sizes = 0, {"year": 360, "mon": 30, "day": 1}
    for count, unit, sign, hours, minutes, seconds in INTERVAL_PART.findall(text):
        if unit:
            total += int(count) * sizes[unit] * 86_400_000_000
        else:
            clock = (int(hours) * 3600 + int(minutes) * 60) * 1_000_000 + int(decimal.Decimal(seconds) * 1_000_000)
            total += -clock if sign == "-" else clock
    return total
