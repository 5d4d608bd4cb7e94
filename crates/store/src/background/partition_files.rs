//! Files of a partition that nothing names: they go, and what cannot be removed stays listed.

use crate::base::file_names::{INDEX_DIR, PARTS_DIR};
use crate::base::ground::Ground;
use crate::partition::Partition;
use crate::{Error, Result};

/// Removes what a failure left, unless nobody knows any more what the disk holds.
pub(crate) fn remove_failed(
    ground: &Ground,
    partition: &Partition,
    files: &[String],
    error: &Error,
) -> Result<()> {
    match error.leaves_disk_in_doubt() {
        true => Ok(()),
        false => remove_done(ground, partition, files),
    }
}

/// Removes files of the list of those that may go. What cannot be removed stays in the list.
///
/// # Errors
/// When a removal cannot be made durable.
pub(crate) fn remove_done(ground: &Ground, partition: &Partition, files: &[String]) -> Result<()> {
    let mut gone = Vec::new();
    for file in files {
        match ground.vfs.remove(&partition.dir.join(file)) {
            Err(error) if !error.is_not_found() => {
                ground.health.note_failure("Remove", &error.into());
            }
            _ => gone.push(file.clone()),
        }
    }
    for folder in [PARTS_DIR, INDEX_DIR] {
        if gone.iter().any(|file| file.starts_with(folder)) {
            ground.vfs.sync_dir(&partition.dir.join(folder))?;
        }
    }
    partition.write().disk.unlist(&gone);
    Ok(())
}
