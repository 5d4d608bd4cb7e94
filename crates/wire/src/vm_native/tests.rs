//! Blocks read back by a decoder that is as simple as the format's description.

use super::decimal::Scale;
use super::encode::{Heads, LeftOut, push_head, push_series};
use super::{NativeKeys, decode};
use crate::protobuf::Message;
use crate::remote_write::encode::MillisSample;
use crate::{ExtraLabels, Start};
use model::{KeyDecoder, KeyHasher, Labels, LabelsBuilder};
use rng::Random;

fn signed(message: &mut Message<'_>) -> i64 {
    let zigzag = message.varint().unwrap();
    (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
}

fn column(kind: u8, bytes: &[u8], first: i64, count: usize) -> Vec<i64> {
    let unpacked = match kind {
        1 | 4 => zstd::stream::decode_all(bytes).unwrap(),
        _ => bytes.to_vec(),
    };
    let mut message = Message::new(&unpacked);
    let (mut number, mut step) = (first, 0i64);
    let mut numbers = vec![first];
    if kind == 2 {
        step = signed(&mut message);
    }
    while numbers.len() < count {
        match kind {
            3 | 2 => {}
            4 | 6 => step = signed(&mut message),
            1 | 5 => step = step.wrapping_add(signed(&mut message)),
            _ => panic!("kind {kind}"),
        }
        number = number.wrapping_add(step);
        numbers.push(number);
    }
    assert!(message.is_done());
    numbers
}

fn piece<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let (size, rest) = bytes.split_first_chunk::<4>().unwrap();
    let (piece, rest) = rest.split_at(u32::from_be_bytes(*size) as usize);
    *bytes = rest;
    piece
}

/// Names and samples of all blocks.
fn blocks(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<MillisSample>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (name, content) = (piece(&mut bytes).to_vec(), piece(&mut bytes));
        let mut message = Message::new(content);
        let (first_ms, last_ms) = (signed(&mut message), signed(&mut message));
        let first = signed(&mut message);
        let count = message.varint().unwrap() as usize;
        let scale = Scale::new(signed(&mut message) as i32);
        let kinds = [(); 3].map(|()| message.varint().unwrap() as u8);
        assert_eq!(kinds[2], 64);
        let times = column(kinds[0], message.sized().unwrap(), first_ms, count);
        let numbers = column(kinds[1], message.sized().unwrap(), first, count);
        assert!(message.is_done());
        assert_eq!(times.last(), Some(&last_ms));
        let sample =
            |(millis, number): (i64, i64)| MillisSample { millis, value: scale.meaning(number) };
        found.push((name, times.into_iter().zip(numbers).map(sample).collect()));
    }
    found
}

#[test]
fn a_number_that_is_too_small_takes_no_other_with_it() {
    let samples = [(1, 1e-305), (2, 5e-324), (3, 2e-308)];
    let samples = samples.map(|(millis, value)| MillisSample { millis, value });
    let mut out = Vec::new();
    push_series(&mut out, Heads::Current, &Labels::from_pairs(&[("__name__", "x")]), &samples);
    let found: Vec<f64> =
        blocks(&out).into_iter().flat_map(|block| block.1).map(|one| one.value).collect();
    assert!((found[0] / 1e-305 - 1.0).abs() < 1e-15, "{found:?}");
    assert!((found[2] / 2e-308 - 1.0).abs() < 1e-15, "{found:?}");
}

#[track_caller]
fn check(values: &[f64], rounded: u64) -> usize {
    let labels = Labels::from_pairs(&[("__name__", "x")]);
    let millis = |at: usize| -5_000 + 15_000 * at as i64 + (at % 3) as i64;
    let sample = |(at, value): (usize, &f64)| MillisSample { millis: millis(at), value: *value };
    let samples: Vec<MillisSample> = values.iter().enumerate().map(sample).collect();
    let mut out = Vec::new();
    let left_out = push_series(&mut out, Heads::Current, &labels, &samples);
    assert_eq!((left_out.nans, left_out.large), (0, 0));
    let found = blocks(&out);
    let mut wrong = 0;
    let all: Vec<MillisSample> = found.iter().flat_map(|(_, samples)| samples).copied().collect();
    assert_eq!(all.len(), samples.len());
    for (one, other) in all.iter().zip(&samples) {
        assert_eq!(one.millis, other.millis);
        let is_same = one.value.to_bits() == other.value.to_bits() || one.value == other.value;
        wrong += u64::from(!is_same);
        let is_near = is_same || (one.value - other.value).abs() <= other.value.abs() * 1e-15;
        assert!(is_near || other.value.abs() < 1e-290, "{} for {}", one.value, other.value);
    }
    assert_eq!(left_out.rounded, wrong);
    assert!(wrong <= rounded, "{wrong} rounded of {}", samples.len());
    found.len()
}

#[test]
fn numbers_come_back() {
    assert_eq!(check(&[1.0], 0), 1);
    assert_eq!(check(&[0.0, 1.0, 2.0, 3.0], 0), 1);
    assert_eq!(check(&[7.0; 100], 0), 1);
    assert_eq!(check(&[0.1, 0.25, 100.0, -3.75e5], 0), 1);
    let odd = [f64::INFINITY, f64::NEG_INFINITY, model::stale_marker(), 12.5, 0.0];
    assert_eq!(check(&odd, 0), 1);
    assert_eq!(check(&[f64::INFINITY; 3], 0), 1);
    // No power of ten is for both.
    assert_eq!(check(&[1e300, 1e-5, 1e300], 0), 3);
    assert_eq!(check(&[f64::MAX, f64::MIN], 0), 1);
    check(&[9_007_199_254_740_993.0, 1e22, 123_456_789_012_345_680_000.0], 0);
    check(&[1.234_567_890_123_456_7e-300, f64::MIN_POSITIVE, 5e-324], 3);
    let counter: Vec<f64> = (0..20_000).map(|at| f64::from(at * at)).collect();
    assert_eq!(check(&counter, 0), 3);
}

#[test]
fn random_numbers_come_back() {
    let mut random = Random::seeded(0x00d1_91e5);
    for _ in 0..50 {
        let kind = random.below(5);
        let value = |random: &mut Random| match kind {
            0 => f64::from_bits(random.next() & 0xffef_ffff_ffff_ffff),
            1 => random.below(1_000_000) as f64 / 1000.0,
            2 => (random.next() >> random.below(63)) as f64,
            3 => random.next() as f64 / u64::MAX as f64,
            _ => *random.pick(&[0.1, -0.0, 1e17, f64::INFINITY, model::stale_marker()]),
        };
        let values: Vec<f64> = (0..500).map(|_| value(&mut random)).collect();
        // Of all bit patterns, and of fractions with 17 digits, some have no whole number.
        check(&values, [200, 0, 5, 200, 0][kind as usize]);
    }
}

#[test]
fn names_are_escaped_and_what_cannot_be_said_is_counted() {
    let labels = Labels::from_pairs(&[("__name__", "a\u{1}b"), ("l\u{0}", "\u{2}\u{e9}")]);
    let samples = [1.0, f64::NAN, 2.0].map(|value| MillisSample { millis: 5, value });
    let mut out = Vec::new();
    assert_eq!(push_series(&mut out, Heads::Current, &labels, &samples).nans, 1);
    let found = blocks(&out);
    assert_eq!(found[0].0, b"a\x001b\x01l\x000\x01\x002\xc3\xa9\x01");
    assert_eq!(found[0].1.len(), 2);
    let large = Labels::from_pairs(&[("__name__", "x".repeat(2 << 20))]);
    let left_out = push_series(&mut out, Heads::Current, &large, &samples);
    assert_eq!(left_out, LeftOut { large: 3, ..LeftOut::default() });
    let mut head = Vec::new();
    push_head(&mut head, -1, 1);
    assert_eq!(head, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
}

/// Rows that the decoder makes, all batches, with their labels; and what it refused.
fn rows(bytes: &[u8]) -> (Vec<(String, i64, u64)>, u64) {
    let (hasher, keys) = (KeyHasher::new(1), NativeKeys::new(ExtraLabels::none()));
    let (mut found, mut refused, mut next) = (Vec::new(), 0, Some(Start::default()));
    while let Some(start) = next {
        let decoded = decode(bytes, start, &hasher, &keys).unwrap();
        let batch = &decoded.batch;
        for row in &batch.rows {
            let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
            keys.tags(batch.key(row), &mut labels).unwrap();
            keys.metric_name(batch.key(row), "", &mut name).unwrap();
            labels.push("__name__", &name);
            let value = batch.row_values(row)[0];
            found.push((labels.finish().to_string(), row.timestamp, value.to_bits()));
        }
        refused += decoded.errors.count();
        next = decoded.rest;
    }
    (found, refused)
}

fn some_series(heads: Heads) -> (Vec<u8>, Vec<(String, i64, u64)>) {
    let mut random = Random::seeded(0xdec0de);
    let (mut bytes, mut expected) = (Vec::new(), Vec::new());
    push_head(&mut bytes, i64::MIN, i64::MAX);
    for series in 0..20 {
        let name = format!("s{series}");
        let labels = Labels::from_pairs(&[("__name__", name.as_str()), ("l\u{1}", "\u{0}é")]);
        let mut millis = -1_000_000;
        let value = |random: &mut Random| match series % 4 {
            0 => 7.0,
            1 => random.below(1000) as f64 / 8.0,
            2 => *random.pick(&[f64::INFINITY, f64::NEG_INFINITY, model::stale_marker(), 2.0]),
            _ => random.below(1 << 50) as f64,
        };
        let samples: Vec<MillisSample> = (0..random.below(30_000))
            .map(|_| {
                millis += random.below(3) as i64 * 1000;
                MillisSample { millis, value: value(&mut random) }
            })
            .collect();
        push_series(&mut bytes, heads, &labels, &samples);
        let row =
            |one: &MillisSample| (labels.to_string(), one.millis * 1_000_000, one.value.to_bits());
        expected.extend(samples.iter().map(row));
    }
    (bytes, expected)
}

#[test]
fn blocks_are_rows_again() {
    for heads in [Heads::Current, Heads::Older] {
        let (bytes, expected) = some_series(heads);
        let (found, refused) = rows(&bytes);
        assert_eq!((found.len(), refused), (expected.len(), 0));
        assert!(found == expected, "{heads:?}");
        // What is not within the times of the stream is passed over.
        let mut narrow = Vec::new();
        push_head(&mut narrow, -5_000, 5_000);
        narrow.extend_from_slice(&bytes[16..]);
        let (found, refused) = rows(&narrow);
        let is_within = |one: &&(String, i64, u64)| one.1.abs() <= 5_000_000_000;
        assert_eq!((found.len(), refused), (expected.iter().filter(is_within).count(), 0));
    }
}

#[test]
fn blocks_that_lie_are_refused_and_others_kept() {
    let labels = Labels::from_pairs(&[("__name__", "x")]);
    let sample = |millis| MillisSample { millis, value: 1.5 };
    let mut one = Vec::new();
    push_series(&mut one, Heads::Current, &labels, &[1, 2, 4, 9].map(sample));
    let mut head = Vec::new();
    push_head(&mut head, 0, 100);
    let (found, refused) = rows(&[&head[..], &one, &one].concat());
    assert_eq!((found.len(), refused), (8, 0));
    // A kind of column, and a number of rows, that there are none of.
    for (at, byte) in [(one.len() - 7, 9), (one.len() - 10, 0x7f)] {
        let mut bad = one.clone();
        bad[at] = byte;
        let (found, refused) = rows(&[&head[..], &bad, &one].concat());
        assert_eq!((found.len(), refused), (4, 1), "{at}");
    }
    for end in 0..one.len() {
        let (found, refused) = rows(&[&head[..], &one, &one[..end]].concat());
        assert_eq!((found.len(), refused), (4, u64::from(0 < end)), "{end}");
    }
    let keys = NativeKeys::new(ExtraLabels::none());
    assert!(decode(&head[..15], Start::default(), &KeyHasher::new(1), &keys).is_err());
    for key in [&b"a"[..], b"a\x01b\x01", b"a\x00\x01", b"a\x007\x01", b"\xff\x01", b"\x01"] {
        let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
        let named = keys.metric_name(key, "", &mut name);
        assert!(named.is_err() || keys.tags(key, &mut tags).is_err(), "{key:?}");
    }
}
