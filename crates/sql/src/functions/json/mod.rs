//! Functions and operators of `json` and `jsonb`.

pub(crate) mod json_gathered;
pub(crate) mod jsonb_changed;
pub(crate) mod jsonb_functions;
pub(crate) mod jsonb_makers;
pub(crate) mod jsonb_order;
pub(crate) mod jsonb_parts;
