//! Exemplars as bytes: the payload of a log record, and the content of their file. Described byte
//! for byte in `docs/format/exemplars.md`.
//!
//! ```text
//! exemplar = series  timestamp u64  flags u8  value u64  varint size  labels
//! series   = varint 0  varint size  labels          a series that comes for the first time
//!          | varint n                               the n-th of those before, from 1
//! ```

use codec::{Reader, put_u64, put_varint};
use hashbrown::HashMap;
use model::{Exemplar, Labels};
use std::sync::Arc;

/// Bytes of the labels of a series that may have exemplars, and of an exemplar.
pub const LABELS_SIZE_MAX: usize = 1 << 20;
/// The sender said when.
const HAS_TIMESTAMP: u8 = 1;

/// Encodes exemplars one after the other.
#[derive(Default)]
pub struct ExemplarEncoder {
    bytes: Vec<u8>,
    /// By series, its number.
    series: HashMap<Arc<Labels>, u64>,
}

/// The most bytes of an exemplar, with its series.
pub fn exemplar_size_max(series: &Labels, exemplar: &Exemplar) -> usize {
    // Number, time, flags, value, and the sizes of both label sets.
    const REST: usize = 10 + 8 + 1 + 8 + 2 * 10;
    REST + series.as_bytes().len() + exemplar.labels.as_bytes().len()
}

impl ExemplarEncoder {
    /// Adds an exemplar of a series.
    pub fn push(&mut self, series: &Arc<Labels>, exemplar: &Exemplar) {
        assert!(!series.is_empty(), "a series has a name");
        match self.series.get(series) {
            Some(number) => put_varint(&mut self.bytes, *number),
            None => {
                let number = self.series.len() as u64 + 1;
                self.series.insert(Arc::clone(series), number);
                put_varint(&mut self.bytes, 0);
                put_labels(&mut self.bytes, series);
            }
        }
        put_u64(&mut self.bytes, exemplar.timestamp as u64);
        self.bytes.push(if exemplar.has_timestamp { HAS_TIMESTAMP } else { 0 });
        put_u64(&mut self.bytes, exemplar.value.to_bits());
        put_labels(&mut self.bytes, &exemplar.labels);
    }

    /// What was encoded.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Encodes a label set.
pub(crate) fn put_labels(out: &mut Vec<u8>, labels: &Labels) {
    let bytes = labels.as_bytes();
    assert!(bytes.len() <= LABELS_SIZE_MAX, "larger ones are refused before");
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decodes what [`ExemplarEncoder`] wrote.
///
/// # Errors
/// When the bytes are no such list.
pub fn decode_exemplars(payload: &[u8]) -> Result<Vec<(Arc<Labels>, Exemplar)>, codec::Error> {
    let mut reader = Reader::new(payload);
    let (mut series, mut all) = (Vec::new(), Vec::new());
    while !reader.is_empty() {
        let of = match reader.varint()? {
            0 => {
                let labels = Arc::new(read_labels(&mut reader)?);
                if labels.is_empty() {
                    return Err(reader.corrupt("a series without labels"));
                }
                series.push(Arc::clone(&labels));
                labels
            }
            number => {
                let idx = usize::try_from(number - 1).unwrap_or(usize::MAX);
                let known = series.get(idx).map(Arc::clone);
                known.ok_or_else(|| reader.corrupt("a series that did not come before"))?
            }
        };
        let timestamp = reader.u64()? as i64;
        let flags = reader.u8()?;
        if flags & !HAS_TIMESTAMP != 0 {
            return Err(reader.corrupt("unknown flags of an exemplar"));
        }
        let value = f64::from_bits(reader.u64()?);
        let labels = read_labels(&mut reader)?;
        let has_timestamp = flags == HAS_TIMESTAMP;
        all.push((of, Exemplar { labels, value, timestamp, has_timestamp }));
    }
    Ok(all)
}

/// Decodes what [`put_labels`] wrote.
pub(crate) fn read_labels(reader: &mut Reader<'_>) -> Result<Labels, codec::Error> {
    let size = reader.varint_size(LABELS_SIZE_MAX)?;
    let labels = Labels::from_canonical(reader.slice(size)?);
    labels.ok_or_else(|| reader.corrupt("labels that are not canonical"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exemplars_come_back() {
        let series = ["a", "b"].map(|name| Arc::new(Labels::from_pairs(&[("__name__", name)])));
        let exemplar = |timestamp, value, has_timestamp| Exemplar {
            labels: Labels::from_pairs(&[("trace_id", "x")]),
            value,
            timestamp,
            has_timestamp,
        };
        let unlabelled = Exemplar { labels: Labels::default(), ..exemplar(0, -0.0, true) };
        let all = [
            (&series[0], exemplar(i64::MIN, 1.5, true)),
            (&series[1], exemplar(i64::MAX, f64::INFINITY, false)),
            (&series[0], unlabelled),
            (&series[1], exemplar(5, 1e300, true)),
        ];
        let mut encoder = ExemplarEncoder::default();
        all.iter().for_each(|(series, exemplar)| encoder.push(series, exemplar));
        let bytes = encoder.into_bytes();
        let decoded = decode_exemplars(&bytes).unwrap();
        let decoded: Vec<_> = decoded.iter().map(|(series, one)| (series, one.clone())).collect();
        assert_eq!(decoded, all);
        let ends = (0..bytes.len()).filter(|cut| decode_exemplars(&bytes[..*cut]).is_ok());
        assert_eq!(ends.count(), all.len(), "only between two exemplars");
    }

    #[test]
    fn the_bytes_are_those_of_the_document() {
        let series = Arc::new(Labels::from_pairs(&[("__name__", "a")]));
        let labels = Labels::from_pairs(&[("t", "xy")]);
        let one = Exemplar { labels, value: 1.0, timestamp: 258, has_timestamp: true };
        let labels = Labels::default();
        let two = Exemplar { labels, value: 1.0, timestamp: -1, has_timestamp: false };
        let mut encoder = ExemplarEncoder::default();
        encoder.push(&series, &one);
        encoder.push(&series, &two);
        let golden =
            b"\0\x0b\x08__name__\x01a\x02\x01\0\0\0\0\0\0\x01\0\0\0\0\0\0\xf0?\x05\x01t\x02xy\
            \x01\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\xf0?\0";
        assert_eq!(encoder.into_bytes(), golden);
        let decoded = decode_exemplars(golden).unwrap();
        assert_eq!((decoded.len(), decoded[1].1.timestamp), (2, -1));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let mut one = ExemplarEncoder::default();
        let series = Arc::new(Labels::from_pairs(&[("__name__", "a")]));
        let labels = Labels::default();
        one.push(&series, &Exemplar { labels, value: 1.0, timestamp: 1, has_timestamp: true });
        let bytes = one.into_bytes();
        for (offset, byte, what) in [
            (0, 1, "a series that did not come before"),
            (1, 0, "a series without labels"),
            (2, 0, "labels that are not canonical"),
            (bytes.len() - 10, 2, "unknown flags of an exemplar"),
        ] {
            let mut bytes = bytes.clone();
            bytes[offset] = byte;
            let error = decode_exemplars(&bytes).unwrap_err();
            assert_eq!(error.what, what);
        }
        for byte in 0..=255 {
            for offset in 0..bytes.len() {
                let mut bytes = bytes.clone();
                bytes[offset] = byte;
                drop(decode_exemplars(&bytes));
            }
        }
    }
}
