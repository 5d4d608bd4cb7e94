//! One key with its value, as it lies in a segment.
//!
//! ```text
//! size u32 │ CRC-32 u32 │ seq varint │ database u8 │ expiry varint, 0 never │ key size varint │ key
//!          │            │ coding varint: 0 plain, 1 zstd, above: a dictionary's number
//!          │            │ plain size varint, if coded │ value
//! └ of what follows the checksum, which is of all that
//! ```

use super::dictionary::{CODING_PLAIN, Dictionaries, Groups};
use crate::slots::{NEVER, Slot};
use crate::value::{Value, put_bytes, read_bytes};
use codec::bytes::{Reader, put_varint};
use codec::checksum::crc32;

/// Size and checksum.
const HEADER_SIZE: usize = 8;
/// The largest record: a collection may be far larger than a string. Nothing is allocated for a size
/// that the segment does not have.
const RECORD_SIZE_MAX: usize = u32::MAX as usize;
/// A key with its value.
#[derive(Debug)]
pub struct Record {
    /// The key.
    pub key: Box<[u8]>,
    /// Its value.
    pub value: Value,
    /// When it expires, in milliseconds since the epoch; [`NEVER`].
    pub expire_ms: i64,
    /// The number of the last record of the log that changed it.
    pub seq: u64,
    /// Its database.
    pub db: u8,
}

/// Appends the record of a hot key.
pub(crate) fn put(out: &mut Vec<u8>, slot: &Slot) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_SIZE]);
    put_varint(out, slot.seq);
    out.push(slot.db);
    let expire =
        if slot.expire_ms == NEVER { 0 } else { u64::try_from(slot.expire_ms).unwrap_or(1) };
    put_varint(out, expire);
    put_bytes(out, &slot.key);
    put_varint(out, CODING_PLAIN);
    slot.value.encode(out);
    finish(out, start);
}

/// Appends a record anew, its value coded if that makes it shorter.
pub(crate) fn put_coded(out: &mut Vec<u8>, record: &[u8], groups: &mut Groups) {
    let start = out.len();
    let coded = split(record).and_then(|parts| match parts.coding {
        CODING_PLAIN => Some((parts.head, parts.rest.len(), groups.code(parts.key, parts.rest)?)),
        _ => None,
    });
    let Some((head, plain_size, (coding, coded))) = coded else {
        out.extend_from_slice(record);
        return;
    };
    out.extend_from_slice(&[0; HEADER_SIZE]);
    out.extend_from_slice(head);
    put_varint(out, coding);
    put_varint(out, plain_size as u64);
    out.extend_from_slice(&coded);
    finish(out, start);
}

/// Whether a record's value is not coded. Its beginning is enough.
pub(crate) fn is_plain(record: &[u8]) -> bool {
    split(record).is_some_and(|parts| parts.coding == CODING_PLAIN)
}

/// Whether most of the bytes of records at the beginning of a segment are of plain ones.
pub(crate) fn is_mostly_plain(beginning: &[u8]) -> bool {
    let (mut offset, mut plain_size) = (0, 0);
    while let Some(rest) = beginning.get(offset..).filter(|rest| !rest.is_empty()) {
        let Ok(size) = size_of_record(rest) else { break };
        plain_size += if is_plain(rest) { size } else { 0 };
        offset += size.next_multiple_of(crate::index::RECORD_ALIGNMENT);
    }
    offset < 2 * plain_size
}

/// A record in pieces.
struct Parts<'a> {
    /// What stands before the coding.
    head: &'a [u8],
    key: &'a [u8],
    coding: u64,
    /// What stands behind it.
    rest: &'a [u8],
}

fn split(record: &[u8]) -> Option<Parts<'_>> {
    let body = record.get(HEADER_SIZE..)?;
    let mut reader = Reader::new(body);
    reader.varint().ok()?;
    reader.u8().ok()?;
    reader.varint().ok()?;
    let key = read_bytes(&mut reader).ok()?;
    let head = body.get(..reader.offset())?;
    let coding = reader.varint().ok()?;
    Some(Parts { head, key, coding, rest: body.get(reader.offset()..)? })
}

/// Fills in the size and checksum of the record that begins at `start`.
fn finish(out: &mut [u8], start: usize) {
    let body = start + HEADER_SIZE;
    let size = u32::try_from(out.len() - body).expect("values are bounded");
    let crc = crc32(&out[body..]);
    out[start..start + 4].copy_from_slice(&size.to_le_bytes());
    out[start + 4..body].copy_from_slice(&crc.to_le_bytes());
}

/// The size of the record that begins there.
pub(super) fn size_of_record(bytes: &[u8]) -> Result<usize, &'static str> {
    let size = bytes.first_chunk::<4>().ok_or("cut short")?;
    let size = u32::from_le_bytes(*size) as usize + HEADER_SIZE;
    match size <= RECORD_SIZE_MAX {
        true => Ok(size),
        false => Err("a size beyond all limits"),
    }
}

/// About how many bytes the record that begins there will take once it is read: those of its value
/// before it was coded, where the beginning says so.
pub(super) fn size_when_read(bytes: &[u8]) -> Result<usize, &'static str> {
    let size = size_of_record(bytes)?;
    let plain_size = split(bytes).filter(|parts| parts.coding != CODING_PLAIN).map(|parts| {
        let plain_size = Reader::new(parts.rest).varint().unwrap_or_default();
        usize::try_from(plain_size).unwrap_or(RECORD_SIZE_MAX).min(RECORD_SIZE_MAX)
    });
    Ok(size.max(plain_size.unwrap_or_default()))
}

/// Proves a whole record's checksum.
pub(super) fn check(bytes: &[u8]) -> Result<(), &'static str> {
    let (header, body) = bytes.split_at_checked(HEADER_SIZE).ok_or("cut short")?;
    let expected = header.last_chunk::<4>().map(|crc| u32::from_le_bytes(*crc));
    match expected == Some(crc32(body)) {
        true => Ok(()),
        false => Err("the checksum does not hold"),
    }
}

impl Record {
    /// Reads a record whose checksum was proven.
    pub(crate) fn decode(bytes: &[u8], dictionaries: &Dictionaries) -> Result<Record, String> {
        let body = bytes.get(HEADER_SIZE..).unwrap_or_default();
        let mut reader = Reader::new(body);
        let head = Record::decode_head(&mut reader).map_err(|error| error.to_string())?;
        let (mut record, coding) = head;
        record.value = if coding == CODING_PLAIN {
            decode_value(body.get(reader.offset()..).unwrap_or_default())?
        } else {
            let plain_size = reader.varint().map_err(|error| error.to_string())?;
            let plain_size = usize::try_from(plain_size).unwrap_or(usize::MAX);
            if RECORD_SIZE_MAX < plain_size {
                return Err("a size beyond all limits".to_owned());
            }
            let coded = body.get(reader.offset()..).unwrap_or_default();
            decode_value(&dictionaries.decode(coding, coded, plain_size)?)?
        };
        Ok(record)
    }

    /// The key of a record whose checksum was proven, and when it expires.
    pub(crate) fn decode_name(bytes: &[u8]) -> Result<(Box<[u8]>, i64), String> {
        let body = bytes.get(HEADER_SIZE..).unwrap_or_default();
        let head = Record::decode_head(&mut Reader::new(body));
        let (record, _) = head.map_err(|error| error.to_string())?;
        Ok((record.key, record.expire_ms))
    }

    /// All but the value, and how that is coded.
    fn decode_head(reader: &mut Reader<'_>) -> Result<(Record, u64), codec::Error> {
        let seq = reader.varint()?;
        let db = reader.u8()?;
        let expire_ms = match reader.varint()? {
            0 => NEVER,
            at => i64::try_from(at).map_err(|_| reader.corrupt("a time beyond all"))?,
        };
        let key = read_bytes(reader)?.into();
        let value = Value::Str(crate::value::Str::default());
        Ok((Record { key, value, expire_ms, seq, db }, reader.varint()?))
    }
}

fn decode_value(bytes: &[u8]) -> Result<Value, String> {
    Value::decode(bytes).map_err(|error| error.to_string())
}

/// The whole records of a segment with their offsets, in order, as far as their sizes lead: one that
/// rotted behind its size is passed over.
pub(crate) fn walk(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut offset = 0;
    let all = std::iter::from_fn(move || {
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        let record = rest.get(..size_of_record(rest).ok()?)?;
        let at = offset;
        offset += record.len().next_multiple_of(crate::index::RECORD_ALIGNMENT);
        Some((at, record))
    });
    all.filter(|(_, record)| check(record).is_ok())
}

/// The database and key of a record.
pub(crate) fn key_of(record: &[u8]) -> Option<(u8, &[u8])> {
    let mut reader = Reader::new(record.get(HEADER_SIZE..)?);
    reader.varint().ok()?;
    let db = reader.u8().ok()?;
    reader.varint().ok()?;
    Some((db, read_bytes(&mut reader).ok()?))
}
