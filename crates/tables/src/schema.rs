//! What a table looks like: columns, constraints, and what SQL wants to remember of it.

use crate::datum::{ColumnType, Scalar};
use crate::error::{Error, Result, check_limit};
use crate::limits::{COLUMNS_MAX, CONSTRAINTS_MAX, NAME_SIZE_MAX, PROPERTIES_MAX, TEXT_SIZE_MAX};
use codec::{Reader, put_varint};
use std::collections::BTreeSet;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, as it is: whoever folds capitals does that before.
    pub name: String,
    /// Its type.
    pub ty: ColumnType,
    /// Whether values may be null.
    pub is_nullable: bool,
    /// The expression of its default, as text; kept and not looked at.
    pub default: Option<String>,
    /// How its type was said where the type alone does not tell, such as `varchar(20)` or
    /// `numeric(10,2)`; kept and not looked at. Empty for none.
    pub declared: String,
}

impl Column {
    /// A column whose values may be null.
    pub fn new(name: &str, ty: ColumnType) -> Column {
        let (name, declared) = (name.to_owned(), String::new());
        Column { name, ty, is_nullable: true, default: None, declared }
    }

    /// The same without nulls.
    pub fn not_null(self) -> Column {
        Column { is_nullable: false, ..self }
    }
}

/// What a constraint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    /// No two rows are alike in its columns, and none is null there. A table has one at most.
    PrimaryKey,
    /// No two rows are alike in its columns; one with a null is like no other.
    Unique,
}

/// A constraint on the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Its name, which no other of the table has.
    pub name: String,
    /// What it is.
    pub kind: ConstraintKind,
    /// Its columns, by their places; at least one, none twice, none of JSON.
    pub columns: Vec<usize>,
}

/// What a table looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Its columns; no name is there twice.
    pub columns: Vec<Column>,
    /// Its constraints.
    pub constraints: Vec<Constraint>,
    /// Names and values that are kept and not looked at: comments, checks, what numbers a column.
    pub properties: Vec<(String, String)>,
}

impl Schema {
    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The primary key, if there is one.
    pub fn primary_key(&self) -> Option<&Constraint> {
        self.constraints.iter().find(|one| one.kind == ConstraintKind::PrimaryKey)
    }

    /// The same with what follows from its constraints: a primary key has no nulls.
    pub(crate) fn settled(mut self) -> Schema {
        for constraint in &self.constraints {
            for &at in &constraint.columns {
                if let (ConstraintKind::PrimaryKey, Some(column)) =
                    (constraint.kind, self.columns.get_mut(at))
                {
                    column.is_nullable = false;
                }
            }
        }
        self
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn size(&self) -> u64 {
        let of_column = |column: &Column| {
            let default = column.default.as_ref().map_or(0, String::len);
            size_of::<Column>() + column.name.len() + default + column.declared.len()
        };
        let of_constraint = |one: &Constraint| {
            size_of::<Constraint>() + one.name.len() + size_of_val(one.columns.as_slice())
        };
        let of_property =
            |(name, value): &(String, String)| 2 * size_of::<String>() + name.len() + value.len();
        let columns: usize = self.columns.iter().map(of_column).sum();
        let constraints: usize = self.constraints.iter().map(of_constraint).sum();
        let properties: usize = self.properties.iter().map(of_property).sum();
        (columns + constraints + properties) as u64
    }

    /// Whether a table of that name can be so.
    pub(crate) fn check(&self, table: &str) -> Result<()> {
        check_name(table, "a table", table)?;
        check_limit("columns of a table", self.columns.len(), COLUMNS_MAX)?;
        check_limit("constraints of a table", self.constraints.len(), CONSTRAINTS_MAX)?;
        check_limit("properties of a table", self.properties.len(), PROPERTIES_MAX)?;
        let mut names = BTreeSet::new();
        for column in &self.columns {
            check_name(table, "a column", &column.name)?;
            check_limit("bytes of a type's name", column.declared.len(), NAME_SIZE_MAX)?;
            let default = column.default.as_ref().map_or(0, String::len);
            check_limit("bytes of a default", default, TEXT_SIZE_MAX)?;
            if !names.insert(&column.name) {
                return Err(invalid(table, format!("two columns are called {:?}", column.name)));
            }
        }
        let mut names = BTreeSet::new();
        for (name, value) in &self.properties {
            check_name(table, "a property", name)?;
            check_limit("bytes of a property", value.len(), TEXT_SIZE_MAX)?;
            if !names.insert(name) {
                return Err(invalid(table, format!("two properties are called {name:?}")));
            }
        }
        self.check_constraints(table)
    }

    fn check_constraints(&self, table: &str) -> Result<()> {
        let (mut names, mut primary_key_count) = (BTreeSet::new(), 0);
        for Constraint { name, kind, columns } in &self.constraints {
            check_name(table, "a constraint", name)?;
            if !names.insert(name) {
                return Err(invalid(table, format!("two constraints are called {name:?}")));
            }
            primary_key_count += usize::from(*kind == ConstraintKind::PrimaryKey);
            let places: BTreeSet<&usize> = columns.iter().collect();
            if columns.is_empty() || places.len() != columns.len() {
                let reason = format!("constraint {name:?} has no column, or one of them twice");
                return Err(invalid(table, reason));
            }
            for &at in columns {
                let Some(column) = self.columns.get(at) else {
                    let reason = format!("constraint {name:?} is on a column that is not there");
                    return Err(invalid(table, reason));
                };
                if !column.ty.scalar().is_key() {
                    let reason =
                        format!("column {:?} is {}, which no key can have", column.name, column.ty);
                    return Err(invalid(table, reason));
                }
            }
        }
        match primary_key_count {
            0 | 1 => Ok(()),
            _ => Err(invalid(table, "two primary keys".to_owned())),
        }
    }
}

fn invalid(table: &str, reason: String) -> Error {
    Error::InvalidSchema { table: table.to_owned(), reason }
}

fn check_name(table: &str, of: &str, name: &str) -> Result<()> {
    check_limit("bytes of a name", name.len(), NAME_SIZE_MAX)?;
    match name.is_empty() {
        true => Err(invalid(table, format!("{of} without a name"))),
        false => Ok(()),
    }
}

// ---- bytes ----

/// The bit of an array in a type's byte.
const ARRAY: u8 = 0x80;
const NULLABLE: u8 = 1;
const HAS_DEFAULT: u8 = 2;
const PRIMARY_KEY: u8 = 1;
const UNIQUE: u8 = 2;

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A text of at most so many bytes.
pub(crate) fn read_text<'a>(
    reader: &mut Reader<'a>,
    size_max: usize,
) -> std::result::Result<&'a str, codec::Error> {
    let size = reader.varint_size(size_max)?;
    let bytes = reader.slice(size)?;
    std::str::from_utf8(bytes).map_err(|_| reader.corrupt("a text that is no UTF-8"))
}

/// What a decoder says of a number that this program gives no meaning to, in bytes whose checksum holds.
pub(crate) const NEWER: &str = "what a newer program wrote";

/// Why a number that says what something is tells nothing: 0 is nothing in every program.
pub(crate) fn unknown(reader: &Reader<'_>, number: u8, what: &'static str) -> codec::Error {
    reader.corrupt(if number == 0 { what } else { NEWER })
}

fn type_byte(ty: ColumnType) -> u8 {
    let at = Scalar::ALL.iter().position(|one| *one == ty.scalar()).expect("all are there");
    let number = u8::try_from(at + 1).expect("few");
    match ty {
        ColumnType::One(_) => number,
        ColumnType::Array(_) => number | ARRAY,
    }
}

fn read_type(reader: &mut Reader<'_>) -> std::result::Result<ColumnType, codec::Error> {
    let byte = reader.u8()?;
    let number = byte & !ARRAY;
    let at = usize::from(number).checked_sub(1);
    let scalar = at.and_then(|at| Scalar::ALL.get(at)).copied();
    let scalar = scalar.ok_or_else(|| unknown(reader, number, "a type"))?;
    Ok(if byte & ARRAY == 0 { ColumnType::One(scalar) } else { ColumnType::Array(scalar) })
}

/// Appends a schema; see `docs/format/tables.md`.
pub(crate) fn put_schema(out: &mut Vec<u8>, schema: &Schema) {
    put_varint(out, schema.columns.len() as u64);
    for Column { name, ty, is_nullable, default, declared } in &schema.columns {
        put_text(out, name);
        out.push(type_byte(*ty));
        let nullable = if *is_nullable { NULLABLE } else { 0 };
        out.push(nullable | if default.is_some() { HAS_DEFAULT } else { 0 });
        if let Some(default) = default {
            put_text(out, default);
        }
        put_text(out, declared);
    }
    put_varint(out, schema.constraints.len() as u64);
    for Constraint { name, kind, columns } in &schema.constraints {
        put_text(out, name);
        out.push(if *kind == ConstraintKind::PrimaryKey { PRIMARY_KEY } else { UNIQUE });
        put_varint(out, columns.len() as u64);
        columns.iter().for_each(|at| put_varint(out, *at as u64));
    }
    put_varint(out, schema.properties.len() as u64);
    for (name, value) in &schema.properties {
        put_text(out, name);
        put_text(out, value);
    }
}

/// Reads a schema. Whether a table can be so is for [`Schema::check`] to say.
pub(crate) fn read_schema(reader: &mut Reader<'_>) -> std::result::Result<Schema, codec::Error> {
    let mut schema = Schema::default();
    for _ in 0..reader.varint_size(COLUMNS_MAX)? {
        schema.columns.push(read_column(reader)?);
    }
    for _ in 0..reader.varint_size(CONSTRAINTS_MAX)? {
        let name = read_text(reader, NAME_SIZE_MAX)?.to_owned();
        let kind = match reader.u8()? {
            PRIMARY_KEY => ConstraintKind::PrimaryKey,
            UNIQUE => ConstraintKind::Unique,
            other => return Err(unknown(reader, other, "a kind of constraint")),
        };
        let mut columns = Vec::new();
        for _ in 0..reader.varint_size(COLUMNS_MAX)? {
            columns.push(reader.varint_size(COLUMNS_MAX)?);
        }
        schema.constraints.push(Constraint { name, kind, columns });
    }
    for _ in 0..reader.varint_size(PROPERTIES_MAX)? {
        let name = read_text(reader, NAME_SIZE_MAX)?.to_owned();
        schema.properties.push((name, read_text(reader, TEXT_SIZE_MAX)?.to_owned()));
    }
    Ok(schema)
}

fn read_column(reader: &mut Reader<'_>) -> std::result::Result<Column, codec::Error> {
    let name = read_text(reader, NAME_SIZE_MAX)?.to_owned();
    let ty = read_type(reader)?;
    let flags = reader.u8()?;
    if flags & !(NULLABLE | HAS_DEFAULT) != 0 {
        return Err(reader.corrupt(NEWER));
    }
    let default = match flags & HAS_DEFAULT {
        0 => None,
        _ => Some(read_text(reader, TEXT_SIZE_MAX)?.to_owned()),
    };
    let declared = read_text(reader, NAME_SIZE_MAX)?.to_owned();
    Ok(Column { name, ty, is_nullable: flags & NULLABLE != 0, default, declared })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let columns = Scalar::ALL.iter().enumerate().map(|(at, scalar)| {
            let ty =
                if at % 3 == 0 { ColumnType::Array(*scalar) } else { ColumnType::One(*scalar) };
            let default = (at % 4 == 0).then(|| format!("nextval('s{at}')"));
            Column { default, declared: "a(1)".into(), ..Column::new(&format!("c{at}"), ty) }
        });
        let key = |name: &str, kind, columns| Constraint { name: name.into(), kind, columns };
        Schema {
            columns: columns.collect(),
            constraints: vec![
                key("pk", ConstraintKind::PrimaryKey, vec![2, 1]),
                key("u", ConstraintKind::Unique, vec![7]),
            ],
            properties: vec![("comment".into(), "naïve".into())],
        }
        .settled()
    }

    #[test]
    fn schemas_come_back() {
        let schema = schema();
        schema.check("t").unwrap();
        assert!(!schema.columns[1].is_nullable && schema.columns[7].is_nullable);
        let mut bytes = Vec::new();
        put_schema(&mut bytes, &schema);
        let mut reader = Reader::new(&bytes);
        assert_eq!(read_schema(&mut reader).unwrap(), schema);
        assert!(reader.is_empty());
        for cut in 0..bytes.len() {
            assert!(read_schema(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }

    #[test]
    fn what_no_table_can_be_is_refused() {
        let check = |change: &dyn Fn(&mut Schema), words: &str| {
            let mut schema = schema();
            change(&mut schema);
            let error = schema.check("t").unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        check(&|s| s.columns[1].name = "c0".into(), "two columns are called");
        check(&|s| s.columns[1].name = String::new(), "without a name");
        check(&|s| s.columns[1].name = "n".repeat(256), "256, the limit is 255");
        check(&|s| s.constraints[1].name = "pk".into(), "two constraints");
        check(&|s| s.constraints[1].kind = ConstraintKind::PrimaryKey, "two primary keys");
        check(&|s| s.constraints[1].columns = vec![11], "which no key can have");
        check(&|s| s.constraints[1].columns = vec![99], "not there");
        check(&|s| s.constraints[1].columns = vec![1, 1], "twice");
        check(&|s| s.constraints[1].columns = vec![], "no column");
        assert!(Schema::default().check("").is_err());
    }
}
