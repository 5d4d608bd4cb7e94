//! Measures the index: registration, sizes and searches over TSBS hosts.
//!
//! `cargo run --release -p index --example measure -- [hosts]` (100,000 by default). The matcher
//! cases of record are `quipu-inside matchers`.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

use index::{BlockMatch, CompiledMatchers, Index, NewEntity, jobs::freeze_bytes};
use model::{LabelsBuilder, MatchOp, Matcher};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// Entities that gather in memory before they are frozen, as in the store.
const MEMORY_ENTITIES: u64 = 512 << 10;

fn main() {
    let hosts = std::env::args().nth(1).map_or(100_000, |text| text.parse().expect("a number"));
    tsbs(hosts, 10);
    tsbs(hosts / 10, 1);
}

fn open() -> Index {
    let disk = vfs::SimVfs::new(1);
    vfs::Vfs::create_dir_all(&disk, "index".as_ref()).expect("an empty disk");
    Index::open(Arc::new(disk), "index".as_ref(), &[]).expect("an empty index")
}

/// Registers an entity as the store does: look first.
fn add(index: &mut Index, names: &[&str], tags: &[(&str, &str)], log: &mut Vec<u8>) {
    let entity = NewEntity::new(names, tags);
    if index.find_entity(&entity).expect("no disk").is_none() {
        index.register(&entity, log).expect("room");
    }
    if MEMORY_ENTITIES <= index.memory().entity_count() {
        freeze(index);
    }
}

fn freeze(index: &mut Index) {
    index.seal();
    if let Some(job) = index.freeze_job() {
        index.install(&job.run().expect("a disk")).expect("unchanged");
    }
}

const METRICS: [&str; 10] = [
    "cpu_usage_user",
    "cpu_usage_system",
    "cpu_usage_idle",
    "cpu_usage_nice",
    "cpu_usage_iowait",
    "cpu_usage_irq",
    "cpu_usage_softirq",
    "cpu_usage_steal",
    "cpu_usage_guest",
    "cpu_usage_guest_nice",
];

/// TSBS hosts: lines of ten metrics (`columns` 10) or ten series each (`columns` 1).
fn tsbs(hosts: usize, columns: usize) {
    let all: Vec<Vec<(&str, String)>> = (0..hosts).map(tags_of_host).collect();
    let mut index = open();
    let mut log = Vec::new();
    let start = Cpu::now();
    for tags in &all {
        let tags: Vec<(&str, &str)> = tags.iter().map(|(n, v)| (*n, v.as_str())).collect();
        for names in METRICS.chunks(columns) {
            add(&mut index, names, &tags, &mut log);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (entities, series) = (index.entity_count(), index.series_count());
    println!("\nTSBS, {columns} metrics an entity: {entities} entities, {series} series");
    println!(
        "  register     {:9.0} series/s, {:.2} us an entity",
        series as f64 / seconds,
        seconds * 1e6 / entities as f64
    );
    println!("  log          {:9.2} B a series", log.len() as f64 / series as f64);
    let in_memory = index.memory().series_count().max(1) as f64;
    println!("  memory       {:9.2} B a series", index.memory_size() as f64 / in_memory);
    let start = Cpu::now();
    for tags in &all {
        let tags: Vec<(&str, &str)> = tags.iter().map(|(n, v)| (*n, v.as_str())).collect();
        for names in METRICS.chunks(columns) {
            black_box(index.find_entity(&NewEntity::new(names, &tags)).expect("no disk"));
        }
    }
    println!("  find, memory {:9.2} us an entity", per(start, index.entity_count()));
    let start = Cpu::now();
    let mut replayed = open();
    replayed.replay(&log).expect("our own log");
    println!("  replay       {:9.2} us an entity", per(start, index.entity_count()));
    let start = Cpu::now();
    let bytes = freeze_bytes(replayed.memory()).expect("a segment");
    println!(
        "  freeze       {:9.2} us an entity ({:.3} s)",
        per(start, index.entity_count()),
        start.elapsed().as_secs_f64()
    );
    println!("  segment      {:9.2} B a series", bytes.len() as f64 / series as f64);
    freeze(&mut index);
    tsbs_on_disk(&index, &all, columns);
}

/// The same hosts, found and searched in a segment.
fn tsbs_on_disk(index: &Index, all: &[Vec<(&str, String)>], columns: usize) {
    let start = Cpu::now();
    for tags in all {
        let tags: Vec<(&str, &str)> = tags.iter().map(|(n, v)| (*n, v.as_str())).collect();
        for names in METRICS.chunks(columns) {
            let found = index.find_entity(&NewEntity::new(names, &tags)).expect("no rot");
            assert!(found.is_some());
        }
    }
    println!("  find, disk   {:9.2} us an entity", per(start, index.entity_count()));
    let found = index.search(&compile(&[])).expect("no rot");
    let start = Cpu::now();
    let size = label_sizes(index, &found);
    println!(
        "  labels       {:9.2} us a series ({} B each)",
        per(start, index.series_count()),
        size / index.series_count()
    );
    for matchers in [
        vec![Matcher::equal("hostname", "host_77")],
        vec![
            Matcher::new("hostname", MatchOp::Regex, "host_1|host_22|host_333|host_4444"),
            Matcher::new("__name__", MatchOp::Regex, "cpu_(usage_user|usage_system)"),
        ],
        vec![Matcher::equal("rack", "17")],
        vec![Matcher::equal("__name__", "cpu_usage_user")],
        vec![Matcher::new("hostname", MatchOp::Regex, "host_.*7")],
    ] {
        time_search(index, &matchers);
    }
}

fn label_sizes(index: &Index, found: &[BlockMatch]) -> u64 {
    let mut labels = LabelsBuilder::new();
    let mut reader = index.label_reader();
    let mut size = 0;
    for one in found {
        for slot in &one.slots {
            for column in &one.columns {
                labels.clear();
                reader.labels(&one.block, column, slot, &mut labels).expect("no rot");
                size += labels.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
            }
        }
    }
    size as u64
}

fn tags_of_host(host: usize) -> Vec<(&'static str, String)> {
    let mut state = host as u64;
    let mut pick = |count: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % count
    };
    let region = [
        "us-east-1",
        "us-west-1",
        "us-west-2",
        "eu-west-1",
        "eu-central-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "ap-northeast-1",
        "sa-east-1",
    ][pick(9) as usize];
    vec![
        ("arch", ["x64", "x86"][pick(2) as usize].to_string()),
        ("datacenter", format!("{region}{}", ["a", "b", "c"][pick(3) as usize])),
        ("hostname", format!("host_{host}")),
        ("os", ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"][pick(3) as usize].to_string()),
        ("rack", pick(100).to_string()),
        ("region", region.to_string()),
        ("service", pick(20).to_string()),
        ("service_environment", ["production", "staging", "test"][pick(3) as usize].to_string()),
        ("service_version", pick(2).to_string()),
        ("team", ["SF", "NYC", "LON", "CHI"][pick(4) as usize].to_string()),
    ]
}

fn compile(matchers: &[Matcher]) -> CompiledMatchers {
    CompiledMatchers::compile(matchers).expect("good matchers")
}

/// The mean of many searches, compilation included.
fn time_search(index: &Index, matchers: &[Matcher]) {
    let mut rounds = 0;
    let mut count = 0;
    let start = Cpu::now();
    // The clock of the CPU ticks coarsely: time many rounds as one.
    while rounds < 3 || (rounds < 5000 && start.elapsed().as_millis() < 100) {
        for _ in 0..3 {
            let found = index.search(&compile(matchers)).expect("no rot");
            count = found.iter().map(BlockMatch::series_count).sum::<u64>();
            black_box(found);
        }
        rounds += 3;
    }
    let milliseconds = start.elapsed().as_secs_f64() * 1e3 / f64::from(rounds);
    let text: Vec<String> = matchers.iter().map(ToString::to_string).collect();
    println!("  {:8.4} ms {count:9} series  {{{}}}", milliseconds, text.join(","));
}

/// CPU time of this thread, so that neighbours on the machine do not count.
#[derive(Clone, Copy)]
struct Cpu(Duration);

impl Cpu {
    fn now() -> Cpu {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
        let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
        Cpu(Duration::from_nanos(nanoseconds.expect("a number")))
    }

    fn elapsed(self) -> Duration {
        Cpu::now().0 - self.0
    }
}

fn per(start: Cpu, count: u64) -> f64 {
    start.elapsed().as_secs_f64() * 1e6 / count as f64
}
