//! `pg_timezone_names` and `pg_timezone_abbrevs`, with offsets at the time when the table is read.

use super::cells::{Cell, Table, text, yes};
use crate::zone_abbreviations::abbreviations;
use crate::zones::Zone;

/// The time zones by name. Each row has the offset from UTC at `now_us`.
pub fn names(now_us: i64) -> Table {
    let row = |name: String| {
        let (zone, at) = Zone::named(&name).ok().and_then(|zone| Some((zone.at(now_us)?, name)))?;
        let is_summer = Zone::named(&at).is_ok_and(|zone| zone.is_summer_at(now_us));
        let offset = Cell::Interval(i64::from(zone.offset));
        Some(vec![text(&at), text(&zone.abbreviation), offset, yes(is_summer)])
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
        let is_summer = name.ends_with("dt") || name.ends_with("st") && name.contains("su");
        let offset = Cell::Interval(i64::from(seconds));
        vec![text(&name.to_ascii_uppercase()), offset, yes(is_summer)]
    };
    Table { name: "pg_timezone_abbrevs", columns: "", rows: abbreviations().map(row).collect() }
}
