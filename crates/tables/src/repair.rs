//! Makes damaged tables ones that open and verify clean, with every table and every statement that is
//! whole. First it says what it would do; nothing is deleted: what is damaged is kept in
//! `DATA/damaged/TIME-tables/`.
//!
//! ```text
//! plan    manifest, or what the files say ─► tables that can be read ─► statements of the log that can
//!         be taken, whichever are missing in between
//! apply   REPORT, damaged files ─► a new file for each table, synced ─► manifest, which shows all that
//!         the log has ─► damaged files go
//! ```
//!
//! Kill it anywhere and run it again: until the manifest is replaced nothing names what it wrote. The log
//! is not touched, and read before anybody mends it: what is left of its records counts as taken.

use crate::error::{Error, Result};
use crate::file;
use crate::manifest::{MANIFEST_NAME, Manifest, file_name, file_number};
use crate::record;
use crate::set::Origin;
use crate::table::Table;
use crate::tables::{Replayed, TABLES_DIR, find_manifest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{Vfs, create_new_dir};
use wal::kinds::KIND_TABLES;
use wal::{Found, RecordRef};

/// Where damaged files go, in a data directory.
const DAMAGED_DIR: &str = "damaged";
/// The file beside them that says what was done.
const REPORT_FILE: &str = "REPORT";
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// What a repair would do.
pub struct TablesRepair {
    dir: PathBuf,
    data_dir: PathBuf,
    state: Replayed,
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
/// When a folder cannot be listed, or a newer program wrote a file.
pub fn plan(vfs: &dyn Vfs, data_dir: &Path, log_dir: &Path) -> Result<Option<TablesRepair>> {
    let mut plan = TablesRepair {
        dir: data_dir.join(TABLES_DIR),
        data_dir: data_dir.to_path_buf(),
        state: Replayed::default(),
        log_from: 0,
        next_file: 0,
        steps: Vec::new(),
        losses: Vec::new(),
        damaged: Vec::new(),
    };
    let names = if vfs.exists(&plan.dir)? { vfs.list(&plan.dir)? } else { Vec::new() };
    plan.next_file = names.iter().filter_map(|name| file_number(name)).max().map_or(0, |n| n + 1);
    match find_manifest(vfs, &plan.dir) {
        Ok(manifest) => plan.take_named(vfs, &manifest)?,
        Err(error @ Error::Newer { .. }) => return Err(error),
        Err(error) => plan.take_found(vfs, &names, &error)?,
    }
    wal::inspect(vfs, log_dir, &mut |found| {
        if let Found::Record(record) = found
            && record.kind == KIND_TABLES
            && plan.log_from <= record.segment
        {
            plan.take_record(&record);
        }
    })?;
    if plan.steps.is_empty() && plan.losses.is_empty() {
        return Ok(None);
    }
    let manifest = plan.dir.join(MANIFEST_NAME);
    let count = plan.state.set.list().len();
    plan.steps.push(format!("write {} and files of {count} tables", manifest.display()));
    Ok(Some(plan))
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

    /// Takes the tables that a manifest names.
    fn take_named(&mut self, vfs: &dyn Vfs, manifest: &Manifest) -> Result<()> {
        self.log_from = manifest.log_from;
        self.next_file = self.next_file.max(manifest.next_file);
        self.state.next_table = manifest.next_table;
        self.state.set.seq = manifest.seq;
        for info in &manifest.tables {
            let read = file::read(vfs, &self.dir, info);
            match read.and_then(|table| self.state.put(&self.dir, Arc::new(table))) {
                Ok(()) => {}
                Err(error @ Error::Newer { .. }) => return Err(error),
                Err(error) => {
                    let name = file_name(info.file);
                    self.losses.push(format!("table number {}, which was in {name}", info.table));
                    self.note_damaged(&name, error);
                }
            }
        }
        Ok(())
    }

    /// Takes the newest file of each table, where no manifest says which count.
    fn take_found(&mut self, vfs: &dyn Vfs, names: &[String], lost: &Error) -> Result<()> {
        self.steps.push(format!("{lost}: made anew of the files"));
        self.losses.push("which tables there were: dropped ones may be there again".to_owned());
        if names.iter().any(|name| name == MANIFEST_NAME) {
            self.damaged.push(MANIFEST_NAME.to_owned());
        }
        let mut newest: BTreeMap<u64, Table> = BTreeMap::new();
        for (name, number) in names.iter().filter_map(|name| Some((name, file_number(name)?))) {
            let path = self.dir.join(name);
            let read = vfs.map(&path).map_err(Error::from);
            let read = read.and_then(|bytes| file::decode_unnamed(&path, &bytes, number));
            match read {
                // Names are in the order of numbers, and the newest file has the greatest.
                Ok((seq, table)) => {
                    self.state.set.seq = self.state.set.seq.max(seq);
                    newest.insert(table.id(), table);
                }
                Err(error) => {
                    self.losses.push(format!("the table in {name}, or what it was before"));
                    self.note_damaged(name, error);
                }
            }
        }
        for (id, table) in newest {
            self.state.next_table = self.state.next_table.max(id + 1);
            let name = table.name().to_owned();
            if self.state.put(&self.dir, Arc::new(table)).is_err() {
                self.losses.push(format!("table number {id}: another is called {name:?}, too"));
            }
        }
        Ok(())
    }

    /// Takes a statement of the log, if that can be: all of it, or nothing.
    fn take_record(&mut self, record: &RecordRef<'_>) {
        let at = format!("segment {} of the log, byte {}", record.segment, record.offset);
        let (seq, effects) = match record::decode(record.payload) {
            Ok(decoded) => decoded,
            Err(error) => return self.losses.push(format!("a statement ({at}): {error}")),
        };
        let last = self.state.set.seq;
        if seq <= last {
            return;
        }
        if last + 1 < seq {
            self.losses.push(format!("statements {} to {}, before {at}", last + 1, seq - 1));
        }
        let mut set = self.state.set.clone();
        let tables: Vec<u64> = effects.iter().map(record::Effect::table).collect();
        match effects.into_iter().try_for_each(|effect| set.apply(effect, Origin::Log)) {
            Ok(()) => self.state.set = set,
            Err(error) => self.losses.push(format!("statement {seq} ({at}): {error}")),
        }
        self.state.set.seq = seq;
        let end = tables.into_iter().max().map_or(0, |last| last.saturating_add(1));
        self.state.next_table = self.state.next_table.max(end);
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
        for name in self.damaged.iter().filter(|name| *name != MANIFEST_NAME) {
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
        let set = &self.state.set;
        let mut next_file = self.next_file;
        let mut tables = Vec::new();
        for (_, table) in set.tables.iter() {
            tables.push(file::write(vfs, &self.dir, next_file, set.seq, table)?);
            next_file += 1;
        }
        vfs.sync_dir(&self.dir)?;
        let (log_from, next_table) = (self.log_from, self.state.next_table);
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
