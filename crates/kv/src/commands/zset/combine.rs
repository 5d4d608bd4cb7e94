//! Several sorted sets as one: union, intersection, difference. Sets count as sorted sets whose scores
//! are 1.

use super::{answer_scored, scored_array};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX, WRONG_TYPE};
use crate::keyspace::{EVENT_GENERIC, EVENT_ZSET, Expire, may_take};
use crate::number::{int_arg, parse_f64};
use crate::value::zset::compare_scores;
use crate::value::{Set, Stored, Value, Zset};
use hashbrown::HashMap;

/// How several are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// What becomes of the scores of a member that several have.
#[derive(Clone, Copy, Debug)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Aggregate::Sum => number_or_zero(one + other),
            Aggregate::Min => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Aggregate::Max => {
                if one < other {
                    other
                } else {
                    one
                }
            }
        }
    }
}

/// The sum of both infinities, and nothing of infinity, are zero.
fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// What is combined.
struct Query<'a> {
    keys: &'a [&'a [u8]],
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
}

/// Keys, and the arguments behind them.
type KeysAndRest<'a> = (&'a [&'a [u8]], &'a [&'a [u8]]);

/// The keys behind their number at `at`, and the arguments behind them.
fn counted_keys<'a>(call: &Call<'a>, at: usize) -> Result<KeysAndRest<'a>, CommandError> {
    let count = int_arg(call.args[at])?;
    if count < 1 {
        let name = call.command.info.name;
        let words = format!("ERR at least 1 input key is needed for '{name}' command");
        return Err(CommandError::new(words));
    }
    let rest = &call.args[at + 1..];
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    rest.split_at_checked(count).ok_or(SYNTAX)
}

impl<'a> Query<'a> {
    /// Reads what follows from the number of keys on.
    fn parse(
        call: &mut Call<'a>,
        operation: Operation,
        at: usize,
    ) -> Result<Query<'a>, CommandError> {
        let (keys, mut rest) = counted_keys(call, at)?;
        // A wrong type comes before a wrong option.
        sources(call, keys)?;
        let mut query = Query {
            keys,
            weights: vec![1.0; keys.len()],
            aggregate: Aggregate::Sum,
            with_scores: false,
        };
        let (is_stored, is_diff) = (at == 2, operation == Operation::Diff);
        while let Some((word, more)) = rest.split_first() {
            rest = more;
            match word.to_ascii_lowercase().as_slice() {
                b"weights" if !is_diff && keys.len() <= rest.len() => {
                    let (weights, more) = rest.split_at(keys.len());
                    rest = more;
                    for (weight, text) in query.weights.iter_mut().zip(weights) {
                        let invalid = CommandError::new("ERR weight value is not a float");
                        *weight = parse_f64(text).ok_or(invalid)?;
                    }
                }
                b"aggregate" if !is_diff && !rest.is_empty() => {
                    query.aggregate = match rest[0].to_ascii_lowercase().as_slice() {
                        b"sum" => Aggregate::Sum,
                        b"min" => Aggregate::Min,
                        b"max" => Aggregate::Max,
                        _ => return Err(SYNTAX),
                    };
                    rest = &rest[1..];
                }
                b"withscores" if !is_stored => query.with_scores = true,
                _ => return Err(SYNTAX),
            }
        }
        Ok(query)
    }
}

/// One of those that are combined.
#[derive(Clone, Copy)]
enum Source<'a> {
    Nothing,
    Zset(&'a Zset),
    Set(&'a Set),
}

impl Source<'_> {
    fn len(self) -> usize {
        match self {
            Source::Nothing => 0,
            Source::Zset(zset) => zset.len(),
            Source::Set(set) => set.len(),
        }
    }

    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Source::Nothing => None,
            Source::Zset(zset) => zset.score(member),
            Source::Set(set) => set.contains(member).then_some(1.0),
        }
    }

    fn each(self, mut with: impl FnMut(&[u8], f64)) {
        match self {
            Source::Nothing => {}
            Source::Zset(zset) => zset.each(0..zset.len(), false, with),
            Source::Set(set) => set.iter().for_each(|member| with(member, 1.0)),
        }
    }
}

/// All sources, at once: their keys are read from disk before any of them is borrowed.
fn sources<'a>(call: &'a mut Call<'_>, keys: &[&[u8]]) -> Result<Vec<Source<'a>>, CommandError> {
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        found.push(call.keys.find(call.db, key)?);
    }
    let slots = &call.keys.slots;
    let of = |number: Option<u32>| match number.and_then(|number| slots.get(number)) {
        None => Ok(Source::Nothing),
        Some(slot) => match (Zset::of(&slot.value), Set::of(&slot.value)) {
            (Some(zset), _) => Ok(Source::Zset(zset)),
            (_, Some(set)) => Ok(Source::Set(set)),
            _ => Err(WRONG_TYPE),
        },
    };
    found.into_iter().map(of).collect()
}

/// Bytes of a member of that besides its name, about.
const COMBINED_COST: usize = 64;

/// What comes of combining.
type Combined = HashMap<Vec<u8>, f64>;

/// Sources with their weights, the smallest first.
fn weighted<'a>(sources: &[Source<'a>], weights: &[f64]) -> Vec<(Source<'a>, f64)> {
    let mut all: Vec<_> = sources.iter().copied().zip(weights.iter().copied()).collect();
    all.sort_by_key(|(source, _)| source.len());
    all
}

fn union(
    sources: &[Source<'_>],
    query: &Query<'_>,
    size_max: usize,
) -> Result<Combined, CommandError> {
    let (mut combined, mut size) = (Combined::new(), 0_usize);
    for (source, weight) in weighted(sources, &query.weights) {
        source.each(|member, score| {
            let score = number_or_zero(weight * score);
            match combined.get_mut(member) {
                Some(sum) => *sum = query.aggregate.of(*sum, score),
                // No more than it takes to say so.
                None if size_max < size => {}
                None => {
                    size = size.saturating_add(member.len() + COMBINED_COST);
                    combined.insert(member.to_vec(), score);
                }
            }
        });
        may_take(size, size_max)?;
    }
    Ok(combined)
}

fn inter(sources: &[Source<'_>], query: &Query<'_>) -> Combined {
    let mut combined = Combined::new();
    let all = weighted(sources, &query.weights);
    let Some(((first, weight), others)) = all.split_first() else { return combined };
    first.each(|member, score| {
        let mut sum = number_or_zero(weight * score);
        for (other, weight) in others {
            let Some(score) = other.score(member) else { return };
            sum = query.aggregate.of(sum, weight * score);
        }
        combined.insert(member.to_vec(), sum);
    });
    combined
}

fn diff(sources: &[Source<'_>]) -> Combined {
    let mut combined = Combined::new();
    let Some((first, others)) = sources.split_first() else { return combined };
    first.each(|member, score| {
        if others.iter().all(|other| other.score(member).is_none()) {
            combined.insert(member.to_vec(), score);
        }
    });
    combined
}

fn combine(
    call: &mut Call<'_>,
    operation: Operation,
    query: &Query<'_>,
) -> Result<Combined, CommandError> {
    let size_max = call.keys.made_max();
    let sources = sources(call, query.keys)?;
    Ok(match operation {
        Operation::Union => union(&sources, query, size_max)?,
        Operation::Inter => inter(&sources, query),
        Operation::Diff => diff(&sources),
    })
}

pub(super) fn zunion(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, Operation::Union)
}

pub(super) fn zinter(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, Operation::Inter)
}

pub(super) fn zdiff(call: &mut Call<'_>) -> Result<(), CommandError> {
    show(call, Operation::Diff)
}

fn show(call: &mut Call<'_>, operation: Operation) -> Result<(), CommandError> {
    let query = Query::parse(call, operation, 1)?;
    let mut combined: Vec<_> = combine(call, operation, &query)?.into_iter().collect();
    combined.sort_unstable_by(|(member, score), (other, other_score)| {
        compare_scores(*score, *other_score).then_with(|| member.cmp(other))
    });
    let out = &mut *call.out;
    if query.with_scores {
        scored_array(out, combined.len());
        combined.iter().for_each(|(member, score)| answer_scored(out, member, *score));
    } else {
        out.array(combined.len());
        combined.iter().for_each(|(member, _)| out.bulk(member));
    }
    Ok(())
}

pub(super) fn zunionstore(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine_into(call, Operation::Union, "zunionstore")
}

pub(super) fn zinterstore(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine_into(call, Operation::Inter, "zinterstore")
}

pub(super) fn zdiffstore(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine_into(call, Operation::Diff, "zdiffstore")
}

fn combine_into(
    call: &mut Call<'_>,
    operation: Operation,
    event: &'static str,
) -> Result<(), CommandError> {
    let query = Query::parse(call, operation, 2)?;
    let combined = combine(call, operation, &query)?;
    let combined = Zset::from_scores(combined.iter().map(|(member, score)| (&**member, *score)));
    store(call, call.args[1], combined, event)
}

/// Gives a key a sorted set, whatever it had, or nothing if that is empty. Answers how many members
/// it has.
pub(in crate::commands) fn store(
    call: &mut Call<'_>,
    key: &[u8],
    zset: Zset,
    event: &'static str,
) -> Result<(), CommandError> {
    let len = zset.len();
    if 0 < len {
        call.put(key, Value::Zset(Box::new(zset)), Expire::Never)?;
        call.event(EVENT_ZSET, event, key);
        call.log_key(key)?;
    } else if call.remove(key)? {
        call.event(EVENT_GENERIC, "del", key);
        call.log_key(key)?;
    }
    call.out.len(len);
    Ok(())
}

pub(super) fn zintercard(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (keys, rest) = counted_keys(call, 1)?;
    sources(call, keys)?;
    let mut limit = 0;
    let mut options = rest.chunks(2);
    for option in options.by_ref() {
        match option {
            [word, number] if word.eq_ignore_ascii_case(b"limit") => {
                limit = super::count_arg(number, 0, "ERR LIMIT can't be negative")?;
            }
            _ => return Err(SYNTAX),
        }
    }
    let limit = if limit == 0 { usize::MAX } else { limit };
    let mut all = sources(call, keys)?;
    all.sort_by_key(|source| source.len());
    let mut count = 0;
    if let Some((first, others)) = all.split_first() {
        first.each(|member, _| {
            let is_in_all = || others.iter().all(|other| other.score(member).is_some());
            count += usize::from(count < limit && is_in_all());
        });
    }
    call.out.len(count);
    Ok(())
}
