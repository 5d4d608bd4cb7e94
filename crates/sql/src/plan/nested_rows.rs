//! Rows within rows of an answer, which have a limit.

use crate::types::error::SqlError;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;

/// Rows in each other that a statement may show: each doubles the quotes and backslashes of those within,
/// as PostgreSQL writes them, too.
const ROWS_IN_ROWS_MAX: usize = 6;

/// Refuses columns with more rows in each other.
///
/// # Errors
/// `54001`.
pub fn check_rows(schema: &DFSchema) -> Result<(), SqlError> {
    let deepest = schema.fields().iter().map(|field| rows_in_each_other(field.data_type())).max();
    match deepest.unwrap_or_default() {
        0..=ROWS_IN_ROWS_MAX => Ok(()),
        _ => {
            let words = format!("rows of rows, more than {ROWS_IN_ROWS_MAX} in each other");
            Err(SqlError::new("54001", words))
        }
    }
}

fn rows_in_each_other(ty: &DataType) -> usize {
    match ty {
        DataType::Struct(fields) => {
            1 + fields.iter().map(|field| rows_in_each_other(field.data_type())).max().unwrap_or(0)
        }
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            rows_in_each_other(field.data_type())
        }
        _ => 0,
    }
}
