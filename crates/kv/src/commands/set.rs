//! Sets.

use super::generic::{cursor_arg, scan_options};
use super::{ALL_KEYS, Command, DENY_OOM, FAST, Group, Keys, ONE_KEY, READONLY, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX};
use crate::keyspace::{EVENT_GENERIC, EVENT_SET, Expire, may_take};
use crate::number::{int_arg, parse_i64};
use crate::value::element::Element;
use crate::value::{Set, Stored as _};

/// The first two arguments, the third is none.
const SOURCE_AND_TARGET: Keys = Keys::Range { first: 1, last: 2, step: 1 };
/// Members that one effect of the log names.
const LOGGED_MAX: usize = 1000;
/// Bytes of an answer of random picks with repetition, which may name more than there is.
pub(super) const PICKS_SIZE_MAX: usize = 1 << 30;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("sadd", -3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Set, "1.0.0", "Adds members to a set.", sadd),
    command("scard", 2, READONLY | FAST, ONE_KEY, Group::Set, "1.0.0", "How many members a set has.", scard),
    command("sdiff", -2, READONLY, ALL_KEYS, Group::Set, "1.0.0", "The members of the first set that no other has.", sdiff),
    command("sdiffstore", -3, WRITE | DENY_OOM, ALL_KEYS, Group::Set, "1.0.0", "Keeps the members of the first set that no other has.", sdiff_store),
    command("sinter", -2, READONLY, ALL_KEYS, Group::Set, "1.0.0", "The members that all sets have.", sinter),
    command("sintercard", -3, READONLY, Keys::Counted { count_at: 1 }, Group::Set, "7.0.0", "How many members all sets have.", sinter_card),
    command("sinterstore", -3, WRITE | DENY_OOM, ALL_KEYS, Group::Set, "1.0.0", "Keeps the members that all sets have.", sinter_store),
    command("sismember", 3, READONLY | FAST, ONE_KEY, Group::Set, "1.0.0", "Whether a set has a member.", sismember),
    command("smembers", 2, READONLY, ONE_KEY, Group::Set, "1.0.0", "All members of a set.", smembers),
    command("smismember", -3, READONLY | FAST, ONE_KEY, Group::Set, "6.2.0", "Which members a set has.", smismember),
    command("smove", 4, WRITE | FAST, SOURCE_AND_TARGET, Group::Set, "1.0.0", "Moves a member from one set to another.", smove),
    command("spop", -2, WRITE | FAST, ONE_KEY, Group::Set, "1.0.0", "Takes random members out.", spop),
    command("srandmember", -2, READONLY, ONE_KEY, Group::Set, "1.0.0", "Random members.", srandmember),
    command("srem", -3, WRITE | FAST, ONE_KEY, Group::Set, "1.0.0", "Takes members out of a set.", srem),
    command("sscan", -3, READONLY, ONE_KEY, Group::Set, "2.8.0", "Some members of a set, and where to go on.", sscan),
    command("sunion", -2, READONLY, ALL_KEYS, Group::Set, "1.0.0", "The members that any set has.", sunion),
    command("sunionstore", -3, WRITE | DENY_OOM, ALL_KEYS, Group::Set, "1.0.0", "Keeps the members that any set has.", sunion_store),
];

// ---- members ----

fn sadd(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, members) = (call.args[1], &call.args[2..]);
    let set = call.get_or_insert::<Set>(key)?;
    let added = members.iter().filter(|member| set.insert(member)).count();
    if 0 < added {
        call.modified(key);
        call.event(EVENT_SET, "sadd", key);
    }
    call.out.len(added);
    Ok(())
}

fn srem(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, members) = (call.args[1], &call.args[2..]);
    let set = call.get_mut::<Set>(key)?;
    let removed = set.map_or(0, |set| members.iter().filter(|member| set.remove(member)).count());
    if 0 < removed {
        call.modified(key);
        call.event(EVENT_SET, "srem", key);
        remove_if_empty(call, key)?;
    }
    call.out.len(removed);
    Ok(())
}

fn remove_if_empty(call: &mut Call<'_>, key: &[u8]) -> Result<(), CommandError> {
    if call.keys.remove_if_empty(call.db, key)? {
        call.event(EVENT_GENERIC, "del", key);
    }
    Ok(())
}

fn scard(call: &mut Call<'_>) -> Result<(), CommandError> {
    let len = call.get::<Set>(call.args[1])?.map_or(0, Set::len);
    call.out.len(len);
    Ok(())
}

fn sismember(call: &mut Call<'_>) -> Result<(), CommandError> {
    let member = call.args[2];
    let is_member = call.get::<Set>(call.args[1])?.is_some_and(|set| set.contains(member));
    call.out.int(i64::from(is_member));
    Ok(())
}

fn smismember(call: &mut Call<'_>) -> Result<(), CommandError> {
    let set = call.keys.get::<Set>(call.db, call.args[1])?;
    call.out.array(call.args.len() - 2);
    for member in &call.args[2..] {
        call.out.int(i64::from(set.is_some_and(|set| set.contains(member))));
    }
    Ok(())
}

fn smembers(call: &mut Call<'_>) -> Result<(), CommandError> {
    match call.keys.get::<Set>(call.db, call.args[1])? {
        Some(set) => answer(call.out, set),
        None => call.out.set(0),
    }
    Ok(())
}

/// Answers all members.
fn answer(out: &mut dyn crate::Reply, set: &Set) {
    out.set(set.len());
    for member in set.listed() {
        out.bulk(member);
    }
}

fn smove(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (source, target, member) = (call.args[1], call.args[2], call.args[3]);
    let is_member = match call.get::<Set>(source)? {
        Some(set) => set.contains(member),
        None => {
            call.out.int(0);
            return Ok(());
        }
    };
    call.get::<Set>(target)?;
    if source == target || !is_member {
        call.out.int(i64::from(is_member));
        return Ok(());
    }
    // Asked first: what was taken must not be lost.
    call.keys.get_growing::<Set>(call.db, target)?;
    if let Some(set) = call.get_mut::<Set>(source)? {
        set.remove(member);
    }
    call.modified(source);
    call.event(EVENT_SET, "srem", source);
    call.log(&[b"srem", source, member]);
    remove_if_empty(call, source)?;
    if call.get_or_insert::<Set>(target)?.insert(member) {
        call.modified(target);
        call.event(EVENT_SET, "sadd", target);
        call.log(&[b"sadd", target, member]);
    }
    call.out.int(1);
    Ok(())
}

fn sscan(call: &mut Call<'_>) -> Result<(), CommandError> {
    let cursor = cursor_arg(call.args[2])?;
    let Some(set) = call.keys.get::<Set>(call.db, call.args[1])? else {
        call.out.array(2);
        call.out.text("0");
        call.out.array(0);
        return Ok(());
    };
    let options = scan_options(call.args, 3, false)?;
    let (next, mut found) = set.scan(cursor, options.count);
    found.retain(|member| options.shows(member));
    call.out.array(2);
    call.out.text(&next.to_string());
    call.out.array(found.len());
    found.iter().for_each(|member| call.out.bulk(member));
    Ok(())
}

// ---- random picks ----

fn spop(call: &mut Call<'_>) -> Result<(), CommandError> {
    let count = match call.args.get(2..).unwrap_or_default() {
        [] => return spop_one(call),
        [count] => parse_i64(count).and_then(|count| usize::try_from(count).ok()),
        _ => return Err(SYNTAX),
    };
    let words = "ERR value is out of range, must be positive";
    let count = count.ok_or(CommandError::new(words))?;
    let key = call.args[1];
    let mut rng = call.keys.fork_rng();
    let Some(set) = call.keys.get_mut::<Set>(call.db, key)? else {
        call.out.set(0);
        return Ok(());
    };
    if count == 0 {
        call.out.set(0);
        return Ok(());
    }
    if set.len() <= count {
        answer(call.out, set);
        call.event(EVENT_SET, "spop", key);
        call.remove(key)?;
        call.event(EVENT_GENERIC, "del", key);
        call.log(&[b"del", key]);
        return Ok(());
    }
    let picked: Vec<Element> = (0..count).map(|_| set.remove_at(rng.index(set.len()))).collect();
    call.out.set(picked.len());
    picked.iter().for_each(|member| call.out.bulk(member.bytes()));
    call.modified(key);
    call.event(EVENT_SET, "spop", key);
    for members in picked.chunks(LOGGED_MAX) {
        let mut effect: Vec<&[u8]> = vec![b"srem", key];
        effect.extend(members.iter().map(Element::bytes));
        call.log(&effect);
    }
    Ok(())
}

fn spop_one(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let mut rng = call.keys.fork_rng();
    let Some(set) = call.get_mut::<Set>(key)? else {
        call.out.null();
        return Ok(());
    };
    let member = set.remove_at(rng.index(set.len()));
    call.out.bulk(member.bytes());
    call.modified(key);
    call.event(EVENT_SET, "spop", key);
    call.log(&[b"srem", key, member.bytes()]);
    remove_if_empty(call, key)
}

/// A count of random picks, different ones if it is positive.
pub(super) fn picks_arg(text: &[u8]) -> Result<i64, CommandError> {
    match int_arg(text)? {
        i64::MIN => Err(CommandError::new(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        )),
        count => Ok(count),
    }
}

/// The numbers of random entries among `len`, of about so many bytes each. A positive count gives
/// different ones, at most all; a negative one as many as it says.
pub(super) fn picks(
    rng: &mut rng::Random,
    count: i64,
    len: usize,
    entry_size: usize,
) -> Result<Vec<usize>, CommandError> {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if 0 <= count {
        return Ok(match len <= wanted {
            true => (0..len).collect(),
            false => rng.distinct(wanted, len),
        });
    }
    let words = "ERR value is out of range";
    let size = wanted.checked_mul(entry_size + size_of::<usize>());
    size.filter(|size| *size <= PICKS_SIZE_MAX).ok_or(CommandError::new(words))?;
    Ok((0..wanted).map(|_| rng.index(len)).collect())
}

fn srandmember(call: &mut Call<'_>) -> Result<(), CommandError> {
    let count = match call.args.get(2..).unwrap_or_default() {
        [] => None,
        [count] => Some(picks_arg(count)?),
        _ => return Err(SYNTAX),
    };
    let mut rng = call.keys.fork_rng();
    let Some(set) = call.keys.get::<Set>(call.db, call.args[1])? else {
        match count {
            Some(_) => call.out.array(0),
            None => call.out.null(),
        }
        return Ok(());
    };
    let Some(count) = count else {
        call.out.bulk_or_null(set.get(rng.index(set.len())));
        return Ok(());
    };
    let picked = picks(&mut rng, count, set.len(), set.heap_size() / set.len())?;
    call.out.array(picked.len());
    for at in picked {
        call.out.bulk_or_null(set.get(at));
    }
    Ok(())
}

// ---- several sets ----

/// Makes a set of several.
type Combine = fn(&mut Call<'_>, &[&[u8]]) -> Result<Set, CommandError>;

fn sinter(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine(call, intersection)
}

fn sunion(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine(call, union)
}

fn sdiff(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine(call, difference)
}

fn sinter_store(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine_and_store(call, intersection, "sinterstore")
}

fn sunion_store(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine_and_store(call, union, "sunionstore")
}

fn sdiff_store(call: &mut Call<'_>) -> Result<(), CommandError> {
    combine_and_store(call, difference, "sdiffstore")
}

fn combine(call: &mut Call<'_>, combine: Combine) -> Result<(), CommandError> {
    let set = combine(call, &call.args[1..])?;
    answer(call.out, &set);
    Ok(())
}

fn combine_and_store(
    call: &mut Call<'_>,
    combine: Combine,
    event: &'static str,
) -> Result<(), CommandError> {
    let target = call.args[1];
    let set = combine(call, &call.args[2..])?;
    let len = set.len();
    if set.is_empty() {
        if call.remove(target)? {
            call.log(&[b"del", target]);
            call.event(EVENT_GENERIC, "del", target);
        }
    } else {
        call.put(target, set.into_value(), Expire::Never)?;
        call.event(EVENT_SET, event, target);
        call.log_key(target)?;
    }
    call.out.len(len);
    Ok(())
}

/// The keys by how many members they have, fewest first. An error if one is no set.
fn by_len<'a>(
    call: &mut Call<'_>,
    keys: &[&'a [u8]],
) -> Result<Vec<(usize, &'a [u8])>, CommandError> {
    let mut lens = Vec::with_capacity(keys.len());
    for key in keys {
        lens.push((call.get::<Set>(key)?.map_or(0, Set::len), *key));
    }
    lens.sort_by_key(|(len, _)| *len);
    Ok(lens)
}

fn copy_of(call: &mut Call<'_>, key: &[u8]) -> Result<Set, CommandError> {
    Ok(call.get::<Set>(key)?.cloned().unwrap_or_default())
}

/// The members of the smallest set that all others have, at most `most` of them.
fn common(call: &mut Call<'_>, keys: &[&[u8]], most: usize) -> Result<Vec<Element>, CommandError> {
    let lens = by_len(call, keys)?;
    let Some(((len, smallest), others)) = lens.split_first() else { return Ok(Vec::new()) };
    if *len == 0 {
        return Ok(Vec::new());
    }
    let set = call.get::<Set>(smallest)?;
    let members = set.map(|set| set.listed().into_iter().map(Element::new).collect());
    let mut members: Vec<Element> = members.unwrap_or_default();
    for (nth, (_, key)) in (1..).zip(others) {
        let Some(set) = call.get::<Set>(key)? else { return Ok(Vec::new()) };
        // Enough is enough where the last set has spoken.
        let most = if nth == others.len() { most } else { usize::MAX };
        let mut kept = 0;
        members.retain(|member| {
            let is_kept = kept < most && set.contains(member.bytes());
            kept += usize::from(is_kept);
            is_kept
        });
    }
    members.truncate(most);
    Ok(members)
}

fn intersection(call: &mut Call<'_>, keys: &[&[u8]]) -> Result<Set, CommandError> {
    let members = common(call, keys, usize::MAX)?;
    Ok(members.iter().map(Element::bytes).collect())
}

fn union(call: &mut Call<'_>, keys: &[&[u8]]) -> Result<Set, CommandError> {
    by_len(call, keys)?;
    let Some((first, others)) = keys.split_first() else { return Ok(Set::default()) };
    let (mut all, size_max) = (copy_of(call, first)?, call.keys.made_max());
    for key in others {
        let Some(set) = call.get::<Set>(key)? else { continue };
        for member in set.iter() {
            all.insert(member);
            may_take(all.heap_size(), size_max)?;
        }
    }
    Ok(all)
}

fn difference(call: &mut Call<'_>, keys: &[&[u8]]) -> Result<Set, CommandError> {
    by_len(call, keys)?;
    let Some((first, others)) = keys.split_first() else { return Ok(Set::default()) };
    let mut left = copy_of(call, first)?;
    for key in others {
        let Some(set) = call.get::<Set>(key)? else { continue };
        if set.len() < left.len() {
            set.iter().for_each(|member| {
                left.remove(member);
            });
        } else {
            left = left.listed().into_iter().filter(|member| !set.contains(member)).collect();
        }
    }
    Ok(left)
}

fn sinter_card(call: &mut Call<'_>) -> Result<(), CommandError> {
    let count = parse_i64(call.args[1]).and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| 0 < *count);
    let count = count.ok_or(CommandError::new("ERR numkeys should be greater than 0"))?;
    let end = count.checked_add(2).filter(|end| *end <= call.args.len());
    let words = "ERR Number of keys can't be greater than number of args";
    let end = end.ok_or(CommandError::new(words))?;
    let mut most = usize::MAX;
    let mut at = end;
    while let Some(word) = call.args.get(at) {
        let value = call.args.get(at + 1).filter(|_| word.eq_ignore_ascii_case(b"limit"));
        let limit = parse_i64(value.ok_or(SYNTAX)?).and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.ok_or(CommandError::new("ERR LIMIT can't be negative"))?;
        most = if limit == 0 { usize::MAX } else { limit };
        at += 2;
    }
    let members = common(call, &call.args[2..end], most)?;
    call.out.len(members.len());
    Ok(())
}
