//! The file of function libraries in the keys' directory. A damaged one is set aside, never written over.
//!
//! ```text
//! functions           what FUNCTION DUMP answers: ends with a version (2 bytes) and a CRC-64
//! functions.damaged   set aside by FUNCTION FLUSH; functions.damaged.2 if there is one already
//! credentials         names the file once it was written, so that its loss is noticed
//! ```
//! A damaged file stays in its place, and no library is changed, until a person restores it or
//! `FUNCTION FLUSH` sets it aside and writes an empty one. The same holds while a file is missing that
//! was written.

use crate::credentials;
use crate::kv::Kv;
use crate::rdb::crc64::crc64;
use std::path::Path;
use vfs::Vfs;

/// Name of the file.
pub const FUNCTIONS_FILE: &str = "functions";
/// Name of a file that was set aside.
const DAMAGED_FILE: &str = "functions.damaged";
/// Files that are set aside at most.
const DAMAGED_MAX: u32 = 100;
/// Bytes of the CRC-64 at the end.
const CHECKSUM_SIZE: usize = 8;

/// Contents of the file, if its checksum is right; none if there is none.
///
/// # Errors
/// Reason as text: the file is damaged or missing, cannot be read, or was set aside and awaits a decision.
pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Vec<u8>>, String> {
    let path = dir.join(FUNCTIONS_FILE);
    if !vfs.exists(&path).map_err(|error| error.to_string())? {
        let aside = dir.join(DAMAGED_FILE);
        if vfs.exists(&aside).map_err(|error| error.to_string())? {
            return Err(explain(&aside, "was set aside, for it is damaged"));
        }
        return match credentials::is_listed(vfs, dir, FUNCTIONS_FILE)? {
            true => Err(explain(&path, "is missing")),
            false => Ok(None),
        };
    }
    let bytes = vfs.read(&path).map_err(|error| error.to_string())?;
    match is_sound(&bytes) {
        true => Ok(Some(bytes)),
        false => Err(explain(&path, "is damaged: its checksum does not match")),
    }
}

fn explain(path: &Path, what: &str) -> String {
    format!(
        "{} {what}. Restore {FUNCTIONS_FILE} and restart, or FUNCTION FLUSH to begin without libraries",
        path.display()
    )
}

fn is_sound(bytes: &[u8]) -> bool {
    let size = bytes.len().saturating_sub(CHECKSUM_SIZE);
    let (body, sum) = bytes.split_at(size);
    // Zeros stand for no checksum in dumps of others; this file always has one.
    <[u8; CHECKSUM_SIZE]>::try_from(sum)
        .is_ok_and(|sum| u64::from_le_bytes(sum) != 0 && u64::from_le_bytes(sum) == crc64(0, body))
}

/// Renames the damaged file, if it is there.
///
/// # Errors
/// In words, when it cannot be renamed.
pub fn set_aside(vfs: &dyn Vfs, dir: &Path) -> Result<(), String> {
    if !vfs.exists(&dir.join(FUNCTIONS_FILE)).map_err(|error| error.to_string())? {
        return Ok(());
    }
    let name = |number: u32| match number {
        1 => DAMAGED_FILE.to_owned(),
        number => format!("{DAMAGED_FILE}.{number}"),
    };
    for number in 1..=DAMAGED_MAX {
        let to = dir.join(name(number));
        if vfs.exists(&to).map_err(|error| error.to_string())? {
            continue;
        }
        let renamed = vfs.rename(&dir.join(FUNCTIONS_FILE), &to);
        return renamed.and_then(|()| vfs.sync_dir(dir)).map_err(|error| error.to_string());
    }
    Err(format!("{DAMAGED_MAX} files named {DAMAGED_FILE} are there already"))
}

impl Kv {
    /// Reads the file of functions; none if there is none.
    ///
    /// # Errors
    /// As [`read`].
    pub fn read_functions(&self) -> Result<Option<Vec<u8>>, String> {
        read(self.vfs.as_ref(), &self.dir)
    }

    /// Replaces the file of functions, durably, and notes that there is one.
    ///
    /// # Errors
    /// In words, when it cannot be written.
    pub fn write_functions(&self, bytes: &[u8]) -> Result<(), String> {
        let _one = self.lock_credentials();
        self.write_beside(FUNCTIONS_FILE, bytes).map_err(|error| error.to_string())?;
        credentials::list(self.vfs.as_ref(), &self.dir, FUNCTIONS_FILE)?;
        self.record_file_list().map_err(|error| error.to_string())
    }

    /// Notes that there is a file of functions, which an earlier version may have written.
    ///
    /// # Errors
    /// In words, when it cannot be noted.
    pub fn list_functions(&self) -> Result<(), String> {
        let _one = self.lock_credentials();
        credentials::list(self.vfs.as_ref(), &self.dir, FUNCTIONS_FILE)?;
        self.record_file_list().map_err(|error| error.to_string())
    }

    /// Sets the damaged file of functions aside.
    ///
    /// # Errors
    /// As [`set_aside`].
    pub fn set_functions_aside(&self) -> Result<(), String> {
        set_aside(self.vfs.as_ref(), &self.dir)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the tests damage real files")]

    use super::*;
    use vfs::RealVfs;

    fn sealed(body: &[u8]) -> Vec<u8> {
        [body, &crc64(0, body).to_le_bytes()].concat()
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (vfs, path) = (RealVfs::new(), dir.path().join(FUNCTIONS_FILE));
        let whole = sealed(b"\xf5\x03abc\x0a\x00");
        for size in 0..whole.len() {
            std::fs::write(&path, &whole[..size]).expect("written");
            assert!(read(&vfs, dir.path()).is_err(), "cut to {size}");
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[size] ^= 1 << bit;
                std::fs::write(&path, &flipped).expect("written");
                assert!(read(&vfs, dir.path()).is_err(), "byte {size}, bit {bit}");
            }
        }
        std::fs::write(&path, &whole).expect("written");
        assert_eq!(read(&vfs, dir.path()), Ok(Some(whole)));
    }

    #[test]
    fn a_missing_file_is_noticed_once_one_was_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let (vfs, path) = (RealVfs::new(), dir.path().join(FUNCTIONS_FILE));
        assert_eq!(read(&vfs, dir.path()), Ok(None));
        let whole = sealed(b"\xf5\x03abc\x0a\x00");
        std::fs::write(&path, &whole).expect("written");
        credentials::list(&vfs, dir.path(), FUNCTIONS_FILE).expect("listed");
        assert_eq!(read(&vfs, dir.path()), Ok(Some(whole)));
        std::fs::remove_file(&path).expect("removed");
        let error = read(&vfs, dir.path()).expect_err("missing");
        assert!(error.contains("functions is missing. Restore functions"), "{error}");
        // A missing file is not renamed; the next write creates it.
        set_aside(&vfs, dir.path()).expect("nothing to rename");
        std::fs::write(&path, sealed(b"\x0a\x00")).expect("written");
        assert!(read(&vfs, dir.path()).is_ok_and(|bytes| bytes.is_some()));
    }

    #[test]
    fn a_damaged_file_stays_until_somebody_decides() {
        let dir = tempfile::tempdir().expect("a directory");
        let (vfs, path) = (RealVfs::new(), dir.path().join(FUNCTIONS_FILE));
        assert_eq!(read(&vfs, dir.path()), Ok(None));
        for name in [DAMAGED_FILE, "functions.damaged.2"] {
            std::fs::write(&path, name).expect("written");
            set_aside(&vfs, dir.path()).expect("renamed");
            assert_eq!(std::fs::read_to_string(dir.path().join(name)).expect("there"), name);
            assert!(read(&vfs, dir.path()).is_err());
        }
        std::fs::write(&path, sealed(b"\x0a\x00")).expect("written");
        assert!(read(&vfs, dir.path()).is_ok_and(|bytes| bytes.is_some()));
    }
}
