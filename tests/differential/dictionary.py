"""Values at the edges of types: numbers, strings and times that the campaigns draw from."""

import math
import struct

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, -2.5, 1e-7, 123456789.125, 5e-324, -5e-324, 2.2250738585072014e-308,
          2.225073858507201e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1e15, 1e16, 1e20, 1e21, 1e-5]
NOT_FINITE = [math.inf, -math.inf, math.nan]
STALE_MARKER = struct.unpack(">d", bytes.fromhex("7ff0000000000002"))[0]
NAN_PAYLOADS = [struct.unpack(">d", bytes.fromhex(word))[0] for word in ("7ff8000000000001", "fff8000000000000",
                                                                        "7fffffffffffffff")]
POWERS = [2**k + d for k in (7, 8, 15, 16, 24, 31, 32, 53, 62, 63) for d in (-1, 0, 1)]
INTEGERS = sorted({0, 1, -1, 10, 99, 100} | {n for n in POWERS if n < 2**63} | {-n for n in POWERS if n <= 2**63})
INTEGERS_32 = [n for n in INTEGERS if -(2**31) <= n < 2**31]
STRINGS = ["", " ", "a", "A", "ab", "0", "1", "-1", "1e3", "NaN", "inf", "null", "true", "'", "''", '"', "\\", "\\n",
           "\n", "\t", ",", ";", "=", "|", "/", "%", "_", "*", "?", "$1", "{}", "[]", "(", ")", "ä", "ß", "İ", "Ω",
           "日本", "🦀", "e\u0301", "\u200b", "\u00a0", "x" * 300, "a b", " a", "a ", "a,b=c d", "a.b", "a:b", "a-b"]
# Seconds since 1970: edges of days, months, years, leap days, weeks, and the ends of common ranges.
TIMES = [0, 1, -1, 59, 60, 3_599, 3_600, 86_399, 86_400, 951_782_400, 951_868_799, 1_582_934_400, 1_583_020_800,
         1_600_000_000, 1_704_067_199, 1_704_067_200, 1_709_164_800, 1_709_251_199, 1_709_251_200, 1_711_846_800,
         1_729_990_800, 2_147_483_647, 2_147_483_648, 4_102_444_800]


def draw_float(chance):
    """A float: from the dictionary, a small integer, or of a random size."""
    kind = chance.random()
    if kind < 0.35:
        return chance.choice(FLOATS)
    if kind < 0.7:
        return float(chance.randint(-100, 100))
    if kind < 0.9:
        return round(chance.uniform(-1000, 1000), 3)
    return chance.uniform(-1, 1) * 10.0 ** chance.randint(-12, 12)


def draw_integer(chance):
    return chance.choice(INTEGERS) if chance.random() < 0.4 else chance.randint(-1000, 1000)


def draw_string(chance):
    if chance.random() < 0.6:
        return chance.choice(STRINGS)
    return "".join(chance.choice("abcxyzABC019 _-.äΩ") for _ in range(chance.randint(1, 12)))
