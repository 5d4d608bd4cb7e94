//! Text to tree, and rows to answers: InfluxQL of InfluxDB 1.x. No I/O.
//!
//! ```text
//! text > parse > Statement > Evaluator, over a Source > Answer > Writer > JSON or CSV
//! ```

mod answer;
pub mod ast;
mod error;
mod eval;
#[doc(hidden)]
pub mod fuzzing;
mod into;
mod lexer;
#[doc(hidden)]
pub mod memory;
mod parser;
mod pattern;
mod print;
mod source;
mod time;
pub mod token;
mod value;

pub use answer::{Answer, Epoch, Series, Writer, csv_cell};
pub use error::ParseError;
pub use eval::{Deletion, Evaluator, Limits};
pub use into::LineSink;
pub use parser::{
    NESTING_MAX, Parameters, STATEMENTS_MAX, TEXT_SIZE_MAX, parameters, parse, parse_within,
};
pub use pattern::{Allowance, Pattern, REGEXES_MAX, REGEXES_SIZE_MAX, pattern};
pub use source::{
    AUTOGEN, EvalError, Fields, IntegerSeries, IntegerSink, Place, RetentionPolicy, SampleSink,
    SeriesSet, SharedSet, Source, shard_duration,
};
pub use time::{format_time, parse_time};
pub use value::Value;
