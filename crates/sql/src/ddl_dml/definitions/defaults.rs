//! What a column has where a statement says nothing of it: nothing, a value, an expression, or the next
//! number.

use crate::catalog::schemas::HANDED_SCHEMA;
use crate::ddl_dml::runner::{Runner, relation, selecting};
use crate::plan::ready::Statement;
use crate::tables::heap::column_defaults::{expression, numbered};
use crate::tables::heap::scan::{Ordinary, Rows, Slot, put};
use crate::tables::heap::values;
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, Value};
use std::sync::Arc;
use tables::{Column, ColumnType, Datum, RowId, Scalar, Schema, Table};

/// The table whose rows are as many as values are wanted.
const COUNTED: &str = "counted";

/// Numbers that are tried one after the other where the first is taken, before it is the one behind the
/// greatest.
const TRIES: usize = 64;

/// Gives rows the numbers of columns that are numbered: that of the row, which are counted from 1 on here, or
/// the next one that nobody has given.
pub struct Numbers {
    all: Vec<Number>,
}

struct Number {
    at: usize,
    /// The constraint on this column alone, if there is one.
    constraint: Option<String>,
    /// The least that is still to be given.
    next: i64,
}

impl Numbers {
    /// Of a table.
    pub fn of(schema: &Schema) -> Numbers {
        let number = |(at, column): (usize, &Column)| {
            numbered(schema, &column.name)?;
            let alone = schema.constraints.iter().find(|one| one.columns == [at]);
            Some(Number { at, constraint: alone.map(|one| one.name.clone()), next: 1 })
        };
        Numbers { all: schema.columns.iter().enumerate().filter_map(number).collect() }
    }

    /// The values of a row that will have the number `row` in its table.
    ///
    /// # Errors
    /// When a column's type has no such number.
    pub fn fill(
        &mut self,
        table: &Table,
        given: Vec<Option<Datum>>,
        row: u64,
    ) -> Result<Vec<Datum>, SqlError> {
        let mut given = given;
        for number in &mut self.all {
            if given[number.at].is_none() {
                given[number.at] = Some(number.give(table, row)?);
            }
        }
        Ok(given.into_iter().map(|one| one.unwrap_or(Datum::Null)).collect())
    }
}

impl Number {
    fn give(&mut self, table: &Table, row: u64) -> Result<Datum, SqlError> {
        let column = &table.schema().columns[self.at];
        let first = i64::try_from(row).unwrap_or(i64::MAX).saturating_add(1).max(self.next);
        let mut value = values::assign(column, Datum::Int8(first))?;
        if let Some(constraint) = &self.constraint {
            let is_taken = |value: &Datum| {
                let found = table.find_by(constraint, std::slice::from_ref(value));
                found.is_ok_and(|found| found.is_some())
            };
            let mut tries =
                (first..=i64::MAX).take(TRIES).map(|one| values::assign(column, Datum::Int8(one)));
            let free = tries.find(|one| one.as_ref().map_or(true, |one| !is_taken(one)));
            value = match free {
                Some(free) => free?,
                None => {
                    let greatest = table.greatest_by(constraint).map(|row| row.project(&[self.at]));
                    let greatest = greatest.and_then(|mut one| one.pop()).unwrap_or(Datum::Null);
                    values::assign(column, Datum::Int8(whole(&greatest).saturating_add(1)))?
                }
            };
        }
        self.next = whole(&value).saturating_add(1);
        Ok(value)
    }
}

fn whole(value: &Datum) -> i64 {
    match value {
        Datum::Int2(number) => i64::from(*number),
        Datum::Int4(number) => i64::from(*number),
        Datum::Int8(number) => *number,
        _ => 0,
    }
}

/// What a column has where nothing is said.
#[derive(Clone, Debug)]
pub enum Default {
    /// A value, none for most.
    Value(Datum),
    /// The next number.
    Number,
    /// What an expression says, for each row anew.
    Expression(Box<Expr>),
}

/// A value that an expression is by itself; none of those that must be worked out.
pub fn plain(expr: &Expr) -> Option<Datum> {
    if let Some(digits) = crate::tables::heap::columns::number_of(expr) {
        return Some(digits.parse().map_or(Datum::Numeric(digits), Datum::Int8));
    }
    match expr {
        Expr::Nested(inner) => plain(inner),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                Some(Datum::Text(text.clone()))
            }
            Value::Boolean(yes) => Some(Datum::Bool(*yes)),
            Value::Null => Some(Datum::Null),
            _ => None,
        },
        _ => None,
    }
}

/// What a column has by default.
///
/// # Errors
/// When its default cannot be read.
pub fn of_column(schema: &Schema, column: &Column) -> Result<Default, SqlError> {
    if numbered(schema, &column.name).is_some() {
        return Ok(Default::Number);
    }
    let Some(text) = &column.default else { return Ok(Default::Value(Datum::Null)) };
    let expr = expression(text)?;
    match plain(&expr) {
        Some(value) => Ok(Default::Value(values::assign_written(column, value)?)),
        None => Ok(Default::Expression(Box::new(expr))),
    }
}

/// Plans expressions that are worked out for so many rows as are counted.
///
/// # Errors
/// When one makes no sense: it may read no column.
pub async fn plan(runner: &Runner, exprs: Vec<Expr>) -> Result<(Statement, Slot), SqlError> {
    // As it is shown of a `serial`, and so as it may come back.
    let is_next = |expr: &Expr| expr.to_string().to_ascii_lowercase().starts_with("nextval(");
    if exprs.iter().any(is_next) {
        return Err(SqlError::unsupported("there are no sequences here: nextval is not known")
            .with_hint("Say serial, or GENERATED BY DEFAULT AS IDENTITY, in CREATE TABLE."));
    }
    let slot = Slot::default();
    let items = exprs.into_iter().map(SelectItem::UnnamedExpr).collect();
    let query = selecting(items, vec![relation(HANDED_SCHEMA, COUNTED, COUNTED)?], None)?;
    let counter = Ordinary::of_slot(&slot, Arc::new(Schema::default()), true);
    runner.view.hand(COUNTED, Arc::new(counter));
    let planned = runner.plan(query).await;
    runner.view.take_back(COUNTED);
    Ok((planned?, slot))
}

/// The values of expressions that were planned, for so many rows.
///
/// # Errors
/// When one fails.
pub async fn values_of(
    runner: &Runner,
    planned: &(Statement, Slot),
    count: usize,
    columns: &[&Column],
) -> Result<Vec<Vec<Datum>>, SqlError> {
    let (statement, slot) = planned;
    let _handed =
        put(slot, Rows::Given((0..count as u64).map(|at| (RowId(at), Vec::new())).collect()));
    let mut all = Vec::with_capacity(count);
    let read = runner.each(statement, &[], |batch| {
        for row in 0..batch.num_rows() {
            let value = |(at, column): (usize, &&Column)| {
                values::assign(column, values::of_array(batch.column(at), row)?)
            };
            all.push(columns.iter().enumerate().map(value).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(())
    });
    read.await?;
    match all.len() == count {
        true => Ok(all),
        false => Err(SqlError::unexpected("defaults of fewer rows than there are")),
    }
}

/// Whether a type can be numbered.
pub fn is_numbered_type(ty: ColumnType) -> bool {
    matches!(ty, ColumnType::One(Scalar::Int2 | Scalar::Int4 | Scalar::Int8))
}
