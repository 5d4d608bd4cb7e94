//! Who may cancel whose statement: a connection of its own brings the number and the key that the
//! other one was given.

use pgwire::messages::startup::SecretKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subtle::ConstantTimeEq as _;
use tokio::sync::Notify;

/// By number, the key that cancels and who hears of it.
type ByNumber = HashMap<i32, (Vec<u8>, Arc<Notify>)>;

/// All open connections that may be cancelled.
#[derive(Default)]
pub struct Cancels(Mutex<ByNumber>);

impl Cancels {
    fn all(&self) -> MutexGuard<'_, ByNumber> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, whose statements hear of `cancelled`.
    pub fn add(&self, pid: i32, key: &SecretKey, cancelled: &Arc<Notify>) {
        self.all().insert(pid, (bytes_of(key), cancelled.clone()));
    }

    /// Forgets a connection that has ended.
    pub fn forget(&self, cancelled: &Arc<Notify>) {
        self.all().retain(|_, (_, one)| !Arc::ptr_eq(one, cancelled));
    }

    /// Cancels what a connection does just now; nothing where the key is another.
    pub fn cancel(&self, pid: i32, key: &SecretKey) {
        if let Some((known, cancelled)) = self.all().get(&pid)
            && bool::from(known.ct_eq(&bytes_of(key)))
        {
            cancelled.notify_waiters();
        }
    }
}

fn bytes_of(key: &SecretKey) -> Vec<u8> {
    match key {
        SecretKey::I32(number) => number.to_be_bytes().to_vec(),
        SecretKey::Bytes(bytes) => bytes.to_vec(),
    }
}
