//! Exposition text: a line a sample, with the host's labels spelled out in each.
//!
//! ```text
//! cpu_usage_user{hostname="host_0",region="..",..} 58 1451606400000
//! └── a name ───┘└── a host's tags, once a host ─┘└─┴─ fragments ─┘
//! ```

use super::{Fragment, Strings};
use crate::payload::exposition;
use crate::tsbs::fleet::Fleet;
use crate::tsbs::walk::Walks;
use crate::tsbs::{FIELDS, MEASUREMENT};
use std::ops::Range;

/// Renders exposition text.
pub(super) struct TextLines {
    /// `cpu_usage_user` and so on.
    names: [String; FIELDS.len()],
    /// `{hostname="host_0",..} ` of each host.
    tags: Strings,
    /// `0 ` to `100 `.
    values: Box<[Fragment; 101]>,
}

impl TextLines {
    /// Renders what does not change.
    pub fn new(fleet: &Fleet, hosts: Range<u32>) -> TextLines {
        let tags = Strings::new(hosts, |host, out| {
            out.push(b'{');
            for (name, value) in fleet.tags(host) {
                exposition::put_label(name, &value, out);
            }
            out.extend_from_slice(b"} ");
        });
        TextLines {
            names: FIELDS.map(|field| format!("{MEASUREMENT}_{field}")),
            tags,
            values: Box::new(std::array::from_fn(|value| Fragment::new(&format!("{value} ")))),
        }
    }

    /// Appends the lines of some hosts at one instant.
    pub fn put(
        &self,
        hosts: Range<u32>,
        row: u64,
        timestamp_ns: i64,
        walks: &mut Walks,
        out: &mut Vec<u8>,
    ) {
        let end = Fragment::new(&format!("{}\n", timestamp_ns / 1_000_000));
        for host in hosts {
            let values = walks.next(host, row);
            let tags = self.tags.get(host);
            for (name, value) in self.names.iter().zip(values) {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(tags);
                self.values[value as usize].put(out);
                end.put(out);
            }
        }
    }
}
