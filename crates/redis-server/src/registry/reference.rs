//! `docs/doors/redis-commands.md`, from the tables of commands, and what of Redis is missing, with its
//! reason.

use super::later::{LATER, LaterCommands};
use super::{Entry, registry};
use crate::acl::categories;
use crate::commands::group_name;
use kv::commands::Group;
use std::fmt::Write as _;

/// Commands of Redis 7.4 that are unknown here: a name, or the first part of names and a star.
pub const MISSING: &[(&str, &str)] =
    &[("sentinel*", "Of a Sentinel alone; a Redis answers the same.")];

/// Options of commands that are there which came with later versions, and are errors here.
const LATER_OPTIONS: &[(&str, &str, &str)] = &[
    ("BITOP", "DIFF, DIFF1, ANDOR, ONE", "Redis 8.2"),
    ("XADD, XTRIM", "KEEPREF, DELREF, ACKED", "Redis 8.2"),
    ("SET", "IFEQ, IFNE, IFDEQ, IFDNE", "Redis 8.4"),
    ("XREADGROUP", "CLAIM", "Redis 8.4"),
    ("XADD", "IDMP, IDMPAUTO", "Redis 8.6"),
];

/// Families in the order of the page, with their headings.
const FAMILIES: &[(Group, &str)] = &[
    (Group::Generic, "Keys of any type"),
    (Group::String, "Strings"),
    (Group::Bitmap, "Bits of strings"),
    (Group::Hash, "Hashes"),
    (Group::List, "Lists"),
    (Group::Set, "Sets"),
    (Group::SortedSet, "Sorted sets"),
    (Group::Geo, "Places on Earth"),
    (Group::HyperLogLog, "HyperLogLog"),
    (Group::Stream, "Streams"),
    (Group::TimeSeries, "Time series"),
    (Group::Bloom, "Bloom filters"),
    (Group::PubSub, "Channels"),
    (Group::Transactions, "Transactions"),
    (Group::Scripting, "Scripts and functions"),
    (Group::Connection, "The connection"),
    (Group::Server, "The server"),
    (Group::Cluster, "Clusters, of which there is none"),
];

/// The page.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Commands for Redis' clients\n\n\
         Generated from the tables that dispatch, `COMMAND`, `ACL` and this page share; a test compares. \
         What differs from Redis is in [redis.md](redis.md).\n\
         *Arguments* count the name; `+` is \"or more\". *Since* is the version of Redis, or of its module, that had it first.\n",
    );
    for (group, heading) in FAMILIES {
        let name = group_name(*group);
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "\n## {heading}\n`COMMAND DOCS` calls the group `{name}`.\n\n| command | arguments | since | ACL categories | what it does |\n|---|---|---|---|---|\n"
        );
        let rows = registry().all().iter().filter(|entry| entry.info.group == *group);
        rows.for_each(|entry| page.push_str(&row(entry)));
    }
    page.push_str(
        "\n## What Redis 7.4 has besides\n\n\
         `INFO` and `HELLO` report version 7.4.0. Commands above with a later version are there as well.\n\n\
         | command | why it is unknown here |\n|---|---|\n",
    );
    for (name, reason) in MISSING {
        let _ = writeln!(page, "| `{}` | {reason} |", name.to_ascii_uppercase());
    }
    write_later(&mut page);
    page
}

/// The tables of what later versions of Redis, and modules, have.
fn write_later(page: &mut String) {
    page.push_str(
        "\n## Commands of later versions and of modules\n\n\
         They are refused: the error names the reason and what to use instead.\n\n\
         | command | since | what it is about | instead |\n|---|---|---|---|\n",
    );
    for LaterCommands { names, since, about, instead } in LATER {
        let names: Vec<String> =
            names.iter().map(|name| format!("`{}`", name.to_ascii_uppercase())).collect();
        let _ = writeln!(page, "| {} | {since} | {about} | {instead} |", names.join(", "));
    }
    page.push_str(
        "\n## Options of later versions\n\nThey are syntax errors.\n\n\
         | command | options | since |\n|---|---|---|\n",
    );
    for (command, options, since) in LATER_OPTIONS {
        let _ = writeln!(page, "| `{command}` | {options} | {since} |");
    }
}

fn row(entry: &Entry) -> String {
    let info = entry.info;
    let name = info.name.to_ascii_uppercase().replace('|', " ");
    let count = info.arity.unsigned_abs();
    let more = if info.arity < 0 { "+" } else { "" };
    let of = categories::of(info);
    let bits = categories::NAMES.iter().enumerate().filter(|(bit, _)| of & (1 << bit) != 0);
    let names: Vec<String> = bits.map(|(_, name)| format!("@{name}")).collect();
    let (names, since, summary) = (names.join(" "), info.since, info.summary.replace('|', "\\|"));
    format!("| `{name}` | {count}{more} | {since} | {names} | {summary} |\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::later;

    const OF_REDIS: &str = include_str!("../../../../testdata/redis/commands-7.4.txt");
    const OF_LATER: &str = include_str!("../../../../testdata/redis/commands-later.txt");
    const OF_MODULES: &str = include_str!("../../../../testdata/redis/commands-modules.txt");

    fn is_excused(name: &str) -> bool {
        MISSING.iter().any(|(missing, _)| match missing.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *missing,
        })
    }

    fn is_known(name: &str) -> bool {
        registry().named(name.as_bytes()).is_some()
    }

    #[test]
    fn every_command_of_redis_is_there_or_excused() {
        let all = || OF_REDIS.lines().chain(OF_MODULES.lines());
        assert!(400 < all().count(), "the lists are whole");
        let lost: Vec<&str> = all().filter(|name| !is_known(name) && !is_excused(name)).collect();
        assert!(lost.is_empty(), "neither known nor in MISSING: {lost:?}");
        let both: Vec<&str> = all().filter(|name| is_known(name) && is_excused(name)).collect();
        assert!(both.is_empty(), "known and in MISSING: {both:?}");
        let idle = MISSING.iter().filter(|(name, _)| {
            let start = name.trim_end_matches('*');
            !all().any(|one| one.starts_with(start))
        });
        assert_eq!(idle.count(), 0, "MISSING names what Redis has not");
    }

    #[test]
    fn every_command_of_later_versions_is_there_or_refused_with_a_reason() {
        for name in OF_LATER.lines().filter(|line| !line.starts_with('#')) {
            let is_refused = later::find(name.as_bytes()).is_some();
            assert!(is_known(name) != is_refused, "{name}: known or in LATER");
        }
    }

    #[test]
    fn tables_are_whole() {
        for entry in registry().all() {
            let info = entry.info;
            assert!(FAMILIES.iter().any(|(group, _)| *group == info.group), "{}", info.name);
            assert!(info.summary.ends_with('.'), "{}: a sentence", info.name);
            assert!(info.since.split('.').count() == 3, "{}: a version", info.name);
            assert!(info.arity != 0, "{}", info.name);
            let is_lower = info.name == info.name.to_ascii_lowercase();
            assert!(is_lower && info.name.matches('|').count() <= 1, "{}", info.name);
            assert!(info.name.contains('|') == entry.parent.is_some(), "{}: its parent", info.name);
        }
        let names = kv::commands::all().map(|one| one.info.name);
        let door = crate::commands::all().map(|one| one.info.name);
        let mut names: Vec<&str> = names.chain(door).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a command stands in the tables once");
    }

    /// `UPDATE=1 cargo test -p redis-server` writes the page anew.
    #[test]
    fn the_page_of_commands_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doors/redis-commands.md");
        let page = reference_page();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &page).expect("write docs/doors/redis-commands.md");
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            stored == page,
            "docs/doors/redis-commands.md is old; run UPDATE=1 cargo test -p redis-server"
        );
    }
}
