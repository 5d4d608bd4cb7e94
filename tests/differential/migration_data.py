"""Builds the data sets that the campaign `migration` copies: samples, lines of InfluxDB, commands of Redis."""

import math
import struct

import dictionary

# Edges of days, months and leap days, in milliseconds: 28 February to 1 March 2024, and the days around.
ANCHORS = [1_709_078_400_000, 1_709_164_799_999, 1_709_164_800_000, 1_709_208_000_000, 1_709_251_199_999, 1_709_251_200_000, 1_709_337_600_000,
           1_709_424_000_000]
LABEL_NAMES = ["job", "host", "a", "A", "z_9", "le", "_x", "instance", "db", "rp", "exported_db"]
METRICS = ["up", "cpu_usage", "a:b", "m", "M", "cpu_usage_total", "x" * 120]
UTF8_NAMES = ["a.b", "ä", "with space", "日本", "a-b", "1a"]
TEXTS = [text for text in dictionary.STRINGS if text]
INFLUX_TEXTS = [text for text in TEXTS if "\n" not in text and "\r" not in text and not text.endswith("\\")]
EXACT_VALUES = [0.0, 1.0, -1.0, 0.1, -2.5, 1e-7, 1e15, 123456.125, 2.0**31, 2.0**53, -99.75, 1e20, math.inf, -math.inf]


def draw_times(chance, count):
    """Distinct milliseconds near the edges, in random order."""
    times = set()
    while len(times) < count:
        anchor = chance.choice(ANCHORS)
        times.add(anchor + chance.choice((0, 1, -1, 999, chance.randrange(-3_600_000, 3_600_000))))
    times = list(times)
    chance.shuffle(times)
    return times


def draw_series(chance, draw_value, names=METRICS):
    """Series with distinct labels: dictionaries of `labels` and `samples`, in milliseconds."""
    found = {}
    for _ in range(chance.choice((1, 3, 12, 40))):
        labels = {"__name__": chance.choice(names)}
        for _ in range(chance.randrange(4)):
            labels[chance.choice(LABEL_NAMES)] = chance.choice(TEXTS)
        samples = [(millis, draw_value(chance)) for millis in draw_times(chance, chance.choice((1, 2, 10, 150)))]
        found[tuple(sorted(labels.items()))] = samples
    return [{"labels": [list(label) for label in labels], "samples": samples} for labels, samples in found.items()]


def draw_any_value(chance):
    if chance.random() < 0.15:
        return chance.choice([*dictionary.NAN_PAYLOADS, dictionary.STALE_MARKER, math.inf, -math.inf, math.nan])
    return dictionary.draw_float(chance)


def draw_ordinary_value(chance):
    return chance.choice([*dictionary.NOT_FINITE[:2], dictionary.draw_float(chance)])


def draw_exact_value(chance):
    """A value that VictoriaMetrics' decimals hold."""
    return chance.choice(EXACT_VALUES) if chance.random() < 0.4 else float(chance.randint(-10_000, 10_000)) / 4


def escape(text, characters):
    return "".join("\\" + one if one in characters else one for one in text)


def draw_influx(chance, has_autogen):
    """Databases: names, retention policies (the first one is the default) and lines of each policy.

    With `has_autogen` each default is called so, as files of lines do not say which policy is the default."""
    databases = []
    for name in chance.sample(["one", "two words", "ünicode", "UPPER", 'quo"te', "x_y"], chance.choice((1, 1, 2, 3))):
        policies = [{"name": policy, "lines": draw_lines(chance)} for policy in
                    chance.sample(["autogen", "week", "two words", "ä", "Long_1"], chance.choice((1, 1, 2, 3)))]
        if has_autogen:
            policies = [{**policies[0], "name": "autogen"}] + [one for one in policies[1:] if one["name"] != "autogen"]
        databases.append({"name": name, "policies": policies})
    return databases


def draw_lines(chance):
    """Lines of line protocol; a field of a measurement has one type."""
    types = {}
    lines = []
    for _ in range(chance.choice((1, 5, 40, 200))):
        measurement = chance.choice(["m", "cpu", "cpu_usage", "with space", "a,b", "a=b", "ä", "日本", 'q"uote', "a.b", "C:\\x"])
        tags = {chance.choice(["host", "region", "tag key", "db", "exported_db", "ä", "a,b", "rp", "k=v"]): chance.choice(INFLUX_TEXTS) for _ in range(chance.randrange(4))}
        fields = {}
        for _ in range(chance.choice((1, 1, 2, 4))):
            field = chance.choice(["value", "f", "usage_user", "with space", "ä", "a=b", "x,y", "V"])
            kind = types.setdefault((measurement, field), chance.choice(("float", "float", "integer", "boolean", "string")))
            fields[field] = draw_field(chance, kind)
        text = escape(measurement, ", ")
        text += "".join(f",{escape(name, ',= ')}={escape(value, ',= ')}" for name, value in sorted(tags.items()))
        text += " " + ",".join(f"{escape(name, ',= ')}={value}" for name, value in fields.items())
        lines.append(f"{text} {draw_nanos(chance)}")
    return lines


def draw_field(chance, kind):
    if kind == "float":
        return repr(dictionary.draw_float(chance))
    if kind == "integer":
        return f"{dictionary.draw_integer(chance)}i"
    if kind == "boolean":
        return chance.choice(("true", "false", "T", "f"))
    text = dictionary.draw_string(chance).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def draw_nanos(chance):
    millis = chance.choice(ANCHORS) + chance.choice((0, 0, 1, -1, chance.randrange(-86_400_000, 86_400_000)))
    if chance.random() < 0.05:
        millis = chance.choice((0, -1_000, 951_782_400_000, 1_600_000_000_000))
    return millis * 1_000_000 + chance.choice((0, 0, 1, 999_999, chance.randrange(1_000_000)))


REDIS_KEYS = ["k", "user:1", "user:2", "a b", "ä", "日本", "🦀", "\\", '"', "x" * 200, "\x00bin", "{tag}1", "list", "hash", "set", "zset", "stream", "h2", "long", "n"]
TYPED_KEYS = {4: ["hash", "h2"], 5: ["list", "long"], 6: ["set", "ints"], 7: ["zset"], 8: ["stream", "s2"], 9: ["stream", "s2"], 10: ["stream", "s2"],
              11: ["hll"], 12: ["bits"], 15: ["n"], 17: ["geo"]}
EXPIRY_MILLIS = 4_102_444_800_000  # 2100


def draw_redis(chance):
    """Commands that fill databases, as lists of words; `["SELECT", n]` changes the database."""
    commands = []
    for database in chance.sample(range(16), chance.choice((1, 1, 2, 4))):
        commands.append(["SELECT", str(database)])
        for _ in range(chance.choice((3, 20, 80))):
            commands.append(draw_command(chance))
    if chance.random() < 0.3:
        code = "#!lua name=lib\nredis.register_function('f', function(keys, args) return args[1] end)"
        commands.append(["FUNCTION", "LOAD", code])
    return commands


def draw_word(chance):
    kind = chance.random()
    if kind < 0.2:
        return str(dictionary.draw_integer(chance))
    if kind < 0.3:
        return repr(dictionary.draw_float(chance))
    if kind < 0.36:
        return "".join(chr(chance.randrange(256)) for _ in range(chance.choice((1, 20, 300))))
    if kind < 0.39:
        return chance.choice("xyz") * chance.choice((63, 64, 65, 5_000))
    return dictionary.draw_string(chance)


def draw_command(chance):
    def words(count):
        return [draw_word(chance) for _ in range(count)]

    count, kind = chance.choice((1, 2, 5, 5, 150)), chance.randrange(18)
    # Most commands go to a key of their type.
    key = TYPED_KEYS.get(kind) if chance.random() < 0.6 else None
    key = chance.choice(key or REDIS_KEYS)
    if kind < 3:
        return ["SET", key, *words(1)]
    if kind == 3:
        return ["SETRANGE", key, str(chance.randrange(40)), *words(1)]
    if kind == 4:
        return ["HSET", key, *words(2 * count)]
    if kind == 5:
        return [chance.choice(("RPUSH", "LPUSH")), key, *words(count)]
    if kind == 6:
        return ["SADD", key, *(words(count) if chance.random() < 0.5 else [str(dictionary.draw_integer(chance)) for _ in range(count)])]
    if kind == 7:
        # No negative zero: Redis keeps its sign only in sets that are no listpack.
        scores = [chance.choice([repr(dictionary.draw_float(chance) + 0.0), "inf", "-inf", "0", "1e-320"]) for _ in range(count)]
        return ["ZADD", key, *[word for pair in zip(scores, words(count)) for word in pair]]
    if kind == 8:
        return ["XADD", key, chance.choice((f"{chance.randrange(1, 2**40)}-{chance.randrange(5)}", "1709208000000-*")), *words(2)]
    if kind == 9:
        return ["XGROUP", "CREATE", key, chance.choice(("g", "ä")), chance.choice(("0", "$")), "MKSTREAM"]
    if kind == 10:
        return ["XREADGROUP", "GROUP", "g", chance.choice(("c1", "c 2")), "COUNT", str(chance.randrange(1, 4)), "STREAMS", key, ">"]
    if kind == 11:
        return ["PFADD", key, *words(count)]
    if kind == 12:
        return ["SETBIT", key, str(chance.randrange(500)), "1"]
    if kind == 13:
        return ["PEXPIREAT", key, str(EXPIRY_MILLIS + chance.randrange(10**9))]
    if kind == 14:
        return ["DEL", key]
    if kind == 15:
        return ["INCRBY", key, str(dictionary.draw_integer(chance))]
    if kind == 16:
        return chance.choice((["RENAME", key, chance.choice(REDIS_KEYS)], ["COPY", key, chance.choice(REDIS_KEYS)], ["LPOP", key, "2"], ["HDEL", key, *words(1)],
                              ["XDEL", key, "1-1"], ["XTRIM", key, "MAXLEN", "2"], ["ZREM", key, *words(1)], ["PERSIST", key], ["APPEND", key, *words(1)]))
    return ["GEOADD", key, str(chance.uniform(-179, 179)), str(chance.uniform(-80, 80)), *words(1)]


def bits_of(value):
    return f"{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"
