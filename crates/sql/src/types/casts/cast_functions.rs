//! Names of the functions that casts become.

/// What a number or a name becomes when it is cast to `regtype`.
pub const REGTYPE: &str = "regtype_name";

/// The function of casts to `regnamespace`: the number of a name, the name of a number.
pub const REGNAMESPACE: &str = "to_regnamespace";

/// The function of a cast to `json`.
pub const JSON_IN: &str = "json_in";

/// What a text becomes when it is cast to `jsonb`.
pub const JSONB_IN: &str = "jsonb_in";
