//! Text to tables: the Flux that dashboards and clients of InfluxDB 2 send. No I/O.
//!
//! ```text
//! text > parser > Statement > Evaluation, over influxql::Source > Outcome > Dialect > annotated CSV
//! ```
//!
//! `from |> range |> filter` is a scan until something else is done with it: then conditions on
//! measurements, fields and tags are asked of the index, and series are read one after the other.
//! Everything else works on tables in memory, which a budget counts, as it does the values of
//! expressions.

#![allow(
    clippy::mutable_key_type,
    reason = "cells are keys, and no cell is a pattern, which alone changes inside"
)]

mod ast;
mod builtins;
mod csv;
#[cfg(test)]
mod engine_tests;
mod error;
mod eval;
mod external;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod invalid_tests;
mod lexer;
#[cfg(test)]
mod package_tests;
mod parser;
mod predicate;
mod scan;
mod sphere;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod token;
mod value;

pub use builtins::{ORGANISATION_ID, bucket_id, bucket_names};
pub use csv::{Annotation, Dialect};
pub use error::{Error, ErrorKind, Result, Span};
pub use eval::Limits;
pub use parser::{HEIGHT_MAX, NESTING_MAX, REGEXES_MAX, STATEMENTS_MAX, TEXT_SIZE_MAX};
pub use stream::{Outcome, TABLES_MAX};

use eval::Evaluation;
use influxql::Source;
use value::Names;

/// A query and what comes with it.
#[derive(Clone, Copy, Debug)]
pub struct Query<'q> {
    /// The text.
    pub text: &'q str,
    /// A tree in JSON whose assignments stand before the text.
    pub external: Option<&'q serde_json::Value>,
    /// What the text finds as `params`.
    pub parameters: Option<&'q serde_json::Value>,
    /// The time, in nanoseconds since the epoch.
    pub now: i64,
}

/// Evaluates a query.
///
/// # Errors
/// Why it has no answer.
pub fn run(source: &dyn Source, query: Query<'_>, limits: Limits<'_>) -> Result<Vec<Outcome>> {
    let (statements, regexes_size) = parser::parse(query.text)?;
    let evaluation = Evaluation::new(source, query.now, limits);
    evaluation.hold(regexes_size)?;
    let mut names = Names::default();
    if let Some(json) = query.parameters {
        names = names.with("params".into(), external::parameters(json)?);
    }
    if let Some(json) = query.external {
        let (bound, regexes_size) = external::statements(json)?;
        evaluation.hold(regexes_size)?;
        names = evaluation.run(&bound, names)?;
    }
    evaluation.run(&statements, names)?;
    let outcomes = evaluation.outcomes();
    match outcomes.is_empty() {
        true => Err(Error::runtime(
            "this Flux script returns no streaming data: end it with a pipeline, as from(bucket: ..) \
             |> range(start: ..)",
        )),
        false => Ok(outcomes),
    }
}

/// Parses RFC 3339, as `now` of a request.
pub fn parse_time(text: &str) -> Option<i64> {
    time::parse_time(text)
}
