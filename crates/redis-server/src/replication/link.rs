//! This server as a replica, as others see it: whom it follows, and how far it is.
//!
//! That is kept beside the keys, and whether a dump is being loaded: what was loaded in part is shown
//! to nobody, after a restart neither.

use kv::Kv;
use kv::primary::{PrimaryRecord, ReplicaState};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How far this server is with its primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It is about to connect.
    #[default]
    Connect,
    /// It connects.
    Connecting,
    /// It gets a dump, or loads it.
    Sync,
    /// It follows.
    Connected,
}

impl Stage {
    /// As `ROLE` says it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Connect => "connect",
            Stage::Connecting => "connecting",
            Stage::Sync => "sync",
            Stage::Connected => "connected",
        }
    }
}

/// What is known of the primary.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Its host and port; none if this server is no replica.
    pub primary: Option<(String, u16)>,
    /// Grows whenever that changes.
    pub generation: u64,
    /// How far this server is with it.
    pub stage: Stage,
    /// The name of its feed, empty before the first dump is whole.
    pub id: String,
    /// The offset behind what is done here.
    pub offset: u64,
    /// The database in which the feed was there: a primary that goes on does not say it again.
    pub db: u8,
    /// When it was last heard, in milliseconds since the epoch.
    pub heard_ms: i64,
    /// Since when it is not.
    pub down_since_ms: i64,
    /// Bytes of a dump that have come.
    pub dump_read: u64,
    /// Bytes that it has, where it was said before.
    pub dump_size: Option<u64>,
    /// Whether the keys here are neither what they were nor what the primary has.
    pub is_partial: bool,
    /// Why it is not known who is followed; empty unless the file that names the primary is damaged. The
    /// server is a replica without a link then, and takes no writes.
    pub fault: String,
    /// Why it last broke.
    pub failure: String,
    /// Its commands that could not be done here.
    pub refused: u64,
    /// What it has that is left out here: values of modules, keys that are time series here.
    pub left_out: u64,
    /// Dumps that were loaded.
    pub dump_count: u64,
    /// Whether the primary is a replica that is to take over.
    pub hands_over: bool,
}

/// This server as a replica.
#[derive(Default)]
pub struct Link {
    state: Mutex<State>,
    pub(super) is_replica: AtomicBool,
    pub(super) is_loading: AtomicBool,
    pub(super) is_ended: AtomicBool,
    pub(super) changed: Notify,
}

impl Link {
    /// What is known.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this server is a replica.
    pub fn is_replica(&self) -> bool {
        self.is_replica.load(Relaxed)
    }

    /// Whether keys are not to be shown, for a dump is being loaded, or was in part.
    pub fn is_loading(&self) -> bool {
        self.is_loading.load(Relaxed)
    }

    /// Writes down who is followed from now on.
    pub(super) fn note(&self, kv: &Kv, primary: Option<&(String, u16)>) -> Result<(), String> {
        let is_partial = {
            let state = self.state();
            if state.stage == Stage::Sync && state.is_partial {
                return Err("the dump of the primary is being loaded: try again when INFO says \
                            loading:0"
                    .to_owned());
            }
            state.is_partial
        };
        self.keep(kv, primary, is_partial && primary.is_some())?;
        if is_partial && primary.is_none() {
            tracing::warn!("the keys are not whole: a dump of the primary was loaded in part");
        }
        Ok(())
    }

    /// Writes down that nobody is followed, before [`Link::take_over`].
    ///
    /// # Errors
    /// In words, when that is not so easy.
    pub fn note_nobody(&self, kv: &Kv) -> Result<(), String> {
        if self.state().is_partial {
            return Err(
                "the keys are not whole: a dump of the primary was loaded in part".to_owned()
            );
        }
        self.keep(kv, None, false)
    }

    /// Writes the primary and whether the keys are whole.
    ///
    /// # Errors
    /// On I/O errors, in words.
    pub(super) fn keep(
        &self,
        kv: &Kv,
        primary: Option<&(String, u16)>,
        is_partial: bool,
    ) -> Result<(), String> {
        let state = if is_partial { ReplicaState::Partial } else { ReplicaState::Whole };
        let record =
            primary.map(|(host, port)| PrimaryRecord { host: host.clone(), port: *port, state });
        let kept = kv.write_primary(record.as_ref());
        kept.map_err(|error| format!("the primary cannot be written down: {error}"))
    }

    /// Notes that what is here is replaced now, unless somebody else is followed by now.
    ///
    /// # Errors
    /// When that is so, or cannot be written.
    pub fn begin_partial(&self, kv: &Kv, generation: u64) -> Result<(), String> {
        {
            let mut state = self.state();
            if state.generation != generation {
                return Err("it is not followed any more".to_owned());
            }
            state.is_partial = true;
        }
        self.set_partial(kv, true)
    }

    /// Whether the server ends.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Relaxed)
    }

    /// Notes that what is here is replaced now, or is whole again, durably.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn set_partial(&self, kv: &Kv, is_partial: bool) -> Result<(), String> {
        let primary = self.state().primary.clone();
        self.keep(kv, primary.as_ref(), is_partial)?;
        self.state().is_partial = is_partial;
        self.is_loading.store(is_partial, Relaxed);
        Ok(())
    }
}
