//! The socket below HTTP: tells its connection when bytes move, escapes targets of requests, answers
//! clients of other protocols, and gives refusals of the HTTP library a body.

use super::connection::HttpConnection;
use super::foreign::{ForeignClient, NextStep, OPENING_SIZE, OtherListeners, refusal};
use super::request::request_target::TargetScanner;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of one read from a client of another protocol.
const FOREIGN_READ_SIZE: usize = 4096;
/// Reads that empty the socket of such a client before it is closed: unread bytes would make the system
/// drop the answer.
const FOREIGN_READS_MAX: usize = 64;

/// A socket that is watched.
pub struct Watched<S> {
    stream: S,
    connection: Arc<HttpConnection>,
    others: Arc<OtherListeners>,
    /// The request line that is being read.
    scanner: TargetScanner,
    /// Bytes with escapes that had no room in the reader's buffer.
    pending: VecDeque<u8>,
    /// The first bytes of the connection.
    opening: Vec<u8>,
    conversation: Option<Conversation>,
    /// An answer that is sent in the place of the library's, and how much of it was sent.
    refusal: Option<(Vec<u8>, usize)>,
}

impl<S> Watched<S> {
    /// Watches `stream`.
    pub fn new(
        stream: S,
        connection: Arc<HttpConnection>,
        others: Arc<OtherListeners>,
    ) -> Watched<S> {
        Watched {
            stream,
            connection,
            others,
            scanner: TargetScanner::Method(0),
            pending: VecDeque::new(),
            opening: Vec::new(),
            conversation: None,
            refusal: None,
        }
    }

    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(1..)) = written {
            self.connection.connection.touch();
        }
        written
    }

    /// Hands over pending bytes, as many as there is room for.
    fn fill(&mut self, buffer: &mut ReadBuf<'_>) {
        let count = self.pending.len().min(buffer.remaining());
        for byte in self.pending.drain(..count) {
            buffer.put_slice(&[byte]);
        }
    }

    /// Takes what was read behind `before` from a client of HTTP.
    fn take(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let bytes = &buffer.filled()[before..];
        self.connection.was_read(bytes);
        if self.opening.len() < OPENING_SIZE {
            let room = OPENING_SIZE - self.opening.len();
            self.opening.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
        if self.scanner != TargetScanner::Done
            && let Some(escaped) = self.scanner.scan(bytes)
        {
            buffer.set_filled(before);
            self.pending.extend(escaped);
            self.fill(buffer);
        }
    }
}

/// A conversation with a client of another protocol.
struct Conversation {
    foreign: ForeignClient,
    /// Bytes that are to be sent.
    replies: Vec<u8>,
    /// Whether the connection is closed behind them.
    is_over: bool,
}

impl Conversation {
    fn receive(&mut self, bytes: &[u8], others: &OtherListeners) {
        match self.foreign.receive(bytes, others) {
            NextStep::Read => {}
            NextStep::Reply(bytes) => self.replies.extend(bytes),
            NextStep::Close(bytes) => {
                self.replies.extend(bytes);
                self.is_over = true;
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Watched<S> {
    /// Speaks with a client of another protocol until its connection is to be closed.
    fn poll_conversation(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut room = [0; FOREIGN_READ_SIZE];
        while let Some(conversation) = &mut self.conversation {
            while !conversation.replies.is_empty() {
                let stream = Pin::new(&mut self.stream);
                match ready!(stream.poll_write(context, &conversation.replies))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    count => drop(conversation.replies.drain(..count)),
                }
            }
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            if conversation.is_over {
                self.discard_input(context);
                break;
            }
            let mut buffer = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                break;
            }
            self.connection.was_read(buffer.filled());
            conversation.receive(buffer.filled(), &self.others);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what the client has sent and drops it.
    fn discard_input(&mut self, context: &mut Context<'_>) {
        let mut room = [0; FOREIGN_READ_SIZE];
        for _ in 0..FOREIGN_READS_MAX {
            let mut buffer = ReadBuf::new(&mut room);
            let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            if !matches!(read, Poll::Ready(Ok(()))) || buffer.filled().is_empty() {
                break;
            }
        }
    }

    /// Sends the answer that takes the place of `bytes`, if there is one.
    fn poll_refusal(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<bool>> {
        if self.refusal.is_none() {
            self.refusal = refusal(bytes, &self.opening, &self.others).map(|text| (text, 0));
        }
        let Some((text, sent)) = &mut self.refusal else { return Poll::Ready(Ok(false)) };
        while let Some(rest) = text.get(*sent..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *sent += count,
            }
        }
        Poll::Ready(Ok(true))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.conversation.is_some() {
            return self.poll_conversation(context);
        }
        if !self.pending.is_empty() {
            self.fill(buffer);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        if self.connection.is_between_requests() {
            self.scanner = TargetScanner::Method(0);
        }
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if before == buffer.filled().len() {
            return Poll::Ready(Ok(()));
        }
        if self.opening.is_empty()
            && let Some(foreign) = ForeignClient::begin(&buffer.filled()[before..])
        {
            let mut conversation = Conversation { foreign, replies: Vec::new(), is_over: false };
            conversation.receive(&buffer.filled()[before..], &self.others);
            buffer.set_filled(before);
            self.conversation = Some(conversation);
            return self.poll_conversation(context);
        }
        self.take(buffer, before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if ready!(self.poll_refusal(context, bytes))? {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.first().map_or(&[][..], |slice| slice);
        if ready!(self.poll_refusal(context, first))? {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
