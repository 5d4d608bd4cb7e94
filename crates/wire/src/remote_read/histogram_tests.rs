//! Histograms in both kinds of answer.

use super::decode::{ReadSeries, decode_frame, decode_samples, split_frames};
use super::*;
use histogram::{Bucket, CUSTOM_SCHEMA, Histogram, ResetHint};
use model::Labels;
use model::sample::NANOS_PER_MILLI;
use rng::Random;

fn labels() -> Labels {
    Labels::from_pairs(&[("__name__", "latency"), ("job", "x")])
}

/// As a server's histogram changes: counts grow, now and then a bucket is new or all begins anew.
fn next_histogram(random: &mut Random, last: &Histogram) -> Histogram {
    let mut next = last.clone();
    next.reset_hint = ResetHint::Unknown;
    match random.below(12) {
        0 | 1 if last.has_custom_bounds() => {}
        0 => next.positive.push(Bucket { index: 1 << 20, count: 0.0 }),
        1 => next.negative.push(Bucket { index: 1 << 20, count: 0.0 }),
        2 => next = any_histogram(random),
        3 => next.positive.iter_mut().for_each(|bucket| bucket.count /= 2.0),
        4 => next.reset_hint = ResetHint::Reset,
        5 => next.reset_hint = ResetHint::Gauge,
        _ => {}
    }
    for side in [&mut next.positive, &mut next.negative] {
        // Indexes of new buckets come down from the end.
        if let [.., before, last] = side.as_mut_slice()
            && last.index == 1 << 20
        {
            last.index = before.index + 1 + random.below(100) as i32;
        }
        side.iter_mut().for_each(|bucket| bucket.count += random.below(10) as f64);
    }
    next.sum += random.below(1000) as f64 / 7.0;
    next.count += random.below(100) as f64;
    if !next.has_custom_bounds() {
        next.zero_count += random.below(2) as f64;
    }
    next
}

fn any_histogram(random: &mut Random) -> Histogram {
    let mut buckets = || -> Vec<Bucket> {
        let mut index = random.below(1000) as i32 - 500;
        let gap = 1 + random.below(3) as i32;
        (0..random.below(20))
            .map(|at| {
                index += if at % 3 == 0 { gap } else { 1 };
                Bucket { index, count: random.below(100) as f64 }
            })
            .collect()
    };
    let (positive, negative) = (buckets(), buckets());
    let thresholds = [0.0, 2f64.powi(-128), 2f64.powi(-243), 1024.0, 2048.0, 0.3];
    let zero_threshold = *random.pick(&thresholds);
    let schema = random.below(13) as i8 - 4;
    let mut made = Histogram { schema, zero_threshold, positive, negative, ..Histogram::default() };
    if random.below(3) == 0 {
        made.schema = CUSTOM_SCHEMA;
        made.zero_threshold = 0.0;
        made.negative.clear();
        made.positive = (0..8).map(|index| Bucket { index, count: 1.0 }).collect();
        made.positive.retain(|_| random.below(2) == 0);
        made.custom_bounds = vec![-5.0, -0.0, 0.005, 0.1, 1.0 / 3.0, 33554.43, 33554.431, 1e300];
    }
    made
}

/// Histograms and floats at some of `times`.
struct Drawn {
    floats: Vec<(i64, f64)>,
    histograms: Vec<(i64, Histogram)>,
}

fn draw(random: &mut Random, count: u64) -> Drawn {
    let mut drawn = Drawn { floats: Vec::new(), histograms: Vec::new() };
    let mut last = any_histogram(random);
    let (mut nanos, mut is_float) = (random.next() as i64 >> 4, false);
    for _ in 0..count {
        nanos += 1 + random.below(3_000_000_000) as i64;
        is_float ^= random.below(20) == 0;
        if is_float {
            drawn.floats.push((nanos, random.below(1000) as f64));
        } else {
            last = next_histogram(random, &last);
            drawn.histograms.push((nanos, last.clone()));
        }
    }
    drawn
}

fn unzip<T: Clone>(points: &[(i64, T)]) -> (Vec<i64>, Vec<T>) {
    points.iter().cloned().unzip()
}

fn framed(drawn: &Drawn) -> (Vec<ReadSeries>, ReadSeries) {
    let (timestamps, values) = unzip(&drawn.floats);
    let (histogram_timestamps, histograms) = unzip(&drawn.histograms);
    let mixed = Mixed {
        timestamps: &timestamps,
        values: &values,
        histogram_timestamps: &histogram_timestamps,
        histograms: &histograms,
    };
    let mut out = Vec::new();
    FrameWriter::new().mixed_series(&mut out, 0, &labels(), &mixed);
    let frames = split_frames(&out).unwrap();
    let series = frames.into_iter().flat_map(|frame| decode_frame(frame).unwrap()).collect();
    let mut message = SamplesMessage::new();
    message.mixed_series(&labels(), &mixed);
    message.end_query();
    let mut whole = decode_samples(&message.finish()).unwrap();
    assert_eq!(whole.len(), 1);
    (series, whole.remove(0))
}

#[test]
fn random_histograms_come_back_in_both_answers() {
    let mut random = Random::seeded(0x5eed);
    for round in 0..200 {
        let drawn = draw(&mut random, 1 + round * 3);
        let (frames, whole) = framed(&drawn);
        let want: Vec<(i64, Histogram)> = drawn
            .histograms
            .iter()
            .map(|(nanos, histogram)| (nanos.div_euclid(NANOS_PER_MILLI), histogram.clone()))
            .collect();
        let floats: Vec<(i64, f64)> = drawn
            .floats
            .iter()
            .map(|(nanos, value)| (nanos.div_euclid(NANOS_PER_MILLI), *value))
            .collect();
        let of_samples = |series: &ReadSeries| -> Vec<(i64, f64)> {
            series.chunks.iter().flatten().map(|s| (s.millis, s.value)).collect()
        };
        let found: Vec<(i64, f64)> = frames.iter().flat_map(of_samples).collect();
        // Two samples of one millisecond are rare in this drawing, and tested below.
        let has_twins = |times: &mut dyn Iterator<Item = i64>| {
            let mut times: Vec<i64> = times.collect();
            times.sort_unstable();
            times.windows(2).any(|pair| pair[0] == pair[1])
        };
        let mut all = want.iter().map(|(at, _)| *at).chain(floats.iter().map(|(at, _)| *at));
        if has_twins(&mut all) {
            continue;
        }
        assert_eq!((found, of_samples(&whole)), (floats.clone(), floats));
        let found: Vec<_> = frames.into_iter().flat_map(|series| series.histograms).collect();
        check_histograms(&found, &want);
        assert_eq!(whole.histograms.len(), want.len());
        for (found, want) in whole.histograms.iter().zip(&want) {
            assert_eq!(found, want);
        }
    }
}

/// The same numbers; a hint may say more than was known, but nothing else.
#[track_caller]
fn check_histograms(found: &[(i64, Histogram)], want: &[(i64, Histogram)]) {
    assert_eq!(found.len(), want.len());
    for (idx, ((at, histogram), (want_at, want))) in found.iter().zip(want).enumerate() {
        assert_eq!(at, want_at);
        let hint = histogram.reset_hint;
        if hint == ResetHint::NoReset {
            let before = &found[idx - 1].1;
            assert!(before.count <= want.count && before.zero_count <= want.zero_count);
            assert_ne!(want.reset_hint, ResetHint::Reset);
        } else {
            assert_eq!(hint, want.reset_hint);
        }
        assert_eq!(histogram, &Histogram { reset_hint: hint, ..want.clone() });
        let bits = |bounds: &[f64]| bounds.iter().map(|b| b.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&histogram.custom_bounds), bits(&want.custom_bounds));
    }
}

#[test]
fn of_one_millisecond_the_newest_is_told() {
    let histogram = |count: f64| Histogram { count, ..Histogram::default() };
    let drawn = Drawn {
        floats: vec![(2_000_000, 1.0), (3_000_001, 2.0), (4_000_000, 3.0)],
        histograms: vec![
            (2_000_001, histogram(1.0)),
            (3_000_000, histogram(2.0)),
            (5_000_000, histogram(3.0)),
            (5_000_009, histogram(4.0)),
        ],
    };
    let (frames, whole) = framed(&drawn);
    let [series] = frames.as_slice() else { panic!("{frames:?}") };
    let floats: Vec<_> = series.chunks.concat().iter().map(|s| (s.millis, s.value)).collect();
    assert_eq!(floats, [(3, 2.0), (4, 3.0)]);
    let found: Vec<_> = series.histograms.iter().map(|(at, h)| (*at, h.count)).collect();
    assert_eq!(found, [(2, 1.0), (5, 4.0)]);
    assert_eq!((whole.chunks.concat().len(), whole.histograms.len()), (2, 2));
}

/// Chunk by chunk: how many histograms, and the flags.
fn cuts(histograms: &[Histogram]) -> Vec<(usize, u8)> {
    let all: Vec<(i64, &Histogram)> = (0..).zip(histograms).collect();
    let (mut rest, mut found) = (all.as_slice(), Vec::new());
    while !rest.is_empty() {
        let mut out = Vec::new();
        let taken = histogram_chunk::push_chunk(&mut out, rest, CHUNK_SAMPLES_MAX);
        found.push((taken, out[2]));
        rest = &rest[taken..];
    }
    found
}

#[test]
fn a_chunk_ends_where_the_layout_or_a_counter_changes() {
    let base = Histogram {
        count: 3.0,
        positive: vec![Bucket { index: 1, count: 2.0 }, Bucket { index: 2, count: 1.0 }],
        ..Histogram::default()
    };
    let with = |change: &dyn Fn(&mut Histogram)| {
        let mut changed = base.clone();
        change(&mut changed);
        changed
    };
    let same = with(&|h| h.reset_hint = ResetHint::NoReset);
    assert_eq!(cuts(&[base.clone(), same.clone(), base.clone()]), [(3, 0)]);
    assert_eq!(cuts(std::slice::from_ref(&same)), [(1, 0x40)]);
    for (changed, flags) in [
        (with(&|h| h.schema = 1), 0),
        (with(&|h| h.zero_threshold = 1.0), 0),
        (with(&|h| h.positive[1].index = 3), 0),
        (with(&|h| h.negative.push(Bucket { index: 1, count: 1.0 })), 0),
        (with(&|h| h.positive[1].count = 0.0), 0),
        (with(&|h| h.count = 2.0), 0),
        (with(&|h| h.reset_hint = ResetHint::Reset), 0x80),
        (with(&|h| h.reset_hint = ResetHint::Gauge), 0xc0),
    ] {
        assert_eq!(cuts(&[base.clone(), changed.clone()]), [(1, 0), (1, flags)], "{changed:?}");
    }
    let gauge = |count: f64| Histogram { count, reset_hint: ResetHint::Gauge, ..base.clone() };
    assert_eq!(cuts(&[gauge(2.0), gauge(1.0), gauge(3.0)]), [(3, 0xc0)]);
    assert_eq!(cuts(&vec![base.clone(); 250]), [(120, 0), (120, 0), (10, 0)]);
    // Large ones: 8 bytes for each bucket of the first.
    let wide = |count: f64| Histogram {
        positive: (0..4096).map(|index| Bucket { index, count }).collect(),
        ..base.clone()
    };
    assert_eq!(cuts(&[wide(1.0), wide(2.0)]), [(1, 0), (1, 0)]);
}

#[test]
fn cut_chunks_are_errors() {
    let drawn = draw(&mut Random::seeded(0x5eed), 1);
    let Some((millis, histogram)) = drawn.histograms.first() else { return };
    let mut out = Vec::new();
    histogram_chunk::push_chunk(&mut out, &[(*millis, histogram); 3], CHUNK_SAMPLES_MAX);
    assert_eq!(histogram_chunk::decode_chunk(&out).unwrap().len(), 3);
    for cut in 0..out.len() - 1 {
        assert!(histogram_chunk::decode_chunk(&out[..cut]).is_err(), "{cut}");
    }
}
