//! Small tables written down: a line of columns, rows of cells.

use crate::catalog::layout;
use crate::catalog::layout::Column;
use crate::types::error::SqlError;
use crate::types::special_fields::TYPE_KEY;
use crate::types::time::zones::ZONE;
use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder,
    Int64Builder, IntervalMonthDayNanoBuilder, ListBuilder, RecordBatch, StringViewBuilder,
    TimestampMicrosecondBuilder, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, IntervalMonthDayNano, Schema};
use datafusion::arrow::error::ArrowError;
use std::collections::HashMap;
use std::sync::Arc;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// None.
    Null,
    /// Of `int2`, `int4` or `oid`.
    Number(i32),
    /// A text, a name or one letter.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// Of `int8`.
    Long(i64),
    /// Of `float4`.
    Float(f64),
    /// An interval of whole seconds.
    Interval(i64),
    /// A list of numbers.
    Numbers(Vec<i32>),
    /// A list of texts.
    Texts(Vec<String>),
}

/// A text.
pub fn text(text: &str) -> Cell {
    Cell::Text(text.to_string())
}

/// A number.
pub fn number(number: i32) -> Cell {
    Cell::Number(number)
}

/// Yes or no.
pub fn yes(yes: bool) -> Cell {
    Cell::Bool(yes)
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, `name:type` each; the types are `n` name, `t` text, `c` one letter, `b` yes or no,
    /// `i` `int4`, `s` `int2`, `o` `oid`, `f` `float8`, `r` `float4`, `l` `int8`, `a` `text[]`, `N` `name[]`, `m` `int2[]`,
    /// `O` `oid[]`, `R` `float8[]`, `v` `int2vector`, `w` `oidvector`, `p` `regproc`, `x` `xid`, `V` `varchar`, `B` `bytea`,
    /// `z` `timestamptz`, `I` `interval`. Empty where the rows have the columns of PostgreSQL's table.
    pub columns: &'static str,
    /// At most as many cells as columns each. Columns of PostgreSQL's table that are not named are NULL, or nothing
    /// of their type where PostgreSQL has no NULL.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The same of a database that is called otherwise, if it is.
    pub fn of_database(mut self, known: &str, own: &str) -> Table {
        if own.is_empty() || own == known {
            return self;
        }
        let names: Vec<&str> = self.columns.split_whitespace().collect();
        let is_database = |at: usize| {
            let name =
                names.get(at).and_then(|column| column.split(':').next()).unwrap_or_default();
            name.ends_with("_catalog") || name == "catalog_name"
        };
        for row in &mut self.rows {
            for (at, cell) in row.iter_mut().enumerate() {
                if is_database(at) && *cell == text(known) {
                    *cell = text(own);
                }
            }
        }
        self
    }

    /// Its columns as PostgreSQL orders them, those of its own last; each with its place in the rows.
    fn placed_columns(&self) -> Vec<(Column, Option<usize>)> {
        let own = |(at, text): (usize, &'static str)| {
            let (name, kind) = text.split_once(':').unwrap_or((text, "t"));
            (Column { name, kind, is_required: false }, Some(at))
        };
        let own: Vec<_> = self.columns.split_whitespace().enumerate().map(own).collect();
        let Some(layout) = layout::columns_of(self.name) else { return own };
        if own.is_empty() {
            return layout.iter().copied().zip((0..).map(Some)).collect();
        }
        let place = |name: &str| own.iter().position(|(column, _)| column.name == name);
        let known = layout.iter().map(|column| (*column, place(column.name)));
        let is_other = |(column, _): &&(Column, Option<usize>)| {
            layout.iter().all(|known| known.name != column.name)
        };
        known.chain(own.iter().filter(is_other).copied()).collect()
    }

    /// Its rows as columns.
    ///
    /// # Errors
    /// When a row does not fit.
    pub fn batch(&self) -> Result<RecordBatch, SqlError> {
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (column, at) in self.placed_columns() {
            let missing = if column.is_required { nothing_of(column.kind) } else { Cell::Null };
            let cell = |row: &'_ Vec<Cell>| match at.and_then(|at| row.get(at)) {
                Some(Cell::Null) | None => missing.clone(),
                Some(cell) => cell.clone(),
            };
            let cells: Vec<Cell> = self.rows.iter().map(cell).collect();
            let (name, kind) = (column.name, column.kind);
            let array = array_of(kind, &cells).ok_or_else(|| {
                SqlError::unexpected(format!("{}.{name}: a cell of another type", self.name))
            })?;
            let field = Field::new(name, array.data_type().clone(), true);
            let metadata = type_of(kind).map(|one| (TYPE_KEY.to_string(), one.to_string()));
            fields.push(field.with_metadata(HashMap::from_iter(metadata)));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        batch.map_err(|error: ArrowError| SqlError::unexpected(format!("{}: {error}", self.name)))
    }
}

/// No value of a kind, where NULL is none.
fn nothing_of(kind: &str) -> Cell {
    match kind {
        "b" => Cell::Bool(false),
        "i" | "s" | "o" | "x" | "p" => Cell::Number(0),
        "l" => Cell::Long(0),
        "f" | "r" => Cell::Float(0.0),
        "m" | "v" | "w" | "O" => Cell::Numbers(Vec::new()),
        "a" | "N" => Cell::Texts(Vec::new()),
        "n" | "t" | "c" | "V" => Cell::Text(String::new()),
        _ => Cell::Null,
    }
}

/// PostgreSQL's type, where arrow's is another's.
fn type_of(kind: &str) -> Option<&'static str> {
    match kind {
        "o" => Some("oid"),
        "n" => Some("name"),
        "c" => Some("char"),
        "v" => Some("int2vector"),
        "w" => Some("oidvector"),
        "p" => Some("regproc"),
        "x" => Some("xid"),
        "V" => Some("varchar"),
        "N" => Some("name[]"),
        "O" => Some("oid[]"),
        _ => None,
    }
}

fn array_of(kind: &str, cells: &[Cell]) -> Option<ArrayRef> {
    macro_rules! built {
        ($builder:expr, $pattern:pat => $value:expr) => {{
            let mut builder = $builder;
            for cell in cells {
                match cell {
                    Cell::Null => builder.append_null(),
                    $pattern => builder.append_value($value),
                    _ => return None,
                }
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    Some(match kind {
        "i" | "o" | "x" => built!(Int32Builder::new(), Cell::Number(number) => *number),
        "p" => functions(cells)?,
        "s" => built!(Int16Builder::new(), Cell::Number(number) => i16::try_from(*number).ok()?),
        "l" => built!(Int64Builder::new(), Cell::Long(number) => *number),
        "m" | "v" => short_numbers(cells)?,
        "w" | "O" => numbers(cells)?,
        "b" => built!(BooleanBuilder::new(), Cell::Bool(yes) => *yes),
        "f" => built!(Float64Builder::new(), Cell::Float(number) => *number),
        "r" => built!(Float32Builder::new(), Cell::Float(number) => *number as f32),
        "a" | "N" => texts(cells)?,
        "z" => {
            let builder = TimestampMicrosecondBuilder::new().with_timezone(ZONE);
            built!(builder, Cell::Long(micros) => *micros)
        }
        // Tables have these for things that are not here.
        "I" => {
            let seconds = |seconds: i64| IntervalMonthDayNano::new(0, 0, seconds * 1_000_000_000);
            built!(IntervalMonthDayNanoBuilder::new(), Cell::Interval(length) => seconds(*length))
        }
        "R" | "B" if cells.iter().any(|cell| *cell != Cell::Null) => return None,
        "R" => new_null_array(&DataType::new_list(DataType::Float64, true), cells.len()),
        "B" => new_null_array(&DataType::Binary, cells.len()),
        _ => built!(StringViewBuilder::new(), Cell::Text(text) => text),
    })
}

/// Numbers of functions, which rows may have by their names.
fn functions(cells: &[Cell]) -> Option<ArrayRef> {
    let mut builder = Int32Builder::new();
    for cell in cells {
        match cell {
            Cell::Null => builder.append_null(),
            Cell::Number(oid) => builder.append_value(*oid),
            Cell::Text(name) => builder.append_value(layout::function_oid(name).unwrap_or(0)),
            _ => return None,
        }
    }
    Some(Arc::new(builder.finish()))
}

fn short_numbers(cells: &[Cell]) -> Option<ArrayRef> {
    let mut builder = ListBuilder::new(Int16Builder::new());
    for cell in cells {
        let numbers = numbers_of(cell)?;
        builder.append_option(numbers.map(|all| all.iter().map(|one| i16::try_from(*one).ok())));
    }
    Some(Arc::new(builder.finish()))
}

fn numbers(cells: &[Cell]) -> Option<ArrayRef> {
    let mut builder = ListBuilder::new(Int32Builder::new());
    for cell in cells {
        let numbers = numbers_of(cell)?;
        builder.append_option(numbers.map(|all| all.iter().map(|one| Some(*one))));
    }
    Some(Arc::new(builder.finish()))
}

fn texts(cells: &[Cell]) -> Option<ArrayRef> {
    let mut builder = ListBuilder::new(StringViewBuilder::new());
    for cell in cells {
        match cell {
            Cell::Null => builder.append_null(),
            Cell::Texts(all) => builder.append_value(all.iter().map(Some)),
            _ => return None,
        }
    }
    Some(Arc::new(builder.finish()))
}

/// The numbers of a cell that has a list of them, or is null; nothing of others.
#[expect(clippy::option_option, reason = "a null is no cell of another type")]
fn numbers_of(cell: &Cell) -> Option<Option<&[i32]>> {
    match cell {
        Cell::Null => Some(None),
        Cell::Numbers(all) => Some(Some(all)),
        _ => None,
    }
}
