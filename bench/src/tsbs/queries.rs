//! The suite's query types as it sends them to a Prometheus-like server.
//!
//! `single-groupby-M-H-T`: M metrics, H random hosts, T hours at a random place, step 60 s;
//! `cpu-max-all-H`: all metrics, 8 h, step 1 h; `double-groupby-M`: all hosts, 12 h, step 1 h.

use super::fleet::host_name;
use super::{FIELDS, MEASUREMENT, Scale};
use crate::instant::{HOUR_NS, SECOND_NS};
use crate::random::Random;
use anyhow::{Result, bail, ensure};

/// A kind of query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryType {
    /// Its name in the suite.
    pub name: &'static str,
    /// How many of the ten metrics, from the first.
    metrics: usize,
    /// How many hosts; 0 stands for all, grouped by host.
    hosts: usize,
    /// How long the range is.
    hours: i64,
    /// Step of the range and window of the rollup.
    step_ns: i64,
}

const MINUTE_NS: i64 = 60 * SECOND_NS;

/// All types, in the order of the published tables.
pub const QUERY_TYPES: [QueryType; 11] = [
    single("single-groupby-1-1-1", 1, 1, 1),
    single("single-groupby-1-1-12", 1, 1, 12),
    single("single-groupby-1-8-1", 1, 8, 1),
    single("single-groupby-5-1-1", 5, 1, 1),
    single("single-groupby-5-1-12", 5, 1, 12),
    single("single-groupby-5-8-1", 5, 8, 1),
    QueryType { name: "cpu-max-all-1", metrics: 10, hosts: 1, hours: 8, step_ns: HOUR_NS },
    QueryType { name: "cpu-max-all-8", metrics: 10, hosts: 8, hours: 8, step_ns: HOUR_NS },
    QueryType { name: "double-groupby-1", metrics: 1, hosts: 0, hours: 12, step_ns: HOUR_NS },
    QueryType { name: "double-groupby-5", metrics: 5, hosts: 0, hours: 12, step_ns: HOUR_NS },
    QueryType { name: "double-groupby-all", metrics: 10, hosts: 0, hours: 12, step_ns: HOUR_NS },
];

const fn single(name: &'static str, metrics: usize, hosts: usize, hours: i64) -> QueryType {
    QueryType { name, metrics, hosts, hours, step_ns: MINUTE_NS }
}

/// A range query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The expression.
    pub expression: String,
    /// Where the range starts.
    pub start_ns: i64,
    /// Where it ends.
    pub end_ns: i64,
    /// Distance of its points.
    pub step_ns: i64,
}

impl Query {
    /// Path and parameters of the request.
    pub fn path(&self) -> String {
        format!(
            "/api/v1/query_range?query={}&start={}&end={}&step={}",
            percent_encode(&self.expression),
            self.start_ns / SECOND_NS,
            self.end_ns / SECOND_NS,
            self.step_ns / SECOND_NS
        )
    }
}

impl QueryType {
    /// The type of that name.
    ///
    /// # Errors
    /// When there is no such type.
    pub fn parse(name: &str) -> Result<QueryType> {
        match QUERY_TYPES.iter().find(|query_type| query_type.name == name) {
            Some(query_type) => Ok(*query_type),
            None => bail!("no query type {name:?}, use one of {}", names().join(", ")),
        }
    }

    /// A random query of this type over a data set.
    ///
    /// # Errors
    /// When the data set has fewer hosts or hours than the type asks for.
    pub fn query(&self, scale: &Scale, random: &mut Random) -> Result<Query> {
        let length_ns = self.hours * HOUR_NS;
        ensure!(
            scale.end_ns - scale.start_ns >= length_ns,
            "{} needs {} hours of data",
            self.name,
            self.hours
        );
        ensure!(scale.hosts as usize >= self.hosts, "{} needs {} hosts", self.name, self.hosts);
        let slack_s = (scale.end_ns - scale.start_ns - length_ns) / SECOND_NS;
        let offset_s = random.below(slack_s as u64 + 1) as i64;
        let start_ns = scale.start_ns + offset_s * SECOND_NS;
        let expression = self.expression(&choose_hosts(self.hosts, scale.hosts, random));
        Ok(Query { expression, start_ns, end_ns: start_ns + length_ns, step_ns: self.step_ns })
    }

    fn expression(&self, hosts: &[String]) -> String {
        let metrics = FIELDS[..self.metrics].join("|");
        let window = if self.step_ns == HOUR_NS { "1h" } else { "1m" };
        if self.hosts == 0 {
            return format!(
                "avg(avg_over_time({{__name__=~'{MEASUREMENT}_({metrics})'}}[{window}])) \
                 by (__name__, hostname)"
            );
        }
        let hosts = hosts.join("|");
        format!(
            "max(max_over_time({{__name__=~'{MEASUREMENT}_({metrics})', \
             hostname=~'{hosts}'}}[{window}])) by (__name__)"
        )
    }
}

/// The names of all types.
pub fn names() -> Vec<&'static str> {
    QUERY_TYPES.iter().map(|query_type| query_type.name).collect()
}

/// Different hosts, in the order drawn.
fn choose_hosts(count: usize, scale: u32, random: &mut Random) -> Vec<String> {
    let mut chosen: Vec<u32> = Vec::with_capacity(count);
    while chosen.len() < count {
        let host = random.below(u64::from(scale)) as u32;
        if !chosen.contains(&host) {
            chosen.push(host);
        }
    }
    chosen.into_iter().map(host_name).collect()
}

/// Escapes everything that is not unreserved in a URL.
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale {
        hosts: 10,
        interval_ns: 10 * SECOND_NS,
        start_ns: 0,
        end_ns: 24 * HOUR_NS,
        seed: 1,
    };

    #[track_caller]
    fn check(name: &str, start: &str, end: &str) {
        let query = QueryType::parse(name).unwrap().query(&SCALE, &mut Random::new(1)).unwrap();
        assert!(query.expression.starts_with(start), "{}", query.expression);
        assert!(query.expression.ends_with(end), "{}", query.expression);
        assert!(query.start_ns >= SCALE.start_ns && query.end_ns <= SCALE.end_ns);
    }

    #[test]
    fn expressions_are_those_of_the_suite() {
        let user = "max(max_over_time({__name__=~'cpu_(usage_user)', hostname=~'host_";
        check("single-groupby-1-1-1", user, "'}[1m])) by (__name__)");
        check("single-groupby-1-8-1", user, "'}[1m])) by (__name__)");
        let all = "max(max_over_time({__name__=~'cpu_(usage_user|usage_system|";
        check("cpu-max-all-8", all, "'}[1h])) by (__name__)");
        let average = "avg(avg_over_time({__name__=~'cpu_(usage_user)'}[1h]";
        check("double-groupby-1", average, ")) by (__name__, hostname)");
    }

    #[test]
    fn too_small_a_data_set_is_refused() {
        let query_type = QueryType::parse("single-groupby-1-8-1").unwrap();
        assert!(query_type.query(&Scale { hosts: 7, ..SCALE }, &mut Random::new(1)).is_err());
        let short = Scale { end_ns: HOUR_NS / 2, ..SCALE };
        assert!(query_type.query(&short, &mut Random::new(1)).is_err());
        assert!(QueryType::parse("lastpoint").is_err());
    }

    #[test]
    fn paths_are_escaped() {
        let query = Query {
            expression: "a{b=~'c|d'}".into(),
            start_ns: SECOND_NS,
            end_ns: 2 * SECOND_NS,
            step_ns: SECOND_NS,
        };
        let expected = "/api/v1/query_range?query=a%7Bb%3D~%27c%7Cd%27%7D&start=1&end=2&step=1";
        assert_eq!(query.path(), expected);
    }
}
