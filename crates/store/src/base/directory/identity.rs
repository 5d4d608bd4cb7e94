//! Identity of a store: random bytes in `DATA/store-id`, made when they are first asked for.
//!
//! A copy into the store remembers the identity beside its progress. Neither a snapshot nor a backup has
//! the file: a restored directory is another store, which may lack what was copied since.

use crate::base::directory::side_file::SideFile;
use crate::{Error, Result};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use vfs::Vfs;

/// The file's name.
pub const FILE_NAME: &str = "store-id";
const MAGIC: &[u8; 8] = b"QPSTRID1";
/// Bytes of an identity.
const SIZE: usize = 16;
/// Held by who makes an identity.
static MAKING: Mutex<()> = Mutex::new(());

fn file(dir: &Path) -> SideFile {
    SideFile { path: dir.join(FILE_NAME), magic: MAGIC }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Identity of the store in a directory, in hexadecimal digits; none until a client has asked for it.
pub(crate) fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<String>> {
    let file = file(dir);
    match file.read(vfs)? {
        None => Ok(None),
        Some(body) if body.len() == SIZE => Ok(Some(hex(&body))),
        Some(_) => {
            let (offset, what) = (0, "an identity of another length");
            Err(file.undecodable(&codec::Error { offset, what }))
        }
    }
}

/// Identity of the store in a directory; a new one where there is none, or where it cannot be read.
///
/// # Errors
/// On I/O errors, and [`Error::UnknownVersion`].
pub fn store_id(vfs: &dyn Vfs, dir: &Path) -> Result<String> {
    let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    match read(vfs, dir) {
        Ok(Some(id)) => return Ok(id),
        Ok(None) | Err(Error::Corrupt { .. }) => {}
        Err(error) => return Err(error),
    }
    let bytes = [vfs.random().to_le_bytes(), vfs.random().to_le_bytes()].concat();
    file(dir).write(vfs, &bytes)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    #[test]
    fn an_identity_stays_until_it_is_damaged() {
        let (disk, dir) = (SimVfs::new(1), Path::new("/data"));
        disk.create_dir_all(dir).unwrap();
        assert_eq!(read(&disk, dir).unwrap(), None);
        let id = store_id(&disk, dir).unwrap();
        assert_eq!((id.len(), store_id(&disk, dir).unwrap() == id), (2 * SIZE, true));
        assert_eq!(read(&disk, dir).unwrap(), Some(id.clone()));
        vfs::write_atomic(&disk, &dir.join(FILE_NAME), b"QPSTRID1 damaged").unwrap();
        assert!(read(&disk, dir).is_err());
        assert_ne!(store_id(&disk, dir).unwrap(), id);
    }
}
