"""Expressions of dashboards and rules beside Prometheus: `--corpus DIR` has JSON dashboards and YAML rules."""

import promql
from expressions import draw_series, read_expressions
from promql_campaign import LAST, START, Case
from promql_write import encode_requests

PIECE_MS = 600_000


class CorpusCampaign:
    """Takes the cases from files instead of a generator; case N is expression N of the sorted list."""

    def __init__(self, options):
        if not options.corpus:
            raise SystemExit("this campaign needs --corpus DIR with dashboards (JSON) or rules (YAML)")
        super().__init__(options)
        self.expressions = read_expressions(options.corpus)
        if not self.expressions:
            raise SystemExit(f"no file below {options.corpus} has an expression")
        options.count = min(options.count, 2 * len(self.expressions))
        self.next = options.case or 0

    def make_bodies(self):
        # Windows of Prometheus 2 include samples at their start: no sample may be there.
        shift_ms = 503 if self.old_version == "2.42" else 0
        return list(encode_requests(list(draw_series(self.expressions, self.options.seed, shift_ms)), PIECE_MS))

    def generate(self, chance):
        """Each expression once at a time and once over a range."""
        super().generate(chance)  # sets the limits of reductions
        number, is_range = divmod(self.next, 2)
        self.next += 1
        times = {"start": str(START + 900), "end": str(START + 6300), "step": "180"} if is_range else \
            {"time": str(LAST - 600)}
        return Case(self.expressions[number], times)

    def summary(self):
        return [f"{len(self.expressions)} expressions"] + super().summary()


class Campaign(CorpusCampaign, promql.Campaign):
    default_count = 1_000_000
