//! Strings of one block of lines on their way into the dictionary.
//!
//! ```text
//! decode ── a new string gets a number, which the block holds
//!    │
//! settle ── rows that the store refuses leave the batch; numbers of the others become durable
//!    │
//! append, drop ── numbers that are not durable and that no other block holds are free again
//! ```
//!
//! Strings of refused series take no entry of the dictionary.

use crate::app::App;
use crate::ingest::Outcome;
use influx_schema::strings::TextTable;
use net::failure::Failure;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::Decoded;
use wire::influx::Texts;

/// Numbers that one block of lines holds.
#[derive(Debug)]
pub struct BlockStrings {
    table: Arc<TextTable>,
    held: Mutex<BTreeSet<u32>>,
}

impl BlockStrings {
    /// Holds nothing.
    pub fn new(table: &Arc<TextTable>) -> Arc<BlockStrings> {
        Arc::new(BlockStrings { table: table.clone(), held: Mutex::default() })
    }

    /// The dictionary for a decoder; none where strings are dropped.
    pub fn for_decoder(self: &Arc<BlockStrings>) -> Option<Arc<dyn Texts>> {
        self.table.is_on().then(|| self.clone() as Arc<dyn Texts>)
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the numbers of a batch durable, before it is appended. Rows with new strings that the
    /// store would refuse now are refused, and their strings take no entry.
    ///
    /// # Errors
    /// When the schema records cannot be written, or have no room for one of them.
    pub fn settle(
        &self,
        app: &App,
        decoded: &mut Decoded<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Failure> {
        let held = self.held().clone();
        if held.is_empty() {
            return Ok(());
        }
        // A number that equals one of them by chance costs a look, no more.
        let has_new = |values: &[f64]| values.iter().any(|value| is_among(&held, *value));
        outcome.reject(app.store.take_refused(&mut decoded.batch, &has_new));
        let batch = &decoded.batch;
        let values = batch.rows.iter().flat_map(|row| batch.row_values(row));
        let needed = values.filter(|value| is_among(&held, **value)).map(|value| *value as u32);
        self.table.make_durable(&needed.collect())
    }
}

fn is_among(numbers: &BTreeSet<u32>, value: f64) -> bool {
    let is_number = value.fract() == 0.0 && 0.0 < value && value <= f64::from(u32::MAX);
    is_number && numbers.contains(&(value as u32))
}

impl Texts for BlockStrings {
    fn number(&self, text: &str) -> Result<u32, String> {
        self.table.hold(text, &mut self.held())
    }
}

impl Drop for BlockStrings {
    fn drop(&mut self) {
        self.table.release(&self.held());
    }
}
