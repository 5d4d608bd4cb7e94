//! The file of an export: `FILE.part` until it is whole, cut back to what was complete when a run goes on.

use crate::commands::checkpoint::with_suffix;
use anyhow::{Context as _, ensure};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use vfs::{RealVfs, Vfs as _};

/// A file that is being written.
pub struct PartFile {
    file: File,
    part: PathBuf,
    output: PathBuf,
}

impl PartFile {
    /// Opens it, cut back to so many bytes.
    ///
    /// # Errors
    /// When it cannot be opened, or has fewer.
    pub fn open(output: &Path, size: u64) -> anyhow::Result<PartFile> {
        refuse_special(output)?;
        let part = with_suffix(output, ".part");
        let there = std::fs::metadata(&part).map_or(0, |found| found.len());
        ensure!(
            size <= there,
            "{}: {there} bytes, {}.progress says {size}: remove that to begin anew",
            part.display(),
            output.display()
        );
        let open = || -> std::io::Result<File> {
            let mut file =
                OpenOptions::new().create(true).write(true).truncate(false).open(&part)?;
            file.set_len(size)?;
            file.seek(SeekFrom::Start(size))?;
            Ok(file)
        };
        let file = open().with_context(|| part.display().to_string())?;
        Ok(PartFile { file, part, output: output.to_path_buf() })
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
            let error = PartFile::open(output, 0).err().expect("refused").to_string();
            assert!(error.contains("is no file"), "{error}");
        }
        PartFile::open(&target, 0).expect("opened").finish().expect("finished");
        assert_eq!(std::fs::read(&target).expect("read"), b"");
    }
}
