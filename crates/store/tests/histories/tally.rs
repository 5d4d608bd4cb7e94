//! What a campaign did and found, counted.

use super::model::Fault;
use std::collections::BTreeMap;
use std::fmt;

/// How a history failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An answer was not what the model says.
    Answer(Fault),
    /// The store did not open though nothing was wrong with the disk any more.
    Unopenable,
    /// `verify` found problems in a store that was closed in peace.
    Unverified,
    /// A snapshot is missing, does not open or answers otherwise.
    Snapshot,
    /// A thread of the store panicked.
    Panic,
}

/// A failure with what it takes to see it again.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The history's seed.
    pub seed: u64,
    /// The life in it, from 0.
    pub life: u64,
    /// How.
    pub kind: Kind,
    /// What was seen.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { seed, life, kind, text } = self;
        write!(f, "{kind:?} in life {life} of the history of seed {seed}: {text}")
    }
}

/// Counts of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Deaths, failed syncs and planned events that came.
    pub points: u64,
    /// Deaths by what they were.
    pub deaths: BTreeMap<&'static str, u64>,
    /// Starts without faults, all of which must succeed.
    pub opened: u64,
    /// Starts that a fault stopped.
    pub refused: u64,
    /// Comparisons of all that a store answers.
    pub compared: u64,
    /// Steps by name: done, and failed.
    pub steps: BTreeMap<&'static str, (u64, u64)>,
    /// Errors of steps, with numbers and names left out.
    pub errors: BTreeMap<String, u64>,
    /// Failures by kind.
    pub failures: BTreeMap<Kind, u64>,
    /// The first failures of each kind.
    pub examples: Vec<Failure>,
}

/// How many failures of a kind are told.
const EXAMPLES_MAX: usize = 3;

impl Tally {
    /// Counts a step.
    pub fn step(&mut self, name: &'static str, error: Option<&store::Error>) {
        let counts = self.steps.entry(name).or_default();
        match error {
            None => counts.0 += 1,
            Some(error) => {
                counts.1 += 1;
                *self.errors.entry(shape_of(&error.to_string())).or_default() += 1;
            }
        }
    }

    /// Counts a failure.
    pub fn fail(&mut self, failure: Failure) {
        *self.failures.entry(failure.kind).or_default() += 1;
        self.tell(failure);
    }

    /// Failures of all kinds.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Takes over the counts of another.
    pub fn add(&mut self, other: Tally) {
        self.points += other.points;
        self.opened += other.opened;
        self.refused += other.refused;
        self.compared += other.compared;
        for (name, count) in other.deaths {
            *self.deaths.entry(name).or_default() += count;
        }
        for (name, (done, failed)) in other.steps {
            let counts = self.steps.entry(name).or_default();
            *counts = (counts.0 + done, counts.1 + failed);
        }
        for (shape, count) in other.errors {
            *self.errors.entry(shape).or_default() += count;
        }
        for (kind, count) in other.failures {
            *self.failures.entry(kind).or_default() += count;
        }
        other.examples.into_iter().for_each(|failure| self.tell(failure));
    }

    fn tell(&mut self, failure: Failure) {
        let of_its_kind = self.examples.iter().filter(|one| one.kind == failure.kind).count();
        if of_its_kind < EXAMPLES_MAX {
            self.examples.push(failure);
        }
    }

    /// One line for a progress line.
    pub fn line(&self) -> String {
        let count = |kind| self.failures.get(&kind).copied().unwrap_or(0);
        format!(
            "{} fault points, {} opened, {} compared: {} lost, {} invented, {} wrong, {} unopenable, \
             {} unverified, {} snapshots bad, {} panics",
            self.points,
            self.opened,
            self.compared,
            count(Kind::Answer(Fault::Lost)),
            count(Kind::Answer(Fault::Invented)),
            count(Kind::Answer(Fault::Wrong)),
            count(Kind::Unopenable),
            count(Kind::Unverified),
            count(Kind::Snapshot),
            count(Kind::Panic),
        )
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.line())?;
        writeln!(f, "deaths: {:?}; starts that a fault stopped: {}", self.deaths, self.refused)?;
        for (name, (done, failed)) in &self.steps {
            writeln!(f, "  {name:<20} {done:>9} done {failed:>8} failed")?;
        }
        for failure in &self.examples {
            writeln!(f, "{failure}")?;
        }
        Ok(())
    }
}

/// A text with its words that have digits left out, so that like errors are counted together.
pub fn shape_of(text: &str) -> String {
    let mut shape = String::new();
    let mut word = String::new();
    for letter in text.chars().chain([' ']) {
        if letter.is_alphanumeric() || letter == '-' {
            word.push(letter);
            continue;
        }
        match word.chars().any(|letter| letter.is_ascii_digit()) {
            true => shape.push('#'),
            false => shape.push_str(&word),
        }
        word.clear();
        shape.push(letter);
    }
    shape.trim_end().to_string()
}
