//! Every byte of a segment; see `docs/format/wal.md`.
//!
//! ```text
//! file    NNNNNNNNNN.wal = header record*
//! header  magic 8 | version u32 | segment u64 | nonce u64 | crc32 u32            32 bytes
//! record  check u32 | size u32 | kind u8 | payload[size]                   9 + size bytes
//! ```
//!
//! `check` is the CRC-32 of all that follows it in the record, xor the segment's salt, xor the
//! record's offset: bytes of another segment, another life of the disk or another place are no
//! record. The salt comes from a random nonce, so a client cannot send bytes that look like one.

use codec::{Reader, crc32, put_u32, put_u64};

/// The largest payload of one record. Far above what a door lets through in one request; a size
/// beyond it on the disk is corrupt.
pub const RECORD_SIZE_MAX: usize = 256 << 20;

/// What a segment starts with.
pub(crate) const MAGIC: [u8; 8] = *b"QUIPUWAL";
/// The version that is written, and the last that is read.
pub(crate) const VERSION: u32 = 1;
/// Size of a segment's header.
pub(crate) const HEADER_SIZE: u64 = 32;
/// What a record has in front of its payload.
pub(crate) const RECORD_HEADER_SIZE: usize = 9;
/// The kind that zeroed bytes would have; never written.
pub(crate) const KIND_NONE: u8 = 0;
/// A mark: "all bytes before this record were synced before it was written". No payload.
pub(crate) const KIND_MARK: u8 = 255;

/// The last segment there can be: ten digits, a million years of a segment an hour.
pub(crate) const SEGMENT_MAX: u64 = 9_999_999_999;
/// The end of a segment's file name.
const NAME_SUFFIX: &str = ".wal";

/// Name of a segment's file.
pub fn segment_name(segment: u64) -> String {
    assert!(segment <= SEGMENT_MAX);
    format!("{segment:010}{NAME_SUFFIX}")
}

/// The segment whose file has this name; `None` for files that are not ours.
pub(crate) fn parse_segment_name(name: &str) -> Option<u64> {
    let segment = name.strip_suffix(NAME_SUFFIX)?.parse().ok()?;
    (segment <= SEGMENT_MAX && segment_name(segment) == name).then_some(segment)
}

/// A segment's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) segment: u64,
    /// Random, so that no two segments ever share their salt but by chance.
    pub(crate) nonce: u64,
}

/// Why a header is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Invalid(&'static str),
    UnknownVersion(u32),
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put_u32(&mut bytes, VERSION);
        put_u64(&mut bytes, self.segment);
        put_u64(&mut bytes, self.nonce);
        let crc = crc32(&bytes);
        put_u32(&mut bytes, crc);
        assert_eq!(bytes.len() as u64, HEADER_SIZE);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Header, HeaderError> {
        let parsed = parse_header(bytes);
        let (version, crc, header) =
            parsed.map_err(|_| HeaderError::Invalid("cut short, or no log segment"))?;
        // First the checksum: a torn header may hold any version. Its place is for ever.
        if crc32(&bytes[..HEADER_SIZE as usize - 4]) != crc {
            return Err(HeaderError::Invalid("checksum of the header"));
        }
        if version != VERSION {
            return Err(HeaderError::UnknownVersion(version));
        }
        Ok(header)
    }

    /// What every check in the segment is mixed with.
    pub(crate) fn salt(&self) -> u32 {
        let mut bytes = Vec::with_capacity(16);
        put_u64(&mut bytes, self.segment);
        put_u64(&mut bytes, self.nonce);
        crc32(&bytes)
    }
}

fn parse_header(bytes: &[u8]) -> Result<(u32, u32, Header), codec::Error> {
    let mut reader = Reader::new(bytes);
    if reader.slice(MAGIC.len())? != MAGIC {
        return Err(reader.corrupt("magic"));
    }
    let version = reader.u32()?;
    let header = Header { segment: reader.u64()?, nonce: reader.u64()? };
    Ok((version, reader.u32()?, header))
}

/// Appends a record made of `parts` to `out`, as it stands at `offset` of its segment.
pub(crate) fn put_record(out: &mut Vec<u8>, salt: u32, offset: u64, kind: u8, parts: &[&[u8]]) {
    assert_ne!(kind, KIND_NONE);
    let size: usize = parts.iter().map(|part| part.len()).sum();
    assert!(size <= RECORD_SIZE_MAX);
    let start = out.len();
    out.reserve(RECORD_HEADER_SIZE + size);
    put_u32(out, 0);
    put_u32(out, size as u32);
    out.push(kind);
    for part in parts {
        out.extend_from_slice(part);
    }
    let check = check(&out[start + 4..], salt, offset);
    out[start..start + 4].copy_from_slice(&check.to_le_bytes());
    debug_assert_eq!(out.len(), start + RECORD_HEADER_SIZE + size);
}

/// The check of a record whose bytes after the check are `covered`.
pub(crate) fn check(covered: &[u8], salt: u32, offset: u64) -> u32 {
    debug_assert!(offset <= u64::from(u32::MAX));
    crc32(covered) ^ salt ^ offset as u32
}
