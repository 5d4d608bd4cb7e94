"""Makes invalid statements of InfluxQL: a list of them, and mutations of valid ones."""

import re

import dictionary

# Statements that are none, or that no database has an answer to.
WRONG = """
SELECT
SELECT * FROM
SELECT usage FROM cpu WHERE
SELECT usage, mean(idle) FROM cpu
SELECT mean(usage) FROM cpu GROUP BY time(0x)
SELECT max(usage), min(idle), host FROM cpu
SELECT derivative(mean(usage)) FROM cpu
SELECT derivative(usage) FROM cpu GROUP BY time(1m)
SELECT usage FROM cpu GROUP BY time(1m)
SELECT foo(usage) FROM cpu
SELECT percentile(usage) FROM cpu
SELECT percentile(usage, 'a') FROM cpu
SELECT percentile(usage, 101) FROM cpu
SELECT percentile(usage, -1) FROM cpu
SELECT percentile(usage, 9223372036854775807) FROM cpu
SELECT percentile(usage, n) FROM cpu
SELECT top(usage) FROM cpu
SELECT top(usage, 0) FROM cpu
SELECT top(usage, -1) FROM cpu
SELECT top(usage, 1.5) FROM cpu
SELECT top(usage, 5), bottom(usage, 5) FROM cpu
SELECT top(usage, 5) FROM cpu LIMIT 2
SELECT top(usage, idle, 2) FROM cpu
SELECT distinct(usage), n FROM cpu
SELECT distinct(usage), max(n) FROM cpu
SELECT distinct(usage, n) FROM cpu
SELECT distinct(1) FROM cpu
SELECT DISTINCT FROM cpu
SELECT DISTINCT usage, n FROM cpu
SELECT count(distinct) FROM cpu
SELECT count(distinct()) FROM cpu
SELECT count(1) FROM cpu
SELECT count('usage') FROM cpu
SELECT usage FROM cpu fill(none)
SELECT usage FROM cpu fill(linear)
SELECT 1 + 2 FROM cpu
SELECT 'a' FROM cpu
SELECT true FROM cpu
SELECT 1h FROM cpu
SELECT usage + 'a' FROM cpu
SELECT usage + true FROM cpu
SELECT usage & 1 FROM cpu
SELECT usage / 0 FROM cpu
SELECT n / 0 FROM cpu
SELECT n % 0 FROM cpu
SELECT up + 1 FROM cpu
SELECT host + 1 FROM cpu
SELECT s + 1 FROM even
SELECT s + s FROM even
SELECT mean(s) FROM even
SELECT sum(b) FROM even
SELECT max(s) FROM even
SELECT abs(s) FROM even
SELECT stddev(b) FROM even
SELECT percentile(s, 5) FROM even
SELECT derivative(s) FROM even
SELECT top(s, 2) FROM even
SELECT spread(s) FROM even
SELECT integral(s) FROM even
SELECT median(b) FROM even
SELECT cumulative_sum(b) FROM even
SELECT mean(host) FROM cpu
SELECT max(host) FROM cpu
SELECT mean(usage + 1) FROM cpu
SELECT usage FROM cpu ORDER BY usage
SELECT usage FROM cpu LIMIT x
SELECT usage FROM cpu LIMIT -1
SELECT usage FROM cpu LIMIT 1.5
SELECT usage FROM cpu LIMIT 9223372036854775808
SELECT usage FROM cpu LIMIT 99999999999999999999
SELECT usage FROM cpu WHERE time > 'x'
SELECT usage FROM cpu WHERE time != 5
SELECT usage FROM cpu WHERE time > 9223372036854775807
SELECT usage FROM cpu WHERE time > 9223372036854775808
SELECT usage FROM cpu WHERE time > -9223372036854775808
SELECT usage FROM cpu WHERE time > '1600-01-01'
SELECT usage FROM cpu WHERE time < '2300-01-01'
SELECT usage FROM cpu WHERE time > 1.5
SELECT usage FROM cpu WHERE time > true
SELECT usage FROM cpu WHERE time > host
SELECT usage FROM cpu WHERE time + 1h > 5
SELECT usage FROM cpu WHERE time > 5 OR time < 3
SELECT usage FROM cpu WHERE 1 = 1
SELECT usage FROM cpu WHERE true
SELECT usage FROM cpu WHERE false
SELECT usage FROM cpu WHERE 'a' = 'a'
SELECT usage FROM cpu WHERE host = "a"
SELECT usage FROM cpu WHERE host > 'a'
SELECT usage FROM cpu WHERE host = 1
SELECT usage FROM cpu WHERE host = true
SELECT usage FROM cpu WHERE usage = 'a'
SELECT usage FROM cpu WHERE usage =~ /a/
SELECT usage FROM cpu WHERE up > true
SELECT usage FROM cpu WHERE up = 1
SELECT usage FROM cpu WHERE up = 'true'
SELECT usage FROM cpu WHERE mean(usage) > 1
SELECT usage FROM cpu WHERE host =~ /[/
SELECT usage FROM cpu WHERE host =~ /(?=a)/
SELECT usage FROM cpu WHERE host =~ /a{2000}/
SELECT mean(usage) FROM cpu GROUP BY foo(1m)
SELECT mean(usage) FROM cpu GROUP BY time(host)
SELECT mean(usage) FROM cpu GROUP BY time(1m), time(2m)
SELECT mean(usage) FROM cpu GROUP BY time(0s)
SELECT mean(usage) FROM cpu GROUP BY time()
SELECT mean(usage) FROM cpu GROUP BY time(5)
SELECT mean(usage) FROM cpu GROUP BY time('1m')
SELECT mean(usage) FROM cpu GROUP BY 'host'
SELECT mean(usage) FROM cpu GROUP BY 5
SELECT mean(usage) FROM cpu GROUP BY
SELECT moving_average(usage, 1) FROM cpu
SELECT moving_average(usage, 2.5) FROM cpu
SELECT moving_average(usage) FROM cpu
SELECT elapsed(usage, 5) FROM cpu
SELECT elapsed(usage, 0s) FROM cpu
SELECT elapsed(usage, -1s) FROM cpu
SELECT integral(usage, 5) FROM cpu
SELECT integral(usage, 0s) FROM cpu
SELECT sample(usage, 0) FROM cpu
SELECT sample(usage) FROM cpu
SELECT usage FROM cpu GROUP host
SELECT usage FROM cpu tz('Nowhere/Land')
SELECT usage FROM cpu tz('../etc/passwd')
SELECT usage FROM cpu tz('')
SELECT time FROM cpu
SELECT usage > 5 FROM cpu
SELECT mean(*) + 1 FROM cpu
SHOW
SHOW TAG
SHOW TAG VALUES
SHOW TAG VALUES WITH KEY
SHOW FIELD
CREATE
CREATE DATABASE
DROP
SELECT usage FROM nodb..cpu
SELECT usage FROM x.nopolicy.cpu
SELECT usage FROM nopolicy.cpu
SELECT usage FROM cpu; SELECT
SELECT "usage FROM cpu
SELECT usage FROM cpu WHERE host = 'a
SELECT usage FROM cpu WHERE host =~ 'a'
SELECT usage FROM cpu WHERE host = /a/
SELECT usage FROM a.b.c.d
SELECT usage FROM
SELECT usage FROM 'cpu'
SELECT usage FROM 5
SELECT usage FROM cpu WHERE usage
SELECT usage FROM cpu WHERE now() > 5
SELECT abs(usage, 2) FROM cpu
SELECT abs() FROM cpu
SELECT abs(*) FROM cpu
SELECT pow(usage) FROM cpu
SELECT pow(usage, 'a') FROM cpu
SELECT log(usage) FROM cpu
SELECT cumulative_sum(usage, 1) FROM cpu
SELECT max(max(usage)) FROM cpu
SELECT mean() FROM cpu
SELECT mean(usage, n) FROM cpu
SELECT MEAN(usage) FROM cpu
SELECT mean (usage) FROM cpu
SELECT usage FROM (SELECT usage FROM cpu ORDER BY time DESC)
SELECT usage FROM (SHOW DATABASES)
SELECT usage FROM ()
SELECT usage FROM (SELECT usage FROM cpu) AS a
SELECT mean(usage) FROM cpu GROUP BY time(1m) fill(what)
SELECT mean(usage) FROM cpu GROUP BY time(1m) fill(1, 2)
SELECT mean(usage) FROM cpu GROUP BY time(1m) fill()
SELECT mean(usage) FROM cpu GROUP BY time(1m) fill
SELECT usage FROM cpu WHERE time > '2020-13-01'
SELECT usage FROM cpu WHERE time > '2020-02-30'
SELECT usage FROM cpu WHERE time > '2020-09-13T99:00:00Z'
SELECT usage FROM cpu WHERE time > usage
SELECT usage FROM cpu WHERE time =~ /a/
SELECT usage::what FROM cpu
SELECT usage:: FROM cpu
SELECT usage::unsigned FROM cpu
SELECT derivative(usage, 0s) FROM cpu
SELECT derivative(usage, -1s) FROM cpu
SELECT derivative(usage, 5) FROM cpu
SELECT derivative() FROM cpu
SELECT difference(usage, 1s) FROM cpu
SELECT elapsed(mean(usage)) FROM cpu
SELECT top(usage, host) FROM cpu
SELECT bottom(usage, host, -1) FROM cpu
SELECT sample(usage, 1.5) FROM cpu
SELECT mode(usage, 2) FROM cpu
SELECT count(distinct(usage, n)) FROM cpu
SELECT distinct() FROM cpu
SELECT first(*), n FROM cpu
SELECT sum(/u/) * 2 FROM cpu
SELECT * + 1 FROM cpu
SELECT usage FROM cpu; ; SHOW
SELECT usage FROM cpu GROUP BY host, time
SELECT usage FROM cpu GROUP BY usage + 1
SELECT mean(usage) FROM cpu GROUP BY time(1m, host)
SELECT mean(usage) FROM cpu GROUP BY time(1m, 5)
SELECT mean(usage) FROM cpu GROUP BY time(1m, now(), 1s)
SELECT usage AS FROM cpu
SELECT usage, FROM cpu
SELECT (usage FROM cpu
SELECT usage FROM cpu WHERE (host = 'a'
SELECT usage FROM (SELECT usage FROM cpu
SELECT usage FROM cpu SLIMIT -1
SELECT usage FROM cpu SLIMIT x
SELECT usage FROM cpu ORDER BY time DESC, host
SELECT usage FROM cpu ORDER BY time UP
SELECT usage FROM cpu ORDER BY
SELECT usage FROM cpu ORDER time
SELECT usage FROM cpu tz(UTC)
SELECT usage FROM cpu LIMIT 1 ORDER BY time
SELECT usage FROM cpu WHERE host = 'a' WHERE host = 'b'
SELECT usage FROM cpu GROUP BY host GROUP BY region
SELECT usage FROM cpu LIMIT 1 LIMIT 2
SELECT usage FROM cpu HAVING usage > 1
SELECT usage FROM cpu JOIN mem
SELECT usage FROM cpu UNION SELECT n FROM cpu
SELECT COUNT(*) FROM cpu;
SELECT usage FROM cpu -- comment
SELECT usage /* comment */ FROM cpu LIMIT 1
SELECT holt_winters(mean(usage), 0, 1) FROM cpu WHERE time > 1600000000s AND time < 1600000600s GROUP BY time(1m)
SELECT holt_winters(mean(usage), 1, -1) FROM cpu WHERE time > 1600000000s AND time < 1600000600s GROUP BY time(1m)
SELECT holt_winters(usage, 1, 1) FROM cpu
DELETE
DELETE FROM y..cpu
DELETE FROM y.autogen.cpu
DELETE FROM cpu WHERE
DELETE FROM cpu WHERE usage > 5
DROP SERIES
DROP MEASUREMENT
SHOW TAG VALUES WITH KEY > host
SHOW TAG VALUES WITH KEY IN host
SHOW TAG VALUES WITH KEY IN ()
SHOW TAG VALUES WITH KEY = 'host'
SHOW SERIES WHERE usage > 1
SHOW SERIES WHERE time > 5
SHOW MEASUREMENTS WITH MEASUREMENT > cpu
SHOW MEASUREMENTS WITH cpu
SHOW MEASUREMENTS LIMIT -1
SHOW RETENTION POLICIES ON nodb
SHOW FIELD KEYS ON nodb
SHOW DATABASES LIMIT 1
SHOW FIELD KEYS WHERE host = 'a'
EXPLAIN SHOW DATABASES
EXPLAIN
INSERT cpu usage=1
UPDATE cpu SET usage = 1
USE x
GRANT
KILL QUERY x
""".strip().split("\n")

TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|/(?:[^/\\\s,)]|\\.)+/|\d+(?:\.\d+)?[a-zµ]*|\w+|<=|>=|!=|=~|!~|::|\s+|.""",
                   re.DOTALL)
WORDS = ["SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "LIMIT", "OFFSET", "SLIMIT", "SOFFSET", "AND", "OR", "AS",
         "fill", "tz", "time", "ASC", "DESC", "ON", "WITH", "KEY", "IN", "SHOW", "DISTINCT", "TAG", "VALUES", "NOT",
         "mean", "count", "max", "top", "percentile", "abs", "pow", "derivative", "moving_average", "cpu", "usage", "n", "host",
         "up", "s", "nothing", "*", "(", ")", ",", ";", ".", "::", "integer", "string", "tag", "field", "=", "!=", "=~",
         "!~", "<", ">", "+", "-", "/", "%", "&", "|", "^", "'", '"', "$", "$p", ":", "#", "@", "!", "\\", "{", "}",
         "true", "false", "now()", "1h", "5", "-1", "0", "1.5", "1e3", "0x10", "1ns", "7d", "1y", "'a'", '"b"', "/a/",
         "''", '""', "//", "'2020-09-13'", "none", "null", "previous", "linear"]
NUMBERS = ["0", "-0", "-1", "00", "007", "1.", ".5", "1.5.5", "1e400", "9223372036854775807", "9223372036854775808",
           "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
           "9007199254740993", "99999999999999999999999999", "4294967296", "2147483648", "1000000"]


def split_tokens(text):
    return TOKEN.findall(text)


def mutate(chance, text):
    """Changes a token or two of a statement, or its letters."""
    tokens = split_tokens(text)
    for _ in range(chance.choice([1, 1, 1, 2])):
        mutate_once(chance, tokens)
        tokens = split_tokens("".join(tokens)) or [" "]
    return "".join(tokens)


def mutate_once(chance, tokens):
    form, at = chance.randrange(14), chance.randrange(len(tokens))
    token = tokens[at]
    if form == 0:
        del tokens[at]
    elif form == 1:
        tokens.insert(at, token)
    elif form == 2:
        other = chance.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif form in (3, 4):
        tokens[at] = chance.choice(WORDS)
    elif form == 5:
        tokens.insert(at, f" {chance.choice(WORDS)} ")
    elif form == 6:
        tokens[at] = misspell(chance, token)
    elif form == 7:
        del tokens[at:]
    elif form == 8:
        tokens.insert(at, chance.choice(["'" + string.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
                                         for string in dictionary.STRINGS]))
    elif form in (9, 10):
        replace_number(chance, tokens)
    elif form == 11:
        move_clause(chance, tokens)
    elif form == 12:
        change_arguments(chance, tokens)
    else:
        end = min(len(tokens), at + chance.randint(1, 4))
        del tokens[at:end]


def misspell(chance, token):
    place = chance.randrange(len(token))
    letter = chance.choice(["", token[place] * 2, "x", "É", "_", " ", "'", '"', token[place].swapcase()])
    return token[:place] + letter + token[place + 1:]


def replace_number(chance, tokens):
    places = [at for at, token in enumerate(tokens) if token[0].isdigit()]
    if places:
        at = chance.choice(places)
        unit = re.sub(r"[\d.]+", "", tokens[at])
        tokens[at] = chance.choice(NUMBERS) + chance.choice([unit, unit, "", "s", "h", "w", "i", "x"])


def move_clause(chance, tokens):
    """Puts the words from one keyword to the next one elsewhere."""
    keywords = ["FROM", "WHERE", "GROUP", "ORDER", "LIMIT", "SLIMIT", "OFFSET", "fill", "tz"]
    starts = [at for at, token in enumerate(tokens) if token in keywords] + [len(tokens)]
    if len(starts) < 3:
        return
    place = chance.randrange(len(starts) - 1)
    clause = tokens[starts[place]:starts[place + 1]]
    del tokens[starts[place]:starts[place + 1]]
    spaces = [at for at, token in enumerate(tokens) if token.isspace()] or [0]
    at = chance.choice(spaces)
    tokens[at:at] = [" ", *clause]


def change_arguments(chance, tokens):
    """Adds an argument to a call, removes one, or puts another in its place."""
    calls = [at for at in range(1, len(tokens)) if tokens[at] == "(" and tokens[at - 1].isidentifier()]
    if not calls:
        return
    at = chance.choice(calls) + 1
    argument = chance.choice(["usage", "'a'", "5", "0", "-1", "1.5", "1h", "true", "*", "/a/", "host", "n", "s", "max(n)",
                              "9223372036854775808", "nothing", "1e400", "$p", ""])
    form = chance.randrange(3)
    if form == 0:
        tokens[at:at] = [argument, ","]
    elif form == 1 and at < len(tokens):
        tokens[at] = argument
    else:
        end = next((place for place in range(at, len(tokens)) if tokens[place] == ")"), len(tokens))
        tokens[end:end] = [",", argument]
