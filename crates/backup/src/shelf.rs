//! The backups of a place: its format, and the manifests by their names.

use super::pieces::BLOBS;
use super::place::Place;
use anyhow::{Context as _, bail};
use cli::calendar::rfc3339;
use store::{BackupManifest, MANIFEST_SIZE_MAX};
use vfs::{RealVfs, Vfs as _};

/// Says that a place has backups, and how they are laid out.
const FORMAT_KEY: &str = "FORMAT";
const FORMAT_START: &str = "quipu backups ";
const FORMAT: &str = "1";
/// Bytes of that text that are looked at.
const FORMAT_SIZE_MAX: u64 = 64;
/// The folder of manifests.
const BACKUPS: &str = "backups";
const SUFFIX: &str = ".manifest";
/// What stands for the newest backup.
pub const LATEST: &str = "latest";

/// Makes sure that a place is one for backups of this format; a new one becomes one.
///
/// # Errors
/// When it is of another format, or cannot be read or written.
pub fn prepare(place: &dyn Place) -> anyhow::Result<()> {
    if format(place)?.is_none() {
        for folder in [BLOBS, BACKUPS] {
            if let Some(found) = place.list(folder)?.first() {
                bail!(
                    "{} has {} and no {FORMAT_KEY}: it is somebody else's; say an empty place",
                    place.name(),
                    found.key
                );
            }
        }
        place.put(FORMAT_KEY, format!("{FORMAT_START}{FORMAT}\n").as_bytes())?;
    }
    Ok(())
}

/// Makes sure that there are backups of this format.
///
/// # Errors
/// When there are none, when they are of another format, or when that cannot be told.
pub fn check(place: &dyn Place) -> anyhow::Result<()> {
    match format(place)? {
        Some(()) => Ok(()),
        None => bail!("there are no backups in {} (it has no {FORMAT_KEY})", place.name()),
    }
}

fn format(place: &dyn Place) -> anyhow::Result<Option<()>> {
    let Some(bytes) = place.get(FORMAT_KEY, FORMAT_SIZE_MAX)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    match text.trim_end().strip_prefix(FORMAT_START) {
        Some(FORMAT) => Ok(Some(())),
        Some(other) => bail!(
            "{} has backups of format {other}, this program knows {FORMAT}: a newer Quipu made them",
            place.name()
        ),
        None => bail!("{FORMAT_KEY} in {} is not that of backups", place.name()),
    }
}

/// A backup's name: when it was made, and digits that another of the same moment has not.
pub fn new_id(made: i64) -> String {
    let millisecond = made - made.rem_euclid(1_000_000);
    let moment = jiff::Timestamp::from_nanosecond(i128::from(millisecond)).unwrap_or_default();
    let digits = RealVfs::new().random() & u64::from(u32::MAX);
    format!("{}-{digits:08x}", moment.strftime("%Y%m%dT%H%M%S.%3fZ"))
}

/// Where the manifest of a backup is.
pub fn key_of(id: &str) -> String {
    format!("{BACKUPS}/{id}{SUFFIX}")
}

/// Names of all backups, oldest first.
///
/// # Errors
/// When they cannot be listed.
pub fn ids(place: &dyn Place) -> anyhow::Result<Vec<String>> {
    let start = format!("{BACKUPS}/");
    let id = |key: &str| Some(key.strip_prefix(&start)?.strip_suffix(SUFFIX)?.to_owned());
    let entries = place.list(BACKUPS)?;
    let mut ids: Vec<_> = entries.iter().filter_map(|entry| id(&entry.key)).collect();
    ids.sort();
    Ok(ids)
}

/// A backup's manifest.
///
/// # Errors
/// When it is missing, damaged or of another format.
pub fn read(place: &dyn Place, id: &str) -> anyhow::Result<BackupManifest> {
    let key = key_of(id);
    let bytes = place.get(&key, MANIFEST_SIZE_MAX)?;
    let bytes = bytes.with_context(|| format!("there is no {key} in {}", place.name()))?;
    let name = format!("{}/{key}", place.name());
    Ok(BackupManifest::decode(&name, &bytes)?)
}

/// The name of the backup that is asked for: its own, a beginning that only it has, or `latest`.
///
/// # Errors
/// When there is none, or more than one.
pub fn find(place: &dyn Place, asked: &str) -> anyhow::Result<String> {
    check(place)?;
    let mut ids = ids(place)?;
    let Some(latest) = ids.last().cloned() else {
        bail!("there are no backups in {}", place.name());
    };
    if asked == LATEST {
        return Ok(latest);
    }
    ids.retain(|id| id.starts_with(asked));
    match ids.as_slice() {
        [id] => Ok(id.clone()),
        [] => bail!(
            "there is no backup {asked} in {}; the newest is {latest}, quipu backup list has all",
            place.name()
        ),
        [first, .., last] => {
            bail!(
                "{} backups begin with {asked}, from {first} to {last}: say more of it",
                ids.len()
            )
        }
    }
}

/// A manifest's time, for people.
pub fn made(manifest: &BackupManifest) -> String {
    let second = manifest.made - manifest.made.rem_euclid(1_000_000_000);
    rfc3339(second)
}

#[cfg(test)]
mod tests {
    use super::super::directory::Directory;
    use super::*;

    #[test]
    fn names_sort_by_time() {
        let id = new_id(1_709_208_000_123_456_789);
        let (moment, digits) = id.split_once('-').expect("two pieces");
        assert_eq!((moment, digits.len()), ("20240229T120000.123Z", 8));
        assert!(new_id(1_709_208_000_124_000_000) > id);
    }

    #[test]
    fn backups_are_found_by_what_only_they_begin_with() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Directory::new(directory.path()).expect("a place");
        let says = |asked: &str| match find(&place, asked) {
            Ok(id) => id,
            Err(error) => error.to_string(),
        };
        assert!(says(LATEST).contains("has no FORMAT"));
        place.put("blobs/sha256/ab", b"of a registry").expect("put");
        let error = prepare(&place).expect_err("somebody else's").to_string();
        assert!(error.contains("blobs/sha256/ab and no FORMAT"), "{error}");
        place.remove("blobs/sha256/ab").expect("removed");
        prepare(&place).expect("a place of backups");
        prepare(&place).expect("again");
        assert!(says(LATEST).starts_with("there are no backups in "));
        for id in ["20240101T1-a", "20240102T1-b", "20240102T2-c"] {
            place.put(&key_of(id), b"").expect("put");
        }
        place.put("backups/20990101T1-d.manifest.new-1", b"").expect("put");
        assert_eq!(says(LATEST), "20240102T2-c");
        assert_eq!(says("20240101"), "20240101T1-a");
        assert!(says("20240102").starts_with("2 backups begin with 20240102"));
        assert!(says("x").contains("there is no backup x in "));
        place.put("FORMAT", b"quipu backups 2\n").expect("put");
        assert!(says(LATEST).contains("has backups of format 2, this program knows 1"));
        place.put("FORMAT", b"else").expect("put");
        assert!(says(LATEST).contains("is not that of backups"));
    }
}
