//! The exclusive lock of a directory: an advisory lock on a file in it, which holds the owner's pid.
//!
//! The system drops the lock when the process dies, however it dies, so a left-over file means
//! nothing. The file itself is never removed: two processes could else lock two different ones.

use super::FILE_MODE;
use crate::LOCK_FILE;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Locks `directory` until the value is dropped.
pub(super) fn lock(directory: &Path) -> io::Result<Box<dyn Send + Sync>> {
    let path = directory.join(LOCK_FILE);
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(FILE_MODE);
    let mut file = options.open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(held_by(&path)),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
    // Closing the file gives the lock back.
    Ok(Box::new(file))
}

/// The error that names the owner, as far as its file tells.
fn held_by(path: &Path) -> io::Error {
    let text = fs::read_to_string(path).unwrap_or_default();
    let owner = match text.trim().parse::<u32>() {
        Ok(pid) => format!("in use by process {pid}"),
        Err(_) => "in use by another process".to_owned(),
    };
    io::Error::new(io::ErrorKind::WouldBlock, owner)
}
