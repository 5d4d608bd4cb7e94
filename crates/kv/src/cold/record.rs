//! One key with its value, as it lies in a segment.
//!
//! ```text
//! size u32 │ CRC-32 u32 │ seq varint │ database u8 │ expiry varint, 0 never │ key size varint │ key
//!          │            │ coding varint: 0 plain, 1 zstd, above: a dictionary's number
//!          │            │ plain size varint, if coded │ value
//! └ of what follows the checksum, which is of all that
//! ```
//!
//! A repair marks a key whose record is lost: six bytes of the key's hash replace the key, and the
//! value is one byte, 0, which is no type. Whoever reads it gets an error.

use super::dictionary::{CODING_PLAIN, Dictionaries, Groups};
use crate::index::KeyHash;
use crate::slots::{NEVER, Slot};
use crate::value::{Value, put_bytes, read_bytes};
use codec::bytes::{Reader, put_varint};
use codec::checksum::crc32;

/// Size and checksum.
const HEADER_SIZE: usize = 8;
/// The largest record: a collection may be far larger than a string. Nothing is allocated for a size
/// that the segment does not have.
const RECORD_SIZE_MAX: usize = u32::MAX as usize;
/// The value of a key whose record is lost.
const LOST_VALUE: &[u8] = &[0];
/// Bytes of a key's hash.
const HASH_SIZE: usize = 6;

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

/// Appends the mark of a key whose record is lost. Only its hash is known.
pub(crate) fn put_lost(out: &mut Vec<u8>, db: u8, hash: KeyHash, seq: u64) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_SIZE]);
    put_varint(out, seq);
    out.push(db);
    put_varint(out, 0);
    put_bytes(out, &hash.number().to_le_bytes()[..HASH_SIZE]);
    put_varint(out, CODING_PLAIN);
    out.extend_from_slice(LOST_VALUE);
    finish(out, start);
}

/// Whether a record marks a key whose record is lost.
pub(crate) fn is_lost(record: &[u8]) -> bool {
    split(record).is_some_and(|parts| parts.coding == CODING_PLAIN && parts.rest == LOST_VALUE)
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

/// Whether a coded record has the value of the plain one that it was made of.
pub(crate) fn is_same(coded: &[u8], plain: &[u8], dictionaries: &Dictionaries) -> bool {
    let (Some(coded), Some(plain)) = (split(coded), split(plain)) else { return false };
    if coded.coding == plain.coding {
        return coded.head == plain.head && coded.rest == plain.rest;
    }
    let mut reader = Reader::new(coded.rest);
    let Ok(size) = reader.varint() else { return false };
    let bytes = coded.rest.get(reader.offset()..).unwrap_or_default();
    let is_size = usize::try_from(size).is_ok_and(|size| size == plain.rest.len());
    coded.head == plain.head
        && is_size
        && dictionaries
            .decode(coded.coding, bytes, plain.rest.len())
            .is_ok_and(|value| value == plain.rest)
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
    if body.is_empty() {
        // The checksum of nothing is 0: zeros would pass for a record.
        return Err("an empty record");
    }
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
            decode_value(&dictionaries.decode_metered(coding, coded, plain_size)?)?
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
    if bytes == LOST_VALUE {
        return Err("the value was lost with damage that a repair removed: set the key anew, or \
                    delete it"
            .to_owned());
    }
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

/// The database of a record and the hash of its key.
pub(crate) fn place_of(record: &[u8], hash_seed: u64) -> Option<(u8, KeyHash)> {
    let mut reader = Reader::new(record.get(HEADER_SIZE..)?);
    reader.varint().ok()?;
    let db = reader.u8().ok()?;
    reader.varint().ok()?;
    let key = read_bytes(&mut reader).ok()?;
    let hash = match key.first_chunk::<HASH_SIZE>() {
        Some([a, b, c, d, e, f]) if is_lost(record) => {
            KeyHash::from_number(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, 0, 0]))
        }
        _ => KeyHash::new(key, hash_seed),
    };
    Some((db, hash))
}

/// The number of a record's last change.
pub(crate) fn seq_of(record: &[u8]) -> Option<u64> {
    Reader::new(record.get(HEADER_SIZE..)?).varint().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_no_record() {
        assert!(check(&[0; HEADER_SIZE]).is_err());
        assert_eq!(walk(&[0; 64]).count(), 0);
    }

    #[test]
    fn the_mark_of_a_lost_key_has_its_hash_and_no_value() {
        let hash = KeyHash::new(b"key", 7);
        let mut mark = Vec::new();
        put_lost(&mut mark, 3, hash, 99);
        assert!(check(&mark).is_ok() && is_lost(&mark));
        assert_eq!((place_of(&mark, 1), seq_of(&mark)), (Some((3, hash)), Some(99)));
        let error = Record::decode(&mark, &Dictionaries::default()).unwrap_err();
        assert!(error.contains("was lost"), "{error}");
    }
}
