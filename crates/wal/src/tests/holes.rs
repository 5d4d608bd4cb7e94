//! A sector that the disk does not give: a map of the file reads as zeros there, and says so.

use super::*;
use crate::inspect::{FaultKind, Found, inspect};
use vfs::bytes::Holder;
use vfs::{Bytes, Layer};

/// A disk whose maps of segment 0 are zeros from this byte on.
struct HoleyVfs {
    inner: SimVfs,
    hole: usize,
}

struct Holey(Vec<u8>);

impl Holder for Holey {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn faults(&self) -> u32 {
        1
    }
}

impl Layer for HoleyVfs {
    fn below(&self) -> &dyn Vfs {
        &self.inner
    }

    fn map(&self, path: &Path) -> vfs::Result<Bytes> {
        let bytes = self.inner.map(path)?;
        if path != segment_path(0) || bytes.len() <= self.hole {
            return Ok(bytes);
        }
        let mut zeroed = bytes.to_vec();
        zeroed[self.hole..].fill(0);
        Ok(Bytes::from_holder(Arc::new(Holey(zeroed))))
    }
}

/// Once the sector reads as zeros, what it held looks torn: nothing may be cut, or written anew,
/// because of that.
#[test]
fn what_the_disk_does_not_give_is_no_torn_write() {
    let disk = SimVfs::new(3);
    let (wal, _) = open(&disk, Committer::Waiter, 0).unwrap();
    for payload in [b"aaaa", b"bbbb", b"cccc"] {
        let lsn = wal.append(3, payload).unwrap();
        wal.wait_durable(lsn).unwrap();
    }
    drop(wal);
    let before = disk.read(&segment_path(0)).unwrap();
    for hole in 0..before.len() {
        let holey = HoleyVfs { inner: disk.kill(), hole };
        let mut faults = 0;
        inspect(&holey, Path::new(DIRECTORY), &mut |found| match found {
            Found::Fault(fault) => {
                assert!(!matches!(fault.kind, FaultKind::TornEnd { .. }), "{hole}");
                faults += 1;
            }
            Found::Record(_) => {}
        })
        .unwrap();
        assert!(0 < faults, "{hole}");
        let after = holey.inner.clone();
        let mut on_record = |_: RecordRef<'_>| Ok(());
        let vfs: Arc<dyn Vfs> = Arc::new(holey);
        let config = config(Committer::Waiter);
        let error = Wal::open(vfs, Path::new(DIRECTORY), config, 0, &mut on_record).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{hole}: {error}");
        assert_eq!(after.read(&segment_path(0)).unwrap(), before, "{hole}");
    }
    assert_eq!(open(&disk, Committer::Waiter, 0).unwrap().1.len(), 3, "when it can be read again");
}
