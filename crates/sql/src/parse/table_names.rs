//! Names of ordinary tables in statements.

use crate::tables::heap::view::no_such_table;
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart};

/// The name of an ordinary table: all are in the schema `public`.
///
/// # Errors
/// When it says another schema.
pub fn table_name(name: &ObjectName) -> Result<String, SqlError> {
    let parts: Vec<String> =
        name.0.iter().filter_map(ObjectNamePart::as_ident).map(folded).collect();
    match parts.as_slice() {
        [table] => Ok(table.clone()),
        [schema, table] if schema == "public" => Ok(table.clone()),
        [_, schema, table] if schema == "public" => Ok(table.clone()),
        other @ [.., _, _] => Err(no_such_table(&other.join("."))),
        [] => Err(SqlError::invalid("a table has a name")),
    }
}
