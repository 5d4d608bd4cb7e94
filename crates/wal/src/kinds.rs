//! The table of all kinds of records, and the consumer that each belongs to.
//!
//! A kind that is in the table belongs to a consumer that this program may have switched off: its
//! records stay. One that is not was written by a newer program: the log does not open. So a number
//! is in here before the first release that writes it, and never means anything else.

/// A kind of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordKind {
    /// Its number in the record, 1 to 254.
    pub kind: u8,
    /// The consumer whose records these are.
    pub consumer: &'static str,
    /// What such a record holds.
    pub content: &'static str,
}

/// The consumer of rows of samples, with the series that they register.
pub const SERIES: &str = "series";
/// The consumer of what metrics are.
pub const METADATA: &str = "metadata";
/// The consumer of exemplars.
pub const EXEMPLARS: &str = "exemplars";
/// The consumer of changes of a keyspace.
pub const KEYS: &str = "keys";
/// The consumer of changes of tables.
pub const TABLES: &str = "tables";
/// The consumer of the schema of InfluxDB data.
pub const SCHEMA: &str = "schema";

/// Rows of samples of one partition.
pub const KIND_ROWS: u8 = 1;
/// Descriptions of metrics.
pub const KIND_METADATA: u8 = 2;
/// Exemplars.
pub const KIND_EXEMPLARS: u8 = 3;
/// Changes of a keyspace.
pub const KIND_KEYS: u8 = 4;
/// Changes of tables.
pub const KIND_TABLES: u8 = 5;
/// Changes of schema records.
pub const KIND_SCHEMA: u8 = 6;

/// All kinds, by increasing number.
pub const KINDS: [RecordKind; 6] = [
    RecordKind { kind: KIND_ROWS, consumer: SERIES, content: "rows of samples of one partition" },
    RecordKind { kind: KIND_METADATA, consumer: METADATA, content: "descriptions of metrics" },
    RecordKind { kind: KIND_EXEMPLARS, consumer: EXEMPLARS, content: "exemplars" },
    RecordKind { kind: KIND_KEYS, consumer: KEYS, content: "changes of a keyspace" },
    RecordKind { kind: KIND_TABLES, consumer: TABLES, content: "changes of tables" },
    RecordKind { kind: KIND_SCHEMA, consumer: SCHEMA, content: "changes of schema records" },
];

// No number is there twice, and none is the log's own.
const _: () = {
    let mut idx = 0;
    while idx < KINDS.len() {
        assert!(KINDS[idx].kind != crate::format::KIND_NONE);
        assert!(KINDS[idx].kind != crate::format::KIND_MARK);
        assert!(idx == 0 || KINDS[idx - 1].kind < KINDS[idx].kind);
        idx += 1;
    }
};

/// The consumer that a kind belongs to; `None` when nobody knows the kind.
pub fn consumer_of(kind: u8) -> Option<&'static str> {
    let known = KINDS.iter().find(|known| known.kind == kind);
    known.map(|known| known.consumer)
}

/// Kinds that an open log takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindSet([u64; 4]);

impl KindSet {
    /// All but the log's own.
    pub(crate) fn all() -> KindSet {
        let mut all = KindSet::default();
        (1..crate::format::KIND_MARK).for_each(|kind| all.insert(kind));
        all
    }

    pub(crate) fn insert(&mut self, kind: u8) {
        self.0[usize::from(kind / 64)] |= 1 << (kind % 64);
    }

    pub(crate) fn contains(&self, kind: u8) -> bool {
        self.0[usize::from(kind / 64)] & 1 << (kind % 64) != 0
    }
}
