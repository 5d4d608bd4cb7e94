//! Indexes of a table by name. A unique one is a constraint to rows; PostgreSQL's own tables tell them
//! apart. Of another one only the name is stored: it makes nothing faster, and DROP INDEX finds it.

use crate::ddl_dml::definitions::defined::is_written;
use crate::ddl_dml::definitions::schema_changes;
use crate::ddl_dml::definitions::schema_changes::{
    add_key, column_of, free_name, not_kept, places_of,
};
use crate::parse::table_names::table_name;
use crate::tables::heap::index_properties::{INDEX, UNIQUE, is_index, value_of};
use crate::tables::heap::view::View;
use crate::tables::hypertables::shape::Hypertable;
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{CreateIndex, Expr, Ident, IndexColumn, ObjectName};
use std::sync::Arc;
use tables::{ConstraintKind, Schema, Table};

/// The value of an index that is not unique.
const NAME_ONLY: &str = "name only";

/// Remembers that the key of that name is an index.
pub fn remember(schema: &mut Schema, name: &str) {
    schema.properties.push((format!("{INDEX}{name}"), UNIQUE.to_string()));
    settle(schema);
}

/// Forgets what is remembered of keys that are not there any more. A name that is too long to be a
/// property's with what begins it is told of as a constraint's.
pub fn settle(schema: &mut Schema) {
    let names: Vec<&str> = schema.constraints.iter().map(|one| one.name.as_str()).collect();
    let is_kept = |(property, value): &(String, String)| match property.strip_prefix(INDEX) {
        Some(_) if value == NAME_ONLY => true,
        Some(name) => names.contains(&name) && property.len() <= tables::limits::NAME_SIZE_MAX,
        None => true,
    };
    schema.properties.retain(is_kept);
}

/// The same where a key is called otherwise from now on.
pub fn rename(schema: &mut Schema, old: &str, new: &str) {
    let old = format!("{INDEX}{old}");
    for (property, _) in schema.properties.iter_mut().filter(|(one, _)| *one == old) {
        *property = format!("{INDEX}{new}");
    }
    settle(schema);
}

/// Returns true if a key of that name is a constraint and not an index.
fn is_constraint(schema: &Schema, name: &str) -> bool {
    schema.constraints.iter().any(|one| one.name == name) && !is_index(schema, name)
}

/// Properties that a table has at most for a name to be stored.
const PROPERTIES_MAX: usize = tables::limits::PROPERTIES_MAX / 2;

/// Stores the name of an index that is not made.
///
/// # Errors
/// `54000` for a name that is too long, or one too many.
fn remember_name(schema: &mut Schema, name: &str) -> Result<(), SqlError> {
    let property = format!("{INDEX}{name}");
    if tables::limits::NAME_SIZE_MAX < property.len() {
        return Err(SqlError::limit(format!("the name of index \"{name}\" is too long")));
    }
    if PROPERTIES_MAX <= schema.properties.len() {
        let words = format!("a table has at most {PROPERTIES_MAX} indexes and comments");
        return Err(SqlError::limit(words));
    }
    schema.properties.push((property, NAME_ONLY.to_string()));
    Ok(())
}

/// Whether an index that is not made has that name.
pub fn has_name(schema: &Schema, name: &str) -> bool {
    value_of(schema, name) == Some(NAME_ONLY)
}

/// Removes the name of an index that is not made.
pub fn forget_name(schema: &mut Schema, name: &str) {
    let property = format!("{INDEX}{name}");
    schema.properties.retain(|(one, value)| *one != property || value != NAME_ONLY);
}

/// A unique index is a constraint; others would make nothing faster, as tables are in memory.
pub fn create_index(
    view: &View,
    said: &CreateIndex,
    notices: &mut Vec<String>,
) -> Result<(), SqlError> {
    let name = table_name(&said.table_name)?;
    if is_written(&name) {
        notices.push("samples are found by their labels: no index was made".to_string());
        return Ok(());
    }
    let table = view.expect(&name)?;
    if said.predicate.is_some() && said.unique {
        return Err(not_kept("UNIQUE .. WHERE"));
    }
    let index = said.name.as_ref().map(table_name).transpose()?;
    let places = match said.unique {
        true => places_of(table.schema(), &name, &said.columns)?,
        false => {
            let is_hypertable = Hypertable::is_one(table.schema());
            notices.push(match is_hypertable {
                true => "samples are found by their labels: no index was made".to_string(),
                false => {
                    "tables are in memory: no index was made, only UNIQUE ones are".to_string()
                }
            });
            check_columns(&table, &said.columns)?;
            return name_index(view, &table, index, said.if_not_exists, notices);
        }
    };
    if Hypertable::is_one(table.schema()) {
        return Err(not_kept("UNIQUE of a hypertable"));
    }
    let mut schema = table.schema().clone();
    if let Some(taken) = index.as_ref().filter(|index| is_taken(view, index)) {
        let words = format!("relation \"{taken}\" already exists");
        if !said.if_not_exists {
            return Err(SqlError::new("42P07", words));
        }
        notices.push(format!("{words}, skipping"));
        return Ok(());
    }
    let made_up = || {
        let names: Vec<&str> = places.iter().map(|at| schema.columns[*at].name.as_str()).collect();
        free_name(&schema, &format!("{name}_{}_idx", names.join("_")))
    };
    let given = Some(Ident::with_quote('"', index.unwrap_or_else(made_up)));
    add_key(&mut schema, &name, ConstraintKind::Unique, given.as_ref(), places)?;
    if let Some(made) = schema.constraints.last().map(|one| one.name.clone()) {
        remember(&mut schema, &made);
    }
    view.apply(vec![schema_changes::same_columns(&table, &name, schema)]).map(drop)
}

/// Checks that the columns of an index are there; expressions are not looked at.
fn check_columns(table: &Table, columns: &[IndexColumn]) -> Result<(), SqlError> {
    for one in columns {
        if let Expr::Identifier(name) = &one.column.expr {
            column_of(table, name)?;
        }
    }
    Ok(())
}

/// Stores the name of an index that is not made, for DROP INDEX.
fn name_index(
    view: &View,
    table: &Arc<Table>,
    index: Option<String>,
    if_not_exists: bool,
    notices: &mut Vec<String>,
) -> Result<(), SqlError> {
    let Some(index) = index else { return Ok(()) };
    if is_taken(view, &index) {
        let words = format!("relation \"{index}\" already exists");
        if !if_not_exists {
            return Err(SqlError::new("42P07", words));
        }
        notices.push(format!("{words}, skipping"));
        return Ok(());
    }
    let mut schema = table.schema().clone();
    remember_name(&mut schema, &index)?;
    view.apply(vec![schema_changes::same_columns(table, table.name(), schema)]).map(drop)
}

/// Whether a table, or a key of any, is called so: indexes are dropped by their names alone.
fn is_taken(view: &View, name: &str) -> bool {
    let has_it = |table: &Arc<Table>| {
        let schema = table.schema();
        let has_key = schema.constraints.iter().any(|one| one.name == name);
        table.name() == name || has_key || has_name(schema, name)
    };
    is_written(name) || view.list().iter().any(has_it)
}

pub fn drop_indexes(
    view: &View,
    names: &[ObjectName],
    if_exists: bool,
    notices: &mut Vec<String>,
) -> Result<(), SqlError> {
    for name in names {
        let index = table_name(name)?;
        let has_it = |table: &Arc<Table>| {
            let schema = table.schema();
            let has_key = schema.constraints.iter().any(|one| one.name == index);
            has_key || has_name(schema, &index)
        };
        match (view.list().into_iter().find(has_it), if_exists) {
            (Some(table), _) if is_constraint(table.schema(), &index) => {
                let words = format!(
                    "cannot drop index {index} because constraint {index} on table {} requires it",
                    table.name()
                );
                let hint = "Drop the constraint: ALTER TABLE .. DROP CONSTRAINT.";
                return Err(SqlError::new("2BP01", words).with_hint(hint));
            }
            (Some(table), _) => {
                let mut schema = table.schema().clone();
                schema.constraints.retain(|one| one.name != index);
                forget_name(&mut schema, &index);
                settle(&mut schema);
                view.apply(vec![schema_changes::same_columns(&table, table.name(), schema)])?;
            }
            // Those that were asked for and not made are dropped by name, too.
            (None, true) => notices.push(format!("index \"{index}\" does not exist, skipping")),
            (None, false) => {
                return Err(SqlError::new("42704", format!("index \"{index}\" does not exist")));
            }
        }
    }
    Ok(())
}
