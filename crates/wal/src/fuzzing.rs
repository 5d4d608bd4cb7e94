//! Feeds arbitrary bytes to the readers of segments and of `START` and checks what must hold.

use crate::format::{HEADER_SIZE, Header, KIND_MARK, RECORD_HEADER_SIZE, put_record};
use crate::reader::{Invalid, SegmentReader};
use crate::start;

/// Reads `data` as a segment, as records behind a good header, as a recipe for records that are
/// then damaged, and as `START`.
pub fn fuzz_wal_segment(data: &[u8]) {
    if let Ok(range) = start::decode(data) {
        assert_eq!(start::encode(range), data);
    }
    read_all(data);
    let header = Header { segment: 7, nonce: 0x1234_5678_9abc_def0 };
    let mut segment = header.encode();
    segment.extend_from_slice(data);
    read_all(&segment);
    damage(header, data);
}

/// Reads a segment. Whatever is accepted must encode to the same bytes.
fn read_all(bytes: &[u8]) -> (Vec<(u8, Vec<u8>)>, Option<Invalid>) {
    let mut records = Vec::new();
    let Ok((mut reader, header)) = SegmentReader::open(bytes) else {
        return (records, Some(Invalid { offset: 0, what: "header" }));
    };
    let mut encoded = header.encode();
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                assert_eq!(record.offset, encoded.len() as u64);
                let offset = record.offset;
                put_record(&mut encoded, header.salt(), offset, record.kind, &[record.payload]);
                records.push((record.kind, record.payload.to_vec()));
            }
            Ok(None) => {
                assert_eq!(encoded, bytes);
                return (records, None);
            }
            Err(invalid) => {
                assert_eq!(invalid.offset, encoded.len() as u64);
                assert_eq!(encoded, bytes[..encoded.len()]);
                let mark = reader.find_mark();
                assert!(mark.is_none_or(|mark| invalid.offset < mark));
                return (records, Some(invalid));
            }
        }
    }
}

/// Writes records of the sizes that `data` says, changes one byte, and expects the records before
/// it and no other.
fn damage(header: Header, data: &[u8]) {
    let Some((&[at_low, at_high, mask], sizes)) = data.split_first_chunk::<3>() else { return };
    let mut bytes = header.encode();
    let mut written = Vec::new();
    let mut size_fields = Vec::new();
    for (i, &size) in sizes.iter().take(64).enumerate() {
        let kind = if size % 16 == 15 { KIND_MARK } else { 1 + (i % 254) as u8 };
        let payload = vec![size; if kind == KIND_MARK { 0 } else { usize::from(size) }];
        let offset = bytes.len() as u64;
        put_record(&mut bytes, header.salt(), offset, kind, &[&payload]);
        written.push((kind, payload));
        size_fields.push(offset as usize + 4..offset as usize + 8);
    }
    assert_eq!(read_all(&bytes), (written.clone(), None));
    let at = HEADER_SIZE as usize + usize::from(u16::from_le_bytes([at_low, at_high]));
    if bytes.len() <= at || mask == 0 {
        return;
    }
    bytes[at] ^= mask;
    let (read, invalid) = read_all(&bytes);
    // With another size, the checksum of other bytes is right once in 2^32 times.
    if size_fields.iter().any(|field| field.contains(&at)) {
        return;
    }
    let invalid = invalid.expect("a burst of up to 32 changed bits is always found");
    assert!(invalid.offset as usize <= at);
    assert_eq!(read, written[..read.len()]);
    let kept = read.iter().map(|(_, payload)| RECORD_HEADER_SIZE + payload.len()).sum::<usize>();
    assert_eq!(invalid.offset, HEADER_SIZE + kept as u64);
}
