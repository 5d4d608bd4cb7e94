//! Requests of both versions, for load generators and tests: the counterpart of the decoders.

use crate::narrow::body_offset;
use crate::protobuf::{put_bytes, put_double, put_number, put_varint};
use model::Metadata;
use std::collections::HashMap;

/// A sample as remote write has it: value and milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MillisSample {
    /// Milliseconds since the epoch.
    pub millis: i64,
    /// Any bits.
    pub value: f64,
}

/// A sample or histogram, and since when it counts, of which version 2.0 alone knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Started<S> {
    /// What counts.
    pub sample: S,
    /// Its start timestamp: milliseconds since the epoch, 0 for none.
    pub start_millis: i64,
}

/// Builds a request of version 1.0, series by series.
#[derive(Default)]
pub struct RequestV1 {
    bytes: Vec<u8>,
    /// Reused for each series.
    series: Vec<u8>,
    /// Reused for each part of a series.
    part: Vec<u8>,
}

impl RequestV1 {
    /// An empty request.
    pub fn new() -> RequestV1 {
        RequestV1::default()
    }

    /// Adds a series; labels in the order given, which should be by name.
    pub fn series(&mut self, labels: &[(&str, &str)], samples: &[MillisSample]) {
        self.series_and(labels, samples, |_| {});
    }

    /// Adds a series with more fields than labels and samples.
    pub(super) fn series_and(
        &mut self,
        labels: &[(&str, &str)],
        samples: &[MillisSample],
        put_more: impl FnOnce(&mut Vec<u8>),
    ) {
        self.series.clear();
        for (name, value) in labels {
            put_label(&mut self.series, &mut self.part, name, value);
        }
        for sample in samples {
            put_sample(&mut self.series, &mut self.part, sample);
        }
        put_more(&mut self.series);
        put_bytes(&mut self.bytes, 1, &self.series);
    }

    /// Adds what is known of a metric.
    pub fn metadata(&mut self, metadata: &Metadata) {
        self.part.clear();
        put_number(&mut self.part, 1, metadata.kind as u64);
        put_bytes(&mut self.part, 2, metadata.metric.as_bytes());
        put_bytes(&mut self.part, 4, metadata.help.as_bytes());
        put_bytes(&mut self.part, 5, metadata.unit.as_bytes());
        put_bytes(&mut self.bytes, 3, &self.part);
    }

    /// The message so far, uncompressed.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Starts a new request in the same memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Builds a request of version 2.0, series by series.
pub struct RequestV2 {
    symbols: Vec<u8>,
    by_symbol: HashMap<String, u32>,
    series: Vec<u8>,
    /// Reused for each series and its parts.
    message: Vec<u8>,
    part: Vec<u8>,
}

impl Default for RequestV2 {
    fn default() -> RequestV2 {
        RequestV2::new()
    }
}

impl RequestV2 {
    /// An empty request; symbol 0 is the empty string.
    pub fn new() -> RequestV2 {
        let mut request = RequestV2 {
            symbols: Vec::new(),
            by_symbol: HashMap::new(),
            series: Vec::new(),
            message: Vec::new(),
            part: Vec::new(),
        };
        request.symbol("");
        request
    }

    /// Adds a series; labels in the order given, which should be by name.
    pub fn series(
        &mut self,
        labels: &[(&str, &str)],
        samples: &[MillisSample],
        metadata: Option<&Metadata>,
    ) {
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        let mut refs = Vec::with_capacity(4 * labels.len());
        for (name, value) in labels {
            put_varint(&mut refs, u64::from(self.symbol(name)));
            put_varint(&mut refs, u64::from(self.symbol(value)));
        }
        put_bytes(&mut message, 1, &refs);
        for sample in samples {
            put_sample(&mut message, &mut self.part, sample);
        }
        if let Some(metadata) = metadata {
            let (help, unit) = (self.symbol(&metadata.help), self.symbol(&metadata.unit));
            self.part.clear();
            put_number(&mut self.part, 1, metadata.kind as u64);
            put_number(&mut self.part, 3, u64::from(help));
            put_number(&mut self.part, 4, u64::from(unit));
            put_bytes(&mut message, 5, &self.part);
        }
        put_bytes(&mut self.series, 5, &message);
        self.message = message;
    }

    /// Adds a series of which all but the labels are fields already.
    pub(super) fn series_of(&mut self, labels: &[(&str, &str)], fields: &[u8]) {
        let mut refs = Vec::with_capacity(4 * labels.len());
        for (name, value) in labels {
            put_varint(&mut refs, u64::from(self.symbol(name)));
            put_varint(&mut refs, u64::from(self.symbol(value)));
        }
        self.message.clear();
        put_bytes(&mut self.message, 1, &refs);
        self.message.extend_from_slice(fields);
        put_bytes(&mut self.series, 5, &self.message);
    }

    /// The message so far, uncompressed.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.symbols.as_slice(), self.series.as_slice()].concat()
    }

    fn symbol(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.by_symbol.get(text) {
            return known;
        }
        let id = body_offset(self.by_symbol.len());
        self.by_symbol.insert(text.to_string(), id);
        put_bytes(&mut self.symbols, 4, text.as_bytes());
        id
    }
}

pub(crate) fn put_label(out: &mut Vec<u8>, part: &mut Vec<u8>, name: &str, value: &str) {
    part.clear();
    put_bytes(part, 1, name.as_bytes());
    put_bytes(part, 2, value.as_bytes());
    put_bytes(out, 1, part);
}

pub(crate) fn put_sample(out: &mut Vec<u8>, part: &mut Vec<u8>, sample: &MillisSample) {
    put_started_sample(out, part, &Started { sample: *sample, start_millis: 0 });
}

pub(super) fn put_started_sample(
    out: &mut Vec<u8>,
    part: &mut Vec<u8>,
    started: &Started<MillisSample>,
) {
    let Started { sample, start_millis } = started;
    part.clear();
    put_double(part, 1, sample.value);
    put_number(part, 2, sample.millis as u64);
    if *start_millis != 0 {
        put_number(part, 3, *start_millis as u64);
    }
    put_bytes(out, 2, part);
}
