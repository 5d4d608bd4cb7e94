//! Small tables written down: a line of columns, rows of cells.

use crate::error::SqlError;
use crate::jsonb_functions::TYPE_KEY;
use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    ListBuilder, RecordBatch, StringViewBuilder,
};
use datafusion::arrow::datatypes::{Field, Schema};
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
    /// `i` `int4`, `s` `int2`, `o` `oid`, `f` `float4`, `l` `int8`, `a` `text[]`, `m` `int2[]`, `v` `int2vector`,
    /// `w` `oidvector`.
    pub columns: &'static str,
    /// As many cells as columns each.
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

    /// Its rows as columns.
    ///
    /// # Errors
    /// When a row does not fit.
    pub fn batch(&self) -> Result<RecordBatch, SqlError> {
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (at, column) in self.columns.split_whitespace().enumerate() {
            let (name, kind) = column.split_once(':').unwrap_or((column, "t"));
            let cells = self.rows.iter().map(|row| row.get(at).unwrap_or(&Cell::Null));
            let array = array_of(kind, cells).ok_or_else(|| {
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

/// PostgreSQL's type, where arrow's is another's.
fn type_of(kind: &str) -> Option<&'static str> {
    match kind {
        "o" => Some("oid"),
        "n" => Some("name"),
        "c" => Some("char"),
        "v" => Some("int2vector"),
        "w" => Some("oidvector"),
        _ => None,
    }
}

fn array_of<'a>(kind: &str, cells: impl Iterator<Item = &'a Cell>) -> Option<ArrayRef> {
    macro_rules! built {
        ($builder:expr, $cells:expr, $pattern:pat => $value:expr) => {{
            let mut builder = $builder;
            for cell in $cells {
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
        "i" | "o" => built!(Int32Builder::new(), cells, Cell::Number(number) => *number),
        "s" => {
            built!(Int16Builder::new(), cells, Cell::Number(number) => i16::try_from(*number).ok()?)
        }
        "l" => built!(Int64Builder::new(), cells, Cell::Long(number) => *number),
        "m" | "v" => {
            let mut builder = ListBuilder::new(Int16Builder::new());
            for cell in cells {
                let numbers = numbers_of(cell)?;
                let short = numbers.map(|all| all.iter().map(|one| i16::try_from(*one).ok()));
                builder.append_option(short);
            }
            Arc::new(builder.finish())
        }
        "w" => {
            let mut builder = ListBuilder::new(Int32Builder::new());
            for cell in cells {
                let numbers = numbers_of(cell)?;
                builder.append_option(numbers.map(|all| all.iter().map(|one| Some(*one))));
            }
            Arc::new(builder.finish())
        }
        "b" => built!(BooleanBuilder::new(), cells, Cell::Bool(yes) => *yes),
        "f" => built!(Float64Builder::new(), cells, Cell::Float(number) => *number),
        "a" => {
            let mut builder = ListBuilder::new(StringViewBuilder::new());
            for cell in cells {
                match cell {
                    Cell::Null => builder.append_null(),
                    Cell::Texts(all) => builder.append_value(all.iter().map(Some)),
                    _ => return None,
                }
            }
            Arc::new(builder.finish())
        }
        _ => built!(StringViewBuilder::new(), cells, Cell::Text(text) => text),
    })
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
