//! Moves what is damaged out of the way: to `DATA/damaged/TIME/`, under the path it had.

use crate::Result;
use crate::base::period::PartitionLength;
use crate::offline::verify::files::DAMAGED_DIR;
use model::sample::{NANOS_PER_DAY, NANOS_PER_SECOND};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{Vfs, create_new_dir};

/// The folder of one repair.
pub struct Aside {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    folder: PathBuf,
}

impl Aside {
    /// Makes a new folder, named by the clock.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn create(vfs: Arc<dyn Vfs>, dir: &Path) -> Result<Aside> {
        let time = time_name(vfs.now());
        let folder = create_new_dir(vfs.as_ref(), &dir.join(DAMAGED_DIR), &time)?;
        Ok(Aside { vfs, dir: dir.to_path_buf(), folder })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Moves a file, or a directory, that nothing names any more.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn take(&self, path: &Path) -> Result<()> {
        let to = self.place_of(path)?;
        self.vfs.rename(path, &to)?;
        for moved in [&to, path] {
            self.vfs.sync_dir(moved.parent().unwrap_or(&self.dir))?;
        }
        Ok(())
    }

    /// Gives a file that is about to be replaced a second name, if it is there.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn keep(&self, path: &Path) -> Result<()> {
        if !self.vfs.exists(path)? {
            return Ok(());
        }
        let mut to = self.place_of(path)?;
        // A manifest may be replaced twice.
        let mut number = 2;
        while self.vfs.exists(&to)? {
            to.set_extension(number.to_string());
            number += 1;
        }
        self.vfs.hard_link(path, &to)?;
        Ok(self.vfs.sync_dir(to.parent().unwrap_or(&self.folder))?)
    }

    /// Where a file goes; its directory is made.
    fn place_of(&self, path: &Path) -> Result<PathBuf> {
        let place = self.folder.join(path.strip_prefix(&self.dir).unwrap_or(path));
        self.vfs.create_dir_all(place.parent().unwrap_or(&self.folder))?;
        Ok(place)
    }
}

/// Writes a file that must not be there yet, durably.
///
/// # Errors
/// On I/O errors.
pub fn write_new(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = vfs.create(path)?;
    file.append(bytes)?;
    file.sync()?;
    Ok(vfs.sync_dir(path.parent().unwrap_or(path))?)
}

/// A time as the name of a folder: `2026-11-22T093000Z`.
fn time_name(now_ns: i64) -> String {
    let second = now_ns.rem_euclid(NANOS_PER_DAY) / NANOS_PER_SECOND;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let day = PartitionLength::Day.of(now_ns).name();
    format!("{day}T{hour:02}{minute:02}{:02}Z", second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_called_by_the_time() {
        assert_eq!(time_name(1_763_803_845_000_000_000), "2025-11-22T093045Z");
        assert_eq!(time_name(0), "1970-01-01T000000Z");
    }
}
