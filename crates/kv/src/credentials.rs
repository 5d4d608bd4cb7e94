//! Credential files in the keys' directory, such as `users.acl`: damage to one is noticed.
//!
//! ```text
//! users.acl      rules, then a last line `# checksum XXXXXXXX` over all bytes before it
//! credentials    names of the files that were written with a checksum, and its own checksum line
//! ```
//! The list `credentials` tells a file that was removed, emptied or cut from one that never was. It also
//! names the file of function libraries ([`crate::libraries`]). The manifest of the keys records that
//! there is a list.
//! A file without a checksum line that is not listed is accepted: earlier versions and people write
//! such files. A last line `# checksum accept` accepts a file that was edited by hand.

use crate::cold::Manifest;
use codec::checksum::crc32;
use std::path::Path;
use vfs::Vfs;

/// The file beside the keys that names the primary whose replica they are; see [`crate::replication::primary`].
pub const REPLICA_OF: &str = "replica-of";
/// Names of the files that decide who may do what.
pub const CREDENTIAL_FILES: [&str; 2] = ["users.acl", "settings.conf"];
/// Lists the files that were written with a checksum.
pub(crate) const LIST_NAME: &str = "credentials";
/// Begins the last line of a file.
const CHECKSUM_PREFIX: &[u8] = b"# checksum ";
/// Stands in place of the checksum in a file that was edited by hand.
const ACCEPT: &[u8] = b"accept";

/// A credential file that passed its checks.
#[derive(Debug, PartialEq, Eq)]
pub struct CredentialFile {
    /// Contents without the checksum line.
    pub bytes: Vec<u8>,
    /// Whether a checksum covered the contents.
    pub is_sealed: bool,
    /// Whether the list names the file.
    pub is_listed: bool,
}

/// Appends the checksum line.
pub(crate) fn seal(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    if !sealed.is_empty() && !sealed.ends_with(b"\n") {
        sealed.push(b'\n');
    }
    let line = format!("{:08x}\n", crc32(&sealed));
    sealed.extend_from_slice(CHECKSUM_PREFIX);
    sealed.extend_from_slice(line.as_bytes());
    sealed
}

/// Splits contents from the text of the checksum line; none without such a line at the end.
fn split(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    let trimmed = bytes.trim_ascii_end();
    let start = trimmed.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    match trimmed[start..].strip_prefix(CHECKSUM_PREFIX) {
        Some(text) => (&bytes[..start], Some(text)),
        None => (bytes, None),
    }
}

/// Checks contents of a file. `is_listed` files must have a checksum line.
fn check(bytes: &[u8], is_listed: bool) -> Result<CredentialFile, String> {
    let (content, text) = split(bytes);
    let sealed = |is_sealed| CredentialFile { bytes: content.to_vec(), is_sealed, is_listed };
    match text {
        // Who appends the line may leave the old one.
        Some(text) if text == ACCEPT => {
            Ok(CredentialFile { bytes: split(content).0.to_vec(), is_sealed: false, is_listed })
        }
        Some(text) if text == format!("{:08x}", crc32(content)).as_bytes() => Ok(sealed(true)),
        Some(_) => Err("the checksum does not match the contents".to_owned()),
        None if is_listed => Err("the checksum line at the end is missing".to_owned()),
        None => Ok(sealed(false)),
    }
}

fn explain(path: &Path, reason: &str) -> String {
    format!(
        "{}: {reason}. Restore the file, or check it, make its last line `# checksum accept`, and restart",
        path.display()
    )
}

/// Reads the names of files that have a checksum.
fn read_list(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<String>, String> {
    let path = dir.join(LIST_NAME);
    let fail = |reason: String| {
        format!(
            "{}: {reason}. Restore the list; or check {}, write `# checksum accept` as the only line of \
             the list, and restart",
            path.display(),
            CREDENTIAL_FILES.join(" and ")
        )
    };
    if !vfs.exists(&path).map_err(|error| fail(error.to_string()))? {
        // Damage to the manifest itself closes the keys.
        let manifest = Manifest::read(vfs, dir).ok().flatten();
        return match manifest.is_some_and(|manifest| manifest.has_file_list) {
            true => Err(fail("the file is missing".to_owned())),
            false => Ok(Vec::new()),
        };
    }
    let bytes = vfs.read(&path).map_err(|error| fail(error.to_string()))?;
    let file = check(&bytes, true).map_err(fail)?;
    let text = String::from_utf8_lossy(&file.bytes);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Whether the list names a file.
///
/// # Errors
/// When the list is damaged or unreadable, in words.
pub(crate) fn is_listed(vfs: &dyn Vfs, dir: &Path, name: &str) -> Result<bool, String> {
    Ok(read_list(vfs, dir)?.iter().any(|one| one == name))
}

/// Adds a file to the list, durably. The file is there already: a listed file that never was would count
/// as lost.
///
/// # Errors
/// When the list is damaged or cannot be written, in words.
pub(crate) fn list(vfs: &dyn Vfs, dir: &Path, name: &str) -> Result<(), String> {
    let mut names = read_list(vfs, dir)?;
    if names.iter().any(|one| one == name) {
        return Ok(());
    }
    names.push(name.to_owned());
    let listed = vfs::write_atomic(vfs, &dir.join(LIST_NAME), &seal(names.join("\n").as_bytes()));
    listed.map_err(|error| error.to_string())
}

/// Reads a credential file; none if it never was.
///
/// # Errors
/// When the file or the list is damaged, lost or unreadable, in words. The caller must not serve
/// clients then.
pub fn read(vfs: &dyn Vfs, dir: &Path, name: &str) -> Result<Option<CredentialFile>, String> {
    let is_listed = is_listed(vfs, dir, name)?;
    let path = dir.join(name);
    let fail = |reason: String| explain(&path, &reason);
    match vfs.exists(&path).map_err(|error| fail(error.to_string()))? {
        false if is_listed => Err(fail("the file is missing".to_owned())),
        false => Ok(None),
        true => {
            let bytes = vfs.read(&path).map_err(|error| fail(error.to_string()))?;
            check(&bytes, is_listed).map(Some).map_err(fail)
        }
    }
}

/// Replaces a credential file with its checksum, and lists it. Both are durable on return.
///
/// # Errors
/// When a file cannot be written, or the list is damaged, in words.
pub fn write(vfs: &dyn Vfs, dir: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    // A damaged list fails before anything is written.
    read_list(vfs, dir)?;
    let written = vfs::write_atomic(vfs, &dir.join(name), &seal(bytes));
    written.map_err(|error| error.to_string())?;
    list(vfs, dir, name)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the tests damage real files")]

    use super::*;
    use vfs::RealVfs;

    const NAME: &str = "users.acl";
    const RULES: &[u8] = b"user admin on >pw ~* &* +@all\nuser default off\n";

    fn written() -> (tempfile::TempDir, RealVfs) {
        let dir = tempfile::tempdir().expect("a directory");
        let vfs = RealVfs::new();
        write(&vfs, dir.path(), NAME, RULES).expect("written");
        (dir, vfs)
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        let (dir, vfs) = written();
        for name in [NAME, LIST_NAME] {
            let path = dir.path().join(name);
            let good = std::fs::read(&path).expect("read");
            for at in 0..good.len() - 1 {
                for bit in 0..8 {
                    let mut bad = good.clone();
                    bad[at] ^= 1 << bit;
                    std::fs::write(&path, &bad).expect("written");
                    let read = read(&vfs, dir.path(), NAME);
                    assert!(read.is_err(), "{name}: bit {bit} of byte {at}: {read:?}");
                }
                std::fs::write(&path, &good[..at]).expect("written");
                assert!(read(&vfs, dir.path(), NAME).is_err(), "{name} cut at {at}");
            }
            std::fs::write(&path, vec![0; good.len()]).expect("written");
            assert!(read(&vfs, dir.path(), NAME).is_err(), "{name} of zeros");
            std::fs::write(&path, &good).expect("written");
        }
        assert_eq!(read(&vfs, dir.path(), NAME).expect("good").expect("there").bytes, RULES);
    }

    #[test]
    fn removed_file_is_refused_and_absent_file_is_not() {
        let (dir, vfs) = written();
        assert_eq!(read(&vfs, dir.path(), "settings.conf"), Ok(None));
        std::fs::remove_file(dir.path().join(NAME)).expect("removed");
        let error = read(&vfs, dir.path(), NAME).expect_err("missing");
        assert!(error.contains("users.acl: the file is missing"), "{error}");
    }

    #[test]
    fn edited_file_is_accepted_by_its_last_line() {
        let (dir, vfs) = written();
        let edited = [RULES, b"user guest on nopass +ping\n"].concat();
        let path = dir.path().join(NAME);
        std::fs::write(&path, &edited).expect("written");
        assert!(read(&vfs, dir.path(), NAME).is_err());
        std::fs::write(&path, [&edited, b"# checksum accept\n".as_slice()].concat())
            .expect("written");
        let file = read(&vfs, dir.path(), NAME).expect("accepted").expect("there");
        assert_eq!((file.bytes, file.is_sealed, file.is_listed), (edited, false, true));
    }

    #[test]
    fn line_that_accepts_may_follow_the_checksum() {
        let (dir, vfs) = written();
        let path = dir.path().join(NAME);
        let sealed = std::fs::read(&path).expect("read");
        std::fs::write(&path, [&sealed, b"# checksum accept\n".as_slice()].concat())
            .expect("written");
        let file = read(&vfs, dir.path(), NAME).expect("accepted").expect("there");
        assert_eq!((file.bytes.as_slice(), file.is_sealed), (RULES, false));
    }

    #[test]
    fn file_of_an_earlier_version_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join(NAME), RULES).expect("written");
        let file = read(&RealVfs::new(), dir.path(), NAME).expect("old").expect("there");
        assert_eq!((file.bytes.as_slice(), file.is_sealed, file.is_listed), (RULES, false, false));
    }

    #[test]
    fn file_is_not_listed_once_the_list_is_removed() {
        let (dir, vfs) = written();
        std::fs::remove_file(dir.path().join(LIST_NAME)).expect("removed");
        let file = read(&vfs, dir.path(), NAME).expect("good").expect("there");
        assert_eq!((file.is_sealed, file.is_listed), (true, false));
    }
}
