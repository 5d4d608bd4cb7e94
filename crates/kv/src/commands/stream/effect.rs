//! The effect of deliveries and claims: what became pending with a consumer, and what no more.
//!
//! ```text
//! \x01xdeliver  key  group  consumer  now ms, -1 without it  last number  entries read, -1 unknown  what  gone
//!               when the consumer last got something, -1 never
//! what          (time, number, delivered ms zigzag, count) each, varints
//! gone          (time, number) each, varints
//! ```

use super::id_arg;
use crate::call::Call;
use crate::effects::DELIVER;
use crate::error::{CommandError, NO_KEY};
use crate::number::int_arg;
use crate::value::Stream;
use crate::value::stream::{Group, Id};
use codec::bytes::{Reader, put_i64_zigzag, put_varint, unzigzag};

/// The time of an effect whose consumer is not there.
const NO_CONSUMER: i64 = -1;
/// The time at which a consumer got something that never did.
const NEVER_ACTIVE: i64 = -1;

/// What a command did to a group.
#[derive(Default)]
pub struct Deliveries {
    what: Vec<u8>,
    gone: Vec<u8>,
    /// Whether the consumer is new, or the group has read on.
    pub has_moved: bool,
    /// Whether the consumer is new.
    pub is_new_consumer: bool,
}

impl Deliveries {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.what.is_empty() && self.gone.is_empty() && !self.has_moved && !self.is_new_consumer
    }

    /// Notes what an entry that is pending is like now.
    pub fn note(&mut self, id: Id, group: &Group) {
        let Some(pending) = group.pending().get(&id) else { return };
        id.put(&mut self.what);
        put_i64_zigzag(&mut self.what, pending.delivered_ms);
        put_varint(&mut self.what, pending.count);
    }

    /// Notes that an entry is pending no more.
    pub fn note_gone(&mut self, id: Id) {
        id.put(&mut self.gone);
    }

    /// Logs it, with how far the group is.
    pub fn log(
        &self,
        call: &mut Call<'_>,
        key: &[u8],
        group_name: &[u8],
        consumer: &[u8],
    ) -> Result<(), CommandError> {
        let Some(stream) = call.keys.get::<Stream>(call.db, key)? else { return Ok(()) };
        let Some(group) = stream.group(group_name) else { return Ok(()) };
        let last_id = group.last_id.text();
        let read = group.entries_read.map_or(-1, super::count_text).to_string();
        // What only went, or a group that only moved, makes no consumer.
        let is_there = group.consumer(consumer).is_some();
        // What is read without being pending counts as activity, too.
        let active_ms = group.consumer(consumer).and_then(|consumer| consumer.active_ms);
        let active_ms = active_ms.unwrap_or(NEVER_ACTIVE).to_string();
        let now_ms = if is_there { call.now_ms() } else { NO_CONSUMER }.to_string();
        call.log(&[
            DELIVER,
            key,
            group_name,
            consumer,
            now_ms.as_bytes(),
            last_id.as_bytes(),
            read.as_bytes(),
            &self.what,
            &self.gone,
            active_ms.as_bytes(),
        ]);
        Ok(())
    }
}

/// Replays it.
pub fn apply(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name, consumer) = (call.arg(1), call.arg(2), call.arg(3));
    let now_ms = int_arg(call.arg(4))?;
    let last_id = id_arg(call.arg(5), 0)?;
    let read = u64::try_from(int_arg(call.arg(6))?).ok();
    let (what, gone) = (call.arg(7), call.arg(8));
    // Logs of before had no such argument: whoever got something was active then.
    let active_ms = match call.args.get(9) {
        Some(text) => int_arg(text)?,
        None if what.is_empty() => NEVER_ACTIVE,
        None => now_ms,
    };
    let stream = call.get_mut::<Stream>(key)?.ok_or(NO_KEY)?;
    let applied = stream.change_group(name, |group, _| {
        if now_ms != NO_CONSUMER {
            group.see(consumer, now_ms);
        }
        (group.last_id, group.entries_read) = (last_id, read);
        let mut reader = Reader::new(what);
        while !reader.is_empty() {
            let id = Id::read(&mut reader)?;
            let delivered_ms = unzigzag(reader.varint()?);
            group.assign(id, consumer, delivered_ms, reader.varint()?);
        }
        if active_ms != NEVER_ACTIVE && now_ms != NO_CONSUMER {
            group.activate(consumer, active_ms);
        }
        let mut reader = Reader::new(gone);
        while !reader.is_empty() {
            group.acknowledge(Id::read(&mut reader)?);
        }
        Ok(())
    });
    let failed = |error: codec::Error| CommandError::new(format!("ERR {error}"));
    applied.ok_or(NO_KEY)?.map_err(failed)?;
    call.modified(key);
    Ok(())
}
