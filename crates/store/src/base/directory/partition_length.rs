//! How long the partitions of a data directory are: chosen when it is made, and kept for good.
//!
//! ```text
//! DATA/partition-length is there     ► what it says
//! it is damaged, or not there        ► what the names of the partitions say
//! there are no partitions either     ► what is asked for, or a month: the log must agree
//! ```
//!
//! In a new directory the file is durable before anything else is in it, so no crash leaves a log
//! or a partition of a length that nobody wrote down. A directory of months may be without it:
//! those of earlier versions are. Layout in `docs/format/manifest.md`.
//!
//! The same file says what a program must know to read the store ([`crate::base::directory::needs`]): it is the one
//! that every program looks at first, and those of before that was so refuse its second version.

use crate::base::directory::needs::{self, Need};
use crate::base::directory::side_file::SideFile;
use crate::base::file_names::{PARTITIONS_DIR, WAL_DIR};
use crate::base::period::{PartitionLength, Period};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;
use vfs::Vfs;

/// The file's name.
pub const FILE_NAME: &str = "partition-length";
/// Of a store that needs nothing: as all programs know it.
const MAGIC: &[u8; 8] = b"QPPLENG1";
/// Of one with needs: their words stand behind the length, each behind a space.
const MAGIC_WITH_NEEDS: &[u8; 8] = b"QPPLENG2";
/// The length of directories that nobody asked another of.
pub const DEFAULT: PartitionLength = PartitionLength::Month;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthFile {
    /// How long partitions are.
    pub length: PartitionLength,
    /// What a program must know.
    pub needs: BTreeSet<Need>,
}

/// Reads the file of a store's directory; `None` when there is none.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::UnknownVersion`], [`Error::UnknownNeed`], and I/O errors.
pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<LengthFile>> {
    let path = dir.join(FILE_NAME);
    if !vfs.exists(&path)? {
        return Ok(None);
    }
    let is_first = vfs.read(&path)?.starts_with(MAGIC);
    let file = SideFile { path, magic: if is_first { MAGIC } else { MAGIC_WITH_NEEDS } };
    let Some(body) = file.read(vfs)? else { return Ok(None) };
    let undecodable = |what| file.undecodable(&codec::Error { offset: 0, what });
    let text = std::str::from_utf8(&body).map_err(|_| undecodable("no text"))?;
    let (length, needs) = match text.split_once(' ') {
        Some((length, needs)) if !is_first => (length, Some(needs)),
        _ => (text, None),
    };
    let length =
        PartitionLength::parse(length).ok_or_else(|| undecodable("no length of partitions"))?;
    let needs = needs.into_iter().flat_map(|needs| needs.split(' '));
    Ok(Some(LengthFile { length, needs: needs::parse_all(needs, &file.path)? }))
}

/// Writes the file.
///
/// # Errors
/// On I/O errors; the file is the old or the new one then.
pub fn write(vfs: &dyn Vfs, dir: &Path, said: &LengthFile) -> Result<()> {
    let mut body = said.length.word().to_string();
    for need in &said.needs {
        body.push(' ');
        body.push_str(need.word());
    }
    let magic = if said.needs.is_empty() { MAGIC } else { MAGIC_WITH_NEEDS };
    SideFile { path: dir.join(FILE_NAME), magic }.write(vfs, body.as_bytes())
}

/// What the names of the partitions say; `None` when there are none. A directory that has months
/// has always had them, whatever else somebody put beside them.
///
/// # Errors
/// When the directory cannot be listed, and [`Error::Invalid`] when there are several lengths and
/// none of them is a month.
pub fn of_names(vfs: &dyn Vfs, dir: &Path) -> Result<Option<PartitionLength>> {
    let names = vfs.list(&dir.join(PARTITIONS_DIR))?;
    let mut lengths: Vec<PartitionLength> =
        names.iter().filter_map(|name| Some(Period::parse(name)?.length())).collect();
    lengths.sort_unstable();
    lengths.dedup();
    match lengths[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ if lengths.contains(&PartitionLength::Month) => Ok(Some(PartitionLength::Month)),
        _ => {
            let words: Vec<&str> = lengths.iter().map(|length| length.word()).collect();
            let (file, dir) = (dir.join(FILE_NAME), dir.join(PARTITIONS_DIR));
            Err(Error::Invalid(format!(
                "{} cannot be read or is not there, and {} has partitions of several lengths ({}): \
                 move all but those of one length away",
                file.display(),
                dir.display(),
                words.join(", ")
            )))
        }
    }
}

/// What the file says, or else the names of the partitions, for who checks or repairs a directory
/// that is not open; `None` where neither does.
pub fn told(vfs: &dyn Vfs, dir: &Path) -> Option<PartitionLength> {
    let said = read(vfs, dir).ok().flatten().map(|file| file.length);
    said.or_else(|| of_names(vfs, dir).ok().flatten())
}

/// Whether the directory has neither partitions nor a log: it has no length yet.
///
/// # Errors
/// On I/O errors.
pub fn is_new(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    let wal = dir.join(WAL_DIR);
    Ok(vfs.list(&dir.join(PARTITIONS_DIR))?.is_empty()
        && (!vfs.exists(&wal)? || vfs.list(&wal)?.is_empty()))
}

/// Fails when partitions are there that have another length than the file says: nobody would read
/// them.
///
/// # Errors
/// [`Error::Invalid`], and I/O errors.
pub fn check_names(vfs: &dyn Vfs, dir: &Path, length: PartitionLength) -> Result<()> {
    let root = dir.join(PARTITIONS_DIR);
    for name in vfs.list(&root)? {
        if let Some(period) = Period::parse(&name).filter(|period| period.length() != length) {
            return Err(Error::Invalid(format!(
                "{} is a partition of a {}, but those of {} are of a {length} each ({FILE_NAME}): \
                 move it away",
                root.join(&name).display(),
                period.length(),
                dir.display(),
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    #[test]
    fn the_file_comes_back_and_rot_is_noticed() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        disk.create_dir_all(dir).unwrap();
        assert_eq!(read(&disk, dir).unwrap(), None);
        for length in PartitionLength::ALL {
            for needs in [BTreeSet::new(), BTreeSet::from(Need::ALL)] {
                let said = LengthFile { length, needs };
                write(&disk, dir, &said).unwrap();
                assert_eq!(read(&disk, dir).unwrap(), Some(said));
            }
        }
        check_bytes(&disk, dir, BTreeSet::new(), b"QPPLENG1year7s\x82\xbb");
        let strings = BTreeSet::from([Need::Strings]);
        check_bytes(&disk, dir, strings, b"QPPLENG2year stringsi\xc2\xd8%");
        let both = BTreeSet::from([Need::Integers, Need::Strings]);
        check_bytes(&disk, dir, both, b"QPPLENG2year integers strings\xb9\xee/\x81");
        let all = BTreeSet::from(Need::ALL);
        check_bytes(&disk, dir, all, b"QPPLENG2year integers schema strings\x8br\x88]");
    }

    /// The file has these bytes, for ever, and rot of any is noticed.
    #[track_caller]
    fn check_bytes(disk: &SimVfs, dir: &Path, needs: BTreeSet<Need>, expected: &[u8]) {
        write(disk, dir, &LengthFile { length: PartitionLength::Year, needs }).unwrap();
        let path = dir.join(FILE_NAME);
        assert_eq!(disk.read(&path).unwrap(), expected, "for ever");
        for byte in 0..disk.size(&path).unwrap() {
            for bit in 0..8 {
                disk.flip_bit(&path, byte, bit).unwrap();
                let error = read(disk, dir).unwrap_err();
                assert!(matches!(error, Error::Corrupt { .. }), "byte {byte}, bit {bit}: {error}");
                disk.flip_bit(&path, byte, bit).unwrap();
            }
        }
    }

    #[test]
    fn what_a_newer_program_needs_is_no_damage() {
        let disk = SimVfs::new(1);
        let dir = Path::new("/data");
        disk.create_dir_all(dir).unwrap();
        let path = dir.join(FILE_NAME);
        SideFile { path, magic: MAGIC_WITH_NEEDS }.write(&disk, b"month strings wings").unwrap();
        let error = read(&disk, dir).unwrap_err();
        assert!(error.is_unknown_version(), "{error}");
        assert!(error.to_string().contains("`wings`"), "{error}");
    }

    #[test]
    fn names_tell_the_length() {
        #[track_caller]
        fn check(names: &[&str]) -> Result<Option<PartitionLength>> {
            let disk = SimVfs::new(1);
            let dir = Path::new("/data");
            disk.create_dir_all(&dir.join(PARTITIONS_DIR)).unwrap();
            for name in names {
                disk.create_dir_all(&dir.join(PARTITIONS_DIR).join(name)).unwrap();
            }
            of_names(&disk, dir)
        }
        assert_eq!(check(&[]).unwrap(), None);
        assert_eq!(check(&["x", "2024.dropped-7"]).unwrap(), None);
        assert_eq!(check(&["2024", "2023", "x"]).unwrap(), Some(PartitionLength::Year));
        assert_eq!(check(&["2024-W07"]).unwrap(), Some(PartitionLength::Week));
        assert_eq!(check(&["2024-10-05"]).unwrap(), Some(PartitionLength::Day));
        assert_eq!(check(&["2024", "2024-10"]).unwrap(), Some(PartitionLength::Month));
        let error = check(&["2024", "2024-W07"]).unwrap_err().to_string();
        assert!(error.contains("(week, year)"), "{error}");
    }
}
