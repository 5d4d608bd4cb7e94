//! A keyspace: Redis' types and commands over a store that keeps cold values on disk. Knows no
//! sockets and no RESP: a command gets its arguments as bytes and writes to a [`Reply`].
//!
//! ```text
//! door ─► commands::table ─► Call ─► Keyspace ─► Reply
//!                                       │  find, put, remove, modified
//!                    ┌──────────────────┼────────────────────┐
//!                  Index              Slots                Effects
//!          12 bytes a key:         hot keys with        what changed, as
//!          hash, place             their values         commands of one key
//!                    │                  │ clock            │ commit
//!                    ▼                  ▼                  ▼
//!            cold segments  ◄── keeper: evict, seal,    the shared log
//!            (immutable)        compact, checkpoint     (kind KEYS)
//! ```
//!
//! What holds:
//! - Every key has one entry in the index, whose place is a slot (hot) or an address (cold).
//! - A slot that is *dirty* differs from its record on disk, or has none; its changes are in the log
//!   from the last checkpoint on.
//! - What is logged are effects on single keys that need no clock and no dice: replayed over a state
//!   that may be newer they give the newest one, for each record and slot carries the number of the
//!   last effect it has seen.
//! - A segment is never changed; it goes when a checkpoint that does not name it is durable.
//!
//! Formats: `docs/format/keys.md`. Decisions: `docs/decisions/0025-keyspace.md`.

#![allow(clippy::len_without_is_empty, reason = "`is_empty` is `Stored`'s, for every type")]
#![allow(clippy::type_complexity, reason = "arguments are slices of slices, and pairs of them")]

pub mod call;
pub mod cold;
pub mod commands;
pub mod config;
pub mod credentials;
pub mod effects;
pub mod error;
pub mod expiry;
pub mod extended;
pub mod fuzzing;
pub mod glob;
pub mod index;
pub mod keyspace;
pub mod kv;
pub mod libraries;
mod maintenance;
pub mod murmur;
pub mod number;
mod pieces;
pub mod rdb;
mod replication;
pub mod reply;
pub mod series;
pub mod slots;
pub mod value;

pub use call::{Call, Mode, Wait};
pub use config::{KvConfig, KvDurability};
pub use error::{CommandError, Error, Result};
pub use keyspace::Keyspace;
pub use kv::{Kv, KvOpening};
pub use maintenance::{keeper, repair, verify};
pub use replication::{primary, replicate};
pub use reply::{Discard, Reply};
pub use value::Value;
