//! What part of a sorted set a command is about: ranks, scores or members, from both ends.

use crate::error::{CommandError, SYNTAX};
use crate::number::{int_arg, parse_f64};
use crate::value::Zset;
use std::ops::Range;

/// A bound of scores.
#[derive(Clone, Copy, Debug)]
pub struct ScoreBound {
    value: f64,
    is_exclusive: bool,
}

/// A bound of members.
#[derive(Clone, Copy, Debug)]
pub enum LexBound<'a> {
    /// Before all members.
    Lowest,
    /// Behind all members.
    Highest,
    /// That member, which is within.
    Inclusive(&'a [u8]),
    /// That member, which is without.
    Exclusive(&'a [u8]),
}

/// From where to where.
#[derive(Clone, Copy, Debug)]
pub enum Bounds<'a> {
    /// Ranks, from the end if negative, both within.
    Ranks(i64, i64),
    /// Scores.
    Scores(ScoreBound, ScoreBound),
    /// Members of the same score.
    Members(LexBound<'a>, LexBound<'a>),
}

/// What bounds are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Ranks.
    Rank,
    /// Scores.
    Score,
    /// Members.
    Lex,
}

impl By {
    /// The bounds that two arguments say.
    pub fn bounds<'a>(self, min: &'a [u8], max: &'a [u8]) -> Result<Bounds<'a>, CommandError> {
        match self {
            By::Rank => Ok(Bounds::Ranks(int_arg(min)?, int_arg(max)?)),
            By::Score => Ok(Bounds::Scores(score_bound(min)?, score_bound(max)?)),
            By::Lex => Ok(Bounds::Members(lex_bound(min)?, lex_bound(max)?)),
        }
    }
}

fn score_bound(text: &[u8]) -> Result<ScoreBound, CommandError> {
    let (text, is_exclusive) = match text.split_first() {
        Some((b'(', rest)) => (rest, true),
        _ => (text, false),
    };
    // Redis reads the bound with `strtod`, which skips leading spaces and takes an empty text for zero.
    let value = if text.is_empty() { Some(0.0) } else { parse_f64(text.trim_ascii_start()) };
    let value = value.ok_or(CommandError::new("ERR min or max is not a float"))?;
    Ok(ScoreBound { value, is_exclusive })
}

fn lex_bound(text: &[u8]) -> Result<LexBound<'_>, CommandError> {
    match text.split_first() {
        Some((b'-', [])) => Ok(LexBound::Lowest),
        Some((b'+', [])) => Ok(LexBound::Highest),
        Some((b'[', member)) => Ok(LexBound::Inclusive(member)),
        Some((b'(', member)) => Ok(LexBound::Exclusive(member)),
        _ => Err(CommandError::new("ERR min or max not valid string range item")),
    }
}

impl LexBound<'_> {
    /// Whether a member is before all that this lower bound lets in.
    fn is_above(self, member: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(bound) => member < bound,
            LexBound::Exclusive(bound) => member <= bound,
        }
    }

    /// Whether this upper bound lets a member in.
    fn admits(self, member: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(bound) => member <= bound,
            LexBound::Exclusive(bound) => member < bound,
        }
    }
}

impl Bounds<'_> {
    /// The ranks of what is within.
    pub fn ranks(self, zset: &Zset) -> Range<usize> {
        match self {
            Bounds::Ranks(start, end) => ranks_between(start, end, zset.len()),
            Bounds::Scores(min, max) => {
                let start = zset.count_scores_while(|score| match min.is_exclusive {
                    true => score <= min.value,
                    false => score < min.value,
                });
                let end = zset.count_scores_while(|score| match max.is_exclusive {
                    true => score < max.value,
                    false => score <= max.value,
                });
                start..end.max(start)
            }
            Bounds::Members(min, max) => {
                let start = zset.count_while(|member, _| min.is_above(member));
                let end = zset.count_while(|member, _| max.admits(member));
                start..end.max(start)
            }
        }
    }
}

/// The ranks that `start` and `end` mean among so many, both included, from the end if negative.
fn ranks_between(start: i64, end: i64, len: usize) -> Range<usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
    let (start, end) = (from_end(start).max(0), from_end(end).min(len - 1));
    if end < start {
        return 0..0;
    }
    usize::try_from(start).unwrap_or(0)..usize::try_from(end + 1).unwrap_or(0)
}

/// What `ZRANGE` and its like are asked.
#[derive(Clone, Copy, Debug)]
pub struct RangeQuery<'a> {
    bounds: Bounds<'a>,
    /// From the highest to the lowest.
    pub is_reverse: bool,
    /// Whether scores are shown.
    pub with_scores: bool,
    offset: i64,
    limit: i64,
}

/// What a command's name says of its range, the rest being said by its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct RangeForm {
    /// What its bounds are about.
    pub by: Option<By>,
    /// Whether it is reverse.
    pub is_reverse: Option<bool>,
    /// Whether its result is stored, so that it has no scores to show.
    pub is_stored: bool,
}

impl<'a> RangeQuery<'a> {
    /// Reads two bounds and the options that follow.
    pub fn parse(
        form: RangeForm,
        args: &'a [&'a [u8]],
        at: usize,
    ) -> Result<RangeQuery<'a>, CommandError> {
        let RangeForm { mut by, mut is_reverse, is_stored } = form;
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        let mut rest = args.get(at + 2..).unwrap_or_default();
        while let Some((word, more)) = rest.split_first() {
            rest = more;
            match (word.to_ascii_lowercase().as_slice(), rest) {
                (b"withscores", _) if !is_stored => with_scores = true,
                (b"limit", [first, second, more @ ..]) => {
                    (offset, limit) = (int_arg(first)?, int_arg(second)?);
                    rest = more;
                }
                (b"rev", _) if is_reverse.is_none() => is_reverse = Some(true),
                (b"bylex", _) if by.is_none() => by = Some(By::Lex),
                (b"byscore", _) if by.is_none() => by = Some(By::Score),
                _ => return Err(SYNTAX),
            }
        }
        let by = by.unwrap_or(By::Rank);
        if limit != -1 && by == By::Rank {
            let words = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
            return Err(CommandError::new(words));
        }
        if with_scores && by == By::Lex {
            let words = "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
            return Err(CommandError::new(words));
        }
        let is_reverse = is_reverse.unwrap_or(false);
        let [min, max] = [args[at], args[at + 1]];
        let bounds = match is_reverse && by != By::Rank {
            true => by.bounds(max, min)?,
            false => by.bounds(min, max)?,
        };
        Ok(RangeQuery { bounds, is_reverse, with_scores, offset, limit })
    }

    /// The ranks of what is shown.
    pub fn ranks(&self, zset: &Zset) -> Range<usize> {
        if let Bounds::Ranks(start, end) = self.bounds {
            let len = zset.len();
            let Range { start, end } = ranks_between(start, end, len);
            return if self.is_reverse { len - end..len - start } else { start..end };
        }
        let Range { start, end } = self.bounds.ranks(zset);
        // Nothing is beyond a negative offset; a negative limit is none.
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX).min(end - start);
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX).min(end - start - offset);
        match self.is_reverse {
            true => end - offset - limit..end - offset,
            false => start + offset..start + offset + limit,
        }
    }
}
