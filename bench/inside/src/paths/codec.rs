//! Columns to bytes and back, in both efforts.

use crate::path::{HotPath, Pass};
use ::codec::{Effort, Paging, TimestampsReader, ValuesReader, encode_timestamps, encode_values};
use rng::Random;
use std::hint::black_box;

/// Slots of a column: a full entity block.
const SLOTS: usize = 1024;
/// Samples of a slot: 12 minutes of one every ten seconds.
const SAMPLES: usize = 72;
/// Samples of a column.
const COLUMN: usize = SLOTS * SAMPLES;

/// The paths of this file.
pub const PATHS: &[HotPath] = &[
    HotPath {
        name: "encode-usage-fast",
        unit: "sample",
        about: "encode 1,024 slots of 72 whole percentages, fast form",
        prepare: || encode(usages(), Effort::Fast),
    },
    HotPath {
        name: "encode-usage-dense",
        unit: "sample",
        about: "the same, dense form",
        prepare: || encode(usages(), Effort::Dense),
    },
    HotPath {
        name: "decode-usage-fast",
        unit: "sample",
        about: "decode them, fast form",
        prepare: || decode(&usages(), Effort::Fast),
    },
    HotPath {
        name: "decode-usage-dense",
        unit: "sample",
        about: "decode them, dense form",
        prepare: || decode(&usages(), Effort::Dense),
    },
    HotPath {
        name: "encode-counter-fast",
        unit: "sample",
        about: "encode 1,024 slots of 72 values of counters with 3 decimals, fast form",
        prepare: || encode(counters(), Effort::Fast),
    },
    HotPath {
        name: "encode-counter-dense",
        unit: "sample",
        about: "the same, dense form",
        prepare: || encode(counters(), Effort::Dense),
    },
    HotPath {
        name: "decode-counter-dense",
        unit: "sample",
        about: "decode them, dense form",
        prepare: || decode(&counters(), Effort::Dense),
    },
    HotPath {
        name: "encode-times",
        unit: "sample",
        about: "encode timestamps with some milliseconds of jitter, dense form",
        prepare: encode_times,
    },
    HotPath { name: "decode-times", unit: "sample", about: "decode them", prepare: decode_times },
];

fn lens() -> Vec<u32> {
    vec![SAMPLES as u32; SLOTS]
}

/// Percentages that wander up and down, as those of TSBS.
fn usages() -> Vec<f64> {
    let mut random = Random(1);
    let mut values = Vec::with_capacity(COLUMN);
    for _ in 0..SLOTS {
        let mut usage = random.scaled(101) as i64;
        for _ in 0..SAMPLES {
            usage = (usage + random.scaled(3) as i64 - 1).clamp(0, 100);
            values.push(usage as f64);
        }
    }
    values
}

/// Seconds with three decimals, each slot with a rate of its own.
fn counters() -> Vec<f64> {
    let mut random = Random(2);
    let mut values = Vec::with_capacity(COLUMN);
    for _ in 0..SLOTS {
        let mut thousandths = random.scaled(10_000_000);
        let rate = 1 + random.scaled(20_000);
        for _ in 0..SAMPLES {
            thousandths += rate + random.scaled(1 + rate / 5);
            values.push(thousandths as f64 / 1000.0);
        }
    }
    values
}

fn times() -> Vec<i64> {
    let mut random = Random(3);
    let mut times = Vec::with_capacity(COLUMN);
    for _ in 0..SLOTS {
        let phase = 1_700_000_000_000 + random.scaled(15_000) as i64;
        let millis = (0..SAMPLES as i64).map(|i| phase + i * 15_000 + random.scaled(9) as i64);
        times.extend(millis.map(|millis| millis * 1_000_000));
    }
    times
}

fn encode(values: Vec<f64>, effort: Effort) -> Pass {
    let lens = lens();
    let mut bytes = Vec::with_capacity(8 * COLUMN);
    Pass::new(COLUMN, move || {
        bytes.clear();
        encode_values(&values, &lens, effort, &mut bytes);
        black_box(&bytes);
    })
}

fn decode(values: &[f64], effort: Effort) -> Pass {
    let lens = lens();
    let mut bytes = Vec::new();
    encode_values(values, &lens, effort, &mut bytes);
    let mut back = Vec::with_capacity(COLUMN);
    Pass::new(COLUMN, move || {
        back.clear();
        let reader = ValuesReader::open(&bytes, &lens, Paging::NEWEST).expect("just encoded");
        reader.read(0..SLOTS, &mut back).expect("just encoded");
        assert_eq!(back.len(), COLUMN);
    })
}

fn encode_times() -> Pass {
    let (times, lens) = (times(), lens());
    let mut bytes = Vec::with_capacity(8 * COLUMN);
    Pass::new(COLUMN, move || {
        bytes.clear();
        encode_timestamps(&times, &lens, Effort::Dense, &mut bytes);
        black_box(&bytes);
    })
}

fn decode_times() -> Pass {
    let mut bytes = Vec::new();
    encode_timestamps(&times(), &lens(), Effort::Dense, &mut bytes);
    let mut back = Vec::with_capacity(COLUMN);
    Pass::new(COLUMN, move || {
        back.clear();
        let reader = TimestampsReader::open(&bytes, Paging::NEWEST).expect("just encoded");
        reader.read(0..SLOTS, &mut back).expect("just encoded");
        assert_eq!(back.len(), COLUMN);
    })
}
