//! Columns, defaults and keys that statements add to the schema of a table.

use crate::ddl_dml::definitions::defaults;
use crate::ddl_dml::definitions::defaults::is_numbered_type;
use crate::ddl_dml::rows::inserts::column_at;
use crate::ddl_dml::runner::Runner;
use crate::parse::written::expression_text;
use crate::tables::heap::column_defaults::{Numbered, property_of};
use crate::tables::heap::columns::{Declared, declared};
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, Expr, GeneratedAs, Ident, IndexColumn, ObjectName, TableConstraint,
};
use tables::{Change, Column, Constraint, ConstraintKind, Schema, Source, Table};

/// Where foreign keys, checks and the like are refused.
pub fn not_kept(what: &str) -> SqlError {
    let words = format!("{what} is not known here: nothing would keep it");
    SqlError::unsupported(words)
        .with_hint("Tables have PRIMARY KEY, UNIQUE, NOT NULL and DEFAULT; leave the others out.")
}

/// Whether defaults can be worked out, and fit their columns.
pub async fn check_defaults(runner: &Runner, schema: &Schema) -> Result<(), SqlError> {
    for column in &schema.columns {
        if let defaults::Default::Expression(expr) = defaults::of_column(schema, column)? {
            let planned = defaults::plan(runner, vec![*expr]).await?;
            defaults::values_of(runner, &planned, 1, &[column]).await?;
        }
    }
    Ok(())
}

/// Adds a column, and the constraints that stand with it.
pub fn add_column(schema: &mut Schema, table: &str, said: &ColumnDef) -> Result<(), SqlError> {
    let Declared { ty, words, is_serial } = declared(&said.data_type)?;
    let name = folded(&said.name);
    let mut column = Column { declared: words, ..Column::new(&name, ty) };
    if is_serial {
        column.is_nullable = false;
        schema.properties.push(property_of(&name, Numbered::Serial));
    }
    let place = schema.columns.len();
    let mut keys = Vec::new();
    for option in &said.options {
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => column.is_nullable = false,
            ColumnOption::Default(expr) => column.default = default_text(expr)?,
            ColumnOption::PrimaryKey(_) => keys.push((ConstraintKind::PrimaryKey, &option.name)),
            ColumnOption::Unique(_) => keys.push((ConstraintKind::Unique, &option.name)),
            ColumnOption::Generated { generated_as, generation_expr: None, .. } => {
                let numbered = match generated_as {
                    GeneratedAs::Always => Numbered::Always,
                    _ => Numbered::ByDefault,
                };
                if !is_numbered_type(ty) {
                    let words = "identity column type must be smallint, integer, or bigint";
                    return Err(SqlError::new("22023", words));
                }
                column.is_nullable = false;
                schema.properties.push(property_of(&name, numbered));
            }
            ColumnOption::Collation(_) | ColumnOption::Comment(_) => {}
            ColumnOption::ForeignKey(_) => return Err(not_kept("REFERENCES")),
            ColumnOption::Check(_) => return Err(not_kept("CHECK")),
            other => return Err(not_kept(&other.to_string())),
        }
    }
    schema.columns.push(column);
    for (kind, given) in keys {
        add_key(schema, table, kind, given.as_ref(), vec![place])?;
    }
    Ok(())
}

/// What is kept of a default; that it is null says nothing.
///
/// # Errors
/// When it cannot be kept.
pub fn default_text(expr: &Expr) -> Result<Option<String>, SqlError> {
    let is_null = defaults::plain(expr) == Some(tables::Datum::Null);
    (!is_null).then(|| expression_text(expr)).transpose()
}

/// Adds a constraint that stands by itself.
pub fn add_constraint(
    schema: &mut Schema,
    table: &str,
    said: &TableConstraint,
) -> Result<(), SqlError> {
    let (kind, name, columns) = match said {
        TableConstraint::PrimaryKey(one) => (ConstraintKind::PrimaryKey, &one.name, &one.columns),
        TableConstraint::Unique(one) => (ConstraintKind::Unique, &one.name, &one.columns),
        TableConstraint::ForeignKey(_) => return Err(not_kept("FOREIGN KEY")),
        TableConstraint::Check(_) => return Err(not_kept("CHECK")),
        other => return Err(not_kept(&other.to_string())),
    };
    let places = places_of(schema, table, columns)?;
    add_key(schema, table, kind, name.as_ref(), places)
}

pub fn add_key(
    schema: &mut Schema,
    table: &str,
    kind: ConstraintKind,
    given: Option<&Ident>,
    columns: Vec<usize>,
) -> Result<(), SqlError> {
    if kind == ConstraintKind::PrimaryKey && schema.primary_key().is_some() {
        let words = format!("multiple primary keys for table \"{table}\" are not allowed");
        return Err(SqlError::new("42P16", words));
    }
    let name = match (given, kind) {
        (Some(given), _) => folded(given),
        (None, ConstraintKind::PrimaryKey) => format!("{table}_pkey"),
        (None, ConstraintKind::Unique) => {
            let names: Vec<&str> =
                columns.iter().map(|at| schema.columns[*at].name.as_str()).collect();
            free_name(schema, &format!("{table}_{}_key", names.join("_")))
        }
    };
    schema.constraints.push(Constraint { name, kind, columns });
    Ok(())
}

/// A name that no constraint has: this one, or one with a number.
pub fn free_name(schema: &Schema, wanted: &str) -> String {
    let is_free = |name: &String| !schema.constraints.iter().any(|one| one.name == *name);
    let numbered = (1..).map(|number| format!("{wanted}{number}"));
    let mut all = std::iter::once(wanted.to_string()).chain(numbered);
    all.find(is_free).unwrap_or_default()
}

pub fn places_of(
    schema: &Schema,
    table: &str,
    columns: &[IndexColumn],
) -> Result<Vec<usize>, SqlError> {
    let place = |column: &IndexColumn| match &column.column.expr {
        Expr::Identifier(ident) => {
            let name = folded(ident);
            schema.column(&name).ok_or_else(|| {
                let words = format!("column \"{name}\" of relation \"{table}\" does not exist");
                SqlError::new("42703", words)
            })
        }
        other => Err(SqlError::unsupported(format!("an index of {other}: indexes are of columns"))),
    };
    columns.iter().map(place).collect()
}

/// A column by the name that stands in a statement.
pub fn column_of(table: &Table, name: &Ident) -> Result<usize, SqlError> {
    column_at(table, &ObjectName::from(vec![name.clone()]))
}

/// Where the values of columns come from that stay where they are.
pub fn all_columns(count: usize) -> Vec<Source> {
    (0..count).map(Source::Column).collect()
}

/// A change that leaves columns as they are.
pub fn same_columns(table: &Table, name: &str, schema: Schema) -> Change {
    let from = all_columns(schema.columns.len());
    Change::Alter { table: table.name().to_string(), name: name.to_string(), schema, from }
}
