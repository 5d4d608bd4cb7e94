//! Sorted sets: members and scores. Ranges, pops and combinations of several are in files of their own.

mod bounds;
mod combine;
mod pop;
mod range;

pub(super) use combine::store;

use super::generic::{cursor_arg, scan_options};
use super::{
    BLOCKING, Command, DENY_OOM, FAST, Group, Keys, NO_SCRIPT, ONE_KEY, READONLY, TWO_KEYS, WRITE,
    command,
};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX};
use crate::keyspace::{EVENT_GENERIC, EVENT_ZSET};
use crate::number::{double_text, float_arg, int_arg};
use crate::reply::Reply;
use crate::value::Zset;
use crate::value::zset::Change;

/// Keys, and a time behind them.
const KEYS_AND_TIME: Keys = Keys::Range { first: 1, last: -2, step: 1 };
const COUNTED: Keys = Keys::Counted { count_at: 1 };
const COUNTED_AFTER_TIME: Keys = Keys::Counted { count_at: 2 };
const TARGET_AND_COUNTED: Keys = Keys::TargetAndCounted { count_at: 2 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("bzmpop", -5, WRITE | BLOCKING, COUNTED_AFTER_TIME, Group::SortedSet, "7.0.0", "Takes members of the lowest or highest scores out of the first of several sorted sets that has any, or waits for them.", pop::bzmpop),
    command("bzpopmax", -3, WRITE | NO_SCRIPT | FAST | BLOCKING, KEYS_AND_TIME, Group::SortedSet, "5.0.0", "Takes the member of the highest score out of the first of several sorted sets that has any, or waits for one.", pop::bzpopmax),
    command("bzpopmin", -3, WRITE | NO_SCRIPT | FAST | BLOCKING, KEYS_AND_TIME, Group::SortedSet, "5.0.0", "Takes the member of the lowest score out of the first of several sorted sets that has any, or waits for one.", pop::bzpopmin),
    command("zadd", -4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::SortedSet, "1.2.0", "Sets scores of members, which are added if they are not there.", zadd),
    command("zcard", 2, READONLY | FAST, ONE_KEY, Group::SortedSet, "1.2.0", "How many members a sorted set has.", zcard),
    command("zcount", 4, READONLY | FAST, ONE_KEY, Group::SortedSet, "2.0.0", "How many members have scores between two.", range::zcount),
    command("zdiff", -3, READONLY, COUNTED, Group::SortedSet, "6.2.0", "The members of the first sorted set that no other has.", combine::zdiff),
    command("zdiffstore", -4, WRITE | DENY_OOM, TARGET_AND_COUNTED, Group::SortedSet, "6.2.0", "Stores the members of the first sorted set that no other has.", combine::zdiffstore),
    command("zincrby", 4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::SortedSet, "1.2.0", "Adds to the score of a member.", zincrby),
    command("zinter", -3, READONLY, COUNTED, Group::SortedSet, "6.2.0", "The members that all of several sorted sets have.", combine::zinter),
    command("zintercard", -3, READONLY, COUNTED, Group::SortedSet, "7.0.0", "How many members all of several sorted sets have.", combine::zintercard),
    command("zinterstore", -4, WRITE | DENY_OOM, TARGET_AND_COUNTED, Group::SortedSet, "2.0.0", "Stores the members that all of several sorted sets have.", combine::zinterstore),
    command("zlexcount", 4, READONLY | FAST, ONE_KEY, Group::SortedSet, "2.8.9", "How many members are between two, where all scores are the same.", range::zlexcount),
    command("zmpop", -4, WRITE, COUNTED, Group::SortedSet, "7.0.0", "Takes members of the lowest or highest scores out of the first of several sorted sets that has any.", pop::zmpop),
    command("zmscore", -3, READONLY | FAST, ONE_KEY, Group::SortedSet, "6.2.0", "The scores of several members.", zmscore),
    command("zpopmax", -2, WRITE | FAST, ONE_KEY, Group::SortedSet, "5.0.0", "Takes the members of the highest scores out.", pop::zpopmax),
    command("zpopmin", -2, WRITE | FAST, ONE_KEY, Group::SortedSet, "5.0.0", "Takes the members of the lowest scores out.", pop::zpopmin),
    command("zrandmember", -2, READONLY, ONE_KEY, Group::SortedSet, "6.2.0", "Members picked by chance.", pop::zrandmember),
    command("zrange", -4, READONLY, ONE_KEY, Group::SortedSet, "1.2.0", "Members between two ranks, scores or members.", range::zrange),
    command("zrangebylex", -4, READONLY, ONE_KEY, Group::SortedSet, "2.8.9", "Members between two, where all scores are the same.", range::zrangebylex),
    command("zrangebyscore", -4, READONLY, ONE_KEY, Group::SortedSet, "1.0.5", "Members whose scores are between two.", range::zrangebyscore),
    command("zrangestore", -5, WRITE | DENY_OOM, TWO_KEYS, Group::SortedSet, "6.2.0", "Stores what ZRANGE finds.", range::zrangestore),
    command("zrank", -3, READONLY | FAST, ONE_KEY, Group::SortedSet, "2.0.0", "How many members are before one.", zrank),
    command("zrem", -3, WRITE | FAST, ONE_KEY, Group::SortedSet, "1.2.0", "Removes members.", zrem),
    command("zremrangebylex", 4, WRITE, ONE_KEY, Group::SortedSet, "2.8.9", "Removes members between two, where all scores are the same.", range::zremrangebylex),
    command("zremrangebyrank", 4, WRITE, ONE_KEY, Group::SortedSet, "2.0.0", "Removes members between two ranks.", range::zremrangebyrank),
    command("zremrangebyscore", 4, WRITE, ONE_KEY, Group::SortedSet, "1.2.0", "Removes members whose scores are between two.", range::zremrangebyscore),
    command("zrevrange", -4, READONLY, ONE_KEY, Group::SortedSet, "1.2.0", "Members between two ranks, the highest first.", range::zrevrange),
    command("zrevrangebylex", -4, READONLY, ONE_KEY, Group::SortedSet, "2.8.9", "Members between two, the last one first, where all scores are the same.", range::zrevrangebylex),
    command("zrevrangebyscore", -4, READONLY, ONE_KEY, Group::SortedSet, "2.2.0", "Members whose scores are between two, the highest first.", range::zrevrangebyscore),
    command("zrevrank", -3, READONLY | FAST, ONE_KEY, Group::SortedSet, "2.0.0", "How many members are behind one.", zrevrank),
    command("zscan", -3, READONLY, ONE_KEY, Group::SortedSet, "2.8.0", "Some members with their scores, and where to go on.", zscan),
    command("zscore", 3, READONLY | FAST, ONE_KEY, Group::SortedSet, "1.2.0", "The score of a member.", zscore),
    command("zunion", -3, READONLY, COUNTED, Group::SortedSet, "6.2.0", "The members that any of several sorted sets has.", combine::zunion),
    command("zunionstore", -4, WRITE | DENY_OOM, TARGET_AND_COUNTED, Group::SortedSet, "2.0.0", "Stores the members that any of several sorted sets has.", combine::zunionstore),
];

// ---- setting scores ----

/// How `ZADD` sets scores.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddOptions {
    /// New members only.
    pub nx: bool,
    /// No new members.
    pub xx: bool,
    /// Only to higher scores.
    gt: bool,
    /// Only to lower scores.
    lt: bool,
    /// Changed members are counted too.
    pub ch: bool,
    /// The score is added to what it was.
    incr: bool,
}

impl AddOptions {
    /// Notes a word, if it is an option.
    fn take(&mut self, word: &[u8]) -> bool {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => self.nx = true,
            b"xx" => self.xx = true,
            b"gt" => self.gt = true,
            b"lt" => self.lt = true,
            b"ch" => self.ch = true,
            b"incr" => self.incr = true,
            _ => return false,
        }
        true
    }

    fn check(self, pairs: &[&[u8]]) -> Result<(), CommandError> {
        if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
            return Err(SYNTAX);
        }
        if self.nx && self.xx {
            let words = "ERR XX and NX options at the same time are not compatible";
            return Err(CommandError::new(words));
        }
        let chosen = [self.gt, self.lt, self.nx].into_iter().filter(|is_chosen| *is_chosen);
        if 1 < chosen.count() {
            let words = "ERR GT, LT, and/or NX options at the same time are not compatible";
            return Err(CommandError::new(words));
        }
        if self.incr && 2 < pairs.len() {
            let words = "ERR INCR option supports a single increment-element pair";
            return Err(CommandError::new(words));
        }
        Ok(())
    }

    /// Sets a score, if it may be. Returns the new one and what changed.
    fn set(
        self,
        zset: &mut Zset,
        member: &[u8],
        score: f64,
    ) -> Result<Option<(f64, Change)>, CommandError> {
        if !(self.nx || self.xx || self.gt || self.lt || self.incr) {
            return Ok(Some((score, zset.insert(member, score))));
        }
        let before = zset.score(member);
        let refused = if before.is_some() { self.nx } else { self.xx };
        let score = match before {
            Some(before) if self.incr => before + score,
            _ => score,
        };
        if score.is_nan() {
            return Err(CommandError::new("ERR resulting score is not a number (NaN)"));
        }
        let is_wrong_way =
            before.is_some_and(|before| self.gt && score <= before || self.lt && before <= score);
        if refused || is_wrong_way {
            return Ok(None);
        }
        Ok(Some((score, zset.insert(member, score))))
    }
}

fn zadd(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut options = AddOptions::default();
    let mut at = 2;
    while call.args.get(at).is_some_and(|word| options.take(word)) {
        at += 1;
    }
    let pairs = call.args.get(at..).unwrap_or_default();
    options.check(pairs)?;
    let mut scores = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        scores.push((float_arg(pair[0])?, pair[1]));
    }
    add(call, options, &scores)
}

fn zincrby(call: &mut Call<'_>) -> Result<(), CommandError> {
    let by = float_arg(call.args[2])?;
    add(call, AddOptions { incr: true, ..AddOptions::default() }, &[(by, call.args[3])])
}

/// Sets scores and answers as `ZADD` does.
pub(super) fn add(
    call: &mut Call<'_>,
    options: AddOptions,
    scores: &[(f64, &[u8])],
) -> Result<(), CommandError> {
    let key = call.args[1];
    let (mut added, mut moved, mut result) = (0, 0, None);
    if !options.xx || call.get::<Zset>(key)?.is_some() {
        let zset = call.get_or_insert::<Zset>(key)?;
        for (score, member) in scores {
            let Some((score, change)) = options.set(zset, member, *score)? else { continue };
            result = Some(score);
            added += i64::from(change == Change::Added);
            moved += i64::from(change == Change::Moved);
        }
    }
    if 0 < added + moved {
        call.modified(key);
        call.event(EVENT_ZSET, if options.incr { "zincr" } else { "zadd" }, key);
    }
    match (options.incr, result) {
        (true, Some(score)) => call.out.double(score),
        (true, None) => call.out.null(),
        (false, _) if options.ch => call.out.int(added + moved),
        (false, _) => call.out.int(added),
    }
    Ok(())
}

fn zrem(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, members) = (call.args[1], &call.args[2..]);
    let mut count = 0;
    if let Some(zset) = call.keys.get_mut::<Zset>(call.db, key)? {
        for member in members {
            count += i64::from(zset.remove(member).is_some());
        }
    }
    if 0 < count {
        removed(call, "zrem", key)?;
    }
    call.out.int(count);
    Ok(())
}

/// Says that members were removed; the key goes with the last one.
fn removed(call: &mut Call<'_>, event: &'static str, key: &[u8]) -> Result<(), CommandError> {
    call.modified(key);
    call.event(EVENT_ZSET, event, key);
    if call.keys.remove_if_empty(call.db, key)? {
        call.event(EVENT_GENERIC, "del", key);
    }
    Ok(())
}

// ---- looking members up ----

fn zcard(call: &mut Call<'_>) -> Result<(), CommandError> {
    let len = call.get::<Zset>(call.args[1])?.map_or(0, Zset::len);
    call.out.len(len);
    Ok(())
}

fn double_or_null(out: &mut dyn Reply, score: Option<f64>) {
    match score {
        Some(score) => out.double(score),
        None => out.null(),
    }
}

fn zscore(call: &mut Call<'_>) -> Result<(), CommandError> {
    let zset = call.keys.get::<Zset>(call.db, call.args[1])?;
    double_or_null(call.out, zset.and_then(|zset| zset.score(call.args[2])));
    Ok(())
}

fn zmscore(call: &mut Call<'_>) -> Result<(), CommandError> {
    let zset = call.keys.get::<Zset>(call.db, call.args[1])?;
    call.out.array(call.args.len() - 2);
    for member in &call.args[2..] {
        double_or_null(call.out, zset.and_then(|zset| zset.score(member)));
    }
    Ok(())
}

fn zrank(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer_rank(call, |rank, _| rank)
}

fn zrevrank(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer_rank(call, |rank, len| len - 1 - rank)
}

/// Answers what `rank` makes of a member's rank and the number of members.
fn answer_rank(
    call: &mut Call<'_>,
    rank: impl FnOnce(usize, usize) -> usize,
) -> Result<(), CommandError> {
    let with_score = match call.args.get(3..).unwrap_or_default() {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"withscore") => true,
        [_] => return Err(SYNTAX),
        _ => return Err(CommandError::arity(call.command.info.name)),
    };
    let zset = call.keys.get::<Zset>(call.db, call.args[1])?;
    let found = zset.and_then(|zset| Some((zset.rank(call.args[2])?, zset.len())));
    match found {
        Some(((before, score), len)) if with_score => {
            call.out.array(2);
            call.out.len(rank(before, len));
            call.out.double(score);
        }
        Some(((before, _), len)) => call.out.len(rank(before, len)),
        None if with_score => call.out.null_array(),
        None => call.out.null(),
    }
    Ok(())
}

fn zscan(call: &mut Call<'_>) -> Result<(), CommandError> {
    let cursor = cursor_arg(call.args[2])?;
    let is_there = call.keys.get::<Zset>(call.db, call.args[1])?.is_some();
    // Of what is not there nobody reads how it is to be shown.
    let options = scan_options(if is_there { call.args } else { &[] }, 3, false)?;
    let mut found: Vec<(Vec<u8>, f64)> = Vec::new();
    let zset = call.keys.get::<Zset>(call.db, call.args[1])?;
    let next = zset.map_or(0, |zset| {
        zset.scan(cursor, options.count, |member, score| {
            if options.shows(member) {
                found.push((member.to_vec(), score));
            }
        })
    });
    call.out.array(2);
    call.out.text(&next.to_string());
    call.out.array(found.len() * 2);
    for (member, score) in &found {
        call.out.bulk(member);
        call.out.text(&double_text(*score));
    }
    Ok(())
}

// ---- what several answers share ----

/// A number that must be positive, or zero where `least` is, in the words of the command.
fn count_arg(text: &[u8], least: i64, words: &'static str) -> Result<usize, CommandError> {
    let count = int_arg(text).ok().filter(|count| least <= *count);
    count.and_then(|count| usize::try_from(count).ok()).ok_or(CommandError::new(words))
}

/// A member in an array of members with their scores: a pair of its own in version 3.
fn answer_scored(out: &mut dyn Reply, member: &[u8], score: f64) {
    if 3 <= out.version() {
        out.array(2);
    }
    out.bulk(member);
    out.double(score);
}

/// Begins an array of so many members with their scores.
fn scored_array(out: &mut dyn Reply, len: usize) {
    out.array(if out.version() < 3 { len * 2 } else { len });
}
