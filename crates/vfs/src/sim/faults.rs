//! What goes wrong on a simulated disk, and when: faults of single calls, a disk that fills up and
//! has room again, calls that take long, a clock that jumps.
//!
//! ```text
//! seed ─► FaultPlan::draw ─► SimVfs::set_plan ─► each call asks: is it my turn? ─► Event
//! ```
//!
//! A plan is a list that a person can read: a campaign prints it, and the same seed draws it again.

use rng::Random;
use std::fmt;
use std::io;

/// The calls of a disk. All of them are counted, those that only read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// A file is created.
    Create,
    /// Bytes are appended.
    Append,
    /// A file is synced.
    Sync,
    /// A file is cut.
    Truncate,
    /// A directory is created.
    CreateDir,
    /// A name changes.
    Rename,
    /// A file's name goes.
    Remove,
    /// An entry of a directory that goes whole.
    RemoveDir,
    /// A second name.
    Link,
    /// Names are made durable.
    SyncDir,
    /// The lock of a directory.
    Lock,
    /// A file is mapped, or opened to be read here and there.
    Map,
    /// A file is read as a whole.
    Read,
    /// A part of an open file is read.
    ReadAt,
    /// A directory is listed.
    List,
    /// A name is looked for.
    Exists,
    /// A file is measured.
    Size,
    /// Room is asked for.
    FreeSpace,
}

impl Call {
    /// All calls, those that change something first.
    pub const ALL: [Call; 18] = [
        Call::Create,
        Call::Append,
        Call::Sync,
        Call::Truncate,
        Call::CreateDir,
        Call::Rename,
        Call::Remove,
        Call::RemoveDir,
        Call::Link,
        Call::SyncDir,
        Call::Lock,
        Call::Map,
        Call::Read,
        Call::ReadAt,
        Call::List,
        Call::Exists,
        Call::Size,
        Call::FreeSpace,
    ];

    /// What errors call it, as on the real disk.
    pub(super) fn name(self) -> &'static str {
        match self {
            Call::Create => "create",
            Call::Append => "append",
            Call::Sync => "sync",
            Call::Truncate => "truncate",
            Call::CreateDir => "create directory",
            Call::Rename => "rename",
            Call::Remove => "remove",
            Call::RemoveDir => "remove directory",
            Call::Link => "link",
            Call::SyncDir => "sync directory",
            Call::Lock => "lock",
            Call::Map => "map",
            Call::Read | Call::ReadAt => "read",
            Call::List => "list",
            Call::Exists => "look for",
            Call::Size => "size",
            Call::FreeSpace => "free space",
        }
    }

    /// Whether it changes something: counted by `SimVfs::operations`, held up by a stall.
    pub(super) fn is_change(self) -> bool {
        self <= Call::Lock
    }
}

/// What the system says when a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// EIO: nobody knows.
    Io,
    /// ENOSPC: the one that passes.
    Full,
    /// EMFILE: too many open files.
    Files,
    /// Anything else: EINTR here.
    Other,
}

impl Errno {
    const ALL: [Errno; 4] = [Errno::Io, Errno::Full, Errno::Files, Errno::Other];

    pub(super) fn error(self) -> io::Error {
        // Linux's numbers, which the standard library translates; elsewhere they are as good.
        let number = match self {
            Errno::Io => 5,
            Errno::Full => 28,
            Errno::Files => 24,
            Errno::Other => 4,
        };
        io::Error::from_raw_os_error(number)
    }

    pub(super) fn is(self, error: &io::Error) -> bool {
        error.raw_os_error() == self.error().raw_os_error()
    }
}

/// When something happens; counted from 0 and from the moment it was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At the n-th call, whatever it is.
    Call(u64),
    /// At the n-th call of that kind.
    Nth(Call, u64),
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The call fails. An append writes a part, a sync may have done its work or not, and one of
    /// four other changes is done although its caller is told that it is not; but who has too many
    /// files open has done nothing.
    Fail(Errno),
    /// Somebody else takes all room but so many bytes.
    TakeRoom(u64),
    /// What was taken is free again.
    GiveRoom,
    /// The call takes so many nanoseconds: both clocks go on.
    Delay(u64),
    /// The wall clock jumps, no time passes.
    Jump(i64),
}

/// An event and its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When.
    pub when: When,
    /// What.
    pub event: Event,
}

/// What goes wrong in one life of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// In no particular order; each happens once.
    pub events: Vec<Planned>,
}

/// Longest time that a drawn delay takes: 10 minutes.
const DELAY_NS_MAX: u64 = 600_000_000_000;
/// Farthest that a drawn clock jumps: 3 years.
const JUMP_NS_MAX: u64 = 3 * 365 * 86_400_000_000_000;
/// Most room that is left on a disk that fills up.
const ROOM_LEFT_MAX: u64 = 20_000;

impl FaultPlan {
    /// A plan for a life of about so many calls: often one fault, seldom many.
    pub fn draw(seed: u64, calls: u64) -> FaultPlan {
        let mut dice = Random(seed);
        let count = [0, 1, 1, 1, 2, 3, 6][dice.index(7)];
        let mut plan = FaultPlan::default();
        for _ in 0..count {
            plan.draw_event(&mut dice, calls.max(1));
        }
        plan
    }

    fn draw_event(&mut self, dice: &mut Random, calls: u64) {
        let at = dice.below(calls);
        let mut add = |when, event| self.events.push(Planned { when, event });
        match dice.below(16) {
            0..=3 => add(When::Call(at), Event::Fail(*dice.pick(&Errno::ALL))),
            4..=9 => {
                let call = *dice.pick(&Call::ALL);
                let number = dice.below(1 + calls / 8);
                add(When::Nth(call, number), Event::Fail(*dice.pick(&Errno::ALL)));
            }
            10 | 11 => {
                // Room comes back in time, or only with the next life.
                add(When::Call(at), Event::TakeRoom(dice.below(ROOM_LEFT_MAX)));
                add(When::Call(at + dice.below(calls)), Event::GiveRoom);
            }
            12 => add(When::Call(at), Event::Delay(dice.below(DELAY_NS_MAX))),
            _ => {
                let distance = dice.below(JUMP_NS_MAX) as i64;
                let there = if dice.below(4) == 0 { -distance } else { distance };
                add(When::Call(at), Event::Jump(there));
                add(When::Call(at + dice.below(calls)), Event::Jump(-there));
            }
        }
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.events.is_empty() {
            return f.write_str("nothing planned");
        }
        for (idx, Planned { when, event }) in self.events.iter().enumerate() {
            let separator = if idx == 0 { "" } else { "; " };
            write!(f, "{separator}{when:?}: {event:?}")?;
        }
        Ok(())
    }
}

/// What is still to happen, and how far it is.
#[derive(Clone, Default)]
pub(super) struct Agenda {
    /// Moments as calls that are still to come before.
    waiting: Vec<Planned>,
}

impl Agenda {
    pub(super) fn add(&mut self, planned: Planned) {
        self.waiting.push(planned);
    }

    /// The events of this call.
    pub(super) fn take(&mut self, call: Call) -> Vec<Event> {
        let mut due = Vec::new();
        self.waiting.retain_mut(|planned| {
            let left = match &mut planned.when {
                When::Call(left) => left,
                When::Nth(kind, left) if *kind == call => left,
                When::Nth(..) => return true,
            };
            if *left == 0 {
                due.push(planned.event);
                return false;
            }
            *left -= 1;
            true
        });
        due
    }
}
