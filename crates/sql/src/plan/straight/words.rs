//! The words of a statement that are understood here. Whatever else stands in it makes it another one: all parts
//! of the tree are named, so that a new one does not compile until it is looked at.

use crate::parse::query::Rephrased;
use crate::parse::table_names::table_name;
use crate::tables::hypertables::shape::Hypertable;
use crate::tables::metrics::tables::TABLES;
use crate::types::names::folded;
use datafusion::arrow::compute::SortOptions;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, LimitClause, ObjectName, OrderBy, OrderByExpr,
    OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr, Statement, TableAlias,
    TableFactor, TableWithJoins, UnaryOperator, Value, ValueWithSpan,
};

/// `SELECT .. FROM table WHERE .. GROUP BY .. ORDER BY .. LIMIT ..`, and nothing else.
pub struct Plain<'q> {
    pub projection: &'q [SelectItem],
    pub table: &'q ObjectName,
    pub alias: Option<&'q Ident>,
    pub selection: Option<&'q Expr>,
    pub groups: &'q [Expr],
    pub sorts: &'q [OrderByExpr],
    pub limit: Option<usize>,
}

impl<'q> Plain<'q> {
    /// Of a statement without parameters; none for others.
    pub fn of(rephrased: &'q Rephrased) -> Option<Plain<'q>> {
        let Statement::Query(query) = &rephrased.statement else { return None };
        match rephrased.parameters.is_empty() && rephrased.is_reusable {
            true => Plain::of_query(query),
            false => None,
        }
    }

    /// Of a query that may stand in another.
    pub fn of_query(query: &'q Query) -> Option<Plain<'q>> {
        let Query {
            with: None,
            body,
            order_by,
            limit_clause,
            fetch: None,
            locks,
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators,
        } = query
        else {
            return None;
        };
        let SetExpr::Select(select) = &**body else { return None };
        if !locks.is_empty() || !pipe_operators.is_empty() {
            return None;
        }
        let plain = Plain::of_select(select)?;
        let (sorts, limit) = (sorts(order_by.as_ref())?, limit(limit_clause.as_ref())?);
        Some(Plain { sorts, limit, ..plain })
    }

    fn of_select(select: &'q Select) -> Option<Plain<'q>> {
        let Select {
            select_token: _,
            optimizer_hints: _,
            distinct: None,
            select_modifiers: None,
            top: None,
            top_before_distinct: _,
            projection,
            exclude: None,
            into: None,
            from,
            lateral_views,
            prewhere: None,
            selection,
            connect_by,
            group_by: GroupByExpr::Expressions(groups, modifiers),
            cluster_by,
            distribute_by,
            sort_by,
            having: None,
            named_window,
            qualify: None,
            window_before_qualify: _,
            value_table_mode: None,
            flavor: SelectFlavor::Standard,
        } = select
        else {
            return None;
        };
        let is_plain = lateral_views.is_empty()
            && connect_by.is_empty()
            && modifiers.is_empty()
            && cluster_by.is_empty()
            && distribute_by.is_empty()
            && sort_by.is_empty()
            && named_window.is_empty();
        let [TableWithJoins { relation, joins }] = from.as_slice() else { return None };
        let (table, alias) = table_of(relation).filter(|_| is_plain && joins.is_empty())?;
        Some(Plain {
            projection,
            table,
            alias,
            selection: selection.as_ref(),
            groups,
            sorts: &[],
            limit: None,
        })
    }

    /// Whether it asks for groups.
    pub fn is_grouped(&self) -> bool {
        !self.groups.is_empty()
    }
}

/// The name of an ordinary table: nobody makes one whose name is written down.
pub fn own_name(name: &ObjectName) -> Option<String> {
    let name = table_name(name).ok()?;
    TABLES.iter().all(|one| one.name != name).then_some(name)
}

/// A table's name, and what it is called in the statement.
pub fn table_of(relation: &TableFactor) -> Option<(&ObjectName, Option<&Ident>)> {
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = relation
    else {
        return None;
    };
    let is_plain = with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty();
    let alias = alias_of(alias.as_ref())?;
    is_plain.then_some((name, alias))
}

/// What a table is called, if that names no columns.
fn alias_of(alias: Option<&TableAlias>) -> Option<Option<&Ident>> {
    match alias {
        None => Some(None),
        Some(TableAlias { explicit: _, name, columns, at: None }) if columns.is_empty() => {
            Some(Some(name))
        }
        Some(_) => None,
    }
}

fn sorts(order_by: Option<&OrderBy>) -> Option<&[OrderByExpr]> {
    match order_by {
        None => Some(&[]),
        Some(OrderBy { kind: OrderByKind::Expressions(all), interpolate: None }) => {
            all.iter().all(|one| one.with_fill.is_none()).then_some(all.as_slice())
        }
        Some(_) => None,
    }
}

fn limit(clause: Option<&LimitClause>) -> Option<Option<usize>> {
    match clause {
        None => Some(None),
        Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by })
            if limit_by.is_empty() =>
        {
            Some(Some(number(limit)?.parse().ok()?))
        }
        Some(_) => None,
    }
}

/// The digits of a number.
pub fn number(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => Some(digits.as_str()),
        _ => None,
    }
}

/// How rows are put in order where it does not say where NULL stands: as if that were the greatest.
pub fn options(sort: &OrderByExpr) -> SortOptions {
    let descending = sort.options.asc == Some(false);
    SortOptions { descending, nulls_first: sort.options.nulls_first.unwrap_or(descending) }
}

/// The value that a literal is, as the planner takes it.
pub fn value(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Nested(inner) => value(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match value(expr)? {
            ScalarValue::Int64(Some(one)) => Some(ScalarValue::Int64(Some(one.checked_neg()?))),
            ScalarValue::Float64(Some(one)) => Some(ScalarValue::Float64(Some(-one))),
            _ => None,
        },
        Expr::Value(ValueWithSpan { value, .. }) => match value {
            Value::SingleQuotedString(text) => Some(ScalarValue::Utf8(Some(text.clone()))),
            Value::Number(digits, false) => match digits.parse() {
                Ok(whole) => Some(ScalarValue::Int64(Some(whole))),
                Err(_) => digits.parse().ok().map(|one| ScalarValue::Float64(Some(one))),
            },
            Value::Boolean(one) => Some(ScalarValue::Boolean(Some(*one))),
            _ => None,
        },
        _ => None,
    }
}

/// How two values are compared.
pub fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

/// What names of columns stand for.
pub struct Scope<'t> {
    pub table: &'t Hypertable,
    qualifier: String,
}

impl<'t> Scope<'t> {
    /// In a statement that reads one table, and may call it something else.
    pub fn new(table: &'t Hypertable, alias: Option<&Ident>) -> Scope<'t> {
        let qualifier = alias.map_or_else(|| table.name.clone(), folded);
        Scope { table, qualifier }
    }

    /// The column that an expression is.
    pub fn column(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Nested(inner) => self.column(inner),
            Expr::Identifier(name) => self.table.schema.column(&folded(name)),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [qualifier, name] if folded(qualifier) == self.qualifier => {
                    self.table.schema.column(&folded(name))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The name of a column.
    pub fn name(&self, at: usize) -> &'t str {
        &self.table.schema.columns[at].name
    }
}

/// Which column of the answer an expression of `ORDER BY` is: by its number, or by its name where that is
/// not also another column of the table.
pub fn sorted_by(scope: &Scope<'_>, names: &[Output], expr: &Expr) -> Option<usize> {
    if let Some(digits) = number(expr) {
        let at: usize = digits.parse().ok()?;
        return at.checked_sub(1).filter(|at| *at < names.len());
    }
    if let Expr::Identifier(name) = expr {
        let name = folded(name);
        let mut found = names.iter().enumerate().filter(|(_, one)| one.name == name);
        let own = scope.table.schema.column(&name);
        return match (found.next(), found.next()) {
            (Some((at, one)), None) if own.is_none() || own == one.column => Some(at),
            (None, _) => names.iter().position(|one| own.is_some() && one.column == own),
            _ => None,
        };
    }
    let own = scope.column(expr)?;
    names.iter().position(|one| one.column == Some(own))
}

/// A column of an answer.
pub struct Output {
    pub name: String,
    /// The column of the table that it is, if it is one.
    pub column: Option<usize>,
}
