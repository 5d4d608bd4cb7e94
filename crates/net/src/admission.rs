//! Bounds on how much is worked on at one time, each with a queue that has an end.
//!
//! A request passes a [`Gate`] before it costs CPU and holds its [`Permit`] until its answer is
//! complete. While its body arrives it holds a share of the [`BodyMemory`]. Who waits too long is told
//! [`crate::failure::Kind::Busy`], with a time to try again.

use crate::failure::Failure;
use crate::metrics_page::{Number, Page};
use crate::telemetry::{Families, Limit, Telemetry};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

/// Which gate, for its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateKind {
    /// Write requests.
    Insert,
    /// Queries.
    Query,
    /// Short work such as status pages.
    Control,
}

/// Requests for status and metadata that are worked on at one time.
pub const CONTROLS_MAX: usize = 16;
/// Suspended permits of one gate: each holds a thread and what its answer needs.
pub const SUSPENDED_MAX: usize = 64;

/// Lets a bounded number of requests in.
#[derive(Clone)]
pub struct Gate {
    kind: GateKind,
    places: Arc<Semaphore>,
    suspended: Arc<AtomicUsize>,
    wait_max: Duration,
    telemetry: Arc<Telemetry>,
}

/// A place inside; gives it back when dropped.
pub struct Permit {
    gate: Gate,
    /// None while it is suspended.
    place: Option<OwnedSemaphorePermit>,
}

impl Permit {
    /// Gives the place back while the holder waits for something that is not work, such as a client
    /// that does not read. Returns whether it did: the number of suspended permits is bounded.
    pub fn suspend(&mut self) -> bool {
        if self.place.is_none() {
            return true;
        }
        let more = |count| (count < SUSPENDED_MAX).then_some(count + 1);
        if self.gate.suspended.fetch_update(SeqCst, SeqCst, more).is_err() {
            return false;
        }
        self.leave();
        true
    }

    /// Waits for a place again.
    ///
    /// # Errors
    /// [`crate::failure::Kind::Busy`] when none comes free in time.
    pub async fn resume(&mut self) -> Result<(), Failure> {
        if self.place.is_none() {
            self.place = Some(self.gate.acquire().await?);
            self.gate.suspended.fetch_sub(1, SeqCst);
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.place = None;
        running(self.gate.kind, &self.gate.telemetry).subtract(1);
    }
}

fn running(kind: GateKind, telemetry: &Telemetry) -> &Number {
    match kind {
        GateKind::Insert => &telemetry.inserts_running,
        GateKind::Query => &telemetry.queries_running,
        GateKind::Control => &telemetry.controls_running,
    }
}

fn waiting(kind: GateKind, telemetry: &Telemetry) -> &Number {
    match kind {
        GateKind::Insert => &telemetry.inserts_waiting,
        GateKind::Query => &telemetry.queries_waiting,
        GateKind::Control => &telemetry.controls_waiting,
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        match self.place {
            Some(_) => self.leave(),
            None => _ = self.gate.suspended.fetch_sub(1, SeqCst),
        }
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
        Gate { kind, places, suspended: Arc::default(), wait_max, telemetry }
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// [`crate::failure::Kind::Busy`] when none comes free in time.
    pub async fn enter(&self) -> Result<Permit, Failure> {
        let place = self.acquire().await?;
        Ok(Permit { gate: self.clone(), place: Some(place) })
    }

    async fn acquire(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let number = waiting(self.kind, &self.telemetry);
        number.add(1);
        let in_line = Waiting(number);
        let place = timeout(self.wait_max, self.places.clone().acquire_owned()).await;
        drop(in_line);
        let Ok(Ok(place)) = place else { return Err(self.refuse()) };
        running(self.kind, &self.telemetry).add(1);
        Ok(place)
    }

    fn refuse(&self) -> Failure {
        let seconds = self.wait_max.as_secs_f64();
        let (limit, what) = match self.kind {
            GateKind::Insert => (Limit::InsertQueue, "max-concurrent-inserts write requests"),
            GateKind::Query => (Limit::QueryTimeout, "query.max-concurrency queries"),
            GateKind::Control => (Limit::ControlQueue, "16 requests for status"),
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
    /// Calls of [`BodyShare::grow`] that wait.
    waiters: AtomicUsize,
    /// Notified when a call begins to wait.
    contended: Notify,
}

/// Memory is charged in units of this many bytes: a body of one byte takes one page.
pub const SHARE_UNIT: usize = 4 << 10;
/// A sender that is slower than this uses up the time that a body has.
pub const BYTES_PER_SECOND_MIN: u64 = 64 << 10;
/// A sender may fall behind that rate for this long.
const GRACE: Duration = Duration::from_secs(3);

/// Measures whether a sender is fast enough to hold memory that others wait for.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    late_at: Instant,
}

impl Pace {
    /// Starts now, with the whole grace period left.
    pub fn start() -> Pace {
        Pace { late_at: Instant::now() + GRACE }
    }

    /// Notes that bytes came. They earn time, never more than the grace period from now.
    pub fn receive(&mut self, size: usize) {
        let earned = Duration::from_nanos(size as u64 * 1_000_000_000 / BYTES_PER_SECOND_MIN);
        self.late_at = (self.late_at + earned).min(Instant::now() + GRACE);
    }
}

/// Counts a waiting call of [`BodyShare::grow`], also when its client goes away meanwhile.
struct Waiter<'a>(&'a AtomicUsize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Gauge of [`BodyMemory`].
struct BodyMemoryGauge {
    shares: Arc<Semaphore>,
    share_count: usize,
}

impl Families for BodyMemoryGauge {
    fn write(&self, page: &mut Page) {
        let held = self.share_count.saturating_sub(self.shares.available_permits());
        page.family("quipu_bodies_size_bytes", "gauge", "Memory held by request bodies.");
        page.sample("", &[], (held * SHARE_UNIT) as f64);
    }
}

/// One body's share; grows with it.
pub struct BodyShare<'a> {
    memory: &'a BodyMemory,
    size: usize,
    held: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    /// Memory of `size_max` bytes, rounded up.
    pub fn new(size_max: u64, wait_max: Duration, telemetry: Arc<Telemetry>) -> BodyMemory {
        let share_count = size_max.div_ceil(SHARE_UNIT as u64).min(u64::from(u32::MAX)) as usize;
        let shares = Arc::new(Semaphore::new(share_count));
        telemetry.register(Arc::new(BodyMemoryGauge { shares: shares.clone(), share_count }));
        BodyMemory {
            shares,
            size_max,
            wait_max,
            telemetry,
            waiters: AtomicUsize::new(0),
            contended: Notify::new(),
        }
    }

    /// Completes when a sender is late while other bodies wait for memory: it must give up what it
    /// holds.
    pub async fn reclaim(&self, pace: Pace) {
        sleep_until(pace.late_at).await;
        loop {
            // Created before the look at the counter, so that no notification is missed.
            let contended = self.contended.notified();
            if self.waiters.load(SeqCst) != 0 {
                return;
            }
            contended.await;
        }
    }

    /// Waits for units until the time is over.
    async fn acquire(&self, units: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(units).ok()?;
        if let Ok(permit) = self.shares.clone().try_acquire_many_owned(units) {
            return Some(permit);
        }
        self.waiters.fetch_add(1, SeqCst);
        let _waiter = Waiter(&self.waiters);
        self.contended.notify_waiters();
        let wanted = self.shares.clone().acquire_many_owned(units);
        timeout(self.wait_max, wanted).await.ok()?.ok()
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
        let Some(more) = self.memory.acquire(units).await else {
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
    #[test]
    fn a_suspended_permit_leaves_its_place_to_others() {
        let telemetry = Arc::new(Telemetry::default());
        let gate = Gate::new(GateKind::Query, 1, Duration::from_millis(1), telemetry.clone());
        runtime().block_on(async {
            let mut first = gate.enter().await.expect("a place");
            assert!(first.suspend());
            assert_eq!(telemetry.queries_running.get(), 0);
            let second = gate.enter().await.expect("the place of the first");
            assert!(first.resume().await.is_err(), "the second has the place");
            drop(second);
            first.resume().await.expect("a place again");
            assert_eq!(telemetry.queries_running.get(), 1);
        });
        assert_eq!(telemetry.queries_running.get(), 0);
    }

    #[test]
    fn a_late_sender_gives_up_its_memory_when_others_wait() {
        let telemetry = Arc::new(Telemetry::default());
        let memory = BodyMemory::new(1 << 20, Duration::from_secs(60), telemetry);
        runtime().block_on(async {
            let mut first = memory.share();
            first.grow(1 << 20).await.expect("fits");
            let late = Pace { late_at: Instant::now() };
            let moment = Duration::from_millis(1);
            assert!(timeout(moment, memory.reclaim(late)).await.is_err(), "nobody waits");
            let mut second = memory.share();
            let reclaimed = async {
                assert!(timeout(moment, memory.reclaim(Pace::start())).await.is_err(), "in time");
                memory.reclaim(late).await;
                drop(first);
            };
            let (grown, ()) = tokio::join!(second.grow(1), reclaimed);
            grown.expect("the memory of the first");
        });
    }

    #[test]
    fn bytes_earn_time_up_to_the_grace_period() {
        let mut pace = Pace { late_at: Instant::now() };
        let before = pace.late_at;
        pace.receive(64 << 10);
        assert_eq!(pace.late_at - before, Duration::from_secs(1));
        pace.receive(1 << 30);
        assert!(pace.late_at <= Instant::now() + GRACE);
    }
}
