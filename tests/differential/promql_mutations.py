"""Breaks expressions and parameters of queries: half of the cases are not valid."""

from promql_tree import Node, tokens

CLAUSES = [" offset 5m", " offset -1w", " @ 3", " @ end()", " @ NaN", " @ 1e300", " @ -Inf", " bool", " by (job)",
           " without ()", " on (job)", " ignoring (job)", " group_left", " group_right (x)", "[5m]", "[5m:]", "[5m:1m]",
           "[0s]", '{job="a"}', "{", "}", "(", ")", "[", "]", ",", "-", " and ", " or ", " % ", "=~", "!", " == ",
           " offset", " @ ", "#", " keep_metric_names", " default 1", ";", "$", "\\", "`", "'", '"', " 5", " x",
           " offset 5", " limit 3", ":", " fill", " anchored"]
NUMBERS = ["1e999", "-1e999", "0x", "0xg", "1e", "1__2", "1_", "1.2.3", "08", "0b2", "1h", "--", "+-1", "1e-999", "nan",
           "NaNs", "inf", "INF", "Infinity", "1,2", "0x1p3", "1 2", "9" * 400, "18446744073709551616", "time", "()"]
DURATIONS = ["0s", "0", "-5m", "1.5m", "5", "5mm", "1m1h", "1y2d", "99999999999y", "1e3s", "5 m", "", "m", "300y",
             "106751d", "106752d", "9223372036854775807ms", "9223372036s", "9223372037s", "1h1h", "5M", "1ns", "1us",
             "1w1d1h1m1s1ms", "-", "inf", "NaN", "(5m)", "0m"]
STRINGS = ['"', '"\\q"', '"\\xff"', '"\\u12"', "`a`", "'a'", "'a\"", '"a\nb"', '"\\"', "``", '"\\xc3\\x28"', '"\\377"',
           '"\\400"', '"[""', '"("', '"*"', '"\\ud800"', '"__"', '"a-b"', '"0"', '"\\U00110000"', '"\x00"', '"$"',
           '"a{1001}"', '"(?P<x"', '"(?<x>a)"', '"\\\\1"', '"(?!a)"', '""""', '"\\\\pN"', '"x{2000}"', '"\\\\C"', "5"]
NAMES = ["rate", "sum", "absent", "vector", "scalar", "time", "foo", "sum_over_time", "topk", "quantile", "clamp",
         "count_values", "label_join", "Sum", "RATE", "histogram_quantile", "by", "offset", "bool", "on", "inf", "nan",
         "and", "or", "days_in_month", "sort", "stddev_over_time", "quantile_over_time", "holt_winters", "pi", "start",
         "default_rollup", "group_left", "start()", "end()", "1", "\"x\"", "-", "atan2", "histogram_fraction", "le"]
LETTERS = "aZ09_:.,()[]{}\"'`\\=~!<>+-*/%^@# \t\n\x00ä🦀"
# Values of parameters that no expression has: they replace or remove those of a case.
TIMES = ["", "abc", "NaN", "Inf", "-Inf", "1e300", "1e400", "-1", "0", "2023-13-01T00:00:00Z", "2023-11-30", "1e10",
         "2023-11-30T24:00:00Z", "2023-11-30T23:30:00.123Z", "9223372036854775807", "-9223372036854775808", "1_0",
         "2023-11-30T23:30:00+01:00", "0x10", " 1", "1701385200.9999", "253402300800", "99999999999999"]
PARAMETER_STEPS = ["0", "-1", "abc", "", "NaN", "Inf", "1e-9", "0.0001", "1e300", "1ms", "5x", "1h1", "9e18", "1e9",
                   "292y", "300y", "0s", "1y1d"]
TIMEOUTS = ["abc", "", "1h", "10.5", "1e300", "300y", "1x"]
LIMITS = ["abc", "-1", "0", "1", "2", "1e3", "99999999999999999999", "", "1.5"]


def mutate_tree(tree, chance):
    """Returns the expression broken once, or a few times, as a tree or a text."""
    for _ in range(1 if chance.random() < 0.8 else 2):
        kind = chance.random()
        if kind < 0.25 or not isinstance(tree, Node):
            tree = mutate_letters(str(tree), chance)
        elif kind < 0.45:
            tree = mutate_tokens(str(tree), chance)
        elif kind < 0.6:
            tree = swap_kinds(tree, chance)
        elif kind < 0.7:
            tree = change_arity(tree, chance)
        elif kind < 0.85:
            tree = insert_clause(str(tree), chance)
        else:
            tree = replace_leaf(tree, chance)
    return tree


def mutate_letters(text, chance):
    at = chance.randint(0, len(text))
    kind = chance.random()
    if kind < 0.3:
        return text[:at] + text[at + 1:]
    if kind < 0.6:
        return text[:at] + chance.choice(LETTERS) + text[at:]
    if kind < 0.8:
        return text[:at] + chance.choice(LETTERS) + text[at + 1:]
    return text[:at] + text[at + 1:at + 2] + text[at:at + 1] + text[at + 2:]


def mutate_tokens(text, chance):
    words = tokens(text)
    at = chance.randrange(len(words))
    kind = chance.random()
    if kind < 0.35:
        del words[at]
    elif kind < 0.55:
        words.insert(at, words[at])
    elif kind < 0.8:
        other = chance.randrange(len(words))
        words[at], words[other] = words[other], words[at]
    else:
        words[at] = chance.choice(NAMES)
    return "".join(words)


def swap_kinds(tree, chance):
    """Puts a node in the place of one of another kind."""
    nodes = [one for one in tree.nodes() if one[1].kind not in ("option", "text", "duration")]
    path, node = chance.choice(nodes)
    others = [one for _, one in nodes if one.kind != node.kind]
    others += [Node("string", '"a"'), Node("scalar", "1"), Node("matrix", "gauge[5m]"), Node("vector", "gauge")]
    return tree.replaced(path, chance.choice([one for one in others if one.kind != node.kind]))


def change_arity(tree, chance):
    """Adds or drops an argument of a call."""
    calls = [(path, node) for path, node in tree.nodes() if "(" in node.parts and ")" in node.parts]
    if not calls:
        return insert_clause(str(tree), chance)
    path, node = chance.choice(calls)
    parts = list(node.parts)
    opening, closing = parts.index("("), parts.index(")")
    if chance.random() < 0.5 and closing > opening + 1:
        at = chance.randrange(opening + 1, closing)
        del parts[at:at + 2 if parts[at] != ")" and at + 1 < closing else at + 1]
    else:
        extra = chance.choice([Node("scalar", "1"), Node("string", '"a"'), Node("vector", "gauge"),
                               Node("matrix", "gauge[5m]"), ""])
        parts[closing:closing] = [", ", extra] if closing > opening + 1 else [extra]
    return tree.replaced(path, Node(node.kind, *parts))


def insert_clause(text, chance, clauses=CLAUSES):
    words = tokens(text)
    words.insert(chance.randint(0, len(words)), chance.choice(clauses))
    return "".join(words)


def replace_leaf(tree, chance):
    """Replaces a number, a duration, a string or a name by one at the edge of its type, or beyond."""
    lists = {"scalar": NUMBERS, "duration": DURATIONS, "string": STRINGS}
    leaves = [(path, node) for path, node in tree.nodes() if node.kind in lists and
              not any(isinstance(part, Node) for part in node.parts)]
    if not leaves or chance.random() < 0.25:
        return mutate_tokens(str(tree), chance)
    path, node = chance.choice(leaves)
    return tree.replaced(path, Node(node.kind, chance.choice(lists[node.kind])))


def mutate_parameters(parameters, chance, has_limit):
    """Returns the parameters of a query with one that is wrong, missing or unusual."""
    parameters = dict(parameters)
    kind = chance.random()
    name = chance.choice([name for name in parameters if name != "query"])
    if kind < 0.1:
        # Without a time the answer depends on the clock.
        parameters.pop(chance.choice([name for name in parameters if name not in ("time", "end")]))
    elif kind < 0.15:
        parameters["query"] = chance.choice(["", " ", "#", "# gauge", "gauge # x", "\n", "()", "\x00"])
    elif kind < 0.25:
        parameters["timeout"] = chance.choice(TIMEOUTS)
    elif kind < 0.35 and has_limit:
        parameters["limit"] = chance.choice(LIMITS)
    elif kind < 0.4 and "start" in parameters:
        parameters["start"], parameters["end"] = parameters["end"], parameters["start"]
    else:
        # An empty time is now.
        values = PARAMETER_STEPS if name == "step" else TIMES if name == "start" else TIMES[1:]
        parameters[name] = chance.choice(values)
    return parameters
