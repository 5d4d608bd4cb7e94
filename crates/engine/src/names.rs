//! What becomes of the metric's name: what an operation takes it away from, and when it goes.

use crate::options::NameRemoval;
use model::{Labels, METRIC_NAME};

/// Labels that describe the metric rather than the series; whatever drops the name drops them.
pub(crate) fn is_metadata_label(name: impl AsRef<[u8]>) -> bool {
    let name = name.as_ref();
    [METRIC_NAME, "__type__", "__unit__"].iter().any(|one| one.as_bytes() == name)
}

/// The identity of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub labels: Labels,
    /// Whether the metric's name is to be dropped at the end of the query.
    pub drops_name: bool,
}

impl Key {
    /// A key that keeps its name.
    pub fn new(labels: Labels) -> Key {
        Key { labels, drops_name: false }
    }

    /// The key after an operation that takes the metric's name away.
    pub fn nameless(&self, removal: NameRemoval) -> Key {
        match removal {
            NameRemoval::Late => Key { labels: self.labels.clone(), drops_name: true },
            NameRemoval::AtOnce | NameRemoval::KeepOverTime => {
                Key::new(without_metadata(&self.labels))
            }
        }
    }
}

/// The labels without those that describe the metric.
pub(crate) fn without_metadata(labels: &Labels) -> Labels {
    labels.only(|name| !is_metadata_label(name))
}

/// What is to become of the metric's name in a row's labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameState {
    /// It stays.
    Kept,
    /// It is in the labels but counts as gone.
    Dropped,
    /// It stays until the end of the query.
    DroppedLate,
}

impl NameState {
    /// What is to become of the name of a row that has a key already.
    pub fn of(key: &Key) -> NameState {
        if key.drops_name { NameState::DroppedLate } else { NameState::Kept }
    }

    /// What an operation that takes the name away makes of a row.
    pub fn dropped(removal: NameRemoval) -> NameState {
        match removal {
            NameRemoval::Late => NameState::DroppedLate,
            NameRemoval::AtOnce | NameRemoval::KeepOverTime => NameState::Dropped,
        }
    }
}
