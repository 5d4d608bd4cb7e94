//! Columns of PostgreSQL's catalogs and of the information schema in its order, and rows that every database has
//! (<https://www.postgresql.org/docs/15/catalogs.html>, <https://www.postgresql.org/docs/15/information-schema.html>).
//!
//! `columns.txt` has a line for each table, `schema table column:kind..`, with `!` behind the kind of a column that is
//! never NULL. `rows.txt` has rows of types, their functions, access methods and the like, all columns of a table
//! separated by tabs.

use crate::catalog::cells::{Cell, Table};
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

const COLUMNS: &str = include_str!("columns.txt");
const ROWS: &str = include_str!("rows.txt");

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    /// A letter of [`Table::columns`].
    pub kind: &'static str,
    /// Whether it is never NULL.
    pub is_required: bool,
}

/// Schema and columns of a table.
struct Layout {
    schema: &'static str,
    columns: Vec<Column>,
}

static LAYOUTS: LazyLock<BTreeMap<&'static str, Layout>> = LazyLock::new(|| {
    let layout = |line: &'static str| {
        let mut words = line.split(' ');
        let (schema, table) = (words.next()?, words.next()?);
        Some((table, Layout { schema, columns: words.filter_map(column).collect() }))
    };
    COLUMNS.lines().filter_map(layout).collect()
});

/// Numbers of functions by their names.
static FUNCTIONS: LazyLock<HashMap<&'static str, i32>> = LazyLock::new(|| {
    let function = |line: &'static str| {
        let mut cells = line.split('\t');
        Some((cells.next()?.parse().ok()?, cells.next()?))
    };
    lines_of("pg_proc").filter_map(function).map(|(oid, name)| (name, oid)).collect()
});

fn column(text: &'static str) -> Option<Column> {
    let (name, kind) = text.split_once(':')?;
    Some(Column { name, kind: kind.trim_end_matches('!'), is_required: kind.ends_with('!') })
}

/// The columns of a table of PostgreSQL's; none of other tables.
pub fn columns_of(table: &str) -> Option<&'static [Column]> {
    LAYOUTS.get(table).map(|layout| layout.columns.as_slice())
}

/// All tables of a schema.
pub fn tables_of(schema: &str) -> impl Iterator<Item = &'static str> {
    LAYOUTS.iter().filter(move |(_, layout)| layout.schema == schema).map(|(table, _)| *table)
}

/// The number of the function of that name that reads or writes values of a type.
pub fn function_oid(name: &str) -> Option<i32> {
    FUNCTIONS.get(name).copied()
}

/// The name of a function that reads or writes values of a type.
pub fn function_name(oid: i32) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(_, one)| **one == oid).map(|(name, _)| *name)
}

fn lines_of(table: &str) -> impl Iterator<Item = &'static str> {
    let head = format!("= {table}");
    let behind = ROWS.lines().skip_while(move |line| *line != head).skip(1);
    behind.take_while(|line| !line.starts_with("= "))
}

/// Whether every database has rows of that table.
pub fn has_rows(table: &str) -> bool {
    lines_of(table).next().is_some()
}

/// A table with the rows that every database has.
pub fn table(name: &'static str) -> Table {
    let columns = columns_of(name).unwrap_or_default();
    let row = |line: &str| {
        let cells = line.split('\t').zip(columns).map(|(text, column)| read_cell(text, column));
        cells.collect::<Vec<Cell>>()
    };
    Table { name, columns: "", rows: lines_of(name).map(row).collect() }
}

/// A cell as PostgreSQL writes it; what does not fit the column is NULL, which a test excludes.
fn read_cell(text: &str, column: &Column) -> Cell {
    if text == "\\N" {
        return Cell::Null;
    }
    let numbers = |words: &str| -> Option<Vec<i32>> {
        words.split([' ', ',']).map(|one| one.parse().ok()).collect()
    };
    let listed = text.trim_start_matches('{').trim_end_matches('}');
    let number = |text: &str| text.parse::<i64>().ok().map(i64_to_oid);
    let cell = match column.kind {
        "b" => Some(Cell::Bool(text == "t")),
        "i" | "s" | "o" | "x" => number(text).map(Cell::Number),
        "p" => Some(Cell::Text(text.to_string())),
        "l" => text.parse().ok().map(Cell::Long),
        "f" | "r" => text.parse().ok().map(Cell::Float),
        "v" | "w" | "O" | "m" if listed.is_empty() => Some(Cell::Numbers(Vec::new())),
        "v" | "w" | "O" | "m" => numbers(listed).map(Cell::Numbers),
        "a" | "N" => Some(Cell::Texts(listed.split(',').map(str::to_string).collect())),
        "n" | "t" | "c" | "V" => Some(Cell::Text(text.to_string())),
        _ => None,
    };
    cell.unwrap_or(Cell::Null)
}

/// A number of 32 bits without a sign, as its bits.
fn i64_to_oid(number: i64) -> i32 {
    i32::try_from(number).unwrap_or_else(|_| u32::try_from(number).unwrap_or(0).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_their_columns() {
        let tables = ROWS.lines().filter_map(|line| line.strip_prefix("= "));
        for name in tables {
            let columns = columns_of(name).expect(name);
            let table = table(name);
            assert!(!table.rows.is_empty(), "{name}");
            for (row, line) in table.rows.iter().zip(lines_of(name)) {
                assert_eq!(row.len(), columns.len(), "{name}: {line}");
                for ((cell, text), column) in row.iter().zip(line.split('\t')).zip(columns) {
                    assert_eq!(
                        *cell == Cell::Null,
                        text == "\\N",
                        "{name}.{}: {text}",
                        column.name
                    );
                }
            }
            table.batch().expect(name);
        }
    }

    #[test]
    fn types_name_their_functions() {
        assert_eq!(function_oid("array_recv"), Some(2400));
        assert_eq!(function_name(2400), Some("array_recv"));
        for name in tables_of("pg_catalog").chain(tables_of("information_schema")) {
            assert!(columns_of(name).is_some_and(|columns| !columns.is_empty()), "{name}");
            Table { name, columns: "", rows: vec![vec![]] }.batch().expect(name);
        }
    }
}
