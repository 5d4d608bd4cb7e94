//! Rot: one bit, sector or file of a store that was closed or killed in peace is no longer what was
//! written; then each answer is right, or says that something is missing.

use super::history::{DATA, History, Talk, open_at};
use super::model::{ExemplarKey, Model, SampleKey, Value};
use super::observe::{Observed, observe};
use super::tally::shape_of;
use ::model::Labels;
use rng::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use store::{Error, StoreConfig};
use vfs::SimVfs;
use vfs::sim::Rot;

/// Steps that make a store.
const STEPS: u64 = 60;
/// Pieces of rot that are tried on one store.
pub const ROT_PER_STORE: u64 = 100;

/// What became of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// They are as before.
    Equal,
    /// Something is missing, and the answer says so.
    Said,
    /// A query was refused with words.
    QueryRefused,
    /// The store did not open, with words.
    StartRefused,
    /// Something is missing of which nothing that is left could tell, see [`is_without_trace`].
    WithoutTrace,
    /// Something is missing and nobody says so.
    SilentlyMissing,
    /// Something is there that was not.
    SilentlyWrong,
    /// A panic.
    Panicked,
}

/// Counts of a campaign of rot.
#[derive(Clone, Debug, Default)]
pub struct RotTally {
    /// By outcome, and what kind of rot in what kind of file it was.
    pub outcomes: BTreeMap<(Outcome, String), u64>,
    /// Some of what must not be.
    pub examples: BTreeMap<(Outcome, String), String>,
    /// What was wrong before anything rotted.
    pub sound_failures: Vec<String>,
    /// Why starts were refused.
    pub refusals: BTreeMap<String, u64>,
}

/// What may rot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decay {
    /// A bit.
    Bits,
    /// Whatever [`Rot`] knows.
    Anything,
}

/// Lets a store be made, and rot in many ways, one at a time.
pub fn run(seed: u64, decay: Decay) -> RotTally {
    let mut history = History::new(seed, Talk::Silent);
    let mut tally = RotTally::default();
    if let Err(text) = history.grow(STEPS) {
        tally.sound_failures.push(text);
        return tally;
    }
    let disk = history.disk.kill();
    disk.set_now(history.now);
    // What was not waited for is gone with the process: what is there is what a start finds.
    let sound = open_at(&disk.kill(), Path::new(DATA), history.config());
    let before = match sound.and_then(|store| observe(&store)) {
        Ok(sound) if sound.is_said => {
            tally.sound_failures.push("a sound store says that something is missing".into());
            return tally;
        }
        Ok(sound) => Observed { is_cut: false, ..sound },
        Err(error) => {
            tally.sound_failures.push(error.to_string());
            return tally;
        }
    };
    let mut dice = Random(!seed);
    let files: Vec<_> = disk.files().into_iter().filter(|(_, size)| 0 < *size).collect();
    let own = |path: &Path| !path.starts_with(format!("{DATA}/snapshots"));
    let files: Vec<_> = files.into_iter().filter(|(path, _)| own(path)).collect();
    for _ in 0..ROT_PER_STORE {
        let mut rot = Rot::draw(&mut dice, &files);
        while decay == Decay::Bits && !matches!(rot, Rot::Flip { .. }) {
            rot = Rot::draw(&mut dice, &files);
        }
        let fork = disk.kill();
        fork.rot(&rot).expect("the file is there");
        let Model { sent, series, traces, descriptions, .. } = &history.model;
        let known = Known { before: &before, sent, series, traces, descriptions };
        let tried = catch_unwind(AssertUnwindSafe(|| try_one(&fork, history.config(), known)));
        let (mut outcome, text) = tried.unwrap_or((Outcome::Panicked, String::new()));
        if outcome == Outcome::SilentlyMissing && is_without_trace(&disk, &rot) {
            outcome = Outcome::WithoutTrace;
        }
        tally.count(seed, outcome, &rot, text);
    }
    tally
}

fn try_one(disk: &SimVfs, config: &StoreConfig, known: Known<'_>) -> (Outcome, String) {
    let store = match open_at(disk, Path::new(DATA), config) {
        Ok(store) => store,
        Err(error) => return (Outcome::StartRefused, error.to_string()),
    };
    // The second time, too: what was met may be hidden by now.
    let first = judge(observe(&store), known);
    let second = judge(observe(&store), known);
    first.max(second)
}

/// Whether nobody could notice the rot: a file is gone that nothing names, or the log ends between two
/// records of its last group, as it does when a machine dies before the second is written.
fn is_without_trace(disk: &SimVfs, rot: &Rot) -> bool {
    let fork = disk.kill();
    fork.rot(rot).expect("the file is there");
    match rot {
        Rot::Drop { path } => *path == Path::new(DATA).join("exemplars"),
        Rot::Cut { path, .. } => {
            let wal = Path::new(DATA).join("wal");
            let looked = wal::check(&fork, &wal, &mut |_| Ok(()));
            path.starts_with(&wal) && looked.is_ok_and(|found| found.cut_size == 0)
        }
        _ => false,
    }
}

/// What answers are compared with.
#[derive(Clone, Copy)]
struct Known<'a> {
    /// The answers before.
    before: &'a Observed,
    /// All samples that were ever sent.
    sent: &'a BTreeSet<(SampleKey, Value)>,
    /// All series that were ever sent.
    series: &'a BTreeSet<Labels>,
    /// All exemplars that were ever sent.
    traces: &'a BTreeSet<ExemplarKey>,
    /// All descriptions that were ever sent.
    descriptions: &'a BTreeSet<(String, String)>,
}

fn judge(observed: Result<Observed, Error>, known: Known<'_>) -> (Outcome, String) {
    let before = known.before;
    let observed = match observed {
        Ok(found) => Observed { is_said: found.is_said || found.is_cut, is_cut: false, ..found },
        Err(error) => return (Outcome::QueryRefused, error.to_string()),
    };
    if let Some(nonsense) = observed.nonsense {
        return (Outcome::SilentlyWrong, nonsense);
    }
    let is_equal = |one: &Observed| Observed { is_said: false, ..one.clone() } == *before;
    if is_equal(&observed) {
        return (Outcome::Equal, String::new());
    }
    if let Some(text) = wrong(&observed, known) {
        return (Outcome::SilentlyWrong, text);
    }
    let others =
        before.samples.iter().filter(|(key, value)| observed.samples.get(*key) != Some(value));
    let text = format!("{} of {} samples are missing or old", others.count(), before.samples.len());
    match observed.is_said {
        true => (Outcome::Said, text),
        false => (Outcome::SilentlyMissing, text),
    }
}

/// Something that was never sent. An older value of an instant is no such thing: a newer one is
/// missing, or the deletion.
fn wrong(observed: &Observed, known: Known<'_>) -> Option<String> {
    let before = known.before;
    let is_sent = |key: &SampleKey, value: &Value| known.sent.contains(&(key.clone(), *value));
    let sample = observed.samples.iter().find(|(key, value)| !is_sent(key, value));
    if let Some(sample) = sample {
        return Some(format!("sample {sample:?}"));
    }
    // A book that is lost has lost its deletions, too, and the log may still have what was deleted.
    let exemplar = observed.exemplars.keys().find(|key| !known.traces.contains(*key));
    if let Some(exemplar) = exemplar {
        return Some(format!("exemplar {exemplar:?}"));
    }
    let is_sent =
        |key: &String, text: &String| known.descriptions.contains(&(key.clone(), text.clone()));
    if let Some(text) = observed.metadata.iter().find(|(key, text)| !is_sent(key, text)) {
        return Some(format!("metadata {text:?}"));
    }
    // Where it is lost which series are live, all that there are may be listed.
    let is_known = |labels: &&Labels| match observed.is_said {
        true => known.series.contains(*labels),
        false => before.series.contains(labels),
    };
    let series = observed.series.iter().find(|labels| !is_known(labels));
    series.map(|labels| format!("series {labels}"))
}

/// What happened to what kind of file: paths with numbers and months left out.
fn kind_of(rot: &Rot) -> String {
    let kind = |path: &Path| shape_of(&path.strip_prefix(DATA).unwrap_or(path).to_string_lossy());
    let file = kind(rot.path());
    match rot {
        Rot::Flip { .. } => format!("a bit of {file}"),
        Rot::Cut { .. } => format!("the end of {file}"),
        Rot::Zero { .. } => format!("a sector of {file}"),
        Rot::Drop { .. } => format!("all of {file}"),
        Rot::Swap { other, .. } => format!("{file} and {}, swapped", kind(other)),
    }
}

impl RotTally {
    fn count(&mut self, seed: u64, outcome: Outcome, rot: &Rot, text: String) {
        let key = (outcome, kind_of(rot));
        *self.outcomes.entry(key.clone()).or_default() += 1;
        if outcome == Outcome::StartRefused {
            *self.refusals.entry(shape_of(&text)).or_default() += 1;
        } else if Outcome::SilentlyMissing <= outcome {
            self.examples.entry(key).or_insert_with(|| format!("seed {seed}, {rot:?}: {text}"));
        }
    }

    /// Takes over the counts of another.
    pub fn add(&mut self, other: RotTally) {
        for (key, count) in other.outcomes {
            *self.outcomes.entry(key).or_default() += count;
        }
        self.sound_failures.extend(other.sound_failures);
        for (key, count) in other.refusals {
            *self.refusals.entry(key).or_default() += count;
        }
        for (key, text) in other.examples {
            self.examples.entry(key).or_insert(text);
        }
    }

    /// Pieces of rot with that outcome.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes.iter().filter(|((one, _), _)| *one == outcome).map(|(_, count)| count).sum()
    }

    /// Pieces of rot with an outcome that must not be.
    pub fn silent(&self) -> u64 {
        let bad = [Outcome::SilentlyMissing, Outcome::SilentlyWrong, Outcome::Panicked];
        bad.iter().map(|outcome| self.of(*outcome)).sum()
    }

    /// Pieces of rot tried.
    pub fn total(&self) -> u64 {
        self.outcomes.values().sum()
    }
}

impl fmt::Display for RotTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} pieces of rot", self.total())?;
        for ((outcome, kind), count) in &self.outcomes {
            writeln!(f, "  {outcome:?} {count:>8}: {kind}")?;
        }
        for text in &self.sound_failures {
            writeln!(f, "before anything rotted: {text}")?;
        }
        for (text, count) in &self.refusals {
            writeln!(f, "  start refused {count:>8}: {text}")?;
        }
        for ((outcome, kind), text) in &self.examples {
            writeln!(f, "{outcome:?}, {kind}: {text}")?;
        }
        Ok(())
    }
}
