//! From a door on a worker thread to the socket: whole when small, in pieces when not.
//!
//! ```text
//! door ─ writes ─► [gzip] ─► 64 KiB piece ─► channel of 4 ─► hyper ─► socket
//! ```
//!
//! The head is sent with the first full piece, so an error before that still gets its own status,
//! and a short answer gets a `Content-Length`.
//!
//! HTTP/1.0 has no chunks: the end of the connection is the end of the body, and a client takes a body that
//! breaks off for a whole one. Such answers are buffered and sent with a `Content-Length`; longer ones are
//! refused.

use super::answer::{Answer, Content, LateHeader, StreamFn, Wording};
use super::request::body::{BrokenOff, Completion, ReplyBody};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode, Version};
use net::admission::Permit;
use net::failure::Failure;
use std::io::{self, Write};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Bytes of a piece, at least.
const PIECE_SIZE: usize = 64 << 10;
/// Memory for a piece: what fills one most often comes a little over its end.
const PIECE_ROOM: usize = PIECE_SIZE + PIECE_SIZE / 4;
/// Pieces under way between the door and the socket.
const PIECES_MAX: usize = 4;
/// Bytes of an answer to HTTP/1.0, which is buffered.
const BUFFERED_SIZE_MAX: usize = 64 << 20;
/// Answers smaller than this are not worth compressing.
const GZIP_SIZE_MIN: usize = 1024;

/// A client that takes no bytes for this long waits without a place among running requests.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whether answers may be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Identity,
    /// `Content-Encoding: gzip`.
    Gzip,
}

/// How a client finds the end of an answer without a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// By the last chunk, or the last frame of HTTP/2.
    Delimited,
    /// By the end of the connection.
    ConnectionClose,
}

impl Framing {
    /// The framing of an HTTP version.
    pub fn of(version: Version) -> Framing {
        match version {
            Version::HTTP_09 | Version::HTTP_10 => Framing::ConnectionClose,
            _ => Framing::Delimited,
        }
    }
}

/// What sending an answer needs to know.
pub struct Sending {
    /// Whether the client takes gzip.
    pub encoding: Encoding,
    /// How failures are worded.
    pub wording: Wording,
    /// How long the client may take no bytes.
    pub write_timeout: Duration,
    /// Where the waiting is done.
    pub runtime: Handle,
    /// How the client finds the end.
    pub framing: Framing,
    /// The place among running requests; held until the answer is handed over.
    pub permit: Option<Permit>,
    /// Takes the head, with all or the start of the body.
    pub head: oneshot::Sender<Response<ReplyBody>>,
}

/// How an answer went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Handed over completely.
    Complete,
    /// The client took no bytes for too long.
    ClientStuck,
    /// The client is gone.
    ClientGone,
    /// The door failed midway.
    BrokenOff,
}

impl Sending {
    /// Sends the answer; returns when its last piece is handed over.
    pub fn send(self, answer: Answer) -> Sent {
        let Answer { status, content_type, headers, late_header, content } = answer;
        let mut response = head(status, content_type, &headers);
        match content {
            Content::Static(bytes) => self.whole(response, Bytes::from_static(bytes)),
            Content::Bytes(bytes) => {
                let is_compressed = response.contains_header("content-encoding");
                if self.encoding == Encoding::Gzip && GZIP_SIZE_MIN <= bytes.len() && !is_compressed
                {
                    mark_gzip(response.headers_mut());
                    return self.whole(response, gzip(&bytes).into());
                }
                self.whole(response, bytes.into())
            }
            Content::Stream(write) => self.stream(response, late_header, write),
        }
    }

    fn whole(self, head: Response<()>, bytes: Bytes) -> Sent {
        deliver(self.head, head.map(|()| ReplyBody::whole(bytes)))
    }

    fn stream(
        self,
        mut response: Response<()>,
        late_header: Option<LateHeader>,
        write: StreamFn,
    ) -> Sent {
        let encoding = self.encoding;
        if encoding == Encoding::Gzip {
            mark_gzip(response.headers_mut());
        }
        let mut pieces = Pieces {
            buffer: Vec::new(),
            waiting: Some((self.head, response)),
            late_header,
            sender: None,
            completion: Completion::default(),
            write_timeout: self.write_timeout,
            runtime: self.runtime,
            framing: self.framing,
            permit: self.permit,
            outcome: Sent::Complete,
        };
        let result = match encoding {
            Encoding::Identity => write(&mut pieces),
            Encoding::Gzip => {
                let mut encoder = GzEncoder::new(&mut pieces, Compression::fast());
                write(&mut encoder).and_then(|()| encoder.finish().map(|_| ()))
            }
        };
        pieces.end(result, self.wording)
    }
}

fn deliver(sender: oneshot::Sender<Response<ReplyBody>>, response: Response<ReplyBody>) -> Sent {
    match sender.send(response) {
        Ok(()) => Sent::Complete,
        Err(_) => Sent::ClientGone,
    }
}

trait HasHeader {
    fn contains_header(&self, name: &str) -> bool;
}

impl HasHeader for Response<()> {
    fn contains_header(&self, name: &str) -> bool {
        self.headers().contains_key(name)
    }
}

/// The head of an answer.
pub fn head(
    status: StatusCode,
    content_type: &'static str,
    headers: &[(&'static str, String)],
) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let map = response.headers_mut();
    if !content_type.is_empty() {
        map.insert("content-type", HeaderValue::from_static(content_type));
    }
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            map.append(HeaderName::from_static(name), value);
        }
    }
    response
}

fn mark_gzip(headers: &mut HeaderMap) {
    headers.insert("content-encoding", HeaderValue::from_static("gzip"));
    headers.insert("vary", HeaderValue::from_static("accept-encoding"));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes every byte")
}

/// Collects bytes into pieces and hands them to the connection.
struct Pieces {
    buffer: Vec<u8>,
    /// The head, until the first piece goes.
    waiting: Option<(oneshot::Sender<Response<ReplyBody>>, Response<()>)>,
    late_header: Option<LateHeader>,
    sender: Option<mpsc::Sender<Result<Bytes, BrokenOff>>>,
    /// Tells the body that its last piece was sent.
    completion: Completion,
    write_timeout: Duration,
    runtime: Handle,
    framing: Framing,
    permit: Option<Permit>,
    outcome: Sent,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        match self.framing {
            Framing::ConnectionClose if BUFFERED_SIZE_MAX < self.buffer.len() => {
                return Err(io::Error::other(too_long()));
            }
            Framing::Delimited if PIECE_SIZE <= self.buffer.len() => self.send_piece()?,
            _ => {}
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pieces {
    fn send_piece(&mut self) -> io::Result<()> {
        if let Some((head, mut response)) = self.waiting.take() {
            self.add_late_header(&mut response);
            let (sender, receiver) = mpsc::channel(PIECES_MAX);
            self.sender = Some(sender);
            let body = ReplyBody::pieces(receiver, self.completion.clone());
            if deliver(head, response.map(|()| body)) != Sent::Complete {
                return Err(self.stop(Sent::ClientGone));
            }
        }
        let piece =
            Bytes::from(std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE_ROOM)));
        let Some(sender) = &self.sender else { return Err(self.stop(Sent::ClientGone)) };
        // Most of the time there is room and nobody waits.
        let piece = match sender.try_send(Ok(piece)) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(self.stop(Sent::ClientGone)),
            Err(mpsc::error::TrySendError::Full(piece)) => piece,
        };
        let waited = wait_for_client(sender, piece, self.permit.as_mut(), self.write_timeout);
        match self.runtime.block_on(waited) {
            Sent::Complete => Ok(()),
            outcome => Err(self.stop(outcome)),
        }
    }

    /// Nothing more can be sent.
    fn stop(&mut self, outcome: Sent) -> io::Error {
        self.sender = None;
        self.outcome = outcome;
        io::Error::new(io::ErrorKind::BrokenPipe, "the client takes no more")
    }

    fn add_late_header(&self, response: &mut Response<()>) {
        if let Some((name, value)) = self.late_header.as_ref().and_then(|decide| decide()) {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
    }

    fn end(mut self, result: io::Result<()>, wording: Wording) -> Sent {
        if let Some((head, mut response)) = self.waiting.take() {
            return match result {
                Ok(()) => {
                    self.add_late_header(&mut response);
                    deliver(head, response.map(|()| ReplyBody::whole(self.buffer.into())))
                }
                Err(error) => {
                    let answer = wording.answer(&Failure::from(error));
                    deliver(head, failure_response(answer))
                }
            };
        }
        let result = result.and_then(|()| match self.buffer.is_empty() {
            true => Ok(()),
            false => self.send_piece(),
        });
        if result.is_ok() {
            self.completion.set();
        }
        if let (Err(error), Some(sender)) = (result, &self.sender) {
            self.outcome = Sent::BrokenOff;
            let broken = Err(BrokenOff(error.to_string()));
            let _ = self.runtime.block_on(sender.send_timeout(broken, self.write_timeout));
        }
        self.outcome
    }
}

/// Refuses an answer whose end HTTP/1.0 cannot mark.
fn too_long() -> Failure {
    let size_max = BUFFERED_SIZE_MAX >> 20;
    let words =
        format!("the answer is longer than {size_max} MiB, and HTTP/1.0 cannot mark its end");
    Failure::unanswerable(words).advised("ask with HTTP/1.1 or HTTP/2, or for less")
}

/// Hands a piece to a client that reads slowly. While it reads nothing, its place among running
/// requests is free for others.
async fn wait_for_client(
    sender: &mpsc::Sender<Result<Bytes, BrokenOff>>,
    piece: Result<Bytes, BrokenOff>,
    mut permit: Option<&mut Permit>,
    write_timeout: Duration,
) -> Sent {
    let piece = match sender.send_timeout(piece, PATIENCE.min(write_timeout)).await {
        Ok(()) => return Sent::Complete,
        Err(mpsc::error::SendTimeoutError::Closed(_)) => return Sent::ClientGone,
        Err(mpsc::error::SendTimeoutError::Timeout(piece)) => piece,
    };
    if let Some(permit) = permit.as_mut() {
        // Without room for one more suspended request this one keeps its place.
        permit.suspend();
    }
    match sender.send_timeout(piece, write_timeout).await {
        Ok(()) => {}
        Err(mpsc::error::SendTimeoutError::Closed(_)) => return Sent::ClientGone,
        Err(mpsc::error::SendTimeoutError::Timeout(_)) => return Sent::ClientStuck,
    }
    let Some(permit) = permit else { return Sent::Complete };
    match permit.resume().await {
        Ok(()) => Sent::Complete,
        Err(_) => Sent::BrokenOff,
    }
}

/// A failure's answer is always whole.
pub fn failure_response(answer: Answer) -> Response<ReplyBody> {
    let bytes = match answer.content {
        Content::Bytes(bytes) => Bytes::from(bytes),
        Content::Static(bytes) => Bytes::from_static(bytes),
        Content::Stream(_) => unreachable!("failures are short texts"),
    };
    head(answer.status, answer.content_type, &answer.headers).map(|()| ReplyBody::whole(bytes))
}
