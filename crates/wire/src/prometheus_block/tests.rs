//! Bytes that lie, and what is written by hand as the format documents say.

use super::chunks::{self, Chunk};
use super::index::{self, Contents, Symbols, parse_series};
use super::tombstones;
use crate::crc32c::crc32c;
use crate::remote_read::chunk::push_chunk;
use crate::remote_write::encode::MillisSample;

fn with_sum(body: &[u8]) -> Vec<u8> {
    let mut all = body.to_vec();
    all.extend(crc32c(body).to_be_bytes());
    all
}

fn symbols(texts: &[&str]) -> Vec<u8> {
    let mut body = (texts.len() as u32).to_be_bytes().to_vec();
    for text in texts {
        body.push(text.len() as u8);
        body.extend(text.as_bytes());
    }
    let mut all = (body.len() as u32).to_be_bytes().to_vec();
    all.extend(with_sum(&body));
    all
}

#[test]
fn a_series_is_its_labels_and_the_places_of_its_chunks() {
    let symbols = Symbols::parse(symbols(&["__name__", "up", "job", "é"])).unwrap();
    // Two labels; two chunks: 1 s to 2 s at 8 of the first file, 2.5 s to 4 s at 100.
    let content = [2, 0, 1, 2, 3, 2, 0xd0, 0x0f, 0xe8, 0x07, 8, 0xf4, 0x03, 0xdc, 0x0b, 0xb8, 0x01];
    let series = parse_series(&content, crc32c(&content).to_be_bytes(), &symbols).unwrap();
    assert_eq!(series.labels.get("job"), Some("é"));
    let places: Vec<_> =
        series.chunks.iter().map(|one| (one.first_ms, one.last_ms, one.file, one.offset)).collect();
    assert_eq!(places, [(1000, 2000, 0, 8), (2500, 4000, 0, 100)]);
    let far = [1, 0, 9, 0];
    assert!(parse_series(&far, crc32c(&far).to_be_bytes(), &symbols).is_err(), "no such string");
    assert!(parse_series(&content, [0; 4], &symbols).is_err(), "rotten");
    for end in 0..content.len() {
        let cut = &content[..end];
        assert!(parse_series(cut, crc32c(cut).to_be_bytes(), &symbols).is_err(), "{end}");
    }
}

#[test]
fn sections_that_are_cut_or_rotten_are_refused() {
    let whole = symbols(&["a", "bc"]);
    for end in 0..whole.len() {
        assert!(Symbols::parse(whole[..end].to_vec()).is_err(), "{end}");
    }
    for at in 0..whole.len() {
        let mut rotten = whole.clone();
        rotten[at] ^= 0x40;
        assert!(Symbols::parse(rotten).is_err(), "{at}");
    }
    let mut contents = Vec::new();
    for at in [5u64, 64, 0, 0, 128, 256] {
        contents.extend(at.to_be_bytes());
    }
    let contents: [u8; index::CONTENTS_SIZE] = with_sum(&contents).try_into().unwrap();
    let found = Contents::parse(&contents, 400).unwrap();
    assert_eq!((found.symbols, found.series, found.series_end), (5, 64, 128));
    assert!(Contents::parse(&contents, 100).is_err(), "beyond the file");
    assert!(index::check_header(&[0xba, 0xaa, 0xd7, 0, 1]).is_err(), "version 1");
    assert!(index::check_header(&[0xba, 0xaa, 0xd7, 0, 2]).is_ok());
}

#[test]
fn chunks_are_believed_after_their_checksum() {
    let samples =
        [1.0, 1.5, f64::NAN, -0.0].map(|value| MillisSample { millis: 1000, value }).to_vec();
    let mut body = vec![1];
    push_chunk(&mut body, &samples);
    let Chunk::Samples(found) = chunks::decode(&with_sum(&body)).unwrap() else { panic!() };
    let bits = |all: &[MillisSample]| all.iter().map(|one| one.value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&found), bits(&samples));
    assert!(chunks::decode(&[1, 2, 3]).is_err());
    let mut rotten = with_sum(&body);
    rotten[3] ^= 1;
    assert!(chunks::decode(&rotten).is_err());
    body[0] = 9;
    assert!(chunks::decode(&with_sum(&body)).is_err(), "an encoding of the future");
}

/// Chunks of aggregates; one that is not there is none.
fn aggregates(all: [Option<(u8, &[MillisSample])>; 5]) -> Vec<u8> {
    let mut body = vec![0xff];
    for one in all {
        let Some((encoding, samples)) = one else {
            body.push(0);
            continue;
        };
        let mut inner = Vec::new();
        push_chunk(&mut inner, samples);
        body.push(u8::try_from(inner.len()).unwrap());
        body.push(encoding);
        body.extend(inner);
    }
    body
}

#[test]
fn aggregates_are_averages_and_a_counter() {
    let samples = |all: &[(i64, f64)]| -> Vec<MillisSample> {
        all.iter().map(|(millis, value)| MillisSample { millis: *millis, value: *value }).collect()
    };
    let (counts, sums) = (samples(&[(10, 4.0), (20, 2.0)]), samples(&[(10, 6.0), (20, 5.0)]));
    let counter = samples(&[(1, 3.0), (10, 4.0), (20, 9.0), (20, 2.0)]);
    let body = aggregates([Some((1, &counts)), Some((1, &sums)), None, None, Some((1, &counter))]);
    let Chunk::Aggregates(found) = chunks::decode(&with_sum(&body)).unwrap() else { panic!() };
    assert_eq!(found.averages, samples(&[(10, 1.5), (20, 2.5)]));
    assert_eq!((found.counter, found.is_of_histograms), (counter, false));
    for end in 1..body.len() {
        assert!(chunks::decode(&with_sum(&body[..end])).is_err(), "{end}");
    }
    // Sums of other times than the counts, an encoding of the future, histograms.
    let other = aggregates([Some((1, &counts)), Some((1, &sums[..1])), None, None, None]);
    assert!(chunks::decode(&with_sum(&other)).is_err());
    let future = aggregates([Some((9, &counts)), None, None, None, None]);
    assert!(chunks::decode(&with_sum(&future)).is_err());
    let body = aggregates([Some((1, &counts)), Some((3, &sums)), None, None, None]);
    let Chunk::Aggregates(found) = chunks::decode(&with_sum(&body)).unwrap() else { panic!() };
    assert!(found.is_of_histograms && found.averages.is_empty());
}

#[test]
fn tombstones_are_read() {
    let mut bytes = vec![0x01, 0x30, 0xba, 0x30, 1];
    bytes.extend(with_sum(&[5, 0xd0, 0x0f, 0xa0, 0x1f, 5, 0, 2]));
    assert_eq!(tombstones::parse(&bytes).unwrap()[&5], [(1000, 2000), (0, 1)]);
    bytes[6] ^= 1;
    assert!(tombstones::parse(&bytes).is_err());
}
