//! What `ALTER TABLE` does, an operation at a time.

use crate::ddl_dml::definitions::defaults::is_numbered_type;
use crate::ddl_dml::definitions::schema_changes::{
    add_column, add_constraint, all_columns, check_defaults, column_of, default_text, same_columns,
};
use crate::ddl_dml::definitions::{defaults, indexes};
use crate::ddl_dml::runner::Runner;
use crate::parse::table_names::table_name;
use crate::tables::heap::column_defaults::{Numbered, property_name, property_of};
use crate::tables::heap::columns::{Declared, declared, type_oid_and_modifier};
use crate::tables::heap::values;
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnDef, DataType as SqlType, GeneratedAs, Ident,
    RenameTableNameKind,
};
use tables::{Change, Column, Datum, Schema, Source, Table};

/// The change that an operation is; none where there is nothing to do.
///
/// # Errors
/// When it cannot be done.
pub async fn change(
    runner: &Runner,
    table: &Table,
    operation: &AlterTableOperation,
    notices: &mut Vec<String>,
) -> Result<Option<Change>, SqlError> {
    let (name, mut schema) = (table.name(), table.schema().clone());
    let change = match operation {
        AlterTableOperation::AddColumn { if_not_exists, column_def, .. } => {
            let column = folded(&column_def.name);
            if *if_not_exists && schema.column(&column).is_some() {
                notices.push(format!(
                    "column \"{column}\" of relation \"{name}\" already exists, skipping"
                ));
                return Ok(None);
            }
            added(runner, table, column_def).await?
        }
        AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
            return dropped(table, column_names, *if_exists, notices);
        }
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            let at = column_of(table, old_column_name)?;
            rename(&mut schema, at, folded(new_column_name));
            same_columns(table, name, schema)
        }
        AlterTableOperation::RenameTable { table_name: kind } => {
            let (RenameTableNameKind::As(new) | RenameTableNameKind::To(new)) = kind;
            same_columns(table, &table_name(new)?, schema)
        }
        AlterTableOperation::AddConstraint { constraint, .. } => {
            add_constraint(&mut schema, name, constraint)?;
            same_columns(table, name, schema)
        }
        AlterTableOperation::DropConstraint { if_exists, name: given, .. } => {
            let wanted = folded(given);
            if let Err(error) = drop_constraint(&mut schema, name, &wanted) {
                if !*if_exists {
                    return Err(error);
                }
                notices.push(format!("{error}, skipping"));
                return Ok(None);
            }
            same_columns(table, name, schema)
        }
        AlterTableOperation::RenameConstraint { old_name, new_name } => {
            rename_constraint(&mut schema, name, &folded(old_name), folded(new_name))?;
            same_columns(table, name, schema)
        }
        AlterTableOperation::AlterColumn { column_name, op } => {
            let at = column_of(table, column_name)?;
            alter_column(&mut schema, at, op)?;
            check_defaults(runner, &schema).await?;
            same_columns(table, name, schema)
        }
        // There is one role.
        AlterTableOperation::OwnerTo { .. } => return Ok(None),
        other => {
            return Err(SqlError::unsupported(format!("ALTER TABLE .. {other} is not known here")));
        }
    };
    Ok(Some(change))
}

fn drop_constraint(schema: &mut Schema, table: &str, name: &str) -> Result<(), SqlError> {
    let before = schema.constraints.len();
    schema.constraints.retain(|one| one.name != name);
    indexes::settle(schema);
    match schema.constraints.len() < before {
        true => Ok(()),
        false => {
            let words = format!("constraint \"{name}\" of relation \"{table}\" does not exist");
            Err(SqlError::new("42704", words))
        }
    }
}

fn rename_constraint(
    schema: &mut Schema,
    table: &str,
    old: &str,
    new: String,
) -> Result<(), SqlError> {
    let found = schema.constraints.iter_mut().find(|one| one.name == old);
    let found = found.ok_or_else(|| {
        let words = format!("constraint \"{old}\" for table \"{table}\" does not exist");
        SqlError::new("42704", words)
    })?;
    found.name.clone_from(&new);
    indexes::rename(schema, old, &new);
    Ok(())
}

/// A column that is added, with its default in all rows.
async fn added(runner: &Runner, table: &Table, said: &ColumnDef) -> Result<Change, SqlError> {
    let mut schema = table.schema().clone();
    let count = schema.columns.len();
    add_column(&mut schema, table.name(), said)?;
    let column = &schema.columns[count];
    let value = match defaults::of_column(&schema, column)? {
        defaults::Default::Value(value) => value,
        defaults::Default::Number if table.row_count() == 0 => Datum::Null,
        defaults::Default::Number => {
            let words = "a numbered column cannot be added to a table that has rows";
            return Err(SqlError::unsupported(words).with_hint(
                "CREATE TABLE with it under another name, and INSERT .. SELECT the rows.",
            ));
        }
        // As in PostgreSQL, `now()` is worked out once. What differs from row to row would be the same in
        // all rows that are there.
        defaults::Default::Expression(expr) => {
            let planned = defaults::plan(runner, vec![*expr]).await?;
            if 0 < table.row_count() && planned.0.is_volatile() {
                return Err(SqlError::unsupported(
                    "a column whose default differs from row to row cannot be added to a table that has rows",
                )
                .with_hint("ADD COLUMN without it, UPDATE all rows, then ALTER COLUMN .. SET DEFAULT."));
            }
            let mut made = defaults::values_of(runner, &planned, 1, &[column]).await?;
            made.pop().and_then(|mut row| row.pop()).unwrap_or(Datum::Null)
        }
    };
    let mut from = all_columns(count);
    from.push(Source::Value(values::assign(column, value)?));
    let name = table.name().to_string();
    Ok(Change::Alter { table: name.clone(), name, schema, from })
}

fn dropped(
    table: &Table,
    names: &[Ident],
    if_exists: bool,
    notices: &mut Vec<String>,
) -> Result<Option<Change>, SqlError> {
    let mut gone = Vec::new();
    for name in names {
        match (column_of(table, name), if_exists) {
            (Ok(at), _) => gone.push(at),
            (Err(error), true) => notices.push(format!("{error}, skipping")),
            (Err(error), false) => return Err(error),
        }
    }
    if gone.is_empty() {
        return Ok(None);
    }
    let mut schema = table.schema().clone();
    let left: Vec<usize> = (0..schema.columns.len()).filter(|at| !gone.contains(at)).collect();
    for at in &gone {
        let property = property_name(&schema.columns[*at].name);
        schema.properties.retain(|(name, _)| *name != property);
    }
    // Constraints go with any of their columns.
    schema.constraints.retain(|one| !one.columns.iter().any(|at| gone.contains(at)));
    indexes::settle(&mut schema);
    for constraint in &mut schema.constraints {
        for at in &mut constraint.columns {
            *at -= gone.iter().filter(|one| **one < *at).count();
        }
    }
    schema.columns = left.iter().map(|at| schema.columns[*at].clone()).collect();
    let from = left.into_iter().map(Source::Column).collect();
    let name = table.name().to_string();
    Ok(Some(Change::Alter { table: name.clone(), name, schema, from }))
}

fn rename(schema: &mut Schema, at: usize, new: String) {
    let property = property_name(&schema.columns[at].name);
    for (name, _) in schema.properties.iter_mut().filter(|(name, _)| *name == property) {
        *name = property_name(&new);
    }
    schema.columns[at].name = new;
}

/// A column with another type that has all values of the old one in the same form: more characters, or no limit.
fn wider(column: &Column, data_type: &SqlType) -> Result<Option<Column>, SqlError> {
    const TEXT: i32 = 25;
    const VARCHAR: i32 = 1043;
    let Declared { ty, words, is_serial } = declared(data_type)?;
    if ty != column.ty || is_serial {
        return Ok(None);
    }
    let new = Column { declared: words, ..column.clone() };
    let (old_oid, old_limit) = type_oid_and_modifier(column);
    let (new_oid, new_limit) = type_oid_and_modifier(&new);
    let is_text = |oid| [TEXT, VARCHAR].contains(&oid);
    let has_all = match new_limit {
        -1 => true,
        limit if new_oid == VARCHAR => old_limit != -1 && old_limit <= limit,
        limit => limit == old_limit,
    };
    let is_same = old_oid == new_oid || is_text(old_oid) && is_text(new_oid);
    Ok((is_same && has_all).then_some(new))
}

fn alter_column(
    schema: &mut Schema,
    at: usize,
    operation: &AlterColumnOperation,
) -> Result<(), SqlError> {
    let is_key = schema.primary_key().is_some_and(|key| key.columns.contains(&at));
    let column = &mut schema.columns[at];
    match operation {
        AlterColumnOperation::SetNotNull => column.is_nullable = false,
        AlterColumnOperation::DropNotNull if is_key => {
            let words = format!("column \"{}\" is in a primary key", column.name);
            return Err(SqlError::new("42P16", words));
        }
        AlterColumnOperation::DropNotNull => column.is_nullable = true,
        AlterColumnOperation::SetDefault { value } => column.default = default_text(value)?,
        AlterColumnOperation::DropDefault => column.default = None,
        AlterColumnOperation::AddGenerated { generated_as, .. } if is_numbered_type(column.ty) => {
            let numbered = match generated_as {
                Some(GeneratedAs::Always) => Numbered::Always,
                _ => Numbered::ByDefault,
            };
            column.is_nullable = false;
            let property = property_of(&column.name, numbered);
            schema.properties.retain(|(name, _)| *name != property.0);
            schema.properties.push(property);
        }
        AlterColumnOperation::AddGenerated { .. } => {
            let words = "identity column type must be smallint, integer, or bigint";
            return Err(SqlError::new("22023", words));
        }
        AlterColumnOperation::SetDataType { data_type, using: None, .. }
            if let Some(wider) = wider(column, data_type)? =>
        {
            *column = wider;
        }
        AlterColumnOperation::SetDataType { .. } => {
            let words = "the type of a column cannot be changed here";
            let hint =
                "ADD COLUMN one of the new type, UPDATE it from the old one, DROP COLUMN that.";
            return Err(SqlError::unsupported(words).with_hint(hint));
        }
    }
    Ok(())
}
