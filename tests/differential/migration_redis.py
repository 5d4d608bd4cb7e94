"""Speaks RESP with servers of Redis, and reads totals of their databases."""

import socket

DATABASES = 16
# Redis sends these to replicas with a snapshot alone: what comes after it leaves them as they are, or takes the replica's clock.
UNREPLICATED = (b"seen-time", b"entries-read", b"lag")


class Client:
    """A connection that sends lists of words and reads replies; errors are returned as exceptions."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def call(self, *words):
        self.send(words)
        return self.read()

    def send(self, words):
        data = [word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape") for word in words]
        pieces = [f"*{len(data)}\r\n".encode()]
        for word in data:
            pieces += [f"${len(word)}\r\n".encode(), word, b"\r\n"]
        self.socket.sendall(b"".join(pieces))

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RedisError(rest.decode("utf-8", "replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if kind == b"*":
            count = int(rest)
            return None if count < 0 else [self.read() for _ in range(count)]
        raise ValueError(f"no reply of RESP2: {line!r}")

    def call_all(self, commands):
        """Sends commands and drops the replies: commands may fail."""
        for command in commands:
            self.send(command)
        return [self.read() for _ in commands]


class RedisError(Exception):
    pass


def read_totals(client):
    """Of each database: number of keys, and of each key its type, its expiry and the number of its elements."""
    totals = {}
    for database in range(DATABASES):
        client.call("SELECT", database)
        size = client.call("DBSIZE")
        if not size:
            continue
        keys = {}
        cursor = b"0"
        found = set()
        while True:
            cursor, some = client.call("SCAN", cursor, "COUNT", 1000)
            found.update(some)
            if cursor == b"0":
                break
        for key in found:
            kind = client.call("TYPE", key)
            keys[repr(key)] = [kind, client.call("PEXPIRETIME", key), client.call(*count_of(kind, key))]
        totals[database] = {"size": size, "keys": dict(sorted(keys.items()))}
    client.call("SELECT", 0)
    return totals


def count_of(kind, key):
    command = {"string": "STRLEN", "list": "LLEN", "hash": "HLEN", "set": "SCARD", "zset": "ZCARD", "stream": "XLEN"}.get(kind, "EXISTS")
    return command, key


def read_groups(client, is_replicated=False):
    """Consumer groups of the streams of each database."""
    found = {}
    for database in range(DATABASES):
        client.call("SELECT", database)
        for key in sorted(client.call("KEYS", "*")) if client.call("DBSIZE") else []:
            if client.call("TYPE", key) == "stream":
                groups = client.call("XINFO", "STREAM", key, "FULL", "COUNT", 0)
                found[f"{database} {key!r}"] = repr(leave_out(groups, UNREPLICATED) if is_replicated else groups)
    client.call("SELECT", 0)
    return found


def leave_out(reply, names):
    """A reply without some names and the values behind them."""
    if not isinstance(reply, list):
        return reply
    kept, items = [], iter(reply)
    for item in items:
        if isinstance(item, bytes) and item in names:
            next(items, None)
        else:
            kept.append(leave_out(item, names))
    return kept


def read_values(client):
    """Digest of each key by Redis' own `DEBUG DIGEST-VALUE`."""
    found = {}
    for database in range(DATABASES):
        client.call("SELECT", database)
        for key in sorted(client.call("KEYS", "*")) if client.call("DBSIZE") else []:
            found[f"{database} {key!r}"] = client.call("DEBUG", "DIGEST-VALUE", key)[0]
    client.call("SELECT", 0)
    return found
