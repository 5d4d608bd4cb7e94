//! A record on its way from the disk: all that is needed to read it while others have the keys.
//!
//! A segment never changes and its number is given out again only after all others, so what is read of
//! it is right whenever that is. Whether it is still the key's record is for the reader to look up afterwards.

use super::dictionary::Dictionaries;
use super::meter::ReadMeter;
use super::record::{self, Record};
use crate::error::{Error, Result};
use crate::index::{Address, RECORD_ALIGNMENT};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;
use vfs::ReadFile;

/// Bytes that are read of a record at first: most are shorter.
const FIRST_READ: usize = 512;

/// Bytes of a record that are worth a thread, even if the disk need not be waited for.
const CACHED_SIZE_MAX: usize = 64 << 10;

/// Where a record lies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    offset: usize,
    segment_size: u64,
}

impl Place {
    pub(super) fn of(address: Address, segment_size: u64) -> Place {
        Place { offset: address.offset as usize * RECORD_ALIGNMENT, segment_size }
    }
}

/// Why a record was not read.
pub(super) enum Failure {
    /// The disk.
    Disk(Error),
    /// What is there is no record.
    Corrupt(String),
}

impl From<&str> for Failure {
    fn from(reason: &str) -> Failure {
        Failure::Corrupt(reason.to_owned())
    }
}

/// Reads a record with `read_at`; none where that has nothing to give now, or where it takes more than
/// so many bytes once it is read.
pub(super) fn read(
    place: Place,
    size_max: usize,
    (dictionaries, reads): (&Dictionaries, &ReadMeter),
    read_at: impl FnMut(usize, &mut [u8]) -> Result<Option<usize>>,
) -> std::result::Result<Option<Record>, Failure> {
    let (started, size) = (Instant::now(), Cell::new(0));
    let decode = |bytes: &[u8]| {
        size.set(bytes.len());
        Record::decode(bytes, dictionaries)
    };
    let read = read_as(place, size_max, decode, read_at)?;
    if read.is_some() {
        reads.add(size.get(), started);
    }
    Ok(read)
}

/// The same for what `decode` makes of a record whose checksum holds.
fn read_as<T>(
    place: Place,
    size_max: usize,
    decode: impl Fn(&[u8]) -> std::result::Result<T, String>,
    mut read_at: impl FnMut(usize, &mut [u8]) -> Result<Option<usize>>,
) -> std::result::Result<Option<T>, Failure> {
    let decode = |bytes: &[u8]| {
        record::check(bytes)?;
        decode(bytes).map_err(Failure::Corrupt)
    };
    let mut first = [0; FIRST_READ];
    let got = read_at(place.offset, &mut first).map_err(Failure::Disk)?;
    let Some(first) = got.map(|got| first.get(..got).unwrap_or_default()) else { return Ok(None) };
    let size = record::size_of_record(first)?;
    if size_max < record::size_when_read(first)? {
        return Ok(None);
    }
    if let Some(whole) = first.get(..size) {
        return decode(whole).map(Some);
    }
    if place.segment_size < (place.offset + size) as u64 {
        return Err("the record is longer than its segment".into());
    }
    let mut bytes = first.to_vec();
    let have = bytes.len();
    bytes.resize(size, 0);
    let rest = bytes.get_mut(have..).unwrap_or_default();
    let wanted = rest.len();
    match read_at(place.offset + have, rest).map_err(Failure::Disk)? {
        Some(got) if got == wanted => decode(&bytes).map(Some),
        Some(_) => Err("cut short".into()),
        None => Ok(None),
    }
}

/// A record that is to be read.
pub(crate) struct Reading {
    pub(super) place: Place,
    pub(super) file: Arc<dyn ReadFile>,
    pub(super) dictionaries: Arc<Dictionaries>,
    pub(super) reads: Arc<ReadMeter>,
}

impl Reading {
    fn means(&self) -> (&Dictionaries, &ReadMeter) {
        (&self.dictionaries, &self.reads)
    }

    /// Reads it if the system has it in memory and it is short. Neither then says why it is not
    /// there: who needs the record meets the reason again.
    pub(crate) fn read_cached(&self) -> Option<Record> {
        let read_at =
            |offset: usize, into: &mut [u8]| Ok(self.file.read_cached(offset as u64, into)?);
        read(self.place, CACHED_SIZE_MAX, self.means(), read_at).ok().flatten()
    }

    /// About how many bytes it will take once it is read; the beginning of it is read from disk.
    pub(crate) fn size(&self) -> Option<usize> {
        let mut first = [0; FIRST_READ];
        let got = self.file.read_at(self.place.offset as u64, &mut first).ok()?;
        record::size_when_read(first.get(..got)?).ok()
    }

    /// Reads it, however long that takes.
    pub(crate) fn read(&self) -> Option<Record> {
        let read_at =
            |offset: usize, into: &mut [u8]| Ok(Some(self.file.read_at(offset as u64, into)?));
        read(self.place, usize::MAX, self.means(), read_at).ok().flatten()
    }

    /// Reads its key, and when that expires.
    pub(crate) fn read_name(&self) -> Option<(Box<[u8]>, i64)> {
        let read_at =
            |offset: usize, into: &mut [u8]| Ok(Some(self.file.read_at(offset as u64, into)?));
        read_as(self.place, usize::MAX, Record::decode_name, read_at).ok().flatten()
    }
}
