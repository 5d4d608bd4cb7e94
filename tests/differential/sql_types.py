"""Types of PostgreSQL that Quipu has too: names, numbers, literals at their edges, texts that are none of them."""

import json

from dictionary import FLOATS, INTEGERS, STRINGS
from sql_faulty import held_values
from sql_nodes import Node

# Short names of the campaign: name in SQL, OID.
TYPES = {"i2": ("int2", 21), "i4": ("int4", 23), "i8": ("int8", 20), "f4": ("float4", 700), "f8": ("float8", 701),
         "nu": ("numeric", 1700), "t": ("text", 25), "v": ("varchar", 1043), "c": ("char(4)", 1042), "b": ("bool", 16),
         "d": ("date", 1082), "tm": ("time", 1083), "ts": ("timestamp", 1114), "tz": ("timestamptz", 1184),
         "iv": ("interval", 1186), "by": ("bytea", 17), "u": ("uuid", 2950), "j": ("json", 114), "jb": ("jsonb", 3802),
         "ai": ("int4[]", 1007), "at": ("text[]", 1009), "af": ("float8[]", 1022)}
# A double precision whose last digits depend on the order of additions or the mathematics library.
INEXACT = "fx"
NAMES_OF_OIDS = {oid: name.split("(")[0] for name, oid in TYPES.values()} | {
    705: "unknown", 26: "oid", 1005: "int2[]", 1016: "int8[]", 1021: "float4[]", 1231: "numeric[]", 1000: "bool[]",
    1182: "date[]", 1115: "timestamp[]", 1185: "timestamptz[]", 1187: "interval[]", 1183: "time[]", 3807: "jsonb[]",
    199: "json[]", 1015: "varchar[]", 1014: "bpchar[]", 2951: "uuid[]", 1001: "bytea[]", 18: "char", 19: "name",
    2249: "record", 1266: "timetz", 1560: "bit", 1562: "varbit", 2278: "void", 1042: "bpchar", 2206: "regtype"}
NUMBERS = ("i2", "i4", "i8", "f4", "f8", "nu")
TEXTS = ("t", "v", "c")
ORDERED = ("i2", "i4", "i8", "f4", "f8", "nu", "t", "v", "c", "b", "d", "tm", "ts", "tz", "iv", "by", "u", "jb", "ai", "at")
COMPARED = ORDERED + ("af",)

DATES = ["1970-01-01", "1969-12-31", "2000-02-29", "2024-02-29", "2023-02-28", "1900-03-01", "0001-01-01", "9999-12-31",
         "2038-01-19", "2024-12-30", "2021-01-03", "1582-10-15"]
CLOCKS = ["00:00:00", "23:59:59.999999", "12:00:00", "00:00:00.000001", "10:20:30.5", "01:00:00", "03:14:07"]
INTERVALS = ["1 day", "-1 day", "1 mon", "1 year 2 mons 3 days 04:05:06.789", "00:00:00", "-00:00:00.000001", "30 days",
             "24:00:00", "-1 mons +2 days -03:00:00", "1 mon -1 day", "100 years", "P1Y2M3DT4H5M6S", "PT1.5H", "1.5 hours",
             "2 weeks", "@ 1 hour ago", "1000000 hours", "0.1 mon", "1 decade"]
JSON = ["{}", "[]", "null", "1", "-1.5", "\"a\"", "true", '{"a": 1}', '{"b": {"c": [1, 2, 3]}, "a": null}',
        '[1, "a", null, true, {"k": "v"}]', '{"b":1, "a":2, "a":3}', '"\\u00e4\\n"', "1e5", "1.10", "[[1],[2,[3]]]",
        '{"": ""}', '{"k": "x\\"y"}', "12345678901234567890", "0.1e-3"]
SAFE_STRINGS = [one for one in STRINGS if "\0" not in one]

EDGES = {
    "i2": [str(n) for n in INTEGERS if -32768 <= n <= 32767],
    "i4": [str(n) for n in INTEGERS if -2**31 <= n < 2**31],
    "i8": [str(n) for n in INTEGERS],
    "f4": ["0", "-0", "1.5", "0.1", "3.4028235e+38", "1e-45", "1.1754944e-38", "NaN", "Infinity", "-Infinity", "16777217",
           "1e6", "1234567", "-1e-5", "123456.789"],
    "f8": [repr(one) for one in FLOATS] + ["NaN", "Infinity", "-Infinity"],
    "nu": ["0", "0.0", "-0.5", "1.00", "0.30000000000000004", "1e20", "1e15", "99999999999999999999.9999999999", "-1e-10",
           "123456789.123456789", "NaN", "1e-20", "0.05", "2.5", "3.5", "-2.5", "100", "12345678901234567890123456789.5",
           "Infinity"],
    "t": SAFE_STRINGS, "v": SAFE_STRINGS,
    "c": ["", "a", "a   ", "abcd", "ä", " a", "1", "A"],
    "b": ["t", "f", "yes", "off", "1", "TRUE"],
    "d": [*DATES, "4713-01-01 BC", "infinity", "-infinity", "January 8, 1999", "20240229", "epoch", "Feb 29 2024"],
    "tm": [*CLOCKS, "24:00:00", "04:05 PM", "040506"],
    "ts": [f"{day} {clock}" for day, clock in zip(DATES, CLOCKS * 2)] + ["infinity", "-infinity", "epoch", "2024-02-29T10:20:30",
                                                                        "0044-03-15 10:00:00 BC", "294276-12-31 23:59:59"],
    "tz": [f"{day} {clock}+00" for day, clock in zip(DATES, CLOCKS * 2)] + [
        "2024-03-31 01:30:00+00", "2024-07-01 12:00:00+02", "2024-02-29T10:20:30Z", "infinity", "2024-01-01 00:00:00-05:30",
        "2024-10-27 02:30:00 Europe/Berlin", "2024-07-01 12:00 PST"],
    "iv": INTERVALS,
    "by": ["\\x", "\\x00", "\\xff00", "\\xdeadbeef", "abc", "\\x6162", "a\\000b", "\\\\"],
    "u": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
          "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a12}"],
    "j": JSON, "jb": JSON,
    "ai": ["{}", "{1}", "{1,2,3}", "{NULL}", "{1,NULL,1}", "{2147483647,-2147483648}", "{3,1,2}"],
    "at": ["{}", "{a}", "{a,b,NULL}", '{"a b","c,d","\\"",""}', "{NULL,NULL}", '{"NULL"}', "{ä,b,a}"],
    "af": ["{}", "{1.5,NaN}", "{0,-0}", "{NULL,1e300}", "{0.1,Infinity}"],
}
EDGES = {kind: [one for one in values if one not in held_values(kind)] for kind, values in EDGES.items()}
# Input that is not a value of the type: malformed, or out of range.
MALFORMED = {
    "i2": ["x", "", "32768", "-32769", "1.5", "0x10", "1e2", " ", "1 2", "1_000"], "i4": ["x", "", "2147483648", "1.0", "--1", "+-1", "NaN"],
    "i8": ["9223372036854775808", "-9223372036854775809", "abc", "1e3", "١"], "f4": ["1e39", "x", "", "1e-60", "1,5", "0x1p3", "nanx"],
    "f8": ["1e309", "-1e400", "1e-400", "abc", "", "1.2.3", "infinit", "1e"], "nu": ["x", "", "1.2.3", "1e", "1e200000", "--1", "0x1"],
    "t": [], "v": [], "c": [], "b": ["maybe", "", "2", "tr ue", "y es"],
    "d": ["2023-02-29", "2024-13-01", "x", "", "2024-00-10", "99999999-01-01", "2024-02-30", "0000-01-01", "12/40/2024", "2024-1-1-1"],
    "tm": ["25:00", "x", "", "24:00:01", "12:60", "12:00:61", "-01:00"], "iv": ["x", "", "1 fortnight", "P", "1 day day", "99999999999 years", "1:2:3:4", "PT"],
    "ts": ["2023-02-29 00:00", "x", "", "2024-01-01 25:00:00", "300000-01-01", "2024-01-01 10:61", "now now"],
    "tz": ["2024-01-01 00:00+25", "2024-01-01 00:00 Nowhere/City", "x", "", "2024-02-30 00:00Z", "2024-01-01 00:00:00+1:2:3:4"],
    "by": ["\\x0", "\\xzz", "\\8", "\\x 1", "\\"], "u": ["x", "", "a0eebc99", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "j": ["", "{", "{a:1}", "[1,]", "nul", "'a'", '{"a":}', '"\\ud800"', "1 2", "01", '"\n"'], "jb": ["", "{", "{'a':1}", "tru", '"\\u0000"', "[1", "NaN", "1."],
    "ai": ["1,2", "{1,2", "{x}", "{1,,2}", "{{1},{2,3}}", "", "{2147483648}", "{1} x"], "at": ["a", "{a", '{"a}', "{a,}", "", "{a\"b\"}"],
    "af": ["{x}", "{1e400}", "1", "{", "{1;2}"],
}


def draw_value(chance, kind, is_edge):
    """Draws the text form of a value."""
    if kind == INEXACT:
        kind = "f8"
    if is_edge and chance.random() < 0.6:
        return chance.choice(EDGES[kind])
    return draw_plain_value(chance, kind)


def draw_plain_value(chance, kind):
    if kind in ("i2", "i4", "i8"):
        return str(chance.randint(-5, 12))
    if kind in ("f4", "f8"):
        return repr(chance.choice([0.5, 1.5, -2.25, 3.0, 10.0, 0.0, -1.0, 2.0, 0.125, 100.0]))
    if kind == "nu":
        return chance.choice(["0.5", "1.25", "-3.10", "2", "10.00", "7.777", "0", "1.5", "-1", "12.34"])
    if kind in TEXTS:
        return chance.choice(["a", "b", "ab", "abc", "A", "x", "", "ba", "c d", "1", "ä", "aXb"])
    if kind == "b":
        return chance.choice(["true", "false"])
    if kind == "d":
        return f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    if kind == "tm":
        return f"{chance.randint(0, 23):02}:{chance.choice([0, 15, 59]):02}:{chance.choice(['00', '30', '07.25'])}"
    if kind in ("ts", "tz"):
        zone = "+00" if kind == "tz" else ""
        return f"2024-0{chance.randint(1, 9)}-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:{chance.choice(['00:00', '30:15.5', '59:59'])}{zone}"
    if kind == "iv":
        return chance.choice(["1 day", "2 hours", "1 mon", "-3 days", "01:30:00", "10 min", "1 day 02:00:00", "1 week"])
    if kind == "by":
        return chance.choice(["\\x61", "\\x00ff", "\\x", "\\x616263"])
    if kind == "u":
        return f"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1{chance.randint(0, 9)}"
    if kind in ("j", "jb"):
        made = chance.choice([{"a": 1}, {"a": "x", "b": [1, 2]}, [1, 2, 3], 5, "x", None, {"k": {"a": True}}, [], {}])
        return json.dumps(made)
    items = [draw_plain_value(chance, {"ai": "i4", "at": "t", "af": "f8"}[kind]) for _ in range(chance.randint(0, 3))]
    return "{" + ",".join('"' + one + '"' if kind == "at" else one for one in items) + "}"


def quote(value):
    return "'" + value.replace("'", "''") + "'"


def draw_literal(chance, kind, is_edge, value=None):
    """Draws a literal in one of the forms that SQL has for it."""
    value = draw_value(chance, kind, is_edge) if value is None else value
    return Node(kind, write_literal(chance, kind, value), value=value)


def write_literal(chance, kind, value):
    name = TYPES["f8" if kind == INEXACT else kind][0]
    form = chance.random()
    if kind == "i4" and form < 0.8 and value.lstrip("-").isdigit() and abs(int(value)) < 2**31:
        return value if value[0] != "-" else f"({value})"
    if kind == "nu" and form < 0.3 and value.replace(".", "", 1).isdigit() and "." in value:
        return value
    if kind == "b" and form < 0.8 and value in ("true", "false"):
        return value
    if kind in TEXTS and form < 0.15:
        return quote(value)
    if kind in TEXTS and form < 0.25 and value.isprintable():
        return "E'" + value.replace("\\", "\\\\").replace("'", "\\'") + f"'::{name}"
    if kind in TEXTS and form < 0.3 and "$" not in value:
        return f"$${value}$$::{name}"
    if kind == "ai" and form < 0.5 and value != "{}" and "{{" not in value:
        return "ARRAY[" + value[1:-1] + "]"
    if form < 0.75:
        return f"{quote(value)}::{name}"
    if form < 0.9 and "[" not in name:
        return f"{name} {quote(value)}" if "(" not in name else f"CAST({quote(value)} AS {name})"
    return f"CAST({quote(value)} AS {name})"


def make_simple_literals():
    """Returns for each type the literals that the reducer tries, the simplest first."""
    simple = {}
    plain = {"i4": ["0", "1"], "b": ["true", "false"]}
    values = {"i2": "1", "i8": "1", "f4": "1", "f8": "1", "nu": "1.5", "t": "a", "v": "a", "c": "a", "d": "2024-02-29", "tm": "10:20",
              "ts": "2024-02-29", "tz": "2024-02-29", "iv": "1 day", "by": "\\x61", "u": EDGES["u"][0], "j": "1", "jb": "1",
              "ai": "{1}", "at": "{a}", "af": "{1}", INEXACT: "1"}
    for kind, value in values.items():
        name = TYPES["f8" if kind == INEXACT else kind][0]
        simple[kind] = [Node(kind, f"{quote(value)}::{name}", value=value), Node(kind, f"NULL::{name}")]
    for kind, texts in plain.items():
        simple[kind] = [Node(kind, one, value=one) for one in texts] + [Node(kind, f"NULL::{TYPES[kind][0]}")]
    return simple


SIMPLE_LITERALS = make_simple_literals()
