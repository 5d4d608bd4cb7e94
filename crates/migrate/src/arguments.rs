//! Arguments of the command line that copies and comparisons have in common.

use anyhow::{Context as _, bail};
use clap::ArgMatches;
use model::{TimeRange, Timestamp};
use vfs::{RealVfs, Vfs};
use wire::params::parse_time;

/// Text of an argument; empty without one.
pub fn text<'m>(matches: &'m ArgMatches, name: &str) -> &'m str {
    matches.get_one::<String>(name).map(String::as_str).unwrap_or_default()
}

/// The time that the arguments name.
pub fn time_of(matches: &ArgMatches) -> anyhow::Result<TimeRange> {
    let now = RealVfs::new().now();
    let instant = |name: &str, default: Timestamp| match text(matches, name) {
        "" => Ok(default),
        said => parse_time(said, now).with_context(|| format!("--{name} {said}")),
    };
    let range = TimeRange::new(instant("start", i64::MIN)?, instant("end", now)?);
    match range.is_empty() {
        true => bail!("--end is before --start"),
        false => Ok(range),
    }
}
