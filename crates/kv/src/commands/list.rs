//! Lists.

use super::{
    BLOCKING, Command, DENY_OOM, FAST, Group, Keys, NO_SCRIPT, ONE_KEY, READONLY, TWO_KEYS, WRITE,
    command,
};
use crate::call::{Call, Mode, Otherwise};
use crate::error::{CommandError, NO_KEY, OUT_OF_RANGE, SYNTAX, WRONG_TYPE};
use crate::keyspace::{EVENT_GENERIC, EVENT_LIST};
use crate::number::{int_arg, parse_f64, parse_i64};
use crate::value::List;
use crate::value::list::End;
use std::ops::Range;

/// All arguments but the last one, which is a time.
const KEYS_AND_TIME: Keys = Keys::Range { first: 1, last: -2, step: 1 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("blmove", 6, WRITE | DENY_OOM | NO_SCRIPT | BLOCKING, TWO_KEYS, Group::List, "6.2.0", "Moves an element from one list to another; waits until there is one.", blmove),
    command("blmpop", -5, WRITE | BLOCKING, Keys::Counted { count_at: 2 }, Group::List, "7.0.0", "Takes elements out of the first list that has any; waits until one has.", blmpop),
    command("blpop", -3, WRITE | NO_SCRIPT | BLOCKING, KEYS_AND_TIME, Group::List, "2.0.0", "Takes the first element out of the first list that has any; waits until one has.", blpop),
    command("brpop", -3, WRITE | NO_SCRIPT | BLOCKING, KEYS_AND_TIME, Group::List, "2.0.0", "Takes the last element out of the first list that has any; waits until one has.", brpop),
    command("brpoplpush", 4, WRITE | DENY_OOM | NO_SCRIPT | BLOCKING, TWO_KEYS, Group::List, "2.2.0", "Moves the last element of a list to the head of another; waits until there is one.", brpoplpush),
    command("lindex", 3, READONLY, ONE_KEY, Group::List, "1.0.0", "The element at an index.", lindex),
    command("linsert", 5, WRITE | DENY_OOM, ONE_KEY, Group::List, "2.2.0", "Puts an element before or after another.", linsert),
    command("llen", 2, READONLY | FAST, ONE_KEY, Group::List, "1.0.0", "How many elements a list has.", llen),
    command("lmove", 5, WRITE | DENY_OOM, TWO_KEYS, Group::List, "6.2.0", "Moves an element from one list to another.", lmove),
    command("lmpop", -4, WRITE, Keys::Counted { count_at: 1 }, Group::List, "7.0.0", "Takes elements out of the first list that has any.", lmpop),
    command("lpop", -2, WRITE | FAST, ONE_KEY, Group::List, "1.0.0", "Takes the first elements out.", lpop),
    command("lpos", -3, READONLY, ONE_KEY, Group::List, "6.0.6", "Where elements stand that equal one.", lpos),
    command("lpush", -3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::List, "1.0.0", "Adds elements to a list's head.", lpush),
    command("lpushx", -3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::List, "2.2.0", "Adds elements to a list's head, if there is a list.", lpushx),
    command("lrange", 4, READONLY, ONE_KEY, Group::List, "1.0.0", "The elements from one index to another.", lrange),
    command("lrem", 4, WRITE, ONE_KEY, Group::List, "1.0.0", "Takes elements out that equal one.", lrem),
    command("lset", 4, WRITE | DENY_OOM, ONE_KEY, Group::List, "1.0.0", "Replaces the element at an index.", lset),
    command("ltrim", 4, WRITE, ONE_KEY, Group::List, "1.0.0", "Keeps the elements from one index to another.", ltrim),
    command("rpop", -2, WRITE | FAST, ONE_KEY, Group::List, "1.0.0", "Takes the last elements out.", rpop),
    command("rpoplpush", 3, WRITE | DENY_OOM, TWO_KEYS, Group::List, "1.2.0", "Moves the last element of a list to the head of another.", rpoplpush),
    command("rpush", -3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::List, "1.0.0", "Adds elements to a list's tail.", rpush),
    command("rpushx", -3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::List, "2.2.0", "Adds elements to a list's tail, if there is a list.", rpushx),
];

// ---- ends ----

fn lpush(call: &mut Call<'_>) -> Result<(), CommandError> {
    push(call, End::Left)
}

fn rpush(call: &mut Call<'_>) -> Result<(), CommandError> {
    push(call, End::Right)
}

fn lpushx(call: &mut Call<'_>) -> Result<(), CommandError> {
    push_if_there(call, End::Left)
}

fn rpushx(call: &mut Call<'_>) -> Result<(), CommandError> {
    push_if_there(call, End::Right)
}

fn push_if_there(call: &mut Call<'_>, end: End) -> Result<(), CommandError> {
    if call.get::<List>(call.args[1])?.is_none() {
        call.out.int(0);
        return Ok(());
    }
    push(call, end)
}

fn push(call: &mut Call<'_>, end: End) -> Result<(), CommandError> {
    let (key, elements) = (call.args[1], &call.args[2..]);
    let list = call.get_or_insert::<List>(key)?;
    for element in elements {
        list.push(end, element);
    }
    let len = list.len();
    call.modified(key);
    call.event(EVENT_LIST, push_event(end), key);
    call.out.len(len);
    Ok(())
}

fn push_event(end: End) -> &'static str {
    if end == End::Left { "lpush" } else { "rpush" }
}

/// The name of the event, which is that of the command, too.
fn pop_event(end: End) -> &'static str {
    if end == End::Left { "lpop" } else { "rpop" }
}

fn lpop(call: &mut Call<'_>) -> Result<(), CommandError> {
    pop(call, End::Left)
}

fn rpop(call: &mut Call<'_>) -> Result<(), CommandError> {
    pop(call, End::Right)
}

fn pop(call: &mut Call<'_>, end: End) -> Result<(), CommandError> {
    let key = call.args[1];
    let count = match call.args.get(2..).unwrap_or_default() {
        [] => None,
        [count] => Some(positive_arg(count)?),
        _ => return Err(CommandError::arity(call.command.info.name)),
    };
    let Some(list) = call.keys.get_mut::<List>(call.db, key)? else {
        match count {
            Some(_) => call.out.null_array(),
            None => call.out.null(),
        }
        return Ok(());
    };
    let Some(count) = count else {
        call.out.bulk_or_null(list.peek(end));
        list.pop(end);
        return popped(call, key, end);
    };
    let count = count.min(list.len());
    call.out.array(count);
    for _ in 0..count {
        call.out.bulk_or_null(list.peek(end));
        list.pop(end);
    }
    if 0 < count {
        popped(call, key, end)?;
    }
    Ok(())
}

/// Says that elements were popped, and removes a list of which nothing is left.
fn popped(call: &mut Call<'_>, key: &[u8], end: End) -> Result<(), CommandError> {
    call.modified(key);
    call.event(EVENT_LIST, pop_event(end), key);
    remove_if_empty(call, key)
}

fn remove_if_empty(call: &mut Call<'_>, key: &[u8]) -> Result<(), CommandError> {
    if call.keys.remove_if_empty(call.db, key)? {
        call.event(EVENT_GENERIC, "del", key);
    }
    Ok(())
}

/// A number that is not below 0.
fn positive_arg(text: &[u8]) -> Result<usize, CommandError> {
    let number = parse_i64(text).and_then(|number| usize::try_from(number).ok());
    number.ok_or(CommandError::new("ERR value is out of range, must be positive"))
}

// ---- indexes ----

fn llen(call: &mut Call<'_>) -> Result<(), CommandError> {
    let len = call.get::<List>(call.args[1])?.map_or(0, List::len);
    call.out.len(len);
    Ok(())
}

/// The place of an index, which counts from the end if it is negative.
fn place_of(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index).filter(|index| *index < len),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

/// The places from one index to another, both included.
fn places_of(start: i64, end: i64, len: usize) -> Range<usize> {
    let len_i64 = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { at.saturating_add(len_i64).max(0) } else { at };
    // An end before the head is no place, and not the first one.
    let end = if end < 0 { end.saturating_add(len_i64) } else { end.min(len_i64 - 1) };
    let start = from_end(start);
    if end < start {
        return 0..0;
    }
    usize::try_from(start).unwrap_or(0)..usize::try_from(end + 1).unwrap_or(0)
}

fn lindex(call: &mut Call<'_>) -> Result<(), CommandError> {
    let Some(list) = call.keys.get::<List>(call.db, call.args[1])? else {
        call.out.null();
        return Ok(());
    };
    let at = place_of(int_arg(call.args[2])?, list.len());
    call.out.bulk_or_null(at.and_then(|at| list.get(at)));
    Ok(())
}

fn lset(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, index, element) = (call.args[1], call.args[2], call.args[3]);
    let list = call.keys.get_growing::<List>(call.db, key)?.ok_or(NO_KEY)?;
    let at = place_of(int_arg(index)?, list.len()).ok_or(OUT_OF_RANGE)?;
    list.set(at, element);
    call.modified(key);
    call.event(EVENT_LIST, "lset", key);
    call.out.ok();
    Ok(())
}

fn lrange(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (start, end) = (int_arg(call.args[2])?, int_arg(call.args[3])?);
    let Some(list) = call.keys.get::<List>(call.db, call.args[1])? else {
        call.out.array(0);
        return Ok(());
    };
    let places = places_of(start, end, list.len());
    call.out.array(places.len());
    for element in list.iter_from(places.start).take(places.len()) {
        call.out.bulk(element);
    }
    Ok(())
}

fn ltrim(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let (start, end) = (int_arg(call.args[2])?, int_arg(call.args[3])?);
    if let Some(list) = call.get_mut::<List>(key)? {
        let len = list.len();
        let kept = places_of(start, end, len);
        if kept.is_empty() {
            list.cut(End::Left, len);
        } else {
            list.cut(End::Right, len - kept.end);
            list.cut(End::Left, kept.start);
        }
        call.modified(key);
        call.event(EVENT_LIST, "ltrim", key);
        remove_if_empty(call, key)?;
    }
    call.out.ok();
    Ok(())
}

// ---- elements that equal one ----

fn linsert(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, pivot, element) = (call.args[1], call.args[3], call.args[4]);
    let offset = match call.args[2].to_ascii_lowercase().as_slice() {
        b"before" => 0,
        b"after" => 1,
        _ => return Err(SYNTAX),
    };
    let Some(list) = call.keys.get_growing::<List>(call.db, key)? else {
        call.out.int(0);
        return Ok(());
    };
    let Some(at) = list.iter_from(0).position(|one| one == pivot) else {
        call.out.int(-1);
        return Ok(());
    };
    list.insert(at + offset, element);
    let len = list.len();
    call.modified(key);
    call.event(EVENT_LIST, "linsert", key);
    call.out.len(len);
    Ok(())
}

fn lrem(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, element) = (call.args[1], call.args[3]);
    let count = int_arg(call.args[2])?;
    let from = if count < 0 { End::Right } else { End::Left };
    let most = match count.unsigned_abs() {
        0 => usize::MAX,
        most => usize::try_from(most).unwrap_or(usize::MAX),
    };
    let list = call.get_mut::<List>(key)?;
    let removed = list.map_or(0, |list| list.remove_equal(element, most, from));
    if 0 < removed {
        call.modified(key);
        call.event(EVENT_LIST, "lrem", key);
        remove_if_empty(call, key)?;
    }
    call.out.len(removed);
    Ok(())
}

/// What `LPOS` looks for.
struct Search {
    from: End,
    /// Matches that are passed over.
    skipped: usize,
    /// Matches that are answered, one and not as an array without it.
    count: Option<usize>,
    /// Elements that are compared.
    compared_max: usize,
}

fn search(call: &Call<'_>) -> Result<Search, CommandError> {
    let mut search = Search { from: End::Left, skipped: 0, count: None, compared_max: usize::MAX };
    let none_is_all = |number: usize| if number == 0 { usize::MAX } else { number };
    let mut at = 3;
    while let Some(word) = call.args.get(at) {
        let value = call.args.get(at + 1).ok_or(SYNTAX)?;
        let not_negative = |what: &str| {
            let number = parse_i64(value).and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| CommandError::new(format!("ERR {what} can't be negative")))
        };
        match word.to_ascii_lowercase().as_slice() {
            b"rank" => {
                let rank = super::set::picks_arg(value)?;
                search.from = if rank < 0 { End::Right } else { End::Left };
                let skipped = rank.unsigned_abs().checked_sub(1).ok_or(CommandError::new(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list",
                ))?;
                search.skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
            }
            b"count" => search.count = Some(none_is_all(not_negative("COUNT")?)),
            b"maxlen" => search.compared_max = none_is_all(not_negative("MAXLEN")?),
            _ => return Err(SYNTAX),
        }
        at += 2;
    }
    Ok(search)
}

fn lpos(call: &mut Call<'_>) -> Result<(), CommandError> {
    let search = search(call)?;
    let wanted = call.args[2];
    let Some(list) = call.keys.get::<List>(call.db, call.args[1])? else {
        match search.count {
            Some(_) => call.out.array(0),
            None => call.out.null(),
        }
        return Ok(());
    };
    let len = list.len();
    let elements: Box<dyn Iterator<Item = &[u8]>> = match search.from {
        End::Left => Box::new(list.iter_from(0)),
        End::Right => Box::new(list.iter_back()),
    };
    let found: Vec<usize> = elements
        .take(search.compared_max)
        .enumerate()
        .filter(|(_, element)| *element == wanted)
        .map(|(nth, _)| if search.from == End::Left { nth } else { len - 1 - nth })
        .skip(search.skipped)
        .take(search.count.unwrap_or(1))
        .collect();
    match (search.count, found.first()) {
        (Some(_), _) => {
            call.out.array(found.len());
            found.iter().for_each(|at| call.out.len(*at));
        }
        (None, Some(at)) => call.out.len(*at),
        (None, None) => call.out.null(),
    }
    Ok(())
}

// ---- from one list to another ----

fn end_arg(text: &[u8]) -> Result<End, CommandError> {
    match text.to_ascii_lowercase().as_slice() {
        b"left" => Ok(End::Left),
        b"right" => Ok(End::Right),
        _ => Err(SYNTAX),
    }
}

fn lmove(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (from, to) = (end_arg(call.args[3])?, end_arg(call.args[4])?);
    if !move_element(call, from, to)? {
        call.out.null();
    }
    Ok(())
}

fn rpoplpush(call: &mut Call<'_>) -> Result<(), CommandError> {
    if !move_element(call, End::Right, End::Left)? {
        call.out.null();
    }
    Ok(())
}

/// Moves an element between the two keys that stand first, and answers it. Returns whether there was
/// one.
fn move_element(call: &mut Call<'_>, from: End, to: End) -> Result<bool, CommandError> {
    let (source, target) = (call.args[1], call.args[2]);
    let Some(list) = call.get::<List>(source)? else { return Ok(false) };
    let element = list.peek(from).unwrap_or_default().to_vec();
    // Asked first: what was taken must not be lost.
    call.keys.get_growing::<List>(call.db, target)?;
    if let Some(list) = call.get_mut::<List>(source)? {
        list.pop(from);
    }
    call.modified(source);
    // The same list may be empty in between, and is not removed then.
    call.get_or_insert::<List>(target)?.push(to, &element);
    call.modified(target);
    call.event(EVENT_LIST, push_event(to), target);
    call.event(EVENT_LIST, pop_event(from), source);
    remove_if_empty(call, source)?;
    if source == target {
        // One effect for both: in between the key might be gone.
        let (from, to) = (end_name(from), end_name(to));
        call.log(&[b"lmove", source, source, from, to]);
    } else {
        call.log(&[pop_event(from).as_bytes(), source]);
        call.log(&[push_event(to).as_bytes(), target, &element]);
    }
    call.out.bulk(&element);
    Ok(true)
}

fn end_name(end: End) -> &'static [u8] {
    if end == End::Left { b"left" } else { b"right" }
}

// ---- several lists ----

/// A count of keys and those keys, as they stand from the argument `at` on. Returns where they end.
fn counted_keys<'a>(call: &Call<'a>, at: usize) -> Result<(&'a [&'a [u8]], usize), CommandError> {
    let words = "ERR numkeys should be greater than 0";
    let count = parse_i64(call.args[at]).filter(|count| 0 < *count);
    let count = count.ok_or(CommandError::new(words))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let end = (at + 1).checked_add(count).ok_or(SYNTAX)?;
    Ok((call.args.get(at + 1..end).ok_or(SYNTAX)?, end))
}

/// From which end and how many elements `LMPOP` takes, as it stands from the argument `at` on.
fn end_and_count(call: &Call<'_>, at: usize) -> Result<(End, usize), CommandError> {
    let end = end_arg(call.args.get(at).ok_or(SYNTAX)?)?;
    match call.args.get(at + 1..).unwrap_or_default() {
        [] => Ok((end, 1)),
        [word, count] if word.eq_ignore_ascii_case(b"count") => {
            let words = "ERR count should be greater than 0";
            let count = parse_i64(count).filter(|count| 0 < *count);
            let count = count.ok_or(CommandError::new(words))?;
            Ok((end, usize::try_from(count).unwrap_or(usize::MAX)))
        }
        _ => Err(SYNTAX),
    }
}

fn lmpop(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (keys, at) = counted_keys(call, 1)?;
    let (end, count) = end_and_count(call, at)?;
    if !pop_several(call, keys, end, count)? {
        call.out.null_array();
    }
    Ok(())
}

/// Pops from the first list that is not empty, and answers its key and elements.
fn pop_several(
    call: &mut Call<'_>,
    keys: &[&[u8]],
    end: End,
    count: usize,
) -> Result<bool, CommandError> {
    let Some(key) = first_with_elements(call, keys)? else { return Ok(false) };
    let Some(list) = call.keys.get_mut::<List>(call.db, key)? else { return Ok(false) };
    let count = count.min(list.len());
    call.out.array(2);
    call.out.bulk(key);
    call.out.array(count);
    for _ in 0..count {
        call.out.bulk_or_null(list.peek(end));
        list.pop(end);
    }
    call.log(&[pop_event(end).as_bytes(), key, itoa::Buffer::new().format(count).as_bytes()]);
    popped(call, key, end)?;
    Ok(true)
}

/// The first of the keys that has a list; of a command that has waited, the key that woke it.
fn first_with_elements<'a>(
    call: &mut Call<'_>,
    keys: &[&'a [u8]],
) -> Result<Option<&'a [u8]>, CommandError> {
    let woken_by = call.woken_by;
    for key in keys {
        if woken_by.is_some_and(|woken_by| woken_by != *key) {
            continue;
        }
        match call.get::<List>(key) {
            Ok(Some(_)) => return Ok(Some(key)),
            Ok(None) => {}
            // It has become something else since: that may pass.
            Err(error) if error == WRONG_TYPE && woken_by.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

// ---- waiting ----

/// The moment at which a command stops waiting, for a time in seconds; none for 0.
pub(super) fn deadline_arg(call: &Call<'_>, text: &[u8]) -> Result<Option<i64>, CommandError> {
    let words = "ERR timeout is not a float or out of range";
    let seconds = parse_f64(text).ok_or(CommandError::new(words))?;
    if seconds < 0.0 {
        return Err(CommandError::new("ERR timeout is negative"));
    }
    let ms = (seconds * 1000.0).ceil();
    let left = i64::MAX - call.now_ms();
    if left as f64 <= ms {
        return Err(CommandError::new("ERR timeout is out of range"));
    }
    Ok((0.0 < ms).then(|| call.now_ms() + ms as i64))
}

fn blpop(call: &mut Call<'_>) -> Result<(), CommandError> {
    pop_or_wait(call, End::Left)
}

fn brpop(call: &mut Call<'_>) -> Result<(), CommandError> {
    pop_or_wait(call, End::Right)
}

fn pop_or_wait(call: &mut Call<'_>, end: End) -> Result<(), CommandError> {
    let (time, keys) = call.args[1..].split_last().ok_or(SYNTAX)?;
    let deadline_ms = deadline_arg(call, time)?;
    let Some(key) = first_with_elements(call, keys)? else {
        call.wait_for(keys, deadline_ms, Otherwise::NullArray);
        return Ok(());
    };
    let Some(list) = call.keys.get_mut::<List>(call.db, key)? else { return Ok(()) };
    call.out.array(2);
    call.out.bulk(key);
    call.out.bulk_or_null(list.peek(end));
    list.pop(end);
    call.log(&[pop_event(end).as_bytes(), key]);
    popped(call, key, end)
}

fn blmpop(call: &mut Call<'_>) -> Result<(), CommandError> {
    let deadline_ms = deadline_arg(call, call.args[1])?;
    let (keys, at) = counted_keys(call, 2)?;
    let (end, count) = end_and_count(call, at)?;
    if !pop_several(call, keys, end, count)? {
        call.wait_for(keys, deadline_ms, Otherwise::NullArray);
    }
    Ok(())
}

fn blmove(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (from, to) = (end_arg(call.args[3])?, end_arg(call.args[4])?);
    let deadline_ms = deadline_arg(call, call.args[5])?;
    move_or_wait(call, from, to, deadline_ms)
}

fn brpoplpush(call: &mut Call<'_>) -> Result<(), CommandError> {
    let deadline_ms = deadline_arg(call, call.args[3])?;
    move_or_wait(call, End::Right, End::Left, deadline_ms)
}

fn move_or_wait(
    call: &mut Call<'_>,
    from: End,
    to: End,
    deadline_ms: Option<i64>,
) -> Result<(), CommandError> {
    let source = &call.args[1..2];
    if first_with_elements(call, source)?.is_some() {
        move_element(call, from, to)?;
    } else if call.mode == Mode::Client {
        call.wait_for(source, deadline_ms, Otherwise::NullArray);
    } else {
        call.out.null();
    }
    Ok(())
}
