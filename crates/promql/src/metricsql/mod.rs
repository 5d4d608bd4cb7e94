//! MetricsQL: VictoriaMetrics' language.
//!
//! ```text
//! text > lexer > parser > WITH expanded > Expr          Expr > print > text
//! ```

mod ast;
mod functions;

pub use ast::*;
pub use functions::{FUNCTIONS, Function, FunctionKind, find as find_function};
