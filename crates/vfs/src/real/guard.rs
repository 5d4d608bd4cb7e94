//! Keeps the process alive when a page of a mapped file cannot be read (SIGBUS): the page becomes
//! zeros, and its map counts it.
//!
//! ```text
//! read ──► page is not there ──► SIGBUS ──► whose map? ──┬─► ours: zeros over the page, count, go on
//!          (bad sector, file cut short)                   └─► not ours: as before we came
//! ```
//!
//! The handler runs in the middle of any code, so it takes no lock and no memory: maps are listed
//! in a table of fixed size whose entries are atomics. An entry is complete before its map is read
//! and is cleared after the last read of it, so what the handler looks for is there and stands still;
//! entries of others may change meanwhile and are never mistaken for it, as no two maps overlap.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Maps watched at a time: files of parts and index segments of all months.
const MAPS_MAX: usize = 16 << 10;

/// A map that lives.
struct Entry {
    /// Its first address; 0 while the entry is free.
    start: AtomicUsize,
    /// One past its last.
    end: AtomicUsize,
    /// Pages that became zeros.
    faults: AtomicU32,
}

static ENTRIES: [Entry; MAPS_MAX] = [const {
    Entry { start: AtomicUsize::new(0), end: AtomicUsize::new(0), faults: AtomicU32::new(0) }
}; MAPS_MAX];
/// Entries from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Entries below that are free again.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static INSTALL: Once = Once::new();
/// Bytes of a page.
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(4096);

/// What the signal did before we came.
struct Before {
    is_known: AtomicBool,
    action: UnsafeCell<MaybeUninit<libc::sigaction>>,
}

// SAFETY: the action is written once, by `install`, before `is_known` is set (release), and is only
// read after that was seen (acquire).
#[allow(unsafe_code)]
unsafe impl Sync for Before {}

static BEFORE: Before =
    Before { is_known: AtomicBool::new(false), action: UnsafeCell::new(MaybeUninit::uninit()) };

/// Watches over a map until it is dropped, which must be before the map is.
pub(super) struct Guard {
    idx: usize,
}

/// Lists a map; `None` when there is no room for it, or the handler cannot be installed.
pub(super) fn watch(map: &[u8]) -> Option<Guard> {
    INSTALL.call_once(install);
    if !BEFORE.is_known.load(Ordering::Acquire) {
        return None;
    }
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let idx = match free.pop() {
        Some(idx) => idx,
        None => {
            let idx = USED.load(Ordering::Relaxed);
            if MAPS_MAX <= idx {
                return None;
            }
            USED.store(idx + 1, Ordering::Release);
            idx
        }
    };
    let start = map.as_ptr() as usize;
    let entry = &ENTRIES[idx];
    entry.faults.store(0, Ordering::Relaxed);
    entry.end.store(start + map.len(), Ordering::Release);
    entry.start.store(start, Ordering::Release);
    Some(Guard { idx })
}

impl Guard {
    /// Pages of the map that became zeros.
    pub(super) fn faults(&self) -> u32 {
        ENTRIES[self.idx].faults.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        ENTRIES[self.idx].start.store(0, Ordering::Release);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.idx);
    }
}

#[allow(unsafe_code)]
fn install() {
    // SAFETY: `sysconf` reads a constant of the system.
    let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if let Ok(size @ 1..) = usize::try_from(page_size) {
        PAGE_SIZE.store(size, Ordering::Relaxed);
    }
    // SAFETY: all bits zero are a valid `sigaction`; its fields are set below.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_fault as *const () as libc::sighandler_t;
    // On the thread's other stack, where it has one: the fault may be near the end of its own.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the set is ours; nobody else writes `BEFORE` as `Once` runs this once, and
    // `is_known` is not set yet; `on_fault` has the signature that `SA_SIGINFO` asks for.
    let done = unsafe {
        libc::sigemptyset(&mut ours.sa_mask);
        // What was before is known before ours may run.
        libc::sigaction(libc::SIGBUS, std::ptr::null(), BEFORE.action.get().cast()) == 0 && {
            BEFORE.is_known.store(true, Ordering::Release);
            libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut()) == 0
        }
    };
    BEFORE.is_known.store(done, Ordering::Release);
}

/// The handler. Only calls what may be called from one.
#[allow(unsafe_code)]
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system hands over a valid record, which for SIGBUS has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    if !put_zeros(address) {
        pass_on(signal, info, context);
    }
}

/// Puts a page of zeros where an address of one of our maps is; whether it was one.
#[allow(unsafe_code)]
fn put_zeros(address: usize) -> bool {
    let used = USED.load(Ordering::Acquire).min(MAPS_MAX);
    let is_hit = |entry: &&Entry| {
        let start = entry.start.load(Ordering::Acquire);
        let end = entry.end.load(Ordering::Acquire);
        // Both are of one map when the first is still there.
        start != 0
            && start <= address
            && address < end
            && entry.start.load(Ordering::Acquire) == start
    };
    let Some(entry) = ENTRIES[..used].iter().find(is_hit) else { return false };
    let page_size = PAGE_SIZE.load(Ordering::Relaxed);
    let page = address - address % page_size;
    // Before the zeros can be seen: who reads them finds the number grown.
    entry.faults.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the page lies in a map of ours, which lives as somebody reads it: nothing else can be
    // there. The thread's error number is put back, as the code that was interrupted may look at it.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let mapped = libc::mmap(page as *mut c_void, page_size, libc::PROT_READ, flags, -1, 0);
        *errno = before;
        mapped != libc::MAP_FAILED
    }
}

/// Does what was done before we came: the handler that was there, or the system's own.
#[allow(unsafe_code)]
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the handler is only installed after the action was written. One with `SA_SIGINFO` has
    // this signature, one without takes the number alone; the two constants are no functions.
    unsafe {
        let before = (*BEFORE.action.get()).assume_init_ref();
        match before.sa_sigaction {
            // The instruction runs again, and the system ends the process.
            libc::SIG_DFL | libc::SIG_IGN => {
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &default, std::ptr::null_mut());
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{RealVfs, Vfs};
    use std::fs::File;

    #[test]
    fn a_file_cut_short_reads_as_zeros_and_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part");
        std::fs::write(&path, vec![7u8; 40_000]).unwrap();
        let (map, other) = (RealVfs::new().map(&path).unwrap(), RealVfs::new().map(&path).unwrap());
        assert_eq!((map[0], map.faults()), (7, 0));
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert_eq!((map[0], map[39_999], map[39_998]), (7, 0, 0), "what is gone is zeros");
        assert_eq!((map.faults(), map.has_faulted(), other.faults()), (1, true, 0), "one page");
        assert_eq!(map[4096], 0);
        assert_eq!(map.faults(), 2, "each page for itself");
        map.release();
        assert_eq!((map[0], map[4096], map.faults()), (7, 0, 2), "zeros stay zeros");
        assert_eq!(other[5000], 0, "each map for itself");
        drop((map, other));
        std::fs::write(&path, vec![9u8; 40_000]).unwrap();
        let map = RealVfs::new().map(&path).unwrap();
        assert_eq!((map[39_999], map.faults()), (9, 0), "an entry starts anew");
    }

    #[test]
    fn many_threads_meet_the_same_hole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part");
        std::fs::write(&path, vec![7u8; 1 << 20]).unwrap();
        let map = RealVfs::new().map(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(map.iter().all(|byte| *byte == 0)));
            }
        });
        assert!(map.faults() >= 256);
    }
}
