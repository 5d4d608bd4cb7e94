//! What a connection has sent, unit by unit, what was answered, and when.

use super::patterns::{FAMILIES, Family, MORE_FAMILIES, Patterns};
use quipu_bench::resp::{Reply, Words, words};
use rng::Random;
use std::time::Instant;

/// Families that are about what all connections share.
const SHARED_FAMILIES: [&str; 2] = ["connection", "function"];
/// Notes in the last database, for all connections, that a unit was done; answers how many were.
const MARKER: &str = "redis.call('SELECT',15) redis.call('SET',KEYS[1],ARGV[1]) \
                      return redis.call('INCR','all')";

/// Commands that are done together or not at all: one, or a transaction.
pub struct Unit {
    /// The commands.
    pub commands: Vec<Words>,
    /// As far as they came.
    pub replies: Vec<Reply>,
    /// When the last one came.
    pub answered: Option<Instant>,
    /// What the marker behind it answered: how many units of all connections were done by then.
    pub place: Option<i64>,
}

impl Unit {
    /// Whether all was answered.
    pub fn is_acknowledged(&self) -> bool {
        self.replies.len() == self.commands.len()
    }
}

/// The units of a connection that a check has not seen yet.
pub struct Ledger {
    /// The connection's number; it has the databases of twice that number and one more.
    pub connection: u64,
    /// How many units were done before.
    pub done: u64,
    /// Those since.
    pub units: Vec<Unit>,
}

impl Ledger {
    /// Of a connection that has sent nothing.
    pub fn new(connection: u64) -> Ledger {
        Ledger { connection, done: 0, units: Vec::new() }
    }

    /// The first of the connection's databases.
    pub fn database(&self) -> u64 {
        2 * self.connection
    }

    /// Where the connection's marker counts.
    pub fn marker_key(&self) -> String {
        format!("done:{}", self.connection)
    }

    /// Notes units that are about to be sent.
    pub fn draw(&mut self, patterns: &Patterns, random: &mut Random) {
        let mut commands = patterns.draw(random);
        commands.retain(|command| !is_shared(command));
        for command in &mut commands {
            use_databases(command, self.database());
        }
        if random.below(12) == 0 {
            let mut transaction = vec![words(&["MULTI"])];
            (0..random.below(4)).for_each(|_| transaction.append(&mut commands.clone()));
            transaction.push(words(&["EXEC"]));
            return self.push(transaction);
        }
        if random.below(60) == 0 {
            // Expires while nobody looks; never touched again.
            let key = format!("brief:{}", self.done + self.units.len() as u64);
            commands.push(words(&["SET", &key, "x", "PX", "30"]));
        }
        commands.into_iter().for_each(|command| self.push(vec![command]));
    }

    fn push(&mut self, commands: Vec<Words>) {
        self.units.push(Unit { commands, replies: Vec::new(), answered: None, place: None });
    }

    /// What is sent behind the unit at a place.
    pub fn marker(&self, at: usize) -> Words {
        let number = (self.done + at as u64 + 1).to_string();
        words(&["EVAL", MARKER, "1", &self.marker_key(), &number])
    }
}

/// What connections draw from.
pub fn patterns() -> Patterns {
    let is_own = |family: &&Family| !SHARED_FAMILIES.contains(&family.0);
    let all = FAMILIES.iter().filter(is_own).chain(MORE_FAMILIES);
    Patterns::new(&all.copied().collect::<Vec<_>>())
}

/// Whether a command is about what all connections share, or answers what nobody can foretell.
fn is_shared(command: &[Vec<u8>]) -> bool {
    let word = |at: usize| command.get(at).map(|word| word.to_ascii_lowercase());
    let name = word(0).unwrap_or_default();
    [&b"evalsha"[..], b"script", b"multi", b"exec", b"discard", b"watch"].contains(&name.as_slice())
}

/// Exchanges the databases 0 and 1 of a pattern for two others.
fn use_databases(command: &mut Words, first: u64) {
    let inner = if command.first().is_some_and(|name| name == b"EVAL") { 3 } else { 0 };
    let Some(name) = command.get(inner).map(|name| name.to_ascii_lowercase()) else { return };
    let is_number = |at: usize| match name.as_slice() {
        b"select" => at == 1,
        b"move" => at == 2,
        b"swapdb" => at == 1 || at == 2,
        b"copy" => 3 <= at,
        _ => false,
    };
    let moves = [&b"replace"[..], b"db"];
    let numbers = command.iter_mut().skip(inner).enumerate().filter(|(at, _)| is_number(*at));
    for (_, word) in numbers {
        if !moves.contains(&word.to_ascii_lowercase().as_slice()) {
            let number = first + u64::from(word == b"1");
            *word = number.to_string().into_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_keep_to_their_databases() {
        for (before, after) in [
            (&["SELECT", "0"][..], &["SELECT", "4"][..]),
            (&["SWAPDB", "0", "1"], &["SWAPDB", "4", "5"]),
            (&["MOVE", "k", "1"], &["MOVE", "k", "5"]),
            (&["COPY", "1", "0", "DB", "1", "REPLACE"], &["COPY", "1", "0", "DB", "5", "REPLACE"]),
            (&["SELECT", "77"], &["SELECT", "4"]),
            (&["EVAL", "x", "0", "SELECT", "1"], &["EVAL", "x", "0", "SELECT", "5"]),
            (&["GET", "1"], &["GET", "1"]),
        ] {
            let mut command = words(before);
            use_databases(&mut command, 4);
            assert_eq!(command, words(after));
        }
    }
}
