//! What is pending: shown, and taken over by other consumers.

use super::effect::Deliveries;
use super::{count_text, end_arg, id_arg, no_group, start_arg, write_entry, write_id};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX};
use crate::keyspace::EVENT_STREAM;
use crate::number::{int_arg, parse_i64};
use crate::reply::Reply;
use crate::value::Stream;
use crate::value::stream::{Entries, Group, Id};

/// Entries that `XAUTOCLAIM` looks at for each that it may claim.
const LOOKS_PER_CLAIM: usize = 10;

/// `XPENDING`
pub fn pending(call: &mut Call<'_>) -> Result<(), CommandError> {
    if call.argc() != 3 && (call.argc() < 6 || 9 < call.argc()) {
        return Err(SYNTAX);
    }
    let (key, name) = (call.arg(1), call.arg(2));
    if call.argc() == 3 {
        let stream = call.keys.get::<Stream>(call.db, key)?;
        let group = stream.and_then(|stream| stream.group(name));
        summary(call.out, group.ok_or_else(|| no_group(key, name))?);
        return Ok(());
    }
    let (mut at, mut idle_min) = (3, 0);
    if call.arg(3).eq_ignore_ascii_case(b"idle") {
        idle_min = int_arg(call.arg(4))?;
        if call.argc() < 8 {
            return Err(SYNTAX);
        }
        at = 5;
    }
    let count = usize::try_from(int_arg(call.arg(at + 2))?).unwrap_or(0);
    let (start, end) = (start_arg(call.arg(at))?, end_arg(call.arg(at + 1))?);
    let consumer = call.args.get(at + 3).copied();
    let now_ms = call.now_ms();
    let stream = call.keys.get::<Stream>(call.db, key)?;
    let group = stream.and_then(|stream| stream.group(name));
    let group = group.ok_or_else(|| no_group(key, name))?;
    let is_idle = |id: &Id| {
        let delivered = group.pending().get(id).map(|pending| pending.delivered_ms);
        delivered.is_some_and(|at| idle_min <= 0 || idle_min <= now_ms.saturating_sub(at))
    };
    let ids: Vec<Id> = match consumer {
        _ if end < start => Vec::new(),
        None => {
            let range = group.pending().range(start..=end).map(|(id, _)| *id);
            range.filter(is_idle).take(count).collect()
        }
        Some(name) => {
            let consumer = group.consumer(name);
            let range = consumer.map(|consumer| consumer.pending.range(start..=end));
            range.into_iter().flatten().copied().filter(is_idle).take(count).collect()
        }
    };
    call.out.array(ids.len());
    for id in ids {
        let Some(pending) = group.pending().get(&id) else { continue };
        call.out.array(4);
        write_id(call.out, id);
        call.out.bulk(&pending.consumer);
        call.out.int(now_ms.saturating_sub(pending.delivered_ms).max(0));
        call.out.int(count_text(pending.count));
    }
    Ok(())
}

fn summary(out: &mut dyn Reply, group: &Group) {
    out.array(4);
    out.len(group.pending().len());
    let (first, last) = (group.pending().keys().next(), group.pending().keys().next_back());
    let (Some(first), Some(last)) = (first, last) else {
        out.null();
        out.null();
        out.null_array();
        return;
    };
    write_id(out, *first);
    write_id(out, *last);
    let busy = || group.consumers().iter().filter(|(_, consumer)| !consumer.pending.is_empty());
    out.array(busy().count());
    for (name, consumer) in busy() {
        out.array(2);
        out.bulk(name);
        out.bulk_int(i64::try_from(consumer.pending.len()).unwrap_or(i64::MAX));
    }
}

/// How entries are taken over.
struct Claim<'a> {
    consumer: &'a [u8],
    now_ms: i64,
    idle_min: i64,
    delivered_ms: i64,
    /// How often they are to count as delivered.
    count: Option<u64>,
    /// Takes what is not pending, too.
    is_forced: bool,
    wants_ids: bool,
    last_id: Option<Id>,
}

impl Claim<'_> {
    /// Takes a pending entry over, unless it was delivered of late. Returns whether it did.
    fn take(&self, group: &mut Group, id: Id, done: &mut Deliveries) -> bool {
        let before = group.pending().get(&id).map(|one| (one.delivered_ms, one.count));
        let before_count = match before {
            Some((at, count)) => {
                if 0 < self.idle_min && self.now_ms.saturating_sub(at) < self.idle_min {
                    return false;
                }
                count
            }
            None if self.is_forced => 1,
            None => return false,
        };
        done.is_new_consumer |= group.see(self.consumer, self.now_ms);
        group.activate(self.consumer, self.now_ms);
        let more = u64::from(!self.wants_ids);
        let count = self.count.unwrap_or(before_count.saturating_add(more));
        group.assign(id, self.consumer, self.delivered_ms, count);
        done.note(id, group);
        true
    }

    fn write(&self, out: &mut dyn Reply, entries: &Entries, ids: &[Id]) {
        out.array(ids.len());
        for id in ids {
            match entries.get(*id) {
                Some(entry) if !self.wants_ids => write_entry(out, *id, entry),
                _ => write_id(out, *id),
            }
        }
    }
}

fn idle_arg(text: &[u8], command: &str) -> Result<i64, CommandError> {
    let idle = parse_i64(text).ok_or_else(|| {
        CommandError::new(format!("ERR Invalid min-idle-time argument for {command}"))
    })?;
    Ok(idle.max(0))
}

/// `XCLAIM`
pub fn claim(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name) = (call.arg(1), call.arg(2));
    let stream = call.keys.get::<Stream>(call.db, key)?;
    if stream.is_none_or(|stream| stream.group(name).is_none()) {
        return Err(no_group(key, name));
    }
    let idle_min = idle_arg(call.arg(4), "XCLAIM")?;
    let texts = call.args.get(5..).unwrap_or_default();
    let ids = texts.iter().map_while(|text| Id::parse(text, 0));
    let ids: Vec<Id> = ids.collect();
    let claim = claim_options(call, 5 + ids.len(), idle_min)?;
    let mut done = Deliveries::default();
    let (consumer, out) = (claim.consumer, &mut *call.out);
    let Some(stream) = call.keys.get_growing::<Stream>(call.db, key)? else { return Ok(()) };
    stream.change_group(name, |group, position| {
        if let Some(last_id) = claim.last_id.filter(|last_id| group.last_id < *last_id) {
            group.last_id = last_id;
            done.has_moved = true;
        }
        if group.consumer(consumer).is_some() {
            group.see(consumer, claim.now_ms);
        }
        let mut claimed = Vec::new();
        for id in ids {
            if position.entries.get(id).is_none() {
                // What is gone is pending with nobody.
                if group.acknowledge(id) {
                    done.note_gone(id);
                }
                continue;
            }
            if claim.take(group, id, &mut done) {
                claimed.push(id);
            }
        }
        claim.write(out, position.entries, &claimed);
    });
    finish(call, key, name, consumer, &done)
}

/// Reads the options behind the numbers of entries.
fn claim_options<'a>(
    call: &Call<'a>,
    mut at: usize,
    idle_min: i64,
) -> Result<Claim<'a>, CommandError> {
    let now_ms = call.now_ms();
    let mut claim = Claim {
        consumer: call.arg(3),
        now_ms,
        idle_min,
        delivered_ms: now_ms,
        count: None,
        is_forced: false,
        wants_ids: false,
        last_id: None,
    };
    let number = |at: usize, option: &str| {
        let invalid = || format!("ERR Invalid {option} option argument for XCLAIM");
        parse_i64(call.arg(at)).ok_or_else(|| CommandError::new(invalid()))
    };
    let mut delivered = None;
    while let Some(word) = call.args.get(at) {
        let has_value = at + 1 < call.argc();
        match word.to_ascii_lowercase().as_slice() {
            b"force" => claim.is_forced = true,
            b"justid" => claim.wants_ids = true,
            b"idle" if has_value => delivered = Some(now_ms.wrapping_sub(number(at + 1, "IDLE")?)),
            b"time" if has_value => delivered = Some(number(at + 1, "TIME")?),
            b"retrycount" if has_value => {
                claim.count = u64::try_from(number(at + 1, "RETRYCOUNT")?).ok();
            }
            b"lastid" if has_value => claim.last_id = Some(id_arg(call.arg(at + 1), 0)?),
            _ => {
                let word = String::from_utf8_lossy(word);
                return Err(CommandError::new(format!("ERR Unrecognized XCLAIM option '{word}'")));
            }
        }
        let is_alone = matches!(word.to_ascii_lowercase().as_slice(), b"force" | b"justid");
        at += if is_alone { 1 } else { 2 };
    }
    // A moment that is no past one is now.
    claim.delivered_ms = delivered.filter(|at| (0..=now_ms).contains(at)).unwrap_or(now_ms);
    Ok(claim)
}

fn finish(
    call: &mut Call<'_>,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    done: &Deliveries,
) -> Result<(), CommandError> {
    if done.is_empty() {
        return Ok(());
    }
    call.modified(key);
    done.log(call, key, name, consumer)?;
    if done.is_new_consumer {
        call.event(EVENT_STREAM, "xgroup-createconsumer", key);
    }
    Ok(())
}

/// `XAUTOCLAIM`
pub fn auto_claim(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name, consumer) = (call.arg(1), call.arg(2), call.arg(3));
    let idle_min = idle_arg(call.arg(4), "XAUTOCLAIM")?;
    let start = start_arg(call.arg(5))?;
    let (mut count, mut wants_ids, mut at) = (100, false, 6);
    while let Some(word) = call.args.get(at) {
        let lower = word.to_ascii_lowercase();
        match (lower.as_slice(), call.args.get(at + 1)) {
            (b"count", Some(value)) => {
                let positive = || CommandError::new("ERR COUNT must be > 0");
                let value = parse_i64(value).and_then(|value| usize::try_from(value).ok());
                let max = isize::MAX.unsigned_abs() / 16;
                count = value.filter(|value| (1..=max).contains(value)).ok_or_else(positive)?;
                at += 1;
            }
            (b"justid", _) => wants_ids = true,
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    let now_ms = call.now_ms();
    let claim = Claim {
        consumer,
        now_ms,
        idle_min,
        delivered_ms: now_ms,
        count: None,
        is_forced: false,
        wants_ids,
        last_id: None,
    };
    let mut done = Deliveries::default();
    let out = &mut *call.out;
    let stream = call.keys.get_growing::<Stream>(call.db, key)?;
    let stream = stream.ok_or_else(|| no_group(key, name))?;
    let claimed = stream.change_group(name, |group, position| {
        if group.consumer(consumer).is_some() {
            group.see(consumer, now_ms);
        }
        let (mut claimed, mut gone) = (Vec::new(), Vec::new());
        let looks = count.saturating_mul(LOOKS_PER_CLAIM);
        let ids: Vec<Id> = group
            .pending()
            .range(start..)
            .map(|(id, _)| *id)
            .take(looks.saturating_add(1))
            .collect();
        let mut looked = 0;
        for id in ids.iter().take(looks) {
            if count <= claimed.len() + gone.len() {
                break;
            }
            looked += 1;
            if position.entries.get(*id).is_none() {
                group.acknowledge(*id);
                done.note_gone(*id);
                gone.push(*id);
            } else if claim.take(group, *id, &mut done) {
                claimed.push(*id);
            }
        }
        out.array(3);
        write_id(out, ids.get(looked).copied().unwrap_or_default());
        claim.write(out, position.entries, &claimed);
        out.array(gone.len());
        gone.iter().for_each(|id| write_id(out, *id));
    });
    claimed.ok_or_else(|| no_group(key, name))?;
    finish(call, key, name, consumer, &done)
}
