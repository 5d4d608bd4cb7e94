//! Rewrites of syntax trees: forms of PostgreSQL become forms that DataFusion knows.

pub(crate) mod argument_rules;
pub(crate) mod balanced;
pub(crate) mod conditions;
pub(crate) mod expressions;
pub(crate) mod functions;
pub(crate) mod open_arguments;
pub(crate) mod operators;
pub(crate) mod queries;
pub(crate) mod rewriter;
pub(crate) mod rules;
pub(crate) mod special_array_casts;
pub(crate) mod told_apart;
pub(crate) mod types;
pub(crate) mod values;
