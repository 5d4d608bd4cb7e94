//! Numbers of arguments that PostgreSQL's grammar wants, and literals whose type nothing decides.

use crate::parse::rewrite::expressions::literal;
use crate::parse::rewrite::open_arguments::not_unique;
use crate::types::error::SqlError;
use crate::types::names::name_of_last;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
};

/// Functions whose result or work depends on the type of the first argument, which a literal in quotes has none of.
const POLYMORPHIC: &[&str] = &[
    "array_dims",
    "array_fill",
    "array_length",
    "array_lower",
    "array_ndims",
    "array_to_json",
    "array_to_string",
    "array_upper",
    "cardinality",
    "first_value",
    "last_value",
    "nth_value",
    "to_json",
    "to_jsonb",
];

/// Checks the arguments of a call that has no types yet.
///
/// # Errors
/// `42601`, `42809`, `42725` and `42804`, as PostgreSQL has them.
pub fn check_arguments(function: &Function) -> Result<(), SqlError> {
    let FunctionArguments::List(list) = &function.args else { return Ok(()) };
    let name = name_of_last(&function.name);
    let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    let is_all = |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
    if is_distinct && list.args.iter().any(is_all) {
        return Err(SqlError::invalid("syntax error at or near \"*\""));
    }
    if name == "count" && list.args.is_empty() && list.clauses.is_empty() {
        let words = "count(*) must be used to call a parameterless aggregate function";
        return Err(SqlError::new("42809", words));
    }
    let is_wrong = match name.as_str() {
        "coalesce" | "greatest" | "least" => list.args.is_empty(),
        "nullif" => list.args.len() != 2,
        _ => false,
    };
    if is_wrong {
        let near = if list.args.len() < 2 { ")" } else { "," };
        return Err(SqlError::invalid(format!("syntax error at or near \"{near}\"")));
    }
    match list.args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) => check_first(&name, first),
        _ => Ok(()),
    }
}

fn check_first(name: &str, first: &Expr) -> Result<(), SqlError> {
    if literal(first).is_none() {
        return Ok(());
    }
    if name == "unnest" {
        return Err(not_unique(name, 1));
    }
    match POLYMORPHIC.contains(&name) {
        true => {
            let words = "could not determine polymorphic type because input has type unknown";
            Err(SqlError::new("42804", words))
        }
        false => Ok(()),
    }
}
