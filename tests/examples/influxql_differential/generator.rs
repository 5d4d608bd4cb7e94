//! Queries for a comparison with InfluxDB, from a seed.

use crate::lines::{LONG_OFFSET, LONG_STEP, ROWS, START_SECONDS};
use random::Random;

/// A measurement's fields and tags as queries name them.
pub struct Shape {
    pub from: String,
    pub numbers: Vec<&'static str>,
    /// A field whose values are seldom equal: of equal ones `percentile` takes any.
    pub float: &'static str,
    pub booleans: Vec<&'static str>,
    pub tags: Vec<&'static str>,
}

/// What an answer looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Chunked,
    Csv,
}

/// A query and what is sent with it.
pub struct Question {
    pub text: String,
    /// As JSON.
    pub parameters: Option<String>,
    /// Other parameters of the request.
    pub more: String,
    pub form: Form,
}

impl Question {
    /// Nothing but the query.
    pub fn plain(text: &str) -> Question {
        let (text, more) = (text.to_string(), String::new());
        Question { text, more, parameters: None, form: Form::Json }
    }
}

/// Makes queries.
pub struct Queries {
    pub random: Random,
}

impl Queries {
    pub fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.random.index(list.len())]
    }

    pub fn shape(&mut self) -> Shape {
        let shape = |from: &str,
                     numbers: &[&'static str],
                     booleans: &[&'static str],
                     tags: &[&'static str]| Shape {
            from: from.to_string(),
            numbers: numbers.to_vec(),
            float: numbers
                .iter()
                .find(|name| ["usage", "free", "value", "v", "f"].contains(name))
                .unwrap_or(&"usage"),
            booleans: booleans.to_vec(),
            tags: tags.to_vec(),
        };
        match self.random.below(32) {
            26..=29 => shape("even", &["f", "i"], &["b"], &["host", "rack"]),
            30 => shape("/ev|mem/", &["f", "free", "i"], &["b"], &["host", "rack"]),
            0 => shape("/c|m/", &["n", "usage", "used"], &["up"], &["host"]),
            8..=12 => shape(
                "long",
                &["v", "big", "\"odd name\""],
                &["flag"],
                &["host", "zone", "\"host\""],
            ),
            13 => shape("/./", &["n", "usage", "v", "value"], &["up", "flag"], &["host", "path"]),
            14 => shape("/^c/, \"disk io\"", &["n", "usage", "value"], &["up"], &["host", "path"]),
            1 => shape("cpu, mem", &["n", "usage", "free"], &["up"], &["host", "region"]),
            2 | 3 => shape("\"disk io\"", &["value"], &[], &["path", "host"]),
            4..=6 => shape("mem", &["used", "free", "n"], &[], &["host"]),
            7 => shape("x.autogen.cpu", &["usage", "n"], &["up"], &["host", "region"]),
            _ => shape("cpu", &["usage", "idle", "n"], &["up"], &["host", "region"]),
        }
    }

    /// A statement in one of the forms of requests.
    pub fn question(&mut self) -> Question {
        let mut question = Question::plain(&self.next());
        if self.chance(10) {
            question.text += &format!("; {}", self.next());
        }
        if self.chance(25) {
            question.more += "&epoch=";
            question.more += self.pick(&["ns", "u", "ms", "s", "m", "h", "what"]);
        }
        for (from, to, value) in [
            ("host = 'a'", "host = $p", "{\"p\":\"a\"}"),
            ("=~ /ho|re/", "=~ $p", "{\"p\":{\"regex\":\"ho|re\"}}"),
            ("= true", "= $p", "{\"p\":true}"),
            (" 7.5", " $p", "{\"p\":7.5}"),
            ("LIMIT 2", "LIMIT $p", "{\"p\":2}"),
            ("time(1m", "time($p", "{\"p\":{\"duration\":\"1m\"}}"),
            ("mean(usage)", "mean($p)", "{\"p\":{\"identifier\":\"usage\"}}"),
        ] {
            if question.parameters.is_none() && question.text.contains(from) && self.chance(40) {
                question.text = question.text.replace(from, to);
                question.parameters = Some(value.to_string());
            }
        }
        match self.random.below(14) {
            // Lists come in one piece, however long.
            0 if question.text.starts_with("SELECT") && !question.text.contains("SHOW") => {
                question.form = Form::Chunked;
                question.more += "&chunked=true";
                question.more +=
                    self.pick(&["", "&chunk_size=1", "&chunk_size=7", "&chunk_size=0"]);
            }
            1 if question.text.starts_with("SELECT") && !question.text.contains("SHOW") => {
                question.form = Form::Csv;
            }
            _ => {}
        }
        question
    }

    /// A statement.
    fn next(&mut self) -> String {
        match self.random.below(100) {
            0..=7 => self.show(),
            8..=10 => self.wrong(),
            11..=20 => self.nested(),
            21..=30 => self.dashboard(),
            31..=40 => self.raw(),
            41..=53 => self.transformation(),
            54..=62 => self.arithmetic(),
            63..=66 => self.texts(),
            67 => self.forecast(),
            _ => self.aggregate(),
        }
    }

    /// A moment as any of the texts that say it.
    fn moment(&mut self, seconds: i64) -> String {
        match self.random.below(12) {
            0 => format!("{seconds}000ms"),
            1 => format!("{seconds}000000u"),
            2 => format!("{seconds}000000000"),
            3 => format!("'{}Z'", civil(seconds, 'T')),
            4 => format!("'{}.25Z'", civil(seconds, 'T')),
            5 => format!("'{}'", civil(seconds, ' ')),
            6 => format!("'{}.000000001'", civil(seconds, ' ')),
            7 => format!("'{}+02:00'", civil(seconds + 7200, 'T')),
            8 => format!("'{}Z' + 90s", civil(seconds - 90, 'T')),
            9 => format!("{}m", seconds / 60),
            10 => format!("{}s + 1m - 7s * 2", seconds - 46),
            _ => format!("{seconds}s"),
        }
    }

    fn times(&mut self, shape: &Shape, always: bool) -> String {
        let within = |first: i64, length: i64, random: &mut Random| {
            let start = START_SECONDS + first - length / 10 + below(random, length);
            (start, start + length / 20 + below(random, length / 2))
        };
        let (start, end) = match shape.from.as_str() {
            "long" => within(LONG_OFFSET, ROWS * LONG_STEP, &mut self.random),
            // InfluxDB knows fields by week: all weeks that have any.
            "/./" => {
                let start = START_SECONDS + below(&mut self.random, 900);
                (start, START_SECONDS + LONG_OFFSET + below(&mut self.random, ROWS * LONG_STEP))
            }
            _ => within(0, 1200, &mut self.random),
        };
        let (from, until) = (self.moment(start), self.moment(end));
        let both = match self.random.below(4) {
            0 => format!("time >= {from} AND time < {until}"),
            1 => format!("time > {from} AND time <= {until}"),
            2 => format!("{from} <= time AND {until} > time"),
            _ => format!("time >= {from} AND time <= {until} AND time < now()"),
        };
        match self.random.below(12) {
            0 if !always => String::new(),
            1 if !always => format!("time >= {from}"),
            2 if !always => format!("time < {until}"),
            3 => format!("time >= {from} AND time < {until} AND time < {until}"),
            _ => both,
        }
    }

    fn condition_of(&mut self, shape: &Shape, depth: u64) -> String {
        let host = self.pick(&["a", "b", "c", "d", "x", ""]);
        let tag = self.pick(&shape.tags);
        let number = self.pick(&shape.numbers);
        let bound = self.random.below(400) as f64 / 2.0 - 50.0;
        let op = self.pick(&["<", "<=", ">", ">=", "=", "!="]);
        let boolean = shape.booleans.first().copied().unwrap_or("nothing");
        match self.random.below(if depth < 2 { 24 } else { 18 }) {
            9 => format!("{boolean} {} {}", self.pick(&["=", "!="]), self.pick(&["true", "false"])),
            10 => format!("{number} {op} {}", self.pick(&shape.numbers)),
            11 => format!("{tag} {} {}", self.pick(&["=", "!="]), self.pick(&shape.tags)),
            12 => format!("{number} {} 3 {op} 2", self.pick(&["%", "*", "-", "/"])),
            13 => format!("{tag}::tag = '{host}'"),
            // InfluxDB casts all that a condition says of the field.
            14 if depth == 0 => {
                format!("{number}::{} {op} {bound}", self.pick(&["integer", "float", "field"]))
            }
            15 => format!("nothing {} '{host}'", self.pick(&["=", "!="])),
            16 => format!("{tag} = '{host}' AND {number} {op} {bound:.1}"),
            17 => format!("({tag} = '{host}' OR {number} {op} {bound:.1})"),
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
            18..=20 => {
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

    pub fn wheres(&mut self, shape: &Shape, always: bool) -> String {
        let mut parts = vec![self.times(shape, always)];
        if self.chance(40) {
            parts.push(self.condition_of(shape, 0));
        }
        parts.retain(|part| !part.is_empty());
        match parts.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", parts.join(" AND ")),
        }
    }

    pub fn groups(&mut self, shape: &Shape, interval: Option<String>) -> String {
        let mut parts: Vec<String> = interval.into_iter().collect();
        match self.random.below(10) {
            0..=3 => {}
            4 => parts.push("*".to_string()),
            5 => parts.push(
                self.pick(&["/ho|re/", "/./", "/^z/", "nothing", "host, nothing"]).to_string(),
            ),
            6 => parts.extend(shape.tags.iter().map(|tag| (*tag).to_string())),
            _ => parts.push(self.pick(&shape.tags).to_string()),
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!(" GROUP BY {}", parts.join(", ")),
        }
    }

    pub fn interval(&mut self, shape: &Shape) -> String {
        let width = match shape.from.as_str() {
            "long" | "/./" => self.pick(&["1h", "6h", "1d", "1d", "36h", "1w", "30d"]),
            _ => self.pick(&["10s", "30s", "1m", "2m", "7m", "1h"]),
        };
        let offsets = ["5s", "-7s", "1m", "0s", "-90m", "3h", "1w", "'2020-01-01T00:00:07Z'"];
        match self.random.below(4) {
            0 => format!("time({width}, {})", self.pick(&offsets)),
            _ => format!("time({width})"),
        }
    }

    pub fn pages(&mut self, shape: &Shape) -> String {
        let mut out = String::new();
        if self.chance(25) {
            out += self.pick(&[" ORDER BY time DESC", " ORDER BY time DESC", " ORDER BY time ASC"]);
        }
        // An offset without a limit gives InfluxDB no end of trouble, as its manual says.
        if self.chance(15) {
            out += &format!(" LIMIT {}", 1 + self.random.below(5));
            // Over several weeks InfluxDB skips twice what it does not merge.
            if self.chance(40) && !["long", "/./"].contains(&shape.from.as_str()) {
                out += &format!(" OFFSET {}", 1 + self.random.below(3));
            }
        }
        if self.chance(8) {
            out += &format!(" SLIMIT {}", 1 + self.random.below(2));
            if self.chance(40) {
                out += " SOFFSET 1";
            }
        }
        if self.chance(12) {
            let zones =
                ["America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"];
            out += &format!(" tz('{}')", self.pick(&zones));
        }
        out
    }

    /// Of a float: InfluxDB 1.6's `abs` of a negative integer is wrong.
    pub fn scalar(&mut self, number: &str) -> String {
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
                8 => self.pick(&["*::field", "/.*/", "/^[a-m]/, *"]).to_string(),
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
        let pages = self.pages(&shape);
        format!("SELECT {} FROM {}{wheres}{groups}{fill}{pages}", fields.join(", "), shape.from)
    }

    pub fn aggregate_of(&mut self, shape: &Shape) -> String {
        let number = match self.random.below(12) {
            0 => "*",
            1 => "/us|n/",
            _ => self.pick(&shape.numbers),
        };
        match self.random.below(19) {
            16 => format!("count({})", self.pick(&["*", "*::field", "/./", "host", "nothing"])),
            17 => format!(
                "{}({number}) - {}({number})",
                self.pick(&["max", "last"]),
                self.pick(&["min", "first"])
            ),
            18 => format!(
                "{}({}::{})",
                self.pick(&["sum", "mean", "max"]),
                shape.float,
                self.pick(&["integer", "float", "field"])
            ),
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
        // Of equal values of one time InfluxDB picks any.
        let number = match shape.from.as_str() {
            "even" | "/ev|mem/" => shape.float,
            _ => self.pick(&shape.numbers),
        };
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
        let interval = if self.chance(60) { Some(self.interval(&shape)) } else { None };
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
            false => self.pages(&shape),
        };
        format!("SELECT {fields} FROM {}{wheres}{groups}{fill}{pages}", shape.from)
    }

    /// Of several groups InfluxDB tells last windows apart from the others.
    fn integral(&mut self, shape: &Shape, number: &str) -> String {
        let unit = self.pick(&["", ", 1m", ", 10s"]);
        let wheres = self.wheres(shape, true);
        let groups = match self.random.below(2) {
            0 => format!(" GROUP BY {}", self.interval(shape)),
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
        let interval = if has_interval { Some(self.interval(&shape)) } else { None };
        let wheres = self.wheres(&shape, has_interval);
        let groups = self.groups(&shape, interval);
        let fills = ["", "", " fill(none)", " fill(0)", " fill(previous)", " fill(linear)"];
        let fill = if has_interval { self.pick(&fills) } else { "" };
        let pages = self.pages(&shape);
        format!("SELECT {call} FROM {}{wheres}{groups}{fill}{pages}", shape.from)
    }
}

fn below(random: &mut Random, bound: i64) -> i64 {
    random.below(bound.unsigned_abs()) as i64
}

/// Date and time of day, of a time in the autumn of 2020.
pub fn civil(seconds: i64, between: char) -> String {
    // 2020-09-01.
    let since = seconds - 1_598_918_400;
    let (mut day, second) = (since.div_euclid(86_400) + 1, since.rem_euclid(86_400));
    let mut month = 9;
    for length in [30, 31] {
        if length < day {
            (day, month) = (day - length, month + 1);
        }
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("2020-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}")
}
