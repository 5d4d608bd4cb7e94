//! Lines and queries for a comparison with InfluxDB, from a seed.

use random::Random;

/// Seconds since the epoch of the first line.
pub const START_SECONDS: i64 = 1_600_000_000;
const SECOND: i64 = 1_000_000_000;
/// Rows of one series.
const ROWS: i64 = 60;

/// A line's field.
pub struct FieldValue {
    pub name: &'static str,
    /// As line protocol writes it.
    pub text: String,
}

/// A line of line protocol.
pub struct Line {
    pub measurement: &'static str,
    pub tags: Vec<(&'static str, &'static str)>,
    pub fields: Vec<FieldValue>,
    /// Nanoseconds since the epoch.
    pub time: i64,
}

impl Line {
    /// As it is sent.
    pub fn text(&self) -> String {
        let mut out = self.measurement.replace(' ', "\\ ");
        for (name, value) in &self.tags {
            out += &format!(",{name}={}", value.replace(' ', "\\ "));
        }
        for (idx, field) in self.fields.iter().enumerate() {
            let before = if idx == 0 { ' ' } else { ',' };
            out += &format!("{before}{}={}", field.name, field.text);
        }
        format!("{out} {}\n", self.time)
    }
}

/// A measurement's series and fields.
struct Kind {
    measurement: &'static str,
    series: &'static [&'static [(&'static str, &'static str)]],
    fields: &'static [(&'static str, char)],
}

const KINDS: &[Kind] = &[
    Kind {
        measurement: "cpu",
        series: &[
            &[("host", "a"), ("region", "eu")],
            &[("host", "b"), ("region", "eu")],
            &[("host", "c"), ("region", "us west")],
            &[("host", "d")],
        ],
        fields: &[("usage", 'f'), ("idle", 'f'), ("n", 'i'), ("up", 'b')],
    },
    Kind {
        measurement: "mem",
        series: &[&[("host", "a")], &[("host", "c")]],
        fields: &[("used", 'i'), ("free", 'f'), ("n", 'f')],
    },
    Kind {
        measurement: "disk io",
        series: &[&[("path", "/"), ("host", "b")], &[("path", "/var lib")]],
        fields: &[("value", 'f')],
    },
];

/// All lines.
pub fn lines(random: &mut Random) -> Vec<Line> {
    let mut out = Vec::new();
    let mut series_idx = 0;
    for kind in KINDS {
        for tags in kind.series {
            series_idx += 1;
            for row in 0..ROWS {
                // No two series share a time: which of them comes first nobody promises.
                let jitter = random.below(4) as i64 * SECOND;
                let time =
                    START_SECONDS * SECOND + row * 20 * SECOND + jitter + series_idx * 37_000_000;
                let mut fields = Vec::new();
                for (name, kind) in kind.fields {
                    if random.below(10) < 8 {
                        fields.push(FieldValue { name, text: value(random, *kind) });
                    }
                }
                if !fields.is_empty() {
                    let (measurement, tags) = (kind.measurement, tags.to_vec());
                    out.push(Line { measurement, tags, fields, time });
                }
            }
        }
    }
    out
}

fn value(random: &mut Random, kind: char) -> String {
    match kind {
        'i' => format!("{}i", random.below(40) as i64 - 10),
        'b' => ["true", "false"][random.index(2)].to_string(),
        _ => format!("{}", random.below(4000) as f64 / 8.0 - 100.0),
    }
}

/// A measurement's fields and tags as queries name them.
struct Shape {
    from: String,
    numbers: Vec<&'static str>,
    /// A field whose values are seldom equal: of equal ones `percentile` takes any.
    float: &'static str,
    booleans: Vec<&'static str>,
    tags: Vec<&'static str>,
}

/// Makes queries.
pub struct Queries {
    pub random: Random,
}

impl Queries {
    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.random.index(list.len())]
    }

    fn shape(&mut self) -> Shape {
        let shape = |from: &str,
                     numbers: &[&'static str],
                     booleans: &[&'static str],
                     tags: &[&'static str]| Shape {
            from: from.to_string(),
            numbers: numbers.to_vec(),
            float: numbers
                .iter()
                .find(|name| ["usage", "free", "value"].contains(name))
                .unwrap_or(&"usage"),
            booleans: booleans.to_vec(),
            tags: tags.to_vec(),
        };
        match self.random.below(20) {
            0 => shape("/c|m/", &["n", "usage", "used"], &["up"], &["host"]),
            1 => shape("cpu, mem", &["n", "usage", "free"], &["up"], &["host", "region"]),
            2 | 3 => shape("\"disk io\"", &["value"], &[], &["path", "host"]),
            4..=6 => shape("mem", &["used", "free", "n"], &[], &["host"]),
            7 => shape("x.autogen.cpu", &["usage", "n"], &["up"], &["host", "region"]),
            _ => shape("cpu", &["usage", "idle", "n"], &["up"], &["host", "region"]),
        }
    }

    /// A statement.
    pub fn next(&mut self) -> String {
        match self.random.below(100) {
            0..=5 => self.show(),
            6..=9 => self.wrong(),
            10..=16 => self.nested(),
            17..=36 => self.raw(),
            37..=54 => self.transformation(),
            _ => self.aggregate(),
        }
    }

    fn show(&mut self) -> String {
        let host = self.pick(&["a", "b", "nowhere"]);
        let condition = match self.random.below(4) {
            0 => format!(" WHERE host = '{host}'"),
            1 => format!(" WHERE host != '{host}'"),
            2 => format!(" WHERE host =~ /{host}|c/"),
            _ => String::new(),
        };
        let from = self.pick(&["", " FROM cpu", " FROM cpu, mem", " FROM /m/", " FROM nothing"]);
        let limit = self.pick(&["", "", " LIMIT 1", " LIMIT 2 OFFSET 1"]);
        match self.random.below(8) {
            0 => format!("SHOW MEASUREMENTS{condition}{limit}"),
            1 => format!("SHOW MEASUREMENTS WITH MEASUREMENT =~ /m|d/{condition}{limit}"),
            2 => format!("SHOW TAG KEYS{from}{condition}{limit}"),
            3 => format!("SHOW FIELD KEYS{from}{limit}"),
            4 => format!("SHOW SERIES{from}{condition}{limit}"),
            5 => format!("SHOW TAG VALUES{from} WITH KEY = host{condition}{limit}"),
            6 => format!("SHOW TAG VALUES{from} WITH KEY IN (host, region){condition}{limit}"),
            _ => {
                let filter = self.pick(&["=~ /ho|pa/", "!= host", "!~ /ho/"]);
                format!("SHOW TAG VALUES{from} WITH KEY {filter}{condition}{limit}")
            }
        }
    }

    fn wrong(&mut self) -> String {
        let texts = [
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
        ];
        self.pick(&texts).to_string()
    }

    fn times(&mut self, always: bool) -> String {
        let at = |offset: i64| START_SECONDS + offset;
        let start = self.random.below(900) as i64 - 100;
        let end = start + 60 + self.random.below(700) as i64;
        let both = match self.random.below(4) {
            0 => format!("time >= {}s AND time < {}s", at(start), at(end)),
            1 => format!("time > {}000ms AND time <= {}000ms", at(start), at(end)),
            2 => {
                // 2020-09-13T12:26:40Z is the start.
                let minute = 27 + self.random.below(10);
                let until = minute + 1 + self.random.below(8);
                format!(
                    "time >= '2020-09-13T12:{minute}:00Z' AND time < '2020-09-13 12:{until}:30'"
                )
            }
            _ => format!("time >= {}000000000 AND time <= {}000000001", at(start), at(end)),
        };
        match self.random.below(10) {
            0 if !always => String::new(),
            1 if !always => format!("time >= {}s", at(start)),
            2 if !always => format!("time < {}s", at(end)),
            _ => both,
        }
    }

    fn condition_of(&mut self, shape: &Shape, depth: u64) -> String {
        let host = self.pick(&["a", "b", "c", "d", "x", ""]);
        let tag = self.pick(&shape.tags);
        let number = self.pick(&shape.numbers);
        let bound = self.random.below(400) as f64 / 2.0 - 50.0;
        let op = self.pick(&["<", "<=", ">", ">=", "=", "!="]);
        match self.random.below(if depth < 2 { 12 } else { 9 }) {
            0 => format!("{tag} = '{host}'"),
            1 => format!("{tag} != '{host}'"),
            2 => format!("{tag} =~ /^({host}|eu)$/"),
            3 => format!("{tag} =~ /{host}/"),
            4 => format!("{tag} !~ /^[{host}u]/"),
            5 => format!("{number} {op} {bound:.1}"),
            6 => format!("{number} {op} {}", bound as i64),
            7 => match shape.booleans.first() {
                Some(boolean) => format!("{boolean} = true"),
                None => format!("{number} + 1 > {bound:.1}"),
            },
            8 => format!("{bound:.1} < {number}"),
            9 => {
                let (a, b) =
                    (self.condition_of(shape, depth + 1), self.condition_of(shape, depth + 1));
                format!("({a} AND {b})")
            }
            _ => {
                let (a, b) =
                    (self.condition_of(shape, depth + 1), self.condition_of(shape, depth + 1));
                format!("({a} OR {b})")
            }
        }
    }

    fn wheres(&mut self, shape: &Shape, always: bool) -> String {
        let mut parts = vec![self.times(always)];
        if self.chance(40) {
            parts.push(self.condition_of(shape, 0));
        }
        parts.retain(|part| !part.is_empty());
        match parts.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", parts.join(" AND ")),
        }
    }

    fn groups(&mut self, shape: &Shape, interval: Option<String>) -> String {
        let mut parts: Vec<String> = interval.into_iter().collect();
        match self.random.below(10) {
            0..=3 => {}
            4 => parts.push("*".to_string()),
            5 => parts.push("/ho|re/".to_string()),
            6 => parts.extend(shape.tags.iter().map(|tag| (*tag).to_string())),
            _ => parts.push(self.pick(&shape.tags).to_string()),
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!(" GROUP BY {}", parts.join(", ")),
        }
    }

    fn interval(&mut self) -> String {
        let width = self.pick(&["10s", "30s", "1m", "2m", "7m", "1h"]);
        match self.random.below(4) {
            0 => format!("time({width}, {})", self.pick(&["5s", "-7s", "1m"])),
            _ => format!("time({width})"),
        }
    }

    fn pages(&mut self) -> String {
        let mut out = String::new();
        if self.chance(20) {
            out += " ORDER BY time DESC";
        }
        // An offset without a limit gives InfluxDB no end of trouble, as its manual says.
        if self.chance(15) {
            out += &format!(" LIMIT {}", 1 + self.random.below(5));
            if self.chance(40) {
                out += &format!(" OFFSET {}", 1 + self.random.below(3));
            }
        }
        if self.chance(8) {
            out += &format!(" SLIMIT {}", 1 + self.random.below(2));
            if self.chance(40) {
                out += " SOFFSET 1";
            }
        }
        if self.chance(4) {
            out += " tz('America/New_York')";
        }
        out
    }

    /// Of a float: InfluxDB 1.6's `abs` of a negative integer is wrong.
    fn scalar(&mut self, number: &str) -> String {
        match self.random.below(8) {
            0 => format!("abs({number})"),
            1 => format!("round({number} / 3)"),
            2 => format!("floor({number})"),
            3 => format!("ceil({number} * 0.5)"),
            4 => format!("sqrt(abs({number}))"),
            5 => format!("pow({number}, 2)"),
            6 => format!("atan2({number}, 3)"),
            _ => format!("log2(abs({number}) + 1000)"),
        }
    }

    fn raw(&mut self) -> String {
        let shape = self.shape();
        let mut fields = Vec::new();
        for _ in 0..=self.random.below(3) {
            let number = self.pick(&shape.numbers);
            let other = self.pick(&shape.numbers);
            fields.push(match self.random.below(14) {
                0 => "*".to_string(),
                1 => self.pick(&shape.tags).to_string(),
                2 => format!("{number} {} {other}", self.pick(&["+", "-", "*", "/", "%"])),
                3 => format!("{number} * 2 AS twice"),
                4 => self.scalar(shape.float),
                5 => format!("{number}::{}", self.pick(&["float", "integer", "field"])),
                6 => "/us|n/".to_string(),
                7 => format!("-{number}"),
                8 => "*::field".to_string(),
                9 => match shape.booleans.first() {
                    Some(boolean) => (*boolean).to_string(),
                    None => "nothing".to_string(),
                },
                _ => number.to_string(),
            });
        }
        let wheres = self.wheres(&shape, false);
        let groups = self.groups(&shape, None);
        let fill = self.pick(&["", "", "", "", "", " fill(0)", " fill(previous)"]);
        let pages = self.pages();
        format!("SELECT {} FROM {}{wheres}{groups}{fill}{pages}", fields.join(", "), shape.from)
    }

    fn aggregate_of(&mut self, shape: &Shape) -> String {
        let number = match self.random.below(12) {
            0 => "*",
            1 => "/us|n/",
            _ => self.pick(&shape.numbers),
        };
        match self.random.below(16) {
            0 => format!("count({number})"),
            1 => format!("sum({number})"),
            2 => format!("mean({number})"),
            3 => format!("median({number})"),
            4 => format!("spread({number})"),
            5 => format!("stddev({number})"),
            6 => format!("min({number})"),
            7 => format!("max({number})"),
            8 => format!("first({number})"),
            9 => format!("last({number})"),
            10 => format!("percentile({}, {})", shape.float, 50 + self.random.below(51)),
            11 => format!("count(distinct({}))", self.pick(&shape.numbers)),
            12 => match shape.booleans.first() {
                Some(boolean) => {
                    format!("{}({boolean})", self.pick(&["count", "first", "last", "min", "max"]))
                }
                None => "mean(nothing)".to_string(),
            },
            13 => format!("percentile({}, 99.5)", shape.float),
            _ => format!("mean({number})"),
        }
    }

    fn aggregate(&mut self) -> String {
        let shape = self.shape();
        let number = self.pick(&shape.numbers);
        if self.chance(5) {
            return self.integral(&shape, number);
        }
        let fields = match self.random.below(19) {
            0 => format!("distinct({number})"),
            1 => format!("top({number}, {})", 1 + self.random.below(4)),
            2 => format!("bottom({number}, {})", 1 + self.random.below(4)),
            3 => format!("top({number}, {}, 2)", self.pick(&shape.tags)),
            4 => format!("bottom({number}, {}, 3), n", self.pick(&shape.tags)),
            5 => format!("top({number}, 3), host, {}", self.pick(&shape.numbers)),
            6 => format!("max({number}), {}, host", self.pick(&shape.numbers)),
            7 => format!("first({number}), {}", self.pick(&shape.numbers)),
            8 => format!("percentile({}, 50), host", shape.float),
            9 => format!("max({number}) - min({number}) AS range"),
            10 => format!("mean({number}) * 100 / sum({number}), count({number})"),
            11 => format!("round(mean({number}))"),
            12 => format!("mean({number}) AS a, max({number}) AS a_1"),
            13 => format!("DISTINCT {number}"),
            _ => {
                let count = 1 + self.random.below(3);
                let all: Vec<String> = (0..count).map(|_| self.aggregate_of(&shape)).collect();
                all.join(", ")
            }
        };
        let interval = if self.chance(60) { Some(self.interval()) } else { None };
        let wheres = self.wheres(&shape, interval.is_some());
        let groups = self.groups(&shape, interval);
        let fills = [
            "",
            "",
            " fill(none)",
            " fill(0)",
            " fill(previous)",
            " fill(linear)",
            " fill(7.5)",
            " fill(null)",
        ];
        let fill = self.pick(&fills);
        // InfluxDB applies LIMIT to what `top` takes as well.
        let pages = match fields.contains("top(") || fields.contains("bottom(") {
            true => String::new(),
            false => self.pages(),
        };
        format!("SELECT {fields} FROM {}{wheres}{groups}{fill}{pages}", shape.from)
    }

    /// Of several groups InfluxDB tells last windows apart from the others.
    fn integral(&mut self, shape: &Shape, number: &str) -> String {
        let unit = self.pick(&["", ", 1m", ", 10s"]);
        let wheres = self.wheres(shape, true);
        let groups = match self.random.below(2) {
            0 => format!(" GROUP BY {}", self.interval()),
            _ => String::new(),
        };
        // Where windows of integers meet InfluxDB forgets what is between two points.
        let needs_float = groups.contains("time") || shape.from != "cpu";
        let number = if needs_float { "idle" } else { number };
        format!("SELECT integral({number}{unit}) FROM cpu{wheres}{groups}")
    }

    fn transformation(&mut self) -> String {
        let shape = self.shape();
        let has_interval = self.chance(50);
        let number = self.pick(&shape.numbers).to_string();
        let inner = match has_interval {
            true => {
                let name = self.pick(&["mean", "max", "sum", "count", "last", "median", "spread"]);
                format!("{name}({number})")
            }
            false => number,
        };
        let unit = self.pick(&["", "", ", 1s", ", 10s", ", 1m"]);
        let call = match self.random.below(8) {
            0 => format!("derivative({inner}{unit})"),
            1 => format!("non_negative_derivative({inner}{unit})"),
            2 => format!("difference({inner})"),
            3 => format!("non_negative_difference({inner})"),
            4 => format!("cumulative_sum({inner})"),
            5 => format!("moving_average({inner}, {})", 2 + self.random.below(3)),
            6 => format!("elapsed({inner}{unit})"),
            _ => format!("derivative({inner}) * 2, difference({inner})"),
        };
        let interval = if has_interval { Some(self.interval()) } else { None };
        let wheres = self.wheres(&shape, has_interval);
        let groups = self.groups(&shape, interval);
        let fills = ["", "", " fill(none)", " fill(0)", " fill(previous)", " fill(linear)"];
        let fill = if has_interval { self.pick(&fills) } else { "" };
        let pages = self.pages();
        format!("SELECT {call} FROM {}{wheres}{groups}{fill}{pages}", shape.from)
    }

    fn nested(&mut self) -> String {
        let shape = self.shape();
        let inner = self.pick(&["mean", "max", "min", "sum", "count", "last"]);
        let outer = self.pick(&["mean", "max", "min", "sum", "count", "spread", "median"]);
        let number = self.pick(&shape.numbers);
        let wheres = self.wheres(&shape, true);
        let interval = self.interval();
        let tag = self.pick(&shape.tags);
        let from = &shape.from;
        match self.random.below(7) {
            0 => format!(
                "SELECT {outer}(v) FROM (SELECT {inner}({number}) AS v FROM {from}{wheres} GROUP BY \
                 {interval}, {tag}) GROUP BY {tag}"
            ),
            1 => format!(
                "SELECT {outer}(v) FROM (SELECT {inner}({number}) AS v FROM {from} GROUP BY \
                 {tag}){wheres}"
            ),
            2 => format!(
                "SELECT {outer}({inner}) FROM (SELECT {inner}({number}) FROM {from}{wheres} GROUP BY \
                 {tag})"
            ),
            3 => {
                format!("SELECT v FROM (SELECT {number} * 2 AS v FROM {from}{wheres}) WHERE v > 10")
            }
            4 => format!(
                "SELECT {outer}(v) FROM (SELECT {number} + 1 AS v FROM {from}{wheres} GROUP BY {tag}) \
                 GROUP BY {tag}"
            ),
            5 => format!(
                "SELECT * FROM (SELECT {inner}({number}), {outer}({number}) FROM {from}{wheres} GROUP \
                 BY {interval} fill(none))"
            ),
            _ => format!(
                "SELECT {outer}(d) FROM (SELECT difference({number}) AS d FROM {from}{wheres} GROUP BY \
                 {tag})"
            ),
        }
    }
}
