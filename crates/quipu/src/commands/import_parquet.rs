//! `quipu import` of Parquet: one file, or all of a directory and those within it, to a running server.
//!
//! ```text
//! file ─ rows to lines of JSON, 4 MiB at a time ─► POST /api/v1/import     DIR.progress = files done
//! ```
//!
//! Sending the same rows twice does no harm: the same samples are stored once. So a file that was
//! interrupted is sent again from its beginning.

use super::import::{Sent, send};
use anyhow::{Context as _, bail};
use cli::checkpoint::Checkpoint;
use cli::parquet_files::collect;
use cli::quantity::count_of;
use http_client::client::Client;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use sql::parquet::{FileReader, MAGIC, Source};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use vfs::{RealVfs, Vfs as _};

/// Bytes of lines in one request.
const REQUEST_SIZE: usize = 4 << 20;

/// How far an import of a directory came.
#[derive(Serialize, Deserialize)]
struct Progress {
    /// The last file that is done, in the order of their names.
    done: PathBuf,
}

/// Whether that is a directory, or a file that begins as Parquet does.
pub fn is_parquet(name: &Path) -> bool {
    let mut head = [0; 4];
    name.is_dir()
        || File::open(name)
            .is_ok_and(|mut file| file.read_exact(&mut head).is_ok() && head == *MAGIC)
}

/// Sends a file or a directory; returns how many requests had lines that were refused.
///
/// # Errors
/// When a file cannot be read, or the server does not take it.
pub fn run(client: &mut Client, path: &str, name: &Path) -> anyhow::Result<u64> {
    let name: PathBuf = name.components().collect();
    let mut files = Vec::new();
    collect(&name, 0, &mut files)?;
    files.sort_unstable();
    if files.is_empty() {
        bail!("{} has no files that end in .parquet", name.display());
    }
    let checkpoint = Checkpoint::of(&name);
    if let Some(Progress { done }) = checkpoint.read()? {
        let before = files.len();
        files.retain(|file| done < *file);
        eprintln!("going on at file {} of {before}", before - files.len() + 1);
    }
    let bar = ProgressBar::new(files.len() as u64);
    let template = "{bar:30} {pos} of {len} files, {msg} rows, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.set_message("0");
    let mut import = Import { client, path, bar, rows: 0, sent: Sent::default() };
    let count = files.len();
    for file in files {
        import.file(&file).with_context(|| file.display().to_string())?;
        import.bar.inc(1);
        if 1 < count {
            checkpoint.write(&Progress { done: file })?;
        }
    }
    let Import { bar, rows, sent: Sent { refused, .. }, .. } = import;
    bar.finish_and_clear();
    cli::print_line!(
        "{} of {} sent; {} had lines that were refused",
        count_of(rows, "row"),
        count_of(count, "file"),
        count_of(refused, "request")
    );
    checkpoint.remove();
    Ok(refused)
}

/// An import under way.
struct Import<'a> {
    client: &'a mut Client,
    path: &'a str,
    bar: ProgressBar,
    rows: u64,
    sent: Sent,
}

impl Import<'_> {
    fn file(&mut self, name: &Path) -> anyhow::Result<()> {
        let source = Source::of_file(File::open(name)?)?;
        let mut reader = FileReader::open(source, None, RealVfs::new().now())?;
        let mut lines = Vec::new();
        loop {
            let read = reader.push_lines(false, &mut lines).map_err(|error| {
                let column = error.column.map(|one| format!(", column {one}")).unwrap_or_default();
                anyhow::anyhow!(
                    "row {}{column}: {}; rows before it are stored",
                    error.row,
                    error.message
                )
            })?;
            if REQUEST_SIZE <= lines.len() || !read.has_more && !lines.is_empty() {
                send(
                    self.client,
                    self.path,
                    std::mem::take(&mut lines),
                    &self.bar,
                    &mut self.sent,
                )?;
            }
            self.bar.set_message((self.rows + reader.rows()).to_string());
            if !read.has_more {
                self.rows += reader.rows();
                return Ok(());
            }
        }
    }
}
