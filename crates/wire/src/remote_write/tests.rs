//! Both versions against a plain reading of what was encoded.

use super::encode::{MillisSample, RequestV1, RequestV2};
use super::*;
use crate::protobuf::{put_bytes, put_double, put_number, put_varint};
use crate::{Decoded, Error, ExtraLabels};
use model::{KeyHasher, Labels, LabelsBuilder, Metadata};
use rng::Random;

fn labels_of(decoded: &Decoded<'_>, row: &Row) -> Result<Labels, String> {
    let batch = &decoded.batch;
    let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
    let key = batch.key(row);
    batch.decoder.tags(key, &mut tags).map_err(|error| error.to_string())?;
    batch.decoder.metric_name(key, "", &mut name).map_err(|error| error.to_string())?;
    tags.push("__name__", &name);
    Ok(tags.finish())
}

/// `(position, labels, nanoseconds, bits)` of every row.
fn rows(decoded: &Decoded<'_>) -> Vec<(u32, Labels, i64, u64)> {
    let rows = decoded.batch.rows.iter();
    rows.map(|row| {
        let value = decoded.batch.row_values(row)[0];
        (row.position, labels_of(decoded, row).unwrap(), row.timestamp, value.to_bits())
    })
    .collect()
}

fn keys() -> RemoteWriteKeys {
    RemoteWriteKeys::new(ExtraLabels::none())
}

fn first(request: &[u8]) -> Result<Decoded<'_>, Error> {
    // Leaked so that tests need not name the keys; a test's process is short.
    v1::decode(request, &KeyHasher::new(1), Box::leak(Box::new(keys())))
}

fn second(request: &[u8]) -> Result<Decoded<'_>, Error> {
    v2::decode(request, &KeyHasher::new(1), Box::leak(Box::new(keys())))
}

const SAMPLE: MillisSample = MillisSample { millis: 5, value: 1.5 };

#[test]
fn random_requests_come_back_in_both_versions() {
    let mut random = Random::seeded(0x5eed);
    for _ in 0..300 {
        let (mut one, mut two, mut want) = (RequestV1::new(), RequestV2::new(), Vec::new());
        for position in 0..random.below(20) as u32 {
            let name = format!("m{}", random.below(5));
            let others: Vec<(String, String)> = (0..random.below(12))
                .map(|idx| (format!("l{idx}"), "v".repeat(random.below(200) as usize)))
                .collect();
            let mut pairs = vec![("__name__", name.as_str())];
            pairs.extend(others.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            let samples: Vec<MillisSample> = (0..random.below(4))
                .map(|_| MillisSample {
                    millis: random.next() as i64 >> 21,
                    value: f64::from_bits(random.next()),
                })
                .collect();
            one.series(&pairs, &samples);
            two.series(&pairs, &samples, None);
            let labels = Labels::from_pairs(&pairs);
            want.extend(samples.iter().map(|sample| {
                (position, labels.clone(), sample.millis * 1_000_000, sample.value.to_bits())
            }));
        }
        let two = two.to_bytes();
        let (one, two) = (first(one.as_bytes()).unwrap(), second(&two).unwrap());
        assert_eq!(rows(&one), want);
        assert_eq!(rows(&two), want);
        for (a, b) in one.batch.rows.iter().zip(&two.batch.rows) {
            assert_eq!(a.hash, b.hash, "both versions name a series alike");
        }
    }
}

#[test]
fn labels_behind_samples_are_gathered() {
    let label = |name: &str, value: &str| {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 2, value.as_bytes());
        put_bytes(&mut bytes, 1, name.as_bytes());
        bytes
    };
    let (name, job) = (label("__name__", "up"), label("job", "x"));
    let mut sample = Vec::new();
    put_number(&mut sample, 2, 7);
    put_double(&mut sample, 1, 2.5);
    let mut series = Vec::new();
    put_bytes(&mut series, 1, &name);
    put_bytes(&mut series, 2, &sample);
    put_number(&mut series, 15, 9);
    put_bytes(&mut series, 1, &job);
    put_bytes(&mut series, 2, &sample);
    let mut request = Vec::new();
    put_bytes(&mut request, 1, &series);
    put_bytes(&mut request, 1, &series);
    let decoded = first(&request).unwrap();
    let labels = Labels::from_pairs(&[("__name__", "up"), ("job", "x")]);
    let bits = 2.5f64.to_bits();
    let row = |position| (position, labels.clone(), 7_000_000, bits);
    assert_eq!(rows(&decoded), [row(0), row(0), row(1), row(1)]);
}

#[test]
fn defaults_unknown_fields_and_extra_labels() {
    let mut series = Vec::new();
    let mut name = Vec::new();
    put_bytes(&mut name, 1, b"__name__");
    put_bytes(&mut name, 2, b"a");
    put_number(&mut name, 9, 1);
    put_bytes(&mut series, 1, &name);
    put_bytes(&mut series, 2, b"");
    let mut request = Vec::new();
    put_bytes(&mut request, 1, &series);
    put_bytes(&mut request, 12, b"unknown");
    let keys = RemoteWriteKeys::new(ExtraLabels::new(&[("dc", "1")]).unwrap());
    let decoded = v1::decode(&request, &KeyHasher::new(1), &keys).unwrap();
    let labels = Labels::from_pairs(&[("__name__", "a"), ("dc", "1")]);
    assert_eq!(rows(&decoded), [(0, labels, 0, 0)]);
}

#[test]
fn bad_labels_are_refused_when_the_store_asks() {
    for (pairs, want) in [
        (&[("a", "1")][..], "missing metric name (label __name__)"),
        (&[], "missing metric name (label __name__)"),
        (&[("__name__", "")], "missing metric name (label __name__)"),
        (&[("__name__", "a"), ("b", "1"), ("b", "2")], "duplicate label name \"b\""),
        (&[("__name__", "a"), ("__name__", "b")], "duplicate label name \"__name__\""),
        (&[("__name__", "a"), ("", "b")], "empty label name"),
    ] {
        let (mut one, mut two) = (RequestV1::new(), RequestV2::new());
        one.series(pairs, &[SAMPLE]);
        two.series(pairs, &[SAMPLE], None);
        let two = two.to_bytes();
        for decoded in [first(one.as_bytes()).unwrap(), second(&two).unwrap()] {
            assert_eq!(labels_of(&decoded, &decoded.batch.rows[0]), Err(want.to_string()));
        }
    }
    let mut label = Vec::new();
    put_bytes(&mut label, 1, b"\xff");
    let (mut series, mut request) = (Vec::new(), Vec::new());
    put_bytes(&mut series, 1, &label);
    put_bytes(&mut series, 2, b"");
    put_bytes(&mut request, 1, &series);
    let decoded = first(&request).unwrap();
    let want = "invalid UTF-8 in label name".to_string();
    assert_eq!(labels_of(&decoded, &decoded.batch.rows[0]), Err(want));
}

#[test]
fn timestamps_out_of_range_refuse_their_sample_only() {
    let mut one = RequestV1::new();
    let late = MillisSample { millis: i64::MAX, value: 1.0 };
    let last = MillisSample { millis: 9_223_372_036_854, value: 1.0 };
    let first_instant = MillisSample { millis: -9_223_372_036_854, value: 1.0 };
    one.series(&[("__name__", "a")], &[late, SAMPLE, last, first_instant]);
    let decoded = first(one.as_bytes()).unwrap();
    assert_eq!(decoded.batch.rows.len(), 3);
    assert_eq!(decoded.errors.count(), 1);
    let reason = "timestamp 9223372036854775807 ms is outside the years 1677 to 2262";
    assert_eq!(decoded.errors.kept()[0].reason, reason);
}

#[test]
fn metadata_and_what_is_refused_are_counted() {
    let metadata = Metadata {
        metric: "a".into(),
        kind: MetricKind::Histogram,
        help: "h".into(),
        unit: "s".into(),
    };
    let mut one = RequestV1::new();
    one.metadata(&metadata);
    one.series(&[("__name__", "a_bucket")], &[SAMPLE]);
    let mut request = one.as_bytes().to_vec();
    put_bytes(&mut request, 1, b"\x1a\x00\x1a\x00\x22\x00");
    let decoded = first(&request).unwrap();
    assert_eq!(decoded.metadata, std::slice::from_ref(&metadata));
    assert_eq!((decoded.counts.exemplars, decoded.histograms.len()), (2, 1));
    assert_eq!((decoded.counts.samples, decoded.counts.lines), (1, 2));
    let mut two = RequestV2::new();
    for name in ["a_bucket", "a_count", "a_sum", "a_bucket"] {
        two.series(&[("__name__", name)], &[SAMPLE], Some(&metadata));
    }
    let mut request = two.to_bytes();
    put_bytes(&mut request, 5, b"\x1a\x00\x22\x00\x30\x05");
    let decoded = second(&request).unwrap();
    assert_eq!(decoded.metadata, [metadata]);
    assert_eq!((decoded.counts.exemplars, decoded.histograms.len()), (1, 1));
    assert_eq!((decoded.starts.len(), decoded.counts.created_timestamps), (1, 0));
    assert_eq!((decoded.starts[0].start_ms, decoded.starts[0].timestamp), (5, 0));
}

#[test]
fn start_timestamps_are_those_of_samples_or_of_their_series() {
    let message = |fields: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        fields(&mut out);
        out
    };
    let sample = |millis: u64, start: Option<i64>| {
        message(&|out| {
            put_double(out, 1, 1.0);
            put_number(out, 2, millis);
            if let Some(start) = start {
                put_number(out, 3, start as u64);
            }
        })
    };
    let series = |start: Option<i64>, samples: &[Vec<u8>]| {
        message(&|out| {
            put_bytes(out, 1, &[1, 2]);
            samples.iter().for_each(|sample| put_bytes(out, 2, sample));
            // Behind the samples, and theirs all the same.
            if let Some(start) = start {
                put_number(out, 6, start as u64);
            }
        })
    };
    let late = i64::MAX as u64 / 1000;
    let huge = START_MS_MAX + 1;
    let request = message(&|out| {
        ["", "__name__", "a"].iter().for_each(|text| put_bytes(out, 4, text.as_bytes()));
        put_bytes(out, 5, &series(None, &[sample(10, Some(4)), sample(20, None)]));
        put_bytes(out, 5, &series(Some(7), &[sample(30, Some(5)), sample(40, None)]));
        put_bytes(out, 5, &series(None, &[sample(50, Some(-9)), sample(late, Some(3))]));
        put_bytes(out, 5, &series(None, &[sample(60, Some(huge)), sample(70, Some(huge - 1))]));
        put_bytes(out, 5, &series(None, &[sample(80, Some(0)), sample(90, None)]));
    });
    let decoded = second(&request).unwrap();
    let found: Vec<(i64, i64, u32)> = decoded
        .starts
        .iter()
        .map(|row| (row.timestamp / 1_000_000, row.start_ms, row.position))
        .collect();
    let expected = [(10, 4, 0), (30, 5, 1), (40, 7, 1), (50, -9, 2), (70, START_MS_MAX, 3)];
    assert_eq!(found, expected);
    // Of a sample that is refused there is nothing to keep; one is beyond what is exact.
    assert_eq!((decoded.counts.created_timestamps, decoded.errors.count()), (1, 1));
    assert_eq!(decoded.batch.rows.len(), 9);
    let of_rows: Vec<&[u8]> = decoded.batch.rows.iter().map(|row| decoded.batch.key(row)).collect();
    for row in &decoded.starts {
        let end = (row.key_offset + row.key_size) as usize;
        let key = decoded.batch.bytes.get(row.key_offset as usize..end).unwrap();
        assert!(of_rows.contains(&key));
    }
}

#[test]
fn lies_refuse_the_request() {
    let mut one = RequestV1::new();
    one.series(&[("__name__", "a"), ("b", "c")], &[SAMPLE]);
    let whole = one.as_bytes();
    for cut in 1..whole.len() {
        assert!(first(&whole[..cut]).is_err(), "{cut}");
    }
    for refs in [&[1u8, 99][..], &[1], &[0x80]] {
        let (mut series, mut request) = (Vec::new(), Vec::new());
        put_bytes(&mut series, 1, refs);
        put_bytes(&mut request, 4, b"");
        put_bytes(&mut request, 4, b"x");
        put_bytes(&mut request, 5, &series);
        assert!(second(&request).is_err(), "{refs:?}");
    }
}

#[test]
fn fields_of_another_wire_type_refuse_the_request() {
    let mut one = RequestV1::new();
    one.series(&[("__name__", "a")], &[SAMPLE]);
    let mut label = Vec::new();
    put_bytes(&mut label, 1, b"a");
    put_bytes(&mut label, 2, b"b");
    let mut wrong_samples = [Vec::new(), Vec::new(), Vec::new()];
    put_number(&mut wrong_samples[0], 1, 5);
    put_double(&mut wrong_samples[1], 2, 5.0);
    put_bytes(&mut wrong_samples[2], 2, b"");
    for (number, field) in [(2, &wrong_samples[0]), (2, &wrong_samples[1]), (2, &wrong_samples[2])]
    {
        let (mut series, mut request) = (Vec::new(), one.as_bytes().to_vec());
        put_bytes(&mut series, 1, &label);
        put_bytes(&mut series, number, field);
        put_bytes(&mut request, 1, &series);
        assert!(first(&request).is_err(), "{field:?}");
    }
    for number in [1, 2, 3, 4] {
        let (mut series, mut request) = (Vec::new(), one.as_bytes().to_vec());
        put_bytes(&mut series, 1, &label);
        put_number(&mut series, number, 1);
        put_bytes(&mut request, 1, &series);
        assert!(first(&request).is_err(), "field {number} of a series");
    }
    for number in [1, 3] {
        let mut request = one.as_bytes().to_vec();
        put_number(&mut request, number, 1);
        assert!(first(&request).is_err(), "field {number} of the request");
    }
    for number in [4, 5] {
        let mut request = Vec::new();
        put_number(&mut request, number, 1);
        assert!(second(&request).is_err(), "field {number} of the request");
    }
}

#[test]
fn references_to_a_large_symbol_do_not_multiply_it() {
    let mut request = Vec::new();
    put_bytes(&mut request, 4, b"");
    put_bytes(&mut request, 4, &vec![b'x'; 400 << 10]);
    let mut series = Vec::new();
    let mut refs = Vec::new();
    put_varint(&mut refs, 1);
    put_varint(&mut refs, 0);
    put_bytes(&mut series, 1, &refs);
    for _ in 0..1000 {
        put_bytes(&mut request, 5, &series);
    }
    let error = second(&request).err().unwrap().to_string();
    assert!(error.starts_with("bytes of all series' labels: "), "{error}");
    let mut series = Vec::new();
    put_bytes(&mut series, 1, &refs.repeat(2));
    let mut long = request[..request.len() - 1000 * 6].to_vec();
    put_bytes(&mut long, 5, &series);
    let mut good = Vec::new();
    put_bytes(&mut good, 2, b"");
    put_bytes(&mut long, 5, &good);
    let decoded = second(&long).unwrap();
    assert_eq!((decoded.batch.rows.len(), decoded.errors.count()), (1, 1));
    let reason = &decoded.errors.kept()[0].reason;
    assert_eq!(reason, "labels of 819216 bytes, the limit is 524288");
}

#[test]
fn series_with_huge_labels_are_refused_alone() {
    let huge = "x".repeat(1 << 20);
    let (mut one, mut two) = (RequestV1::new(), RequestV2::new());
    for name in ["a", huge.as_str(), "b"] {
        one.series(&[("__name__", name)], &[SAMPLE]);
        two.series(&[("__name__", name)], &[SAMPLE], None);
    }
    let two = two.to_bytes();
    for decoded in [first(one.as_bytes()).unwrap(), second(&two).unwrap()] {
        assert_eq!((decoded.batch.rows.len(), decoded.errors.count()), (2, 1));
        assert_eq!(decoded.errors.kept()[0].position, 1);
    }
}

#[test]
fn a_key_full_of_labels_is_read_in_linear_time() {
    let names: Vec<String> = (0..20_000).map(|idx| format!("l{idx}")).collect();
    let mut labels: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
    labels.push(("__name__", "a"));
    let mut one = RequestV1::new();
    one.series(&labels, &[SAMPLE]);
    let decoded = first(one.as_bytes()).unwrap();
    assert_eq!(labels_of(&decoded, &decoded.batch.rows[0]).unwrap().len(), 20_001);
}
