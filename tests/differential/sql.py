"""Compares Quipu's listener for clients of PostgreSQL with PostgreSQL 15: queries and changes, half of them invalid."""

import collections
import os
import random
import re

import servers
from campaign import BaseCampaign, Difference
from sql_answers import Session, compare_answers
from sql_changes import ChangeGenerator
from sql_faulty import IS_ALL, name_open_fault
from sql_mistakes import spoil
from sql_nodes import reduce_node, render, walk
from sql_queries import Generator
from sql_tables import HYPERTABLE, make_rows, make_tables
from sql_types import INEXACT, SIMPLE_LITERALS, TYPES, quote

REFUSED_SHARE_MAX = 0.25
STATES = ["select * from w order by id", "select * from v order by id"]
ORDINAL = re.compile(r"(?:order by |, )(\d+)")
LIMIT = re.compile(r"\b(limit|offset|fetch)\b", re.IGNORECASE)
QUERY_WORDS = ("select", "with", "values", "(")


class Case:
    """A statement and how it is sent: `protocol` is simple, or with parameters and results in text or binary."""

    def __init__(self, node, protocol, is_change=False, is_autocommit=False):
        self.node, self.protocol, self.is_change, self.is_autocommit = node, protocol, is_change, is_autocommit

    def with_node(self, node):
        return Case(node, self.protocol, self.is_change, self.is_autocommit)


class Campaign(BaseCampaign):
    page = "postgresql.md"
    default_count = 2_000

    def start(self):
        directory = self.options.directory
        self.peer = servers.start_postgres(directory / "postgres", self.options.peer)
        self.quipu = servers.start_quipu(self.options.binary, directory / "quipu", "--self-scrape-interval=0")
        self.ours, self.theirs = Session(self.quipu.postgres), Session(self.peer.postgres, "jit = off")
        self.refusals, self.refused, self.compared = collections.Counter(), {}, 0
        self.open_faults, self.log_size = collections.Counter(), 0
        self.load()

    def stop(self):
        for name in ("ours", "theirs", "quipu", "peer"):
            server = getattr(self, name, None)
            if server:
                server.close() if isinstance(server, Session) else server.stop()

    def load(self):
        chance = random.Random(f"rows {self.options.seed}")
        for statement in make_tables():
            self.load_both(statement)
            if statement.startswith("create table h "):
                for one in HYPERTABLE:
                    must_succeed(self.ours, one)
        for table, row in make_rows(chance):
            must_succeed(self.theirs, f"insert into {table} values {row}")
        for name in ("mild", "edge", "a", "b", "c", "h", "p", "w0"):
            self.copy_to_quipu(name)
        for statement in ("insert into w select * from w0", "insert into v select * from w0 where id < 6"):
            self.load_both(statement)

    def copy_to_quipu(self, name):
        """Inserts the rows that PostgreSQL has, as it writes them; half of the hypertable's come to be parts."""
        rows = self.theirs.ask(f"select * from {name}")[0].rows
        for number, row in enumerate(rows):
            must_succeed(self.ours, f"insert into {name} values ({', '.join('null' if cell is None else quote(cell) for cell in row)})")
            if name == "h" and number == len(rows) // 2:
                servers.request(self.quipu.http, "POST", "/internal/force_flush")

    def load_both(self, statement):
        for session in (self.theirs, self.ours):
            must_succeed(session, statement)

    # Cases

    def generate(self, chance):
        form = chance.random()
        is_change = form < 0.14
        if is_change:
            generator = ChangeGenerator(chance)
            node = generator.change()
        else:
            generator = Generator(chance, is_edge=form > 0.5 and chance.random() < 0.6)
            if form < 0.32:
                generator.is_edge = chance.random() < 0.7
                node = generator.scalars()
            elif form < 0.5:
                node = generator.columns_of_table()
            else:
                generator.is_edge = chance.random() < 0.1
                node = generator.statement(generator.query(None, chance.choice([1, 1, 2])))
        protocol = chance.choice(["simple", "simple", "simple", "text", "binary"])
        if chance.random() < 0.5:
            node = spoil(generator, node)
        if not str(node).lstrip().lower().startswith(QUERY_WORDS):
            is_change = True
        return Case(node, protocol, is_change, is_change and chance.random() < 0.3)

    def reductions(self, case):
        for node in reduce_node(case.node, SIMPLE_LITERALS):
            yield case.with_node(node)
        if case.protocol != "simple":
            yield Case(case.node, "simple", case.is_change, case.is_autocommit)
        if case.is_autocommit:
            yield Case(case.node, case.protocol, case.is_change)

    def text(self, case):
        statement, parameters = write_case(case)
        if parameters is None:
            return statement
        return f"{statement}\n-- {case.protocol}, parameters {[value for _, value in parameters]}, types {[oid for oid, _ in parameters]}"

    # Comparison

    def compare(self, case):
        self.compared += 1
        statement, parameters = write_case(case)
        nodes = [one for _, one in walk(case.node)]
        orders = [one for one in case.node.parts if getattr(one, "kind", "") in ("order", "optional")]
        order_text = next((str(one) for one in orders if str(one).startswith(" order by")), "")
        order = [int(number) for number in ORDINAL.findall(order_text)]
        has_limit = any(LIMIT.search(part if isinstance(part, str) else str(part)) for part in case.node.parts[1:]) if order_text else False
        is_exact = not any(one.kind == INEXACT for one in nodes)
        script = [(statement, parameters)]
        if case.is_change:
            states = [(one, None) for one in STATES]
            script = [*script, *states] if case.is_autocommit else [("begin", None), *script, *states, ("rollback", None)]
        found = None
        for text, values in script:
            ours = self.ask_quipu(text, values, case.protocol == "binary" and values is not None)
            theirs = self.theirs.ask(text, values, case.protocol == "binary" and values is not None)
            found = compare_answers(ours, theirs, statement, order if text is statement else [1], is_exact, has_limit and text is statement)
            if found:
                if text is not statement and text in STATES:
                    found.kind = ("state", *found.kind)
                    found.quipu = f"state: {found.quipu}"
                break
        self.restore(case)
        panic = self.new_panic()
        if panic:
            return Difference(f"broken panic: {panic}", theirs[-1] if theirs else "", ("broken", "panic"))
        return self.count_refusal(statement, found)

    def ask_quipu(self, statement, parameters, is_binary):
        try:
            results = self.ours.ask(statement, parameters, is_binary)
        except OSError as error:
            results = [crash_result(error)]
        if results and results[0].status == "broken" and not self.quipu.is_running():
            ports = self.quipu.ports
            self.quipu = servers.start_quipu(self.options.binary, self.options.directory / "quipu", "--self-scrape-interval=0", ports=ports)
            self.quipu.http, self.quipu.redis, self.quipu.postgres, self.quipu.influx = ports
        return results

    def restore(self, case):
        """Ends transactions, and fills `w` and `v` again after statements that were committed."""
        for session in (self.ours, self.theirs):
            session.end_transaction()
        if case.is_change and case.is_autocommit:
            for session in (self.ours, self.theirs):
                for statement in ("delete from w", "delete from v", "insert into w select * from w0", "insert into v select * from w0 where id < 6"):
                    session.ask(statement)

    def new_panic(self):
        size = os.stat(self.quipu.log).st_size
        if size == self.log_size:
            return None
        with open(self.quipu.log, "rb") as log:
            log.seek(self.log_size)
            lines = log.read().decode("utf-8", "replace").splitlines()
        self.log_size = size
        return next((line for line in lines if "panicked" in line), None)

    def count_refusal(self, statement, found):
        """Counts what an open fault explains, and refusals by their message; these are differences only if they
        are too many."""
        if not found or IS_ALL:
            return found
        fault = name_open_fault(found)
        if fault:
            self.open_faults[fault] += 1
            return None
        if not found.quipu.startswith("error 0A000"):
            return found
        shape = re.sub(r"\d+", "N", re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`", "..", found.quipu))[:160]
        self.refusals[shape] += 1
        if len(statement) < len(self.refused.get(shape, " " * 10_000)):
            self.refused[shape] = statement
        if self.compared > 400 and sum(self.refusals.values()) > REFUSED_SHARE_MAX * self.compared:
            return found
        return None

    def summary(self):
        total = sum(self.refusals.values())
        lines = [f"{total} refused with 0A000, in {len(self.refusals)} shapes"] if total else []
        for shape, count in self.refusals.most_common():
            lines.append(f"{count:>7}  {shape}\n{'':14}{self.refused[shape][:300]}")
        lines += [f"{sum(self.open_faults.values())} held back by open faults"] if self.open_faults else []
        lines += [f"{count:>7}  {fault}" for fault, count in self.open_faults.most_common()]
        return lines


def crash_result(error):
    from sql_answers import Result
    return Result("broken", message=str(error), tag="connection")


def must_succeed(session, statement):
    for result in session.ask(statement):
        if result.status in ("error", "broken"):
            raise SystemExit(f"{statement[:2_000]}\n{result}")


def write_case(case):
    """Returns the statement and its parameters; these are None for the simple protocol."""
    if case.protocol == "simple":
        return "".join(render(case.node, None)).strip(), None
    parameters, numbers = [], {}

    def name_parameter(node):
        if node.kind not in TYPES and node.kind != INEXACT:
            return None
        if id(node) not in numbers:
            parameters.append((TYPES[node.kind if node.kind in TYPES else "f8"][1], node.value))
            numbers[id(node)] = len(parameters)
        return f"${numbers[id(node)]}"

    statement = "".join(render(case.node, name_parameter)).strip()
    return statement, parameters


