//! Files that are exchanged with other programs, in one directory that somebody named for it: what a
//! client calls a file never reaches another place.
//!
//! ```text
//! name ─► plain? ─► create  .name.<pid>-<n>.part ─► finish: sync, then the name, then the directory
//!               └─► open    no link, no pipe, no directory
//! ```
//!
//! A name has no `/`, so nothing can stand between the directory and the file, and the last link of a
//! path is one that the system is told not to follow: there is no moment between a check and its use.
//! These are plain files of the operating system: nothing of ours is in them, so no test wants to own
//! them.

use crate::RealVfs;
use crate::Vfs as _;
use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a name: with what is put around it while it is written it is one that every file system
/// takes.
pub const NAME_SIZE_MAX: usize = 200;

/// Tells files apart that are written at one time.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// A directory of such files.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// One that is there.
    ///
    /// # Errors
    /// When it is none.
    pub fn open(path: &Path) -> Result<Folder> {
        let failed = |error| Error::new("open directory", path, error);
        let path = fs::canonicalize(path).map_err(failed)?;
        match path.is_dir() {
            true => Ok(Folder { path }),
            false => Err(failed(ErrorKind::NotADirectory.into())),
        }
    }

    /// Where it is, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file to read it here and there.
    ///
    /// # Errors
    /// When it is called what no file may be, is not there, or is no plain file.
    pub fn read(&self, name: &str) -> Result<File> {
        let path = self.path_of(name)?;
        let open = || -> io::Result<File> {
            // Who opens a pipe waits for its other end.
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let file = OpenOptions::new().read(true).custom_flags(flags).open(&path)?;
            match file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(refused("it is no plain file")),
            }
        };
        open().map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => Error::new("open", &path, refused("it is a link")),
            _ => Error::new("open", &path, error),
        })
    }

    /// Begins a file, which has its name only once it is finished. One of that name that is there is
    /// replaced then, or refused.
    ///
    /// # Errors
    /// When it is called what no file may be, or cannot be written.
    pub fn create(&self, name: &str, existing: Existing) -> Result<NewFile> {
        let path = self.path_of(name)?;
        if existing == Existing::Kept && fs::symlink_metadata(&path).is_ok() {
            return Err(Error::new("create", &path, ErrorKind::AlreadyExists.into()));
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let part = self.path.join(format!(".{name}.{}-{number}.part", std::process::id()));
        // One that is new is no link.
        let file = OpenOptions::new().write(true).create_new(true).open(&part);
        let file = file.map_err(|error| Error::new("create", &part, error))?;
        let file = BufWriter::new(file);
        Ok(NewFile { file, part: Some(part), path, existing })
    }

    fn path_of(&self, name: &str) -> Result<PathBuf> {
        let wrong = |words: &str| Err(Error::new("open", Path::new(name), refused(words)));
        if name.contains(['/', '\\', '\0']) {
            return wrong("a file is named without its folder");
        }
        if name.is_empty() || name.starts_with('.') {
            return wrong("a file's name begins with no dot");
        }
        if NAME_SIZE_MAX < name.len() {
            let words = format!("a name of {} bytes, the limit is {NAME_SIZE_MAX}", name.len());
            return wrong(&words);
        }
        Ok(self.path.join(name))
    }
}

fn refused(words: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, words)
}

/// What becomes of a file whose name a new one gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the new one is refused.
    Kept,
    /// The new one takes its place.
    Replaced,
}

/// A file that is being written; what is not finished is removed.
#[derive(Debug)]
pub struct NewFile {
    file: BufWriter<File>,
    /// Its name until it is finished.
    part: Option<PathBuf>,
    path: PathBuf,
    existing: Existing,
}

impl NewFile {
    /// Gives it its name, durably.
    ///
    /// # Errors
    /// When it cannot be written, or has been there since; nothing of it is there then.
    pub fn finish(mut self) -> Result<()> {
        let path = self.path.clone();
        let failed = |operation| {
            let path = path.clone();
            move |error| Error::new(operation, &path, error)
        };
        self.file.flush().map_err(failed("append"))?;
        self.file.get_ref().sync_all().map_err(failed("sync"))?;
        let Some(part) = self.part.as_ref() else { return Ok(()) };
        match self.existing {
            // A link fails where the name is taken, which a rename would not.
            Existing::Kept => fs::hard_link(part, &path).map_err(failed("create"))?,
            Existing::Replaced => {
                fs::rename(part, &path).map_err(failed("rename"))?;
                self.part = None;
            }
        }
        RealVfs::new().sync_dir(crate::atomic::directory_of(&path))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(part) = self.part.take() {
            // It is nobody's: what is left of it begins with a dot and ends in `.part`.
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// A directory of a test's own, which goes with it.
    struct Own(PathBuf);

    impl Own {
        fn new(name: &str) -> Own {
            let path = std::env::temp_dir().join(format!("quipu-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("in")).unwrap();
            Own(path)
        }

        fn folder(&self) -> Folder {
            Folder::open(&self.0.join("in")).unwrap()
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn write(folder: &Folder, name: &str, text: &str, existing: Existing) -> Result<()> {
        let mut file = folder.create(name, existing)?;
        file.write_all(text.as_bytes()).unwrap();
        file.finish()
    }

    fn names(folder: &Folder) -> Vec<String> {
        RealVfs::new().list(folder.path()).unwrap()
    }

    #[test]
    fn files_are_there_whole_or_not_at_all() {
        let own = Own::new("exchange-whole");
        let folder = own.folder();
        write(&folder, "a", "one", Existing::Kept).unwrap();
        let refused = write(&folder, "a", "two", Existing::Kept).unwrap_err();
        assert_eq!(refused.source.kind(), ErrorKind::AlreadyExists);
        // It came while the new one was written.
        let mut late = folder.create("b", Existing::Kept).unwrap();
        late.write_all(b"late").unwrap();
        write(&folder, "b", "early", Existing::Kept).unwrap();
        assert_eq!(late.finish().unwrap_err().source.kind(), ErrorKind::AlreadyExists);
        drop(folder.create("c", Existing::Kept).unwrap());
        assert_eq!(names(&folder), ["a", "b"]);
        write(&folder, "a", "three", Existing::Replaced).unwrap();
        let mut text = String::new();
        folder.read("a").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), names(&folder).len()), ("three", 2));
    }

    #[test]
    fn nothing_leads_out() {
        let own = Own::new("exchange-out");
        let folder = own.folder();
        fs::write(own.0.join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(own.0.join("secret"), own.0.join("in/link")).unwrap();
        std::os::unix::fs::symlink(own.0.join("new"), own.0.join("in/dangling")).unwrap();
        fs::create_dir(own.0.join("in/folder")).unwrap();
        let long = "x".repeat(NAME_SIZE_MAX + 1);
        for name in
            ["../secret", "/etc/passwd", "..", ".", "", "folder/../../secret", "a\0b", &long]
        {
            assert!(folder.read(name).is_err(), "{name}");
            assert!(folder.create(name, Existing::Replaced).is_err(), "{name}");
        }
        for name in ["link", "folder", "dangling"] {
            assert!(folder.read(name).is_err(), "{name}");
            assert!(folder.create(name, Existing::Kept).is_err(), "{name}");
        }
        // What is replaced is the link, not what it leads to.
        write(&folder, "link", "mine", Existing::Replaced).unwrap();
        assert_eq!(fs::read_to_string(own.0.join("secret")).unwrap(), "s");
        write(&folder, "dangling", "mine", Existing::Replaced).unwrap();
        assert!(!own.0.join("new").exists());
    }
}
