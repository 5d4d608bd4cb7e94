//! Bits of strings; the first bit is the highest of the first byte. Fields of bits are in a file of
//! their own.

mod field;

use super::string::STRING_SIZE_MAX;
use super::{Command, DENY_OOM, FAST, Group, Keys, ONE_KEY, READONLY, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX};
use crate::keyspace::{EVENT_GENERIC, EVENT_STRING, Expire};
use crate::number::{int_arg, parse_i64};
use crate::value::{Str, Value};
use std::ops::RangeInclusive;

/// The keys of `BITOP`: a target, and sources.
const BEHIND_OPERATION: Keys = Keys::Range { first: 2, last: -1, step: 1 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("bitcount", -2, READONLY, ONE_KEY, Group::Bitmap, "2.6.0", "How many bits of a string are set.", bitcount),
    command("bitfield", -2, WRITE | DENY_OOM, ONE_KEY, Group::Bitmap, "3.2.0", "Reads and changes integers of any width within a string.", field::bitfield),
    command("bitfield_ro", -2, READONLY | FAST, ONE_KEY, Group::Bitmap, "6.0.0", "Reads integers of any width within a string.", field::bitfield_ro),
    command("bitop", -4, WRITE | DENY_OOM, BEHIND_OPERATION, Group::Bitmap, "2.6.0", "Combines strings bit by bit and stores the result.", bitop),
    command("bitpos", -3, READONLY, ONE_KEY, Group::Bitmap, "2.8.7", "Where the first bit is that is set, or is not.", bitpos),
    command("getbit", 3, READONLY | FAST, ONE_KEY, Group::Bitmap, "2.2.0", "A bit of a string.", getbit),
    command("setbit", 4, WRITE | DENY_OOM, ONE_KEY, Group::Bitmap, "2.2.0", "Sets or clears a bit of a string, which grows as needed.", setbit),
];

/// The place of a bit that an argument says.
fn offset_arg(text: &[u8]) -> Result<usize, CommandError> {
    check_offset(parse_i64(text))
}

fn check_offset(offset: Option<i64>) -> Result<usize, CommandError> {
    let offset = offset.and_then(|offset| usize::try_from(offset).ok());
    let invalid = CommandError::new("ERR bit offset is not an integer or out of range");
    offset.filter(|offset| offset / 8 < STRING_SIZE_MAX).ok_or(invalid)
}

/// The string's bytes, at least so many: it is made or grows as needed. Returns whether it did.
fn grow<'a>(
    call: &'a mut Call<'_>,
    key: &[u8],
    size: usize,
) -> Result<(&'a mut Vec<u8>, bool), CommandError> {
    super::string::take_room(call, key, size)?;
    let bytes = call.get_or_insert::<Str>(key)?.bytes_mut();
    let has_grown = bytes.len() < size;
    if has_grown {
        bytes.resize(size, 0);
    }
    Ok((bytes, has_grown))
}

fn setbit(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let offset = offset_arg(call.args[2])?;
    let is_set = match call.args[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(CommandError::new("ERR bit is not an integer or out of range")),
    };
    let (bytes, has_grown) = grow(call, key, offset / 8 + 1)?;
    let (byte, mask) = (&mut bytes[offset / 8], 0x80 >> (offset % 8));
    let was_set = *byte & mask != 0;
    *byte = if is_set { *byte | mask } else { *byte & !mask };
    if has_grown || was_set != is_set {
        call.modified(key);
        call.event(EVENT_STRING, "setbit", key);
    }
    call.out.int(i64::from(was_set));
    Ok(())
}

fn getbit(call: &mut Call<'_>) -> Result<(), CommandError> {
    let offset = offset_arg(call.args[2])?;
    let string = call.get::<Str>(call.args[1])?;
    let is_set = string.is_some_and(|string| {
        let is_set = |byte: &u8| byte & (0x80 >> (offset % 8)) != 0;
        string.with_bytes(|bytes| bytes.get(offset / 8).is_some_and(is_set))
    });
    call.out.int(i64::from(is_set));
    Ok(())
}

// ---- counting and finding ----

/// In what a range is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    fn of(word: &[u8]) -> Result<Unit, CommandError> {
        match word.to_ascii_lowercase().as_slice() {
            b"byte" => Ok(Unit::Byte),
            b"bit" => Ok(Unit::Bit),
            _ => Err(SYNTAX),
        }
    }

    /// The bits of a string of that size that are meant, from the end where negative. None if there
    /// are none.
    fn bits(self, start: i64, end: i64, size: usize) -> Option<RangeInclusive<usize>> {
        let len = i64::try_from(size).unwrap_or(i64::MAX) * if self == Unit::Bit { 8 } else { 1 };
        let from_end = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
        let (start, end) = (from_end(start), from_end(end).min(len - 1));
        if end < start {
            return None;
        }
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        Some(match self {
            Unit::Bit => start..=end,
            Unit::Byte => start * 8..=end * 8 + 7,
        })
    }
}

/// How many bits within a range are set; the range is within the bytes.
fn count_bits(bytes: &[u8], bits: &RangeInclusive<usize>) -> usize {
    let (first, last) = (bits.start() / 8, bits.end() / 8);
    let whole = &bytes[first..=last];
    let (words, rest) = whole.as_chunks();
    let in_words: usize =
        words.iter().map(|word| u64::from_le_bytes(*word).count_ones() as usize).sum();
    let in_rest: usize = rest.iter().map(|byte| byte.count_ones() as usize).sum();
    // What is before and behind the range in its first and last byte.
    let before = bytes[first] & !(0xff >> (bits.start() % 8));
    let behind = bytes[last] & (0x7f >> (bits.end() % 8));
    in_words + in_rest - before.count_ones() as usize - behind.count_ones() as usize
}

fn bitcount(call: &mut Call<'_>) -> Result<(), CommandError> {
    let Some(string) = call.keys.get::<Str>(call.db, call.args[1])? else {
        call.out.int(0);
        return Ok(());
    };
    let (start, end, unit) = match call.args.get(2..).unwrap_or_default() {
        [] => (0, -1, None),
        [start, end, unit @ ..] if unit.len() <= 1 => {
            (int_arg(start)?, int_arg(end)?, unit.first())
        }
        _ => return Err(SYNTAX),
    };
    if start < 0 && end < 0 && end < start {
        call.out.int(0);
        return Ok(());
    }
    let unit = unit.map_or(Ok(Unit::Byte), |word| Unit::of(word))?;
    let count = string.with_bytes(|bytes| {
        unit.bits(start, end, bytes.len()).map_or(0, |bits| count_bits(bytes, &bits))
    });
    call.out.len(count);
    Ok(())
}

/// Where the first bit within a range is that is as `wanted`; the range is within the bytes.
fn find_bit(bytes: &[u8], bits: &RangeInclusive<usize>, wanted: bool) -> Option<usize> {
    let flip = if wanted { 0 } else { 0xff };
    let (first, last) = (bits.start() / 8, bits.end() / 8);
    let head = (bytes[first] ^ flip) & (0xff >> (bits.start() % 8));
    let at = match head {
        0 => {
            let found = bytes[first + 1..=last].iter().position(|byte| byte ^ flip != 0)?;
            let at = first + 1 + found;
            at * 8 + (bytes[at] ^ flip).leading_zeros() as usize
        }
        _ => first * 8 + head.leading_zeros() as usize,
    };
    (at <= *bits.end()).then_some(at)
}

fn bitpos(call: &mut Call<'_>) -> Result<(), CommandError> {
    let wanted = match int_arg(call.args[2])? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::new("ERR The bit argument must be 1 or 0.")),
    };
    let Some(string) = call.keys.get::<Str>(call.db, call.args[1])? else {
        call.out.int(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let (start, end, unit) = match call.args.get(3..).unwrap_or_default() {
        [] => (0, None, Unit::Byte),
        [start] => (int_arg(start)?, None, Unit::Byte),
        [start, end] => (int_arg(start)?, Some(int_arg(end)?), Unit::Byte),
        [start, end, unit] => {
            let start = int_arg(start)?;
            let unit = Unit::of(unit)?;
            (start, Some(int_arg(end)?), unit)
        }
        _ => return Err(SYNTAX),
    };
    let found = string.with_bytes(|bytes| {
        let bits = unit.bits(start, end.unwrap_or(-1), bytes.len())?;
        // A string that has no end given is followed by zeros.
        let zeros = (!wanted && end.is_none()).then_some(bytes.len() * 8);
        find_bit(bytes, &bits, wanted).or(zeros)
    });
    match found {
        Some(at) => call.out.len(at),
        None => call.out.int(-1),
    }
    Ok(())
}

// ---- combining ----

/// Combines bytes with those of one more string; a shorter one is followed by zeros.
fn combine(result: &mut Vec<u8>, bytes: &[u8], with: impl Fn(u8, u8) -> u8) {
    if result.len() < bytes.len() {
        result.resize(bytes.len(), 0);
    }
    let (both, rest) = result.split_at_mut(bytes.len());
    both.iter_mut().zip(bytes).for_each(|(one, other)| *one = with(*one, *other));
    rest.iter_mut().for_each(|one| *one = with(*one, 0));
}

fn bitop(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (target, keys) = (call.args[2], &call.args[3..]);
    let with: fn(u8, u8) -> u8 = match call.args[1].to_ascii_lowercase().as_slice() {
        b"and" => |one, other| one & other,
        b"or" => |one, other| one | other,
        b"xor" => |one, other| one ^ other,
        b"not" if keys.len() == 1 => |_, other| !other,
        b"not" => {
            let words = "ERR BITOP NOT must be called with a single source key.";
            return Err(CommandError::new(words));
        }
        _ => return Err(SYNTAX),
    };
    let is_not = call.args[1].eq_ignore_ascii_case(b"not");
    let mut result: Vec<u8> = Vec::new();
    for (at, key) in keys.iter().enumerate() {
        let len = call.keys.size_of(call.db, key)?;
        // One more copy is logged.
        call.keys.take_room(len.saturating_sub(result.len()).saturating_mul(2))?;
        let string = call.get::<Str>(key)?;
        let mut add = |bytes: &[u8]| match at {
            0 if !is_not => result.extend_from_slice(bytes),
            _ => combine(&mut result, bytes, with),
        };
        match string {
            Some(string) => string.with_bytes(&mut add),
            None => add(&[]),
        }
    }
    let len = result.len();
    if 0 < len {
        call.put(target, Value::Str(Str::from_vec(result)), Expire::Never)?;
        call.event(EVENT_STRING, "set", target);
        call.log_key(target)?;
    } else if call.remove(target)? {
        call.event(EVENT_GENERIC, "del", target);
        call.log_key(target)?;
    }
    call.out.len(len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_within_ranges() {
        let bytes: Vec<u8> = (0..40).map(|at: u8| at.wrapping_mul(37) ^ 0x5a).collect();
        let is_set = |at: usize| bytes[at / 8] & (0x80 >> (at % 8)) != 0;
        for start in 0..bytes.len() * 8 {
            for end in (start..bytes.len() * 8).step_by(3) {
                let range = start..=end;
                let expected = range.clone().filter(|at| is_set(*at)).count();
                assert_eq!(count_bits(&bytes, &range), expected, "{range:?}");
                for wanted in [false, true] {
                    let expected = range.clone().find(|at| is_set(*at) == wanted);
                    assert_eq!(find_bit(&bytes, &range, wanted), expected, "{range:?} {wanted}");
                }
            }
        }
    }
}
