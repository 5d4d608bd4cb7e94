"""Expressions of dashboards and rules beside VictoriaMetrics: `--corpus DIR` has JSON dashboards and YAML rules."""

import metricsql
from dashboards import CorpusCampaign


class Campaign(CorpusCampaign, metricsql.Campaign):
    default_count = 1_000_000
