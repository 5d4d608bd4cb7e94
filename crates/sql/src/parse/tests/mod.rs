//! Tests of rewrites from the text of a statement on.

mod cast_rewrites;
mod join_column_rewrites;
mod phrase_rewrites;
mod rewrites;
mod row_value_rewrites;
mod rules;
mod value_cell_rewrites;
mod window_rewrites;
