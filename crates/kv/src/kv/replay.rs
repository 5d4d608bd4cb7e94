//! Replay of log records on a checkpoint in which some keys are newer than the records.

use crate::call::{Call, Mode};
use crate::commands;
use crate::effects::{Effect, decode};
use crate::keyspace::Keyspace;
use crate::pieces::{Pieces, Whole};
use crate::reply::Discard;
use std::collections::HashSet;
use wal::ReplayError;

/// Takes a record of the log, or a piece of one. A record that is not whole is left out and noted:
/// the others do not depend on it.
///
/// # Errors
/// When a newer program wrote it.
pub(crate) fn replay(keys: &mut Keyspace, payload: &[u8]) -> Result<(), ReplayError> {
    keys.replayed_size += payload.len() as u64;
    let (record, lost) = read_record(&mut keys.pieces, payload)?;
    lost.into_iter().for_each(|what| keys.note_left_out(what));
    match record {
        Some(record) => {
            let (seq, effects) = decode(record.bytes())?;
            replay_record(keys, seq, &effects)
        }
        None => Ok(()),
    }
}

/// The next whole record of the log that can be replayed, and records that are left out, in words.
/// Verification reads the log with it, too.
///
/// # Errors
/// When a newer program wrote it.
pub(crate) fn read_record<'a>(
    pieces: &mut Pieces,
    payload: &'a [u8],
) -> Result<(Option<Whole<'a>>, Vec<String>), ReplayError> {
    let taken = pieces.take(payload);
    let mut lost: Vec<String> = taken.lost.into_iter().collect();
    let Some(whole) = taken.whole else { return Ok((None, lost)) };
    let checked = match decode(whole.bytes()) {
        Ok((seq, effects)) => check_effects(&effects).map_err(|what| (Some(seq), what)),
        Err(error) => Err((None, RecordFault::Damaged(error.to_string()))),
    };
    match checked {
        Ok(()) => Ok((Some(whole), lost)),
        Err((_, RecordFault::Newer(what))) if whole.is_proven() => Err(what.into()),
        Err((seq, RecordFault::Newer(what) | RecordFault::Damaged(what))) => {
            let seq = seq.map_or_else(|| "?".to_owned(), |seq| seq.to_string());
            lost.push(format!("record {seq} of keys: {what}; none of its changes is made"));
            Ok((None, lost))
        }
    }
}

/// Why the effects of a record cannot be replayed.
enum RecordFault {
    /// A newer program wrote them, if the record is known to be whole.
    Newer(String),
    /// They are not what any program writes.
    Damaged(String),
}

/// Checks all effects of a record before the first one is replayed.
fn check_effects(effects: &[Effect<'_>]) -> Result<(), RecordFault> {
    for effect in effects {
        let name = effect.arguments.first().copied().unwrap_or_default();
        let command = commands::find(name).or_else(|| commands::internal::find(name));
        let shown = String::from_utf8_lossy(name);
        match command {
            None => {
                return Err(RecordFault::Newer(format!("an effect of a newer program: {shown}")));
            }
            Some(command) if !command.info.takes(effect.arguments.len()) => {
                return Err(RecordFault::Damaged(format!("{shown} has other arguments")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn replay_record(keys: &mut Keyspace, seq: u64, effects: &[Effect<'_>]) -> Result<(), ReplayError> {
    keys.seq = keys.seq.max(seq);
    let saved_seq = keys.seq;
    let record_seq = seq;
    let mut news = News::of(seq, effects);
    keys.seq = record_seq;
    for effect in effects {
        replay_effect(keys, effect, &mut news)?;
    }
    keys.seq = saved_seq.max(record_seq + 1);
    keys.take_ready();
    keys.take_touched();
    keys.take_series_events();
    while keys.is_over_memory() && 0 < keys.cool(256) {}
    drop(keys.trash.take());
    Ok(())
}

/// Which effects of one record are new: on one key all of them, or none.
struct News {
    /// The record's number.
    seq: u64,
    /// Whether all are. No checkpoint has seen anything of a record that empties or exchanges
    /// databases, for one that was under way then began anew; and what is exchanged has its number.
    is_all: bool,
    /// Keys on which there was one already.
    keys: HashSet<(u8, Vec<u8>)>,
}

impl News {
    fn of(seq: u64, effects: &[Effect<'_>]) -> News {
        let of_databases = [crate::effects::FLUSH, crate::effects::SWAP];
        let mut names = effects.iter().filter_map(|effect| effect.arguments.first().copied());
        let is_all = names.any(|name| of_databases.contains(&name));
        News { seq, is_all, keys: HashSet::new() }
    }

    /// Whether an effect is new to a key that has seen the record of that number.
    fn has(&mut self, place: (u8, Vec<u8>), seen: u64) -> bool {
        let is_new = self.is_all || seen < self.seq || self.keys.contains(&place);
        if is_new {
            self.keys.insert(place);
        }
        is_new
    }
}

fn replay_effect(
    keys: &mut Keyspace,
    effect: &Effect<'_>,
    news: &mut News,
) -> Result<(), ReplayError> {
    let name = effect.arguments.first().copied().unwrap_or_default();
    let command = commands::find(name).or_else(|| commands::internal::find(name));
    // They were checked when the record was read.
    let Some(command) = command else { return Ok(()) };
    let db = last_database(effect, name);
    if keys.hidden_from <= db {
        // Clients had more databases than when the manifest was written, by an earlier version.
        keys.move_hidden(db + 1).map_err(|error| error.to_string())?;
    }
    let key = command.info.first_key_place(&effect.arguments);
    if let Some(key) = key.and_then(|place| effect.arguments.get(place)) {
        let place = (effect.db, key.to_vec());
        let seen = keys.slot(effect.db, key).map(|slot| slot.map_or(0, |slot| slot.seq));
        let seen = match seen {
            Ok(seen) => seen,
            // A record that rotted costs its key, not the start. What replaces the value needs none.
            Err(_) if is_whole(name) && keys.forget_unreadable(effect.db, key) => 0,
            Err(_) => return Ok(()),
        };
        if !news.has(place, seen) {
            keys.list_series_of(effect.db, key)?;
            return Ok(());
        }
    }
    // An effect that cannot be applied was applied already, and the key has changed since.
    let (args, mut out) = (&effect.arguments, Discard);
    Call::run(keys, effect.db, command, args, &mut out, Mode::Replay);
    Ok(())
}

/// The last database that an effect is on.
fn last_database(effect: &Effect<'_>, name: &[u8]) -> usize {
    let other = effect.arguments.get(1).filter(|_| name == crate::effects::SWAP);
    let other = other.and_then(|text| std::str::from_utf8(text).ok()?.parse::<u8>().ok());
    usize::from(effect.db.max(other.unwrap_or(0)))
}

/// Whether an effect says all of what a key is afterwards.
fn is_whole(name: &[u8]) -> bool {
    [crate::effects::PUT, crate::effects::GONE, b"set", b"del"].contains(&name)
}
