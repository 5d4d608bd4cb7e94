//! A question put to all states, round by round, and whether their answers agree.

use super::options::{LegacyOptions, Question};
use super::states::{Moving, State};
use crate::http::HttpClient;
use crate::median::median;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt;
use std::time::{Duration, Instant};

/// An answer may take so long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Rounds that are made however long they take.
const ROUNDS_MIN: usize = 3;
/// Digits of numbers that answers must have in common: sums are added in another order where
/// samples come from two places.
const DIGITS: usize = 9;

/// What a question took.
pub struct Measured {
    /// Milliseconds of each round, state by state.
    times_ms: Vec<Vec<f64>>,
    /// Whether all states of Quipu gave the same answers.
    pub agree: bool,
}

impl Measured {
    /// A state's median, in milliseconds.
    pub fn median_ms(&self, state: State) -> f64 {
        median(self.of(state).iter().copied())
    }

    /// The median of the rounds' quotients of two states.
    pub fn ratio(&self, one: State, other: State) -> f64 {
        let pairs = self.of(one).iter().zip(self.of(other));
        median(pairs.map(|(one, other)| one / other.max(1e-6)))
    }

    /// How many rounds there were.
    pub fn rounds(&self) -> usize {
        self.times_ms.first().map_or(0, Vec::len)
    }

    fn of(&self, state: State) -> &[f64] {
        let idx = State::ALL.iter().position(|one| *one == state);
        idx.and_then(|idx| self.times_ms.get(idx)).map_or(&[], Vec::as_slice)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for state in State::ALL {
            write!(f, "{} {:.2} ms, ", state.name(), self.median_ms(state))?;
        }
        write!(f, "{} rounds, answers {}", self.rounds(), self.word())
    }
}

impl Measured {
    /// Whether answers agree, in a word.
    pub fn word(&self) -> &'static str {
        if self.agree { "same" } else { "differ" }
    }
}

/// Asks once for the answers, which are compared, then round by round.
///
/// # Errors
/// When a server refuses, or says that its answer is partial.
pub(super) fn ask(
    moving: &Moving,
    question: &Question,
    options: &LegacyOptions,
) -> Result<Measured> {
    let mut clients = Vec::new();
    for state in State::ALL {
        clients.push(HttpClient::new(moving.authority(state)?, ANSWER_TIMEOUT));
    }
    let first = question.paths.first().context("a question without a path")?;
    let mut answers = Vec::new();
    for (client, state) in clients.iter_mut().zip(State::ALL) {
        answers.push(answer(client, first).with_context(|| state.name())?);
    }
    let agree = answers[1..].windows(2).all(|pair| pair[0] == pair[1]);
    let mut times_ms = vec![Vec::new(); State::ALL.len()];
    let start = Instant::now();
    for round in 0..options.rounds.max(ROUNDS_MIN) {
        if round >= ROUNDS_MIN && start.elapsed() > options.time_max {
            break;
        }
        let path = &question.paths[round % question.paths.len()];
        for step in 0..clients.len() {
            let state = (round + step) % clients.len();
            let asked = Instant::now();
            let answer = clients[state].get_into(path, &mut |_| Ok(()))?;
            ensure!(answer.status == 200, "{}: {}", State::ALL[state].name(), answer.status);
            times_ms[state].push(asked.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(Measured { times_ms, agree })
}

/// An answer in a form that does not depend on the order of its series or the last digits.
fn answer(client: &mut HttpClient, path: &str) -> Result<Vec<String>> {
    let answer = client.get(path)?;
    ensure!(answer.status == 200, "status {}: {}", answer.status, answer.excerpt());
    let json: Value = serde_json::from_slice(&answer.body)?;
    ensure!(json["isPartial"] != Value::Bool(true), "partial: {}", answer.excerpt());
    let places = [&json["data"]["result"], &json["data"], &json["results"], &json];
    let list = places.iter().find_map(|place| place.as_array()).context("no list")?;
    ensure!(!list.is_empty(), "an empty answer");
    let mut lines: Vec<String> = list.iter().map(|one| rounded(one).to_string()).collect();
    lines.sort_unstable();
    Ok(lines)
}

/// A value whose texts of numbers have [`DIGITS`] digits.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(rounded).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), rounded(value))).collect()
        }
        Value::String(text) if text.contains('.') => match text.parse::<f64>() {
            Ok(number) => Value::String(format!("{number:.DIGITS$e}")),
            Err(_) => value.clone(),
        },
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_of_the_same_round() {
        let times = |first: f64| vec![first, first * 2.0, first * 4.0];
        let times_ms = [1.0, 3.0, 2.0, 1.0, 1.0].map(times).to_vec();
        let measured = Measured { times_ms, agree: true };
        assert_eq!(measured.rounds(), 3);
        assert_eq!(measured.median_ms(State::RightAfter), 6.0);
        assert_eq!(measured.ratio(State::HalfAndHalf, State::Before), 2.0);
    }

    #[test]
    fn last_digits_of_numbers_are_no_difference() {
        let one: Value = serde_json::from_str(r#"[1,"0.30000000000000004","a.b"]"#).unwrap();
        let other: Value = serde_json::from_str(r#"[1,"0.3","a.b"]"#).unwrap();
        let third: Value = serde_json::from_str(r#"[1,"0.31","a.b"]"#).unwrap();
        assert_eq!(rounded(&one), rounded(&other));
        assert_ne!(rounded(&one), rounded(&third));
    }
}
