//! One worker's requests: its hosts, instant after instant, rendered for a protocol.
//!
//! Everything that repeats is rendered once: a host's tags, a field with each of its 101 values,
//! a row's timestamp. What remains per sample is a step of the walk and a copy of 32 bytes.

mod rows;
mod text;

use super::fleet::{Fleet, SORTED_TAGS, TAG_NAMES, host_name};
use super::walk::{Values, Walks};
use super::{FIELDS, MEASUREMENT, Scale};
use crate::payload::protobuf::{put_bytes, put_varint};
use crate::payload::{Protocol, remote_write, remote_write_v2};
use crate::random::mix_pair;
use crate::workload::{RequestFormat, Requests, Share};
use rows::Rows;
use text::TextLines;

/// The requests of a contiguous range of hosts.
pub struct CpuRequests<'a> {
    scale: &'a Scale,
    host_start: u32,
    host_end: u32,
    /// The next line.
    host: u32,
    row: u64,
    walks: Walks,
    lines_max: usize,
    renderer: Renderer<'a>,
}

enum Renderer<'a> {
    Influx(Lines),
    RemoteWrite(SpelledSeries),
    RemoteWriteV2(ReferringSeries<'a>),
    Exposition(TextLines),
    Copy(Rows<'a>),
}

impl<'a> CpuRequests<'a> {
    /// Renders what can be rendered beforehand.
    pub fn new(
        scale: &'a Scale,
        fleet: &'a Fleet,
        share: Share,
        format: RequestFormat,
    ) -> CpuRequests<'a> {
        assert!(share.idx < share.count, "{share:?}");
        let bound = |idx: u64| (u64::from(fleet.len()) * idx / share.count) as u32;
        let (host_start, host_end) = (bound(share.idx), bound(share.idx + 1));
        let hosts = host_start..host_end;
        let renderer = match format.protocol {
            Protocol::Influx => Renderer::Influx(Lines::new(fleet, hosts.clone())),
            Protocol::RemoteWrite => {
                Renderer::RemoteWrite(SpelledSeries::new(fleet, hosts.clone()))
            }
            Protocol::RemoteWriteV2 => Renderer::RemoteWriteV2(ReferringSeries::new(fleet)),
            Protocol::Exposition => Renderer::Exposition(TextLines::new(fleet, hosts.clone())),
            Protocol::Copy => Renderer::Copy(Rows::new(fleet, hosts.clone())),
        };
        let lines_max = match format.protocol {
            Protocol::Influx | Protocol::Copy => format.lines_max,
            _ => format.samples_max / FIELDS.len(),
        };
        CpuRequests {
            scale,
            host_start,
            host_end,
            host: host_start,
            row: 0,
            walks: Walks::new(hosts, mix_pair(scale.seed, scale.start_ns as u64)),
            lines_max: lines_max.max(1),
            renderer,
        }
    }

    /// The next lines that share an instant, as many as fit: their hosts and row.
    fn next_run(&mut self, lines_left: usize) -> Option<(std::ops::Range<u32>, u64)> {
        if self.host == self.host_end {
            self.host = self.host_start;
            self.row += 1;
        }
        if self.row >= self.scale.rows() || self.host_start == self.host_end {
            return None;
        }
        let end = u64::from(self.host_end).min(u64::from(self.host) + lines_left as u64) as u32;
        let hosts = self.host..end;
        self.host = end;
        Some((hosts, self.row))
    }
}

impl Requests for CpuRequests<'_> {
    fn next(&mut self, plain: &mut Vec<u8>) -> Option<u64> {
        plain.clear();
        if let Renderer::Copy(renderer) = &mut self.renderer
            && renderer.put_tags(self.lines_max, plain)
        {
            return Some(0);
        }
        let mut lines = 0;
        while lines < self.lines_max {
            let Some((hosts, row)) = self.next_run(self.lines_max - lines) else { break };
            lines += hosts.len();
            let timestamp_ns = self.scale.timestamp_ns(row);
            match &mut self.renderer {
                Renderer::Influx(renderer) => {
                    renderer.put(hosts, row, timestamp_ns, &mut self.walks, plain);
                }
                Renderer::RemoteWrite(renderer) => {
                    renderer.put(hosts, row, timestamp_ns, &mut self.walks, plain);
                }
                Renderer::RemoteWriteV2(renderer) => {
                    renderer.put(hosts, row, timestamp_ns, &mut self.walks);
                }
                Renderer::Exposition(renderer) => {
                    renderer.put(hosts, row, timestamp_ns, &mut self.walks, plain);
                }
                Renderer::Copy(renderer) => {
                    renderer.put(hosts, row, timestamp_ns, &mut self.walks, plain);
                }
            }
        }
        if let Renderer::RemoteWriteV2(renderer) = &mut self.renderer {
            renderer.finish(plain);
        }
        (lines > 0).then_some((lines * FIELDS.len()) as u64)
    }
}

/// Byte strings one after the other.
struct Strings {
    host_start: u32,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    fn new(hosts: std::ops::Range<u32>, mut write: impl FnMut(u32, &mut Vec<u8>)) -> Strings {
        let mut strings = Strings { host_start: hosts.start, bytes: Vec::new(), ends: vec![0] };
        for host in hosts {
            write(host, &mut strings.bytes);
            strings.ends.push(strings.bytes.len());
        }
        strings
    }

    #[inline]
    fn get(&self, host: u32) -> &[u8] {
        let idx = (host - self.host_start) as usize;
        &self.bytes[self.ends[idx]..self.ends[idx + 1]]
    }
}

/// A short text in a slot of fixed size: copied whole, then cut, which needs no call of memcpy.
#[derive(Clone, Copy)]
struct Fragment {
    bytes: [u8; Fragment::SIZE],
    size: u8,
}

impl Fragment {
    const SIZE: usize = 32;

    fn new(text: &str) -> Fragment {
        assert!(text.len() <= Fragment::SIZE, "{text:?} is too long for a fragment");
        let mut bytes = [0; Fragment::SIZE];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Fragment { bytes, size: text.len() as u8 }
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        out.truncate(start + self.size as usize);
    }
}

/// Line protocol.
struct Lines {
    /// `cpu,hostname=host_0,...,service_environment=test ` of each host.
    prefixes: Strings,
    /// `usage_user=0i,` to `usage_guest_nice=100i `.
    fields: Vec<[Fragment; 101]>,
}

impl Lines {
    fn new(fleet: &Fleet, hosts: std::ops::Range<u32>) -> Lines {
        let prefixes = Strings::new(hosts, |host, out| {
            out.extend_from_slice(MEASUREMENT.as_bytes());
            for (name, value) in fleet.tags(host) {
                out.extend_from_slice(format!(",{name}={value}").as_bytes());
            }
            out.push(b' ');
        });
        let render = |field: usize, value: usize| {
            let end = if field + 1 == FIELDS.len() { ' ' } else { ',' };
            Fragment::new(&format!("{}={value}i{end}", FIELDS[field]))
        };
        let fields = (0..FIELDS.len())
            .map(|field| std::array::from_fn(|value| render(field, value)))
            .collect();
        Lines { prefixes, fields }
    }

    fn put(
        &self,
        hosts: std::ops::Range<u32>,
        row: u64,
        timestamp_ns: i64,
        walks: &mut Walks,
        out: &mut Vec<u8>,
    ) {
        let end = Fragment::new(&format!("{timestamp_ns}\n"));
        for host in hosts {
            out.reserve(1024);
            out.extend_from_slice(self.prefixes.get(host));
            let values = walks.next(host, row);
            for (value, fragments) in values.iter().zip(&self.fields) {
                fragments[*value as usize].put(out);
            }
            end.put(out);
        }
    }
}

/// Remote write 1.0: the labels spelled out in each series.
struct SpelledSeries {
    names: Vec<Vec<u8>>,
    tags: Strings,
}

impl SpelledSeries {
    fn new(fleet: &Fleet, hosts: std::ops::Range<u32>) -> SpelledSeries {
        let names = FIELDS.iter().map(|field| {
            let mut bytes = Vec::new();
            remote_write::put_label("__name__", &format!("{MEASUREMENT}_{field}"), &mut bytes);
            bytes
        });
        let tags = Strings::new(hosts, |host, out| {
            let tags = fleet.tags(host);
            for tag in SORTED_TAGS {
                remote_write::put_label(tags[tag].0, &tags[tag].1, out);
            }
        });
        SpelledSeries { names: names.collect(), tags }
    }

    fn put(
        &self,
        hosts: std::ops::Range<u32>,
        row: u64,
        timestamp_ns: i64,
        walks: &mut Walks,
        out: &mut Vec<u8>,
    ) {
        let timestamp_ms = timestamp_ns / 1_000_000;
        for host in hosts {
            let values: Values = walks.next(host, row);
            for (name, value) in self.names.iter().zip(values) {
                let tags = self.tags.get(host);
                remote_write::put_series(name, tags, f64::from(value), timestamp_ms, out);
            }
        }
    }
}

/// Remote write 2.0: the labels as references into the request's table of symbols.
///
/// ```text
/// symbols: "" | __name__ | 10 metric names | 10 tag names | the fleet's words | host names
///          └──────────── the same in every request ──────────────────────────┘ └ of this one
/// ```
struct ReferringSeries<'a> {
    fleet: &'a Fleet,
    common_symbols: Vec<u8>,
    /// Reference of the first host name of a request.
    first_free: u64,
    next_free: u64,
    /// Encoded references of `__name__` and each metric.
    names: Vec<Vec<u8>>,
    host_symbols: Vec<u8>,
    series: Vec<u8>,
}

const FIRST_TAG_NAME: u64 = 2 + FIELDS.len() as u64;
const FIRST_WORD: u64 = FIRST_TAG_NAME + TAG_NAMES.len() as u64;

impl<'a> ReferringSeries<'a> {
    fn new(fleet: &'a Fleet) -> ReferringSeries<'a> {
        let mut common_symbols = Vec::new();
        let metrics = FIELDS.map(|field| format!("{MEASUREMENT}_{field}"));
        let fixed = ["", "__name__"].into_iter().chain(metrics.iter().map(String::as_str));
        let words = fleet.vocabulary().iter().map(String::as_str);
        for symbol in fixed.chain(TAG_NAMES).chain(words) {
            put_bytes(remote_write_v2::SYMBOL, symbol.as_bytes(), &mut common_symbols);
        }
        let names = (0..FIELDS.len() as u64).map(|field| vec![1, 2 + field as u8]).collect();
        let first_free = FIRST_WORD + fleet.vocabulary().len() as u64;
        ReferringSeries {
            fleet,
            common_symbols,
            first_free,
            next_free: first_free,
            names,
            host_symbols: Vec::new(),
            series: Vec::new(),
        }
    }

    fn put(&mut self, hosts: std::ops::Range<u32>, row: u64, timestamp_ns: i64, walks: &mut Walks) {
        let mut tags = Vec::with_capacity(64);
        for host in hosts {
            let symbol = host_name(host);
            put_bytes(remote_write_v2::SYMBOL, symbol.as_bytes(), &mut self.host_symbols);
            tags.clear();
            let words = self.fleet.words(host);
            for tag in SORTED_TAGS {
                put_varint(FIRST_TAG_NAME + tag as u64, &mut tags);
                let word =
                    if tag == 0 { self.next_free } else { FIRST_WORD + u64::from(words[tag - 1]) };
                put_varint(word, &mut tags);
            }
            self.next_free += 1;
            let values = walks.next(host, row);
            for (name, value) in self.names.iter().zip(values) {
                let timestamp_ms = timestamp_ns / 1_000_000;
                let value = f64::from(value);
                remote_write_v2::put_series(name, &tags, value, timestamp_ms, &mut self.series);
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.common_symbols);
        out.extend_from_slice(&self.host_symbols);
        out.extend_from_slice(&self.series);
        self.host_symbols.clear();
        self.series.clear();
        self.next_free = self.first_free;
    }
}

#[cfg(test)]
mod tests;
