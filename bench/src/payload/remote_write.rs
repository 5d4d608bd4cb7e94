//! Remote write 1.0: `WriteRequest { timeseries = 1 { labels = 1 { name = 1, value = 2 },
//! samples = 2 { value = 1, timestamp = 2 } } }`, every label spelled out in every series.

use super::protobuf::{bytes_size, put_bytes, put_head, put_sample, sample_size};
use crate::workload::LabelSet;

/// Appends the field of one label to a series' bytes.
pub fn put_label(name: &str, value: &str, out: &mut Vec<u8>) {
    put_head(1, bytes_size(name.len()) + bytes_size(value.len()), out);
    put_bytes(1, name.as_bytes(), out);
    put_bytes(2, value.as_bytes(), out);
}

/// Appends a series with one sample to a request. Its labels come in two encoded pieces, the
/// metric's name and the rest, so that ten metrics of one host share the rest.
#[inline]
pub fn put_series(name: &[u8], tags: &[u8], value: f64, timestamp_ms: i64, out: &mut Vec<u8>) {
    let size = sample_size(timestamp_ms);
    put_head(1, name.len() + tags.len() + bytes_size(size), out);
    out.extend_from_slice(name);
    out.extend_from_slice(tags);
    put_head(2, size, out);
    put_sample(value, timestamp_ms, out);
}

/// Appends a series with one sample; `scratch` is only memory to reuse.
pub fn put_labels_series(
    labels: &LabelSet,
    value: f64,
    timestamp_ms: i64,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    scratch.clear();
    put_label("__name__", labels.metric_name(), scratch);
    for (name, label_value) in labels.tags() {
        put_label(name, label_value, scratch);
    }
    put_series(scratch, &[], value, timestamp_ms, out);
}

/// Appends a series with several samples, as after a pause of the network; `scratch` is only memory
/// to reuse.
pub fn put_labels_samples(
    labels: &LabelSet,
    samples: &[(f64, i64)],
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    scratch.clear();
    put_label("__name__", labels.metric_name(), scratch);
    for (name, label_value) in labels.tags() {
        put_label(name, label_value, scratch);
    }
    let sizes = samples.iter().map(|(_, timestamp_ms)| bytes_size(sample_size(*timestamp_ms)));
    put_head(1, scratch.len() + sizes.sum::<usize>(), out);
    out.extend_from_slice(scratch);
    for (value, timestamp_ms) in samples {
        put_head(2, sample_size(*timestamp_ms), out);
        put_sample(*value, *timestamp_ms, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::{Field, fields};
    use super::*;

    #[test]
    fn a_series_decodes_to_its_labels_and_sample() {
        let mut labels = LabelSet::default();
        labels.set_metric_name("m");
        labels.push("a", &"x".repeat(200));
        let (mut scratch, mut out) = (Vec::new(), Vec::new());
        put_labels_series(&labels, 2.5, 1_451_606_400_000, &mut scratch, &mut out);
        put_labels_series(&labels, 0.0, 1, &mut scratch, &mut out);
        let request = fields(&out);
        assert_eq!(request.len(), 2);
        let (1, Field::Bytes(series)) = request[0] else { panic!("{request:?}") };
        let series = fields(series);
        assert_eq!(series.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 1, 2]);
        let Field::Bytes(label) = series[1].1 else { panic!("{series:?}") };
        let value = "x".repeat(200);
        assert_eq!(fields(label), [(1, Field::Bytes(b"a")), (2, Field::Bytes(value.as_bytes()))]);
        let Field::Bytes(sample) = series[2].1 else { panic!("{series:?}") };
        let expected = [(1, Field::Fixed(2.5f64.to_bits())), (2, Field::Varint(1_451_606_400_000))];
        assert_eq!(fields(sample), expected);
    }
}
