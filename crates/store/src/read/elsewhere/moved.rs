//! How far the `until` of other databases was moved since their owner said it: `DATA/legacy`, see
//! `docs/format/legacy.md`. The store keeps the file, and leaves it to others what follows from it.

use crate::Result;
use crate::base::directory::side_file::SideFile;
use codec::{Reader, put_i64_zigzag, put_varint};
use model::Timestamp;
use std::path::Path;
use vfs::Vfs;

/// The file's name.
pub const FILE_NAME: &str = "legacy";
const MAGIC: &[u8; 8] = b"QPLEGCY1";
/// Entries at most: more than databases can be named.
const ENTRIES_MAX: usize = 64;
/// Bytes of a text.
const TEXT_SIZE_MAX: usize = 4096;

/// How far the `until` of one database was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedUntil {
    /// Where it is; no secrets.
    pub url: String,
    /// How it is spoken to.
    pub kind: String,
    /// What its owner had said when it was moved, in nanoseconds: who says something else later
    /// does not want what was moved from there.
    pub said: Timestamp,
    /// Where it is now, no later than that; [`Timestamp::MIN`] where nothing is asked any more.
    pub until: Timestamp,
}

impl MovedUntil {
    /// All of a data directory; none where there is no file.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`], [`crate::Error::UnknownVersion`], and I/O errors.
    pub fn read_all(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<MovedUntil>> {
        let file = file(dir);
        let Some(body) = file.read(vfs)? else { return Ok(Vec::new()) };
        decode(&body).map_err(|error| file.undecodable(&error))
    }

    /// Replaces those of a data directory, durably.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for more, or longer texts, than the file has room for. On I/O
    /// errors the file is the old or the new one.
    pub fn write_all(vfs: &dyn Vfs, dir: &Path, all: &[MovedUntil]) -> Result<()> {
        let is_short = |text: &String| text.len() <= TEXT_SIZE_MAX;
        if ENTRIES_MAX < all.len() || !all.iter().all(|one| is_short(&one.url)) {
            let words =
                format!("{FILE_NAME} has room for {ENTRIES_MAX} URLs of {TEXT_SIZE_MAX} bytes");
            return Err(crate::Error::Invalid(words));
        }
        assert!(all.iter().all(|one| one.until <= one.said && is_short(&one.kind)));
        file(dir).write(vfs, &encode(all))
    }
}

fn file(dir: &Path) -> SideFile {
    SideFile { path: dir.join(FILE_NAME), magic: MAGIC }
}

fn encode(all: &[MovedUntil]) -> Vec<u8> {
    let mut body = Vec::new();
    put_varint(&mut body, all.len() as u64);
    for one in all {
        for text in [&one.url, &one.kind] {
            put_varint(&mut body, text.len() as u64);
            body.extend_from_slice(text.as_bytes());
        }
        put_i64_zigzag(&mut body, one.said);
        put_i64_zigzag(&mut body, one.until);
    }
    body
}

fn decode(body: &[u8]) -> std::result::Result<Vec<MovedUntil>, codec::Error> {
    let mut reader = Reader::new(body);
    let count = reader.varint_size(ENTRIES_MAX)?;
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let (url, kind) = (text(&mut reader)?, text(&mut reader)?);
        let (said, until) = (reader.i64_zigzag()?, reader.i64_zigzag()?);
        if said < until {
            return Err(reader.corrupt("moved to a later time than was said"));
        }
        all.push(MovedUntil { url, kind, said, until });
    }
    if !reader.is_empty() {
        return Err(reader.corrupt("bytes after the end"));
    }
    Ok(all)
}

fn text(reader: &mut Reader<'_>) -> std::result::Result<String, codec::Error> {
    let size = reader.varint_size(TEXT_SIZE_MAX)?;
    let text = String::from_utf8(reader.slice(size)?.to_vec());
    text.map_err(|_| reader.corrupt("a text that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use vfs::SimVfs;

    #[test]
    fn what_was_moved_is_there_again_or_the_file_is_named() {
        let (disk, dir) = (SimVfs::new(1), Path::new("/data"));
        disk.create_dir_all(dir).unwrap();
        assert_eq!(MovedUntil::read_all(&disk, dir).unwrap(), []);
        let one = |url: &str, until| MovedUntil {
            url: url.to_string(),
            kind: "prometheus".to_string(),
            said: 77,
            until,
        };
        let all = [one("http://old:9090", -5), one("http://é", Timestamp::MIN)];
        MovedUntil::write_all(&disk, dir, &all).unwrap();
        assert_eq!(MovedUntil::read_all(&disk, dir).unwrap(), all);
        let path = dir.join(FILE_NAME);
        let good = disk.read(&path).unwrap();
        let put = |bytes: &[u8]| vfs::write_atomic(&disk, &path, bytes).unwrap();
        for at in 0..good.len() {
            put(&good[..at]);
            assert!(MovedUntil::read_all(&disk, dir).is_err(), "cut at {at}");
            let mut bad = good.clone();
            bad[at] ^= 4;
            put(&bad);
            let error = MovedUntil::read_all(&disk, dir).expect_err("rot");
            assert!(matches!(&error, Error::Corrupt { file, .. } if *file == path), "{error}");
        }
        let many = vec![one("http://x", 1); ENTRIES_MAX + 1];
        assert!(matches!(MovedUntil::write_all(&disk, dir, &many), Err(Error::Invalid(_))));
        let long = [one(&"x".repeat(TEXT_SIZE_MAX + 1), 1)];
        assert!(matches!(MovedUntil::write_all(&disk, dir, &long), Err(Error::Invalid(_))));
    }
}
