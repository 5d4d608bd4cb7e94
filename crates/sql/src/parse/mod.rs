//! From text to statements: the dialect, forms of tokens, and changes of the syntax tree.

pub(crate) mod dialect;
pub(crate) mod rewrite;
pub(crate) mod token_forms;
pub(crate) mod written;
