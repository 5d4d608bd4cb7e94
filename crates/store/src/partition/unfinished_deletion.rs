//! The file of a deletion that takes several writes: it is there until the last of them is durable.
//!
//! ```text
//! delete ─► file ─► manifests ─► records ─► exemplars ─► no file
//!                └──────────── a crash here ─────────┴─► the next start makes the writes that are missing
//! ```
//!
//! It names what is deleted by the numbers of series in each partition and by the content of the
//! manifest that the deletion has read. A manifest with other content has the tombstone already, or
//! belongs to series that were made later. So a deletion is finished with what it began with.
//!
//! Layout in `docs/format/manifest.md`.

use crate::Result;
use crate::base::directory::side_file::SideFile;
use crate::base::period::Period;
use crate::log::exemplar_record::{put_labels, read_labels};
use crate::log::exemplars::ExemplarQueue;
use crate::log::log_record::{decode_metadata, encode_metadata};
use crate::partition::disk::manifest::{Manifest, Tombstone};
use codec::{Reader, put_i64_zigzag, put_u32, put_varint};
use model::{Labels, Metadata, TimeRange};
use roaring::RoaringBitmap;
use std::path::Path;
use std::sync::Arc;
use vfs::Vfs;

/// Name of the file in the data directory.
pub const FILE_NAME: &str = "deletion";
/// Of a deletion with schema records.
const MAGIC_WITH_RECORDS: &[u8; 8] = b"QPDELET3";
/// Of one without: all programs that read the store know it. Earlier versions changed metadata with it.
const MAGIC: &[u8; 8] = b"QPDELET2";
/// Bound of counts, against counts that lie.
const COUNT_MAX: usize = 1 << 24;

/// A deletion, with all that a start needs to finish it.
#[derive(Debug, PartialEq)]
pub(crate) struct UnfinishedDeletion {
    /// Deleted span of time.
    pub range: TimeRange,
    /// Deleted series of partitions.
    pub partitions: Vec<PartitionDeletion>,
    /// Deleted exemplars.
    pub exemplars: Option<ExemplarDeletion>,
    /// Legacy schema entries that change with it, in version 2 of the file.
    pub legacy_schema: Vec<Metadata>,
    /// Changes of schema records, as their consumer encodes them.
    pub records: Vec<u8>,
}

/// What is deleted in one partition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartitionDeletion {
    /// The partition.
    pub period: Period,
    /// [`Manifest::content_checksum`] before the deletion.
    pub content: u32,
    /// Sequence of the tombstone.
    pub sequence: u64,
    /// Ordinals of the series.
    pub series: RoaringBitmap,
}

/// Exemplars that are deleted.
#[derive(Debug, PartialEq)]
pub(crate) struct ExemplarDeletion {
    /// A file of exemplars that has records of this log segment or a later one was written after the
    /// deletion.
    pub log_end: u64,
    /// Their series.
    pub series: Vec<Arc<Labels>>,
}

impl PartitionDeletion {
    /// The manifest after the deletion.
    pub fn apply(&self, range: TimeRange, before: Manifest) -> Manifest {
        let mut manifest = before;
        let (sequence, series) = (self.sequence, self.series.clone());
        manifest.sequence_next = manifest.sequence_next.max(sequence + 1);
        manifest.tombstones.push(Tombstone { sequence, series, range });
        manifest.remove_applied_tombstones();
        manifest
    }
}

impl UnfinishedDeletion {
    /// Reads the file of a store's directory; `None` without one.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`], [`crate::Error::UnknownVersion`], and I/O errors.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<UnfinishedDeletion>> {
        let path = dir.join(FILE_NAME);
        if !vfs.exists(&path)? {
            return Ok(None);
        }
        let bytes = vfs.read(&path)?;
        let has_metadata = bytes.starts_with(MAGIC);
        let file = SideFile { path, magic: if has_metadata { MAGIC } else { MAGIC_WITH_RECORDS } };
        let body = file.body_of(bytes)?;
        decode(&body, has_metadata).map(Some).map_err(|error| file.undecodable(&error))
    }

    /// Writes the file: from now on the deletion will be finished.
    ///
    /// # Errors
    /// On I/O errors; unless they leave the disk in doubt there is no file then.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let magic = if self.records.is_empty() { MAGIC } else { MAGIC_WITH_RECORDS };
        SideFile { path: dir.join(FILE_NAME), magic }.write(vfs, &self.encode())
    }

    /// Removes the file, after the last write of the deletion.
    ///
    /// # Errors
    /// On I/O errors; the file is there or not then.
    pub fn remove(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        vfs.remove(&dir.join(FILE_NAME))?;
        Ok(vfs.sync_dir(dir)?)
    }

    /// Removes the exemplars from a queue that has been read from its file and nothing of the log yet.
    pub fn delete_exemplars(&self, queue: &ExemplarQueue) {
        let deleted = self.exemplars.iter().filter(|one| queue.wal_from() <= one.log_end);
        deleted.for_each(|one| queue.delete(&one.series, &self.range));
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_i64_zigzag(&mut body, self.range.start);
        put_i64_zigzag(&mut body, self.range.end);
        put_varint(&mut body, self.partitions.len() as u64);
        for one in &self.partitions {
            put_i64_zigzag(&mut body, one.period.code());
            put_u32(&mut body, one.content);
            put_varint(&mut body, one.sequence);
            put_varint(&mut body, one.series.serialized_size() as u64);
            one.series.serialize_into(&mut body).expect("writing to memory");
        }
        put_varint(&mut body, self.exemplars.as_ref().map_or(0, |one| one.series.len() as u64));
        if let Some(ExemplarDeletion { log_end, series }) = &self.exemplars {
            series.iter().for_each(|labels| put_labels(&mut body, labels));
            put_varint(&mut body, *log_end);
        }
        match self.records.is_empty() {
            true => body.extend_from_slice(&encode_metadata(&self.legacy_schema)),
            false => body.extend_from_slice(&self.records),
        }
        body
    }
}

fn decode(
    body: &[u8],
    has_metadata: bool,
) -> std::result::Result<UnfinishedDeletion, codec::Error> {
    let mut reader = Reader::new(body);
    let range = TimeRange::new(reader.i64_zigzag()?, reader.i64_zigzag()?);
    let count = reader.varint_size(COUNT_MAX)?;
    let partitions = (0..count).map(|_| read_partition(&mut reader));
    let partitions = partitions.collect::<std::result::Result<_, _>>()?;
    let exemplars = match reader.varint_size(COUNT_MAX)? {
        0 => None,
        count => {
            let series = (0..count).map(|_| read_labels(&mut reader).map(Arc::new));
            let series = series.collect::<std::result::Result<_, _>>()?;
            Some(ExemplarDeletion { series, log_end: reader.varint()? })
        }
    };
    let start = reader.offset();
    let rest = &body[start..];
    let (legacy_schema, records) = match has_metadata {
        true => (decode_metadata(rest), Vec::new()),
        false => (Ok(Vec::new()), rest.to_vec()),
    };
    let legacy_schema =
        legacy_schema.map_err(|error| codec::Error { offset: start + error.offset, ..error })?;
    Ok(UnfinishedDeletion { range, partitions, exemplars, legacy_schema, records })
}

fn read_partition(reader: &mut Reader<'_>) -> std::result::Result<PartitionDeletion, codec::Error> {
    let period = Period::from_code(reader.i64_zigzag()?);
    let period = period.ok_or_else(|| reader.corrupt("no partition"))?;
    let (content, sequence) = (reader.u32()?, reader.varint()?);
    if Manifest::SEQUENCE_MAX <= sequence {
        return Err(reader.corrupt("a number that is never reached"));
    }
    let size = reader.varint_size(reader.remaining())?;
    let series = RoaringBitmap::deserialize_from(reader.slice(size)?);
    let series = series.map_err(|_| reader.corrupt("bad bitmap"))?;
    Ok(PartitionDeletion { period, content, sequence, series })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartitionLength;
    use vfs::SimVfs;

    fn example() -> UnfinishedDeletion {
        let period = PartitionLength::Month.period(600).expect("a month");
        let series = [1, 2, 70_000].into_iter().collect();
        let labels = Labels::from_pairs(&[("__name__", "a")]);
        UnfinishedDeletion {
            range: TimeRange::new(-5, i64::MAX),
            partitions: vec![PartitionDeletion {
                period,
                content: 0xabcd_ef01,
                sequence: 9,
                series,
            }],
            exemplars: Some(ExemplarDeletion { log_end: 7, series: vec![Arc::new(labels)] }),
            legacy_schema: vec![Metadata {
                metric: "\0n".into(),
                unit: "gone".into(),
                ..Metadata::default()
            }],
            records: Vec::new(),
        }
    }

    fn example_with_records() -> UnfinishedDeletion {
        UnfinishedDeletion { legacy_schema: Vec::new(), records: b"records".to_vec(), ..example() }
    }

    #[test]
    fn a_deletion_comes_back_and_damage_is_noticed() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        disk.create_dir_all(dir).unwrap();
        assert_eq!(UnfinishedDeletion::read(&disk, dir).unwrap(), None);
        let without = UnfinishedDeletion { exemplars: None, ..example() };
        for deletion in [example(), without, example_with_records()] {
            deletion.write(&disk, dir).unwrap();
            assert_eq!(UnfinishedDeletion::read(&disk, dir).unwrap(), Some(deletion));
        }
        example().write(&disk, dir).unwrap();
        let path = dir.join(FILE_NAME);
        let bytes = disk.read(&path).unwrap();
        assert_eq!(bytes[..bytes.len() - 4], GOLDEN[..], "version 2, for ever");
        for offset in 0..bytes.len() as u64 {
            disk.flip_bit(&path, offset, 4).unwrap();
            assert!(UnfinishedDeletion::read(&disk, dir).is_err(), "byte {offset}");
            disk.flip_bit(&path, offset, 4).unwrap();
        }
        example_with_records().write(&disk, dir).unwrap();
        let bytes = disk.read(&path).unwrap();
        let before = GOLDEN.strip_prefix(MAGIC).unwrap().strip_suffix(b"\x00\x02\x00n\x00\x04gone");
        let golden = [&MAGIC_WITH_RECORDS[..], before.unwrap(), b"records"].concat();
        assert_eq!(bytes[..bytes.len() - 4], golden[..], "version 3, for ever");
        UnfinishedDeletion::remove(&disk, dir).unwrap();
        assert_eq!(UnfinishedDeletion::read(&disk, dir).unwrap(), None);
    }

    /// What version 2 writes of [`example`], without the checksum.
    const GOLDEN: &[u8] =
        b"QPDELET2\x09\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\xb0\x09\x01\xef\xcd\xab\x09\x1e:0\
        \x00\x00\x02\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x18\x00\x00\x00\x1c\x00\x00\x00\x01\
        \x00\x02\x00\x70\x11\x01\x0b\x08__name__\x01a\x07\x00\x02\x00n\x00\x04gone";

    #[test]
    fn bytes_that_are_no_deletion_are_refused() {
        let body = example().encode();
        let legacy = body.len() - encode_metadata(&example().legacy_schema).len();
        for cut in (0..body.len()).filter(|cut| *cut != legacy) {
            assert!(decode(&body[..cut], true).is_err(), "cut at {cut}");
        }
        // A bit may make another deletion, which the checksum of the file tells; none may panic.
        for bit in 0..8 * body.len() {
            let mut changed = body.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let _ = decode(&changed, true);
            let _ = decode(&changed, false);
        }
    }
}
