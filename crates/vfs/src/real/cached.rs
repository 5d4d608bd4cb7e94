//! Reads that do not wait for the disk: `preadv2` with `RWF_NOWAIT`, where there is such a thing.

use std::fs::File;
use std::io;

/// Reads from `offset` on what the system has in memory; none if it has not, or does not say.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(super) fn read(file: &File, offset: u64, into: &mut [u8]) -> io::Result<Option<usize>> {
    use std::os::fd::AsRawFd as _;
    let Ok(offset) = libc::off_t::try_from(offset) else { return Ok(None) };
    let place = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: the descriptor is open while `file` is borrowed, and the one place that is written to
    // is `into`, which is borrowed for as long and is as long as said.
    let got = unsafe { libc::preadv2(file.as_raw_fd(), &place, 1, offset, libc::RWF_NOWAIT) };
    if let Ok(got) = usize::try_from(got) {
        return Ok(Some(got));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Not in memory, or asked of a file system or a kernel that cannot tell.
        Some(libc::EAGAIN | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::EINTR) => {
            Ok(None)
        }
        _ => Err(error),
    }
}

/// Here nobody can tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn read(_file: &File, _offset: u64, _into: &mut [u8]) -> io::Result<Option<usize>> {
    Ok(None)
}
