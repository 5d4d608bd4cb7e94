//! Parameters that a client declared as `uuid`, `jsonb`, `varchar` and their like, which arrow has as texts. They are
//! planned as values without a type, except where the type of a result is theirs: as columns, and within `CASE`,
//! `COALESCE` and other expressions that give back one of their values.

use crate::parse::rewrite::expressions::{call, cast};
use crate::types::casts::cast_functions::{JSON_IN, JSONB_IN};
use crate::types::names::name_of_last;
use crate::types::special_fields::{BPCHAR, JSON, JSONB, UUID, VARCHAR};
use crate::types::traversal::walk_mut;
use crate::types::uuids::UUID_IN;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, Value, Values,
    VisitorMut,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Functions that give back one of their arguments.
const GIVING_BACK: &[&str] = &[
    "array_agg",
    "coalesce",
    "first_value",
    "greatest",
    "lag",
    "last_value",
    "lead",
    "least",
    "max",
    "min",
    "nth_value",
    "nullif",
];

/// Names of the types, by the names of parameters.
pub struct Specials<'a>(pub &'a BTreeMap<String, &'static str>);

impl Specials<'_> {
    /// Reads parameters of a statement as values of their types.
    pub fn read(&mut self, statement: &mut Statement) {
        let _: ControlFlow<()> = walk_mut(statement, self);
    }

    fn special(&self, expr: &Expr) -> Option<&'static str> {
        match expr {
            Expr::Nested(inner) => self.special(inner),
            Expr::Value(value) => match &value.value {
                Value::Placeholder(name) => self.0.get(name).copied(),
                _ => None,
            },
            _ => None,
        }
    }

    fn read_expr(&self, expr: &mut Expr) {
        if let Some(special) = self.special(expr) {
            *expr = read_as(expr.clone(), special);
            return;
        }
        match expr {
            Expr::Nested(inner) => self.read_expr(inner),
            Expr::Case { conditions, else_result, .. } => {
                conditions.iter_mut().for_each(|one| self.read_expr(&mut one.result));
                else_result.iter_mut().for_each(|one| self.read_expr(one));
            }
            Expr::Array(array) => array.elem.iter_mut().for_each(|one| self.read_expr(one)),
            Expr::Function(function)
                if GIVING_BACK.contains(&name_of_last(&function.name).as_str()) =>
            {
                let FunctionArguments::List(list) = &mut function.args else { return };
                for arg in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                        self.read_expr(expr);
                    }
                }
            }
            Expr::BinaryOp { left, op, right } => {
                let is_json = |one: &Expr| matches!(self.special(one), Some(JSON | JSONB));
                let is_part = matches!(op, BinaryOperator::Arrow | BinaryOperator::HashArrow);
                let is_joined = *op == BinaryOperator::StringConcat;
                if (is_part || is_joined) && is_json(left) {
                    self.read_expr(left);
                }
                if is_joined && is_json(right) {
                    self.read_expr(right);
                }
            }
            _ => {}
        }
    }

    /// Reads the cells of columns that are parameters of one type in all rows.
    fn read_values(&self, values: &mut Values) {
        let count = values.rows.first().map_or(0, |row| row.content.len());
        for at in 0..count {
            let mut types = values.rows.iter().map(|row| self.special(row.content.get(at)?));
            let first = types.next().flatten();
            if first.is_none() || types.any(|one| one != first) {
                continue;
            }
            let cells = values.rows.iter_mut().filter_map(|row| row.content.get_mut(at));
            cells.for_each(|one| self.read_expr(one));
        }
    }
}

fn read_as(expr: Expr, special: &str) -> Expr {
    let json = |one: Expr| call(JSONB_IN, vec![one]);
    match special {
        UUID => call(UUID_IN, vec![expr]),
        JSONB => json(expr),
        JSON => call(JSON_IN, vec![expr]),
        VARCHAR => cast(expr, SqlType::Varchar(None)),
        BPCHAR => cast(expr, SqlType::Char(None)),
        _ => expr,
    }
}

impl VisitorMut for Specials<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Values(values) = &mut *query.body {
            self.read_values(values);
        }
        if let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(all) = &mut order.kind
        {
            all.iter_mut().for_each(|one| self.read_expr(&mut one.expr));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                self.read_expr(expr);
            }
        }
        if let GroupByExpr::Expressions(all, _) = &mut select.group_by {
            all.iter_mut().for_each(|one| self.read_expr(one));
        }
        ControlFlow::Continue(())
    }
}
