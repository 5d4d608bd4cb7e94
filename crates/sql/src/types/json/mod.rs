//! Values of `json` and `jsonb`.

pub(crate) mod json_raw;
pub(crate) mod json_value;
pub(crate) mod jsonb;
pub(crate) mod labels;
