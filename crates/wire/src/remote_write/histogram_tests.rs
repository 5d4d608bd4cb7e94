//! Histograms of both versions against what was encoded.

use super::encode::{MillisSample, RequestV1, RequestV2, Started};
use super::encode_histograms::{CountForm, MillisHistogram};
use super::histograms::{BUCKETS_MAX, HISTOGRAMS_MAX};
use super::*;
use crate::protobuf::{put_bytes, put_double, put_number, put_varint};
use crate::{Decoded, ExtraLabels};
use histogram::{Bucket, CUSTOM_SCHEMA, Histogram, ResetHint};
use model::{KeyHasher, LabelsBuilder};
use rng::Random;

const LABELS: [(&str, &str); 2] = [("__name__", "latency"), ("job", "x")];

fn first(request: &[u8]) -> Result<Decoded<'_>, Error> {
    let keys = Box::leak(Box::new(RemoteWriteKeys::new(ExtraLabels::none())));
    v1::decode(request, &KeyHasher::new(1), keys)
}

fn second(request: &[u8]) -> Result<Decoded<'_>, Error> {
    let keys = Box::leak(Box::new(RemoteWriteKeys::new(ExtraLabels::none())));
    v2::decode(request, &KeyHasher::new(1), keys)
}

fn buckets(random: &mut Random, form: CountForm, first_min: i64) -> Vec<Bucket> {
    let mut index = first_min + random.below(200) as i64;
    (0..random.below(40))
        .map(|_| {
            index += 1 + (random.below(3) * random.below(40)) as i64;
            let count = match form {
                CountForm::Whole => random.below(1 << 40) as f64,
                CountForm::Float => random.below(1 << 40) as f64 / 7.0,
            };
            Bucket { index: index as i32, count }
        })
        .collect()
}

fn any_histogram(random: &mut Random, form: CountForm) -> Histogram {
    let total = |buckets: &[Bucket]| buckets.iter().map(|bucket| bucket.count).sum::<f64>();
    let hints = [ResetHint::Unknown, ResetHint::Reset, ResetHint::NoReset, ResetHint::Gauge];
    let mut histogram = Histogram {
        schema: random.below(13) as i8 - 4,
        reset_hint: *random.pick(&hints),
        zero_threshold: 1e-128,
        zero_count: random.below(9) as f64,
        sum: random.below(1 << 30) as f64 / 3.0,
        positive: buckets(random, form, -100),
        negative: buckets(random, form, -100),
        ..Histogram::default()
    };
    if random.below(4) == 0 {
        histogram.positive = buckets(random, form, -1);
        let bound_count = histogram.positive.last().map_or(0, |bucket| bucket.index + 1);
        histogram.custom_bounds = (0..bound_count).map(|idx| f64::from(idx) * 0.5).collect();
        histogram.schema = CUSTOM_SCHEMA;
        histogram.negative.clear();
        (histogram.zero_threshold, histogram.zero_count) = (0.0, 0.0);
    }
    histogram.count =
        histogram.zero_count + total(&histogram.positive) + total(&histogram.negative);
    histogram
}

#[test]
fn random_histograms_come_back_in_both_versions() {
    let mut random = Random::seeded(0x5eed);
    for _ in 0..300 {
        let (mut one, mut two, mut want) = (RequestV1::new(), RequestV2::new(), Vec::new());
        for position in 0..random.below(5) as u32 {
            let sent: Vec<MillisHistogram> = (0..random.below(4))
                .map(|_| {
                    let form = *random.pick(&[CountForm::Whole, CountForm::Float]);
                    let histogram = any_histogram(&mut random, form);
                    MillisHistogram { millis: random.next() as i64 >> 22, histogram, form }
                })
                .collect();
            let samples = [MillisSample { millis: 5, value: 1.0 }];
            let samples = &samples[..random.below(2) as usize];
            one.mixed_series(&LABELS, samples, &sent);
            two.mixed_series(&LABELS, samples, &sent);
            want.extend(sent.into_iter().map(|h| (position, h.millis * 1_000_000, h.histogram)));
        }
        let two = two.to_bytes();
        for decoded in [first(one.as_bytes()).unwrap(), second(&two).unwrap()] {
            assert_eq!(decoded.errors.kept(), &[]);
            check_rows(decoded, &want);
        }
    }
}

#[test]
fn start_timestamps_that_are_written_come_back() {
    let mut random = Random::seeded(0x57a7);
    let form = CountForm::Whole;
    let starts = [0, 5, -9, 1 << 40];
    let mut samples = Vec::new();
    let mut histograms = Vec::new();
    for (millis, start_millis) in (0..).zip(starts) {
        let sample = MillisSample { millis, value: 1.0 };
        samples.push(Started { sample, start_millis });
        let histogram = any_histogram(&mut random, form);
        let sample = MillisHistogram { millis: millis + 10, histogram, form };
        histograms.push(Started { sample, start_millis });
    }
    let mut request = RequestV2::new();
    request.started_series(&LABELS, &samples, &histograms);
    let bytes = request.to_bytes();
    let decoded = second(&bytes).unwrap();
    assert_eq!((decoded.batch.rows.len(), decoded.errors.count()), (4, 0));
    let told = |row: &StartRow| (row.timestamp / 1_000_000, row.start_ms);
    let found: Vec<(i64, i64)> = decoded.starts.iter().map(told).collect();
    let expected = [(1, 5), (2, -9), (3, 1 << 40), (11, 5), (12, -9), (13, 1 << 40)];
    assert_eq!(found, expected);
    let all = histograms.into_iter().map(|started| started.sample);
    let want: Vec<_> = all.map(|h| (0, h.millis * 1_000_000, h.histogram)).collect();
    check_rows(decoded, &want);
}

#[track_caller]
fn check_rows(mut decoded: Decoded<'_>, want: &[(u32, i64, Histogram)]) {
    let batch = decoded.histogram_batch();
    assert_eq!(batch.rows.len(), want.len());
    for (row, (position, timestamp, histogram)) in batch.rows.iter().zip(want) {
        assert_eq!((row.position, row.timestamp), (*position, *timestamp));
        assert_eq!(&row.histogram, histogram);
        let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
        batch.decoder.tags(batch.key(row), &mut tags).unwrap();
        batch.decoder.metric_name(batch.key(row), "", &mut name).unwrap();
        assert_eq!((name.as_str(), tags.finish().get("job")), ("latency", Some("x")));
    }
}

/// A series of version 1.0 with one histogram of these fields.
fn request_of(fields: &[u8]) -> Vec<u8> {
    let (mut series, mut request) = (Vec::new(), Vec::new());
    put_bytes(&mut series, 1, b"\x0a\x08__name__\x12\x07latency");
    put_bytes(&mut series, 1, b"\x0a\x03job\x12\x01x");
    put_bytes(&mut series, 4, fields);
    put_bytes(&mut request, 1, &series);
    request
}

/// Fields of the histogram that a test changes: three observations in the buckets 2 and 3.
struct Fields(Vec<u8>);

impl Fields {
    fn whole() -> Fields {
        let mut fields = Vec::new();
        put_number(&mut fields, 1, 3);
        put_bytes(&mut fields, 11, b"\x08\x04\x10\x02");
        put_bytes(&mut fields, 12, &[2 << 1, 1]);
        Fields(fields)
    }

    fn number(mut self, number: u8, value: u64) -> Fields {
        put_number(&mut self.0, number, value);
        self
    }

    fn double(mut self, number: u8, value: f64) -> Fields {
        put_double(&mut self.0, number, value);
        self
    }

    fn bytes(mut self, number: u8, bytes: &[u8]) -> Fields {
        put_bytes(&mut self.0, number, bytes);
        self
    }

    fn custom(mut self, values: &[f64]) -> Fields {
        for value in values {
            put_varint(&mut self.0, 16 << 3 | 1);
            self.0.extend_from_slice(&value.to_bits().to_le_bytes());
        }
        self
    }
}

#[test]
fn a_bad_histogram_is_refused_alone() {
    let schema = |value: i64| (value << 1 ^ value >> 63) as u64;
    let many = [1u8; BUCKETS_MAX + 1];
    for (fields, reason) in [
        (Fields::whole().number(1, 4), "3 observations in its buckets, but its count is 4"),
        (Fields::whole().number(1, 2).double(3, f64::NAN), "3 observations in its buckets"),
        (Fields::whole().bytes(11, b"\x10\x01"), "spans have more buckets"),
        (Fields::whole().bytes(11, b"\x10\xff\xff\xff\xff\x0f"), "spans have more buckets"),
        (Fields::whole().bytes(12, &[0]), "spans have fewer buckets"),
        (
            Fields::whole().number(1, 4).bytes(8, b"\x10\x01").bytes(9, &[1]),
            "counts are not negative",
        ),
        (Fields::whole().bytes(11, b"\x08\x01\x10\x01").bytes(12, &[0]), "negative offset -1"),
        (Fields::whole().number(4, schema(-5)), "schema -5 is not known"),
        (Fields::whole().number(4, schema(53)), "schema 53 is not known"),
        (Fields::whole().number(4, schema(i64::MIN)), "is not known"),
        (Fields::whole().custom(&[1.0]), "exponential histograms have no custom bounds"),
        (
            Fields::whole().number(4, schema(-53)).custom(&[1.0, 2.0]),
            "needs more than the 2 custom bounds",
        ),
        (Fields::whole().number(4, schema(-53)).custom(&[1.0, 2.0, 2.0]), "bounds have to rise"),
        (
            Fields::whole().number(4, schema(-53)).custom(&[1.0, f64::NAN, 2.0]),
            "bounds are numbers",
        ),
        (Fields::whole().number(4, schema(-53)).custom(&[f64::NAN]), "custom bound"),
        (Fields::whole().number(4, schema(-53)).custom(&[1.0, 2.0, f64::INFINITY]), "below +Inf"),
        (Fields::whole().number(4, schema(-53)).double(5, 1.0), "custom histograms have no zero"),
        (Fields::whole().double(2, -1.0), "spans have more buckets"),
        (Fields(Vec::new()).double(2, -1.0), "counts are not negative"),
        (Fields(Vec::new()).double(2, 1.0).double(7, -1.0), "counts are not negative"),
        (Fields(Vec::new()).number(15, i64::MAX as u64), "outside the years 1677 to 2262"),
        (Fields::whole().bytes(12, &many), "more than 16384 buckets"),
        (Fields::whole().bytes(13, &vec![0; 8 * BUCKETS_MAX + 8]), "more than 16384 buckets"),
    ] {
        let mut request = request_of(&fields.0);
        request.extend(request_of(&Fields::whole().0));
        let decoded = first(&request).unwrap();
        let [error] = decoded.errors.kept() else { panic!("{reason}: {:?}", decoded.errors) };
        assert!(error.reason.contains(reason), "{reason}: {}", error.reason);
        assert_eq!((error.position, decoded.counts.histograms), (0, 1), "{reason}");
        assert_eq!(decoded.histograms.len(), 1, "{reason}");
        assert_eq!(decoded.histograms[0].position, 1, "{reason}");
    }
}

fn only(fields: &Fields) -> Histogram {
    let request = request_of(&fields.0);
    let mut decoded = first(&request).unwrap();
    assert_eq!(decoded.errors.kept(), &[]);
    assert_eq!(decoded.histograms.len(), 1);
    decoded.histograms.remove(0).histogram
}

fn bucket(index: i32, count: f64) -> Bucket {
    Bucket { index, count }
}

#[test]
fn schemas_that_are_too_fine_are_made_coarser() {
    assert_eq!(only(&Fields::whole()).positive, [bucket(2, 2.0), bucket(3, 1.0)]);
    for (schema, want) in [
        (8, &[bucket(2, 2.0), bucket(3, 1.0)][..]),
        (9, &[bucket(1, 2.0), bucket(2, 1.0)]),
        (10, &[bucket(1, 3.0)]),
        (52, &[bucket(1, 3.0)]),
    ] {
        let histogram = only(&Fields::whole().number(4, schema << 1));
        assert_eq!((histogram.schema, histogram.positive.as_slice()), (8, want), "{schema}");
    }
    // Indexes below zero: -3 and -2 are halves of the bucket -1 of the next coarser schema.
    let fields = Fields(Vec::new()).number(1, 3).number(4, 9 << 1);
    let fields = fields.bytes(11, b"\x08\x05\x10\x02").bytes(12, &[2 << 1, 1]);
    assert_eq!(only(&fields).positive, [bucket(-1, 3.0)]);
}

#[test]
fn fields_may_be_scattered_and_unpacked() {
    let fields = Fields(Vec::new()).number(12, 2 << 1).bytes(11, b"\x08\x04\x10\x01");
    let fields = fields.bytes(11, b"\x10\x01").number(15, 7).number(12, 1).number(1, 3);
    let histogram = only(&fields);
    assert_eq!(histogram.positive, [bucket(2, 2.0), bucket(3, 1.0)]);
    let fields = Fields(Vec::new()).double(2, 0.75).double(10, 0.25).bytes(8, b"\x10\x02");
    let histogram = only(&fields.double(10, 0.5).number(14, 3));
    assert_eq!(histogram.negative, [bucket(0, 0.25), bucket(1, 0.5)]);
    assert_eq!((histogram.count, histogram.reset_hint), (0.75, ResetHint::Gauge));
    let mut two_bytes = Fields::whole().0;
    two_bytes.extend_from_slice(&[0x88, 0x01, 5]);
    assert_eq!(only(&Fields(two_bytes)).count, 3.0, "a start timestamp is no part of it");
}

#[test]
fn labels_behind_a_histogram_are_its_own() {
    let (mut series, mut request) = (Vec::new(), Vec::new());
    put_bytes(&mut series, 1, b"\x0a\x08__name__\x12\x07latency");
    put_bytes(&mut series, 4, &Fields::whole().0);
    put_bytes(&mut series, 1, b"\x0a\x03job\x12\x01x");
    put_bytes(&mut request, 1, &series);
    let decoded = first(&request).unwrap();
    let want = decoded.histograms[0].histogram.clone();
    check_rows(decoded, &[(0, 0, want)]);
}

#[test]
fn stale_markers_and_inexact_counts() {
    let stale = Fields(Vec::new()).double(3, model::stale_marker()).number(15, 7);
    assert!(only(&stale).is_stale());
    let huge = (1u64 << 53) + 1;
    let fields = Fields(Vec::new()).number(1, huge).number(6, huge);
    let request = request_of(&fields.0);
    let decoded = first(&request).unwrap();
    assert_eq!(decoded.counts.rounded_histograms, 1);
    assert_eq!(decoded.histograms[0].histogram.count, (1u64 << 53) as f64);
    // Deltas that overflow.
    let fields = Fields(Vec::new()).number(1, 1).bytes(11, b"\x10\x02");
    let most = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let request = request_of(&fields.bytes(12, &[most, most].concat()).0);
    let reason = first(&request).unwrap().errors.kept()[0].reason.clone();
    assert!(reason.contains("beyond 2^63"), "{reason}");
    // Indexes that do.
    let fields = Fields(Vec::new()).number(1, 3);
    let spans = fields.bytes(11, b"\x08\xfe\xff\xff\xff\x0f\x10\x02").bytes(12, &[2 << 1, 1]);
    let request = request_of(&spans.0);
    let reason = first(&request).unwrap().errors.kept()[0].reason.clone();
    assert!(reason.contains("beyond 32 bits"), "{reason}");
}

#[test]
fn lies_about_lengths_and_numbers_refuse_the_request() {
    let mut request = RequestV2::new();
    let histogram = any_histogram(&mut Random::seeded(0x5eed), CountForm::Whole);
    let sent = MillisHistogram { millis: 1, histogram, form: CountForm::Whole };
    request.mixed_series(&LABELS, &[], &[sent]);
    let whole = request.to_bytes();
    assert!(second(&whole).is_ok());
    for cut in whole.len() - 8..whole.len() {
        assert!(second(&whole[..cut]).is_err(), "{cut}");
    }
    let mut series = Vec::new();
    put_bytes(&mut series, 1, b"\x0a\x08__name__\x12\x07latency");
    series.extend([4 << 3 | 2, 0].repeat(HISTOGRAMS_MAX + 1));
    let mut request = Vec::new();
    put_bytes(&mut request, 1, &series);
    let error = first(&request).err().unwrap().to_string();
    assert_eq!(error, "histograms per request: more than 262144; send less at once");
    // Many buckets in few bytes.
    let mut fields = Vec::new();
    put_bytes(&mut fields, 11, b"\x10\x80\x80\x01");
    put_bytes(&mut fields, 12, &[0; BUCKETS_MAX]);
    let request = request_of(&fields).repeat(257);
    let error = first(&request).err().unwrap().to_string();
    assert!(error.starts_with("buckets of all histograms: "), "{error}");
}
