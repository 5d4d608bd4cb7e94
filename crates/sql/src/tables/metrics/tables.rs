//! The tables that are there without anybody making them: what a row is, and what its columns are
//! called. pg_prometheus and pg_prometheus_cx have the same under different names.

use crate::types::special_fields::jsonb_field;
use crate::types::time::zones::ZONE;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The whole sample as a line of exposition text.
    Sample,
    /// When.
    Time,
    /// The metric's name.
    Name,
    /// What.
    Value,
    /// All other labels.
    Labels,
    /// The number of a series: 63 bits of the hash of its labels, the same for ever.
    SeriesId,
}

impl Column {
    /// What a sample is inserted as, in the order of `metrics`.
    pub const OF_SAMPLES: [Column; 5] =
        [Column::Sample, Column::Time, Column::Name, Column::Value, Column::Labels];

    /// Its names in one table or another, pg_prometheus' first.
    fn names(self) -> &'static [&'static str] {
        match self {
            Column::Sample => &["sample"],
            Column::Time => &["time", "ts"],
            Column::Name => &["name", "metric", "metric_name"],
            Column::Value => &["value"],
            Column::Labels => &["labels"],
            Column::SeriesId => &["labels_id", "id"],
        }
    }

    /// Its name in pg_prometheus' `metrics`.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Whether it has that name in one table or another.
    pub fn is_named(self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// It as a column of that name.
    pub fn field(self, name: &str) -> Field {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
        match self {
            Column::Sample | Column::Name => Field::new(name, DataType::Utf8View, false),
            Column::Time => Field::new(name, micros, false),
            Column::Value => Field::new(name, DataType::Float64, false),
            Column::Labels => jsonb_field(name, false),
            Column::SeriesId => Field::new(name, DataType::Int64, false),
        }
    }
}

/// What a column of a table shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shows {
    /// A part of a sample.
    Part(Column),
    /// The value of a label, none where a series has no such label.
    Label(Arc<str>),
}

impl Shows {
    /// It as a column of that name.
    pub fn field(&self, name: &str) -> Field {
        match self {
            Shows::Part(column) => column.field(name),
            Shows::Label(_) => Field::new(name, DataType::Utf8View, true),
        }
    }
}

/// What has a row in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Each sample.
    Samples,
    /// Each series.
    Series,
    /// Nothing: what goes in comes out elsewhere.
    None,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What its rows are.
    pub rows: Rows,
    /// Its columns by their names.
    pub columns: &'static [(Column, &'static str)],
    /// Whether samples may be copied and inserted into it.
    pub takes_samples: bool,
}

impl Table {
    /// What its columns show, and their names.
    pub fn shows(&self) -> Vec<(Shows, String)> {
        let one = |(column, name): &(Column, &str)| (Shows::Part(*column), name.to_string());
        self.columns.iter().map(one).collect()
    }
}

/// Columns as DataFusion knows them.
pub fn schema_of(columns: &[(Shows, String)]) -> SchemaRef {
    let fields = columns.iter().map(|(shows, name)| shows.field(name));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

const LINE: &[(Column, &str)] = &[(Column::Sample, "sample")];
const LABELS: &[(Column, &str)] =
    &[(Column::SeriesId, "id"), (Column::Name, "metric_name"), (Column::Labels, "labels")];

/// All tables.
pub const TABLES: &[Table] = &[
    Table {
        name: "metrics",
        rows: Rows::Samples,
        columns: &[
            (Column::Sample, "sample"),
            (Column::Time, "time"),
            (Column::Name, "name"),
            (Column::Value, "value"),
            (Column::Labels, "labels"),
        ],
        takes_samples: true,
    },
    Table {
        name: "metrics_cx",
        rows: Rows::Samples,
        columns: &[
            (Column::Sample, "sample"),
            (Column::Time, "ts"),
            (Column::Name, "metric"),
            (Column::Value, "value"),
            (Column::Labels, "labels"),
        ],
        takes_samples: true,
    },
    Table { name: "metrics_copy", rows: Rows::None, columns: LINE, takes_samples: true },
    Table { name: "metrics_samples", rows: Rows::Samples, columns: LINE, takes_samples: true },
    Table {
        name: "metrics_values",
        rows: Rows::Samples,
        columns: &[
            (Column::Time, "time"),
            (Column::Value, "value"),
            (Column::SeriesId, "labels_id"),
        ],
        takes_samples: false,
    },
    Table { name: "metrics_labels", rows: Rows::Series, columns: LABELS, takes_samples: false },
    Table { name: "metrics_cx_copy", rows: Rows::None, columns: LINE, takes_samples: true },
    Table { name: "metrics_cx_samples", rows: Rows::Samples, columns: LINE, takes_samples: true },
    Table {
        name: "metrics_cx_values",
        rows: Rows::Samples,
        columns: &[(Column::Time, "ts"), (Column::Value, "value"), (Column::SeriesId, "labels_id")],
        takes_samples: false,
    },
    Table { name: "metrics_cx_labels", rows: Rows::Series, columns: LABELS, takes_samples: false },
];
