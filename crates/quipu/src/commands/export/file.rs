//! The file of an export: `FILE.part` until it is whole, cut back to what was complete when a run goes on,
//! and of one run at a time.

use anyhow::{Context as _, bail, ensure};
use cli::checkpoint::with_suffix;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use vfs::{RealVfs, Vfs as _};

/// A file that is being written.
pub struct PartFile {
    file: File,
    part: PathBuf,
    output: PathBuf,
}

impl PartFile {
    /// Opens it, for this run alone; what is in it stays.
    ///
    /// # Errors
    /// When it cannot be opened, or another run has it.
    pub fn open(output: &Path) -> anyhow::Result<PartFile> {
        refuse_special(output)?;
        let part = with_suffix(output, ".part");
        let shown = || part.display().to_string();
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).truncate(false).open(&part);
        let file = file.with_context(shown)?;
        lock(&file, output)?;
        // One that ended meanwhile has given it its name.
        let own = file.metadata().with_context(shown)?.ino();
        let is_own = |there: Metadata| there.ino() == own;
        ensure!(std::fs::metadata(&part).is_ok_and(is_own), "{}: {BUSY}", output.display());
        Ok(PartFile { file, part, output: output.to_path_buf() })
    }

    /// Cuts it back to so many bytes, behind which it goes on.
    ///
    /// # Errors
    /// When it has fewer.
    pub fn cut_to(&mut self, size: u64) -> anyhow::Result<()> {
        let (file, shown) = (&mut self.file, self.part.display().to_string());
        let there = file.metadata().with_context(|| shown.clone())?.len();
        ensure!(
            size <= there,
            "{shown}: {there} bytes, {}.progress says {size}: remove that to begin anew",
            self.output.display()
        );
        file.set_len(size).with_context(|| shown.clone())?;
        file.seek(SeekFrom::Start(size)).with_context(|| shown)?;
        Ok(())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// When the disk does not take them.
    pub fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(bytes).with_context(|| self.part.display().to_string())
    }

    /// Waits until all of it is on disk.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn sync(&self) -> anyhow::Result<()> {
        self.file.sync_data().with_context(|| self.part.display().to_string())
    }

    /// Gives it its name, durably.
    ///
    /// # Errors
    /// When that fails.
    pub fn finish(self) -> anyhow::Result<()> {
        self.sync()?;
        let shown = || self.output.display().to_string();
        std::fs::rename(&self.part, &self.output).with_context(shown)?;
        sync_directory_of(&self.output)
    }
}

/// Refuses what a file of that name must not take the place of: a device, a pipe, a link.
fn refuse_special(output: &Path) -> anyhow::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(output) else { return Ok(()) };
    ensure!(
        found.is_file(),
        "{} is no file, and would be replaced by one: name a file, or ask /api/v1/export",
        output.display()
    );
    Ok(())
}

/// What is said to the second of two runs.
const BUSY: &str = "another export to it is under way; wait until it has ended";

/// Keeps other runs off a directory that is there, for as long as the file lives.
///
/// # Errors
/// When another run has it.
pub fn lock_directory(directory: &Path) -> anyhow::Result<File> {
    let file = File::open(directory).with_context(|| directory.display().to_string())?;
    lock(&file, directory)?;
    Ok(file)
}

fn lock(file: &File, output: &Path) -> anyhow::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => bail!("{}: {BUSY}", output.display()),
        // Some file systems have no locks: there nobody can tell.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Makes the names in a path's directory durable.
///
/// # Errors
/// When the directory cannot be synced.
pub fn sync_directory_of(path: &Path) -> anyhow::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(RealVfs::new().sync_dir(parent.unwrap_or(Path::new(".")))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_not_replaced_by_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let (link, target) = (directory.path().join("link"), directory.path().join("target"));
        std::fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        for output in [link.as_path(), directory.path(), Path::new("/dev/null")] {
            let error = PartFile::open(output).err().expect("refused").to_string();
            assert!(error.contains("is no file"), "{error}");
        }
        PartFile::open(&target).expect("opened").finish().expect("finished");
        assert_eq!(std::fs::read(&target).expect("read"), b"");
    }
}
