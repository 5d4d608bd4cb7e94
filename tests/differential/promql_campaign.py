"""Cases of a query language behind Prometheus' HTTP API: parameters, requests and reductions."""

import re
import time

import servers
from campaign import BaseCampaign, Difference
from promql_answers import Reply
from promql_data import LAST_MS, START_MS
from promql_mutations import mutate_parameters
from promql_tree import Node, smaller_texts, smaller_trees

START, LAST = START_MS // 1000, LAST_MS // 1000
POINTS_MAX = 60
REDUCTION_SECONDS_MAX = 20  # some cases are slow


class Case:
    """An expression, as a tree or a text, and the other parameters of its query."""

    def __init__(self, expression, parameters):
        self.expression, self.parameters = expression, parameters

    @property
    def query(self):
        return self.parameters.get("query", str(self.expression))

    def __str__(self):
        others = " ".join(f"{name}={value}" for name, value in self.parameters.items() if name != "query")
        return f"{self.query}\n   [{others}]"


class QueryCampaign(BaseCampaign):
    """Sends the queries to both servers. Campaigns add `make_expression`, `mutate`, and `judge` for two replies."""

    fraction = ""  # of each time that is asked for
    last = LAST + 900  # latest time that is asked for
    old_version = ""  # of the peer, unless it speaks Quipu's language
    has_limit = True  # whether the peer knows the parameter `limit`
    parameter_share = 0.08  # of cases that are not valid: how many have wrong parameters
    quipu_flags = ()
    quipu_parameters = {}
    peer_parameters = {}

    def __init__(self, options):
        super().__init__(options)
        self.quipu = self.peer = None
        self.log_size = 0
        self.both_refused = self.empty = self.alike = 0
        self.starts = self.peer_starts = self.peer_crashes = self.peer_timeouts = 0

    def stop(self):
        for server in (self.quipu, self.peer):
            if server:
                server.kill()

    def start_quipu(self):
        self.starts += 1
        directory = self.options.directory / f"quipu{self.starts}"
        self.quipu = servers.start_quipu(self.options.binary, directory, "--self-scrape-interval=0",
                                         "--durability=relaxed", *self.quipu_flags)
        self.fill(self.quipu.http)
        self.log_size = self.quipu.log.stat().st_size

    def start_peer(self):
        self.peer_starts += 1
        if self.peer:
            self.peer.kill()
        self.peer = self.make_peer(self.options.directory / f"peer{self.peer_starts}")
        self.fill(self.peer.http)

    def make_peer(self, directory):
        raise NotImplementedError

    def fill(self, port):
        raise NotImplementedError

    def make_expression(self, chance):
        raise NotImplementedError

    def mutate(self, tree, chance):
        raise NotImplementedError

    def judge(self, case, quipu, peer):
        raise NotImplementedError

    def generate(self, chance):
        self.reduction_end = time.monotonic() + REDUCTION_SECONDS_MAX
        expression = self.make_expression(chance)
        parameters = self.draw_times(chance)
        if chance.random() < 0.5:
            if chance.random() < self.parameter_share:
                parameters = mutate_parameters(dict(parameters, query=str(expression)), chance, self.has_limit)
                if "query" not in parameters:
                    parameters["query"] = ""
                return Case(expression, parameters)
            expression = self.mutate(expression, chance)
        return Case(expression, parameters)

    def draw_times(self, chance):
        if chance.random() < 0.45:
            return {"time": f"{chance.randrange(START - 300, self.last, 15)}{self.fraction}"}
        step = chance.choice((15, 60, 47, 600, 7))
        points = chance.randint(1, POINTS_MAX)
        start = chance.randrange(START - 300, LAST - 300, 15)
        end = min(start + step * points, self.last)
        return {"start": f"{start}{self.fraction}", "end": f"{end}{self.fraction}", "step": str(step)}

    def ask(self, port, case, extra):
        parameters = dict(case.parameters, **extra)
        parameters["query"] = case.query
        path = "/api/v1/query_range" if "start" in parameters or "step" in parameters or "end" in parameters else \
            "/api/v1/query"
        return servers.request(port, "GET", path, parameters)

    def compare(self, case):
        quipu = self.ask(self.quipu.http, case, self.quipu_parameters)
        failure = self.find_failure(quipu)
        peer = self.ask(self.peer.http, case, self.peer_parameters)
        if peer.status == 0 and not failure:
            # A peer that crashes has no answer.
            self.peer_crashes += 1
            if not self.peer.is_running():
                self.start_peer()
            return None
        quipu, peer = Reply(quipu), Reply(peer)
        if peer.head == "error 503 timeout" and not failure:
            self.peer_timeouts += 1
            return None
        if failure:
            return Difference(failure, peer.describe(peer.excerpt()))
        if quipu.status >= 500 and quipu.head != peer.head:
            return Difference(f"failure {quipu.describe()}", peer.describe(peer.excerpt()))
        difference = self.judge(case, quipu, peer)
        if not difference:
            self.alike += 1
            self.both_refused += quipu.error is not None
            self.empty += quipu.error is None and not quipu.series
        return difference

    def find_failure(self, answer):
        """Text of a crash or a panic, or None; restarts a server that ended."""
        size = self.quipu.log.stat().st_size
        panics = self.quipu.panics() if size != self.log_size else []
        self.log_size = size
        if answer.status == 0 and not self.quipu.is_running():
            tail = self.quipu.log_tail()[-600:]
            self.start_quipu()
            return f"crash: {tail}"
        if panics:
            self.quipu.log.write_text("")
            self.log_size = 0
            return f"panic: {panics[-1]}"
        if answer.status == 0:
            return f"connection broke: {answer.text}"
        return None

    def reductions(self, case):
        for smaller in self.smaller_cases(case):
            if time.monotonic() > self.reduction_end:
                return
            yield smaller

    def smaller_cases(self, case):
        if "query" in case.parameters:
            fixed = {name: value for name, value in case.parameters.items() if name != "query"}
            for text in smaller_texts(case.query):
                yield Case(text, dict(fixed, query=text))
            return
        yield from (Case(case.expression, times) for times in self.smaller_times(case.parameters))
        if isinstance(case.expression, Node):
            yield from (Case(tree, case.parameters) for tree in smaller_trees(case.expression))
        for text in smaller_texts(str(case.expression)):
            if re.search(r"\S", text):
                yield Case(text, case.parameters)

    def smaller_times(self, parameters):
        if "start" not in parameters:
            return
        start, end, step = float(parameters["start"]), float(parameters["end"]), float(parameters["step"])
        points = int((end - start) // step)
        for index in sorted({0, points, points // 2}):
            yield {"time": repr_time(start + index * step)}
        if points > 1:
            middle = start + points // 2 * step
            yield dict(parameters, end=repr_time(middle))
            yield dict(parameters, start=repr_time(middle))
        elif points == 1:
            yield dict(parameters, end=parameters["start"])

    def text(self, case):
        """Also names an old version of the peer, since some known differences are of that alone."""
        return f"{case}\n   beside {self.old_version}" if self.old_version else str(case)

    def summary(self):
        return [f"{self.alike} alike; of these {self.both_refused} refused by both, {self.empty} without series",
                f"{self.peer_crashes} answers missing: the peer crashed; {self.peer_timeouts} timed out there"]


def repr_time(seconds):
    return f"{seconds:.3f}".rstrip("0").rstrip(".")
