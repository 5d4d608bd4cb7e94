//! How large a value may become: its record on disk is bounded, and whoever needs it reads all of it.

use super::Keyspace;
use crate::error::CommandError;
use crate::value::{Stored, Value};

/// Bytes by which one command lets a value grow, at most: all of a command is not more than 1 GiB,
/// and a value takes some more memory than its bytes.
const COMMAND_SIZE_MAX: usize = 3 << 29;

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

    /// Refuses a value larger than any may become. What grew by one command is not, so that it can
    /// be renamed.
    pub(super) fn may_be_put(&self, value: &Value) -> Result<(), CommandError> {
        let (size, size_max) = (value.heap_size(), self.config.value_size_max);
        match size <= size_max.saturating_add(COMMAND_SIZE_MAX) || self.is_replaying {
            true => Ok(()),
            false => Err(too_large(size, size_max)),
        }
    }
}

fn too_large(size: usize, size_max: usize) -> CommandError {
    CommandError::new(format!(
        "ERR the value is too large: it takes {size} bytes of memory, and may grow up to {size_max}: \
         spread it over several keys"
    ))
}
