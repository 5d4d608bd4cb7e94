//! `CREATE TABLE .. AS`: a table of a query's rows.

use crate::ddl_dml::runner::Runner;
use crate::plan::ready::Statement;
use crate::tables::heap::values;
use crate::types::error::SqlError;
use crate::types::names::{folded, shown_name};
use crate::types::special_fields::{JSON, TYPE_KEY, UUID, VARCHAR, is_jsonb_field};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::sql::sqlparser::ast::ColumnDef;
use tables::{Change, Column, ColumnType, Datum, Scalar, Schema};

/// The type of the column that keeps what a query's column has.
fn type_of(field: &Field) -> Result<ColumnType, SqlError> {
    let scalar = |data_type: &DataType| {
        Some(match data_type {
            DataType::Boolean => Scalar::Bool,
            DataType::Int8 | DataType::Int16 | DataType::UInt8 => Scalar::Int2,
            DataType::Int32 | DataType::UInt16 => Scalar::Int4,
            DataType::Int64 | DataType::UInt32 => Scalar::Int8,
            DataType::UInt64 | DataType::Decimal128(..) | DataType::Decimal256(..) => {
                Scalar::Numeric
            }
            DataType::Float32 => Scalar::Float4,
            DataType::Float64 => Scalar::Float8,
            DataType::Timestamp(_, Some(_)) => Scalar::Timestamptz,
            DataType::Timestamp(_, None) => Scalar::Timestamp,
            DataType::Date32 => Scalar::Date,
            DataType::Time64(_) => Scalar::Time,
            DataType::Interval(_) | DataType::Duration(_) => Scalar::Interval,
            DataType::Binary => Scalar::Bytea,
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Null => {
                Scalar::Text
            }
            _ => return None,
        })
    };
    let special = field.metadata().get(TYPE_KEY).map(String::as_str);
    let known = match field.data_type() {
        _ if is_jsonb_field(field) => Some(ColumnType::One(Scalar::Jsonb)),
        _ if special == Some(UUID) => Some(ColumnType::One(Scalar::Uuid)),
        _ if special == Some("uuid[]") => Some(ColumnType::Array(Scalar::Uuid)),
        _ if matches!(special, Some("jsonb[]" | "json[]")) => {
            Some(ColumnType::Array(Scalar::Jsonb))
        }
        DataType::List(of) => scalar(of.data_type()).map(ColumnType::Array),
        plain => scalar(plain).map(ColumnType::One),
    };
    known.ok_or_else(|| {
        let words = format!(
            "column \"{}\" has type {}, which no table has",
            field.name(),
            field.data_type()
        );
        SqlError::unsupported(words)
    })
}

/// How a type was said that tells more than the type.
fn declared_as(field: &Field) -> String {
    let special = field.metadata().get(TYPE_KEY).map(String::as_str);
    match (field.data_type(), special) {
        (DataType::Decimal128(precision, scale), _) => format!("numeric({precision},{scale})"),
        (_, Some(JSON | "json[]")) => JSON.to_string(),
        (_, Some(VARCHAR | "varchar[]")) => VARCHAR.to_string(),
        _ => String::new(),
    }
}

/// The column that keeps what a query's column has, under that name.
///
/// # Errors
/// When no table has such a column.
pub fn column_for(name: &str, field: &Field) -> Result<Column, SqlError> {
    Ok(Column { declared: declared_as(field), ..Column::new(name, type_of(field)?) })
}

/// Makes a table and fills it with the rows of a query; how many they are.
///
/// # Errors
/// When a column can be kept by no table, and those of the query.
pub async fn create_as(
    runner: &Runner,
    name: &str,
    statement: &Statement,
    named: &[ColumnDef],
) -> Result<u64, SqlError> {
    let answered = statement.schema();
    let mut schema = Schema::default();
    for (at, field) in answered.fields().iter().enumerate() {
        let given = named.get(at).map(|one| folded(&one.name));
        let given = given.unwrap_or_else(|| shown_name(field.name()).to_string());
        schema.columns.push(column_for(&given, field)?);
    }
    let columns = schema.columns.clone();
    let table = name.to_string();
    runner.view.apply(vec![Change::Create { table: table.clone(), schema }])?;
    let memory = runner.memory("rows of a new table");
    let mut rows: Vec<Vec<Datum>> = Vec::new();
    let read = runner.each(statement, &[], |batch| {
        for at in 0..batch.num_rows() {
            let value = |(nth, column): (usize, &Column)| {
                values::assign(column, values::of_array(batch.column(nth), at)?)
            };
            let row = columns.iter().enumerate().map(value).collect::<Result<Vec<_>, _>>()?;
            memory.try_grow(values::row_size(&row))?;
            rows.push(row);
        }
        Ok(())
    });
    read.await?;
    Ok(runner.view.apply(vec![Change::Insert { table, rows }])?.inserted)
}
