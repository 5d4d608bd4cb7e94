//! Views: queries that are kept under a name, and worked out whenever they are asked.
//!
//! ```text
//! CREATE VIEW v AS query ─► planned, for its columns ─► a table without rows (`tables`) that has the query as a property
//! FROM v ─► schemas ─► the query, planned ─► stands in the statement's plan in place of v
//! ```
//! Materialized ones and TimescaleDB's continuous aggregates are such, too: there is nothing in them that could be old.

pub(crate) mod define;
