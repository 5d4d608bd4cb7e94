//! Prints what decoding costs: `cargo run --release -p wire --example measure`.
//!
//! The data have TSBS' shape: lines of ten tags and ten integer fields, and the same values as
//! remote-write series of one sample.

use model::KeyHasher;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;
use wire::exposition::{self, ExpositionKeys, Format};
use wire::influx::{self, InfluxKeys, Options, Precision};
use wire::json_lines::{self, JsonKeys};
use wire::remote_write::encode::{MillisSample, RequestV1, RequestV2};
use wire::remote_write::{RemoteWriteKeys, v1, v2};
use wire::{ExtraLabels, Start};

const HOSTS: u64 = 10_000;
const ROUNDS: u32 = 20;
const FIELDS: [&str; 10] = [
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
];

fn tags(host: u64) -> Vec<(&'static str, String)> {
    vec![
        ("arch", ["x64", "x86"][(host % 2) as usize].to_string()),
        ("datacenter", format!("eu-central-1{}", ["a", "b"][(host % 2) as usize])),
        ("hostname", format!("host_{host}")),
        ("os", "Ubuntu16.04LTS".to_string()),
        ("rack", (host % 100).to_string()),
        ("region", "eu-central-1".to_string()),
        ("service", (host % 20).to_string()),
        ("service_environment", "production".to_string()),
        ("service_version", (host % 2).to_string()),
        ("team", "CHI".to_string()),
    ]
}

fn lines() -> String {
    let mut text = String::new();
    for host in 0..HOSTS {
        text.push_str("cpu");
        for (name, value) in tags(host) {
            write!(text, ",{name}={value}").expect("text");
        }
        let mut separator = ' ';
        for (idx, field) in FIELDS.iter().enumerate() {
            let value = (host * 31 + idx as u64 * 17) % 101;
            write!(text, "{separator}{field}={value}i").expect("text");
            separator = ',';
        }
        writeln!(text, " {}", 1_451_606_400_000_000_000u64 + host).expect("text");
    }
    text
}

fn best(name: &str, unit_count: usize, size: usize, mut work: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    let per_unit = best / unit_count as f64;
    println!("{name:44} {per_unit:8.1} ns each  {:8.2} GB/s", size as f64 / best);
}

fn main() {
    let hasher = KeyHasher::new(42);
    measure_hash(&hasher);
    measure_influx(&hasher);
    measure_text(&hasher);
    measure_remote_write(&hasher);
}

fn measure_hash(hasher: &KeyHasher) {
    let bytes = vec![7u8; 4096];
    for size in [100, 240, 241, 300, 500] {
        best(&format!("hash of {size} bytes"), 1000, 1000 * size, || {
            for idx in 0..1000 {
                black_box(hasher.hash(black_box(&bytes[idx..idx + size]), 5));
            }
        });
    }
}

fn measure_influx(hasher: &KeyHasher) {
    let text = lines();
    let keys = InfluxKeys::new(ExtraLabels::none());
    let options = Options { precision: Precision::Nanosecond, now: 0 };
    let size = text.len();
    println!("line of {} bytes", size / HOSTS as usize);
    best("line protocol, line of 10 fields", HOSTS as usize, size, || {
        let decoded = influx::decode(text.as_bytes(), Start::default(), &options, hasher, &keys);
        assert_eq!(decoded.expect("lines").batch.values.len(), 10 * HOSTS as usize);
    });
}

fn measure_text(hasher: &KeyHasher) {
    let (mut text, mut json) = (String::new(), String::new());
    for host in 0..HOSTS {
        let labels: Vec<String> =
            tags(host).iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        writeln!(text, "cpu_usage_user{{{}}} {}.5", labels.join(","), host % 100).expect("text");
        let members: Vec<String> =
            tags(host).iter().map(|(name, value)| format!("\"{name}\":\"{value}\"")).collect();
        let values: Vec<String> = (0..100).map(|idx| format!("{}.25", idx * 7 % 100)).collect();
        let times: Vec<String> =
            (0..100).map(|idx| (1_451_606_400_000u64 + idx).to_string()).collect();
        if host < HOSTS / 100 {
            let (values, times) = (values.join(","), times.join(","));
            let metric = format!("\"__name__\":\"cpu\",{}", members.join(","));
            let line = format!("\"values\":[{values}],\"timestamps\":[{times}]");
            writeln!(json, "{{\"metric\":{{{metric}}},{line}}}").expect("json");
        }
    }
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let options = exposition::Options { format: Format::Text, now: 0 };
    best("exposition, line of 10 labels", HOSTS as usize, text.len(), || {
        let decoded =
            exposition::decode(text.as_bytes(), Start::default(), &options, hasher, &keys);
        assert_eq!(decoded.expect("text").batch.rows.len(), HOSTS as usize);
    });
    let keys = JsonKeys::new(ExtraLabels::none());
    best("JSON lines, sample", HOSTS as usize, json.len(), || {
        let decoded = json_lines::decode(json.as_bytes(), Start::default(), hasher, &keys);
        assert_eq!(decoded.expect("json").batch.rows.len(), HOSTS as usize);
    });
    let mut out = Vec::new();
    best("value of an answer", 10_000, 50_000, || {
        out.clear();
        for idx in 0..10_000 {
            wire::prom_json::push_value(&mut out, f64::from(idx) / 7.0);
        }
    });
}

fn measure_remote_write(hasher: &KeyHasher) {
    let (mut first, mut second) = (RequestV1::new(), RequestV2::new());
    let mut count = 0;
    for field in FIELDS {
        for host in 0..HOSTS / 10 {
            let tags = tags(host * 7919 % HOSTS);
            let metric = format!("cpu_{field}");
            let mut labels = vec![("__name__", metric.as_str())];
            labels.extend(tags.iter().map(|(name, value)| (*name, value.as_str())));
            let sample = MillisSample { millis: 1_451_606_400_000, value: (host % 100) as f64 };
            first.series(&labels, &[sample]);
            second.series(&labels, &[sample], None);
            count += 1;
        }
    }
    let keys = RemoteWriteKeys::new(ExtraLabels::none());
    let (first, second) = (first.as_bytes(), second.to_bytes());
    println!("series of {} bytes", first.len() / count);
    best("remote write 1.0, walk and hash", count, first.len(), || {
        assert_eq!(
            v1::decode(black_box(first), hasher, &keys).expect("v1").batch.rows.len(),
            count
        );
    });
    let packed = snap::raw::Encoder::new().compress_vec(first).expect("snappy");
    println!("  snappy {} bytes to {}", packed.len(), first.len());
    let mut plain = Vec::new();
    best("snappy", count, first.len(), || {
        let size = snap::raw::decompress_len(&packed).expect("size");
        plain.resize(size, 0);
        snap::raw::Decoder::new().decompress(&packed, &mut plain).expect("snappy");
    });
    best("remote write 2.0, walk, assemble and hash", count, second.len(), || {
        assert_eq!(v2::decode(&second, hasher, &keys).expect("v2").batch.rows.len(), count);
    });
    let mut plain = vec![0u8; 0];
    let packed = snap::raw::Encoder::new().compress_vec(&second).expect("snappy");
    best("snappy of 2.0", count, second.len(), || {
        plain.resize(second.len(), 0);
        snap::raw::Decoder::new().decompress(&packed, &mut plain).expect("snappy");
    });
}
