//! Which sections of a segment are as they were written: each is checked when it is first touched.
//!
//! ```text
//! unknown ──first touch: CRC of all its bytes──┬─► good: one load and one test from then on
//!                                              └─► bad: every touch is an error
//! any   ──the disk gave no bytes for a page──────► bad, all of them
//! ```
//!
//! A section counts as bad until the file is opened anew: what once read wrong may read right the
//! next time, and nobody could tell which answers came of which.

use super::Segment;
use crate::error::{Error, Result};
use crate::format::{Checks, SECTION_COUNT, SECTIONS, Section};
use codec::Crc32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes that are checked before those of a large map are given back to the system.
const RELEASE_SIZE: usize = 16 << 20;

/// A bit for each section.
const ALL: u32 = (1 << SECTION_COUNT) - 1;

/// What is known of a segment's sections.
pub(super) struct Checked {
    /// Those that were found right.
    good: AtomicU32,
    /// Those that were found wrong; they leave `good`.
    bad: AtomicU32,
    /// Held while a section is checked, so that this is done once.
    checking: Mutex<()>,
}

impl Checked {
    /// Of a segment that was just opened.
    pub(super) fn new(checks: Checks) -> Checked {
        let good = if checks == Checks::Skipped { ALL } else { 0 };
        Checked { good: AtomicU32::new(good), bad: AtomicU32::new(0), checking: Mutex::new(()) }
    }

    fn note(&self, section: Section, is_good: bool) {
        let bit = 1 << section as u32;
        if is_good && self.bad.load(Ordering::Relaxed) & bit == 0 {
            self.good.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.bad.fetch_or(bit, Ordering::Relaxed);
            self.good.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

impl Segment {
    /// A section's bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when they are not those that were written.
    #[inline]
    pub(super) fn section(&self, section: Section) -> Result<&[u8]> {
        if self.checked.good.load(Ordering::Relaxed) >> section as u32 & 1 == 0 {
            self.check_once(section)?;
        }
        Ok(&self.bytes[self.footer.sections[section as usize].range.clone()])
    }

    #[cold]
    fn check_once(&self, section: Section) -> Result<()> {
        let _one = self.checked.checking.lock().unwrap_or_else(PoisonError::into_inner);
        let bit = 1 << section as u32;
        if self.checked.bad.load(Ordering::Relaxed) & bit != 0 {
            return Err(self.rotten(section));
        }
        if self.checked.good.load(Ordering::Relaxed) & bit != 0 {
            return Ok(());
        }
        self.check(section)
    }

    /// Reads all of a section, whatever is known of it.
    fn check(&self, section: Section) -> Result<()> {
        let place = &self.footer.sections[section as usize];
        let before = self.bytes.faults();
        let mut crc = Crc32::default();
        for chunk in self.bytes[place.range.clone()].chunks(RELEASE_SIZE) {
            crc.update(chunk);
            if chunk.len() == RELEASE_SIZE {
                self.bytes.release();
            }
        }
        let is_good = crc.finish() == place.crc && self.bytes.faults() == before;
        self.checked.note(section, is_good);
        if is_good { Ok(()) } else { Err(self.rotten(section)) }
    }

    fn rotten(&self, section: Section) -> Error {
        let offset = self.footer.sections[section as usize].range.start as u64;
        Error::Corrupt { file: self.name.clone(), offset, what: what_of(section) }
    }

    /// Checks what a search and all that is asked of its matches may touch: everything but the
    /// table that leads from labels to ids. After the first time it costs a load.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the first section that is rotten.
    pub(crate) fn check_searchable(&self) -> Result<()> {
        if self.is_known_searchable() {
            return Ok(());
        }
        let searched = SECTIONS.iter().filter(|section| **section != Section::Hashes);
        searched.copied().try_for_each(|section| self.section(section).map(|_| ()))
    }

    /// Whether [`Segment::check_searchable`] has nothing to read.
    pub(crate) fn is_known_searchable(&self) -> bool {
        const SEARCHED: u32 = ALL & !(1 << Section::Hashes as u32);
        self.checked.good.load(Ordering::Relaxed) & SEARCHED == SEARCHED
    }

    /// Checks every section again, whatever is known of it: before its content is copied under a
    /// fresh checksum, and by who looks for rot.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the section that is rotten.
    pub fn verify_sections(&self) -> Result<()> {
        SECTIONS.into_iter().try_for_each(|section| self.verify_section(section as usize))
    }

    /// How many sections [`Segment::verify_section`] can be asked about.
    pub const SECTIONS: usize = SECTION_COUNT;

    /// Checks one section, by its place in the file, again.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the section that is rotten.
    pub fn verify_section(&self, idx: usize) -> Result<()> {
        let Some(section) = SECTIONS.get(idx) else { return Ok(()) };
        let _one = self.checked.checking.lock().unwrap_or_else(PoisonError::into_inner);
        self.check(*section)
    }

    /// Bytes of one section, by its place in the file.
    pub fn section_size(&self, idx: usize) -> u64 {
        self.footer.sections.get(idx).map_or(0, |place| place.range.len() as u64)
    }

    /// Whether a section is known to be rotten.
    pub fn is_damaged(&self) -> bool {
        self.checked.bad.load(Ordering::Relaxed) != 0
    }

    /// Whether the header, on which nothing depends, is as it was written.
    pub fn has_sound_header(&self) -> bool {
        self.footer.has_sound_header
    }

    /// What was read, unless the disk did not give some of it: then all of the segment is rotten.
    #[inline]
    pub(crate) fn settle<T>(&self, result: Result<T>) -> Result<T> {
        if self.bytes.has_faulted() {
            return self.give_up();
        }
        result
    }

    #[cold]
    fn give_up<T>(&self) -> Result<T> {
        self.checked.bad.store(ALL, Ordering::Relaxed);
        self.checked.good.store(0, Ordering::Relaxed);
        let what = "bytes that the disk gives";
        Err(Error::Corrupt { file: self.name.clone(), offset: 0, what })
    }
}

fn what_of(section: Section) -> &'static str {
    match section {
        Section::Labels => "checksum of the section of labels",
        Section::Strings => "checksum of the section of strings",
        Section::Postings => "checksum of the section of postings",
        Section::Groups => "checksum of the section of groups",
        Section::Lists => "checksum of the section of lists",
        Section::Blocks => "checksum of the section of blocks",
        Section::EntityBlocks => "checksum of the section of entities",
        Section::Columns => "checksum of the section of columns",
        Section::Planes => "checksum of the section of planes",
        Section::Hashes => "checksum of the section of hashes",
    }
}
