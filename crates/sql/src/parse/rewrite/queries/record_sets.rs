//! `jsonb_to_recordset` and its like: objects of JSON as rows, whose columns the alias defines
//! (<https://www.postgresql.org/docs/15/functions-json.html>).
//!
//! ```text
//! jsonb_to_recordset(j) AS t(a int, b text)   becomes
//! (SELECT (r.e ->> 'a')::int AS a, (r.e ->> 'b')::text AS b FROM jsonb_array_elements(j) AS r(e)) AS t
//! ```

use crate::parse::rewrite::expressions::{is_named, query};
use crate::parse::rewrite::queries::sets::is_open;
use crate::types::names::folded;
use datafusion::sql::sqlparser::ast::{
    DataType, FunctionArg, FunctionArgExpr, ObjectName, TableAlias, TableFactor,
};

/// The functions, and whether they take an array of objects.
const FUNCTIONS: &[(&str, bool)] = &[
    ("json_to_record", false),
    ("json_to_recordset", true),
    ("jsonb_to_record", false),
    ("jsonb_to_recordset", true),
];

/// Writes such a function with a definition of its columns as a query.
pub fn records_as_query(table: &mut TableFactor) {
    let (name, args, alias) = match &*table {
        TableFactor::Table { name, args: Some(args), alias: Some(alias), .. } => {
            (name, args.args.as_slice(), alias)
        }
        TableFactor::Function {
            name, args, alias: Some(alias), with_ordinality: false, ..
        } => (name, args.as_slice(), alias),
        _ => return,
    };
    if let Some(derived) = derived(name, args, alias) {
        *table = derived;
    }
}

fn derived(name: &ObjectName, args: &[FunctionArg], alias: &TableAlias) -> Option<TableFactor> {
    let (_, is_set) = FUNCTIONS.iter().find(|(function, _)| is_named(name, function))?;
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(json))] = args else { return None };
    let columns = alias.columns.iter().map(|column| {
        let data_type = column.data_type.as_ref()?;
        Some(column_text(&folded(&column.name), data_type))
    });
    let columns = columns.collect::<Option<Vec<String>>>().filter(|columns| !columns.is_empty())?;
    let rows = match is_set {
        true => format!("jsonb_array_elements({json}) AS r(e)"),
        false => format!("(SELECT {json} AS e) AS r"),
    };
    let subquery = query(&format!("SELECT {} FROM {rows}", columns.join(", ")))?;
    let alias = TableAlias { columns: Vec::new(), ..alias.clone() };
    Some(TableFactor::Derived {
        lateral: is_open(json),
        subquery,
        alias: Some(alias),
        sample: None,
    })
}

/// A column of an object, as a value of its type.
fn column_text(name: &str, data_type: &DataType) -> String {
    let arrow = match data_type {
        DataType::JSON | DataType::JSONB => "->",
        _ => "->>",
    };
    let key = name.replace('\'', "''");
    let alias = name.replace('"', "\"\"");
    format!("CAST((r.e {arrow} '{key}') AS {data_type}) AS \"{alias}\"")
}
