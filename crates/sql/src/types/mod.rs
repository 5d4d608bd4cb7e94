//! Types: errors, input and output as text, casts, and helpers that build columns.

pub(crate) mod casts;
pub(crate) mod categories;
pub(crate) mod dialect;
pub(crate) mod error;
pub(crate) mod error_position;
pub(crate) mod facts;
pub(crate) mod function;
pub(crate) mod hidden;
pub(crate) mod json;
pub(crate) mod keywords;
pub(crate) mod names;
pub(crate) mod numeric;
pub(crate) mod parameter_types;
pub(crate) mod postgres_types;
pub(crate) mod runtime;
pub(crate) mod special_fields;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod traversal;
pub(crate) mod uuids;
