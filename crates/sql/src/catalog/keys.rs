//! Keys, indexes and defaults of ordinary tables, as PostgreSQL's and the standard's tables tell of them.
//!
//! Each constraint is told of as the index that PostgreSQL would keep for it. Numbers are made of the
//! table's and of the place within it, so that they stay as long as nothing before them is dropped.

use crate::catalog::cells::{Cell, Table as Cells, number, text, yes};
use crate::catalog::names::{DATABASE, PUBLIC_OID};
use crate::catalog::relations::{Relation, Told, class};
use crate::types::keywords::quoted_ident;

/// Numbers of indexes begin with it, those of constraints, defaults and sequences behind them.
const FIRST_INDEX_OID: u32 = 0x2000_0000;
const FIRST_CONSTRAINT_OID: u32 = 0x3000_0000;
const FIRST_DEFAULT_OID: u32 = 0x4000_0000;
const FIRST_SEQUENCE_OID: u32 = 0x6000_0000;
/// Bits of a number that are of the place within the table: a power of two behind the most constraints
/// and the most columns that a table may have.
const KEY_BITS: u32 = 6;
const COLUMN_BITS: u32 = 11;
/// The access method of all indexes here, `btree`.
pub const BTREE_OID: i32 = 403;

/// A constraint, or a unique index.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Whether it is the primary key.
    pub is_primary: bool,
    /// Whether it was made by `CREATE UNIQUE INDEX`, and is no constraint.
    pub is_index: bool,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Their numbers in the table, counted from 1.
    pub places: Vec<i32>,
}

/// A number of its own for the thing at a place within a table.
fn oid_at(first: u32, table: i32, at: usize, bits: u32) -> i32 {
    let table = u32::try_from(table).unwrap_or(0);
    let at = u32::try_from(at).unwrap_or(0);
    let room = 0x1000_0000 >> bits;
    let oid = first + (((table % room) << bits) | (at & ((1 << bits) - 1)));
    i32::try_from(oid).unwrap_or(i32::MAX)
}

impl Relation {
    /// Its keys with the numbers of their indexes.
    pub fn indexes(&self) -> impl Iterator<Item = (i32, &Key)> {
        let oid = |at| oid_at(FIRST_INDEX_OID, self.oid, at, KEY_BITS);
        self.keys.iter().enumerate().map(move |(at, key)| (oid(at), key))
    }

    /// Its constraints with their numbers and those of their indexes.
    fn constraints(&self) -> impl Iterator<Item = (i32, i32, &Key)> {
        let oid = |at| oid_at(FIRST_CONSTRAINT_OID, self.oid, at, KEY_BITS);
        let all = self.indexes().enumerate().map(move |(at, (index, key))| (oid(at), index, key));
        all.filter(|(_, _, key)| !key.is_index)
    }

    /// The sequences that its numbered columns would have, with their numbers and columns.
    fn sequences(&self) -> impl Iterator<Item = (i32, String, &str, i32)> {
        let is_numbered = |one: &&Told| one.is_serial || !one.identity.is_empty();
        let numbered = self.columns.iter().enumerate().filter(move |(_, one)| is_numbered(one));
        numbered.map(|(at, column)| {
            let oid = oid_at(FIRST_SEQUENCE_OID, self.oid, at, COLUMN_BITS);
            let name = sequence_name(&self.name, &column.name);
            (oid, name, column.name.as_str(), column.oid)
        })
    }
}

fn sequence_name(table: &str, column: &str) -> String {
    format!("{table}_{column}_seq")
}

/// What PostgreSQL shows as the default of a `serial`: by it clients know that rows are numbered.
pub fn serial_default(table: &str, column: &str) -> String {
    let name = quoted_ident(&sequence_name(table, column)).replace('\'', "''");
    format!("nextval('{name}'::regclass)")
}

impl Key {
    fn column_list(&self) -> String {
        self.columns.iter().map(|one| quoted_ident(one)).collect::<Vec<_>>().join(", ")
    }

    /// `pg_get_constraintdef`.
    fn constraint_text(&self) -> String {
        let kind = if self.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        format!("{kind} ({})", self.column_list())
    }

    /// `pg_get_indexdef`; where it is for reading, the schema that is found anyway is left out.
    fn index_text(&self, table: &str, schema: &str) -> String {
        let (name, table) = (quoted_ident(&self.name), quoted_ident(table));
        format!(
            "CREATE UNIQUE INDEX {name} ON {schema}{table} USING btree ({})",
            self.column_list()
        )
    }
}

/// What says how an index, or a column of it where `column` is not 0, was made.
pub fn index_definition(
    relations: &[Relation],
    oid: i32,
    column: i32,
    is_pretty: bool,
) -> Option<String> {
    let all = relations.iter().flat_map(|one| one.indexes().map(move |(oid, key)| (one, oid, key)));
    let (relation, _, key) = all.into_iter().find(|(_, one, _)| *one == oid)?;
    match usize::try_from(column).ok()? {
        0 if is_pretty => Some(key.index_text(&relation.name, "")),
        0 => Some(key.index_text(&relation.name, "public.")),
        nth => Some(key.columns.get(nth - 1).map_or_else(String::new, |one| quoted_ident(one))),
    }
}

/// What says how a constraint was made.
pub fn constraint_definition(relations: &[Relation], oid: i32) -> Option<String> {
    let mut all = relations.iter().flat_map(Relation::constraints);
    all.find(|(one, _, _)| *one == oid).map(|(_, _, key)| key.constraint_text())
}

/// The name of the sequence that a column would have, if it is numbered.
pub fn sequence_of(relations: &[Relation], table: &str, column: &str) -> Option<String> {
    let relation = relations.iter().find(|one| one.name == table)?;
    let (_, name, ..) = relation.sequences().find(|(_, _, one, _)| *one == column)?;
    Some(format!("public.{}", quoted_ident(&name)))
}

/// Names and numbers of what is a relation to PostgreSQL beside tables.
pub fn named(relations: &[Relation]) -> impl Iterator<Item = (i32, String)> {
    relations.iter().flat_map(|one| {
        let indexes = one.indexes().map(|(oid, key)| (oid, key.name.clone()));
        indexes.chain(one.sequences().map(|(oid, name, ..)| (oid, name)))
    })
}

/// The rows of `pg_class` for indexes.
pub fn index_classes(relations: &[Relation]) -> impl Iterator<Item = Vec<Cell>> {
    relations
        .iter()
        .flat_map(Relation::indexes)
        .map(|(oid, key)| class(oid, &key.name, "i", BTREE_OID, key.columns.len(), false))
}

/// The tables of this file that have such a name.
pub fn told(name: &str, relations: &[Relation]) -> Option<Cells> {
    tables(relations).into_iter().find(|one| one.name == name)
}

/// PostgreSQL's own.
pub fn tables(relations: &[Relation]) -> Vec<Cells> {
    vec![
        defaults(relations),
        indexes(relations),
        constraints(relations),
        index_view(relations),
        sequences(relations),
        vectors(relations),
    ]
}

fn defaults(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        for (at, column) in relation.columns.iter().enumerate() {
            let Some(default) = &column.default else { continue };
            let oid = oid_at(FIRST_DEFAULT_OID, relation.oid, at, COLUMN_BITS);
            let nth = i32::try_from(at + 1).unwrap_or(0);
            rows.push(vec![number(oid), number(relation.oid), number(nth), text(default)]);
        }
    }
    Cells { name: "pg_attrdef", columns: "oid:o adrelid:o adnum:s adbin:t", rows }
}

/// As many of the same as an index has columns.
fn of_each(key: &Key, value: impl Fn(usize) -> i32) -> Vec<i32> {
    (0..key.places.len()).map(value).collect()
}

/// The class of operators of `btree` for a type's number, as PostgreSQL 15 counts them.
fn operator_class(type_oid: i32) -> i32 {
    match type_oid {
        16 => 10003,
        20 => 3124,
        21 => 1979,
        23 => 1978,
        700 => 10012,
        701 => 3123,
        1042 => 10004,
        1082 => 3122,
        1083 => 10038,
        1114 => 3128,
        1184 => 3127,
        1186 => 10022,
        1700 => 3125,
        2950 => 10065,
        _ => 3126,
    }
}

fn indexes(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        for (oid, key) in relation.indexes() {
            let count = i32::try_from(key.places.len()).unwrap_or(0);
            let (no, all_yes) = (yes(false), yes(true));
            let type_of = |at: usize| {
                let place = usize::try_from(key.places[at]).unwrap_or(0);
                relation.columns.get(place.wrapping_sub(1)).map_or(0, |one| one.oid)
            };
            let collation =
                |at| if crate::types::postgres_types::is_collated(type_of(at)) { 100 } else { 0 };
            rows.push(vec![
                number(oid),
                number(relation.oid),
                number(count),
                number(count),
                all_yes.clone(),
                no.clone(),
                yes(key.is_primary),
                no.clone(),
                all_yes.clone(),
                no.clone(),
                all_yes.clone(),
                no.clone(),
                all_yes.clone(),
                all_yes,
                no,
                Cell::Numbers(key.places.clone()),
                Cell::Numbers(of_each(key, collation)),
                Cell::Numbers(of_each(key, |at| operator_class(type_of(at)))),
                Cell::Numbers(of_each(key, |_| 0)),
                Cell::Null,
                Cell::Null,
            ]);
        }
    }
    let columns = "indexrelid:o indrelid:o indnatts:s indnkeyatts:s indisunique:b \
                   indnullsnotdistinct:b indisprimary:b indisexclusion:b indimmediate:b \
                   indisclustered:b indisvalid:b indcheckxmin:b indisready:b indislive:b \
                   indisreplident:b indkey:v indcollation:w indclass:w indoption:v indexprs:t \
                   indpred:t";
    Cells { name: "pg_index", columns, rows }
}

fn constraints(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        for (oid, index, key) in relation.constraints() {
            let none = text(" ");
            rows.push(vec![
                number(oid),
                text(&key.name),
                number(PUBLIC_OID),
                text(if key.is_primary { "p" } else { "u" }),
                yes(false),
                yes(false),
                yes(true),
                number(relation.oid),
                number(0),
                number(index),
                number(0),
                number(0),
                none.clone(),
                none.clone(),
                none,
                yes(true),
                number(0),
                yes(true),
                Cell::Numbers(key.places.clone()),
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
            ]);
        }
    }
    let columns = "oid:o conname:n connamespace:o contype:c condeferrable:b condeferred:b \
                   convalidated:b conrelid:o contypid:o conindid:o conparentid:o confrelid:o \
                   confupdtype:c confdeltype:c confmatchtype:c conislocal:b coninhcount:i \
                   connoinherit:b conkey:m confkey:m conpfeqop:a conppeqop:a conffeqop:a \
                   confdelsetcols:m conexclop:a conbin:t";
    Cells { name: "pg_constraint", columns, rows }
}

fn index_view(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        for (_, key) in relation.indexes() {
            let definition = key.index_text(&relation.name, "public.");
            let (schema, table) = (text("public"), text(&relation.name));
            rows.push(vec![schema, table, text(&key.name), Cell::Null, text(&definition)]);
        }
    }
    let columns = "schemaname:n tablename:n indexname:n tablespace:n indexdef:t";
    Cells { name: "pg_indexes", columns, rows }
}

/// The largest number of a sequence of an integer type.
pub fn greatest_of(type_oid: i32) -> i64 {
    match type_oid {
        21 => i64::from(i16::MAX),
        23 => i64::from(i32::MAX),
        _ => i64::MAX,
    }
}

/// Names of sequences, each with its largest number.
pub fn sequence_bounds(relations: &[Relation]) -> impl Iterator<Item = (String, i64)> {
    let all = relations.iter().flat_map(Relation::sequences);
    all.map(|(_, name, _, type_oid)| (name, greatest_of(type_oid)))
}

/// What PostgreSQL would know of how columns are numbered. There are no sequences to be called here.
fn sequences(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for (oid, _, _, type_oid) in relations.iter().flat_map(Relation::sequences) {
        let mut row = vec![number(oid), number(type_oid)];
        row.extend([1, 1, greatest_of(type_oid), 1, 1].map(Cell::Long));
        row.push(yes(false));
        rows.push(row);
    }
    let columns = "seqrelid:o seqtypid:o seqstart:l seqincrement:l seqmax:l seqmin:l seqcache:l \
                   seqcycle:b";
    Cells { name: "pg_sequence", columns, rows }
}

/// The lists of columns of all keys, each value with its place: what `unnest` makes of them where it is
/// asked of the row of another table.
pub const VECTORS: &str = "pg_vectors\0";

fn vectors(relations: &[Relation]) -> Cells {
    let all = relations.iter().flat_map(|one| one.keys.iter().map(|key| key.places.clone()));
    let options = relations.iter().flat_map(|one| one.keys.iter().map(|key| of_each(key, |_| 0)));
    let distinct: std::collections::BTreeSet<Vec<i32>> = all.chain(options).collect();
    let mut rows = Vec::new();
    for one in distinct {
        let whole = one.iter().map(i32::to_string).collect::<Vec<_>>().join(" ");
        for (value, nth) in one.iter().zip(1..) {
            rows.push(vec![text(&whole), number(*value), Cell::Long(nth)]);
        }
    }
    Cells { name: VECTORS, columns: "whole:t value:s nth:l", rows }
}

/// The standard's `constraint_column_usage`.
pub fn used_columns(relations: &[Relation]) -> Cells {
    let mut rows = Vec::new();
    for relation in relations {
        for (_, _, key) in relation.constraints() {
            for column in &key.columns {
                let (catalog, schema) = (text(DATABASE), text("public"));
                rows.push(vec![
                    catalog.clone(),
                    schema.clone(),
                    text(&relation.name),
                    text(column),
                    catalog,
                    schema,
                    text(&key.name),
                ]);
            }
        }
    }
    let columns = "table_catalog:n table_schema:n table_name:n column_name:n constraint_catalog:n \
                   constraint_schema:n constraint_name:n";
    Cells { name: "constraint_column_usage", columns, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_thing_has_a_number_of_its_own() {
        let mut all = BTreeSet::new();
        let tables = 100_000..100_100;
        for table in tables.clone() {
            for (first, bits) in [(FIRST_INDEX_OID, KEY_BITS), (FIRST_CONSTRAINT_OID, KEY_BITS)] {
                all.extend(
                    (0..tables::limits::CONSTRAINTS_MAX).map(|at| oid_at(first, table, at, bits)),
                );
            }
            for first in [FIRST_DEFAULT_OID, FIRST_SEQUENCE_OID] {
                all.extend(
                    (0..tables::limits::COLUMNS_MAX)
                        .map(|at| oid_at(first, table, at, COLUMN_BITS)),
                );
            }
        }
        let of_each = 2 * (tables::limits::CONSTRAINTS_MAX + tables::limits::COLUMNS_MAX);
        assert_eq!(all.len(), tables.len() * of_each);
        assert!(all.first().is_some_and(|least| *least > 0x1000_0000), "tables' numbers are less");
        assert_eq!(serial_default("Odd", "it's"), "nextval('\"Odd_it''s_seq\"'::regclass)");
    }
}
