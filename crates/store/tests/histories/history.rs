//! One history: a disk, the lives of the processes on it, and the model that knows what was said.

use super::model::{Fault, Model, SampleKey, Value};
use super::observe::{self, Kept, Observed, Violation, compare, observe};
use super::steps;
use super::tally::{Failure, Kind, Tally};
use crate::stores;
use ::model::Labels;
use rng::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Error, PartitionLength, Store, StoreConfig};
use vfs::sim::{Event, FaultPlan};
use vfs::{SimVfs, Vfs};

/// Nanoseconds.
pub const SECOND: i64 = 1_000_000_000;
/// Nanoseconds.
pub const DAY: i64 = 86_400 * SECOND;
/// 2020-01-30: histories cross into February, and go back to December.
const START: i64 = 18_291 * DAY;
/// Where the store is.
pub const DATA: &str = "/data";
/// Snapshots that there are at most.
pub const SNAPSHOTS_MAX: usize = 3;
/// Lives of a history.
pub const LIVES: u64 = 24;
/// Calls of a life, about: where drawn faults fall.
const CALLS_PER_LIFE: u64 = 250;
/// Most steps of a life.
const STEPS_MAX: u64 = 14;

/// Whether a history tells what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// Only what goes wrong.
    Silent,
    /// Every step.
    Aloud,
}

/// What may go wrong besides power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Whether processes are killed without power loss, and syncs fail.
    pub has_kills: bool,
    /// Whether clocks jump.
    pub has_jumps: bool,
    /// Whether calls fail, disks fill up.
    pub has_failures: bool,
    /// Whether there are snapshots.
    pub has_snapshots: bool,
}

impl Mix {
    /// Everything.
    pub const ALL: Mix =
        Mix { has_kills: true, has_jumps: true, has_failures: true, has_snapshots: true };

    fn draw(self, seed: u64, calls: u64) -> FaultPlan {
        let mut plan = FaultPlan::draw(seed, calls);
        plan.events.retain(|planned| match planned.event {
            Event::Jump(_) => self.has_jumps,
            Event::Delay(_) => true,
            _ => self.has_failures,
        });
        plan
    }
}

/// A snapshot that was made.
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// What was in the store.
    pub model: Model,
    /// Whether somebody tried to delete it.
    pub is_in_doubt: bool,
}

/// A history under way.
pub struct History {
    seed: u64,
    life: u64,
    /// Draws everything but the faults' own ways.
    pub dice: Random,
    /// The disk that the next process finds.
    pub disk: SimVfs,
    /// What may be found.
    pub model: Model,
    /// The time as it is, whatever the disk's clock says.
    pub now: i64,
    /// How much of the disk's elapsed time is in `now`.
    elapsed: u64,
    /// Different hosts.
    pub hosts: u64,
    /// Traces of exemplars given so far.
    pub traces: u64,
    /// Snapshots that must be there, or may.
    pub snapshots: Vec<Snapshot>,
    /// What was done and found.
    pub tally: Tally,
    config: StoreConfig,
    store: Option<Arc<Store>>,
    failure: Option<Failure>,
    talk: Talk,
    /// What may go wrong.
    pub mix: Mix,
}

/// Runs a history to its end or to the first thing that must not be.
pub fn run(seed: u64, lives: u64, mix: Mix, talk: Talk) -> Tally {
    let mut history = History { mix, ..History::new(seed, talk) };
    for life in 0..lives {
        history.life = life;
        let lived = catch_unwind(AssertUnwindSafe(|| history.live()));
        if let Err(panic) = lived {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            history.fail(Kind::Panic, text.unwrap_or_default());
        }
        if let Some(failure) = history.failure.take() {
            history.tally.fail(failure);
            break;
        }
    }
    // A store that panicked may panic again when it is dropped.
    drop(catch_unwind(AssertUnwindSafe(|| history.store.take())));
    history.tally
}

impl History {
    /// A history on an empty disk.
    pub fn new(seed: u64, talk: Talk) -> History {
        let mut dice = Random(seed);
        let disk = SimVfs::new(dice.next());
        disk.set_now(START);
        let config = StoreConfig {
            arena_words_max: 3 * store::inside::CHUNK_WORDS,
            // Not drawn: histories of one seed differ in nothing else.
            partition_length: Some(PartitionLength::ALL[(seed % 4) as usize]),
            retention_ns: [None, Some(70 * DAY)][dice.index(2)],
            retention_clock_wait_ns: StoreConfig::standard().retention_clock_wait_ns,
            ..stores::config()
        };
        History {
            seed,
            life: 0,
            hosts: 2 + dice.below(6),
            dice,
            disk,
            model: Model::default(),
            now: START,
            elapsed: 0,
            traces: 0,
            snapshots: Vec::new(),
            tally: Tally::default(),
            config,
            store: None,
            failure: None,
            talk,
            mix: Mix::ALL,
        }
    }

    /// Tells something if anybody listens.
    pub fn say(&self, text: impl FnOnce() -> String) {
        if self.talk == Talk::Aloud {
            println!("{:>6} {}", self.disk.operations(), text());
        }
    }

    /// Notes what must not be; the first is kept.
    pub fn fail(&mut self, kind: Kind, text: String) {
        let failure = Failure { seed: self.seed, life: self.life, kind, text };
        self.say(|| format!("FAILURE {failure}"));
        self.failure.get_or_insert(failure);
    }

    fn live(&mut self) {
        let plan = self.mix.draw(self.dice.next(), CALLS_PER_LIFE);
        self.say(|| format!("life {}: {plan}", self.life));
        if self.dice.below(3) == 0 {
            self.store = None;
        }
        self.disk.set_plan(&plan);
        if self.dice.below(3) != 0 {
            let reach = *self.dice.pick(&[5, 30, 100, 300]);
            let death = self.disk.operations() + self.dice.below(reach);
            self.disk.fail_after(death);
            self.say(|| format!("death at operation {death}"));
        }
        if let Some(store) = self.store.take().or_else(|| self.open_under_faults()) {
            self.take_steps(&store);
            self.end(store);
        } else {
            self.die();
        }
        if self.failure.is_none() {
            self.start_again();
        }
    }

    fn open_under_faults(&mut self) -> Option<Arc<Store>> {
        match self.open() {
            Ok(store) => Some(store),
            Err(error) => {
                self.tally.refused += 1;
                self.say(|| format!("the start is refused: {error}"));
                None
            }
        }
    }

    fn open(&self) -> Result<Arc<Store>, Error> {
        open_at(&self.disk, Path::new(DATA), &self.config)
    }

    fn take_steps(&mut self, store: &Store) {
        for _ in 0..1 + self.dice.below(STEPS_MAX) {
            let failed = steps::step(self, store).is_err();
            self.read_clock();
            let goes_on = !failed || self.dice.below(3) != 0;
            if self.failure.is_some() || !goes_on {
                return;
            }
        }
    }

    /// The end of a process that had a store open.
    fn end(&mut self, store: Arc<Store>) {
        if self.dice.below(5) == 0 {
            let closed = store.close();
            self.tally.step("close", closed.as_ref().err());
            self.say(|| format!("  close: {closed:?}"));
        }
        self.die();
        drop(store);
    }

    /// The process ends, or the machine.
    fn die(&mut self) {
        self.tally.points += 1 + self.disk.counts().events;
        let ended = self.dice.below(8);
        let (name, after) = match ended {
            0..=2 if self.mix.has_kills => ("kill", self.disk.kill()),
            3..=5 => ("power", self.disk.crash()),
            6 if self.mix.has_kills => ("kill, power", self.disk.kill().crash()),
            _ => ("power, power", self.disk.crash().crash()),
        };
        *self.tally.deaths.entry(name).or_default() += 1;
        self.say(|| format!("DEATH: {name}"));
        self.take_disk(after);
    }

    fn take_disk(&mut self, disk: SimVfs) {
        self.read_clock();
        self.disk = disk;
        self.elapsed = nanoseconds(&self.disk);
    }

    /// Starts that are interrupted, then one that must succeed.
    fn start_again(&mut self) {
        while self.dice.below(3) == 0 {
            self.disk.set_now(self.now);
            self.disk.set_plan(&self.mix.draw(self.dice.next(), 60));
            let death = self.disk.operations() + self.dice.below(40);
            self.disk.fail_after(death);
            self.say(|| format!("a start that dies at operation {death}"));
            let store = self.open_under_faults();
            self.die();
            drop(store);
        }
        self.disk.set_now(self.now);
        self.disk.give_room();
        if self.dice.below(4) == 0 {
            self.verify();
        }
        self.check();
        // Whatever the start did must be durable.
        if self.failure.is_none() && self.dice.below(3) == 0 {
            let after = self.disk.crash();
            self.tally.points += 1;
            *self.tally.deaths.entry("power after start").or_default() += 1;
            self.say(|| "DEATH: power, right after the start".to_string());
            self.store = None;
            self.take_disk(after);
            self.check();
        }
    }

    /// Opens the store without faults and compares all that it answers.
    fn check(&mut self) {
        self.store = None;
        let store = match self.open() {
            Ok(store) => store,
            Err(error) => return self.fail(Kind::Unopenable, error.to_string()),
        };
        self.tally.opened += 1;
        let observed = match observe(&store) {
            Ok(observed) => observed,
            Err(error) => return self.fail(Kind::Answer(Fault::Wrong), error.to_string()),
        };
        if observed.is_said {
            let text = format!("said to be missing, though nothing rotted: {:?}", store.damage());
            return self.fail(Kind::Answer(Fault::Wrong), text);
        }
        self.compare_now(&observed);
        let kept = self.kept();
        observe::resolve(&observed, &mut self.model, kept);
        if self.failure.is_none() {
            self.check_snapshots(&store);
        }
        self.store = Some(store);
    }

    /// Compares all that was answered.
    pub fn compare_now(&mut self, observed: &Observed) {
        self.tally.compared += 1;
        let violation = match observed.is_said {
            true => self.invented(observed),
            false => compare(observed, &self.model, self.kept()),
        };
        self.note_violation(violation);
    }

    /// A start that could not read a file goes on without it, and says so: what is found may be
    /// less, or older, but must have been sent.
    fn invented(&self, observed: &Observed) -> Option<Violation> {
        let is_sent =
            |(key, value): (&SampleKey, &Value)| self.model.sent.contains(&(key.clone(), *value));
        let (key, value) = observed.samples.iter().find(|sample| !is_sent(*sample))?;
        let text = format!("{key:?} was never {value:?}");
        Some(Violation { fault: Fault::Invented, text })
    }

    /// Compares the samples that were asked for.
    pub fn compare_part(&mut self, observed: &Observed, is_asked: &dyn Fn(&Labels, i64) -> bool) {
        self.tally.compared += 1;
        let kept = self.kept();
        if observed.is_said {
            let violation = self.invented(observed);
            return self.note_violation(violation);
        }
        if let Some(nonsense) = &observed.nonsense {
            return self.fail(Kind::Answer(Fault::Wrong), nonsense.clone());
        }
        let judged = self.model.samples.judge(&observed.samples, |(labels, time)| {
            *time < kept.oldest || !is_asked(labels, *time)
        });
        if let Some((fault, (labels, time), text)) = judged {
            self.fail(Kind::Answer(fault), format!("query: sample {labels} at {time}: {text}"));
        }
    }

    fn note_violation(&mut self, violation: Option<Violation>) {
        if let Some(Violation { fault, text }) = violation {
            self.fail(Kind::Answer(fault), text);
        }
    }

    fn verify(&mut self) {
        let fork = self.disk.kill();
        // A store that was never made holds nothing to verify.
        if !fork.exists(&Path::new(DATA).join("partitions")).unwrap_or(false) {
            return;
        }
        match store::verify(Arc::new(fork), Path::new(DATA), &mut |_| ()) {
            Ok(report) if report.problems.is_empty() => {}
            Ok(report) => self.fail(Kind::Unverified, format!("{:?}", report.problems)),
            Err(error) => self.fail(Kind::Unverified, error.to_string()),
        }
    }

    /// Remembers a snapshot and what is in it.
    pub fn note_snapshot(&mut self, name: String) {
        let mut model = self.model.clone();
        let oldest = self.kept().oldest;
        model.samples.doubt_deletion(|(_, time)| *time < oldest);
        model.exemplars.doubt_deletion(|(_, time, _)| *time < oldest);
        self.snapshots.push(Snapshot { name, model, is_in_doubt: false });
    }

    /// Snapshots are there, open and answer as the store did; on a fork of the disk, so that they
    /// stay as they are.
    fn check_snapshots(&mut self, store: &Store) {
        let names = match store.snapshots() {
            Ok(names) => names,
            Err(error) => return self.fail(Kind::Snapshot, error.to_string()),
        };
        let missing = |one: &Snapshot| !names.contains(&one.name);
        if let Some(lost) = self.snapshots.iter().find(|one| missing(one) && !one.is_in_doubt) {
            let text = format!("snapshot {} is gone", lost.name);
            return self.fail(Kind::Snapshot, text);
        }
        self.snapshots.retain(|one| names.contains(&one.name));
        for name in names {
            if self.dice.below(2) == 0 && self.failure.is_none() {
                self.check_snapshot(&name);
            }
        }
    }

    fn check_snapshot(&mut self, name: &str) {
        let fork = self.disk.kill();
        let dir: PathBuf = Path::new(DATA).join("snapshots").join(name);
        let opened = open_at(&fork, &dir, &self.config).and_then(|store| observe(&store));
        let observed = match opened {
            Ok(observed) => observed,
            Err(error) => return self.fail(Kind::Snapshot, format!("snapshot {name}: {error}")),
        };
        self.tally.compared += 1;
        // One whose creation was not acknowledged is compared with nothing.
        let Some(known) = self.snapshots.iter().find(|one| one.name == name) else { return };
        if let Some(Violation { fault, text }) = compare(&observed, &known.model, self.kept()) {
            self.fail(Kind::Snapshot, format!("{fault:?} in snapshot {name}: {text}"));
        }
    }

    fn kept(&self) -> Kept {
        let now = self.now.max(self.disk.now());
        Kept { oldest: self.config.retention_ns.map_or(i64::MIN, |kept| now - kept) }
    }

    /// Whether the disk's clock is not what it should be.
    pub fn is_clock_wrong(&self) -> bool {
        self.disk.now() != self.now
    }

    /// Lets time pass.
    pub fn pass(&mut self, nanoseconds: u64) {
        self.disk.advance(nanoseconds);
        self.read_clock();
    }

    /// Adds the time that calls took.
    fn read_clock(&mut self) {
        let elapsed = nanoseconds(&self.disk);
        self.now += (elapsed - self.elapsed) as i64;
        self.elapsed = elapsed;
    }

    /// Takes steps without faults, then ends in peace or not: for those who look at what is there.
    ///
    /// # Errors
    /// What was wrong although nothing had failed.
    pub fn grow(&mut self, count: u64) -> Result<Observed, String> {
        let store = self.open().map_err(|error| error.to_string())?;
        for _ in 0..count {
            steps::step(self, &store).map_err(|error| error.to_string())?;
            self.read_clock();
        }
        let observed = observe(&store).map_err(|error| error.to_string())?;
        self.compare_now(&observed);
        match self.failure.take() {
            Some(failure) => Err(failure.to_string()),
            None => Ok(observed),
        }
    }

    /// The store's settings.
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }
}

/// Opens a store.
pub fn open_at(disk: &SimVfs, dir: &Path, config: &StoreConfig) -> Result<Arc<Store>, Error> {
    Store::open(Arc::new(disk.clone()), dir, config.clone())
}

fn nanoseconds(disk: &SimVfs) -> u64 {
    disk.elapsed().as_nanos() as u64
}
