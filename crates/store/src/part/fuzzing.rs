//! Entry point for fuzzing: any bytes must open and read, or be refused, without a panic.

use super::format::{END_MAGIC, HEADER_SIZE, TRAILER_SIZE};
use super::{ColumnTimes, Part};
use crate::base::narrow::to_usize;
use codec::crc32;
use std::path::PathBuf;

/// Reads `data` as a part, as it is and once more with every checksum put right, so that mutations
/// reach the decoders behind the checksums. What verifies must also read back in full.
pub fn fuzz_part(data: &[u8]) {
    read(data.to_vec());
    let mut sealed = data.to_vec();
    reseal(&mut sealed);
    read(sealed);
}

fn read(bytes: Vec<u8>) {
    let Ok(part) = Part::open(vfs::Bytes::from_vec(bytes), PathBuf::from("fuzz")) else { return };
    // Made-up directories can claim large columns; they are bounded by the codec's own limits.
    let is_sound = part.verify().is_ok();
    let mut samples = 0;
    for idx in 0..part.slices().len() {
        for column in 0..part.slice(idx).columns as usize {
            samples += read_column(&part, idx, column).unwrap_or(0);
        }
    }
    if is_sound {
        assert!(samples == part.summary().samples, "verified samples read back");
    }
    let _ = part.live_on(i32::MIN, i32::MAX);
}

fn read_column(part: &Part, idx: usize, column: usize) -> Option<u64> {
    if part.column_times(idx, column) == ColumnTimes::Empty {
        return None;
    }
    let times = part.times(idx, column).ok()??;
    let values = part.values(idx, column, times.lens()).ok()?;
    let mut samples = 0;
    for slot in 0..times.lens().len() {
        let (mut slot_times, mut slot_values) = (Vec::new(), Vec::new());
        times.read(slot..slot + 1, &mut slot_times).ok()?;
        values.read(slot..slot + 1, &mut slot_values).ok()?;
        assert!(slot_times.len() == slot_values.len(), "a value for each timestamp");
        samples += slot_values.len() as u64;
    }
    Some(samples)
}

/// Puts the checksum of the directory right, then that of every page and day the directory names.
pub(crate) fn reseal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_SIZE + TRAILER_SIZE {
        return;
    }
    let trailer = bytes.len() - TRAILER_SIZE;
    let offset = u64::from_le_bytes(bytes[trailer..trailer + 8].try_into().expect("eight bytes"));
    let Some(offset) = usize::try_from(offset).ok().filter(|&offset| offset <= trailer) else {
        return;
    };
    let checksum = crc32(&bytes[offset..trailer]);
    bytes[trailer + 8..trailer + 16].copy_from_slice(&((trailer - offset) as u64).to_le_bytes());
    bytes[trailer + 16..trailer + 20].copy_from_slice(&checksum.to_le_bytes());
    bytes[trailer + 20..].copy_from_slice(&END_MAGIC);
    let Ok(part) = Part::open(vfs::Bytes::from_vec(bytes.to_vec()), PathBuf::new()) else { return };
    for idx in 0..part.slices().len() {
        let slice = &part.slice(idx);
        let mut start = to_usize(slice.offset);
        let columns = part.column_words(idx).iter().map(|word| word.size());
        for size in std::iter::once(slice.times_size as usize).chain(columns) {
            if 4 <= size {
                let checksum = crc32(&bytes[start + 4..start + size]);
                bytes[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
            }
            start += size;
        }
    }
}
