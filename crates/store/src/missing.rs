//! What is missing from an answer, collected while it is made.
//!
//! ```text
//! a reader meets rot ──► Watch::leave_out ──► the damage book
//!                             ├─ somebody collects: noted in Missing, the reader goes on without it
//!                             └─ nobody does: the error is the answer
//! ```
//!
//! So an answer is whole, or it comes with a list of what is not in it, or it is an error: who asks
//! without [`Store::noting`] never gets a part of the truth.

use crate::damage::{Damage, DamageBook, DamagePlace, joined};
use crate::exemplars::ExemplarSeries;
use crate::partition::{INDEX_DIR, Partition};
use crate::stats::{Cardinality, CardinalityRequest};
use crate::store::{Store, lock};
use crate::{Error, Result, SelectLimits, Selection};
use index::Segment;
use model::{Labels, Matcher, TimeRange};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use vfs::Vfs;

/// Files that one answer's list names at most.
const MISSING_MAX: usize = 16;

/// What one answer lacks. Filled by the threads that make it.
#[derive(Default)]
pub struct Missing {
    /// So that asking costs a load.
    is_any: AtomicBool,
    list: Mutex<Vec<Damage>>,
}

impl Missing {
    /// Nothing yet.
    pub fn new() -> Arc<Missing> {
        Arc::default()
    }

    /// Adds a damage; of one file the spans are joined.
    pub fn note(&self, damage: &Damage) {
        let mut list = lock(&self.list);
        let is_same = |one: &&mut Damage| one.file == damage.file && one.place == damage.place;
        if let Some(known) = list.iter_mut().find(is_same) {
            known.span = joined(&known.span, &damage.span);
        } else if list.len() < MISSING_MAX {
            list.push(damage.clone());
        }
        self.is_any.store(true, Ordering::Release);
    }

    /// Whether the answer is whole.
    pub fn is_empty(&self) -> bool {
        !self.is_any.load(Ordering::Acquire)
    }

    /// What is missing, a sentence for each file.
    pub fn sentences(&self) -> Vec<String> {
        lock(&self.list).iter().map(Damage::warning).collect()
    }

    /// What is missing.
    pub fn list(&self) -> Vec<Damage> {
        lock(&self.list).clone()
    }
}

/// What a reader does about rot.
#[derive(Clone)]
pub struct Watch {
    book: Arc<DamageBook>,
    missing: Option<Arc<Missing>>,
    vfs: Arc<dyn Vfs>,
}

impl Watch {
    /// Notes damage that `error` told of. `Ok` when the reader may go on without it.
    ///
    /// # Errors
    /// The error, when nobody collects what is missing.
    pub fn leave_out(&self, damage: Damage, error: Error) -> Result<()> {
        match self.note(damage) {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// The same of a rotten segment of a partition's index.
    ///
    /// # Errors
    /// As [`Watch::leave_out`].
    pub fn leave_out_segment(
        &self,
        partition: &Partition,
        segment: &Segment,
        error: index::Error,
    ) -> index::Result<()> {
        match self.note(self.segment_damage(partition, segment.name(), &error)) {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// Notes damage in the book, and for whoever collects; whether somebody does.
    fn note(&self, damage: Damage) -> bool {
        self.note_missing(&damage);
        self.book.note(damage, self.vfs.now());
        self.missing.is_some()
    }

    /// The error for who read of an index what a search had found whole. If the rot came since, a
    /// second search goes without it.
    pub fn found_rot(&self, partition: &Partition, error: index::Error) -> Error {
        match &error {
            index::Error::Corrupt { file, .. } if self.missing.is_some() => {
                let damage = self.segment_damage(partition, file, &error);
                self.book.note(damage, self.vfs.now());
                Error::SeriesDropped
            }
            _ => error.into(),
        }
    }

    /// The damage of a rotten segment of an index.
    pub fn segment_damage(
        &self,
        partition: &Partition,
        segment: &str,
        error: &index::Error,
    ) -> Damage {
        let file = self.relative(&partition.dir.join(INDEX_DIR).join(segment));
        let what = match error {
            index::Error::Corrupt { offset, what, .. } => format!("{what} at byte {offset}"),
            other => other.to_string(),
        };
        Damage::of_partition(partition.period, DamagePlace::Index, file, what)
    }

    /// A path as the book has it.
    pub fn relative(&self, path: &std::path::Path) -> String {
        self.book.relative(path)
    }

    fn note_missing(&self, damage: &Damage) {
        if let Some(missing) = &self.missing {
            missing.note(damage);
        }
    }
}

/// The store for who wants what there is and to be told what is missing. Its methods are those of
/// [`Store`].
#[derive(Clone, Copy)]
pub struct Noting<'a> {
    store: &'a Store,
    missing: &'a Arc<Missing>,
}

impl Store {
    /// The store for who takes answers that are not whole, as long as `missing` is told.
    pub fn noting<'a>(&'a self, missing: &'a Arc<Missing>) -> Noting<'a> {
        Noting { store: self, missing }
    }

    pub(crate) fn watch(&self, missing: Option<&Arc<Missing>>) -> Watch {
        Watch {
            book: Arc::clone(&self.damage),
            missing: missing.cloned(),
            vfs: Arc::clone(&self.vfs),
        }
    }

    /// Tells whoever collects which lost parts and partitions lie in a range: nobody reads them, so
    /// nobody meets them. The one place where they are told.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there are any and nobody collects.
    pub(crate) fn note_lost(&self, range: &TimeRange, watch: &Watch) -> Result<()> {
        for lost in self.lost_in(range) {
            if watch.missing.is_none() {
                let what = format!("{} is damaged: {}", lost.file, lost.what);
                return Err(Error::Damaged { what });
            }
            watch.note_missing(&lost);
        }
        Ok(())
    }
}

impl Noting<'_> {
    /// The store itself.
    pub(crate) fn store(&self) -> &Store {
        self.store
    }

    pub(crate) fn watch(&self) -> Watch {
        self.store.watch(Some(self.missing))
    }

    /// As [`Store::select`]; what reading the selection later leaves out is noted, too.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn select(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Selection> {
        self.store.select_watched(sets, range, limits, self.watch())
    }

    /// As [`Store::series`].
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn series(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<Labels>> {
        self.store.series_watched(sets, range, limits, &self.watch())
    }

    /// As [`Store::label_names`].
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn label_names(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        self.store.label_names_watched(sets, range, limits, &self.watch())
    }

    /// As [`Store::label_values`].
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn label_values(
        &self,
        name: &str,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        self.store.label_values_watched(name, sets, range, limits, &self.watch())
    }

    /// As [`Store::exemplars`]; a book that was lost is noted.
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn exemplars(
        &self,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<ExemplarSeries>> {
        let watch = self.watch();
        let is_book = |damage: &&Damage| damage.file == crate::exemplars::FILE_NAME;
        self.store.damage.list().iter().filter(is_book).for_each(|lost| watch.note_missing(lost));
        self.store.exemplars(sets, range, limits)
    }

    /// As [`Store::cardinality`].
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn cardinality(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        self.store.cardinality_watched(request, &self.watch())
    }

    /// As [`Store::unqueried`].
    ///
    /// # Errors
    /// As [`Store::select`].
    pub fn unqueried(&self, request: &CardinalityRequest) -> Result<Cardinality> {
        self.store.unqueried_watched(request, &self.watch())
    }
}
