//! Room in the log for a record that is still being made, so that memory changes only by what the
//! log is sure to take.
//!
//! ```text
//! reserve ─► grow, apply ─► grow, apply ─► ... ─► append       pending = gathered + reserved
//!              │ no room: nothing was applied, and what was applied before is appended
//! ```
//!
//! A reservation takes room from the log in pieces, so that most calls of `grow` only add and
//! compare. Whoever has the room holds no lock of the log: commits and other appends go on.

use crate::error::{Error, Result};
use crate::format::RECORD_HEADER_SIZE;
use crate::pending::Lsn;
use crate::writer::Wal;

/// Room that is taken from the log beyond what is needed at once: locks it once in many groups of
/// rows, and is little beside what may be pending.
const STOCK_SIZE: usize = 256 << 10;

/// Room for one record; see [`Wal::reserve`].
///
/// Dropping it gives the room back: nothing must have been applied then. Dropped by a panic, it
/// latches the log, for memory may hold what the log does not.
#[must_use = "what was applied must be appended"]
pub struct Reservation<'w> {
    wal: &'w Wal,
    /// Bytes that the log keeps free for this record.
    held: usize,
    /// Bytes that the record may have by now, its header included; at most `held`.
    used: usize,
}

impl<'w> Reservation<'w> {
    pub(crate) fn new(wal: &'w Wal, bytes: usize) -> Result<Reservation<'w>> {
        let mut reservation = Reservation { wal, held: 0, used: RECORD_HEADER_SIZE };
        reservation.take(reservation.used.saturating_add(bytes), 0)?;
        Ok(reservation)
    }

    /// Makes room for so many bytes more.
    ///
    /// # Errors
    /// [`Error::Busy`] when too much is pending, [`Error::RecordTooLarge`] when the record would
    /// pass the limit, [`Error::Latched`] and [`Error::Closed`]; the room is as before then.
    #[inline]
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let used = self.used.saturating_add(bytes);
        if self.held < used {
            return self.take(used, STOCK_SIZE);
        }
        self.used = used;
        Ok(())
    }

    /// Makes the last `bytes` free again, for what was not applied after all.
    pub fn shrink(&mut self, bytes: usize) {
        assert!(bytes + RECORD_HEADER_SIZE <= self.used, "more than was made room for");
        self.used -= bytes;
    }

    /// Takes room for `used` bytes from the log, and for `stock` more if that is there.
    #[cold]
    fn take(&mut self, used: usize, stock: usize) -> Result<()> {
        let max = self.wal.config.record_size_max;
        if RECORD_HEADER_SIZE + max < used {
            return Err(Error::RecordTooLarge { size: used - RECORD_HEADER_SIZE, max });
        }
        let stocked = (used + stock).min(RECORD_HEADER_SIZE + max);
        let mut state = self.wal.shared.state();
        let config = &self.wal.config;
        let taken = match state.reserve(config, self.held, stocked - self.held) {
            Ok(()) => stocked,
            Err(Error::Busy { .. }) => {
                state.reserve(config, self.held, used - self.held)?;
                used
            }
            Err(error) => return Err(error),
        };
        drop(state);
        assert!(used <= taken && self.held <= taken, "room is only given back whole");
        self.held = taken;
        self.used = used;
        Ok(())
    }

    /// Appends the record, which fits what was reserved, as [`Wal::append_parts`] does. A log that
    /// is being closed still takes it.
    ///
    /// # Errors
    /// [`Error::Latched`] and [`Error::Closed`]: memory then holds what the log does not.
    pub fn append(mut self, kind: u8, parts: &[&[u8]]) -> Result<Lsn> {
        self.wal.check_kind(kind);
        let size: usize = parts.iter().map(|part| part.len()).sum();
        debug_assert!(
            size + RECORD_HEADER_SIZE <= self.used,
            "{size} bytes, {} reserved",
            self.used
        );
        let wal = self.wal;
        let mut state = wal.shared.state();
        state.release(std::mem::take(&mut self.held));
        let lsn = state.append_reserved(&wal.config, kind, parts, || wal.shared.vfs.random())?;
        let is_news = state.hurry();
        drop(state);
        if is_news {
            wal.shared.notify_work();
        }
        Ok(lsn)
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.wal.shared.latch_for_panic("a thread panicked while it made a record of the log");
        } else if 0 < self.held {
            self.wal.shared.state().release(self.held);
        }
    }
}

impl std::fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reservation({} of {} bytes)", self.used, self.held)
    }
}
