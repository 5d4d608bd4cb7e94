"""Words of Redis commands: a small grammar language, placeholders, and ways to spoil a command.

    SET <s> <v> {[NX|XX] [GET] [EX <sec>|PX <ms>|KEEPTTL]}

`(a|b)` chooses, `[a|b]` chooses or leaves out, `x*` and `x+` repeat, `{...}` puts its parts in any order,
`<name>` draws a word of `Words.draw`, and backquotes hold a word with spaces.
"""

import struct

from dictionary import FLOATS, INTEGERS, STRINGS

REPEATS_MAX = 4
FAR_SECONDS = 4_102_444_800  # the year 2100
KINDS = "slehzxbpg"  # strings, lists, sets, hashes, sorted sets, streams, bitmaps, HyperLogLogs, places
KEYS_OF_KIND = 3
ODD_KEYS = [b"", b" ", b"a b", b"\x00\xff", b"{t}a", b"{}a", b"k" * 300, "ключ".encode(), b"*", b"a*b", b"\n", b"[x]", b"h0->f",
            b"__keyspace@0__:s0", b"-1", b"0", b"nan", b"a\r\nb", b"\\", b"?"]

INTEGER_TEXTS = [b"%d" % number for number in INTEGERS] + [
    b"9223372036854775808", b"-9223372036854775809", b"18446744073709551615", b"18446744073709551616",
    b"99999999999999999999999", b"00", b"01", b"-0", b"+1", b" 1", b"1 ", b"1.0", b"1e3", b"0x10", b"", b"-", b"1\x00"]
FLOAT_TEXTS = [repr(number).encode() for number in FLOATS] + [
    b"inf", b"+inf", b"-inf", b"Infinity", b"infinity", b"-infinity", b"INF", b"nan", b"-nan", b"NaN", b"nan(1)",
    b"1e400", b"-1e400", b"1e-400", b"0x1p3", b"0x", b".5", b"5.", b"1e", b"1e+5", b"+1.5", b" 1.5", b"1.5 ", b"1,5", b"",
    b"1.5\x00", b"0.1", b"3.0000000000000004", b"123456789012345678901234567890", b"17179869184.00000001", b"4.9e-324",
    b"1e15", b"1e16", b"1e17", b"9007199254740993", b"-0.0", b"1_000", b"0.30000000000000004", b"1e21", b"1e22", b"1e23"]
BINARY = [b"\x00", b"\xff\xfe", b"\x80", b"\x00\x00\x00", bytes(range(256)), b"\r\n", b"$-1\r\n", b"*1\r\n$4\r\nPING\r\n",
          b"\xc3\x28", b"\x7f"]
JUNK = INTEGER_TEXTS + FLOAT_TEXTS + BINARY + [text.encode() for text in STRINGS] + [
    b"(1", b"[a", b"(a", b"(inf", b"+", b"*", b"$", b">", b"1-1", b"0-0", b"1-", b"-5-1", b"1-18446744073709551615",
    b"18446744073709551615-18446744073709551615", b"1-*", b"COUNT", b"LIMIT", b"WITHSCORES", b"NX", b"XX", b"GET", b"STORE",
    b"STREAMS", b"BLOCK", b"GROUP", b"BY", b"ASC", b"MATCH", b"EX", b"PX", b"KEEPTTL", b"WEIGHTS", b"u8", b"i64", b"u64",
    b"#1", b"~", b"=", b"MAXLEN", b"RANK", b"FROMMEMBER", b"AGGREGATE", b"SUM", b"m1", b"f1", b"km", b"BYTE", b"BIT",
    b"#!lua", b"return 1", b"ok", b"on", b"off", b"yes", b"no", b"LEFT", b"BEFORE", b"-inf", b"JUSTID", b"FORCE"]


class Node:
    """A part of a pattern: `kind` is word, draw, all, one, perhaps, many or any-order."""

    def __init__(self, kind, value, least=0):
        self.kind, self.value, self.least = kind, value, least


def tokenize(text):
    tokens = []
    for index, piece in enumerate(text.split("`")):
        if index % 2:
            tokens.append(("quoted", piece))
            continue
        for char in "()[]{}|*+":
            piece = piece.replace(char, f" {char} ") if char not in "*+" else piece
        for word in piece.split():
            if len(word) > 1 and word[-1] in "*+" and word[0] == "<":
                tokens += [("word", word[:-1]), ("mark", word[-1])]
            elif word in ("(", ")", "[", "]", "{", "}", "|"):
                tokens.append(("mark", word))
            elif word in "*+" and tokens and tokens[-1] == ("mark", ")"):
                tokens.append(("mark", word))
            else:
                tokens.append(("word", word))
    return tokens


class Parser:
    def __init__(self, text):
        self.text, self.tokens, self.at = text, tokenize(text), 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else (None, None)

    def sequence(self):
        nodes = []
        while True:
            kind, value = self.peek()
            if kind is None or (kind == "mark" and value in ")]}|"):
                return Node("all", nodes)
            self.at += 1
            if kind == "quoted":
                node = Node("word", value.encode("latin-1"))
            elif kind == "word":
                is_drawn = value.startswith("<") and value.endswith(">")
                node = Node("draw", value[1:-1]) if is_drawn else Node("word", value.encode())
            elif value == "(":
                node = self.choice(")")
            elif value == "[":
                node = Node("perhaps", self.choice("]"))
            elif value == "{":
                node = Node("any-order", self.sequence().value)
                self.close("}")
            else:
                raise ValueError(f"{self.text}: {value} in the wrong place")
            kind, value = self.peek()
            if kind == "mark" and value in "*+":
                self.at += 1
                node = Node("many", node, 1 if value == "+" else 0)
            nodes.append(node)

    def choice(self, end):
        nodes = [self.sequence()]
        while self.peek() == ("mark", "|"):
            self.at += 1
            nodes.append(self.sequence())
        self.close(end)
        return Node("one", nodes)

    def close(self, mark):
        if self.peek() != ("mark", mark):
            raise ValueError(f"{self.text}: {mark} is missing")
        self.at += 1


class Pattern:
    """One or more commands, separated by `;`. One that begins with `!` is never spoiled."""

    def __init__(self, text):
        self.is_spoilable = not text.startswith("!")
        self.text = text.removeprefix("!")
        pieces, quoted = [], False
        current = ""
        for char in self.text:
            quoted ^= char == "`"
            if char == ";" and not quoted:
                pieces.append(current)
                current = ""
            else:
                current += char
        self.nodes = [Parser(piece).sequence() for piece in [*pieces, current]]

    def draw(self, words):
        commands = []
        for node in self.nodes:
            command = []
            expand(node, words, command)
            commands.append(command)
        return commands


def expand(node, words, out):
    kind, value, chance = node.kind, node.value, words.chance
    if kind == "word":
        out.append(value)
    elif kind == "draw":
        words.draw(value, out)
    elif kind == "all":
        for one in value:
            expand(one, words, out)
    elif kind == "one":
        expand(chance.choice(value), words, out)
    elif kind == "perhaps":
        if chance.random() < 0.35:
            expand(value, words, out)
    elif kind == "many":
        for _ in range(node.least + chance.randrange(REPEATS_MAX)):
            expand(value, words, out)
    else:
        for one in chance.sample(value, len(value)):
            expand(one, words, out)


class Words:
    """Draws the words of one case. Keys of a kind usually hold a value of that kind."""

    def __init__(self, chance, is_odd=None):
        self.chance = chance
        is_odd = chance.random() < 0.25 if is_odd is None else is_odd
        self.keys = {kind: [f"{kind}{n}".encode() for n in range(KEYS_OF_KIND)] for kind in KINDS}
        if is_odd:
            for kind in chance.sample(KINDS, 3):
                self.keys[kind][chance.randrange(KEYS_OF_KIND)] = chance.choice(ODD_KEYS)
        self.count = 1

    def all_keys(self):
        return [key for kind in KINDS for key in self.keys[kind]]

    def draw(self, name, out):
        if name[0] == "#":
            # A number of keys and that many keys; #w: as many weights; #dv: fields with values.
            if name == "#w":
                out += [self.word("f") for _ in range(self.count)]
                return
            self.count = self.chance.randint(1, 3)
            out.append(b"%d" % self.count)
            kinds = ["d", "v"] if name == "#dv" else [name[1:]]
            out += [self.word(kind) for _ in range(self.count) for kind in kinds]
        elif name in ("zmany", "emany", "hmany", "lmany", "imany"):
            self.draw_many(name[0], out)
        else:
            out.append(self.word(name))

    def draw_many(self, kind, out):
        """Enough elements for a value to change its encoding."""
        count = self.chance.choice([3, 20, 127, 128, 129, 130, 513])
        first = self.chance.choice([0, -5, 1000])
        step = self.chance.choice([1, 3, 70_000])
        for n in range(count):
            if kind == "z":
                out += [b"%d" % (n % 40), b"m%03d" % n]
            elif kind == "h":
                out += [b"f%03d" % n, b"v%d" % n]
            elif kind == "i":
                out.append(b"%d" % (first + n * step))
            elif kind == "l":
                out.append(b"%d" % (n * 7 % 50) if n % 3 else b"v%d" % n)
            else:
                out.append(b"m%03d" % n)

    def key(self, kind):
        return self.chance.choice(self.keys[kind])

    def any_key(self):
        return self.key(self.chance.choice(KINDS))

    def word(self, name):
        chance = self.chance
        if len(name) == 1 and name in KINDS:
            return self.any_key() if chance.random() < 0.04 else self.key(name)
        method = PLACEHOLDERS.get(name)
        if method is None:
            raise ValueError(f"unknown placeholder <{name}>")
        return method(self, chance)

    def value(self, chance):
        kind = chance.random()
        if kind < 0.35:
            return b"v%d" % chance.randrange(20)
        if kind < 0.6:
            return b"%d" % chance.randint(-50, 150)
        if kind < 0.68:
            return chance.choice(INTEGER_TEXTS)
        if kind < 0.74:
            return chance.choice(FLOAT_TEXTS)
        if kind < 0.8:
            return chance.choice(BINARY)
        if kind < 0.88:
            return chance.choice(STRINGS).encode()
        if kind < 0.93:
            return b"x" * chance.choice([63, 64, 65, 200, 4_095, 5_000])
        if kind < 0.97:
            return bytes(chance.randrange(256) for _ in range(chance.randrange(20)))
        return chance.choice(JUNK)

    def float_text(self, chance):
        kind = chance.random()
        if kind < 0.55:
            return b"%d" % chance.randint(-10, 20)
        if kind < 0.75:
            return repr(round(chance.uniform(-100, 100), chance.randrange(5))).encode()
        if kind < 0.93:
            return chance.choice(FLOAT_TEXTS)
        return repr(struct.unpack(">d", chance.randbytes(8))[0]).encode()

    def bound(self, chance):
        text = self.float_text(chance) if chance.random() < 0.7 else chance.choice([b"-inf", b"+inf"])
        return b"(" + text if chance.random() < 0.25 else text

    def lex_bound(self, chance):
        kind = chance.random()
        if kind < 0.4:
            return chance.choice([b"-", b"+"])
        return chance.choice([b"[", b"("]) + (b"m%d" % chance.randrange(12) if kind < 0.9 else chance.choice(BINARY))

    def stream_id(self, chance):
        kind = chance.random()
        if kind < 0.08:
            return chance.choice([b"0", b"$", b"-", b"+", b"0-0", b"*", b">"])
        if kind < 0.16:
            return b"%d" % chance.randrange(60)
        if kind < 0.2:
            return chance.choice([b"18446744073709551615-18446744073709551615", b"18446744073709551615", b"1-", b"1-1-1",
                                  b"0-18446744073709551615", b"18446744073709551616-0", b"-1", b"01-1", b"1-01", b"a-1"])
        return b"%d-%d" % (chance.randrange(60), chance.randrange(4))

    def new_id(self, chance):
        kind = chance.random()
        if kind < 0.15:
            return b"%d-*" % chance.randint(0, 90)
        if kind < 0.25:
            return self.stream_id(chance)
        if kind < 0.3:
            return b"*"
        if kind < 0.4:
            return b"%d" % chance.randint(0, 90)
        return b"%d-%d" % (chance.randrange(120), chance.randrange(5))

    def edge(self, chance):
        kind = chance.random()
        if kind < 0.5:
            return chance.choice([b"-", b"+"])
        return b"(" + self.stream_id(chance) if kind < 0.65 else self.stream_id(chance)

    def seconds(self, chance):
        kind = chance.random()
        if kind < 0.6:
            # Far enough apart that the order of two times does not depend on the moment of a command.
            return b"%d" % (5_000 + 100 * chance.randrange(1_000))
        if kind < 0.8:
            return chance.choice([b"0", b"-1", b"-100"])
        return chance.choice(TIME_TEXTS)

    def milliseconds(self, chance):
        kind = chance.random()
        if kind < 0.6:
            return b"%d" % (5_000_000 + 100_000 * chance.randrange(1_000))
        if kind < 0.8:
            return chance.choice([b"0", b"-1", b"-100000"])
        return chance.choice(TIME_TEXTS)

    def moment(self, chance, unit):
        kind = chance.random()
        if kind < 0.6:
            return b"%d" % ((FAR_SECONDS + chance.randrange(100)) * unit)
        if kind < 0.8:
            return b"%d" % (chance.choice([0, 1, -1, 951_782_400, 1_600_000_000]) * unit)
        return chance.choice(TIME_TEXTS)


# Numbers in the place of a time: none is a few seconds from now, in seconds or milliseconds.
TIME_TEXTS = [b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"9223372036854775", b"9223372036854776",
              b"9223370000000000", b"92233720368547758", b"", b"abc", b"1.5", b"1e3", b" 1", b"4611686018427387904",
              b"18446744073709551615", b"2147483648000", b"99999999999999999999", b"70368744177663", b"70368744177664",
              b"281474976710655", b"281474976710656"]


def _choice(*values):
    return lambda words, chance: chance.choice(values)


def _numbers(low, high):
    return lambda words, chance: b"%d" % chance.randint(low, high)


def _mostly(usual, odd, share):
    return lambda words, chance: usual(words, chance) if chance.random() >= share else chance.choice(odd)


def _member(words, chance):
    kind = chance.random()
    if kind < 0.75:
        return b"m%d" % chance.randrange(10)
    if kind < 0.85:
        return b"%d" % chance.randrange(10)
    return chance.choice(BINARY + [b"", b"x" * 70, b"m" * 64, "é".encode(), b" m1"])


PLACEHOLDERS = {
    "k": lambda words, chance: words.any_key(),
    "i": _mostly(_numbers(-8, 18), INTEGER_TEXTS, 0.1),
    "n": _mostly(_numbers(0, 6), INTEGER_TEXTS, 0.06),
    "N": _mostly(_numbers(1, 20), INTEGER_TEXTS, 0.04),
    "int": _mostly(_numbers(-1_000, 1_000), INTEGER_TEXTS, 0.35),
    "f": lambda words, chance: words.float_text(chance),
    "v": lambda words, chance: words.value(chance),
    "m": _member,
    "im": _mostly(_numbers(0, 12), INTEGER_TEXTS, 0.15),
    "d": _mostly(lambda words, chance: b"f%d" % chance.randrange(7), BINARY + [b"", b"1"], 0.06),
    "bit": _mostly(_numbers(0, 1), [b"2", b"-1", b"", b"x"], 0.05),
    "o": _mostly(_numbers(0, 300), [b"-1", b"4294967296", b"34359738368", b"65536", b"100000"], 0.05),
    "so": _mostly(_numbers(0, 40), [b"-1", b"536870912", b"4294967296", b"9000"], 0.08),
    "type": _mostly(lambda words, chance: b"%s%d" % (chance.choice([b"u", b"i"]), chance.randint(1, 63)),
                    [b"u64", b"i64", b"i65", b"u0", b"i0", b"x8", b"u", b"U8", b"i-1", b"u08"], 0.1),
    "at": _mostly(lambda words, chance: chance.choice([b"#%d", b"%d"]) % chance.randrange(60),
                  [b"#-1", b"-1", b"#", b"#x", b"4294967296", b"##1", b"#4294967296", b"9223372036854775807"], 0.06),
    "sec": lambda words, chance: words.seconds(chance),
    "ms": lambda words, chance: words.milliseconds(chance),
    "until": lambda words, chance: words.moment(chance, 1),
    "untilms": lambda words, chance: words.moment(chance, 1_000),
    "id": lambda words, chance: words.stream_id(chance),
    "newid": lambda words, chance: words.new_id(chance),
    "edge": lambda words, chance: words.edge(chance),
    "grp": _mostly(lambda words, chance: b"g%d" % chance.randrange(2), [b"", b"no", b"\x00"], 0.08),
    "con": _mostly(lambda words, chance: b"c%d" % chance.randrange(2), [b"", b"\xff"], 0.05),
    "idle": _choice(b"0", b"0", b"0", b"1000000000", b"-1", b"9223372036854775807", b"x"),
    "bound": lambda words, chance: words.bound(chance),
    "lex": lambda words, chance: words.lex_bound(chance),
    "lon": _mostly(lambda words, chance: repr(round(chance.uniform(-180, 180), 4)).encode(),
                   [b"0", b"-0", b"180", b"-180", b"180.00001", b"-180.1", b"179.99999999", b"nan", b"inf", b"x", b"1e-300"], 0.2),
    "lat": _mostly(lambda words, chance: repr(round(chance.uniform(-85, 85), 4)).encode(),
                   [b"0", b"85.05112878", b"-85.05112878", b"85.05112879", b"90", b"nan", b"-inf", b"", b"1e-300"], 0.2),
    "unit": _mostly(_choice(b"m", b"km", b"mi", b"ft"), [b"M", b"KM", b"x", b"", b"meter"], 0.1),
    "radius": _mostly(_choice(b"10", b"500", b"3000", b"20000", b"0.5"),
                      [b"0", b"-1", b"1e10", b"nan", b"inf", b"x", b"5000000", b"1e-9"], 0.15),
    "glob": _choice(b"*", b"m*", b"f?", b"[ms]*", b"m[0-5]", b"\\m1", b"x", b"", b"[^m]*", b"m[5-0]", b"[", b"[]", b"m[\\0-3]",
                    b"**1", b"?", b"*[12]*", b"\\", b"[a", b"[^", b"m\\", b"*\x00*", b"[\x00-\xff]*"),
    "by": _choice(b"s*", b"h*->f1", b"nosort", b"x", b"h*->f2", b"*", b"s*->", b"h*->*", b"->f1", b"h*->f1->f2", b""),
    "get": _choice(b"s*", b"h*->f1", b"#", b"*->f1", b"h*", b"nokey*", b"#x", b"s0", b"h*->", b""),
    "ch": _mostly(lambda words, chance: b"ch%d" % chance.randrange(3), [b"", b"\x00", b"a*", b"ch\n"], 0.08),
    "pat": _choice(b"ch*", b"*", b"ch?", b"ch[01]", b"a\\*", b"", b"[", b"ch0"),
    "db": _mostly(_numbers(0, 1), [b"-1", b"15", b"16", b"99", b"x", b"", b"1.5"], 0.1),
    "index": _mostly(_numbers(0, 9), INTEGER_TEXTS, 0.1),
    "junk": _choice(*JUNK),
}


def spoil(chance, words, command):
    """Makes something else of a command: typos, words missing, doubled, exchanged or of another kind."""
    for _ in range(chance.randint(1, 2)):
        at = chance.randint(1, max(1, len(command) - 1))
        kind = chance.randrange(9)
        junk = words.any_key() if chance.random() < 0.25 else chance.choice(JUNK)
        if kind == 0 and at < len(command):
            del command[at]
        elif kind == 1:
            command.insert(at, junk)
        elif kind == 2 and at < len(command):
            command.insert(at, command[at])
        elif kind == 3 and len(command) > 2:
            other = chance.randint(1, len(command) - 1)
            at = min(at, len(command) - 1)
            command[at], command[other] = command[other], command[at]
        elif kind == 4:
            del command[at:]
        elif kind == 5 and at < len(command):
            command[at] = change_letter(chance, command[at])
        elif kind == 6 and chance.random() < 0.15:
            command[0] = change_letter(chance, command[0])
        elif at < len(command):
            command[at] = junk


def change_letter(chance, word):
    """A word with one byte changed, added or taken away."""
    if not word:
        return b"x"
    at = chance.randrange(len(word))
    return chance.choice([word[:at] + word[at + 1:], word[:at] + b"x" + word[at:], word[:at] + word[at:].swapcase(),
                          word[:at] + bytes([word[at] ^ 1]) + word[at + 1:], word + b" "])
