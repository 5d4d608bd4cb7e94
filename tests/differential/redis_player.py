"""Runs a case on one server: sends the commands of all its clients, follows blocked clients, reads the state.

`Player.play` is a generator that yields after each send, so that two servers work at the same time.
"""

import select
import time

from redis_protocol import CONFIRMATIONS, Connection, ConnectionLost, Typed, is_error, pack

BLOCKING = {b"blpop", b"brpop", b"blmove", b"brpoplpush", b"blmpop", b"bzpopmin", b"bzpopmax", b"bzmpop", b"xread", b"xreadgroup"}
SCANS = {b"scan": 1, b"sscan": 2, b"hscan": 2, b"zscan": 2}
DATABASES = (0, 1, 15)
STATE_KEYS_MAX = 400
UNBLOCK_SECONDS_MAX = 30
READERS = {
    b"string": [[b"GET"]],
    b"list": [[b"LRANGE", b"0", b"-1"]],
    b"set": [[b"SMEMBERS"]],
    b"hash": [[b"HGETALL"]],
    b"zset": [[b"ZRANGE", b"0", b"-1", b"WITHSCORES"]],
    b"stream": [[b"XRANGE", b"-", b"+"], [b"XINFO", b"STREAM", b"FULL", b"COUNT", b"0"]],
}
# Settings that cases change; each case begins with these values.
SETTINGS = [b"hash-max-listpack-entries", b"512", b"hash-max-listpack-value", b"64", b"set-max-intset-entries", b"512",
            b"zset-max-listpack-entries", b"128", b"zset-max-listpack-value", b"64", b"list-max-listpack-size", b"-2",
            b"hll-sparse-max-bytes", b"3000", b"stream-node-max-entries", b"100", b"stream-node-max-bytes", b"4096",
            b"maxmemory-policy", b"noeviction", b"notify-keyspace-events", b"", b"slowlog-max-len", b"128",
            b"busy-reply-threshold", b"5000"]
CLEAN = [[b"FLUSHALL"], [b"SCRIPT", b"FLUSH"], [b"FUNCTION", b"FLUSH"]]
CLEAN_SETTINGS = [[b"CONFIG", b"SET", *SETTINGS],
                  [b"ACL", b"SETUSER", b"default", b"on", b"nopass", b"resetkeys", b"~*", b"resetchannels", b"&*", b"+@all",
                   b"clearselectors"],
                  [b"ACL", b"LOG", b"RESET"]]
SKIPPED = "skipped while blocked"
# Words that no client sends; redis_timing.py says what they do.
PAUSE, DEMOTE = b"!pause", b"!demote"
PAUSE_SECONDS = 0.003
BALLAST = [[b"SELECT", b"14"]] + [[b"SET", b"ballast:%d" % n, b"%d" % n * 400] for n in range(400)] + [[b"SELECT", b"0"], [b"SAVE"]]


class Client:
    """A connection of a case, and whether it waits in a blocking command."""

    def __init__(self, port, protocol):
        self.connection = Connection(port)
        hello, self.id = self.connection.pipeline([[b"HELLO", b"%d" % protocol], [b"CLIENT", b"ID"]])
        if is_error(hello):
            raise ConnectionLost(f"HELLO: {hello}")
        self.waiting = None  # index of the step whose reply is still to come

    def is_readable(self, seconds=0):
        return self.connection.has_buffered() or bool(select.select([self.connection.socket], [], [], seconds)[0])


class Player:
    """One server under comparison."""

    def __init__(self, port, is_quipu=False):
        self.port, self.is_quipu = port, is_quipu
        self.control = Connection(port)
        self.control.call("HELLO", "3")
        self.reads_field_expiry = False
        self.is_changed = False  # whether the last case may have changed settings or users

    def play(self, case):
        """Yields after each send; returns replies by step, pushes by client and the state."""
        clients, replies, steps = [], {}, case["steps"]
        try:
            resets, self.is_changed = case["resets"] or self.is_changed, case["resets"]
            commands = [] if case.get("continues") else CLEAN + (CLEAN_SETTINGS if resets else [])
            self.control.send(b"".join(pack(command) for command in commands))
            yield
            for command in commands:
                self.control.reply(command)
            if resets:
                self.delete_users()
            clients += [Client(self.port, protocol) for protocol in case["protocols"]]
            if case.get("parallel"):
                yield from self.play_parallel(clients, replies, steps)
                yield
                return {"lost": None, "replies": replies, "pushes": [], "state": self.read_state()}
            at = 0
            while at < len(steps):
                number, command = steps[at]
                client = clients[number]
                if client.waiting is not None and not self.resume(client, replies, steps):
                    replies[at] = SKIPPED
                    at += 1
                    continue
                if command and command[0].startswith(b"!"):
                    self.act(command[0])
                    replies[at] = Typed("+", command[0])
                    at += 1
                    continue
                end = self.segment_end(case, at, client)
                client.connection.send(b"".join(pack(command) for _, command in steps[at:end]))
                yield
                for index in range(at, end):
                    is_last = index + 1 == end
                    if is_last and self.may_block(client, steps[index][1]):
                        client.waiting = index
                        self.resume(client, replies, steps)
                    else:
                        replies[index] = self.read_reply(client, steps[index][1])
                at = end
            self.finish(clients, replies, steps)
            yield
            state = self.read_state()
        except (OSError, ConnectionLost) as error:
            return {"lost": str(error), "replies": replies, "pushes": [], "state": None}
        finally:
            for client in clients:
                client.connection.close()
        return {"lost": None, "replies": replies, "pushes": [client.connection.pushes for client in clients], "state": state}

    def play_parallel(self, clients, replies, steps):
        """Sends all commands of all clients before it reads a reply."""
        for number, client in enumerate(clients):
            client.connection.send(b"".join(pack(command) for owner, command in steps if owner == number))
        yield
        for at, (number, command) in enumerate(steps):
            replies[at] = clients[number].connection.reply(command)

    def act(self, word):
        if word == PAUSE:
            time.sleep(PAUSE_SECONDS)
        elif word == DEMOTE and self.is_quipu:
            self.control.pipeline(BALLAST)

    def delete_users(self):
        users = self.control.call("ACL", "USERS")
        if isinstance(users, list) and len(users) > 1:
            self.control.call("ACL", "DELUSER", *[user for user in users if user != b"default"])

    def segment_end(self, case, start, client):
        """Steps of one client that are sent together end at a blocking command, a scan or another client."""
        steps, number = case["steps"], case["steps"][start][0]
        end = start
        while end < len(steps) and steps[end][0] == number:
            name = steps[end][1][0].lower() if steps[end][1] else b""
            if name.startswith(b"!"):
                break
            end += 1
            if not case["pipelined"] or name in BLOCKING or name in SCANS or name in CONFIRMATIONS \
                    or name in (b"reset", b"hello", b"auth", b"client"):
                break
        return end

    def may_block(self, client, command):
        return bool(command) and command[0].lower() in BLOCKING and not client.connection.in_transaction

    def resume(self, client, replies, steps):
        """Reads the reply of a blocking command once it is there; false while the client waits."""
        deadline = time.monotonic() + UNBLOCK_SECONDS_MAX
        index = client.waiting
        while not client.is_readable():
            line = self.control.call("CLIENT", "LIST", "ID", client.id)
            line = line.payload if isinstance(line, Typed) else line
            flags = line.split(b" flags=", 1)[-1].split(b" ", 1)[0] if isinstance(line, bytes) else b""
            if b"b" in flags and not client.is_readable():
                return False
            if time.monotonic() > deadline:
                raise ConnectionLost("no reply to a command that does not wait")
            client.is_readable(0.001)
        replies[index] = self.read_reply(client, steps[index][1])
        client.waiting = None
        return True

    def read_reply(self, client, command):
        connection = client.connection
        reply = connection.reply(command)
        name = command[0].lower() if command else b""
        if name not in SCANS or not isinstance(reply, list) or len(reply) != 2 or connection.in_transaction:
            return reply
        place = SCANS[name]
        if command[place] != b"0":
            return reply
        found, cursor = list(reply[1]), reply[0]
        for _ in range(10_000):
            if cursor == b"0":
                break
            following = connection.call(*command[:place], cursor, *command[place + 1:])
            if not isinstance(following, list):
                return following
            cursor = following[0]
            found += following[1]
        return [cursor, found]

    def finish(self, clients, replies, steps):
        """Ends waits and transactions, then has each client read all that was sent to it."""
        for client in clients:
            if client.waiting is not None and not self.resume(client, replies, steps):
                self.control.call("CLIENT", "UNBLOCK", client.id)
                index = client.waiting
                replies[index] = [b"unblocked", self.read_reply(client, steps[index][1])]
                client.waiting = None
        for client in clients:
            if client.connection.in_transaction:
                client.connection.call("DISCARD")
        for client in clients:
            client.connection.call("PING")

    def read_state(self):
        """Keys of the compared databases: type, value and expiry of each."""
        control = self.control
        state = {}
        listed = control.pipeline([command for db in DATABASES for command in ([b"SELECT", b"%d" % db], [b"KEYS", b"*"])])
        for db, keys in zip(DATABASES, listed[1::2]):
            if not isinstance(keys, list):
                state[db] = {b"": keys}
                continue
            keys = sorted(keys)[:STATE_KEYS_MAX]
            state[db] = self.read_keys(db, keys) if keys else {}
        return state

    def read_keys(self, db, keys):
        control = self.control
        types = control.pipeline([[b"SELECT", b"%d" % db]] + [[b"TYPE", key] for key in keys])[1:]
        commands, owners = [], []
        for key, kind in zip(keys, types):
            for reader in [[b"PEXPIRETIME"]] + READERS.get(kind.payload if isinstance(kind, Typed) else b"", []):
                at = 2 if reader[0] == b"XINFO" else 1
                commands.append([*reader[:at], key, *reader[at:]])
                owners.append(key)
        read = control.pipeline(commands)
        values = {key: [] for key in keys}
        for key, command, reply in zip(owners, commands, read):
            values[key].append((command, reply))
        if self.reads_field_expiry:
            self.read_field_expiry(values)
        return {key: (kind, values[key]) for key, kind in zip(keys, types)}


    def read_field_expiry(self, values):
        """Adds when the fields of hashes expire."""
        hashes = [(key, sorted(reply.payload[::2])) for key, read in values.items() for (name, *_), reply in read
                  if name == b"HGETALL" and isinstance(reply, Typed) and isinstance(reply.payload, list) and reply.payload]
        commands = [[b"HPEXPIRETIME", key, b"FIELDS", b"%d" % len(fields), *fields] for key, fields in hashes]
        for (key, _), command, reply in zip(hashes, commands, self.control.pipeline(commands)):
            values[key].append((command, reply))


def play_both(players, case):
    """Plays a case on all players at the same time; returns their results."""
    running = [player.play(case) for player in players]
    results = [None] * len(players)
    left = set(range(len(players)))
    while left:
        for index in sorted(left):
            try:
                next(running[index])
            except StopIteration as stop:
                results[index] = stop.value
                left.discard(index)
    return results
