//! SQL over samples: Apache DataFusion plans and runs it, this room says what the tables are and
//! which conditions the store answers by itself.
//!
//! ```text
//! statement ─ DataFusion ─► plan ─┬─ conditions ─► matchers, times (filters) ─► store
//!                                 └─ operators on labels ─► functions (jsonb)
//! samples ─► columns (rows) ─► DataFusion ─► [`Answer`]
//! ```
//!
//! It knows no sockets and no wire types.

mod database;
mod error;
mod filters;
mod jsonb;
mod operators;
mod rows;
mod samples;
pub mod statements;

pub use database::{Answer, Database, Limits, Session, Statement};
pub use datafusion;
pub use error::SqlError;
pub use operators::{JSONB, TYPE_KEY};
pub use samples::Vocabulary;
