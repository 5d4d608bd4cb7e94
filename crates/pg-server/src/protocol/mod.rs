//! Messages of PostgreSQL's protocol: connections, logins, simple and extended queries.

pub mod connection;
pub mod extended;
pub mod frames;
pub mod handlers;
pub mod simple;
pub mod startup;
pub mod welcome;
