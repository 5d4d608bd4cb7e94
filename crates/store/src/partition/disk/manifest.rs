//! A partition's manifest: which files are its content. Replaced whole, by one atomic rename.
//!
//! Layout in `docs/format/manifest.md`. A file that it does not name is no content of the partition.
//! Such a file is removed only when the manifest proves that it may go (see [`crate::partition::disk::strays`]): its
//! number was never given to a manifest, or it is listed as one that nobody vouches for.

use crate::base::file_names::{INDEX_DIR, PARTITION_MANIFEST, PARTS_DIR};
use crate::base::period::Period;
use crate::{Error, Result};
use codec::{Reader, crc32, put_i64_zigzag, put_u32, put_varint};
use index::SegmentEntry;
use model::TimeRange;
use roaring::RoaringBitmap;
use std::path::Path;
use vfs::Vfs;

/// What every version begins with; a digit follows, the version.
const KIND: &[u8; 7] = b"QPMANIF";
/// The version that is written; all before it are read for ever.
const VERSION: u8 = b'2';
/// The first version, which says neither its partition nor the footers of segments, and has no list
/// of files that nobody vouches for.
const VERSION_BARE: u8 = b'1';
/// Bounds that a sane manifest keeps, against sizes that lie.
const PARTS_MAX: usize = 1 << 20;
const NAME_SIZE_MAX: usize = 255;
/// Stands for the checksum of a segment's footer that nobody knows.
const FOOTER_UNKNOWN: u32 = 0;

/// Everything the manifest says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Records of this partition in log segments before this one are in the parts already.
    pub wal_from: u64,
    /// The next sequence number to give to a part or a tombstone; grows for ever.
    pub sequence_next: u64,
    /// The parts, by increasing order.
    pub parts: Vec<PartEntry>,
    /// The index segments, by increasing ordinals.
    pub segments: Vec<SegmentEntry>,
    /// Deletions that some part has not applied yet.
    pub tombstones: Vec<Tombstone>,
    /// Files, as `parts/NAME` and `index/NAME`, that are no content and may go: inputs of merges
    /// that are done, outputs that are being written or failed.
    pub unvouched: Vec<String>,
}

/// Why bytes are no manifest.
#[derive(Debug, PartialEq, Eq)]
enum Unreadable {
    Corrupt(codec::Error),
    Version(u8),
}

impl From<codec::Error> for Unreadable {
    fn from(error: codec::Error) -> Unreadable {
        Unreadable::Corrupt(error)
    }
}

/// One part on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartEntry {
    /// Number of the file; never used twice.
    pub file: u64,
    /// Where the part stands among the others: for one series and instant, the higher order wins.
    /// A merged part takes the highest order of the parts it was made of.
    pub order: u64,
    /// Tombstones up to this sequence are applied in the file already.
    pub applied: u64,
}

/// A deletion: the samples of `series` in `range` are gone from all parts that say they have not
/// applied it yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone {
    /// When it happened, in the order of parts.
    pub sequence: u64,
    /// Ordinals of the series.
    pub series: RoaringBitmap,
    /// The deleted span of time.
    pub range: TimeRange,
}

impl Manifest {
    /// Numbers of parts and tombstones stay below: as many as nobody ever writes, and far from where
    /// counting on would overflow.
    pub const SEQUENCE_MAX: u64 = 1 << 62;

    /// File name of the part with that number.
    pub fn part_name(file: u64) -> String {
        format!("{file:016x}.part")
    }

    /// The number of the part with that name, if it is the name of one.
    pub fn part_number(name: &str) -> Option<u64> {
        let number = u64::from_str_radix(name.strip_suffix(".part")?, 16).ok()?;
        (Manifest::part_name(number) == name).then_some(number)
    }

    /// Where the part with that number is in the partition's directory.
    pub fn part_file(file: u64) -> String {
        format!("{PARTS_DIR}/{}", Manifest::part_name(file))
    }

    /// Where the index segment of that name is in the partition's directory.
    pub fn segment_file(name: &str) -> String {
        format!("{INDEX_DIR}/{name}")
    }

    /// Lists a file as one that may go.
    pub fn disown(&mut self, file: String) {
        if !self.unvouched.contains(&file) {
            self.unvouched.push(file);
        }
    }

    /// Takes files from the list of those that may go.
    pub fn unlist(&mut self, files: &[String]) {
        self.unvouched.retain(|file| !files.contains(file));
    }

    /// Reads the manifest of a partition's directory; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::UnknownVersion`], and I/O errors.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Manifest>> {
        let path = dir.join(PARTITION_MANIFEST);
        if !vfs.exists(&path)? {
            return Ok(None);
        }
        let bytes = vfs.read(&path)?;
        Manifest::decode(&bytes, period_of(dir)).map(Some).map_err(|error| match error {
            Unreadable::Corrupt(error) => Error::Corrupt {
                file: path,
                offset: error.offset as u64,
                what: error.what.to_string(),
            },
            Unreadable::Version(version) => Error::UnknownVersion {
                file: path,
                version: char::from(version).to_string(),
                known: format!("up to {}", char::from(VERSION)),
            },
        })
    }

    /// Replaces the manifest of a partition's directory durably.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        assert_eq!(self.broken_rule(), None, "a manifest that may be written");
        let period = period_of(dir).expect("the directory of a partition");
        let bytes = self.encode(period);
        debug_assert_eq!(
            Manifest::decode(&bytes, Some(period)).as_ref(),
            Ok(self),
            "it reads back"
        );
        Ok(vfs::write_atomic(vfs, &dir.join(PARTITION_MANIFEST), &bytes)?)
    }

    /// Drops the tombstones that every part has applied.
    pub fn remove_applied_tombstones(&mut self) {
        let oldest = self.parts.iter().map(|part| part.applied).min().unwrap_or(u64::MAX);
        self.tombstones.retain(|tombstone| oldest < tombstone.sequence);
    }

    /// Checksum of what is the partition's content: without the next number, which runs ahead of the
    /// disk, and the files that may go.
    pub fn content_checksum(&self, period: Period) -> u32 {
        let content = Manifest { sequence_next: 0, unvouched: Vec::new(), ..self.clone() };
        let bytes = content.encode(period);
        // Not that of all bytes: with its own checksum behind it every text has the same.
        let checksum = bytes.last_chunk().expect("it ends with its checksum");
        u32::from_le_bytes(*checksum)
    }

    /// Which of the rules does not hold that must hold at every change.
    fn broken_rule(&self) -> Option<&'static str> {
        let rules = [
            (self.parts.is_sorted_by(|a, b| a.order < b.order), "parts are not by order"),
            (self.sequence_next <= Manifest::SEQUENCE_MAX, "a number that is never reached"),
            (self.parts.iter().all(|p| p.file < self.sequence_next), "a part of a later number"),
            (self.parts.iter().all(|p| p.order <= p.applied), "a part applied less than its order"),
            (
                self.tombstones.iter().all(|t| t.sequence < self.sequence_next),
                "a tombstone of a later number",
            ),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, rule)| rule)
    }

    fn encode(&self, period: Period) -> Vec<u8> {
        assert!(
            self.parts.len() <= PARTS_MAX && self.segments.len() <= PARTS_MAX,
            "as many are read"
        );
        assert!(self.tombstones.len() <= PARTS_MAX && self.unvouched.len() <= PARTS_MAX);
        let mut out = KIND.to_vec();
        out.push(VERSION);
        put_i64_zigzag(&mut out, period.code());
        put_varint(&mut out, self.wal_from);
        put_varint(&mut out, self.sequence_next);
        put_varint(&mut out, self.parts.len() as u64);
        for part in &self.parts {
            put_varint(&mut out, part.file);
            put_varint(&mut out, part.order);
            put_varint(&mut out, part.applied);
        }
        put_varint(&mut out, self.segments.len() as u64);
        for segment in &self.segments {
            put_name(&mut out, &segment.name);
            put_u32(&mut out, segment.footer.unwrap_or(FOOTER_UNKNOWN));
        }
        put_varint(&mut out, self.tombstones.len() as u64);
        for tombstone in &self.tombstones {
            put_varint(&mut out, tombstone.sequence);
            put_i64_zigzag(&mut out, tombstone.range.start);
            put_i64_zigzag(&mut out, tombstone.range.end);
            put_varint(&mut out, tombstone.series.serialized_size() as u64);
            tombstone.series.serialize_into(&mut out).expect("writing to memory");
        }
        put_names(&mut out, &self.unvouched);
        let checksum = crc32(&out);
        put_u32(&mut out, checksum);
        out
    }

    /// Reads the manifest of `partition`, if that is known.
    fn decode(bytes: &[u8], period: Option<Period>) -> std::result::Result<Manifest, Unreadable> {
        let body_size = bytes.len().saturating_sub(4);
        let (body, checksum) = bytes.split_at(body_size);
        let mut reader = Reader::new(body);
        if reader.slice(KIND.len()) != Ok(&KIND[..]) {
            return Err(codec::Error { offset: 0, what: "no manifest" }.into());
        }
        let version = reader.u8()?;
        // In every version: so a version that rot has changed is told from one that is new.
        if checksum != crc32(body).to_le_bytes() {
            return Err(codec::Error { offset: body_size, what: "checksum mismatch" }.into());
        }
        if !version.is_ascii_digit() {
            return Err(reader.corrupt("no version").into());
        }
        if !(VERSION_BARE..=VERSION).contains(&version) {
            return Err(Unreadable::Version(version));
        }
        if version != VERSION_BARE {
            let said = reader.i64_zigzag()?;
            if period.is_some_and(|period| period.code() != said) {
                return Err(reader.corrupt("it is of another partition").into());
            }
        }
        Ok(read_body(&mut reader, version)?)
    }
}

/// The partition whose directory it is.
fn period_of(dir: &Path) -> Option<Period> {
    Period::parse(dir.file_name()?.to_str()?)
}

fn read_body(reader: &mut Reader<'_>, version: u8) -> std::result::Result<Manifest, codec::Error> {
    let wal_from = reader.varint()?;
    let sequence_next = reader.varint()?;
    let parts = read_list(reader, |reader| {
        let (file, order) = (reader.varint()?, reader.varint()?);
        Ok(PartEntry { file, order, applied: reader.varint()? })
    })?;
    let segments = read_list(reader, |reader| {
        let name = read_name(reader)?;
        let footer = match version {
            VERSION_BARE => FOOTER_UNKNOWN,
            _ => reader.u32()?,
        };
        Ok(SegmentEntry { name, footer: (footer != FOOTER_UNKNOWN).then_some(footer) })
    })?;
    let tombstones = read_list(reader, read_tombstone)?;
    let unvouched = match version {
        VERSION_BARE => Vec::new(),
        _ => read_list(reader, read_name)?,
    };
    if !reader.is_empty() {
        return Err(reader.corrupt("bytes after the end"));
    }
    let manifest = Manifest { wal_from, sequence_next, parts, segments, tombstones, unvouched };
    manifest.broken_rule().map_or(Ok(manifest), |rule| Err(reader.corrupt(rule)))
}

fn put_names(out: &mut Vec<u8>, names: &[String]) {
    put_varint(out, names.len() as u64);
    names.iter().for_each(|name| put_name(out, name));
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    assert!(name.len() <= NAME_SIZE_MAX, "so long names are read");
    put_varint(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

fn read_name(reader: &mut Reader<'_>) -> std::result::Result<String, codec::Error> {
    let size = reader.varint_size(NAME_SIZE_MAX)?;
    let name = reader.slice(size)?.to_vec();
    String::from_utf8(name).map_err(|_| reader.corrupt("invalid UTF-8"))
}

fn read_list<T>(
    reader: &mut Reader<'_>,
    mut read_one: impl FnMut(&mut Reader<'_>) -> std::result::Result<T, codec::Error>,
) -> std::result::Result<Vec<T>, codec::Error> {
    let count = reader.varint_size(PARTS_MAX)?;
    (0..count).map(|_| read_one(reader)).collect()
}

fn read_tombstone(reader: &mut Reader<'_>) -> std::result::Result<Tombstone, codec::Error> {
    let sequence = reader.varint()?;
    let range = TimeRange::new(reader.i64_zigzag()?, reader.i64_zigzag()?);
    let size = reader.varint_size(reader.remaining())?;
    let bytes = reader.slice(size)?;
    let series = RoaringBitmap::deserialize_from(bytes);
    Ok(Tombstone { sequence, series: series.map_err(|_| reader.corrupt("bad bitmap"))?, range })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartitionLength;

    fn example() -> Manifest {
        Manifest {
            wal_from: 7,
            sequence_next: 12,
            parts: vec![
                PartEntry { file: 1, order: 1, applied: 6 },
                PartEntry { file: 11, order: 8, applied: 8 },
            ],
            segments: vec![SegmentEntry { name: "a.seg".into(), footer: Some(0xabcd_ef01) }],
            tombstones: vec![Tombstone {
                sequence: 5,
                series: [1, 2, 3, 70_000].into_iter().collect(),
                range: TimeRange::new(-5, i64::MAX),
            }],
            unvouched: vec![Manifest::part_file(9), Manifest::segment_file("b.seg")],
        }
    }

    fn period() -> Period {
        PartitionLength::Month.period(600).unwrap()
    }

    fn read(bytes: &[u8]) -> std::result::Result<Manifest, Unreadable> {
        Manifest::decode(bytes, Some(period()))
    }

    /// What version 1 wrote of [`example`], without what it did not know.
    const VERSION_1: &[u8] =
        b"QPMANIF1\x07\x0c\x02\x01\x01\x06\x0b\x08\x08\x01\x05a.seg\x01\x05\x09\xfe\xff\xff\xff\
        \xff\xff\xff\xff\xff\x01 :0\x00\x00\x02\x00\x00\x00\x00\x00\x02\x00\x01\x00\x00\x00\x18\
        \x00\x00\x00\x1e\x00\x00\x00\x01\x00\x02\x00\x03\x00p\x11\xa0\xed\xd4\x82";

    #[test]
    fn a_manifest_comes_back_and_rot_is_noticed() {
        let manifest = example();
        let bytes = manifest.encode(period());
        assert_eq!(Manifest::decode(&bytes, Some(period())), Ok(manifest.clone()));
        assert_eq!(Manifest::decode(&bytes, None), Ok(manifest));
        let other = Manifest::decode(&bytes, period().next());
        assert!(matches!(other, Err(Unreadable::Corrupt(_))), "{other:?}");
        for idx in 0..bytes.len() {
            let mut rotten = bytes.clone();
            rotten[idx] ^= 1;
            assert!(matches!(read(&rotten), Err(Unreadable::Corrupt(_))), "byte {idx}");
            assert!(read(&bytes[..idx]).is_err(), "cut at {idx}");
        }
    }

    #[test]
    fn version_1_is_read_for_ever() {
        let segments = vec![SegmentEntry::unchecked("a.seg".into())];
        let known = Manifest { unvouched: Vec::new(), segments, ..example() };
        assert_eq!(read(VERSION_1), Ok(known));
    }

    #[test]
    fn a_later_version_is_unknown_and_not_corrupt() {
        let mut bytes = example().encode(period());
        bytes.truncate(bytes.len() - 4);
        bytes[KIND.len()] = b'3';
        let checksum = crc32(&bytes);
        put_u32(&mut bytes, checksum);
        assert_eq!(read(&bytes), Err(Unreadable::Version(b'3')));
    }

    #[test]
    fn rules_that_do_not_hold_are_no_manifest() {
        let broken = Manifest { sequence_next: 11, ..example() };
        assert!(matches!(read(&broken.encode(period())), Err(Unreadable::Corrupt(_))));
    }

    #[test]
    fn names_of_parts_are_exact() {
        assert_eq!(Manifest::part_number(&Manifest::part_name(0xabc)), Some(0xabc));
        for name in ["1.part", "0000000000000ABC.part", "+000000000000001.part", "x", ".part"] {
            assert_eq!(Manifest::part_number(name), None, "{name}");
        }
    }
}
