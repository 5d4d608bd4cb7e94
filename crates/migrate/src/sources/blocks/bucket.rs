//! Blocks in a bucket, as Thanos and Mimir keep them: files are read by ranges, the next piece while the one
//! before is looked at.

use super::reader::At;
use super::shelf::{CHUNKS, DELETION_MARK, INDEX, Listed, META, Shelf, TOMBSTONES};
use anyhow::{Context as _, bail, ensure};
use http_client::object_store::{Bucket, Coming, Failed, Found, Level, OddKey};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Blocks below one prefix.
const BLOCKS_MAX: usize = 200_000;
/// Folders that are named where there are no blocks.
const FOLDERS_SHOWN: usize = 5;
/// What to do about an object of whose kind nothing can be listed.
const REMEDY: &str = "remove that object, or name a prefix that has none of its kind";
/// Letters of a block's name.
const NAME_SIZE: usize = 26;

/// The blocks below a prefix.
pub struct InBucket {
    bucket: Arc<Bucket>,
    /// What the one block is called that the prefix is.
    alone: Option<String>,
    /// Names right below the prefix that are no path.
    odd: Vec<String>,
    /// Whether the last thing that went wrong was the bucket itself.
    is_away: Arc<AtomicBool>,
}

impl InBucket {
    /// Those below the prefix of a bucket.
    pub fn new(bucket: Bucket) -> InBucket {
        InBucket { bucket: Arc::new(bucket), alone: None, odd: Vec::new(), is_away: Arc::default() }
    }

    fn key(&self, block: &str, file: &str) -> String {
        match self.alone {
            Some(_) => file.to_string(),
            None => format!("{block}/{file}"),
        }
    }

    /// Looks where files of blocks are alone: what is odd elsewhere is not met.
    fn list_folders(&self, look: &mut Look) -> anyhow::Result<()> {
        let Level { objects, folders, odd } = self.bucket.level("").context(REMEDY)?;
        objects.into_iter().try_for_each(|found| look.take(found))?;
        // Right below the prefix nothing is a part of a block, unless the prefix is one.
        let is_alone =
            look.own.contains_key(META) && !folders.iter().any(|folder| is_block(folder));
        if let Some(name) = odd.first().filter(|_| is_alone) {
            bail!("{name} is no path: {REMEDY}");
        }
        look.odd = odd;
        for folder in folders {
            look.take(inside(&folder, ""))?;
            if is_block(&folder) {
                self.list_block(&folder, look)?;
            }
        }
        Ok(())
    }

    /// Looks at the files of a block. With one that is odd it is as one that is not whole: it is named, and
    /// not done.
    fn list_block(&self, block: &str, look: &mut Look) -> anyhow::Result<()> {
        for folder in [block.to_string(), format!("{block}/{CHUNKS}")] {
            let odd = match self.bucket.level(&folder) {
                Ok(Level { objects, odd, .. }) if odd.is_empty() => {
                    objects.into_iter().try_for_each(|one| look.take(one))?;
                    continue;
                }
                Ok(Level { odd, .. }) => odd.into_iter().next().unwrap_or_default(),
                Err(error) if error.is::<OddKey>() => error.to_string(),
                Err(error) => return Err(error),
            };
            eprintln!("quipu: {odd} is no path: {REMEDY}");
            look.blocks.insert(block.to_string(), BTreeMap::new());
            return look.take(inside(block, META));
        }
        Ok(())
    }

    fn noted<T>(&self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        self.is_away.store(outcome.is_err(), Ordering::Relaxed);
        outcome
    }
}

/// A file of a folder.
fn inside(folder: &str, file: &str) -> Found {
    Found { key: format!("{folder}/{file}"), size: 0, modified: 0 }
}

/// Whether a folder is called as blocks are: a ULID.
fn is_block(name: &str) -> bool {
    let is_letter =
        |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase() && !b"ILOU".contains(&byte);
    name.len() == NAME_SIZE && name.bytes().all(is_letter)
}

/// Whether a file of a block is read.
fn is_read(file: &str) -> bool {
    let is_chunks = |rest: &str| rest.strip_prefix('/').is_some_and(|name| !name.contains('/'));
    [META, INDEX, TOMBSTONES, DELETION_MARK].contains(&file)
        || file.strip_prefix(CHUNKS).is_some_and(is_chunks)
}

/// What is found below a prefix.
#[derive(Default)]
struct Look {
    blocks: Listed,
    /// Files of the block that the prefix is.
    own: BTreeMap<String, u64>,
    /// Other folders.
    folders: BTreeSet<String>,
    /// Names that are no path.
    odd: BTreeSet<String>,
}

impl Look {
    fn take(&mut self, Found { key, size, .. }: Found) -> anyhow::Result<()> {
        if is_read(&key) {
            self.own.insert(key, size);
            return Ok(());
        }
        let Some((folder, file)) = key.split_once('/') else { return Ok(()) };
        if !is_block(folder) {
            if self.folders.len() < FOLDERS_SHOWN {
                self.folders.insert(folder.to_string());
            }
            return Ok(());
        }
        // One that has nothing that is read is there, too: it is being put, or removed.
        let files = self.blocks.entry(folder.to_string()).or_default();
        if is_read(file) {
            files.insert(file.to_string(), size);
        }
        ensure!(
            self.blocks.len() <= BLOCKS_MAX,
            "more than {BLOCKS_MAX} blocks: name a prefix that has fewer"
        );
        Ok(())
    }
}

impl Shelf for InBucket {
    fn name(&self) -> &str {
        self.bucket.name()
    }

    fn shown(&self, block: &str, file: &str) -> String {
        format!("{}/{}", self.bucket.name(), self.key(block, file))
    }

    fn list(&mut self) -> anyhow::Result<Listed> {
        let mut look = Look::default();
        let listed = self.bucket.list("", &mut |found| look.take(found));
        let listed = match listed {
            Err(error) if error.is::<OddKey>() => {
                eprintln!("quipu: {error}: it is left out, and folder after folder is listed");
                look = Look::default();
                self.list_folders(&mut look)
            }
            listed => listed,
        };
        self.noted(listed)?;
        self.odd = look.odd.into_iter().collect();
        if look.blocks.is_empty() && look.own.contains_key(META) {
            let called = self.bucket.name().rsplit('/').next().unwrap_or_default().to_string();
            self.alone = Some(called.clone());
            return Ok(Listed::from([(called, look.own)]));
        }
        let folders: Vec<&str> = look.folders.iter().map(String::as_str).collect();
        ensure!(
            !look.blocks.is_empty() || folders.is_empty(),
            "{}: no blocks, which are folders called as 01ARZ3NDEKTSV4RRFFQ69G5FAV; there are {}: name one \
             of them as prefix",
            self.bucket.name(),
            folders.join(", ")
        );
        Ok(look.blocks)
    }

    fn odd(&self) -> &[String] {
        &self.odd
    }

    fn small(&self, files: &[(&str, &str)], size_max: u64) -> anyhow::Result<Vec<Option<Vec<u8>>>> {
        let keys: Vec<String> = files.iter().map(|(block, file)| self.key(block, file)).collect();
        self.noted(self.bucket.get_all(&keys, size_max))
    }

    fn open(&self, block: &str, file: &str, size: u64) -> anyhow::Result<Box<dyn At>> {
        Ok(Box::new(Object {
            bucket: self.bucket.clone(),
            is_away: self.is_away.clone(),
            key: self.key(block, file),
            size,
            coming: None,
        }))
    }

    fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }
}

struct Object {
    bucket: Arc<Bucket>,
    is_away: Arc<AtomicBool>,
    key: String,
    size: u64,
    /// The next piece, which is under way.
    coming: Option<Coming>,
}

impl At for Object {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&mut self, range: Range<u64>) -> anyhow::Result<Vec<u8>> {
        let coming = self.coming.take().filter(|coming| coming.range() == range);
        let coming = coming.unwrap_or_else(|| self.bucket.fetch(&self.key, range));
        match self.bucket.wait(coming) {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(Failed { error, is_of_object }) => {
                self.is_away.store(!is_of_object, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    fn expect(&mut self, range: Range<u64>) {
        self.coming = Some(self.bucket.fetch(&self.key, range));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_from_what_else_is_in_a_bucket() {
        let mut look = Look::default();
        let block = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        for key in [
            "debug/metas/x.json".to_string(),
            "deletion-mark.json".to_string(),
            format!("{block}/index"),
            format!("{block}/chunks/000001"),
            format!("{block}/chunks/deep/1"),
            format!("{block}/no-compact-mark.json"),
            "01ARZ3NDEKTSV4RRFFQ69G5FAI/index".to_string(),
            "01BX5ZZKBKACTAV9WEVGEMMVRZ/partial".to_string(),
        ] {
            look.take(Found { key, size: 3, modified: 0 }).unwrap();
        }
        let names: Vec<&String> = look.blocks.keys().collect();
        assert_eq!(names, [block, "01BX5ZZKBKACTAV9WEVGEMMVRZ"]);
        let files: Vec<&String> = look.blocks[block].keys().collect();
        assert_eq!(files, ["chunks/000001", "index"]);
        let folders: Vec<&String> = look.folders.iter().collect();
        assert_eq!(folders, ["01ARZ3NDEKTSV4RRFFQ69G5FAI", "debug"]);
    }
}
