//! The dictionary of strings that came as fields of line protocol: a sample of such a field is a
//! number of it (decision 46).
//!
//! Entries are schema records ([`crate::records`]). They are durable before any sample that names them is
//! appended: `block_strings`.

use crate::borrowed_strings::{BorrowedTexts, Lent, Loan};
use crate::records::{Change, Key, KeyKind, SchemaRecords};
use net::failure::Failure;
use net::settings::{ConfigError, Settings};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{Need, Store};
use wire::influx::{STRING_SIZE_MAX, TEXT_SUFFIX};

/// Largest number of a store that does not record which numbers are in use: earlier versions had no room
/// for more entries.
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
    /// Numbers that were given out and are not durable yet, each with how many blocks hold it.
    pending: HashMap<u32, u32>,
    /// Numbers that no block holds any more and that were never durable.
    free: Vec<u32>,
    /// Whether the schema records have no room for more.
    is_full: bool,
}

/// All texts.
#[derive(Debug)]
pub struct TextTable {
    records: Arc<SchemaRecords>,
    limits: TextLimits,
    state: RwLock<State>,
    /// Held while entries are made durable: another block that needs them waits.
    settling: Mutex<()>,
    /// Those of legacy backends.
    borrowed: BorrowedTexts,
}

impl TextTable {
    /// Reads the schema records.
    pub fn read(records: &Arc<SchemaRecords>, limits: TextLimits) -> TextTable {
        let (mut state, store) = (State::default(), records.store());
        records.for_each(KeyKind::String, &mut |key, text| {
            let Some(Key::String { number }) = Key::parse(key) else { return };
            let Some(slot) = number.checked_sub(1) else { return };
            let slot = slot as usize;
            if state.texts.len() <= slot {
                state.texts.resize(slot + 1, None);
            }
            state.numbers.insert(Arc::clone(text), number);
            state.texts[slot] = Some(Arc::clone(text));
        });
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
            records: Arc::clone(records),
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
        if let Some(number) = self.shared().durable_number(text) {
            return Ok(f64::from(number));
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

    /// The number of a text, which may be new; a number that is not durable yet is added to `held`,
    /// whose owner must [`TextTable::release`] it.
    ///
    /// # Errors
    /// In words that name the limit.
    pub fn hold(&self, text: &str, held: &mut BTreeSet<u32>) -> Result<u32, String> {
        if let Some(number) = self.shared().durable_number(text) {
            return Ok(number);
        }
        let TextLimits { count_max, size_max } = self.limits;
        if size_max < text.len() {
            return Err(format!(
                "a string of {} bytes, the limit is {size_max} (influx.max-string-size)",
                text.len()
            ));
        }
        let mut state = self.exclusive();
        let number = match state.numbers.get(text) {
            Some(number) => *number,
            None => state.add(text, count_max)?,
        };
        if let Some(holders) = state.pending.get_mut(&number)
            && held.insert(number)
        {
            *holders += 1;
        }
        Ok(number)
    }

    /// Gives numbers back. Those that are not durable and that no other block holds become free.
    pub fn release(&self, held: &BTreeSet<u32>) {
        if !held.is_empty() {
            let mut state = self.exclusive();
            held.iter().for_each(|number| state.release(*number));
        }
    }

    /// Numbers among `held` that are not durable yet.
    pub(crate) fn pending_of(&self, held: &BTreeSet<u32>) -> BTreeSet<u32> {
        let state = self.shared();
        held.iter().copied().filter(|number| state.pending.contains_key(number)).collect()
    }

    /// Makes some held numbers durable; to be called before samples with them are appended.
    ///
    /// # Errors
    /// When the records cannot be written, or have no room for one of them.
    pub fn make_durable(&self, needed: &BTreeSet<u32>) -> Result<(), Failure> {
        let _one_at_a_time = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        let pending: Vec<u32> = self.pending_of(needed).into_iter().collect();
        let (entries, newest): (Vec<Change>, u32) = {
            let state = self.shared();
            (pending.iter().map(|number| state.entry(*number)).collect(), state.texts.len() as u32)
        };
        if !entries.is_empty() {
            self.put_entries(&entries, newest).map_err(Failure::of_write)?;
            let mut state = self.exclusive();
            for number in pending {
                state.pending.remove(&number);
                // Records for which there is no room are left out.
                if !self.records.has(Key::String { number }) {
                    state.take_back(number);
                }
            }
        }
        match self.shared().has_all(needed) {
            true => Ok(()),
            false => Err(Failure::busy("strings came for which the schema records have no room")),
        }
    }

    fn put_entries(&self, entries: &[Change], newest: u32) -> store::Result<()> {
        let store = self.records.store();
        store.check_writable()?;
        store.need(Need::Strings)?;
        // The dictionary has its file before a number may be in use, so that its loss is noticed.
        self.records.begin()?;
        store.reserve_string_numbers(newest)?;
        store.hide_names(TEXT_SUFFIX);
        self.records.put(entries)
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

    fn durable_number(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied().filter(|number| !self.pending.contains_key(number))
    }

    /// Gives a text a number that no block holds.
    fn add(&mut self, text: &str, count_max: usize) -> Result<u32, String> {
        if self.is_full {
            return Err("the schema records have no room for another string".to_string());
        }
        if count_max <= self.numbers.len() {
            return Err(format!(
                "there are {count_max} different strings already (influx.max-strings)"
            ));
        }
        let text: Arc<str> = text.into();
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let next = self.texts.len() + 1;
                let number = u32::try_from(next).map_err(|_| "no number left".to_string())?;
                self.texts.push(None);
                number
            }
        };
        self.texts[number as usize - 1] = Some(text.clone());
        self.numbers.insert(text, number);
        self.pending.insert(number, 0);
        Ok(number)
    }

    fn release(&mut self, number: u32) {
        let Some(holders) = self.pending.get_mut(&number) else { return };
        *holders = holders.saturating_sub(1);
        if *holders == 0 {
            self.pending.remove(&number);
            self.forget(number);
            self.free.push(number);
        }
    }

    fn forget(&mut self, number: u32) {
        let text = self.texts.get_mut(number as usize - 1).and_then(Option::take);
        text.and_then(|text| self.numbers.remove(&text));
    }

    /// Forgets a number for which the store has no room. It is not used again.
    fn take_back(&mut self, number: u32) {
        self.forget(number);
        self.is_full = true;
    }

    fn has_all(&self, numbers: &BTreeSet<u32>) -> bool {
        let has = |number: &u32| self.texts.get(*number as usize - 1).is_some_and(Option::is_some);
        numbers.iter().all(has)
    }

    fn entry(&self, number: u32) -> Change {
        let text = self.texts.get(number as usize - 1).cloned().flatten();
        Change::put(Key::String { number }, text.unwrap_or_default())
    }
}

fn too_many(count_max: usize) -> String {
    format!("more than {count_max} different strings (influx.max-strings)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::OpenedStore;
    use std::path::Path;
    use store::StoreConfig;
    use vfs::{SimVfs, Vfs};

    fn open(disk: &Arc<SimVfs>) -> OpenedStore {
        OpenedStore::open(disk.clone(), Path::new("/data"), StoreConfig::standard()).expect("opens")
    }

    #[test]
    fn a_sample_that_is_no_number_stands_for_no_text() {
        let opened = open(&Arc::new(SimVfs::new(1)));
        let table = TextTable::read(&opened.schema, TextLimits { count_max: 9, size_max: 9 });
        let mut held = BTreeSet::new();
        for text in ["a", "b"] {
            table.hold(text, &mut held).expect("a number");
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
            let files = ["schema/records", "schema/records.copy"].map(|name| dir.join(name));
            let mut used = Vec::new();
            for text in ["OPEN", "CLOSED"] {
                let opened = open(&disk);
                let table = TextTable::read(&opened.schema, limits);
                let mut held = BTreeSet::new();
                used.push(table.hold(text, &mut held).expect("a number"));
                table.make_durable(&held).expect("durable");
                opened.close().expect("closed");
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
            let opened = open(&disk);
            let table = TextTable::read(&opened.schema, limits);
            let number = table.hold("AUTO", &mut BTreeSet::new()).expect("a number");
            assert!(used.iter().all(|used| *used < number), "{lost}: {number} of {used:?}");
            assert_eq!(table.text(f64::from(used[1])), None, "{lost}: the string is lost");
        }
    }

    #[test]
    fn number_without_room_is_refused_to_each_block_that_holds_it() {
        let opened = open(&Arc::new(SimVfs::new(1)));
        let table = TextTable::read(&opened.schema, TextLimits { count_max: 9, size_max: 9 });
        let (mut first, mut second) = (BTreeSet::new(), BTreeSet::new());
        let number = table.hold("a", &mut first).expect("a number");
        assert_eq!(table.hold("a", &mut second), Ok(number), "both blocks have it");
        table.exclusive().pending.remove(&number);
        table.exclusive().take_back(number);
        for held in [&first, &second] {
            assert!(table.make_durable(held).is_err(), "their samples would name nothing");
        }
        assert_eq!(table.text(f64::from(number)), None);
    }

    #[test]
    fn released_number_takes_no_entry_unless_another_block_holds_it() {
        let opened = open(&Arc::new(SimVfs::new(1)));
        let table = TextTable::read(&opened.schema, TextLimits { count_max: 1, size_max: 9 });
        let (mut first, mut second) = (BTreeSet::new(), BTreeSet::new());
        let number = table.hold("a", &mut first).expect("a number");
        table.hold("a", &mut second).expect("the same number");
        assert!(table.hold("b", &mut BTreeSet::new()).is_err(), "one string at most");
        table.release(&first);
        assert_eq!(table.text(f64::from(number)).as_deref(), Some("a"), "the other block holds it");
        table.release(&second);
        assert_eq!(table.text(f64::from(number)), None);
        let mut held = BTreeSet::new();
        assert_eq!(table.hold("b", &mut held), Ok(number), "its number was never durable");
        table.make_durable(&held).expect("durable");
        table.release(&held);
        assert_eq!(table.text(f64::from(number)).as_deref(), Some("b"), "it is durable");
    }
}
