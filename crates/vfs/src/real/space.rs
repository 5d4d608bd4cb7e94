//! How much room a disk has.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that an unprivileged process may still write to the disk that holds `path`.
#[allow(unsafe_code)]
pub(super) fn free_space(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` is a C string that outlives the call, `answer` is room for one `statvfs`.
    let code = unsafe { libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was zeroed, which is a valid `statvfs` (integers only), and the call filled it.
    let answer = unsafe { answer.assume_init() };
    // The fields' types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    let (blocks, block_size) = (answer.f_bavail as u64, answer.f_frsize as u64);
    Ok(blocks.saturating_mul(block_size))
}
