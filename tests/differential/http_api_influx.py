"""Generates requests to InfluxDB 1's `/query` and `/ping`: parameters, methods and headers; its language has a campaign of its own."""

from http_api_cases import WRONG_METHODS, WRONG_TYPES, make_case
from http_api_data import START

DATABASE, WRITE_DATABASE = "http", "incoming"
LINES = "".join(f"fixed,host=h{idx % 2} value={idx}.5,count={idx}i,ok={'true' if idx % 2 else 'false'},note=\"n{idx}\" {(START + idx * 15) * 10**9}\n"
                for idx in range(10))
STATEMENTS = ["SELECT * FROM fixed", "SELECT value FROM fixed", "SELECT mean(value) FROM fixed GROUP BY host", "SELECT * FROM nothing", "SHOW MEASUREMENTS",
              "SHOW TAG KEYS FROM fixed", "SELECT value FROM fixed; SELECT count FROM fixed", "SELECT value FROM fixed WHERE host = $h", "SHOW FIELD KEYS FROM fixed",
              "SELECT count(value) FROM fixed", "SELECT value FROM fixed LIMIT 2", "SELECT note FROM fixed"]
BAD_STATEMENTS = ["", " ", "SELECT", "SELEC * FROM fixed", "SELECT * FROM", "SHOW", "SELECT value FROM fixed WHERE", "SELECT value FROM fixed; SELEC", ";", "SELECT mean(value), value FROM fixed",
                  "DROP", "SELECT value FROM fixed GROUP BY time(x)", "\x00", "SELECT nofunction(value) FROM fixed", "SELECT value FROM fixed WHERE host = $nothing", "CREATE DATABASE"]
EPOCHS = ["", "ns", "u", "ms", "s", "m", "h"]
ACCEPTS = ["*/*", "application/json", "application/csv", "text/csv", "text/html", "", "x"]


def generate_influx(chance):
    """A request to `/query` or `/ping` of InfluxDB, half of them with a fault."""
    if chance.random() < 0.06:
        url = [("verbose", chance.choice(("true", "false", "0", "x")))] if chance.random() < 0.5 else []
        return make_case("influxdb", chance.choice(("GET", "HEAD", "POST", "PUT")), "/ping", url=url)
    url = [("q", chance.choice(STATEMENTS)), ("db", DATABASE)]
    options = (("epoch", 0.5, EPOCHS), ("pretty", 0.2, ["true", "false"]), ("chunked", 0.1, ["true", "false"]), ("chunk_size", 0.1, ["1", "3", "100"]),
               ("params", 0.1, ['{"h":"h0"}', '{"h":"nothing"}']))
    for name, share, values in options:
        if chance.random() < share:
            url.append((name, chance.choice(values)))
    case = make_case("influxdb", "GET", "/query", url=url)
    if chance.random() < 0.5:
        add_fault(chance, case)
    elif chance.random() < 0.3:
        case.update(method="POST", url=[], form=url, headers=[("Content-Type", "application/x-www-form-urlencoded")])
    if chance.random() < 0.15:
        case["headers"].append(("Accept", chance.choice(ACCEPTS)))
    return case


def add_fault(chance, case):
    kind = chance.randrange(8)
    if kind < 3:
        case["url"] = [("q", chance.choice(BAD_STATEMENTS))] + case["url"][1:]
    elif kind == 3:
        case["url"].pop(chance.randrange(2))
    elif kind == 4:
        case["method"] = chance.choice(WRONG_METHODS)
    elif kind == 5:
        name, value = chance.choice((("db", "nowhere"), ("db", ""), ("epoch", "x"), ("chunk_size", "x"), ("chunk_size", "-1"), ("params", "x"), ("params", "[]"),
                                     ("params", '{"h":{}}'), ("params", ""), ("pretty", "x"), ("chunked", "x"), ("rp", "nowhere"), ("rp", "autogen"), ("u", "x"), ("node_id", "x")))
        case["url"] = [pair for pair in case["url"] if pair[0] != name] + [(name, value)]
    elif kind == 6:
        case["path"] = chance.choice(("/query/", "//query", "/querys", "/QUERY", "/api/v2/query", "/write/x", "/ping/x", "/debug/x"))
    else:
        case["form"], case["url"], case["method"] = case["url"], [], "POST"
        case["headers"].append(("Content-Type", chance.choice(WRONG_TYPES)))
