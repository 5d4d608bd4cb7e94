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

/// Makes the names in a path's directory durable.
///
/// # Errors
/// When the directory cannot be synced.
pub fn sync_directory_of(path: &Path) -> anyhow::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(RealVfs::new().sync_dir(parent.unwrap_or(Path::new(".")))?)
}
