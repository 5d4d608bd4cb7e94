//! Who has a sample on which day, as a part says it.

use super::Part;
use crate::Result;
use codec::crc32;
use roaring::RoaringBitmap;

impl Part {
    /// The UTC days with samples, ascending, each with the set of series that have one.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`].
    pub fn live_days(&self) -> Result<Vec<(i32, RoaringBitmap)>> {
        let days = 0..self.directory.days.len();
        days.map(|idx| Ok((self.directory.days[idx].day, self.live_day(idx)?))).collect()
    }

    /// The series that have a sample on a UTC day from `first_day` to `last_day`, both included.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`].
    pub fn live_on(&self, first_day: i32, last_day: i32) -> Result<RoaringBitmap> {
        let mut live = RoaringBitmap::new();
        for (idx, entry) in self.directory.days.iter().enumerate() {
            if first_day <= entry.day && entry.day <= last_day {
                live |= self.live_day(idx)?;
            }
        }
        Ok(live)
    }

    pub(crate) fn live_day(&self, idx: usize) -> Result<RoaringBitmap> {
        let (entry, faults) = (&self.directory.days[idx], self.faults());
        let bytes = self.range(entry.offset, entry.size as usize)?;
        if crc32(bytes) != entry.checksum {
            return Err(self.corrupt(entry.offset, "checksum of a day"));
        }
        let mut rest = bytes;
        let set = RoaringBitmap::deserialize_from(&mut rest);
        self.check_faults(faults, entry.offset)?;
        match set {
            Ok(set) if rest.is_empty() => Ok(set),
            _ => Err(self.corrupt(entry.offset, "a set of ordinals")),
        }
    }

    /// How many days have a set of series.
    pub(crate) fn day_count(&self) -> usize {
        self.directory.days.len()
    }
}
