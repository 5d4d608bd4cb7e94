//! An append-only log of records that survives a crash and that several consumers share; group
//! commit.
//!
//! ```text
//!  consumers (series, metadata, exemplars, ...): each declares its kinds, is handed its records
//!  when the log opens, appends, and says what it needs
//!
//!  append ─► pending group (memory) ─► commit: write, fdatasync ─► wait_durable returns
//!    under the consumer's lock, no I/O   one thread, one group at a time
//!
//!  0000000007.wal  0000000008.wal  0000000009.wal        segments, by increasing number
//!  └─ removed once no consumer ─┘          └─ appended to
//!     needs what they hold
//! ```
//!
//! While one group is being synced the next one gathers, so groups are as large as the disk is
//! slow, and an idle log syncs at once.
//!
//! What holds:
//! - When [`Wal::wait_durable`] has returned `Ok`, the record and all before it are replayed by
//!   every later [`Log::open`], until [`Log::cut`] drops their segment.
//! - What is replayed is a prefix of what was appended, in order, each record whole.
//! - A record that has room ([`Wal::reserve`]) is taken, whatever else comes, unless the log fails.
//! - A segment is written by one process once and never continued; a restart begins a new one.
//! - Before a restarted log takes anything, all that it replayed is durable, whatever syncs failed
//!   before: the last segment is written anew.
//! - A failed write or sync latches: no later append or wait succeeds, and nothing is retried. A full
//!   disk does not: the segment is written anew from its synced bytes once there is room.
//! - Damage to bytes that are known to have been synced is [`Error::Corrupt`], never a short log; a
//!   lost segment is [`Error::MissingSegment`], for `START` names the first and the last.
//! - A log that comes back shorter than it was synced is noticed, but for the last second: `END` names
//!   the size ([`Recovery::lost_end`]).
//! - What a consumer needs stays, be it switched off, and whatever the others need no more.
//!
//! The layout is described in `docs/format/wal.md`.

mod commit;
pub mod config;
mod consumers;
mod end;
pub mod error;
mod format;
mod inspect;
pub mod kinds;
mod log;
mod pending;
mod reader;
mod recover;
mod reservation;
mod rewrite;
mod segments;
mod start;
mod writer;

#[doc(hidden)]
pub mod fuzzing;

#[cfg(test)]
mod tests;

pub use config::{Committer, WalConfig};
pub use consumers::{Consumer, Consumers, Off, Take};
pub use end::{END_NAME, LostEnd};
pub use error::{Error, ReplayError, Result};
pub use format::{RECORD_SIZE_MAX, segment_name};
pub use inspect::{Fault, FaultKind, Found, Inspected, check_end, check_start, inspect};
pub use log::{Log, NeededFrom, Pin};
pub use pending::Lsn;
pub use recover::{OnRecord, Recovery, check};
pub use reservation::Reservation;
pub use rewrite::{Kept, REWRITTEN_SUFFIX, fill_gap, rewrite};
pub use segments::{RecordRef, first_segment};
pub use start::{LogRange, LogStart, OnSegmentBegun, START_NAME, read as read_start};
pub use writer::{Wal, WalStats};
