//! The segments of a log's directory, and the records in them.

use crate::error::{Error, Result};
use crate::format::{HeaderError, VERSION, parse_segment_name};
use crate::reader::SegmentReader;
use crate::start::{self, LogStart};
use std::path::Path;
use vfs::Vfs;

/// A record that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// The segment it is in.
    pub segment: u64,
    /// Where in the segment it starts.
    pub offset: u64,
    /// What the appender called it, 1 to 254.
    pub kind: u8,
    /// What was appended.
    pub payload: &'a [u8],
}

/// The segment that a log's directory begins with: the one that it names, or else the oldest there
/// is; `None` when nothing is known and nothing there.
///
/// # Errors
/// When the directory cannot be listed, or is of a later version.
pub fn first_segment(vfs: &dyn Vfs, directory: &Path) -> Result<Option<u64>> {
    match start::read(vfs, directory)? {
        LogStart::Known(range) => Ok(Some(range.first)),
        LogStart::Unknown | LogStart::Damaged => {
            Ok(list_segments(vfs, directory)?.first().copied())
        }
    }
}

/// Numbers of the segments there, ascending.
pub(crate) fn list_segments(vfs: &dyn Vfs, directory: &Path) -> Result<Vec<u64>> {
    let names = vfs.list(directory)?;
    let mut segments: Vec<u64> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    segments.sort_unstable();
    Ok(segments)
}

/// A reader of a segment's records, and what is wrong with the header; `None` when no record can be
/// read.
pub(crate) fn open_reader<'a>(
    bytes: &'a [u8],
    file: &Path,
    segment: u64,
) -> Result<Option<(SegmentReader<'a>, Option<&'static str>)>> {
    match SegmentReader::open(bytes) {
        Ok((reader, header)) if header.segment == segment => Ok(Some((reader, None))),
        // Of another log, or copied by hand: none of its records belongs here.
        Ok(_) => Ok(None),
        Err(HeaderError::UnknownVersion(version)) => {
            Err(Error::UnknownVersion { file: file.to_path_buf(), version, max: VERSION })
        }
        Err(HeaderError::Invalid(what)) => {
            Ok(SegmentReader::open_without_header(bytes, segment)
                .map(|reader| (reader, Some(what))))
        }
    }
}
