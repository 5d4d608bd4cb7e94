//! Answers of the Prometheus HTTP API as JSON, written piece by piece into a buffer.
//!
//! ```text
//! Answer::begin        {"status":"success","data":{"resultType":"matrix","result":[
//!   .series/.point       {"metric":{..},"values":[[1435781430.781,"1"],..]} , ..
//!   .histogram           {"metric":{..},"histograms":[[1435781430.781,{..}],..]} , ..
//! Answer::end          ]},"warnings":[..],"infos":[..]}
//! ```
//!
//! The server sends and empties the buffer whenever it is large, so no answer is ever whole in
//! memory; a bounded number of bytes is added by each call.
//! Numbers look as Prometheus prints them: see [`number`].

mod answer;
mod exemplars;
pub mod histogram;
pub mod number;
pub mod string;
#[cfg(test)]
mod tests;

pub use answer::{
    Answer, ErrorKind, List, Notes, ResultKind, push_error, push_scalar, push_string_result,
};
pub use exemplars::SeriesExemplars;
pub use histogram::push_histogram;
pub use number::{push_decimal, push_exposition_value, push_millis, push_value};
pub use string::{push_labels, push_string};
