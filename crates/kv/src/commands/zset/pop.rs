//! Taking the lowest or highest members out, waiting for them, and picking members by chance.

use super::{answer_scored, count_arg, removed, scored_array};
use crate::call::{Call, Otherwise};
use crate::commands::list::deadline_arg;
use crate::error::{CommandError, SYNTAX, WRONG_TYPE};
use crate::number::int_arg;
use crate::value::Zset;
use std::collections::HashSet;

/// From which end members are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lowest,
    Highest,
}

impl End {
    /// The command that takes from there, which is the event too.
    fn command(self) -> &'static str {
        match self {
            End::Lowest => "zpopmin",
            End::Highest => "zpopmax",
        }
    }
}

/// Members with their scores.
type Scored = Vec<(Vec<u8>, f64)>;

/// Takes out as many members as there are, at most `count`, and says so. None if there is no such
/// key.
fn take(
    call: &mut Call<'_>,
    key: &[u8],
    end: End,
    count: usize,
) -> Result<Option<Scored>, CommandError> {
    let Some(zset) = call.get_mut::<Zset>(key)? else { return Ok(None) };
    let len = zset.len();
    let count = count.min(len);
    let mut taken = match end {
        End::Lowest => zset.remove_ranks(0..count),
        End::Highest => zset.remove_ranks(len - count..len),
    };
    if end == End::Highest {
        taken.reverse();
    }
    if !taken.is_empty() {
        removed(call, end.command(), key)?;
        let count = count.to_string();
        call.log(&[end.command().as_bytes(), key, count.as_bytes()]);
    }
    Ok(Some(taken))
}

/// Members that were taken out, and from where.
type Taken<'a> = (&'a [u8], Scored);

/// Takes members out of the first of the keys that has any; for a command that has waited, out of
/// the one that woke it.
fn take_first<'a>(
    call: &mut Call<'_>,
    keys: &[&'a [u8]],
    end: End,
    count: usize,
) -> Result<Option<Taken<'a>>, CommandError> {
    let woken_by = call.woken_by;
    for key in keys.iter().filter(|key| woken_by.is_none_or(|woken_by| woken_by == **key)) {
        match take(call, key, end, count) {
            Ok(Some(taken)) => return Ok(Some((key, taken))),
            Ok(None) => {}
            // It has become something else since: that may pass.
            Err(error) if error == WRONG_TYPE && woken_by.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

pub(super) fn zpopmin(call: &mut Call<'_>) -> Result<(), CommandError> {
    pop(call, End::Lowest)
}

pub(super) fn zpopmax(call: &mut Call<'_>) -> Result<(), CommandError> {
    pop(call, End::Highest)
}

fn pop(call: &mut Call<'_>, end: End) -> Result<(), CommandError> {
    let counted = match call.args.get(2..).unwrap_or_default() {
        [] => None,
        [count] => Some(count_arg(count, 0, "ERR value is out of range, must be positive")?),
        _ => return Err(SYNTAX),
    };
    let taken = take(call, call.args[1], end, counted.unwrap_or(1))?.unwrap_or_default();
    match counted {
        Some(_) => {
            scored_array(call.out, taken.len());
            taken.iter().for_each(|(member, score)| answer_scored(call.out, member, *score));
        }
        // Without a number one member is answered flat.
        None => {
            call.out.array(taken.len() * 2);
            for (member, score) in &taken {
                call.out.bulk(member);
                call.out.double(*score);
            }
        }
    }
    Ok(())
}

pub(super) fn bzpopmin(call: &mut Call<'_>) -> Result<(), CommandError> {
    pop_or_wait(call, End::Lowest)
}

pub(super) fn bzpopmax(call: &mut Call<'_>) -> Result<(), CommandError> {
    pop_or_wait(call, End::Highest)
}

fn pop_or_wait(call: &mut Call<'_>, end: End) -> Result<(), CommandError> {
    let last = call.args.len() - 1;
    let deadline_ms = deadline_arg(call, call.args[last])?;
    let keys = &call.args[1..last];
    let Some((key, taken)) = take_first(call, keys, end, 1)? else {
        call.wait_for(keys, deadline_ms, Otherwise::NullArray);
        return Ok(());
    };
    call.out.array(1 + taken.len() * 2);
    call.out.bulk(key);
    for (member, score) in &taken {
        call.out.bulk(member);
        call.out.double(*score);
    }
    Ok(())
}

/// What `ZMPOP` and `BZMPOP` are asked.
struct MultiPop<'a> {
    keys: &'a [&'a [u8]],
    end: End,
    count: usize,
}

/// Reads them from the number of keys on.
fn multi_pop<'a>(args: &'a [&'a [u8]], at: usize) -> Result<MultiPop<'a>, CommandError> {
    let key_count = count_arg(args[at], 1, "ERR numkeys should be greater than 0")?;
    let end_at = at.checked_add(1).and_then(|at| at.checked_add(key_count)).ok_or(SYNTAX)?;
    let end = match args.get(end_at).ok_or(SYNTAX)?.to_ascii_lowercase().as_slice() {
        b"min" => End::Lowest,
        b"max" => End::Highest,
        _ => return Err(SYNTAX),
    };
    let count = match &args[end_at + 1..] {
        [] => 1,
        [word, count, rest @ ..] if word.eq_ignore_ascii_case(b"count") => {
            let count = count_arg(count, 1, "ERR count should be greater than 0")?;
            if !rest.is_empty() {
                return Err(SYNTAX);
            }
            count
        }
        _ => return Err(SYNTAX),
    };
    Ok(MultiPop { keys: &args[at + 1..end_at], end, count })
}

/// Pops from the first key that has members, and answers. Returns whether there was one.
fn pop_any(call: &mut Call<'_>, pop: &MultiPop<'_>) -> Result<bool, CommandError> {
    let Some((key, taken)) = take_first(call, pop.keys, pop.end, pop.count)? else {
        return Ok(false);
    };
    call.out.array(2);
    call.out.bulk(key);
    call.out.array(taken.len());
    for (member, score) in &taken {
        call.out.array(2);
        call.out.bulk(member);
        call.out.double(*score);
    }
    Ok(true)
}

pub(super) fn zmpop(call: &mut Call<'_>) -> Result<(), CommandError> {
    let pop = multi_pop(call.args, 1)?;
    if !pop_any(call, &pop)? {
        call.out.null_array();
    }
    Ok(())
}

pub(super) fn bzmpop(call: &mut Call<'_>) -> Result<(), CommandError> {
    let pop = multi_pop(call.args, 2)?;
    let deadline_ms = deadline_arg(call, call.args[1])?;
    if !pop_any(call, &pop)? {
        call.wait_for(pop.keys, deadline_ms, Otherwise::NullArray);
    }
    Ok(())
}

// ---- by chance ----

/// Members of an answer that may come twice, at most.
const PICKS_MAX: u64 = 1 << 24;

pub(super) fn zrandmember(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let Some(text) = call.args.get(2) else { return pick_one(call, key) };
    let count = int_arg(text)?;
    if count < -i64::MAX {
        let words = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
        return Err(CommandError::new(words));
    }
    let out_of_range = CommandError::new("ERR value is out of range");
    let with_scores = match call.args.get(3..).unwrap_or_default() {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"withscores") => true,
        _ => return Err(SYNTAX),
    };
    if with_scores && (i64::MAX / 2).unsigned_abs() < count.unsigned_abs()
        || count < 0 && PICKS_MAX < count.unsigned_abs()
    {
        return Err(out_of_range);
    }
    let len = call.get::<Zset>(key)?.map_or(0, Zset::len);
    let ranks = match usize::try_from(count) {
        Ok(count) => pick_distinct(call, len, count),
        Err(_) if len == 0 => Vec::new(),
        Err(_) => (0..count.unsigned_abs()).map(|_| pick(call, len)).collect(),
    };
    let out = &mut *call.out;
    match with_scores {
        true => scored_array(out, ranks.len()),
        false => out.array(ranks.len()),
    }
    let Some(zset) = call.keys.get::<Zset>(call.db, key)? else { return Ok(()) };
    for rank in ranks {
        zset.each(rank..rank + 1, false, |member, score| match with_scores {
            true => answer_scored(out, member, score),
            false => out.bulk(member),
        });
    }
    Ok(())
}

fn pick_one(call: &mut Call<'_>, key: &[u8]) -> Result<(), CommandError> {
    let len = call.get::<Zset>(key)?.map_or(0, Zset::len);
    if len == 0 {
        call.out.null();
        return Ok(());
    }
    let rank = pick(call, len);
    let picked = call.get::<Zset>(key)?.and_then(|zset| zset.at(rank));
    call.out.bulk_or_null(picked.as_ref().map(|(member, _)| &**member));
    Ok(())
}

/// A number below another one that is not 0.
fn pick(call: &mut Call<'_>, below: usize) -> usize {
    usize::try_from(call.keys.random() % below as u64).unwrap_or(0)
}

/// So many different numbers below `below`, or all.
fn pick_distinct(call: &mut Call<'_>, below: usize, count: usize) -> Vec<usize> {
    if below <= count {
        return (0..below).collect();
    }
    if below / 3 < count {
        let mut all: Vec<usize> = (0..below).collect();
        for at in 0..count {
            let other = at + pick(call, below - at);
            all.swap(at, other);
        }
        all.truncate(count);
        return all;
    }
    let (mut seen, mut picked) = (HashSet::new(), Vec::with_capacity(count));
    while picked.len() < count {
        let one = pick(call, below);
        if seen.insert(one) {
            picked.push(one);
        }
    }
    picked
}
