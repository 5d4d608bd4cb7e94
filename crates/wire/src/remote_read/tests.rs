//! Requests and answers, against bytes written down and against each other.

use super::chunk::{decode_chunk, push_chunk};
use super::decode::{ReadSeries, decode_frame, decode_samples, each_series, split_frames};
use super::*;
use crate::Error;
use crate::protobuf::{put_bytes, put_number};
use crate::remote_write::encode::MillisSample;
use model::{Labels, MatchOp, Matcher, TimeRange};
use rng::Random;

fn samples(pairs: &[(i64, f64)]) -> Vec<MillisSample> {
    pairs.iter().map(|(millis, value)| MillisSample { millis: *millis, value: *value }).collect()
}

/// Bits, as NaN is unequal to itself.
fn bits(samples: &[MillisSample]) -> Vec<(i64, u64)> {
    samples.iter().map(|sample| (sample.millis, sample.value.to_bits())).collect()
}

#[track_caller]
fn check_chunk(pairs: &[(i64, f64)], expected: Option<&[u8]>) {
    let samples = samples(pairs);
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, &samples);
    if let Some(expected) = expected {
        assert_eq!(bytes, expected, "{bytes:x?}");
    }
    assert_eq!(bits(&decode_chunk(&bytes).unwrap()), bits(&samples));
    // The last byte may hold no bit.
    for end in 0..bytes.len() - 1 {
        assert!(decode_chunk(&bytes[..end]).is_err());
    }
}

#[test]
fn chunks_are_those_of_prometheus() {
    // An end-to-end test compares chunks with those of a real Prometheus; these show the layout.
    check_chunk(&[], Some(&[0, 0]));
    check_chunk(&[(1000, 1.5)], Some(&[0, 1, 0xd0, 0x0f, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0]));
    check_chunk(
        &[(1000, 1.0), (2000, 1.0), (3000, 1.0), (4001, 1.0)],
        // 1000 | 1.0 | 1000, 0 | 0, 0 | 10 and 1 in 14 bits, 0
        Some(&[
            0,
            4,
            0xd0,
            0x0f,
            0x3f,
            0xf0,
            0,
            0,
            0,
            0,
            0,
            0,
            0xe8,
            0x07,
            0b0001_0000,
            0,
            0b0010_0000,
        ]),
    );
}

#[test]
fn every_class_of_delta_and_every_value_comes_back() {
    let mut at = -5_000i64;
    let mut pairs = Vec::new();
    for delta in [
        1,
        1 << 13,
        (1 << 14) + 1,
        1 << 16,
        1 << 17,
        1 << 19,
        1 << 20,
        1 << 40,
        1,
        2,
        8193,
        1,
        8194,
        3,
    ] {
        at += delta;
        pairs.push((at, delta as f64));
    }
    check_chunk(&pairs, None);
    let values = [
        0.0,
        -0.0,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f64::from_bits(u64::MAX),
        f64::from_bits(0x7ff0_0000_0000_0002),
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.1,
        0.1,
    ];
    let pairs: Vec<(i64, f64)> = (0..).zip(values).collect();
    check_chunk(&pairs, None);
    check_chunk(&[(i64::MIN, 1.0), (0, 2.0), (i64::MAX, 3.0)], None);
}

#[test]
fn random_chunks_come_back() {
    let mut random = Random::seeded(0x5eed);
    for _ in 0..2_000 {
        let mut at = random.next() as i64 >> random.below(64);
        let count = 1 + random.below(CHUNK_SAMPLES_MAX as u64);
        let (spread, noise) = (1 + random.below(40), random.below(64));
        let mut value = random.next();
        let pairs: Vec<(i64, f64)> = (0..count)
            .map(|_| {
                at = at.wrapping_add((random.next() >> (64 - spread)) as i64);
                value ^= random.next() >> noise;
                (at, f64::from_bits(value))
            })
            .collect();
        let (mut bytes, samples) = (Vec::new(), samples(&pairs));
        push_chunk(&mut bytes, &samples);
        assert_eq!(bits(&decode_chunk(&bytes).unwrap()), bits(&samples));
    }
}

fn matcher_message(op: u64, name: &str, value: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, 1, op);
    put_bytes(&mut bytes, 2, name.as_bytes());
    put_bytes(&mut bytes, 3, value.as_bytes());
    bytes
}

fn query_message(start_ms: i64, end_ms: i64, matchers: &[Vec<u8>]) -> Vec<u8> {
    let mut query = Vec::new();
    put_number(&mut query, 1, start_ms as u64);
    put_number(&mut query, 2, end_ms as u64);
    matchers.iter().for_each(|matcher| put_bytes(&mut query, 3, matcher));
    put_bytes(&mut query, 4, &[8, 1]);
    let mut request = Vec::new();
    put_bytes(&mut request, 1, &query);
    request
}

#[test]
fn requests() {
    let matchers: Vec<Vec<u8>> =
        (0..4).map(|op| matcher_message(op, &format!("n{op}"), "v")).collect();
    let mut request = query_message(-1, 2, &matchers);
    let decoded = ReadRequest::decode(&request).unwrap();
    let ops = [MatchOp::Equal, MatchOp::NotEqual, MatchOp::Regex, MatchOp::NotRegex];
    let matchers: Vec<Matcher> = ops
        .into_iter()
        .enumerate()
        .map(|(idx, op)| Matcher::new(format!("n{idx}"), op, "v"))
        .collect();
    let range = TimeRange::new(-1_000_000, 2_999_999);
    let expected = ReadQuery { matchers, range };
    let response = ResponseType::Samples;
    assert_eq!(decoded, ReadRequest { queries: vec![expected], response });
    put_bytes(&mut request, 2, &[1, 0]);
    let decoded = ReadRequest::decode(&request).unwrap();
    assert_eq!(decoded.response, ResponseType::StreamedXorChunks);
}

#[test]
fn fields_that_are_no_text_or_of_another_type_are_refused() {
    let matcher = |name: &[u8], value: &[u8]| {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 2, name);
        put_bytes(&mut bytes, 3, value);
        bytes
    };
    for (name, value, is_text) in
        [(&b"a"[..], &b"b"[..], true), (b"a\xff", b"b", false), (b"a", b"\xc3", false)]
    {
        let request = query_message(0, 1, &[matcher(name, value)]);
        assert_eq!(ReadRequest::decode(&request).is_ok(), is_text, "{name:?} {value:?}");
    }
    let mut numbers = Vec::new();
    put_number(&mut numbers, 2, 1);
    assert!(ReadRequest::decode(&query_message(0, 1, &[numbers])).is_err());
    let mut request = Vec::new();
    put_number(&mut request, 1, 1);
    assert!(ReadRequest::decode(&request).is_err());
}

#[test]
fn answers_are_negotiated() {
    for (accepted, expected) in [
        (&[][..], Some(ResponseType::Samples)),
        (&[0, 1], Some(ResponseType::Samples)),
        (&[7, 1, 0], Some(ResponseType::StreamedXorChunks)),
        (&[7], None),
    ] {
        let mut packed = Vec::new();
        if !accepted.is_empty() {
            put_bytes(&mut packed, 2, accepted);
        }
        let mut single = Vec::new();
        accepted.iter().for_each(|one| put_number(&mut single, 2, u64::from(*one)));
        for bytes in [packed, single] {
            let decoded = ReadRequest::decode(&bytes).ok().map(|request| request.response);
            assert_eq!(decoded, expected, "{accepted:?}");
        }
    }
}

#[test]
fn requests_have_limits() {
    let error = |bytes: &[u8]| ReadRequest::decode(bytes).unwrap_err().to_string();
    let many = query_message(0, 1, &[]).repeat(QUERIES_MAX + 1);
    assert_eq!(error(&many), "queries per request: more than 100; ask for less at once");
    let matchers = vec![matcher_message(0, "a", "b"); MATCHERS_MAX + 1];
    let many = query_message(0, 1, &matchers);
    assert_eq!(error(&many), "matchers per query: more than 1000; ask for less at once");
    let unknown = query_message(0, 1, &[matcher_message(4, "a", "b")]);
    assert_eq!(error(&unknown), "matcher type 4 is not known");
    assert!(matches!(ReadRequest::decode(&[0x0a, 5]), Err(Error::Malformed { .. })));
}

fn labels(value: &str) -> Labels {
    Labels::from_pairs(&[("__name__", "up"), ("job", value)])
}

#[test]
fn samples_come_back() {
    let mut message = SamplesMessage::new();
    // Two samples within one millisecond: the newest is told.
    message.series(&labels("a"), &[-1, 1_000_000, 1_999_999], &[1.0, 2.0, 3.0]);
    message.end_query();
    message.end_query();
    message.series(&labels("b"), &[0], &[f64::INFINITY]);
    message.end_query();
    assert!(0 < message.size());
    let found = decode_samples(&message.finish()).unwrap();
    let a = vec![samples(&[(-1, 1.0), (1, 3.0)])];
    let b = vec![samples(&[(0, f64::INFINITY)])];
    let expected = [
        ReadSeries { query_idx: 0, labels: labels("a"), chunks: a, histograms: vec![] },
        ReadSeries { query_idx: 2, labels: labels("b"), chunks: b, histograms: vec![] },
    ];
    assert_eq!(found, expected);
}

#[test]
fn frames_are_bounded_and_come_back() {
    const COUNT: i64 = 200_000;
    let timestamps: Vec<i64> = (0..COUNT).map(|idx| idx * 1_000_000 * (1 + idx % 7)).collect();
    let mut timestamps = timestamps;
    timestamps.sort_unstable();
    timestamps.dedup();
    let mut random = Random::seeded(0x5eed);
    let values: Vec<f64> = timestamps.iter().map(|_| (random.next() >> 12) as f64).collect();
    let (mut out, mut writer) = (Vec::new(), FrameWriter::new());
    writer.series(&mut out, 0, &labels("empty"), &[], &[]);
    assert!(out.is_empty());
    writer.series(&mut out, 0, &labels("a"), &timestamps, &values);
    writer.series(&mut out, 3, &labels("b"), &[5_000_000], &[1.0]);
    let frames = split_frames(&out).unwrap();
    assert!(3 <= frames.len() && frames.iter().all(|frame| frame.len() <= FRAME_SIZE_MAX + 64));
    let found: Vec<ReadSeries> =
        frames.iter().flat_map(|frame| decode_frame(frame).unwrap()).collect();
    let (last, first) = found.split_last().unwrap();
    let expected = ReadSeries {
        query_idx: 3,
        labels: labels("b"),
        chunks: vec![samples(&[(5, 1.0)])],
        histograms: vec![],
    };
    assert_eq!(last, &expected);
    assert!(first.iter().all(|series| series.query_idx == 0 && series.labels == labels("a")));
    let chunks = || first.iter().flat_map(|series| &series.chunks);
    assert!(chunks().all(|chunk| chunk.len() <= CHUNK_SAMPLES_MAX));
    let all: Vec<MillisSample> = chunks().flatten().copied().collect();
    let times = timestamps.iter().map(|nanos| nanos / 1_000_000);
    let expected: Vec<(i64, f64)> = times.zip(values).collect();
    assert_eq!(all, samples(&expected));
    // A byte that is wrong is seen.
    let middle = out.len() / 2;
    out[middle] ^= 1;
    assert!(split_frames(&out).is_err());
}

/// A message of one query with these bytes as its series.
fn message(series: &[u8]) -> Vec<u8> {
    let (mut result, mut message) = (Vec::new(), Vec::new());
    put_bytes(&mut result, 1, series);
    put_bytes(&mut message, 1, &result);
    message
}

#[test]
fn who_counts_may_stop_before_all_is_in_memory() {
    // Two bytes of a message are a sample of sixteen; its labels stand behind them.
    let mut series = [0x12, 0x00].repeat(100_000);
    let mut label = Vec::new();
    put_bytes(&mut label, 1, b"__name__");
    put_bytes(&mut label, 2, b"a");
    put_bytes(&mut series, 1, &label);
    let message = message(&series);
    let (mut count, mut pieces) = (0, 0);
    let mut take = |piece: ReadSeries| {
        assert_eq!(piece.labels.to_string(), "a{}");
        assert!(piece.weight() <= 1 << 14, "{}", piece.weight());
        pieces += 1;
        count += piece.weight();
        if 50_000 < count { Err(Error::malformed("message", 0, "less")) } else { Ok(()) }
    };
    assert!(each_series(&message, &mut take).is_err());
    assert_eq!((count, pieces), (1 << 16, 4));
    let all = decode_samples(&message).unwrap();
    assert_eq!(all.iter().map(ReadSeries::weight).sum::<usize>(), 100_000);
}

#[test]
fn a_series_has_labels_in_number() {
    let few = decode_samples(&message(&[0x0a, 0x00].repeat(4096))).unwrap();
    assert_eq!(few.len(), 1, "one without samples comes, too");
    assert!(decode_samples(&message(&[0x0a, 0x00].repeat(4097))).is_err());
}
