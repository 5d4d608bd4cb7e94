//! The listener while the keys are damaged and closed: every command is answered with the reason.

use super::input::Input;
use crate::redis::Redis;
use net::listeners::accept::{Door, Stop};
use net::listeners::connections::Connection;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use wire::resp::{Limits, Parsed, Requests};

/// Commands beyond these end the connection: nothing of them is needed.
const LIMITS: Limits = Limits { arguments_max: 1024, bulk_size_max: 64 << 10 };
/// Bytes of commands that are not whole yet.
const INPUT_SIZE_MAX: usize = 1 << 20;

/// Answers every command with one error.
pub struct ClosedKeys {
    answer: Vec<u8>,
}

impl ClosedKeys {
    /// With the reason.
    pub fn new(reason: &str) -> ClosedKeys {
        let line = reason.replace(['\r', '\n'], " ");
        ClosedKeys { answer: format!("-ERR {line}\r\n").into_bytes() }
    }

    /// The answers to all commands that have come whole, and whether more may come.
    fn answer(&self, requests: &mut Requests, input: &mut Input) -> (Vec<u8>, bool) {
        let mut answers = Vec::new();
        loop {
            match requests.parse(input.get(0), &LIMITS) {
                Ok(Parsed::Command(size)) => {
                    input.drop_front(size);
                    answers.extend_from_slice(&self.answer);
                    *requests = Requests::default();
                }
                Ok(Parsed::Nothing(size)) => input.drop_front(size),
                Ok(Parsed::Incomplete(_)) => return (answers, input.len() < INPUT_SIZE_MAX),
                Err(_) => {
                    answers.extend_from_slice(&self.answer);
                    return (answers, false);
                }
            }
            if input.is_empty() {
                return (answers, true);
            }
        }
    }
}

impl Door for ClosedKeys {
    const NO_ROOM: &'static [u8] = Redis::NO_ROOM;

    fn refuse_clear_text(first: u8) -> Option<Vec<u8>> {
        Redis::refuse_clear_text(first)
    }

    async fn serve<S>(self: Arc<Self>, mut stream: S, connection: Arc<Connection>, mut stop: Stop)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        let (mut input, mut requests) = (Input::default(), Requests::default());
        loop {
            let read = tokio::select! {
                read = stream.read_buf(input.room()) => read.unwrap_or(0),
                () = connection.evicted.notified() => 0,
                _ = stop.wait_for(|is_stopping| *is_stopping) => 0,
            };
            if read == 0 {
                return;
            }
            connection.touch();
            let (answers, goes_on) = self.answer(&mut requests, &mut input);
            let written = stream.write_all(&answers).await;
            if written.is_err() || stream.flush().await.is_err() || !goes_on {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_a_pipeline_gets_the_reason() {
        let closed = ClosedKeys::new("keys are closed: keys/MANIFEST:\r\nno");
        let (mut input, mut requests) = (Input::default(), Requests::default());
        input.room().extend_from_slice(b"PING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGE");
        let (answers, goes_on) = closed.answer(&mut requests, &mut input);
        let one = "-ERR keys are closed: keys/MANIFEST:  no\r\n";
        assert_eq!((String::from_utf8_lossy(&answers).as_ref(), goes_on), (&*one.repeat(2), true));
        input.room().extend_from_slice(b"T\r\n$1\r\nb\r\n");
        let (answers, _) = closed.answer(&mut requests, &mut input);
        assert_eq!((String::from_utf8_lossy(&answers).as_ref(), input.len()), (one, 0));
        input.room().extend_from_slice(b"*9999\r\n");
        assert!(!closed.answer(&mut requests, &mut input).1);
    }
}
