//! Groups of a hypertable by stretches of time and labels, from the words of a statement.

use crate::parse::rewrite::expressions::{arguments, is_named};
use crate::plan::pushdown::direct::{Direct, trunc_width, width_of};
use crate::plan::straight::words::{Output, Plain, Scope, number, options, sorted_by, value};
use crate::tables::heap::columns::field_of as table_field;
use crate::tables::hypertables::append::Series;
use crate::tables::hypertables::conditions::Asked;
use crate::tables::hypertables::groups::{Grouping, Groups, Key, Summary};
use crate::tables::hypertables::shape::Hypertable;
use crate::types::names::folded;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Interval,
    OrderByExpr, SelectItem,
};
use std::sync::Arc;

/// What is asked of a hypertable.
pub struct GroupsOf {
    grouping: Grouping,
    /// What groups look like: keys, and then summaries.
    schema: SchemaRef,
    /// Which of those columns are answered.
    columns: Vec<usize>,
    sorts: Vec<(usize, SortOptions)>,
    fetch: Option<usize>,
}

/// A column of the answer.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Key(Key),
    Summary(Summary, usize),
}

impl GroupsOf {
    /// What a statement says, and what is answered.
    pub fn of(scope: &Scope<'_>, plain: &Plain<'_>) -> Option<(GroupsOf, SchemaRef)> {
        let (mut names, mut parts) = (Vec::new(), Vec::new());
        for item in plain.projection {
            let (expr, name) = match item {
                SelectItem::UnnamedExpr(
                    expr @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
                ) => (expr, scope.name(scope.column(expr)?).to_string()),
                SelectItem::ExprWithAlias { expr, alias } => (expr, folded(alias)),
                _ => return None,
            };
            names.push(Output { name, column: scope.column(expr) });
            parts.push(part(scope, expr)?);
        }
        let keys = plain.groups.iter().map(|expr| key(scope, &names, &parts, expr));
        let keys = keys.collect::<Option<Vec<Key>>>()?;
        let times = keys.iter().filter(|key| matches!(key, Key::Time(_))).count();
        let is_once = |key: &Key| keys.iter().filter(|one| *one == key).count() == 1;
        if 1 < times || !keys.iter().all(is_once) {
            return None;
        }
        let mut summaries: Vec<(Summary, usize)> = Vec::new();
        let mut columns = Vec::new();
        for part in &parts {
            columns.push(match part {
                Part::Key(key) => keys.iter().position(|one| one == key)?,
                Part::Summary(summary, of) => {
                    summaries.push((*summary, *of));
                    keys.len() + summaries.len() - 1
                }
            });
        }
        let sort =
            |sort: &OrderByExpr| Some((sorted_by(scope, &names, &sort.expr)?, options(sort)));
        let sorts = plain.sorts.iter().map(sort).collect::<Option<Vec<_>>>()?;
        let grouping = Grouping { keys, summaries };
        if grouping.summaries.is_empty() {
            return None;
        }
        let schema = schema_of(scope.table, &grouping);
        let shown = names.iter().zip(&columns);
        let shown = shown.map(|(name, at)| schema.field(*at).clone().with_name(&name.name));
        let answered = Arc::new(Schema::new(shown.collect::<Vec<_>>()));
        Some((GroupsOf { grouping, schema, columns, sorts, fetch: plain.limit }, answered))
    }

    /// How they are read.
    pub fn direct(
        &self,
        series: Arc<Series>,
        table: Arc<Hypertable>,
        asked: Asked,
        answered: &SchemaRef,
    ) -> Direct {
        let (grouping, schema) = (self.grouping.clone(), self.schema.clone());
        Direct {
            groups: Groups { series, table, asked, grouping, schema },
            columns: self.columns.clone(),
            sorts: self.sorts.clone(),
            fetch: self.fetch,
            schema: answered.clone(),
        }
    }
}

/// Two of one name would be one column.
fn schema_of(table: &Hypertable, grouping: &Grouping) -> SchemaRef {
    let key = |key: &Key| match key {
        Key::Time(_) => {
            let field = table_field(&table.schema.columns[table.time]);
            Field::new("", field.data_type().clone(), true)
        }
        Key::Label(at) => table_field(&table.schema.columns[*at]),
    };
    let summary = |(summary, _): &(Summary, usize)| {
        let ty = match summary {
            Summary::Count | Summary::Rows => DataType::Int64,
            Summary::Max | Summary::Min | Summary::Sum | Summary::Avg => DataType::Float64,
        };
        Field::new("", ty, true)
    };
    let fields = grouping.keys.iter().map(key).chain(grouping.summaries.iter().map(summary));
    let numbered = fields.enumerate().map(|(nth, field)| field.with_name(nth.to_string()));
    Arc::new(Schema::new(numbered.collect::<Vec<_>>()))
}

/// A group's key: an expression, the number or the name of one that is selected. Where a name is also that of
/// another column, it is not clear which is meant.
fn key(scope: &Scope<'_>, names: &[Output], parts: &[Part], expr: &Expr) -> Option<Key> {
    let of_part = |at: usize| match parts.get(at)? {
        Part::Key(key) => Some(*key),
        Part::Summary(..) => None,
    };
    if let Some(digits) = number(expr) {
        return of_part(digits.parse::<usize>().ok()?.checked_sub(1)?);
    }
    if let Expr::Identifier(name) = expr {
        let (name, own) = (folded(name), scope.column(expr));
        let mut found = names.iter().enumerate().filter(|(_, one)| one.name == name);
        match (found.next(), found.next()) {
            (Some((at, _)), None) if own.is_none() => return of_part(at),
            (Some((_, one)), None) if own == one.column => {}
            (None, _) => {}
            _ => return None,
        }
    }
    match part(scope, expr)? {
        Part::Key(key) => Some(key),
        Part::Summary(..) => None,
    }
}

fn part(scope: &Scope<'_>, expr: &Expr) -> Option<Part> {
    match expr {
        Expr::Nested(inner) => part(scope, inner),
        Expr::Function(function) => called(scope, function),
        other => {
            let at = scope.column(other)?;
            scope.table.labels.contains(&at).then_some(Part::Key(Key::Label(at)))
        }
    }
}

fn called(scope: &Scope<'_>, function: &Function) -> Option<Part> {
    let Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group,
    } = function
    else {
        return None;
    };
    let is_plain = within_group.is_empty()
        && list.duplicate_treatment.is_none()
        && list.clauses.is_empty()
        && name.0.len() == 1;
    if !is_plain {
        return None;
    }
    if let ([FunctionArg::Unnamed(FunctionArgExpr::Wildcard)], true) =
        (list.args.as_slice(), is_named(name, "count"))
    {
        return Some(Part::Summary(Summary::Rows, *scope.table.values.first()?));
    }
    let args = arguments(function)?;
    if let [first, time] = args.as_slice()
        && scope.column(time) == Some(scope.table.time)
    {
        let width = match is_named(name, "time_bucket") {
            true => width_of(&width(first)?),
            false if is_named(name, "date_trunc") => trunc_width(&value(first)?),
            false => None,
        };
        return width.map(|width| Part::Key(Key::Time(width)));
    }
    let [of] = args.as_slice() else { return None };
    let summary = ["max", "min", "sum", "avg", "count"].iter().position(|one| is_named(name, one));
    let all = [Summary::Max, Summary::Min, Summary::Sum, Summary::Avg, Summary::Count];
    let summary = *all.get(summary?)?;
    if let (Summary::Count, Some(_)) = (summary, number(of)) {
        return Some(Part::Summary(Summary::Rows, *scope.table.values.first()?));
    }
    let at = scope.column(of).filter(|at| scope.table.is_float(*at))?;
    Some(Part::Summary(summary, at))
}

/// The text of an interval.
fn width(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Cast {
            expr, data_type: SqlType::Interval { fields: None, precision: None }, ..
        } => value(expr),
        Expr::Interval(Interval {
            value: text,
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        }) => value(text),
        _ => None,
    }
}
