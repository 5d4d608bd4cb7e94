//! How much a client may leave with its connection: prepared statements, and portals with their
//! parameters.

use std::collections::HashMap;
use tokio::time::Instant;

/// Prepared statements, and portals, of one connection.
pub const COUNT_MAX: usize = 10_000;
/// Bytes of their texts and parameters.
pub const SIZE_MAX: usize = 32 << 20;
/// What one takes beside its text.
const OVERHEAD: usize = 256;

/// The sizes of things by their names.
#[derive(Debug, Default)]
struct Sizes {
    by_name: HashMap<String, usize>,
    size: usize,
}

impl Sizes {
    fn put(&mut self, name: &str, size: usize) -> Result<(), String> {
        let size = size.saturating_add(OVERHEAD + name.len());
        let before = self.by_name.get(name).copied();
        let count = self.by_name.len() + usize::from(before.is_none());
        let total = (self.size - before.unwrap_or(0)).saturating_add(size);
        if COUNT_MAX < count || SIZE_MAX < total {
            return Err(format!(
                "a connection keeps {COUNT_MAX} prepared statements, and as many portals, of \
                 {SIZE_MAX} bytes at most"
            ));
        }
        self.by_name.insert(name.to_string(), size);
        self.size = total;
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        if let Some(size) = self.by_name.remove(name) {
            self.size -= size;
        }
    }

    fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.by_name.retain(|name, _| is_kept(name));
        self.size = self.by_name.values().sum();
    }

    fn clear(&mut self) -> Vec<String> {
        self.size = 0;
        self.by_name.drain().map(|(name, _)| name).collect()
    }
}

/// What a client has left.
#[derive(Debug, Default)]
pub struct Kept {
    statements: Sizes,
    portals: Sizes,
    /// Until when portals wait for their client.
    waiting: HashMap<String, Instant>,
    /// Portals that outlive their transaction, and whether it is committed.
    held: HashMap<String, bool>,
}

impl Kept {
    /// Heeds a statement that is to be kept, or replaced.
    ///
    /// # Errors
    /// In words, when that is too much.
    pub fn put_statement(&mut self, name: &str, size: usize) -> Result<(), String> {
        self.statements.put(name, size)
    }

    /// One is forgotten.
    pub fn remove_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// All are forgotten; their names.
    pub fn clear_statements(&mut self) -> Vec<String> {
        self.statements.clear()
    }

    /// As [`Kept::put_statement`].
    ///
    /// # Errors
    /// In words, when that is too much.
    pub fn put_portal(&mut self, name: &str, size: usize) -> Result<(), String> {
        self.portals.put(name, size)?;
        self.waiting.remove(name);
        Ok(())
    }

    /// One is forgotten.
    pub fn remove_portal(&mut self, name: &str) {
        self.portals.remove(name);
        self.waiting.remove(name);
        self.held.remove(name);
    }

    /// Marks a portal as one that outlives its transaction.
    pub fn hold_portal(&mut self, name: &str) {
        self.held.insert(name.to_string(), false);
    }

    /// Forgets the held portals of a transaction that is not committed, and returns their names.
    pub fn take_uncommitted(&mut self) -> Vec<String> {
        let names = self.held.iter().filter(|(_, is_old)| !**is_old);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.remove_portal(name));
        names
    }

    /// Ends a transaction: forgets all portals but those held, and returns the names of these.
    pub fn end_transaction(&mut self, is_committed: bool) -> Vec<String> {
        self.held.retain(|_, is_old| *is_old || is_committed);
        self.held.values_mut().for_each(|is_old| *is_old = true);
        let held = &self.held;
        self.waiting.retain(|name, _| held.contains_key(name));
        self.portals.retain(|name| held.contains_key(name));
        self.held.keys().cloned().collect()
    }

    /// A portal has rows left, and waits for its client; for the first time until then.
    pub fn portal_waits(&mut self, name: &str, until: Instant) {
        self.waiting.entry(name.to_string()).or_insert(until);
    }

    /// A portal has no rows left: it holds nothing that others want.
    pub fn portal_is_over(&mut self, name: &str) {
        self.waiting.remove(name);
    }

    /// When the first of the portals that wait has had its time.
    pub fn waiting_until(&self) -> Option<Instant> {
        self.waiting.values().min().copied()
    }

    /// Forgets the portals that have had their time by now; their names.
    pub fn take_late(&mut self, now: Instant) -> Vec<String> {
        let late = self.waiting.iter().filter(|(_, until)| **until <= now);
        let late: Vec<String> = late.map(|(name, _)| name.clone()).collect();
        late.iter().for_each(|name| self.remove_portal(name));
        late
    }

    /// All are forgotten.
    pub fn clear_portals(&mut self) {
        self.portals.clear();
        self.waiting.clear();
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn count_and_size_are_bounded_and_come_back() {
        let mut kept = Kept::default();
        for number in 0..COUNT_MAX {
            kept.put_statement(&number.to_string(), 1).unwrap();
        }
        assert!(kept.put_statement("x", 1).is_err());
        kept.put_statement("7", 2).unwrap();
        kept.remove_statement("7");
        kept.put_statement("x", 1).unwrap();
        assert_eq!(kept.clear_statements().len(), COUNT_MAX);
        assert!(kept.put_statement("x", SIZE_MAX).is_err());
        kept.put_portal("x", SIZE_MAX / 2).unwrap();
        kept.put_portal("x", SIZE_MAX / 2).unwrap();
        assert!(kept.put_portal("y", SIZE_MAX / 2).is_err());
        kept.clear_portals();
        kept.put_portal("y", SIZE_MAX / 2).unwrap();
        kept.remove_portal("y");
        assert_eq!(kept.portals.size, 0);
    }

    #[test]
    fn held_portals_outlive_transactions_that_are_committed() {
        let mut kept = Kept::default();
        for name in ["plain", "held"] {
            kept.put_portal(name, 10).unwrap();
        }
        kept.hold_portal("held");
        assert_eq!(kept.end_transaction(true), ["held"]);
        assert_eq!(kept.portals.size, 10 + OVERHEAD + "held".len());
        kept.put_portal("lost", 10).unwrap();
        kept.hold_portal("lost");
        assert_eq!(kept.end_transaction(false), ["held"]);
        kept.put_portal("plain", 10).unwrap();
        kept.put_portal("lost", 10).unwrap();
        kept.hold_portal("lost");
        assert_eq!(kept.take_uncommitted(), ["lost"]);
        assert_eq!(kept.portals.by_name.len(), 2);
        kept.remove_portal("held");
        assert_eq!(kept.end_transaction(true), [""; 0]);
        assert_eq!(kept.portals.size, 0);
    }

    #[test]
    fn each_portal_has_its_own_time() {
        let mut kept = Kept::default();
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        for (name, seconds) in [("a", 3), ("b", 1), ("c", 2)] {
            kept.put_portal(name, 1).unwrap();
            kept.portal_waits(name, at(seconds));
        }
        // Asking again does not lengthen it.
        kept.portal_waits("b", at(9));
        kept.portal_is_over("c");
        assert_eq!(kept.waiting_until(), Some(at(1)));
        assert_eq!(kept.take_late(at(2)), ["b"]);
        assert_eq!(kept.waiting_until(), Some(at(3)));
        // Another portal of that name has a time of its own.
        kept.put_portal("a", 1).unwrap();
        assert_eq!(kept.waiting_until(), None);
        assert_eq!(kept.portals.by_name.len(), 2);
    }
}
