//! What can be wrong with a whole request; what is wrong with one line of it is a
//! [`crate::decoded::LineError`].

use model::size::format_size;

/// The request cannot be served; nothing of it was decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The client must send less: HTTP 413, or 400 where the protocol has no other word.
    #[error("{}", exceeded(*limit, *value, *max))]
    LimitExceeded {
        /// Which.
        limit: Limit,
        /// What the client asked for; at least this much.
        value: u64,
        /// What is allowed.
        max: u64,
    },
    /// The bytes are not what the protocol says: HTTP 400.
    #[error("invalid {what} at byte {offset}: expected {reason}")]
    Malformed {
        /// Which encoding.
        what: &'static str,
        /// Where in the bytes of that encoding.
        offset: usize,
        /// What was expected.
        reason: &'static str,
    },
    /// A parameter's value cannot be understood: HTTP 400.
    #[error("{0}")]
    Invalid(String),
}

/// The limits that [`Error::LimitExceeded`] tells of; shown as what is counted, with the flag where
/// there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of a body that a decoder is given.
    BodySize,
    /// Bytes of a body once decompressed.
    DecompressedSize,
    /// Bytes of the labels of all series of a request.
    LabelsSize,
    /// Samples of a request.
    Samples,
    /// Native histograms of a request.
    Histograms,
    /// Buckets of all native histograms of a request.
    HistogramBuckets,
    /// Exemplars of a request.
    Exemplars,
    /// Symbols of a request.
    Symbols,
    /// Labels that a request adds to all of its series.
    ExtraLabels,
    /// Queries of a remote read.
    Queries,
    /// Matchers of one of them.
    Matchers,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Limit::BodySize => "body size",
            Limit::DecompressedSize => "size of the decompressed body (max-body-size)",
            Limit::LabelsSize => "bytes of all series' labels",
            Limit::Samples => "samples per request",
            Limit::Histograms => "histograms per request",
            Limit::HistogramBuckets => "buckets of all histograms",
            Limit::Exemplars => "exemplars per request",
            Limit::Symbols => "symbols per request",
            Limit::ExtraLabels => "extra labels",
            Limit::Queries => "queries per request",
            Limit::Matchers => "matchers per query",
        })
    }
}

impl Limit {
    /// Whether it counts bytes.
    fn is_size(self) -> bool {
        matches!(self, Limit::BodySize | Limit::DecompressedSize | Limit::LabelsSize)
    }

    /// Advice behind the message.
    fn remedy(self) -> &'static str {
        match self {
            Limit::DecompressedSize => {
                "send less at once, or raise --max-body-size (128MiB at most)"
            }
            Limit::ExtraLabels => "give fewer labels",
            Limit::Queries | Limit::Matchers => "ask for less at once",
            _ => "send less at once",
        }
    }
}

/// A value that is one above its limit stands for any larger one.
fn exceeded(limit: Limit, value: u64, max: u64) -> String {
    let shown = |number: u64| match limit.is_size() {
        true => format_size(number),
        false => number.to_string(),
    };
    let remedy = limit.remedy();
    match value == max + 1 || shown(value) == shown(max) {
        true => format!("{limit}: more than {}; {remedy}", shown(max)),
        false => format!("{limit}: {}, the limit is {}; {remedy}", shown(value), shown(max)),
    }
}

impl Error {
    pub(crate) fn malformed(what: &'static str, offset: usize, reason: &'static str) -> Error {
        Error::Malformed { what, offset, reason }
    }
}
