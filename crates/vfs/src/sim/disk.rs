//! The state of a simulated disk, and each operation on it.
//!
//! Every change passes [`Disk::begin_change`] first, which counts it and lets a dead machine do
//! nothing. Operations check everything before they change anything.

use super::namespace::{Change, DirectoryNode, Edit, FileNode, Namespace, Node, NodeId};
use random::Random;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Room on a new disk: more than a test can use, small enough for sums.
const FREE_SPACE_DEFAULT: u64 = 1 << 50;

/// A disk with its machine's clock and dice.
pub(super) struct Disk {
    pub(super) names: Namespace,
    pub(super) random: Random,
    /// The clock, nanoseconds.
    pub(super) now: i64,
    /// Time that passed, nanoseconds.
    pub(super) elapsed_ns: u64,
    /// Bytes that may still be appended.
    pub(super) free_space: u64,
    /// Changes tried so far.
    pub(super) operations: u64,
    /// The number of the first change that fails, and so do all after it.
    pub(super) dead_from: u64,
    /// How many more syncs fail.
    pub(super) failing_syncs: u64,
    /// Directories whose lock is held.
    pub(super) locked: BTreeSet<NodeId>,
}

impl Disk {
    pub(super) fn new(seed: u64) -> Disk {
        Disk {
            names: Namespace::new(),
            random: Random(seed),
            now: 0,
            elapsed_ns: 0,
            free_space: FREE_SPACE_DEFAULT,
            operations: 0,
            dead_from: u64::MAX,
            failing_syncs: 0,
            locked: BTreeSet::new(),
        }
    }

    /// Counts a change.
    pub(super) fn begin_change(&mut self) -> io::Result<()> {
        let operation = self.operations;
        self.operations += 1;
        if self.dead_from <= operation {
            return Err(io::Error::other("simulated power loss"));
        }
        Ok(())
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<NodeId> {
        let (directory, name) = self.free_name(path)?;
        let node = self.names.add(Node::File(FileNode::default()));
        self.apply(vec![put(directory, name, node)]);
        Ok(node)
    }

    pub(super) fn append(&mut self, node: NodeId, bytes: &[u8]) -> io::Result<()> {
        let file = self.names.file_mut(node)?;
        let fitting = bytes.len().min(usize::try_from(self.free_space).unwrap_or(usize::MAX));
        Arc::make_mut(&mut file.bytes).extend_from_slice(&bytes[..fitting]);
        self.free_space -= fitting as u64;
        if fitting < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    pub(super) fn sync(&mut self, node: NodeId) -> io::Result<()> {
        self.begin_sync()?;
        let file = self.names.file_mut(node)?;
        assert!(file.synced_size <= file.bytes.len());
        file.synced_size = file.bytes.len();
        Ok(())
    }

    pub(super) fn truncate(&mut self, path: &Path, size: u64) -> io::Result<()> {
        let node = self.names.find(path)?;
        let file = self.names.file(node)?;
        let before = file.bytes.len() as u64;
        if before < size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.begin_sync()?;
        let file = self.names.file_mut(node)?;
        Arc::make_mut(&mut file.bytes).truncate(size as usize);
        file.synced_size = size as usize;
        self.free_space += before - size;
        Ok(())
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        if let Ok(node) = self.names.find(path) {
            return match self.names.directory(node) {
                Ok(_) => Ok(()),
                Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
            };
        }
        if let Some(parent) = path.parent() {
            self.create_dir_all(parent)?;
        }
        let (directory, name) = self.free_name(path)?;
        let node = self.names.add(Node::Directory(DirectoryNode::default()));
        self.apply(vec![put(directory, name, node)]);
        self.begin_sync()?;
        self.names.sync(directory);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.names.find(from)?;
        let (from_directory, from_name) = self.names.find_parent(from)?;
        let (to_directory, to_name) = self.names.find_parent(to)?;
        let is_directory = self.names.directory(node).is_ok();
        if is_directory && from != to && to.starts_with(from) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match self.names.find(to) {
            Ok(old) if old == node => return Ok(()),
            Ok(_) if is_directory => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(old) => drop(self.names.file(old)?),
            Err(_) => {}
        }
        // Put first, so that the file never is without a name and its room never counts as free.
        self.apply(vec![put(to_directory, to_name, node), take(from_directory, from_name)]);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.names.file(self.names.find(path)?)?;
        let (directory, name) = self.names.find_parent(path)?;
        self.apply(vec![take(directory, name)]);
        Ok(())
    }

    /// One change per entry, deepest first, as the system does it.
    pub(super) fn remove_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let node = self.names.find(path)?;
        self.names.directory(node)?;
        let (parent, name) = self.names.find_parent(path)?;
        self.empty(node)?;
        self.apply(vec![take(parent, name)]);
        Ok(())
    }

    fn empty(&mut self, directory: NodeId) -> io::Result<()> {
        let entries = self.names.directory(directory)?.live.clone();
        for (name, node) in entries {
            if self.names.directory(node).is_ok() {
                self.empty(node)?;
            }
            self.apply(vec![take(directory, &name)]);
        }
        Ok(())
    }

    pub(super) fn hard_link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.names.find(from)?;
        self.names.file(node)?;
        let (directory, name) = self.free_name(to)?;
        self.apply(vec![put(directory, name, node)]);
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let node = self.names.find(path)?;
        self.names.directory(node)?;
        self.begin_sync()?;
        self.names.sync(node);
        Ok(())
    }

    /// Locks a directory and makes the lock's file.
    pub(super) fn lock(&mut self, path: &Path, file_name: &str) -> io::Result<NodeId> {
        let directory = self.names.find(path)?;
        self.names.directory(directory)?;
        if self.locked.contains(&directory) {
            let text = format!("in use by process {}", std::process::id());
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        let file_path = path.join(file_name);
        if self.names.find(&file_path).is_err() {
            self.create(&file_path)?;
        }
        self.locked.insert(directory);
        Ok(directory)
    }

    pub(super) fn flip_bit(&mut self, path: &Path, offset: u64, bit: u8) -> io::Result<()> {
        let node = self.names.find(path)?;
        let bytes = Arc::make_mut(&mut self.names.file_mut(node)?.bytes);
        let byte = bytes.get_mut(offset as usize).ok_or(io::ErrorKind::InvalidInput)?;
        *byte ^= 1 << bit;
        Ok(())
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        if self.failing_syncs == 0 {
            return Ok(());
        }
        self.failing_syncs -= 1;
        Err(io::Error::other("simulated failure of a sync"))
    }

    /// Where `path` would be, if nothing is there.
    fn free_name<'p>(&self, path: &'p Path) -> io::Result<(NodeId, &'p str)> {
        let (directory, name) = self.names.find_parent(path)?;
        if self.names.directory(directory)?.live.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok((directory, name))
    }

    fn apply(&mut self, change: Change) {
        self.free_space += self.names.apply(change);
    }
}

fn put(directory: NodeId, name: &str, node: NodeId) -> Edit {
    Edit { directory, name: name.to_owned(), node: Some(node) }
}

fn take(directory: NodeId, name: &str) -> Edit {
    Edit { directory, name: name.to_owned(), node: None }
}
