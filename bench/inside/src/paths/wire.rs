//! Requests to rows, and values to text.

use crate::hosts::{self, FIELDS, START_NS};
use crate::path::{HotPath, Pass};
use ::wire::compression::{Encoding, decompress, snappy};
use ::wire::exposition::{self, ExpositionKeys, Format};
use ::wire::influx::{self, InfluxKeys, Precision};
use ::wire::json_lines::{self, JsonKeys};
use ::wire::remote_write::encode::{MillisSample, RequestV1, RequestV2};
use ::wire::remote_write::{RemoteWriteKeys, v1, v2};
use ::wire::{ExtraLabels, Start, prom_json};
use model::KeyHasher;
use std::fmt::Write;
use std::hint::black_box;

/// Lines, or series, of a request.
const ROWS: u64 = 1000;
/// Hosts behind the series of a remote-write request.
const HOSTS: u64 = ROWS / FIELDS.len() as u64;
/// Samples of a JSON line.
const JSON_SAMPLES: u64 = 100;
/// What a decompressed body may have.
const BODY_SIZE_MAX: usize = 16 << 20;
/// The servers' is random; this one makes every run the same.
const HASHER_SEED: u64 = 42;

/// The paths of this file.
pub const PATHS: &[HotPath] = &[
    HotPath {
        name: "influx-line",
        unit: "line",
        about: "decode line protocol of 10 tags and 10 integer fields, key hashed",
        prepare: influx_line,
    },
    HotPath {
        name: "remote-write-1",
        unit: "sample",
        about: "decompress and decode remote write 1.0, one sample a series of 11 labels",
        prepare: remote_write_1,
    },
    HotPath {
        name: "remote-write-2",
        unit: "sample",
        about: "decompress and decode remote write 2.0, one sample a series of 11 labels",
        prepare: remote_write_2,
    },
    HotPath {
        name: "exposition-line",
        unit: "line",
        about: "decode the text format, 10 labels and a decimal value",
        prepare: exposition_line,
    },
    HotPath {
        name: "json-sample",
        unit: "sample",
        about: "decode JSON lines of 100 samples",
        prepare: json_sample,
    },
    HotPath {
        name: "hash-key",
        unit: "key",
        about: "hash the raw key of a row, 240 bytes",
        prepare: hash_key,
    },
    HotPath {
        name: "answer-value",
        unit: "value",
        about: "print a value into a JSON answer",
        prepare: answer_value,
    },
];

fn influx_line() -> Pass {
    let text = hosts::lines(ROWS, 1);
    let keys = InfluxKeys::new(ExtraLabels::none());
    let options = influx::Options { precision: Precision::Nanosecond, now: 0 };
    let hasher = KeyHasher::new(HASHER_SEED);
    Pass::new(ROWS as usize, move || {
        let decoded = influx::decode(text.as_bytes(), Start::default(), &options, &hasher, &keys);
        assert_eq!(decoded.expect("good lines").batch.rows.len(), ROWS as usize);
    })
}

/// Calls `add` with labels and sample of each series of a request.
fn each_series(mut add: impl FnMut(&[(&str, &str)], &[MillisSample])) {
    for (idx, metric) in hosts::metric_names().iter().enumerate() {
        for host in 0..HOSTS {
            let tags = hosts::tags(host);
            let mut labels = vec![("__name__", metric.as_str())];
            labels.extend(hosts::borrowed(&tags));
            let value = hosts::usage(host, idx, 0) as f64;
            add(&labels, &[MillisSample { millis: START_NS / 1_000_000, value }]);
        }
    }
}

fn remote_write_1() -> Pass {
    let mut request = RequestV1::new();
    each_series(|labels, samples| request.series(labels, samples));
    let packed = snappy(request.as_bytes());
    let (hasher, keys, mut plain) = remote_write_tools();
    Pass::new(ROWS as usize, move || {
        let body = decompress(Encoding::Snappy, &packed, BODY_SIZE_MAX, &mut plain);
        let decoded = v1::decode(body.expect("good snappy"), &hasher, &keys);
        assert_eq!(decoded.expect("a good request").batch.rows.len(), ROWS as usize);
    })
}

fn remote_write_2() -> Pass {
    // Never freed: its map of symbols would free them in an order that each process chooses anew,
    // and the decoder's memory would lie elsewhere each time.
    let request = Box::leak(Box::new(RequestV2::new()));
    each_series(|labels, samples| request.series(labels, samples, None));
    let packed = snappy(&request.to_bytes());
    let (hasher, keys, mut plain) = remote_write_tools();
    Pass::new(ROWS as usize, move || {
        let body = decompress(Encoding::Snappy, &packed, BODY_SIZE_MAX, &mut plain);
        let decoded = v2::decode(body.expect("good snappy"), &hasher, &keys);
        assert_eq!(decoded.expect("a good request").batch.rows.len(), ROWS as usize);
    })
}

fn remote_write_tools() -> (KeyHasher, RemoteWriteKeys, Vec<u8>) {
    (KeyHasher::new(HASHER_SEED), RemoteWriteKeys::new(ExtraLabels::none()), Vec::new())
}

fn exposition_line() -> Pass {
    let mut text = String::new();
    for host in 0..ROWS {
        let labels: Vec<String> =
            hosts::tags(host).iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let value = hosts::usage(host, 0, 0);
        writeln!(text, "cpu_usage_user{{{}}} {value}.5", labels.join(",")).expect("a string");
    }
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let options =
        exposition::Options { format: Format::Text, now: 0, created: exposition::Created::Samples };
    let hasher = KeyHasher::new(HASHER_SEED);
    Pass::new(ROWS as usize, move || {
        let decoded =
            exposition::decode(text.as_bytes(), Start::default(), &options, &hasher, &keys);
        assert_eq!(decoded.expect("good text").batch.rows.len(), ROWS as usize);
    })
}

fn json_sample() -> Pass {
    let mut text = String::new();
    for host in 0..ROWS / JSON_SAMPLES {
        let labels: Vec<String> = hosts::tags(host)
            .iter()
            .map(|(name, value)| format!("\"{name}\":\"{value}\""))
            .collect();
        let values: Vec<String> =
            (0..JSON_SAMPLES).map(|step| format!("{}.25", hosts::usage(host, 0, step))).collect();
        let first = START_NS / 1_000_000;
        let times: Vec<String> =
            (0..JSON_SAMPLES as i64).map(|step| (first + 10_000 * step).to_string()).collect();
        let (labels, values, times) = (labels.join(","), values.join(","), times.join(","));
        writeln!(
            text,
            "{{\"metric\":{{\"__name__\":\"cpu\",{labels}}},\"values\":[{values}],\"timestamps\":[{times}]}}"
        )
        .expect("a string");
    }
    let keys = JsonKeys::new(ExtraLabels::none());
    let hasher = KeyHasher::new(HASHER_SEED);
    Pass::new(ROWS as usize, move || {
        let decoded = json_lines::decode(text.as_bytes(), Start::default(), &hasher, &keys);
        assert_eq!(decoded.expect("good JSON").batch.rows.len(), ROWS as usize);
    })
}

fn hash_key() -> Pass {
    let bytes = vec![7u8; 4096];
    let hasher = KeyHasher::new(HASHER_SEED);
    Pass::new(1000, move || {
        for start in 0..1000 {
            black_box(hasher.hash(black_box(&bytes[start..start + 240]), 5));
        }
    })
}

fn answer_value() -> Pass {
    let mut out = Vec::with_capacity(1 << 16);
    Pass::new(1000, move || {
        out.clear();
        for idx in 0..1000u32 {
            prom_json::push_value(&mut out, f64::from(idx) / 7.0);
        }
        black_box(&out);
    })
}
