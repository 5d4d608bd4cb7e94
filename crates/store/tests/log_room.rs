//! A log with little room under everything that changes memory: whatever is refused, memory is what
//! the log gives back, and sending it again is all a client needs to do.
//!
//! `SEED=n` chooses another history.

use crate::rows;
use crate::rows::Rows;
use crate::stores;
use model::{Exemplar, ExemplarRow, Labels, Matcher, Metadata, MetricKind, TimeRange};
use rng::Random;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use store::{Durability, Error, SelectLimits, Store, StoreConfig};
use vfs::SimVfs;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 2024-11-01.
const NEXT: i64 = 20_028 * DAY;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

fn config() -> StoreConfig {
    let mut config =
        StoreConfig { wal_pending_max: 48 << 10, wal_record_max: 64 << 10, ..stores::config() };
    config.limits.label_value_size_max = 1 << 20;
    config
}

/// What refusals there were.
#[derive(Debug, Default)]
struct Seen {
    busy: u64,
    too_large: u64,
    closed: u64,
    checks: u64,
}

impl Seen {
    /// Counts what may be said, and nothing else may.
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(Error::Wal(wal::Error::Busy { .. })) => self.busy += 1,
            Err(Error::NewSeriesRefused { .. }) => self.closed += 1,
            Err(error) => panic!("{error}"),
        }
        None
    }
}

/// A label's value of about that size.
fn fat(number: u64, size: usize) -> String {
    format!("{number:06}{}", "x".repeat(size.saturating_sub(6)))
}

struct History {
    disk: SimVfs,
    store: Arc<Store>,
    dice: Random,
    seen: Seen,
    time: i64,
}

type Content = (BTreeMap<String, Vec<(i64, u64)>>, String, Vec<Metadata>);

/// All there is: samples by series, exemplars, descriptions.
fn content(store: &Store) -> Content {
    let selection = store.select(&[], TimeRange::ALL, &LIMITS).unwrap();
    let mut samples = BTreeMap::new();
    let read = &mut |idx: usize, times: &[i64], values: &[f64]| {
        let bits = values.iter().map(|value| value.to_bits());
        let labels = selection.labels(idx).unwrap().to_string();
        let list = times.iter().copied().zip(bits).collect::<Vec<_>>();
        assert!(samples.insert(labels, list).is_none(), "a series is there twice");
    };
    selection.read(0..selection.len(), read).unwrap();
    let sets = [vec![Matcher::equal("__name__", "a")]];
    let exemplars = store.strict().exemplars(&sets, TimeRange::ALL, &LIMITS).unwrap();
    (samples, format!("{exemplars:?}"), store.metadata(None, usize::MAX))
}

impl History {
    fn new(seed: u64) -> History {
        let disk = SimVfs::new(seed);
        disk.set_now(NEXT - 3600 * SECOND);
        let store = stores::open(&disk, config());
        let seen = Seen::default();
        History { disk, store, dice: Random(seed), seen, time: NEXT - 1800 * SECOND }
    }

    fn durability(&mut self) -> Durability {
        *self.dice.pick(&[Durability::Relaxed, Durability::Relaxed, Durability::Synced])
    }

    fn step(&mut self) {
        self.time += SECOND;
        let durability = self.durability();
        match self.dice.below(24) {
            0..10 => self.rows(durability),
            10..14 => self.histograms(durability),
            14..16 => self.exemplars(),
            16 => self.metadata(),
            17 | 18 => drop(self.seen.note(self.store.prepare_rollover_fully())),
            19 => {
                let reason = (self.dice.below(2) == 0).then(|| "no memory".to_string());
                self.store.refuse_new_series(reason);
            }
            20 => self.store.flush().unwrap(),
            21 => self.store.force_merge("").unwrap(),
            _ => self.check(),
        }
    }

    /// Rows of some hosts, in one month or both, with fat labels now and then.
    fn rows(&mut self, durability: Durability) {
        const FIELDS: [&[&str]; 5] = [&["a"], &["a", "b"], &["a", "b", "c"], &["c", "b"], &["b"]];
        let mut rows = Rows::default();
        for _ in 0..=self.dice.below(120) {
            let host = self.dice.below(400);
            let names = *self.dice.pick(&FIELDS);
            let fields: Vec<(&str, f64)> = names.iter().map(|name| (*name, 0.5)).collect();
            let size = match self.dice.below(400) {
                0 => 70_000,
                1..40 => 4000,
                _ => 6,
            };
            let host = fat(host, size);
            let month = if self.dice.below(8) == 0 { 3600 * SECOND } else { 0 };
            rows.push(&self.store.hasher(), &[("host", &host)], self.time + month, &fields);
        }
        if let Some(appended) = self.seen.note(self.store.append(&rows.batch(), durability)) {
            self.seen.too_large += appended.rejected;
            let told = appended.rejections.iter().all(|one| one.reason.contains("the limit is"));
            assert!(told, "{:?}", appended.rejections);
        }
    }

    fn histograms(&mut self, durability: Durability) {
        let mut list = Vec::new();
        for _ in 0..=self.dice.below(12) {
            let host = format!("h{}", self.dice.below(60));
            let size = if self.dice.below(6) == 0 { 3000 } else { 1 };
            let (fat, number) = (fat(7, size), self.dice.next());
            let labels = rows::labels(&[("host", &host), ("fat", &fat)], "latency");
            list.push((labels, self.time, rows::histogram(number)));
        }
        let batch = rows::histograms(&list);
        self.seen.note(self.store.append_histograms(&batch, durability));
    }

    fn exemplars(&mut self) {
        let mut rows = Rows::default();
        for host in 0..=self.dice.below(8) {
            let host = format!("{host:06}");
            rows.push(&self.store.hasher(), &[("host", &host)], self.time, &[("a", 0.0)]);
        }
        let batch = rows.batch();
        let size = if self.dice.below(4) == 0 { 5000 } else { 8 };
        let labels = Labels::from_pairs(&[("trace_id", format!("{:0size$}", self.time).as_str())]);
        let exemplar = Exemplar { labels, value: 1.0, timestamp: self.time, has_timestamp: true };
        let all: Vec<ExemplarRow> = batch
            .rows
            .iter()
            .map(|row| ExemplarRow { row: *row, exemplar: exemplar.clone(), may_be_first: false })
            .collect();
        let durability = self.durability();
        self.seen.note(self.store.append_exemplars(&batch, &all, durability));
    }

    fn metadata(&mut self) {
        let one = |number: u64| Metadata {
            metric: format!("m{}", number % 50),
            kind: MetricKind::Counter,
            help: format!("{:03000}", number % 7),
            unit: String::new(),
        };
        let all: Vec<Metadata> = (0..self.dice.below(12)).map(|_| one(self.dice.next())).collect();
        self.seen.note(self.store.put_metadata(&all));
    }

    /// All is written, the power fails, and what opens is what memory says.
    fn check(&mut self) {
        let mut rows = Rows::default();
        rows.push(&self.store.hasher(), &[("host", "check")], self.time, &[("a", 1.0)]);
        if self.seen.note(self.store.append(&rows.batch(), Durability::Synced)).is_none() {
            return;
        }
        self.seen.checks += 1;
        let after = self.disk.crash();
        let reopened = stores::open(&after, config());
        assert_eq!(content(&self.store), content(&reopened));
        if self.dice.below(3) == 0 {
            (self.disk, self.store) = (after, reopened);
        }
    }
}

#[test]
fn memory_is_what_the_log_gives_back_whatever_it_refused() {
    let mut seen = Seen::default();
    for seed in rng::seeds(0..30) {
        let mut history = History::new(seed);
        for _ in 0..60 {
            history.step();
        }
        history.check();
        let Seen { busy, too_large, closed, checks } = history.seen;
        seen.busy += busy;
        seen.too_large += too_large;
        seen.closed += closed;
        seen.checks += checks;
    }
    println!("{seen:?}");
    if std::env::var_os("SEED").is_none() {
        assert!(20 < seen.busy && 20 < seen.too_large && 20 < seen.closed && 60 < seen.checks);
    }
}

/// A batch is one record as far as it fits one, then there are others, and nobody notices.
#[test]
fn rows_that_exceed_a_record_take_several() {
    let disk = SimVfs::new(1);
    disk.set_now(NEXT);
    let store = stores::open(&disk, config());
    let mut rows = Rows::default();
    for host in 0..200 {
        let size = if host == 100 { 70_000 } else { 2000 };
        rows.push(&store.hasher(), &[("host", &fat(host, size))], NEXT, &[("a", 1.0)]);
    }
    let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
    assert_eq!((appended.samples, appended.rejected), (199, 1));
    let rejection = &appended.rejections[0];
    assert_eq!(rejection.position, 100);
    let part = "labels and values are too large: a log record of ";
    assert!(rejection.reason.starts_with(part), "{}", rejection.reason);
    assert!(rejection.reason.ends_with("the limit is 65536"), "{}", rejection.reason);
    let checked = wal::check(&disk.crash(), Path::new("/data/wal"), &mut |_| Ok(()));
    let records = checked.unwrap().record_count;
    assert!((6..20).contains(&records), "{records}");
    assert_eq!(content(&store), content(&stores::open(&disk.crash(), config())));
}

/// What a panic leaves in memory is in no record that comes after it.
#[test]
fn a_panic_between_memory_and_log_makes_the_store_read_only() {
    struct Panicking;
    impl model::KeyDecoder for Panicking {
        fn tags(
            &self,
            key: &[u8],
            tags: &mut model::LabelsBuilder,
        ) -> Result<(), model::LabelError> {
            rows::CanonicalKeys.tags(key, tags)?;
            match tags.get("host") {
                Some("boom") => panic!("a decoder's bug"),
                _ => Ok(()),
            }
        }

        fn metric_name(
            &self,
            _: &[u8],
            field: &str,
            out: &mut String,
        ) -> Result<(), model::LabelError> {
            out.push_str(field);
            Ok(())
        }
    }
    let disk = SimVfs::new(1);
    disk.set_now(NEXT);
    let store = stores::open(&disk, config());
    let put = |hosts: &[&str]| {
        let mut rows = Rows::default();
        for host in hosts {
            rows.push(&store.hasher(), &[("host", host)], NEXT, &[("a", 1.0)]);
        }
        let batch = model::WriteBatch { decoder: &Panicking, ..rows.batch() };
        store.append(&batch, Durability::Synced)
    };
    put(&["first"]).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| put(&["registered", "boom"])));
    assert!(panicked.is_err());
    // It would be logged without the registration that it needs.
    let error = put(&["registered"]).unwrap_err();
    assert!(matches!(error, Error::Wal(wal::Error::Latched { .. })), "{error}");
    let error = put(&["first"]).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
    let store = Store::open(Arc::new(disk.crash()), Path::new("/data"), config()).unwrap();
    assert_eq!(content(&store).0.len(), 1);
}
