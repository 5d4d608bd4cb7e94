//! Reads the records of one segment; the bytes may be anything.

use crate::format::{
    HEADER_SIZE, Header, HeaderError, KIND_MARK, KIND_NONE, RECORD_HEADER_SIZE, RECORD_SIZE_MAX,
    check,
};
use codec::Reader;

/// A record as it stands in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentRecord<'a> {
    pub(crate) offset: u64,
    pub(crate) kind: u8,
    pub(crate) payload: &'a [u8],
}

/// Where a segment stops making sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub(crate) offset: u64,
    pub(crate) what: &'static str,
}

/// A cursor over the records of a segment.
pub(crate) struct SegmentReader<'a> {
    bytes: &'a [u8],
    salt: u32,
    /// Where the next record starts.
    offset: usize,
}

impl<'a> SegmentReader<'a> {
    /// Reads the header.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<(SegmentReader<'a>, Header), HeaderError> {
        let header = Header::decode(bytes)?;
        let reader = SegmentReader { bytes, salt: header.salt(), offset: HEADER_SIZE as usize };
        assert!(reader.offset <= bytes.len());
        Ok((reader, header))
    }

    /// The next record, marks included; `None` at the end. Stays where it is after an error.
    pub(crate) fn next(&mut self) -> Result<Option<SegmentRecord<'a>>, Invalid> {
        if self.offset == self.bytes.len() {
            return Ok(None);
        }
        let record = self
            .record_at(self.offset)
            .map_err(|what| Invalid { offset: self.offset as u64, what })?;
        self.offset += RECORD_HEADER_SIZE + record.payload.len();
        assert!(self.offset <= self.bytes.len());
        Ok(Some(record))
    }

    /// The offset of the first mark behind the cursor, found byte by byte: proof that all before
    /// it had been synced, so that a broken record there is no torn write.
    pub(crate) fn find_mark(&self) -> Option<u64> {
        let is_mark = |offset: &usize| {
            // Most offsets fail here, without a checksum.
            let header = self.bytes[*offset..].first_chunk::<RECORD_HEADER_SIZE>();
            matches!(header, Some([_, _, _, _, 0, 0, 0, 0, KIND_MARK]))
                && self.record_at(*offset).is_ok()
        };
        (self.offset + 1..self.bytes.len()).find(is_mark).map(|offset| offset as u64)
    }

    /// Goes on behind a record that is none: where its size says that the next one is, else at the
    /// next mark, else at the end. Returns where that is.
    pub(crate) fn skip_damage(&mut self) -> u64 {
        let size = self.bytes[self.offset..].get(4..8).and_then(|size| size.try_into().ok());
        let next = size.map(|size| u32::from_le_bytes(size) as usize + RECORD_HEADER_SIZE);
        let next = next.and_then(|size| self.offset.checked_add(size));
        let is_record = |next: &usize| {
            *next == self.bytes.len() || (*next < self.bytes.len() && self.record_at(*next).is_ok())
        };
        let next = next.filter(is_record);
        let next = next.or_else(|| self.find_mark().map(|mark| mark as usize));
        self.offset = next.unwrap_or(self.bytes.len());
        self.offset as u64
    }

    /// Reads a segment whose header is damaged, with the salt that the first record was written
    /// with. It has to be that of the segment's number and the nonce in the header, of which one
    /// bit may have turned; or else the next record has to confirm it.
    pub(crate) fn open_without_header(bytes: &'a [u8], segment: u64) -> Option<SegmentReader<'a>> {
        let offset = HEADER_SIZE as usize;
        let head = bytes.get(offset..)?.first_chunk::<RECORD_HEADER_SIZE>()?;
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let covered = bytes.get(offset + 4..offset.checked_add(RECORD_HEADER_SIZE + size)?)?;
        let stored = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let salt = check(covered, stored, HEADER_SIZE);
        let mut reader = SegmentReader { bytes, salt, offset };
        reader.next().ok()??;
        let nonce = u64::from_le_bytes(*bytes.get(20..)?.first_chunk()?);
        let turned = (0..u64::BITS).map(|bit| nonce ^ 1 << bit);
        let mut nonces = std::iter::once(nonce).chain(turned);
        let is_confirmed = nonces.any(|nonce| Header { segment, nonce }.salt() == salt)
            || matches!(reader.next(), Ok(Some(_)));
        is_confirmed.then_some(SegmentReader { bytes, salt, offset })
    }

    fn record_at(&self, offset: usize) -> Result<SegmentRecord<'a>, &'static str> {
        let bytes = &self.bytes[offset..];
        let mut reader = Reader::new(bytes);
        let (Ok(expected), Ok(size), Ok(kind)) = (reader.u32(), reader.u32(), reader.u8()) else {
            return Err("record header cut short");
        };
        let size = size as usize;
        if RECORD_SIZE_MAX < size {
            return Err("record size over its limit");
        }
        let payload = reader.slice(size).map_err(|_| "record cut short")?;
        if kind == KIND_NONE || (kind == KIND_MARK && size != 0) {
            return Err("record kind");
        }
        let covered = &bytes[4..RECORD_HEADER_SIZE + size];
        if check(covered, self.salt, offset as u64 & u64::from(u32::MAX)) != expected {
            return Err("checksum of a record");
        }
        Ok(SegmentRecord { offset: offset as u64, kind, payload })
    }
}
