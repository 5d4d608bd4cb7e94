//! Texts that are `uuid`s: 32 hexadecimal digits, which are kept as PostgreSQL shows them.

use crate::types::error::SqlError;
use crate::types::function::special_function;
use crate::types::special_fields::UUID;
use datafusion::arrow::array::{ArrayRef, AsArray as _, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// What a text becomes when it is cast to `uuid`.
pub const UUID_IN: &str = "uuid_in";

/// The functions.
pub fn uuid_in() -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    special_function(UUID_IN, UUID, signature, |args, _| {
        let texts = cast(&args[0], &DataType::Utf8View)?;
        let each = |text: Option<&str>| {
            let read =
                |text| read(text).map_err(|error| DataFusionError::External(Box::new(error)));
            text.map(read).transpose()
        };
        let made: Result<StringViewArray> = texts.as_string_view().iter().map(each).collect();
        Ok(Arc::new(made?) as ArrayRef)
    })
}

/// Reads a `uuid`.
///
/// # Errors
/// 22P02 when the text is none.
pub fn read(text: &str) -> Result<String, SqlError> {
    let words =
        || SqlError::new("22P02", format!("invalid input syntax for type uuid: \"{text}\""));
    uuid_of(text).ok_or_else(words)
}

/// A `uuid` as it is shown, of a text with or without hyphens and braces.
pub fn uuid_of(text: &str) -> Option<String> {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let mut hex = String::with_capacity(32);
    let mut was_hyphen = true;
    for one in inner.chars() {
        // A hyphen may follow each four digits but the last.
        let is_hyphen = one == '-' && !was_hyphen && hex.len().is_multiple_of(4) && hex.len() < 32;
        if !is_hyphen {
            hex.push(one.to_ascii_lowercase());
        }
        was_hyphen = is_hyphen;
    }
    if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Some(parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_uuid_is_refused() {
        let shown = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        assert_eq!(uuid_of("{A0EEBC99-9C0B4EF8BB6D6BB9BD380A11}").as_deref(), Some(shown));
        assert!(read("a0eebc99").unwrap_err().to_string().contains("for type uuid"));
    }
}
