"""Draws SHOW statements, and queries as Grafana and TSBS write them."""

from influxql_data import LONG_OFFSET, LONG_STEP, ROWS, START
from influxql_statements import Statements, format_time


class Lists(Statements):
    """Draws SHOW statements."""

    def show(self):
        condition, limit = self.tag_condition(), self.pick(["", "", "", " LIMIT 1", " LIMIT 2 OFFSET 1",
                                                            " LIMIT 3 OFFSET 2", " LIMIT 0", " OFFSET 1"])
        source = self.pick(["", "", " FROM cpu", " FROM cpu, mem", " FROM /m/", " FROM nothing", " FROM long",
                            " FROM cpu, /o/, cpu", " FROM edge", " FROM short.cpu", ' FROM "disk io"'])
        on = self.pick(["", "", "", "", " ON x", " ON nodb", " ON y"])
        keys = self.pick(["= host", "IN (host, region)", "=~ /ho|pa/", "!= host", "!~ /ho/", "= zone", "= nothing",
                          'IN ("host", rack, zone)', '= "rack"'])
        counted = self.pick([" FROM cpu", " FROM cpu, mem", " FROM /m/"])
        by_name = self.pick(["=~ /m|d/", "= cpu", "!= cpu", "!~ /m/", '= "disk io"', "=~ /^$/"])
        return self.pick([
            f"SHOW MEASUREMENTS{on}{condition}{limit}", f"SHOW MEASUREMENTS{on} WITH MEASUREMENT {by_name}{condition}{limit}",
            f"SHOW TAG KEYS{on}{source}{condition}{limit}", f"SHOW FIELD KEYS{on}{source}{limit}",
            f"SHOW SERIES{on}{source}{condition}{limit}", f"SHOW TAG VALUES{on}{source} WITH KEY {keys}{condition}{limit}",
            f"SHOW TAG VALUES{on}{source} WITH KEY {keys}{condition}{limit}",
            self.pick(["SHOW DATABASES", "SHOW RETENTION POLICIES ON x", "SHOW RETENTION POLICIES",
                       "SHOW RETENTION POLICIES ON y", "SHOW USERS", "SHOW CONTINUOUS QUERIES",
                       "SHOW SUBSCRIPTIONS"]),
            # Of samples of several weeks the peer counts those of each week.
            f"SHOW SERIES EXACT CARDINALITY{on}{counted}{condition}", f"SHOW MEASUREMENT EXACT CARDINALITY{on}{source}",
            f"SHOW TAG KEY EXACT CARDINALITY{on}{source}{condition}",
            f"SHOW TAG VALUES EXACT CARDINALITY{on}{source} WITH KEY = host",
            f"SHOW FIELD KEY EXACT CARDINALITY{on}{source}"])

    def tag_condition(self):
        host = self.pick(["a", "b", "nowhere", "", "日本"])
        other = self.pick(["region = 'eu'", "zone =~ /x/", "path != '/'", "host =~ /[cd]/"])
        return self.pick([f" WHERE host = '{host}'", f" WHERE host != '{host}'", f" WHERE host =~ /{host}|c/",
                          f" WHERE host !~ /{host}|c/", f" WHERE host = '{host}' OR {other}",
                          f" WHERE (host != '{host}' OR {other}) AND host != 'd'", "", "", "",
                          f" WHERE host = '{host}' AND {other}"])


class Dashboards(Lists):
    """Draws queries of dashboards, and of TSBS."""

    def dashboard(self):
        return self.pick([self.panel, self.panel, self.panel_of_panels, self.variable, self.tsbs])()

    def time_filter(self, shape):
        """Writes `$timeFilter` of Grafana."""
        first, length = (LONG_OFFSET, ROWS * LONG_STEP) if shape.is_long else (0, 1_200)
        start = START + first + self.chance.randrange(length // 2)
        end = start + 60 + self.chance.randrange(length)
        return self.pick([f"time >= {start}123ms AND time <= {end}456ms", f"time >= {start}s and time <= {end}s",
                          f"time >= {start}000ms and time <= {end}000ms"])

    def tag_filter(self):
        host, other = self.pick(["a", "b", "c", "d", "x"]), self.pick(["a", "b", "c"])
        return self.pick([
            "", f"(\"host\" = '{host}') AND ", f"(\"host\"::tag = '{host}') AND ", f'("host" =~ /^{host}$/) AND ',
            f'("host" =~ /^({host}|{other})$/) AND ',
            f"(\"host\"::tag =~ /^(?:{host}|{other})$/ AND \"region\"::tag = 'eu') AND ",
            f'("host" !~ /^({host}|{other})$/ OR "region" =~ /us .*/) AND ',
            f"(\"host\" = '{host}' OR \"host\" = '{other}') AND ", f"(\"host\" = '{host}' OR \"region\" = 'eu') AND ",
            '("region" =~ /^$/) AND ', '("region" !~ /^$/ AND "host" =~ /.*/) AND ', f"(\"host\" != '{host}') AND "])

    def quoted_number(self, shape):
        return f'"{self.pick(shape.numbers)}"' + self.pick(["", "", "", "::field"])

    def quoted_source(self, shape):
        if set(shape.source) & set('/".,'):
            return shape.source
        return self.pick([f'"{shape.source}"', f'"{shape.source}"', f'"autogen"."{shape.source}"',
                          f'"x"."autogen"."{shape.source}"'])

    def panel(self):
        shape = self.shape()
        field = self.quoted_number(shape)
        name = self.pick(["mean", "max", "min", "sum", "count", "last", "first", "median", "stddev"])
        call = self.pick([
            f"non_negative_derivative({name}({field}), 1s)", f'derivative({name}({field}), 10s) AS "rate"',
            f"cumulative_sum({name}({field}))", f"moving_average({name}({field}), 5)", f"difference({name}({field}))",
            f"{name}({field}) / 100", f'{name}({field}) * 8 AS "a b"', f'{name}({field}) AS "x", count({field}) AS "y"',
            f'percentile("{self.pick(shape.floats or shape.numbers)}", 95)', f"spread({field})", f"{name}({field})",
            f"{name}({field})"])
        groups = self.pick(["", "", ', "host"', ", *", ", /ho/", ', "host"::tag'])
        fill = self.pick(["", " fill(null)", " fill(null)", " fill(none)", " fill(previous)", " fill(linear)", " fill(0)"])
        order = self.pick(["", "", " ORDER BY time ASC", " ORDER BY time DESC"])
        pages = [" LIMIT 3 OFFSET 1", " SLIMIT 1", " LIMIT 2 SLIMIT 2"]
        page = self.pick(["", "", "", " LIMIT 3"] + ([] if shape.is_long or shape.is_edge else pages))
        zone = self.pick(["", "", "", " tz('Europe/Berlin')", " tz('America/New_York')"])
        return (f"SELECT {call} FROM {self.quoted_source(shape)} WHERE {self.tag_filter()}{self.time_filter(shape)} "
                f"GROUP BY {self.interval(shape)}{groups}{fill}{order}{page}{zone}")

    def panel_of_panels(self):
        shape = self.shape()
        field, source = self.quoted_number(shape), self.quoted_source(shape)
        inner = self.pick(["mean", "max", "min", "sum", "count"])
        outer = self.pick(["mean", "max", "sum", "count"])
        tags, times = self.tag_filter(), self.time_filter(shape)
        interval, fill = self.interval(shape), self.pick(["", " fill(null)", " fill(none)", " fill(0)"])
        return self.pick([
            f'SELECT {outer}("v") FROM (SELECT {inner}({field}) AS "v" FROM {source} WHERE {tags}{times} GROUP BY '
            f'{interval}, "host" fill(none)) WHERE {times} GROUP BY {interval}{fill}',
            f'SELECT {outer}("v") / 2 AS "half" FROM (SELECT {inner}({field}) AS "v" FROM {source} WHERE {tags}{times} '
            f'GROUP BY {interval}, "host" fill(none)) GROUP BY "host"',
            f'SELECT {outer}("d") FROM (SELECT non_negative_derivative({inner}({field}), 1s) AS "d" FROM {source} WHERE '
            f'{tags}{times} GROUP BY {interval}, "host" fill(none)) WHERE {times} GROUP BY {interval}{fill}'])

    def variable(self):
        """Draws the query of a dashboard's variable."""
        host = self.pick(["a", "b", "c"])
        return self.pick([
            'SHOW TAG VALUES FROM "cpu" WITH KEY = "host"', f'SHOW TAG VALUES WITH KEY = "host" WHERE "host" =~ /^{host}/',
            f"SHOW TAG VALUES FROM \"cpu\" WITH KEY = \"region\" WHERE \"host\" = '{host}'", 'SHOW TAG KEYS FROM "even"',
            'SHOW FIELD KEYS FROM "autogen"."mem"', "SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)E/ LIMIT 100",
            f"SHOW MEASUREMENTS WHERE \"host\" = '{host}' LIMIT 2",
            f'SHOW SERIES FROM "cpu" WHERE "host" =~ /^({host}|d)$/'])

    def tsbs(self):
        start = START + self.chance.randrange(900)
        end = start + 60 + self.chance.randrange(900)
        times = f"time >= '{format_time(start)}Z' and time < '{format_time(end)}Z'"
        hosts = self.pick(["(host = 'a')", "(host = 'a' or host = 'b')",
                           "(host = 'a' or host = 'b' or host = 'c' or host = 'd' or host = 'x')"])
        columns = self.pick(["max(usage)", "max(usage), max(idle)", "max(usage), max(idle), max(n)",
                             "max(usage), min(usage), max(n)", "mean(n), mean(usage), max(nothing)",
                             "count(up), sum(n), first(usage), last(idle)"])
        even = columns.replace("usage", "f").replace("idle", "i").replace("(n)", "(i)").replace("up", "b")
        return self.pick([
            f"SELECT {columns} from cpu where {hosts} and {times} group by time(1m)",
            f"SELECT {columns} from cpu where {times} group by time(1m),host",
            f"SELECT max(usage) from cpu WHERE time < '{format_time(end)}Z' group by time(1m) limit 5",
            f"SELECT * from cpu where usage > 90.0 and {hosts} and {times}",
            f"SELECT * from cpu where usage > 90.0 and {times}",
            'SELECT * from cpu group by "host" order by time desc limit 1',
            f"SELECT {even} from even where {hosts} and {times} group by time(1m)",
            f"SELECT {columns} from cpu where {hosts} and {times}"])
