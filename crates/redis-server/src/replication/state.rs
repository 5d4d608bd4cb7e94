//! State of replication: the stream to replicas, the link to a primary, and a failover.

use super::failover_state::Failover;
use super::feed::Feed;
use super::link::Link;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the door has of replication.
#[derive(Default)]
pub struct Replication {
    feed: Mutex<Feed>,
    /// This server as a replica.
    pub link: Link,
    /// A handing over to a replica.
    pub failover: Failover,
}

impl Replication {
    /// What replicas are sent. Locked last.
    pub fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
