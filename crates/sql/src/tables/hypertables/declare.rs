//! `create_hypertable`: an empty table becomes one whose rows are samples.

use crate::tables::heap::column_defaults::is_numbered;
use crate::tables::hypertables::shape::{CanBe, Hypertable, may_be_label};
use crate::types::error::SqlError;
use model::limits::{FIELDS_PER_LINE_MAX, LABELS_PER_SERIES_MAX};
use tables::Schema;

const KINDS: &str = "Labels are text, boolean, uuid, jsonb and whole numbers; values are double precision, real, and \
                     whole numbers that timescaledb.segmentby does not name.";
/// Labels of a series beside those of columns: its metric, and its table.
const OWN_LABELS: usize = 2;

/// What `create_hypertable` was called with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// The table.
    pub table: String,
    /// The column of the time; the first that may be it for none.
    pub time: Option<String>,
    /// A column that rows are told apart by.
    pub partitioned_by: Option<String>,
    /// The columns that rows are told apart by, if they are said: other whole numbers are values.
    pub segment_by: Option<Vec<String>>,
    /// Whether it is no error that it is one already.
    pub if_not_exists: bool,
}

/// What is said of a new hypertable: which rows are one, and how whole numbers become values.
pub fn notices(table: &Hypertable, asking: &Asking) -> Vec<String> {
    let columns = &table.schema.columns;
    let all = |places: &[usize]| {
        let names = places.iter().map(|at| columns[*at].name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let told_apart: Vec<usize> = [&[table.time], table.labels.as_slice()].concat();
    let mut notices = vec![format!(
        "a row takes the place of an earlier one with the same {}; its values are {}",
        all(&told_apart),
        all(&table.values)
    )];
    let is_whole = |at: &usize| CanBe::of(columns[*at].ty) == CanBe::Either;
    let whole: Vec<usize> = table.labels.iter().copied().filter(is_whole).collect();
    if asking.segment_by.is_none() && asking.partitioned_by.is_none() && !whole.is_empty() {
        notices.push(format!(
            "whole numbers tell rows apart, as {} here: if one is measured, say ALTER TABLE {} SET \
             (timescaledb.segmentby = 'the columns that tell rows apart') while it is empty",
            all(&whole),
            table.name
        ));
    }
    notices
}

/// What a table of so many rows looks like once it is a hypertable.
///
/// # Errors
/// When it cannot be one.
pub fn declare(mut schema: Schema, row_count: usize, asking: &Asking) -> Result<Schema, SqlError> {
    if row_count != 0 {
        let words = format!("table \"{}\" is not empty", asking.table);
        let hint = "Make a hypertable with the same columns, and INSERT INTO it .. SELECT.";
        return Err(SqlError::unsupported(words).with_hint(hint));
    }
    if let Some(constraint) = schema.constraints.first() {
        let words = format!(
            "\"{}\" cannot be kept: a row of a hypertable takes the place of the one with the same \
             time and labels, and no other column is unique",
            constraint.name
        );
        let hint = "Leave PRIMARY KEY and UNIQUE out, or keep the table as an ordinary one.";
        return Err(SqlError::unsupported(words).with_hint(hint));
    }
    if let Some(column) = schema.columns.iter().find(|one| is_numbered(&schema, &one.name)) {
        let words = format!("column \"{}\" is numbered: rows of a hypertable are not", column.name);
        return Err(SqlError::unsupported(words));
    }
    let time = time_of(&schema, asking)?;
    let partitioned_by = match &asking.partitioned_by {
        Some(name) => Some(schema.column(name).ok_or_else(|| no_column(name))?),
        None => None,
    };
    let named = match &asking.segment_by {
        Some(names) => {
            let place = |name: &String| schema.column(name).ok_or_else(|| no_column(name));
            Some(names.iter().map(place).collect::<Result<Vec<_>, _>>()?)
        }
        None => None,
    };
    if let Some(at) =
        named.iter().flatten().find(|at| !CanBe::of(schema.columns[**at].ty).is_label())
    {
        let words = format!("column \"{}\" cannot be a label", schema.columns[*at].name);
        return Err(SqlError::new("42804", words).with_hint(KINDS));
    }
    // Rows that nothing tells apart would take each other's places: better a label too many.
    let is_named = |at: usize| named.as_ref().is_none_or(|named| named.contains(&at));
    let mut labels = Vec::new();
    for at in (0..schema.columns.len()).filter(|at| *at != time) {
        let column = &schema.columns[at];
        match CanBe::of(column.ty) {
            CanBe::Label => labels.push(at),
            CanBe::Either if is_named(at) || partitioned_by == Some(at) => labels.push(at),
            CanBe::Either | CanBe::Value => {}
            CanBe::Time | CanBe::Nothing => {
                let words = format!(
                    "column \"{}\" can be neither a label nor a value of a hypertable",
                    column.name
                );
                return Err(SqlError::unsupported(words).with_hint(KINDS));
            }
        }
    }
    check(&schema, &labels)?;
    Hypertable::say(&mut schema, time, &labels);
    schema.columns[time].is_nullable = false;
    Ok(schema)
}

fn check(schema: &Schema, labels: &[usize]) -> Result<(), SqlError> {
    if let Some(at) = labels.iter().find(|at| !may_be_label(&schema.columns[**at].name)) {
        let words = format!("no label may be called \"{}\"", schema.columns[*at].name);
        return Err(SqlError::new("42602", words));
    }
    let labels_max = LABELS_PER_SERIES_MAX - OWN_LABELS;
    if labels_max < labels.len() {
        let words = format!("{} columns are labels: {labels_max} are the most", labels.len());
        return Err(SqlError::limit(words));
    }
    let values = schema.columns.len() - labels.len() - 1;
    match values {
        0 => {
            let words = "no column is a value: a row of a hypertable has at least one";
            Err(SqlError::new("42P16", words).with_hint(KINDS))
        }
        1..=FIELDS_PER_LINE_MAX => Ok(()),
        _ => {
            let words = format!("{values} columns are values: {FIELDS_PER_LINE_MAX} are the most");
            Err(SqlError::limit(words))
        }
    }
}

fn time_of(schema: &Schema, asking: &Asking) -> Result<usize, SqlError> {
    let is_time = |at: &usize| CanBe::of(schema.columns[*at].ty) == CanBe::Time;
    let Some(name) = &asking.time else {
        let words = "create_hypertable needs the column of the time";
        return (0..schema.columns.len())
            .find(is_time)
            .ok_or_else(|| SqlError::new("42883", words));
    };
    let at = schema.column(name).ok_or_else(|| no_column(name))?;
    match is_time(&at) {
        true => Ok(at),
        false => {
            let words = format!("column \"{name}\" is no timestamp");
            let hint = "The time of a hypertable is timestamptz or timestamp.";
            Err(SqlError::new("42804", words).with_hint(hint))
        }
    }
}

fn no_column(name: &str) -> SqlError {
    SqlError::new("42703", format!("column \"{name}\" does not exist"))
}
