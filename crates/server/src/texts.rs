//! The dictionary of strings that came as fields of line protocol: a sample of such a field is a
//! number of it (decision 46).
//!
//! Entries are notes among the metadata of the store, `\0text\0NUMBER` with the text as help. They
//! are durable before any sample that names them is appended: [`TextTable::settle`].

use crate::borrowed_texts::{BorrowedTexts, Lent, Loan};
use crate::config::{ConfigError, Settings};
use crate::failure::Failure;
use model::Metadata;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{Need, Store};
use wire::influx::{STRING_SIZE_MAX, TEXT_SUFFIX, Texts};

/// What the names of notes begin with, behind their zero byte.
const START: &str = "text\0";

/// Largest number of a store that does not record which numbers are in use: the table of metadata
/// has no room for more entries.
const UNRECORDED_MAX: usize = 1 << 20;

/// Limits on texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimits {
    /// How many there may be; without any strings are left out.
    pub count_max: usize,
    /// Bytes of one.
    pub size_max: usize,
}

impl TextLimits {
    /// What the flags say.
    ///
    /// # Errors
    /// When they say what cannot be.
    pub fn of(settings: &Settings) -> Result<TextLimits, ConfigError> {
        let size_max = STRING_SIZE_MAX as u64;
        let size_max = settings.size_between("influx.max-string-size", 1, size_max)?;
        let count_max = settings.count("influx.max-strings")?;
        Ok(TextLimits { count_max, size_max: size_max as usize })
    }
}

#[derive(Debug, Default)]
struct State {
    numbers: HashMap<Arc<str>, u32>,
    /// By number, which begins with 1; none for numbers that nobody has.
    texts: Vec<Option<Arc<str>>>,
    /// Numbers that were given out and are not durable yet, in order.
    pending: Vec<u32>,
    /// Whether the store's table of metadata has no room for more.
    is_full: bool,
    /// How often numbers were taken back.
    withdrawals: u64,
}

/// A moment: whether numbers that were given out since then are still good is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

/// All texts.
#[derive(Debug)]
pub struct TextTable {
    limits: TextLimits,
    state: RwLock<State>,
    /// Held while entries are made durable: whoever comes meanwhile must wait for them.
    settling: Mutex<()>,
    /// Those of legacy backends.
    borrowed: BorrowedTexts,
}

impl TextTable {
    /// What the store has noted.
    pub fn read(store: &Store, limits: TextLimits) -> TextTable {
        let mut state = State::default();
        for note in store.notes(START) {
            let number = note.metric.rsplit('\0').next();
            let number = number.and_then(|number| u32::from_str_radix(number, 16).ok());
            let Some(slot) = number.and_then(|number| number.checked_sub(1)) else { continue };
            let slot = slot as usize;
            if state.texts.len() <= slot {
                state.texts.resize(slot + 1, None);
            }
            let text: Arc<str> = note.help.into();
            state.numbers.insert(text.clone(), slot as u32 + 1);
            state.texts[slot] = Some(text);
        }
        state.skip_used_numbers(store);
        if !state.texts.is_empty() {
            store.hide_names(TEXT_SUFFIX);
            // Those who wrote strings before it was noted did not note it. Not now is soon enough.
            if let Err(error) = store.need(Need::Strings) {
                tracing::warn!("an older version could open this store and misread it: {error}");
            }
            // Stores of earlier versions do not record which numbers are in use.
            if let Err(error) = store.reserve_string_numbers(state.texts.len() as u32) {
                tracing::warn!("numbers of strings are not recorded before the next one: {error}");
            }
        }
        TextTable {
            limits,
            state: RwLock::new(state),
            settling: Mutex::new(()),
            borrowed: BorrowedTexts::default(),
        }
    }

    fn shared(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The dictionary for who decodes lines, unless strings are left out.
    pub fn for_lines(self: &Arc<TextTable>) -> Option<Arc<dyn Texts>> {
        (self.limits.count_max != 0).then(|| self.clone() as Arc<dyn Texts>)
    }

    /// Whether strings are kept.
    pub fn is_on(&self) -> bool {
        self.limits.count_max != 0
    }

    /// The text that a sample stands for; none of what is no number that was given out, as a mean of
    /// several is.
    pub fn text(&self, sample: f64) -> Option<Arc<str>> {
        if sample.fract() != 0.0 {
            return None;
        }
        let slot = (sample as usize).checked_sub(1)?;
        let own = self.shared().texts.get(slot).cloned().flatten();
        own.or_else(|| self.borrowed.text(sample))
    }

    /// What stands for a text that is somebody else's while an answer is read: its number of the
    /// dictionary, else a place in the loan. It takes no room in the dictionary.
    ///
    /// # Errors
    /// Why there is none, in words that name the limit.
    pub fn borrow(&self, loan: &mut Loan, text: &str) -> Result<f64, String> {
        if let Some(number) = self.shared().numbers.get(text) {
            return Ok(f64::from(*number));
        }
        let TextLimits { count_max, size_max } = self.limits;
        if size_max < text.len() {
            return Err(format!(
                "a string of {} bytes, the limit is {size_max} (influx.max-string-size)",
                text.len()
            ));
        }
        loan.place(text, count_max).ok_or_else(|| too_many(count_max))
    }

    /// Gives the texts of a whole answer numbers for as long as the process runs, all or none.
    ///
    /// # Errors
    /// In words that name the limit.
    pub fn lend(&self, loan: &Loan) -> Result<Lent, String> {
        let count_max = self.limits.count_max;
        self.borrowed.numbers(loan.texts(), count_max).map(Lent).ok_or_else(|| too_many(count_max))
    }

    /// To be asked before lines are decoded whose numbers are then settled.
    pub fn mark(&self) -> Mark {
        Mark(self.shared().withdrawals)
    }

    /// Makes all numbers that were given out so far durable. To be called before samples with them
    /// are appended, with the mark from before the first of them was given out.
    ///
    /// # Errors
    /// When the store takes no notes; the numbers are then tried again with the next ones. When
    /// numbers were taken back meanwhile, for whomever: samples that were decoded may name them.
    pub fn settle(&self, store: &Store, since: Mark) -> Result<(), Failure> {
        self.make_durable(store)?;
        match self.mark() == since {
            true => Ok(()),
            false => {
                Err(Failure::busy("strings came for which there is no room among the metadata"))
            }
        }
    }

    fn make_durable(&self, store: &Store) -> Result<(), Failure> {
        if self.shared().pending.is_empty() {
            return Ok(());
        }
        let _one_at_a_time = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        let notes: Vec<Metadata> = {
            let state = self.shared();
            let note = |number: &u32| Metadata {
                metric: format!("\0{}", note_name(*number)),
                help: state.texts[*number as usize - 1].as_deref().unwrap_or("").to_string(),
                ..Metadata::default()
            };
            state.pending.iter().map(note).collect()
        };
        if notes.is_empty() {
            return Ok(());
        }
        store.need(Need::Strings).map_err(Failure::of_write)?;
        let newest = self.shared().texts.len() as u32;
        store.reserve_string_numbers(newest).map_err(Failure::of_write)?;
        store.hide_names(TEXT_SUFFIX);
        store.put_metadata(&notes).map_err(Failure::of_write)?;
        // The table of metadata leaves out what it has no room for.
        let mut state = self.exclusive();
        let settled: Vec<u32> = state.pending.drain(..notes.len()).collect();
        let left_out: Vec<u32> =
            settled.into_iter().filter(|number| !store.has_note(&note_name(*number))).collect();
        if !left_out.is_empty() {
            state.take_back(&left_out);
        }
        Ok(())
    }
}

impl State {
    /// Continues above every number that a stored sample may have, also if the dictionary lost it.
    fn skip_used_numbers(&mut self, store: &Store) {
        let has_gap = || self.texts.iter().any(Option::is_none);
        let used = match store.reserved_string_number() {
            Some(reserved) => reserved as usize,
            None if !store.has(Need::Strings) => 0,
            None if self.texts.is_empty() || has_gap() => UNRECORDED_MAX,
            None => 0,
        };
        if self.texts.len() < used {
            self.texts.resize(used, None);
        }
    }

    /// Forgets numbers for which the store has no room.
    fn take_back(&mut self, numbers: &[u32]) {
        for number in numbers {
            let text = self.texts.get_mut(*number as usize - 1).and_then(Option::take);
            text.and_then(|text| self.numbers.remove(&text));
        }
        self.is_full = true;
        self.withdrawals += 1;
    }
}

fn too_many(count_max: usize) -> String {
    format!("more than {count_max} different strings (influx.max-strings)")
}

fn note_name(number: u32) -> String {
    format!("{START}{number:08x}")
}

impl Texts for TextTable {
    fn number(&self, text: &str) -> Result<u32, String> {
        if let Some(number) = self.shared().numbers.get(text) {
            return Ok(*number);
        }
        let TextLimits { count_max, size_max } = self.limits;
        if size_max < text.len() {
            return Err(format!(
                "a string of {} bytes, the limit is {size_max} (influx.max-string-size)",
                text.len()
            ));
        }
        let mut state = self.exclusive();
        if let Some(number) = state.numbers.get(text) {
            return Ok(*number);
        }
        if state.is_full {
            return Err("there is no room among the metadata for another string".to_string());
        }
        if count_max <= state.numbers.len() {
            return Err(format!(
                "there are {count_max} different strings already (influx.max-strings)"
            ));
        }
        let text: Arc<str> = text.into();
        state.texts.push(Some(text.clone()));
        let number = u32::try_from(state.texts.len()).map_err(|_| "no number left".to_string())?;
        state.numbers.insert(text, number);
        state.pending.push(number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use store::StoreConfig;
    use vfs::{SimVfs, Vfs};

    #[test]
    fn a_sample_that_is_no_number_stands_for_no_text() {
        let disk = Arc::new(SimVfs::new(1));
        let store =
            Store::open(disk, Path::new("/data"), StoreConfig::standard()).expect("a store");
        let table = TextTable::read(&store, TextLimits { count_max: 9, size_max: 9 });
        for text in ["a", "b"] {
            table.number(text).expect("a number");
        }
        let mut loan = Loan::default();
        table.borrow(&mut loan, "theirs").expect("room");
        let theirs = table.lend(&loan).expect("room").0[0];
        for (sample, text) in [(1.0, "a"), (2.0, "b"), (theirs, "theirs")] {
            assert_eq!(table.text(sample).as_deref(), Some(text), "{sample}");
        }
        let beyond_u32 = f64::from(u32::MAX) + 2.0;
        for none in [1.5, 2.000_000_1, 0.0, -0.0, 0.5, -1.0, -1.5, 3.0, beyond_u32, theirs + 0.5] {
            assert_eq!(table.text(none), None, "{none}");
        }
        for none in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, theirs + 1.0] {
            assert_eq!(table.text(none), None, "{none}");
        }
    }

    #[test]
    fn lost_dictionary_never_gives_its_numbers_to_other_strings() {
        let (dir, limits) = (Path::new("/data"), TextLimits { count_max: 9, size_max: 9 });
        for lost in ["remove", "flip", "older copy"] {
            let disk = Arc::new(SimVfs::new(1));
            let open = || Store::open(disk.clone(), dir, StoreConfig::standard()).expect("a store");
            let files = ["metadata", "metadata.copy"].map(|name| dir.join(name));
            let mut used = Vec::new();
            for text in ["OPEN", "CLOSED"] {
                let store = open();
                let table = TextTable::read(&store, limits);
                let mark = table.mark();
                used.push(table.number(text).expect("a number"));
                table.settle(&store, mark).expect("durable");
                store.flush().expect("a flush");
                store.close().expect("closed");
                if text == "OPEN" {
                    let older = disk.read(&files[0]).expect("a dictionary");
                    vfs::write_atomic(disk.as_ref(), &dir.join("older"), &older).expect("written");
                }
            }
            let older = disk.read(&dir.join("older")).expect("an older one");
            for file in &files {
                match lost {
                    "remove" => disk.remove(file).expect("removed"),
                    "flip" => disk.flip_bit(file, 12, 1).expect("flipped"),
                    _ => vfs::write_atomic(disk.as_ref(), file, &older).expect("replaced"),
                }
            }
            let store = open();
            let table = TextTable::read(&store, limits);
            let number = table.number("AUTO").expect("a number");
            assert!(used.iter().all(|used| *used < number), "{lost}: {number} of {used:?}");
            assert_eq!(table.text(f64::from(used[1])), None, "{lost}: the string is lost");
        }
    }

    #[test]
    fn who_has_a_number_that_was_taken_back_is_refused_whoever_asked_for_it() {
        let disk = Arc::new(SimVfs::new(1));
        let store =
            Store::open(disk, Path::new("/data"), StoreConfig::standard()).expect("a store");
        let table = TextTable::read(&store, TextLimits { count_max: 9, size_max: 9 });
        let (first, second) = (table.mark(), table.mark());
        let number = table.number("a").expect("a number");
        assert_eq!(table.number("a"), Ok(number), "both lines have it");
        table.exclusive().take_back(&[number]);
        for mark in [first, second] {
            assert!(table.settle(&store, mark).is_err(), "their samples would name nothing");
        }
        assert_eq!(table.text(f64::from(number)), None);
        table.settle(&store, table.mark()).expect("who decodes anew has other numbers");
    }
}
