//! Bodies as the decoders want them: decompressed, bounded, in a buffer that is used again.

use super::answer::Failure;
use super::request::Request;
use crate::app::App;
use crate::telemetry::Limit;
use hyper::StatusCode;
use hyper::header::CONTENT_ENCODING;
use std::ops::Deref;
use wire::compression::{Encoding, decompress};

/// A body's bytes: those of the request, or decompressed ones.
pub struct Unpacked<'a> {
    body: &'a [u8],
    /// What `body` became, unless it was plain.
    buffer: Option<Vec<u8>>,
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
pub fn body<'a>(app: &App, request: &'a Request) -> Result<Unpacked<'a>, Failure> {
    let name = request.header(CONTENT_ENCODING);
    let encoding = Encoding::parse(name).ok_or_else(|| {
        Failure::other(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "bad_data",
            format!("content encoding {name:?} is not known; send gzip, deflate, zstd or snappy"),
        )
    })?;
    unpack(app, request, encoding)
}

/// The body of remote write, which is snappy when nothing else is said.
///
/// # Errors
/// As [`body`].
pub fn remote_write_body<'a>(app: &App, request: &'a Request) -> Result<Unpacked<'a>, Failure> {
    match request.header(CONTENT_ENCODING) {
        "" => unpack(app, request, Encoding::Snappy),
        _ => body(app, request),
    }
}

fn unpack<'a>(
    app: &App,
    request: &'a Request,
    encoding: Encoding,
) -> Result<Unpacked<'a>, Failure> {
    let body = request.body.as_slice();
    if encoding == Encoding::Identity {
        return Ok(Unpacked { body, buffer: None });
    }
    let mut buffer = app.buffers.take();
    match decompress(encoding, body, app.config.http.body_size_max, &mut buffer) {
        Ok(_) => Ok(Unpacked { body, buffer: Some(buffer) }),
        Err(error) => {
            app.buffers.give_back(buffer);
            Err(error.into())
        }
    }
}

impl From<wire::Error> for Failure {
    fn from(error: wire::Error) -> Failure {
        let text = error.to_string();
        match error {
            wire::Error::LimitExceeded { limit, .. } => {
                let is_body = limit.contains("max-body-size") || limit == "body size";
                let limit = if is_body { Limit::BodySize } else { Limit::Other };
                Failure::too_large(limit, text)
            }
            wire::Error::Malformed { .. } | wire::Error::Invalid(_) => Failure::bad_data(text),
        }
    }
}
