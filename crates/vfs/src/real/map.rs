//! Memory maps of sealed files.
//!
//! Each is listed with `guard` while it lives, so that a page that the disk cannot give costs that
//! page and not the process.

use super::guard::{self, Guard};
use crate::Bytes;
use crate::bytes::Holder;
use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Maps a file that does not change any more.
#[allow(unsafe_code)]
pub(super) fn map(path: &Path) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    // A map of no bytes is an error to some systems.
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::from_vec(Vec::new()));
    }
    // SAFETY: the slice stays valid as long as nobody writes to or cuts the file. `Vfs::map` is
    // for files that do not change any more; nothing in this program writes to a file but through
    // the handle that created it, and the directory's lock keeps other processes of it away.
    // Removing the file is fine: the map keeps its pages. Where somebody else cuts it all the
    // same, or the disk fails, `guard` puts zeros in the place of what is gone and counts it.
    let map = unsafe { Mmap::map(&file)? };
    match guard::watch(&map) {
        Some(guard) => Ok(Bytes::from_holder(Arc::new(FileMap { guard, map }))),
        None => {
            // So many maps that no more can be watched: this one is memory of our own.
            drop(map);
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(Bytes::from_vec(bytes))
        }
    }
}

/// A read-only, shared map of a file.
struct FileMap {
    /// Goes before the map does: a field is dropped after those above it.
    guard: Guard,
    map: Mmap,
}

impl Holder for FileMap {
    fn bytes(&self) -> &[u8] {
        &self.map
    }

    #[allow(unsafe_code)]
    fn release(&self) {
        // SAFETY: the map is read-only and of a file, so a page that is dropped is read again from
        // the same file; only private or anonymous maps would lose their content. The pages that
        // `guard` put in are such, and are zeros before and after.
        let advised = unsafe { self.map.unchecked_advise(UncheckedAdvice::DontNeed) };
        // Advice that the system does not take costs memory, nothing else.
        drop(advised);
    }

    fn faults(&self) -> u32 {
        self.guard.faults()
    }
}
