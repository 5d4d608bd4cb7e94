//! What is refused, and that nothing has changed then.

use crate::rig::{DATA, Rig, config, create, insert, row, schema};
use std::path::Path;
use std::sync::Arc;
use tables::{
    Change, Column, ColumnType, Datum, Error, RowId, Scalar, Schema, Source, TablesConfig,
};
use vfs::SimVfs;

#[track_caller]
fn refused(rig: &Rig, changes: Vec<Change>, words: &str) {
    let (before, logged) = (rig.map(), rig.log.wal().stats().record_count);
    let error = rig.tables.apply(changes).expect_err("it is refused").to_string();
    assert!(error.contains(words), "{error}");
    assert_eq!(rig.map(), before);
    assert_eq!(rig.log.wal().stats().record_count, logged, "nothing is logged");
}

#[test]
fn a_statement_is_refused_as_a_whole() {
    let rig = Rig::open(&SimVfs::new(1)).expect("a new disk");
    rig.tables.apply(vec![create("t"), insert("t", vec![row(1, "a"), row(2, "b")])]).unwrap();
    refused(&rig, vec![create("t")], "there is a table \"t\" already");
    refused(&rig, vec![insert("u", vec![])], "there is no table \"u\"");
    refused(&rig, vec![create("u"), insert("t", vec![row(1, "c")])], "constraint \"pk\"");
    refused(&rig, vec![insert("t", vec![row(3, "c"), row(4, "c")])], "(name)=(c)");
    let without_key = vec![Datum::Null, Datum::Null, Datum::Null];
    refused(&rig, vec![insert("t", vec![without_key])], "null value in column \"id\"");
    refused(&rig, vec![insert("t", vec![vec![]])], "a row of 0 values for the 3 columns");
    let gone = vec![RowId(0), RowId(0)];
    refused(&rig, vec![Change::Delete { table: "t".into(), rows: gone }], "has no row 0");
    let alter = |from: Vec<Source>| Change::Alter {
        table: "t".into(),
        name: "t".into(),
        schema: schema(),
        from,
    };
    refused(&rig, vec![alter(vec![])], "a row of 0 values");
    let same = Source::Value(Datum::Int8(1));
    let from = vec![same, Source::Column(1), Source::Column(2)];
    refused(&rig, vec![alter(from)], "(id)=(1)");
    let from = vec![Source::Column(1), Source::Column(1), Source::Column(2)];
    refused(&rig, vec![alter(from)], "does not come from one of its type");
    let counts = rig.tables.apply(vec![insert("t", vec![])]).expect("no rows are fine");
    assert_eq!(counts, tables::Counts::default());
}

#[test]
fn tables_do_not_grow_beyond_their_memory() {
    let disk = SimVfs::new(1);
    let small = TablesConfig { memory_max: 100_000, ..config() };
    let open = |config| Rig::open_in(Arc::new(disk.clone()), Path::new(DATA), config);
    let rig = open(small.clone()).expect("a new disk");
    rig.tables.apply(vec![create("t")]).expect("a good disk");
    let large = |id| {
        insert(
            "t",
            vec![vec![
                Datum::Int8(id),
                Datum::Null,
                Datum::Array(vec![Datum::Text("x".repeat(20_000))]),
            ]],
        )
    };
    for id in 0..4 {
        rig.tables.apply(vec![large(id)]).expect("there is room");
    }
    refused(&rig, vec![large(4)], "bytes of memory, the limit is 100000");
    let error = rig.tables.apply(vec![large(4)]).expect_err("no room");
    assert!(matches!(error, Error::Full { max: 100_000, .. }), "{error}");
    // What takes less is always taken, and what is there opens with any limit.
    drop(rig);
    let rig = open(TablesConfig { memory_max: 10, ..small }).expect("a good disk");
    assert_eq!(rig.map()["t"].1.len(), 4);
    refused(&rig, vec![large(4)], "the limit is 10");
    let rows = vec![RowId(1)];
    rig.tables.apply(vec![Change::Delete { table: "t".into(), rows }]).expect("it is less");
    let size = rig.tables.now().size();
    assert!((60_000..70_000).contains(&size), "{size}");
}

#[test]
fn what_tables_look_like_takes_memory_too() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    let with = |default: usize| {
        let columns = (0..60).map(|at| Column {
            default: Some("x".repeat(default)),
            ..Column::new(&format!("c{at}"), ColumnType::One(Scalar::Text))
        });
        Schema { columns: columns.collect(), ..Schema::default() }
    };
    let create = |table: &str| Change::Create { table: table.into(), schema: with(8 << 10) };
    rig.tables.apply(vec![create("a"), create("b")]).expect("there is room");
    refused(&rig, vec![create("c")], "bytes of memory, the limit is 1048576");
    let alter = |default| Change::Alter {
        table: "a".into(),
        name: "a".into(),
        schema: with(default),
        from: (0..60).map(Source::Column).collect(),
    };
    refused(&rig, vec![alter(12 << 10)], "bytes of memory, the limit is 1048576");
    rig.tables.apply(vec![alter(10)]).expect("it is less");
    rig.tables.apply(vec![create("c")]).expect("there is room");
    let size = rig.tables.now().size();
    assert!((120 * 8192..1 << 20).contains(&size), "{size}");
    rig.tables.apply(vec![Change::Truncate { table: "c".into() }]).expect("it is there");
    drop(rig);
    let rig = Rig::open(&disk).expect("a good disk");
    assert_eq!(rig.tables.now().size(), size);
    let drop = |table: &str| Change::Drop { table: table.into() };
    rig.tables.apply(vec![drop("a"), drop("b"), drop("c")]).expect("they are there");
    assert_eq!(rig.tables.now().size(), 0);
}
