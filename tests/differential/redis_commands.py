"""Compares the Redis listener of Quipu with Redis 7.0: replies of random sequences of commands, and the keys after them.

A case is a sequence of commands of up to three clients on empty databases, or bytes that are sent as they are.
"""

import re
import subprocess
import time

import known
import redis_compare
import redis_player
import redis_protocol
import servers
from campaign import BaseCampaign, Difference
from redis_generator import Generator, is_excluded, settle
from redis_protocol import ConnectionLost, quote, show

# The version of the server and the number of the client in the reply to HELLO.
HELLO = re.compile(rb"(?<=version\r\n)\$\d+\r\n[\d.]+\r\n|(?<=\$2\r\nid\r\n):\d+\r\n")
SHOWN_MAX = 1_500
LISTENERS = ("http", "redis")
MEMORY_MAX = 2 << 30  # bytes of resident memory that Quipu may take
# With an odd seed Quipu has so little memory for keys that values are read from disk.
SMALL_MEMORY = "--kv-memory=1MiB"
# Commands that report a miss in another way than others.
MISSES_MORE = re.compile(r"(?i)XREAD|SORT|EVAL|FCALL")
LEX = re.compile(rb"(?i)BYLEX|LEXCOUNT")
ABSENT = redis_protocol.Typed("_", None)  # what COMMAND INFO says of an unknown command
CONTAINERS = {b"ACL", b"CLIENT", b"CLUSTER", b"COMMAND", b"CONFIG", b"FUNCTION", b"LATENCY", b"MEMORY", b"OBJECT", b"PUBSUB",
              b"SCRIPT", b"SLOWLOG", b"XGROUP", b"XINFO"}


class Campaign(BaseCampaign):
    page = "redis.md"
    default_count = 1_000

    def __init__(self, options):
        super().__init__(options)
        self.page = pages_for(options.peer)
        self.generator = Generator()
        self.known = known.KnownDifferences(self.page)
        self.quipu = self.peer = None
        self.players, self.peer_version = [], ""
        self.commands = self.errors = self.restored = self.restarts = self.peer_crashes = 0
        self.memory_max = 0

    def start(self):
        self.start_peer()
        self.start_quipu()

    def start_peer(self):
        self.peer = servers.start_redis(self.options.directory / "peer", self.options.peer,
                                        "--crash-log-enabled", "no", "--crash-memcheck-enabled", "no")

    def start_quipu(self):
        flags = [SMALL_MEMORY] if self.options.seed % 2 else []
        self.quipu = servers.start_quipu(self.options.binary, self.options.directory / "quipu", *flags, listeners=LISTENERS)
        self.start_players()

    def start_players(self):
        self.players = [redis_player.Player(self.quipu.redis, is_quipu=True), redis_player.Player(self.peer.redis)]
        control = self.players[1].control
        if not self.peer_version:
            self.peer_version = server_version(control.call("INFO", "server"))
            self.generator.learn(redis_seven_commands(control), lambda name: control.call("COMMAND", "INFO", name) != [ABSENT])
        for player in self.players:
            player.reads_field_expiry = self.generator.has_field_expiry

    def stop(self):
        for server in (self.quipu, self.peer):
            if server:
                server.stop()

    def generate(self, chance):
        return self.generator.draw(chance)

    def text(self, case):
        if "raw" in case:
            return "raw " + quote(case["raw"])
        heading = "RESP" + "/".join(str(protocol) for protocol in case["protocols"])
        lines = [heading + (", pipelined" if case["pipelined"] else "") + (", restored" if case["restores"] else "")]
        return "\n".join(lines + [self.line(case, at) for at in range(len(case["steps"]))])

    def line(self, case, at):
        number, command = case["steps"][at]
        prefix = f"{number}> " if len(case["protocols"]) > 1 else ""
        return prefix + " ".join(quote(word) if len(word) < 2_000 else quote(word[:100]) + "..." for word in command)

    def compare(self, case):
        if "raw" in case:
            return self.compare_raw(case)
        results = redis_player.play_both(self.players, case)
        self.commands += len(case["steps"])
        if any(result["lost"] for result in results):
            wait_for_exit(self.quipu, self.peer)
        if found := self.find_crash() or self.find_excess():
            return found
        if self.restart_peer(case):
            return None
        differences = self.differences(case, *results)
        first = None
        for difference, ends in differences:
            if difference is None:
                return first
            if not self.known.explains(self.text(case), difference):
                return difference
            first = first or difference
            if ends:
                return first
        if case["restores"] and results[0]["state"]:
            return self.compare_restored(results[0]["state"]) or first
        return first

    def compare_restored(self, state):
        """Has each server restore what the other one dumps; compares all keys again."""
        keys = list(state[0])
        if not keys:
            return None
        select = [b"SELECT", b"0"]
        dumps = [player.control.pipeline([select] + [[b"DUMP", key] for key in keys])[1:] for player in self.players]
        for player, foreign in zip(self.players, reversed(dumps)):
            commands = [[b"RESTORE", key, b"0", dump, b"REPLACE"] for key, dump in zip(keys, foreign) if isinstance(dump, bytes)]
            for command, reply in zip(commands, player.control.pipeline(commands)):
                if redis_protocol.is_error(reply):
                    shown = f"RESTORE {quote(command[1])} {quote(command[3])[:SHOWN_MAX]} => {show(reply)}"
                    is_quipu = player is self.players[0]
                    return Difference(shown if is_quipu else "OK", "OK" if is_quipu else shown, ("restore", is_quipu))
        self.restored += len(keys)
        states = [player.read_state() for player in self.players]
        for difference, _ in self.state_differences(*states):
            return Difference(f"restored {difference.quipu}", f"restored {difference.peer}", ("restored", *difference.kind))
        return None

    def find_crash(self):
        """A crash or a panic of Quipu; starts it again."""
        panics = self.quipu.panics()
        if self.quipu.is_running() and not panics:
            return None
        lines = panics or self.quipu.log_tail().splitlines()[-5:]
        self.restarts += 1
        self.quipu.stop()
        self.quipu.log.unlink()
        if not self.peer.is_running():
            self.peer_crashes += 1
            self.start_peer()
        self.start_quipu()
        return Difference("crash " + "\n".join(lines), "no crash", ("crash",))

    def restart_peer(self, case):
        """Starts Redis again after a crash of its own; returns whether there was one. `--report` keeps the case."""
        if self.peer.is_running():
            return False
        self.peer_crashes += 1
        if self.options.report:
            with open(f"{self.options.report}.crashes", "a", encoding="utf-8") as file:
                file.write(f"{self.text(case)}\n{self.peer.log_tail()[-2_000:]}\n----\n")
        self.start_peer()
        self.start_players()
        return True

    def find_excess(self):
        """Quipu takes more memory than any case needs; starts it again."""
        memory = self.quipu.memory()
        self.memory_max = max(self.memory_max, memory)
        if memory <= MEMORY_MAX:
            return None
        self.quipu.stop()
        self.start_quipu()
        return Difference(f"memory {memory >> 20} MiB", "less", ("memory",))

    def differences(self, case, quipu, peer):
        """Yields differences and whether what follows them means nothing."""
        queued = {}
        for at, (number, command) in enumerate(case["steps"]):
            if at not in quipu["replies"] or at not in peer["replies"]:
                if quipu["lost"] != peer["lost"]:
                    kind = ("lost", (command[0].upper() if command else b""))
                    yield self.difference(case, at, quipu["lost"] or "a reply", peer["lost"] or "a reply", kind), True
                return
            yield from self.reply_differences(case, at, quipu["replies"][at], peer["replies"][at], queued)
        if quipu["lost"] or peer["lost"]:
            if bool(quipu["lost"]) != bool(peer["lost"]):
                yield Difference(f"after the commands: {quipu['lost']}", f"{peer['lost']}", ("lost", "end")), True
            return
        yield from self.push_differences(case, quipu, peer)
        yield from self.state_differences(quipu["state"], peer["state"])

    def reply_differences(self, case, at, quipu, peer, queued):
        number, command = case["steps"][at]
        waiting = queued.setdefault(number, [])
        if quipu == redis_player.SKIPPED or peer == redis_player.SKIPPED:
            if quipu != peer:
                yield self.difference(case, at, quipu, peer, ("blocked",)), True
            return
        name = command[0].lower() if command else b""
        kind = redis_compare.compare_replies(command, quipu, peer, waiting)
        if redis_protocol.is_error(peer):
            self.errors += 1
        if peer == redis_protocol.Typed("+", b"QUEUED"):
            waiting.append(command)
        elif name in (b"exec", b"discard", b"reset") or name == b"multi" and not redis_protocol.is_error(peer):
            waiting.clear()
        if kind and LEX.search(b" ".join(command)) and not self.has_equal_scores(case, at, command):
            yield None, True  # a range of members means nothing where scores differ
        elif kind:
            if kind == "text" and self.peer_version.startswith("Valkey"):
                return  # Quipu has the error texts of Redis
            names = (kind, full_name(command), class_of(quipu), class_of(peer))
            yield self.difference(case, at, quipu, peer, names), kind != "text"

    def has_equal_scores(self, case, at, command):
        """Whether all members of the sorted set of a command have one score; Redis runs the steps before it again."""
        (result,) = redis_player.play_both(self.players[1:], {**case, "steps": case["steps"][:at]})
        for key in command[1:3]:
            for state in (result["state"] or {}).values():
                for reader, members in state.get(key, (None, []))[1]:
                    if reader[0] == b"ZRANGE" and len({repr(score) for _, score in pairs_of(members)}) > 1:
                        return False
        return True

    def difference(self, case, at, quipu, peer, kind):
        quipu, peer = differing_items(quipu, peer)
        shown = [one if isinstance(one, str) else show(one)[:SHOWN_MAX] for one in (quipu, peer)]
        label = f"{kind[0]} {self.line(case, at)[:300]} => "
        return Difference(label + shown[0], label + shown[1], kind)

    def push_differences(self, case, quipu, peer):
        # Redis reports keys that it misses before it finds a fault of a command, and some twice.
        hides_misses = MISSES_MORE.search(self.text(case)) or any(redis_compare.has_error(reply) for reply in peer["replies"].values())
        for number, (one, other) in enumerate(zip(quipu["pushes"], peer["pushes"])):
            if hides_misses:
                one, other = redis_compare.without_misses(one), redis_compare.without_misses(other)
            one, other = redis_compare.order_messages(one), redis_compare.order_messages(other)
            if one != other:
                if sorted(map(repr, one)) == sorted(map(repr, other)):
                    yield Difference(f"push order {show(one)}", f"push order {show(other)}", ("push order",)), False
                else:
                    yield Difference(f"push {number}> {show(one)}", f"push {number}> {show(other)}", ("push",)), True

    def state_differences(self, quipu, peer):
        for db in redis_player.DATABASES:
            ours, theirs = quipu[db], peer[db]
            if sorted(ours) != sorted(theirs):
                shown = [" ".join(map(quote, sorted(keys)))[:SHOWN_MAX] for keys in (ours, theirs)]
                yield Difference(f"state keys of database {db}: {shown[0]}", f"state keys of database {db}: {shown[1]}", ("state keys",)), True
                return
            for key in ours:
                yield from self.key_differences(db, key, ours[key], theirs[key])

    def key_differences(self, db, key, quipu, peer):
        if quipu == peer:
            return
        name = f"state {quote(key)} in {db}:"
        if quipu[0] != peer[0]:
            yield Difference(f"{name} TYPE {show(quipu[0])}", f"{name} TYPE {show(peer[0])}", ("state type",)), True
            return
        for (command, ours), (_, theirs) in zip(quipu[1], peer[1]):
            if redis_compare.compare_replies(command, ours, theirs):
                label = f"{name} {quote(command[0])} => "
                ours, theirs = differing_items(ours, theirs)
                yield Difference(label + show(ours)[:SHOWN_MAX], label + show(theirs)[:SHOWN_MAX], ("state", command[0])), True

    def compare_raw(self, case):
        answers = []
        for server, player in zip((self.quipu, self.peer), self.players):
            try:
                player.control.pipeline(redis_player.CLEAN)
                answers.append(redis_protocol.exchange_raw(server.redis, case["raw"]))
            except ConnectionLost as error:
                answers.append(str(error).encode())
        self.commands += 1
        if crash := self.find_crash():
            return crash
        if self.restart_peer(case):
            return None
        quipu, peer = [HELLO.sub(b"", answer) for answer in answers]
        if quipu == peer:
            return None
        codes = [tuple(re.findall(rb"^-\w+", answer, re.MULTILINE)) for answer in answers]
        kind = "raw text" if codes[0] == codes[1] and quipu.count(b"\n") == peer.count(b"\n") else "raw"
        return Difference(f"{kind} {quote(quipu)}", f"{kind} {quote(peer)}", (kind, len(codes[0]), len(codes[1])))

    def reductions(self, case):
        if "raw" in case:
            yield from reduce_raw(case)
            return
        steps = case["steps"]
        size = len(steps) // 2
        while size:
            for start in range(0, len(steps), size):
                yield {**case, "steps": steps[:start] + steps[start + size:]}
            size //= 2
        if case["pipelined"]:
            yield {**case, "pipelined": False}
        if case["restores"]:
            yield {**case, "restores": False}
        if len(case["protocols"]) > 1:
            yield {**case, "protocols": case["protocols"][:1], "steps": [(0, command) for _, command in steps]}
        if set(case["protocols"]) != {2}:
            yield {**case, "protocols": [2] * len(case["protocols"])}
        for at, (number, command) in enumerate(steps):
            for smaller in reduce_command(command):
                if is_excluded(smaller):
                    continue
                smaller = settle(smaller)
                yield {**case, "steps": steps[:at] + [(number, smaller)] + steps[at + 1:]}

    def summary(self):
        return [f"{self.commands} commands, {self.errors} of them refused by {self.peer_version}, {self.restored} keys restored",
                f"restarts after crashes: Quipu {self.restarts}, peer {self.peer_crashes}; memory of Quipu: {self.memory_max >> 20} MiB at most",
                *self.stored()]

    def stored(self):
        """Counters of values that were on disk."""
        text = self.players[0].control.call("INFO", "everything")
        text = text.payload if isinstance(text, redis_protocol.Typed) else text
        found = re.findall(rb"(quipu_cold_reads|quipu_cooled_keys):(\d+)", text if isinstance(text, bytes) else b"")
        return [", ".join(f"{name.decode()} {count.decode()}" for name, count in found)]


def redis_seven_commands(control):
    """Names of the commands that the peer has since Redis 7.0 or longer."""
    names = control.call("COMMAND", "LIST")
    names = sorted(names.payload if isinstance(names, redis_protocol.Typed) else names)
    docs = control.call("COMMAND", "DOCS", *names)
    pairs = docs.payload if isinstance(docs, redis_protocol.Typed) else docs
    since = {name: fields_of(about).get(b"since", b"99") for name, about in zip(pairs[::2], pairs[1::2])}
    return [name for name in names if [int(part) for part in since.get(name, b"99").split(b".")] < [7, 1]]


def fields_of(reply):
    items = reply.payload if isinstance(reply, redis_protocol.Typed) else reply
    return dict(zip(items[::2], items[1::2]))


def pages_for(program):
    """Pages of known differences from a peer: those of Redis 7.0, and those of later versions and Valkey."""
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout if program else "v=7.0"
    return "redis.md" if "v=7.0" in version else ["redis.md", "redis-later.md"]


def server_version(reply):
    """Product and version from `INFO server`."""
    text = reply.payload if isinstance(reply, redis_protocol.Typed) else reply
    fields = dict(line.split(":", 1) for line in text.decode("utf-8", "replace").splitlines() if ":" in line)
    if fields.get("server_name") == "valkey":
        return f"Valkey {fields['valkey_version']}"
    return f"Redis {fields['redis_version']}"


def full_name(command):
    """The name of a command with that of its subcommand."""
    name = command[0].upper() if command else b""
    return name + b" " + command[1].upper() if name in CONTAINERS and len(command) > 1 else name


def differing_items(ours, theirs):
    """The elements that differ of two long lists of equal length."""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs) > 20:
        pairs = [(one, other) for one, other in zip(ours, theirs) if one != other]
        return [one for one, _ in pairs], [other for _, other in pairs]
    return ours, theirs


def pairs_of(members):
    """Members and scores of ZRANGE WITHSCORES in RESP3 or RESP2."""
    if members and isinstance(members[0], list):
        return members
    return list(zip(members[::2], members[1::2]))


def wait_for_exit(*servers_lost):
    """Gives a server that closed a connection a moment to end: it may be writing the report of a crash."""
    deadline = time.monotonic() + 2
    while all(server.is_running() for server in servers_lost) and time.monotonic() < deadline:
        time.sleep(0.02)


def class_of(reply):
    if redis_protocol.is_error(reply):
        return redis_protocol.error_code(reply)
    return redis_compare.type_name(reply) if not isinstance(reply, str) else reply


def reduce_command(command):
    """Commands with fewer or shorter words."""
    size = len(command) - 1
    while size:
        for start in range(1, len(command), size):
            yield command[:start] + command[start + size:]
        size //= 2
    for at, word in enumerate(command):
        if at and len(word) > 24:
            yield command[:at] + [word[:len(word) // 2]] + command[at + 1:]
            yield command[:at] + [word[len(word) // 2:]] + command[at + 1:]
        if at and len(word) > 2 and not word.isalnum():
            yield command[:at] + [b"1"] + command[at + 1:]


def reduce_raw(case):
    data = case["raw"]
    size = len(data) // 2
    while size:
        for start in range(0, len(data), size):
            yield {"raw": data[:start] + data[start + size:]}
        size //= 2
