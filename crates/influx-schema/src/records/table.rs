//! All schema records in memory, with bounds on their number and size.

use super::changes::Change;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Number of records. Changes that add records beyond it are left out.
pub const RECORDS_MAX: usize = 1 << 20;
/// Bytes of all keys and values. Changes that add bytes beyond it are left out.
pub const RECORDS_SIZE_MAX: usize = 256 << 20;

/// Records by key, as they are after a number of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    entries: BTreeMap<Box<str>, Arc<str>>,
    size: usize,
    /// Number of the last log record that it has.
    number: u64,
}

impl Table {
    /// An empty table that has the log records up to a number.
    pub fn new(number: u64) -> Table {
        Table { number, ..Table::default() }
    }

    /// Number of the last log record that it has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sets the number of the last log record that it has.
    pub fn set_number(&mut self, number: u64) {
        self.number = number;
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of all keys and values.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All records, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<str>)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// The records whose keys begin with a text, by key.
    pub fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &Arc<str>)> {
        let from = self.entries.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.take_while(move |(key, _)| key.starts_with(prefix)).map(|(key, value)| (&**key, value))
    }

    /// Value of a record.
    pub fn get(&self, key: &str) -> Option<&Arc<str>> {
        self.entries.get(key)
    }

    /// Adds a record behind all others, whatever the bounds say; `false` if its key is not the last.
    pub fn insert_last(&mut self, key: &str, value: &str) -> bool {
        let is_last = self.entries.last_key_value().is_none_or(|(last, _)| **last < *key);
        if is_last {
            self.size += key.len() + value.len();
            self.entries.insert(key.into(), value.into());
        }
        is_last
    }

    /// Whether a change changes anything, and there is room for it.
    pub fn is_news(&self, change: &Change) -> bool {
        let before = self.entries.get(change.key.as_str());
        match (&change.value, before) {
            (None, before) => before.is_some(),
            (Some(value), Some(before)) => {
                let size = self.size - before.len() + value.len();
                value != before && (value.len() <= before.len() || size <= RECORDS_SIZE_MAX)
            }
            (Some(_), None) => {
                self.len() < RECORDS_MAX && self.size + change.size() <= RECORDS_SIZE_MAX
            }
        }
    }

    /// Makes a change, whatever the bounds say.
    pub fn apply(&mut self, change: &Change) {
        let Some(value) = &change.value else {
            if let Some(before) = self.entries.remove(change.key.as_str()) {
                self.size -= change.key.len() + before.len();
            }
            return;
        };
        match self.entries.get_mut(change.key.as_str()) {
            Some(before) => {
                self.size = self.size - before.len() + value.len();
                *before = Arc::clone(value);
            }
            None => {
                self.size += change.size();
                self.entries.insert(change.key.as_str().into(), Arc::clone(value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Change {
        Change { key: key.to_string(), value: Some(value.into()) }
    }

    #[test]
    fn number_and_size_of_records_are_bounded() {
        let mut table = Table::default();
        for number in 0..RECORDS_MAX {
            assert!(table.insert_last(&format!("{number:08}"), ""));
        }
        assert!(!table.is_news(&put("one too many", "")));
        assert!(table.is_news(&put("00000007", "longer")), "a known key is no more records");
        table.apply(&Change { key: "00000007".to_string(), value: None });
        assert!(table.is_news(&put("another", "")), "its place is free");

        let mut table = Table::default();
        let long = "x".repeat(1 << 20);
        for number in 0..255 {
            table.apply(&put(&format!("{number:08}"), &long));
        }
        assert!(!table.is_news(&put("k", &long.repeat(2))));
        assert!(!table.is_news(&put("00000000", &long.repeat(3))), "no room to grow");
        assert!(table.is_news(&put("00000000", "short")));
        table.apply(&put("00000000", "short"));
        assert!(table.is_news(&put("k", &long)), "the room of the first");
        let counted: usize = table.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert_eq!(table.size(), counted);
    }
}
