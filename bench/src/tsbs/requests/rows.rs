//! Wide rows for COPY, after the rows of the hosts' tags.
//!
//! ```text
//! INSERT INTO tags VALUES (1,'host_0','eu-west-1',..),..    first, the worker's own hosts
//! COPY cpu FROM STDIN\n 2016-01-01T00:00:00Z\t1\t58\t2..    then a row a host and instant
//! ```
//!
//! Host n has the number n + 1 in `tags`, so rows need no answer of the server. Tags that are
//! there already, as after a restart, are left alone.

use super::Fragment;
use crate::instant::{SECOND_NS, format_rfc3339};
use crate::payload::copy;
use crate::tsbs::FIELDS;
use crate::tsbs::fleet::Fleet;
use crate::tsbs::walk::Walks;
use std::ops::Range;

/// Renders statements and rows.
pub(super) struct Rows<'a> {
    fleet: &'a Fleet,
    /// Hosts whose tags are not sent yet.
    untold: Range<u32>,
    /// `\t0` to `\t100`.
    values: Box<[Fragment; 101]>,
}

impl<'a> Rows<'a> {
    /// Renders what does not change.
    pub fn new(fleet: &'a Fleet, hosts: Range<u32>) -> Rows<'a> {
        let values = std::array::from_fn(|value| Fragment::new(&format!("\t{value}")));
        Rows { fleet, untold: hosts, values: Box::new(values) }
    }

    /// Writes the tags of the next hosts, at most so many; false when all are told.
    pub fn put_tags(&mut self, hosts_max: usize, out: &mut Vec<u8>) -> bool {
        if self.untold.is_empty() {
            return false;
        }
        let end = (u64::from(self.untold.start) + hosts_max as u64).min(u64::from(self.untold.end));
        let hosts = self.untold.start..end as u32;
        self.untold.start = hosts.end;
        let rows = hosts.map(|host| {
            let tags = self.fleet.tags(host).map(|(_, value)| format!("'{value}'"));
            format!("({},{})", u64::from(host) + 1, tags.join(","))
        });
        let rows = rows.collect::<Vec<_>>().join(",\n");
        let statement = format!("INSERT INTO tags VALUES {rows} ON CONFLICT (id) DO NOTHING");
        out.extend_from_slice(statement.as_bytes());
        true
    }

    /// Appends the rows of some hosts at one instant.
    pub fn put(
        &self,
        hosts: Range<u32>,
        row: u64,
        timestamp_ns: i64,
        walks: &mut Walks,
        out: &mut Vec<u8>,
    ) {
        if out.is_empty() {
            out.extend_from_slice(copy::COPY_CPU.as_bytes());
        }
        let start = Fragment::new(&format!("{}\t", format_microseconds(timestamp_ns)));
        for host in hosts {
            out.reserve(FIELDS.len() * 4 + 64);
            start.put(out);
            let mut number = itoa::Buffer::new();
            out.extend_from_slice(number.format(u64::from(host) + 1).as_bytes());
            for value in walks.next(host, row) {
                self.values[value as usize].put(out);
            }
            out.push(b'\n');
        }
    }
}

/// A time with microseconds, which is what a `timestamptz` keeps.
fn format_microseconds(timestamp_ns: i64) -> String {
    let text = format_rfc3339(timestamp_ns);
    match timestamp_ns.rem_euclid(SECOND_NS) / 1000 {
        0 => text,
        fraction => format!("{}.{fraction:06}Z", text.trim_end_matches('Z')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds_when_they_need_them() {
        assert_eq!(format_microseconds(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_microseconds(1_500_000), "1970-01-01T00:00:00.001500Z");
        assert_eq!(format_microseconds(-1_000_000), "1969-12-31T23:59:59.999000Z");
    }
}
