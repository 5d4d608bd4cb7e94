//! Bodies as the decoders want them: decompressed, bounded, in a buffer that is used again.

use super::Request;
use app::App;
use hyper::header::CONTENT_ENCODING;
use net::admission::{BodyShare, SHARE_UNIT};
use net::failure::{Failure, Kind};
use std::ops::Deref;
use tokio::runtime::Handle;
use wire::compression::{Encoding, decompress};

/// Decompressed bytes that need no share of the memory for bodies: the usual batch.
const FREE_SIZE: usize = 4 << 20;

/// A body's bytes: those of the request, or decompressed ones.
pub struct Unpacked<'a> {
    body: &'a [u8],
    /// What `body` became, unless it was plain.
    buffer: Option<Vec<u8>>,
    /// Memory for it, when it is large.
    _share: Option<BodyShare<'a>>,
}

impl Deref for Unpacked<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_deref().unwrap_or(self.body)
    }
}

impl Unpacked<'_> {
    /// Lets the next request have the buffer.
    pub fn give_back(self, app: &App) {
        if let Some(buffer) = self.buffer {
            app.buffers.give_back(buffer);
        }
    }
}

/// The body, by its `Content-Encoding`.
///
/// # Errors
/// 415 for an unknown encoding, 413 beyond max-body-size, 400 for broken bytes.
pub fn body<'a>(app: &'a App, request: &'a Request) -> Result<Unpacked<'a>, Failure> {
    let name = request.header(CONTENT_ENCODING);
    let encoding = Encoding::parse(name).ok_or_else(|| {
        let message = format!("content encoding {name:?} is not known");
        Failure::new(Kind::UnknownEncoding, message).advised("send gzip, deflate, zstd or snappy")
    })?;
    unpack(app, request, encoding)
}

/// The body of remote write, which is snappy when nothing else is said.
///
/// # Errors
/// As [`body`].
pub fn remote_write_body<'a>(app: &'a App, request: &'a Request) -> Result<Unpacked<'a>, Failure> {
    match request.header(CONTENT_ENCODING) {
        "" => unpack(app, request, Encoding::Snappy),
        name if request.body.is_empty() && is_packed(name) => {
            Err(Failure::bad_input(format!("empty body with content encoding {name:?}")))
        }
        _ => body(app, request),
    }
}

/// Whether a content encoding is one of those that have no empty form.
fn is_packed(name: &str) -> bool {
    Encoding::parse(name).is_some_and(|encoding| encoding != Encoding::Identity)
}

fn unpack<'a>(
    app: &'a App,
    request: &'a Request,
    encoding: Encoding,
) -> Result<Unpacked<'a>, Failure> {
    let body = request.body.as_slice();
    if encoding == Encoding::Identity {
        return Ok(Unpacked { body, buffer: None, _share: None });
    }
    let size_max = app.config.http.body_size_max;
    let mut buffer = app.buffers.take();
    let mut share = None;
    let mut result = decompress(encoding, body, size_max.min(FREE_SIZE), &mut buffer).map(drop);
    if matches!(result, Err(wire::Error::LimitExceeded { .. })) {
        share = Some(large_share(app, body.len())?);
        app.buffers.give_back(std::mem::take(&mut buffer));
        // All at once: a buffer that grows is there twice while it is copied, and pages that nobody
        // touches cost nothing.
        buffer.reserve_exact(size_max + 1);
        result = decompress(encoding, body, size_max, &mut buffer).map(drop);
    }
    match result {
        Ok(()) => Ok(Unpacked { body, buffer: Some(buffer), _share: share }),
        Err(error) => {
            app.buffers.give_back(buffer);
            Err(error.into())
        }
    }
}

/// Memory for a body that is large once decompressed; bombs that come together wait for each other.
fn large_share(app: &App, received: usize) -> Result<BodyShare<'_>, Failure> {
    let http = &app.config.http;
    // The body as received holds its own share: alone, a request always finds enough.
    let other_max = http.bodies_size_max.saturating_sub((received + SHARE_UNIT) as u64);
    let wanted = (http.body_size_max as u64).min(other_max) as usize;
    let mut share = app.body_memory.share();
    // Doors run on worker threads, which may wait.
    Handle::current().block_on(share.grow(wanted))?;
    Ok(share)
}
