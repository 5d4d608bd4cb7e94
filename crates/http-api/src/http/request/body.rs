//! Bodies: receiving them within bounds of size and time, and sending them whole or in pieces.

use crate::http::connection::Outgoing;
use app::config::HttpConfig;
use bytes::Bytes;
use cli::quantity::format_size;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use model::sample::NANOS_PER_SECOND;
use net::admission::{BYTES_PER_SECOND_MIN, BodyMemory, Pace};
use net::buffers::Buffers;
use net::failure::{Failure, Kind};
use net::telemetry::Limit;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout_at};

/// How much of a refused body is read so that its sender gets to see the refusal.
const DRAIN_SIZE_MAX: usize = 16 << 20;
/// And for how long.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

/// A received body and its share of the memory for bodies.
pub struct Received {
    /// The bytes as sent.
    pub bytes: Vec<u8>,
    /// Given back when the request is done.
    pub share: Option<OwnedSemaphorePermit>,
}

/// Receives a body of at most `size_max` bytes.
///
/// # Errors
/// 413 beyond the size, 408 beyond the time, 503 without memory, 400 when the client breaks off.
pub async fn receive(
    incoming: &mut Incoming,
    size_max: usize,
    http: &HttpConfig,
    memory: &BodyMemory,
    buffers: &Buffers,
) -> Result<Received, Failure> {
    let announced = incoming.size_hint().upper().unwrap_or(0);
    if (size_max as u64) < announced {
        return Err(too_large(size_max));
    }
    let mut share = memory.share();
    let mut bytes = buffers.take();
    // An announced length is a promise, not a fact: memory is taken as bytes arrive, in doubling steps.
    bytes.reserve((announced as usize).min(1 << 20));
    let mut deadline = Instant::now() + http.body_timeout;
    let mut pace = Pace::start();
    loop {
        let data = tokio::select! {
            biased;
            data = next_data(incoming, deadline, bytes.len(), http) => data?,
            () = memory.reclaim(pace) => return Err(reclaimed(bytes.len())),
        };
        let Some(data) = data else { break };
        let size = bytes.len() + data.len();
        if size_max < size {
            return Err(too_large(size_max));
        }
        share.grow(size).await?;
        bytes.extend_from_slice(&data);
        pace.receive(data.len());
        // Never more than that from now: who was fast must not stop and hold memory that others
        // wait for.
        let earned = data.len() as u64 * NANOS_PER_SECOND as u64 / BYTES_PER_SECOND_MIN;
        let latest = Instant::now() + http.body_timeout;
        deadline = latest.min(deadline + Duration::from_nanos(earned));
    }
    Ok(Received { bytes, share: share.into_held() })
}

async fn next_data(
    incoming: &mut Incoming,
    deadline: Instant,
    received: usize,
    http: &HttpConfig,
) -> Result<Option<Bytes>, Failure> {
    loop {
        match timeout_at(deadline, incoming.frame()).await {
            Err(_) => return Err(too_slow(received, http)),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => {
                return Err(Failure::bad_input(format!(
                    "body broke off after {received} bytes: {error}"
                )));
            }
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(_) => continue, // trailers
            },
        }
    }
}

fn too_large(max: usize) -> Failure {
    let message = format!(
        "request body of more than {} (max-body-size); send less at once, or raise --max-body-size \
         (128MiB at most)",
        format_size(max as u64)
    );
    Failure::too_large(Limit::BodySize, message)
}

fn too_slow(received: usize, http: &HttpConfig) -> Failure {
    let seconds = http.body_timeout.as_secs_f64();
    let message = format!(
        "body incomplete: {received} bytes came, and for {seconds} s less than 64 KiB a second \
         (http.body-timeout)"
    );
    Failure::new(Kind::TooSlow, message).hit(Limit::BodyTimeout)
}

fn reclaimed(received: usize) -> Failure {
    let message = format!(
        "body incomplete: {received} bytes came, less than 64 KiB a second, and other requests wait \
         for memory (max-bodies-size)"
    );
    Failure::new(Kind::TooSlow, message).hit(Limit::BodyTimeout)
}

/// Reads on for a moment what nobody wants, so that closing the socket does not destroy the answer.
pub async fn drain(incoming: &mut Incoming) {
    let deadline = Instant::now() + DRAIN_TIME_MAX;
    let mut size = 0;
    while size < DRAIN_SIZE_MAX {
        match timeout_at(deadline, incoming.frame()).await {
            Ok(Some(Ok(frame))) => size += frame.data_ref().map_or(0, Bytes::len),
            _ => return,
        }
    }
}

/// Why a stream ended before its end: the connection is then closed without the last chunk.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the answer broke off: {0}")]
pub struct BrokenOff(pub String);

impl From<Infallible> for BrokenOff {
    fn from(never: Infallible) -> BrokenOff {
        match never {}
    }
}

/// The body of an answer.
pub struct ReplyBody {
    content: Content,
    /// Tells the connection whose turn it is, and that the request is over once the body is gone.
    outgoing: Option<Outgoing>,
}

/// Where its bytes are.
enum Content {
    /// Here, until they are handed over.
    Whole(Option<Bytes>),
    /// With who makes them.
    Pieces(mpsc::Receiver<Result<Bytes, BrokenOff>>, Completion),
}

/// Says that the last piece of a body was sent. A body whose pieces end without it breaks off, so that
/// no client takes a part for the whole.
#[derive(Clone, Default)]
pub struct Completion(Arc<AtomicBool>);

impl Completion {
    /// To be called before the channel of the pieces closes.
    pub fn set(&self) {
        self.0.store(true, Release);
    }

    /// Ends the body; with an error unless the last piece was sent.
    fn end(&self) -> Option<Result<Bytes, BrokenOff>> {
        // The error is reported once.
        let is_complete = self.0.swap(true, AcqRel);
        (!is_complete).then(|| Err(BrokenOff("its source ended early".to_string())))
    }
}

impl ReplyBody {
    /// A body that is there already.
    pub fn whole(bytes: Bytes) -> ReplyBody {
        let content = Content::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()));
        ReplyBody { content, outgoing: None }
    }

    /// A body that arrives in pieces.
    pub fn pieces(
        receiver: mpsc::Receiver<Result<Bytes, BrokenOff>>,
        completion: Completion,
    ) -> ReplyBody {
        ReplyBody { content: Content::Pieces(receiver, completion), outgoing: None }
    }

    /// The same, telling the connection how it goes.
    pub fn telling(mut self, outgoing: Outgoing) -> ReplyBody {
        self.outgoing = Some(outgoing);
        self
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let polled = match &mut self.content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Pieces(receiver, completion) => receiver.poll_recv(context).map(|piece| {
                piece.or_else(|| completion.end()).map(|piece| piece.map(Frame::data))
            }),
        };
        if let Some(outgoing) = &self.outgoing {
            match polled {
                Poll::Ready(_) => outgoing.wait_for_client(),
                Poll::Pending => outgoing.wait_for_door(),
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Pieces(..) => SizeHint::default(),
        }
    }
}
