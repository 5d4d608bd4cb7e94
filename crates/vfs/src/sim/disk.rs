//! The state of a simulated disk, and each operation on it.
//!
//! Every call passes [`Disk::begin`] first, which counts it, lets a dead machine do nothing and
//! lets happen what is planned. Operations check everything before they change anything.

use super::Counts;
use super::faults::{Agenda, Call, Errno, Event};
use super::namespace::{Change, DirectoryNode, Doubted, Edit, FileNode, Namespace, Node, NodeId};
use rng::Random;
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
    /// What happened so far.
    pub(super) counts: Counts,
    /// The number of the first change that fails, and so do all after it.
    pub(super) dead_from: u64,
    /// How many more syncs fail.
    pub(super) failing_syncs: u64,
    /// What is still to happen.
    pub(super) agenda: Agenda,
    /// What the call under way will be told in the end, whatever it has done.
    refusal: Option<io::Error>,
    /// Decides how faults come out, apart from `random`, so that a fault draws no other numbers
    /// for the program.
    dice: Random,
    /// Room that somebody else has taken.
    pub(super) taken_space: u64,
    /// Whether changes wait.
    pub(super) is_stalled: bool,
    /// How many threads wait.
    pub(super) stalled_threads: usize,
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
            counts: Counts::default(),
            dead_from: u64::MAX,
            failing_syncs: 0,
            agenda: Agenda::default(),
            refusal: None,
            dice: Random(!seed),
            taken_space: 0,
            is_stalled: false,
            stalled_threads: 0,
            locked: BTreeSet::new(),
        }
    }

    /// Counts a call and performs it, unless the machine is dead or the call is to fail.
    pub(super) fn perform<T>(
        &mut self,
        call: Call,
        act: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> io::Result<T> {
        let done = self.begin(call).and_then(|()| act(self));
        match self.refusal.take() {
            Some(refusal) => Err(refusal),
            None => done,
        }
    }

    /// Counts a call; an error when it is to fail without effect.
    fn begin(&mut self, call: Call) -> io::Result<()> {
        let operation = self.counts.operations;
        self.counts.calls += 1;
        self.counts.operations += u64::from(call.is_change());
        if call.is_change() && self.dead_from <= operation {
            let error = io::Error::other("simulated death of the machine");
            // A death in the middle of a long write leaves a part of it.
            if call == Call::Append && operation == self.dead_from {
                self.refusal = Some(error);
                return Ok(());
            }
            return Err(error);
        }
        let mut failure = None;
        for event in self.agenda.take(call) {
            self.counts.events += 1;
            match event {
                Event::Fail(errno) => failure = Some(errno.error()),
                Event::TakeRoom(left) => self.take_room(left),
                Event::GiveRoom => self.give_room(),
                Event::Delay(nanoseconds) => self.advance(nanoseconds),
                Event::Jump(nanoseconds) => self.now = self.now.saturating_add(nanoseconds),
            }
        }
        failure.map_or(Ok(()), |error| self.fail(call, error))
    }

    /// Lets a call fail: at once, or once it is done, in part or whole.
    fn fail(&mut self, call: Call, error: io::Error) -> io::Result<()> {
        // Whoever could not open a file has done nothing to it.
        let has_opened = matches!(call, Call::Append | Call::Sync);
        if Errno::Files.is(&error) && !has_opened {
            return Err(error);
        }
        let has_parts = matches!(call, Call::Append | Call::Sync | Call::SyncDir | Call::Truncate);
        if has_parts || (call.is_change() && call != Call::Lock && self.dice.index(4) == 0) {
            self.refusal = Some(error);
            return Ok(());
        }
        Err(error)
    }

    pub(super) fn take_room(&mut self, left: u64) {
        let taken = self.free_space.saturating_sub(left);
        self.free_space -= taken;
        self.taken_space += taken;
    }

    pub(super) fn give_room(&mut self) {
        self.free_space += std::mem::take(&mut self.taken_space);
    }

    pub(super) fn advance(&mut self, nanoseconds: u64) {
        self.now = self.now.saturating_add_unsigned(nanoseconds);
        self.elapsed_ns += nanoseconds;
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<NodeId> {
        let (directory, name) = self.free_name(path)?;
        let node = self.names.add(Node::File(FileNode::default()));
        self.apply(vec![put(directory, name, node)]);
        Ok(node)
    }

    pub(super) fn append(&mut self, node: NodeId, bytes: &[u8]) -> io::Result<()> {
        let file = self.names.file_mut(node)?;
        let mut fitting = bytes.len().min(usize::try_from(self.free_space).unwrap_or(usize::MAX));
        if self.refusal.is_some() && 0 < fitting {
            fitting = self.dice.index(fitting);
        }
        Arc::make_mut(&mut file.bytes).extend_from_slice(&bytes[..fitting]);
        self.free_space -= fitting as u64;
        if fitting < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    pub(super) fn sync(&mut self, node: NodeId) -> io::Result<()> {
        if let Err(error) = self.begin_sync() {
            self.names.file_mut(node)?.doubt();
            return Err(error);
        }
        let doubted = self.draw_doubted();
        self.names.file_mut(node)?.sync(doubted);
        Ok(())
    }

    fn draw_doubted(&mut self) -> Doubted {
        *self.dice.pick(&[Doubted::Written, Doubted::Lost])
    }

    pub(super) fn truncate(&mut self, path: &Path, size: u64) -> io::Result<()> {
        let node = self.names.find(path)?;
        let synced = self.begin_sync();
        let doubted = self.draw_doubted();
        let file = self.names.file_mut(node)?;
        let before = (Arc::clone(&file.bytes), file.synced_size);
        file.cut(size)?;
        match &synced {
            Ok(()) => file.sync(doubted),
            Err(_) => {
                file.before_cut.get_or_insert_with(|| before.clone());
                file.doubt();
            }
        }
        self.free_space += before.0.len() as u64 - size;
        synced
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        if let Ok(node) = self.names.find(path) {
            if self.names.directory(node).is_err() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            self.begin_sync()?;
            self.sync_name_of(path);
            return Ok(());
        }
        if let Some(parent) = path.parent()
            && self.names.find(parent).is_err()
        {
            self.create_dir_all(parent)?;
            self.begin(Call::CreateDir)?;
        }
        let (directory, name) = self.free_name(path)?;
        let node = self.names.add(Node::Directory(DirectoryNode::default()));
        self.apply(vec![put(directory, name, node)]);
        self.begin_sync()?;
        self.names.sync(directory);
        path.parent().into_iter().for_each(|parent| self.sync_name_of(parent));
        Ok(())
    }

    /// Makes the name of a directory that is there durable.
    fn sync_name_of(&mut self, path: &Path) {
        if let Some(parent) = path.parent().and_then(|parent| self.names.find(parent).ok()) {
            self.names.sync(parent);
        }
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

    /// One change per entry, deepest first, as the system does it; each may be the last.
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
            self.begin(Call::RemoveDir)?;
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
        let synced = self.begin_sync();
        // One that failed may have done its work.
        if synced.is_ok() || self.dice.index(4) == 0 {
            self.names.sync(node);
        }
        synced
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

    /// Whether a sync succeeds.
    fn begin_sync(&mut self) -> io::Result<()> {
        if let Some(refusal) = self.refusal.take() {
            self.counts.failed_syncs += 1;
            return Err(refusal);
        }
        if self.failing_syncs == 0 {
            return Ok(());
        }
        self.failing_syncs -= 1;
        self.counts.failed_syncs += 1;
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
