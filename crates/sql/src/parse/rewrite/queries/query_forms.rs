//! Forms of queries: `GROUP BY ()`, `DISTINCT ON (1)`, `FETCH FIRST .. WITH TIES`, `ORDER BY` of set operations, and
//! what PostgreSQL does not let stand in them.

use crate::functions::ties_marker::WITH_TIES;
use crate::parse::rewrite::expressions::call;
use crate::parse::rewrite::queries::join_columns::merge_columns;
use crate::parse::rewrite::queries::result_order::{hide_results, order_by_results, order_once};
use crate::parse::rewrite::queries::subqueries::both;
use crate::parse::rewrite::queries::windows::write_out_windows_of_order;
use crate::types::error::SqlError;
use crate::types::names::folded;
use crate::types::traversal::{walk, walk_mut};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Fetch, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, LimitClause,
    ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, SetOperator,
    SetQuantifier, Statement, TableFactor, TableWithJoins, Value, ValueWithSpan, Visitor,
    VisitorMut,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

fn one() -> Expr {
    Expr::Value(Value::Number("1".into(), false).into())
}

/// Refuses INSERT, UPDATE, DELETE and MERGE within WITH.
///
/// # Errors
/// `0A000`.
pub fn check_with(query: &Query) -> Result<(), SqlError> {
    let changes = |body: &SetExpr| {
        matches!(
            body,
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        )
    };
    let all = query.with.iter().flat_map(|with| &with.cte_tables);
    match all.into_iter().any(|cte| changes(&cte.query.body)) {
        true => Err(SqlError::unsupported(
            "INSERT, UPDATE, DELETE and MERGE within WITH are not known here",
        )
        .with_hint("Run it as a statement of its own, with RETURNING, in one transaction.")),
        false => Ok(()),
    }
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`; WITH TIES marks the number.
///
/// # Errors
/// `42601` for ties without an order.
pub fn fetch_as_limit(query: &mut Query) -> Result<(), SqlError> {
    let is_known = query.fetch.as_ref().is_some_and(|fetch| !fetch.percent);
    let Some(fetch) = query.fetch.take_if(|_| is_known) else { return Ok(()) };
    let Fetch { with_ties, quantity, .. } = fetch;
    let quantity = quantity.unwrap_or_else(one);
    let limit = match with_ties {
        true if query.order_by.is_none() => {
            return Err(SqlError::invalid("WITH TIES cannot be specified without ORDER BY clause"));
        }
        true => Some(call(WITH_TIES, vec![quantity])),
        false => Some(quantity),
    };
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit: wanted, .. }) => *wanted = limit,
        other => {
            *other = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() })
        }
    }
    Ok(())
}

/// `VALUES` with queries as `SELECT .. UNION ALL SELECT ..`: DataFusion evaluates values while it plans.
pub fn values_as_queries(query: &mut Query) {
    struct Finder;
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let SetExpr::Values(values) = &*query.body else { return };
    let is_one = |expr: &Expr| walk(expr, &mut Finder).is_break();
    if values.rows.iter().flat_map(|row| &row.content).any(is_one) {
        union_of_values(&mut query.body);
    }
}

/// Rows that become a union at most: each takes the stack of a query.
const UNION_ROWS_MAX: usize = 100;

/// Writes all `VALUES` of a statement as unions.
pub fn values_as_unions(statement: &mut Statement) {
    struct Writer;
    impl VisitorMut for Writer {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
            if matches!(&*query.body, SetExpr::Values(values) if values.rows.len() <= UNION_ROWS_MAX)
            {
                union_of_values(&mut query.body);
            }
            ControlFlow::Continue(())
        }
    }
    let _: ControlFlow<()> = walk_mut(statement, &mut Writer);
}

fn union_of_values(body: &mut Box<SetExpr>) {
    let SetExpr::Values(values) = &mut **body else { return };
    let width = values.rows.first().map_or(0, |row| row.content.len());
    if values.rows.iter().any(|row| row.content.len() != width) {
        return;
    }
    let rows = std::mem::take(&mut values.rows);
    let mut made: Option<Box<SetExpr>> = None;
    for row in rows {
        let Some(select) = crate::parse::rewrite::expressions::query("SELECT 1") else { return };
        let mut select = select.body;
        if let SetExpr::Select(select) = &mut *select {
            let named = row.content.into_iter().enumerate().map(|(at, expr)| {
                let alias = Ident::new(format!("column{}", at + 1));
                SelectItem::ExprWithAlias { expr, alias }
            });
            select.projection = named.collect();
        }
        made = Some(match made {
            None => select,
            Some(left) => Box::new(SetExpr::SetOperation {
                left,
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                right: select,
            }),
        });
    }
    if let Some(made) = made {
        *body = made;
    }
}

/// Checks the order of a set operation, which names columns of its result alone.
///
/// # Errors
/// `0A000`, as PostgreSQL has it.
pub fn check_order_of_set(query: &Query) -> Result<(), SqlError> {
    let (SetExpr::SetOperation { .. }, Some(OrderBy { kind: OrderByKind::Expressions(by), .. })) =
        (&*query.body, &query.order_by)
    else {
        return Ok(());
    };
    let is_column = |expr: &Expr| match expr {
        Expr::Identifier(_) => true,
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        _ => false,
    };
    match by.iter().all(|by| is_column(&by.expr)) {
        true => Ok(()),
        false => {
            let words = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
            Err(SqlError::unsupported(words).with_hint(
                "Add the expression to every SELECT, or move the UNION into a FROM clause.",
            ))
        }
    }
}

/// Changes the forms of a query to those that DataFusion knows.
///
/// # Errors
/// `42P10` and `42601` as PostgreSQL has them.
pub fn change_forms(select: &mut Select) -> Result<(), SqlError> {
    check_aliases(select)?;
    write_out_distinct(select)?;
    qualify_having(select)?;
    group_by_nothing(select);
    Ok(())
}

/// Refuses two tables of one name.
fn check_aliases(select: &Select) -> Result<(), SqlError> {
    let mut seen = HashSet::new();
    let tables = select.from.iter().flat_map(|from| {
        std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
    });
    for table in tables {
        let name = match table {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => folded(&alias.name),
            // Two tables of one name in two schemas are told apart by these.
            TableFactor::Table { name, args: None, .. } if name.0.len() == 1 => {
                name.0.last().and_then(ObjectNamePart::as_ident).map(folded).unwrap_or_default()
            }
            _ => continue,
        };
        if !seen.insert(name.clone()) {
            let words = format!("table name \"{name}\" specified more than once");
            return Err(SqlError::new("42712", words));
        }
    }
    Ok(())
}

/// Names in HAVING are of columns, never of the select list, where DataFusion looks for them first: with the name of the
/// only relation they are.
fn qualify_having(select: &mut Select) -> Result<(), SqlError> {
    struct Names<'a> {
        relation: Option<&'a Ident>,
        aliases: Vec<String>,
        queries: usize,
    }
    impl VisitorMut for Names<'_> {
        type Break = SqlError;

        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
            let Expr::Identifier(name) = &*expr else { return ControlFlow::Continue(()) };
            let folded_name = folded(name);
            if 0 < self.queries || !self.aliases.contains(&folded_name) {
                return ControlFlow::Continue(());
            }
            match self.relation {
                Some(relation) => {
                    *expr = Expr::CompoundIdentifier(vec![relation.clone(), name.clone()]);
                    ControlFlow::Continue(())
                }
                None => {
                    let words = format!("column \"{folded_name}\" does not exist");
                    ControlFlow::Break(SqlError::new("42703", words))
                }
            }
        }
    }
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        _ => None,
    });
    let aliases: Vec<String> = aliases.collect();
    let relation = match select.from.as_slice() {
        [] => None,
        [one] if one.joins.is_empty() => match &one.relation {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => Some(&alias.name),
            TableFactor::Table { name, args: None, .. } => {
                name.0.last().and_then(ObjectNamePart::as_ident)
            }
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let Some(having) = &mut select.having else { return Ok(()) };
    let mut names = Names { relation, aliases, queries: 0 };
    match walk_mut(having, &mut names) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// A column of the select list by its number.
fn item_at(select: &Select, number: &str) -> Result<Option<Expr>, SqlError> {
    let Ok(at) = number.parse::<usize>() else {
        return Err(SqlError::invalid("non-integer constant in DISTINCT ON"));
    };
    let items = &select.projection;
    let is_plain = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    let before = items.iter().take_while(|item| is_plain(item)).count();
    match at.checked_sub(1).and_then(|at| items.get(at).filter(|_| at < before)) {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
            Ok(Some(expr.clone()))
        }
        _ if before < items.len() => {
            let words = "DISTINCT ON of a column of * by its number is not known here";
            Err(SqlError::unsupported(words).with_hint("Name the column."))
        }
        _ => {
            let words = format!("SELECT DISTINCT ON position {at} is not in select list");
            Err(SqlError::new("42P10", words))
        }
    }
}

/// Numbers and names of columns in DISTINCT ON as what they stand for.
fn write_out_distinct(select: &mut Select) -> Result<(), SqlError> {
    let Some(Distinct::On(by)) = &select.distinct else { return Ok(()) };
    let mut by = by.clone();
    for expr in &mut by {
        let meant = match &*expr {
            Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => {
                item_at(select, number)?
            }
            Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }) => {
                return Err(SqlError::invalid("non-integer constant in DISTINCT ON"));
            }
            Expr::Identifier(name) => {
                let named = |item: &SelectItem| match item {
                    SelectItem::ExprWithAlias { expr, alias } if folded(alias) == folded(name) => {
                        Some(expr.clone())
                    }
                    _ => None,
                };
                select.projection.iter().find_map(named)
            }
            _ => None,
        };
        if let Some(meant) = meant {
            *expr = meant;
        }
    }
    select.distinct = Some(Distinct::On(by));
    Ok(())
}

fn item(item: &SelectItem) -> Option<Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr.clone())
        }
        _ => None,
    }
}

/// A number of a column in grouping sets as the column.
fn number_as_item(expr: &mut Expr, items: &[Option<Expr>]) {
    let Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) = &*expr else { return };
    let at = number.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
    // Behind `*` the number of a column is not known.
    if let Some(at) = at
        && items.iter().take(at).all(Option::is_some)
        && let Some(Some(item)) = items.get(at)
    {
        *expr = item.clone();
    }
}

/// `GROUP BY ()`: one group of all rows, also without an aggregate.
fn group_by_nothing(select: &mut Select) {
    let GroupByExpr::Expressions(by, _) = &mut select.group_by else { return };
    let is_nothing = |expr: &Expr| matches!(expr, Expr::Tuple(parts) if parts.is_empty());
    let has_nothing = by.iter().any(is_nothing);
    by.retain(|expr| !is_nothing(expr));
    let flat = std::mem::take(by).into_iter().flat_map(|expr| match expr {
        Expr::Tuple(parts) => parts,
        other => vec![other],
    });
    *by = flat.collect();
    let items: Vec<Option<Expr>> = select.projection.iter().map(item).collect();
    for sets in by.iter_mut() {
        if let Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) = sets {
            sets.iter_mut().flatten().for_each(|expr| number_as_item(expr, &items));
        }
    }
    let is_grouped = !by.is_empty() || select.having.is_none();
    if (has_nothing || !is_grouped) && by.is_empty() {
        let counted =
            crate::parse::rewrite::expressions::query("SELECT count(*) >= 0").and_then(|query| {
                match *query.body {
                    SetExpr::Select(made) => made.projection.into_iter().next(),
                    _ => None,
                }
            });
        let Some(SelectItem::UnnamedExpr(is_group)) = counted else { return };
        select.having = Some(match select.having.take() {
            Some(having) => both(having, is_group),
            None => is_group,
        });
    }
}
/// Checks the clauses behind a table's name.
///
/// # Errors
/// When it is not known here.
pub fn check_table(table: &TableFactor) -> Result<(), SqlError> {
    let is_sampled = match table {
        TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => sample.is_some(),
        _ => false,
    };
    let has_more = match table {
        TableFactor::Table { with_hints, version, partitions, json_path, index_hints, .. } => {
            version.is_some()
                || json_path.is_some()
                || !(with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty())
        }
        _ => false,
    };
    match (is_sampled, has_more) {
        (true, _) => Err(SqlError::unsupported("TABLESAMPLE is not known here")
            .with_hint("Say WHERE random() < 0.1 for a tenth of the rows.")),
        (_, true) => {
            Err(SqlError::unsupported("what is said behind a table's name is not known here"))
        }
        _ => Ok(()),
    }
}

/// Named windows, and merged columns of joins, as what they are.
pub fn write_out_order(query: &mut Query, is_outermost: bool) -> Result<(), SqlError> {
    let Query { body, order_by, .. } = query;
    order_by.iter_mut().for_each(order_once);
    match &mut **body {
        SetExpr::Select(select) => {
            if let Some(order) = order_by {
                write_out_windows_of_order(&select.named_window, order)?;
                order_by_results(&select.projection, order);
                if is_outermost {
                    hide_results(&mut select.projection, order);
                }
            }
            merge_columns(select, order_by.as_mut())
        }
        other => merge_columns_of_all(other),
    }
}

/// The same for the queries of a `UNION` and its like.
fn merge_columns_of_all(body: &mut SetExpr) -> Result<(), SqlError> {
    match body {
        SetExpr::Select(select) => merge_columns(select, None),
        SetExpr::SetOperation { left, right, .. } => {
            merge_columns_of_all(left)?;
            merge_columns_of_all(right)
        }
        // Queries of their own are looked at by themselves.
        _ => Ok(()),
    }
}
/// Joins `a, LATERAL (..) b JOIN c ON ..` from the left to the right: the planner shows `b` no columns of `a` else. The
/// rows are the same unless a join keeps rows of its right side alone.
pub fn join_laterals(select: &mut Select) {
    let is_lateral = |from: &TableWithJoins| {
        let keeps_right = |join: &Join| {
            matches!(
                join.join_operator,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
            )
        };
        matches!(from.relation, TableFactor::Derived { lateral: true, .. })
            && !from.joins.is_empty()
            && !from.joins.iter().any(keeps_right)
    };
    if !select.from.iter().skip(1).any(is_lateral) {
        return;
    }
    let mut joined: Vec<TableWithJoins> = Vec::with_capacity(select.from.len());
    for from in std::mem::take(&mut select.from) {
        match joined.last_mut() {
            Some(before) if is_lateral(&from) => {
                before.joins.push(Join {
                    relation: from.relation,
                    global: false,
                    join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
                });
                before.joins.extend(from.joins);
            }
            _ => joined.push(from),
        }
    }
    select.from = joined;
}
