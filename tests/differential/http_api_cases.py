"""Generates requests that read: queries, lists, exports, status pages, remote read; half of them with a fault.

A case is a dictionary: `peer`, `method`, `path`, `url` and `form` (lists of pairs; `form` may be None), `raw` (text
behind the URL's query as it stands), `headers`, `body` (a description for `http_api_writes` or None).
"""

import urllib.parse

import dictionary
from http_api_data import END, LABEL_NAMES, METRICS, START

ISO = "2024-02-29T12:05:00Z"
TIMES = [str(START + 300), str(START + 299.5), str(END), str(END + 290), str(START + 7), ISO, "2024-02-29T12:05:00.25Z",
         "2024-02-29T13:05:00+01:00", f"{START + 240}.123", "1.7092083e9", str(START - 86_400), "0", "-1", ""]
BAD_TIMES = ["x", "now()", "2024-02-30T00:00:00Z", "2024-13-01T00:00:00Z", "12:00", "1e400", "NaN", "Inf", "-Inf", "--1",
             "0x10", "1_000", "2024-02-29 12:05:00Z", "2024-02-29T12:05:00", "2024-02-29", "2024-02", "99999-01-01T00:00:00Z",
             "9223372036854775808", "-9223372036854775809", "1e19", "1709208300,5", " 1709208300", "1709208300 ", "１",
             "1709208300000", "-1h", "now", "now-5m", "1h30m", "2024-02-29t12:05:00z", "2024-02-29T12:05Z", "2024-02-29T24:00:00Z",
             "2024-02-29T12:05:60Z", "null", "true", "''", "\x00", "2024-02-29T12:05:00+25:00", "1e-400", "+1709208300", "1709208300."]
STEPS = ["15", "15s", "30", "1m", "7.5", "60", "1m30s", "600", "0.5m", "1h", "15000ms", "1e1"]
BAD_STEPS = ["", "0", "-1", "x", "1x", "NaN", "Inf", "1e20", "0s", "1ms", "1 m", "--5", "1e400", "-5m", "5m-", "1.5h", ".5",
             "1h1h", "1s1m", "0.0000001", "99999999999", "1m ", "ms", "15S", "1M", "9223372036.854775808"]
DURATIONS = ["30s", "1m", "5m", "10", "1h30m", ""]
BAD_DURATIONS = ["x", "-1", "1x", "NaN", "Inf", "1e400", "1 s", "5m5", "--1s", "1.5.5", "99999999y"]
LIMITS = ["", "0", "1", "2", "100"]
BAD_LIMITS = ["-1", "x", "1.5", "1e3", "9223372036854775808", "0x1", " 1", "1 ", "+1", "NaN", "٣"]
# Windows of ranges begin between two samples: Prometheus 3 leaves out a sample at the beginning, 2.42 does not.
QUERIES = ["up", "temperature", "sum(http_requests_total)", "count by (job) (up)", 'http_requests_total{code="200"}',
           'http_requests_total{code=~"4..|5..",job!="db"}', "1", "1.5e3", "-temperature", "temperature * 2 + 1",
           "sum by (code) (http_requests_total)", "topk(2, edge)", "sort_desc(edge)", "sort(temperature)", "vector(1)",
           "scalar(vector(3))", "up offset 1m", "max_over_time(temperature[103s])", "count_over_time(up[103s])",
           "nothing", "absent(nothing)", "up == 1", "edge", "texts", 'texts{text=~".*b.*"}', '{__name__=~"temp.*"}',
           '{__name__="servers.web1.cpu.user"}', "avg(temperature) by (job)", "up and on (instance) temperature",
           "temperature > bool 25", "abs(edge)", "min without (instance) (temperature)", '{__name__=~"up|a:b"}',
           "latency_bucket", 'a:b{job="node"}', "last_over_time(up[293s])", " up ", "up # comment", "(up)"]
PROMETHEUS_QUERIES = ["temperature[103s]", '"text"', "resets(http_requests_total[103s])", f"up @ {START + 60}",
                      "histogram_quantile(0.9, latency_bucket)", "time()", "quantile(0.5, temperature)",
                      'label_replace(up, "a", "$1", "job", "(.*)")', "http_requests_total[103s:31s]", "pi()", "up @ end()",
                      "changes(http_requests_total[293s])", "'single'", "`raw`", "0x1F", "Inf", "NaN", "1h"]
BAD_QUERIES = ["", " ", "up{", "sum(", "rate(up)", "up[5m", "foo bar", "1 +", "up{job=}", 'up{job="a"', "up{job=a}", "sum by (x up)",
               "rate(up[0s])", "up[1x]", "up offset", "absent()", "nofunction(up)", 'up == "a"', '"a" + 1', 'up{job=~"("}',
               "up{} {}", "up + on (job) temperature", "sum(up) by", "up[5m] + 1", "rate(up[5m:])[1m]", "{", "}", ")", '"',
               "up{__name__=\"x\"}", "topk(up)", "round(1, 2, 3, 4)", "up and 1", "1 and 2", 'label_replace(up, "1a", "b", "c", "(")',
               "sum(up, up)", "count_values(1, up)", "vector(up)", "scalar(1)", "time(1)", "up unless", "bool", "a b c",
               "up{a=\"b\",,}", "\x00", "ä", "日本", "up;up", "up /* */", "up @ x", "up[5m:0s]", "--up--", "1..2"]
UNSELECTIVE = ["{}", '{job=~".*"}', '{job=""}', '{job!="x"}', '{__name__=~".*"}', '{__name__!=""}']
MATCHERS = ["up", "temperature", '{job="node"}', '{__name__=~"up|temperature"}', 'http_requests_total{code!="200"}',
            '{code=~"4.."}', '{text!=""}', "nothing", '{instance=~"host[01].*",job="node"}', '{__name__="servers.web1.cpu.user"}',
            '{job="node",le!~"0.*"}', 'edge{kind="3"}', '{job="node",code=""}', 'texts{text=~"(?i)a.*"}', '{__name__=~".+"}']
BAD_MATCHERS = ["", "{", "up{", "sum(up)", "up offset 5m", "up[5m]", '{job=~"("}', "{job=node}", '{="x"}', "1", '"text"', "a b",
                '{job="node"', '{job="node",,}', "{job='node'} + 1", "\x00", '{1a="b"}', '{__name__="a",__name__="b"}x', "-up", "{job}",
                '{"quoted"="x"}', '{"up"}'] + UNSELECTIVE
LABELS = list(LABEL_NAMES) + ["__name__", "nothing", "trace_id"]
BAD_LABELS = ["a-b", "1a", "a b", "ä", "", "a/b", "a:b", "a%2Fb", "%20", "%zz", "U__a_2e_b", "a.b", "__name__x", "job%00", '"', "x" * 300]
GRAPHITE_PATTERNS = ["*", "servers.*", "servers.*.*", "servers.web1.cpu.*", "servers.web[12].load", "servers.{web1,web2}.*",
                     "servers.web1.", "up", "nothing.*", "*.*", "servers.web1.cpu.user", "s*.w*.c*.u*", "**", "temperature", "t*", "{up,edge}"]
BAD_GRAPHITE_PATTERNS = ["", "[", "{", "servers.[", "servers.{web1", "]", "}", "servers.we?1.*", "servers..*", ".", "*.", "..", "a" * 300,
                         "servers.[!a]*", "{{a,b},c}", "{}", "ä*", "\x00", "serv ers", "servers.web[1", "(", "servers.web1.cpu.user.x"]
TAG_EXPRESSIONS = ["job=node", "name=up", "job!=node", "code=~4..", "name=~temp.*", "job!=~n.*", "__name__=up", "text=a", "nothing=x", "job="]
BAD_TAG_EXPRESSIONS = ["", "job", "=x", "job=~(", "job==node", "!=x", "~", "job=~", "ä=1", "job!~x", "job=node;code=200", " = "]
ACCEPTS = ["*/*", "application/json", "text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0", "text/html", "x", "",
           "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"]
WRONG_METHODS = ["PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "GET", "TRACE", "get", "X"]
WRONG_TYPES = ["application/json", "text/plain", "application/x-www-form-urlencoded; charset=latin1", "multipart/form-data", "", "x/y;z",
               "APPLICATION/X-WWW-FORM-URLENCODED"]
RAW_TAILS = ["&x=%", "&x=%zz", "&%zz=1", "&time=%zz", "&x;y=1", "&time=1;2", "&&&", "&=", "&=1", "&x=%ff", "&x=%00", "&x=+", "&limit=%31",
             "&match[]=%zz", "&timeout=%", "#fragment", "&x=" + "y" * 5_000]
REFUSED = [("latency_offset", "30s"), ("round_digits", "2"), ("storeMatch[]", '{a="b"}'), ("replicaLabels[]", "r"), ("shard_info", "{}")]


class Endpoint:
    """A path with its parameters: name, share of the requests that have it, good values, bad values."""

    def __init__(self, path, weight, *parameters, posts=True):
        self.path, self.weight, self.parameters, self.posts = path, weight, parameters, posts


WINDOW = [("start", 0.7, "start", BAD_TIMES), ("end", 0.7, "end", BAD_TIMES)]
SELECTION = [("match[]", 1.0, MATCHERS, BAD_MATCHERS), *WINDOW]
OPTIONAL_SELECTION = [("match[]", 0.4, MATCHERS, BAD_MATCHERS), *WINDOW]
TIMEOUT = ("timeout", 0.05, DURATIONS, BAD_DURATIONS)
LABEL_PATH = "/api/v1/label/LABEL/values"

PROMETHEUS = [
    Endpoint("/api/v1/query", 12, ("query", 1.0, QUERIES + PROMETHEUS_QUERIES, BAD_QUERIES + UNSELECTIVE), ("time", 0.9, TIMES, BAD_TIMES),
             TIMEOUT, ("stats", 0.1, ["", "1", "all", "true", "x"], ["0", "false"])),
    Endpoint("/api/v1/query_range", 12, ("query", 1.0, QUERIES + PROMETHEUS_QUERIES, BAD_QUERIES + UNSELECTIVE), ("start", 1.0, "start", BAD_TIMES),
             ("end", 1.0, "end", BAD_TIMES), ("step", 1.0, STEPS, BAD_STEPS), TIMEOUT,
             ("stats", 0.1, ["", "1", "all"], ["0", "false"])),
    Endpoint("/api/v1/series", 6, *SELECTION),
    Endpoint("/api/v1/labels", 4, *OPTIONAL_SELECTION),
    Endpoint(LABEL_PATH, 6, *OPTIONAL_SELECTION, posts=False),
    Endpoint("/api/v1/query_exemplars", 4, ("query", 1.0, ["http_requests_total", 'http_requests_total{code="200"}', "up", "sum(http_requests_total)",
                                                          "http_requests_total + up", "nothing", "1"], BAD_QUERIES), *WINDOW),
    Endpoint("/api/v1/format_query", 3, ("query", 1.0, QUERIES + PROMETHEUS_QUERIES, BAD_QUERIES)),
    Endpoint("/api/v1/metadata", 2, ("metric", 0.5, ["up", "", "nothing"], ["\x00", "ä"]), ("limit", 0.5, LIMITS, BAD_LIMITS), posts=False),
    Endpoint("/api/v1/targets", 1, ("state", 0.5, ["active", "dropped", "any", ""], ["x"]), posts=False),
    Endpoint("/api/v1/targets/metadata", 1, ("metric", 0.4, ["up"], [""]), ("match_target", 0.5, MATCHERS, BAD_MATCHERS),
             ("limit", 0.4, LIMITS, BAD_LIMITS), posts=False),
    Endpoint("/api/v1/rules", 1, ("type", 0.5, ["alert", "record", ""], ["x", "Alert"]), posts=False),
    *[Endpoint(path, 0.6, posts=False) for path in
      ("/api/v1/alerts", "/api/v1/alertmanagers", "/api/v1/scrape_pools", "/api/v1/status/config", "/api/v1/status/flags", "/api/v1/status/runtimeinfo",
       "/api/v1/status/buildinfo", "/api/v1/status/tsdb", "/api/v1/status/walreplay", "/-/healthy", "/-/ready", "/metrics")],
    Endpoint("/federate", 4, ("match[]", 1.0, ["fresh", '{job="node"}', "fresh_total", "up", '{__name__=~"fresh.*"}', "nothing"], BAD_MATCHERS), posts=False),
]
NUMBERED = [("topN", 0.5, ["1", "5", "20"], BAD_LIMITS)]
GRAPHITE_TIMES = ("from", 0.2, [str(START - 86_400), ISO], BAD_TIMES), ("until", 0.2, [str(END + 86_400)], BAD_TIMES)
TAG_LIMIT = ("limit", 0.3, LIMITS, BAD_LIMITS)
FILTERS = ("extra_label", 0.1, ["job=node", "job=x"], ["", "job", "=x"]), ("extra_filters[]", 0.1, ['{job="node"}', '{job=~"n.*"}'], BAD_MATCHERS)
VICTORIAMETRICS = [
    Endpoint("/api/v1/query", 8, ("query", 1.0, QUERIES, BAD_QUERIES), ("time", 1.0, TIMES[:-1], BAD_TIMES), ("step", 0.2, STEPS, BAD_STEPS), TIMEOUT,
             ("max_lookback", 0.1, DURATIONS, BAD_DURATIONS), *FILTERS),
    Endpoint("/api/v1/query_range", 8, ("query", 1.0, QUERIES, BAD_QUERIES), ("start", 1.0, "start", BAD_TIMES), ("end", 1.0, "end", BAD_TIMES),
             ("step", 1.0, STEPS, BAD_STEPS), TIMEOUT, ("nocache", 0.5, ["1"], ["x"]), ("max_lookback", 0.1, DURATIONS, BAD_DURATIONS), *FILTERS),
    Endpoint("/api/v1/series", 6, ("match[]", 1.0, MATCHERS, BAD_MATCHERS), ("start", 1.0, "start", BAD_TIMES), ("end", 1.0, "end", BAD_TIMES), TAG_LIMIT, *FILTERS),
    Endpoint("/api/v1/labels", 4, *OPTIONAL_SELECTION, TAG_LIMIT, *FILTERS),
    Endpoint(LABEL_PATH, 5, *OPTIONAL_SELECTION, TAG_LIMIT, *FILTERS),
    Endpoint("/api/v1/series/count", 1),
    Endpoint("/api/v1/status/tsdb", 3, *NUMBERED, ("date", 0.9, ["2024-02-29"], ["x", "2024-02-30", "2024", "29.02.2024", "2024-2-29"]),
             ("match[]", 0.3, MATCHERS, BAD_MATCHERS), ("focusLabel", 0.3, LABELS, BAD_LABELS)),
    Endpoint("/api/v1/status/top_queries", 2, *NUMBERED, ("maxLifetime", 0.5, ["1m", "10m"], BAD_DURATIONS)),
    Endpoint("/api/v1/export", 6, ("match[]", 1.0, MATCHERS, BAD_MATCHERS), ("start", 0.7, "start", BAD_TIMES), ("end", 1.0, "end", BAD_TIMES), ("format", 0.4, ["prometheus", "promapi", ""], ["x"]),
             ("max_rows_per_line", 0.2, ["1", "7", "100"], ["-1", "x", "0"]), ("reduce_mem_usage", 0.1, ["0"], []), *FILTERS),
    Endpoint("/api/v1/export/csv", 5, ("match[]", 1.0, MATCHERS, BAD_MATCHERS), ("start", 0.7, "start", BAD_TIMES), ("end", 1.0, "end", BAD_TIMES),
             ("format", 1.0, ["__name__,__value__,__timestamp__:unix_s", "job,instance,__value__,__timestamp__:unix_ms", "__timestamp__:rfc3339,__value__,__name__",
                              "nothing,__value__,__timestamp__:unix_ns", "__name__"],
              ["", "x", "__timestamp__", "__timestamp__:x", "__value__:x", ",", "__name__,,", "__timestamp__:unix_us", "__timestamp__:custom:2006"])),
    Endpoint("/federate", 3, ("match[]", 1.0, ["fresh", '{job="node"}', "fresh_total", "nothing"], BAD_MATCHERS), ("max_lookback", 0.2, DURATIONS, BAD_DURATIONS)),
    Endpoint("/metrics/find", 5, ("query", 1.0, GRAPHITE_PATTERNS, BAD_GRAPHITE_PATTERNS), ("format", 0.3, ["treejson", "completer", ""], ["x", "pickle"]),
             ("wildcards", 0.2, ["0", "1"], ["x"]), ("label", 0.1, LABELS, BAD_LABELS), ("delimiter", 0.1, ["_", ":"], ["", "ab", "ä"]),
             ("leavesOnly", 0.1, ["1", "0"], ["x"]), *GRAPHITE_TIMES),
    Endpoint("/metrics/expand", 4, ("query", 1.0, GRAPHITE_PATTERNS, BAD_GRAPHITE_PATTERNS), ("groupByExpr", 0.3, ["0", "1"], ["x"]),
             ("leavesOnly", 0.2, ["1", "0"], ["x"]), ("delimiter", 0.1, ["_"], ["", "ab"]), *GRAPHITE_TIMES),
    Endpoint("/metrics/index.json", 1),
    Endpoint("/tags", 2, ("filter", 0.4, ["j", ".*", "co", "^in", "zzz"], ["(", "["]), TAG_LIMIT),
    Endpoint("/tags/LABEL", 2, ("filter", 0.4, ["n", ".*", "host"], ["("]), TAG_LIMIT),
    Endpoint("/tags/findSeries", 3, ("expr", 1.0, TAG_EXPRESSIONS, BAD_TAG_EXPRESSIONS), TAG_LIMIT),
    Endpoint("/tags/autoComplete/tags", 2, ("tagPrefix", 0.6, ["j", "co", "", "zzz", "na"], ["("]), ("expr", 0.4, TAG_EXPRESSIONS, BAD_TAG_EXPRESSIONS), TAG_LIMIT),
    Endpoint("/tags/autoComplete/values", 2, ("tag", 1.0, LABELS + ["name"], BAD_LABELS), ("valuePrefix", 0.5, ["n", "host", "", "zzz"], ["("]),
             ("expr", 0.4, TAG_EXPRESSIONS, BAD_TAG_EXPRESSIONS), TAG_LIMIT),
    *[Endpoint(path, 0.6) for path in ("/api/v1/metadata", "/api/v1/rules", "/api/v1/alerts", "/api/v1/targets", "/api/v1/status/buildinfo", "/health", "/ping",
                                       "/-/healthy", "/metrics", "/api/v1/status/active_queries")],
]
PREFIXES = ["/prometheus", "/prometheus/", "/graphite", "/nowhere", "/PROMETHEUS"]


def make_case(peer, method, path, **parts):
    return {"peer": peer, "method": method, "path": path, "url": [], "form": None, "raw": "", "headers": [], "body": None, **parts}


def generate_read(chance):
    """A request of a read to an endpoint of one of the peers, in half of the cases with a fault."""
    peer = chance.choice(("prometheus", "victoriametrics"))
    endpoints = PROMETHEUS if peer == "prometheus" else VICTORIAMETRICS
    endpoint = chance.choices(endpoints, [one.weight for one in endpoints])[0]
    label = chance.choice(LABELS)
    case = make_case(peer, "GET", endpoint.path)
    pairs = draw_pairs(chance, endpoint)
    if peer == "victoriametrics" and endpoint.path in ("/tags/LABEL", LABEL_PATH) and chance.random() < 0.1:
        label = "name"
    case["url"] = pairs
    fault = chance.random() < 0.5
    if fault:
        label = add_fault(chance, case, endpoint, label)
    case["path"] = case["path"].replace("LABEL", urllib.parse.quote(label, safe="%:/"))
    draw_method(chance, case, endpoint, fault)
    if chance.random() < 0.1:
        case["headers"].append(("Accept-Encoding", chance.choice(("gzip", "gzip;q=0", "deflate", "identity, gzip", "br", "*"))))
    if endpoint.path == "/federate" or chance.random() < 0.05:
        case["headers"].append(("Accept", chance.choice(ACCEPTS)))
    return case


def draw_pairs(chance, endpoint):
    """Good values of an endpoint's parameters; a range in the right order."""
    start = START + chance.randrange(-60, 540, 15)
    # It ends before the samples are five minutes old to the second, for the same reason.
    window = {"start": start, "end": min(start + chance.choice((0, 15, 60, 300, 600)), END + 290)}
    if chance.random() < 0.15:
        window = {"start": START - 400_000, "end": START + 400_000}
    pairs = []
    for name, share, good, _ in endpoint.parameters:
        if chance.random() < share:
            pairs.append((name, str(window[good]) if isinstance(good, str) else chance.choice(good)))
            while name in ("match[]", "expr", "extra_label", "extra_filters[]") and chance.random() < 0.15:
                pairs.append((name, chance.choice(good)))
    if "step" not in dict(pairs) or window["end"] - window["start"] <= 3_600:
        return pairs
    return [(name, "1h" if name == "step" else value) for name, value in pairs]


def add_fault(chance, case, endpoint, label):
    """Changes a request so that it is wrong, or at least unusual. Returns the label for the path."""
    faulty = [one for one in endpoint.parameters if one[3]]
    kind = chance.random()
    if "LABEL" in endpoint.path and kind < 0.35:
        return chance.choice(BAD_LABELS)
    if faulty and kind < 0.6:
        name, _, _, bad = chance.choice(faulty)
        value = chance.choice(bad) if chance.random() < 0.95 else dictionary.draw_string(chance)
        case["url"] = [pair for pair in case["url"] if pair[0] != name] + [(name, value)]
    elif case["url"] and kind < 0.68:
        case["url"].pop(chance.randrange(len(case["url"])))
    elif kind < 0.74 and case["url"]:
        name, value = chance.choice(case["url"])
        case["url"].insert(chance.randrange(len(case["url"]) + 1), (name, chance.choice((value, "", "x"))))
    elif kind < 0.8:
        case["method"] = chance.choice(WRONG_METHODS)
    elif kind < 0.87:
        case["raw"] = chance.choice(RAW_TAILS)
    elif kind < 0.93:
        case["path"] = break_path(chance, case["path"])
    elif kind < 0.96:
        case["url"].append(chance.choice(REFUSED))
    else:
        case["form"], case["url"], case["method"] = case["url"], [], "POST"
        case["headers"].append(("Content-Type", chance.choice(WRONG_TYPES)))
    return label


def break_path(chance, path):
    kind = chance.randrange(6)
    if kind == 0:
        return path + "/"
    if kind == 1:
        return "/" + path
    if kind == 2:
        return chance.choice(PREFIXES) + path
    if kind == 3:
        at = chance.randrange(1, len(path)) if len(path) > 1 else 0
        return path[:at] + chance.choice(("x", "/", "..", "%2F", "")) + path[at + 1:]
    if kind == 4:
        return path.upper()
    return path.replace("v1", chance.choice(("v2", "v0", "v1/v1", ""))) if "v1" in path else path + "x"


def draw_method(chance, case, endpoint, is_faulty):
    """Sends some requests as POST with a form, or with a part of the parameters in the URL."""
    if case["method"] != "GET" or case["form"] is not None or case["raw"]:
        return
    share = 0.3 if endpoint.posts else (0.05 if is_faulty else 0)
    if chance.random() >= share:
        return
    cut = chance.choice((0, 0, len(case["url"]) // 2, len(case["url"])))
    case["method"], case["url"], case["form"] = "POST", case["url"][:cut], case["url"][cut:]
    case["headers"].append(("Content-Type", chance.choice(("application/x-www-form-urlencoded",) * 4 +
                                                          ("application/x-www-form-urlencoded; charset=utf-8",))))


def generate_remote_read(chance):
    """A remote read with good or bad queries, and sometimes a broken body."""
    queries = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        start = (START + chance.randrange(-60, 660, 15)) * 1000
        matchers = [("__name__", "=", chance.choice(METRICS))]
        if chance.random() < 0.5:
            matchers = [chance.choice((("job", "=", "node"), ("__name__", "=~", "up|temp.*"), ("code", "!~", "5.."), ("job", "!=", "db"),
                                       ("text", "!=", ""), ("nothing", "=", ""), ("__name__", "=~", "servers.*")))]
            if matchers[0][0] != "__name__":
                matchers.append(("__name__", "=~", "up|http.*|texts|edge"))
        queries.append((start, start + chance.choice((0, 1_000, 60_000, 600_000)), matchers))
    accepted = chance.choice(((), (0,), (1,), (1, 0), (0, 1)))
    case = make_case("prometheus", "POST", "/api/v1/read",
                     headers=[("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy"), ("X-Prometheus-Remote-Read-Version", "0.1.0")],
                     body={"kind": "read", "queries": queries, "accepted": list(accepted), "damage": []})
    if chance.random() < 0.5:
        add_read_fault(chance, case)
    return case


def add_read_fault(chance, case):
    body, kind = case["body"], chance.randrange(9)
    start, end, matchers = body["queries"][0]
    if kind == 0:
        body["queries"][0] = (end + 1_000, start, matchers)
    elif kind == 1:
        body["queries"][0] = (start, end, matchers + [(chance.choice(("job", "", "a-b", "ä")), chance.choice(("=~", "!~")), chance.choice(("(", "[", "*", "a**")))])
    elif kind == 2:
        body["queries"][0] = (start, end, matchers + [("job", "?", "x")])
    elif kind == 3:
        body["queries"][0] = (chance.choice((-2**63, 0, 2**62)), chance.choice((2**63 - 1, 0)), matchers)
    elif kind == 4:
        body["queries"] = []
    elif kind == 5:
        body["queries"][0] = (start, end, [])
    elif kind == 6:
        body["accepted"] = [chance.choice((2, 7, 2**31))]
    else:
        body["damage"] = draw_damage(chance)
    if chance.random() < 0.1:
        case["headers"] = [(name, chance.choice(("gzip", "zstd", "x", "")) if name == "Content-Encoding" else value) for name, value in case["headers"]]


def draw_damage(chance):
    """Operations that break a body: see `http_api_writes.damage`."""
    kind, at = chance.choice(("flip", "cut", "insert", "append", "empty", "plain")), round(chance.random(), 3)
    return [(kind, at, chance.randrange(1, 256))]
