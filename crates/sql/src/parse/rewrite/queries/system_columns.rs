//! System columns of PostgreSQL's own tables (`xmin`, `ctid`, `tableoid`), which tools read to see what has changed
//! (<https://www.postgresql.org/docs/15/ddl-system-columns.html>). The rows here have no transactions and no places: but for
//! `xmin` the columns are constants. A user's table has none, as a metric may have a label of that name.

use crate::parse::rewrite::expressions::{call, cast, text_literal};
use crate::parse::rewrite::queries::outer_relations::name_of;
use crate::types::names::folded;
use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    TableFactor, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// Replaces system columns of PostgreSQL's own tables by their values.
pub fn write_out_system_columns(select: &mut Select) {
    let relations = || {
        select.from.iter().flat_map(|from| {
            std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
        })
    };
    let catalogs: Vec<String> =
        relations().filter(|one| is_catalog(one)).filter_map(name_of).collect();
    if catalogs.is_empty() {
        return;
    }
    let is_alone = relations().all(is_catalog);
    for item in &mut select.projection {
        keep_name(item, &catalogs, is_alone);
    }
    let mut visitor = SystemColumns { catalogs, is_alone, queries: 0 };
    let _: ControlFlow<()> = walk_mut(select, &mut visitor);
}

fn is_catalog(table: &TableFactor) -> bool {
    let TableFactor::Table { name, args: None, .. } = table else { return false };
    let parts: Vec<String> =
        name.0.iter().filter_map(ObjectNamePart::as_ident).map(folded).collect();
    match parts.as_slice() {
        [one] => one.starts_with("pg_"),
        [schema, _] => schema == crate::types::names::CATALOG_SCHEMA,
        _ => false,
    }
}

/// Keeps the name of a column that is selected as it is.
fn keep_name(item: &mut SelectItem, catalogs: &[String], is_alone: bool) {
    if let SelectItem::UnnamedExpr(expr) = item
        && let Some(column) = system_column(expr, catalogs, is_alone)
    {
        let alias = Ident::new(column);
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
}

/// The name of the system column that an expression is.
fn system_column(expr: &Expr, catalogs: &[String], is_alone: bool) -> Option<&'static str> {
    let name = match expr {
        Expr::Identifier(name) if is_alone => folded(name),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, name] if catalogs.contains(&folded(table)) => folded(name),
            _ => return None,
        },
        _ => return None,
    };
    ["xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"].into_iter().find(|one| *one == name)
}

struct SystemColumns {
    catalogs: Vec<String>,
    /// Whether all relations of the query are PostgreSQL's own.
    is_alone: bool,
    /// Queries around the expression.
    queries: usize,
}

impl VisitorMut for SystemColumns {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_alone = self.is_alone && self.queries == 0;
        if let Some(column) = system_column(expr, &self.catalogs, is_alone) {
            *expr = value_of(column);
        }
        ControlFlow::Continue(())
    }
}

fn value_of(column: &str) -> Expr {
    let of_type = |expr: Expr, name: &str| {
        cast(expr, SqlType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new()))
    };
    let zero = || Expr::value(Value::Number("0".to_string(), false));
    match column {
        // Tools read again what a later transaction wrote: they read it each time.
        "xmin" => of_type(call("txid_current", Vec::new()), "xid"),
        "xmax" => of_type(zero(), "xid"),
        "ctid" => text_literal("(0,1)".to_string()),
        "tableoid" => of_type(zero(), "oid"),
        _ => of_type(zero(), "cid"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::rewrite::expressions::query;
    use datafusion::sql::sqlparser::ast::SetExpr;

    fn written_out(text: &str) -> String {
        let mut query = query(text).unwrap();
        if let SetExpr::Select(select) = &mut *query.body {
            write_out_system_columns(select);
        }
        query.to_string()
    }

    #[test]
    fn system_columns_of_catalogs_are_constants() {
        for (text, expected) in [
            (
                "SELECT c.xmin FROM pg_class AS c",
                "SELECT CAST(txid_current() AS xid) AS xmin FROM pg_class AS c",
            ),
            ("SELECT xmin FROM up", "SELECT xmin FROM up"),
            ("SELECT xmin FROM pg_class, up", "SELECT xmin FROM pg_class, up"),
            (
                "SELECT (SELECT xmin FROM up WHERE c.xmin = 1) FROM pg_catalog.pg_class AS c",
                "SELECT (SELECT xmin FROM up WHERE CAST(txid_current() AS xid) = 1) FROM pg_catalog.pg_class AS c",
            ),
        ] {
            assert_eq!(written_out(text), expected);
        }
    }
}
