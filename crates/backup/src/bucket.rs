//! A bucket as a place of backups: an object for each name.

use super::place::{Entry, Place};
use http_client::object_store::{Bucket, Found};

impl Place for Bucket {
    fn name(&self) -> &str {
        Bucket::name(self)
    }

    fn put(&self, key: &str, bytes: &[u8]) -> anyhow::Result<()> {
        Bucket::put(self, key, bytes)
    }

    fn get(&self, key: &str, size_max: u64) -> anyhow::Result<Option<Vec<u8>>> {
        Bucket::get(self, key, size_max)
    }

    fn list(&self, folder: &str) -> anyhow::Result<Vec<Entry>> {
        let mut all = Vec::new();
        Bucket::list(self, folder, &mut |Found { key, size, modified }| {
            all.push(Entry { key, size, modified });
            Ok(())
        })?;
        Ok(all)
    }

    fn remove(&self, key: &str) -> anyhow::Result<()> {
        Bucket::remove(self, key)
    }

    fn settle(&self) -> anyhow::Result<()> {
        // Whatever was answered is there.
        Ok(())
    }
}
