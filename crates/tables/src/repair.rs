//! Makes damaged tables ones that open and verify clean, with every table and every statement that is
//! whole. First it says what it would do; nothing is deleted: what is damaged is kept in
//! `DATA/damaged/TIME-tables/`.
//!
//! ```text
//! plan    manifest, or what the files say ─► tables that can be read ─► statements of the log that they
//!         do not show and that can be taken, whichever are missing in between
//! apply   REPORT, damaged files ─► a new file for each table, synced ─► manifest, which shows all that
//!         the log has, so that nobody reads it again ─► damaged files go
//! ```
//!
//! Kill it anywhere and run it again: until the manifest is replaced nothing names what it wrote, and
//! where there is no manifest each file says itself which statements it shows. The log is not touched,
//! and read before anybody mends it: what is left of its records counts as taken.

use crate::error::{Error, Result};
use crate::file;
use crate::manifest::{
    MANIFEST_COPY_NAME, MANIFEST_NAME, Manifest, file_name, file_number, is_manifest,
};
use crate::pieces::Pieces;
use crate::record::{self, Effect};
use crate::salvage::{SalvagedTable, salvage};
use crate::set::TableSet;
use crate::table::Table;
use crate::tables::{TABLES_DIR, find_manifest};
use crate::verify::verify;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vfs::{Vfs, create_new_dir};
use wal::Found;
use wal::kinds::KIND_TABLES;

/// Where damaged files go, in a data directory.
const DAMAGED_DIR: &str = "damaged";
/// The file beside them that says what was done.
const REPORT_FILE: &str = "REPORT";
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// What a repair would do.
pub struct TablesRepair {
    dir: PathBuf,
    data_dir: PathBuf,
    /// What will be there.
    set: TableSet,
    next_table: u64,
    log_from: u64,
    next_file: u64,
    /// What is damaged, and what becomes of it, in words.
    steps: Vec<String>,
    /// What is lost, in words.
    losses: Vec<String>,
    /// Damaged files.
    damaged: Vec<String>,
}

/// Plans the repair of the tables of a data directory that the caller has locked, and whose log is in
/// `log_dir`; none if nothing is damaged. Changes nothing.
///
/// # Errors
/// When a folder cannot be listed, or a newer program wrote a file or a record of the log.
pub fn plan(vfs: &dyn Vfs, data_dir: &Path, log_dir: &Path) -> Result<Option<TablesRepair>> {
    if verify(vfs, data_dir, log_dir)?.is_none_or(|report| report.problems.is_empty()) {
        return Ok(None);
    }
    let mut plan = TablesRepair {
        dir: data_dir.join(TABLES_DIR),
        data_dir: data_dir.to_path_buf(),
        set: TableSet::default(),
        next_table: 0,
        log_from: 0,
        next_file: 0,
        steps: Vec::new(),
        losses: Vec::new(),
        damaged: Vec::new(),
    };
    let names = if vfs.exists(&plan.dir)? { vfs.list(&plan.dir)? } else { Vec::new() };
    plan.next_file = names.iter().filter_map(|name| file_number(name)).max().map_or(0, |n| n + 1);
    let pieces = match find_manifest(vfs, &plan.dir) {
        Ok((manifest, fault, _)) => {
            if let Some(error) = fault {
                plan.steps.push(format!("{error}: written anew of the other copy"));
                plan.damaged.extend([MANIFEST_NAME, MANIFEST_COPY_NAME].map(str::to_owned));
            }
            plan.take_named(vfs, &manifest)?
        }
        Err(error @ Error::Newer { .. }) => return Err(error),
        Err(error) => {
            let in_log = created_in_log(vfs, log_dir)?;
            plan.take_found(vfs, &names, &error, &in_log)?
        }
    };
    plan.take_log(vfs, log_dir, pieces)?;
    let manifest = plan.dir.join(MANIFEST_NAME);
    let count = plan.set.tables.len();
    plan.steps.push(format!("write {} and files of {count} tables", manifest.display()));
    Ok(Some(plan))
}

/// The tables that the log has from their creation on.
fn created_in_log(vfs: &dyn Vfs, log_dir: &Path) -> Result<BTreeSet<u64>> {
    let mut created = BTreeSet::new();
    wal::inspect(vfs, log_dir, &mut |found| {
        if let Found::Record(record) = found
            && record.kind == KIND_TABLES
            && let Ok((_, effects)) = record::decode(record.payload)
        {
            let of_creation = |effect: &Effect<'_>| match effect {
                Effect::Create { id, .. } => Some(*id),
                _ => None,
            };
            created.extend(effects.iter().filter_map(of_creation));
        }
    })?;
    Ok(created)
}

impl TablesRepair {
    /// What would be done, in words, in order.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// What is lost with the damage, in words.
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    fn note_damaged(&mut self, name: &str, error: Error) {
        let (path, what) = error.into_finding(self.dir.join(name));
        self.steps.push(format!("move aside {}: {what}", path.display()));
        self.damaged.push(name.to_owned());
    }

    /// The rows of a damaged file that are whole.
    fn salvage(&self, vfs: &dyn Vfs, name: &str, number: u64) -> Option<SalvagedTable> {
        let path = self.dir.join(name);
        let bytes = vfs.map(&path).ok()?;
        salvage(&path, &bytes, number)
    }

    fn note_salvaged(&mut self, name: &str, salvaged: &SalvagedTable) {
        let SalvagedTable { table, lost_rows, .. } = salvaged;
        if 0 < *lost_rows {
            self.losses.push(format!(
                "{lost_rows} rows of table {:?}, which were in damaged blocks of {name}; {} are whole",
                table.name(),
                table.row_count()
            ));
        }
    }

    /// Takes the tables that a manifest names.
    fn take_named(&mut self, vfs: &dyn Vfs, manifest: &Manifest) -> Result<Pieces> {
        self.log_from = manifest.log_from;
        self.next_file = self.next_file.max(manifest.next_file);
        let mut pieces = Pieces::of_checkpoint(manifest.seq, manifest.next_table);
        for info in &manifest.tables {
            match file::read(vfs, &self.dir, info) {
                // Its file may be older: it has not changed since.
                Ok(table) => pieces.add(manifest.seq, table),
                Err(error @ Error::Newer { .. }) => return Err(error),
                Err(error) => {
                    let name = file_name(info.file);
                    match self
                        .salvage(vfs, &name, info.file)
                        .filter(|one| one.table.id() == info.table)
                    {
                        Some(salvaged) => {
                            self.note_salvaged(&name, &salvaged);
                            pieces.add_incomplete(manifest.seq, salvaged.table);
                        }
                        None => {
                            let what = format!("table number {}, which was in {name}", info.table);
                            self.losses.push(what);
                        }
                    }
                    self.note_damaged(&name, error);
                }
            }
        }
        Ok(pieces)
    }

    /// Takes the newest file of each table, where no manifest says which count.
    fn take_found(
        &mut self,
        vfs: &dyn Vfs,
        names: &[String],
        lost: &Error,
        in_log: &BTreeSet<u64>,
    ) -> Result<Pieces> {
        self.steps.push(format!("{lost}: made anew of the files"));
        self.losses.push("which tables there were: dropped ones may be there again".to_owned());
        self.damaged.extend(names.iter().filter(|name| is_manifest(name)).cloned());
        let mut newest: BTreeMap<u64, (u64, Table, bool)> = BTreeMap::new();
        for (name, number) in names.iter().filter_map(|name| Some((name, file_number(name)?))) {
            let path = self.dir.join(name);
            let read = vfs.map(&path).map_err(Error::from);
            let read = read.and_then(|bytes| file::decode_unnamed(&path, &bytes, number));
            match read {
                // Names are in the order of numbers, and the newest file has the greatest.
                Ok((seq, table)) => {
                    newest.insert(table.id(), (seq, table, false));
                }
                Err(error @ Error::Newer { .. }) => return Err(error),
                Err(error) => {
                    // A checkpoint that was cut short leaves such files: an older one that is whole, or
                    // the log, has all of it.
                    let is_only = |one: &SalvagedTable| {
                        let id = one.table.id();
                        !newest.contains_key(&id) && !in_log.contains(&id)
                    };
                    match self.salvage(vfs, name, number).filter(is_only) {
                        Some(salvaged) => {
                            self.note_salvaged(name, &salvaged);
                            let SalvagedTable { seq, table, .. } = salvaged;
                            newest.insert(table.id(), (seq, table, true));
                        }
                        None => {
                            let what =
                                "or what it was before, unless nobody had written it to its end";
                            self.losses.push(format!("the table in {name}, {what}"));
                        }
                    }
                    self.note_damaged(name, error);
                }
            }
        }
        let mut pieces = Pieces::default();
        for (seq, table, lacks_rows) in newest.into_values() {
            match lacks_rows {
                true => pieces.add_incomplete(seq, table),
                false => pieces.add(seq, table),
            }
        }
        Ok(pieces)
    }

    /// Takes what the log has of statements behind the files.
    fn take_log(&mut self, vfs: &dyn Vfs, log_dir: &Path, mut pieces: Pieces) -> Result<()> {
        let (from, mut end, mut taken) = (self.log_from, self.log_from, Ok(()));
        wal::inspect(vfs, log_dir, &mut |found| {
            if let Found::Record(record) = found
                && record.kind == KIND_TABLES
                && from <= record.segment
                && taken.is_ok()
            {
                end = record.segment + 1;
                taken = pieces.take(log_dir, &record);
            }
        })?;
        taken?;
        // Those that cannot be read do not need to be, then.
        self.log_from = end;
        let joined = pieces.join();
        (self.set, self.next_table) = (joined.set, joined.next_table);
        self.losses.extend(joined.losses);
        let left_out = |what| format!("leave out, as its tables are dropped later on: {what}");
        self.steps.extend(joined.moot.into_iter().map(left_out));
        Ok(())
    }

    /// Does it. Returns the folder with what was damaged and a report.
    ///
    /// # Errors
    /// When the disk fails; it may be planned and done again.
    pub fn apply(&self, vfs: &dyn Vfs) -> Result<PathBuf> {
        vfs.create_dir_all(&self.dir)?;
        let name = format!("{}-tables", vfs.now() / NANOS_PER_SECOND);
        let folder = create_new_dir(vfs, &self.data_dir.join(DAMAGED_DIR), &name)?;
        let aside = folder.join(TABLES_DIR);
        vfs.create_dir_all(&aside)?;
        vfs::write_atomic(vfs, &folder.join(REPORT_FILE), self.report().as_bytes())?;
        for name in &self.damaged {
            let path = self.dir.join(name);
            if vfs.exists(&path)? {
                vfs.hard_link(&path, &aside.join(name))?;
            }
        }
        for dir in [&aside, &folder] {
            vfs.sync_dir(dir)?;
        }
        self.write(vfs)?;
        for name in self.damaged.iter().filter(|name| !is_manifest(name)) {
            let path = self.dir.join(name);
            if vfs.exists(&path)? {
                vfs.remove(&path)?;
            }
        }
        vfs.sync_dir(&self.dir)?;
        Ok(folder)
    }

    /// Writes all tables anew, and the manifest that names them.
    fn write(&self, vfs: &dyn Vfs) -> Result<()> {
        let set = &self.set;
        let mut next_file = self.next_file;
        let mut tables = Vec::new();
        for (_, table) in set.tables.iter() {
            tables.push(file::write(vfs, &self.dir, next_file, set.seq, table)?);
            next_file += 1;
        }
        vfs.sync_dir(&self.dir)?;
        let (log_from, next_table) = (self.log_from, self.next_table);
        let manifest = Manifest { seq: set.seq, log_from, next_table, next_file, tables };
        manifest.write(vfs, &self.dir)
    }

    fn report(&self) -> String {
        let mut text = String::from("done, in this order:\n");
        self.steps.iter().for_each(|step| text += &format!("{step}\n"));
        text.push_str("\nlost:\n");
        self.losses.iter().for_each(|loss| text += &format!("{loss}\n"));
        text
    }
}
