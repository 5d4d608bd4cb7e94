//! Errors that say more than that there is no answer: limits, and refusals of a remote database.

use http_client::influxql::ServerError;
use std::fmt;
use store::Fault;

/// More than a limit allows, on its way through errors of all kinds.
#[derive(Debug)]
pub struct Excess(pub Fault);

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Excess {}

/// An answer that says no: the backend is there.
#[derive(Debug)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// Error: the backend answers and refuses the request.
pub fn refusal(text: String) -> anyhow::Error {
    Refusal(text).into()
}

/// Whether that is why there is no answer.
pub fn is_refusal(error: &anyhow::Error) -> bool {
    error.is::<Refusal>() || error.is::<ServerError>()
}
