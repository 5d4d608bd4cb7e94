//! Names and numbers of a segment file. Every byte is described in `docs/format/index.md`.
//!
//! ```text
//! header 16 bytes │ sections, one after the other │ footer, fixed size
//! ```

use crate::error::{Error, Result, corrupt};
use crate::narrow::to_usize;
use codec::{Reader, crc32, put_u32, put_u64};
use std::ops::Range;

/// First bytes of a segment, and its last ones.
pub(crate) const MAGIC: [u8; 8] = *b"QUIPUIDX";
/// Version of the layout.
pub(crate) const VERSION: u32 = 1;
/// Magic, version, CRC-32 of both.
pub(crate) const HEADER_SIZE: usize = 16;
/// How segments' names end.
pub(crate) const SUFFIX: &str = ".seg";

/// The parts of a segment, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// A record per label.
    Labels,
    /// The front-coded dictionaries.
    Strings,
    /// Posting words and lists.
    Postings,
    /// A record per group.
    Groups,
    /// The groups' lists of names and tags.
    Lists,
    /// A record per block.
    Blocks,
    /// First entity and number of each block, by entity.
    EntityBlocks,
    /// A record per column of a block.
    Columns,
    /// Bit planes.
    Planes,
    /// The table of entities.
    Hashes,
}

/// How many there are.
pub(crate) const SECTION_COUNT: usize = 10;

/// In the order of the file.
pub(crate) const SECTIONS: [Section; SECTION_COUNT] = [
    Section::Labels,
    Section::Strings,
    Section::Postings,
    Section::Groups,
    Section::Lists,
    Section::Blocks,
    Section::EntityBlocks,
    Section::Columns,
    Section::Planes,
    Section::Hashes,
];

/// Sizes of fixed-size records.
pub(crate) const LABEL_SIZE: usize = 24;
pub(crate) const GROUP_SIZE: usize = 32;
pub(crate) const BLOCK_SIZE: usize = 24;
pub(crate) const ENTITY_BLOCK_SIZE: usize = 8;
pub(crate) const COLUMN_SIZE: usize = 12;
pub(crate) const HASH_SIZE: usize = 8;

/// What the footer counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// First entity that the segment may hold, and the first that it may not.
    pub entities_start: u32,
    pub next_entity: u32,
    /// First ordinal that the segment may hold, and the first that it may not.
    pub series_start: u32,
    pub next_series: u32,
    /// Live entities and their series.
    pub entity_count: u64,
    pub series_count: u64,
    /// Labels, the metric's name included.
    pub label_count: u32,
    pub group_count: u32,
    pub block_count: u32,
    /// Bits of a hash that choose its bucket.
    pub bucket_bits: u32,
    pub column_count: u64,
    pub hash_count: u64,
    /// Where the dictionary of tag names is in [`Section::Strings`].
    pub tag_names_offset: u64,
    /// Where the words of tag names are in [`Section::Postings`].
    pub tag_postings_offset: u64,
}

/// Counts, section table, CRC-32 of both, magic.
pub(crate) const FOOTER_SIZE: usize = 80 + SECTION_COUNT * 20 + 4 + 8;

/// The footer, decoded and checked.
#[derive(Clone, Debug)]
pub(crate) struct Footer {
    pub counts: Counts,
    pub sections: [Extent; SECTION_COUNT],
    /// Checksum of counts and sections: no two segments share it but by chance.
    pub crc: u32,
    /// Whether the header is as every segment's; nothing else depends on it.
    pub has_sound_header: bool,
}

/// Where a section is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    pub range: Range<usize>,
    pub crc: u32,
}

/// The header of every segment.
pub(crate) fn header() -> [u8; HEADER_SIZE] {
    let mut out = Vec::with_capacity(HEADER_SIZE);
    out.extend_from_slice(&MAGIC);
    put_u32(&mut out, VERSION);
    let crc = crc32(&out);
    put_u32(&mut out, crc);
    out.try_into().expect("sixteen bytes")
}

/// The footer of a segment whose sections follow the header in order.
pub(crate) fn encode_footer(counts: &Counts, sections: &[Vec<u8>; SECTION_COUNT]) -> Vec<u8> {
    let mut out = Vec::with_capacity(FOOTER_SIZE);
    put_counts(&mut out, counts);
    let mut offset = HEADER_SIZE as u64;
    for section in sections {
        put_u64(&mut out, offset);
        put_u64(&mut out, section.len() as u64);
        put_u32(&mut out, crc32(section));
        offset += section.len() as u64;
    }
    let crc = crc32(&out);
    put_u32(&mut out, crc);
    out.extend_from_slice(&MAGIC);
    assert_eq!(out.len(), FOOTER_SIZE);
    out
}

fn put_counts(out: &mut Vec<u8>, counts: &Counts) {
    for number in [
        counts.entities_start,
        counts.next_entity,
        counts.series_start,
        counts.next_series,
        counts.label_count,
        counts.group_count,
        counts.block_count,
        counts.bucket_bits,
    ] {
        put_u32(out, number);
    }
    for number in [
        counts.entity_count,
        counts.series_count,
        counts.column_count,
        counts.hash_count,
        counts.tag_names_offset,
        counts.tag_postings_offset,
    ] {
        put_u64(out, number);
    }
}

/// Whether the checksums of header and footer must hold; fuzzing looks behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// As on every disk.
    Enforced,
    /// Taken for granted.
    Skipped,
}

/// Reads header and footer of a whole file.
pub(crate) fn read_frame(bytes: &[u8], checks: Checks) -> Result<Footer> {
    if bytes.len() < HEADER_SIZE + FOOTER_SIZE {
        return Err(corrupt("shorter than header and footer"));
    }
    check_version(&bytes[..HEADER_SIZE])?;
    let footer_start = bytes.len() - FOOTER_SIZE;
    let footer = read_footer(&bytes[footer_start..], footer_start, checks);
    let footer = footer.map_err(|error| match error {
        Error::Corrupt { file, offset, what } => {
            Error::Corrupt { file, offset: offset + footer_start as u64, what }
        }
        other => other,
    })?;
    Ok(Footer { has_sound_header: bytes[..HEADER_SIZE] == header(), ..footer })
}

/// A header that is whole and says another version is a newer program's. One that is not whole says
/// nothing: the footer has a checksum of its own.
fn check_version(header: &[u8]) -> Result<()> {
    let mut reader = Reader::new(header);
    let magic = reader.slice(8)?;
    let (version, crc) = (reader.u32()?, reader.u32()?);
    if magic == MAGIC && version != VERSION && crc32(&header[..12]) == crc {
        return Err(Error::UnknownVersion { file: String::new(), version, max: VERSION });
    }
    Ok(())
}

fn read_footer(bytes: &[u8], sections_end: usize, checks: Checks) -> Result<Footer> {
    let checked_size = FOOTER_SIZE - 12;
    let mut tail = Reader::new(&bytes[checked_size..]);
    let crc = tail.u32()?;
    if checks == Checks::Enforced && crc32(&bytes[..checked_size]) != crc {
        return Err(corrupt("checksum of the footer"));
    }
    if tail.slice(8)? != MAGIC {
        return Err(corrupt("magic at the end of a segment"));
    }
    let mut reader = Reader::new(&bytes[..checked_size]);
    let counts = read_counts(&mut reader)?;
    let mut sections: [Extent; SECTION_COUNT] = Default::default();
    let mut expected = HEADER_SIZE as u64;
    for extent in &mut sections {
        let (start, size) = (reader.u64()?, reader.u64()?);
        let end = start.checked_add(size).filter(|end| *end <= sections_end as u64);
        let end = end.ok_or_else(|| corrupt("section past the end"))?;
        if start != expected {
            return Err(corrupt("gap between sections"));
        }
        *extent = Extent { range: to_usize(start)..to_usize(end), crc: reader.u32()? };
        expected = end;
    }
    if expected != sections_end as u64 {
        return Err(corrupt("gap before the footer"));
    }
    let footer = Footer { counts, sections, crc, has_sound_header: true };
    footer.check_sizes()?;
    Ok(footer)
}

fn read_counts(reader: &mut Reader<'_>) -> Result<Counts> {
    Ok(Counts {
        entities_start: reader.u32()?,
        next_entity: reader.u32()?,
        series_start: reader.u32()?,
        next_series: reader.u32()?,
        label_count: reader.u32()?,
        group_count: reader.u32()?,
        block_count: reader.u32()?,
        bucket_bits: reader.u32()?,
        entity_count: reader.u64()?,
        series_count: reader.u64()?,
        column_count: reader.u64()?,
        hash_count: reader.u64()?,
        tag_names_offset: reader.u64()?,
        tag_postings_offset: reader.u64()?,
    })
}

impl Footer {
    /// Sections of fixed-size records have exactly the size that the counts say.
    fn check_sizes(&self) -> Result<()> {
        let counts = &self.counts;
        if counts.label_count == 0 || 31 < counts.bucket_bits {
            return Err(corrupt("counts of the footer"));
        }
        if counts.next_entity < counts.entities_start || counts.next_series < counts.series_start {
            return Err(corrupt("range of ids"));
        }
        let directory = ((1u64 << counts.bucket_bits) + 1) * 4;
        for (section, count, size, fixed) in [
            (Section::Labels, u64::from(counts.label_count), LABEL_SIZE, 0),
            (Section::Groups, u64::from(counts.group_count), GROUP_SIZE, 0),
            (Section::Blocks, u64::from(counts.block_count), BLOCK_SIZE, 0),
            (Section::EntityBlocks, u64::from(counts.block_count), ENTITY_BLOCK_SIZE, 0),
            (Section::Columns, counts.column_count, COLUMN_SIZE, 0),
            (Section::Hashes, counts.hash_count, HASH_SIZE, directory),
        ] {
            let wanted = count.checked_mul(size as u64).and_then(|all| all.checked_add(fixed));
            if wanted != Some(self.sections[section as usize].range.len() as u64) {
                return Err(corrupt("size of a section"));
            }
        }
        Ok(())
    }
}

/// The name of a segment that holds these entities, the `sequence`-th of this partition.
pub(crate) fn segment_name(entities: Range<u32>, sequence: u32) -> String {
    format!("{:08x}-{:08x}-{sequence:06x}{SUFFIX}", entities.start, entities.end)
}

/// The sequence number in a segment's name.
pub fn sequence_of(name: &str) -> Option<u32> {
    let mut fields = name.strip_suffix(SUFFIX)?.split('-');
    let mut field = || u32::from_str_radix(fields.next()?, 16).ok();
    let (start, end, sequence) = (field()?, field()?, field()?);
    (segment_name(start..end, sequence) == name).then_some(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_their_sequence() {
        let name = segment_name(16..0xabcdef, 77);
        assert_eq!(name, "00000010-00abcdef-00004d.seg");
        assert_eq!(sequence_of(&name), Some(77));
        for other in ["manifest", "a-4d.seg", "00000010-00abcdef-4d.seg", "x00000010-0-1.seg"] {
            assert_eq!(sequence_of(other), None, "{other}");
        }
    }

    #[test]
    fn frames_come_back_and_lies_are_found() {
        let mut sections: [Vec<u8>; SECTION_COUNT] = Default::default();
        sections[Section::Labels as usize] = vec![0; LABEL_SIZE];
        sections[Section::Hashes as usize] = vec![0; 8];
        let counts = Counts { label_count: 1, next_entity: 9, ..Counts::default() };
        let mut file = header().to_vec();
        sections.iter().for_each(|section| file.extend_from_slice(section));
        file.extend_from_slice(&encode_footer(&counts, &sections));
        let footer = read_frame(&file, Checks::Enforced).unwrap();
        assert_eq!(footer.counts, counts);
        for byte in 0..file.len() {
            let is_in_footer = file.len() - FOOTER_SIZE <= byte;
            file[byte] ^= 0x10;
            let read = read_frame(&file, Checks::Enforced);
            assert_eq!(read.is_err(), is_in_footer, "{byte}");
            // Nothing depends on the header, which has no second copy of what it says.
            let is_sound = read.is_ok_and(|footer| footer.has_sound_header);
            assert_eq!(is_sound, !is_in_footer && HEADER_SIZE <= byte, "{byte}");
            let _ = read_frame(&file, Checks::Skipped);
            file[byte] ^= 0x10;
        }
        file[8] = 2;
        let crc = crc32(&file[..12]);
        file[12..16].copy_from_slice(&crc.to_le_bytes());
        let newer = read_frame(&file, Checks::Enforced);
        assert!(
            matches!(newer, Err(Error::UnknownVersion { version: 2, max: 1, .. })),
            "{newer:?}"
        );
    }
}
