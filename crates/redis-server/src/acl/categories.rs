//! The categories of commands: from what the tables say of them, and some beside.

use kv::commands::{ADMIN, BLOCKING, DANGEROUS, FAST, Group, Info, PUBSUB, READONLY, WRITE};

/// The names of categories, by bit.
pub const NAMES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "bloom",
    "timeseries",
];

/// Commands whose categories are not only what their group and flags say: those that come and,
/// behind a minus, those that go.
#[rustfmt::skip] // a table
const BESIDE: &[(&str, &[&str])] = &[
    ("client", &["-connection"]),
    ("function", &["-scripting"]),
    ("object", &["-keyspace", "-read"]),
    ("script", &["-scripting"]),
    ("xgroup", &["-stream", "-write"]),
    ("xinfo", &["-stream", "-read"]),
    ("pubsub", &["-pubsub"]),
    ("pubsub|help", &["-pubsub"]),
    ("wait", &["-keyspace", "-blocking", "connection"]),
    ("waitaof", &["-keyspace", "-blocking", "connection"]),
    ("dbsize", &["keyspace"]),
    ("flushall", &["keyspace", "dangerous"]),
    ("flushdb", &["keyspace", "dangerous"]),
    ("swapdb", &["keyspace", "dangerous"]),
    ("info", &["dangerous"]),
    ("keys", &["dangerous"]),
    ("migrate", &["dangerous"]),
    ("restore", &["dangerous"]),
    ("restore-asking", &["keyspace", "dangerous"]),
    ("role", &["admin", "dangerous"]),
    ("lastsave", &["admin", "dangerous"]),
    ("slaveof", &["admin", "dangerous"]),
    ("sort", &["-keyspace", "set", "sortedset", "list", "dangerous"]),
    ("sort_ro", &["-keyspace", "set", "sortedset", "list", "dangerous"]),
    ("command", &["connection"]),
    ("command|count", &["connection"]),
    ("command|docs", &["connection"]),
    ("command|getkeys", &["connection"]),
    ("command|getkeysandflags", &["connection"]),
    ("command|help", &["connection"]),
    ("command|info", &["connection"]),
    ("command|list", &["connection"]),
    ("memory|usage", &["read"]),
    ("asking", &["connection"]),
    ("readonly", &["connection"]),
    ("readwrite", &["connection"]),
    ("select", &["connection"]),
];

/// The bit of a category.
pub fn bit(name: &str) -> Option<u32> {
    NAMES.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|at| 1 << at)
}

fn bits(names: &[&str]) -> u32 {
    names.iter().filter_map(|name| bit(name)).fold(0, |all, bit| all | bit)
}

fn of_group(group: Group) -> &'static str {
    match group {
        Group::Generic => "keyspace",
        Group::String => "string",
        Group::Bitmap => "bitmap",
        Group::List => "list",
        Group::Set => "set",
        Group::SortedSet => "sortedset",
        Group::Hash => "hash",
        Group::Geo => "geo",
        Group::HyperLogLog => "hyperloglog",
        Group::Stream => "stream",
        Group::Bloom => "bloom",
        Group::TimeSeries => "timeseries",
        Group::PubSub => "pubsub",
        Group::Transactions => "transaction",
        Group::Scripting => "scripting",
        Group::Connection => "connection",
        Group::Server | Group::Cluster => "",
    }
}

/// The categories of a command, as bits.
pub fn of(info: &Info) -> u32 {
    let mut names = vec![of_group(info.group)];
    let flags: [(u32, &[&str]); 6] = [
        (WRITE, &["write"]),
        (ADMIN, &["admin", "dangerous"]),
        (DANGEROUS, &["dangerous"]),
        (PUBSUB, &["pubsub"]),
        (BLOCKING, &["blocking"]),
        (FAST, &["fast"]),
    ];
    for (flag, categories) in flags {
        if info.is(flag) {
            names.extend(categories);
        }
    }
    if info.is(READONLY) && info.group != Group::Scripting {
        names.push("read");
    }
    if !info.is(FAST) {
        names.push("slow");
    }
    let mut all = bits(&names);
    for (name, beside) in BESIDE.iter().filter(|(name, _)| *name == info.name) {
        debug_assert_eq!(*name, info.name);
        for category in *beside {
            match category.strip_prefix('-') {
                Some(gone) => all &= !bits(&[gone]),
                None => all |= bits(&[category]),
            }
        }
    }
    all
}
