//! Directories that a backup is being restored into.

use std::path::Path;
use std::sync::Arc;
use store::{Snapshots, Store, StoreConfig, begin_restoring, end_restoring, verify_with};
use vfs::{SimVfs, Vfs};

#[test]
fn half_restored_directory_does_not_open_after_power_loss() {
    let dir = Path::new("/data");
    let disk = SimVfs::new(3);
    disk.create_dir_all(dir).unwrap();
    begin_restoring(&disk, dir, "backup x from /place").unwrap();
    let disk = disk.crash();
    let open = |disk: &SimVfs| Store::open(Arc::new(disk.clone()), dir, StoreConfig::standard());
    let Err(error) = open(&disk) else { panic!("it opens") };
    assert!(error.to_string().contains("backup x from /place"), "{error}");
    assert!(!disk.exists(&dir.join("partitions")).unwrap(), "nothing is touched");
    disk.create_dir_all(&dir.join("partitions")).unwrap();
    let checked = verify_with(Arc::new(disk.clone()), dir, Snapshots::Skip, &mut |_| {});
    assert!(checked.unwrap_err().to_string().contains("half restored"));
    end_restoring(&disk, dir).unwrap();
    let disk = disk.crash();
    assert!(open(&disk).is_ok());
}
