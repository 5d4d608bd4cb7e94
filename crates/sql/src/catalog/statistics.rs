//! Views of statistics and of sequences (<https://www.postgresql.org/docs/15/monitoring-stats.html>).
//!
//! Nobody counts how often a table is read or changed here: such counters are 0.

use crate::catalog::cells::{Cell, Table, number, text, yes};
use crate::catalog::keys;
use crate::catalog::names::ROLE;
use crate::catalog::relations::Relation;

/// Counters of a table.
const COUNTERS: usize = 10;

/// The views, of these relations.
pub fn tables(relations: &[Relation]) -> Vec<Table> {
    let names = ["pg_stat_user_tables", "pg_stat_all_tables", "pg_sequences"];
    names.into_iter().filter_map(|name| table(name, relations)).collect()
}

/// The view of a name, if it is one of these.
pub fn table(name: &str, relations: &[Relation]) -> Option<Table> {
    Some(match name {
        "pg_stat_user_tables" => table_statistics("pg_stat_user_tables", relations),
        "pg_stat_all_tables" => table_statistics("pg_stat_all_tables", relations),
        "pg_sequences" => sequences(relations),
        _ => return None,
    })
}

fn table_statistics(name: &'static str, relations: &[Relation]) -> Table {
    let row = |one: &Relation| {
        let mut row = vec![number(one.oid), text("public"), text(&one.name)];
        row.extend((0..COUNTERS).map(|_| Cell::Long(0)));
        row
    };
    // The numbers of living and dead rows are estimates, and NULL here.
    let columns = "relid:o schemaname:n relname:n seq_scan:l seq_tup_read:l n_tup_ins:l n_tup_upd:l \
                   n_tup_del:l n_tup_hot_upd:l vacuum_count:l autovacuum_count:l analyze_count:l \
                   autoanalyze_count:l";
    let rows = relations.iter().filter(|one| one.view.is_none()).map(row).collect();
    Table { name, columns, rows }
}

fn sequences(relations: &[Relation]) -> Table {
    let row = |(name, greatest): (String, i64)| {
        let mut row = vec![text("public"), text(&name), text(ROLE), Cell::Null];
        row.extend([1, 1, greatest, 1].map(Cell::Long));
        row.extend([yes(false), Cell::Long(1)]);
        row
    };
    let columns = "schemaname:n sequencename:n sequenceowner:n data_type:o start_value:l min_value:l \
                   max_value:l increment_by:l cycle:b cache_size:l";
    Table {
        name: "pg_sequences",
        columns,
        rows: keys::sequence_bounds(relations).map(row).collect(),
    }
}
