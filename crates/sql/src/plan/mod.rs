//! Plans of queries: passes over logical plans, and steps that run them.

pub(crate) mod context;
pub(crate) mod declared;
pub(crate) mod execution;
pub(crate) mod expansion;
pub(crate) mod explain;
pub(crate) mod gapfill;
pub(crate) mod guards;
pub(crate) mod in_lists;
pub(crate) mod kept_order;
pub(crate) mod listed;
pub(crate) mod nested_rows;
pub(crate) mod optimizer_rules;
pub(crate) mod passes;
pub(crate) mod pushdown;
pub(crate) mod queries;
pub(crate) mod ready;
pub(crate) mod register;
pub(crate) mod runs;
pub(crate) mod set_operations;
pub(crate) mod straight;
pub(crate) mod subqueries;
pub(crate) mod ties;
pub(crate) mod typing;
pub(crate) mod view_plans;
pub(crate) mod volatile;
pub(crate) mod whole_rows;
