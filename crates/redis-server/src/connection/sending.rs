//! Answers go out; what the client says meanwhile is heard.
//!
//! Many clients send all of a long pipeline before they read its first answer. If the door only wrote
//! while its answers find no room, and the client only wrote too, both would wait for ever. So what
//! comes is kept, up to a limit, while answers wait; nothing of it is executed.

use super::input::Input;
use std::future::{Future as _, poll_fn};
use std::io::{Error, ErrorKind, Result};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

/// Sends bytes, all of them. Returns how many came meanwhile, which is no more than makes `room_for`
/// of them in the input; it is asked only when the client does not read. `heard_more` sees the input
/// after each of them.
///
/// # Errors
/// When they cannot be sent. An end of what comes is left for who reads next.
pub async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    bytes: &[u8],
    input: &mut Input,
    room_for: impl Fn() -> usize,
    heard_more: impl Fn(&Input),
) -> Result<usize> {
    let (mut sent, mut heard, mut limit) = (0, 0, None);
    let mut hears = true;
    poll_fn(|context| {
        loop {
            if let Poll::Ready(done) = poll_send(stream, context, bytes, &mut sent) {
                return Poll::Ready(done.map(|()| heard));
            }
            if !hears || *limit.get_or_insert_with(&room_for) <= input.len() {
                return Poll::Pending;
            }
            match ready!(pin!(stream.read_buf(input.room())).poll(context)) {
                Ok(0) | Err(_) => hears = false,
                Ok(size) => {
                    heard += size;
                    heard_more(input);
                }
            }
        }
    })
    .await
}

fn poll_send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    context: &mut Context<'_>,
    bytes: &[u8],
    sent: &mut usize,
) -> Poll<Result<()>> {
    while let Some(rest) = bytes.get(*sent..).filter(|rest| !rest.is_empty()) {
        match ready!(Pin::new(&mut *stream).poll_write(context, rest))? {
            0 => return Poll::Ready(Err(Error::from(ErrorKind::WriteZero))),
            size => *sent += size,
        }
    }
    Pin::new(stream).poll_flush(context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, duplex};

    /// Both say more than the other has room for before they read.
    async fn exchanged(limit: usize) -> (Vec<u8>, usize) {
        let (mut ours, mut theirs) = duplex(64);
        let (said, answers) = ([1; 1000], [2; 1000]);
        let client = tokio::spawn(async move {
            if theirs.write_all(&said).await.is_err() {
                return Vec::new();
            }
            let mut read = Vec::new();
            theirs.read_to_end(&mut read).await.unwrap();
            read
        });
        let mut input = Input::default();
        let idle = async {
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            heard = send(&mut ours, &answers, &mut input, || limit, |_| ()) => heard.unwrap(),
            () = idle => 0,
        };
        drop(ours);
        (client.await.unwrap_or_default(), input.len())
    }

    #[tokio::test]
    async fn who_says_all_before_it_reads_is_heard_meanwhile() {
        assert_eq!(exchanged(1 << 20).await, (vec![2; 1000], 1000));
    }

    #[tokio::test]
    async fn what_has_no_room_is_not_heard() {
        assert_eq!(exchanged(0).await, (Vec::new(), 0));
    }
}
