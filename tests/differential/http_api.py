"""Campaign `http_api`: requests of Prometheus' and VictoriaMetrics' HTTP APIs, and line protocol of InfluxDB.

Reads go to servers with the same series. Writes and deletions go to further servers, under names that no other
request uses; then all servers are asked what is stored.
"""

import http.client
import itertools
import json
import re
import time
import urllib.parse

import http_api_data as data
import http_api_views as views
import http_api_wire as wire
import http_api_writes as writes
import servers
from campaign import BaseCampaign, Difference
from http_api_cases import generate_read, generate_remote_read
from http_api_influx import DATABASE, LINES, WRITE_DATABASE, generate_influx

PROMETHEUS_FLAGS = ("--web.enable-admin-api", "--enable-feature=exemplar-storage")
VICTORIAMETRICS_FLAGS = ("-search.latencyOffset=0s", "-search.disableCache")
QUIPU_FLAGS = ("--self-scrape-interval=0", "--durability=relaxed", "--future-retention=100y")
WRITE_KINDS = ("remote_write", "jsonl", "prometheus", "influx", "csv", "none")
FORM = "application/x-www-form-urlencoded"
_connections = {}


class Campaign(BaseCampaign):
    page = "http.md"
    default_count = 1_000

    def start(self):
        self.servers, self.log_sizes = {}, {}
        self.tokens, self.starts = itertools.count(), itertools.count()
        self.now = int(time.time())
        for name, role in (*itertools.product(("prometheus", "victoriametrics", "quipu"), ("read", "write")), ("influxdb", "write")):
            self.start_server(name, role)
        self.create_database()

    def start_server(self, name, role):
        """Starts a server with an empty directory, and loads the series if it is for reads."""
        directory = self.options.directory / f"{name}-{role}-{next(self.starts)}"
        if name == "quipu":
            server = servers.start_quipu(self.options.binary, directory, *QUIPU_FLAGS)
            self.log_sizes[role] = server.log.stat().st_size
        elif name == "prometheus":
            server = servers.start_prometheus(directory, None, *PROMETHEUS_FLAGS)
        elif name == "victoriametrics":
            server = servers.start_victoriametrics(directory, None, *VICTORIAMETRICS_FLAGS)
        else:
            server = servers.start_influxdb(directory)
        self.servers[name, role] = server
        if role == "read":
            self.load(name)

    def create_database(self):
        for name in ("influxdb", "quipu"):
            port = self.servers[name, "write"].http
            servers.post_form(port, "/query", {"q": f"CREATE DATABASE {DATABASE}; CREATE DATABASE {WRITE_DATABASE}"})
            servers.request(port, "POST", "/write", {"db": DATABASE}, body=LINES)

    def load(self, name):
        port = self.servers[name, "read"].http
        # Old samples come first, as Prometheus does not list labels of samples that come out of order.
        for series in (data.build_series(self.options.seed), data.build_exemplars(), data.build_recent_series(self.now)):
            answer = servers.request(port, "POST", "/api/v1/write", body=data.encode(series), headers=data.HEADERS)
            if answer.status >= 300:
                raise SystemExit(f"{name} refuses the series: {answer.status} {answer.text}")
        self.flush(name, port)

    def flush(self, name, port):
        if name == "victoriametrics":
            servers.request(port, "GET", "/internal/force_flush")

    def stop(self):
        for server in getattr(self, "servers", {}).values():
            server.kill()

    def generate(self, chance):
        kind = chance.random()
        if kind < 0.64:
            return generate_read(chance)
        if kind < 0.7:
            return generate_remote_read(chance)
        return generate_influx(chance) if kind < 0.75 else writes.generate_write(chance)

    def compare(self, case):
        difference = self.compare_once(case)
        if difference and " - - Connection" in difference.peer:
            # The request before ended the peer.
            self.check_servers()
            difference = self.compare_once(case)
        if difference and difference.kind[0] == "data" and not views.has_time(case):
            # The clock may have passed a sample between two requests.
            difference = self.compare_once(case)
        return self.check_servers() or difference

    def compare_once(self, case):
        is_write = bool(case["body"]) and case["body"]["kind"] in WRITE_KINDS
        role = "write" if is_write or case["peer"] == "influxdb" else "read"
        token = token_of(next(self.tokens))
        if case.get("setup"):
            for name in (case["peer"], "quipu"):
                body = writes.build_body({"kind": "remote_write", "series": case["setup"], "damage": []}, token)
                port = self.servers[name, role].http
                servers.request(port, "POST", "/api/v1/write", body=body, headers=data.HEADERS)
                self.flush(name, port)
        quipu, peer = (self.send(name, role, case, token) for name in ("quipu", case["peer"]))
        difference = compare_views(case, quipu, peer)
        if not is_write:
            return difference
        stored = [self.read_stored(name, case, token) for name in ("quipu", case["peer"])]
        if case["peer"] == "victoriametrics":
            stored[1] = keep_one_of_each_time(*stored)
        found = compare_stored(quipu, peer, *stored)
        if found:
            place, *values = views.find_place(*stored)
            return Difference(f"stored{place} {values[0]} after {quipu}", f"stored{place} {values[1]} after {peer}",
                              ("stored", quipu.status, peer.status))
        return difference

    def send(self, name, role, case, token):
        """Sends the request of a case to one server; returns the view of its answer."""
        path = case["path"]
        if name == "quipu" and case["peer"] == "victoriametrics" and views.route_of(case).startswith("/api/v1/query"):
            path = "/metricsql/" + path.lstrip("/")
        target = path
        if case["url"] or case["raw"]:
            target += "?" + urllib.parse.urlencode(replace_token(case["url"], token)) + case["raw"]
        headers, body = dict(case["headers"]), None
        if case["form"] is not None:
            body = urllib.parse.urlencode(replace_token(case["form"], token)).encode()
        elif case["body"]:
            body = writes.build_body(case["body"], token)
            if case["body"].get("encoding"):
                headers["Content-Encoding"] = case["body"]["encoding"]
        answer = send_raw(self.servers[name, role].http, case["method"], target, body, headers)
        return views.view_answer(case, answer)

    def read_stored(self, name, case, token):
        """What a server has of the names with a token, in a form that two servers share."""
        port, peer = self.servers[name, "write"].http, case["peer"]
        self.flush(name, port)
        pattern = f'{{__name__=~"{token}.*"}}'
        if peer == "victoriametrics":
            answer = servers.request(port, "GET", "/api/v1/export", [("match[]", pattern), ("start", 1), ("end", 4_000_000_000)])
            return read_lines(answer.text.replace(token, writes.TOKEN))
        if peer == "influxdb":
            query = {"db": WRITE_DATABASE, "epoch": "ns", "q": f"SELECT * FROM /^{token}.*/"}
            answer = servers.request(port, "GET", "/query", query)
            text = re.sub(r"\[1[79]\d{17}(?=,)", lambda time: time[0] if time[0] < f"[{views.CLOCK_MILLIS}" else '["now"', answer.text)
            return sort_rows(json.loads(text.replace(token, writes.TOKEN))) if answer.status == 200 else answer.text
        body = wire.compress_snappy(wire.encode_read([(0, 2**50, [("__name__", "=~", f"{token}.*")])]))
        headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
        answer = servers.request(port, "POST", "/api/v1/read", body=body, headers=headers)
        stored = {"samples": wire.decode_read_response(answer.body) if answer.status == 200 else answer.text}
        if any(one.get("histograms") for one in case["body"].get("series", [])):
            query = {"query": pattern + "[1h]", "time": data.START + 1_800}
            result = read_json(servers.request(port, "GET", "/api/v1/query", query)).get("data", {}).get("result", [])
            stored["histograms"] = sorted((one for one in result if "histograms" in one), key=str)
        if any(one.get("exemplars") for one in case["body"].get("series", [])):
            query = {"query": pattern, "start": data.START - 60, "end": data.START + 3_600}
            stored["exemplars"] = read_json(servers.request(port, "GET", "/api/v1/query_exemplars", query)).get("data")
        return json.loads(json.dumps(stored).replace(token, writes.TOKEN))

    def check_servers(self):
        """Starts servers again that have ended. Returns a difference if it was Quipu, or if its log has a panic."""
        found = None
        for (name, role), server in list(self.servers.items()):
            panics = []
            if name == "quipu" and server.log.stat().st_size != self.log_sizes[role]:
                panics = server.panics()
                self.log_sizes[role] = server.log.stat().st_size
            if server.is_running() and not panics:
                continue
            if name == "quipu":
                what = f"panic {panics[-1]}" if panics else f"exit {server.child.returncode} {server.log_tail()[-600:]}"
                found = Difference(what, "goes on", ("crash",))
            server.kill()
            self.start_server(name, role)
            if name == "influxdb" or role == "write" and name == "quipu":
                self.create_database()
        return found

    def text(self, case):
        words = [case["peer"], case["method"], case["path"]]
        words += [f"?{name}={value!r}" for name, value in case["url"]]
        words += [f"raw={case['raw']!r}"] if case["raw"] else []
        words += [f"form {name}={value!r}" for name, value in case["form"] or []]
        words += [f"header {name}={value!r}" for name, value in case["headers"]
                  if (name, value) not in data.HEADERS.items() and value != FORM]
        if case["body"]:
            body = case["body"]
            words.append(f"body {body['kind']}")
            words += [repr(line) for line in body.get("lines", [])]
            words += [f"{key}={body[key]!r}" for key in ("series", "queries", "accepted", "encoding", "damage") if body.get(key)]
        return " ".join(words)

    def reductions(self, case):
        for key in ("url", "form", "headers"):
            for idx in range(len(case[key] or [])):
                yield {**case, key: case[key][:idx] + case[key][idx + 1:]}
        if case["raw"]:
            yield {**case, "raw": ""}
            pieces = case["raw"].split("&")
            yield from ({**case, "raw": "&".join(pieces[:idx] + pieces[idx + 1:])} for idx in range(1, len(pieces)) if len(pieces) > 2)
        if case["form"] is not None:
            yield {**case, "method": "GET", "url": case["url"] + case["form"], "form": None, "headers": []}
        if case["method"] not in ("GET", "POST"):
            yield {**case, "method": "GET"}
        yield from self.reduce_values(case)
        if case["body"]:
            yield from ({**case, "body": body} for body in reduce_body(case["body"]))

    def reduce_values(self, case):
        simple = {"query": ("up", "1"), "match[]": ("up",), "time": (str(data.START + 300),), "start": (str(data.START),),
                  "end": (str(data.END),), "step": ("15",), "expr": ("job=node",)}
        for key in ("url", "form"):
            for idx, (name, value) in enumerate(case[key] or []):
                for smaller in (*simple.get(name, ()), value[:len(value) // 2], value[len(value) // 2:], value[1:], value[:-1]):
                    if len(smaller) < len(value) or value not in simple.get(name, (value,)) and smaller in simple[name]:
                        yield {**case, key: case[key][:idx] + [(name, smaller)] + case[key][idx + 1:]}


def reduce_body(body):
    for key in ("lines", "series", "queries", "damage", "accepted"):
        for idx in range(len(body.get(key, []))):
            yield {**body, key: body[key][:idx] + body[key][idx + 1:]}
    if body.get("encoding"):
        yield {**body, "encoding": ""}
    for idx, line in enumerate(body.get("lines", [])):
        for smaller in (line[:len(line) // 2], line[len(line) // 2:]):
            if len(smaller) < len(line):
                yield {**body, "lines": body["lines"][:idx] + [smaller] + body["lines"][idx + 1:]}
    for idx, one in enumerate(body.get("series", [])):
        for key in ("samples", "labels", "exemplars", "histograms"):
            for at in range(len(one.get(key, []))):
                smaller = {**one, key: one[key][:at] + one[key][at + 1:]}
                yield {**body, "series": body["series"][:idx] + [smaller] + body["series"][idx + 1:]}


def sort_rows(answer):
    """An answer of InfluxQL with the rows of each series in one order: that of equal times is not defined."""
    for result in answer.get("results", []):
        for series in result.get("series", []):
            series["values"].sort(key=str)
    return answer


def read_json(answer):
    try:
        return json.loads(answer.text)
    except ValueError:
        return {"data": {"result": [{"histograms": answer.text}]}}


def read_lines(text):
    """Samples of an export, or its text where that is not JSON."""
    try:
        return views.read_json_lines(text)
    except (ValueError, KeyError, TypeError):
        return text


def token_of(number):
    """A word of constant length for the names of one comparison."""
    letters = ""
    for _ in range(6):
        number, rest = divmod(number, 26)
        letters = chr(ord("a") + rest) + letters
    return "t" + letters


def replace_token(pairs, token):
    return [(name, value.replace(writes.TOKEN, token)) for name, value in pairs]


def send_raw(port, method, target, body, headers):
    """Sends a request whose method and target are sent as they stand, on a kept connection."""
    for is_last in (False, True):
        kept = _connections.pop(port, None)
        connection = kept or http.client.HTTPConnection("127.0.0.1", port, timeout=servers.REQUEST_SECONDS_MAX)
        try:
            connection.putrequest(method, target or "/", skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None or method in ("POST", "PUT", "PATCH"):
                connection.putheader("Content-Length", str(len(body or b"")))
            connection.endheaders(body or b"")
            response = connection.getresponse()
            answer = servers.Answer(response.status, response.headers, response.read())
            if response.will_close:
                connection.close()
            else:
                _connections[port] = connection
            return answer
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            # A server may close a kept connection at any time: one further try, on a new one.
            if is_last or not kept:
                return servers.Answer(0, {}, f"{type(error).__name__}: {error}".encode())
    raise AssertionError("unreachable")


def compare_views(case, quipu, peer):
    """The difference between two answers: a failure of the server, the status, the error type, the media type, the data."""
    def differ(kind):
        return Difference(quipu, peer, (kind, quipu.status, peer.status, quipu.error, peer.error))

    if quipu.status == 0 and peer.status != 0 or quipu.status >= 500 and peer.status < 500:
        return differ("failure")
    if quipu.error == "broken" and peer.error != "broken":
        return differ("broken")
    if not is_same_status(case, quipu.status, peer.status):
        return differ("status")
    if 300 <= peer.status:
        is_typed = case["peer"] == "prometheus" and peer.error and peer.error != "broken"
        return differ("error") if is_typed and quipu.error != peer.error else None
    if case["method"] == "HEAD":
        return None
    if quipu.media != peer.media and not (case["body"] or views.route_of(case) in views.TEXTS):
        return differ("media")
    is_shape = views.route_of(case) in views.SHAPES or case["peer"] == "prometheus" and views.route_of(case) == "/api/v1/status/tsdb"
    is_same = views.covers(quipu.data, peer.data) if is_shape else quipu.data == peer.data
    if is_same:
        return None
    if is_shape:
        return differ("data")
    place, *values = views.find_place(quipu.data, peer.data)
    shown = [f"{view.status} {view.media} data{place} {json.dumps(value, ensure_ascii=False)}" for view, value in zip((quipu, peer), values)]
    return Difference(*shown, ("data", re.sub(r"\d+", "", place)))


def is_same_status(case, quipu, peer):
    if case["peer"] == "prometheus":
        return quipu == peer
    # VictoriaMetrics and InfluxDB answer the same fault with other statuses of the class, by path.
    return quipu == peer or quipu // 100 == peer // 100 == 4


def compare_stored(quipu, peer, quipu_stored, peer_stored):
    """Whether stored samples differ. A request that the peer refuses may leave its good part in Quipu."""
    return quipu_stored != peer_stored and peer.status < 300 and quipu.status < 300


def keep_one_of_each_time(quipu, peer):
    """Series of VictoriaMetrics with one sample of each time: that of Quipu, if it is among them."""
    if not isinstance(quipu, dict) or not isinstance(peer, dict):
        return peer
    chosen = {}
    for labels, samples in peer.items():
        own, times = dict(quipu.get(labels, [])), dict(samples)
        chosen[labels] = [(time, own[time] if (time, own.get(time)) in samples else value) for time, value in times.items()]
    return chosen
