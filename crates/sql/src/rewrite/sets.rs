//! Functions that make rows: `jsonb_object_keys`, `jsonb_each` and `jsonb_each_text`, in the select
//! list and as tables. DataFusion makes rows of lists, so each becomes the list of what it makes.

use super::expressions::{arguments, call, is_named};
use super::types::name_of_last;
use crate::error::SqlError;
use crate::generate_series;
use crate::jsonb_parts::{IS_JSONB, KEYS, PAIRS, TEXT_PAIRS, TEXTS, VALUES};
use crate::names::folded;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, Ident, ObjectName, Query, Select,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Visit, Visitor,
};
use std::ops::ControlFlow;

/// A function that makes rows.
#[derive(Clone, Copy, PartialEq)]
enum Set {
    Keys,
    Each,
    EachText,
}

impl Set {
    fn of(name: &ObjectName) -> Option<Set> {
        let all = [
            ("jsonb_object_keys", Set::Keys),
            ("jsonb_each", Set::Each),
            ("jsonb_each_text", Set::EachText),
        ];
        all.into_iter().find(|(one, _)| is_named(name, one)).map(|(_, set)| set)
    }

    /// Its columns as a table, and what they are of a value; `only` is the name of the one column of
    /// a function that has one.
    fn columns(self, only: &str, value: &Expr) -> Vec<(String, Expr)> {
        match self {
            Set::Keys => vec![(only.to_string(), rows(KEYS, value))],
            Set::Each => vec![
                ("key".to_string(), rows(KEYS, value)),
                ("value".to_string(), call(IS_JSONB, vec![rows(VALUES, value)])),
            ],
            Set::EachText => vec![
                ("key".to_string(), rows(KEYS, value)),
                ("value".to_string(), rows(TEXTS, value)),
            ],
        }
    }
}

/// The rows of a list.
fn rows(list: &str, value: &Expr) -> Expr {
    call("unnest", vec![call(list, vec![value.clone()])])
}

/// Such a function in the select list: a row of two is shown as one text.
pub fn set_in_list(function: &Function) -> Option<Expr> {
    let value = *arguments(function)?.first()?;
    Some(match Set::of(&function.name)? {
        Set::Keys => rows(KEYS, value),
        Set::Each => rows(PAIRS, value),
        Set::EachText => rows(TEXT_PAIRS, value),
    })
}

/// `(jsonb_each(x)).key`.
pub fn part_of_set(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    let Expr::Nested(inner) = root else { return None };
    let Expr::Function(function) = &**inner else { return None };
    let [AccessExpr::Dot(Expr::Identifier(part))] = chain else { return None };
    let value = *arguments(function)?.first()?;
    let columns = Set::of(&function.name)?.columns("", value);
    columns.into_iter().find(|(name, _)| *name == folded(part)).map(|(_, expr)| expr)
}

/// Gives the one column of `generate_series` the table's name, as PostgreSQL does.
pub fn name_series(table: &mut TableFactor) {
    let TableFactor::Table { name, args: Some(_), alias, .. } = table else { return };
    if !is_named(name, generate_series::NAME) {
        return;
    }
    let plain =
        |ident: Ident| TableAlias { explicit: true, name: ident, columns: Vec::new(), at: None };
    let alias = alias.get_or_insert_with(|| plain(Ident::new(generate_series::NAME)));
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

/// Such a function as a table is a query of its columns, which may name those of tables to the left.
///
/// # Errors
/// When rows are to be numbered.
pub fn set_as_table(table: &mut TableFactor) -> Result<(), SqlError> {
    let (name, args, is_numbered, alias) = match &*table {
        TableFactor::Table { name, args: Some(called), with_ordinality, alias, .. } => {
            (name, &called.args, *with_ordinality, alias)
        }
        TableFactor::Function { name, args, with_ordinality, alias, .. } => {
            (name, args, *with_ordinality, alias)
        }
        _ => return Ok(()),
    };
    let Some(set) = Set::of(name) else { return Ok(()) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = args.as_slice() else {
        let words = format!("{name} takes a jsonb");
        return Err(SqlError::new("42883", words));
    };
    // It stands there twice, and would do so within itself.
    if has_query(value) {
        let words = "a function that makes rows of a subquery is not known here: name the subquery in \
                     WITH or FROM";
        return Err(SqlError::unsupported(words));
    }
    if is_numbered {
        return Err(SqlError::unsupported("WITH ORDINALITY is not known here"));
    }
    let alias = alias.clone().unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', name_of_last(name)),
        columns: Vec::new(),
        at: None,
    });
    // A function of one column calls it as the table is called.
    let columns = set.columns(&folded(&alias.name), value);
    let item =
        |(name, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
    let Some(subquery) = query_of(columns.into_iter().map(item).collect()) else {
        return Err(SqlError::unexpected("a query that is none"));
    };
    *table = TableFactor::Derived { lateral: true, subquery, alias: Some(alias), sample: None };
    Ok(())
}

fn has_query(expr: &Expr) -> bool {
    struct Finder;
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    Visit::visit(expr, &mut Finder).is_break()
}

/// `SELECT items`.
fn query_of(items: Vec<SelectItem>) -> Option<Box<Query>> {
    let mut query = super::expressions::query("SELECT 1")?;
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let plain: &mut Select = select;
    plain.projection = items;
    Some(query)
}
