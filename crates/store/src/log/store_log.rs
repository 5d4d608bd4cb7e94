//! The store's end of the log: what it appends to, waits for and shortens.
//!
//! - A log that fails latches the store: nothing is acknowledged after it.
//! - What waits for the disk is bounded: writers wait here before they take a partition's lock.
//! - `pinned_size` says how much of the log no flush lets go, so that it starts none.

use crate::base::ground::Ground;
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wal::{Log, Lsn, Wal};

/// Of the bytes that may wait for the disk, the share from which on writers wait too: those who
/// come at one moment have room all the same.
const WAL_PENDING_SOFT_SHARE: usize = 4;

/// Who closes the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogOwner {
    /// The store: nobody shares it.
    Store,
    /// The program that opened it, after all who share it.
    Program,
}

/// The log of all partitions, as the store uses it.
pub(crate) struct StoreLog {
    ground: Arc<Ground>,
    /// What records are appended to.
    pub wal: Arc<Wal>,
    /// The same for who shortens it.
    log: Arc<Log>,
    owner: LogOwner,
    /// Bytes of the log that no flush lets go: those of damaged partitions, of ones that could not
    /// be flushed, or of another consumer.
    pinned_size: AtomicU64,
    /// Bytes that were held when that was last told.
    told_held: AtomicU64,
}

impl StoreLog {
    pub fn new(ground: Arc<Ground>, log: Arc<Log>, owner: LogOwner) -> StoreLog {
        let wal = Arc::clone(log.wal());
        let (pinned_size, told_held) = (AtomicU64::new(0), AtomicU64::new(0));
        StoreLog { ground, wal, log, owner, pinned_size, told_held }
    }

    /// The log itself, with its consumers.
    pub fn shared(&self) -> &Log {
        &self.log
    }

    /// Keeps writers from running ahead of the disk: what waits for it stays bounded. Never called
    /// with room reserved in the log, or under a lock that is needed to make use of it.
    pub fn wait_for_room(&self) -> Result<()> {
        let pending = self.wal.stats().pending_size;
        if self.ground.config.wal_pending_max / WAL_PENDING_SOFT_SHARE <= pending {
            self.wait_for_all()?;
        }
        Ok(())
    }

    /// Waits until all that was appended is durable.
    pub fn wait_for_all(&self) -> Result<()> {
        self.wait_durable(self.wal.end())
    }

    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        let health = &self.ground.health;
        self.wal.wait_durable(lsn).map_err(|error| health.latch_if_failed(Error::Wal(error)))
    }

    /// Removes the segments that no consumer of the log needs. What is kept of those below `next`,
    /// though the store has written all it had, is no reason to flush again.
    pub fn shorten(&self, next: u64) -> Result<()> {
        let cut = self.log.cut();
        let pin = cut.map_err(|error| self.ground.health.latch_if_failed(Error::Wal(error)))?;
        let pinned = pin.filter(|pin| pin.segment < next).map_or(0, |_| self.wal.size());
        self.pinned_size.store(pinned, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of the log, and how many of them no flush lets go.
    pub fn size_and_pinned(&self) -> (u64, u64) {
        let size = self.wal.size();
        // Another consumer may have let go what it pinned.
        let pinned = self.pinned_size.fetch_min(size, Ordering::Relaxed).min(size);
        (size, pinned)
    }

    /// Bytes of the log that no flush lets go and that are more than `max`, with what keeps them and how
    /// they are let go.
    pub fn held(&self, max: u64) -> Option<(u64, String)> {
        let (_, pinned) = self.size_and_pinned();
        let pin = self.log.pin().filter(|_| max < pinned)?;
        let is_off = self.log.off().iter().any(|off| off.consumer == pin.consumer);
        let why = match is_off {
            true => format!("{} are closed or switched off", pin.consumer),
            false => format!("not all {} can be saved", pin.consumer),
        };
        Some((
            pinned,
            format!(
                "the log keeps {pinned} bytes, more than --wal-size ({max}): {why}. Switch them on, or \
                 stop the server and run `quipu verify --dry-run`; `--repair` gives up what is damaged"
            ),
        ))
    }

    /// Tells people of a log that is held: when it passes --wal-size, and each time it has doubled.
    pub fn tell_held(&self) -> Option<String> {
        let Some((size, words)) = self.held(self.ground.config.wal_size_max) else {
            self.told_held.store(0, Ordering::Relaxed);
            return None;
        };
        if self.told_held.load(Ordering::Relaxed).saturating_mul(2) <= size {
            self.told_held.store(size, Ordering::Relaxed);
            self.ground.health.keep_failure(words.clone());
        }
        Some(words)
    }

    /// Ends the use of the log: one that others share stays open, and the store takes no more.
    pub fn close(&self) -> Result<()> {
        match self.owner {
            LogOwner::Store => Ok(self.log.close()?),
            LogOwner::Program => {
                self.ground.health.latch("it is closed");
                Ok(self.wal.wait_durable(self.wal.end())?)
            }
        }
    }
}
