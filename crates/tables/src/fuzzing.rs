//! What fuzzers feed with arbitrary bytes; each function panics when something that must hold does not.
//!
//! Checksums keep arbitrary bytes away from most decoders, so they are fed what stands behind the
//! checksum, and good bytes of every kind that the input has changes for.

use crate::change::{Change, Source};
use crate::datum::{ColumnType, Datum, Scalar};
use crate::file;
use crate::manifest::{self, FileInfo, Manifest};
use crate::pieces::Pieces;
use crate::record;
use crate::row;
use crate::schema::{Column, Constraint, ConstraintKind, Schema, put_schema, read_schema};
use crate::set::{Origin, TableSet};
use crate::table::{RowId, Table};
use crate::tables::Replayed;
use crate::{Transaction, key};
use codec::{Reader, crc32, put_varint};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use vfs::{SimVfs, Vfs};
use wal::RecordRef;

/// A column of each type, one of arrays of each, and constraints.
fn schema() -> Schema {
    let one = |scalar: &Scalar| Column::new(scalar.name(), ColumnType::One(*scalar));
    let array =
        |scalar: &Scalar| Column::new(&format!("{}s", scalar.name()), ColumnType::Array(*scalar));
    let unique = |name: &str, columns| Constraint {
        name: name.into(),
        kind: ConstraintKind::Unique,
        columns,
    };
    Schema {
        columns: Scalar::ALL.iter().map(one).chain(Scalar::ALL.iter().map(array)).collect(),
        constraints: vec![unique("ints", vec![1, 2]), unique("texts", vec![7, 22])],
        properties: vec![("comment".into(), "all types".into())],
    }
}

/// `id int4 primary key, name text unique`
fn small() -> Schema {
    let key = |name: &str, kind, at| Constraint { name: name.into(), kind, columns: vec![at] };
    let columns = vec![
        Column::new("id", ColumnType::One(Scalar::Int4)),
        Column::new("name", ColumnType::One(Scalar::Text)),
    ];
    let constraints =
        vec![key("pk", ConstraintKind::PrimaryKey, 0), key("name", ConstraintKind::Unique, 1)];
    Schema { columns, constraints, properties: Vec::new() }
}

fn small_row(id: i32, name: &str) -> Vec<Datum> {
    vec![Datum::Int4(id), Datum::Text(name.into())]
}

/// Tables, and the effects of every kind that made them.
fn sample() -> &'static (Vec<u8>, TableSet) {
    static SAMPLE: OnceLock<(Vec<u8>, TableSet)> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let table = || "t".to_owned();
        let nulls = vec![Datum::Null; schema().columns.len()];
        let changes = vec![
            Change::Create { table: table(), schema: small() },
            Change::Create { table: "all".into(), schema: schema() },
            Change::Insert { table: "all".into(), rows: vec![nulls] },
            Change::Insert { table: table(), rows: vec![small_row(0, "x")] },
            Change::Truncate { table: table() },
            Change::Insert { table: table(), rows: vec![small_row(1, "a"), small_row(2, "b")] },
            Change::Update { table: table(), rows: vec![(RowId(1), small_row(3, "a"))] },
            Change::Delete { table: table(), rows: vec![RowId(2)] },
            Change::Alter {
                table: table(),
                name: "u".into(),
                schema: small(),
                from: vec![Source::Column(0), Source::Value(Datum::Text("same".into()))],
            },
            Change::Create { table: "gone".into(), schema: Schema::default() },
            Change::Drop { table: "gone".into() },
        ];
        let base = Arc::new(TableSet::default());
        let mut transaction = Transaction::new(base, Arc::new(AtomicU64::new(0)), u64::MAX);
        transaction.apply(changes).expect("they are good");
        (transaction.effects().to_vec(), transaction.tables().clone())
    })
}

/// Good bytes with the changes that an input asks for: places and what is there instead.
fn changed(good: &[u8], input: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for change in input.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        if let Some(byte) = bytes.get_mut(at % good.len().max(1)) {
            *byte = change[2];
        }
    }
    bytes
}

/// A record of the log, over tables that there are: all of it, or nothing.
pub fn fuzz_record(input: &[u8]) {
    let (effects, set) = sample();
    let Some((&choice, rest)) = input.split_first() else { return };
    let mut payload = vec![1];
    match choice % 3 {
        0 => payload = rest.to_vec(),
        1 => payload.extend_from_slice(rest),
        _ => payload.extend_from_slice(&changed(effects, rest)),
    }
    let record =
        RecordRef { segment: 3, offset: 32, kind: wal::kinds::KIND_TABLES, payload: &payload };
    for set in [TableSet::default(), set.clone()] {
        let before = (set.seq, set.size(), set.list().len());
        let mut state = Replayed { set, ..Replayed::default() };
        if state.take(&record).is_err() {
            let after = (state.set.seq, state.set.size(), state.set.list().len());
            assert_eq!(before, after);
        }
        check_set(&state.set);
        check_pieces(&state.set, &record);
    }
}

/// What a repair makes of a record, where tables show less than it, or nobody knows what they show.
fn check_pieces(set: &TableSet, record: &RecordRef<'_>) {
    for mut pieces in [Pieces::of_checkpoint(set.seq, 0), Pieces::default()] {
        set.list().iter().for_each(|table| pieces.add(set.seq, Table::clone(table)));
        if pieces.take(Path::new("wal"), record).is_ok() {
            let joined = pieces.join();
            let is_old = |table: &Arc<Table>| table.id() <= joined.next_table;
            assert!(joined.set.list().iter().all(is_old));
            check_set(&joined.set);
        }
    }
}

/// What tables must be, whatever made them.
fn check_set(set: &TableSet) {
    let tables = set.list();
    assert_eq!(tables.iter().map(|table| table.size()).sum::<u64>(), set.size());
    for table in tables {
        assert_eq!(set.get(table.name()).map(|one| one.id()), Some(table.id()));
        for row in table.rows() {
            let values = row.values();
            let again = row::encode(table.name(), table.schema(), &values).expect("it is a row");
            let expected = row::decode(table.schema(), &again).expect("it is a row");
            assert_eq!(format!("{values:?}"), format!("{expected:?}"));
            for constraint in &table.schema().constraints {
                let key = row.project(&constraint.columns);
                let found = table.find_by(&constraint.name, &key).expect("a key");
                assert!(key.contains(&Datum::Null) || found.map(|one| one.id) == Some(row.id));
            }
        }
    }
}

/// The bytes of a row, of a table with a column of each type.
pub fn fuzz_row(input: &[u8]) {
    let schema = schema();
    if row::check(&schema, input).is_err() {
        return;
    }
    let values = row::decode(&schema, input).expect("it was checked");
    let all: Vec<usize> = (0..schema.columns.len()).collect();
    assert_eq!(
        format!("{values:?}"),
        format!("{:?}", row::project(&schema, input, &all).expect("it was checked"))
    );
    for constraint in &schema.constraints {
        let values: Vec<Datum> = constraint.columns.iter().map(|at| values[*at].clone()).collect();
        let _ = key::encode("t", &schema, constraint, &values).map(|key| key.map(|key| key.len()));
        key::show(&schema, constraint, &values);
    }
}

/// A schema; what is read and can be a table's is written as it was read.
pub fn fuzz_schema(input: &[u8]) {
    let mut reader = Reader::new(input);
    let Ok(schema) = read_schema(&mut reader) else { return };
    if schema.check("t").is_ok() {
        let mut bytes = Vec::new();
        put_schema(&mut bytes, &schema);
        assert_eq!(read_schema(&mut Reader::new(&bytes)).expect("it was written"), schema);
        let _ = Table::new(1, "t", schema).find(&[]);
    }
}

/// What stands before the checksum of a manifest.
pub fn fuzz_manifest(input: &[u8]) {
    let info = FileInfo { table: 1, file: 2, size: 3, end_crc: 4 };
    let good = Manifest { seq: 5, log_from: 6, next_table: 7, next_file: 8, tables: vec![info] };
    let mut body = good.encode();
    body.truncate(body.len() - 4);
    for mut bytes in [changed(&body, input), [&body[..8], input].concat()] {
        let crc = crc32(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        if let Ok(manifest) = manifest::decode(Path::new("MANIFEST"), &bytes) {
            let again = manifest::decode(Path::new("MANIFEST"), &manifest.encode());
            assert_eq!(again.expect("it was written"), manifest);
        }
    }
    assert!(manifest::decode(Path::new("MANIFEST"), input).is_err());
}

/// A table's file, whose checksums hold.
pub fn fuzz_file(input: &[u8]) {
    let (_, set) = sample();
    let table = set.get("u").expect("it is there");
    let vfs = SimVfs::new(1);
    let info = file::write(&vfs, Path::new("/"), 7, 1, &table).expect("a good disk");
    let path = Path::new("/").join(manifest::file_name(7));
    let good = vfs.read(&path).expect("a good disk");
    let (bytes, end_crc) = file::with_checksums(&changed(&good, input));
    let info = FileInfo { size: bytes.len() as u64, end_crc, ..info };
    if let Ok(table) = file::decode(&path, &bytes, &info) {
        let mut set = TableSet::default();
        set.put_name(table.name(), Some(table.id()));
        set.put(table.id(), Some(Arc::new(table)));
        check_set(&set);
    }
    assert!(file::decode(&path, input, &info).is_err());
}

/// A record that is made of what an input says is taken as it was meant.
pub fn fuzz_statement(input: &[u8]) {
    let (_, set) = sample();
    let base = Arc::new(set.clone());
    let mut transaction = Transaction::new(base, Arc::new(AtomicU64::new(100)), 1 << 20);
    for step in input.chunks_exact(4) {
        let row =
            || vec![Datum::Int4(i32::from(step[1] % 8)), Datum::Text(format!("{}", step[2] % 8))];
        let table = if step[3] % 8 == 0 { "t".to_owned() } else { "u".to_owned() };
        let _ = transaction.apply(vec![match step[0] % 6 {
            0 => Change::Create { table, schema: small() },
            1 => Change::Drop { table },
            2 => Change::Delete { table, rows: vec![RowId(u64::from(step[1] % 16))] },
            3 => Change::Update { table, rows: vec![(RowId(u64::from(step[3] % 16)), row())] },
            _ => Change::Insert { table, rows: vec![row()] },
        }]);
    }
    let mut payload = Vec::new();
    put_varint(&mut payload, 1);
    payload.extend_from_slice(transaction.effects());
    let (_, effects) = record::decode(&payload).expect("it was written");
    let mut replayed = set.clone();
    effects.into_iter().for_each(|one| replayed.apply(one, Origin::Log).expect("it was written"));
    check_set(&replayed);
    let shown = |set: &TableSet| {
        let of_table = |table: &Arc<Table>| {
            let rows: Vec<_> = table.rows().map(|row| (row.id, row.values())).collect();
            (table.id(), table.name().to_owned(), table.size(), rows)
        };
        set.list().iter().map(of_table).collect::<Vec<_>>()
    };
    assert_eq!(shown(&replayed), shown(transaction.tables()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;

    #[test]
    fn arbitrary_bytes_do_no_harm() {
        let targets: [fn(&[u8]); 6] =
            [fuzz_record, fuzz_row, fuzz_schema, fuzz_manifest, fuzz_file, fuzz_statement];
        let mut dice = Random::seeded(1);
        for target in targets {
            for _ in 0..1500 {
                let size = dice.index(60);
                // Small numbers are what counts and sizes are made of.
                let small = dice.below(2) == 0;
                let byte = |dice: &mut Random| dice.below(if small { 12 } else { 256 }) as u8;
                let input: Vec<u8> = (0..size).map(|_| byte(&mut dice)).collect();
                target(&input);
            }
        }
    }
}
