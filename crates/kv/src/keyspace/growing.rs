//! How large a value may become: its record on disk is bounded, and whoever needs it reads all of it.
//!
//! What a command says lets a value grow by no more than the command is large. What a command makes of
//! other values, or of what it says in few bytes, is bounded while it is made: [`Keyspace::made_max`].

use super::Keyspace;
use crate::error::CommandError;
use crate::value::{Stored, Value};

impl Keyspace {
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
        may_take(size.saturating_add(growth), self.made_max())
    }

    /// Bytes of memory that a value may take which a command makes.
    pub(crate) fn made_max(&self) -> usize {
        match self.is_replaying {
            true => usize::MAX,
            false => self.config.value_size_max.saturating_add(self.config.growth_max),
        }
    }

    /// Refuses a value larger than any may become.
    pub(super) fn may_be_put(&self, key: &[u8], value: &Value) -> Result<(), CommandError> {
        may_take(key.len().saturating_add(value.heap_size()), self.made_max())
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

    #[test]
    fn a_delivery_of_very_many_entries_is_done_in_parts() {
        let config = KvConfig::default();
        let vfs: Arc<dyn vfs::Vfs> = Arc::new(vfs::RealVfs::new());
        let cold = crate::cold::ColdStore::new(vfs, Path::new("nowhere"), &config, 0);
        let mut keys = Keyspace::new(config, cold, 7);
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
