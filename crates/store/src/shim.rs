//! Stands in for what the index and the log do not offer yet.
use crate::Result;
use index::Index;
pub trait IndexSegments {
    fn freeze(&self) -> Result<Option<()>>;
    fn merge(&self) -> Result<Option<()>>;
    fn install(&mut self, _f: ()) -> Result<Vec<String>>;
    fn segment_names(&self) -> Vec<String>;
    fn segments_size(&self) -> u64;
    fn series_count(&self) -> u64;
    fn memory_size(&self) -> usize;
    fn next_entity(&self) -> u32;
    fn verify(&self) -> Result<()>;
}
impl IndexSegments for Index {
    fn freeze(&self) -> Result<Option<()>> {
        Ok(None)
    }
    fn merge(&self) -> Result<Option<()>> {
        Ok(None)
    }
    fn install(&mut self, _f: ()) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn segment_names(&self) -> Vec<String> {
        Vec::new()
    }
    fn segments_size(&self) -> u64 {
        0
    }
    fn series_count(&self) -> u64 {
        self.memory().series_count()
    }
    fn memory_size(&self) -> usize {
        self.memory().memory_size()
    }
    fn next_entity(&self) -> u32 {
        self.memory().next_entity()
    }
    fn verify(&self) -> Result<()> {
        Ok(())
    }
}
pub mod wal_shim {
    pub fn first_segment(vfs: &dyn vfs::Vfs, dir: &std::path::Path) -> crate::Result<Option<u64>> {
        Ok(vfs.list(dir)?.iter().filter_map(|n| n.strip_suffix(".wal")?.parse().ok()).min())
    }
    pub fn check(
        _: &dyn vfs::Vfs,
        _: &std::path::Path,
        _: &mut wal::OnRecord<'_>,
    ) -> wal::Result<wal::Recovery> {
        Ok(wal::Recovery::default())
    }
}
