"""Client of the Redis protocol that keeps the exact type of each reply, for RESP2 and RESP3.

A reply is an `int`, `bytes` (bulk string), a `list` (array) or a `Typed` value for every other type:

    +  simple string      -  error          $-1 *-1 _  null       ,  double (its text)
    #  boolean (0 or 1)   (  big number     =  verbatim string    %  map (flat list)
    ~  set                >  push           |  attribute, which is dropped
"""

import re
import socket
import time

ANSWER_SECONDS_MAX = 30
MONITORED = re.compile(rb"\d+\.\d+ \[\d+ ")
CONFIRMATIONS = {b"subscribe", b"psubscribe", b"ssubscribe", b"unsubscribe", b"punsubscribe", b"sunsubscribe"}
MESSAGES = {b"message", b"pmessage", b"smessage"}


class ConnectionLost(Exception):
    """The server closed the connection or did not answer in time."""


class Typed(tuple):
    """A reply whose type is not an integer, a bulk string or an array: `(kind, payload)`."""

    __slots__ = ()

    def __new__(cls, kind, payload):
        return tuple.__new__(cls, (kind, payload))

    @property
    def kind(self):
        return self[0]

    @property
    def payload(self):
        return self[1]


def is_error(reply):
    return isinstance(reply, Typed) and reply.kind == "-"


def error_code(reply):
    return reply.payload.split(b" ", 1)[0]


def pack(words):
    """Encodes a command as an array of bulk strings."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Connection:
    """One connection; `subscriptions` and `in_transaction` follow the replies that it reads."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.at = b"", 0
        self.pushes = []
        self.subscriptions = {b"subscribe": set(), b"psubscribe": set(), b"ssubscribe": set()}
        self.in_transaction = self.is_monitor = False

    def close(self):
        self.socket.close()

    def has_buffered(self):
        return self.at < len(self.buffer)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise ConnectionLost(f"connection lost: {error}") from None

    def call(self, *words):
        """Sends a command and returns its reply."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.send(pack(words))
        return self.reply(words)

    def pipeline(self, commands):
        self.send(b"".join(pack(words) for words in commands))
        return [self.reply(words) for words in commands]

    def reply(self, words):
        """Reads the reply to a command. Pushed messages before it go to `pushes`.

        A command that subscribes has one confirmation for each channel: they are returned as a list."""
        name = words[0].lower() if words else b""
        if name in CONFIRMATIONS and not self.in_transaction:
            return self.confirmations(name, len(words) - 1)
        while True:
            value = self.read()
            if not self.is_pushed(value):
                break
            self.pushes.append(value)
        self.follow(name, value)
        return value

    def is_pushed(self, value):
        if self.is_monitor and isinstance(value, Typed) and value.kind == "+" and MONITORED.match(value.payload):
            return True
        if isinstance(value, Typed):
            return value.kind == ">"
        is_subscriber = any(self.subscriptions.values())
        return is_subscriber and isinstance(value, list) and bool(value) and isinstance(value[0], bytes) and value[0] in MESSAGES

    def confirmations(self, name, count):
        if count == 0:
            count = max(1, len(self.subscriptions.get(name.replace(b"un", b"", 1), ())))
        found = []
        while len(found) < count:
            value = self.read()
            if is_error(value):
                return value
            items = value.payload if isinstance(value, Typed) and value.kind == ">" else value
            if isinstance(items, list) and items and items[0] in CONFIRMATIONS:
                self.note_confirmation(items)
                found.append(value)
            elif self.is_pushed(value):
                self.pushes.append(value)
            else:
                return value
        return found

    def note_confirmation(self, items):
        kind, channel = items[0], items[1]
        if b"un" in kind:
            self.subscriptions[kind.replace(b"un", b"", 1)].discard(channel)
        elif channel is not None:
            self.subscriptions[kind].add(channel)

    def follow(self, name, value):
        """Notes what a reply says about the connection's state."""
        if value == Typed("+", b"QUEUED"):
            return
        if name == b"monitor" and not is_error(value):
            self.is_monitor = True
        if name == b"multi" and not is_error(value):
            self.in_transaction = True
        elif name in (b"exec", b"discard"):
            # An EXEC with arguments is refused and leaves the transaction open.
            if not is_error(value) or error_code(value) == b"EXECABORT":
                self.in_transaction = False
            if isinstance(value, list):
                for item in value:
                    items = item.payload if isinstance(item, Typed) else item
                    if isinstance(items, list) and items and isinstance(items[0], bytes) \
                            and items[0] in CONFIRMATIONS:
                        self.note_confirmation(items)
        elif name == b"reset" and not is_error(value):
            self.in_transaction = self.is_monitor = False
            for channels in self.subscriptions.values():
                channels.clear()

    def receive(self):
        try:
            data = self.socket.recv(262_144)
        except OSError as error:
            raise ConnectionLost(f"no reply: {error}") from None
        if not data:
            raise ConnectionLost(f"connection closed by the server after {self.buffer[self.at:]!r}")
        self.buffer, self.at = self.buffer[self.at:] + data, 0

    def read_line(self):
        while True:
            end = self.buffer.find(b"\r\n", self.at)
            if end >= 0:
                line = self.buffer[self.at:end]
                self.at = end + 2
                return line
            self.receive()

    def read_bytes(self, count):
        missing = count + 2 - (len(self.buffer) - self.at)
        if missing > 0:
            parts = [self.buffer[self.at:]]
            while missing > 0:
                self.buffer, self.at = b"", 0
                self.receive()
                parts.append(self.buffer)
                missing -= len(self.buffer)
            self.buffer, self.at = b"".join(parts), 0
        data = self.buffer[self.at:self.at + count]
        self.at += count + 2
        return data

    def read(self):
        """Reads one reply of any type."""
        line = self.read_line()
        kind, rest = line[:1], line[1:]
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return self.read_bytes(int(rest)) if rest != b"-1" else Typed("$-1", None)
        if kind == b"*":
            return [self.read() for _ in range(int(rest))] if rest != b"-1" else Typed("*-1", None)
        if kind in b"+-,(" and kind:
            return Typed(kind.decode(), rest)
        if kind == b"_":
            return Typed("_", None)
        if kind == b"#":
            return Typed("#", rest)
        if kind == b"=":
            return Typed("=", self.read_bytes(int(rest)))
        if kind in b"~>" and kind:
            return Typed(kind.decode(), [self.read() for _ in range(int(rest))])
        if kind == b"%":
            return Typed("%", [self.read() for _ in range(2 * int(rest))])
        if kind == b"|":
            for _ in range(2 * int(rest)):
                self.read()
            return self.read()
        raise ConnectionLost(f"malformed reply {line!r}")


def exchange_raw(port, data, seconds_max=ANSWER_SECONDS_MAX):
    """Sends bytes as they are, ends the sending direction and returns all that the server sends."""
    with socket.create_connection(("127.0.0.1", port), seconds_max) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server may close at the first malformed byte
        received = []
        deadline = time.monotonic() + seconds_max
        while time.monotonic() < deadline:
            try:
                part = connection.recv(65_536)
            except OSError as error:
                if isinstance(error, ConnectionResetError):
                    break
                raise ConnectionLost(f"no reply: {error}") from None
            if not part:
                break
            received.append(part)
        return b"".join(received)


def quote(word):
    """A word as `redis-cli` shows and takes it."""
    if word and all(33 <= byte < 127 and byte not in b"\"'\\" for byte in word):
        return word.decode()
    shown = []
    for byte in word:
        if byte in b"\"\\":
            shown.append("\\" + chr(byte))
        elif byte in b"\n\r\t":
            shown.append({10: "\\n", 13: "\\r", 9: "\\t"}[byte])
        elif 32 <= byte < 127:
            shown.append(chr(byte))
        else:
            shown.append(f"\\x{byte:02x}")
    return '"' + "".join(shown) + '"'


def show(value):
    """A reply as text, with its types; text stays as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"(integer) {value}"
    if isinstance(value, bytes):
        return quote(value) if value else '""'
    if isinstance(value, list):
        return "[" + ", ".join(show(item) for item in value) + "]"
    kind, payload = value
    if kind == "-":
        return f"(error) {payload.decode('utf-8', 'backslashreplace')}"
    if kind in ("$-1", "*-1", "_"):
        return {"$-1": "(nil bulk)", "*-1": "(nil array)", "_": "(null)"}[kind]
    names = {"+": "status", ",": "double", "#": "boolean", "(": "big number", "=": "verbatim", "%": "map", "~": "set",
             ">": "push"}
    inner = show(payload) if isinstance(payload, list) else quote(payload)
    return f"({names[kind]}) {inner}"
