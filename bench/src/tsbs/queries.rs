//! The suite's query types, and each as it is asked in PromQL, InfluxQL or SQL.
//!
//! `single-groupby-M-H-T`: M metrics, H random hosts, T hours at a random place, step 60 s;
//! `cpu-max-all-H`: all metrics, 8 h, step 1 h; `double-groupby-M`: all hosts, 12 h, step 1 h.

mod influxql;
mod promql;
mod sql;

use super::fleet::host_name;
use super::{FIELDS, Scale};
use crate::instant::{HOUR_NS, SECOND_NS};
use anyhow::{Result, bail, ensure};
use rng::Random;

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

/// What a server is asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// PromQL by `query_range`.
    PromQl,
    /// InfluxQL by `query`.
    InfluxQl,
    /// SQL on a connection of PostgreSQL's protocol.
    Sql {
        /// What gives a row's minute.
        minute: &'static str,
        /// What gives a row's hour.
        hour: &'static str,
    },
}

/// A query, in no language yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The fields, from the first.
    metrics: usize,
    /// The hosts whose largest values are asked for; empty asks for every host's averages.
    hosts: Vec<String>,
    /// Where the range starts.
    start_ns: i64,
    /// Where it ends.
    end_ns: i64,
    /// Distance of its points, and window of the rollup: a minute or an hour.
    step_ns: i64,
}

/// A query as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked, for messages.
    pub text: String,
    /// How it is asked.
    pub form: RequestForm,
}

/// How a query is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestForm {
    /// A path with parameters, by GET.
    Path(String),
    /// The text as a statement.
    Statement,
}

impl Query {
    /// The query in a language, ready to be sent.
    pub fn request(&self, language: Language) -> Request {
        match language {
            Language::PromQl => {
                let text = promql::expression(self);
                Request { form: RequestForm::Path(promql::path(self, &text)), text }
            }
            Language::InfluxQl => {
                let text = influxql::statement(self);
                Request { form: RequestForm::Path(influxql::path(&text)), text }
            }
            Language::Sql { minute, hour } => {
                let bucket = if self.step_ns == HOUR_NS { hour } else { minute };
                Request { form: RequestForm::Statement, text: sql::statement(self, bucket) }
            }
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        &FIELDS[..self.metrics]
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
        let offset_s = random.scaled(slack_s as u64 + 1) as i64;
        let start_ns = scale.start_ns + offset_s * SECOND_NS;
        let hosts = choose_hosts(self.hosts, scale.hosts, random);
        let (metrics, step_ns) = (self.metrics, self.step_ns);
        Ok(Query { metrics, hosts, start_ns, end_ns: start_ns + length_ns, step_ns })
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
        let host = random.scaled(u64::from(scale)) as u32;
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
mod tests;
