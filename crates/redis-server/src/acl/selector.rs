//! What one set of rules allows: commands, keys and channels.

use super::categories;
use crate::registry::access;
use crate::registry::{Entry, Known, registry};
use kv::commands::NO_AUTH;
use std::collections::BTreeMap;

/// Rules on commands, keys and channels of one set.
const RULES_MAX: usize = 10_000;
const ALL_KEYS: &str = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns";

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The command.
    Command,
    /// A key.
    Key(Vec<u8>),
    /// A channel.
    Channel(Vec<u8>),
}

/// Keys that fit a pattern, and what may be done to them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyRule {
    pattern: Vec<u8>,
    reads: bool,
    writes: bool,
}

/// One set of rules.
#[derive(Clone, Debug)]
pub struct Selector {
    /// Whether a command may be said, by its number.
    allowed: Vec<bool>,
    /// First arguments with which other commands may be said.
    first_args: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Whether commands are allowed that there are not yet.
    allows_future: bool,
    /// The rules on commands, as they are shown.
    rules: Vec<String>,
    keys: Vec<KeyRule>,
    has_all_keys: bool,
    channels: Vec<Vec<u8>>,
    has_all_channels: bool,
}

impl Selector {
    /// One that allows nothing; all channels, if that is the custom here.
    pub fn new(has_all_channels: bool) -> Selector {
        Selector {
            allowed: vec![false; registry().all().len()],
            first_args: BTreeMap::new(),
            allows_future: false,
            rules: Vec::new(),
            keys: Vec::new(),
            has_all_keys: false,
            channels: Vec::new(),
            has_all_channels,
        }
    }

    /// Whether all is allowed.
    pub fn allows_all(&self) -> bool {
        self.has_all_keys && self.has_all_channels && self.allowed.iter().all(|allowed| *allowed)
    }

    // ---- rules ----

    /// Takes a rule. Returns whether it is one of a set; that and nothing else may stand in
    /// parentheses.
    ///
    /// # Errors
    /// In the words that clients know.
    pub fn apply(&mut self, rule: &[u8]) -> Result<bool, String> {
        let lower = rule.to_ascii_lowercase();
        match lower.as_slice() {
            b"allkeys" | b"~*" => {
                self.keys.clear();
                self.has_all_keys = true;
            }
            b"resetkeys" => {
                self.keys.clear();
                self.has_all_keys = false;
            }
            b"allchannels" | b"&*" => {
                self.channels.clear();
                self.has_all_channels = true;
            }
            b"resetchannels" => {
                self.channels.clear();
                self.has_all_channels = false;
            }
            b"allcommands" | b"+@all" => self.set_all(true),
            b"nocommands" | b"-@all" => self.set_all(false),
            [b'~' | b'%', ..] if self.has_all_keys => return Err(ALL_KEYS.to_owned()),
            [b'~', ..] => self.add_key(&rule[1..], true, true)?,
            [b'%', ..] => self.add_key_with_letters(&rule[1..])?,
            [b'&', ..] => self.add_channel(&rule[1..])?,
            [b'+', b'@', name @ ..] => self.set_category(name, true)?,
            [b'-', b'@', name @ ..] => self.set_category(name, false)?,
            [b'+', name @ ..] => self.set_command(name, true)?,
            [b'-', name @ ..] => self.set_command(name, false)?,
            _ => return Ok(false),
        }
        let count = self.rules.len() + self.keys.len() + self.channels.len();
        if RULES_MAX < count {
            return Err(format!("there may be {RULES_MAX} rules at most"));
        }
        Ok(true)
    }

    fn set_all(&mut self, is_allowed: bool) {
        self.allowed.fill(is_allowed);
        self.first_args.clear();
        self.rules.clear();
        self.allows_future = is_allowed;
    }

    fn add_key_with_letters(&mut self, rule: &[u8]) -> Result<(), String> {
        let end = rule.iter().position(|byte| *byte == b'~').ok_or("Syntax error")?;
        let (letters, pattern) = (&rule[..end], &rule[end + 1..]);
        let has = |letter: u8| letters.iter().any(|one| one.eq_ignore_ascii_case(&letter));
        let others = letters.iter().any(|one| !b"rwRW".contains(one));
        match letters.is_empty() || others {
            true => Err("Syntax error".to_owned()),
            false => self.add_key(pattern, has(b'r'), has(b'w')),
        }
    }

    fn add_key(&mut self, pattern: &[u8], reads: bool, writes: bool) -> Result<(), String> {
        check_pattern(pattern)?;
        if let Some(known) = self.keys.iter_mut().find(|known| known.pattern == pattern) {
            known.reads |= reads;
            known.writes |= writes;
            return Ok(());
        }
        self.keys.push(KeyRule { pattern: pattern.to_vec(), reads, writes });
        Ok(())
    }

    fn add_channel(&mut self, pattern: &[u8]) -> Result<(), String> {
        check_pattern(pattern)?;
        if self.has_all_channels {
            return Err("Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels".to_owned());
        }
        if !self.channels.iter().any(|known| known == pattern) {
            self.channels.push(pattern.to_vec());
        }
        Ok(())
    }

    fn set_category(&mut self, name: &[u8], is_allowed: bool) -> Result<(), String> {
        let name = String::from_utf8_lossy(name).into_owned();
        let bit = categories::bit(&name).ok_or(UNKNOWN)?;
        for entry in registry().all() {
            if categories::of(entry.info) & bit != 0 {
                self.allowed[entry.number] = is_allowed;
                self.first_args.remove(&entry.number);
            }
        }
        self.note_rule(&format!("@{name}"), is_allowed);
        Ok(())
    }

    fn set_command(&mut self, name: &[u8], is_allowed: bool) -> Result<(), String> {
        let Some(entry) = registry().named(name) else {
            return self.set_first_arg(name, is_allowed);
        };
        let numbers = std::iter::once(entry.number).chain(entry.children.iter().copied());
        let is_news = numbers.clone().any(|number| self.allowed[number] != is_allowed)
            || self.first_args.contains_key(&entry.number);
        for number in numbers {
            self.allowed[number] = is_allowed;
        }
        self.first_args.remove(&entry.number);
        let own = format!("{}|", entry.info.name);
        self.rules.retain(|rule| !rule[1..].starts_with(&own));
        if is_news || !self.allows_future && !is_allowed && self.rules.is_empty() {
            self.note_rule(entry.info.name, is_allowed);
        }
        Ok(())
    }

    /// A command with its first argument, as `select|0`.
    fn set_first_arg(&mut self, name: &[u8], is_allowed: bool) -> Result<(), String> {
        let at = name.iter().position(|byte| *byte == b'|').ok_or(UNKNOWN)?;
        let (command, argument) = (&name[..at], &name[at + 1..]);
        let entry = registry().named(command).ok_or(UNKNOWN)?;
        let is_nested = argument.contains(&b'|');
        if !entry.children.is_empty() {
            let sub = argument.split(|byte| *byte == b'|').next().unwrap_or_default();
            return match is_nested && registry().child(entry, sub).is_some() {
                true => Err("Allowing first-arg of a subcommand is not supported".to_owned()),
                false => Err(UNKNOWN.to_owned()),
            };
        }
        if is_nested || argument.is_empty() || !is_allowed {
            return Err(UNKNOWN.to_owned());
        }
        let known = self.first_args.entry(entry.number).or_default();
        if !known.iter().any(|known| known == argument) {
            known.push(argument.to_vec());
        }
        if !self.allowed[entry.number] {
            self.note_rule(&String::from_utf8_lossy(name), true);
        }
        Ok(())
    }

    /// Keeps a rule to be shown; one about the same that came before says nothing any more.
    fn note_rule(&mut self, name: &str, is_allowed: bool) {
        self.rules.retain(|rule| &rule[1..] != name);
        let sign = if is_allowed { '+' } else { '-' };
        self.rules.push(format!("{sign}{name}"));
    }

    // ---- as text ----

    /// The rules on commands.
    pub fn commands_text(&self) -> String {
        let first = if self.allows_future { "+@all" } else { "-@all" };
        let rules = std::iter::once(first).chain(self.rules.iter().map(String::as_str));
        rules.collect::<Vec<_>>().join(" ")
    }

    /// The rules on keys.
    pub fn keys_text(&self) -> Vec<u8> {
        if self.has_all_keys {
            return b"~*".to_vec();
        }
        let rules = self.keys.iter().map(|rule| {
            let sign: &[u8] = match (rule.reads, rule.writes) {
                (true, true) => b"~",
                (true, false) => b"%R~",
                _ => b"%W~",
            };
            [sign, &rule.pattern].concat()
        });
        rules.collect::<Vec<_>>().join(&b' ')
    }

    /// The rules on channels.
    pub fn channels_text(&self) -> Vec<u8> {
        if self.has_all_channels {
            return b"&*".to_vec();
        }
        let rules = self.channels.iter().map(|pattern| [b"&", pattern.as_slice()].concat());
        rules.collect::<Vec<_>>().join(&b' ')
    }

    /// All rules, as a line of the file of users has them.
    pub fn line(&self) -> Vec<u8> {
        let keys = self.keys_text();
        let mut channels = self.channels_text();
        if !self.has_all_channels {
            let gap: &[u8] = if channels.is_empty() { b"" } else { b" " };
            channels = [b"resetchannels", gap, &channels].concat();
        }
        let parts = [keys, channels, self.commands_text().into_bytes()];
        let parts: Vec<Vec<u8>> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(&b' ')
    }

    // ---- checks ----

    /// Whether a command may be said with these arguments.
    pub fn check(&self, known: Known, args: &[&[u8]]) -> Result<(), (Refusal, usize)> {
        let entry = known.0;
        if !self.allows_command(entry, args) {
            return Err((Refusal::Command, 0));
        }
        if !self.has_all_keys {
            self.check_keys(entry, args)?;
        }
        if !self.has_all_channels {
            self.check_channels(entry, args)?;
        }
        Ok(())
    }

    fn allows_command(&self, entry: &Entry, args: &[&[u8]]) -> bool {
        if self.allowed[entry.number] || entry.info.is(NO_AUTH) {
            return true;
        }
        let (first, args) = (args.get(1), self.first_args.get(&entry.number));
        let (Some(first), Some(args)) = (first, args) else { return false };
        args.iter().any(|arg| arg.eq_ignore_ascii_case(first))
    }

    fn check_keys(&self, entry: &Entry, args: &[&[u8]]) -> Result<(), (Refusal, usize)> {
        let places = entry.info.key_places(args).unwrap_or_default();
        let accesses = access::of_places(entry.info, args, &places);
        for (place, access) in places.iter().zip(accesses) {
            let Some(key) = args.get(*place) else { continue };
            if access & access::NOT_KEY == 0 && !self.allows_key(key, access) {
                return Err((Refusal::Key(key.to_vec()), *place));
            }
        }
        Ok(())
    }

    /// Whether a key may be used so.
    pub fn allows_key(&self, key: &[u8], access: u32) -> bool {
        let reads = access & access::READS != 0;
        let writes = access & access::WRITES != 0;
        let fits = |rule: &&KeyRule| {
            (rule.reads || !reads)
                && (rule.writes || !writes)
                && kv::glob::matches(&rule.pattern, key)
        };
        self.has_all_keys || self.keys.iter().any(|rule| fits(&rule))
    }

    /// Whether a command may read every key.
    pub fn allows_reading_all(&self, known: Known, args: &[&[u8]]) -> bool {
        let has_all = self.keys.iter().any(|rule| rule.reads && rule.pattern == b"*");
        self.allows_command(known.0, args) && (self.has_all_keys || has_all)
    }

    /// Whether a command may read a key that its arguments do not name.
    pub fn allows_reading(&self, known: Known, args: &[&[u8]], key: &[u8]) -> bool {
        self.allows_command(known.0, args) && self.allows_key(key, access::READS)
    }

    fn check_channels(&self, entry: &Entry, args: &[&[u8]]) -> Result<(), (Refusal, usize)> {
        let (range, is_pattern) = match entry.info.name {
            "publish" | "spublish" => (1..2, false),
            "subscribe" | "ssubscribe" => (1..args.len(), false),
            "psubscribe" => (1..args.len(), true),
            _ => return Ok(()),
        };
        for place in range {
            let Some(channel) = args.get(place) else { continue };
            if !self.allows_channel(channel, is_pattern) {
                return Err((Refusal::Channel(channel.to_vec()), place));
            }
        }
        Ok(())
    }

    /// Whether a channel may be used; a pattern of channels only if it is said so itself.
    pub fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let fits = |pattern: &Vec<u8>| match is_pattern {
            true => pattern == channel,
            false => kv::glob::matches(pattern, channel),
        };
        self.has_all_channels || self.channels.iter().any(fits)
    }
}

const UNKNOWN: &str = "Unknown command or category name in ACL";

/// Rules stand in lines of words.
fn check_pattern(pattern: &[u8]) -> Result<(), String> {
    match pattern.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        true => Err("Syntax error".to_owned()),
        false => Ok(()),
    }
}
