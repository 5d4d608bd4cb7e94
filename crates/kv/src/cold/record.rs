//! One key with its value, as it lies in a segment.
//!
//! ```text
//! size u32 │ CRC-32 u32 │ seq varint │ database u8 │ expiry varint, 0 never │ key size varint │ key
//!          │            │ coding varint: 0 plain, 1 zstd │ plain size varint, if coded │ value
//! └ of what follows the checksum, which is of all that
//! ```

use crate::slots::{NEVER, Slot};
use crate::value::{Value, put_bytes, read_bytes};
use codec::bytes::{Reader, put_varint};
use codec::checksum::crc32;

/// Size and checksum.
const HEADER_SIZE: usize = 8;
/// The largest record: a value of 512 MiB, its key and their frame.
const RECORD_SIZE_MAX: usize = 1100 << 20;
const CODING_PLAIN: u64 = 0;
const CODING_ZSTD: u64 = 1;
/// Shorter values are not worth coding without a dictionary.
const CODED_SIZE_MIN: usize = 128;

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
pub(super) fn put(out: &mut Vec<u8>, slot: &Slot, is_compressed: bool) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_SIZE]);
    put_varint(out, slot.seq);
    out.push(slot.db);
    let expire =
        if slot.expire_ms == NEVER { 0 } else { u64::try_from(slot.expire_ms).unwrap_or(1) };
    put_varint(out, expire);
    put_bytes(out, &slot.key);
    put_value(out, &slot.value, is_compressed);
    let body = start + HEADER_SIZE;
    let size = u32::try_from(out.len() - body).expect("values are bounded");
    let crc = crc32(&out[body..]);
    out[start..start + 4].copy_from_slice(&size.to_le_bytes());
    out[start + 4..body].copy_from_slice(&crc.to_le_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &Value, is_compressed: bool) {
    let at = out.len();
    out.push(u8::try_from(CODING_PLAIN).unwrap_or(0));
    value.encode(out);
    let plain_size = out.len() - at - 1;
    if !is_compressed || plain_size < CODED_SIZE_MIN {
        return;
    }
    let Ok(coded) = zstd::bulk::compress(&out[at + 1..], 1) else { return };
    if coded.len() + 10 < plain_size {
        out.truncate(at);
        put_varint(out, CODING_ZSTD);
        put_varint(out, plain_size as u64);
        out.extend_from_slice(&coded);
    }
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
    pub(super) fn decode(bytes: &[u8]) -> Result<Record, String> {
        let body = bytes.get(HEADER_SIZE..).unwrap_or_default();
        Record::decode_body(body).map_err(|error| error.to_string())
    }

    fn decode_body(body: &[u8]) -> Result<Record, codec::Error> {
        let mut reader = Reader::new(body);
        let seq = reader.varint()?;
        let db = reader.u8()?;
        let expire_ms = match reader.varint()? {
            0 => NEVER,
            at => i64::try_from(at).map_err(|_| reader.corrupt("a time beyond all"))?,
        };
        let key = read_bytes(&mut reader)?.into();
        let coding = reader.varint()?;
        let value = match coding {
            CODING_PLAIN => {
                let size = reader.remaining();
                Value::decode(reader.slice(size)?)?
            }
            CODING_ZSTD => {
                let plain_size = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
                if RECORD_SIZE_MAX < plain_size {
                    return Err(reader.corrupt("a size beyond all limits"));
                }
                let rest = reader.remaining();
                let coded = reader.slice(rest)?;
                let plain = zstd::bulk::decompress(coded, plain_size);
                Value::decode(&plain.map_err(|_| reader.corrupt("not coded as it says"))?)?
            }
            _ => return Err(reader.corrupt("unknown coding")),
        };
        Ok(Record { key, value, expire_ms, seq, db })
    }
}

/// The records of a segment with their offsets, in order, as far as their sizes lead.
pub(crate) fn walk(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        let record = rest.get(..size_of_record(rest).ok()?)?;
        check(record).ok()?;
        let at = offset;
        offset += record.len().next_multiple_of(crate::index::RECORD_ALIGNMENT);
        Some((at, record))
    })
}

/// The database and key of a record.
pub(crate) fn key_of(record: &[u8]) -> Option<(u8, &[u8])> {
    let mut reader = Reader::new(record.get(HEADER_SIZE..)?);
    reader.varint().ok()?;
    let db = reader.u8().ok()?;
    reader.varint().ok()?;
    Some((db, read_bytes(&mut reader).ok()?))
}
