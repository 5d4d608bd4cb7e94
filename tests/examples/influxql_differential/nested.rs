//! Queries over queries, arithmetic and strings, from a seed.

use crate::generator::{Queries, Shape};

impl Queries {
    /// A query over another.
    pub fn nested(&mut self) -> String {
        match self.random.below(5) {
            0 => self.nested_in_order(),
            1 => self.nested_twice(),
            2 => self.nested_sources(),
            _ => self.nested_once(),
        }
    }

    fn nested_once(&mut self) -> String {
        let shape = self.shape();
        // Of several series at one time InfluxDB takes another last value than in a query of its own.
        let inner = match shape.from.contains("ev") {
            true => self.pick(&["mean", "max", "min", "sum", "count"]),
            false => self.pick(&["mean", "max", "min", "sum", "count", "last"]),
        };
        let outer = self.pick(&["mean", "max", "min", "sum", "count", "spread", "median"]);
        let number = self.pick(&shape.numbers);
        let wheres = self.wheres(&shape, true);
        let interval = self.interval(&shape);
        let tag = self.pick(&shape.tags);
        let from = &shape.from;
        match self.random.below(9) {
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
            6 => {
                let fill = self.pick(&["", " fill(0)", " fill(previous)", " fill(none)"]);
                format!(
                    "SELECT {outer}(v) FROM (SELECT {number} AS v FROM {from}{wheres} GROUP BY \
                     {tag}){wheres} GROUP BY {interval}, {tag}{fill}"
                )
            }
            7 => format!(
                "SELECT {outer}(v) FROM (SELECT {number} AS v FROM {from}{wheres} GROUP BY *) GROUP \
                 BY {tag}"
            ),
            _ if from.contains("ev") => format!(
                "SELECT {outer}(v) FROM (SELECT {inner}({number}) AS v FROM {from}{wheres} GROUP BY *)"
            ),
            _ => format!(
                "SELECT {outer}(d) FROM (SELECT difference({number}) AS d FROM {from}{wheres} GROUP BY \
                 {tag})"
            ),
        }
    }

    /// What depends on the order of the inner rows.
    fn nested_in_order(&mut self) -> String {
        let shape = self.shape();
        // Of several series at one time InfluxDB takes another last value than in a query of its own.
        let inner = match shape.from.contains("ev") {
            true => self.pick(&["mean", "max", "min", "sum", "count"]),
            false => self.pick(&["mean", "max", "min", "sum", "count", "last"]),
        };
        let number = self.pick(&shape.numbers);
        let wheres = self.wheres(&shape, true);
        let interval = self.interval(&shape);
        let tag = self.pick(&shape.tags);
        let fill = self.pick(&["", " fill(linear)", " fill(previous)", " fill(0)", " fill(none)"]);
        let order = self.pick(&["", " ORDER BY time DESC"]);
        let limit = 1 + self.random.below(4);
        let offset = self.pick(&["", "", " OFFSET 1"]);
        let from = &shape.from;
        // Of single series InfluxDB skips twice.
        let offset = if ["long", "/./"].contains(&from.as_str()) { "" } else { offset };
        match self.random.below(7) {
            0 => format!(
                "SELECT {tag}, v FROM (SELECT {number} AS v FROM {from}{wheres} GROUP BY {tag}){order}"
            ),
            1 => format!(
                "SELECT v FROM (SELECT {inner}({number}) AS v FROM {from}{wheres} GROUP BY \
                 {interval}{fill}){order}"
            ),
            2 => format!(
                "SELECT v, {tag} FROM (SELECT {inner}({number}) AS v FROM {from}{wheres} GROUP BY \
                 {interval}, {tag}{fill}) GROUP BY {tag}{order}"
            ),
            3 => format!(
                "SELECT v FROM (SELECT {number} AS v FROM {from}{wheres} GROUP BY {tag}{order} LIMIT \
                 {limit}{offset}) GROUP BY {tag}{order}"
            ),
            4 => format!(
                "SELECT v FROM (SELECT {inner}({number}) AS v FROM {from}{wheres} GROUP BY \
                 {interval}{fill} LIMIT {limit}{offset}){order}"
            ),
            5 => format!(
                "SELECT {}(v) FROM (SELECT {inner}({number}) AS v FROM {from}{wheres} GROUP BY \
                 {interval}{fill}){order}",
                self.pick(&["derivative", "difference", "cumulative_sum", "elapsed"])
            ),
            _ => format!(
                "SELECT v * 2, v / w FROM (SELECT {inner}({number}) AS v, max({}) AS w FROM \
                 {from}{wheres} GROUP BY {interval}{fill}){order}",
                shape.float
            ),
        }
    }

    fn nested_twice(&mut self) -> String {
        let shape = self.shape();
        let [a, b, c] = [(), (), ()].map(|()| self.pick(&["mean", "max", "min", "sum", "count"]));
        let number = self.pick(&shape.numbers);
        let wheres = self.wheres(&shape, true);
        let interval = self.interval(&shape);
        let tag = self.pick(&shape.tags);
        let from = &shape.from;
        match self.random.below(5) {
            0 => format!(
                "SELECT {a}(w) FROM (SELECT {b}(v) AS w FROM (SELECT {c}({number}) AS v FROM \
                 {from}{wheres} GROUP BY {interval}, {tag}) GROUP BY {tag})"
            ),
            1 => format!(
                "SELECT {a}(w) FROM (SELECT {b}(v) AS w FROM (SELECT {number} AS v FROM \
                 {from}{wheres} GROUP BY {tag}) GROUP BY {tag}) GROUP BY {tag}"
            ),
            2 => format!(
                "SELECT w + 1 FROM (SELECT v * 2 AS w FROM (SELECT {number} - 3 AS v FROM \
                 {from}{wheres} GROUP BY {tag}) WHERE v > 0) WHERE w < 100"
            ),
            3 => format!(
                "SELECT {a}(w) FROM (SELECT v / 2 AS w FROM (SELECT {c}({number}) AS v FROM \
                 {from}{wheres} GROUP BY {interval}, *) GROUP BY *)"
            ),
            _ => format!(
                "SELECT {a}(w), {b}(w) FROM (SELECT v AS w, {tag} FROM (SELECT {number} AS v FROM \
                 {from}{wheres} GROUP BY {tag}) WHERE {tag} != 'a')"
            ),
        }
    }

    fn nested_sources(&mut self) -> String {
        let (booleans, tags) = (Vec::new(), vec!["host"]);
        let from = "cpu".to_string();
        let times =
            self.wheres(&Shape { from, numbers: vec!["n"], float: "n", booleans, tags }, true);
        let function = self.pick(&["mean", "max", "min", "sum", "count"]);
        match self.random.below(4) {
            0 => format!(
                "SELECT {function}(v) FROM (SELECT n AS v FROM cpu{times}), (SELECT free AS v FROM \
                 mem{times})"
            ),
            1 => format!(
                "SELECT {function}(v) FROM (SELECT mean(n) AS v FROM cpu{times} GROUP BY time(1m)), \
                 (SELECT max(free) AS v FROM mem{times} GROUP BY time(1m)) GROUP BY host"
            ),
            2 => format!(
                "SELECT top, host FROM (SELECT top(usage, host, 2) FROM cpu{times}){}",
                self.pick(&["", " WHERE top > 50", " GROUP BY host"])
            ),
            _ => format!(
                "SELECT v, host FROM (SELECT {function}(usage) AS v FROM cpu{times} GROUP BY \
                 time(1m), host) WHERE host = '{}' OR v > 10",
                self.pick(&["a", "b", ""])
            ),
        }
    }

    /// Arithmetic of rows or aggregates.
    pub fn arithmetic(&mut self) -> String {
        let shape = self.shape();
        let wheres = self.wheres(&shape, true);
        let groups = self.groups(&shape, None);
        let function = match self.random.below(3) {
            0 => Some(self.pick(&["max", "sum", "last", "count"])),
            _ => None,
        };
        let count = 1 + self.random.below(2);
        let fields: Vec<String> =
            (0..count).map(|_| self.expression(&shape, function, 0)).collect();
        let pages = self.pages(&shape);
        format!("SELECT {} FROM {}{wheres}{groups}{pages}", fields.join(", "), shape.from)
    }

    fn expression(&mut self, shape: &Shape, function: Option<&str>, depth: u64) -> String {
        let call = |name: &str| match function {
            Some(function) => format!("{function}({name})"),
            None => name.to_string(),
        };
        match self.random.below(if depth < 3 { 12 } else { 3 }) {
            // At the top there must be a variable.
            1 if 0 < depth => format!("{}", self.random.below(9)),
            2 if 0 < depth => self.pick(&["0.5", "3.0", "7", "0", "1000000007"]).to_string(),
            0..=3 => call(self.pick(&shape.numbers)),
            4 if depth == 0 && function.is_none() && !shape.booleans.is_empty() => {
                let boolean = shape.booleans[0];
                let (op, other) =
                    (self.pick(&["&", "|", "^"]), self.pick(&["true", "false", boolean]));
                format!("{boolean} {op} {other}")
            }
            5 => format!("-{}", call(self.pick(&shape.numbers))),
            6 => format!("({})", self.expression(shape, function, depth + 1)),
            _ => {
                let op = self.pick(&["+", "-", "*", "/", "%", "&", "|", "^"]);
                let left = self.expression(shape, function, depth + 1);
                let right = self.expression(shape, function, depth + 1);
                format!("{left} {op} {right}")
            }
        }
    }

    /// A series carried on.
    pub fn forecast(&mut self) -> String {
        let shape = self.shape();
        let name = self.pick(&["holt_winters", "holt_winters_with_fit"]);
        let inner = self.pick(&["mean", "max", "sum", "count"]);
        let number = self.pick(&shape.numbers);
        let (horizon, season) = (1 + self.random.below(5), self.random.below(6));
        let interval = self.interval(&shape);
        let wheres = self.wheres(&shape, true);
        let groups = self.groups(&shape, Some(interval));
        let fill = self.pick(&["", " fill(none)", " fill(0)", " fill(previous)"]);
        let from = &shape.from;
        format!(
            "SELECT {name}({inner}({number}), {horizon}, {season}) FROM {from}{wheres}{groups}{fill}"
        )
    }

    /// Of a field of strings.
    pub fn texts(&mut self) -> String {
        let field = match self.random.below(6) {
            0 => "s".to_string(),
            1 => "s, host".to_string(),
            2 => "s, f".to_string(),
            3 => "count(distinct(s))".to_string(),
            4 => "distinct(s)".to_string(),
            _ => format!("{}(s)", self.pick(&["first", "last", "count"])),
        };
        let condition = match self.random.below(6) {
            0 => " AND s = 'x y'",
            1 => " AND s != 'x y'",
            2 => " AND s =~ /^[ax]/",
            3 => " AND s !~ /y/ AND host = 'b'",
            4 => " AND (s = '' OR host = 'a')",
            _ => "",
        };
        let start = crate::lines::START_SECONDS + self.random.below(600) as i64;
        let end = start + 100 + self.random.below(600) as i64;
        let group = match field.contains('(') {
            true => self.pick(&["", " GROUP BY time(1m)", " GROUP BY time(2m), rack fill(none)"]),
            false => self.pick(&["", " GROUP BY host", " GROUP BY *"]),
        };
        let order = self.pick(&["", "", " ORDER BY time DESC", " LIMIT 3"]);
        format!(
            "SELECT {field} FROM even WHERE time >= {start}s AND time < {end}s{condition}{group}{order}"
        )
    }
}
