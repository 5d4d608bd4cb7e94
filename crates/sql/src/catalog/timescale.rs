//! `timescaledb_information`: what TimescaleDB's clients ask of hypertables, continuous aggregates and
//! policies (<https://docs.tigerdata.com/api/latest/informational-views/>).
//!
//! Chunks are not told of: partitions of the store hold the rows of all tables of their time.

use crate::catalog::cells::{Cell, Table, number, text, yes};
use crate::catalog::names::ROLE;
use crate::tables::heap::retention_policies::{Of, Policy};
use crate::tables::heap::stored_views::{Kind, View};
use crate::tables::heap::values::shown_type;
use crate::tables::hypertables::shape::Hypertable;
use std::sync::Arc;

const PUBLIC: &str = "public";
/// As TimescaleDB calls what carries such a policy out.
const RETENTION_PROC: (&str, &str) = ("_timescaledb_functions", "policy_retention");
/// Each policy is looked at as often.
const INTERVAL: &str = "00:01:00";

/// The tables that are told here.
pub fn told(name: &str, ordinary: &[Arc<tables::Table>], policies: &[Policy]) -> Option<Table> {
    Some(match name {
        "hypertables" => hypertables(ordinary),
        "dimensions" => dimensions(ordinary),
        "continuous_aggregates" => continuous_aggregates(ordinary),
        "jobs" => jobs(policies),
        _ => return None,
    })
}

/// All of them, where there is nothing to tell of.
pub fn tables() -> impl Iterator<Item = Table> {
    let names = ["hypertables", "dimensions", "continuous_aggregates", "jobs"];
    names.into_iter().filter_map(|name| told(name, &[], &[]))
}

fn hypertables_of(ordinary: &[Arc<tables::Table>]) -> impl Iterator<Item = Hypertable> {
    ordinary.iter().filter_map(|table| Hypertable::of(table.name(), table.schema()))
}

fn time_of(table: &Hypertable) -> (Cell, Cell) {
    let column = &table.schema.columns[table.time];
    (text(&column.name), text(&shown_type(column.ty)))
}

fn hypertables(ordinary: &[Arc<tables::Table>]) -> Table {
    let row = |table: Hypertable| {
        let (column, ty) = time_of(&table);
        vec![
            text(PUBLIC),
            text(&table.name),
            text(ROLE),
            number(1),
            Cell::Null,
            yes(true),
            Cell::Null,
            column,
            ty,
        ]
    };
    let columns = "hypertable_schema:n hypertable_name:n owner:n num_dimensions:s num_chunks:l \
                   compression_enabled:b tablespaces:a primary_dimension:n primary_dimension_type:n";
    Table { name: "hypertables", columns, rows: hypertables_of(ordinary).map(row).collect() }
}

fn dimensions(ordinary: &[Arc<tables::Table>]) -> Table {
    let row = |table: Hypertable| {
        let (column, ty) = time_of(&table);
        vec![
            text(PUBLIC),
            text(&table.name),
            Cell::Long(1),
            column,
            ty,
            text("Time"),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]
    };
    let columns = "hypertable_schema:n hypertable_name:n dimension_number:l column_name:n \
                   column_type:n dimension_type:t time_interval:t integer_interval:l \
                   integer_now_func:n num_partitions:s";
    Table { name: "dimensions", columns, rows: hypertables_of(ordinary).map(row).collect() }
}

fn continuous_aggregates(ordinary: &[Arc<tables::Table>]) -> Table {
    let row = |table: &Arc<tables::Table>| {
        let view = View::of(table.schema()).filter(|view| view.kind == Kind::Continuous)?;
        let of = view.reads.first().map_or(Cell::Null, |name| text(name));
        Some(vec![
            text(PUBLIC),
            of,
            text(PUBLIC),
            text(table.name()),
            text(ROLE),
            // It is worked out when it is asked.
            yes(false),
            yes(false),
            Cell::Null,
            Cell::Null,
            text(&view.query),
            yes(true),
        ])
    };
    let columns = "hypertable_schema:n hypertable_name:n view_schema:n view_name:n view_owner:n \
                   materialized_only:b compression_enabled:b materialization_hypertable_schema:n \
                   materialization_hypertable_name:n view_definition:t finalized:b";
    let rows = ordinary.iter().filter_map(row).collect();
    Table { name: "continuous_aggregates", columns, rows }
}

fn jobs(policies: &[Policy]) -> Table {
    let row = |policy: &Policy| {
        let (schema, name) = match &policy.of {
            Of::Table(name) => (text(PUBLIC), text(name)),
            Of::Metric(name) => (text("prom_metric"), text(name)),
            Of::Metrics => (Cell::Null, Cell::Null),
        };
        let after = policy.drop_after.replace('\\', "\\\\").replace('"', "\\\"");
        vec![
            number(i32::try_from(policy.job).unwrap_or(i32::MAX)),
            text(&format!("Retention Policy [{}]", policy.job)),
            text(INTERVAL),
            text(RETENTION_PROC.0),
            text(RETENTION_PROC.1),
            text(ROLE),
            yes(true),
            yes(false),
            text(&format!("{{\"drop_after\": \"{after}\"}}")),
            schema,
            name,
        ]
    };
    let columns = "job_id:i application_name:n schedule_interval:t proc_schema:n proc_name:n owner:n \
                   scheduled:b fixed_schedule:b config:t hypertable_schema:n hypertable_name:n";
    Table { name: "jobs", columns, rows: policies.iter().map(row).collect() }
}
