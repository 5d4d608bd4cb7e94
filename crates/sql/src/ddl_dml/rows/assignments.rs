//! Types of values that INSERT and UPDATE assign to columns
//! (<https://www.postgresql.org/docs/15/typeconv-query.html>): checked before any row is read.

use crate::plan::ready::Statement;
use crate::tables::heap::columns::{cast_type, field_of};
use crate::tables::heap::values::shown_type;
use crate::types::categories::{Category, category_of};
use crate::types::error::SqlError;
use crate::types::special_fields::{JSON, JSONB, TYPE_KEY};
use tables::{Column, ColumnType, Scalar};

/// Returns true for `json` and `jsonb`, which are assigned to each other.
fn is_json(name: &str) -> bool {
    [JSON, JSONB].contains(&name)
}

/// Checks that PostgreSQL assigns a value of a known type to a column without a cast.
///
/// # Errors
/// `42804`.
pub fn check(planned: &Statement, place: usize, column: &Column) -> Result<(), SqlError> {
    let Some((given, name)) = planned.known_type(place) else { return Ok(()) };
    let field = field_of(column);
    let is_special = matches!(column.ty, ColumnType::One(Scalar::Jsonb | Scalar::Uuid));
    let wanted = if is_special { Some(Category::Special) } else { category_of(field.data_type()) };
    let Some(wanted) = wanted else { return Ok(()) };
    let special = field.metadata().get(TYPE_KEY).map_or("", String::as_str);
    let is_refused = match (wanted, given) {
        // Every type is assigned to a text.
        (Category::Text, _) => false,
        // Columns of the other types read texts: parameters come as such.
        (_, Category::Text) => cast_type(column.ty).is_some(),
        (Category::Special, Category::Special) => {
            special != name && !(is_json(special) && is_json(&name))
        }
        (Category::Time, Category::Date) => !name.starts_with("timestamp"),
        (Category::Time, Category::Interval) | (Category::Interval, Category::Time) => false,
        (wanted, given) => wanted != given,
    };
    if !is_refused {
        return Ok(());
    }
    let words = format!(
        "column \"{}\" is of type {} but expression is of type {name}",
        column.name,
        shown_type(column.ty),
    );
    Err(SqlError::new("42804", words).with_hint("Cast the expression."))
}
