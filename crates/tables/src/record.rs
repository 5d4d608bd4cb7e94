//! What a statement did to tables, as the log keeps it; see `docs/format/tables.md`.
//!
//! ```text
//! record    number varint │ effects
//! effect    kind u8 │ table's number varint │ by kind
//! ```
//!
//! An effect says all that came of it: numbers of tables and rows are given out before. A statement is
//! one record, so it is replayed whole or not at all.

use crate::datum::Datum;
use crate::error::Result;
use crate::limits::{COLUMNS_MAX, NAME_SIZE_MAX, ROW_SIZE_MAX};
use crate::row;
use crate::schema::{NEWER, Schema, put_schema, put_text, read_schema, read_text, unknown};
use codec::{Reader, put_varint};

const CREATE: u8 = 1;
const DROP: u8 = 2;
const INSERT: u8 = 3;
const UPDATE: u8 = 4;
const DELETE: u8 = 5;
const TRUNCATE: u8 = 6;
const ALTER: u8 = 7;

/// Why a record whose checksum holds says nothing.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum RecordError {
    /// It says what this program does not know.
    #[error("a newer program wrote it (byte {offset}): use that one")]
    Newer { offset: usize },
    /// No program writes such a one.
    #[error("it does not decode: {0}")]
    Corrupt(codec::Error),
}

impl From<codec::Error> for RecordError {
    fn from(error: codec::Error) -> RecordError {
        match error.what == NEWER {
            true => RecordError::Newer { offset: error.offset },
            false => RecordError::Corrupt(error),
        }
    }
}

/// What a change did; `id` is the table's number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect<'a> {
    Create {
        id: u64,
        name: &'a str,
        schema: Schema,
    },
    Drop {
        id: u64,
    },
    Insert {
        id: u64,
        first_row: u64,
        rows: Vec<&'a [u8]>,
    },
    Update {
        id: u64,
        rows: Vec<(u64, &'a [u8])>,
    },
    Delete {
        id: u64,
        rows: Vec<u64>,
    },
    Truncate {
        id: u64,
    },
    /// Of each column from which it comes, or else its value in `fill`, which is null for the others.
    Alter {
        id: u64,
        name: &'a str,
        schema: Schema,
        from: Vec<Option<usize>>,
        fill: Vec<Datum>,
    },
}

impl Effect<'_> {
    /// The table's number.
    pub fn table(&self) -> u64 {
        match self {
            Effect::Create { id, .. }
            | Effect::Drop { id }
            | Effect::Insert { id, .. }
            | Effect::Update { id, .. }
            | Effect::Delete { id, .. }
            | Effect::Truncate { id }
            | Effect::Alter { id, .. } => *id,
        }
    }

    /// The table that it drops.
    pub fn dropped(&self) -> Option<u64> {
        if let Effect::Drop { id } = self { Some(*id) } else { None }
    }

    /// Whether it is of rows, and there is none.
    pub fn is_of_no_row(&self) -> bool {
        match self {
            Effect::Insert { rows, .. } => rows.is_empty(),
            Effect::Update { rows, .. } => rows.is_empty(),
            Effect::Delete { rows, .. } => rows.is_empty(),
            _ => false,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Effect::Create { .. } => CREATE,
            Effect::Drop { .. } => DROP,
            Effect::Insert { .. } => INSERT,
            Effect::Update { .. } => UPDATE,
            Effect::Delete { .. } => DELETE,
            Effect::Truncate { .. } => TRUNCATE,
            Effect::Alter { .. } => ALTER,
        }
    }

    /// Appends its bytes.
    ///
    /// # Errors
    /// When a value of `fill` is not of its column's type.
    pub fn put(&self, out: &mut Vec<u8>) -> Result<()> {
        out.push(self.kind());
        put_varint(out, self.table());
        match self {
            Effect::Create { name, schema, .. } => {
                put_text(out, name);
                put_schema(out, schema);
            }
            Effect::Drop { .. } | Effect::Truncate { .. } => {}
            Effect::Insert { first_row, rows, .. } => {
                put_varint(out, *first_row);
                put_varint(out, rows.len() as u64);
                rows.iter().for_each(|bytes| put_row(out, bytes));
            }
            Effect::Update { rows, .. } => {
                put_varint(out, rows.len() as u64);
                for (id, bytes) in rows {
                    put_varint(out, *id);
                    put_row(out, bytes);
                }
            }
            Effect::Delete { rows, .. } => {
                put_varint(out, rows.len() as u64);
                rows.iter().for_each(|id| put_varint(out, *id));
            }
            Effect::Alter { name, schema, from, fill, .. } => {
                put_text(out, name);
                put_schema(out, schema);
                for at in from {
                    put_varint(out, at.map_or(0, |at| at as u64 + 1));
                }
                put_row(out, &row::encode(name, &with_nulls(schema), fill)?);
            }
        }
        Ok(())
    }

    fn read<'a>(reader: &mut Reader<'a>) -> std::result::Result<Effect<'a>, codec::Error> {
        let kind = reader.u8()?;
        let id = reader.varint()?;
        Ok(match kind {
            CREATE => {
                let name = read_text(reader, NAME_SIZE_MAX)?;
                Effect::Create { id, name, schema: read_schema(reader)? }
            }
            DROP => Effect::Drop { id },
            INSERT => {
                let first_row = reader.varint()?;
                let mut rows = Vec::new();
                for _ in 0..read_count(reader)? {
                    rows.push(read_row(reader)?);
                }
                Effect::Insert { id, first_row, rows }
            }
            UPDATE => {
                let mut rows = Vec::new();
                for _ in 0..read_count(reader)? {
                    rows.push((reader.varint()?, read_row(reader)?));
                }
                Effect::Update { id, rows }
            }
            DELETE => {
                let mut rows = Vec::new();
                for _ in 0..read_count(reader)? {
                    rows.push(reader.varint()?);
                }
                Effect::Delete { id, rows }
            }
            TRUNCATE => Effect::Truncate { id },
            ALTER => read_alter(reader, id)?,
            other => return Err(unknown(reader, other, "a kind of effect")),
        })
    }
}

fn read_alter<'a>(
    reader: &mut Reader<'a>,
    id: u64,
) -> std::result::Result<Effect<'a>, codec::Error> {
    let name = read_text(reader, NAME_SIZE_MAX)?;
    let schema = read_schema(reader)?;
    let mut from = Vec::new();
    for _ in 0..schema.columns.len() {
        from.push(reader.varint_size(COLUMNS_MAX)?.checked_sub(1));
    }
    let bytes = read_row(reader)?;
    let nullable = with_nulls(&schema);
    row::check(&nullable, bytes)?;
    let fill = row::decode(&nullable, bytes)?;
    Ok(Effect::Alter { id, name, schema, from, fill })
}

/// The same columns, all of which may be null.
fn with_nulls(schema: &Schema) -> Schema {
    let mut columns = schema.columns.clone();
    columns.iter_mut().for_each(|column| column.is_nullable = true);
    Schema { columns, ..Schema::default() }
}

pub(crate) fn put_row(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn read_row<'a>(reader: &mut Reader<'a>) -> std::result::Result<&'a [u8], codec::Error> {
    let size = reader.varint_size(ROW_SIZE_MAX)?;
    reader.slice(size)
}

/// How many things follow, each of which takes a byte at least.
fn read_count(reader: &mut Reader<'_>) -> std::result::Result<usize, codec::Error> {
    reader.varint_size(reader.remaining())
}

/// The number of a record, whatever else it says.
///
/// # Errors
/// When it has none.
pub(crate) fn number(payload: &[u8]) -> std::result::Result<u64, RecordError> {
    Ok(Reader::new(payload).varint()?)
}

/// The number of a record and its effects.
///
/// # Errors
/// When the bytes are none.
pub(crate) fn decode(payload: &[u8]) -> std::result::Result<(u64, Vec<Effect<'_>>), RecordError> {
    let mut reader = Reader::new(payload);
    let seq = reader.varint()?;
    let mut effects = Vec::new();
    while !reader.is_empty() {
        effects.push(Effect::read(&mut reader)?);
    }
    Ok((seq, effects))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::{ColumnType, Scalar};
    use crate::schema::Column;

    #[test]
    fn records_come_back() {
        let schema = Schema {
            columns: vec![
                Column::new("a", ColumnType::One(Scalar::Int4)).not_null(),
                Column::new("b", ColumnType::Array(Scalar::Text)).not_null(),
            ],
            ..Schema::default()
        };
        let effects = [
            Effect::Create { id: 1, name: "t", schema: schema.clone() },
            Effect::Insert { id: 1, first_row: 300, rows: vec![b"one", b""] },
            Effect::Update { id: 1, rows: vec![(300, b"two"), (301, b"")] },
            Effect::Delete { id: 1, rows: vec![300, 1 << 40] },
            Effect::Truncate { id: 1 },
            Effect::Alter {
                id: 1,
                name: "u",
                schema,
                from: vec![Some(0), None],
                fill: vec![Datum::Null, Datum::Array(vec![])],
            },
            Effect::Drop { id: u64::MAX },
        ];
        let mut bytes = Vec::new();
        put_varint(&mut bytes, 77);
        let mut ends = vec![bytes.len()];
        for effect in &effects {
            effect.put(&mut bytes).unwrap();
            ends.push(bytes.len());
        }
        assert_eq!(decode(&bytes).unwrap(), (77, effects.to_vec()));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]).is_ok(), ends.contains(&cut), "cut at {cut}");
        }
    }

    #[test]
    fn a_newer_one_is_told_from_a_broken_one() {
        let newer = |bytes: &[u8]| match decode(bytes).unwrap_err() {
            RecordError::Newer { .. } => true,
            RecordError::Corrupt(_) => false,
        };
        let kind = |kind: u8| [77, kind, 1];
        assert!(newer(&kind(8)) && newer(&kind(255)) && !newer(&kind(0)));
        // A table `t` with a column `c` of a type, flags, and the kind of a constraint on it.
        let create = |ty: u8, flags: u8, constraint: u8| {
            let column = [1, 1, b'c', ty, flags, 0];
            let rest = [1, 1, b'u', constraint, 1, 0, 0];
            [&[77, CREATE, 1, 1, b't'][..], &column, &rest].concat()
        };
        assert!(decode(&create(1, 1, 2)).is_ok() && decode(&create(0x81, 1, 2)).is_ok());
        assert!(newer(&create(17, 1, 2)) && newer(&create(0xff, 1, 2)) && !newer(&create(0, 1, 2)));
        assert!(newer(&create(1, 4, 2)) && newer(&create(1, 1, 3)) && !newer(&create(1, 1, 0)));
        assert!(!newer(&[77, DELETE, 1]) && !newer(&[]));
        assert_eq!(number(&kind(8)), Ok(77));
    }
}
