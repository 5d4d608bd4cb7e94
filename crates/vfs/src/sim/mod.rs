//! A disk in memory that behaves as badly as disks may, from a seed.
//!
//! A test runs on it, calls [`SimVfs::crash`] (or lets the machine die at the n-th change with
//! [`SimVfs::fail_after`]) and opens what is left. What is left obeys [`crate`]'s promises and no
//! more:
//!
//! ```text
//! bytes      |──── synced: kept ────|── unsynced: any prefix, torn at any byte, then perhaps
//!                                      zeros or garbage, or a hole in the middle
//! names      every change waits in a list until sync_dir of its directory (which takes along the
//!            earlier changes it depends on); a crash keeps a random choice of the others such
//!            that within one directory no later change survives an earlier one that is lost
//! ```
//!
//! The same seed and the same calls give the same disk. Handles are cheap clones of one disk; a
//! crash or a kill gives a new disk and leaves the old one alone, so that threads of the dead
//! process may go on writing into nothing.
//!
//! ```text
//! SimVfs::crash     the power fails: what was not synced may go
//! SimVfs::kill      the process dies: all is still seen, and nothing is more durable than it was
//! SimVfs::set_plan  calls fail, the disk fills up, calls take long, the clock jumps
//! SimVfs::stall     changes wait, as on a frozen file system
//! SimVfs::rot       bits flip, files end early, vanish or change places
//! ```
//!
//! After a failed sync the bytes stay readable and a later sync of the file succeeds, whoever asks
//! and by whatever name; whether they were written is drawn. That is how Linux does it.

mod crash;
mod disk;
mod faults;
mod file;
mod namespace;
mod rot;
#[cfg(test)]
mod tests;

pub use faults::{Call, Errno, Event, FaultPlan, Planned, When};
pub use rot::{Rot, SECTOR_SIZE};

use crate::error::{Error, Result};
use crate::{AppendFile, Bytes, LOCK_FILE, ReadFile, Vfs};
use disk::Disk;
use faults::Agenda;
use file::{SimFile, SimReader};
use namespace::NodeId;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A simulated disk, clock and source of randomness.
#[derive(Clone)]
pub struct SimVfs {
    machine: Arc<Machine>,
}

struct Machine {
    /// Guards everything; taken for the length of one call, never nested.
    disk: Mutex<Disk>,
    /// A stall began or ended, or a thread waits for that.
    stall: Condvar,
}

/// What happened on a disk since it was made, found after a crash or taken over after a kill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of all kinds.
    pub calls: u64,
    /// Calls that change something.
    pub operations: u64,
    /// Planned events that came.
    pub events: u64,
    /// Syncs that failed.
    pub failed_syncs: u64,
    /// Pieces of rot.
    pub rot: u64,
}

impl SimVfs {
    /// An empty disk with nearly endless room; the clock stands at zero.
    pub fn new(seed: u64) -> SimVfs {
        SimVfs::from_disk(Disk::new(seed))
    }

    /// The disk as found after the power failed now. Everything found is durable; locks, faults
    /// and counts start anew, room and clock stay. Each call throws the dice again.
    pub fn crash(&self) -> SimVfs {
        let after = self.disk().crash();
        SimVfs::from_disk(after)
    }

    /// The disk as the next process finds it after this one was killed, the machine still up: all
    /// bytes and names are seen that were seen before, and what was not durable is not: a later
    /// crash may still take it. Locks, faults and counts start anew. Threads that a stall holds up
    /// go on, into nothing.
    pub fn kill(&self) -> SimVfs {
        let after = self.disk().kill();
        self.resume();
        SimVfs::from_disk(after)
    }

    /// How many changes (create, append, sync, truncate, make directory, rename, remove, link,
    /// sync directory, lock) were tried so far; each entry of a directory that is removed counts.
    pub fn operations(&self) -> u64 {
        self.disk().counts.operations
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.disk().counts
    }

    /// Lets all changes from number `operation` on (counted as in [`SimVfs::operations`], from 0)
    /// fail without effect, as if the machine had died before it; but an append that is the first
    /// of them leaves a part. Reads go on.
    pub fn fail_after(&self, operation: u64) {
        self.disk().dead_from = operation;
    }

    /// Lets the next `count` syncs, of files and of directories, fail; what they should have made
    /// durable may be, or may never be any more, even if a later sync succeeds.
    pub fn fail_syncs(&self, count: u64) {
        self.disk().failing_syncs = count;
    }

    /// Lets the `number`-th call of a kind from now on, counted from 0, fail once.
    pub fn fail_call(&self, call: Call, number: u64, errno: Errno) {
        self.plan_one(When::Nth(call, number), Event::Fail(errno));
    }

    /// Plans one event.
    pub fn plan_one(&self, when: When, event: Event) {
        self.disk().agenda.add(Planned { when, event });
    }

    /// Replaces what is still to happen; moments count from now.
    pub fn set_plan(&self, plan: &FaultPlan) {
        let mut disk = self.disk();
        disk.agenda = Agenda::default();
        plan.events.iter().for_each(|planned| disk.agenda.add(*planned));
    }

    /// Lets changes wait until [`SimVfs::resume`]: for tests with threads. One with a single thread
    /// lets the store wait for nobody instead (a log without a thread commits when it is waited
    /// for), or plans an [`Event::Delay`].
    pub fn stall(&self) {
        self.disk().is_stalled = true;
    }

    /// Ends a stall.
    pub fn resume(&self) {
        self.disk().is_stalled = false;
        self.machine.stall.notify_all();
    }

    /// Waits until so many threads wait for the end of a stall.
    pub fn wait_for_stalled(&self, threads: usize) {
        let is_too_early = |disk: &mut Disk| disk.stalled_threads < threads;
        let waited = self.machine.stall.wait_while(self.disk(), is_too_early);
        drop(waited.expect("the simulated disk does not panic"));
    }

    /// Sets the room left. Appends take from it, removals give back; an append beyond it writes
    /// what fits and fails.
    pub fn set_free_space(&self, size: u64) {
        self.disk().free_space = size;
    }

    /// Takes all room but so many bytes, as another program on the disk does.
    pub fn take_room(&self, left: u64) {
        self.disk().take_room(left);
    }

    /// Frees what was taken by [`SimVfs::take_room`] or a plan.
    pub fn give_room(&self) {
        self.disk().give_room();
    }

    /// Lets time pass: the clock and [`Vfs::elapsed`] go on together.
    pub fn advance(&self, nanoseconds: u64) {
        self.disk().advance(nanoseconds);
    }

    /// Sets the clock, which jumps there: no time passes.
    pub fn set_now(&self, nanoseconds: i64) {
        self.disk().now = nanoseconds;
    }

    /// Lets the clock jump ahead or back: no time passes.
    pub fn jump(&self, nanoseconds: i64) {
        let mut disk = self.disk();
        disk.now = disk.now.saturating_add(nanoseconds);
    }

    fn from_disk(disk: Disk) -> SimVfs {
        SimVfs { machine: Arc::new(Machine { disk: Mutex::new(disk), stall: Condvar::new() }) }
    }

    /// The disk. A panic of another thread inside a call would be a bug of this file, and shows.
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.machine.disk.lock().expect("the simulated disk does not panic")
    }

    /// Counts a call and performs it, unless the machine is dead or the call is to fail.
    fn call<T>(
        &self,
        call: Call,
        path: &Path,
        act: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> Result<T> {
        let mut disk = self.disk();
        if call.is_change() && disk.is_stalled {
            disk = self.wait_for_end_of_stall(disk);
        }
        disk.perform(call, act).map_err(|error| Error::new(call.name(), path, error))
    }

    fn wait_for_end_of_stall<'d>(&self, mut disk: MutexGuard<'d, Disk>) -> MutexGuard<'d, Disk> {
        disk.stalled_threads += 1;
        self.machine.stall.notify_all();
        let waited = self.machine.stall.wait_while(disk, |disk| disk.is_stalled);
        let mut disk = waited.expect("the simulated disk does not panic");
        disk.stalled_threads -= 1;
        disk
    }
}

impl Vfs for SimVfs {
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let node = self.call(Call::Create, path, |disk| disk.create(path))?;
        Ok(Box::new(SimFile::new(self.clone(), path, node)))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        let bytes = self.call(Call::Map, path, |disk| disk.names.bytes(path).cloned())?;
        Ok(Bytes::from_holder(bytes))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>> {
        let node = self.call(Call::Map, path, |disk| {
            disk.names.bytes(path)?;
            disk.names.find(path)
        })?;
        Ok(Box::new(SimReader::new(self.clone(), path, node)))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.call(Call::Read, path, |disk| Ok(disk.names.bytes(path)?.to_vec()))
    }

    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        self.call(Call::Truncate, path, |disk| disk.truncate(path, size))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.call(Call::CreateDir, path, |disk| disk.create_dir_all(path))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.call(Call::List, path, |disk| disk.names.list(path))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.call(Call::Exists, path, |disk| match disk.names.find(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        })
    }

    fn size(&self, path: &Path) -> Result<u64> {
        self.call(Call::Size, path, |disk| Ok(disk.names.bytes(path)?.len() as u64))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.call(Call::Rename, from, |disk| disk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.call(Call::Remove, path, |disk| disk.remove(path))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.call(Call::RemoveDir, path, |disk| disk.remove_dir_all(path))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.call(Call::Link, to, |disk| disk.hard_link(from, to))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.call(Call::SyncDir, path, |disk| disk.sync_dir(path))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.call(Call::FreeSpace, path, |disk| {
            disk.names.find(path)?;
            Ok(disk.free_space)
        })
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let directory = self.call(Call::Lock, path, |disk| disk.lock(path, LOCK_FILE))?;
        Ok(Box::new(SimLock { vfs: self.clone(), directory }))
    }

    fn now(&self) -> i64 {
        self.disk().now
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.disk().elapsed_ns)
    }

    fn random(&self) -> u64 {
        self.disk().random.next()
    }
}

impl fmt::Debug for SimVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimVfs({} operations)", self.operations())
    }
}

/// The lock of a directory; given back on drop.
struct SimLock {
    vfs: SimVfs,
    directory: NodeId,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let had_it = self.vfs.disk().locked.remove(&self.directory);
        assert!(had_it || std::thread::panicking());
    }
}
