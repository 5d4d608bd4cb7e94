//! The mutex of the hub.

use super::Hub;
use parking_lot::{Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

/// The hub, for one thread at a time. A panic of that thread leaves it usable.
pub struct HubMutex(Mutex<Hub>);

/// The locked hub. Dropping it unlocks.
pub struct HubGuard<'h>(MutexGuard<'h, Hub>);

impl HubMutex {
    /// Makes an unlocked mutex.
    pub fn new(hub: Hub) -> HubMutex {
        HubMutex(Mutex::new(hub))
    }

    /// Waits for the hub.
    #[inline]
    pub fn lock(&self) -> HubGuard<'_> {
        HubGuard(self.0.lock())
    }
}

impl Deref for HubGuard<'_> {
    type Target = Hub;

    #[inline]
    fn deref(&self) -> &Hub {
        &self.0
    }
}

impl DerefMut for HubGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Hub {
        &mut self.0
    }
}
