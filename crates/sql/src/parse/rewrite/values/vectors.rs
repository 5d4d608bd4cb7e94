//! Lists of columns' numbers in PostgreSQL's own tables, in the ways in which clients take them apart:
//! `generate_subscripts(indkey, 1)`, `indoption[0]`, `information_schema._pg_expandarray(indkey)`, and
//! `unnest(conkey)` of the row of another table.

use crate::catalog::keys::VECTORS;
use crate::functions::arrays::array_slices::SLICE;
use crate::functions::vectors::{EXPANDED, PLACES, VECTOR_PLACES, WHOLE};
use crate::parse::rewrite::expressions::{arguments, call, is_named, literal, query, text_literal};
use crate::parse::rewrite::queries::subqueries::both;
use crate::types::names::{CATALOG_SCHEMA, folded};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, Ident,
    JoinConstraint, JoinOperator, Select, Subscript, TableAlias, TableFactor, UnaryOperator, Value,
};

/// Columns whose places are counted from 0.
const VECTOR_COLUMNS: &[&str] = &["indkey", "indoption", "indclass", "indcollation"];
/// Other columns with lists of columns' numbers.
const LIST_COLUMNS: &[&str] = &["conkey", "confkey", "confdelsetcols"];

/// The name of the column that an expression is, whatever it is a column of.
fn column_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(folded(ident)),
        Expr::CompoundIdentifier(parts) => parts.last().map(folded),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => column_of(inner),
        _ => None,
    }
}

/// Whether it is counted from 0; some call it by its table's name before, as `i_indoption`.
fn is_vector(expr: &Expr) -> bool {
    column_of(expr).is_some_and(|name| VECTOR_COLUMNS.iter().any(|one| name.ends_with(one)))
}

fn rows(list: &str, value: &Expr) -> Expr {
    call("unnest", vec![call(list, vec![value.clone()])])
}

/// The places of an array's elements, which `generate_subscripts` returns.
pub fn places(list: &Expr) -> Expr {
    rows(if is_vector(list) { VECTOR_PLACES } else { PLACES }, list)
}

/// Functions that make rows of such a list.
pub fn vector_call(function: &Function) -> Option<Expr> {
    let args = arguments(function)?;
    match args.as_slice() {
        [list] if is_named(&function.name, "_pg_expandarray") => Some(rows(EXPANDED, list)),
        _ => None,
    }
}

/// `(_pg_expandarray(indkey)).n`, `(i.keys).x` and `indoption[0]`.
pub fn vector_part(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    match (root, chain) {
        (Expr::Nested(inner), [AccessExpr::Dot(Expr::Identifier(part))]) => {
            let is_made = |function: &Function| is_named(&function.name, "_pg_expandarray");
            match &**inner {
                Expr::Function(function) if is_made(function) => {
                    let list = *arguments(function)?.first()?;
                    match folded(part).as_str() {
                        "n" => Some(rows(PLACES, list)),
                        "x" => Some(call("unnest", vec![list.clone()])),
                        _ => None,
                    }
                }
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                    let name = text_literal(folded(part));
                    Some(call("get_field", vec![(**inner).clone(), name]))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// `indoption[n]` is what is at the place `n + 1`; `i.indkey[n]` comes as a chain behind `i`.
pub fn count_from_1(root: &Expr, chain: &mut [AccessExpr]) {
    let is_first = is_vector(root);
    let (last, before) = match chain.split_last_mut() {
        Some((last, before)) => (last, before),
        None => return,
    };
    let is_behind = matches!(before.last(), Some(AccessExpr::Dot(dot)) if is_vector(dot));
    if let AccessExpr::Subscript(Subscript::Index { index }) = last
        && (before.is_empty() && is_first || is_behind)
    {
        let one = Expr::Value(Value::Number("1".into(), false).into());
        let (left, right) = (Box::new(Expr::Nested(Box::new(index.clone()))), Box::new(one));
        *index = Expr::BinaryOp { left, op: BinaryOperator::Plus, right };
    }
}

/// Rewrites `doc['a'][0]` as `doc -> 'a' -> 0`: only a `jsonb` has subscripts that are texts
/// (<https://www.postgresql.org/docs/15/datatype-json.html#JSONB-SUBSCRIPTING>).
pub fn subscripts_as_fields(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = &*expr else { return };
    let index = |access: &AccessExpr| match access {
        AccessExpr::Subscript(Subscript::Index { index }) => Some(index.clone()),
        _ => None,
    };
    let Some(indexes) = access_chain.iter().map(index).collect::<Option<Vec<Expr>>>() else {
        return;
    };
    let is_key = |index: &Expr| literal(index).is_some_and(|key| key.parse::<i64>().is_err());
    if !indexes.first().is_some_and(is_key) {
        return;
    }
    let fields = indexes.into_iter().fold((**root).clone(), |left, index| {
        let (left, right) = (Box::new(left), Box::new(index));
        Expr::BinaryOp { left, op: BinaryOperator::Arrow, right }
    });
    *expr = Expr::Nested(Box::new(fields));
}

/// `(array)[-1]` is NULL; DataFusion counts such places from the end.
pub fn null_at_negative_places(chain: &mut [AccessExpr]) {
    for access in chain {
        if let AccessExpr::Subscript(Subscript::Index { index }) = access
            && matches!(index, Expr::UnaryOp { op: UnaryOperator::Minus, .. })
        {
            *index = Expr::Value(Value::Null.into());
        }
    }
}

/// `(array)[lower:upper]`.
pub fn array_slice(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    let [
        before @ ..,
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }),
    ] = chain
    else {
        return None;
    };
    let is_column = |one: &AccessExpr| matches!(one, AccessExpr::Dot(_));
    if !before.iter().all(is_column) {
        return None;
    }
    let array = match before.is_empty() {
        true => root.clone(),
        false => Expr::CompoundFieldAccess {
            root: Box::new(root.clone()),
            access_chain: before.to_vec(),
        },
    };
    let bound = |given: &Option<Expr>, open: i32| match given {
        Some(bound) => bound.clone(),
        None => Expr::Value(Value::Number(open.to_string(), false).into()),
    };
    Some(call(SLICE, vec![array, bound(lower_bound, 1), bound(upper_bound, i32::MAX)]))
}

/// `unnest(c.conkey) [WITH ORDINALITY]` beside or under the table `c`: DataFusion knows no such table, but
/// all lists that there are are known, and the row's own is found among them.
pub fn vectors_as_tables(select: &mut Select) {
    let mut found = Vec::new();
    for (at, from) in select.from.iter_mut().enumerate() {
        if let Some(condition) = vector_as_table(&mut from.relation, at) {
            found.push(condition);
        }
        for (nth, join) in from.joins.iter_mut().enumerate() {
            let Some(condition) = vector_as_table(&mut join.relation, 100 * (at + 1) + nth) else {
                continue;
            };
            match &mut join.join_operator {
                JoinOperator::Join(JoinConstraint::On(on))
                | JoinOperator::Inner(JoinConstraint::On(on))
                | JoinOperator::Left(JoinConstraint::On(on))
                | JoinOperator::LeftOuter(JoinConstraint::On(on)) => {
                    *on = both(on.clone(), condition);
                }
                _ => found.push(condition),
            }
        }
    }
    for condition in found {
        select.selection = Some(match select.selection.take() {
            Some(selection) => both(selection, condition),
            None => condition,
        });
    }
}

fn vector_as_table(table: &mut TableFactor, at: usize) -> Option<Expr> {
    let (list, is_numbered, alias) = match &*table {
        TableFactor::UNNEST { array_exprs, with_ordinality, alias, .. } => match &**array_exprs {
            [list] => (list.clone(), *with_ordinality, alias.clone()),
            _ => return None,
        },
        TableFactor::Table { name, args: Some(called), with_ordinality, alias, .. }
            if is_named(name, "unnest") =>
        {
            (only(&called.args)?, *with_ordinality, alias.clone())
        }
        TableFactor::Function { name, args, with_ordinality, alias, .. }
            if is_named(name, "unnest") =>
        {
            (only(args)?, *with_ordinality, alias.clone())
        }
        _ => return None,
    };
    let column = column_of(&list)?;
    let is_known = |one: &&str| **one == *column;
    if !VECTOR_COLUMNS.iter().chain(LIST_COLUMNS).any(is_known) {
        return None;
    }
    let given = alias.as_ref().map(|alias| folded(&alias.name));
    let name = given.clone().unwrap_or_else(|| "unnest".to_string());
    let mut columns = alias.iter().flat_map(|alias| &alias.columns).map(|one| folded(&one.name));
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let value = quoted(&columns.next().unwrap_or_else(|| name.clone()));
    let nth = quoted(&columns.next().unwrap_or_else(|| "ordinality".to_string()));
    let whole = format!("whole\0{at}");
    let numbered = if is_numbered { format!(", nth AS {nth}") } else { String::new() };
    let text = format!(
        "SELECT value AS {value}{numbered}, whole AS {} FROM {CATALOG_SCHEMA}.{}",
        quoted(&whole),
        quoted(VECTORS)
    );
    let subquery = query(&text)?;
    let ident = Ident::with_quote('"', &name);
    let column = vec![ident.clone(), Ident::with_quote('"', whole)];
    let alias = TableAlias { explicit: true, name: ident, columns: Vec::new(), at: None };
    *table = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
    Some(Expr::BinaryOp {
        left: Box::new(Expr::CompoundIdentifier(column)),
        op: BinaryOperator::Eq,
        right: Box::new(call(WHOLE, vec![list])),
    })
}

fn only(args: &[FunctionArg]) -> Option<Expr> {
    match args {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => Some(expr.clone()),
        _ => None,
    }
}
