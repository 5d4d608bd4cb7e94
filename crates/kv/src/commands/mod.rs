//! The table of commands on keys, a file for each family. Dispatch, ACL categories, `COMMAND` and the
//! page of commands come from it; the door adds those that are about connections and the server.

pub mod bloom;
pub mod container;
pub mod dump;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod internal;
pub mod list;
pub mod names;
pub mod object;
pub mod set;
pub mod sort;
pub mod stream;
pub mod string;
pub mod zset;

mod bitmap;
mod hash_expiry;

use crate::call::Call;
use crate::error::CommandError;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A command that changes keys.
pub const WRITE: u32 = 1;
/// One that only reads them.
pub const READONLY: u32 = 1 << 1;
/// One that may need more memory.
pub const DENY_OOM: u32 = 1 << 2;
/// About the server.
pub const ADMIN: u32 = 1 << 3;
/// About channels.
pub const PUBSUB: u32 = 1 << 4;
/// Not for scripts.
pub const NO_SCRIPT: u32 = 1 << 5;
/// One that may wait.
pub const BLOCKING: u32 = 1 << 6;
/// Allowed while data is loaded.
pub const LOADING: u32 = 1 << 7;
/// Allowed on a replica without its primary.
pub const STALE: u32 = 1 << 8;
/// Of constant or logarithmic time.
pub const FAST: u32 = 1 << 9;
/// Allowed before who comes has said who they are.
pub const NO_AUTH: u32 = 1 << 10;
/// Its keys stand where its arguments say.
pub const MOVABLE_KEYS: u32 = 1 << 11;
/// Not for transactions.
pub const NO_MULTI: u32 = 1 << 12;
/// Allowed while a script runs too long.
pub const ALLOW_BUSY: u32 = 1 << 13;
/// What it does may harm: `@dangerous`.
pub const DANGEROUS: u32 = 1 << 14;
/// Not shown to `MONITOR`.
pub const SKIP_MONITOR: u32 = 1 << 15;
/// Its keys are channels of sharded publishing.
pub const MAY_REPLICATE: u32 = 1 << 16;

/// The family of a command, which is also its ACL category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Any type.
    Generic,
    /// Strings.
    String,
    /// Bits of strings.
    Bitmap,
    /// Lists.
    List,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Hashes.
    Hash,
    /// Places on Earth.
    Geo,
    /// Estimates of counts.
    HyperLogLog,
    /// Streams.
    Stream,
    /// Bloom filters.
    Bloom,
    /// Time series.
    TimeSeries,
    /// Channels.
    PubSub,
    /// Transactions.
    Transactions,
    /// Scripts and functions.
    Scripting,
    /// The connection.
    Connection,
    /// The server.
    Server,
    /// A cluster.
    Cluster,
}

/// Where a command's keys stand among its arguments.
#[derive(Clone, Copy)]
pub enum Keys {
    /// There are none.
    None,
    /// From `first` to `last` (from the end if negative), each `step`-th.
    Range {
        /// The first one's place.
        first: usize,
        /// The last one's.
        last: isize,
        /// From one to the next.
        step: usize,
    },
    /// A number at `count_at`, and so many keys behind it.
    Counted {
        /// Where the number stands.
        count_at: usize,
    },
    /// The first argument and so many keys as a number at `count_at` says: `ZUNIONSTORE` and its like.
    TargetAndCounted {
        /// Where the number stands.
        count_at: usize,
    },
    /// As that function finds them: their places.
    Found(fn(&[&[u8]]) -> Vec<usize>),
}

/// One key, the first argument.
pub const ONE_KEY: Keys = Keys::Range { first: 1, last: 1, step: 1 };
/// All arguments are keys.
pub const ALL_KEYS: Keys = Keys::Range { first: 1, last: -1, step: 1 };
/// The first two arguments are keys.
pub const TWO_KEYS: Keys = Keys::Range { first: 1, last: 2, step: 1 };

/// What is known of a command.
pub struct Info {
    /// Its name in lower case; a subcommand's after a bar, as in `config|get`.
    pub name: &'static str,
    /// How many arguments it takes, its name included; at least so many, if negative.
    pub arity: i32,
    /// What holds of it.
    pub flags: u32,
    /// Where its keys stand.
    pub keys: Keys,
    /// Its family.
    pub group: Group,
    /// The version of Redis that had it first.
    pub since: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
}

/// A line of a table of commands.
pub struct Line<Run> {
    /// What is known of it.
    pub info: Info,
    /// Does it: writes the answer, or returns the error that is answered.
    pub run: Run,
}

/// A command on keys.
pub type Command = Line<fn(&mut Call<'_>) -> Result<(), CommandError>>;

/// A line of a table of commands.
#[allow(clippy::too_many_arguments, reason = "the columns of a table")]
pub const fn command<Run: Copy>(
    name: &'static str,
    arity: i32,
    flags: u32,
    keys: Keys,
    group: Group,
    since: &'static str,
    summary: &'static str,
    run: Run,
) -> Line<Run> {
    Line { info: Info { name, arity, flags, keys, group, since, summary }, run }
}

/// All families.
const FAMILIES: &[&[Command]] = &[
    generic::COMMANDS,
    dump::COMMANDS,
    names::COMMANDS,
    object::COMMANDS,
    sort::COMMANDS,
    string::COMMANDS,
    bitmap::COMMANDS,
    list::COMMANDS,
    set::COMMANDS,
    hash::COMMANDS,
    zset::COMMANDS,
    geo::COMMANDS,
    hyperloglog::COMMANDS,
    stream::COMMANDS,
    bloom::COMMANDS,
];

/// All commands on keys.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The command of that name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    static BY_NAME: OnceLock<ByName<&'static Command>> = OnceLock::new();
    BY_NAME.get_or_init(|| ByName::new(all().map(|one| (one.info.name, one)))).get(name)
}

/// The longest name of a command with its subcommand.
const NAME_SIZE_MAX: usize = 64;

/// Things by the names of commands, which clients write in any case.
pub struct ByName<T>(HashMap<&'static [u8], T>);

impl<T: Copy> ByName<T> {
    /// Things with their names, in lower case.
    pub fn new(things: impl Iterator<Item = (&'static str, T)>) -> ByName<T> {
        ByName(things.map(|(name, thing)| (name.as_bytes(), thing)).collect())
    }

    /// The one of that name.
    pub fn get(&self, name: &[u8]) -> Option<T> {
        self.part(&[name])
    }

    /// The one of a name in parts: a command, a bar, a subcommand.
    pub fn part(&self, parts: &[&[u8]]) -> Option<T> {
        let mut lower = [0; NAME_SIZE_MAX];
        let mut size = 0;
        for part in parts {
            lower.get_mut(size..size + part.len())?.copy_from_slice(part);
            size += part.len();
        }
        lower[..size].make_ascii_lowercase();
        self.0.get(&lower[..size]).copied()
    }
}

impl Info {
    /// The name that arguments begin with, without a subcommand's.
    pub fn first_name(&self) -> &'static str {
        self.name.split('|').next().unwrap_or_default()
    }

    /// Whether a command with so many arguments, its name included, is well formed.
    pub fn takes(&self, argc: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { wanted <= argc } else { argc == wanted }
    }

    /// Whether a flag is set.
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// The place of its first key among such arguments. None where it has none.
    pub fn first_key_place(&self, args: &[&[u8]]) -> Option<usize> {
        match self.keys {
            Keys::None => None,
            // Spares a list for each effect of the log.
            Keys::Range { first, .. } => Some(first),
            _ => self.key_places(args)?.first().copied(),
        }
    }

    /// The places of its keys among arguments whose number has been checked. None where the
    /// arguments do not say it.
    pub fn key_places(&self, args: &[&[u8]]) -> Option<Vec<usize>> {
        let counted = |count_at: usize| {
            let count = args.get(count_at).and_then(|text| crate::number::parse_i64(text))?;
            let count = usize::try_from(count).ok().filter(|count| 0 < *count)?;
            let end = count_at.checked_add(1)?.checked_add(count)?;
            (end <= args.len()).then(|| (count_at + 1..end).collect::<Vec<_>>())
        };
        match self.keys {
            Keys::None => Some(Vec::new()),
            Keys::Range { first, last, step } => {
                let end = match usize::try_from(last) {
                    Ok(last) => last,
                    Err(_) => args.len().checked_sub(last.unsigned_abs())?,
                };
                Some((first..=end).step_by(step).filter(|place| *place < args.len()).collect())
            }
            Keys::Counted { count_at } => counted(count_at),
            Keys::TargetAndCounted { count_at } => {
                let mut places = vec![1];
                places.extend(counted(count_at)?);
                Some(places)
            }
            Keys::Found(find) => Some(find(args)),
        }
    }
}
