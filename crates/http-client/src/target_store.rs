//! Identity of the store behind a server that samples are sent to.
//!
//! Progress counts for one store: a server whose data directory was made anew, or restored, lacks what an
//! earlier run sent to the same URL.

use super::client::{Client, StatusError};
use crate::json::json_of;
use anyhow::Context as _;

/// Path under which a Quipu server names its store.
const PATH: &str = "/api/v1/status/store";

/// Identity of a server's store; none of a Quipu of an earlier version.
///
/// # Errors
/// When the server does not answer.
pub fn identify(client: &mut Client) -> anyhow::Result<Option<String>> {
    match json_of(client, PATH) {
        Ok(answer) => {
            let id = answer["data"]["id"].as_str();
            Ok(Some(id.context("the server does not name its store")?.to_string()))
        }
        Err(error) => match error.downcast_ref::<StatusError>() {
            Some(StatusError { status, .. }) if status.is_client_error() => Ok(None),
            _ => Err(error),
        },
    }
}

/// Whether progress that was made with one store counts for another: of servers without an identity it
/// does.
pub fn is_same(before: Option<&String>, now: Option<&String>) -> bool {
    now.is_none() || before == now
}

/// Words for progress that does not count any more.
pub const IS_ANOTHER: &str =
    "the server has another store than the one that this progress is of: it begins anew";
