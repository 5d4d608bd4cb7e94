//! Defaults of columns as PostgreSQL shows them (`pg_get_expr`): a text is cast to the column's type,
//! functions are in small letters.

use crate::tables::heap::column_defaults::expression;
use crate::tables::heap::columns::{number_of, type_oid_and_modifier};
use crate::types::postgres_types::type_name;
use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, ObjectNamePart, Value, VisitorMut,
};
use std::ops::ControlFlow;
use tables::{Column, ColumnType, Scalar};

/// The default of a column, if it has one.
pub(crate) fn shown_default(column: &Column) -> Option<String> {
    let kept = column.default.as_ref()?;
    let Ok(mut expr) = expression(kept) else { return Some(kept.clone()) };
    while let Expr::Nested(inner) = expr {
        expr = *inner;
    }
    let _: ControlFlow<()> = walk_mut(&mut expr, &mut SmallLetters);
    if let Some(digits) = number_of(&expr) {
        return Some(number(&digits, column));
    }
    Some(match &expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                literal(text, column)
            }
            Value::Boolean(yes) => yes.to_string(),
            other => other.to_string(),
        },
        Expr::BinaryOp { .. } => format!("({expr})"),
        other => other.to_string(),
    })
}

/// The name of a column's type, without what belongs to it.
fn type_of(column: &Column) -> String {
    let (oid, _) = type_oid_and_modifier(column);
    match column.ty {
        ColumnType::One(Scalar::Text) if oid == 1042 => "bpchar".to_string(),
        _ => type_name(oid).unwrap_or_default(),
    }
}

fn quoted(text: &str, column: &Column) -> String {
    format!("'{}'::{}", text.replace('\'', "''"), type_of(column))
}

/// A number as it is, but for a sign, which PostgreSQL keeps within a text.
fn number(digits: &str, column: &Column) -> String {
    match digits.starts_with('-') {
        true => quoted(digits, column),
        false => digits.to_string(),
    }
}

/// What a text is as a value of the column: PostgreSQL reads it once, when the table is made.
fn literal(text: &str, column: &Column) -> String {
    let plain = text.trim();
    let is_number = plain.bytes().any(|byte| byte.is_ascii_digit()) && plain.parse::<f64>().is_ok();
    match column.ty {
        ColumnType::One(Scalar::Int2 | Scalar::Int4 | Scalar::Int8 | Scalar::Numeric)
            if is_number =>
        {
            number(plain, column)
        }
        ColumnType::One(Scalar::Bool) => match plain.to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => "true".to_string(),
            _ => "false".to_string(),
        },
        _ => quoted(text, column),
    }
}

/// Names of functions that stand without quotes; those of the standard that stand without parentheses
/// are in capitals.
struct SmallLetters;

impl VisitorMut for SmallLetters {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(Function { name, args, .. }) = expr {
            for part in &mut name.0 {
                let ObjectNamePart::Identifier(ident) = part else { continue };
                if ident.quote_style.is_none() {
                    ident.value = match args {
                        FunctionArguments::None => ident.value.to_ascii_uppercase(),
                        _ => ident.value.to_ascii_lowercase(),
                    };
                }
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_shown_as_postgresql_shows_them() {
        for (kept, scalar, declared, expected) in [
            ("'ops'", Scalar::Text, "varchar(10)", "'ops'::character varying"),
            ("'o''x'", Scalar::Text, "", "'o''x'::text"),
            ("'a'", Scalar::Text, "char(3)", "'a'::bpchar"),
            ("'{}'", Scalar::Jsonb, "", "'{}'::jsonb"),
            ("-5", Scalar::Int4, "", "'-5'::integer"),
            ("'7'", Scalar::Int4, "", "7"),
            ("1.5", Scalar::Numeric, "numeric(10,2)", "1.5"),
            ("TRUE", Scalar::Bool, "", "true"),
            ("'on'", Scalar::Bool, "", "true"),
            ("NOW()", Scalar::Timestamptz, "", "now()"),
            ("current_timestamp", Scalar::Timestamptz, "", "CURRENT_TIMESTAMP"),
            ("1 + 2", Scalar::Float8, "", "(1 + 2)"),
            ("((3))", Scalar::Int8, "", "3"),
            ("'2024-02-29'", Scalar::Date, "", "'2024-02-29'::date"),
        ] {
            let mut column = Column::new("c", ColumnType::One(scalar));
            column.default = Some(kept.to_string());
            column.declared = declared.to_string();
            assert_eq!(shown_default(&column).as_deref(), Some(expected), "{kept}");
        }
        assert_eq!(shown_default(&Column::new("c", ColumnType::One(Scalar::Text))), None);
    }
}
