//! Remote read as a client: a query as a request, the series of an answer that comes in pieces.
//! Source: <https://prometheus.io/docs/prometheus/latest/querying/remote_read_api/>.

use crate::client::Asked;
use anyhow::{Context as _, bail};
use bytes::Bytes;
use hyper::Method;
use wire::remote_read::ReadQuery;
use wire::remote_read::decode::{ReadSeries, each_series, each_series_of_frame, first_frame};

/// Where remote read is asked.
pub const READ_PATH: &str = "/api/v1/read";
/// Content type of an answer in frames, which has no byte where there are no series.
pub const FRAMES_TYPE: &str = "application/x-streamed-protobuf";
/// Of a Quipu what it has itself: what it has from others is copied from those, and compared with
/// those.
/// All of that or an error: the format has no place for what could not be read.
const OWN_READ_PATH: &str = "/api/v1/read?nolegacy=1&deny_partial_response=1";

/// The request that asks a query.
///
/// # Errors
/// Never, for queries of a size that can be sent.
pub fn question(query: &ReadQuery) -> anyhow::Result<Asked<'static>> {
    Ok(Asked {
        method: Method::POST,
        path: OWN_READ_PATH,
        headers: &[
            ("content-type", "application/x-protobuf"),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-read-version", "0.1.0"),
        ],
        body: Bytes::from(snap::raw::Encoder::new().compress_vec(&query.to_request())?),
    })
}

/// How an answer comes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Frames,
    /// One message, compressed.
    Message,
}

/// What takes the series of an answer.
pub type OnSeries<'a> = dyn FnMut(ReadSeries) -> anyhow::Result<()> + 'a;

/// What has come and was not handed on yet.
pub struct Answer {
    bytes: Vec<u8>,
    /// Before it, all was handed on.
    start: usize,
    kind: Option<Kind>,
    /// Bytes of an answer in one message.
    size_max: usize,
}

impl Answer {
    /// Nothing has come. So many bytes may be in one message; frames have a limit of their own.
    pub fn new(size_max: usize) -> Answer {
        Answer { bytes: Vec::new(), start: 0, kind: None, size_max }
    }

    /// Takes bytes as they come and hands on the series that are whole. An answer whose first frame
    /// is none is one message.
    ///
    /// # Errors
    /// When the bytes are no answer, or `sink` fails.
    pub fn push(&mut self, bytes: &[u8], sink: &mut OnSeries<'_>) -> anyhow::Result<()> {
        if self.start * 2 > self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
        if self.size_max < self.bytes.len() {
            bail!(
                "an answer of more than {} bytes in one message: ask for less, as with --match",
                self.size_max
            );
        }
        while self.kind != Some(Kind::Message) {
            let rest = self.bytes.get(self.start..).unwrap_or_default();
            let (message, behind) = match first_frame(rest) {
                Ok(None) => break,
                Ok(Some(found)) => found,
                Err(_) if self.kind.is_none() => {
                    self.kind = Some(Kind::Message);
                    break;
                }
                Err(error) => return Err(error.into()),
            };
            self.kind = Some(Kind::Frames);
            let size = rest.len() - behind.len();
            each_series_of_frame(message, sink)?;
            self.start += size;
        }
        Ok(())
    }

    /// Hands on what is left, now that all has come.
    ///
    /// # Errors
    /// As [`Answer::push`], and when the answer is cut short.
    pub fn end(self, sink: &mut OnSeries<'_>) -> anyhow::Result<()> {
        let rest = self.bytes.get(self.start..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        if self.kind == Some(Kind::Frames) {
            bail!("the answer ends within a frame");
        }
        let size = snap::raw::decompress_len(rest)
            .context("an answer that is neither frames nor snappy")?;
        if self.size_max < size {
            bail!("an answer of {size} bytes in one message: ask for less, as with --match");
        }
        each_series(&snap::raw::Decoder::new().decompress_vec(rest)?, sink)
    }
}
