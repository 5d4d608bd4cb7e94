//! Which keys of a table are unique indexes. To rows they are what constraints are; PostgreSQL's own
//! tables tell them apart, and so they are remembered.

use tables::Schema;

/// What the property of an index begins with.
const INDEX: &str = "index:";
const UNIQUE: &str = "unique";

/// Remembers that the key of that name is an index.
pub fn remember(schema: &mut Schema, name: &str) {
    schema.properties.push((format!("{INDEX}{name}"), UNIQUE.to_string()));
    settle(schema);
}

/// Forgets what is remembered of keys that are not there any more. A name that is too long to be a
/// property's with what begins it is told of as a constraint's.
pub fn settle(schema: &mut Schema) {
    let names: Vec<&str> = schema.constraints.iter().map(|one| one.name.as_str()).collect();
    let is_kept = |(property, _): &(String, String)| match property.strip_prefix(INDEX) {
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

/// Whether the key of that name is an index.
pub(crate) fn is_index(schema: &Schema, name: &str) -> bool {
    schema.properties.iter().any(|(one, _)| one.strip_prefix(INDEX) == Some(name))
}
