//! Which group a row belongs to.

use crate::names::{Key, NameState, is_metadata_label};
use crate::row::Row;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use promql::Grouping;
use xxhash_rust::xxh3::xxh3_64;

/// Numbers groups in the order in which they are first seen.
pub(crate) struct Groups {
    grouped: GroupedLabels,
    /// Hashes of the canonical bytes of labels, and where these are in `keys`.
    ids: HashTable<(u64, u32)>,
    /// Labels that make each group, and whether a row of it is to lose its name at the end.
    keys: Vec<Key>,
    /// Memory for the bytes of the row at hand.
    bytes: Vec<u8>,
}

impl Groups {
    pub fn new(grouping: &Grouping) -> Groups {
        let (names, is_without) = match grouping {
            Grouping::By(names) => (names, false),
            Grouping::Without(names) => (names, true),
        };
        let mut names = names.clone();
        names.sort_unstable();
        let grouped = GroupedLabels { names, is_without };
        Groups { grouped, ids: HashTable::new(), keys: Vec::new(), bytes: Vec::new() }
    }

    /// The number of the row's group, a new one if it is the first of it.
    pub fn of(&mut self, row: &Row<'_>) -> usize {
        let Groups { grouped, ids, keys, bytes } = self;
        bytes.clear();
        // Without labels to look for there is one group, whatever the row.
        if grouped.is_without || !grouped.names.is_empty() {
            for pair in row.labels.pairs() {
                if grouped.contains(pair.name, row.name) {
                    bytes.extend_from_slice(pair.bytes);
                }
            }
        }
        let hash = xxh3_64(bytes);
        let is_same = |(known, id): &(u64, u32)| {
            *known == hash && keys[*id as usize].labels.as_bytes() == bytes
        };
        let id = match ids.entry(hash, is_same, |(known, _)| *known) {
            Entry::Occupied(found) => found.get().1 as usize,
            Entry::Vacant(place) => {
                let id = keys.len();
                place.insert((hash, u32::try_from(id).expect("memory for fewer groups")));
                keys.push(Key::new(row.labels.only(|name| grouped.contains(name, row.name))));
                id
            }
        };
        keys[id].drops_name |= row.name == NameState::DroppedLate;
        id
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The keys of all groups, by number.
    pub fn keys(self) -> Vec<Key> {
        self.keys
    }
}

/// Which labels make a group.
struct GroupedLabels {
    /// Names of the labels that make or do not make a group, sorted.
    names: Vec<String>,
    is_without: bool,
}

impl GroupedLabels {
    fn contains(&self, name: &[u8], state: NameState) -> bool {
        if state == NameState::Dropped && is_metadata_label(name) {
            return false;
        }
        let is_listed = match self.names.as_slice() {
            [only] => only.as_bytes() == name,
            names => names.binary_search_by(|probe| probe.as_bytes().cmp(name)).is_ok(),
        };
        match self.is_without {
            true => !is_listed && name != model::METRIC_NAME.as_bytes(),
            false => is_listed,
        }
    }
}
