//! Statements that list, change or are wrong.

use crate::generator::Queries;

/// Statements that are none, or that no database has an answer to.
const WRONG: &[&str] = &[
    "SELECT",
    "SELECT * FROM",
    "SELECT usage FROM cpu WHERE",
    "SELECT usage, mean(idle) FROM cpu",
    "SELECT mean(usage) FROM cpu GROUP BY time(0x)",
    "SELECT max(usage), min(idle), host FROM cpu",
    "SELECT derivative(mean(usage)) FROM cpu",
    "SELECT derivative(usage) FROM cpu GROUP BY time(1m)",
    "SELECT usage FROM cpu GROUP BY time(1m)",
    "SELECT foo(usage) FROM cpu",
    "SELECT percentile(usage) FROM cpu",
    "SELECT percentile(usage, 'a') FROM cpu",
    "SELECT top(usage) FROM cpu",
    "SELECT top(usage, 0) FROM cpu",
    "SELECT top(usage, 5), bottom(usage, 5) FROM cpu",
    "SELECT top(usage, 5) FROM cpu LIMIT 2",
    "SELECT distinct(usage), n FROM cpu",
    "SELECT distinct(usage), max(n) FROM cpu",
    "SELECT count(distinct) FROM cpu",
    "SELECT usage FROM cpu fill(none)",
    "SELECT usage FROM cpu fill(linear)",
    "SELECT 1 + 2 FROM cpu",
    "SELECT 'a' FROM cpu",
    "SELECT mean(usage + 1) FROM cpu",
    "SELECT usage FROM cpu ORDER BY usage",
    "SELECT usage FROM cpu LIMIT x",
    "SELECT usage FROM cpu LIMIT -1",
    "SELECT usage FROM cpu WHERE time > 'x'",
    "SELECT usage FROM cpu WHERE time != 5",
    "SELECT mean(usage) FROM cpu GROUP BY foo(1m)",
    "SELECT mean(usage) FROM cpu GROUP BY time(host)",
    "SELECT mean(usage) FROM cpu GROUP BY time(1m), time(2m)",
    "SELECT moving_average(usage, 1) FROM cpu",
    "SELECT moving_average(usage, 2.5) FROM cpu",
    "SELECT elapsed(usage, 5) FROM cpu",
    "SELECT integral(usage, 5) FROM cpu",
    "SELECT sample(usage, 0) FROM cpu",
    "SELECT usage FROM cpu GROUP host",
    "SELECT usage FROM cpu tz('Nowhere/Land')",
    "SELECT time FROM cpu",
    "SELECT usage > 5 FROM cpu",
    "SELECT mean(*) + 1 FROM cpu",
    "SHOW",
    "SHOW TAG",
    "SHOW TAG VALUES",
    "SHOW TAG VALUES WITH KEY",
    "SHOW FIELD",
    "CREATE",
    "CREATE DATABASE",
    "DROP",
    "SELECT usage FROM nodb..cpu",
    "SELECT usage FROM cpu; SELECT",
    "SELECT \"usage FROM cpu",
    "SELECT usage FROM cpu WHERE host = 'a",
    "SELECT usage FROM cpu WHERE host =~ 'a'",
    "SELECT usage FROM a.b.c.d",
    "SELECT usage FROM cpu WHERE usage",
    "SELECT usage FROM cpu WHERE now() > 5",
    "SELECT abs(usage, 2) FROM cpu",
    "SELECT pow(usage) FROM cpu",
    "SELECT cumulative_sum(usage, 1) FROM cpu",
    "SELECT max(max(usage)) FROM cpu",
    "SELECT usage FROM (SELECT usage FROM cpu ORDER BY time DESC)",
    "SELECT mean(usage) FROM cpu GROUP BY time(1m) fill(what)",
    "SELECT mean(usage) FROM cpu GROUP BY time(1m) fill(1, 2)",
    "SELECT usage FROM cpu WHERE time > '2020-13-01'",
    "SELECT usage FROM cpu WHERE time > '2020-09-13T99:00:00Z'",
    "SELECT usage FROM cpu WHERE time > usage",
    "SELECT usage FROM cpu WHERE time =~ /a/",
    "SELECT usage::what FROM cpu",
    "SELECT derivative(usage, 0s) FROM cpu",
    "SELECT difference(usage, 1s) FROM cpu",
    "SELECT elapsed(mean(usage)) FROM cpu",
    "SELECT top(usage, host) FROM cpu",
    "SELECT bottom(usage, host, -1) FROM cpu",
    "SELECT sample(usage, 1.5) FROM cpu",
    "SELECT mode(usage, 2) FROM cpu",
    "SELECT count(distinct(usage, n)) FROM cpu",
    "SELECT distinct() FROM cpu",
    "SELECT first(*), n FROM cpu",
    "SELECT sum(/u/) * 2 FROM cpu",
    "SELECT * + 1 FROM cpu",
    "SELECT usage FROM cpu; ; SHOW",
    "SELECT usage FROM cpu GROUP BY host, time",
    "SELECT usage FROM cpu GROUP BY usage + 1",
    "SELECT mean(usage) FROM cpu GROUP BY time(1m, host)",
    "SELECT mean(usage) FROM cpu GROUP BY time(1m, 5)",
    "SELECT mean(usage) FROM cpu GROUP BY time(1m, now(), 1s)",
    "SELECT usage AS FROM cpu",
    "SELECT usage, FROM cpu",
    "SELECT (usage FROM cpu",
    "SELECT usage FROM cpu WHERE (host = 'a'",
    "SELECT usage FROM (SELECT usage FROM cpu",
    "SELECT usage FROM cpu SLIMIT -1",
    "SELECT usage FROM cpu ORDER BY time DESC, host",
    "SELECT usage FROM cpu ORDER BY",
    "SELECT usage FROM cpu tz(UTC)",
    "DELETE",
    "DELETE FROM y..cpu",
    "DELETE FROM y.autogen.cpu",
    "DELETE FROM cpu WHERE",
    "DROP SERIES",
    "DROP MEASUREMENT",
    "SHOW TAG VALUES WITH KEY > host",
    "SHOW TAG VALUES WITH KEY IN host",
    "SHOW SERIES WHERE usage > 1",
    "SHOW MEASUREMENTS WITH MEASUREMENT > cpu",
    "SHOW RETENTION POLICIES ON nodb",
    "EXPLAIN SHOW DATABASES",
];

impl Queries {
    pub fn show(&mut self) -> String {
        let host = self.pick(&["a", "b", "nowhere", ""]);
        let other = self.pick(&["region = 'eu'", "zone =~ /x/", "path != '/'", "host =~ /[cd]/"]);
        let condition = match self.random.below(9) {
            0 => format!(" WHERE host = '{host}'"),
            1 => format!(" WHERE host != '{host}'"),
            2 => format!(" WHERE host =~ /{host}|c/"),
            3 => format!(" WHERE host !~ /{host}|c/"),
            4 => format!(" WHERE host = '{host}' OR {other}"),
            5 => format!(" WHERE (host != '{host}' OR {other}) AND host != 'd'"),
            _ => String::new(),
        };
        let froms = [
            "",
            "",
            " FROM cpu",
            " FROM cpu, mem",
            " FROM /m/",
            " FROM nothing",
            " FROM long",
            " FROM cpu, /o/, cpu",
        ];
        let from = self.pick(&froms);
        let limits = ["", "", "", " LIMIT 1", " LIMIT 2 OFFSET 1", " LIMIT 3 OFFSET 2"];
        let limit = self.pick(&limits);
        let on = self.pick(&["", "", "", " ON x", " ON nodb"]);
        match self.random.below(14) {
            0 => format!("SHOW MEASUREMENTS{on}{condition}{limit}"),
            1 => format!("SHOW MEASUREMENTS{on} WITH MEASUREMENT =~ /m|d/{condition}{limit}"),
            2 => format!("SHOW MEASUREMENTS{on} WITH MEASUREMENT = cpu{condition}{limit}"),
            3 => format!("SHOW TAG KEYS{on}{from}{condition}{limit}"),
            4 => format!("SHOW FIELD KEYS{on}{from}{limit}"),
            5 => format!("SHOW SERIES{on}{from}{condition}{limit}"),
            6 => format!("SHOW TAG VALUES{on}{from} WITH KEY = host{condition}{limit}"),
            7 => format!("SHOW TAG VALUES{on}{from} WITH KEY IN (host, region){condition}{limit}"),
            8 => self.pick(&["SHOW DATABASES", "SHOW RETENTION POLICIES ON x"]).to_string(),
            9 => {
                // Of what goes on for weeks InfluxDB counts each week's.
                let from = self.pick(&[" FROM cpu", " FROM cpu, mem", " FROM /m/"]);
                format!("SHOW SERIES EXACT CARDINALITY{on}{from}{condition}")
            }
            10 => format!("SHOW MEASUREMENT EXACT CARDINALITY{on}{from}"),
            11 => format!("SHOW TAG KEY EXACT CARDINALITY{on}{from}{condition}"),
            // A tag that a measurement has not is no reason to be counted, though to be listed.
            12 if condition.contains(" OR ") => {
                format!("SHOW TAG VALUES{on}{from} WITH KEY = host")
            }
            12 => format!("SHOW TAG VALUES EXACT CARDINALITY{on}{from} WITH KEY = host{condition}"),
            _ => {
                let filter = self.pick(&["=~ /ho|pa/", "!= host", "!~ /ho/", "= zone"]);
                format!("SHOW TAG VALUES{on}{from} WITH KEY {filter}{condition}{limit}")
            }
        }
    }

    /// A statement that deletes something, or writes what it selects.
    pub fn change(&mut self) -> String {
        match self.random.below(4) {
            0 => self.selection_into(),
            _ => self.deletion(),
        }
    }

    fn selection_into(&mut self) -> String {
        let start = crate::lines::START_SECONDS + self.random.below(900) as i64;
        let time = format!("time >= {start}s AND time < {}s", start + 300);
        let from = self.pick(&["cpu", "mem", "\"disk io\"", "/c|m/", "nothing"]);
        match self.random.below(9) {
            6 => {
                let groups = self.pick(&["host", "region", "*", "host, region"]);
                let tags = self.pick(&["host", "host, region", "region", "host, host"]);
                format!(
                    "SELECT top(usage, {tags}, 2) INTO copied FROM {from} WHERE {time} GROUP BY {groups}"
                )
            }
            7 => {
                format!("SELECT bottom(n, 2), host INTO copied FROM {from} WHERE {time} GROUP BY *")
            }
            8 => {
                let name = self.pick(&["\" b\"", "\"#b\"", "\"t\t\"", "\"n\\nb\""]);
                format!("SELECT usage, n INTO {name} FROM {from} WHERE {time} GROUP BY host")
            }
            0 => format!("SELECT * INTO copied FROM {from} WHERE {time}"),
            1 => format!("SELECT * INTO copied FROM {from} WHERE {time} GROUP BY *"),
            2 => format!(
                "SELECT mean(usage) AS m, count(n), last(up) INTO copied FROM {from} WHERE {time} GROUP \
                 BY time(1m), host"
            ),
            3 => format!("SELECT top(usage, host, 2) INTO copied FROM {from} WHERE {time}"),
            4 => format!("SELECT max(n) * 2 AS twice, n / 3 INTO copied FROM {from} WHERE {time}"),
            _ => format!(
                "SELECT usage, up INTO \"co pied,\" FROM {from} WHERE {time} GROUP BY region"
            ),
        }
    }

    fn deletion(&mut self) -> String {
        let host = self.pick(&["a", "b", "c", "d", "nowhere"]);
        let from =
            self.pick(&[" FROM cpu", " FROM mem", " FROM /c|m/", " FROM long", " FROM nothing"]);
        let condition = match self.random.below(6) {
            0 => format!(" host = '{host}'"),
            1 => format!(" host != '{host}'"),
            2 => format!(" host =~ /{host}|c/"),
            3 => format!(" (host = '{host}' OR region = 'eu')"),
            4 => " region = ''".to_string(),
            _ => format!(" host !~ /^{host}/"),
        };
        let start = crate::lines::START_SECONDS + self.random.below(1200) as i64;
        let time = match self.random.below(3) {
            0 => format!(" time >= {start}s"),
            1 => format!(" time < {start}s"),
            _ => format!(" time >= {start}s AND time < {}s", start + 300),
        };
        match self.random.below(9) {
            0 => format!("DELETE{from}"),
            1 => format!("DELETE{from} WHERE{condition}"),
            2 | 3 => format!("DELETE{from} WHERE{time}"),
            4 | 5 => format!("DELETE{from} WHERE{condition} AND{time}"),
            6 => format!("DELETE WHERE{condition}"),
            7 => format!("DROP SERIES{from} WHERE{condition}"),
            _ => format!("DROP MEASUREMENT {}", self.pick(&["cpu", "mem", "long", "cpu_usage"])),
        }
    }

    /// A statement that is none.
    pub fn wrong(&mut self) -> String {
        self.pick(WRONG).to_string()
    }
}
