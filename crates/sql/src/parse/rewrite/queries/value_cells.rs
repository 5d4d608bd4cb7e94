//! Types of the columns of `VALUES`: a literal in quotes has the type of the other cells, and dates beside timestamps are
//! timestamps (<https://www.postgresql.org/docs/15/typeconv-union-case.html>). DataFusion refuses the first, and loses the
//! zone of the second.

use crate::parse::rewrite::expressions::{cast, literal};
use datafusion::sql::sqlparser::ast::{DataType as SqlType, Expr, TimezoneInfo, Value, Values};

/// Casts cells to the type of their column, where cells say one.
pub fn cells_with_types(values: &mut Values) {
    let count = values.rows.first().map_or(0, |row| row.content.len());
    for at in 0..count {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
        let types: Vec<SqlType> = cells().filter_map(type_of_cell).collect();
        let Some(wanted) = common_type(&types) else { continue };
        for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
            let is_other = type_of_cell(cell).is_some_and(|own| own != wanted);
            if is_other || literal(cell).is_some() && type_of_cell(cell).is_none() {
                *cell = cast(cell.clone(), wanted.clone());
            }
        }
    }
}

/// The type that a cell is written with; none of numbers, of texts and of cells whose type is not written.
fn type_of_cell(cell: &Expr) -> Option<SqlType> {
    let of = match cell {
        Expr::Nested(inner) => return type_of_cell(inner),
        Expr::Cast { data_type, .. } => data_type,
        Expr::TypedString(typed) => &typed.data_type,
        Expr::Interval(_) => return Some(SqlType::Interval { fields: None, precision: None }),
        Expr::Value(value) if matches!(value.value, Value::Boolean(_)) => {
            return Some(SqlType::Boolean);
        }
        _ => return None,
    };
    Some(match of {
        SqlType::Bool | SqlType::Boolean => SqlType::Boolean,
        SqlType::Interval { .. } => SqlType::Interval { fields: None, precision: None },
        SqlType::Timestamp(_, zone) => SqlType::Timestamp(None, *zone),
        SqlType::Bytea | SqlType::Date | SqlType::Time(..) => of.clone(),
        _ => return None,
    })
}

/// The type of all cells together; none if there is none.
fn common_type(types: &[SqlType]) -> Option<SqlType> {
    let rank = |ty: &SqlType| match ty {
        SqlType::Date => Some(0),
        SqlType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => Some(2),
        SqlType::Timestamp(..) => Some(1),
        _ => None,
    };
    let ranks: Option<Vec<u8>> = types.iter().map(rank).collect();
    match ranks {
        Some(_) => types.iter().max_by_key(|ty| rank(ty)).cloned(),
        None => types.iter().all(|ty| *ty == types[0]).then(|| types[0].clone()),
    }
}
