//! Exemplars against a naive list: what is taken, what has to go, what restarts, deletions, snapshots
//! and deaths at every write leave of it.
//!
//! `SEED=n` chooses another history, `STRIDE=1` dies at every single operation.

use crate::rows;
use crate::rows::Rows;
use crate::stores;
use model::{Exemplar, ExemplarRow, Labels, MatchOp, Matcher, Row, TimeRange};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use store::{AppendedExemplars, Durability, Error, SelectLimits, Store, StoreConfig};
use vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_583_020_800 * SECOND - 3600 * SECOND;
const DATA: &str = "/data";
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

fn config(exemplars_max: usize) -> StoreConfig {
    StoreConfig { exemplars_max, ..stores::config() }
}

fn open_at(disk: &SimVfs, dir: &str, config: StoreConfig) -> Result<Arc<Store>, Error> {
    Store::open(Arc::new(disk.clone()), Path::new(dir), config)
}

fn store() -> (SimVfs, Arc<Store>) {
    let disk = SimVfs::new(1);
    disk.set_now(START);
    let store = open_at(&disk, DATA, config(100)).unwrap();
    (disk, store)
}

fn exemplar(trace: &str, value: f64, timestamp: i64) -> Exemplar {
    let labels = Labels::from_pairs(&[("trace_id", trace)]);
    Exemplar { labels, value, timestamp, has_timestamp: true }
}

/// An exemplar of the series `m{host="..."}`.
type Of<'a> = (&'a str, Exemplar);

fn host(host: &str) -> Labels {
    rows::labels(&[("host", host)], "m")
}

/// Appends a sample of each host now.
fn sample(store: &Store, hosts: &[&str]) -> Result<(), Error> {
    let mut rows = Rows::default();
    for host in hosts {
        rows.push(&store.hasher(), &[("host", host)], store.now(), &[("m", 1.0)]);
    }
    store.append(&rows.batch(), Durability::Synced).map(drop)
}

fn append(store: &Store, all: &[Of<'_>]) -> Result<AppendedExemplars, Error> {
    append_rows(store, all, |row| row)
}

/// As [`append`], of rows that were changed.
fn append_rows(
    store: &Store,
    all: &[Of<'_>],
    change: impl Fn(ExemplarRow) -> ExemplarRow,
) -> Result<AppendedExemplars, Error> {
    let mut rows = Rows::default();
    for (host, _) in all {
        rows.push(&store.hasher(), &[("host", host)], 0, &[("m", 0.0)]);
    }
    let batch = rows.batch();
    let one = |(row, (_, exemplar)): (&Row, &Of<'_>)| ExemplarRow {
        row: Row { timestamp: exemplar.timestamp, ..*row },
        exemplar: exemplar.clone(),
        may_be_first: false,
    };
    let all: Vec<ExemplarRow> = batch.rows.iter().zip(all).map(one).map(change).collect();
    store.append_exemplars(&batch, &all, Durability::Synced)
}

fn any() -> Vec<Vec<Matcher>> {
    vec![vec![Matcher::equal("__name__", "m")]]
}

/// By series and time, series and exemplar.
fn found(store: &Store, sets: &[Vec<Matcher>], range: TimeRange) -> Vec<(Labels, Exemplar)> {
    let series = store.strict().exemplars(sets, range, &LIMITS).unwrap();
    assert!(series.iter().all(|one| !one.exemplars.is_empty()));
    let of = |one: &store::ExemplarSeries| {
        let labels = Labels::clone(&one.labels);
        let list: Vec<_> =
            one.exemplars.iter().map(|e| (labels.clone(), Exemplar::clone(e))).collect();
        list
    };
    series.iter().flat_map(of).collect()
}

fn all(store: &Store) -> Vec<(Labels, Exemplar)> {
    found(store, &any(), TimeRange::ALL)
}

fn traces(all: &[(Labels, Exemplar)]) -> Vec<&str> {
    all.iter().map(|(_, exemplar)| exemplar.labels.get("trace_id").unwrap()).collect()
}

#[test]
fn what_is_new_is_taken_and_what_is_known_is_no_fault() {
    let (_disk, store) = store();
    sample(&store, &["a", "b"]).unwrap();
    let now = store.now();
    let first = [("a", exemplar("1", 1.0, now)), ("a", exemplar("2", 1.0, now + 1))];
    for _ in 0..3 {
        // Also a whole request that comes again.
        let done = append(&store, &first).unwrap();
        assert_eq!((done.written, done.out_of_order, done.refused), (2, 0, 0));
    }
    let beside = exemplar("3", 0.5, now + 1);
    let old = exemplar("4", 1.0, now);
    let other = exemplar("5", 1.0, now - 1);
    let done = append(&store, &[("a", beside), ("a", old), ("b", other)]).unwrap();
    assert_eq!((done.written, done.out_of_order, done.refused), (2, 1, 0));
    assert_eq!(done.rejections[0].position, 1);
    let reason = &done.rejections[0].reason;
    assert!(reason.starts_with("out of order exemplar"), "{reason}");
    assert_eq!(traces(&all(&store)), ["1", "2", "3", "5"]);
    let stats = store.stats().exemplars;
    assert_eq!((stats.exemplars, stats.series, stats.taken_total), (4, 2, 4));

    // Without times of their own, the newest told again with each sample is one.
    let untimed =
        |trace, at| ("b", Exemplar { has_timestamp: false, ..exemplar(trace, 2.0, now + at) });
    let done = append(&store, &[untimed("6", 0), untimed("6", 5), untimed("7", 6)]).unwrap();
    assert_eq!(done.written, 3);
    assert_eq!(traces(&all(&store))[3..], ["5", "6", "7"]);
}

#[test]
fn what_belongs_nowhere_is_refused() {
    let (disk, store) = store();
    sample(&store, &["a"]).unwrap();
    let now = store.now();
    let days = 86_400 * SECOND;
    let long = "x".repeat(5000);
    for (host, at, reason) in [
        ("b", now, "exemplar of a series without samples: m{host=\"b\"}"),
        ("a", now + 3 * days, "too far in the future"),
        ("a", now - 100 * days, "exemplar of a series without samples"),
        (&long, now, "max-label-value-size"),
    ] {
        let done = append(&store, &[(host, exemplar("1", 1.0, at))]).unwrap();
        assert_eq!((done.written, done.refused), (0, 1), "{reason}");
        assert!(done.rejections[0].reason.contains(reason), "{}", done.rejections[0].reason);
    }
    // Exemplars' labels have a bound even where others are let in.
    let mut limits = config(100);
    limits.limits.label_value_size_max = 2 << 20;
    let large = SimVfs::new(2);
    large.set_now(START);
    let open = open_at(&large, DATA, limits).unwrap();
    let long = "x".repeat(1 << 20);
    sample(&open, &[&long]).unwrap();
    let done = append(&open, &[(&long, exemplar("1", 1.0, now))]).unwrap();
    assert_eq!((done.written, done.refused), (0, 1));
    assert!(done.rejections[0].reason.ends_with("a series with exemplars may have 1048576"));

    assert_eq!(store.stats().exemplars.exemplars, 0);
    // The sample may be in the month before.
    let turn = now + 3600 * SECOND;
    assert_eq!(append(&store, &[("a", exemplar("1", 1.0, turn))]).unwrap().written, 1);

    store.close().unwrap();
    drop(store);
    let store = open_at(&disk, DATA, config(0)).unwrap();
    let done = append(&store, &[("a", exemplar("2", 1.0, turn + 1))]).unwrap();
    assert_eq!((done.written, done.refused), (0, 1));
    assert!(done.rejections[0].reason.contains("max-exemplars"));
    assert_eq!(all(&store), []);
}

#[test]
fn what_comes_alone_may_be_the_first_of_its_series() {
    let (disk, store) = store();
    let now = store.now();
    let alone = |row| ExemplarRow { may_be_first: true, ..row };
    for at in [now, now + 1] {
        let done = append_rows(&store, &[("new", exemplar("1", 1.0, at))], alone).unwrap();
        assert_eq!((done.written, done.refused), (1, 0));
    }
    // From then on the series is known, and its other rules hold.
    assert_eq!(append(&store, &[("new", exemplar("2", 1.0, now + 2))]).unwrap().written, 1);
    let late = append_rows(&store, &[("new", exemplar("3", 1.0, now + 1))], alone).unwrap();
    assert_eq!((late.written, late.out_of_order), (0, 1));
    let other = append(&store, &[("other", exemplar("4", 1.0, now))]).unwrap();
    assert_eq!((other.written, other.refused), (0, 1));
    let found = all(&store);
    assert_eq!(traces(&found), ["1", "1", "2"]);
    assert!(found.iter().all(|(series, _)| *series == host("new")));
    store.close().unwrap();
    drop(store);
    let store = open_at(&disk, DATA, config(100)).unwrap();
    assert_eq!(all(&store), found);
}

#[test]
fn the_oldest_go_first() {
    let (_disk, store) = store();
    sample(&store, &["a", "b"]).unwrap();
    let now = store.now();
    for idx in 0..150 {
        let host = if idx % 3 == 0 { "a" } else { "b" };
        let done = append(&store, &[(host, exemplar(&idx.to_string(), 1.0, now + idx))]).unwrap();
        assert_eq!(done.written, 1);
    }
    let mut kept: Vec<i64> = traces(&all(&store)).iter().map(|t| t.parse().unwrap()).collect();
    kept.sort_unstable();
    assert_eq!(kept, (50..150).collect::<Vec<i64>>());
    let stats = store.stats().exemplars;
    assert_eq!((stats.exemplars, stats.evicted_total), (100, 50));
    assert!(100 * 100 < stats.size && stats.size < 100 * 300, "{}", stats.size);
}

#[test]
fn no_series_takes_all_the_room_and_no_label_set_either() {
    let disk = SimVfs::new(1);
    disk.set_now(START);
    let store = open_at(&disk, DATA, config(5000)).unwrap();
    sample(&store, &["a", "b"]).unwrap();
    let now = store.now();
    let busy: Vec<Of<'_>> =
        (0..1500).map(|idx| ("a", exemplar(&idx.to_string(), 1.0, now + idx))).collect();
    assert_eq!(append(&store, &busy).unwrap().written, 1500);
    append(&store, &[("b", exemplar("b", 1.0, now))]).unwrap();
    let kept = all(&store);
    assert_eq!((kept.len(), traces(&kept)[0]), (1001, "500"));
    store.close().unwrap();
    drop(store);

    let store = open_at(&disk, DATA, config(10)).unwrap();
    assert_eq!(store.stats().exemplars.exemplars, 10, "fewer are kept from now on");
    let hosts: Vec<String> = (0..20).map(|idx| format!("{idx:04000}")).collect();
    for host in &hosts {
        sample(&store, &[host]).unwrap();
        append(&store, &[(host, exemplar("x", 1.0, now))]).unwrap();
    }
    let stats = store.stats().exemplars;
    assert_eq!((stats.exemplars, stats.series), (2, 2), "of 4 KiB labels two fit into 10 KiB");
    assert!(stats.size <= 10 * 1024);
}

#[test]
fn selections_have_bounds() {
    let (_disk, store) = store();
    sample(&store, &["a", "b", "c"]).unwrap();
    let now = store.now();
    let three = ["a", "b", "c"].map(|host| (host, exemplar(host, 1.0, now)));
    append(&store, &three).unwrap();
    append(&store, &[("b", exemplar("later", 1.0, now + 5))]).unwrap();
    let select = |sets: &[Vec<Matcher>], range| {
        let found = found(&store, sets, range);
        traces(&found).iter().map(|text| text.to_string()).collect::<Vec<_>>()
    };
    let not_b = vec![Matcher::new("host", MatchOp::NotEqual, "b")];
    assert_eq!(select(std::slice::from_ref(&not_b), TimeRange::ALL), ["a", "c"]);
    let nothing = vec![Matcher::equal("nothing", ""), Matcher::equal("host", "b")];
    assert_eq!(select(&[not_b, nothing], TimeRange::new(now, now + 4)), ["a", "b", "c"]);
    assert_eq!(select(&any(), TimeRange::new(now + 1, i64::MAX)), ["later"]);
    assert_eq!(select(&any(), TimeRange::new(now + 1, now)), [""; 0]);

    let few = SelectLimits { series_max: 2, ..LIMITS };
    let error = store.strict().exemplars(&any(), TimeRange::ALL, &few).unwrap_err().to_string();
    let expected = "3 series with exemplars selected, the limit is 2 (query.max-series). Select";
    assert!(error.starts_with(expected), "{error}");
    let bad = vec![vec![Matcher::new("host", MatchOp::Regex, "(")]];
    let error = store.strict().exemplars(&bad, TimeRange::ALL, &LIMITS);
    assert!(matches!(error, Err(Error::Invalid(_))), "{error:?}");
    let late = SelectLimits { deadline: Some(Instant::now()), ..LIMITS };
    let brief = [vec![Matcher::equal("host", "a")]];
    let unlike = vec![vec![Matcher::equal("host", "x")]; 300];
    assert!(store.strict().exemplars(&brief, TimeRange::ALL, &late).is_ok(), "a brief one ends");
    let error = store.strict().exemplars(&unlike, TimeRange::ALL, &late);
    assert!(matches!(error, Err(Error::DeadlineExceeded)), "{error:?}");
}

#[test]
fn deletions_and_retention_apply() {
    let disk = SimVfs::new(1);
    disk.set_now(START);
    let days = 86_400 * SECOND;
    let retained = || StoreConfig { retention_ns: Some(10 * days), ..config(100) };
    let store = open_at(&disk, DATA, retained()).unwrap();
    sample(&store, &["a", "b"]).unwrap();
    let now = store.now();
    let three = [("a", 0), ("a", 5), ("b", 0)];
    let three = three.map(|(host, at)| (host, exemplar(&format!("{host}{at}"), 1.0, now + at)));
    append(&store, &three).unwrap();
    store.flush().unwrap();
    store.delete(&[vec![Matcher::equal("host", "a")]], TimeRange::new(now + 1, now + 9)).unwrap();
    assert_eq!(traces(&all(&store)), ["a0", "b0"]);
    // What was deleted is no bar to what is sent again, nor comes it back.
    append(&store, &[("a", exemplar("again", 1.0, now + 2))]).unwrap();
    drop(store);
    let disk = disk.crash();
    let store = open_at(&disk, DATA, retained()).unwrap();
    assert_eq!(traces(&all(&store)), ["a0", "again", "b0"]);

    sample(&store, &["b"]).unwrap();
    let ahead = append(&store, &[("b", exemplar("late", 1.0, now + 5 * days))]).unwrap();
    assert_eq!((ahead.written, ahead.refused), (0, 1));
    disk.set_now(now + 4 * days);
    append(&store, &[("b", exemplar("late", 1.0, now + 5 * days))]).unwrap();
    disk.set_now(now + 11 * days);
    assert_eq!(traces(&all(&store)), ["late"], "out of sight at once");
    assert_eq!(store.stats().exemplars.exemplars, 4);
    store.expire().unwrap();
    let stats = store.stats().exemplars;
    assert_eq!((stats.exemplars, stats.series), (1, 1), "and soon out of memory");
}

#[test]
fn a_snapshot_has_them_and_goes_on() {
    let (disk, store) = store();
    for round in 0..5 {
        // Each flush is a new segment of the log.
        sample(&store, &["a"]).unwrap();
        append(&store, &[("a", exemplar(&round.to_string(), 1.0, store.now() + round))]).unwrap();
        store.flush().unwrap();
    }
    // Two that no sample comes with: the book is ahead of the month in the log.
    for round in 5..7 {
        append(&store, &[("a", exemplar(&round.to_string(), 1.0, store.now() + round))]).unwrap();
        store.flush().unwrap();
    }
    let name = store.create_snapshot().unwrap();
    append(&store, &[("a", exemplar("behind", 1.0, store.now() + 19))]).unwrap();
    assert_eq!(store.stats().exemplars.exemplars, 8);
    let dir = format!("{DATA}/snapshots/{name}");
    let copy = open_at(&disk, &dir, config(100)).unwrap();
    let mut expected = vec!["0", "1", "2", "3", "4", "5", "6"];
    assert_eq!(traces(&all(&copy)), expected);
    // Its log begins anew, and what it has must be read again after a crash.
    append(&copy, &[("a", exemplar("copy", 1.0, copy.now() + 17))]).unwrap();
    drop((copy, store));
    let disk = disk.crash();
    let copy = open_at(&disk, &dir, config(100)).unwrap();
    expected.push("copy");
    assert_eq!(traces(&all(&copy)), expected);
}

#[test]
fn a_rotten_book_is_set_aside_and_the_samples_serve_on() {
    let (disk, store) = store();
    sample(&store, &["a"]).unwrap();
    append(&store, &[("a", exemplar("1", 1.0, store.now()))]).unwrap();
    store.close().unwrap();
    drop(store);
    let file = Path::new(DATA).join("exemplars");
    disk.flip_bit(&file, 20, 3).unwrap();
    let problems = |disk: &SimVfs| {
        store::verify(Arc::new(disk.clone()), Path::new(DATA), &mut |_| ()).unwrap().problems
    };
    assert!(problems(&disk)[0].contains("checksum mismatch"), "{:?}", problems(&disk));
    let store = open_at(&disk, DATA, config(100)).unwrap();
    assert_eq!(store.stats().corrupt_parts_total, 1);
    assert_eq!(all(&store), []);
    assert_eq!(append(&store, &[("a", exemplar("2", 1.0, store.now()))]).unwrap().written, 1);
    store.close().unwrap();
    drop(store);
    assert!(problems(&disk)[0].contains("exemplars.corrupt"), "{:?}", problems(&disk));
    let store = open_at(&disk, DATA, config(100)).unwrap();
    assert_eq!(traces(&all(&store)), ["2"]);
}

/// The naive list of one history.
#[derive(Clone, Default, Debug)]
struct Naive {
    all: Vec<(Labels, Exemplar)>,
    /// How many had to go.
    evicted: usize,
}

/// Few, so that many have to go.
const COUNT_MAX: usize = 12;

impl Naive {
    fn append(&mut self, all: &[Of<'_>]) {
        for (name, exemplar) in all {
            let labels = host(name);
            let of_series = || self.all.iter().filter(|(series, _)| *series == labels);
            let newest = of_series().map(|(_, known)| known.timestamp).max();
            let is_known = of_series().any(|(_, known)| known == exemplar);
            if !is_known && newest.is_none_or(|newest| newest <= exemplar.timestamp) {
                self.all.push((labels, exemplar.clone()));
            }
            let too_many = self.all.len().saturating_sub(COUNT_MAX);
            self.evicted += self.all.drain(..too_many).len();
        }
    }

    fn delete(&mut self, name: &str) {
        self.all.retain(|(labels, _)| *labels != host(name));
    }

    /// By series, then time, as the store answers; none has two at one instant.
    fn sorted(&self) -> Vec<(Labels, Exemplar)> {
        let mut all = self.all.clone();
        all.sort_by(|(a, one), (b, other)| {
            a.iter().cmp(b.iter()).then(one.timestamp.cmp(&other.timestamp))
        });
        all
    }
}

fn mix(seed: u64, round: u64, salt: u64) -> u64 {
    rng::mix(seed ^ (round << 20) ^ (salt << 40))
}

const HOSTS: [&str; 4] = ["h0", "h1", "h2", "h3"];

/// Does the history until the disk fails. Of the two lists the first is what was acknowledged, the
/// second what is when the step under way is done.
fn live(disk: &SimVfs, seed: u64, lists: &mut [Naive; 2]) -> Result<(), Error> {
    disk.set_now(START);
    let mut store = open_at(disk, DATA, config(COUNT_MAX))?;
    for round in 0..24 {
        disk.set_now(START + round as i64 * 300 * SECOND);
        sample(&store, &HOSTS)?;
        let step: Vec<Of<'_>> = (0..1 + mix(seed, round, 1) % 5)
            .map(|idx| {
                let host = HOSTS[mix(seed, round, 10 + idx) as usize % HOSTS.len()];
                let at = store.now() + (mix(seed, round, 20 + idx) % 600) as i64 * SECOND;
                (host, exemplar(&format!("{round}-{at}"), idx as f64, at))
            })
            .collect();
        lists[1].append(&step);
        append(&store, &step)?;
        lists[0] = lists[1].clone();
        match mix(seed, round, 2) % 8 {
            0 | 1 => store.flush()?,
            2 => {
                lists[1].delete("h1");
                store.delete(&[vec![Matcher::equal("host", "h1")]], TimeRange::ALL)?;
                lists[0] = lists[1].clone();
            }
            3 => drop(store.create_snapshot()?),
            4 => {
                store.close()?;
                drop(store);
                store = open_at(disk, DATA, config(COUNT_MAX))?;
            }
            _ => {}
        }
        assert_eq!(all(&store), lists[0].sorted(), "round {round}");
    }
    store.close()
}

fn check(disk: &SimVfs, lists: &[Naive; 2], death: u64) {
    if !disk.exists(Path::new("/data/partitions")).unwrap() {
        assert_eq!(lists[0].all, [], "death {death}: the store is gone");
        return;
    }
    let store = open_at(disk, DATA, config(COUNT_MAX)).unwrap();
    let found = all(&store);
    let [acknowledged, in_doubt] = lists.each_ref().map(Naive::sorted);
    assert!(found == acknowledged || found == in_doubt, "death {death}: {found:#?}\n{lists:#?}");
    drop(store);
    let report = store::verify(Arc::new(disk.clone()), Path::new(DATA), &mut |_| ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new(), "death {death}");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn a_death_at_every_write_leaves_what_was_acknowledged() {
    let seed = number("SEED", 11);
    let whole = SimVfs::new(seed);
    let mut lists = <[Naive; 2]>::default();
    live(&whole, seed, &mut lists).unwrap();
    let operations = whole.operations();
    check(&whole, &lists, u64::MAX);
    assert!(5 < lists[0].evicted, "{} had to go", lists[0].evicted);
    println!("SEED={seed}: {operations} operations");
    assert!(300 < operations, "the history writes too little to be a test");
    for death in (0..operations).step_by(number("STRIDE", 2) as usize) {
        let disk = SimVfs::new(seed ^ death);
        disk.fail_after(death);
        let mut lists = <[Naive; 2]>::default();
        live(&disk, seed, &mut lists).expect_err("the disk fails");
        let after = disk.crash();
        check(&after, &lists, death);
        // Whatever recovery did must be durable, too: die again, at once.
        check(&after.crash(), &lists, death);
    }
}
