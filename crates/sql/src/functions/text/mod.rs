//! Functions of texts and `bytea`.

pub mod bytea;
pub(crate) mod bytea_parts;
pub(crate) mod characters;
pub(crate) mod formatted;
pub(crate) mod identifiers;
pub(crate) mod levenshtein;
pub(crate) mod like_patterns;
pub(crate) mod md5;
pub(crate) mod regexp_replace;
pub(crate) mod regexps;
pub(crate) mod text_search;
pub(crate) mod texts;
pub(crate) mod unicode_forms;
