"""MetricsQL beside VictoriaMetrics: Debian's 1.79, or with --peer a newer one, whose language Quipu speaks."""

import json
import re

import servers
from metricsql_expressions import ALL_FUNCTIONS, ExpressionGenerator
from promql_answers import compare_replies
from promql_campaign import LAST, QueryCampaign
from promql_data import draw_series
from promql_mutations import insert_clause, mutate_tree
from promql_write import HEADERS, encode_requests

CLAUSES = [" keep_metric_names", " limit 1", " limit", " default", " if ", " ifnot ", " or ", "[5i]", "[:1m]", "[1m:]",
           " @ (", " offset (5m)", " WITH ", "WITH (a = 1) ", "WITH (a = a) a", " group_left (*) ", ' prefix "p"', "5m",
           "1.5h30m", "0.5i", ":", '{a="b" or c="d"}', "{or}", " bool", "1Ki", "with ", "()", "{c}", "[-5m]", "[0]"]
UNKNOWN = re.compile("unknown func|unsupported func|unknown aggregate|cannot find")
ORDERED = re.compile(r"\s*(sort|sort_desc)\s*\(.*\)\s*$", re.DOTALL)
ORDERED_LABELS = re.compile(r'\s*sort_by_label\w*\s*\([^"]*((, "\w+")+)\)\s*$', re.DOTALL)
EQUAL_ROWS = re.compile(r"\b(topk|bottomk|limitk|outliersk|any)", re.IGNORECASE)


class Campaign(QueryCampaign):
    page = "victoriametrics.md"
    default_count = 1_500
    has_limit = False
    quipu_flags = ["--query.timeout=10s"]
    quipu_parameters = {"dialect": "metricsql", "nocache": "1"}
    peer_parameters = {"nocache": "1"}

    def start(self):
        self.bodies = self.make_bodies()
        self.start_peer()
        self.functions = {name for name in ALL_FUNCTIONS if self.knows(f"{name}(1)")}
        self.is_newer = not self.refuses('gauge{job="api" or job="db"}')
        if not self.is_newer:
            self.parameter_share = 0.0
            self.old_version = "1.79"
            # VictoriaMetrics changed how long a series goes on after its last sample.
            self.last = LAST - 15
        self.start_quipu()

    def make_bodies(self):
        """Bodies of the remote-write requests that load the data."""
        return list(encode_requests(draw_series(self.options.seed, is_rounding_safe=True)))

    def make_peer(self, directory):
        return servers.start_victoriametrics(directory, self.options.peer, "-search.disableCache",
                                             "-search.latencyOffset=1ms", "-search.maxQueryDuration=2s")

    def fill(self, port):
        for body in self.bodies:
            answer = servers.request(port, "POST", "/api/v1/write", body=body, headers=HEADERS)
            if answer.status // 100 != 2:
                raise SystemExit(f"remote write failed with {answer.status}: {answer.text}")
        servers.request(port, "POST", "/internal/force_flush")

    def ask_peer(self, query):
        return servers.request(self.peer.http, "GET", "/api/v1/query", {"query": query, "time": "1701385200"})

    def knows(self, query):
        answer = self.ask_peer(query)
        return answer.status == 200 or not UNKNOWN.search(answer.text)

    def refuses(self, query):
        return self.ask_peer(query).status != 200

    def make_expression(self, chance):
        return ExpressionGenerator(chance, self.functions, self.is_newer).expression()

    def mutate(self, tree, chance):
        if chance.random() < 0.25:
            return insert_clause(str(tree), chance, CLAUSES)
        return mutate_tree(tree, chance)

    def judge(self, case, quipu, peer):
        if quipu.error is not None and peer.error is not None and 400 <= quipu.status < 500:
            # Both refuse; VictoriaMetrics writes the status instead of a class of errors.
            return None
        query = case.query
        return compare_replies(quipu, peer, is_exact=False, has_notes=False, reads_text=False,
                               has_equal_rows=bool(EQUAL_ROWS.search(query)), order_key=order_key(case))


def order_key(case):
    """What the order of series shows; series of equal values, or equal labels, have any order."""
    if "time" not in case.parameters:
        return None
    if ORDERED.match(case.query):
        # 0 and -0 are equal.
        return lambda name, points: f"{float(points[-1][1]) + 0.0:.9g}"
    found = ORDERED_LABELS.match(case.query)
    if not found:
        return None
    labels = re.findall(r'"(\w+)"', found.group(1))
    return lambda name, points: [json.loads(name).get(label, "") for label in labels]
