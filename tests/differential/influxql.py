"""Asks Quipu and InfluxDB 1.6 the same InfluxQL, and writes the same lines to both."""

import collections
import datetime
import gzip
import json
import random
import re
import urllib.parse

import influxql_answers as answers
import influxql_mutations as mutations
import servers
from campaign import BaseCampaign, Difference
from influxql_changes import AFTER, Changes
from influxql_data import SECOND, draw_lines
from influxql_lists import Dashboards

# Its own metrics would be a database of their own.
QUIPU_FLAGS = ("--self-scrape-interval=0", "--durability=relaxed", "--future-retention=290y")
# Statements that InfluxDB could work on for minutes: windows without both bounds, and short windows.
WINDOWS = re.compile(r"\btime\s*\(\s*([^),]*)", re.IGNORECASE)
DURATION = re.compile(r"(\d+)(ns|u|µ|ms|s|m|h|d|w)")
SECONDS = {"ns": 1e-9, "u": 1e-6, "µ": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
BOUND = re.compile(r"\btime\s*([<>])=?\s*('[^']*'|[-\w]+)|('[^']*'|[-\w]+)\s*([<>])=?\s*time\b", re.IGNORECASE)
WINDOWS_MAX = 50_000
# The peer takes memory for so many points before it reads one: it had the machine's 24 GB, or died.
MANY_POINTS = re.compile(r"\b(sample|top|bottom)\s*\([^()]*,\s*\d{6,}", re.IGNORECASE)
# The peer's own limits, and what else says nothing about the statement.
PEER_LIMITS = re.compile(r"max-select-buckets|query-timeout|timeout")
# Answers have the moment of the request as their time.
FROM_NOW = re.compile(r"(>=?|=)\s*now\(\)|now\(\)\s*(<|=)", re.IGNORECASE)
CHANGING = re.compile(r"\b(INTO|DELETE|DROP|CREATE|ALTER|GRANT|REVOKE|KILL|SET)\b", re.IGNORECASE)
PARAMETERS = [("host = 'a'", "host = $p", {"p": "a"}), ("=~ /ho|re/", "=~ $p", {"p": {"regex": "ho|re"}}),
              ("= true", "= $p", {"p": True}), (" 7.5", " $p", {"p": 7.5}), ("LIMIT 2", "LIMIT $p", {"p": 2}),
              ("time(1m", "time($p", {"p": {"duration": "1m"}}), ("mean(usage)", "mean($p)", {"p": {"identifier": "usage"}}),
              (" 10", " $p", {"p": "10"}), ("cpu", "$p", {"p": {"identifier": "cpu"}}), ("= 'a'", "= $p", {"p": None}),
              ("> 10", "> $p", {"p": {"integer": 10}}), ("> 10", "> $p", {"p": {"float": 10}}), ("host", "$p", {"p": {"x": 1}})]

# The peer counts its shards from the start of the process.
SHARD = re.compile(rb"shard \d+")

Query = collections.namedtuple("Query", "text parameters method accept")
# Lines that a database of its own gets, then statements, then what is stored.
Write = collections.namedtuple("Write", "lines parameters statements is_gzip")


def is_cheap(text):
    """Says whether the windows of a statement are few."""
    if MANY_POINTS.search(text):
        return False
    windows = WINDOWS.findall(text)
    if not windows or "SHOW" in text.upper() or not re.search(r"\bGROUP\s+BY\b", text, re.IGNORECASE):
        return True
    shortest = min((int(number) * SECONDS[unit] for window in windows for number, unit in DURATION.findall(window)), default=0)
    if shortest >= 604_800:
        return True
    bounds = [(sign or {"<": ">", ">": "<"}[other], moment or late) for sign, moment, late, other in BOUND.findall(text)]
    seconds = [read_moment(moment) for _, moment in bounds]
    if None in seconds or {"<", ">"} - {sign for sign, _ in bounds} or re.search(r"\bOR\b.*\btime\b", text):
        return False
    return shortest > 0 and (max(seconds) - min(seconds)) / shortest < WINDOWS_MAX


def read_moment(text):
    """Returns the seconds since 1970 of a literal, or None."""
    if text.startswith("'"):
        try:
            return datetime.datetime.fromisoformat(text[1:11] + "T00:00:00+00:00").timestamp()
        except ValueError:
            return None
    found = re.fullmatch(r"(-?\d{1,20})(ns|u|µ|ms|s|m|h|d|w)?", text)
    return int(found[1]) * SECONDS[found[2] or "ns"] if found else None


class Campaign(BaseCampaign):
    page = "influxdb.md"
    default_count = 2_000

    def start(self):
        self.counts = collections.Counter()
        self.number = 0
        self.start_quipu()
        self.peer = servers.start_influxdb(self.options.directory / "influxdb", self.options.peer)
        body = draw_lines(random.Random(f"{self.options.seed}/data"))
        short = [line for line in body if line.measurement == "cpu"][::2]
        for statement in ["CREATE DATABASE quipu", "CREATE DATABASE x", "CREATE DATABASE y WITH NAME main",
                          "CREATE RETENTION POLICY short ON x DURATION INF REPLICATION 1"]:
            self.must(servers.post_form, "/query", {"q": statement})
        self.load("x", {}, body)
        for line in short:
            line.time += 7 * SECOND
        self.load("x", {"rp": "short"}, short)
        self.load("y", {}, [line for line in body if line.measurement == "mem"])

    def start_quipu(self):
        self.quipu = servers.start_quipu(self.options.binary, self.options.directory / "quipu", *QUIPU_FLAGS)

    def load(self, database, more, lines):
        body = "\n".join(str(line) for line in lines)
        self.must(lambda port, path, parameters: servers.request(port, "POST", path, parameters, body), "/write",
                  {"db": database, **more})

    def must(self, send, path, parameters):
        for server in (self.quipu, self.peer):
            answer = send(server.http, path, parameters)
            if answer.status not in (200, 204) or '"error"' in answer.text:
                raise SystemExit(f"{path} {parameters}: {answer.status} {answer.text[:500]}")

    def stop(self):
        for server in (getattr(self, "quipu", None), getattr(self, "peer", None)):
            if server:
                server.stop()

    # Cases.

    def generate(self, chance):
        form = chance.random()
        if form < 0.09:
            changes = Changes(chance)
            return Write(changes.body(), changes.write_parameters(), [], chance.random() < 0.05)
        if form < 0.15:
            changes = Changes(chance)
            return Write(changes.points(), {}, [changes.change() for _ in range(chance.choice([1, 1, 1, 2]))], False)
        while True:
            text = self.statement(chance)
            if is_cheap(text) and not (CHANGING.search(text) and text not in mutations.WRONG):
                return self.request_of(chance, text)

    def statement(self, chance):
        statements = Dashboards(chance)
        form = chance.random()
        if form < 0.06:
            return chance.choice(mutations.WRONG)
        text = statements.show() if form < 0.16 else statements.dashboard() if form < 0.26 else statements.select()
        if chance.random() < 0.08:
            text += f"; {statements.show() if chance.random() < 0.3 else statements.select()}"
        if chance.random() < 0.47:
            text = mutations.mutate(chance, text)
        return text

    def request_of(self, chance, text):
        parameters, method, accept = {"db": "x"}, chance.choice(["GET", "GET", "POST"]), None
        for old, new, value in PARAMETERS:
            if old in text and chance.random() < 0.1:
                text = text.replace(old, new)
                parameters["params"] = json.dumps(value)
                break
        if chance.random() < 0.25:
            parameters["epoch"] = chance.choice(["ns", "u", "µ", "ms", "s", "m", "h", "what", ""])
        if chance.random() < 0.02:
            parameters["params"] = chance.choice(["", "{", "[]", "{}", "null", '{"p":[]}', '{"p":{}}', '{"q":1}', '{"p":1e400}'])
        form = chance.random()
        # Lists come in one piece from the peer, however long.
        if form < 0.07 and text.startswith("SELECT") and "SHOW" not in text:
            parameters["chunked"] = chance.choice(["true", "true", "true", "1", "false", ""])
            if chance.random() < 0.7:
                parameters["chunk_size"] = chance.choice(["1", "7", "0", "-1", "x", "10000"])
        elif form < 0.13 and text.startswith("SELECT") and "SHOW" not in text:
            accept = "application/csv"
        elif form < 0.17:
            parameters["pretty"] = chance.choice(["true", "true", "false", "1"])
        elif form < 0.19:
            parameters["db"] = chance.choice(["", "y", "nodb", "X", "x.short"])
        elif form < 0.2:
            parameters["rp"] = chance.choice(["autogen", "short", "none", ""])
        return Query(text, parameters, method, accept)

    def text(self, case):
        if isinstance(case, Query):
            words = " ".join(f"{key}={value}" for key, value in case.parameters.items() if (key, value) != ("db", "x"))
            return "\n".join(part for part in (case.text, words, case.accept) if part)
        words = " ".join(f"{key}={value}" for key, value in case.parameters.items())
        return "\n".join([f"WRITE {words}".rstrip(), *case.lines, *case.statements])

    # Comparisons.

    def compare(self, case):
        difference = self.compare_query(case) if isinstance(case, Query) else self.compare_write(case)
        if not self.peer.is_running():
            # What killed it has no answer to be compared with.
            self.counts["deaths of the peer"] += 1
            self.restart()
            return None
        if not self.quipu.is_running():
            difference = Difference(f"crash {self.quipu.log_tail()[-1_500:]}", "up")
            self.restart()
        elif difference and (panics := self.quipu.panics()):
            difference = Difference(f"panic {panics[-1]}", difference.peer)
        return difference

    def restart(self):
        counts = self.counts
        self.stop()
        self.options.directory /= "again"
        self.start()
        self.counts = counts

    def ask(self, server, case):
        headers = {"Accept": case.accept} if case.accept else {}
        parameters = {**case.parameters, "q": case.text}
        if case.method == "GET":
            answer = servers.request(server.http, "GET", "/query", parameters, headers=headers)
        else:
            # The peer reads this one from the address alone.
            pretty = {"pretty": parameters.pop("pretty")} if "pretty" in parameters else {}
            answer = servers.post_form(server.http, "/query?" + urllib.parse.urlencode(pretty), parameters)
        is_csv = case.accept and case.method == "GET"
        answer.body = SHARD.sub(b"shard N", answer.body)
        is_chunked = case.parameters.get("chunked") == "true"
        return answers.Reply(answer, "csv" if is_csv else "chunked" if is_chunked else "json")

    def compare_query(self, case):
        slack = 60 if FROM_NOW.search(case.text) else 0
        options = {"is_exact": not (slack or answers.INEXACT.search(case.text)), "slack": slack,
                   "is_pretty": "pretty" in case.parameters}
        ours, theirs = self.ask(self.quipu, case), self.ask(self.peer, case)
        if ours.status == 200 and any(PEER_LIMITS.search(error) for error in theirs.errors()):
            self.counts["limits of the peer"] += 1
            return None
        found = answers.compare_replies(ours, theirs, **options)
        if not found:
            return None
        again, theirs_again = self.ask(self.quipu, case), self.ask(self.peer, case)
        if again.text != ours.text and not slack:
            return Difference(f"unstable {ours.text}", f"unstable {again.text}")
        found = answers.compare_replies(again, theirs_again, **options)
        if not found:
            self.counts["answers of the peer that changed when asked again"] += 1
            return None
        return describe(again, theirs_again, found)

    def compare_write(self, case):
        found = self.compare_write_once(case)
        if not found:
            return None
        again = self.compare_write_once(case)
        if again:
            return again
        # The peer sometimes misses a week of a database that it has just made.
        self.counts["answers of the peer that changed when asked again"] += 1
        return None

    def compare_write_once(self, case):
        self.number += 1
        database = f"w{self.number}"
        replies = [self.write(server, case, database) for server in (self.quipu, self.peer)]
        for at, (ours, theirs) in enumerate(zip(*replies)):
            found = answers.compare_replies(ours, theirs, is_exact=at == 0 or not case.statements)
            if found:
                return describe(ours, theirs, found, step=f"step {at}: " if at else "",
                                before=[of_server[0] for of_server in replies] if at else ())
        return None

    def write(self, server, case, database):
        """Returns the replies to the write, to each statement, and to the questions that follow."""
        post = lambda statement: servers.post_form(server.http, "/query", {"q": statement, "db": database})
        post(f"CREATE DATABASE {database}")
        if any("other" in statement for statement in case.statements):
            post(f"CREATE RETENTION POLICY other ON {database} DURATION INF REPLICATION 1")
        body, headers = "\n".join(case.lines).encode("utf-8", "surrogatepass"), {}
        if case.is_gzip:
            body, headers = gzip.compress(body), {"Content-Encoding": "gzip"}
        replies = [servers.request(server.http, "POST", "/write", {"db": database, **case.parameters}, body, headers)]
        replies += [post(statement.replace("DB", database)) for statement in case.statements]
        after = AFTER
        if any("RETENTION" in statement for statement in case.statements):
            after = f"SHOW RETENTION POLICIES ON {database}"
        replies.append(post(after))
        post(f"DROP DATABASE {database}")
        for reply in replies:
            reply.body = SHARD.sub(b"shard N", hide_now(reply.body.replace(database.encode(), b"DB")))
        return [answers.Reply(reply) for reply in replies]

    # Smaller cases.

    def reductions(self, case):
        if isinstance(case, Write):
            yield from self.write_reductions(case)
            return
        for key in [key for key in case.parameters if key != "db"]:
            yield case._replace(parameters={name: value for name, value in case.parameters.items() if name != key})
        if case.parameters["db"] != "x":
            yield case._replace(parameters={**case.parameters, "db": "x"})
        if case.accept:
            yield case._replace(accept=None)
        for text in reduce_text(case.text):
            if is_cheap(text) and not CHANGING.search(text):
                yield case._replace(text=text)

    def write_reductions(self, case):
        for at in range(len(case.lines)):
            yield case._replace(lines=case.lines[:at] + case.lines[at + 1:])
        for at in range(len(case.statements)):
            yield case._replace(statements=case.statements[:at] + case.statements[at + 1:])
        for key in case.parameters:
            yield case._replace(parameters={name: value for name, value in case.parameters.items() if name != key})
        for name in ("statements", "lines"):
            for at, text in enumerate(getattr(case, name)):
                for smaller in reduce_text(text):
                    yield case._replace(**{name: [*getattr(case, name)[:at], smaller, *getattr(case, name)[at + 1:]]})

    def summary(self):
        return [f"{count:>7}  {name}" for name, count in self.counts.most_common()]


def hide_now(body):
    """Replaces times of today: lines without a time get the server's."""
    return re.sub(rb'"20(2[5-9]|[3-9]\d)-[01]\d-[0-3]\dT[\d:.]+Z"', lambda found: b'"now"' if is_recent(found[0]) else found[0], body)


def is_recent(text):
    return text[1:11].decode() in {str((datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).date())
                                   for days in (-1, 0)}


def reduce_text(text):
    """Yields texts with fewer tokens, then with simpler ones."""
    statements = text.split(";")
    if len(statements) > 1:
        yield from (statement.strip() for statement in statements)
    tokens = mutations.split_tokens(text)
    size = len(tokens) // 2
    while size:
        for at in range(0, len(tokens), size):
            yield "".join(tokens[:at] + tokens[at + size:])
        size //= 2
    for at, token in enumerate(tokens):
        if token == "(":
            end = next((place for place in range(at, len(tokens)) if tokens[place] == ")"), None)
            if end:
                yield "".join(tokens[:at] + tokens[at + 1:end] + tokens[end + 1:])
                yield "".join(tokens[:max(0, at - 1)] + tokens[at + 1:end] + tokens[end + 1:])
        if token.isdigit() and token not in "01":
            yield "".join(tokens[:at] + ["1"] + tokens[at + 1:])


def describe(ours, theirs, found, step="", before=()):
    word, path, our_part, their_part = found
    one, other = ours.kind(), theirs.kind()
    kind = (shorten(one), shorten(other), word)
    one, other = step + one, step + other
    quote = lambda part: part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
    texts = [f"{one}\n   {word} at {path}: {quote(our_part)[:600]}\n   {ours.text[:1_500]}",
             f"{other}\n   {word} at {path}: {quote(their_part)[:600]}\n   {theirs.text[:1_500]}"]
    texts = [f"{text}\n   write: {reply.kind()}" for text, reply in zip(texts, before)] or texts
    return Difference(*texts, kind)


def shorten(text):
    """Returns the first words of a kind of answer."""
    return " ".join(answers.error_class(text.removeprefix("error: ")).split()[:6])
