//! Tables on a simulated disk, and the plain maps that they are compared with.

use rng::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tables::{
    Change, Column, ColumnType, Constraint, ConstraintKind, Datum, RowId, Scalar, Schema, Source,
    TableSet, Tables, TablesConfig, TablesOpening,
};
use vfs::{SimVfs, Vfs};
use wal::{Committer, Consumers, Log, WalConfig};

pub const DATA: &str = "/data";

/// Whatever may go wrong when a disk fails.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Of each table its columns' names, and its rows by number.
pub type Map = BTreeMap<String, (Vec<String>, BTreeMap<u64, Vec<String>>)>;

/// Tables that are open.
pub struct Rig {
    pub tables: Arc<Tables>,
    pub log: Arc<Log>,
}

/// Small enough that histories reach all of it.
pub fn config() -> TablesConfig {
    TablesConfig {
        memory_max: 1 << 20,
        checkpoint_log_size: 1 << 10,
        checkpoint_segments: 3,
        keeper_interval: Duration::ZERO,
        retry_interval: Duration::ZERO,
        background: false,
    }
}

impl Rig {
    /// Opens what a disk holds.
    pub fn open(disk: &SimVfs) -> Outcome<Rig> {
        Rig::open_in(Arc::new(disk.clone()), Path::new(DATA), config())
    }

    /// The same in another directory, with other settings.
    pub fn open_in(vfs: Arc<dyn Vfs>, data: &Path, config: TablesConfig) -> Outcome<Rig> {
        vfs.create_dir_all(data)?;
        let mut opening = TablesOpening::look(vfs.clone(), data, config)?;
        let mut consumers = Consumers::default();
        opening.declare(&mut consumers);
        let log_config = WalConfig {
            committer: Committer::Waiter,
            segment_size_max: 4096,
            ..WalConfig::default()
        };
        let log = Arc::new(Log::open(vfs, &data.join("wal"), log_config, consumers)?);
        let tables = opening.finish(log.clone())?;
        Ok(Rig { tables, log })
    }

    /// All that readers see.
    pub fn map(&self) -> Map {
        map_of(&self.tables.now())
    }

    /// Ends as a program does.
    pub fn close(&self) -> Outcome<()> {
        self.tables.close()?;
        Ok(self.log.close()?)
    }
}

/// All that there is at one moment.
pub fn map_of(set: &TableSet) -> Map {
    let shown = |datum: &Datum| format!("{datum:?}");
    let mut map = Map::new();
    for table in set.list() {
        let columns = table.schema().columns.iter().map(|one| one.name.clone()).collect();
        let row = |row: tables::Row<'_>| (row.id.0, row.values().iter().map(shown).collect());
        let rows: BTreeMap<u64, Vec<String>> = table.rows().map(row).collect();
        assert_eq!(rows.len(), table.row_count());
        check_keys(&table);
        map.insert(table.name().to_owned(), (columns, rows));
    }
    map
}

/// Each row is found by its keys.
fn check_keys(table: &tables::Table) {
    for constraint in &table.schema().constraints {
        for row in table.rows() {
            let key = row.project(&constraint.columns);
            let found = table.find_by(&constraint.name, &key).expect("a key");
            let has_key = !key.contains(&Datum::Null);
            assert_eq!(found.map(|row| row.id), has_key.then_some(row.id));
        }
    }
}

/// `id int8 primary key, name text unique, tags text[]`
pub fn schema() -> Schema {
    let key = |name: &str, kind, at| Constraint { name: name.into(), kind, columns: vec![at] };
    Schema {
        columns: vec![
            Column::new("id", ColumnType::One(Scalar::Int8)),
            Column::new("name", ColumnType::One(Scalar::Text)),
            Column::new("tags", ColumnType::Array(Scalar::Text)),
        ],
        constraints: vec![
            key("pk", ConstraintKind::PrimaryKey, 0),
            key("name", ConstraintKind::Unique, 1),
        ],
        properties: Vec::new(),
    }
}

/// The same without constraints.
pub fn loose() -> Schema {
    Schema { constraints: Vec::new(), ..schema() }
}

pub fn row(id: i64, name: &str) -> Vec<Datum> {
    vec![Datum::Int8(id), Datum::Text(name.into()), Datum::Null]
}

pub fn create(table: &str) -> Change {
    Change::Create { table: table.into(), schema: schema() }
}

pub fn insert(table: &str, rows: Vec<Vec<Datum>>) -> Change {
    Change::Insert { table: table.into(), rows }
}

fn draw_row(dice: &mut Random) -> Vec<Datum> {
    let size = usize::try_from(dice.below(120)).expect("small");
    let name = match dice.below(3) {
        0 => Datum::Null,
        _ => Datum::Text(format!("n{}", dice.below(200))),
    };
    let tags = match dice.below(3) {
        0 => Datum::Array(vec![Datum::Text("x".repeat(size)), Datum::Null]),
        _ => Datum::Null,
    };
    vec![Datum::Int8(dice.below(300) as i64), name, tags]
}

/// Some rows of a table, by number, and perhaps one that is not there.
fn draw_rows(dice: &mut Random, there: &BTreeMap<u64, Vec<String>>) -> BTreeSet<u64> {
    let numbers: Vec<u64> = there.keys().copied().collect();
    let mut drawn = BTreeSet::new();
    for _ in 0..1 + dice.below(3) {
        match numbers.is_empty() || dice.below(30) == 0 {
            true => drawn.insert(dice.below(100_000)),
            false => drawn.insert(*dice.pick(&numbers)),
        };
    }
    drawn
}

/// A random change of what there is; it may be one that is refused.
pub fn draw_change(dice: &mut Random, map: &Map) -> Change {
    let names = ["a", "b", "c", "d"];
    let existing: Vec<&String> = map.keys().collect();
    let table = match existing.is_empty() || dice.below(20) == 0 {
        true => (*dice.pick(&names)).to_owned(),
        false => (*dice.pick(&existing)).clone(),
    };
    let none = BTreeMap::new();
    let rows = map.get(&table).map_or(&none, |(_, rows)| rows);
    let columns = map.get(&table).map_or(3, |(columns, _)| columns.len());
    let fit = |mut row: Vec<Datum>| {
        row.resize(columns, Datum::Null);
        row
    };
    match dice.below(100) {
        0..=11 => {
            let schema = if dice.below(3) == 0 { loose() } else { schema() };
            Change::Create { table: (*dice.pick(&names)).into(), schema }
        }
        12..=13 => Change::Drop { table },
        14 => Change::Truncate { table },
        15..=18 => draw_alter(dice, table, columns),
        19..=64 => {
            let count = 1 + dice.below(4);
            let rows = (0..count).map(|_| fit(draw_row(dice))).collect();
            Change::Insert { table, rows }
        }
        65..=84 => {
            let ids = draw_rows(dice, rows);
            let rows = ids.into_iter().map(|id| (RowId(id), fit(draw_row(dice)))).collect();
            Change::Update { table, rows }
        }
        _ => {
            let rows = draw_rows(dice, rows).into_iter().map(RowId).collect();
            Change::Delete { table, rows }
        }
    }
}

/// Another name, or a column more.
fn draw_alter(dice: &mut Random, table: String, columns: usize) -> Change {
    let mut altered = if dice.below(2) == 0 { loose() } else { schema() };
    let mut from: Vec<Source> = (0..3).map(Source::Column).collect();
    if columns < 6 {
        let name = format!("more{columns}");
        for at in 3..columns {
            altered.columns.push(Column::new(&format!("more{at}"), ColumnType::One(Scalar::Int4)));
            from.push(Source::Column(at));
        }
        altered.columns.push(Column::new(&name, ColumnType::One(Scalar::Int4)));
        let value = if dice.below(2) == 0 { Datum::Null } else { Datum::Int4(5) };
        from.push(Source::Value(value));
    }
    let name = if dice.below(2) == 0 { table.clone() } else { format!("r{}", dice.below(3)) };
    Change::Alter { table, name, schema: altered, from }
}
