//! The tree of directories and files, as it is seen now and as it is on the disk.
//!
//! ```text
//!               live: BTreeMap<name, node>  ◄─ every change at once
//! directory ──┤
//!               durable: BTreeMap<name, node>  ◄─ changes in `pending`, once synced or lucky
//! ```
//!
//! A [`Change`] is a list of edits that happen together: a rename is "take away here, put there".

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Component, Path};
use std::sync::Arc;

/// Index into [`Namespace::nodes`].
pub(super) type NodeId = usize;

/// The node of `/`.
pub(super) const ROOT: NodeId = 0;

/// A file or a directory.
#[derive(Clone)]
pub(super) enum Node {
    File(FileNode),
    Directory(DirectoryNode),
}

/// A file's bytes.
///
/// ```text
/// bytes   |──── synced ────|── lost ──|──── synced ────|── doubted ──|── unsynced ──|
///                            a failed sync, then one that           a failed sync
///                            succeeded: the system had
///                            forgotten that they are not written
/// ```
#[derive(Clone, Default)]
pub(super) struct FileNode {
    /// What readers see; shared with maps.
    pub(super) bytes: Arc<Vec<u8>>,
    /// How many of them, from the start, survive a crash, but for those that are lost.
    pub(super) synced_size: usize,
    /// The end of what a sync was to write that failed: the next one leaves it out, or has it
    /// written after all.
    pub(super) doubted_size: usize,
    /// Bytes that readers see and the disk does not have.
    pub(super) lost: Vec<Range<usize>>,
    /// What was there before a cut whose sync failed, and how much of it was synced.
    pub(super) before_cut: Option<(Arc<Vec<u8>>, usize)>,
    /// How many live names it has.
    pub(super) link_count: u32,
}

impl FileNode {
    /// Makes durable what can be: what an earlier sync failed to write only if that turns out so.
    pub(super) fn sync(&mut self, doubted: Doubted) {
        assert!(self.synced_size <= self.bytes.len());
        if self.synced_size < self.doubted_size && doubted == Doubted::Lost {
            self.lost.push(self.synced_size..self.doubted_size);
        }
        self.synced_size = self.bytes.len();
        self.doubted_size = 0;
        self.before_cut = None;
    }

    /// Notes that a sync failed.
    pub(super) fn doubt(&mut self) {
        self.doubted_size = self.bytes.len();
    }

    /// Cuts the file for readers and on the disk.
    pub(super) fn cut(&mut self, size: u64) -> io::Result<()> {
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        if self.bytes.len() < size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Arc::make_mut(&mut self.bytes).truncate(size);
        self.synced_size = self.synced_size.min(size);
        self.doubted_size = self.doubted_size.min(size);
        self.lost.retain_mut(|range| {
            range.end = range.end.min(size);
            range.start < range.end
        });
        Ok(())
    }

    /// Takes over another file's content, durable or not as it is there.
    pub(super) fn take_content(&mut self, other: &FileNode) {
        *self = FileNode { link_count: self.link_count, ..other.clone() };
    }
}

/// What became of bytes that a sync failed to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubted {
    /// They were written after all.
    Written,
    /// They were not, and nobody tries again.
    Lost,
}

/// A directory's entries.
#[derive(Clone, Default)]
pub(super) struct DirectoryNode {
    pub(super) live: BTreeMap<String, NodeId>,
    pub(super) durable: BTreeMap<String, NodeId>,
}

/// One entry set to a node, or taken away.
#[derive(Clone)]
pub(super) struct Edit {
    pub(super) directory: NodeId,
    pub(super) name: String,
    pub(super) node: Option<NodeId>,
}

/// Edits that happen together or not at all.
pub(super) type Change = Vec<Edit>;

/// All nodes, and the changes of names that are not durable yet, oldest first.
#[derive(Clone)]
pub(super) struct Namespace {
    /// Never shrinks: ids stay valid for handles of removed files.
    pub(super) nodes: Vec<Node>,
    pub(super) pending: Vec<Change>,
}

impl Namespace {
    pub(super) fn new() -> Namespace {
        let root = Node::Directory(DirectoryNode::default());
        Namespace { nodes: vec![root], pending: Vec::new() }
    }

    /// The node of a path. Relative paths start at the root.
    pub(super) fn find(&self, path: &Path) -> io::Result<NodeId> {
        let mut node = ROOT;
        for name in names(path)? {
            let entries = &self.directory(node)?.live;
            node = *entries.get(name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    /// The directory that `path` is or would be in, and its name there.
    pub(super) fn find_parent<'p>(&self, path: &'p Path) -> io::Result<(NodeId, &'p str)> {
        let name = names(path)?.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.find(path.parent().unwrap_or(Path::new("")))?;
        self.directory(parent)?;
        Ok((parent, name))
    }

    pub(super) fn directory(&self, node: NodeId) -> io::Result<&DirectoryNode> {
        match &self.nodes[node] {
            Node::Directory(directory) => Ok(directory),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn file(&self, node: NodeId) -> io::Result<&FileNode> {
        match &self.nodes[node] {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn file_mut(&mut self, node: NodeId) -> io::Result<&mut FileNode> {
        match &mut self.nodes[node] {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn bytes(&self, path: &Path) -> io::Result<&Arc<Vec<u8>>> {
        Ok(&self.file(self.find(path)?)?.bytes)
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Ok(self.directory(self.find(path)?)?.live.keys().cloned().collect())
    }

    /// Adds a node that has no name yet.
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Performs a change for readers and leaves it pending. Returns how many bytes became free.
    pub(super) fn apply(&mut self, change: Change) -> u64 {
        let mut freed_size = 0;
        for edit in &change {
            let entries = &mut self.directory_mut(edit.directory).live;
            let old = match edit.node {
                Some(node) => entries.insert(edit.name.clone(), node),
                None => entries.remove(&edit.name),
            };
            if let Some(node) = edit.node {
                self.count_link(node);
            }
            if let Some(old) = old {
                freed_size += self.drop_link(old);
            }
        }
        self.pending.push(change);
        freed_size
    }

    /// Makes the pending changes of a directory durable, with the earlier ones they depend on:
    /// those of a directory that such a change also touches.
    pub(super) fn sync(&mut self, directory: NodeId) {
        let mut wanted = BTreeSet::from([directory]);
        let mut keep = vec![false; self.pending.len()];
        for (i, change) in self.pending.iter().enumerate().rev() {
            if change.iter().any(|edit| wanted.contains(&edit.directory)) {
                wanted.extend(change.iter().map(|edit| edit.directory));
                keep[i] = true;
            }
        }
        let pending = std::mem::take(&mut self.pending);
        for (change, is_kept) in pending.into_iter().zip(keep) {
            match is_kept {
                true => self.apply_durable(&change),
                false => self.pending.push(change),
            }
        }
    }

    /// Performs a change on the disk.
    pub(super) fn apply_durable(&mut self, change: &Change) {
        for edit in change {
            let entries = &mut self.directory_mut(edit.directory).durable;
            match edit.node {
                Some(node) => entries.insert(edit.name.clone(), node),
                None => entries.remove(&edit.name),
            };
        }
    }

    pub(super) fn directory_mut(&mut self, node: NodeId) -> &mut DirectoryNode {
        match &mut self.nodes[node] {
            Node::Directory(directory) => directory,
            Node::File(_) => unreachable!("edits name directories"),
        }
    }

    pub(super) fn count_link(&mut self, node: NodeId) {
        if let Node::File(file) = &mut self.nodes[node] {
            file.link_count += 1;
        }
    }

    /// Returns the bytes that the file no longer takes when this was its last name.
    fn drop_link(&mut self, node: NodeId) -> u64 {
        let Node::File(file) = &mut self.nodes[node] else { return 0 };
        assert!(1 <= file.link_count);
        file.link_count -= 1;
        if file.link_count == 0 { file.bytes.len() as u64 } else { 0 }
    }
}

/// The names a path is made of, from the root.
fn names(path: &Path) -> io::Result<Vec<&str>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => {
                names.push(name.to_str().ok_or(io::ErrorKind::InvalidInput)?);
            }
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(names)
}
