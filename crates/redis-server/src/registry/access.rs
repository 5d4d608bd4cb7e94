//! What commands do to their keys: read them, change them, with what flags clients know.
//!
//! The tables of commands say where keys stand; this says the same in the words of
//! `COMMAND INFO`, where `begin` finds the first one and `find` the others, and what becomes of each.
//! Commands that are not listed are taken by their flags: those that write, write all their keys.

use kv::commands::{Info, Keys, WRITE};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Only read.
pub const RO: u32 = 1;
/// Read and changed.
pub const RW: u32 = 1 << 1;
/// Overwritten.
pub const OW: u32 = 1 << 2;
/// Removed.
pub const RM: u32 = 1 << 3;
/// What it holds is answered, copied or counted.
pub const ACCESS: u32 = 1 << 4;
/// What it holds is changed.
pub const UPDATE: u32 = 1 << 5;
/// Something is added.
pub const INSERT: u32 = 1 << 6;
/// Something is removed.
pub const DELETE: u32 = 1 << 7;
/// It is no key, but tells of the slot.
pub const NOT_KEY: u32 = 1 << 8;
/// There may be more keys than are found so.
pub const INCOMPLETE: u32 = 1 << 9;
/// What is done depends on other arguments.
pub const VARIABLE: u32 = 1 << 10;
/// What reads.
pub const READS: u32 = ACCESS;
/// What writes.
pub const WRITES: u32 = UPDATE | INSERT | DELETE;

const NAMES: &[(u32, &str)] = &[
    (RO, "RO"),
    (RW, "RW"),
    (OW, "OW"),
    (RM, "RM"),
    (ACCESS, "access"),
    (UPDATE, "update"),
    (INSERT, "insert"),
    (DELETE, "delete"),
    (NOT_KEY, "not_key"),
    (INCOMPLETE, "incomplete"),
    (VARIABLE, "variable_flags"),
];

/// Where the first key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At that place.
    Index(i64),
    /// Behind that word, which is looked for from that place on; from the end if negative.
    Keyword(&'static str, i64),
    /// Nobody can say.
    Unknown,
}

/// Which keys follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// The last one, counted from the first or from the end, the step, and what part of the
    /// arguments are keys.
    Range(i64, i64, i64),
    /// Where their number stands, where the first one does, and the step.
    Counted(i64, i64, i64),
    /// Nobody can say.
    Unknown,
}

/// Some keys of a command.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// What is done to them.
    pub flags: u32,
    /// Where the first one stands.
    pub begin: Begin,
    /// Which follow.
    pub find: Find,
}

const fn spec(flags: u32, begin: Begin, find: Find) -> Spec {
    Spec { flags, begin, find }
}

#[rustfmt::skip] // a table
const SPECS: &[(&[&str], &[Spec])] = &[
    (&["bitcount", "bitfield_ro", "bitpos", "dump", "expiretime", "geodist", "geohash", "geopos", "georadius_ro", "georadiusbymember_ro", "geosearch", "get", "getbit", "getrange", "hget", "hgetall", "hkeys", "hmget", "hrandfield", "hscan", "hvals", "lindex", "lpos", "lrange", "pexpiretime", "pttl", "smembers", "smismember", "srandmember", "sscan", "substr", "ttl", "xpending", "xrange", "xrevrange", "zcount", "zlexcount", "zmscore", "zrandmember", "zrange", "zrangebylex", "zrangebyscore", "zrank", "zrevrange", "zrevrangebylex", "zrevrangebyscore", "zrevrank", "zscan", "zscore"], &[spec(RO | ACCESS, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["expire", "expireat", "geoadd", "hmset", "hset", "lset", "persist", "pexpire", "pexpireat", "setrange", "xack", "xadd", "xclaim", "xsetid", "zadd"], &[spec(RW | UPDATE, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["decr", "decrby", "getex", "getset", "hincrby", "hincrbyfloat", "incr", "incrby", "incrbyfloat", "move", "setbit", "zincrby"], &[spec(RW | ACCESS | UPDATE, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["hdel", "lrem", "ltrim", "srem", "xautoclaim", "xdel", "xtrim", "zrem", "zremrangebylex", "zremrangebyrank", "zremrangebyscore"], &[spec(RW | DELETE, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["hexists", "hlen", "hstrlen", "llen", "scard", "sismember", "strlen", "type", "xlen", "zcard"], &[spec(RO, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["append", "hsetnx", "linsert", "lpush", "lpushx", "pfadd", "rpush", "rpushx", "sadd"], &[spec(RW | INSERT, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["getdel", "lpop", "rpop", "spop", "zpopmax", "zpopmin"], &[spec(RW | ACCESS | DELETE, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["sintercard", "zdiff", "zinter", "zintercard", "zunion"], &[spec(RO | ACCESS, Begin::Index(1), Find::Counted(0, 1, 1))]),
    (&["memory|usage", "object|encoding", "object|freq", "object|idletime", "object|refcount"], &[spec(RO, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["blmove", "brpoplpush", "lmove", "rpoplpush", "smove"], &[spec(RW | ACCESS | DELETE, Begin::Index(1), Find::Range(0, 1, 0)), spec(RW | INSERT, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["psetex", "restore", "restore-asking", "setex"], &[spec(OW | UPDATE, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["mget", "sdiff", "sinter", "sunion"], &[spec(RO | ACCESS, Begin::Index(1), Find::Range(-1, 1, 0))]),
    (&["blpop", "brpop", "bzpopmax", "bzpopmin"], &[spec(RW | ACCESS | DELETE, Begin::Index(1), Find::Range(-2, 1, 0))]),
    (&["zdiffstore", "zinterstore", "zunionstore"], &[spec(OW | UPDATE, Begin::Index(1), Find::Range(0, 1, 0)), spec(RO | ACCESS, Begin::Index(2), Find::Counted(0, 1, 1))]),
    (&["eval_ro", "evalsha_ro", "fcall_ro"], &[spec(RO | ACCESS, Begin::Index(2), Find::Counted(0, 1, 1))]),
    (&["xinfo|consumers", "xinfo|groups", "xinfo|stream"], &[spec(RO | ACCESS, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["exists", "touch", "watch"], &[spec(RO, Begin::Index(1), Find::Range(-1, 1, 0))]),
    (&["eval", "evalsha", "fcall"], &[spec(RW | ACCESS | UPDATE, Begin::Index(2), Find::Counted(0, 1, 1))]),
    (&["ssubscribe", "sunsubscribe"], &[spec(NOT_KEY, Begin::Index(1), Find::Range(-1, 1, 0))]),
    (&["sdiffstore", "sunionstore"], &[spec(OW | UPDATE, Begin::Index(1), Find::Range(0, 1, 0)), spec(RO | ACCESS, Begin::Index(2), Find::Range(-1, 1, 0))]),
    (&["geosearchstore", "zrangestore"], &[spec(OW | UPDATE, Begin::Index(1), Find::Range(0, 1, 0)), spec(RO | ACCESS, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["del", "unlink"], &[spec(RM | DELETE, Begin::Index(1), Find::Range(-1, 1, 0))]),
    (&["lmpop", "zmpop"], &[spec(RW | ACCESS | DELETE, Begin::Index(1), Find::Counted(0, 1, 1))]),
    (&["blmpop", "bzmpop"], &[spec(RW | ACCESS | DELETE, Begin::Index(2), Find::Counted(0, 1, 1))]),
    (&["bitfield", "set"], &[spec(RW | ACCESS | UPDATE | VARIABLE, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["xgroup|delconsumer", "xgroup|destroy"], &[spec(RW | DELETE, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["xgroup|create", "xgroup|createconsumer"], &[spec(RW | INSERT, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["spublish"], &[spec(NOT_KEY, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["msetnx"], &[spec(OW | INSERT, Begin::Index(1), Find::Range(-1, 2, 0))]),
    (&["setnx"], &[spec(OW | INSERT, Begin::Index(1), Find::Range(0, 1, 0))]),
    (&["mset"], &[spec(OW | UPDATE, Begin::Index(1), Find::Range(-1, 2, 0))]),
    (&["bitop"], &[spec(OW | UPDATE, Begin::Index(2), Find::Range(0, 1, 0)), spec(RO | ACCESS, Begin::Index(3), Find::Range(-1, 1, 0))]),
    (&["copy"], &[spec(RO | ACCESS, Begin::Index(1), Find::Range(0, 1, 0)), spec(OW | UPDATE, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["georadiusbymember"], &[spec(RO | ACCESS, Begin::Index(1), Find::Range(0, 1, 0)), spec(OW | UPDATE, Begin::Keyword("STORE", 5), Find::Range(0, 1, 0)), spec(OW | UPDATE, Begin::Keyword("STOREDIST", 5), Find::Range(0, 1, 0))]),
    (&["georadius"], &[spec(RO | ACCESS, Begin::Index(1), Find::Range(0, 1, 0)), spec(OW | UPDATE, Begin::Keyword("STORE", 6), Find::Range(0, 1, 0)), spec(OW | UPDATE, Begin::Keyword("STOREDIST", 6), Find::Range(0, 1, 0))]),
    (&["sort_ro"], &[spec(RO | ACCESS, Begin::Index(1), Find::Range(0, 1, 0)), spec(RO | ACCESS, Begin::Unknown, Find::Unknown)]),
    (&["sort"], &[spec(RO | ACCESS, Begin::Index(1), Find::Range(0, 1, 0)), spec(RO | ACCESS, Begin::Unknown, Find::Unknown), spec(OW | UPDATE, Begin::Unknown, Find::Unknown)]),
    (&["lcs"], &[spec(RO | ACCESS, Begin::Index(1), Find::Range(1, 1, 0))]),
    (&["xread"], &[spec(RO | ACCESS, Begin::Keyword("STREAMS", 1), Find::Range(-1, 1, 2))]),
    (&["xreadgroup"], &[spec(RO | ACCESS, Begin::Keyword("STREAMS", 4), Find::Range(-1, 1, 2))]),
    (&["renamenx"], &[spec(RW | ACCESS | DELETE, Begin::Index(1), Find::Range(0, 1, 0)), spec(OW | INSERT, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["rename"], &[spec(RW | ACCESS | DELETE, Begin::Index(1), Find::Range(0, 1, 0)), spec(OW | UPDATE, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["migrate"], &[spec(RW | ACCESS | DELETE, Begin::Index(3), Find::Range(0, 1, 0)), spec(RW | ACCESS | DELETE | INCOMPLETE, Begin::Keyword("KEYS", -2), Find::Range(-1, 1, 0))]),
    (&["pfmerge"], &[spec(RW | ACCESS | INSERT, Begin::Index(1), Find::Range(0, 1, 0)), spec(RO | ACCESS, Begin::Index(2), Find::Range(-1, 1, 0))]),
    (&["pfcount"], &[spec(RW | ACCESS, Begin::Index(1), Find::Range(-1, 1, 0))]),
    (&["pfdebug"], &[spec(RW | ACCESS, Begin::Index(2), Find::Range(0, 1, 0))]),
    (&["sinterstore"], &[spec(RW | UPDATE, Begin::Index(1), Find::Range(0, 1, 0)), spec(RO | ACCESS, Begin::Index(2), Find::Range(-1, 1, 0))]),
    (&["xgroup|setid"], &[spec(RW | UPDATE, Begin::Index(2), Find::Range(0, 1, 0))]),
];

impl Spec {
    /// Whether more keys may stand where arguments say.
    pub fn is_incomplete_or_counted(&self) -> bool {
        self.flags & INCOMPLETE != 0
            || !matches!((self.begin, self.find), (Begin::Index(_), Find::Range(..)))
    }

    /// The names of its flags.
    pub fn flag_names(&self) -> Vec<&'static str> {
        names_of(self.flags)
    }

    /// The places of its keys.
    fn places(&self, args: &[&[u8]]) -> Vec<usize> {
        let argc = i64::try_from(args.len()).unwrap_or(i64::MAX);
        let first = match self.begin {
            Begin::Index(index) => index,
            Begin::Keyword(word, from) => match find_word(args, word, from) {
                Some(at) => at + 1,
                None => return Vec::new(),
            },
            Begin::Unknown => return Vec::new(),
        };
        let (first, last, step) = match self.find {
            Find::Range(last, step, limit) if last < 0 && 1 < limit => {
                (first, first + (argc - first) / limit + last, step)
            }
            Find::Range(last, step, _) if last < 0 => (first, argc + last, step),
            Find::Range(last, step, _) => (first, first + last, step),
            Find::Counted(at, offset, step) => {
                let number = usize::try_from(first + at).ok().and_then(|at| args.get(at));
                let number = number.and_then(|text| kv::number::parse_i64(text)).unwrap_or(0);
                let first = first + offset;
                (first, first.saturating_add((number - 1).saturating_mul(step)), step)
            }
            Find::Unknown => return Vec::new(),
        };
        let mut places = Vec::new();
        let mut at = first;
        while 0 < at && at <= last && at < argc && 0 < step {
            places.extend(usize::try_from(at));
            at += step;
        }
        places
    }
}

fn find_word(args: &[&[u8]], word: &str, from: i64) -> Option<i64> {
    let argc = i64::try_from(args.len()).ok()?;
    let is_it = |at: &i64| {
        let arg = usize::try_from(*at).ok().and_then(|at| args.get(at));
        arg.is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    match from {
        0.. => (from..argc - 1).find(is_it),
        _ => (1..=argc + from).rev().find(is_it),
    }
}

/// The keys of a command.
pub fn specs_of(info: &Info) -> Vec<Spec> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static [Spec]>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        SPECS.iter().flat_map(|(names, specs)| names.iter().map(|name| (*name, *specs))).collect()
    });
    if let Some(specs) = by_name.get(info.name) {
        return specs.to_vec();
    }
    let flags = default_of(info);
    let place = |at: usize| i64::try_from(at).unwrap_or(0);
    match info.keys {
        Keys::None => Vec::new(),
        Keys::Range { first, last, step } => {
            let last = if last < 0 { last as i64 } else { last as i64 - place(first) };
            vec![spec(flags, Begin::Index(place(first)), Find::Range(last, place(step), 0))]
        }
        Keys::Counted { count_at } => {
            vec![spec(flags, Begin::Index(place(count_at)), Find::Counted(0, 1, 1))]
        }
        Keys::TargetAndCounted { count_at } => vec![
            spec(OW | UPDATE, Begin::Index(1), Find::Range(0, 1, 0)),
            spec(RO | ACCESS, Begin::Index(place(count_at)), Find::Counted(0, 1, 1)),
        ],
        Keys::Found(_) => vec![spec(flags | INCOMPLETE, Begin::Unknown, Find::Unknown)],
    }
}

fn default_of(info: &Info) -> u32 {
    if info.is(WRITE) { RW | ACCESS | UPDATE } else { RO | ACCESS }
}

/// What is done to each of the keys at those places.
pub fn of_places(info: &Info, args: &[&[u8]], places: &[usize]) -> Vec<u32> {
    let mut by_place: HashMap<usize, u32> = HashMap::new();
    for spec in specs_of(info) {
        let flags = variant(info, args, spec.flags) & !(INCOMPLETE | VARIABLE);
        for place in spec.places(args) {
            by_place.entry(place).or_insert(flags);
        }
    }
    let stored = is_stored(info, args);
    places
        .iter()
        .map(|place| match by_place.get(place) {
            Some(flags) => *flags,
            None if stored == Some(*place) => OW | UPDATE,
            None if stored.is_some() => RO | ACCESS,
            None => default_of(info),
        })
        .collect()
}

/// What is done where that depends on other arguments.
fn variant(info: &Info, args: &[&[u8]], flags: u32) -> u32 {
    if flags & VARIABLE == 0 {
        return flags;
    }
    // Options begin behind what every form of the command has.
    let first = if info.name == "set" { 3 } else { 2 };
    let says = |word: &[u8]| args.iter().skip(first).any(|arg| arg.eq_ignore_ascii_case(word));
    match info.name {
        "set" if says(b"get") => RW | ACCESS | UPDATE,
        "set" => OW | UPDATE,
        "bitfield" if only_gets(args.get(2..).unwrap_or_default()) => RO | ACCESS,
        "bitfield" => RW | ACCESS | UPDATE,
        _ => flags,
    }
}

/// Whether operations of `BITFIELD` only read. What is none counts as a write.
fn only_gets(mut operations: &[&[u8]]) -> bool {
    loop {
        operations = match operations {
            [] => return true,
            [word, _, _, rest @ ..] if word.eq_ignore_ascii_case(b"get") => rest,
            [word, _, rest @ ..] if word.eq_ignore_ascii_case(b"overflow") => rest,
            _ => return false,
        };
    }
}

/// Where the key stands that results are stored in, for those that sort.
fn is_stored(info: &Info, args: &[&[u8]]) -> Option<usize> {
    if info.name != "sort" {
        return None;
    }
    let (_, options) = args.split_last()?;
    let at = options.iter().rposition(|arg| arg.eq_ignore_ascii_case(b"store"))?;
    Some(at + 1)
}

/// The names of flags.
pub fn names_of(flags: u32) -> Vec<&'static str> {
    NAMES.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::registry;

    fn flags(words: &[&str]) -> Vec<(usize, u32)> {
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let info = registry().named(args[0]).expect("a command").info;
        let places = info.key_places(&args).expect("keys");
        places.iter().copied().zip(of_places(info, &args, &places)).collect()
    }

    #[test]
    fn keys_with_what_is_done_to_them() {
        assert_eq!(flags(&["set", "k", "v"]), [(1, OW | UPDATE)]);
        assert_eq!(flags(&["set", "k", "v", "GET"]), [(1, RW | ACCESS | UPDATE)]);
        assert_eq!(flags(&["mset", "a", "1", "b", "2"]), [(1, OW | UPDATE), (3, OW | UPDATE)]);
        assert_eq!(flags(&["get", "k"]), [(1, RO | ACCESS)]);
    }
}
