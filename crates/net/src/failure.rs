//! Why a request is not served, in words that no protocol owns; each door says it in its own.
//!
//! ```text
//! store, engine, wire, admission ─► Failure { kind, message, remedy, retry_after, limit } ─► the door's words
//! ```
//!
//! Trouble that passes has a time to try again and is never the client's fault.

use crate::telemetry::Limit;
use std::fmt;
use std::io;
use std::time::Duration;

/// What a failure is, by what the client should make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request makes no sense.
    BadInput,
    /// It is there, but not for this verb.
    WrongMethod,
    /// It comes in an encoding or type that is not known.
    UnknownEncoding,
    /// It is larger than a limit allows.
    TooLarge,
    /// It arrives slower than a limit allows.
    TooSlow,
    /// It makes sense and has no answer.
    Unanswerable,
    /// Its answer takes more than a limit allows.
    Limit,
    /// What it names is not there.
    NotFound,
    /// Who sends it has not said who they are.
    Unauthorized,
    /// Who sends it may not.
    Forbidden,
    /// There is too much to do, or something is being changed: a moment later it works.
    Busy,
    /// Nothing can be written for now.
    ReadOnly,
    /// Something on disk is missing or cannot be read or written.
    Damaged,
    /// The server is about to end.
    Stopping,
    /// It took longer than it may.
    Timeout,
    /// Whoever asked wants no answer any more.
    Canceled,
    /// Our fault.
    Internal,
}

/// Why a request is not served. Shown as the message and, behind a semicolon, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it is.
    pub kind: Kind,
    /// What is wrong, with the limit and the value in it.
    pub message: String,
    /// What to do about it, where that is known.
    pub remedy: Option<String>,
    /// After which time to try again; `None` when that would not help.
    pub retry_after: Option<Duration>,
    /// The limit that was reached, to be counted.
    pub limit: Option<Limit>,
}

/// When to try again what is only waiting for its turn.
const RETRY_SHORTLY: Duration = Duration::from_secs(1);
/// When to try again what waits for memory, or for series to be looked up.
const RETRY_SERIES: Duration = Duration::from_secs(5);
/// When to try again what waits for the disk, or for a person.
const RETRY_LATER: Duration = Duration::from_secs(30);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// A failure that trying again does not mend.
    pub fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), remedy: None, retry_after: None, limit: None }
    }

    /// The request makes no sense.
    pub fn bad_input(message: impl Into<String>) -> Failure {
        Failure::new(Kind::BadInput, message)
    }

    /// The request makes sense and has no answer.
    pub fn unanswerable(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Unanswerable, message)
    }

    /// The answer takes more than a limit allows.
    pub fn limited(limit: Limit, message: impl Into<String>) -> Failure {
        Failure::new(Kind::Limit, message).hit(limit)
    }

    /// What the request names is not there.
    pub fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(Kind::NotFound, message)
    }

    /// The request is larger than a limit allows.
    pub fn too_large(limit: Limit, message: impl Into<String>) -> Failure {
        Failure::new(Kind::TooLarge, message).hit(limit)
    }

    /// The same request will work in a moment.
    pub fn busy(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Busy, message).again_after(RETRY_SHORTLY)
    }

    /// A query took too long.
    pub fn timeout(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Timeout, message).hit(Limit::QueryTimeout)
    }

    /// Our fault.
    pub fn internal(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Internal, message)
    }

    /// The same, counted as a limit that was reached.
    pub fn hit(mut self, limit: Limit) -> Failure {
        self.limit = Some(limit);
        self
    }

    /// The same, with what to do.
    pub fn advised(mut self, remedy: impl Into<String>) -> Failure {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same, to be tried again after `time`.
    pub fn again_after(mut self, time: Duration) -> Failure {
        self.retry_after = Some(time);
        self
    }

    /// The failure that an error of the store is to who writes. Whatever is wrong with the store is
    /// not the sender's fault, and passes or is mended: it must keep what it has and send it again.
    pub fn of_write(error: store::Error) -> Failure {
        match Failure::from(error) {
            Failure { kind: Kind::Internal, message, .. } => {
                Failure::new(Kind::Damaged, message).again_after(RETRY_LATER)
            }
            failure => failure,
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        use store::Error;
        let text = error.to_string();
        match error {
            Error::SeriesDropped => Failure::busy(text),
            Error::Damaged { .. } => Failure::new(Kind::Damaged, text).again_after(RETRY_LATER),
            Error::Away { .. } => Failure::new(Kind::Damaged, text).again_after(RETRY_SERIES),
            Error::NoRoom { .. } => Failure::busy(text).again_after(RETRY_LATER),
            Error::HeadFull { .. } => Failure::busy(text).hit(Limit::HeadSize),
            Error::ReadOnly { .. }
            | Error::Wal(wal::Error::Latched { .. } | wal::Error::Closed) => {
                let failure = Failure::new(Kind::ReadOnly, text).hit(Limit::ReadOnly);
                failure.again_after(RETRY_LATER)
            }
            Error::Wal(wal::Error::Busy { .. }) => Failure::busy(text),
            Error::Wal(wal::Error::Stalled { .. }) => Failure::busy(text).again_after(RETRY_LATER),
            Error::NewSeriesRefused { .. } => Failure::busy(text).again_after(RETRY_SERIES),
            Error::LimitExceeded { limit, .. } => Failure::limited(limit.into(), text),
            Error::Invalid(_) => Failure::bad_input(text),
            Error::DeadlineExceeded => Failure::timeout(text),
            Error::Cancelled => Failure::new(Kind::Canceled, text),
            _ => Failure::internal(text),
        }
    }
}

impl From<wire::Error> for Failure {
    fn from(error: wire::Error) -> Failure {
        let text = error.to_string();
        match error {
            wire::Error::LimitExceeded { limit, .. } => Failure::too_large(limit.into(), text),
            wire::Error::Malformed { .. } | wire::Error::Invalid(_) => Failure::bad_input(text),
        }
    }
}

/// Failures that doors wrap into [`io::Error`] while they write come out again.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.downcast::<store::Error>() {
            Ok(error) => error.into(),
            Err(error) => match error.downcast::<Failure>() {
                Ok(failure) => failure,
                Err(error) => Failure::internal(error.to_string()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_cannot_write_now_is_never_a_client_error() {
        let busy = wal::Error::Busy { pending_size: 3, record_size: 2, max: 4 };
        let stalled =
            wal::Error::Stalled { reason: "too many open files".into(), is_disk_full: false };
        let latched = wal::Error::Latched { reason: "a failed sync".into() };
        for (error, kind, limit) in [
            (store::Error::HeadFull { size: 2, max: 1 }, Kind::Busy, Some(Limit::HeadSize)),
            (store::Error::ReadOnly { reason: "x".into() }, Kind::ReadOnly, Some(Limit::ReadOnly)),
            (store::Error::Wal(latched), Kind::ReadOnly, Some(Limit::ReadOnly)),
            (store::Error::Wal(wal::Error::Closed), Kind::ReadOnly, Some(Limit::ReadOnly)),
            (store::Error::Wal(busy), Kind::Busy, None),
            (store::Error::Wal(stalled), Kind::Busy, None),
            (store::Error::NewSeriesRefused { count: 2, reason: "x".into() }, Kind::Busy, None),
            (store::Error::PartitionDropped, Kind::Damaged, None),
        ] {
            let failure = Failure::of_write(error);
            assert_eq!((failure.kind, failure.limit), (kind, limit), "{failure}");
            assert!(failure.retry_after.is_some(), "{failure}");
        }
    }

    #[test]
    fn failures_come_out_of_streams_as_they_went_in() {
        let failure = Failure::bad_input("no").advised("say yes");
        assert_eq!(failure.to_string(), "no; say yes");
        assert_eq!(Failure::from(io::Error::other(failure.clone())), failure);
        let series = store::Error::LimitExceeded {
            limit: store::Limit::Series,
            what: "series",
            value: 2,
            max: 1,
        };
        let failure = Failure::from(io::Error::other(series));
        assert_eq!((failure.kind, failure.limit), (Kind::Limit, Some(Limit::QuerySeries)));
        assert_eq!(Failure::from(io::Error::other("x")).kind, Kind::Internal);
    }
}
