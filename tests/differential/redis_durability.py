"""Kills Quipu within sequences of commands, and compares replicas: the keys equal those of Redis afterwards.

    kill      acknowledged commands, kill -9, restart: all are there (--kv-durability=always)
    in flight kill -9 while a pipeline is executed: a prefix is there that holds all acknowledged commands
    replicas  Quipu ─► Quipu, Quipu ─► Redis, Redis ─► Quipu: each replica equals its primary

Nothing waits for a time to pass: a server is ready when it answers, a replica when `WAIT` says that it is.
"""

import time

import redis_commands
import redis_player
import servers
from campaign import Difference
from redis_generator import Generator, is_excluded, settle
from redis_player import BLOCKING
from redis_protocol import Connection, ConnectionLost
from redis_words import Words, spoil

FAMILIES = {"string": 12, "bitmap": 6, "list": 12, "set": 10, "hash": 10, "sorted set": 14, "geo": 4, "hyperloglog": 4, "stream": 16,
            "generic": 12, "hash expiry": 8, "hash getting": 6}
KINDS = {"kill": 3, "in flight": 3, "replicas": 6}
DISTURBANCES = ["", "", "", "cut", "restart replica", "restart primary", "kill during transfer", "promote"]
SEGMENT_STEPS_MAX = 40
CONVERGENCE_SECONDS_MAX = 60
WAIT_MS = 2_000
MARKER_DATABASE = 9


class WriteGenerator(Generator):
    """Draws commands that change keys, in transactions and scripts now and then."""

    def draw(self, chance):
        kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
        words = Words(chance)
        segments = []
        for _ in range(chance.randint(1, 3) if kind == "kill" else chance.randint(1, 2) if kind == "replicas" else 1):
            segments.append(self.draw_segment(chance, words))
        disturbance = chance.choice(DISTURBANCES) if kind == "replicas" else ""
        return {"kind": kind, "segments": segments, "disturbance": disturbance, "read": chance.randrange(1, SEGMENT_STEPS_MAX)}

    def draw_segment(self, chance, words):
        steps, count = [], chance.randint(3, SEGMENT_STEPS_MAX)
        names = [name for name in FAMILIES if name in self.families]
        while len(steps) < count:
            name = chance.choices(names, [FAMILIES[name] for name in names])[0]
            commands = chance.choice(self.families[name]).draw(words)
            for command in commands:
                if chance.random() < 0.1:
                    spoil(chance, words, command)
            commands = [settle(command) for command in commands if command and not is_excluded(command)]
            wrapped = chance.random()
            if wrapped < 0.08:
                commands = [[b"MULTI"], *commands, *self.draw_segment_part(chance, words), [b"EXEC"]]
            elif wrapped < 0.14 and len(commands) == 1:
                commands = [[b"EVAL", b"redis.pcall(unpack(ARGV)) return redis.pcall(unpack(ARGV))", b"0", *commands[0]]]
            steps += commands
        return [step for step in steps if step[0].lower() not in (b"wait", b"swapdb") and not is_waiting(step)]

    def draw_segment_part(self, chance, words):
        return [settle(command) for command in chance.choice(self.families["list"]).draw(words) if not is_excluded(command)]


def is_waiting(command):
    return command[0].lower() in BLOCKING and any(word.upper() == b"BLOCK" for word in command)


class Campaign(redis_commands.Campaign):
    page = "redis.md"
    default_count = 12

    def __init__(self, options):
        super().__init__(options)
        self.generator = WriteGenerator()
        self.replicas = []
        self.kills = 0

    def start_peer(self):
        self.peer = servers.start_redis(self.options.directory / "peer", self.options.peer, "--repl-diskless-sync-delay", "0",
                                        "--crash-log-enabled", "no", "--crash-memcheck-enabled", "no")

    def start_quipu(self, ports=None):
        flags = [redis_commands.SMALL_MEMORY] if self.options.seed % 2 else []
        self.quipu = servers.start_quipu(self.options.binary, self.options.directory / "quipu", "--kv-durability=always",
                                         "--redis.enable-debug-command=local", *flags, ports=ports, listeners=redis_commands.LISTENERS)
        self.start_players()

    def stop(self):
        for _, server, _ in self.replicas:
            server.stop()
        super().stop()

    def start_replicas(self):
        """Starts replicas of both servers: name, server, index of the primary among the players."""
        if self.replicas:
            return
        directory = self.options.directory
        of_quipu = self.start_replica(directory / "replica-of-quipu")
        of_redis = self.start_replica(directory / "replica-of-redis")
        redis_of_quipu = servers.start_redis(directory / "redis-of-quipu", self.options.peer)
        self.replicas = [("Quipu, replica of Quipu", of_quipu, 0), ("Redis, replica of Quipu", redis_of_quipu, 0),
                         ("Quipu, replica of Redis", of_redis, 1)]
        for _, replica, primary in self.replicas:
            self.follow(replica, primary)

    def start_replica(self, directory, ports=None):
        return servers.start_quipu(self.options.binary, directory, ports=ports, listeners=redis_commands.LISTENERS)

    def follow(self, replica, primary):
        connection = Connection(replica.redis)
        connection.call("REPLICAOF", "127.0.0.1", (self.quipu, self.peer)[primary].redis)
        connection.close()

    def text(self, case):
        lines = [case["kind"] + (f", {case['disturbance']}" if case["disturbance"] else "")]
        for segment in case["segments"]:
            lines += [self.line({"steps": [(0, command)], "protocols": [2]}, 0) for command in segment]
            lines.append("--")
        return "\n".join(lines)

    def compare(self, case):
        compare = {"kill": self.compare_kill, "in flight": self.compare_in_flight, "replicas": self.compare_replicas}
        self.commands += sum(len(segment) for segment in case["segments"])
        try:
            return compare[case["kind"]](case)
        except ConnectionLost as error:
            redis_commands.wait_for_exit(self.quipu, self.peer)
            if self.restart_peer(case):
                return None
            return self.find_crash() or Difference(f"lost {error}", "no connection lost", ("lost",))

    def play(self, segment, continues):
        """Runs a segment on both servers; returns a difference of the keys or None."""
        case = {"protocols": [2], "pipelined": True, "resets": False, "continues": continues,
                "steps": [(0, command) for command in segment]}
        results = redis_player.play_both(self.players, case)
        for result in results:
            if result["lost"]:
                raise ConnectionLost(result["lost"])
        return self.first_state_difference(results[0]["state"], results[1]["state"], "before the kill")

    def first_state_difference(self, ours, theirs, moment):
        for difference, _ in self.state_differences(ours, theirs):
            return Difference(f"{moment}: {difference.quipu}", f"{moment}: {difference.peer}", (moment, *difference.kind))
        return None

    def restart_quipu(self):
        self.kills += 1
        self.memory_max = max(self.memory_max, self.quipu.memory())
        self.quipu.kill()
        self.start_quipu(self.quipu.ports)

    def compare_kill(self, case):
        continues = False
        for segment in case["segments"]:
            if difference := self.play(segment, continues):
                # Replies and keys without kills are the business of redis_commands.
                return None if difference.kind[0] == "before the kill" else difference
            continues = True
            self.restart_quipu()
            self.players[1].control.call("SCRIPT", "FLUSH")
            states = [player.read_state() for player in self.players]
            if difference := self.first_state_difference(*states, "after kill -9"):
                return difference
        return None

    def compare_in_flight(self, case):
        """Kills Quipu when some replies have been read; finds the prefix of commands that it kept."""
        segment = case["segments"][0]
        for player in self.players:
            player.control.pipeline(redis_player.CLEAN)
        flying = Connection(self.quipu.redis)
        acknowledged = 0
        try:
            flying.send(b"".join(redis_player.pack(command) for command in segment))
            for command in segment[:case["read"]]:
                flying.reply(command)
                acknowledged += 1
            self.quipu.child.kill()
            for command in segment[case["read"]:]:
                flying.reply(command)
                acknowledged += 1
        except ConnectionLost:
            pass
        flying.close()
        self.restart_quipu()
        ours = self.players[0].read_state()
        model = Connection(self.peer.redis)
        first = None
        for at, command in enumerate([*segment, None]):
            if at >= acknowledged:
                difference = self.first_state_difference(ours, self.players[1].read_state(), "in flight")
                if difference is None:
                    return None
                first = first or difference
            if command is not None:
                model.call(*command)
        model.close()
        return first

    def compare_replicas(self, case):
        self.start_replicas()
        continues = False
        for segment in case["segments"]:
            self.play(segment, continues)
            if not continues:
                self.disturb(case["disturbance"])
            continues = True
        return self.compare_with_primaries()

    def disturb(self, disturbance):
        if disturbance == "cut":
            for player in self.players:
                player.control.call("CLIENT", "KILL", "TYPE", "replica")
        elif disturbance == "restart replica":
            self.restart_replica()
        elif disturbance == "restart primary":
            self.restart_quipu()
        elif disturbance == "kill during transfer":
            # The replica asks for all keys as soon as its link is gone.
            self.players[0].control.call("DEBUG", "CHANGE-REPL-ID")
            self.players[0].control.call("CLIENT", "KILL", "TYPE", "replica")
            self.restart_replica()
        elif disturbance == "promote":
            # A key of its own must be gone once it follows again.
            _, replica, primary = self.replicas[0]
            connection = Connection(replica.redis)
            connection.pipeline([[b"REPLICAOF", b"NO", b"ONE"], [b"SET", b"own", b"1"]])
            connection.close()
            self.follow(replica, primary)

    def restart_replica(self):
        name, server, primary = self.replicas[0]
        server.kill()
        server = self.start_replica(self.options.directory / "replica-of-quipu", server.ports)
        self.replicas[0] = (name, server, primary)

    def compare_with_primaries(self):
        marker = b"%d" % time.monotonic_ns()
        states = []
        for index, player in enumerate(self.players):
            player.control.pipeline([[b"SELECT", b"%d" % MARKER_DATABASE], [b"SET", b"marker", marker]])
            names = [name for name, _, primary in self.replicas if primary == index]
            if difference := self.await_replicas(player, len(names)):
                return difference
            states.append(player.read_state())
        for name, server, primary in self.replicas:
            reader = redis_player.Player(server.redis)
            reader.reads_field_expiry = self.generator.has_field_expiry
            try:
                if reader.control.pipeline([[b"SELECT", b"%d" % MARKER_DATABASE], [b"GET", b"marker"]])[1] != marker:
                    info = reader.control.call("INFO", "replication")
                    return Difference(f"{name} acknowledges what it does not have: {info}", "it has it", ("no marker", name))
                if difference := self.first_state_difference(reader.read_state(), states[primary], name):
                    return difference
            finally:
                reader.control.close()
        return None

    def await_replicas(self, player, count):
        """Waits until the replicas of a primary acknowledge all that it has executed."""
        deadline = time.monotonic() + CONVERGENCE_SECONDS_MAX
        while player.control.call("WAIT", count, WAIT_MS) != count:
            for name, server, _ in self.replicas:
                if not server.is_running() or server.panics():
                    return Difference(f"{name} ended: {server.log_tail()[-500:]}", "it runs", ("replica ended", name))
            if time.monotonic() > deadline:
                return Difference(f"no convergence: {player.control.call('INFO', 'replication')}", "replicas follow", ("no convergence",))
        return None

    def reductions(self, case):
        for at, segment in enumerate(case["segments"]):
            if len(case["segments"]) > 1:
                yield {**case, "segments": case["segments"][:at] + case["segments"][at + 1:]}
            size = len(segment) // 2
            while size:
                for start in range(0, len(segment), size):
                    shorter = segment[:start] + segment[start + size:]
                    yield {**case, "segments": [*case["segments"][:at], shorter, *case["segments"][at + 1:]]}
                size //= 2
        if case["disturbance"]:
            yield {**case, "disturbance": ""}

    def summary(self):
        memory = max([self.memory_max, self.quipu.memory(), *[server.memory() for _, server, _ in self.replicas]])
        return [f"{self.commands} commands beside {self.peer_version}, {self.kills} kills of Quipu; its memory: {memory >> 20} MiB at most",
                *self.stored()]
