//! `SORT`: the elements of a list, set or sorted set by their own values or by those of other keys.

use super::{Command, DENY_OOM, Group, Keys, MOVABLE_KEYS, ONE_KEY, READONLY, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX, WRONG_TYPE};
use crate::keyspace::{EVENT_GENERIC, EVENT_LIST, Expire, may_take};
use crate::number::{int_arg, parse_f64};
use crate::value::list::End;
use crate::value::{Hash, List, Stored, Str, Value};
use std::cmp::Ordering;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("sort", -2, WRITE | DENY_OOM | MOVABLE_KEYS | super::DANGEROUS, Keys::Found(keys_of), Group::Generic, "1.0.0", "Sorts the elements of a list, a set or a sorted set.", sort),
    command("sort_ro", -2, READONLY | MOVABLE_KEYS | super::DANGEROUS, ONE_KEY, Group::Generic, "7.0.0", "Sorts the elements of a list, a set or a sorted set; stores nothing.", sort),
];

/// The key, and where the result is stored.
fn keys_of(args: &[&[u8]]) -> Vec<usize> {
    let mut places = vec![1];
    let mut at = 2;
    let mut target = None;
    while let Some(word) = args.get(at) {
        at += match word.to_ascii_lowercase().as_slice() {
            b"limit" => 3,
            b"get" | b"by" => 2,
            b"store" => {
                target = Some(at + 1).filter(|at| *at < args.len());
                2
            }
            _ => 1,
        };
    }
    places.extend(target);
    places
}

/// The option of a command that leads to keys which the command does not name, if there is one.
pub fn follows_keys(args: &[&[u8]]) -> Option<&'static str> {
    let mut at = 2;
    while let Some(word) = args.get(at) {
        let pattern = args.get(at + 1);
        at += match word.to_ascii_lowercase().as_slice() {
            b"limit" => 3,
            b"by" if pattern.is_some_and(|pattern| pattern.contains(&b'*')) => return Some("BY"),
            b"get" if pattern.is_some() => return Some("GET"),
            b"by" | b"store" => 2,
            _ => 1,
        };
    }
    None
}

/// What is asked for.
#[derive(Default)]
struct Options<'a> {
    is_descending: bool,
    is_alphabetic: bool,
    limit: Option<(i64, i64)>,
    by: Option<Pattern<'a>>,
    keeps_order: bool,
    get: Vec<Pattern<'a>>,
    target: Option<&'a [u8]>,
}

/// Where a value is found, given an element.
#[derive(Clone, Copy)]
enum Pattern<'a> {
    /// The element itself.
    Element,
    /// Nowhere: no place for the element.
    Nothing,
    /// A string of the key that is these around the element, or the field of a hash.
    Key { before: &'a [u8], after: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    fn of(text: &'a [u8]) -> Pattern<'a> {
        if text == b"#" {
            return Pattern::Element;
        }
        let Some(star) = text.iter().position(|byte| *byte == b'*') else {
            return Pattern::Nothing;
        };
        let (before, after) = (&text[..star], &text[star + 1..]);
        let arrow = after.windows(2).position(|pair| pair == b"->");
        match arrow.filter(|arrow| arrow + 2 < after.len()) {
            Some(arrow) => {
                let field = Some(&after[arrow + 2..]);
                Pattern::Key { before, after: &after[..arrow], field }
            }
            None => Pattern::Key { before, after, field: None },
        }
    }

    /// The value that it leads to.
    fn value(self, call: &mut Call<'_>, element: &[u8]) -> Result<Option<Vec<u8>>, CommandError> {
        let (before, after, field) = match self {
            Pattern::Element => return Ok(Some(element.to_vec())),
            Pattern::Nothing => return Ok(None),
            Pattern::Key { before, after, field } => (before, after, field),
        };
        let key = [before, element, after].concat();
        let Some(value) = call.keys.value(call.db, &key)? else { return Ok(None) };
        Ok(match field {
            None => Str::of(value).map(|string| string.bytes().into_owned()),
            Some(field) => Hash::of(value).and_then(|hash| hash.get(field)).map(<[u8]>::to_vec),
        })
    }
}

fn options<'a>(call: &Call<'a>) -> Result<Options<'a>, CommandError> {
    let mut options = Options::default();
    let stores = call.command.info.is(WRITE);
    let mut at = 2;
    while let Some(word) = call.args.get(at) {
        let value = call.args.get(at + 1).copied();
        match (word.to_ascii_lowercase().as_slice(), value) {
            (b"asc", _) => options.is_descending = false,
            (b"desc", _) => options.is_descending = true,
            (b"alpha", _) => options.is_alphabetic = true,
            (b"limit", Some(start)) => {
                let count = call.args.get(at + 2).ok_or(SYNTAX)?;
                options.limit = Some((int_arg(start)?, int_arg(count)?));
                at += 2;
            }
            (b"store", Some(key)) if stores => {
                options.target = Some(key);
                at += 1;
            }
            (b"by", Some(pattern)) => {
                options.keeps_order = !pattern.contains(&b'*');
                options.by = Some(Pattern::of(pattern));
                at += 1;
            }
            (b"get", Some(pattern)) => {
                options.get.push(Pattern::of(pattern));
                at += 1;
            }
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    Ok(options)
}

fn sort(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut options = options(call)?;
    let mut elements = elements(call, &mut options)?;
    if !options.keeps_order {
        elements = sorted(call, &options, elements)?;
    }
    let shown = shown(elements.len(), options.limit);
    elements.truncate(shown.end);
    elements.drain(..shown.start);
    match options.target {
        Some(target) => store(call, &options, elements, target),
        None => answer(call, &options, &elements),
    }
}

/// The elements in the order that they have.
fn elements(call: &mut Call<'_>, options: &mut Options<'_>) -> Result<Vec<Vec<u8>>, CommandError> {
    let size_max = call.keys.made_max();
    let Some(value) = call.keys.value(call.db, call.args[1])? else { return Ok(Vec::new()) };
    let len = match value {
        Value::List(list) => list.len(),
        Value::Set(set) => set.len(),
        Value::Zset(zset) => zset.len(),
        _ => return Err(WRONG_TYPE),
    };
    may_take(len.saturating_mul(SORTED_COST).saturating_add(value.heap_size()), size_max)?;
    match value {
        Value::List(list) => {
            let mut elements: Vec<Vec<u8>> = list.iter_from(0).map(<[u8]>::to_vec).collect();
            if options.keeps_order && options.is_descending {
                elements.reverse();
            }
            Ok(elements)
        }
        Value::Set(set) => {
            // What is stored, or seen by a script, is not in any order.
            if options.keeps_order && (options.target.is_some() || call.mode != crate::Mode::Client)
            {
                (options.keeps_order, options.is_alphabetic, options.by) = (false, true, None);
            }
            Ok(set.iter().map(<[u8]>::to_vec).collect())
        }
        Value::Zset(zset) => {
            let mut elements = Vec::with_capacity(zset.len());
            let is_reverse = options.keeps_order && options.is_descending;
            zset.each(0..zset.len(), is_reverse, |member, _| elements.push(member.to_vec()));
            Ok(elements)
        }
        _ => Err(WRONG_TYPE),
    }
}

/// Bytes that an element takes while it is sorted, besides its own, about.
const SORTED_COST: usize = 96;

/// By what an element is sorted.
enum Weight {
    Number(f64),
    Text(Option<Vec<u8>>),
}

fn sorted(
    call: &mut Call<'_>,
    options: &Options<'_>,
    elements: Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut weighted = Vec::with_capacity(elements.len());
    let (mut size, size_max) = (0_usize, call.keys.made_max());
    for element in elements {
        let by = match options.by {
            Some(pattern) => pattern.value(call, &element)?,
            None => Some(element.clone()),
        };
        size = size.saturating_add(by.as_ref().map_or(0, Vec::len));
        may_take(size, size_max)?;
        let weight = match options.is_alphabetic {
            true => Weight::Text(by),
            false => Weight::Number(by.map_or(Ok(0.0), |text| number(&text))?),
        };
        weighted.push((weight, element));
    }
    weighted.sort_by(|(one, one_element), (other, other_element)| {
        let order = match (one, other) {
            // Of the same weight the lesser element comes first.
            (Weight::Number(one), Weight::Number(other)) => {
                let order = one.partial_cmp(other).unwrap_or(Ordering::Equal);
                order.then_with(|| one_element.cmp(other_element))
            }
            (Weight::Text(one), Weight::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        };
        if options.is_descending { order.reverse() } else { order }
    });
    Ok(weighted.into_iter().map(|(_, element)| element).collect())
}

fn number(text: &[u8]) -> Result<f64, CommandError> {
    let text = text.trim_ascii_start();
    let number = if text.is_empty() { Some(0.0) } else { parse_f64(text) };
    number.ok_or(CommandError::new("ERR One or more scores can't be converted into double"))
}

/// The places that a limit leaves.
fn shown(len: usize, limit: Option<(i64, i64)>) -> std::ops::Range<usize> {
    let Some((start, count)) = limit else { return 0..len };
    let start = usize::try_from(start).unwrap_or(0).min(len);
    let end = match usize::try_from(count) {
        Ok(count) => start.saturating_add(count).min(len),
        Err(_) => len,
    };
    start..end
}

fn answer(
    call: &mut Call<'_>,
    options: &Options<'_>,
    elements: &[Vec<u8>],
) -> Result<(), CommandError> {
    call.out.array(elements.len() * options.get.len().max(1));
    for element in elements {
        if options.get.is_empty() {
            call.out.bulk(element);
        }
        for pattern in &options.get {
            let value = pattern.value(call, element)?;
            call.out.bulk_or_null(value.as_deref());
        }
    }
    Ok(())
}

fn store(
    call: &mut Call<'_>,
    options: &Options<'_>,
    elements: Vec<Vec<u8>>,
    target: &[u8],
) -> Result<(), CommandError> {
    let (mut list, size_max) = (List::default(), call.keys.made_max());
    for element in elements {
        if options.get.is_empty() {
            list.push(End::Right, &element);
        }
        for pattern in &options.get {
            let value = pattern.value(call, &element)?.unwrap_or_default();
            list.push(End::Right, &value);
            may_take(list.heap_size(), size_max)?;
        }
    }
    let len = list.len();
    if 0 < len {
        call.put(target, list.into_value(), Expire::Never)?;
        call.log_key(target)?;
        call.event(EVENT_LIST, "sortstore", target);
    } else if call.remove(target)? {
        call.log(&[b"del", target]);
        call.event(EVENT_GENERIC, "del", target);
    }
    call.out.len(len);
    Ok(())
}
