//! Memory maps of sealed files.

use crate::Bytes;
use crate::bytes::Holder;
use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Maps a file that does not change any more.
#[allow(unsafe_code)]
pub(super) fn map(path: &Path) -> io::Result<Bytes> {
    let file = File::open(path)?;
    // A map of no bytes is an error to some systems.
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::from_vec(Vec::new()));
    }
    // SAFETY: the slice stays valid as long as nobody writes to or cuts the file. `Vfs::map` is
    // for files that do not change any more; nothing in this program writes to a file but through
    // the handle that created it, and the directory's lock keeps other processes of it away.
    // Removing the file is fine: the map keeps its pages.
    let map = unsafe { Mmap::map(&file)? };
    Ok(Bytes::from_holder(Arc::new(FileMap(map))))
}

/// A read-only, shared map of a file.
struct FileMap(Mmap);

impl Holder for FileMap {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[allow(unsafe_code)]
    fn release(&self) {
        // SAFETY: the map is read-only and of a file, so a page that is dropped is read again from
        // the same file; only private or anonymous maps would lose their content.
        let advised = unsafe { self.0.unchecked_advise(UncheckedAdvice::DontNeed) };
        // Advice that the system does not take costs memory, nothing else.
        drop(advised);
    }
}
