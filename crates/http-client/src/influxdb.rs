//! Names and types of a running InfluxDB: its token scheme, measurements and fields.

use std::collections::{BTreeMap, BTreeSet};
use wire::influx::FieldType;

/// The scheme of tokens: InfluxDB 2 has a word of its own.
pub const TOKEN: &str = "Token";
/// A measurement and its fields.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// Its name.
    pub name: String,
    /// Names and types of its fields.
    pub fields: Vec<(String, FieldType)>,
}

/// A measurement of which shards say different types: what is a number anywhere is one.
pub fn measurement(name: String, fields: BTreeMap<String, BTreeSet<String>>) -> Measurement {
    let mut found = Measurement { name, ..Measurement::default() };
    for (field, types) in fields {
        let has = |name: &str| types.contains(name);
        if has("float") {
            found.fields.push((field.clone(), FieldType::Float));
        } else if has("integer") || has("unsigned") {
            found.fields.push((field.clone(), FieldType::Integer));
        }
        if has("boolean") {
            found.fields.push((field.clone(), FieldType::Boolean));
        }
        if has("string") {
            found.fields.push((field, FieldType::String));
        }
    }
    found
}

/// Whether InfluxQL can say it: its reader ends at a zero byte and takes `\r` for `\n`. What stands for bytes
/// that are no UTF-8 is not what the server has.
pub fn is_sayable(value: &str) -> bool {
    !value.contains(['\0', '\r', char::REPLACEMENT_CHARACTER])
}
