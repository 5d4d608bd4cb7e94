//! Writers while searches run: a search asks now and then whether it is still wanted, and a writer
//! appends new series before it gets the answer. A search that held the partition's lock would wait
//! for ever.

use crate::rows::{self, Rows};
use crate::stores;
use histogram::{Bucket, Histogram};
use model::{Labels, MatchOp, Matcher, TimeRange};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use store::{CancelFlag, CardinalityRequest, Durability, SelectLimits, Store};
use vfs::SimVfs;

const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 20_000 * DAY;
const HOSTS: usize = 3000;
const MATCHERS: usize = 100;
/// Every 256th match at least asks.
const LOOKS_MIN: usize = HOSTS * MATCHERS / 300;
/// Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

fn open() -> Arc<Store> {
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    stores::open(&disk, stores::config())
}

fn put_host(store: &Store, host: &str) {
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("host", host)], NOW, &[("m", 1.0)]);
    store.append(&rows.batch(), Durability::Relaxed).unwrap();
}

/// Lets a thread write each time a search asks whether it is still wanted.
#[derive(Debug)]
struct WriteAtLook {
    looks: AtomicUsize,
    /// The number of the look to the writer, and the word that it has written.
    writer: Mutex<(mpsc::Sender<usize>, mpsc::Receiver<()>)>,
}

impl CancelFlag for WriteAtLook {
    fn is_cancelled(&self) -> bool {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        let writer = self.writer.lock().unwrap();
        writer.0.send(look).unwrap();
        writer.1.recv_timeout(PATIENCE).expect("a writer waits for a search");
        false
    }
}

/// Calls `search` with limits whose looks make a thread call `write`; returns how many there were.
fn search_beside(
    store: &Arc<Store>,
    write: impl Fn(&Store, usize) + Send + 'static,
    search: impl FnOnce(&SelectLimits),
) -> usize {
    let (ask, asked) = mpsc::channel();
    let (done, written) = mpsc::channel();
    let store = Arc::clone(store);
    let writer = std::thread::spawn(move || {
        for look in asked {
            write(&store, look);
            if done.send(()).is_err() {
                return;
            }
        }
    });
    let looks = AtomicUsize::new(0);
    let flag = Arc::new(WriteAtLook { looks, writer: Mutex::new((ask, written)) });
    search(&SelectLimits { cancelled: Some(flag.clone()), ..SelectLimits::UNLIMITED });
    let looks = flag.looks.load(Ordering::Relaxed);
    drop(flag);
    writer.join().unwrap();
    looks
}

/// Every host matches, and every regular expression has to be tried for it.
fn matchers() -> Vec<Matcher> {
    let own = (0..MATCHERS)
        .map(|number| Matcher::new("host", MatchOp::NotRegex, format!("h.*{number}x?[0-9]x")));
    own.chain([Matcher::new("host", MatchOp::NotEqual, "")]).collect()
}

fn hosts_of(series: impl IntoIterator<Item = Labels>) -> BTreeSet<String> {
    series.into_iter().map(|labels| labels.get("host").unwrap().to_string()).collect()
}

/// A search with limits that tells the hosts that it found, or how many series.
type Search = fn(&Store, &SelectLimits) -> Result<BTreeSet<String>, u64>;

fn request(limits: &SelectLimits) -> CardinalityRequest {
    let (sets, limits) = (vec![matchers()], limits.clone());
    CardinalityRequest { top_n: 1, day: None, sets, focus_label: None, limits }
}

const SEARCHES: [(&str, Search); 6] = [
    ("select", |store, limits| {
        let found = store.select(&[matchers()], TimeRange::ALL, limits).unwrap();
        Ok(hosts_of(found.labels_of(0..found.len()).unwrap()))
    }),
    ("series", |store, limits| {
        Ok(hosts_of(store.strict().series(&[matchers()], TimeRange::ALL, limits).unwrap()))
    }),
    ("label values", |store, limits| {
        let (sets, range) = ([matchers()], TimeRange::ALL);
        let values = store.strict().label_values("host", &sets, range, limits).unwrap();
        Ok(values.into_iter().collect())
    }),
    ("cardinality", |store, limits| {
        Err(store.strict().cardinality(&request(limits)).unwrap().series)
    }),
    ("new series", |store, limits| {
        Err(store.new_series(&request(limits), 24).unwrap().series.series)
    }),
    ("delete", |store, limits| {
        Err(store.delete_within(&[matchers()], TimeRange::ALL, limits).unwrap())
    }),
];

#[test]
fn writers_register_series_while_searches_run() {
    for is_flushed in [false, true] {
        for (name, search) in SEARCHES {
            let store = open();
            let known: BTreeSet<String> = (0..HOSTS).map(|host| format!("h{host}")).collect();
            known.iter().for_each(|host| put_host(&store, host));
            if is_flushed {
                store.flush().unwrap();
            }
            let write = |store: &Store, look| put_host(store, &format!("hnew{look}"));
            let looks = search_beside(&store, write, |limits| match search(&store, limits) {
                Ok(found) => assert!(known.is_subset(&found), "{name}"),
                Err(count) => assert!(HOSTS as u64 <= count, "{name}: {count}"),
            });
            assert!(LOOKS_MIN <= looks, "{name} looked {looks} times");
            let all = store.strict().series(&[], TimeRange::ALL, &SelectLimits::UNLIMITED);
            let new = all.unwrap().len() - if name == "delete" { 0 } else { HOSTS };
            assert!(new <= looks && looks <= new + known.len(), "{name}: {new} of {looks}");
        }
    }
}

/// Buckets of a number that only this one of a series has, so that it is held by a series of its own.
fn histogram(number: usize) -> Histogram {
    let bucket = Bucket { index: 40 * number as i32, count: 1.0 + number as f64 };
    Histogram { count: bucket.count, sum: 1.0, positive: vec![bucket], ..Histogram::default() }
}

#[test]
fn histograms_are_whole_while_writers_add_series_of_theirs() {
    let store = open();
    let labels = |job: usize| Labels::from_pairs(&[("__name__", "h"), ("job", &*job.to_string())]);
    let put = move |store: &Store, number: usize| {
        let one = (labels(number % 1000), NOW + number as i64, histogram(number));
        store.append_histograms(&rows::histograms(&[one]), Durability::Relaxed).unwrap();
    };
    (0..1000).for_each(|job| put(&store, job));
    let expressions = (0..MATCHERS).map(|number| format!("{number}[a-z]+.*x"));
    let set: Vec<Matcher> =
        expressions.map(|text| Matcher::new("job", MatchOp::NotRegex, text)).collect();
    let mut read = 0;
    let looks = search_beside(
        &store.clone(),
        move |store, look| put(store, 1000 + look),
        |limits| {
            let found = store.select(&[set], TimeRange::ALL, limits).unwrap();
            assert_eq!(found.len(), 1000);
            // What was selected has no more limits to ask.
            found
                .read_mixed(0..found.len(), &mut |_, _, values, times, histograms| {
                    assert_eq!(values.len(), 0, "a marker without its histogram");
                    for (time, found) in times.iter().zip(histograms) {
                        let number = (time - NOW) as usize;
                        assert_eq!(found.positive, histogram(number).positive, "{number}");
                        read += 1;
                    }
                })
                .unwrap();
        },
    );
    assert!(1000 <= read && 1000 * MATCHERS / 300 <= looks, "{read} read, {looks} looks");
}
