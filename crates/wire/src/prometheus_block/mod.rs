//! Blocks of Prometheus' store, as it, Thanos and Mimir keep them on disk or in buckets: what is in their
//! files, read from bytes that somebody else fetched, and written as bytes that somebody else stores.
//!
//! ```text
//! index       header 5 | symbols | series, each at a multiple of 16 | postings .. | table of contents 52
//! chunks/N    header 8 | chunks: size, encoding 1, data, CRC-32C
//! tombstones  header 5 | reference, first and last time of what was deleted .. | CRC-32C
//! ```
//! Source: the format documents in `tsdb/docs/format` of Prometheus. Version 2 of the index alone is
//! known: Prometheus has written no other since 2.1.

pub mod chunks;
pub mod index;
#[cfg(test)]
mod tests;
pub mod tombstones;
pub mod write;
