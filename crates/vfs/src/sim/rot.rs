//! Rot: what disks do to bytes that were written and synced. It changes what is on the disk and
//! what readers see, those who have opened the file included; maps taken before keep what they had.

use super::SimVfs;
use super::disk::Disk;
use super::namespace::{Namespace, Node, NodeId, ROOT};
use crate::error::{Error, Result};
use rng::Random;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that a disk loses at once.
pub const SECTOR_SIZE: u64 = 512;

/// One piece of rot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rot {
    /// Bit `bit` (0 to 7) of the byte at `offset` is the other one.
    Flip {
        /// The file.
        path: PathBuf,
        /// Which byte.
        offset: u64,
        /// Which bit of it.
        bit: u8,
    },
    /// The file ends at `size`, also under its maps: new ones are short.
    Cut {
        /// The file.
        path: PathBuf,
        /// Its new size, not above the old one.
        size: u64,
    },
    /// A sector is all zeros.
    Zero {
        /// The file.
        path: PathBuf,
        /// Which sector of it.
        sector: u64,
    },
    /// The file is gone; what was changed in its directory before is durable.
    Drop {
        /// The file.
        path: PathBuf,
    },
    /// Each of two files has the other's content.
    Swap {
        /// The one.
        path: PathBuf,
        /// The other.
        other: PathBuf,
    },
}

impl Rot {
    /// One of all kinds, flips most often, somewhere in one of the files (with their sizes, which
    /// are not 0).
    ///
    /// # Panics
    /// When there are no files.
    pub fn draw(dice: &mut Random, files: &[(PathBuf, u64)]) -> Rot {
        let (path, size) = dice.pick(files).clone();
        match dice.below(16) {
            0 => Rot::Cut { path, size: dice.below(size) },
            1 => Rot::Zero { path, sector: dice.below(size.div_ceil(SECTOR_SIZE)) },
            2 => Rot::Drop { path },
            3 => Rot::Swap { path, other: dice.pick(files).0.clone() },
            _ => Rot::Flip { path, offset: dice.below(size), bit: dice.below(8) as u8 },
        }
    }

    /// The file it is in, the first one of two.
    pub fn path(&self) -> &Path {
        match self {
            Rot::Flip { path, .. }
            | Rot::Cut { path, .. }
            | Rot::Zero { path, .. }
            | Rot::Drop { path }
            | Rot::Swap { path, .. } => path,
        }
    }
}

impl SimVfs {
    /// Lets something rot.
    ///
    /// # Errors
    /// When there is no such file or byte.
    pub fn rot(&self, rot: &Rot) -> Result<()> {
        let done = self.disk().rot(rot);
        done.map_err(|error| Error::new("rot", rot.path(), error))
    }

    /// Flips bit `bit` (0 to 7) of the byte at `offset`.
    ///
    /// # Errors
    /// When there is no such file or byte.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> Result<()> {
        self.rot(&Rot::Flip { path: path.to_path_buf(), offset, bit })
    }

    /// All files that are seen, and their sizes, by path.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        collect(&self.disk().names, ROOT, Path::new("/"), &mut files);
        files
    }
}

fn collect(names: &Namespace, directory: NodeId, path: &Path, files: &mut Vec<(PathBuf, u64)>) {
    let Ok(entries) = names.directory(directory) else { return };
    for (name, &node) in &entries.live {
        let path = path.join(name);
        match &names.nodes[node] {
            Node::File(file) => files.push((path, file.bytes.len() as u64)),
            Node::Directory(_) => collect(names, node, &path, files),
        }
    }
}

impl Disk {
    fn rot(&mut self, rot: &Rot) -> io::Result<()> {
        self.counts.rot += 1;
        match rot {
            Rot::Flip { path, offset, bit } => {
                assert!(*bit < 8);
                let byte = self.content_mut(path)?.get_mut(*offset as usize);
                *byte.ok_or(io::ErrorKind::InvalidInput)? ^= 1 << bit;
            }
            Rot::Cut { path, size } => {
                let node = self.names.find(path)?;
                self.names.file_mut(node)?.cut(*size)?;
            }
            Rot::Zero { path, sector } => {
                let bytes = self.content_mut(path)?;
                let start = bytes.len().min((sector * SECTOR_SIZE) as usize);
                let end = bytes.len().min(start + SECTOR_SIZE as usize);
                bytes[start..end].fill(0);
            }
            Rot::Drop { path } => {
                self.remove(path)?;
                let (directory, _) = self.names.find_parent(path)?;
                self.names.sync(directory);
            }
            Rot::Swap { path, other } => {
                let [one, two] = [self.names.find(path)?, self.names.find(other)?];
                let [first, second] =
                    [self.names.file(one)?.clone(), self.names.file(two)?.clone()];
                self.names.file_mut(one)?.take_content(&second);
                self.names.file_mut(two)?.take_content(&first);
            }
        }
        Ok(())
    }

    fn content_mut(&mut self, path: &Path) -> io::Result<&mut Vec<u8>> {
        let node = self.names.find(path)?;
        Ok(Arc::make_mut(&mut self.names.file_mut(node)?.bytes))
    }
}
