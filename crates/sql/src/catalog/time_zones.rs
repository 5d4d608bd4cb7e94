//! `pg_timezone_names` and `pg_timezone_abbrevs`, with offsets at the time when the table is read.

use crate::catalog::cells::{Cell, Table, text, yes};
use crate::types::time::zone_abbreviations::{abbreviations, is_summer};
use crate::types::time::zones::Zone;

/// The time zones by name. Each row has the offset from UTC at `now_us`.
pub fn names(now_us: i64) -> Table {
    let row = |name: String| {
        let zone = Zone::named(&name).ok()?;
        let clock = zone.at(now_us)?;
        let offset = Cell::Interval(i64::from(clock.offset));
        let is_summer = yes(zone.is_summer_at(now_us));
        Some(vec![text(&name), text(&clock.abbreviation), offset, is_summer])
    };
    let names = jiff::tz::db().available().map(|name| name.to_string());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Table {
        name: "pg_timezone_names",
        columns: "",
        rows: names.into_iter().filter_map(row).collect(),
    }
}

/// The abbreviations of time zones.
pub fn abbreviated() -> Table {
    let row = |(name, seconds): (&str, i32)| {
        let offset = Cell::Interval(i64::from(seconds));
        vec![text(&name.to_ascii_uppercase()), offset, yes(is_summer(name))]
    };
    Table { name: "pg_timezone_abbrevs", columns: "", rows: abbreviations().map(row).collect() }
}
