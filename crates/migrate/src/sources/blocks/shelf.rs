//! Where blocks are: a directory, or a bucket.

use super::reader::At;
use anyhow::{Context as _, ensure};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// What a block says of itself.
pub const META: &str = "meta.json";
/// What stands in a block that is to be deleted.
pub const DELETION_MARK: &str = "deletion-mark.json";
/// Series and where their chunks are.
pub const INDEX: &str = "index";
/// What was deleted.
pub const TOMBSTONES: &str = "tombstones";
/// The folder of chunks.
pub const CHUNKS: &str = "chunks";

/// Bytes of what a block says of itself: a year of Thanos' has some ten thousand.
pub const META_SIZE_MAX: u64 = 8 << 20;
/// Bytes of what was deleted of a block.
pub const TOMBSTONES_SIZE_MAX: u64 = 64 << 20;

/// Blocks, and the sizes of the files that each has.
pub type Listed = BTreeMap<String, BTreeMap<String, u64>>;

/// A place with blocks.
pub trait Shelf: Send {
    /// What a person calls it.
    fn name(&self) -> &str;

    /// What people call a file of a block.
    fn shown(&self, block: &str, file: &str) -> String;

    /// All blocks that are there, whole or not.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn list(&mut self) -> anyhow::Result<Listed>;

    /// What is there besides and cannot be listed, as it is called.
    fn odd(&self) -> &[String] {
        &[]
    }

    /// Small files of blocks, all of them, in their order; nothing for those that are not there.
    ///
    /// # Errors
    /// When one cannot be read, or has more bytes than that.
    fn small(&self, files: &[(&str, &str)], size_max: u64) -> anyhow::Result<Vec<Option<Vec<u8>>>>;

    /// A file of a block, of that many bytes.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open(&self, block: &str, file: &str, size: u64) -> anyhow::Result<Box<dyn At>>;

    /// Whether what went wrong is the place, and not the block that was read.
    fn is_away(&self) -> bool {
        false
    }
}

/// Blocks in a directory, or a directory that is one.
pub struct Directory {
    path: PathBuf,
    name: String,
    /// What the one block is called that it is.
    alone: Option<String>,
}

impl Directory {
    /// That of a path.
    pub fn new(path: &Path) -> Directory {
        let called = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let alone = path.join(META).exists().then_some(called);
        Directory { path: path.to_path_buf(), name: path.display().to_string(), alone }
    }

    fn folder(&self, block: &str) -> PathBuf {
        match self.alone {
            Some(_) => self.path.clone(),
            None => self.path.join(block),
        }
    }
}

/// The files of a block that are read, with their sizes.
fn files_of(folder: &Path) -> anyhow::Result<BTreeMap<String, u64>> {
    let mut files = BTreeMap::new();
    let mut note = |path: &Path, name: String| -> std::io::Result<()> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => drop(files.insert(name, found.len())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    };
    for name in [META, INDEX, TOMBSTONES, DELETION_MARK] {
        note(&folder.join(name), name.to_string())?;
    }
    match std::fs::read_dir(folder.join(CHUNKS)) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry?;
                let name = format!("{CHUNKS}/{}", entry.file_name().to_string_lossy());
                note(&entry.path(), name)?;
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    Ok(files)
}

impl Shelf for Directory {
    fn name(&self) -> &str {
        &self.name
    }

    fn shown(&self, block: &str, file: &str) -> String {
        self.folder(block).join(file).display().to_string()
    }

    fn list(&mut self) -> anyhow::Result<Listed> {
        let shown = |path: &Path| path.display().to_string();
        if let Some(name) = &self.alone {
            let files = files_of(&self.path).with_context(|| shown(&self.path))?;
            return Ok(Listed::from([(name.clone(), files)]));
        }
        let mut found = Listed::new();
        for entry in std::fs::read_dir(&self.path).with_context(|| shown(&self.path))? {
            let path = entry?.path();
            // The names of those that were not finished, or are being removed, go on.
            if path.extension().is_some() || !path.is_dir() {
                continue;
            }
            let files = files_of(&path).with_context(|| shown(&path))?;
            if files.contains_key(META) || files.contains_key(INDEX) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                found.insert(name.into_owned(), files);
            }
        }
        Ok(found)
    }

    fn small(&self, files: &[(&str, &str)], size_max: u64) -> anyhow::Result<Vec<Option<Vec<u8>>>> {
        let read = |(block, name): &(&str, &str)| {
            let path = self.folder(block).join(name);
            let shown = path.display().to_string();
            let mut bytes = Vec::new();
            let read =
                File::open(&path).and_then(|file| file.take(size_max + 1).read_to_end(&mut bytes));
            match read {
                Ok(size) => {
                    ensure!(size as u64 <= size_max, "{shown}: more than {size_max} bytes");
                    Ok(Some(bytes))
                }
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error).context(shown),
            }
        };
        files.iter().map(read).collect()
    }

    fn open(&self, block: &str, file: &str, size: u64) -> anyhow::Result<Box<dyn At>> {
        let path = self.folder(block).join(file);
        Ok(Box::new(PlainFile { file: File::open(path)?, size }))
    }
}

struct PlainFile {
    file: File,
    size: u64,
}

impl At for PlainFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&mut self, range: Range<u64>) -> anyhow::Result<Vec<u8>> {
        let size = usize::try_from(range.end - range.start).context("a piece")?;
        let mut bytes = vec![0; size];
        self.file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes)
    }
}
