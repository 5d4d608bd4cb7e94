//! Options of `EXPLAIN`.

use crate::types::error::SqlError;
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{Expr, Statement, UtilityOption, Value};

/// How a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Lines.
    Text,
    /// JSON.
    Json,
    /// XML.
    Xml,
}

/// Options that say what is told of each step; plans tell it or not.
pub(crate) const TELLING: &[&str] = &[
    "costs",
    "settings",
    "generic_plan",
    "buffers",
    "serialize",
    "wal",
    "timing",
    "summary",
    "memory",
];

/// Takes the options of an `EXPLAIN` into what the planner knows; none of other statements.
///
/// # Errors
/// When one is not known.
pub fn shape_of(statement: &mut Statement) -> Result<Option<Shape>, SqlError> {
    let Statement::Explain { analyze, verbose, format, options, .. } = statement else {
        return Ok(None);
    };
    let mut shape = Shape::Text;
    for option in options.take().unwrap_or_default() {
        let name = option.name.value.to_ascii_lowercase();
        match name.as_str() {
            "analyze" => *analyze = is_on(&option)?,
            "verbose" => *verbose = is_on(&option)?,
            "format" => {
                let wanted = option.arg.as_ref().map(Expr::to_string).unwrap_or_default();
                shape = match wanted.trim_matches('\'').to_ascii_lowercase().as_str() {
                    "text" => Shape::Text,
                    "json" => Shape::Json,
                    "xml" => Shape::Xml,
                    other => {
                        let words = format!("EXPLAIN in format {other} is not known here");
                        return Err(
                            SqlError::unsupported(words).with_hint("Say TEXT, JSON or XML.")
                        );
                    }
                };
            }
            known if TELLING.contains(&known) => drop(is_on(&option)?),
            _ => {
                let words = format!("unrecognized EXPLAIN option \"{name}\"");
                return Err(SqlError::invalid(words));
            }
        }
    }
    *format = None;
    // What the planner would say besides is no plan.
    *verbose = false;
    Ok(Some(shape))
}

pub(crate) fn is_on(option: &UtilityOption) -> Result<bool, SqlError> {
    let said = match &option.arg {
        None => return Ok(true),
        Some(Expr::Value(value)) => match &value.value {
            Value::Boolean(yes) => return Ok(*yes),
            other => other.to_string(),
        },
        Some(other) => other.to_string(),
    };
    match said.trim_matches('\'').to_ascii_lowercase().as_str() {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => {
            let name = option.name.value.to_ascii_lowercase();
            Err(SqlError::invalid(format!("{name} requires a Boolean value")))
        }
    }
}
