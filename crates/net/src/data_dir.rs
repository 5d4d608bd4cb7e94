//! Rights of the data directory: its owner's alone, as it holds samples, keys and passwords.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Rights of everybody but the owner.
const OTHERS: u32 = 0o077;

/// Takes the rights of everybody but the owner from a directory that has some: one of an earlier
/// version, or one that somebody else made.
pub fn restrict(directory: &Path) {
    let Ok(metadata) = std::fs::metadata(directory) else { return };
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return;
    }
    let (shown, own) = (directory.display(), mode & !OTHERS);
    match std::fs::set_permissions(directory, Permissions::from_mode(own)) {
        Ok(()) => tracing::info!("{shown} had mode {mode:o} and has {own:o}: its owner's alone"),
        Err(error) => tracing::warn!(
            "others may read {shown}: its mode {mode:o} cannot be changed to {own:o}: {error}"
        ),
    }
}
