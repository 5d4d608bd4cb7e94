//! Users, and what they may do.
//!
//! Users are kept in memory, and in `keys/users.acl` of the data directory once `ACL SAVE` is said;
//! that file is read at the start and by `ACL LOAD`. Passwords are kept as their SHA-256. What
//! `--http-user` and `--bearer-token` say stays valid for the default user.

pub mod categories;
pub mod selector;

use super::registry::Known;
use kv::CommandError;
use selector::{Refusal, Selector};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// Passwords of one user.
const PASSWORDS_MAX: usize = 1000;
/// Sets of rules of one user.
const SELECTORS_MAX: usize = 1000;
/// Entries of the log that are alike within so many milliseconds are one.
const SAME_MS: i64 = 60_000;

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    /// Its name.
    pub name: Arc<[u8]>,
    /// Whether it may come in.
    pub is_on: bool,
    /// Whether any password is right.
    pub needs_no_password: bool,
    /// SHA-256 of its passwords, in hexadecimal.
    pub passwords: Vec<String>,
    /// What it may do: any of these.
    pub selectors: Vec<Selector>,
    /// Whether it may do everything.
    pub may_all: bool,
}

/// All users.
pub struct Acl {
    /// By name.
    pub users: BTreeMap<Vec<u8>, Arc<User>>,
    /// Changes with every change of a user.
    pub generation: u64,
    /// What was refused lately.
    pub refusals: VecDeque<Entry>,
    next_entry: u64,
}

/// Something that was refused.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number.
    pub id: u64,
    /// How often.
    pub count: u64,
    /// Why: `command`, `key`, `channel` or `auth`.
    pub reason: &'static str,
    /// Where: `toplevel`, `multi` or `lua`.
    pub context: &'static str,
    /// What.
    pub object: Vec<u8>,
    /// To whom.
    pub user: Vec<u8>,
    /// When first, in milliseconds since the epoch.
    pub created_ms: i64,
    /// When last.
    pub updated_ms: i64,
    /// The client's line.
    pub client: String,
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl User {
    /// A new one, who may nothing.
    pub fn new(name: &[u8], has_all_channels: bool) -> User {
        User {
            name: name.into(),
            is_on: false,
            needs_no_password: false,
            passwords: Vec::new(),
            selectors: vec![Selector::new(has_all_channels)],
            may_all: false,
        }
    }

    /// The one that clients are who do not say who they are.
    pub fn default_one() -> User {
        let mut user = User::new(b"default", true);
        user.is_on = true;
        user.needs_no_password = true;
        for rule in [b"allkeys".as_slice(), b"allcommands"] {
            let known = user.root().apply(rule);
            debug_assert_eq!(known, Ok(true));
        }
        user.note();
        user
    }

    /// The set of rules that is not in parentheses.
    pub fn root(&mut self) -> &mut Selector {
        if self.selectors.is_empty() {
            self.selectors.push(Selector::new(false));
        }
        &mut self.selectors[0]
    }

    /// Brings what is known of its rules up to date.
    pub fn note(&mut self) {
        self.may_all = self.selectors.iter().any(Selector::allows_all);
    }

    /// Whether it may come in with that password.
    pub fn allows_password(&self, password: &[u8]) -> bool {
        let hash = sha256(password);
        let mut is_right = self.needs_no_password;
        for known in &self.passwords {
            is_right |= bool::from(known.as_bytes().ct_eq(hash.as_bytes()));
        }
        is_right
    }

    /// Takes a rule.
    ///
    /// # Errors
    /// In the words that clients know.
    pub fn apply(&mut self, rule: &[u8], has_all_channels: bool) -> Result<(), String> {
        let lower = rule.to_ascii_lowercase();
        match lower.as_slice() {
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"nopass" => {
                self.needs_no_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.needs_no_password = false;
                self.passwords.clear();
            }
            b"reset" => *self = User::new(&self.name, has_all_channels),
            b"clearselectors" => self.selectors.truncate(1),
            b"sanitize-payload" | b"skip-sanitize-payload" | b"" => {}
            [b'>', ..] => self.add_password(sha256(&rule[1..]))?,
            [b'#', ..] => self.add_password(hash_arg(&rule[1..])?)?,
            [b'<', ..] => self.take_password(&sha256(&rule[1..]))?,
            [b'!', ..] => self.take_password(&hash_arg(&rule[1..])?)?,
            [b'(', .., b')'] => self.add_selector(&rule[1..rule.len() - 1], has_all_channels)?,
            _ => {
                if !self.root().apply(rule)? {
                    return Err("Syntax error".to_owned());
                }
            }
        }
        self.note();
        Ok(())
    }

    fn add_password(&mut self, hash: String) -> Result<(), String> {
        if PASSWORDS_MAX <= self.passwords.len() {
            return Err(format!("a user may have {PASSWORDS_MAX} passwords at most"));
        }
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.needs_no_password = false;
        Ok(())
    }

    fn take_password(&mut self, hash: &str) -> Result<(), String> {
        let at = self.passwords.iter().position(|known| known == hash);
        let at = at.ok_or("The password you are trying to remove from the user does not exist")?;
        self.passwords.remove(at);
        Ok(())
    }

    fn add_selector(&mut self, rules: &[u8], has_all_channels: bool) -> Result<(), String> {
        if SELECTORS_MAX <= self.selectors.len() {
            return Err(format!("a user may have {SELECTORS_MAX} selectors at most"));
        }
        let mut selector = Selector::new(has_all_channels);
        for rule in rules.split(u8::is_ascii_whitespace).filter(|rule| !rule.is_empty()) {
            if !selector.apply(rule)? {
                return Err("Syntax error".to_owned());
            }
        }
        self.selectors.push(selector);
        Ok(())
    }

    /// The user as a line of the file of users.
    pub fn line(&self) -> Vec<u8> {
        let mut parts: Vec<Vec<u8>> = vec![b"user".to_vec(), self.name.to_vec()];
        parts.push(if self.is_on { b"on".to_vec() } else { b"off".to_vec() });
        if self.needs_no_password {
            parts.push(b"nopass".to_vec());
        }
        parts.extend(self.passwords.iter().map(|hash| format!("#{hash}").into_bytes()));
        for (at, selector) in self.selectors.iter().enumerate() {
            let line = selector.line();
            parts.push(if at == 0 { line } else { [b"(".as_slice(), &line, b")"].concat() });
        }
        parts.join(&b' ')
    }

    /// Whether a command may be said with these arguments; why not, if any set of rules came nearer.
    ///
    /// # Errors
    /// What is refused.
    pub fn check(&self, known: Known, args: &[&[u8]]) -> Result<(), Refusal> {
        if self.may_all {
            return Ok(());
        }
        let mut nearest: Option<(u8, usize, Refusal)> = None;
        for selector in &self.selectors {
            let Err((refusal, place)) = selector.check(known, args) else { return Ok(()) };
            let rank = match refusal {
                Refusal::Command => 0,
                Refusal::Key(_) => 1,
                Refusal::Channel(_) => 2,
            };
            let is_nearer = nearest.as_ref().is_none_or(|(old, at, _)| (*old, *at) < (rank, place));
            if is_nearer {
                nearest = Some((rank, place, refusal));
            }
        }
        Err(nearest.map_or(Refusal::Command, |(_, _, refusal)| refusal))
    }

    /// Whether `SORT` may follow patterns to keys that nobody names: only for who may read all.
    ///
    /// # Errors
    /// In the words that clients know.
    pub fn check_patterns(&self, known: Known, args: &[&[u8]]) -> Result<(), CommandError> {
        if !matches!(known.info().name, "sort" | "sort_ro") {
            return Ok(());
        }
        let Some(option) = kv::commands::sort::follows_keys(args) else { return Ok(()) };
        match self.selectors.iter().any(|one| one.allows_reading_all(known, args)) {
            true => Ok(()),
            false => Err(CommandError::new(format!(
                "ERR {option} option of SORT denied due to insufficient ACL permissions."
            ))),
        }
    }

    /// Whether a key may be read by a command whose arguments do not name it.
    pub fn may_read(&self, known: Known, args: &[&[u8]], key: &[u8]) -> bool {
        self.selectors.iter().any(|selector| selector.allows_reading(known, args, key))
    }

    /// Whether a channel may be listened to.
    pub fn may_listen(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors.iter().any(|selector| selector.allows_channel(channel, is_pattern))
    }
}

/// A SHA-256 in hexadecimal.
fn hash_arg(text: &[u8]) -> Result<String, String> {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    match text.len() == 64 && text.iter().all(is_hex) {
        true => Ok(String::from_utf8_lossy(text).into_owned()),
        false => Err("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters".to_owned()),
    }
}

/// Rules whose parentheses may stretch over several arguments, each whole.
///
/// # Errors
/// In the words that clients know.
pub fn whole_rules(rules: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
    let mut whole: Vec<Vec<u8>> = Vec::new();
    let (mut open, mut first): (Option<Vec<u8>>, &[u8]) = (None, &[]);
    for rule in rules {
        match &mut open {
            Some(selector) => {
                selector.push(b' ');
                selector.extend_from_slice(rule);
            }
            None if rule.starts_with(b"(") => (open, first) = (Some(rule.to_vec()), rule),
            None => whole.push(rule.to_vec()),
        }
        if open.as_ref().is_some_and(|selector| selector.ends_with(b")")) {
            whole.extend(open.take());
        }
    }
    match open {
        Some(_) => Err(format!(
            "ERR Unmatched parenthesis in acl selector starting at '{}'.",
            String::from_utf8_lossy(first)
        )),
        None => Ok(whole),
    }
}

impl Default for Acl {
    fn default() -> Acl {
        let mut users = BTreeMap::new();
        users.insert(b"default".to_vec(), Arc::new(User::default_one()));
        Acl { users, generation: 1, refusals: VecDeque::new(), next_entry: 0 }
    }
}

impl Acl {
    /// A user.
    pub fn user(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.users.get(name)
    }

    /// Sets a user.
    pub fn put(&mut self, user: User) {
        self.generation += 1;
        self.users.insert(user.name.to_vec(), Arc::new(user));
    }

    /// Takes a user out. Returns whether it was there.
    pub fn take(&mut self, name: &[u8]) -> bool {
        self.generation += 1;
        self.users.remove(name).is_some()
    }

    /// Keeps a refusal, with those like it.
    pub fn note(&mut self, mut entry: Entry, len_max: usize) {
        let alike = self.refusals.iter().position(|old| {
            (old.reason, old.context) == (entry.reason, entry.context)
                && (&old.object, &old.user) == (&entry.object, &entry.user)
                && entry.updated_ms - old.updated_ms <= SAME_MS
        });
        if let Some(mut old) = alike.and_then(|at| self.refusals.remove(at)) {
            old.count += 1;
            old.updated_ms = entry.updated_ms;
            old.client = entry.client;
            self.refusals.push_front(old);
        } else {
            entry.id = self.next_entry;
            self.next_entry += 1;
            self.refusals.push_front(entry);
        }
        self.refusals.truncate(len_max);
    }

    /// The users of a file: all of them, or none.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn read(text: &[u8], has_all_channels: bool) -> Result<Vec<User>, String> {
        let mut users: Vec<User> = Vec::new();
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let words: Vec<&[u8]> =
                line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
            let (name, rules) = match words.as_slice() {
                [] => continue,
                [first, name, rules @ ..] if first.eq_ignore_ascii_case(b"user") => (*name, rules),
                _ => {
                    return Err(format!(
                        "{}: line should start with user keyword followed by a name",
                        at + 1
                    ));
                }
            };
            if users.iter().any(|user| *user.name == *name) {
                let name = String::from_utf8_lossy(name);
                return Err(format!("{}: Duplicate user '{name}' found", at + 1));
            }
            let mut user = User::new(name, has_all_channels);
            for rule in whole_rules(rules).map_err(|error| format!("{}: {error}", at + 1))? {
                let applied = user.apply(&rule, has_all_channels);
                applied.map_err(|error| format!("{}: {error}", at + 1))?;
            }
            users.push(user);
        }
        Ok(users)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(rules: &[&str]) -> User {
        let mut user = User::new(b"u", false);
        let rules: Vec<&[u8]> = rules.iter().map(|rule| rule.as_bytes()).collect();
        for rule in whole_rules(&rules).expect("whole rules") {
            user.apply(&rule, false).expect("a rule");
        }
        user
    }

    fn check(user: &User, words: &[&str]) -> Result<(), Refusal> {
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        user.check(Known::find(&args).expect("a command"), &args)
    }

    #[test]
    fn rules_are_shown_as_they_hold() {
        for (rules, shown) in [
            (&["+@all", "-client", "+client|id"][..], "+@all -client +client|id"),
            (&["+memory|doctor", "+memory"], "-@all +memory"),
            (&["+memory", "+@all", "+client|id"], "+@all"),
            (&["+@all", "-memory|doctor", "-memory"], "+@all -memory"),
            (&["+select|0"], "-@all +select|0"),
            (
                &["+@all", "-@string", "+incr", "-debug", "+debug|digest"],
                "+@all -@string +incr -debug +debug|digest",
            ),
        ] {
            assert_eq!(user(rules).root().commands_text(), shown, "{rules:?}");
        }
    }

    #[test]
    fn keys_are_read_and_written_by_who_may() {
        let one = user(&["%R~r*", "%W~w*", "+@all"]);
        assert_eq!(check(&one, &["get", "r1"]), Ok(()));
        assert_eq!(check(&one, &["get", "w1"]), Err(Refusal::Key(b"w1".to_vec())));
        assert_eq!(check(&one, &["set", "w1", "v"]), Ok(()));
        assert_eq!(check(&one, &["set", "w1", "v", "get"]), Err(Refusal::Key(b"w1".to_vec())));
        let two = user(&["(+@write", "~w:*)", "(+@read ~r:*)"]);
        assert_eq!(check(&two, &["set", "w:1", "v"]), Ok(()));
        assert_eq!(check(&two, &["get", "w:1"]), Err(Refusal::Key(b"w:1".to_vec())));
        assert_eq!(check(&two, &["ping"]), Err(Refusal::Command));
    }

    #[test]
    fn users_survive_their_file() {
        let before = user(&["on", ">secret", "~a*", "&c", "+get", "(%R~x +@set)"]);
        let after = Acl::read(&before.line(), false).expect("a line of ours");
        assert_eq!(after[0].line(), before.line());
        assert!(after[0].allows_password(b"secret") && !after[0].allows_password(b"other"));
        assert!(Acl::read(b"user a on\nuser a off", false).is_err());
    }
}
