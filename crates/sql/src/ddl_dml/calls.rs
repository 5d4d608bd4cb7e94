//! Calls of functions that are statements, such as `SELECT create_hypertable(..)`: names and arguments.

use crate::parse::rewrite::expressions::call;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SelectItem, SetExpr,
    TableFactor, Value,
};
use std::borrow::Cow;

/// The arguments of a call with their names; those without one have the names of their places.
pub fn arguments<'f>(function: &'f Function, places: &[&str]) -> Vec<(String, &'f Expr)> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let named = |(nth, arg): (usize, &'f FunctionArg)| match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. }
        | FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(expr),
            ..
        } => Some((name.value.to_ascii_lowercase(), expr)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
            Some(((*places.get(nth).unwrap_or(&"")).to_string(), expr))
        }
        _ => None,
    };
    list.args.iter().enumerate().filter_map(named).collect()
}

/// The function that a query calls, if it does nothing else.
pub fn called(query: &Query) -> Option<Cow<'_, Function>> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let [item] = select.projection.as_slice() else { return None };
    let of_table = match select.from.as_slice() {
        [] => None,
        [one] if one.joins.is_empty() && is_star(item) => Some(&one.relation),
        _ => return None,
    };
    match (of_table, item) {
        (None, SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
            match expr {
                Expr::Function(function) => Some(Cow::Borrowed(function)),
                _ => None,
            }
        }
        (Some(TableFactor::Table { name, args: Some(args), .. }), _) => {
            // The same call as it stands in a select list.
            let Expr::Function(mut function) = call("f", Vec::new()) else { return None };
            function.name = name.clone();
            if let FunctionArguments::List(list) = &mut function.args {
                list.args.clone_from(&args.args);
            }
            Some(Cow::Owned(function))
        }
        _ => None,
    }
}

/// A table's name without its schema and quotes.
pub fn plain_name(name: &str) -> String {
    let plain = |name: &str| match name.strip_prefix('"').and_then(|one| one.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_ascii_lowercase(),
    };
    let bare = ["public.", "\"public\"."].iter().find_map(|schema| name.strip_prefix(schema));
    plain(bare.unwrap_or(name))
}

/// A text, or a cast of one.
pub fn text_of(expr: &Expr) -> Option<String> {
    let plain = match expr {
        Expr::Cast { expr, .. } => expr,
        plain => plain,
    };
    match plain {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn is_star(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_))
}
