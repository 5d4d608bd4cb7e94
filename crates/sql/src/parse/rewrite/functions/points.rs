//! `FROM unnest((SELECT lttb(time, value, 100) FROM ..))`: the points as rows of their times and values.

use crate::functions::toolkit::lttb::{LTTB, TIME as POINT_TIME, VALUE as POINT_VALUE};
use crate::parse::rewrite::expressions::{is_named, query};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Query, SelectItem, SetExpr, TableAlias, TableFactor,
};

/// What the list of points is called between.
const LIST: &str = "\0points";

/// Such a table as a query; others stay as they are.
pub fn points_as_table(table: &mut TableFactor) {
    let (list, alias) =
        match &*table {
            TableFactor::UNNEST { array_exprs, with_ordinality: false, alias, .. } => {
                match &**array_exprs {
                    [list] => (list, alias),
                    _ => return,
                }
            }
            TableFactor::Table {
                name, args: Some(called), with_ordinality: false, alias, ..
            } if is_named(name, "unnest") => match &*called.args {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] => (list, alias),
                _ => return,
            },
            _ => return,
        };
    let Some(subquery) = list_of_points(list).and_then(rows_of) else { return };
    let name = Ident::new("unnest");
    let plain = || TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    let alias = Some(alias.clone().unwrap_or_else(plain));
    *table = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
}

/// The query of one list of points, which it calls [`LIST`].
fn list_of_points(list: &Expr) -> Option<Box<Query>> {
    let subquery = match list {
        Expr::Subquery(subquery) => subquery,
        Expr::Nested(inner) => return list_of_points(inner),
        _ => return None,
    };
    let mut subquery = subquery.clone();
    let SetExpr::Select(select) = &mut *subquery.body else { return None };
    let [item] = select.projection.as_mut_slice() else { return None };
    let expr = match &*item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
        _ => return None,
    };
    let Expr::Function(function) = &expr else { return None };
    if !is_named(&function.name, LTTB) {
        return None;
    }
    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', LIST) };
    Some(subquery)
}

/// The points of that list.
fn rows_of(list: Box<Query>) -> Option<Box<Query>> {
    let text = format!(
        "SELECT get_field(point, '{POINT_TIME}') AS time, get_field(point, '{POINT_VALUE}') AS value \
         FROM (SELECT unnest(\"{LIST}\") AS point FROM lists) AS points"
    );
    let mut made = query(&text)?;
    let outer = only_table(&mut made)?;
    let TableFactor::Derived { subquery, .. } = outer else { return None };
    let lists = only_table(subquery)?;
    let alias =
        TableAlias { explicit: true, name: Ident::new("lists"), columns: Vec::new(), at: None };
    *lists =
        TableFactor::Derived { lateral: false, subquery: list, alias: Some(alias), sample: None };
    Some(made)
}

fn only_table(query: &mut Query) -> Option<&mut TableFactor> {
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let [from] = select.from.as_mut_slice() else { return None };
    Some(&mut from.relation)
}
