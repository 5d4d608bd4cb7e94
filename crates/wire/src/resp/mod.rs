//! Redis' protocol, versions 2 and 3: bytes to commands, answers to bytes. No keys here.
//! Source: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

mod answer;
mod request;

#[doc(hidden)]
pub mod fuzzing;

pub use answer::Answer;
pub use request::{Limits, Parsed, ProtocolError, Requests};
