//! Blocks written and read back by the reader of blocks.

use super::index::IndexEncoder;
use super::meta::ulid;
use super::pairs::Strings;
use super::{chunks, no_tombstones};
use crate::prometheus_block::chunks::{Chunk, check_header, decode};
use crate::prometheus_block::index::{
    self, ALIGNMENT, CONTENTS_SIZE, ChunkPlace, Contents, Symbols, parse_series,
};
use crate::prometheus_block::tombstones;
use crate::protobuf::Message;
use crate::remote_write::encode::MillisSample;
use crate::remote_write::encode_histograms::CountForm;
use histogram::{Bucket, Histogram, ResetHint};
use model::Labels;
use rng::Random;
use std::collections::BTreeMap;

/// The index of series in their order, each with its chunks.
fn encode(series: &[(Labels, Vec<ChunkPlace>)]) -> Vec<u8> {
    let mut strings = Strings::default();
    let mut numbered: Vec<_> =
        series.iter().map(|(labels, chunks)| (strings.number(labels).unwrap(), chunks)).collect();
    let sorted = strings.sorted();
    numbered.iter_mut().for_each(|(labels, _)| sorted.rank(labels));
    numbered.sort_by(|one, other| one.0.cmp(&other.0));
    let (mut file, mut out) = (Vec::new(), Vec::new());
    let mut index = IndexEncoder::begin(&mut out, sorted.texts()).unwrap();
    let mut flush = |index: &mut IndexEncoder, out: &mut Vec<u8>| {
        index.cleared(out.len());
        file.append(out);
    };
    let (mut all, mut pairs) = (Vec::new(), BTreeMap::<(u32, u32), Vec<u32>>::new());
    for (labels, chunks) in &numbered {
        let reference = index.series(&mut out, labels, chunks).unwrap();
        all.push(reference);
        labels.iter().for_each(|pair| pairs.entry(*pair).or_default().push(reference));
        flush(&mut index, &mut out);
    }
    let mut names = BTreeMap::<u32, Vec<u32>>::new();
    pairs.keys().for_each(|(name, value)| names.entry(*name).or_default().push(*value));
    for (name, values) in names {
        index.values(&mut out, sorted.text(name), &values).unwrap();
    }
    index.postings(&mut out, ("", ""), &all).unwrap();
    for ((name, value), references) in pairs {
        let pair = (sorted.text(name), sorted.text(value));
        index.postings(&mut out, pair, &references).unwrap();
        flush(&mut index, &mut out);
    }
    index.finish(&mut out).unwrap();
    file.append(&mut out);
    file
}

fn read(file: &[u8]) -> Vec<(Labels, Vec<ChunkPlace>)> {
    index::check_header(file.first_chunk().unwrap()).unwrap();
    let contents: &[u8; CONTENTS_SIZE] = file.last_chunk().unwrap();
    let contents = Contents::parse(contents, file.len() as u64).unwrap();
    let (start, end) = (contents.symbols as usize, contents.series as usize);
    let symbols = Symbols::parse(file[start..end].to_vec()).unwrap();
    let mut found = Vec::new();
    let mut at = end;
    loop {
        at = at.next_multiple_of(ALIGNMENT as usize);
        if contents.series_end as usize <= at {
            return found;
        }
        let mut message = Message::new(&file[at..]);
        let content = message.sized().unwrap();
        let end = at + message.offset();
        let sum = file[end..end + 4].try_into().unwrap();
        let series = parse_series(content, sum, &symbols).unwrap();
        found.push((series.labels, series.chunks));
        at = end + 4;
    }
}

#[test]
fn an_index_is_read_back() {
    let mut random = Random::seeded(0x1dec);
    for count in [1usize, 2, 500] {
        let mut series = BTreeMap::new();
        for at in 0..count {
            let (name, host) = (format!("m{}", random.below(20)), format!("é{at}"));
            let labels = Labels::from_pairs(&[("__name__", name.as_str()), ("host", &host)]);
            let (mut chunks, mut ms) = (Vec::new(), -(random.below(1 << 40) as i64));
            let mut offset = 8 + at as u32 * 100;
            for file in 0..random.below(4) as u32 {
                let last_ms = ms + random.below(1 << 30) as i64;
                chunks.push(ChunkPlace { first_ms: ms, last_ms, file, offset });
                (ms, offset) = (last_ms + 1, random.below(1 << 29) as u32);
            }
            series.insert(labels.to_string(), (labels, chunks));
        }
        let series: Vec<_> = series.into_values().collect();
        let mut found = read(&encode(&series));
        let by_text = |one: &(Labels, _), other: &(Labels, _)| one.0.iter().cmp(other.0.iter());
        assert!(found.is_sorted_by(|one, other| by_text(one, other).is_lt()));
        let mut expected = series;
        expected.sort_by(by_text);
        found.sort_by(by_text);
        assert_eq!(found, expected);
    }
}

/// All chunks of a text of chunks, and what they hold.
fn read_chunks(mut bytes: &[u8]) -> Vec<Chunk> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let mut message = Message::new(bytes);
        let size = message.varint().unwrap() as usize;
        let (chunk, rest) = bytes[message.offset()..].split_at(size + 5);
        found.push(decode(chunk).unwrap());
        bytes = rest;
    }
    found
}

#[test]
fn samples_are_cut_into_chunks() {
    check_header(&chunks::header()).unwrap();
    let mut random = Random::seeded(0xc44);
    let mut millis = -1_000_000;
    let samples: Vec<MillisSample> = (0..1000)
        .map(|at| {
            millis += 1 + if at % 50 == 0 { random.below(1 << 36) as i64 } else { 15_000 };
            MillisSample { millis, value: f64::from_bits(random.next()) }
        })
        .collect();
    let (mut out, mut rest) = (Vec::new(), samples.as_slice());
    while let Some(written) = chunks::push_samples(&mut out, rest) {
        assert_eq!(written.first_ms, rest[0].millis);
        assert_eq!(written.last_ms, rest[written.samples - 1].millis);
        rest = &rest[written.samples..];
    }
    let found = read_chunks(&out);
    assert_eq!(found.len(), 9);
    let found = found.into_iter().flat_map(|chunk| match chunk {
        Chunk::Samples(samples) => samples,
        other => panic!("{other:?}"),
    });
    let bits = |one: &MillisSample| (one.millis, one.value.to_bits());
    assert!(found.map(|one| bits(&one)).eq(samples.iter().map(bits)));
}

fn any_histogram(random: &mut Random, at: i64) -> Histogram {
    let unit = if at / 40 % 3 == 2 { 0.5 } else { 1.0 };
    let bucket =
        |index: i32| Bucket { index, count: (at * i64::from(index.abs() + 1)) as f64 * unit };
    let mut histogram = Histogram {
        schema: 3,
        zero_threshold: 2f64.powi(-128),
        zero_count: at as f64,
        count: (at * 40) as f64 * unit,
        sum: at as f64 / 3.0,
        positive: [-4, -3, 7, 8, 9 + (at / 100) as i32].map(bucket).to_vec(),
        negative: [0, 5].map(bucket).to_vec(),
        ..Histogram::default()
    };
    match random.below(30) {
        0 => histogram = Histogram::stale(),
        1 => histogram.positive.iter_mut().for_each(|bucket| bucket.count = 1.0),
        2 => histogram.reset_hint = ResetHint::Gauge,
        _ => {}
    }
    histogram
}

#[test]
fn histograms_are_cut_into_chunks() {
    let mut random = Random::seeded(0x415);
    let histograms: Vec<(i64, Histogram)> =
        (1..700).map(|at| (at * 15_000 + at % 7, any_histogram(&mut random, at))).collect();
    let given: Vec<(i64, &Histogram)> = histograms.iter().map(|(ms, one)| (*ms, one)).collect();
    let (mut out, mut rest) = (Vec::new(), given.as_slice());
    while let Some(written) = chunks::push_histograms(&mut out, rest) {
        assert_eq!(written.last_ms, rest[written.samples - 1].0);
        rest = &rest[written.samples..];
    }
    let (mut found, mut forms) = (Vec::new(), [0, 0]);
    for chunk in read_chunks(&out) {
        let Chunk::Histograms(all) = chunk else { panic!("samples") };
        forms[usize::from(all[0].form == CountForm::Whole)] += 1;
        found.extend(all);
    }
    assert!(forms.iter().all(|count| 3 < *count), "{forms:?}");
    assert_eq!(found.len(), histograms.len());
    for (one, (millis, other)) in found.iter().zip(&histograms) {
        let mut other = other.clone();
        other.reset_hint = one.histogram.reset_hint;
        assert_eq!(one.millis, *millis);
        assert_eq!(one.histogram.sum.to_bits(), other.sum.to_bits());
        other.sum = 0.0;
        let found = Histogram { sum: 0.0, ..one.histogram.clone() };
        assert_eq!(found, other, "{millis}");
    }
}

#[test]
fn names_of_blocks_are_ulids() {
    assert_eq!(ulid(0, 0), "00000000000000000000000000");
    // The first 48 bits are the time: the example of the specification's reference.
    assert_eq!(&ulid(1_469_918_176_385, u128::MAX)[..10], "01ARYZ6S41");
    assert_eq!(&ulid(1_469_918_176_385, u128::MAX)[10..], "ZZZZZZZZZZZZZZZZ");
    assert!(tombstones::parse(&no_tombstones()).unwrap().is_empty());
}
