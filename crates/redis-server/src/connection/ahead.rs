//! The commands of a pipeline that have come whole, read before the first of them runs: so what all of
//! them will look up can be fetched from memory at once ([`kv::Keyspace::bring_near`]).

use super::input::Input;
use crate::clients::session::Session;
use crate::registry::Known;
use kv::Keyspace;
use kv::commands::{Keys, READONLY};
use kv::keyspace::{NEAR_MAX, Nearing};
use wire::resp::{Limits, Parsed, Requests};

/// A command that has come whole.
#[derive(Debug, Default)]
pub struct Whole {
    requests: Requests,
    /// Where it begins, counted from the first byte that was not executed when it was read.
    start: usize,
    size: usize,
}

impl Whole {
    /// Where it begins.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Where what follows it begins.
    pub fn end(&self) -> usize {
        self.start + self.size
    }

    /// Its name and what follows.
    pub fn arguments<'a>(&'a self, input: &'a Input) -> Vec<&'a [u8]> {
        self.requests.arguments(input.get(self.start)).collect()
    }
}

/// Why no more commands were read.
#[derive(Debug, PartialEq, Eq)]
pub enum Behind {
    /// As many were read as may be.
    More,
    /// There are no more bytes.
    Nothing,
    /// More bytes are needed; so many, at least.
    Missing(usize),
    /// What is there is no command, for that reason.
    Wrong(String),
}

/// The next commands of a connection.
#[derive(Debug, Default)]
pub struct Ahead {
    /// Commands in order, and behind them those that memory is kept of.
    commands: Vec<Whole>,
    /// Which of them is the next.
    next: usize,
    /// How many there are.
    count: usize,
    /// Reads what stands behind them.
    reading: Requests,
    /// Where that stopped, counted from the first byte that is not executed yet.
    stopped_at: usize,
}

impl Ahead {
    /// The next one.
    pub fn first(&self) -> Option<&Whole> {
        self.commands.get(..self.count)?.get(self.next)
    }

    /// Goes on to the one behind.
    pub fn drop_first(&mut self) {
        self.next += 1;
    }

    /// Where reading stopped: before the first command that was not read, over what is none.
    pub fn stopped_at(&self) -> usize {
        self.stopped_at
    }

    /// The bytes before `at` go. Commands behind them that were read are read anew.
    pub fn leave(&mut self, at: usize) {
        let read = self.commands.get_mut(..self.count).unwrap_or_default();
        read.iter_mut().for_each(|whole| whole.requests.shrink());
        if at != self.stopped_at {
            self.forget();
        }
        (self.next, self.count, self.stopped_at) = (0, 0, 0);
    }

    /// All is read anew: what was read in part stands elsewhere now.
    pub fn forget(&mut self) {
        self.reading = Requests::default();
        (self.next, self.count, self.stopped_at) = (0, 0, 0);
    }

    /// Reads up to `count_max` commands from `at` on, which is where it last stopped unless it was
    /// told to leave from elsewhere. Returns why it stopped.
    pub fn read(&mut self, input: &Input, at: usize, limits: &Limits, count_max: usize) -> Behind {
        let done = self.commands.get_mut(..self.count).unwrap_or_default();
        done.iter_mut().for_each(|whole| whole.requests.shrink());
        (self.next, self.count, self.stopped_at) = (0, 0, at);
        while self.count < count_max {
            let rest = input.get(self.stopped_at);
            if rest.is_empty() {
                return Behind::Nothing;
            }
            match self.reading.parse(rest, limits) {
                Ok(Parsed::Command(size)) => self.push(size),
                Ok(Parsed::Nothing(size)) => self.stopped_at += size,
                Ok(Parsed::Incomplete(wanted)) => {
                    return Behind::Missing(wanted.saturating_sub(rest.len()));
                }
                Err(error) => return Behind::Wrong(error.to_string()),
            }
        }
        Behind::More
    }

    /// Adds the command that was just read.
    fn push(&mut self, size: usize) {
        if self.commands.len() == self.count {
            self.commands.push(Whole::default());
        }
        if let Some(whole) = self.commands.get_mut(self.count) {
            std::mem::swap(&mut whole.requests, &mut self.reading);
            (whole.start, whole.size) = (self.stopped_at, size);
            self.count += 1;
        }
        self.stopped_at += size;
    }

    /// Fetches what the commands will look up, if there are several.
    pub fn bring_near(&self, input: &Input, session: &Session, keys: &Keyspace) {
        if self.count < 2 {
            return;
        }
        let commands = self.commands.get(..self.count).unwrap_or_default();
        let wanted = commands.iter().filter_map(|whole| {
            let mut arguments = whole.requests.arguments(input.get(whole.start));
            let (name, key) = (arguments.next()?, arguments.next()?);
            let info = Known::find(&[name])?.info();
            let Keys::Range { first: 1, .. } = info.keys else { return None };
            Some((key, if info.is(READONLY) { Nearing::Reads } else { Nearing::Writes }))
        });
        keys.bring_near(session.db, wanted);
    }
}

/// Commands that are read before the first of them runs.
pub const AHEAD_MAX: usize = NEAR_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { arguments_max: 10, bulk_size_max: 100 };

    fn input(bytes: &[u8]) -> Input {
        let mut input = Input::default();
        input.room().extend_from_slice(bytes);
        input
    }

    fn words(ahead: &mut Ahead, input: &Input) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(whole) = ahead.first() {
            let arguments = whole.arguments(input);
            found.push(String::from_utf8_lossy(&arguments.join(&b' ')).into_owned());
            ahead.drop_first();
        }
        found
    }

    #[test]
    fn what_came_by_half_is_read_on_when_the_rest_is_there() {
        let mut input = input(b"*1\r\n$4\r\nPING\r\n\r\nGET a\r\n*2\r\n$3\r\nGET\r\n$5\r\nab");
        let mut ahead = Ahead::default();
        assert_eq!(ahead.read(&input, 0, &LIMITS, 9), Behind::Missing(5));
        assert_eq!(words(&mut ahead, &input), ["PING", "GET a"]);
        let at = ahead.stopped_at();
        ahead.leave(at);
        input.drop_front(at);
        input.room().extend_from_slice(b"cde\r\nQUIT\r\n");
        assert_eq!(ahead.read(&input, 0, &LIMITS, 9), Behind::Nothing);
        assert_eq!(words(&mut ahead, &input), ["GET abcde", "QUIT"]);
    }

    #[test]
    fn no_more_are_read_than_may_be_and_those_that_are_forgotten_come_again() {
        let input = input(b"A 1\r\nB 2\r\nC 3\r\n*1\r\n$1");
        let mut ahead = Ahead::default();
        assert_eq!(ahead.read(&input, 0, &LIMITS, 2), Behind::More);
        assert_eq!(
            (words(&mut ahead, &input), ahead.stopped_at()),
            (vec!["A 1".into(), "B 2".into()], 10)
        );
        assert!(matches!(ahead.read(&input, 10, &LIMITS, 2), Behind::Missing(_)));
        assert_eq!(words(&mut ahead, &input), ["C 3"]);
        ahead.leave(5);
        assert_eq!(ahead.read(&input, 5, &LIMITS, 1), Behind::More);
        assert_eq!(words(&mut ahead, &input), ["B 2"]);
    }

    #[test]
    fn what_stands_before_a_mistake_is_read() {
        let input = input(b"A 1\r\n*1\r\n?");
        let mut ahead = Ahead::default();
        let wrong = Behind::Wrong("expected '$', got '?'".to_owned());
        assert_eq!((ahead.read(&input, 0, &LIMITS, 9), ahead.stopped_at()), (wrong, 5));
        assert_eq!(words(&mut ahead, &input), ["A 1"]);
    }
}
