//! Random changes against a plain model that knows nothing of trees, logs or files: what is refused, and
//! what is there afterwards, with checkpoints and restarts in between.
//!
//! `SEED=n` chooses another history.

use crate::rig::{Map, Rig, draw_change};
use rng::Random;
use std::collections::{BTreeMap, BTreeSet};
use tables::{Change, Datum, Error, Schema, Source};
use vfs::SimVfs;

#[derive(Clone)]
struct ModelTable {
    schema: Schema,
    rows: BTreeMap<u64, Vec<Datum>>,
    next_row: u64,
}

type Model = BTreeMap<String, ModelTable>;

/// What becomes of a change; the word says why it is refused.
fn apply(model: &mut Model, change: &Change) -> Result<(), &'static str> {
    match change {
        Change::Create { table, schema } => {
            let rows = BTreeMap::new();
            let one = ModelTable { schema: schema.clone(), rows, next_row: 0 };
            match model.contains_key(table) {
                true => return Err("duplicate table"),
                false => model.insert(table.clone(), one),
            };
        }
        Change::Drop { table } => drop(model.remove(table).ok_or("no table")?),
        Change::Truncate { table } => model.get_mut(table).ok_or("no table")?.rows.clear(),
        Change::Insert { table, rows } => {
            let table = model.get_mut(table).ok_or("no table")?;
            for row in rows {
                table.rows.insert(table.next_row, row.clone());
                table.next_row += 1;
            }
            check_keys(table)?;
        }
        Change::Update { table, rows } => {
            let table = model.get_mut(table).ok_or("no table")?;
            for (id, row) in rows {
                *table.rows.get_mut(&id.0).ok_or("no row")? = row.clone();
            }
            check_keys(table)?;
        }
        Change::Delete { table, rows } => {
            let table = model.get_mut(table).ok_or("no table")?;
            rows.iter().try_for_each(|id| table.rows.remove(&id.0).map(drop).ok_or("no row"))?;
        }
        Change::Alter { table, name, schema, from } => {
            let mut altered = model.get(table).ok_or("no table")?.clone();
            if table != name && model.contains_key(name) {
                return Err("duplicate table");
            }
            for row in altered.rows.values_mut() {
                let value = |source: &Source| match source {
                    Source::Column(at) => row[*at].clone(),
                    Source::Value(value) => value.clone(),
                };
                *row = from.iter().map(value).collect();
            }
            altered.schema = schema.clone();
            check_keys(&altered)?;
            model.remove(table);
            model.insert(name.clone(), altered);
        }
    }
    Ok(())
}

fn check_keys(table: &ModelTable) -> Result<(), &'static str> {
    for constraint in &table.schema.constraints {
        let mut keys = BTreeSet::new();
        for row in table.rows.values() {
            let key: Vec<&Datum> = constraint.columns.iter().map(|at| &row[*at]).collect();
            if !key.contains(&&Datum::Null) && !keys.insert(format!("{key:?}")) {
                return Err("key");
            }
        }
    }
    Ok(())
}

fn word(error: &Error) -> &'static str {
    match error {
        Error::DuplicateTable { .. } => "duplicate table",
        Error::NoSuchTable { .. } => "no table",
        Error::NoSuchRow { .. } => "no row",
        Error::UniqueViolation { .. } => "key",
        other => panic!("{other}"),
    }
}

fn map_of(model: &Model) -> Map {
    let shown = |datum: &Datum| format!("{datum:?}");
    let of_table = |table: &ModelTable| {
        let columns = table.schema.columns.iter().map(|one| one.name.clone()).collect();
        let rows = table.rows.iter();
        let rows = rows.map(|(id, row)| (*id, row.iter().map(shown).collect())).collect();
        (columns, rows)
    };
    model.iter().map(|(name, table)| (name.clone(), of_table(table))).collect()
}

#[test]
fn tables_are_what_a_plain_model_says() {
    let mut dice = Random::seeded(1);
    for history in 0..3 {
        let disk = SimVfs::new(dice.next());
        let mut rig = Rig::open(&disk).expect("a new disk");
        let mut model = Model::new();
        for step in 0..1000 {
            let what = format!("history {history}, step {step}");
            let mut changes = Vec::new();
            let mut after = model.clone();
            let mut expected = Ok(());
            for _ in 0..1 + dice.below(3) {
                let change = draw_change(&mut dice, &map_of(&after));
                expected = apply(&mut after, &change);
                changes.push(change);
                if expected.is_err() {
                    break;
                }
            }
            let done = rig.tables.apply(changes.clone());
            assert_eq!(done.as_ref().map(drop).map_err(word), expected, "{what}: {changes:?}");
            if expected.is_ok() {
                model = after;
            }
            match dice.below(100) {
                0..=9 => rig.tables.keep().expect("a good disk"),
                10 => rig.tables.checkpoint().expect("a good disk"),
                11..=12 => {
                    rig.close().expect("a good disk");
                    drop(rig);
                    rig = Rig::open(&disk.crash()).expect("a good disk");
                    drop(rig);
                    rig = Rig::open(&disk).expect("a good disk");
                }
                13 => {
                    drop(rig);
                    rig = Rig::open(&disk).expect("a good disk");
                }
                14..=40 => assert_eq!(rig.map(), map_of(&model), "{what}"),
                _ => {}
            }
        }
        assert_eq!(rig.map(), map_of(&model), "history {history}, at its end");
    }
}
