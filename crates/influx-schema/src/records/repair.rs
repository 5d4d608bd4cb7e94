//! Makes damaged schema records ones that open and verify clean, with every record that is whole.
//!
//! ```text
//! plan    the sound file, or none ─► changes of the log that it lacks, whichever are missing in between
//! apply   REPORT, damaged files ─► both files, with all records of the log, so that no start reads its
//!         damaged records again ─► removal of files that were set aside
//! ```
//!
//! Nothing is deleted: damaged files are kept in `DATA/damaged/TIME-schema/`. It may be interrupted at
//! any moment and run again.

use super::files::{Contents, FILES, LOST, RECORDS_FILE, SCHEMA_DIR};
use super::opening::write_contents;
use super::verify::{Walk, walk};
use std::path::{Path, PathBuf};
use store::Result;
use vfs::{Vfs, create_new_dir};

/// Folder of damaged files in a data directory.
const DAMAGED_DIR: &str = "damaged";
/// The file beside them that says what was done.
const REPORT_FILE: &str = "REPORT";
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Planned repair.
pub struct SchemaRepair {
    data_dir: PathBuf,
    /// Content of the new files.
    contents: Contents,
    /// Description of the damage and of each step.
    steps: Vec<String>,
    /// Description of the lost records.
    losses: Vec<String>,
    /// Files to be kept beside the report.
    damaged: Vec<String>,
    /// Files among them that are removed.
    set_aside: Vec<String>,
}

/// Plans the repair of the schema records of a data directory that the caller has locked; `None` if
/// nothing is damaged. Changes nothing.
///
/// # Errors
/// As [`super::verify::verify`].
pub fn plan(vfs: &dyn Vfs, data_dir: &Path, log_dir: &Path) -> Result<Option<SchemaRepair>> {
    let Some(walk) = walk(vfs, data_dir, log_dir)?.filter(|one| !one.report.problems.is_empty())
    else {
        return Ok(None);
    };
    let line = |(path, what): &(PathBuf, String)| format!("{}: {what}", path.display());
    let mut steps: Vec<String> = walk.report.problems.iter().map(line).collect();
    let (file, count) = (Walk::file(data_dir), walk.replayed.table.len());
    steps.push(format!("write {} and its copy with {count} records", file.display()));
    let mut losses: Vec<String> =
        walk.replayed.lost.iter().map(|(_, what)| format!("schema records: {what}")).collect();
    let is_lost = walk.stored.contents.is_none() && !walk.stored.faults.is_empty();
    if is_lost || !walk.set_aside.is_empty() {
        losses.push(format!("schema records in {SCHEMA_DIR}/{RECORDS_FILE}: {LOST}"));
    }
    let generation = walk.stored.contents.as_ref().map_or(0, |contents| contents.generation);
    let faults = walk.stored.faults.iter().filter(|fault| fault.is_there);
    let damaged = faults.map(|fault| fault.file.to_string()).chain(walk.set_aside.iter().cloned());
    Ok(Some(SchemaRepair {
        data_dir: data_dir.to_path_buf(),
        damaged: damaged.collect(),
        contents: Contents { generation, table: walk.replayed.table, log_from: walk.log_end },
        steps,
        losses,
        set_aside: walk.set_aside,
    }))
}

impl SchemaRepair {
    /// Describes the steps, in order.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// Describes the lost records.
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Makes the repair. Returns the folder with the damaged files and a report.
    ///
    /// # Errors
    /// When the disk fails; it may be planned and done again.
    pub fn apply(&self, vfs: &dyn Vfs) -> Result<PathBuf> {
        let dir = self.data_dir.join(SCHEMA_DIR);
        let name = format!("{}-schema", vfs.now() / NANOS_PER_SECOND);
        let folder = create_new_dir(vfs, &self.data_dir.join(DAMAGED_DIR), &name)?;
        let aside = folder.join(SCHEMA_DIR);
        vfs.create_dir_all(&aside)?;
        vfs::write_atomic(vfs, &folder.join(REPORT_FILE), self.report().as_bytes())?;
        for name in &self.damaged {
            let path = dir.join(name);
            if vfs.exists(&path)? {
                vfs.hard_link(&path, &aside.join(name))?;
            }
        }
        for dir in [&aside, &folder] {
            vfs.sync_dir(dir)?;
        }
        write_contents(vfs, &dir, &self.contents)?;
        for name in self.set_aside.iter().filter(|name| !FILES.contains(&name.as_str())) {
            vfs.remove(&dir.join(name))?;
        }
        vfs.sync_dir(&dir)?;
        Ok(folder)
    }

    fn report(&self) -> String {
        let mut text = String::from("done, in this order:\n");
        self.steps.iter().for_each(|step| text += &format!("{step}\n"));
        text.push_str("\nlost:\n");
        self.losses.iter().for_each(|loss| text += &format!("{loss}\n"));
        text
    }
}
