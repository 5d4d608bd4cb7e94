//! What is kept beside tables and samples: settings of roles, policies. Each kind of it is an ordinary table whose
//! name no client can write, so that it is durable, checked, and in snapshots as all of them are.

use crate::tables::heap::view::View;
use crate::types::error::SqlError;
use tables::{
    Change, Column, ColumnType, Constraint, ConstraintKind, Datum, RowId, Scalar, Schema, TableSet,
};

/// What the names of such tables begin with.
const HIDDEN: char = '\0';
/// Rows of one kind.
const ROWS_MAX: usize = 10_000;

/// A kind of what is kept.
#[derive(Debug)]
pub struct Kept {
    /// The name of its table, which begins with what no client can write.
    pub table: &'static str,
    /// Its columns.
    pub columns: &'static [(&'static str, Scalar)],
    /// How many of them, from the first, tell rows apart.
    pub key_len: usize,
}

/// What `ALTER ROLE .. SET` and its kin say; no role, and no database, is an empty text.
pub const SETTINGS: Kept = Kept {
    table: "\0settings",
    columns: &[
        ("database", Scalar::Text),
        ("role", Scalar::Text),
        ("name", Scalar::Text),
        ("value", Scalar::Text),
    ],
    key_len: 3,
};

/// Whether a table is such a one.
pub fn is_kept(table: &str) -> bool {
    table.starts_with(HIDDEN)
}

/// A text as a value.
pub fn text(text: &str) -> Datum {
    Datum::Text(text.into())
}

/// The text of a value that is one.
pub fn text_of(value: &Datum) -> &str {
    match value {
        Datum::Text(text) => text,
        _ => "",
    }
}

impl Kept {
    /// All rows of it that a set of tables has.
    pub fn rows(&self, set: &TableSet) -> Vec<Vec<Datum>> {
        let table = set.get(self.table);
        table.map(|table| table.rows().map(|row| row.values()).collect()).unwrap_or_default()
    }

    fn schema(&self) -> Schema {
        let column =
            |(name, ty): &(&str, Scalar)| Column::new(name, ColumnType::One(*ty)).not_null();
        let key = Constraint {
            name: "key".to_string(),
            kind: ConstraintKind::PrimaryKey,
            columns: (0..self.key_len).collect(),
        };
        Schema {
            columns: self.columns.iter().map(column).collect(),
            constraints: vec![key],
            ..Schema::default()
        }
    }

    /// Keeps a row in place of the one with the same key.
    ///
    /// # Errors
    /// When there are too many.
    pub fn put(&self, view: &View, row: Vec<Datum>) -> Result<(), SqlError> {
        let table = self.table.to_string();
        let known = view.get(self.table);
        if known.is_none() {
            view.apply(vec![Change::Create { table: table.clone(), schema: self.schema() }])?;
        }
        let before = known.as_ref().and_then(|known| known.find(&row[..self.key_len]).ok()?);
        if let Some(id) = before.map(|row| row.id) {
            return view.apply(vec![Change::Update { table, rows: vec![(id, row)] }]).map(drop);
        }
        if ROWS_MAX <= known.map_or(0, |known| known.row_count()) {
            let words = format!("more than {ROWS_MAX} {} are not kept", &self.table[1..]);
            return Err(SqlError::limit(words));
        }
        view.apply(vec![Change::Insert { table, rows: vec![row] }]).map(drop)
    }

    /// Forgets the rows that `is_gone` says; how many they are.
    ///
    /// # Errors
    /// Those of the transaction under way.
    pub fn forget(&self, view: &View, is_gone: impl Fn(&[Datum]) -> bool) -> Result<u64, SqlError> {
        let Some(known) = view.get(self.table) else { return Ok(0) };
        let found = known.rows().filter(|row| is_gone(&row.values())).map(|row| row.id);
        let rows: Vec<RowId> = found.collect();
        if rows.is_empty() {
            return Ok(0);
        }
        let change = Change::Delete { table: self.table.to_string(), rows };
        Ok(view.apply(vec![change])?.deleted)
    }
}
