//! Who may cancel whose statement: a connection of its own brings the number and the key that the
//! other one was given.

use futures::FutureExt as _;
use pgwire::messages::startup::SecretKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subtle::ConstantTimeEq as _;
use tokio::sync::{Notify, watch};

/// How a connection's statement hears that it is to end. It is heard whether or not anybody waits just
/// then: between two batches of rows nobody does.
pub struct Cancelled {
    requested: Notify,
    /// Whether the client has closed the connection, which ends all its statements.
    is_gone: watch::Sender<bool>,
}

impl Default for Cancelled {
    fn default() -> Cancelled {
        Cancelled { requested: Notify::new(), is_gone: watch::Sender::new(false) }
    }
}

impl Cancelled {
    /// A statement begins: what was cancelled before it is not it.
    pub fn begin(&self) {
        let _ = self.requested.notified().now_or_never();
    }

    /// Waits until the statement is cancelled.
    pub async fn heard(&self) {
        let mut is_gone = self.is_gone.subscribe();
        tokio::select! {
            biased;
            () = self.requested.notified() => {}
            // The sender is here.
            _ = is_gone.wait_for(|is_gone| *is_gone) => {}
        }
    }

    /// Cancels this statement and those that follow: their client has gone.
    pub fn client_is_gone(&self) {
        self.is_gone.send_replace(true);
    }

    fn tell(&self) {
        self.requested.notify_one();
    }
}

/// By number, the key that cancels and who hears of it.
type ByNumber = HashMap<i32, (Vec<u8>, Arc<Cancelled>)>;

/// All open connections that may be cancelled.
#[derive(Default)]
pub struct Cancels(Mutex<ByNumber>);

impl Cancels {
    fn all(&self) -> MutexGuard<'_, ByNumber> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, whose statements hear of `cancelled`.
    pub fn add(&self, pid: i32, key: &SecretKey, cancelled: &Arc<Cancelled>) {
        self.all().insert(pid, (bytes_of(key), cancelled.clone()));
    }

    /// Forgets a connection that has ended.
    pub fn forget(&self, cancelled: &Arc<Cancelled>) {
        self.all().retain(|_, (_, one)| !Arc::ptr_eq(one, cancelled));
    }

    /// Cancels what a connection does just now; nothing where the key is another.
    pub fn cancel(&self, pid: i32, key: &SecretKey) {
        if let Some((known, cancelled)) = self.all().get(&pid)
            && bool::from(known.ct_eq(&bytes_of(key)))
        {
            cancelled.tell();
        }
    }
}

fn bytes_of(key: &SecretKey) -> Vec<u8> {
    match key {
        SecretKey::I32(number) => number.to_be_bytes().to_vec(),
        SecretKey::Bytes(bytes) => bytes.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_heard_later_and_by_one_statement_alone() {
        let (cancels, cancelled) = (Cancels::default(), Arc::new(Cancelled::default()));
        cancels.add(7, &SecretKey::I32(1), &cancelled);
        cancels.cancel(7, &SecretKey::I32(2));
        assert!(cancelled.heard().now_or_never().is_none());
        cancels.cancel(7, &SecretKey::I32(1));
        assert!(cancelled.heard().now_or_never().is_some());
        cancels.cancel(7, &SecretKey::I32(1));
        cancelled.begin();
        assert!(cancelled.heard().now_or_never().is_none());
        cancels.forget(&cancelled);
        cancels.cancel(7, &SecretKey::I32(1));
        assert!(cancelled.heard().now_or_never().is_none());
        cancelled.client_is_gone();
        cancelled.begin();
        assert!(cancelled.heard().now_or_never().is_some());
    }
}
