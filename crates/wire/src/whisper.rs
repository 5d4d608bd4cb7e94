//! Graphite's whisper files: a ring of points for each resolution, all big endian.
//!
//! ```text
//! file     aggregation u32 | longest retention in seconds u32 | x files factor f32 | archives u32
//!          | { offset u32, seconds per point u32, points u32 } for each | their slots
//! slot     time in seconds u32, value f64
//! ```
//!
//! Slot 0 says where the ring of an archive begins: a time stands in slot `(time - first) / seconds modulo
//! points`. Slots that say something else are left over from a round before, as are those whose time the
//! ring has left behind.

use crate::Error;

/// Bytes before the archives' own.
const HEAD_SIZE: usize = 16;
const ARCHIVE_SIZE: usize = 12;
const SLOT_SIZE: usize = 12;
/// Archives of a file: people have three.
const ARCHIVES_MAX: u32 = 1024;
/// The kinds of aggregation that are known.
const AGGREGATIONS: std::ops::RangeInclusive<u32> = 1..=8;
/// What files begin with that go-carbon has compressed.
const COMPRESSED_MAGIC: &[u8] = b"whisper_compressed";

/// A point: seconds since 1970, and its value.
pub type Point = (u32, f64);

/// An archive, as the header tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Archive {
    offset: usize,
    seconds: u32,
    points: u32,
}

/// The points of a file, oldest first: at each time those of the finest archive whose ring reaches back so
/// far. What is no number is none.
///
/// # Errors
/// When the header is none, or is not that of this file.
pub fn read(file: &[u8]) -> Result<Vec<Point>, Error> {
    let mut archives = header(file)?;
    archives.sort_by_key(|one| one.seconds);
    let mut found: Vec<Point> = Vec::new();
    // From here on a finer one says what there was.
    let mut covered = u64::MAX;
    for archive in archives {
        let points = ring(file, archive);
        let Some(&(newest, _)) = points.last() else { continue };
        found.extend(points.iter().filter(|(time, _)| u64::from(*time) < covered));
        covered = covered.min(first_of(archive, newest));
    }
    found.retain(|(_, value)| !value.is_nan());
    found.sort_by_key(|(time, _)| *time);
    Ok(found)
}

fn bad<T>(offset: usize, reason: &'static str) -> Result<T, Error> {
    Err(Error::malformed("whisper file", offset, reason))
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    file.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_be_bytes)
}

fn header(file: &[u8]) -> Result<Vec<Archive>, Error> {
    if file.starts_with(COMPRESSED_MAGIC) {
        return bad(0, "a file that go-carbon has not compressed");
    }
    let (Some(aggregation), Some(longest), Some(count)) =
        (u32_at(file, 0), u32_at(file, 4), u32_at(file, 12))
    else {
        return bad(file.len(), "a header of 16 bytes");
    };
    if AGGREGATIONS.contains(&aggregation.swap_bytes()) && !AGGREGATIONS.contains(&aggregation) {
        return bad(0, "big endian numbers: these are little endian");
    }
    if !AGGREGATIONS.contains(&aggregation) {
        return bad(0, "an aggregation of 1 to 8");
    }
    if !(1..=ARCHIVES_MAX).contains(&count) {
        return bad(12, "1 to 1024 archives");
    }
    let mut archives = Vec::new();
    let mut end = HEAD_SIZE + count as usize * ARCHIVE_SIZE;
    for at in (HEAD_SIZE..end).step_by(ARCHIVE_SIZE) {
        let (Some(offset), Some(seconds), Some(points)) =
            (u32_at(file, at), u32_at(file, at + 4), u32_at(file, at + 8))
        else {
            return bad(file.len(), "as many archives as the header says");
        };
        if offset as usize != end {
            return bad(at, "archives that follow each other");
        }
        if seconds == 0 || points == 0 {
            return bad(at + 4, "seconds and points of an archive");
        }
        archives.push(Archive { offset: end, seconds, points });
        // Within 64 bits for 1,024 archives of 32 bits.
        end += points as usize * SLOT_SIZE;
    }
    let retention = |one: &Archive| u64::from(one.seconds) * u64::from(one.points);
    if archives.iter().map(retention).max() != Some(u64::from(longest)) {
        return bad(4, "the retention of the longest archive");
    }
    match end == file.len() {
        true => Ok(archives),
        false => bad(end.min(file.len()), "the end of the file where its last archive ends"),
    }
}

/// The oldest time that is in the ring when its newest is there.
fn first_of(archive: Archive, newest: u32) -> u64 {
    let length = u64::from(archive.seconds) * u64::from(archive.points);
    (u64::from(newest) + u64::from(archive.seconds)).saturating_sub(length)
}

/// The points of an archive, oldest first.
fn ring(file: &[u8], archive: Archive) -> Vec<Point> {
    let size = archive.points as usize * SLOT_SIZE;
    let slots = file.get(archive.offset..archive.offset + size).unwrap_or_default();
    // Of no time, nothing was written to it yet.
    let Some(base) = u32_at(slots, 0).filter(|base| *base != 0) else { return Vec::new() };
    let (seconds, count) = (i64::from(archive.seconds), i64::from(archive.points));
    let mut points = Vec::new();
    for (slot, at) in slots.chunks_exact(SLOT_SIZE).zip(0i64..) {
        let Some(time) = u32_at(slot, 0).filter(|time| *time != 0) else { continue };
        let distance = i64::from(time) - i64::from(base);
        let is_here = distance % seconds == 0 && (distance / seconds).rem_euclid(count) == at;
        let bits = slot.get(4..).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        if let (true, Some(bits)) = (is_here, bits) {
            points.push((time, f64::from_bits(bits)));
        }
    }
    points.sort_by_key(|(time, _)| *time);
    if let Some(&(newest, _)) = points.last() {
        let first = first_of(archive, newest);
        points.retain(|(time, _)| first <= u64::from(*time));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a point, how many there are, and some of them with their places.
    type Archive<'a> = (u32, u32, &'a [(usize, Point)]);

    /// A file of archives: seconds, points, and what stands in some slots.
    fn file(archives: &[Archive<'_>]) -> Vec<u8> {
        let longest = archives.iter().map(|(seconds, points, _)| seconds * points).max().unwrap();
        let mut bytes = Vec::new();
        for word in [1, longest, 0.5f32.to_bits(), archives.len() as u32] {
            bytes.extend(word.to_be_bytes());
        }
        let mut offset = (HEAD_SIZE + archives.len() * ARCHIVE_SIZE) as u32;
        for (seconds, points, _) in archives {
            [offset, *seconds, *points].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
            offset += points * SLOT_SIZE as u32;
        }
        for (_, points, slots) in archives {
            let mut ring = vec![0; *points as usize * SLOT_SIZE];
            for (slot, (time, value)) in *slots {
                ring[slot * SLOT_SIZE..][..4].copy_from_slice(&time.to_be_bytes());
                ring[slot * SLOT_SIZE + 4..][..8].copy_from_slice(&value.to_be_bytes());
            }
            bytes.extend(ring);
        }
        bytes
    }

    #[test]
    fn the_finest_archive_that_reaches_back_wins() {
        // The ring of ten seconds went round: it begins at 1030 and has left 1000 behind.
        let fine = [(0, (1030, 3.0)), (1, (1040, 4.0)), (2, (1020, 2.0))];
        let coarse = [(0, (960, 0.5)), (1, (990, 1.0)), (2, (1020, 9.0)), (3, (1050, 7.0))];
        let bytes = file(&[(10, 3, &fine), (30, 10, &coarse[..3])]);
        let expected = [(960, 0.5), (990, 1.0), (1020, 2.0), (1030, 3.0), (1040, 4.0)];
        assert_eq!(read(&bytes).unwrap(), expected);
        // A slot of a round before, one at a wrong place, and what is no number.
        let odd = [(0, (1030, 3.0)), (1, (1010, 8.0)), (2, (1051, 2.0)), (3, (1060, f64::NAN))];
        assert_eq!(read(&file(&[(10, 4, &odd)])).unwrap(), [(1030, 3.0)]);
        // Nothing was written to the finer one.
        let bytes = file(&[(10, 3, &[]), (30, 10, &coarse[..2])]);
        assert_eq!(read(&bytes).unwrap(), [(960, 0.5), (990, 1.0)]);
    }

    #[test]
    fn a_header_that_lies_is_named() {
        let good = file(&[(10, 3, &[]), (30, 10, &[])]);
        assert!(read(&good).unwrap().is_empty());
        let words = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        let with = |at: usize, word: u32| {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
            words(&bytes)
        };
        assert!(words(&good[..good.len() - 1]).contains("the end of the file"));
        assert!((0..good.len()).all(|size| read(&good[..size]).is_err()));
        assert!(with(0, 1u32.swap_bytes()).contains("little endian"));
        assert!(with(0, 77).contains("aggregation"));
        assert!(with(4, 77).contains("retention"));
        assert!(with(12, 0).contains("archives"));
        assert!(with(16, 44).contains("follow"));
        assert!(with(20, 0).contains("seconds"));
        assert!(with(24, u32::MAX).contains("follow"));
        assert!(words(b"whisper_compressed\n\0\0\0").contains("go-carbon"));
    }
}
