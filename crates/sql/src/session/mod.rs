//! Sessions: statements of clients, what they are planned and run with, and advisory locks.

pub(crate) mod advisory;
pub(crate) mod batches;
pub(crate) mod cursor_statements;
pub(crate) mod database;
pub mod fuzzing;
pub mod ordinary;
pub(crate) mod parsed;
pub(crate) mod prepared;
pub(crate) mod session_statements;
pub mod statements;
pub(crate) mod threads;
#[cfg(test)]
mod tests;
