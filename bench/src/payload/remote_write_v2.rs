//! Remote write 2.0: `Request { symbols = 4, timeseries = 5 { labels_refs = 1 (packed),
//! samples = 2, metadata = 5 { type = 1 } } }`: strings once a request, labels as pairs of numbers.

use super::protobuf::{bytes_size, put_bytes, put_head, put_sample, put_varint, sample_size};
use crate::workload::LabelSet;
use std::collections::HashMap;

/// Field number of a symbol in a request.
pub const SYMBOL: u32 = 4;
/// Field number of a series in a request.
pub const SERIES: u32 = 5;
/// `METRIC_TYPE_GAUGE`.
const GAUGE: u8 = 2;

/// Appends a series with one sample to a request, as a gauge. The encoded references come in two
/// pieces, the metric's name and the rest.
#[inline]
pub fn put_series(name: &[u8], tags: &[u8], value: f64, timestamp_ms: i64, out: &mut Vec<u8>) {
    let sample = sample_size(timestamp_ms);
    let refs = name.len() + tags.len();
    put_head(SERIES, bytes_size(refs) + bytes_size(sample) + 4, out);
    put_head(1, refs, out);
    out.extend_from_slice(name);
    out.extend_from_slice(tags);
    put_head(2, sample, out);
    put_sample(value, timestamp_ms, out);
    out.extend_from_slice(&[5 << 3 | 2, 2, 1 << 3, GAUGE]);
}

/// Collects one request's series and the table of their strings.
#[derive(Default)]
pub struct RequestBuilder {
    /// Where a string stands in the table; 0 is the empty string, as the protocol demands.
    symbols: HashMap<Box<str>, u32>,
    symbol_bytes: Vec<u8>,
    series_bytes: Vec<u8>,
    refs: Vec<u8>,
}

impl RequestBuilder {
    /// Adds a series with one sample.
    pub fn push(&mut self, labels: &LabelSet, value: f64, timestamp_ms: i64) {
        self.refs.clear();
        self.push_ref("__name__");
        self.push_ref(labels.metric_name());
        for (name, label_value) in labels.tags() {
            self.push_ref(name);
            self.push_ref(label_value);
        }
        put_series(&self.refs, &[], value, timestamp_ms, &mut self.series_bytes);
    }

    /// Appends the request to `out` and starts the next one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        put_bytes(SYMBOL, b"", out);
        out.extend_from_slice(&self.symbol_bytes);
        out.extend_from_slice(&self.series_bytes);
        self.symbols.clear();
        self.symbol_bytes.clear();
        self.series_bytes.clear();
    }

    fn push_ref(&mut self, text: &str) {
        let idx = match self.symbols.get(text) {
            Some(idx) => *idx,
            None => {
                let idx = self.symbols.len() as u32 + 1;
                self.symbols.insert(text.into(), idx);
                put_bytes(SYMBOL, text.as_bytes(), &mut self.symbol_bytes);
                idx
            }
        };
        put_varint(u64::from(idx), &mut self.refs);
    }
}

/// Label pairs, value and time in milliseconds, for tests.
#[cfg(test)]
pub type DecodedSample = (Vec<(String, String)>, f64, i64);

/// Decodes a request, for tests.
#[cfg(test)]
pub fn decode(request: &[u8]) -> Vec<DecodedSample> {
    use super::protobuf::{Field, fields, take_varint};
    let mut symbols = Vec::new();
    let mut decoded = Vec::new();
    for field in fields(request) {
        match field {
            (SYMBOL, Field::Bytes(text)) => symbols.push(String::from_utf8(text.into()).unwrap()),
            (SERIES, Field::Bytes(series)) => {
                let series = fields(series);
                let (1, Field::Bytes(mut refs)) = series[0] else { panic!("{series:?}") };
                let (2, Field::Bytes(sample)) = series[1] else { panic!("{series:?}") };
                let mut labels = Vec::new();
                while !refs.is_empty() {
                    let name = symbols[take_varint(&mut refs) as usize].clone();
                    labels.push((name, symbols[take_varint(&mut refs) as usize].clone()));
                }
                let sample = fields(sample);
                let [(1, Field::Fixed(bits)), (2, Field::Varint(timestamp))] = sample[..] else {
                    panic!("{sample:?}")
                };
                decoded.push((labels, f64::from_bits(bits), timestamp as i64));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(symbols.first().map(String::as_str), Some(""));
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_decodes_to_its_series() {
        let mut builder = RequestBuilder::default();
        for request in 0..2 {
            for series in 0..300 {
                let mut labels = LabelSet::default();
                labels.set_metric_name("m");
                labels.push("a", &format!("value {series}"));
                builder.push(&labels, f64::from(series), 1_451_606_400_000 + request);
            }
            let mut out = Vec::new();
            builder.finish(&mut out);
            let decoded = decode(&out);
            assert_eq!(decoded.len(), 300);
            let expected = [
                ("__name__".to_string(), "m".to_string()),
                ("a".to_string(), "value 299".to_string()),
            ];
            assert_eq!(decoded[299], (expected.to_vec(), 299.0, 1_451_606_400_000 + request));
        }
    }
}
