//! The size of messages, looked at before anybody keeps them: a client cannot make the server hold a
//! gigabyte by saying that one comes.
//!
//! ```text
//! startup: [size u32][...]      later: [type u8][size u32][...]     sizes count themselves
//! ```

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a message.
pub const SIZE_MAX: u32 = 16 << 20;

/// A stream whose messages are not too large: it fails at the first one that is.
pub struct Bounded<S> {
    stream: S,
    frames: Frames,
}

impl<S> Bounded<S> {
    /// Of a stream whose next message begins a connection.
    pub fn new(stream: S) -> Bounded<S> {
        Bounded { stream, frames: Frames::default() }
    }

    /// From now on messages have types.
    pub fn expect_types(&mut self) {
        self.frames.are_typed = true;
    }

    /// Heeds bytes that were read before it was made.
    ///
    /// # Errors
    /// As reading.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<()> {
        self.frames.follow(bytes)
    }
}

/// Where in a message a stream is.
#[derive(Default)]
struct Frames {
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
                Ok(())
            }
            false => {
                let words = format!("a message of {size} bytes; {SIZE_MAX} are the most");
                Err(Error::new(ErrorKind::InvalidData, words))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let this = &mut *self;
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = &polled {
            let came = buffer.filled().get(before..).unwrap_or_default();
            if let Err(error) = this.frames.follow(came) {
                return Poll::Ready(Err(error));
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_found_however_bytes_come() {
        let mut bytes = 12u32.to_be_bytes().to_vec();
        bytes.extend([0; 8]);
        for cut in 0..=bytes.len() {
            let mut frames = Frames::default();
            frames.follow(&bytes[..cut]).unwrap();
            frames.follow(&bytes[cut..]).unwrap();
            frames.are_typed = true;
            frames.follow(b"Q").unwrap();
            frames.follow(&[0, 0, 0, 5, b'x', b'd', 0xff]).unwrap();
            assert!(frames.follow(&[0xff, 0xff, 0xff]).is_err());
        }
        assert!(Frames::default().follow(&[0, 0, 0, 3]).is_err());
    }
}
