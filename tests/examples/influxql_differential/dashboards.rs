//! Queries as Grafana's editor and TSBS write them, from a seed.

use crate::generator::{Queries, Shape};
use crate::lines::{LONG_OFFSET, LONG_STEP, ROWS, START_SECONDS};

impl Queries {
    /// A query of a dashboard, or of TSBS.
    pub fn dashboard(&mut self) -> String {
        match self.random.below(10) {
            0..=3 => self.panel(),
            4 => self.panel_of_panels(),
            5 => self.variable(),
            _ => self.tsbs(),
        }
    }

    /// `$timeFilter`, in milliseconds.
    fn time_filter(&mut self, shape: &Shape) -> String {
        let (first, length) = match shape.from.as_str() {
            "long" | "/./" => (LONG_OFFSET, ROWS * LONG_STEP),
            _ => (0, 1200),
        };
        let start = START_SECONDS + first + self.random.below(length as u64 / 2) as i64;
        let end = start + 60 + self.random.below(length as u64) as i64;
        match self.random.below(4) {
            0 => format!("time >= {start}123ms AND time <= {end}456ms"),
            1 => format!("time >= {start}s and time <= {end}s"),
            _ => format!("time >= {start}000ms and time <= {end}000ms"),
        }
    }

    fn tag_filter(&mut self) -> String {
        let host = self.pick(&["a", "b", "c", "d", "x"]);
        let other = self.pick(&["a", "b", "c"]);
        match self.random.below(12) {
            0 => String::new(),
            1 => format!("(\"host\" = '{host}') AND "),
            2 => format!("(\"host\"::tag = '{host}') AND "),
            3 => format!("(\"host\" =~ /^{host}$/) AND "),
            4 => format!("(\"host\" =~ /^({host}|{other})$/) AND "),
            5 => {
                format!("(\"host\"::tag =~ /^(?:{host}|{other})$/ AND \"region\"::tag = 'eu') AND ")
            }
            6 => format!("(\"host\" !~ /^({host}|{other})$/ OR \"region\" =~ /us .*/) AND "),
            7 => format!("(\"host\" = '{host}' OR \"host\" = '{other}') AND "),
            8 => format!("(\"host\" = '{host}' OR \"region\" = 'eu') AND "),
            9 => "(\"region\" =~ /^$/) AND ".to_string(),
            10 => "(\"region\" !~ /^$/ AND \"host\" =~ /.*/) AND ".to_string(),
            _ => format!("(\"host\" != '{host}') AND "),
        }
    }

    fn quoted(&mut self, shape: &Shape) -> String {
        let name = self.pick(&shape.numbers).trim_matches('"');
        let kind = self.pick(&["", "", "", "::field"]);
        format!("\"{name}\"{kind}")
    }

    fn source_of(&mut self, shape: &Shape) -> String {
        let from = &shape.from;
        match from.contains(['/', '"', '.', ',']) {
            true => from.clone(),
            false => match self.random.below(4) {
                0 => format!("\"autogen\".\"{from}\""),
                1 => format!("\"x\".\"autogen\".\"{from}\""),
                _ => format!("\"{from}\""),
            },
        }
    }

    fn panel(&mut self) -> String {
        let shape = self.shape();
        let field = self.quoted(&shape);
        let function =
            self.pick(&["mean", "max", "min", "sum", "count", "last", "first", "median", "stddev"]);
        let call = match self.random.below(12) {
            0 => format!("non_negative_derivative({function}({field}), 1s)"),
            1 => format!("derivative({function}({field}), 10s) AS \"rate\""),
            2 => format!("cumulative_sum({function}({field}))"),
            3 => format!("moving_average({function}({field}), 5)"),
            4 => format!("difference({function}({field}))"),
            5 => format!("{function}({field}) / 100"),
            6 => format!("{function}({field}) * 8 AS \"a b\""),
            7 => format!("{function}({field}) AS \"x\", count({field}) AS \"y\""),
            8 => format!("percentile(\"{}\", 95)", shape.float),
            9 => format!("spread({field})"),
            _ => format!("{function}({field})"),
        };
        let (filter, times) = (self.tag_filter(), self.time_filter(&shape));
        let interval = self.interval(&shape);
        let groups =
            self.pick(&["", "", ", \"host\"", ", \"host\"::tag", ", *", ", \"region\", \"host\""]);
        // Of several measurements InfluxDB knows the tags of all that are asked for, whatever their time.
        let groups = if shape.from == "/./" && groups == ", *" { ", \"host\"" } else { groups };
        let fill = self.pick(&[
            "",
            " fill(null)",
            " fill(null)",
            " fill(none)",
            " fill(previous)",
            " fill(linear)",
            " fill(0)",
        ]);
        let order = self.pick(&["", "", " ORDER BY time ASC", " ORDER BY time DESC"]);
        let page = self.pick(&[
            "",
            "",
            "",
            " LIMIT 3",
            " LIMIT 3 OFFSET 1",
            " SLIMIT 1",
            " LIMIT 2 SLIMIT 2",
        ]);
        // Over several weeks InfluxDB skips twice what it does not merge.
        let page =
            if shape.from.contains(['l', '/']) && page.contains("OFFSET") { "" } else { page };
        let zone = self.pick(&["", "", "", " tz('Europe/Berlin')", " tz('America/New_York')"]);
        let from = self.source_of(&shape);
        format!(
            "SELECT {call} FROM {from} WHERE {filter}{times} GROUP BY {interval}{groups}{fill}{order}{page}{zone}"
        )
    }

    fn panel_of_panels(&mut self) -> String {
        let shape = self.shape();
        let field = self.quoted(&shape);
        let inner = self.pick(&["mean", "max", "min", "sum", "count"]);
        let outer = self.pick(&["mean", "max", "sum", "count"]);
        let (filter, times) = (self.tag_filter(), self.time_filter(&shape));
        let interval = self.interval(&shape);
        let from = self.source_of(&shape);
        let fill = self.pick(&["", " fill(null)", " fill(none)", " fill(0)"]);
        match self.random.below(3) {
            0 => format!(
                "SELECT {outer}(\"v\") FROM (SELECT {inner}({field}) AS \"v\" FROM {from} WHERE \
                 {filter}{times} GROUP BY {interval}, \"host\" fill(none)) WHERE {times} GROUP BY \
                 {interval}{fill}"
            ),
            1 => format!(
                "SELECT {outer}(\"v\") / 2 AS \"half\" FROM (SELECT {inner}({field}) AS \"v\" FROM {from} \
                 WHERE {filter}{times} GROUP BY {interval}, \"host\" fill(none)) GROUP BY \"host\""
            ),
            _ => format!(
                "SELECT {outer}(\"d\") FROM (SELECT non_negative_derivative({inner}({field}), 1s) AS \"d\" \
                 FROM {from} WHERE {filter}{times} GROUP BY {interval}, \"host\" fill(none)) WHERE {times} \
                 GROUP BY {interval}{fill}"
            ),
        }
    }

    /// What fills the lists of a dashboard.
    fn variable(&mut self) -> String {
        let host = self.pick(&["a", "b", "c"]);
        match self.random.below(8) {
            0 => "SHOW TAG VALUES FROM \"cpu\" WITH KEY = \"host\"".to_string(),
            1 => format!("SHOW TAG VALUES WITH KEY = \"host\" WHERE \"host\" =~ /^{host}/"),
            2 => format!(
                "SHOW TAG VALUES FROM \"cpu\" WITH KEY = \"region\" WHERE \"host\" = '{host}'"
            ),
            3 => "SHOW TAG KEYS FROM \"even\"".to_string(),
            4 => "SHOW FIELD KEYS FROM \"autogen\".\"mem\"".to_string(),
            5 => "SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)E/ LIMIT 100".to_string(),
            6 => format!("SHOW MEASUREMENTS WHERE \"host\" = '{host}' LIMIT 2"),
            _ => format!("SHOW SERIES FROM \"cpu\" WHERE \"host\" =~ /^({host}|d)$/"),
        }
    }

    fn tsbs(&mut self) -> String {
        let start = START_SECONDS + self.random.below(900) as i64;
        let end = start + 60 + self.random.below(900) as i64;
        let (start, end) = (crate::generator::civil(start, 'T'), crate::generator::civil(end, 'T'));
        let times = format!("time >= '{start}Z' and time < '{end}Z'");
        let hosts = self.pick(&[
            "(host = 'a')",
            "(host = 'a' or host = 'b')",
            "(host = 'a' or host = 'b' or host = 'c' or host = 'd' or host = 'x')",
        ]);
        let columns = self.pick(&[
            "max(usage)",
            "max(usage), max(idle)",
            "max(usage), max(idle), max(n)",
            "max(usage), min(usage), max(n)",
            "mean(n), mean(usage), max(nothing)",
            "count(up), sum(n), first(usage), last(idle)",
        ]);
        let even = columns.replace("usage", "f").replace("idle", "i").replace("(n)", "(i)");
        let even = even.replace("up", "b");
        match self.random.below(9) {
            0 | 1 => {
                format!("SELECT {columns} from cpu where {hosts} and {times} group by time(1m)")
            }
            2 => format!("SELECT {columns} from cpu where {times} group by time(1m),host"),
            3 => format!(
                "SELECT max(usage) from cpu WHERE time < '{end}Z' group by time(1m) limit 5"
            ),
            4 => format!("SELECT * from cpu where usage > 90.0 and {hosts} and {times}"),
            5 => format!("SELECT * from cpu where usage > 90.0 and {times}"),
            6 => "SELECT * from cpu group by \"host\" order by time desc limit 1".to_string(),
            7 => format!("SELECT {even} from even where {hosts} and {times} group by time(1m)"),
            _ => format!("SELECT {columns} from cpu where {hosts} and {times}"),
        }
    }
}
