//! The size of messages, looked at before anybody keeps them: a client cannot make the server hold a
//! gigabyte by saying that one comes; how long a client may leave unread what is written to it; and
//! whether it has closed the connection while it waits for an answer.
//!
//! ```text
//! startup: [size u32][...]      later: [type u8][size u32][...]     sizes count themselves
//! ```

use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};
use tokio::time::{Sleep, sleep};

/// Bytes of a message.
pub const SIZE_MAX: u32 = 16 << 20;

/// A stream whose messages are not too large, it fails at the first one that is; and whose other end
/// reads: it fails where that takes nothing for too long.
pub struct Bounded<S> {
    reader: Arc<Mutex<ReadAhead<S>>>,
    writer: WriteHalf<S>,
    frames: Frames,
    write_timeout: Duration,
    /// Runs while the other end takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite> Bounded<S> {
    /// Of a stream whose next message begins a connection.
    pub fn new(stream: S, write_timeout: Duration) -> Bounded<S> {
        let (reader, writer) = tokio::io::split(stream);
        let reader =
            Arc::new(Mutex::new(ReadAhead { reader, bytes: Vec::new(), has_ended: false }));
        Bounded { reader, writer, frames: Frames::default(), write_timeout, stalled: None }
    }

    /// Watches for the end of the stream while nobody reads it.
    pub fn end_watch(&self) -> EndWatch<S> {
        EndWatch(self.reader.clone())
    }
}

/// Bytes of later messages that are kept while an answer is made.
const AHEAD_SIZE_MAX: usize = 8 << 10;

/// The reading half of a stream. Bytes that a watch for its end has read come first.
struct ReadAhead<S> {
    reader: ReadHalf<S>,
    bytes: Vec<u8>,
    has_ended: bool,
}

impl<S: AsyncRead> ReadAhead<S> {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        if self.bytes.is_empty() {
            return match self.has_ended {
                true => Poll::Ready(Ok(())),
                false => Pin::new(&mut self.reader).poll_read(context, buffer),
            };
        }
        let some = self.bytes.len().min(buffer.remaining());
        buffer.put_slice(&self.bytes[..some]);
        self.bytes.drain(..some);
        Poll::Ready(Ok(()))
    }

    /// Reads ahead until the stream ends. Pending for good once a client has sent more than is kept.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut some = [0; 1024];
        while !self.has_ended {
            if AHEAD_SIZE_MAX <= self.bytes.len() {
                return Poll::Pending;
            }
            let mut buffer = ReadBuf::new(&mut some);
            let read = ready!(Pin::new(&mut self.reader).poll_read(context, &mut buffer));
            self.has_ended = read.is_err() || buffer.filled().is_empty();
            self.bytes.extend_from_slice(buffer.filled());
        }
        Poll::Ready(())
    }
}

fn lock<S>(reader: &Mutex<ReadAhead<S>>) -> MutexGuard<'_, ReadAhead<S>> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells when the other end of a stream has closed it. To be used only while nobody reads the stream.
pub struct EndWatch<S>(Arc<Mutex<ReadAhead<S>>>);

impl<S: AsyncRead> EndWatch<S> {
    /// Waits until the stream has ended. Messages that come before its end are kept.
    pub async fn ended(&self) {
        poll_fn(|context| lock(&self.0).poll_end(context)).await;
    }
}

impl<S> Bounded<S> {
    /// Heeds bytes that were read before it was made.
    ///
    /// # Errors
    /// As reading.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<()> {
        self.frames.follow(bytes)
    }

    /// What a write came to, with an error where nothing was taken for too long.
    fn judge<T>(&mut self, polled: Poll<Result<T>>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let write_timeout = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(write_timeout)));
        stalled.as_mut().poll(context).map(|()| {
            let words = format!("the client read nothing for {write_timeout:?}");
            Err(Error::new(ErrorKind::TimedOut, words))
        })
    }
}

/// Where in a message a stream is.
#[derive(Default)]
struct Frames {
    /// The first message has no type, all later ones have.
    are_typed: bool,
    /// Bytes of the head that came.
    head: Vec<u8>,
    /// Bytes that are still to come.
    left: u32,
}

impl Frames {
    /// Follows some bytes. Fails at the head of a message that is too large.
    fn follow(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.left != 0 {
                let some = bytes.len().min(self.left as usize);
                self.left -= u32::try_from(some).unwrap_or(self.left);
                bytes = &bytes[some..];
                continue;
            }
            let head_size = if self.are_typed { 5 } else { 4 };
            let some = bytes.len().min(head_size - self.head.len());
            self.head.extend_from_slice(&bytes[..some]);
            bytes = &bytes[some..];
            if self.head.len() == head_size {
                self.begin()?;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        let size = self.head.split_off(self.head.len() - 4);
        let size = u32::from_be_bytes(size.try_into().unwrap_or_default());
        self.head.clear();
        match (4..=SIZE_MAX).contains(&size) {
            true => {
                self.left = size - 4;
                self.are_typed = true;
                Ok(())
            }
            false => {
                let words = format!("a message of {size} bytes; {SIZE_MAX} are the most");
                Err(Error::new(ErrorKind::InvalidData, words))
            }
        }
    }
}

impl<S: AsyncRead> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let this = &mut *self;
        let polled = lock(&this.reader).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = &polled {
            let came = buffer.filled().get(before..).unwrap_or_default();
            if let Err(error) = this.frames.follow(came) {
                return Poll::Ready(Err(error));
            }
        }
        polled
    }
}

impl<S: AsyncWrite> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let polled = Pin::new(&mut self.writer).poll_write(context, bytes);
        self.judge(polled, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let polled = Pin::new(&mut self.writer).poll_flush(context);
        self.judge(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let polled = Pin::new(&mut self.writer).poll_shutdown(context);
        self.judge(polled, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[test]
    fn heads_are_found_however_bytes_come() {
        let mut bytes = 12u32.to_be_bytes().to_vec();
        bytes.extend([0; 8]);
        for cut in 0..=bytes.len() {
            let mut frames = Frames::default();
            frames.follow(&bytes[..cut]).unwrap();
            frames.follow(&bytes[cut..]).unwrap();
            frames.follow(b"Q").unwrap();
            frames.follow(&[0, 0, 0, 5, b'x', b'd', 0xff]).unwrap();
            assert!(frames.follow(&[0xff, 0xff, 0xff]).is_err());
        }
        assert!(Frames::default().follow(&[0, 0, 0, 3]).is_err());
    }

    #[test]
    fn watch_sees_the_end_and_loses_no_bytes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let message = [b"\0\0\x27\x14".as_slice(), &[b'x'; 10_000]].concat();
            let (near, mut far) = tokio::io::duplex(64);
            let mut bounded = Bounded::new(near, Duration::from_secs(60));
            let watch = bounded.end_watch();
            far.write_all(&message[..60]).await.unwrap();
            assert!(watch.ended().now_or_never().is_none());
            far.write_all(&message[60..120]).await.unwrap();
            assert!(watch.ended().now_or_never().is_none());
            let mut read = vec![0; message.len()];
            let (sent, came) =
                tokio::join!(far.write_all(&message[120..]), bounded.read_exact(&mut read));
            assert!(sent.is_ok() && came.is_ok() && read == message);
            drop(far);
            watch.ended().await;
            assert_eq!(bounded.read(&mut read).await.unwrap(), 0);
        });
    }

    #[test]
    fn watch_keeps_no_more_than_its_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (near, mut far) = tokio::io::duplex(1 << 20);
            let bounded = Bounded::new(near, Duration::from_secs(60));
            far.write_all(&vec![0; 1 << 19]).await.unwrap();
            drop(far);
            assert!(bounded.end_watch().ended().now_or_never().is_none());
            assert!(lock(&bounded.reader).bytes.len() < 2 * AHEAD_SIZE_MAX);
        });
    }

    #[test]
    fn who_does_not_read_is_left() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (near, _far) = tokio::io::duplex(4);
            let mut bounded = Bounded::new(near, Duration::from_millis(10));
            bounded.write_all(b"1234").await.unwrap();
            let failed = bounded.write_all(b"5").await.unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::TimedOut);
            let (near, mut far) = tokio::io::duplex(4);
            let mut bounded = Bounded::new(near, Duration::from_secs(60));
            let mut bytes = [0; 5];
            let (written, read) =
                tokio::join!(bounded.write_all(b"12345"), far.read_exact(&mut bytes));
            assert!(written.is_ok() && read.is_ok() && bounded.stalled.is_none());
        });
    }
}
