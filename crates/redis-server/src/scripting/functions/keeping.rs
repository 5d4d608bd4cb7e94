//! The libraries on disk: written out of the locks, once for all who changed them meanwhile.
//!
//! ```text
//! change (keys and engine are locked) ─► note: their bytes, a number ─► keep: one writes the newest,
//!                                                     who comes meanwhile waits, and writes for all
//! ```

use crate::scripting::sha1_hex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is to be on disk, and what is.
#[derive(Default)]
pub struct Keeping {
    newest: Mutex<Newest>,
    /// The number of what is on disk. Locked by the one who writes.
    writing: Mutex<()>,
    written: AtomicU64,
}

/// All libraries as they were noted last.
#[derive(Default)]
struct Newest {
    /// Grows with each change.
    number: u64,
    /// Of their bytes; none before the first change of this run.
    digest: Option<String>,
    /// They, until they are on disk.
    bytes: Vec<u8>,
}

impl Keeping {
    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what all libraries are now. Returns its number, for [`Keeping::keep`]. Clients load the
    /// same library at each of their starts: that is no change.
    pub fn note(&self, bytes: Vec<u8>) -> u64 {
        let digest = sha1_hex(&bytes);
        let mut newest = self.newest();
        if newest.digest.as_ref() != Some(&digest) {
            *newest = Newest { number: newest.number + 1, digest: Some(digest), bytes };
        }
        newest.number
    }

    /// Whether what was noted under that number is on disk, or something newer.
    pub fn is_kept(&self, number: u64) -> bool {
        number <= self.written.load(Relaxed)
    }

    /// Has `write` put the newest libraries on disk, unless those of that number, or newer ones, are
    /// there.
    ///
    /// # Errors
    /// As `write`.
    pub fn keep<E>(
        &self,
        number: u64,
        write: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_kept(number) {
            return Ok(());
        }
        let (number, bytes) = {
            let mut newest = self.newest();
            (newest.number, std::mem::take(&mut newest.bytes))
        };
        let written = write(&bytes);
        match written {
            Ok(()) => self.written.store(number, Relaxed),
            Err(_) => {
                let mut newest = self.newest();
                if newest.number == number {
                    // For whoever tries again with the same libraries.
                    newest.bytes = bytes;
                }
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier, mpsc};

    #[test]
    fn who_comes_while_one_writes_is_written_together() {
        const OTHERS: usize = 7;
        let keeping = Arc::new(Keeping::default());
        let (began, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let first = {
            let keeping = keeping.clone();
            let number = keeping.note(vec![0]);
            std::thread::spawn(move || {
                keeping.keep(number, |bytes| {
                    began.send(bytes.to_vec()).unwrap();
                    may_go_on.recv().map_err(|_| ())
                })
            })
        };
        assert_eq!(has_begun.recv().unwrap(), [0]);
        let (barrier, writes) = (Arc::new(Barrier::new(OTHERS)), Arc::<Mutex<Vec<_>>>::default());
        let others = (1..=OTHERS).map(|n| {
            let (keeping, barrier, writes) = (keeping.clone(), barrier.clone(), writes.clone());
            std::thread::spawn(move || {
                let number = keeping.note(vec![n as u8; n]);
                barrier.wait();
                keeping.keep(number, |bytes| {
                    writes.lock().unwrap().push(bytes.to_vec());
                    Ok::<(), ()>(())
                })
            })
        });
        let others: Vec<_> = others.collect();
        // All have noted what they have when the first one ends, or at least one has not: then it
        // writes for itself.
        while keeping.newest().number < 1 + OTHERS as u64 {
            std::thread::yield_now();
        }
        go_on.send(()).unwrap();
        assert!(first.join().unwrap().is_ok());
        assert!(others.into_iter().all(|other| other.join().unwrap().is_ok()));
        assert_eq!(writes.lock().unwrap().len(), 1, "one for all");
        assert!(keeping.is_kept(1 + OTHERS as u64));
    }

    #[test]
    fn what_could_not_be_written_is_tried_again() {
        let keeping = Keeping::default();
        let number = keeping.note(b"a".to_vec());
        assert_eq!(keeping.keep(number, |_| Err("full")), Err("full"));
        assert!(!keeping.is_kept(number));
        assert_eq!(keeping.note(b"a".to_vec()), number, "no change");
        let mut written = Vec::new();
        let kept = keeping.keep(number, |bytes| {
            written = bytes.to_vec();
            Ok::<(), &str>(())
        });
        assert!(kept.is_ok() && keeping.is_kept(number));
        assert_eq!(written, b"a");
    }
}
