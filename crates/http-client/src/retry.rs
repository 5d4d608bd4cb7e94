//! Requests that are sent again because the answer to them was none.

use crate::client::{BROKE_OFF, EmptyAnswer, StatusError};
use crate::influxql::UnfinishedAnswer;
use std::time::Duration;

/// Tries of a request, or of a window.
pub const TRIES_MAX: u32 = 5;
/// Pause before the second try; each later pause is twice as long.
pub const PAUSE: Duration = Duration::from_millis(200);

/// Whether a later try of the same request may succeed: a server error, an answer that broke off or that
/// cannot be read. (The client itself waits for servers that are away or busy.)
fn is_passing(error: &anyhow::Error) -> bool {
    if let Some(StatusError { status, .. }) = error.downcast_ref() {
        return status.is_server_error();
    }
    error.chain().any(|cause| {
        cause.is::<serde_json::Error>()
            || cause.is::<wire::Error>()
            || cause.is::<UnfinishedAnswer>()
            || cause.is::<EmptyAnswer>()
            || cause.to_string() == BROKE_OFF
    })
}

/// Sends a request that changes nothing, several times where it fails for a passing reason.
///
/// # Errors
/// As the last attempt.
pub fn retried<T>(mut send: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut pause = PAUSE;
    for _ in 1..TRIES_MAX {
        match send() {
            Err(error) if is_passing(&error) => eprintln!("quipu: {error:#}; asking again"),
            outcome => return outcome,
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
    send()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context as _, anyhow};
    use hyper::StatusCode;

    #[test]
    fn only_passing_errors_are_tried_again() {
        let status = |status| {
            let (path, words) = ("/x".to_string(), String::new());
            anyhow::Error::new(StatusError { path, status, words }).context("listing days")
        };
        let json = serde_json::from_str::<u8>("").context("no list").expect_err("empty");
        for (error, tries) in [
            (status(StatusCode::BAD_GATEWAY), 2),
            (status(StatusCode::UNAUTHORIZED), 1),
            (json, 2),
            (anyhow!(BROKE_OFF).context("/x"), 2),
            (anyhow!("no such host"), 1),
        ] {
            let (mut count, mut errors) = (0, vec![error]);
            let _ = retried(|| {
                count += 1;
                errors.pop().map_or(Ok(()), Err)
            });
            assert_eq!(count, tries);
        }
    }
}
