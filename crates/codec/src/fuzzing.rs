//! What the fuzz targets call: arbitrary bytes to every decoder, arbitrary data through every encoder.
//!
//! A decoder may answer with an error or with nonsense of the right length; it must not panic, nor
//! allocate more than the lens it was given, or the limits of a column, allow.

use crate::bytes::Reader;
use crate::column::{
    Effort, Paging, SAMPLES_MAX, TimestampsReader, ValuesReader, encode_timestamps, encode_values,
};
use crate::error::Error;

const EFFORTS: [Effort; 2] = [Effort::Fast, Effort::Dense];
const PAGINGS: [Paging; 2] = [Paging::Wide, Paging::Narrow];

/// Some lens (a count, then two bytes each), and a column of values.
pub fn fuzz_values(data: &[u8]) {
    let mut reader = Reader::new(data);
    let Ok(lens) = lens(&mut reader) else { return };
    let rest = reader.slice(reader.remaining()).unwrap_or(&[]);
    read_values(rest, &lens);
}

/// Reads a column of values that may be anything.
pub fn read_values(bytes: &[u8], lens: &[u32]) {
    PAGINGS.iter().for_each(|paging| read_paged_values(bytes, lens, *paging));
}

fn read_paged_values(bytes: &[u8], lens: &[u32], paging: Paging) {
    let Ok(column) = ValuesReader::open(bytes, lens, paging) else { return };
    let mut values = Vec::new();
    let samples: usize = lens.iter().map(|&len| len as usize).sum();
    if column.read(0..lens.len(), &mut values).is_ok() {
        assert_eq!(values.len(), samples);
    }
    for (slot, &len) in lens.iter().enumerate() {
        let mut one = Vec::new();
        if column.read(slot..slot + 1, &mut one).is_ok() {
            assert_eq!(one.len(), len as usize);
        }
    }
}

/// A column of timestamps.
pub fn fuzz_timestamps(data: &[u8]) {
    PAGINGS.iter().for_each(|paging| read_paged_timestamps(data, *paging));
}

fn read_paged_timestamps(data: &[u8], paging: Paging) {
    let Ok(column) = TimestampsReader::open(data, paging) else { return };
    let lens = column.lens();
    let samples: usize = lens.iter().map(|&len| len as usize).sum();
    assert!(samples <= SAMPLES_MAX);
    let mut timestamps = Vec::new();
    if column.read(0..lens.len(), &mut timestamps).is_ok() {
        assert_eq!(timestamps.len(), samples);
    }
    for (slot, &len) in lens.iter().enumerate().take(4) {
        let mut one = Vec::new();
        if column.read(slot..slot + 1, &mut one).is_ok() {
            assert_eq!(one.len(), len as usize);
            assert!(one.is_sorted_by(|a, b| a < b));
        }
    }
}

/// Some lens, then eight bytes a value: through both encoders and back.
pub fn fuzz_values_round_trip(data: &[u8]) {
    let mut reader = Reader::new(data);
    let Ok(mut lens) = lens(&mut reader) else { return };
    // An odd selector makes small numbers, so that decimals are met often.
    let is_small = reader.u8().unwrap_or(0) & 1 == 1;
    let mut values = Vec::new();
    for len in &mut lens {
        let start = values.len();
        while values.len() - start < *len as usize
            && let Ok(bits) = reader.u64()
        {
            let small = f64::from(bits as i16) / 10f64.powi((bits >> 16) as i32 & 3);
            values.push(if is_small { small } else { f64::from_bits(bits) });
        }
        *len = (values.len() - start) as u32;
    }
    for effort in EFFORTS {
        let mut bytes = Vec::new();
        encode_values(&values, &lens, effort, &mut bytes);
        let column =
            ValuesReader::open(&bytes, &lens, Paging::NEWEST).expect("what was encoded opens");
        let mut back = Vec::new();
        column.read(0..lens.len(), &mut back).expect("what was encoded decodes");
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(&values));
    }
}

/// Some lens, then eight bytes a timestamp: through both encoders and back.
pub fn fuzz_timestamps_round_trip(data: &[u8]) {
    let mut reader = Reader::new(data);
    let Ok(mut lens) = lens(&mut reader) else { return };
    let mut timestamps = Vec::new();
    for len in &mut lens {
        let mut list = Vec::new();
        while list.len() < *len as usize
            && let Ok(bits) = reader.u64()
        {
            list.push(bits as i64 >> (bits & 63));
        }
        list.sort_unstable();
        list.dedup();
        *len = list.len() as u32;
        timestamps.extend(list);
    }
    for effort in EFFORTS {
        let mut bytes = Vec::new();
        encode_timestamps(&timestamps, &lens, effort, &mut bytes);
        let column =
            TimestampsReader::open(&bytes, Paging::NEWEST).expect("what was encoded opens");
        let mut back = Vec::new();
        column.read(0..lens.len(), &mut back).expect("what was encoded decodes");
        assert_eq!(column.lens(), lens);
        assert_eq!(back, timestamps);
    }
}

fn lens(reader: &mut Reader) -> Result<Vec<u32>, Error> {
    let mut lens = Vec::new();
    for _ in 0..reader.u8()? % 16 {
        let (low, high) = (u32::from(reader.u8()?), u32::from(reader.u8()?));
        lens.push(low | (high & 0x0f) << 8);
    }
    Ok(lens)
}
