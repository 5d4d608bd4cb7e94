//! Memory that evaluations hold, counted.

use std::cell::Cell;
use std::rc::Rc;

/// Memory that an evaluation holds, by samples and bytes; given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    used: Rc<Usage>,
    samples: Cell<u64>,
    bytes: Cell<u64>,
}

/// What all reservations of one evaluation hold together.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub samples: Cell<u64>,
    pub samples_peak: Cell<u64>,
    pub bytes: Cell<u64>,
    pub bytes_peak: Cell<u64>,
}

impl Reservation {
    pub fn new(used: &Rc<Usage>) -> Reservation {
        Reservation { used: Rc::clone(used), samples: Cell::new(0), bytes: Cell::new(0) }
    }

    /// Takes more; the caller has to ask the context whether that is too much.
    pub fn grow(&self, samples: u64, bytes: u64) {
        self.samples.set(self.samples.get() + samples);
        self.bytes.set(self.bytes.get() + bytes);
        let used = &self.used;
        used.samples.set(used.samples.get() + samples);
        used.bytes.set(used.bytes.get() + bytes);
        used.samples_peak.set(used.samples_peak.get().max(used.samples.get()));
        used.bytes_peak.set(used.bytes_peak.get().max(used.bytes.get()));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.used.samples.set(self.used.samples.get() - self.samples.get());
        self.used.bytes.set(self.used.bytes.get() - self.bytes.get());
    }
}
