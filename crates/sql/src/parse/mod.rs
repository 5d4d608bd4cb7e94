//! From text to statements: the dialect, forms of tokens, and changes of the syntax tree.

pub(crate) mod declared_types;
pub(crate) mod explain_options;
pub(crate) mod query;
pub(crate) mod rewrite;
pub(crate) mod special_parameters;
pub(crate) mod table_names;
pub(crate) mod text;
pub(crate) mod token_forms;
pub(crate) mod written;
#[cfg(test)]
mod tests;
