//! Rewrites of queries, joins, sets of rows and subqueries.

pub(crate) mod join_columns;
pub(crate) mod named_rows;
pub(crate) mod nothing;
pub(crate) mod outer_relations;
pub(crate) mod query_forms;
pub(crate) mod record_sets;
pub(crate) mod result_order;
pub(crate) mod row_values;
pub(crate) mod sets;
pub(crate) mod subqueries;
pub(crate) mod system_columns;
pub(crate) mod value_cells;
pub(crate) mod windows;
