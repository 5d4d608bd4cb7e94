//! What is missing from an answer, collected while it is made.
//!
//! ```text
//! a reader meets rot ──► Watch::leave_out ──► the list of damage
//!                             ├─ somebody collects: noted in Missing, the reader goes on without it
//!                             └─ nobody does: the error is the answer
//! ```
//!
//! So an answer is whole, or it comes with a list of what is not in it, or it is an error: who asks
//! without [`crate::Store::noting`] never gets a part of the truth.

use crate::base::damage::{Damage, DamageList, DamagePlace, joined};
use crate::base::file_names::INDEX_DIR;
use crate::base::ground::Ground;
use crate::base::locks::lock;
use crate::partition::Partition;
use crate::read::elsewhere::Taken;
use crate::{Error, Result};
use index::Segment;
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
    /// What other databases did not give, and why, by their names.
    away: Mutex<Vec<(String, String)>>,
    /// What they left out of what they gave.
    lacks: Mutex<Vec<String>>,
    /// What they gave.
    taken: Taken,
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

    /// Adds that another database did not give what it has.
    pub(crate) fn note_away(&self, name: &str, what: String) {
        let mut away = lock(&self.away);
        if !away.iter().any(|(known, _)| known == name) {
            away.push((name.to_string(), what));
        }
        self.is_any.store(true, Ordering::Release);
    }

    /// Adds that another database left something out of what it gave.
    pub(crate) fn note_lack(&self, what: String) {
        let mut lacks = lock(&self.lacks);
        if lacks.len() < MISSING_MAX && !lacks.contains(&what) {
            lacks.push(what);
        }
        self.is_any.store(true, Ordering::Release);
    }

    /// Whether another database has failed this answer already.
    pub(crate) fn is_away(&self, name: &str) -> bool {
        !self.is_empty() && lock(&self.away).iter().any(|(known, _)| known == name)
    }

    /// What other databases have given for this answer.
    pub(crate) fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Whether the answer is whole.
    pub fn is_empty(&self) -> bool {
        !self.is_any.load(Ordering::Acquire)
    }

    /// What is missing, a sentence for each file and for each other database.
    pub fn sentences(&self) -> Vec<String> {
        let mut all: Vec<String> = lock(&self.list).iter().map(Damage::warning).collect();
        let missing = |what: &String| format!("part of the answer is missing: {what}");
        all.extend(lock(&self.away).iter().map(|(_, what)| missing(what)));
        all.extend(lock(&self.lacks).iter().map(missing));
        all
    }

    /// What is missing.
    pub fn list(&self) -> Vec<Damage> {
        lock(&self.list).clone()
    }
}

/// What a reader does about rot.
#[derive(Clone)]
pub(crate) struct Watch {
    damage_list: Arc<DamageList>,
    missing: Option<Arc<Missing>>,
    vfs: Arc<dyn Vfs>,
}

impl Watch {
    /// Who collects what is missing, if anybody does.
    pub fn new(ground: &Ground, missing: Option<&Arc<Missing>>) -> Watch {
        let (damage_list, vfs) = (Arc::clone(&ground.damage), Arc::clone(&ground.vfs));
        Watch { damage_list, missing: missing.cloned(), vfs }
    }

    /// Where damage is noted.
    pub fn damage_list(&self) -> &DamageList {
        &self.damage_list
    }

    /// Tells whoever collects of what nobody reads, and so nobody meets.
    ///
    /// # Errors
    /// [`Error::Damaged`] when nobody collects.
    pub fn note_lost(&self, lost: &[Damage]) -> Result<()> {
        match (lost.first(), &self.missing) {
            (Some(lost), None) => {
                let what = format!("{} is damaged: {}", lost.file, lost.what);
                Err(Error::Damaged { what })
            }
            _ => {
                lost.iter().for_each(|lost| self.note_missing(lost));
                Ok(())
            }
        }
    }

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

    /// Notes damage in the list, and for whoever collects; whether somebody does.
    fn note(&self, damage: Damage) -> bool {
        self.note_missing(&damage);
        self.damage_list.note(damage, self.vfs.now());
        self.missing.is_some()
    }

    /// The error for who read of an index what a search had found whole. If the rot came since, a
    /// second search goes without it.
    pub fn found_rot(&self, partition: &Partition, error: index::Error) -> Error {
        match &error {
            index::Error::Corrupt { file, .. } if self.missing.is_some() => {
                let damage = self.segment_damage(partition, file, &error);
                self.damage_list.note(damage, self.vfs.now());
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
        let file = self.damage_list.relative(&partition.dir.join(INDEX_DIR).join(segment));
        let what = match error {
            index::Error::Corrupt { offset, what, .. } => format!("{what} at byte {offset}"),
            other => other.to_string(),
        };
        Damage::of_partition(partition.period, DamagePlace::Index, file, what)
    }

    fn note_missing(&self, damage: &Damage) {
        if let Some(missing) = &self.missing {
            missing.note(damage);
        }
    }
}
