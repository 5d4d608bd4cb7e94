//! Properties of a table that tell its unique indexes from its constraints.

use tables::Schema;

/// What the property of an index begins with.
pub(crate) const INDEX: &str = "index:";

pub(crate) const UNIQUE: &str = "unique";

/// Whether the key of that name is an index.
pub(crate) fn is_index(schema: &Schema, name: &str) -> bool {
    value_of(schema, name) == Some(UNIQUE)
}

pub(crate) fn value_of<'a>(schema: &'a Schema, name: &str) -> Option<&'a str> {
    let found = schema.properties.iter().find(|(one, _)| one.strip_prefix(INDEX) == Some(name));
    found.map(|(_, value)| value.as_str())
}
