//! The release binary's allocator gives memory back.
//!
//! jemalloc returns freed pages after ten seconds, but only while somebody allocates in the same
//! arena; what the threads of a burst freed would stay for ever. Its own remedy, a thread, stops
//! the others from returning anything themselves, and so lets peaks grow.
//! Measured with a million series of unrelated labels, half a minute after they came: 129 MB of memory
//! of our own instead of 222 (docs/benchmarks/targets.md).

/// Name of the allocator, as Redis reports it.
pub const NAME: &str = if cfg!(feature = "jemalloc") { "jemalloc" } else { "libc" };

/// Which freed pages are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// Those that nobody wanted again for some seconds.
    Idle,
    /// All.
    All,
}

/// Gives freed pages back to the system.
#[cfg(feature = "jemalloc")]
#[allow(unsafe_code)]
pub fn give_back(freed: Freed) {
    // 4096 is MALLCTL_ARENAS_ALL: every arena.
    let command = match freed {
        Freed::Idle => c"arena.4096.decay",
        Freed::All => c"arena.4096.purge",
    };
    let nothing = std::ptr::null_mut();
    // SAFETY: the name ends with a zero; both commands neither read nor write through the other
    // pointers, and may be called from any thread at any time.
    let code = unsafe {
        tikv_jemalloc_sys::mallctl(command.as_ptr(), nothing, nothing.cast(), nothing, 0)
    };
    debug_assert_eq!(code, 0, "{command:?} is known");
}

/// The system's allocator, of tests, looks after itself.
#[cfg(not(feature = "jemalloc"))]
pub fn give_back(_freed: Freed) {}
