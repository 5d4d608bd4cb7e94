//! Slows down guesses of passwords: the answer to wrong credentials waits longer with each failure of
//! an address, and few attempts of an address wait at one time.
//!
//! ```text
//! may_try ── no ──► refused without a look at the credentials
//!    │ yes
//! credentials ── right ──► at once
//!    │ wrong
//! fail ──► so long the answer waits, and one of the address' places is taken
//! ```
//!
//! A place is taken for the whole time, also when the client does not wait for its answer. Clients of
//! other addresses, and connections that have authenticated, notice nothing.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures of an address that cost nothing: typing errors, a client that tries two passwords.
const FREE_FAILURES: f64 = 5.0;
/// The first delay; each failure doubles it.
const DELAY_MIN: Duration = Duration::from_millis(100);
/// Attempts of an address that wait at one time.
const WAITING_MAX: usize = 8;
/// After this time one failure is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(10);
/// Failures that are remembered of an address.
const FAILURES_MAX: f64 = 30.0;
/// Error of an attempt that comes while too many of its address wait.
pub const REFUSAL: &str = "too many failed attempts to authenticate from this address: stop the \
                           client that sends wrong credentials, and try again in a minute \
                           (login-delay-max)";
/// Time between two lines in the log about the failures of one address.
const LOG_PAUSE: Duration = Duration::from_secs(60);
/// Addresses that are remembered: some 200 bytes each.
const SOURCES_MAX: usize = 4096;

/// An address as failures are counted: of IPv6 the network of 64 bits that one customer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Source(IpAddr);

impl Source {
    fn of(peer: Option<SocketAddr>) -> Source {
        match peer.map(|peer| peer.ip().to_canonical()) {
            None => Source(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            Some(IpAddr::V6(address)) => {
                Source(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)))
            }
            Some(address) => Source(address),
        }
    }
}

/// Failures of one address.
#[derive(Debug)]
struct Failures {
    /// Number of failures, decayed over time.
    count: f64,
    /// When that was counted.
    at: Instant,
    /// When the answers that wait are given.
    waiting: Vec<Instant>,
    /// Failures since the last line in the log.
    unlogged: u64,
    /// When that line was written.
    logged_at: Option<Instant>,
}

impl Failures {
    fn new(now: Instant) -> Failures {
        Failures { count: 0.0, at: now, waiting: Vec::new(), unlogged: 0, logged_at: None }
    }

    /// Counts a failure for the log; returns how many a line is due for.
    fn count_for_log(&mut self, now: Instant) -> Option<u64> {
        self.unlogged += 1;
        let is_recent = |at: Instant| now.saturating_duration_since(at) < LOG_PAUSE;
        if self.logged_at.is_some_and(is_recent) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }

    /// Forgets what is old.
    fn forget(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at);
        self.count = (self.count - passed.as_secs_f64() / FORGET_AFTER.as_secs_f64()).max(0.0);
        self.at = now;
        self.waiting.retain(|until| now < *until);
    }

    /// Whether nothing is left of it: its failures are forgotten, and counted in the log.
    fn is_forgotten(&self, now: Instant) -> bool {
        let is_recent = |at: Instant| now.saturating_duration_since(at) < LOG_PAUSE;
        self.count == 0.0 && self.waiting.is_empty() && !self.logged_at.is_some_and(is_recent)
    }
}

/// Failed attempts to authenticate, by address.
#[derive(Debug)]
pub struct LoginLimiter {
    delay_max: Duration,
    sources: Mutex<HashMap<Source, Failures>>,
    /// Number of sources; lets callers skip the lock while it is zero.
    source_count: AtomicUsize,
}

impl LoginLimiter {
    /// A limiter that delays answers so long at most; zero never does.
    pub fn new(delay_max: Duration) -> LoginLimiter {
        LoginLimiter { delay_max, sources: Mutex::default(), source_count: AtomicUsize::new(0) }
    }

    /// Whether an attempt may be made now. If not, its credentials must not be looked at.
    pub fn may_try(&self, peer: Option<SocketAddr>) -> bool {
        self.may_try_at(peer, Instant::now())
    }

    /// Notes wrong credentials, and logs them at most once a minute for each address; returns how
    /// long the answer has to wait.
    pub fn fail(&self, protocol: &str, peer: Option<SocketAddr>) -> Duration {
        let (delay, due) = self.fail_at(peer, Instant::now());
        if let Some(count) = due {
            let address = peer.map_or("an unknown address".to_string(), |peer| {
                peer.ip().to_canonical().to_string()
            });
            match count {
                1 => tracing::warn!("{protocol}: failed login from {address}"),
                _ => tracing::warn!(
                    "{protocol}: {count} failed logins from {address} since the last such line"
                ),
            }
        }
        delay
    }

    fn may_try_at(&self, peer: Option<SocketAddr>, now: Instant) -> bool {
        if self.source_count.load(Relaxed) == 0 {
            return true;
        }
        let mut sources = self.sources();
        let Some(failures) = sources.get_mut(&Source::of(peer)) else { return true };
        failures.forget(now);
        failures.waiting.len() < WAITING_MAX
    }

    /// Counts a failure; returns the delay of its answer, and how many failures a line in the log is
    /// due for.
    fn fail_at(&self, peer: Option<SocketAddr>, now: Instant) -> (Duration, Option<u64>) {
        let mut sources = self.sources();
        let source = Source::of(peer);
        if SOURCES_MAX <= sources.len() && !sources.contains_key(&source) {
            make_room(&mut sources, now);
        }
        let failures = sources.entry(source).or_insert_with(|| Failures::new(now));
        failures.forget(now);
        failures.count = (failures.count + 1.0).min(FAILURES_MAX);
        let delay = self.delay_after(failures.count);
        if !delay.is_zero() {
            failures.waiting.push(now + delay);
        }
        let due = failures.count_for_log(now);
        self.source_count.store(sources.len(), Relaxed);
        (delay, due)
    }

    fn delay_after(&self, failures: f64) -> Duration {
        if failures <= FREE_FAILURES || self.delay_max.is_zero() {
            return Duration::ZERO;
        }
        // No more than `FAILURES_MAX` times doubled.
        let doubled = (failures - FREE_FAILURES - 1.0).max(0.0).exp2();
        DELAY_MIN.mul_f64(doubled).min(self.delay_max)
    }

    fn sources(&self) -> MutexGuard<'_, HashMap<Source, Failures>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the addresses without failures, or the one with the fewest.
fn make_room(sources: &mut HashMap<Source, Failures>, now: Instant) {
    sources.retain(|_, failures| {
        failures.forget(now);
        !failures.is_forgotten(now)
    });
    if sources.len() < SOURCES_MAX {
        return;
    }
    let least = sources.iter().min_by(|(_, a), (_, b)| a.count.total_cmp(&b.count));
    if let Some(source) = least.map(|(source, _)| *source) {
        sources.remove(&source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn peer(number: u32) -> Option<SocketAddr> {
        Some(SocketAddr::from((Ipv4Addr::from_bits(number), 1)))
    }

    fn limiter() -> LoginLimiter {
        LoginLimiter::new(Duration::from_secs(1))
    }

    #[test]
    fn delays_grow_and_are_forgotten() {
        let (limiter, now) = (limiter(), Instant::now());
        let millis = |at| limiter.fail_at(peer(1), at).0.as_millis();
        let delays: Vec<u128> = (0..11).map(|_| millis(now)).collect();
        assert_eq!(delays, [0, 0, 0, 0, 0, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(limiter.fail_at(peer(2), now).0, Duration::ZERO, "another address");
        assert_eq!(millis(now + 9 * FORGET_AFTER), 0);
    }

    #[test]
    fn few_attempts_of_an_address_wait_at_one_time() {
        let (limiter, now) = (limiter(), Instant::now());
        let mut refused = 0;
        for _ in 0..1000 {
            match limiter.may_try_at(peer(1), now) {
                true => {
                    limiter.fail_at(peer(1), now);
                }
                false => refused += 1,
            }
        }
        assert_eq!(refused, 1000 - 5 - WAITING_MAX);
        assert!(limiter.may_try_at(peer(2), now), "another address");
        assert!(limiter.may_try_at(peer(1), now + Duration::from_secs(1)), "later");
    }

    #[test]
    fn memory_is_bounded() {
        let (limiter, now) = (limiter(), Instant::now());
        for _ in 0..20 {
            limiter.fail_at(peer(u32::MAX), now);
        }
        for number in 0..2 * SOURCES_MAX as u32 {
            limiter.fail_at(peer(number), now);
        }
        assert_eq!(limiter.sources().len(), SOURCES_MAX);
        assert!(limiter.sources().contains_key(&Source::of(peer(u32::MAX))), "the worst stays");
        let all = limiter.sources().values().map(|one| one.waiting.len()).max();
        assert!(all < Some(32), "{all:?}");
    }

    #[test]
    fn networks_of_ipv6_are_one_source() {
        let of = |text: &str| Source::of(Some(SocketAddr::new(text.parse().expect(text), 1)));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }

    #[test]
    fn failures_of_an_address_are_logged_once_a_minute() {
        let (limiter, now) = (LoginLimiter::new(Duration::ZERO), Instant::now());
        let due = |number, at| limiter.fail_at(peer(number), at).1;
        assert_eq!(due(1, now), Some(1));
        assert_eq!([due(1, now), due(1, now + LOG_PAUSE / 2)], [None, None]);
        assert_eq!(due(2, now), Some(1), "another address");
        assert_eq!(due(1, now + LOG_PAUSE), Some(3));
        assert_eq!(due(1, now + LOG_PAUSE), None);
    }

    #[test]
    fn no_delay_limits_nothing() {
        let limiter = LoginLimiter::new(Duration::ZERO);
        for _ in 0..100 {
            assert_eq!(limiter.fail("HTTP", peer(1)), Duration::ZERO);
            assert!(limiter.may_try(peer(1)));
        }
    }
}
