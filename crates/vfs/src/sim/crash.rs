//! What a power failure leaves on the disk, and what the death of the process does.

use super::disk::Disk;
use super::namespace::{Change, DirectoryNode, FileNode, Namespace, Node, NodeId, ROOT};
use rng::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Disk {
    /// The disk as the next process finds it after this one died: everything is still there that
    /// was seen, and nothing is any more durable than it was.
    pub(super) fn kill(&mut self) -> Disk {
        let mut after = Disk::new(self.random.next());
        after.now = self.now;
        after.elapsed_ns = self.elapsed_ns;
        after.free_space = self.free_space;
        after.taken_space = self.taken_space;
        after.names = self.names.clone();
        after
    }

    /// The disk after the power failed.
    pub(super) fn crash(&mut self) -> Disk {
        let mut after = Disk::new(self.random.next());
        after.now = self.now;
        after.taken_space = self.taken_space;
        let mut dice = Random(self.random.next());
        let mut found = self.names.clone();
        keep_some_changes(&mut found, &mut dice);
        let used_before = used_size(&self.names);
        after.names = rebuild(&found, &mut dice);
        let used_after = used_size(&after.names);
        after.free_space = (self.free_space + used_before).saturating_sub(used_after);
        after
    }
}

/// Makes some of the pending changes durable: none that touches a directory of which an earlier
/// change was lost.
fn keep_some_changes(names: &mut Namespace, dice: &mut Random) {
    let pending = std::mem::take(&mut names.pending);
    // How likely a change is to survive, in eighths; all or nothing are likely luck too.
    let luck = dice.index(9);
    let mut broken = BTreeSet::new();
    for change in &pending {
        if is_broken(change, &broken) || luck <= dice.index(8) {
            broken.extend(change.iter().map(|edit| edit.directory));
        } else {
            names.apply_durable(change);
        }
    }
}

fn is_broken(change: &Change, broken: &BTreeSet<NodeId>) -> bool {
    change.iter().any(|edit| broken.contains(&edit.directory))
}

/// A new tree of what the durable directories reach, with each file as the crash left it.
fn rebuild(found: &Namespace, dice: &mut Random) -> Namespace {
    let mut copier = Copier { found, names: Namespace::new(), copies: BTreeMap::new(), dice };
    copier.copies.insert(ROOT, ROOT);
    copier.copy_entries(ROOT);
    copier.names
}

/// Copies what is durable of one tree into another.
struct Copier<'a> {
    found: &'a Namespace,
    names: Namespace,
    /// Old node to new node: a file with two names is copied once.
    copies: BTreeMap<NodeId, NodeId>,
    dice: &'a mut Random,
}

impl Copier<'_> {
    fn copy_entries(&mut self, from: NodeId) {
        let found = self.found;
        let Node::Directory(directory) = &found.nodes[from] else { return };
        for (name, &node) in &directory.durable {
            let copy = self.copy(node);
            self.names.count_link(copy);
            let entries = self.names.directory_mut(self.copies[&from]);
            entries.live.insert(name.clone(), copy);
            entries.durable.insert(name.clone(), copy);
        }
    }

    fn copy(&mut self, node: NodeId) -> NodeId {
        if let Some(&copy) = self.copies.get(&node) {
            return copy;
        }
        let copy = self.names.add(match &self.found.nodes[node] {
            Node::File(file) => Node::File(torn(file, self.dice)),
            Node::Directory(_) => Node::Directory(DirectoryNode::default()),
        });
        self.copies.insert(node, copy);
        self.copy_entries(node);
        copy
    }
}

/// A file with its synced bytes and some of the others.
fn torn(file: &FileNode, dice: &mut Random) -> FileNode {
    let bytes = match &file.before_cut {
        // The cut did not reach the disk.
        Some((bytes, synced_size)) if dice.index(2) == 0 => bytes[..*synced_size].to_vec(),
        _ => {
            let mut bytes = synced(file, dice);
            if bytes.len() == file.synced_size {
                bytes.extend(unsynced(&file.bytes[file.synced_size..], dice));
            }
            bytes
        }
    };
    FileNode { synced_size: bytes.len(), bytes: Arc::new(bytes), ..FileNode::default() }
}

/// The synced bytes, without those that a failed sync lost.
fn synced(file: &FileNode, dice: &mut Random) -> Vec<u8> {
    let mut bytes = file.bytes[..file.synced_size].to_vec();
    for range in &file.lost {
        match dice.index(3) {
            0 => bytes[range.clone()].iter_mut().for_each(|byte| *byte = dice.next() as u8),
            _ => bytes[range.clone()].fill(0),
        }
    }
    // The size that counts them was not written either.
    if let Some(last) = file.lost.last()
        && last.end == bytes.len()
        && dice.index(2) == 0
    {
        bytes.truncate(last.start);
    }
    bytes
}

/// What is left of bytes that were not synced.
fn unsynced(unsynced: &[u8], dice: &mut Random) -> Vec<u8> {
    let kept = dice.index(unsynced.len() + 1);
    let mut tail = unsynced[..kept].to_vec();
    match dice.index(6) {
        0 => tail = unsynced.to_vec(),
        1 => tail.clear(),
        // The size reached the disk, the last bytes did not.
        2 => tail.resize(unsynced.len(), 0),
        3 => {
            let size = kept + dice.index(unsynced.len() - kept + 1);
            tail.resize_with(size, || dice.next() as u8);
        }
        // A later piece was written before an earlier one.
        4 => {
            let start = dice.index(kept + 1);
            tail = unsynced.to_vec();
            tail[start..kept].fill(0);
        }
        _ => {}
    }
    assert!(tail.len() <= unsynced.len());
    tail
}

/// Bytes that files with a name take.
fn used_size(names: &Namespace) -> u64 {
    let sizes = names.nodes.iter().map(|node| match node {
        Node::File(file) if 0 < file.link_count => file.bytes.len() as u64,
        _ => 0,
    });
    sizes.sum()
}
