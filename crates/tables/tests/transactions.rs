//! Transactions: what they see, and when they are refused.

use crate::rig::{Rig, create, insert, row};
use tables::{Change, Counts, Datum, Error, RowId, Transaction};
use vfs::SimVfs;

fn rig() -> Rig {
    let rig = Rig::open(&SimVfs::new(1)).expect("a new disk");
    let rows = vec![row(1, "a"), row(2, "b")];
    rig.tables.apply(vec![create("t"), create("u"), insert("t", rows)]).expect("a good disk");
    rig
}

fn ids(transaction: &Transaction) -> Vec<u64> {
    let table = transaction.tables().get("t").expect("it is there");
    table.rows().map(|row| row.id.0).collect()
}

fn delete(row: u64) -> Change {
    Change::Delete { table: "t".into(), rows: vec![RowId(row)] }
}

fn conflict<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Conflict { table }) => table,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_transaction_sees_its_own_changes_alone() {
    let rig = rig();
    let mut transaction = rig.tables.begin();
    transaction.apply(vec![insert("t", vec![row(3, "c")])]).expect("it is free");
    assert_eq!(ids(&transaction), [0, 1, 2]);
    // A statement that is refused leaves those before it.
    let refused = transaction.apply(vec![delete(0), insert("t", vec![row(3, "d")])]);
    assert!(matches!(refused, Err(Error::UniqueViolation { .. })), "{refused:?}");
    assert_eq!(ids(&transaction), [0, 1, 2]);
    let counts = transaction.apply(vec![delete(0)]).expect("it is there");
    assert_eq!(counts, Counts { deleted: 1, ..Counts::default() });
    assert_eq!(rig.map()["t"].1.len(), 2, "nobody else sees it");
    let counts = rig.tables.commit(transaction).expect("nothing is in the way");
    assert_eq!(counts, Counts { inserted: 1, deleted: 1, updated: 0 });
    assert_eq!(rig.map()["t"].1.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rig.log.wal().stats().record_count, 2, "one record a statement");
}

#[test]
fn a_snapshot_of_a_table_stays_as_it_was() {
    let rig = rig();
    let before = rig.tables.get("t").expect("it is there");
    let all: Vec<RowId> = before.rows().map(|row| row.id).collect();
    rig.tables
        .apply(vec![Change::Delete { table: "t".into(), rows: all }])
        .expect("they are there");
    rig.tables.apply(vec![Change::Drop { table: "t".into() }]).expect("it is there");
    assert_eq!((before.row_count(), before.rows().count()), (2, 2));
    assert!(before.find(&[Datum::Int8(2)]).expect("a key").is_some());
    assert!(rig.tables.get("t").is_none());
}

#[test]
fn of_two_that_change_a_table_one_has_to_begin_anew() {
    let rig = rig();
    let (mut one, mut other) = (rig.tables.begin(), rig.tables.begin());
    let mut of_another_table = rig.tables.begin();
    one.apply(vec![delete(0)]).expect("it is there");
    other.apply(vec![delete(1)]).expect("it is there");
    of_another_table.apply(vec![insert("u", vec![row(1, "x")])]).expect("it is free");
    rig.tables.commit(one).expect("the first one");
    assert_eq!(conflict(rig.tables.commit(other)), "t");
    rig.tables.commit(of_another_table).expect("it is in nobody's way");
    assert_eq!((rig.map()["t"].1.len(), rig.map()["u"].1.len()), (1, 1));
}

#[test]
fn names_and_what_is_relied_on_conflict_too() {
    let rig = rig();
    let (mut one, mut other) = (rig.tables.begin(), rig.tables.begin());
    one.apply(vec![create("new")]).expect("it is free");
    other.apply(vec![create("new")]).expect("it is free");
    rig.tables.commit(one).expect("the first one");
    assert_eq!(conflict(rig.tables.commit(other)), "new");
    // Rows of one table that were made of another's.
    let mut reader = rig.tables.begin();
    reader.rely_on("t");
    reader.rely_on("none yet");
    reader.apply(vec![insert("u", vec![row(1, "sum")])]).expect("it is free");
    let mut second = rig.tables.begin();
    second.rely_on("none yet");
    second.apply(vec![insert("u", vec![row(2, "sum")])]).expect("it is free");
    rig.tables.apply(vec![delete(0)]).expect("it is there");
    assert_eq!(conflict(rig.tables.commit(reader)), "t");
    rig.tables.apply(vec![create("none yet")]).expect("it is free");
    assert_eq!(conflict(rig.tables.commit(second)), "none yet");
    // A table that is gone, and one of its name.
    let mut late = rig.tables.begin();
    late.apply(vec![delete(1)]).expect("it is there");
    rig.tables.apply(vec![Change::Drop { table: "t".into() }, create("t")]).expect("it is there");
    assert_eq!(conflict(rig.tables.commit(late)), "t");
}

#[test]
fn tables_may_be_renamed_in_a_ring() {
    let rig = rig();
    let rename = |table: &str, name: &str| Change::Alter {
        table: table.into(),
        name: name.into(),
        schema: crate::rig::schema(),
        from: (0..3).map(tables::Source::Column).collect(),
    };
    let ring = vec![rename("t", "x"), rename("u", "t"), rename("x", "u")];
    rig.tables.apply(ring).expect("they are free");
    assert_eq!((rig.map()["t"].1.len(), rig.map()["u"].1.len()), (0, 2));
}
