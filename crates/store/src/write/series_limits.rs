//! Which new series are taken: bounds on active series and on new ones per hour and day, in all, for
//! each metric, or for those that match a selector. Series that are known already always pass.
//!
//! Counted is by arrival, in clock hours and UTC days, and anew with the process:
//!
//! ```text
//! active  series with a sample in this hour, or those of the hour before and the new ones since
//! new     label sets that a partition did not hold yet
//! ```

use crate::base::config::{LimitScope, SeriesLimit};
use crate::base::locks::lock;
use crate::base::narrow::whole;
use crate::write::refusal::{Refusal, Told};
use hashbrown::HashMap;
use index::CompiledMatchers;
use model::sample::{NANOS_PER_DAY, NANOS_PER_HOUR};
use model::{Labels, METRIC_NAME};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Labels of refused series that are watched, at most.
const WATCHED_LABELS_MAX: usize = 256;

/// What was refused of late, for a log line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// How many series.
    pub count: u64,
    /// Why the last one was refused.
    pub reason: String,
    /// The last one.
    pub example: String,
    /// The label with most distinct values among them, and about how many.
    pub label: Option<(String, u64)>,
}

/// Lets new series in, or not.
pub struct SeriesGate {
    limits: Vec<Limit>,
    /// Whether some limit needs the labels of what is active.
    needs_labels: bool,
    counts: Mutex<Counts>,
    /// Why no new series is taken, whatever the counts.
    closed: Mutex<Option<String>>,
    is_closed: AtomicBool,
    /// New series since start.
    new_total: AtomicU64,
    /// Refused ones.
    refused_total: AtomicU64,
}

struct Limit {
    settings: SeriesLimit,
    /// Of [`LimitScope::Matching`].
    matchers: Option<CompiledMatchers>,
}

#[derive(Default)]
struct Counts {
    all: Window,
    /// By limit: its one window, or one by metric.
    by_limit: Vec<Windows>,
    refused: Refused,
}

#[derive(Default)]
struct Windows {
    by_metric: HashMap<String, Window>,
    /// When those that are over were last removed.
    pruned_hour: i64,
}

/// Counts of the present hour and day.
#[derive(Clone, Copy, Default)]
struct Window {
    hour: i64,
    day: i64,
    /// Active series of the hour before.
    active_before: u64,
    /// Of this hour.
    active: u64,
    new_hourly: u64,
    new_daily: u64,
}

#[derive(Default)]
struct Refused {
    last: Refusals,
    labels: HashMap<String, Distinct>,
}

impl SeriesGate {
    /// A gate with these limits.
    ///
    /// # Errors
    /// For a regular expression that does not compile.
    pub fn new(limits: &[SeriesLimit]) -> crate::Result<SeriesGate> {
        let compile = |settings: &SeriesLimit| {
            let matchers = match &settings.scope {
                LimitScope::Matching(matchers) => Some(CompiledMatchers::compile(matchers)?),
                _ => None,
            };
            Ok(Limit { settings: settings.clone(), matchers })
        };
        let limits = limits.iter().map(compile).collect::<crate::Result<Vec<_>>>()?;
        let counts = Counts {
            by_limit: limits.iter().map(|_| Windows::default()).collect(),
            ..Counts::default()
        };
        Ok(SeriesGate {
            needs_labels: limits.iter().any(|limit| limit.settings.scope != LimitScope::All),
            limits,
            counts: Mutex::new(counts),
            closed: Mutex::new(None),
            is_closed: AtomicBool::new(false),
            new_total: AtomicU64::new(0),
            refused_total: AtomicU64::new(0),
        })
    }

    /// Counts an entity's series as new and active, or says why they are refused.
    /// A closed gate is trouble of the store, a limit the series' own fault.
    pub fn admit(&self, now_ns: i64, names: &[&str], tags: &[(&str, &str)]) -> Told<()> {
        self.admit_weighted(now_ns, names, tags, 1, names.len() as u64)
    }

    /// The same of a series of histograms, new or known, with so many new hidden entities. To the
    /// limits each of these is one more series of the metric, to people they are none.
    pub fn admit_histogram(
        &self,
        now_ns: i64,
        metric: &str,
        tags: &[(&str, &str)],
        is_new: bool,
        hidden: u64,
    ) -> Told<()> {
        self.admit_weighted(now_ns, &[metric], tags, hidden + u64::from(is_new), is_new.into())
    }

    /// The same of the start timestamps of a series, which are one hidden entity.
    pub fn admit_hidden(&self, now_ns: i64, metric: &str, tags: &[(&str, &str)]) -> Told<()> {
        self.admit_weighted(now_ns, &[metric], tags, 1, 0)
    }

    /// Whether new series of these names and labels would be let in now. Only a refusal is counted.
    pub fn check(&self, now_ns: i64, names: &[&str], tags: &[(&str, &str)]) -> Told<()> {
        let mut counts = lock(&self.counts);
        for (limit, metric, count) in self.shares(names, tags) {
            let settings = &self.limits[limit].settings;
            let window = counts.window(limit, metric, now_ns);
            if let Err(reason) = window.check(count, settings, metric) {
                counts.refused.note(names, tags, &reason);
                self.refused_total.fetch_add(names.len() as u64, Ordering::Relaxed);
                return Err(Refusal::Row(reason));
            }
        }
        Ok(())
    }

    /// Lets in what counts `weight` series a name to the limits, `counted` in all to people.
    fn admit_weighted(
        &self,
        now_ns: i64,
        names: &[&str],
        tags: &[(&str, &str)],
        weight: u64,
        counted: u64,
    ) -> Told<()> {
        let verdict = match self.is_closed.load(Ordering::Relaxed) {
            true => Err(Refusal::Store(lock(&self.closed).clone().unwrap_or_default())),
            false => Ok(()),
        };
        let mut counts = lock(&self.counts);
        let verdict = verdict.and_then(|()| {
            let shares = self.shares(names, tags);
            for (limit, metric, count) in &shares {
                let window = counts.window(*limit, metric, now_ns);
                let settings = &self.limits[*limit].settings;
                window.check(count * weight, settings, metric).map_err(Refusal::Row)?;
            }
            for (limit, metric, count) in &shares {
                counts.window(*limit, metric, now_ns).add_new(count * weight);
            }
            Ok(())
        });
        match &verdict {
            Ok(()) => {
                counts.all.roll(now_ns);
                counts.all.add_new(counted);
                self.new_total.fetch_add(counted, Ordering::Relaxed);
            }
            Err(refusal) => {
                counts.refused.note(names, tags, &refusal.to_string());
                self.refused_total.fetch_add(names.len() as u64, Ordering::Relaxed);
            }
        }
        verdict
    }

    /// Whether [`SeriesGate::note_active`] must know the labels.
    pub fn needs_labels(&self) -> bool {
        self.needs_labels
    }

    /// Counts known series that have their first sample of this hour: so many, and their labels
    /// when they are needed.
    pub fn note_active(&self, now_ns: i64, count: u64, series: &[Labels]) {
        let mut counts = lock(&self.counts);
        counts.all.roll(now_ns);
        counts.all.active += count;
        for (idx, limit) in self.limits.iter().enumerate() {
            if limit.settings.scope == LimitScope::All {
                counts.window(idx, "", now_ns).active += count;
                continue;
            }
            for labels in series {
                if let Some(metric) = limit.window_of(labels) {
                    counts.window(idx, metric, now_ns).active += 1;
                }
            }
        }
    }

    /// Counts a known hidden entity with its first row of this hour: to the limits it is one more
    /// series with the labels of the series that it belongs to.
    pub fn note_active_hidden(&self, now_ns: i64, labels: Option<&Labels>) {
        let mut counts = lock(&self.counts);
        for (idx, limit) in self.limits.iter().enumerate() {
            let metric = match limit.settings.scope {
                LimitScope::All => Some(""),
                _ => labels.and_then(|labels| limit.window_of(labels)),
            };
            if let Some(metric) = metric {
                counts.window(idx, metric, now_ns).active += 1;
            }
        }
    }

    /// Takes no new series at all from now on, for this reason, or lets the limits decide again.
    pub fn set_closed(&self, reason: Option<String>) {
        self.is_closed.store(reason.is_some(), Ordering::Relaxed);
        *lock(&self.closed) = reason;
    }

    /// Active series.
    pub fn active(&self, now_ns: i64) -> u64 {
        let mut counts = lock(&self.counts);
        counts.all.roll(now_ns);
        counts.all.active.max(counts.all.active_before)
    }

    /// New series since start, and refused ones.
    pub fn totals(&self) -> (u64, u64) {
        (self.new_total.load(Ordering::Relaxed), self.refused_total.load(Ordering::Relaxed))
    }

    /// What was refused since the last call; `None` when nothing was.
    pub fn take_refusals(&self) -> Option<Refusals> {
        let refused = std::mem::take(&mut lock(&self.counts).refused);
        let most = refused.labels.iter().map(|(label, values)| (values.count(), label));
        let label = most.max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(a.1)));
        let label = label.map(|(count, label)| (label.clone(), count));
        (refused.last.count != 0).then_some(Refusals { label, ..refused.last })
    }

    /// How many series of an entity each limit counts, and in which window.
    fn shares<'a>(&self, names: &[&'a str], tags: &[(&str, &str)]) -> Vec<(usize, &'a str, u64)> {
        let mut shares = Vec::new();
        for (idx, limit) in self.limits.iter().enumerate() {
            match &limit.settings.scope {
                LimitScope::All => shares.push((idx, "", names.len() as u64)),
                LimitScope::EachMetric => shares.extend(names.iter().map(|name| (idx, *name, 1))),
                LimitScope::Matching(_) => {
                    let matches = |name: &&&str| {
                        let pairs: Vec<(&str, &str)> =
                            tags.iter().copied().chain([(METRIC_NAME, **name)]).collect();
                        limit.window_of(&Labels::from_pairs(&pairs)).is_some()
                    };
                    match names.iter().filter(matches).count() as u64 {
                        0 => {}
                        count => shares.push((idx, "", count)),
                    }
                }
            }
        }
        shares
    }
}

impl Limit {
    /// The name of the window that counts a series, if any does.
    fn window_of<'a>(&self, labels: &'a Labels) -> Option<&'a str> {
        match &self.settings.scope {
            LimitScope::All => Some(""),
            LimitScope::EachMetric => Some(labels.get(METRIC_NAME).unwrap_or("")),
            LimitScope::Matching(_) => {
                self.matchers.as_ref().is_some_and(|all| all.matches(labels)).then_some("")
            }
        }
    }
}

impl Counts {
    fn window(&mut self, limit: usize, metric: &str, now_ns: i64) -> &mut Window {
        let Windows { by_metric, pruned_hour } = &mut self.by_limit[limit];
        let hour = now_ns.div_euclid(NANOS_PER_HOUR);
        if *pruned_hour != hour {
            *pruned_hour = hour;
            by_metric.retain(|_, window| !window.is_over(now_ns));
        }
        if !by_metric.contains_key(metric) {
            by_metric.insert(metric.to_string(), Window::default());
        }
        let window = by_metric.get_mut(metric).expect("it was put there");
        window.roll(now_ns);
        window
    }
}

impl Window {
    fn roll(&mut self, now_ns: i64) {
        let (hour, day) = (now_ns.div_euclid(NANOS_PER_HOUR), now_ns.div_euclid(NANOS_PER_DAY));
        if hour != self.hour {
            self.active_before = if hour == self.hour + 1 { self.active } else { 0 };
            (self.hour, self.active, self.new_hourly) = (hour, 0, 0);
        }
        if day != self.day {
            (self.day, self.new_daily) = (day, 0);
        }
    }

    /// Whether nothing in it counts any more.
    fn is_over(&self, now_ns: i64) -> bool {
        let mut window = *self;
        window.roll(now_ns);
        window.active == 0 && window.active_before == 0 && window.new_daily == 0
    }

    fn add_new(&mut self, count: u64) {
        self.active += count;
        self.new_hourly += count;
        self.new_daily += count;
    }

    /// Whether so many new series may come.
    fn check(&self, count: u64, limit: &SeriesLimit, metric: &str) -> Result<(), String> {
        let active = self.active.max(self.active_before + self.new_hourly);
        let bounds = [
            (active, limit.active_max, "active series"),
            (self.new_hourly, limit.new_hourly_max, "new series in this hour"),
            (self.new_daily, limit.new_daily_max, "new series on this day (UTC)"),
        ];
        match bounds.iter().find(|(have, max, _)| *max < have.saturating_add(count)) {
            None => Ok(()),
            Some((have, max, what)) => {
                let of = if metric.is_empty() { String::new() } else { format!(" of {metric}") };
                let name = &limit.name;
                // Names of rules have their scope behind a colon.
                let flag = name.split(':').next().unwrap_or(name);
                Err(format!(
                    "new series refused: {have} {what}{of}, the limit is {max} ({name}); leave out \
                     labels that vary, or raise --{flag}"
                ))
            }
        }
    }
}

impl Refused {
    fn note(&mut self, names: &[&str], tags: &[(&str, &str)], reason: &str) {
        self.last.count += names.len() as u64;
        self.last.reason.clear();
        self.last.reason.push_str(reason);
        let name = names.first().copied().unwrap_or("");
        let pairs: Vec<(&str, &str)> = tags.iter().copied().chain([(METRIC_NAME, name)]).collect();
        self.last.example = Labels::from_pairs(&pairs).to_string();
        for (label, value) in pairs {
            if !self.labels.contains_key(label) && self.labels.len() < WATCHED_LABELS_MAX {
                self.labels.insert(label.to_string(), Distinct::default());
            }
            if let Some(values) = self.labels.get_mut(label) {
                values.add(value);
            }
        }
    }
}

/// About how many distinct strings there were: HyperLogLog (Flajolet et al., 2007) of 256 registers,
/// 6.5 % off as a rule.
struct Distinct {
    registers: [u8; 256],
}

impl Default for Distinct {
    fn default() -> Distinct {
        Distinct { registers: [0; 256] }
    }
}

impl Distinct {
    fn add(&mut self, text: &str) {
        let hash = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
        let [low, ..] = hash.to_le_bytes();
        let zeros = ((hash >> 8) | 1 << 56).trailing_zeros();
        let rank = u8::try_from(zeros + 1).expect("at most 57");
        let register = &mut self.registers[usize::from(low)];
        *register = rank.max(*register);
    }

    fn count(&self) -> u64 {
        const REGISTERS: f64 = 256.0;
        const ALPHA: f64 = 0.7213 / (1.0 + 1.079 / REGISTERS);
        let sum: f64 = self.registers.iter().map(|rank| (-f64::from(*rank)).exp2()).sum();
        let estimate = ALPHA * REGISTERS * REGISTERS / sum;
        let empty = self.registers.iter().filter(|rank| **rank == 0).count() as f64;
        let is_small = estimate <= 2.5 * REGISTERS && 0.0 < empty;
        let count = if is_small { REGISTERS * (REGISTERS / empty).ln() } else { estimate };
        whole(count.round()).unsigned_abs()
    }
}
