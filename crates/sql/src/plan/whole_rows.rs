//! Rows of tables as values: `row_to_json(t)`, `count(DISTINCT t.*)`, `SELECT t FROM t`
//! (<https://www.postgresql.org/docs/15/rowtypes.html#ROWTYPES-USAGE>). If no column has a name,
//! but a relation does, the name is the row of that relation: a `jsonb` in functions of JSON, a text elsewhere.

use crate::functions::json::jsonb_makers;
use crate::functions::json::jsonb_makers::JSON_ROW;
use crate::parse::rewrite::queries::named_rows::{ROW_AS_JSON, ROW_AS_JSONB, ROW_AS_TEXT};
use crate::plan::typing::casts::cast_changes::client_texts;
use crate::tables::heap::values::array_texts;
use crate::types::function::{function, special_function};
use crate::types::names::shown_name;
use crate::types::special_fields::{JSON, JSONB};
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, StringViewBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema};
use datafusion::logical_expr::{
    Expr, LogicalPlan, ScalarUDF, Signature, TypeSignature, Volatility, lit,
};
use std::sync::{Arc, LazyLock};

static OBJECT: LazyLock<Option<Arc<ScalarUDF>>> = LazyLock::new(|| {
    jsonb_makers::functions().find(|one| one.name() == "jsonb_build_object").map(Arc::new)
});
static JSON_OBJECT: LazyLock<Option<Arc<ScalarUDF>>> =
    LazyLock::new(|| jsonb_makers::functions().find(|one| one.name() == JSON_ROW).map(Arc::new));
static TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let texts = |args: &[ArrayRef], rows: usize| row_texts(args, rows);
    Arc::new(function(ROW_AS_TEXT, any_number(), |_| DataType::Utf8View, texts))
});

fn any_number() -> Signature {
    let signatures = vec![TypeSignature::VariadicAny, TypeSignature::Nullary];
    Signature::one_of(signatures, Volatility::Immutable)
}

/// Both functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let object = special_function(ROW_AS_JSONB, JSONB, any_number(), |_, _| {
        internal_err!("a row was not written out")
    });
    let text = special_function(ROW_AS_JSON, JSON, any_number(), |_, _| {
        internal_err!("a row was not written out")
    });
    [object, text, TEXT.as_ref().clone()].into_iter()
}

/// Writes out the columns of a row that a function takes; none for other functions.
pub fn row_of_columns(called: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [row] = called.args.as_slice() else { return None };
    let columns = columns_of(row, schema)?;
    match called.func.name() {
        ROW_AS_TEXT => Some(TEXT.call(columns)),
        name @ (ROW_AS_JSONB | ROW_AS_JSON) => {
            let pairs = columns.into_iter().flat_map(|column| {
                let name = column.qualified_name().1;
                [lit(shown_name(&name)), column]
            });
            let function = if name == ROW_AS_JSON { &JSON_OBJECT } else { &OBJECT };
            Some(function.as_ref()?.call(pairs.collect()))
        }
        _ => None,
    }
}

/// Writes out the columns of all rows that functions take, before any step adds columns to relations.
///
/// # Errors
/// Returns errors of the planner.
pub fn write_out_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| match &expr {
                Expr::ScalarFunction(called) => match row_of_columns(called, &schema) {
                    Some(row) => Ok(Transformed::yes(row)),
                    None => Ok(Transformed::no(expr)),
                },
                _ => Ok(of_row(expr, &schema)),
            })?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(changed.data)
}

/// # Errors
/// When a column has no text.
fn row_texts(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let text = |column: &ArrayRef| match column.data_type() {
        DataType::List(_) => {
            array_texts(column).map_err(|error| DataFusionError::External(Box::new(error)))
        }
        _ => client_texts(column),
    };
    let columns = args.iter().map(text).collect::<Result<Vec<_>>>()?;
    let mut out = StringViewBuilder::with_capacity(rows);
    for row in 0..rows {
        let fields = columns.iter().map(|column| {
            let column = column.as_string_view();
            if column.is_null(row) { String::new() } else { quoted(column.value(row)) }
        });
        out.append_value(format!("({})", fields.collect::<Vec<_>>().join(",")));
    }
    Ok(Arc::new(out.finish()))
}

/// A field of a row, in quotes where it has a separator, or nothing.
fn quoted(text: &str) -> String {
    let is_special = |one: char| "\"\\(),".contains(one) || one.is_ascii_whitespace();
    match text.is_empty() || text.contains(is_special) {
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\"")),
        false => text.to_string(),
    }
}

/// The columns of a table that `table.*` names as a value.
#[expect(deprecated, reason = "the planner makes it of a row of a table")]
pub(crate) fn columns_of(expr: &Expr, schema: &DFSchema) -> Option<Vec<Expr>> {
    let Expr::Wildcard { qualifier: Some(table), .. } = expr else { return None };
    let columns =
        schema.columns().into_iter().filter(|column| column.relation.as_ref() == Some(table));
    Some(columns.map(Expr::from).collect())
}

/// `table.* IS NULL` as the same of each column.
pub(crate) fn of_row(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (inner, say): (&Expr, fn(Expr) -> Expr) = match &expr {
        Expr::IsNull(inner) => (inner, Expr::is_null),
        Expr::IsNotNull(inner) => (inner, Expr::is_not_null),
        _ => return Transformed::no(expr),
    };
    match columns_of(inner, schema) {
        Some(columns) => {
            let all = conjunction(columns.into_iter().map(say));
            Transformed::yes(all.unwrap_or_else(|| lit(true)))
        }
        None => Transformed::no(expr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_as_in_postgresql() {
        for (text, expected) in [
            ("a", "a"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("a\"\\", "\"a\"\"\\\\\""),
            ("{1}", "{1}"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
