//! `WHERE` of such a statement: conditions on the time and on labels, which the store answers whole, and on values,
//! by which rows are left out as they are read.

use crate::plan::straight::words::{Plain, Scope, comparison, own_name, value};
use crate::plan::typing::casts::cast_changes::literal_time;
use crate::tables::heap::columns::column_type;
use crate::tables::heap::scan::Ordinary;
use crate::tables::heap::view::View;
use crate::tables::hypertables::conditions::{Asked, ValueCondition};
use crate::tables::hypertables::shape::Hypertable;
use datafusion::common::Column;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::sql::sqlparser::ast;
use model::TimeRange;
use std::sync::Arc;

/// Values of such a list; one that has more is the planner's.
const LISTED_MAX: usize = 20_000;

/// All of them hold.
#[derive(Default)]
pub struct Conditions {
    /// What the store answers.
    filters: Vec<Expr>,
    /// What values say themselves.
    pub values: Vec<ValueCondition>,
    lists: Vec<Listed>,
}

/// `label IN (SELECT column FROM table WHERE ..)`, whose rows are found by a value.
struct Listed {
    label: Expr,
    table: Ordinary,
    column: String,
    filters: Vec<Expr>,
}

impl Conditions {
    /// What a condition says, if all of it is understood.
    pub fn of(
        scope: &Scope<'_>,
        selection: Option<&ast::Expr>,
        view: &Arc<View>,
    ) -> Option<Conditions> {
        let mut all = Conditions::default();
        match selection {
            Some(selection) => all.add(scope, selection, view).then_some(all),
            None => Some(all),
        }
    }

    /// Adds a condition; says whether it is understood.
    fn add(&mut self, scope: &Scope<'_>, expr: &ast::Expr, view: &Arc<View>) -> bool {
        match expr {
            ast::Expr::Nested(inner) => return self.add(scope, inner, view),
            ast::Expr::BinaryOp { left, op: ast::BinaryOperator::And, right } => {
                return self.add(scope, left, view) && self.add(scope, right, view);
            }
            ast::Expr::InSubquery { expr, subquery, negated: false } => {
                let listed = listed(scope, expr, subquery, view);
                let is_known = listed.is_some();
                self.lists.extend(listed);
                return is_known;
            }
            _ => {}
        }
        let Some(said) = condition(scope, expr) else { return false };
        if let Some(value) = ValueCondition::said(scope.table, &said) {
            self.values.push(value);
            return true;
        }
        let is_known = Asked::said(scope.table, &said).is_some();
        self.filters.push(said);
        is_known
    }

    /// The tables whose rows are listed.
    pub fn tables(&self) -> impl Iterator<Item = &Ordinary> {
        self.lists.iter().map(|list| &list.table)
    }

    /// What the store is asked for now; none where only the planner finds what is listed.
    pub fn asked(&self, table: &Hypertable) -> Option<Asked> {
        let mut asked = Asked::everything();
        for filter in &self.filters {
            asked.narrow(Asked::said(table, filter)?);
        }
        for list in &self.lists {
            let filters: Vec<&Expr> = list.filters.iter().collect();
            let values = list.table.values_of(&list.column, &filters)?;
            if values.is_empty() {
                // Nothing is in an empty list.
                asked.range = TimeRange::new(i64::MAX, i64::MIN);
                return Some(asked);
            }
            if LISTED_MAX < values.len() {
                return None;
            }
            let list = InList {
                expr: Box::new(list.label.clone()),
                list: values.into_iter().map(|one| Expr::Literal(one, None)).collect(),
                negated: false,
            };
            asked.narrow(Asked::said(table, &Expr::InList(list))?);
        }
        Some(asked)
    }
}

fn named(scope: &Scope<'_>, at: usize) -> Expr {
    Expr::Column(Column::from_name(scope.name(at)))
}

/// A literal as it is compared with a column: a time, where it is compared with one.
fn literal(scope: &Scope<'_>, at: usize, expr: &ast::Expr) -> Option<Expr> {
    let wanted = column_type(&scope.table.schema.columns[at]);
    if let ast::Expr::Cast {
        kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
        expr,
        data_type,
        array: false,
        format: None,
    } = expr
    {
        // A cast of a text to the type that the column has anyway.
        let is_same = at == scope.table.time
            && crate::parse::rewrite::types::arrow_type(data_type).is_some_and(|ty| ty == wanted);
        return is_same.then(|| literal(scope, at, expr)).flatten();
    }
    let value = Expr::Literal(value(expr)?, None);
    match at == scope.table.time {
        true => literal_time(&value, &wanted),
        false => Some(value),
    }
}

/// `column op literal`, either way round.
fn compared(
    scope: &Scope<'_>,
    left: &ast::Expr,
    op: Operator,
    right: &ast::Expr,
) -> Option<(usize, Operator, Expr)> {
    match (scope.column(left), scope.column(right)) {
        (Some(at), None) => Some((at, op, literal(scope, at, right)?)),
        (None, Some(at)) => Some((at, op.swap()?, literal(scope, at, left)?)),
        _ => None,
    }
}

/// A condition in the planner's words, as far as the store may answer it.
fn condition(scope: &Scope<'_>, expr: &ast::Expr) -> Option<Expr> {
    let binary = |left, op, right| {
        Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
    };
    match expr {
        ast::Expr::Nested(inner) => condition(scope, inner),
        ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Or, right } => {
            Some(binary(condition(scope, left)?, Operator::Or, condition(scope, right)?))
        }
        ast::Expr::BinaryOp { left, op, right } => {
            let (at, op, value) = compared(scope, left, comparison(op)?, right)?;
            Some(binary(named(scope, at), op, value))
        }
        ast::Expr::Between { expr, negated: false, low, high } => {
            let at = scope.column(expr)?;
            let side = |op, side| Some(binary(named(scope, at), op, literal(scope, at, side)?));
            let (low, high) = (side(Operator::GtEq, low)?, side(Operator::LtEq, high)?);
            Some(binary(low, Operator::And, high))
        }
        ast::Expr::InList { expr, list, negated: false } => {
            let at = scope.column(expr)?;
            let list = list.iter().map(|one| literal(scope, at, one)).collect::<Option<_>>()?;
            let expr = Box::new(named(scope, at));
            Some(Expr::InList(InList { expr, list, negated: false }))
        }
        ast::Expr::IsNull(inner) => {
            Some(Expr::IsNull(Box::new(named(scope, scope.column(inner)?))))
        }
        ast::Expr::IsNotNull(inner) => {
            Some(Expr::IsNotNull(Box::new(named(scope, scope.column(inner)?))))
        }
        _ => None,
    }
}

fn listed(
    scope: &Scope<'_>,
    label: &ast::Expr,
    subquery: &ast::Query,
    view: &Arc<View>,
) -> Option<Listed> {
    let plain = Plain::of_query(subquery)?;
    let at = scope.column(label).filter(|at| scope.table.labels.contains(at))?;
    if plain.is_grouped() || !plain.sorts.is_empty() || plain.limit.is_some() {
        return None;
    }
    let name = own_name(plain.table)?;
    let found = view.get(&name)?;
    let table = Ordinary::new(view, &found, false);
    let inner = Inner {
        table: &table,
        qualifier: plain.alias.map(crate::types::names::folded).unwrap_or(name),
    };
    let [ast::SelectItem::UnnamedExpr(column)] = plain.projection else { return None };
    let column = inner.column(column)?;
    let mut filters = Vec::new();
    inner.conditions(plain.selection?, &mut filters)?;
    Some(Listed { label: named(scope, at), table, column, filters })
}

/// What names stand for in a query of one ordinary table. Those that it does not have may be of the query around it.
struct Inner<'t> {
    table: &'t Ordinary,
    qualifier: String,
}

impl Inner<'_> {
    fn column(&self, expr: &ast::Expr) -> Option<String> {
        let name = match expr {
            ast::Expr::Nested(inner) => return self.column(inner),
            ast::Expr::Identifier(name) => name,
            ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [qualifier, name] if crate::types::names::folded(qualifier) == self.qualifier => {
                    name
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(crate::types::names::folded(name)).filter(|name| self.table.has_column(name))
    }

    /// `column = literal` and `column IN (literals)`, all of which hold.
    fn conditions(&self, expr: &ast::Expr, into: &mut Vec<Expr>) -> Option<()> {
        let literal = |expr: &ast::Expr| value(expr).map(|value| Expr::Literal(value, None));
        let column = |expr: &ast::Expr| Some(Expr::Column(Column::from_name(self.column(expr)?)));
        match expr {
            ast::Expr::Nested(inner) => self.conditions(inner, into)?,
            ast::Expr::BinaryOp { left, op: ast::BinaryOperator::And, right } => {
                self.conditions(left, into)?;
                self.conditions(right, into)?;
            }
            ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Eq, right } => {
                let (left, right) = (Box::new(column(left)?), Box::new(literal(right)?));
                into.push(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }));
            }
            ast::Expr::InList { expr, list, negated: false } => {
                let list = list.iter().map(literal).collect::<Option<Vec<_>>>()?;
                let expr = Box::new(column(expr)?);
                into.push(Expr::InList(InList { expr, list, negated: false }));
            }
            _ => return None,
        }
        Some(())
    }
}
