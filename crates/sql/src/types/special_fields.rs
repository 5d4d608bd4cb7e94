//! Fields of types that arrow has as texts, such as `jsonb` and `uuid`: a field names its type in its metadata
//! ([`TYPE_KEY`]).

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use std::collections::HashMap;
use std::sync::Arc;

/// What a field of that type says of itself: arrow has no `jsonb`.
pub const TYPE_KEY: &str = "quipu.type";

/// See [`TYPE_KEY`].
pub const JSONB: &str = "jsonb";

/// `json`, whose values are texts as they were written. See [`TYPE_KEY`].
pub const JSON: &str = "json";

/// A field of `jsonb`.
pub fn jsonb_field(name: &str, is_nullable: bool) -> Field {
    special_field(name, JSONB, DataType::Utf8View, is_nullable)
}

/// Whether a field is a `jsonb` or a `json`.
pub(crate) fn is_json_field(field: &Field) -> bool {
    field.metadata().get(TYPE_KEY).is_some_and(|name| name == JSON)
}

/// Returns the field of a `json`.
pub fn json_field(name: &str, is_nullable: bool) -> Field {
    special_field(name, JSON, DataType::Utf8View, is_nullable)
}

/// Returns true for a field of a `jsonb` or `json`.
pub fn is_jsonb_field(field: &Field) -> bool {
    field.metadata().get(TYPE_KEY).is_some_and(|name| name == JSONB || name == JSON)
}

/// `varchar`, with or without a length.
pub const VARCHAR: &str = "varchar";

/// `char(n)`.
pub const BPCHAR: &str = "bpchar";

/// `uuid`.
pub const UUID: &str = "uuid";

/// A field of a special type.
pub fn special_field(field_name: &str, of: &str, data_type: DataType, is_nullable: bool) -> Field {
    let metadata = HashMap::from([(TYPE_KEY.to_string(), of.to_string())]);
    Field::new(field_name, data_type, is_nullable).with_metadata(metadata)
}

/// The field of an aggregate's result, with the special type of its argument where PostgreSQL keeps it.
pub fn aggregate_field(name: &str, fields: &[FieldRef], made: FieldRef) -> FieldRef {
    let Some(of) = fields.first().and_then(|field| field.metadata().get(TYPE_KEY)) else {
        return made;
    };
    let kept = match name {
        // `varchar` has the aggregates of `text`.
        "min" | "max" if of == VARCHAR => None,
        "min" | "max" | "first_value" | "last_value" | "nth_value" | "any_value" => {
            Some(of.clone())
        }
        "array_agg" if !of.ends_with("[]") => Some(format!("{of}[]")),
        _ => None,
    };
    let mut metadata = made.metadata().clone();
    match kept {
        Some(kept) => metadata.insert(TYPE_KEY.to_string(), kept),
        None => metadata.remove(TYPE_KEY),
    };
    match metadata == *made.metadata() {
        true => made,
        false => Arc::new(made.as_ref().clone().with_metadata(metadata)),
    }
}
