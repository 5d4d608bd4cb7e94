//! How large a value may become: its record on disk is bounded, and whoever needs it reads all of it.
//!
//! What a command says lets a value grow by no more than the command is large. What a command makes of
//! other values, or of what it says in few bytes, is bounded while it is made: [`Keyspace::made_max`].

use super::Keyspace;
use crate::error::CommandError;
use crate::value::{Stored, Value};

/// Bytes of growth that are checked against the memory that is left. Smaller ones are bounded by what
/// clients send, and by the keeper, which moves values to disk.
pub const ROOM_CHECK_MIN: usize = 64 << 10;

impl Keyspace {
    /// Sets the bytes of memory that keys may take while commands of clients run; `usize::MAX` is no
    /// limit.
    pub fn set_ceiling(&mut self, bytes: usize) {
        self.ceiling = bytes;
    }

    /// Bytes of memory by which keys may grow.
    pub fn room(&self) -> usize {
        match self.ceiling == usize::MAX || self.is_replaying {
            true => usize::MAX,
            false => self.ceiling.saturating_sub(self.memory_used()),
        }
    }

    /// Bytes of memory that a key takes, without counting a lookup; 0 if it is not there.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub(crate) fn size_of(&mut self, db: u8, key: &[u8]) -> Result<usize, CommandError> {
        let slot = self.find(db, key)?.and_then(|number| self.slots.get(number));
        Ok(slot.map_or(0, |slot| slot.cost as usize))
    }

    /// Refuses a command that needs more memory than is left, before it takes any.
    ///
    /// # Errors
    /// When there is too little.
    #[inline]
    pub(crate) fn take_room(&self, growth: usize) -> Result<(), CommandError> {
        if growth < ROOM_CHECK_MIN {
            return Ok(());
        }
        let room = self.room();
        match growth <= room {
            true => Ok(()),
            false => Err(no_room(growth, room)),
        }
    }

    /// A key's value of that type, to be changed and made larger.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; when it is as large as a value may be.
    pub fn get_growing<T: Stored>(
        &mut self,
        db: u8,
        key: &[u8],
    ) -> Result<Option<&mut T>, CommandError> {
        if let Some(number) = self.find(db, key)? {
            self.may_grow(number)?;
        }
        self.get_mut(db, key)
    }

    /// Refuses to let a value grow that is as large as it may be: its record on disk is bounded, and
    /// whoever needs it reads all of it.
    #[inline]
    pub(super) fn may_grow(&self, number: u32) -> Result<(), CommandError> {
        let size = self.slots.get(number).map_or(0, |slot| slot.cost as usize);
        match size <= self.config.value_size_max || self.is_replaying {
            true => Ok(()),
            false => Err(too_large(size, self.config.value_size_max)),
        }
    }

    /// Refuses to let a value grow by so many bytes, which are more than the command that says it has.
    ///
    /// # Errors
    /// When it would be larger than a value may be, or its record cannot be read.
    pub(crate) fn may_grow_by(
        &mut self,
        db: u8,
        key: &[u8],
        growth: usize,
    ) -> Result<(), CommandError> {
        let found = self.find(db, key)?;
        if let Some(number) = found {
            self.may_grow(number)?;
        }
        let slot = found.and_then(|number| self.slots.get(number));
        let size = slot.map_or(0, |slot| slot.cost as usize);
        self.take_room(growth)?;
        let size_max = self.config.value_size_max.saturating_add(self.config.growth_max);
        match self.is_replaying {
            true => Ok(()),
            false => may_take(size.saturating_add(growth), size_max),
        }
    }

    /// Bytes of memory that a value may take which a command makes.
    pub(crate) fn made_max(&self) -> usize {
        match self.is_replaying {
            true => usize::MAX,
            false => {
                let size_max = self.config.value_size_max.saturating_add(self.config.growth_max);
                size_max.min(self.room().max(ROOM_CHECK_MIN))
            }
        }
    }

    /// Refuses a value larger than any may become.
    pub(super) fn may_be_put(&self, key: &[u8], value: &Value) -> Result<(), CommandError> {
        let size = key.len().saturating_add(value.heap_size());
        if !self.is_replaying {
            may_take(size, self.config.value_size_max.saturating_add(self.config.growth_max))?;
        }
        self.take_room(size)
    }
}

/// Refuses what takes more memory than it may.
///
/// # Errors
/// When it does.
#[inline]
pub(crate) fn may_take(size: usize, size_max: usize) -> Result<(), CommandError> {
    match size <= size_max {
        true => Ok(()),
        false => Err(too_large(size, size_max)),
    }
}

#[cold]
fn no_room(growth: usize, room: usize) -> CommandError {
    CommandError::new(format!(
        "OOM command not allowed: it needs {growth} bytes of memory, and {room} are left \
         (--memory-limit)"
    ))
}

#[cold]
fn too_large(size: usize, size_max: usize) -> CommandError {
    CommandError::new(format!(
        "ERR the value is too large: it takes {size} bytes of memory, and may grow up to {size_max}: \
         spread it over several keys"
    ))
}

#[cfg(test)]
mod tests {
    use crate::commands::stream::DELIVERIES_MAX;
    use crate::config::KvConfig;
    use crate::keyspace::Keyspace;
    use crate::value::Stream;
    use crate::{Call, Discard, Mode, commands};
    use std::path::Path;
    use std::sync::Arc;

    fn run(keys: &mut Keyspace, text: &str) {
        let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        let command = commands::find(words[0]).expect("a command");
        let done = Call::run(keys, 0, command, &words, &mut Discard, Mode::Client);
        assert!(!done.is_error, "{text}");
        keys.effects.clear();
    }

    fn pending(keys: &mut Keyspace, group: &[u8]) -> usize {
        let stream = keys.get::<Stream>(0, b"x").expect("hot").expect("there");
        stream.group(group).expect("there").pending().len()
    }

    fn keyspace() -> Keyspace {
        let config = KvConfig::default();
        let vfs: Arc<dyn vfs::Vfs> = Arc::new(vfs::RealVfs::new());
        let cold = crate::cold::ColdStore::new(vfs, Path::new("nowhere"), &config, 0);
        Keyspace::new(config, cold, 7)
    }

    #[test]
    fn commands_that_need_more_memory_than_is_left_are_refused() {
        let mut keys = keyspace();
        run(&mut keys, "setrange large 1000000 x");
        run(&mut keys, "setrange other 10 x");
        keys.set_ceiling(keys.memory_used() + (1 << 20));
        let before = keys.memory_used();
        for text in [
            "setbit b 4294967295 1",
            "setbit other 4294967295 1",
            "setrange s 536870000 x",
            "bitfield f set u8 4294967288 1",
            "bitop not n large",
            "copy large copied",
            "bf.reserve bloom 0.001 100000000",
        ] {
            let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
            let command = commands::find(words[0]).expect("a command");
            let done = Call::run(&mut keys, 0, command, &words, &mut Discard, Mode::Client);
            assert!(done.is_error && done.changes == 0, "{text}");
            assert_eq!(keys.memory_used(), before, "{text}");
        }
        // The old value does not count: the command replaces it.
        run(&mut keys, "setbit large 8000 1");
        run(&mut keys, "setrange small 500000 x");
        keys.set_ceiling(usize::MAX);
        run(&mut keys, "copy large copied");
    }

    #[test]
    fn a_delivery_of_very_many_entries_is_done_in_parts() {
        let mut keys = keyspace();
        for n in 1..=DELIVERIES_MAX + 10 {
            run(&mut keys, &format!("xadd x {n} f v"));
        }
        for group in ["g", "h"] {
            run(&mut keys, &format!("xgroup create x {group} 0"));
        }
        let read = "xreadgroup group g c streams x >";
        run(&mut keys, read);
        assert_eq!(pending(&mut keys, b"g"), DELIVERIES_MAX);
        run(&mut keys, read);
        assert_eq!(pending(&mut keys, b"g"), DELIVERIES_MAX + 10);
        // Named twice, it is read on where the first reading ended.
        run(&mut keys, "xreadgroup group h c streams x x > >");
        assert_eq!(pending(&mut keys, b"h"), DELIVERIES_MAX + 10);
    }
}
