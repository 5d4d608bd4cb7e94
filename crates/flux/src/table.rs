//! Tables: columns of one type each. Those of the group key have one value for all rows.

use crate::value::{Kind, Record, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Bytes that a table and each of its columns take beside their cells, about.
const COLUMN_SIZE: usize = 64;

/// The cells of a column; vectors are shared by tables that differ in other columns.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// The same for all rows.
    Same(Value),
    Times(Arc<Vec<i64>>),
    Floats(Arc<Vec<f64>>),
    Values(Arc<Vec<Value>>),
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    /// Whether it is of the group key: then its data is [`Data::Same`].
    pub(crate) is_key: bool,
    pub(crate) data: Data,
}

impl Column {
    /// A column of the group key.
    pub(crate) fn key(name: &str, value: Value) -> Column {
        let kind = value.kind().unwrap_or(Kind::Text);
        Column { name: name.into(), kind, is_key: true, data: Data::Same(value) }
    }

    pub(crate) fn times(name: &str, times: Vec<i64>) -> Column {
        let data = Data::Times(Arc::new(times));
        Column { name: name.into(), kind: Kind::Time, is_key: false, data }
    }

    pub(crate) fn floats(name: &str, values: Vec<f64>) -> Column {
        let data = Data::Floats(Arc::new(values));
        Column { name: name.into(), kind: Kind::Float, is_key: false, data }
    }

    pub(crate) fn values(name: &str, kind: Kind, values: Vec<Value>) -> Column {
        let data = Data::Values(Arc::new(values));
        Column { name: name.into(), kind, is_key: false, data }
    }

    pub(crate) fn get(&self, row: usize) -> Value {
        match &self.data {
            Data::Same(value) => value.clone(),
            Data::Times(times) => times.get(row).map_or(Value::Null, |time| Value::Time(*time)),
            Data::Floats(values) => {
                values.get(row).map_or(Value::Null, |value| Value::Float(*value))
            }
            Data::Values(values) => values.get(row).cloned().unwrap_or_default(),
        }
    }

    /// A number, if there is one.
    pub(crate) fn number(&self, row: usize) -> Option<f64> {
        match &self.data {
            Data::Floats(values) => values.get(row).copied(),
            Data::Values(values) => values.get(row).and_then(Value::as_f64),
            Data::Same(value) => value.as_f64(),
            Data::Times(_) => None,
        }
    }

    pub(crate) fn time(&self, row: usize) -> Option<i64> {
        match &self.data {
            Data::Times(times) => times.get(row).copied(),
            _ => match self.get(row) {
                Value::Time(time) => Some(time),
                _ => None,
            },
        }
    }

    fn picked(&self, rows: &[usize]) -> Column {
        let data = match &self.data {
            Data::Same(value) => Data::Same(value.clone()),
            Data::Times(times) => Data::Times(Arc::new(
                rows.iter().filter_map(|row| times.get(*row).copied()).collect(),
            )),
            Data::Floats(values) => Data::Floats(Arc::new(
                rows.iter().filter_map(|row| values.get(*row).copied()).collect(),
            )),
            Data::Values(_) => {
                Data::Values(Arc::new(rows.iter().map(|row| self.get(*row)).collect()))
            }
        };
        Column { data, ..self.clone() }
    }

    fn size(&self) -> usize {
        let text = text_size;
        COLUMN_SIZE
            + self.name.len()
            + match &self.data {
                Data::Same(value) => text(value),
                Data::Times(times) => times.len() * 8,
                Data::Floats(values) => values.len() * 8,
                Data::Values(values) => {
                    values.len() * size_of::<Value>()
                        + if self.kind == Kind::Text { values.iter().map(text).sum() } else { 0 }
                }
            }
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: usize,
    /// The time that was asked for: windows end with it.
    pub(crate) bounds: Option<(i64, i64)>,
}

impl Table {
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| &*column.name == name)
    }

    /// Only those rows, in that order.
    pub(crate) fn picked(&self, rows: &[usize]) -> Table {
        let columns = self.columns.iter().map(|column| column.picked(rows)).collect();
        Table { columns, rows: rows.len(), bounds: self.bounds }
    }

    /// Those rows; nulls beside the group key where there is none.
    pub(crate) fn picked_or_null(&self, rows: &[Option<usize>]) -> Table {
        if let Some(rows) = rows.iter().copied().collect::<Option<Vec<usize>>>() {
            return self.picked(&rows);
        }
        let columns = self.columns.iter().map(|column| match column.is_key {
            true => column.clone(),
            false => {
                let cells = rows.iter().map(|row| row.map_or(Value::Null, |row| column.get(row)));
                Column { data: Data::Values(Arc::new(cells.collect())), ..column.clone() }
            }
        });
        Table { columns: columns.collect(), rows: rows.len(), bounds: self.bounds }
    }

    /// The same with another column, in the place of one with that name if there is one.
    pub(crate) fn set(&mut self, column: Column) {
        match self.columns.iter_mut().find(|other| other.name == column.name) {
            Some(other) => *other = column,
            None => self.columns.push(column),
        }
    }

    /// The group key's columns alone, for one row or more.
    pub(crate) fn key_alone(&self, rows: usize) -> Table {
        let columns = self.columns.iter().filter(|column| column.is_key).cloned().collect();
        Table { columns, rows, bounds: self.bounds }
    }

    pub(crate) fn row(&self, row: usize) -> Record {
        let fields = self.columns.iter().map(|column| (column.name.clone(), column.get(row)));
        Record::row(fields.collect())
    }

    /// Bytes of memory, about.
    pub(crate) fn size(&self) -> usize {
        COLUMN_SIZE + self.columns.iter().map(Column::size).sum::<usize>()
    }

    /// The group key, by name.
    pub(crate) fn key(&self) -> Key {
        let keys = self.columns.iter().filter(|column| column.is_key);
        let mut key: Vec<(Arc<str>, Value)> =
            keys.map(|column| (column.name.clone(), column.get(0))).collect();
        key.sort_by(|a, b| a.0.cmp(&b.0));
        Key(key)
    }
}

/// A group key: names, sorted, and values.
#[derive(Clone, Debug)]
pub(crate) struct Key(pub(crate) Vec<(Arc<str>, Value)>);

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        for ((name, value), (other_name, other_value)) in self.0.iter().zip(&other.0) {
            let order = name.cmp(other_name).then_with(|| value.order(other_value));
            if order != Ordering::Equal {
                return order;
            }
        }
        self.0.len().cmp(&other.0.len())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

/// Bytes of a cell beside the cell itself.
fn text_size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        _ => 0,
    }
}

/// A column that grows.
#[derive(Clone, Debug)]
struct Growing {
    name: Arc<str>,
    kind: Kind,
    is_key: bool,
    data: Grown,
}

/// Cells so far: as long as all are the same there is one.
#[derive(Clone, Debug)]
enum Grown {
    Same(Value),
    Times(Vec<i64>),
    Floats(Vec<f64>),
    Values(Vec<Value>),
}

impl Growing {
    fn value(&self, row: usize) -> Value {
        match &self.data {
            Grown::Same(value) => value.clone(),
            Grown::Times(times) => Value::Time(times[row]),
            Grown::Floats(values) => Value::Float(values[row]),
            Grown::Values(values) => values[row].clone(),
        }
    }

    /// One more cell, behind `rows` others; how many bytes of memory that takes.
    fn push(&mut self, value: Value, rows: usize) -> usize {
        let size = text_size(&value);
        if rows == 0 {
            self.data = match value {
                Value::Float(value) => Grown::Floats(vec![value]),
                Value::Time(time) if !self.is_key => Grown::Times(vec![time]),
                value => Grown::Same(value),
            };
            return size;
        }
        match (&mut self.data, value) {
            (Grown::Floats(values), Value::Float(value)) => {
                values.push(value);
                size_of::<f64>()
            }
            (Grown::Times(times), Value::Time(time)) => {
                times.push(time);
                size_of::<i64>()
            }
            (Grown::Values(values), value) => {
                values.push(value);
                size_of::<Value>() + size
            }
            (Grown::Same(same), value)
                if same.kind() == value.kind() && same.order(&value) == Ordering::Equal =>
            {
                0
            }
            (_, value) => {
                let mut values: Vec<Value> = (0..rows).map(|row| self.value(row)).collect();
                values.push(value);
                self.data = Grown::Values(values);
                (rows + 1) * size_of::<Value>() + size
            }
        }
    }
}

/// A table that grows by rows. The first rows say what columns there are; later ones may add some,
/// which are null before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Builder {
    columns: Vec<Growing>,
    pub(crate) rows: usize,
    pub(crate) bounds: Option<(i64, i64)>,
}

impl Builder {
    /// The place of a column, which is added if it is not there.
    fn at(
        &mut self,
        column: &Column,
        is_key: &dyn Fn(&str) -> bool,
    ) -> Result<usize, (Kind, Kind)> {
        let (name, kind) = (&column.name, column.kind);
        if let Some(at) = self.columns.iter().position(|grown| grown.name == *name) {
            return match self.columns[at].kind == kind {
                true => Ok(at),
                false => Err((self.columns[at].kind, kind)),
            };
        }
        let data = Grown::Same(Value::Null);
        self.columns.push(Growing { name: name.clone(), kind, is_key: is_key(name), data });
        Ok(self.columns.len() - 1)
    }

    /// One more row of a table; `is_key` says which columns are of the group key. Tells how many
    /// bytes of memory that takes.
    ///
    /// # Errors
    /// The two types of a column that changes its type.
    pub(crate) fn push(
        &mut self,
        table: &Table,
        row: usize,
        is_key: &dyn Fn(&str) -> bool,
    ) -> Result<usize, (Kind, Kind)> {
        let rows = self.rows;
        let before = self.columns.len();
        let mut size = 0;
        for (idx, column) in table.columns.iter().enumerate() {
            let is_same = self.columns.get(idx).is_some_and(|grown| {
                Arc::ptr_eq(&grown.name, &column.name) && grown.kind == column.kind
            });
            let at = match is_same {
                true => idx,
                false => self.at(column, is_key)?,
            };
            size += self.columns[at].push(column.get(row), rows);
        }
        if table.columns.len() < self.columns.len() {
            for grown in &mut self.columns {
                if table.column(&grown.name).is_none() {
                    size += grown.push(Value::Null, rows);
                }
            }
        }
        self.rows += 1;
        Ok(size + (self.columns.len() - before) * COLUMN_SIZE)
    }

    /// What has grown.
    pub(crate) fn finish(self) -> Table {
        let columns = self.columns.into_iter().map(|grown| Column {
            name: grown.name,
            kind: grown.kind,
            is_key: grown.is_key,
            data: match grown.data {
                Grown::Same(value) => Data::Same(value),
                Grown::Times(times) => Data::Times(Arc::new(times)),
                Grown::Floats(values) if grown.is_key => {
                    Data::Same(values.first().map_or(Value::Null, |value| Value::Float(*value)))
                }
                Grown::Floats(values) => Data::Floats(Arc::new(values)),
                Grown::Values(values) if grown.is_key => {
                    Data::Same(values.into_iter().next().unwrap_or_default())
                }
                Grown::Values(values) => Data::Values(Arc::new(values)),
            },
        });
        Table { columns: columns.collect(), rows: self.rows, bounds: self.bounds }
    }
}

/// Rows by their group keys.
#[derive(Debug, Default)]
pub(crate) struct Grouped {
    of_key: std::collections::BTreeMap<Key, usize>,
    builders: Vec<Builder>,
}

impl Grouped {
    /// The table of a key.
    pub(crate) fn builder(&mut self, key: Key, bounds: Option<(i64, i64)>) -> &mut Builder {
        let next = self.builders.len();
        let at = *self.of_key.entry(key).or_insert(next);
        if at == next {
            self.builders.push(Builder { bounds, ..Builder::default() });
        }
        &mut self.builders[at]
    }

    /// All tables, in the order of their keys.
    pub(crate) fn finish(self) -> impl Iterator<Item = Table> {
        let mut builders: Vec<Option<Builder>> = self.builders.into_iter().map(Some).collect();
        self.of_key.into_values().filter_map(move |at| builders[at].take().map(Builder::finish))
    }
}
