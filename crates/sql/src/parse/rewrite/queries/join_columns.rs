//! Columns that `USING` merges. Of `RIGHT JOIN` the merged column is the right side's, of `FULL JOIN` that of
//! the side that has the row; DataFusion takes the left side's.
//!
//! ```text
//! SELECT id FROM a FULL JOIN b USING (id)      becomes      SELECT coalesce(a.id, b.id) AS id ..
//! ```

use crate::parse::rewrite::expressions::call;
use crate::types::error::SqlError;
use crate::types::names::folded;
use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, VisitorMut, WildcardAdditionalOptions,
};
use std::ops::ControlFlow;

/// A column that some tables share.
#[derive(Clone, Debug)]
struct Merged {
    name: String,
    /// Its value, if it is known by which table.
    value: Option<Expr>,
    /// The tables that have it.
    tables: Vec<Ident>,
    /// Whether DataFusion would take another value for it.
    is_changed: bool,
}

/// The tables that are joined, and the columns that they share.
#[derive(Default)]
struct Joined {
    /// None of a table without a name.
    tables: Vec<Option<Ident>>,
    /// As `*` shows them: those of the last join first.
    merged: Vec<Merged>,
}

/// Merged columns of a query's tables, in place of their names.
///
/// # Errors
/// `0A000` where it is not known of which tables they are.
pub fn merge_columns(select: &mut Select, order: Option<&mut OrderBy>) -> Result<(), SqlError> {
    let mut all = Vec::new();
    for from in &mut select.from {
        let mut joined = Joined::default();
        joined.tables.push(table_name(&from.relation));
        for join in &mut from.joins {
            joined.add(join)?;
        }
        all.push(joined);
    }
    if !all.iter().any(|joined| joined.merged.iter().any(|one| one.is_changed)) {
        name_tables(select, order, &all);
        return Ok(());
    }
    let changed = all.iter().flat_map(|joined| &joined.merged).filter(|one| one.is_changed);
    let changed: Vec<Merged> = changed.cloned().collect();
    let named = shown_names(select);
    write_out_wildcards(select, &all)?;
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item
            && changed.iter().any(|one| one.name == folded(name))
        {
            *item = SelectItem::ExprWithAlias {
                expr: Expr::Identifier(name.clone()),
                alias: name.clone(),
            };
        }
    }
    let mut replacer = Replacer { merged: &changed, queries: 0 };
    let from = std::mem::take(&mut select.from);
    let _: ControlFlow<()> = walk_mut(select, &mut replacer);
    select.from = from;
    if let Some(order) = order {
        let shown = shown_names(select);
        // DataFusion reports a name from `*` as ambiguous, so ORDER BY gets the qualified column.
        let is_hidden = |one: &Merged| match &one.value {
            Some(Expr::CompoundIdentifier(_)) => !named.contains(&one.name),
            _ => !shown.contains(&one.name),
        };
        let hidden: Vec<Merged> = changed.into_iter().filter(is_hidden).collect();
        let _: ControlFlow<()> = walk_mut(order, &mut Replacer { merged: &hidden, queries: 0 });
    }
    Ok(())
}

/// Qualifies the names of merged columns in expressions with their tables: DataFusion reports them as ambiguous.
fn name_tables(select: &mut Select, order: Option<&mut OrderBy>, all: &[Joined]) {
    let merged: Vec<Merged> = all.iter().flat_map(|joined| joined.merged.clone()).collect();
    if merged.is_empty() {
        return;
    }
    // `*` shows merged columns first. A table without a name has no other order to show.
    let shown = select.projection.clone();
    if write_out_wildcards(select, all).is_err() {
        select.projection = shown;
    }
    let mut replacer = Replacer { merged: &merged, queries: 0 };
    // A column by itself keeps its name.
    for item in &mut select.projection {
        if !matches!(item, SelectItem::UnnamedExpr(Expr::Identifier(_))) {
            let _: ControlFlow<()> = walk_mut(item, &mut replacer);
        }
    }
    let _: ControlFlow<()> = walk_mut(&mut select.selection, &mut replacer);
    let _: ControlFlow<()> = walk_mut(&mut select.group_by, &mut replacer);
    let _: ControlFlow<()> = walk_mut(&mut select.having, &mut replacer);
    if let Some(OrderBy { kind: OrderByKind::Expressions(sorts), .. }) = order {
        let computed = sorts.iter_mut().filter(|one| !matches!(one.expr, Expr::Identifier(_)));
        for sort in computed {
            let _: ControlFlow<()> = walk_mut(&mut sort.expr, &mut replacer);
        }
    }
}

fn shown_names(select: &Select) -> Vec<String> {
    let name = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(folded(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(folded),
        _ => None,
    };
    select.projection.iter().filter_map(name).collect()
}

/// What the columns of a table are called by.
fn table_name(table: &TableFactor) -> Option<Ident> {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, args: None, .. } => {
            name.0.last().and_then(ObjectNamePart::as_ident).cloned()
        }
        _ => None,
    }
}

fn column(table: &Ident, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), Ident::with_quote('"', name)])
}

impl Joined {
    fn add(&mut self, join: &mut Join) -> Result<(), SqlError> {
        let right = table_name(&join.relation);
        let is_right =
            matches!(join.join_operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_));
        let is_full = matches!(join.join_operator, JoinOperator::FullOuter(_));
        let Some(constraint) = constraint_of(&mut join.join_operator) else {
            self.tables.push(right);
            return Ok(());
        };
        match constraint {
            JoinConstraint::Natural if is_right || is_full => {
                let words = "NATURAL RIGHT JOIN and NATURAL FULL JOIN are not known here";
                return Err(SqlError::unsupported(words).with_hint("Say USING (..)."));
            }
            JoinConstraint::On(condition) => {
                let mut replacer = Replacer { merged: &self.merged, queries: 0 };
                let _: ControlFlow<()> = walk_mut(condition, &mut replacer);
            }
            JoinConstraint::Using(names) => {
                let names: Vec<Ident> = names
                    .iter()
                    .filter_map(|name| name.0.last().and_then(ObjectNamePart::as_ident).cloned())
                    .collect();
                self.merge(&names, right.as_ref(), is_right, is_full, constraint)?;
            }
            _ => {}
        }
        self.tables.push(right);
        Ok(())
    }

    /// Merges the columns of one join.
    fn merge(
        &mut self,
        names: &[Ident],
        right: Option<&Ident>,
        is_right: bool,
        is_full: bool,
        constraint: &mut JoinConstraint,
    ) -> Result<(), SqlError> {
        let mut made = Vec::new();
        for name in names {
            let name = folded(name);
            let old = self.merged.iter().position(|one| one.name == name);
            let left = match old.map(|at| self.merged.remove(at)) {
                // DataFusion reports a name that three tables have as ambiguous.
                Some(merged) => Merged { is_changed: true, ..merged },
                None => self.own(&name),
            };
            made.push(merge_two(left, &name, right, is_right, is_full)?);
        }
        // The left side's value is not the one that DataFusion would join by.
        if made.iter().any(|(left, _)| left.is_changed) {
            let right = right.ok_or_else(nameless)?;
            let equal = made.iter().filter_map(|(left, _)| {
                Some(Expr::Nested(Box::new(Expr::BinaryOp {
                    left: Box::new(left.value.clone()?),
                    op: BinaryOperator::Eq,
                    right: Box::new(column(right, &left.name)),
                })))
            });
            if let Some(condition) = equal.reduce(crate::parse::rewrite::queries::subqueries::both)
            {
                *constraint = JoinConstraint::On(condition);
            }
            made.iter_mut().for_each(|(_, merged)| merged.is_changed = true);
        }
        let made = made.into_iter().map(|(_, merged)| merged);
        self.merged = made.chain(std::mem::take(&mut self.merged)).collect();
        Ok(())
    }

    /// A column of one of the tables so far.
    fn own(&self, name: &str) -> Merged {
        let only = match self.tables.as_slice() {
            [Some(table)] => Some(table),
            _ => None,
        };
        Merged {
            name: name.to_string(),
            value: only.map(|table| column(table, name)),
            tables: only.cloned().into_iter().collect(),
            is_changed: false,
        }
    }
}

fn nameless() -> SqlError {
    let words = "a column that RIGHT JOIN or FULL JOIN merges, of tables that are not told apart, is not known here";
    SqlError::unsupported(words).with_hint("Say ON instead of USING, and name the column's table.")
}

/// The column of both sides, after that of the left one.
fn merge_two(
    left: Merged,
    name: &str,
    right: Option<&Ident>,
    is_right: bool,
    is_full: bool,
) -> Result<(Merged, Merged), SqlError> {
    let mut merged = left.clone();
    merged.tables.extend(right.cloned());
    if !is_right && !is_full {
        return Ok((left, merged));
    }
    let right = column(right.ok_or_else(nameless)?, name);
    let value = left.value.clone().ok_or_else(nameless)?;
    merged.value = Some(match is_full {
        true => call("coalesce", vec![value, right]),
        false => right,
    });
    merged.is_changed = true;
    Ok((left, merged))
}

fn constraint_of(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// `*` as what it stands for.
fn write_out_wildcards(select: &mut Select, all: &[Joined]) -> Result<(), SqlError> {
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        if !matches!(item, SelectItem::Wildcard(_)) {
            items.push(item);
            continue;
        }
        for joined in all {
            for merged in &joined.merged {
                let value = merged.value.clone().ok_or_else(nameless)?;
                // A plain column beside a wildcard would hide its name.
                let value = match value {
                    column @ Expr::CompoundIdentifier(_) => Expr::Nested(Box::new(column)),
                    other => other,
                };
                let alias = Ident::with_quote('"', merged.name.clone());
                items.push(SelectItem::ExprWithAlias { expr: value, alias });
            }
            for table in &joined.tables {
                let table = table.clone().ok_or_else(nameless)?;
                items.push(columns_beside(&table, &joined.merged));
            }
        }
    }
    select.projection = items;
    Ok(())
}

/// `table.*` without the columns that are merged.
fn columns_beside(table: &Ident, merged: &[Merged]) -> SelectItem {
    let shared = merged.iter().filter(|one| one.tables.contains(table));
    let names: Vec<ObjectName> = shared
        .map(|one| ObjectName::from(vec![Ident::with_quote('"', one.name.clone())]))
        .collect();
    let options = WildcardAdditionalOptions {
        wildcard_token: AttachedToken::empty(),
        opt_exclude: (!names.is_empty()).then_some(ExcludeSelectItem::Multiple(names)),
        ..WildcardAdditionalOptions::default()
    };
    let name = ObjectName::from(vec![table.clone()]);
    SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
}

/// Puts the values of merged columns in place of their names, but not in queries within.
struct Replacer<'a> {
    merged: &'a [Merged],
    queries: usize,
}

impl VisitorMut for Replacer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.queries == 0
            && let Expr::Identifier(name) = expr
            && let Some(value) = self.merged.iter().find(|one| one.name == folded(name))
            && let Some(value) = &value.value
        {
            *expr = value.clone();
        }
        ControlFlow::Continue(())
    }
}
