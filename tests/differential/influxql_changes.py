"""Draws writes of line protocol, and statements that delete or copy points."""

import dictionary
from influxql_data import BY_NAME, SECOND, START, Line, draw_value, escape, quote
from influxql_statements import Statements

NAMES = ["m", "m", "m", "cpu", "a b", "a,b", "a=b", "日本", "select", "time", "m.n", "m:n", "é", '"m"', "a\\b", "_", "0", "x" * 60]
KEYS = ["host", "host", "region", "a b", "a=b", "a,b", "é", "db", "le", "job", "instance", "_field", "name", "1", "__table__"]
FIELDS = ["v", "v", "v", "w", "a b", "a=b", "value", "é", "host", "time", "db", '"q"', "_x", "1"]
# Lines of one measurement have one type in each field: the peer refuses others, and Quipu does not.
TYPES = {"v": 0, "w": 2, "a b": 3, "a=b": 4, "value": 0, "é": 2, "host": 0, "time": 0, "db": 5, '"q"': 4, "_x": 5, "1": 3}
BAD_LINES = [
    "m", "m ", "m v", "m v=", "m v=1 x", "m v=1 1 1", "m,host v=1", "m,host= v=1", "m,=a v=1", "m,host=a,host=b v=1 1", " v=1",
    ",host=a v=1", "m v=1,", "m v=1,w", "m v=1,,w=2", "m =1", "m v==1", "m v=1x", "m v=1ii", "m k=i", "m v=1.5i", "m v=1e5i", "m v=yes",
    "m v=truee", "m v=TruE", "m v=NaN", "m v=nan", "m v=Inf", "m v=-inf", "m v=+inf", "m v=1e400", "m v=-1e400", "m v=0x10", "m v=1_000",
    "m v=+1", "m v=--1", "m v=1.", "m v=.", "m v=-", "m v=e5", "m v=1e", "m k=9223372036854775808i", "m k=-9223372036854775809i",
    "m k=18446744073709551615u", "m k=-1u", 'm s="a', 'm v=a"', 'm s="a"b', 'm s="a""b"', "m v='a'", "m v=1 9223372036854775807",
    "m v=1 9223372036854775808", "m v=1 -9223372036854775808", "m v=1 1.5", "m v=1 1e9", "m v=1 -", "m v=1 0x5", "m v=1 1s", "m v=1 ",
    "m  v=1", "m v=1  5", "m\tv=1", "m v=1\t5", "m,host=a  v=1 5", "m, host=a v=1", "m,host =a v=1", "m,host=a b v=1", "m v=1, w=2",
    "m v = 1", "#", "# m v=1", " # m v=1", "m,,host=a v=1", "m,host=a, v=1", "m,host==a v=1", "m\\ v=1", "m\\,host=a v=1 7", "m,host=a\\ v=1",
    "m,host=a\\ b v=1 7", "m v\\=1", "m b=t", "m b=F", "m b=T,b=f", "m f:text=1 7", "m v=1,v=2 7", "m time=1", "m time=1,v=1 7", "m,time=a v=1 7",
    "\u00a0m v=1", "m\u2003v=1", "m v=1\u00a0", "m s=\"\u0001\"", "m v=١", "m v=１", "\\", "\\\\ v=1 7", "m,a\\=b=c v=1 7", "m,a=b\\=c v=1 7",
    "m,a=b=c v=1 7", '"m" v=1 7', '"m x" v=1 7', 'm,"h o"=a v=1 7', 'm,host="a b" v=1 7', 'm "v w"=1 7', 'm s="a b" 7', 'm s="a,b" 7', 'm s="a=b" 7',
    'm s="a\\"b" 7', 'm s="a\\\\" 7', 'm s="a\\n" 7', 'm s="a\\,b" 7', 'm s="" 7', 'm s="a\nb" 7', "m v=1 7\r", "m,__name__=a v=1 7",
    "m v=-0 7", "m k=-0i 7", "m v=1e-400 7", "m v=5e-324 7", "m v=0.1e1 7", "m v=1E5 7", "m v=1e+05 7", "m k=00001i 7", "m v=-007 7", "m v=1 -1",
    "m v=1 +7", "m v=1 007", "m v=1 9223372036854775806", "m v=1 -9223372036854775806"]
PRECISIONS = ["ns", "n", "u", "ms", "s", "m", "h"]
AFTER = ("SELECT * FROM /.*/; SHOW FIELD KEYS; SHOW SERIES; SHOW TAG KEYS; SHOW MEASUREMENTS; "
         "SELECT count(*), last(*) FROM /.*/ GROUP BY *")


class Changes(Statements):
    """Draws bodies of line protocol, and statements that change what is stored."""

    # Writes.

    def body(self):
        """Draws lines, of which half of the bodies have bad ones."""
        is_bad = self.is_true(50)
        lines = []
        for _ in range(self.chance.choice([1, 1, 2, 3, 5])):
            line = self.line()
            if is_bad:
                line = self.pick(BAD_LINES) if self.is_true(50) else self.misspell(line)
            lines.append(line)
        return lines

    def line(self):
        tags = {self.pick(KEYS): self.pick(["a", "b", "a b", "a,b", "a=b", "日本", '"', "'", "x\\y", "0", "."])
                for _ in range(self.chance.randrange(3))}
        fields = {name: self.value(name) for name in self.chance.sample(FIELDS, self.chance.randint(1, 3))}
        time = self.pick([0, 1, 7, -1, 1_600_000_000, 1_600_000_000 * SECOND, self.pick(dictionary.TIMES), self.chance.randrange(10**6)])
        text = str(Line(self.pick(NAMES), tags, {}, time))
        return text.replace("  ", " " + ",".join(f"{escape(name)}={value}" for name, value in fields.items()) + " ", 1)

    def value(self, name):
        draws = [lambda: repr(dictionary.draw_float(self.chance)), lambda: repr(dictionary.draw_float(self.chance)),
                 lambda: f"{dictionary.draw_integer(self.chance)}i", lambda: self.pick(["true", "false", "t", "F"]),
                 lambda: quote(dictionary.draw_string(self.chance)), lambda: str(self.chance.randint(-9, 9))]
        return draws[TYPES[name]]()

    def misspell(self, line):
        letters = list(line)
        for _ in range(self.chance.randint(1, 2)):
            at = self.chance.randrange(len(letters))
            letters[at] = self.pick(["", "", letters[at] * 2, " ", ",", "=", '"', "\\", "i", "\n", "x", "-", ".", "\t", "é"])
            letters = letters or [" "]
        return "".join(letters)

    def write_parameters(self):
        parameters = {}
        if self.is_true(40):
            parameters["precision"] = self.pick(PRECISIONS)
        if self.is_true(4):
            parameters["precision"] = self.pick(["", "us", "x", "S", "min", "d"])
        if self.is_true(6):
            parameters["rp"] = self.pick(["autogen", "none", ""])
        if self.is_true(4):
            parameters["consistency"] = self.pick(["one", "all", "what"])
        return parameters

    # Statements that change.

    def points(self):
        """Draws some lines of a few series."""
        lines = []
        for name in self.chance.sample(["cpu", "mem", "even", "disk io"], 2):
            measurement = BY_NAME[name]
            for tags in measurement.series:
                for row in range(self.chance.randint(1, 3)):
                    fields = {field: draw_value(self.chance, kind) for field, kind in measurement.fields.items()
                              if self.is_true(70)}
                    if fields:
                        lines.append(str(Line(name, tags, fields, (START + 100 * row) * SECOND + len(lines))))
        return lines

    def change(self):
        return self.pick([self.selection_into, self.selection_into, self.deletion, self.deletion, self.policy])()

    def selection_into(self):
        start = START + self.chance.randrange(250) - 20
        time = f"time >= {start}s AND time < {start + 200}s"
        source = self.pick(["cpu", "mem", '"disk io"', "even", "/c|m/", "nothing"])
        target = self.pick(["copied", "copied", '"co pied,"', "autogen.copied", '"t\t"', '" b"', '"#b"', '"n\\nb"', "DB.autogen.copied",
                            ":MEASUREMENT", "DB..copied", "nodb..copied", "DB.nopolicy.copied", "autogen.:MEASUREMENT"])
        if target.endswith(":MEASUREMENT"):
            target = f"DB.other.:MEASUREMENT"
        tags = self.pick(["host", "host, region", "region", "host, host"])
        fields, groups = self.pick([
            ("*", ""), ("*", " GROUP BY *"), ("mean(usage) AS m, count(n), last(up)", " GROUP BY time(1m), host"),
            ("top(usage, host, 2)", ""), ("max(n) * 2 AS twice, n / 3", ""), ("max(n) * 2 AS twice", ""), ("n / 3, usage", " GROUP BY region"),
            ("usage, up", " GROUP BY region"), (f"top(usage, {tags}, 2)", f" GROUP BY {self.pick(['host', 'region', '*', 'host, region'])}"),
            ("bottom(n, 2), host", " GROUP BY *"), ("usage, n", " GROUP BY host"), ("s, b", " GROUP BY *"), ("count(*)", " GROUP BY time(1m)"),
            ("mean(f) AS f", " GROUP BY time(1m) fill(0)"), ("distinct(s)", ""), ("i AS time", ""), ("nothing", "")])
        return f"SELECT {fields} INTO {target} FROM {source} WHERE {time}{groups}"

    def deletion(self):
        host = self.pick(["a", "b", "c", "d", "nowhere"])
        source = self.pick([" FROM cpu", " FROM mem", " FROM /c|m/", " FROM even", " FROM nothing", " FROM autogen.cpu", " FROM cpu, mem"])
        condition = self.pick([f" host = '{host}'", f" host != '{host}'", f" host =~ /{host}|c/", f" (host = '{host}' OR region = 'eu')",
                               " region = ''", f" host !~ /^{host}/", " usage > 1", " n = 1"])
        start = START + self.chance.randrange(400) - 50
        time = self.pick([f" time >= {start}s", f" time < {start}s", f" time >= {start}s AND time < {start + 100}s", f" time = {START}s",
                          " time < now()", " time > now()"])
        return self.pick([f"DELETE{source}", f"DELETE{source} WHERE{condition}", f"DELETE{source} WHERE{time}", f"DELETE WHERE{time}",
                          f"DELETE{source} WHERE{condition} AND{time}", f"DELETE{source} WHERE{condition} AND{time}",
                          f"DELETE WHERE{condition}", f"DROP SERIES{source} WHERE{condition}", f"DROP SERIES{source}",
                          f"DROP SERIES{source} WHERE{time}", f"DROP SERIES WHERE{condition}",
                          f"DROP MEASUREMENT {self.pick(['cpu', 'mem', 'even', 'nothing', 'cpu_usage', chr(34) + 'disk io' + chr(34)])}"])

    def policy(self):
        """Draws a statement of retention policies; samples are of 2020, and no duration deletes them."""
        name = self.pick(["p", "p", "autogen", "other", '"a b"', "nothing"])
        duration = self.pick(["INF", "INF", "0s", "1m", "30m", "200000d", "99999999w", "-1d", "x", "5"])
        shard = self.pick(["", "", " SHARD DURATION 1h", " SHARD DURATION 1w", " SHARD DURATION 1m", " SHARD DURATION 0s"])
        replication = self.pick([" REPLICATION 1", " REPLICATION 1", " REPLICATION 0", " REPLICATION 2", " REPLICATION x", ""])
        default = self.pick(["", "", " DEFAULT"])
        on = self.pick(["DB", "DB", "DB", "nodb"])
        return self.pick([f"CREATE RETENTION POLICY {name} ON {on} DURATION {duration}{replication}{shard}{default}",
                          f"CREATE RETENTION POLICY {name} ON {on} DURATION {duration}{replication}{shard}{default}",
                          f"ALTER RETENTION POLICY {name} ON {on} DURATION {duration}{shard}{default}",
                          f"ALTER RETENTION POLICY {name} ON {on}{replication}{default}",
                          f"DROP RETENTION POLICY {name} ON {on}", f"SHOW RETENTION POLICIES ON {on}",
                          f"CREATE DATABASE {self.pick(['DB', chr(39), chr(34) * 2])}"])
