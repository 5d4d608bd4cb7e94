//! Tests of statements from their text on.

mod copies;
mod maintenance_statements;
mod nesting;
mod parquet_copies;
mod prepared_statements;
mod role_statements;
mod sample_inserts;
mod setting_words;
mod upkeep_statements;
mod view_statements;
