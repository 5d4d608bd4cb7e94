//! Samples that another database has: a store that has a part of them answers as one that has all.
//!
//! `SEED=n cargo test -p store --test all elsewhere` replays one history.

use crate::rows::{Rows, labels};
use crate::stores;
use histogram::Histogram;
use index::CompiledMatchers;
use model::{Labels, MatchOp, Matcher, TimeRange};
use rng::Random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use store::{
    Answer, Asked, Asks, Durability, Elsewhere, Error, Fault, Fold, Folded, FoldedRow, FoundSeries,
    Limit, Missing, SelectLimits, Selection, SeriesFold, Store, WindowFold,
};
use vfs::SimVfs;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 2020-01-30: histories cross into February.
const START: i64 = 18_291 * DAY;
const UNTIL: i64 = START + 4 * DAY;
const END: i64 = START + 6 * DAY;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

/// Samples by series.
type Samples = BTreeMap<Labels, BTreeMap<i64, u64>>;

/// Another database.
#[derive(Default)]
struct Other {
    samples: Samples,
    fault: Mutex<Option<Fault>>,
    asked: AtomicUsize,
    /// Threads that asked.
    threads: Mutex<Vec<ThreadId>>,
}

impl Other {
    fn answer<T>(&self, made: impl FnOnce() -> T) -> Answer<T> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.threads.lock().unwrap().push(std::thread::current().id());
        match self.fault.lock().unwrap().clone() {
            Some(fault) => Err(fault),
            None => Ok(made()),
        }
    }

    /// All it has, whatever was asked for: it is not believed.
    fn labels(&self) -> Vec<Labels> {
        self.samples.keys().rev().cloned().collect()
    }
}

impl Elsewhere for Other {
    fn name(&self) -> &str {
        "the old one"
    }

    fn until(&self) -> i64 {
        UNTIL
    }

    fn select(&self, asked: &Asked<'_>) -> Answer<Vec<FoundSeries>> {
        assert!(asked.range.end < UNTIL, "what is later is here");
        let series = |(labels, samples): (&Labels, &BTreeMap<i64, u64>)| FoundSeries {
            labels: labels.clone(),
            times: samples.keys().copied().collect(),
            values: samples.values().map(|bits| f64::from_bits(*bits)).collect(),
            ..FoundSeries::default()
        };
        self.answer(|| self.samples.iter().rev().map(series).collect())
    }

    fn series(&self, _: &Asked<'_>) -> Answer<Vec<Labels>> {
        self.answer(|| self.labels())
    }

    fn label_names(&self, _: &Asked<'_>) -> Answer<Vec<String>> {
        let names = |labels: &Labels| labels.iter().map(|(name, _)| name.to_string()).collect();
        self.answer(|| self.labels().iter().flat_map(|one| -> Vec<String> { names(one) }).collect())
    }

    fn label_values(&self, name: &str, _: &Asked<'_>) -> Answer<Vec<String>> {
        let all = self.labels();
        self.answer(|| all.iter().filter_map(|one| one.get(name)).map(str::to_string).collect())
    }

    fn fold(&self, fold: &Fold<'_>, asked: &Asked<'_>) -> Answer<Option<Vec<FoldedRow>>> {
        let sets: Vec<_> =
            asked.sets.iter().map(|set| CompiledMatchers::compile(set).unwrap()).collect();
        // No set at all is every series.
        let matches =
            |labels: &Labels| sets.is_empty() || sets.iter().any(|set| set.matches(labels));
        let found = self.samples.iter().filter(|(labels, _)| matches(labels));
        let found = found.map(|(labels, samples)| (labels.clone(), samples.clone())).collect();
        self.answer(|| Some(folded(&found, fold).into_iter().rev().collect()))
    }
}

/// The sum of the largest of windows, by group.
fn folded(samples: &Samples, fold: &Fold<'_>) -> Vec<FoldedRow> {
    assert_eq!((fold.window, fold.series), (WindowFold::Max, SeriesFold::Sum));
    let mut groups: BTreeMap<Labels, Vec<f64>> = BTreeMap::new();
    for (labels, samples) in samples {
        let is_kept = |name: &[u8]| fold.by.iter().any(|one| one.as_bytes() == name);
        let row = groups.entry(labels.only(is_kept)).or_insert(vec![f64::NAN; fold.len]);
        for (step, value) in row.iter_mut().enumerate() {
            let end = fold.at_ms(step) * 1_000_000;
            let window = samples.range(end - fold.window_ms * 1_000_000 + 1..=end);
            let max = window.map(|(_, bits)| f64::from_bits(*bits)).reduce(f64::max);
            *value = match max {
                Some(max) if value.is_nan() => max,
                Some(max) => *value + max,
                None => *value,
            };
        }
    }
    let rows = groups.into_iter().map(|(labels, values)| FoldedRow { labels, values });
    rows.filter(|row| row.values.iter().any(|value| !value.is_nan())).collect()
}

#[test]
fn what_is_made_elsewhere_is_what_would_be_made_here() {
    for seed in rng::seeds(1..4) {
        println!("SEED={seed}");
        let random = &mut Random(seed);
        let mut done = 0;
        for samples in [1, 10, 40, 400].repeat(4) {
            let Stores { all, part, .. } = stores(random, samples);
            done += (0..60).filter(|_| check_fold(random, &all, &part)).count();
        }
        assert!(50 < done, "{done} were made elsewhere");
    }
}

/// The window ends before what is here, and yet that is the sample which is there.
#[test]
fn what_is_here_within_a_millisecond_of_theirs_is_theirs() {
    let (part, mut other) = (open(), Other::default());
    let theirs = START + 10 * SECOND;
    let samples = BTreeMap::from([(theirs, 7f64.to_bits())]);
    other.samples.insert(labels(&[("host", "h")], "a"), samples);
    append(&part, "h", theirs + 400_000, "a", 9.0);
    part.ask_too(vec![Arc::new(other)]);
    let fold = |at_ms: i64| {
        let (window, series) = (WindowFold::Max, SeriesFold::Sum);
        let (by, step_ms) = (&[][..], 1);
        let fold = Fold { window, window_ms: 1_000, series, by, start_ms: at_ms, step_ms, len: 1 };
        let sets = [vec![Matcher::equal("__name__", "a")]];
        part.strict().fold(&sets, &fold, &LIMITS).unwrap()
    };
    let at_ms = theirs / 1_000_000;
    assert_eq!(fold(at_ms), None, "samples decide which it is");
    assert_eq!(fold(at_ms - 1).map(|folded| folded.rows), Some(Vec::new()));
}

/// Whether any step was made elsewhere; if so, what came of it must be right.
fn check_fold(random: &mut Random, all: &Store, part: &Store) -> bool {
    let by = ["host".to_string(), "__name__".to_string()];
    let start_ms = START / 1_000_000 + random.below(5 * 86_400_000) as i64;
    let fold = Fold {
        window: WindowFold::Max,
        window_ms: 1 + random.below(86_400_000) as i64,
        series: SeriesFold::Sum,
        by: &by[..random.below(3) as usize],
        start_ms,
        step_ms: 1 + random.below(20_000_000) as i64,
        len: 1 + random.below(20) as usize,
    };
    let sets = sets(random);
    let Some(Folded { steps, rows }) = part.strict().fold(&sets, &fold, &LIMITS).unwrap() else {
        return false;
    };
    let fold = Fold { len: steps, ..fold };
    assert!(fold.at_ms(steps - 1) * 1_000_000 < UNTIL);
    let samples = reading(&all.select(&sets, TimeRange::ALL, &LIMITS).unwrap());
    let expected = folded(&samples, &fold);
    assert_eq!(format!("{rows:?}"), format!("{expected:?}"), "{fold:?}");
    true
}

fn append(store: &Store, host: &str, time: i64, field: &str, value: f64) {
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("host", host)], time, &[(field, value)]);
    store.append(&rows.batch(), Durability::Relaxed).unwrap();
}

/// A store with everything, one with a part, and what has the rest.
struct Stores {
    all: Arc<Store>,
    part: Arc<Store>,
    other: Arc<Other>,
}

fn open() -> Arc<Store> {
    let disk = SimVfs::new(1);
    disk.set_now(END);
    stores::open(&disk, stores::config())
}

fn stores(random: &mut Random, samples: usize) -> Stores {
    let (all, part, mut other) = (open(), open(), Other::default());
    for idx in 0..samples {
        let (host, field) = (format!("h{}", random.below(6)), ["a", "b", "c"][idx % 3]);
        // Each has a time of its own.
        let time = START + random.below(6 * 86_400) as i64 * SECOND + idx as i64 * 1_000_000;
        let value = idx as f64;
        append(&all, &host, time, field, value);
        let theirs = other.samples.entry(labels(&[("host", &host)], field)).or_default();
        match random.below(3) {
            // Only there.
            0 if time < UNTIL => {
                theirs.insert(time, value.to_bits());
                continue;
            }
            // Copied.
            1 => theirs.insert(time, value.to_bits()),
            // Mended here since.
            2 => theirs.insert(time, f64::to_bits(-1.0)),
            _ => None,
        };
        append(&part, &host, time, field, value);
        if random.below(40) == 0 {
            part.flush().unwrap();
        }
    }
    let other = Arc::new(other);
    part.ask_too(vec![other.clone()]);
    Stores { all, part, other }
}

/// A selection as a map, each series also read by itself.
fn reading(selection: &Selection) -> Samples {
    let mut out = Samples::new();
    let (len, mut next) = (selection.len(), 0);
    let all = selection.labels_of(0..len).unwrap();
    let mut sink = |idx: usize, times: &[i64], values: &[f64]| {
        assert_eq!(idx, next, "in order");
        next += 1;
        let samples = times.iter().copied().zip(values.iter().map(|value| value.to_bits()));
        if !times.is_empty() {
            assert!(out.insert(all[idx].clone(), samples.collect()).is_none(), "each once");
        }
    };
    selection.read(0..len, &mut sink).unwrap();
    assert_eq!(next, len);
    for (idx, labels) in all.iter().enumerate() {
        assert_eq!(selection.labels(idx).unwrap(), *labels);
        let mut own = BTreeMap::new();
        let mut sink = |_: usize, times: &[i64], values: &[f64], _: &[i64], _: &[Histogram]| {
            own.extend(times.iter().copied().zip(values.iter().map(|value| value.to_bits())));
        };
        selection.read_mixed(idx..idx + 1, &mut sink).unwrap();
        assert_eq!(own, out.get(labels).cloned().unwrap_or_default());
    }
    out
}

fn sets(random: &mut Random) -> Vec<Vec<Matcher>> {
    let name = |name: &str| Matcher::equal("__name__", name);
    match random.below(5) {
        0 => vec![],
        1 => vec![vec![name("a")]],
        2 => vec![vec![name("a")], vec![Matcher::new("host", MatchOp::Regex, "h[0-2]")]],
        3 => vec![vec![Matcher::new("host", MatchOp::NotEqual, "h1"), name("b")]],
        _ => vec![vec![Matcher::equal("__graphite__", "c")]],
    }
}

#[test]
fn a_part_and_the_rest_are_all() {
    for seed in rng::seeds(1..4) {
        println!("SEED={seed}");
        check_history(&mut Random(seed));
    }
}

fn check_history(random: &mut Random) {
    for samples in [1, 30, 400] {
        let Stores { all, part, other } = stores(random, samples);
        for _ in 0..30 {
            let sets = sets(random);
            let start = START + random.below(6 * 86_400) as i64 * SECOND;
            let range = TimeRange::new(start, start + random.below(6 * 86_400) as i64 * SECOND);
            let asked = other.asked.load(Ordering::Relaxed);
            let expected = reading(&all.select(&sets, range, &LIMITS).unwrap());
            let selection = part.select(&sets, range, &LIMITS).unwrap();
            assert_eq!(reading(&selection), expected, "{sets:?} {range:?}");
            let is_asked = other.asked.load(Ordering::Relaxed) != asked;
            assert_eq!(is_asked, start < UNTIL, "asked only for what is old");
            if is_asked {
                let labels = selection.labels_of(0..selection.len()).unwrap();
                assert!(labels.is_sorted(), "in an order that does not depend on what was copied");
            }
        }
        let both = [&all, &part].map(|store| {
            let (range, sets) = (TimeRange::ALL, vec![vec![Matcher::equal("__name__", "a")]]);
            let ask = store.strict();
            let series = ask.series(&sets, range, &LIMITS).unwrap();
            let names = ask.label_names(&[], range, &LIMITS).unwrap();
            (series, names, ask.label_values("host", &[], range, &LIMITS).unwrap())
        });
        assert_eq!(both[0], both[1]);
    }
}

#[test]
fn one_that_is_away_is_missing_or_an_error() {
    let Stores { part, other, .. } = stores(&mut Random(7), 100);
    let range = TimeRange::new(START, END);
    *other.fault.lock().unwrap() = Some(Fault::Away("it sleeps".to_string()));
    assert!(
        matches!(part.select(&[], range, &LIMITS), Err(Error::Away { what }) if what.contains("it sleeps"))
    );
    let missing = Missing::new();
    let asked = other.asked.load(Ordering::Relaxed);
    let found = reading(&part.noting(&missing).select(&[], range, &LIMITS).unwrap());
    let own = part.strict().asking(Asks::Own).select(&[], range, &LIMITS).unwrap();
    assert_eq!(found, reading(&own), "what is here is told");
    let sentences = missing.sentences();
    assert_eq!(sentences.len(), 1);
    assert!(sentences[0].contains("the old one gave no whole answer: it sleeps"), "{sentences:?}");
    part.noting(&missing).series(&[], range, &LIMITS).unwrap();
    assert_eq!(other.asked.load(Ordering::Relaxed), asked + 1, "once for one answer");
    let late = TimeRange::new(UNTIL, END);
    part.select(&[], late, &LIMITS).expect("nobody else is asked");

    let (limit, what) = (Limit::ElsewhereSamples, "samples");
    *other.fault.lock().unwrap() = Some(Fault::TooMuch { limit, what, value: 9, max: 8 });
    let failed = part.noting(&Missing::new()).select(&[], range, &LIMITS);
    assert!(matches!(failed, Err(Error::LimitExceeded { limit: Limit::ElsewhereSamples, .. })));
    let few = SelectLimits { series_max: 2, ..LIMITS };
    *other.fault.lock().unwrap() = None;
    assert!(matches!(
        part.select(&[], range, &few),
        Err(Error::LimitExceeded { limit: Limit::Series, .. })
    ));
    let brief = SelectLimits { cost_max: 1 << 40, ..LIMITS };
    let asked = other.asked.load(Ordering::Relaxed);
    let refused = part.select(&[], range, &brief);
    assert!(matches!(refused, Err(Error::LimitExceeded { limit: Limit::SelectionCost, .. })));
    assert_eq!(other.asked.load(Ordering::Relaxed), asked, "who must not wait does not");
    part.select(&[], late, &brief).expect("it is brief");
}

#[test]
fn who_may_wait_asks_one_alone_by_itself() {
    let Stores { part, other, .. } = stores(&mut Random(7), 20);
    let range = TimeRange::new(START, END);
    let ask = || part.strict().label_names(&[], range, &LIMITS).map(|names| names.len());
    let asked_here = || other.threads.lock().unwrap().last() == Some(&std::thread::current().id());
    let names = ask().unwrap();
    assert!(!asked_here(), "this thread may not wait");
    assert_eq!(store::waiting(ask).unwrap(), names);
    assert!(asked_here());
    let _ = std::panic::catch_unwind(|| store::waiting(|| panic!("on its way")));
    assert_eq!(ask().unwrap(), names);
    assert!(!asked_here(), "it may wait no longer");
}

#[test]
fn what_others_have_may_always_have_changed() {
    let Stores { all, part, .. } = stores(&mut Random(7), 20);
    let day = TimeRange::new(UNTIL - DAY, UNTIL + DAY);
    for store in [&all, &part] {
        store.flush().unwrap();
    }
    let versions = [&all, &part].map(|store| store.take_version());
    assert!(all.changed_since(versions[0], &day).is_empty());
    let old = TimeRange::new(UNTIL - DAY, UNTIL - 1);
    assert_eq!(part.changed_since(versions[1], &day), [old]);
    let late = TimeRange::new(UNTIL, UNTIL + DAY);
    assert!(part.changed_since(versions[1], &late).is_empty() && part.keeps_order(&late));
    assert!(!part.keeps_order(&day));
}

/// One whose `until` moves.
struct Moving {
    other: Other,
    until: AtomicI64,
    until_at_first: i64,
    /// Where all that it has comes to as soon as it is asked for its `until` again, which then moves.
    copied_to: Mutex<Option<Arc<Store>>>,
    lacks: &'static str,
    ends: Mutex<Vec<i64>>,
}

impl Moving {
    /// One with a sample of a series.
    fn new(time: i64, until: i64) -> Arc<Moving> {
        let mut other = Other::default();
        let series = other.samples.entry(labels(&[("host", "copied")], "a")).or_default();
        series.insert(time, f64::to_bits(1.0));
        let (until, until_at_first) = (AtomicI64::new(until), UNTIL);
        let (copied_to, ends) = Default::default();
        Arc::new(Moving { other, until, until_at_first, copied_to, lacks: "", ends })
    }

    fn note(&self, asked: &Asked<'_>) {
        self.ends.lock().unwrap().push(asked.range.end);
        if !self.lacks.is_empty() {
            asked.lacks.note(self.lacks.to_string());
        }
    }
}

impl Elsewhere for Moving {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn until(&self) -> i64 {
        if let Some(store) = self.copied_to.lock().unwrap().take() {
            append(&store, "copied", START + 5, "a", 1.0);
            self.until.store(i64::MIN, Ordering::Release);
        }
        self.until.load(Ordering::Acquire)
    }

    fn until_at_first(&self) -> i64 {
        self.until_at_first
    }

    fn select(&self, asked: &Asked<'_>) -> Answer<Vec<FoundSeries>> {
        self.note(asked);
        self.other.select(asked)
    }

    fn series(&self, asked: &Asked<'_>) -> Answer<Vec<Labels>> {
        self.note(asked);
        self.other.series(asked)
    }

    fn label_names(&self, asked: &Asked<'_>) -> Answer<Vec<String>> {
        self.note(asked);
        self.other.label_names(asked)
    }

    fn label_values(&self, name: &str, asked: &Asked<'_>) -> Answer<Vec<String>> {
        self.note(asked);
        self.other.label_values(name, asked)
    }
}

#[test]
fn lists_lack_nothing_that_is_moved_over_while_they_are_made() {
    type List = fn(&Store) -> usize;
    let lists: [List; 3] = [
        |store| store.strict().series(&[], TimeRange::new(START, END), &LIMITS).unwrap().len(),
        |store| store.strict().label_names(&[], TimeRange::new(START, END), &LIMITS).unwrap().len(),
        |store| {
            let range = TimeRange::new(START, END);
            store.strict().label_values("host", &[], range, &LIMITS).unwrap().len()
        },
    ];
    for (list, count) in lists.iter().zip([1, 2, 1]) {
        let (store, moving) = (open(), Moving::new(START + 5, UNTIL));
        store.ask_too(vec![moving.clone()]);
        *moving.copied_to.lock().unwrap() = Some(store.clone());
        assert_eq!(list(&store), count, "it is here, or there");
        assert_eq!(moving.until.load(Ordering::Relaxed), i64::MIN, "it was moved meanwhile");
    }
}

#[test]
fn what_the_retention_hides_is_asked_for_again() {
    let found = |until: i64, until_at_first: i64| {
        let disk = SimVfs::new(1);
        disk.set_now(END);
        let store = stores::open_keeping(&disk, Some(3 * DAY));
        let mut moving = Moving::new(START + 2 * DAY, until);
        Arc::get_mut(&mut moving).unwrap().until_at_first = until_at_first;
        store.ask_too(vec![moving.clone()]);
        let all = reading(&store.select(&[], TimeRange::new(START, END), &LIMITS).unwrap());
        let ends = moving.ends.lock().unwrap().clone();
        (all.len(), ends)
    };
    let kept = END - 3 * DAY;
    // Moved over what was copied, which is dropped by now.
    assert_eq!(found(START + DAY, UNTIL), (1, vec![kept - 1]));
    assert_eq!(found(START + DAY, START + DAY), (0, vec![START + DAY - 1]), "it never had more");
    assert_eq!(found(UNTIL, UNTIL), (1, vec![UNTIL - 1]), "nothing was moved");
    assert_eq!(found(i64::MIN, UNTIL), (0, vec![]), "nobody is asked any more");
}

#[test]
fn what_one_leaves_out_is_said_and_the_rest_is_told() {
    let (store, mut moving) = (open(), Moving::new(START + 5, UNTIL));
    Arc::get_mut(&mut moving).unwrap().lacks = "a name that nobody can say";
    store.ask_too(vec![moving]);
    let (range, missing) = (TimeRange::new(START, END), Missing::new());
    for _ in 0..2 {
        let found = store.noting(&missing).select(&[], range, &LIMITS).unwrap();
        assert_eq!(reading(&found).len(), 1);
        assert_eq!(
            store.noting(&missing).label_values("host", &[], range, &LIMITS).unwrap(),
            ["copied"]
        );
    }
    let sentences = missing.sentences();
    let words = "the old one leaves something out: a name that nobody can say";
    assert!(sentences.len() == 1 && sentences[0].ends_with(words), "{sentences:?}");
    let strict = store.select(&[], range, &LIMITS);
    assert!(matches!(strict, Err(Error::Away { what }) if what.ends_with("nobody can say")));
}
