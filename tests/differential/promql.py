"""PromQL beside Prometheus: Debian's 2.42, or with --peer a Prometheus 3, whose language Quipu speaks."""

import re
import subprocess

import dictionary
import servers
from promql_answers import compare_replies
from promql_campaign import QueryCampaign
from promql_data import draw_series
from promql_expressions import ExpressionGenerator
from promql_mutations import mutate_tree
from promql_write import HEADERS, encode_requests

FEATURES = ",".join(f"promql-{name}" for name in (
    "experimental-functions", "duration-expr", "extended-range-selectors", "binop-fill-modifiers"))
# Results whose last digits depend on the library of mathematics or on the order of additions.
INEXACT = re.compile(r"\^|\b(sum|avg|exp|ln|log2|log10|a?(sin|cos|tan)h?|atan2|stddev|stdvar|deriv|predict_linear|"
                     r"histogram_|double_exponential|smoothed|anchored|stddev_over_time|stdvar_over_time)")
ORDERED = re.compile(r"\s*sort(_desc|_by_label|_by_label_desc)?\s*\(.*\)\s*$", re.DOTALL)
EQUAL_ROWS = re.compile(r"\b(topk|bottomk|limitk)\b")


class Campaign(QueryCampaign):
    page = "prometheus.md"
    default_count = 1_500

    def start(self):
        # Windows of Prometheus 2 include samples at their start, those of 3 do not: no sample may be there.
        self.is_newer = bool(self.options.peer) and not is_version_2(self.options.peer)
        self.has_limit = self.is_newer
        self.old_version = "" if self.is_newer else "2.42"
        self.quipu_flags = ["--query.timeout=10s", f"--query.experimental-functions={str(self.is_newer).lower()}"]
        self.fraction = "" if self.is_newer else ".25"
        self.bodies = self.make_bodies()
        self.start_peer()
        self.start_quipu()

    def make_bodies(self):
        """Bodies of the remote-write requests that load the data."""
        return list(encode_requests(draw_series(self.options.seed, 0 if self.is_newer else 503)))

    def make_peer(self, directory):
        flags = [f"--enable-feature=native-histograms,{FEATURES}"] if self.is_newer else []
        return servers.start_prometheus(directory, self.options.peer, "--query.timeout=2s", *flags)

    def fill(self, port):
        for body in self.bodies:
            answer = servers.request(port, "POST", "/api/v1/write", body=body, headers=HEADERS)
            if answer.status // 100 != 2:
                raise SystemExit(f"remote write failed with {answer.status}: {answer.text}")

    def make_expression(self, chance):
        return ExpressionGenerator(chance, self.is_newer, self.fraction).expression()

    def mutate(self, tree, chance):
        return mutate_tree(tree, chance)

    def draw_times(self, chance):
        if chance.random() < 0.05:
            return {"time": f"{chance.choice(dictionary.TIMES)}{self.fraction}"}
        return super().draw_times(chance)

    def judge(self, case, quipu, peer):
        query = case.query
        return compare_replies(quipu, peer, is_exact=self.is_newer and not INEXACT.search(query),
                               has_notes=self.is_newer, has_equal_rows=bool(EQUAL_ROWS.search(query)),
                               order_key=order_key(case))


def order_key(case):
    """What the order of series shows: values for `sort`, whole names for `sort_by_label`."""
    if "time" not in case.parameters or not ORDERED.match(case.query):
        return None
    if "by_label" in case.query:
        return lambda name, points: name
    # Values whose last digits differ are in any order.
    # 0 and -0 are equal.
    return lambda name, points: f"{float(points[-1][1]) + 0.0:.9g}" if isinstance(points[-1][1], str) else ""


def is_version_2(program):
    output = subprocess.run([program, "--version"], check=True, capture_output=True, text=True)
    return "version 2." in output.stdout + output.stderr
