//! Bounds on how much is worked on at one time, each with a queue that has an end.
//!
//! A request passes a [`Gate`] before it costs CPU and holds its [`Permit`] until its answer is
//! complete. While its body arrives it holds a share of the [`BodyMemory`]. Who waits too long is told
//! [`crate::failure::Kind::Busy`], with a time to try again.

use crate::failure::Failure;
use crate::metrics_page::Number;
use crate::telemetry::{Limit, Telemetry};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Which gate, for its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateKind {
    /// Write requests.
    Insert,
    /// Queries.
    Query,
}

/// Lets a bounded number of requests in.
pub struct Gate {
    kind: GateKind,
    places: Arc<Semaphore>,
    wait_max: Duration,
    telemetry: Arc<Telemetry>,
}

/// A place inside; gives it back when dropped.
pub struct Permit {
    kind: GateKind,
    telemetry: Arc<Telemetry>,
    _place: OwnedSemaphorePermit,
}

fn running(kind: GateKind, telemetry: &Telemetry) -> &Number {
    match kind {
        GateKind::Insert => &telemetry.inserts_running,
        GateKind::Query => &telemetry.queries_running,
    }
}

fn waiting(kind: GateKind, telemetry: &Telemetry) -> &Number {
    match kind {
        GateKind::Insert => &telemetry.inserts_waiting,
        GateKind::Query => &telemetry.queries_waiting,
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        running(self.kind, &self.telemetry).subtract(1);
    }
}

/// Counts a waiting request, also when its client goes away meanwhile.
struct Waiting<'a>(&'a Number);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.subtract(1);
    }
}

impl Gate {
    /// A gate with that many places.
    pub fn new(
        kind: GateKind,
        places: usize,
        wait_max: Duration,
        telemetry: Arc<Telemetry>,
    ) -> Gate {
        assert!(0 < places, "a gate without places would never open");
        let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Gate { kind, places, wait_max, telemetry }
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// [`crate::failure::Kind::Busy`] when none comes free in time.
    pub async fn enter(&self) -> Result<Permit, Failure> {
        let number = waiting(self.kind, &self.telemetry);
        number.add(1);
        let in_line = Waiting(number);
        let place = timeout(self.wait_max, self.places.clone().acquire_owned()).await;
        drop(in_line);
        let Ok(Ok(place)) = place else { return Err(self.refuse()) };
        running(self.kind, &self.telemetry).add(1);
        Ok(Permit { kind: self.kind, telemetry: self.telemetry.clone(), _place: place })
    }

    fn refuse(&self) -> Failure {
        let seconds = self.wait_max.as_secs_f64();
        let (limit, what) = match self.kind {
            GateKind::Insert => (Limit::InsertQueue, "max-concurrent-inserts write requests"),
            GateKind::Query => (Limit::QueryTimeout, "query.max-concurrency queries"),
        };
        self.telemetry.limit_hit(limit);
        Failure::busy(format!(
            "{what} are being worked on and none ended within {seconds} s ({})",
            limit.as_str()
        ))
    }
}

/// Bytes of memory for bodies that are being received or decompressed, shared by all connections.
pub struct BodyMemory {
    /// One permit per [`SHARE_UNIT`].
    shares: Arc<Semaphore>,
    size_max: u64,
    wait_max: Duration,
    telemetry: Arc<Telemetry>,
}

/// Memory is handed out in pieces of this many bytes: small next to a body, large next to a frame.
pub const SHARE_UNIT: usize = 64 << 10;

/// One body's share; grows with it.
pub struct BodyShare<'a> {
    memory: &'a BodyMemory,
    size: usize,
    held: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    /// Memory of `size_max` bytes, rounded up.
    pub fn new(size_max: u64, wait_max: Duration, telemetry: Arc<Telemetry>) -> BodyMemory {
        let shares = size_max.div_ceil(SHARE_UNIT as u64).min(u64::from(u32::MAX)) as usize;
        BodyMemory { shares: Arc::new(Semaphore::new(shares)), size_max, wait_max, telemetry }
    }

    /// A share that holds nothing yet.
    pub fn share(&self) -> BodyShare<'_> {
        BodyShare { memory: self, size: 0, held: None }
    }
}

impl BodyShare<'_> {
    /// Waits until the body may be `size` bytes.
    ///
    /// # Errors
    /// [`crate::failure::Kind::Busy`] when other bodies hold the memory for too long.
    pub async fn grow(&mut self, size: usize) -> Result<(), Failure> {
        if size <= self.size {
            return Ok(());
        }
        let units = (size - self.size).div_ceil(SHARE_UNIT);
        let wanted = self.memory.shares.clone().acquire_many_owned(units as u32);
        let Ok(Ok(more)) = timeout(self.memory.wait_max, wanted).await else {
            self.memory.telemetry.limit_hit(Limit::BodiesSize);
            return Err(Failure::busy(format!(
                "bodies being received or decompressed fill {} bytes (max-bodies-size)",
                self.memory.size_max
            )));
        };
        self.add(units, more);
        Ok(())
    }

    /// As [`BodyShare::grow`], but where it would have to wait it leaves the share as it is; returns
    /// whether it grew.
    pub fn try_grow(&mut self, size: usize) -> bool {
        let units = size.saturating_sub(self.size).div_ceil(SHARE_UNIT);
        match self.memory.shares.clone().try_acquire_many_owned(units as u32) {
            Ok(more) => self.add(units, more),
            Err(_) => return false,
        }
        true
    }

    fn add(&mut self, units: usize, more: OwnedSemaphorePermit) {
        self.size += units * SHARE_UNIT;
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
    }

    /// What is held, to be kept as long as the bytes.
    pub fn into_held(self) -> Option<OwnedSemaphorePermit> {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Kind;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime")
    }

    #[test]
    fn a_full_gate_refuses_after_its_time_and_opens_again() {
        let telemetry = Arc::new(Telemetry::default());
        let gate = Gate::new(GateKind::Insert, 1, Duration::from_millis(1), telemetry.clone());
        runtime().block_on(async {
            let inside = gate.enter().await.expect("a place");
            assert_eq!(telemetry.inserts_running.get(), 1);
            let refused = gate.enter().await.err().expect("full");
            assert_eq!(refused.kind, Kind::Busy);
            assert!(refused.retry_after.is_some());
            drop(inside);
            assert!(gate.enter().await.is_ok());
        });
        assert_eq!(telemetry.inserts_running.get(), 0);
        assert_eq!(telemetry.inserts_waiting.get(), 0);
        assert_eq!(telemetry.limit_hits(Limit::InsertQueue), 1);
    }

    #[test]
    fn body_memory_is_shared_and_comes_back() {
        let telemetry = Arc::new(Telemetry::default());
        let memory = BodyMemory::new(1 << 20, Duration::from_millis(1), telemetry);
        runtime().block_on(async {
            let mut first = memory.share();
            first.grow(600 << 10).await.expect("fits");
            let mut second = memory.share();
            assert!(second.grow(600 << 10).await.is_err());
            assert!(!second.try_grow(600 << 10) && second.try_grow(300 << 10));
            drop(first);
            second.grow(600 << 10).await.expect("fits now");
            second.grow(1).await.expect("has it already");
        });
    }
}
