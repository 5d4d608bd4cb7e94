//! Label sets to entities, matchers to series, series to labels.

use crate::hosts::{self, Tags};
use crate::matchers::{cases, series};
use crate::path::{HotPath, Pass};
use ::index::{
    BlockMatch, CompiledMatchers, Completeness, Index, NewEntity, Search, Step, jobs::freeze_bytes,
};
use model::{LabelsBuilder, METRIC_NAME, MatchOp, Matcher};
use std::hint::black_box;
use std::sync::Arc;

/// Hosts, each an entity of ten metrics.
const HOSTS: u64 = 2000;
/// Series of the matcher cases' data.
const CASE_SERIES: u64 = 20_000;
/// Searches of a pass: one is too short to measure well.
const SEARCHES: usize = 4;

/// The paths of this file.
pub const PATHS: &[HotPath] = &[
    HotPath {
        name: "register-entity",
        unit: "entity",
        about: "look for and register a new entity of 10 tags and 10 metrics, in a new index",
        prepare: register_entity,
    },
    HotPath {
        name: "find-entity-memory",
        unit: "entity",
        about: "find a known label set in the index in memory",
        prepare: || find_entity(hosts_in_memory()),
    },
    HotPath {
        name: "find-entity-segment",
        unit: "entity",
        about: "find a known label set in a segment",
        prepare: || find_entity(hosts_in_a_segment()),
    },
    HotPath {
        name: "freeze-entity",
        unit: "entity",
        about: "write the index in memory as a segment",
        prepare: freeze_entity,
    },
    HotPath {
        name: "search-memory",
        unit: "search",
        about: "n=\"1\",i=~\".+\",i!~\"2.*\",j=\"foo\" over 20,000 series in memory, compiled anew",
        prepare: || search(case_series()),
    },
    HotPath {
        name: "search-memory-quick",
        unit: "search",
        about: "i=\"1\" over 20,000 series in memory, as selections search: under the lock",
        prepare: || search_in_steps(case_series(), MatchOp::Equal, "1"),
    },
    HotPath {
        name: "search-memory-regex",
        unit: "search",
        about: "i=~\"1.*[0-9]\" over the same series, as selections search: without the lock",
        prepare: || search_in_steps(case_series(), MatchOp::Regex, "1.*[0-9]"),
    },
    HotPath {
        name: "search-memory-unknown",
        unit: "search",
        about: "a metric that is not in memory, among 2,000 metrics with its label",
        prepare: search_unknown,
    },
    HotPath {
        name: "search-segment",
        unit: "search",
        about: "n=\"1\",i=~\".+\",i!~\"2.*\",j=\"foo\" over 20,000 series in a segment, compiled anew",
        prepare: || {
            let mut index = case_series();
            series::freeze(&mut index).expect("a disk in memory");
            search(index)
        },
    },
    HotPath {
        name: "series-labels",
        unit: "series",
        about: "labels of a series in a segment",
        prepare: series_labels,
    },
];

fn open() -> Index {
    let disk = vfs::SimVfs::new(1);
    vfs::Vfs::create_dir_all(&disk, "index".as_ref()).expect("a disk in memory");
    Index::open(Arc::new(disk), "index".as_ref(), &[]).expect("an empty index")
}

/// The entities of all hosts.
struct Hosts {
    names: Vec<String>,
    tags: Vec<Tags>,
}

impl Hosts {
    fn new() -> Hosts {
        Hosts { names: hosts::metric_names(), tags: (0..HOSTS).map(hosts::tags).collect() }
    }

    fn each(&self, mut visit: impl FnMut(&NewEntity<'_>)) {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        for tags in &self.tags {
            visit(&NewEntity::new(&names, &hosts::borrowed(tags)));
        }
    }

    fn register(&self, index: &mut Index, log: &mut Vec<u8>) {
        self.each(|entity| {
            assert!(index.find_entity(entity).expect("no disk").is_none());
            index.register(entity, log).expect("room");
        });
    }
}

fn register_entity() -> Pass {
    let hosts = Hosts::new();
    let mut log = Vec::with_capacity(1 << 20);
    Pass::new(HOSTS as usize, move || {
        log.clear();
        let mut index = open();
        hosts.register(&mut index, &mut log);
        assert_eq!(index.entity_count(), HOSTS);
    })
}

fn hosts_in_memory() -> Index {
    let mut index = open();
    Hosts::new().register(&mut index, &mut Vec::new());
    index
}

fn hosts_in_a_segment() -> Index {
    let mut index = hosts_in_memory();
    series::freeze(&mut index).expect("a disk in memory");
    index
}

fn find_entity(index: Index) -> Pass {
    let hosts = Hosts::new();
    Pass::new(HOSTS as usize, move || {
        hosts.each(|entity| assert!(index.find_entity(entity).expect("no rot").is_some()));
    })
}

fn freeze_entity() -> Pass {
    let index = hosts_in_memory();
    Pass::new(HOSTS as usize, move || {
        black_box(freeze_bytes(index.memory()).expect("a segment"));
    })
}

fn case_series() -> Index {
    let mut index = open();
    let i_values = CASE_SERIES / series::SERIES_PER_I;
    series::register(&mut index, 0..i_values).expect("room");
    index
}

fn search(index: Index) -> Pass {
    let case = cases::ALL.last().expect("cases");
    let expected = case.expected(CASE_SERIES / series::SERIES_PER_I);
    let matchers = case.matchers();
    Pass::new(SEARCHES, move || {
        for _ in 0..SEARCHES {
            assert_eq!(cases::search(&index, &matchers).expect("no rot"), expected);
        }
    })
}

/// A search as a selection does it, of a label with a value for every few series.
fn search_in_steps(index: Index, op: MatchOp, value: &str) -> Pass {
    let matchers = [Matcher::new("i", op, value)];
    let sets = [CompiledMatchers::compile(&matchers).expect("a matcher")];
    let expected = index.search(&sets[0]).expect("no rot");
    assert!(!expected.is_empty());
    Pass::new(SEARCHES, move || {
        for _ in 0..SEARCHES {
            let mut search = Search::new(&sets, Completeness::AtStart);
            while search.step(&index, &mut ::index::refuse_rot).expect("no rot") == Step::Run {
                search.run(&mut ::index::refuse_rot).expect("no rot");
            }
            assert!(search.take() == expected);
        }
    })
}

fn search_unknown() -> Pass {
    let mut index = open();
    for number in 0..HOSTS {
        let (name, value) = (format!("metric_{number}"), number.to_string());
        let (names, tags) = ([&*name], [("sensor", &*value)]);
        index.register(&NewEntity::new(&names, &tags), &mut Vec::new()).expect("room");
    }
    let wanted = [Matcher::equal(METRIC_NAME, "another"), Matcher::equal("sensor", "7")];
    let matchers = CompiledMatchers::compile(&wanted).expect("matchers");
    Pass::new(SEARCHES, move || {
        for _ in 0..SEARCHES {
            assert!(index.search(&matchers).expect("no rot").is_empty());
        }
    })
}

fn series_labels() -> Pass {
    let index = hosts_in_a_segment();
    let everything = CompiledMatchers::compile(&[]).expect("no matcher");
    let found = index.search(&everything).expect("no rot");
    let count: u64 = found.iter().map(BlockMatch::series_count).sum();
    let mut labels = LabelsBuilder::new();
    Pass::new(count as usize, move || {
        let mut reader = index.label_reader();
        for one in &found {
            for slot in &one.slots {
                for column in &one.columns {
                    labels.clear();
                    reader.labels(&one.block, column, slot, &mut labels).expect("no rot");
                }
            }
        }
        assert_eq!(labels.len(), 11);
    })
}
