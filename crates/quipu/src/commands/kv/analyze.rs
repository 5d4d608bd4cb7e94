//! `quipu kv analyze`: what takes room among the keys of a server.
//!
//! ```text
//! INFO keyspace ─► each database: SCAN ─► TYPE, MEMORY USAGE, PTTL of each key ─► sums
//! ```

use super::bar;
use super::fold::fold;
use anyhow::Context as _;
use clap::{ArgMatches, Command, value_parser};
use cli::arguments::option;
use cli::quantity::format_size;
use http_client::resp::{Answer, Connection, arguments};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Keys that are asked for at a time.
const SCAN_COUNT: &str = "1000";
/// Patterns that are told apart; further ones are one.
const PATTERNS_MAX: usize = 100_000;
const OTHERS: &str = "(others)";
/// Bytes of a key that are shown.
const SHOWN_SIZE_MAX: usize = 96;
/// Times to live, up to so many milliseconds.
const TTLS: &[(i64, &str)] = &[
    (60_000, "up to a minute"),
    (3_600_000, "up to an hour"),
    (86_400_000, "up to a day"),
    (7 * 86_400_000, "up to a week"),
    (30 * 86_400_000, "up to 30 days"),
    (i64::MAX, "longer"),
];
const NO_TTL: &str = "never";

/// The subcommand.
pub fn command() -> Command {
    let command = Command::new("analyze")
        .about("Shows what takes room among the keys of a running server")
        .after_help(
            "Goes through all keys by SCAN and asks for the type, the memory and the time to live \
             of each; nothing is changed, and the server goes on meanwhile. Sizes are those of \
             values in memory. Keys on disk are read for it: on a large server that takes a while.\n\
             A pattern is a key whose numbers, UUIDs and long hexadecimal words are folded. \
             Compression is that of values on disk, by group of keys, since the group was last \
             judged. The server may be a Redis, too, without the last.\n\n\
             quipu kv analyze --top 20\n\
             quipu kv analyze --url redis://10.0.0.7:7379 --format json > keys.json",
        )
        .arg(
            option("top", "N", "Rows of each table")
                .default_value("10")
                .value_parser(value_parser!(u16)),
        )
        .arg(
            option("format", "FORMAT", "text or json")
                .default_value("text")
                .value_parser(["text", "json"]),
        );
    arguments(command)
}

/// Keys and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    keys: u64,
    bytes: u64,
}

/// What was found.
#[derive(Default)]
struct Findings {
    all: Sum,
    databases: BTreeMap<u64, Sum>,
    types: BTreeMap<String, Sum>,
    patterns: BTreeMap<String, Sum>,
    ttls: BTreeMap<&'static str, Sum>,
    biggest: Vec<Key>,
    compression: Vec<Group>,
}

/// A key.
struct Key {
    bytes: u64,
    db: u64,
    name: String,
    of_type: String,
}

/// What coding gained of a group of keys.
struct Group {
    name: String,
    plain: u64,
    coded: u64,
}

/// Looks at all keys.
///
/// # Errors
/// When the server refuses or goes away.
pub fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let top = usize::from(*matches.get_one::<u16>("top").unwrap_or(&10));
    let mut connection = Connection::open(matches)?;
    // So that looking at keys is no use of them.
    let _ = connection.call(&[b"CLIENT", b"NO-EVICT", b"on"]);
    let _ = connection.call(&[b"CLIENT", b"NO-TOUCH", b"on"]);
    let databases = databases(&mut connection)?;
    let bar = bar(
        databases.iter().map(|(_, keys)| keys).sum(),
        "{bar:30} {human_pos} of {human_len} keys, {per_sec}, {eta} left",
    )?;
    let mut findings = Findings::default();
    for (db, _) in databases {
        connection.call(&[b"SELECT", db.to_string().as_bytes()])?;
        let mut cursor = b"0".to_vec();
        loop {
            let (next, keys) = scan(&mut connection, &cursor)?;
            look(&mut connection, db, &keys, top, &mut findings)?;
            bar.inc(keys.len() as u64);
            cursor = next;
            if cursor == b"0" {
                break;
            }
        }
    }
    bar.finish_and_clear();
    findings.compression = compression(&mut connection)?;
    let is_json = matches.get_one::<String>("format").is_some_and(|format| format == "json");
    match is_json {
        true => cli::print_line!("{:#}", findings.json(top)),
        false => print!("{}", findings.text(top)),
    }
    Ok(ExitCode::SUCCESS)
}

fn info(connection: &mut Connection, section: &str) -> anyhow::Result<String> {
    match connection.call(&[b"INFO", section.as_bytes()])? {
        Answer::Bytes(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        _ => Ok(String::new()),
    }
}

/// The databases with keys, and how many they have.
fn databases(connection: &mut Connection) -> anyhow::Result<Vec<(u64, u64)>> {
    let text = info(connection, "keyspace")?;
    let databases = text.lines().filter_map(|line| {
        let (db, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
        let keys = rest.split(',').next()?;
        Some((db.parse().ok()?, keys.parse().ok()?))
    });
    Ok(databases.collect())
}

/// The values of a line `a=1,b=2`.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

fn compression(connection: &mut Connection) -> anyhow::Result<Vec<Group>> {
    let text = info(connection, "compression")?;
    let groups = text.lines().filter_map(|line| {
        let (_, rest) = line.strip_prefix("group_")?.split_once(':')?;
        let number = |name: &str| field(rest, name)?.parse().ok();
        let name = rest.split_once("name=")?.1.to_owned();
        Some(Group { name, plain: number("plain")?, coded: number("coded")? })
    });
    let mut groups: Vec<Group> = groups.filter(|group| 0 < group.plain).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.plain));
    Ok(groups)
}

fn scan(connection: &mut Connection, cursor: &[u8]) -> anyhow::Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let answer = connection.call(&[b"SCAN", cursor, b"COUNT", SCAN_COUNT.as_bytes()])?;
    let Answer::Items(items) = answer else { anyhow::bail!("SCAN answers no cursor") };
    let [Answer::Bytes(next), Answer::Items(keys)] = items.as_slice() else {
        anyhow::bail!("SCAN answers no cursor");
    };
    let keys = keys.iter().filter_map(|key| match key {
        Answer::Bytes(key) => Some(key.clone()),
        _ => None,
    });
    Ok((next.clone(), keys.collect()))
}

/// Asks for what is known of keys, and adds it up.
fn look(
    connection: &mut Connection,
    db: u64,
    keys: &[Vec<u8>],
    top: usize,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    for key in keys {
        connection.add(key, &[b"TYPE", key]);
        connection.add(key, &[b"MEMORY", b"USAGE", key]);
        connection.add(key, &[b"PTTL", key]);
    }
    let mut answers: Vec<Answer> = Vec::new();
    connection
        .flush(&mut |key, answer| {
            answers.push(answer);
            if answers.len() == 3 {
                // One that went meanwhile has no memory.
                if let [Answer::Done(of_type), Answer::Int(bytes), Answer::Int(ttl)] = &answers[..]
                {
                    let bytes = u64::try_from(*bytes).unwrap_or(0);
                    findings.add(db, key, of_type, bytes, *ttl, top);
                }
                answers.clear();
            }
        })
        .context("while keys were looked at")
}

impl Findings {
    fn add(&mut self, db: u64, key: &[u8], of_type: &str, bytes: u64, ttl: i64, top: usize) {
        let mut pattern = fold(key);
        if PATTERNS_MAX <= self.patterns.len() && !self.patterns.contains_key(&pattern) {
            pattern = OTHERS.to_owned();
        }
        let ttl = match ttl {
            ..0 => NO_TTL,
            ttl => TTLS.iter().find(|(max, _)| ttl <= *max).map_or(NO_TTL, |(_, name)| *name),
        };
        let sums = [
            &mut self.all,
            self.databases.entry(db).or_default(),
            self.types.entry(of_type.to_owned()).or_default(),
            self.patterns.entry(pattern).or_default(),
            self.ttls.entry(ttl).or_default(),
        ];
        for sum in sums {
            sum.keys += 1;
            sum.bytes += bytes;
        }
        let at = self.biggest.partition_point(|one| bytes <= one.bytes);
        if at < top {
            let shown = key.get(..SHOWN_SIZE_MAX).unwrap_or(key);
            let name = String::from_utf8_lossy(shown).into_owned();
            self.biggest.insert(at, Key { bytes, db, name, of_type: of_type.to_owned() });
            self.biggest.truncate(top);
        }
    }

    /// Patterns, the one with the most bytes first.
    fn top_patterns(&self, top: usize) -> Vec<(&str, Sum)> {
        let mut all: Vec<(&str, Sum)> =
            self.patterns.iter().map(|(name, sum)| (name.as_str(), *sum)).collect();
        all.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.bytes, sum.keys)));
        all.truncate(top);
        all
    }

    fn ttls(&self) -> impl Iterator<Item = (&'static str, Sum)> {
        let names = TTLS.iter().map(|(_, name)| *name).chain([NO_TTL]);
        names.filter_map(|name| Some((name, *self.ttls.get(name)?)))
    }

    fn text(&self, top: usize) -> String {
        let mut text = String::new();
        let biggest = self.biggest.iter().map(|key| {
            vec![
                format_size(key.bytes),
                key.of_type.clone(),
                format!("db{}", key.db),
                key.name.clone(),
            ]
        });
        table(&mut text, "Biggest keys", &["memory", "type", "database", "key"], biggest);
        let sums = |rows: Vec<(String, Sum)>| {
            rows.into_iter()
                .map(|(name, sum)| {
                    let each = sum.bytes / sum.keys.max(1);
                    vec![format_size(sum.bytes), sum.keys.to_string(), format_size(each), name]
                })
                .collect::<Vec<_>>()
        };
        let head = |name| ["memory", "keys", "each", name];
        let patterns = self.top_patterns(top);
        let patterns = patterns.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
        table(&mut text, "Patterns", &head("pattern"), sums(patterns));
        let types = self.types.iter().map(|(name, sum)| (name.clone(), *sum)).collect();
        table(&mut text, "Types", &head("type"), sums(types));
        let ttls = self.ttls().map(|(name, sum)| (name.to_owned(), sum)).collect();
        table(&mut text, "Time until they expire", &head("time"), sums(ttls));
        let databases = self.databases.iter().map(|(db, sum)| (format!("db{db}"), *sum));
        let mut databases: Vec<(String, Sum)> = databases.collect();
        databases.push(("all".to_owned(), self.all));
        table(&mut text, "Databases", &head("database"), sums(databases));
        let compression = self.compression.iter().take(top).map(|group| {
            let share = group.coded as f64 * 100.0 / group.plain.max(1) as f64;
            vec![
                format_size(group.plain),
                format_size(group.coded),
                format!("{share:.0}%"),
                group.name.clone(),
            ]
        });
        let head = ["plain", "on disk", "share", "group"];
        table(&mut text, "Compression on disk", &head, compression);
        text
    }

    fn json(&self, top: usize) -> Value {
        let sum = |sum: &Sum| json!({"keys": sum.keys, "bytes": sum.bytes});
        let named =
            |name: &str, sum: &Sum| json!({"name": name, "keys": sum.keys, "bytes": sum.bytes});
        json!({
            "all": sum(&self.all),
            "biggest": self.biggest.iter().map(|key| json!({
                "database": key.db, "key": key.name, "type": key.of_type, "bytes": key.bytes,
            })).collect::<Vec<_>>(),
            "patterns": self.top_patterns(top).iter()
                .map(|(name, sum)| named(name, sum)).collect::<Vec<_>>(),
            "types": self.types.iter().map(|(name, sum)| named(name, sum)).collect::<Vec<_>>(),
            "expiry": self.ttls().map(|(name, sum)| named(name, &sum)).collect::<Vec<_>>(),
            "databases": self.databases.iter().map(|(db, sum)| json!({
                "database": db, "keys": sum.keys, "bytes": sum.bytes,
            })).collect::<Vec<_>>(),
            "compression": self.compression.iter().take(top).map(|group| json!({
                "group": group.name, "plain_bytes": group.plain, "coded_bytes": group.coded,
            })).collect::<Vec<_>>(),
        })
    }
}

/// Appends a table with columns as wide as they need to be; none without rows.
fn table(
    text: &mut String,
    title: &str,
    head: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) {
    let mut lines = vec![head.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    lines.extend(rows);
    if lines.len() == 1 {
        return;
    }
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(title);
    text.push('\n');
    for line in &lines {
        // Numbers stand to the right, the name behind them to the left.
        let (last, numbers) = line.split_last().map_or((None, &[][..]), |(l, n)| (Some(l), n));
        for (cell, width) in numbers.iter().zip(&widths) {
            text.push_str(&format!("  {cell:>width$}"));
        }
        text.push_str(&format!("  {}\n", last.map_or("", String::as_str)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_added_up_and_the_biggest_are_kept() {
        let mut findings = Findings::default();
        for number in 0..100u64 {
            let ttl = if number % 2 == 0 { -1 } else { 30_000 };
            findings.add(0, format!("user:{number}").as_bytes(), "hash", 100 + number, ttl, 2);
        }
        findings.add(3, b"big", "list", 5000, 999_999_999_999, 2);
        assert_eq!(findings.all, Sum { keys: 101, bytes: 14_950 + 5000 });
        let biggest: Vec<&str> = findings.biggest.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(biggest, ["big", "user:99"]);
        assert_eq!(findings.top_patterns(1), [("user:<n>", Sum { keys: 100, bytes: 14_950 })]);
        let text = findings.text(5);
        assert!(text.contains("up to a minute") && text.contains("longer"), "{text}");
        assert_eq!(findings.json(5)["expiry"][0]["keys"], 50);
    }
}
