//! Size of a statement after expansion, computed before it is planned.
//!
//! The planner copies a common table expression, a view or a derived table for each reference, and it may copy the
//! expression of a column into each expression that uses the column. Twenty-five lines that each use the line before
//! twice become 2^25 table scans or expression nodes, and nothing interrupts the planner. This module does the
//! arithmetic alone: each query is measured once, and a reference adds its size.
//!
//! ```text
//! WITH a AS (SELECT x FROM t),      a: 1 scan
//!      b AS (SELECT .. FROM a, a)   b: 2 scans
//! SELECT .. FROM b, b               4 scans
//! ```

use crate::parse::rewrite::expressions::is_aggregate;
use crate::parse::table_names::table_name;
use crate::parse::text::{check_written, parse_query};
use crate::tables::heap::stored_views::StoredView;
use crate::types::error::SqlError;
use crate::types::names::{folded, given, shown_name};
use crate::types::traversal::walk;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, ObjectName, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins,
    Value, ValueWithSpan, Visit, Visitor, WindowType, With,
};
use std::collections::HashMap;
use std::ops::{AddAssign, ControlFlow};
use std::sync::Arc;

/// Table scans of a statement after expansion.
const SCANS_MAX: u64 = 1_000;
/// Expression nodes of a statement after expansion. A statement that is written with more may double them.
const NODES_MAX: u64 = 100_000;
/// Bytes of a text that count as a node: a text is copied with the column that it is in.
const TEXT_NODE_SIZE: u64 = 256;
/// Total size of all common table expressions and views that a statement plans, in multiples of the limits.
const DEFINITIONS_MAX: u64 = 10;
/// Grouping sets of one query. PostgreSQL has the same limit.
const GROUPING_SETS_MAX: u64 = 4_096;
/// Views that read each other.
const VIEW_DEPTH_MAX: usize = 64;
/// Columns that `*` is counted for, where a table's columns are not known yet.
const WILDCARD_NODES: u64 = 16;
/// Expression nodes that a scan within an expression is counted as.
const SCAN_NODES: u64 = NODES_MAX / SCANS_MAX;

const HINT: &str = "Refer less often to common table expressions, views and columns of subqueries, or store \
                    intermediate rows in a table.";

type FindView<'a> = &'a dyn Fn(&str) -> Option<StoredView>;

/// Refuses a statement that expands to more than the planner can handle. Returns the number of its expression nodes
/// as it is written.
///
/// # Errors
/// `54001` with the number that is exceeded; those of a stored view that cannot be read.
pub fn check(statement: &Statement, find_view: FindView<'_>) -> Result<u64, SqlError> {
    let statement = match statement {
        Statement::Explain { statement, .. } => statement,
        other => other,
    };
    let Statement::Query(query) = statement else { return Ok(0) };
    let written = written_nodes(statement);
    check_written(written)?;
    let mut expansion = Expansion {
        written,
        find_view,
        views: HashMap::new(),
        view_depth: 0,
        definitions: Size::default(),
        nodes_max: NODES_MAX,
    };
    expansion.query(query, &Scope::default())?;
    Ok(written)
}

/// Table scans and expression nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    scans: u64,
    nodes: u64,
}

const SCAN: Size = Size { scans: 1, nodes: 0 };

impl Size {
    /// The size in nodes alone.
    fn as_nodes(self) -> u64 {
        self.scans.saturating_mul(SCAN_NODES).saturating_add(self.nodes)
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Size) {
        self.scans = self.scans.saturating_add(other.scans);
        self.nodes = self.nodes.saturating_add(other.nodes);
    }
}

/// A table or a query: its size, and the sizes of the expressions behind its columns.
#[derive(Clone, Debug)]
struct Relation {
    size: Size,
    columns: Arc<Columns>,
}

#[derive(Clone, Debug, Default)]
struct Columns {
    in_order: Vec<(String, u64)>,
    by_name: HashMap<String, u64>,
    /// The largest of them.
    largest: u64,
    /// Whether there are more, each of one node.
    is_open: bool,
}

impl Columns {
    fn new(in_order: Vec<(String, u64)>, is_open: bool) -> Columns {
        let mut by_name = HashMap::with_capacity(in_order.len());
        for (name, nodes) in &in_order {
            let known = by_name.entry(name.clone()).or_insert(*nodes);
            *known = (*known).max(*nodes);
        }
        let largest = in_order.iter().map(|(_, nodes)| *nodes).max().unwrap_or(1);
        Columns { in_order, by_name, largest, is_open }
    }

    /// Nodes of a column; none where there is none of that name.
    fn nodes(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied()
    }

    /// Number of nodes that `*` expands to.
    fn wildcard(&self) -> u64 {
        let known = self.in_order.len() as u64;
        if self.is_open { known.saturating_add(WILDCARD_NODES) } else { known }
    }
}

impl Relation {
    /// A table with unknown columns.
    fn table() -> Relation {
        Relation { size: SCAN, columns: Arc::new(Columns::new(Vec::new(), true)) }
    }

    fn new(size: Size, in_order: Vec<(String, u64)>, is_open: bool) -> Relation {
        Relation { size, columns: Arc::new(Columns::new(in_order, is_open)) }
    }

    /// Renames the first columns.
    fn renamed(self, names: &[String]) -> Relation {
        if names.is_empty() {
            return self;
        }
        let Columns { in_order, largest, is_open, .. } = &*self.columns;
        // Behind a wildcard places are not known.
        let is_in_order = !is_open && names.len() <= in_order.len();
        let nodes = |at: usize| if is_in_order { in_order[at].1 } else { *largest };
        let named = names.iter().enumerate().map(|(at, name)| (name.clone(), nodes(at)));
        let rest = in_order.iter().skip(if is_in_order { names.len() } else { 0 }).cloned();
        Relation::new(self.size, named.chain(rest).collect(), *is_open)
    }

    fn with_alias(self, alias: Option<&TableAlias>) -> Relation {
        let names = alias.into_iter().flat_map(|alias| &alias.columns);
        let names: Vec<String> = names.map(|column| folded(&column.name)).collect();
        self.renamed(&names)
    }
}

/// Names that a part of a statement can use.
#[derive(Default)]
struct Scope<'a> {
    outer: Option<&'a Scope<'a>>,
    common_tables: Vec<(String, Relation)>,
    relations: Vec<(String, Relation)>,
    /// Size of all named windows.
    windows: Size,
}

impl<'a> Scope<'a> {
    fn within(outer: &'a Scope<'a>) -> Scope<'a> {
        Scope { outer: Some(outer), ..Scope::default() }
    }

    /// This scope and those around it.
    fn all(&self) -> impl Iterator<Item = &Scope<'a>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    fn common_table(&self, name: &str) -> Option<&Relation> {
        self.all().find_map(|scope| {
            let found = scope.common_tables.iter().rev().find(|(one, _)| one == name);
            found.map(|(_, relation)| relation)
        })
    }

    /// Nodes of a column without a qualifier.
    fn column(&self, name: &str) -> u64 {
        let named = |scope: &Scope<'_>| {
            let all = scope.relations.iter();
            all.filter_map(|(_, relation)| relation.columns.nodes(name)).max()
        };
        self.all().find_map(named).unwrap_or_else(|| {
            let all = || self.all().flat_map(|scope| &scope.relations);
            match all().any(|(_, relation)| relation.columns.is_open) {
                true => 1,
                false => all().map(|(_, relation)| relation.columns.largest).max().unwrap_or(1),
            }
        })
    }

    /// Nodes of a column of a relation, or of a field of a column.
    fn qualified(&self, qualifier: &str, name: &str) -> u64 {
        let named = |scope: &Scope<'_>| {
            let found = scope.relations.iter().find(|(one, _)| one == qualifier);
            found.map(|(_, relation)| relation.columns.clone())
        };
        match self.all().find_map(named) {
            Some(columns) => columns.nodes(name).unwrap_or(match columns.is_open {
                true => 1,
                false => columns.largest,
            }),
            None => self.column(qualifier).max(self.column(name)),
        }
    }
}

/// Size of an expression, and the nodes that come into an expression which uses it as a column.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    size: Size,
    as_column: u64,
}

/// Sizes of the columns of a `SELECT`.
#[derive(Default)]
struct Items {
    size: Size,
    /// Columns of a relation.
    columns: Vec<(String, u64)>,
    /// Aliases within the same query; each expands to the whole expression.
    aliases: Vec<(String, u64)>,
    is_open: bool,
}

struct Expansion<'a> {
    /// Expression nodes of the statement as it is written.
    written: u64,
    find_view: FindView<'a>,
    /// Views that are measured.
    views: HashMap<String, Relation>,
    view_depth: usize,
    /// Size of all common table expressions and views, once each.
    definitions: Size,
    nodes_max: u64,
}

impl Expansion<'_> {
    fn query(&mut self, query: &Query, outer: &Scope<'_>) -> Result<Relation, SqlError> {
        let mut scope = Scope::within(outer);
        if let Some(with) = &query.with {
            self.common_tables(with, &mut scope)?;
        }
        let mut relation = self.body(&query.body, query.order_by.as_ref(), &scope)?;
        relation.size += self.measure(&query.limit_clause, &scope)?.size;
        relation.size += self.measure(&query.pipe_operators, &scope)?.size;
        self.check(relation.size)?;
        Ok(relation)
    }

    fn common_tables(&mut self, with: &With, scope: &mut Scope<'_>) -> Result<(), SqlError> {
        for table in &with.cte_tables {
            let name = folded(&table.alias.name);
            if with.recursive {
                // Recursive reference: the rows of the previous step.
                scope.common_tables.push((name.clone(), Relation::table()));
            }
            let relation = self.query(&table.query, scope)?.with_alias(Some(&table.alias));
            self.define(relation.size)?;
            scope.common_tables.push((name, relation));
        }
        Ok(())
    }

    fn body(
        &mut self,
        body: &SetExpr,
        order_by: Option<&OrderBy>,
        scope: &Scope<'_>,
    ) -> Result<Relation, SqlError> {
        let mut relation = match body {
            SetExpr::Select(select) => return self.select(select, order_by, scope),
            SetExpr::Query(query) => self.query(query, scope)?,
            SetExpr::SetOperation { left, right, .. } => {
                let left = self.body(left, None, scope)?;
                let right = self.body(right, None, scope)?;
                united(left, &right)
            }
            SetExpr::Values(values) => {
                let mut size = self.measure(values, scope)?.size;
                size += SCAN;
                let columns = values.rows.first().map_or(0, |row| row.len());
                let name = |at| (format!("column{at}"), 1);
                Relation::new(size, (1..=columns).map(name).collect(), false)
            }
            _ => Relation::table(),
        };
        let columns = relation.columns.in_order.clone();
        let mut named = Scope::within(scope);
        named.relations.push((String::new(), Relation::new(SCAN, columns, false)));
        relation.size += self.order_by(order_by, &named)?;
        self.check(relation.size)?;
        Ok(relation)
    }

    fn select(
        &mut self,
        select: &Select,
        order_by: Option<&OrderBy>,
        outer: &Scope<'_>,
    ) -> Result<Relation, SqlError> {
        let mut scope = Scope::within(outer);
        let mut size = if select.from.is_empty() { SCAN } else { Size::default() };
        for from in &select.from {
            size += self.joined(from, &mut scope)?;
        }
        self.check(size)?;
        scope.windows = self.measure(&select.named_window, &scope)?.size;
        size += scope.windows;
        let items = self.items(&select.projection, &scope)?;
        size += items.size;
        size += self.measure(&select.selection, &scope)?.size;
        let aliases = Relation::new(SCAN, items.aliases, items.is_open);
        scope.relations.push((String::new(), aliases));
        size += self.group_by(&select.group_by, &scope)?;
        size += self.order_by(order_by, &scope)?;
        size += self.measure(&select.having, &scope)?.size;
        size += self.measure(&select.qualify, &scope)?.size;
        size += self.measure(&select.distinct, &scope)?.size;
        self.check(size)?;
        Ok(Relation::new(size, items.columns, items.is_open))
    }

    fn items(&mut self, projection: &[SelectItem], scope: &Scope<'_>) -> Result<Items, SqlError> {
        let mut items = Items::default();
        for item in projection {
            let (expr, name) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, given(expr)),
                SelectItem::ExprWithAlias { expr, alias } => {
                    (expr, shown_name(&folded(alias)).to_string())
                }
                SelectItem::Wildcard(_) => {
                    let all = scope.relations.iter().map(|(_, relation)| relation);
                    self.wildcard(all, &mut items)?;
                    continue;
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let name = last_name(name);
                    let named =
                        scope.relations.iter().filter(|(one, _)| Some(one) == name.as_ref());
                    self.wildcard(named.map(|(_, relation)| relation), &mut items)?;
                    continue;
                }
                other => {
                    items.size += self.measure(other, scope)?.size;
                    items.is_open = true;
                    continue;
                }
            };
            let measured = self.measure(expr, scope)?;
            items.size += measured.size;
            items.columns.push((name.clone(), measured.as_column));
            items.aliases.push((name, measured.size.as_nodes()));
            self.check(items.size)?;
        }
        Ok(items)
    }

    fn wildcard<'b>(
        &mut self,
        relations: impl Iterator<Item = &'b Relation>,
        items: &mut Items,
    ) -> Result<(), SqlError> {
        for relation in relations {
            items.size += Size { scans: 0, nodes: relation.columns.wildcard() };
            self.check(items.size)?;
            items.columns.extend(relation.columns.in_order.iter().cloned());
            items.aliases.extend(relation.columns.in_order.iter().cloned());
            items.is_open |= relation.columns.is_open;
        }
        Ok(())
    }

    fn joined(&mut self, from: &TableWithJoins, scope: &mut Scope<'_>) -> Result<Size, SqlError> {
        let mut size = self.factor(&from.relation, scope)?;
        for join in &from.joins {
            size += self.factor(&join.relation, scope)?;
            size += self.measure(&join.join_operator, scope)?.size;
        }
        Ok(size)
    }

    fn factor(&mut self, factor: &TableFactor, scope: &mut Scope<'_>) -> Result<Size, SqlError> {
        let (relation, alias, name) = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                (self.table(name, scope)?, alias, last_name(name))
            }
            TableFactor::Derived { subquery, alias, .. } => {
                (self.query(subquery, scope)?, alias, None)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                return self.joined(table_with_joins, scope);
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let mut inner = Scope::within(scope);
                let mut items =
                    Items { size: self.joined(table_with_joins, &mut inner)?, ..Items::default() };
                self.wildcard(inner.relations.iter().map(|(_, one)| one), &mut items)?;
                (Relation::new(items.size, items.columns, items.is_open), alias, None)
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => (self.rows_of(factor, scope)?, alias, None),
            other => (self.rows_of(other, scope)?, &None, None),
        };
        let name = alias.as_ref().map(|alias| folded(&alias.name)).or(name).unwrap_or_default();
        let relation = relation.with_alias(alias.as_ref());
        let size = relation.size;
        scope.relations.push((name, relation));
        Ok(size)
    }

    /// Rows that a function makes.
    fn rows_of(&mut self, factor: &TableFactor, scope: &Scope<'_>) -> Result<Relation, SqlError> {
        let mut relation = Relation::table();
        relation.size += self.measure(factor, scope)?.size;
        Ok(relation)
    }

    fn table(&mut self, name: &ObjectName, scope: &Scope<'_>) -> Result<Relation, SqlError> {
        if let [part] = name.0.as_slice()
            && let Some(ident) = part.as_ident()
            && let Some(relation) = scope.common_table(&folded(ident))
        {
            return Ok(relation.clone());
        }
        match table_name(name) {
            Ok(name) => self.view(&name),
            Err(_) => Ok(Relation::table()),
        }
    }

    fn view(&mut self, name: &str) -> Result<Relation, SqlError> {
        if let Some(known) = self.views.get(name) {
            return Ok(known.clone());
        }
        let Some(view) = (self.find_view)(name) else { return Ok(Relation::table()) };
        if VIEW_DEPTH_MAX <= self.view_depth {
            let words = format!("more than {VIEW_DEPTH_MAX} views that read each other");
            return Err(SqlError::new("54001", words));
        }
        let query = parse_query(&view.query)?;
        let Statement::Query(query) = &query.rephrased().statement else {
            return Ok(Relation::table());
        };
        self.view_depth += 1;
        let relation = self.query(query, &Scope::default())?.renamed(&view.columns);
        self.view_depth -= 1;
        self.define(relation.size)?;
        self.views.insert(name.to_string(), relation.clone());
        Ok(relation)
    }

    fn group_by(&mut self, group_by: &GroupByExpr, scope: &Scope<'_>) -> Result<Size, SqlError> {
        let GroupByExpr::Expressions(exprs, _) = group_by else { return Ok(Size::default()) };
        let sets = exprs.iter().map(grouping_sets).fold(1, u64::saturating_mul);
        if GROUPING_SETS_MAX < sets {
            let words = format!("too many grouping sets present (maximum {GROUPING_SETS_MAX})");
            return Err(SqlError::new("54001", words));
        }
        let mut size = self.list(exprs, scope)?;
        size.nodes = size.nodes.saturating_mul(sets);
        Ok(size)
    }

    fn order_by(
        &mut self,
        order_by: Option<&OrderBy>,
        scope: &Scope<'_>,
    ) -> Result<Size, SqlError> {
        let Some(OrderByKind::Expressions(exprs)) = order_by.map(|one| &one.kind) else {
            return Ok(Size::default());
        };
        self.list(exprs.iter().map(|one| &one.expr), scope)
    }

    /// Expressions in which a number refers to a column of the query, the last relation of the scope.
    fn list<'b>(
        &mut self,
        exprs: impl IntoIterator<Item = &'b Expr>,
        scope: &Scope<'_>,
    ) -> Result<Size, SqlError> {
        let mut size = Size::default();
        for expr in exprs {
            size += match expr {
                Expr::Value(ValueWithSpan { value: Value::Number(..), .. }) => {
                    let query = scope.relations.last();
                    Size { scans: 0, nodes: query.map_or(1, |(_, one)| one.columns.largest) }
                }
                other => self.measure(other, scope)?.size,
            };
            self.check(size)?;
        }
        Ok(size)
    }

    /// Measures a part of a statement that has no table of its own but those of queries within expressions.
    fn measure(&mut self, part: &impl Visit, scope: &Scope<'_>) -> Result<Measured, SqlError> {
        let mut measure = Measure {
            expansion: self,
            scope,
            found: Measured::default(),
            queries: 0,
            aggregates: 0,
        };
        match walk(part, &mut measure) {
            ControlFlow::Continue(()) => Ok(measure.found),
            ControlFlow::Break(error) => Err(*error),
        }
    }

    /// Counts a common table expression or a view, which is planned whether or not it is read.
    fn define(&mut self, size: Size) -> Result<(), SqlError> {
        self.definitions += size;
        self.check_times(self.definitions, DEFINITIONS_MAX)
    }

    fn check(&mut self, size: Size) -> Result<(), SqlError> {
        self.check_times(size, 1)
    }

    /// Compares a size with a multiple of the limits.
    fn check_times(&mut self, size: Size, times: u64) -> Result<(), SqlError> {
        if SCANS_MAX * times < size.scans {
            return Err(exceeded(&format!("reads {} tables", size.scans), SCANS_MAX * times));
        }
        if self.nodes_max.saturating_mul(times) < size.nodes {
            self.nodes_max = NODES_MAX.max(self.written.saturating_mul(2));
        }
        let nodes_max = self.nodes_max.saturating_mul(times);
        if nodes_max < size.nodes {
            let count = format!("has {} expression nodes", size.nodes);
            return Err(exceeded(&count, nodes_max));
        }
        Ok(())
    }
}

fn exceeded(count: &str, max: u64) -> SqlError {
    let words = format!(
        "statement too complex: it {count} when common table expressions, views and subqueries are expanded; \
         {max} are the most"
    );
    SqlError::new("54001", words).with_hint(HINT)
}

/// The rows of two queries.
fn united(left: Relation, right: &Relation) -> Relation {
    let mut size = left.size;
    size += right.size;
    let is_open = left.columns.is_open || right.columns.is_open;
    let other = |at: usize| match right.columns.in_order.get(at) {
        Some((_, nodes)) if !is_open => *nodes,
        _ => right.columns.largest,
    };
    let columns = left.columns.in_order.iter().enumerate();
    let columns = columns.map(|(at, (name, nodes))| (name.clone(), (*nodes).max(other(at))));
    Relation::new(size, columns.collect(), is_open)
}

fn last_name(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(folded)
}

/// Number of grouping sets that an expression of `GROUP BY` expands to.
fn grouping_sets(expr: &Expr) -> u64 {
    match expr {
        Expr::Cube(sets) => u32::try_from(sets.len())
            .ok()
            .and_then(|count| 1u64.checked_shl(count))
            .unwrap_or(u64::MAX),
        Expr::Rollup(sets) => sets.len() as u64 + 1,
        Expr::GroupingSets(sets) => sets.len().max(1) as u64,
        _ => 1,
    }
}

/// Expression nodes of a statement as it is written.
fn written_nodes(statement: &Statement) -> u64 {
    struct Count(u64);
    impl Visitor for Count {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.0 += own_nodes(expr);
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(0);
    let _: ControlFlow<()> = walk(statement, &mut count);
    count.0
}

/// Nodes that an expression counts as without those within it.
fn own_nodes(expr: &Expr) -> u64 {
    let Expr::Value(value) = expr else { return 1 };
    match &value.value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
            1 + text.len() as u64 / TEXT_NODE_SIZE
        }
        _ => 1,
    }
}

/// Adds up the nodes of expressions, and measures the queries within them.
struct Measure<'a, 'b, 'c> {
    expansion: &'a mut Expansion<'b>,
    scope: &'a Scope<'c>,
    found: Measured,
    /// Queries around the node.
    queries: usize,
    /// Aggregates and window functions around the node.
    aggregates: usize,
}

impl Measure<'_, '_, '_> {
    fn add(&mut self, size: Size) {
        self.found.size += size;
        // The planner copies no aggregate: its value is a column.
        if self.aggregates == 0 {
            // A query within an expression becomes a join once.
            self.found.as_column = self.found.as_column.saturating_add(size.nodes);
        }
    }
}

impl Visitor for Measure<'_, '_, '_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Box<SqlError>> {
        if self.queries == 0 {
            match self.expansion.query(query, self.scope) {
                Ok(relation) => {
                    self.add(Size { nodes: 1, ..Size::default() });
                    self.found.size += relation.size;
                }
                Err(error) => return ControlFlow::Break(Box::new(error)),
            }
        }
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Box<SqlError>> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<SqlError>> {
        if self.queries != 0 {
            return ControlFlow::Continue(());
        }
        let nodes = match expr {
            Expr::Identifier(ident) => self.scope.column(&folded(ident)),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., qualifier, name] => self.scope.qualified(&folded(qualifier), &folded(name)),
                _ => 1,
            },
            other => own_nodes(other),
        };
        self.add(Size { scans: 0, nodes });
        if let Expr::Function(function) = expr {
            if names_window(function) {
                self.found.size += self.scope.windows;
            }
            self.aggregates += usize::from(is_column_of_its_own(function));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<SqlError>> {
        if self.queries == 0
            && let Expr::Function(function) = expr
        {
            self.aggregates -= usize::from(is_column_of_its_own(function));
        }
        ControlFlow::Continue(())
    }
}

fn is_column_of_its_own(function: &Function) -> bool {
    function.over.is_some() || is_aggregate(function)
}

fn names_window(function: &Function) -> bool {
    match &function.over {
        Some(WindowType::NamedWindow(_)) => true,
        Some(WindowType::WindowSpec(spec)) => spec.window_name.is_some(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked_with(text: &str, find_view: FindView<'_>) -> Result<u64, SqlError> {
        check(&parse_query(text)?.rephrased().statement, find_view)
    }

    /// Threads of statements have deep stacks, too.
    fn code(text: &str) -> Option<&'static str> {
        let text = text.to_string();
        let check = move || checked_with(&text, &|_| None).err().map(|error| error.code);
        let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(check);
        thread.expect("a thread").join().expect("no panic")
    }

    /// Common table expressions of which each reads the one before twice.
    fn doubled(steps: usize) -> String {
        let mut text = "WITH c0 AS (SELECT 1 AS x)".to_string();
        for at in 1..=steps {
            let before = at - 1;
            text += &format!(", c{at} AS (SELECT a.x FROM c{before} a, c{before} b)");
        }
        text
    }

    /// Derived tables in each other, each with this column.
    fn nested(steps: usize, column: &str) -> String {
        let mut text = "SELECT 1 AS x".to_string();
        for _ in 0..steps {
            text = format!("SELECT {column} FROM ({text}) AS t");
        }
        text
    }

    #[test]
    fn table_scans_that_double_are_refused() {
        assert_eq!(code(&format!("{} SELECT count(*) FROM c9", doubled(9))), None);
        assert_eq!(code(&format!("{} SELECT count(*) FROM c10", doubled(10))), Some("54001"));
        let error = checked_with(&format!("{} SELECT count(*) FROM c25", doubled(25)), &|_| None);
        let error = error.unwrap_err();
        assert!(error.message.contains("1024 tables") && error.message.contains("1000"), "{error}");
        // Unused common table expressions are planned, too.
        let unread: String = (0..30).map(|at| format!(", d{at} AS (SELECT * FROM c9)")).collect();
        assert_eq!(code(&format!("{}{unread} SELECT 1", doubled(9))), Some("54001"));
        let within = format!("SELECT ({} SELECT count(*) FROM c25)", doubled(25));
        assert_eq!(code(&within), Some("54001"));
    }

    #[test]
    fn expressions_that_double_are_refused() {
        for column in [
            "x + x AS x",
            "t.x + t.x AS x",
            "\"x\" + X AS x",
            "concat(x, x) AS x",
            "CASE WHEN x > 0 THEN x END AS x",
            "*, x + x AS x",
        ] {
            assert_eq!(code(&nested(10, column)), None, "{column}");
            assert_eq!(code(&nested(25, column)), Some("54001"), "{column}");
        }
        assert_eq!(code(&nested(30, "x + 1 AS x")), None);
        assert_eq!(code(&nested(30, "sum(x + x) + 1 AS x")), None);
        assert_eq!(code(&nested(30, "*")), None);
        let renamed = nested(25, "y + y AS x").replace("AS t", "AS t(y)");
        assert_eq!(code(&renamed), Some("54001"));
        let renamed: String = (1..25)
            .map(|at| format!(", c{at}(y) AS (SELECT z.y + z.y FROM c{} AS z)", at - 1))
            .collect();
        let renamed = format!("WITH c0(y) AS (SELECT 1){renamed} SELECT * FROM c24");
        assert_eq!(code(&renamed), Some("54001"));
    }

    #[test]
    fn aliases_within_a_query_stand_for_their_expressions() {
        let many = |one: &str, count: usize| vec![one; count].join(", ");
        let long = format!("concat({})", many("v", 1000));
        for rest in ["GROUP BY", "ORDER BY"] {
            for used in ["y", "1"] {
                let text =
                    |count| format!("SELECT {long} AS y FROM metrics {rest} {}", many(used, count));
                assert_eq!(code(&text(1)), None, "{rest} {used}");
                // What ORDER BY says again is left out.
                let expected = if rest == "GROUP BY" { Some("54001") } else { None };
                assert_eq!(code(&text(1000)), expected, "{rest} {used}");
            }
        }
        let sorts: Vec<String> = (0..1000).map(|at| format!("y || '{at}'")).collect();
        let text = format!("SELECT {long} AS y FROM metrics ORDER BY {}", sorts.join(", "));
        assert_eq!(code(&text), Some("54001"));
        let windows = many("count(*) OVER w", 1000);
        let text =
            format!("SELECT {windows} FROM metrics WINDOW w AS (ORDER BY {})", many("v", 1000));
        assert_eq!(code(&text), Some("54001"));
    }

    #[test]
    fn grouping_sets_have_a_limit() {
        let cube = |count| {
            let columns: Vec<String> = (0..count).map(|at| format!("c{at}")).collect();
            format!("SELECT count(*) FROM t GROUP BY CUBE ({})", columns.join(", "))
        };
        assert_eq!(code(&cube(10)), None);
        assert_eq!(code(&cube(13)), Some("54001"));
        assert_eq!(code(&cube(64)), Some("54001"));
    }

    #[test]
    fn statements_of_many_values_are_not_expanded() {
        let listed = |count| vec!["1"; count].join(",");
        let select = |count| format!("SELECT * FROM metrics WHERE value IN ({})", listed(count));
        assert_eq!(code(&select(90_000)), None);
        assert_eq!(code(&select(150_000)), Some("54001"));
        let values = listed(90_000);
        let twice = format!("WITH a AS (SELECT * FROM metrics WHERE value IN ({values}))");
        assert_eq!(code(&format!("{twice} SELECT * FROM a")), None);
        let many: Vec<String> = (0..10).map(|at| format!("a AS a{at}")).collect();
        let many = many.join(" NATURAL JOIN ");
        assert_eq!(code(&format!("{twice} SELECT * FROM {many}")), Some("54001"));
    }

    #[test]
    fn views_count_with_what_they_read() {
        let find = |name: &str| {
            let at: usize = name.strip_prefix('v')?.parse().ok()?;
            let query = match at {
                0 => "SELECT 1 AS x".to_string(),
                _ => format!("SELECT a.x + b.x FROM v{0} a, v{0} b", at - 1),
            };
            Some(StoredView { query, columns: vec!["x".to_string()] })
        };
        let code = |text: &str| checked_with(text, &find).err().map(|error| error.code);
        assert_eq!(code("SELECT * FROM v9"), None);
        assert_eq!(code("SELECT * FROM v10"), Some("54001"));
        assert_eq!(code("SELECT * FROM v8 a, v8 b, v8 c, v8 d"), Some("54001"));
        let itself = |_: &str| {
            let query = "SELECT * FROM v".to_string();
            Some(StoredView { query, columns: Vec::new() })
        };
        assert!(checked_with("SELECT * FROM v", &itself).is_err());
    }
}
