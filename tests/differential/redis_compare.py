"""Compares two replies to one command, but for what may differ: order where there is none, random picks, times.

`compare_replies` returns None or the kind of the difference: `type`, `code` (first word of an error), `value`,
or `text` where two errors have the same code and different words.
"""

import re
import time

from redis_protocol import Typed, error_code, is_error

TIME_SLACK_MS = 60_000
POINTER = re.compile(rb"(table|function|userdata|thread)(: (?:builtin: )?)0x[0-9a-f]+")
MONITOR_PREFIX = re.compile(rb"^\d+\.\d+ \[(\d+) (lua)?[^\]]*\]")
FLOAT = re.compile(rb"^-?\d{1,310}(\.\d+)?(e[+-]?\d{1,3})?$")
SHOWN_SCAN = re.compile(rb'(?i)\] "[SHZ]?SCAN"')
TIME_ID = re.compile(rb"^\d{13}-\d+$")
PAIRED = {b"hgetall", b"config"}
UNORDERED = {b"smembers", b"sunion", b"sinter", b"sdiff", b"keys", b"hkeys", b"hvals", b"spop", b"pubsub", b"acl"}
SCANS = {b"scan": 1, b"sscan": 1, b"hscan": 2, b"zscan": 2}
RANDOM = {b"srandmember", b"hrandfield", b"zrandmember", b"randomkey"}
PLACES = {b"geosearch", b"georadius", b"georadiusbymember", b"georadius_ro", b"georadiusbymember_ro"}
UNSUBSCRIBE = {b"unsubscribe", b"punsubscribe", b"sunsubscribe"}
REMAINING = {b"ttl": 1, b"expiretime": 1, b"pttl": 1_000, b"pexpiretime": 1_000,
             b"httl": 1, b"hexpiretime": 1, b"hpttl": 1_000, b"hpexpiretime": 1_000}
# Commands of which only the shape of the reply is compared.
SHAPED = {b"time", b"lolwut", b"info", b"lastsave", b"memory", b"slowlog", b"latency", b"dump", b"debug"}
SHAPED_SUBCOMMANDS = {(b"function", b"stats"), (b"function", b"dump"), (b"client", b"id"), (b"acl", b"genpass"), (b"acl", b"log"),
                      (b"client", b"help"), (b"cluster", b"myid"), (b"command", b"docs"), (b"command", b"count"), (b"object", b"idletime"),
                      (b"cluster", b"nodes"), (b"cluster", b"slots"), (b"cluster", b"info")}
CLIENT_FIELDS = {b"name", b"db", b"sub", b"psub", b"ssub", b"multi", b"user", b"redir", b"resp", b"flags"}
INNER_FIELDS = {b"radix-tree-keys", b"radix-tree-nodes", b"idle", b"seen-time"}
NEWER_FIELDS = {b"inactive", b"active-time"}  # since Redis 7.2


def sort_key(value):
    return repr(value)


def chunks(items, size):
    return [items[at:at + size] for at in range(0, len(items), size)]


def sort_items(value, size=1):
    """An array or set in an order of its own; `size` elements stay together."""
    if isinstance(value, Typed) and isinstance(value.payload, list):
        pairs = 2 if value.kind == "%" else size
        return Typed(value.kind, [item for chunk in sorted(chunks(value.payload, pairs), key=sort_key) for item in chunk])
    if isinstance(value, list):
        return [item for chunk in sorted(chunks(value, size), key=sort_key) for item in chunk]
    return value


def transform(value, change):
    """Applies `change` to each value from the leaves up."""
    if isinstance(value, list):
        return change([transform(item, change) for item in value])
    if isinstance(value, Typed) and isinstance(value.payload, list):
        return change(Typed(value.kind, [transform(item, change) for item in value.payload]))
    return change(value)


def hide_moments(value):
    """Hides what depends on the moment or the process: ids made of the time, addresses of Lua values."""
    if isinstance(value, bytes):
        if TIME_ID.match(value) and abs(int(value.split(b"-")[0]) - time.time() * 1_000) < 3_600_000:
            return b"<now>"
        return POINTER.sub(rb"\1\g<2>0x", value)
    if isinstance(value, Typed) and isinstance(value.payload, bytes):
        return Typed(value.kind, POINTER.sub(rb"\1\g<2>0x", value.payload))
    if isinstance(value, Typed) and value.kind in ("%", "~"):
        return sort_items(value)
    if isinstance(value, list) and value and isinstance(value[0], Typed) and b"Subcommands are:" in (value[0].payload or b""):
        return value[:1]  # the words of HELP
    return value


def shorten_floats(value):
    """Floats in one form: Redis 7.0 writes 17 digits, later versions and Quipu the fewest that read back."""
    text = value.payload if isinstance(value, Typed) and value.kind == "," else value
    if not (isinstance(text, bytes) and FLOAT.match(text)):
        return value
    number = float(text)
    is_whole = b"." not in text and b"e" not in text
    if is_whole and (len(text) < 16 or int(text) != number):
        return value
    return Typed(",", repr(number).encode()) if isinstance(value, Typed) else repr(number).encode()


def sort_deeply(value):
    return transform(value, lambda one: sort_items(one) if isinstance(one, (list, Typed)) else one)


def shape(value):
    """The types of a reply and the number of its elements."""
    if isinstance(value, int):
        return 0
    if isinstance(value, bytes):
        return b""
    if isinstance(value, Typed) and value.kind in ",(=+":
        return Typed(value.kind, b"")
    return value


def shape_of_text(value):
    """The type of a reply alone."""
    if isinstance(value, list):
        return []
    if isinstance(value, Typed) and value.kind not in ("-",):
        return Typed(value.kind, None)
    return shape(value)


def hide_idle_times(value):
    """Hides how long ago something was and how a stream is kept inside."""
    if isinstance(value, int) and value > 1_000_000_000_000 and abs(value - time.time() * 1_000) < 3_600_000:
        return 0
    is_map = isinstance(value, Typed) and value.kind == "%"
    if not (is_map or isinstance(value, list)):
        return value
    items = value.payload if is_map else value
    shown, skip = [], False
    for at, item in enumerate(items):
        if skip:
            skip = False
        elif isinstance(item, bytes) and item in NEWER_FIELDS:
            skip = True
        elif at and isinstance(items[at - 1], bytes) and items[at - 1] in INNER_FIELDS:
            shown.append(0)
        else:
            shown.append(item)
    if len(shown) == 4 and isinstance(shown[2], int) and isinstance(shown[3], int) and isinstance(shown[0], bytes):
        shown[2] = 0 if shown[2] < 10_000_000 else 1  # an entry of XPENDING
    return Typed("%", shown) if is_map else shown


def client_fields(text):
    fields = [pair.split(b"=", 1) for pair in text.split() if b"=" in pair]
    return b" ".join(sorted(name + b"=" + value for name, value in fields if name in CLIENT_FIELDS))


def has(command, word):
    return any(one.upper() == word for one in command[1:])


def normalize(command, value):
    """A reply without what may rightly differ between two servers."""
    name = command[0].lower() if command else b""
    sub = command[1].lower() if len(command) > 1 else b""
    value = transform(transform(value, hide_moments), shorten_floats)
    if is_error(value):
        return value
    if name in SHAPED or (name, sub) in SHAPED_SUBCOMMANDS or sub == b"help":
        return shape_of_text(value)
    if name in RANDOM:
        return transform(value, shape)
    if name in UNSUBSCRIBE and len(command) == 1:
        return [sort_deeply(value)] if not isinstance(value, list) else [normalize_confirmations(value)]
    if name in UNORDERED:
        return sort_deeply(value) if name == b"acl" else sort_items(value)
    if name in PAIRED:
        return sort_items(value, 2)
    if name in SCANS:
        return normalize_scan(command, value, SCANS[name])
    if name in (b"sort", b"sort_ro") and has(command, b"BY"):
        return sort_items(value)
    if name in PLACES and has(command, b"ANY"):
        return transform(value, shape)
    if name in PLACES and not (has(command, b"ASC") or has(command, b"DESC")):
        return sort_items(value)
    if name in (b"xpending", b"xinfo", b"xautoclaim"):
        return transform(value, hide_idle_times)
    if name in (b"function", b"command"):
        return sort_deeply(value)
    if name == b"client" and sub in (b"info", b"list"):
        text = value if isinstance(value, bytes) else value.payload if isinstance(value, Typed) else b""
        return sorted(client_fields(line) for line in (text or b"").splitlines())
    if name == b"hello":
        return normalize_hello(value)
    if name in (b"eval", b"eval_ro", b"evalsha", b"evalsha_ro", b"fcall", b"fcall_ro"):
        return normalize_script(command, value)
    return value


def normalize_confirmations(value):
    """Channels in an order of their own, and the counts."""
    items = [one.payload if isinstance(one, Typed) else one for one in value]
    return sorted(repr(one[:2]) for one in items), [one[2:] for one in items]


def normalize_scan(command, value, size):
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[1], list)):
        return value
    if value[0] != b"0":
        return [b"", []]
    cursor = command[1] if size == 1 and command[0].lower() == b"scan" else command[2]
    if cursor != b"0":
        return [b"", []]
    unique = sorted({repr(chunk): chunk for chunk in chunks(value[1], size)}.items())
    return [b"0", [chunk for _, chunk in unique]]


def normalize_hello(value):
    items = value.payload if isinstance(value, Typed) else value
    if not isinstance(items, list):
        return value
    return [b"" if at % 2 and items[at - 1] in (b"version", b"id", b"server") else shape_modules(item)
            for at, item in enumerate(items)]


def shape_modules(item):
    return [] if isinstance(item, list) else item


def normalize_script(command, value):
    text = command[1] if len(command) > 1 else b""
    if b"call(unpack(ARGV))" in text:
        inner = command[3:]
        if inner and inner[0].lower() in SCANS:
            return shape_of_text(value)  # the following calls of a scan are not made
        if inner and inner[0].lower() not in (b"eval", b"fcall"):
            is_wrapped = b"return {" in text and isinstance(value, list) and len(value) == 1
            return [normalize(inner, value[0])] if is_wrapped else normalize(inner, value)
    return sort_deeply(value)


def is_same_moment(name, one, other):
    """Whether two remaining times or moments of expiry are alike."""
    unit = REMAINING[name]
    slack = TIME_SLACK_MS // 1_000 * unit
    return isinstance(one, int) and isinstance(other, int) and one > 0 and other > 0 and abs(one - other) <= slack


def are_same_moments(name, one, other):
    """The same of replies about a key or about fields."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(first == second or is_same_moment(name, first, second) for first, second in zip(one, other))
    return is_same_moment(name, one, other)


def invalidated_keys(push):
    keys = push.payload[1] if push.payload[:1] == [b"invalidate"] else push.payload
    return keys if isinstance(keys, list) else [keys]


def has_error(reply):
    items = reply.payload if isinstance(reply, Typed) else reply
    return is_error(reply) or isinstance(items, list) and any(has_error(item) for item in items)


def without_misses(pushes):
    """Pushed messages but events of keys that a command missed."""
    def is_miss(push):
        items = push.payload if isinstance(push, Typed) else push
        return isinstance(items, list) and any(isinstance(item, bytes) and item.endswith(b"keymiss") for item in items)

    return [push for push in pushes if not is_miss(push)]


def order_messages(pushes):
    """Pushed messages; those of one PUBLISH to several patterns have no order, nor have invalidated keys."""
    if any(isinstance(push, Typed) and push.kind == ">" and push.payload[:1] == [b"invalidate"] for push in pushes):
        return sorted({repr(key) for push in pushes for key in invalidated_keys(push)})
    # A player goes on with a scan until it ends, which needs as many calls as a server likes.
    pushes = [push for push in pushes if not (isinstance(push, Typed) and push.kind == "+" and SHOWN_SCAN.search(push.payload))]
    pushes = [Typed("+", MONITOR_PREFIX.sub(rb"[\1 \2]", push.payload)) if isinstance(push, Typed) and push.kind == "+" else push
              for push in pushes]

    def published(push):
        items = push.payload if isinstance(push, Typed) else push
        return items[-2:] if items and items[0] in (b"message", b"pmessage") else None

    ordered, at = [], 0
    while at < len(pushes):
        end = at + 1
        while end < len(pushes) and published(pushes[at]) and published(pushes[end]) == published(pushes[at]):
            end += 1
        ordered += sorted(pushes[at:end], key=sort_key)
        at = end
    return ordered


def type_name(value):
    if isinstance(value, Typed):
        return value.kind
    return {int: ":", bytes: "$", list: "*"}[type(value)]


def compare_replies(command, quipu, peer, queued=()):
    """Compares replies; `queued` are the commands of the transaction that EXEC answers."""
    if quipu == peer:
        return None
    if is_error(quipu) and is_error(peer):
        if error_code(quipu) != error_code(peer):
            return "code"
        return "text" if hide_moments(quipu) != hide_moments(peer) else None
    name = command[0].lower() if command else b""
    if name == b"exec" and isinstance(quipu, list) and isinstance(peer, list):
        if len(quipu) != len(peer) or len(quipu) != len(queued):
            return "value"
        kinds = [compare_replies(one, *pair) for one, *pair in zip(queued, quipu, peer)]
        return next((kind for kind in kinds if kind and kind != "text"), next((kind for kind in kinds if kind), None))
    if name in REMAINING and are_same_moments(name, quipu, peer):
        return None
    if type_name(quipu) != type_name(peer):
        return "type"
    return "value" if normalize(command, quipu) != normalize(command, peer) else None
