//! Threads that may wait for another database themselves.
//!
//! A question may come from a thread that must not block on a socket, such as a runtime's. So others are
//! asked on threads made for it, unless whoever runs a thread says that it may wait: a thread, and being
//! woken by it, take as long as a short answer.

use std::cell::Cell;

thread_local! {
    static MAY_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Ends that this thread may wait, also when it panics.
struct Until(bool);

impl Drop for Until {
    fn drop(&mut self) {
        MAY_WAIT.set(self.0);
    }
}

/// Does `work` on a thread that may wait for answers of other databases.
pub fn waiting<T>(work: impl FnOnce() -> T) -> T {
    let _until = Until(MAY_WAIT.replace(true));
    work()
}

/// Whether this thread may.
pub(crate) fn may_wait() -> bool {
    MAY_WAIT.get()
}
