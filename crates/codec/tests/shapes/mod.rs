//! Columns like those that clients send, and some that they do not; all from a seed.

use rng::Random;

/// What columns are drawn by.
pub trait Draws {
    /// A number below `end` from the upper bits, where `Random::below` takes the lower.
    fn within(&mut self, end: u64) -> u64;
    /// A float of 53 random bits in [0, 1).
    fn unit(&mut self) -> f64;
    /// A float of the normal distribution.
    fn normal(&mut self) -> f64;
}

impl Draws for Random {
    fn within(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// The marker by which Prometheus ends a series.
pub const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Makes the values of one slot.
pub type Slot = fn(&mut Random, usize) -> Vec<f64>;

/// The shapes of values, by name.
pub const VALUES: [(&str, Slot); 22] = [
    ("tsbs", tsbs),
    ("counter, 3 decimals", counter_of_decimals),
    ("counter of bytes", counter_of_bytes),
    ("counter of sectors", counter_of_sectors),
    ("steady counter", steady_counter),
    ("gauge, 2 decimals", gauge_of_decimals),
    ("constant per slot", constant_per_slot),
    ("constant", constant),
    ("up, then stale", up_then_stale),
    ("flapping", flapping),
    ("half stale", half_stale),
    ("full mantissa", full_mantissa),
    ("drifting doubles", drifting_doubles),
    ("32-bit floats", floats_of_32_bits),
    ("mixed magnitudes", mixed_magnitudes),
    ("integers over 2^53", integers_over_53_bits),
    ("thirds", thirds),
    ("specials", specials),
    ("any bits", any_bits),
    ("extremes", extremes),
    ("two extremes", two_extremes),
    ("constant, then an extreme", constant_then_extreme),
];

/// One such value from a wider range.
fn extreme(random: &mut Random) -> f64 {
    let sign = if random.within(2) == 0 { 1.0 } else { -1.0 };
    let power = random.within(65) as i32;
    let neighbour = random.within(5) as i64 - 2;
    match random.within(8) {
        0 => sign * 0.0,
        1 => sign * (2f64.powi(power) + neighbour as f64),
        2 => f64::from_bits(2f64.powi(power).to_bits().wrapping_add_signed(neighbour)) * sign,
        3 => (i64::MIN.wrapping_add(neighbour)) as f64,
        4 => f64::from_bits((i64::MIN as u64).wrapping_add_signed(neighbour)),
        5 => f64::from_bits((f64::INFINITY.to_bits()).wrapping_add_signed(neighbour)) * sign,
        6 => f64::from_bits(1u64 << random.within(64)),
        _ => sign * 10f64.powi(random.within(20) as i32),
    }
}

fn extremes(random: &mut Random, len: usize) -> Vec<f64> {
    (0..len).map(|_| extreme(random)).collect()
}

fn two_extremes(random: &mut Random, len: usize) -> Vec<f64> {
    let pair = [extreme(random), extreme(random)];
    (0..len).map(|_| pair[random.within(2) as usize]).collect()
}

fn constant_then_extreme(random: &mut Random, len: usize) -> Vec<f64> {
    let mut values = vec![extreme(random); len];
    if let Some(last) = values.last_mut() {
        *last = extreme(random);
    }
    values
}

fn walk(random: &mut Random, len: usize, step: impl Fn(&mut Random, f64) -> f64) -> Vec<f64> {
    let mut value = (random.unit() * 100.0).floor();
    let mut values = Vec::with_capacity(len);
    for _ in 0..len {
        value = step(random, value);
        values.push(value);
    }
    values
}

fn tsbs(random: &mut Random, len: usize) -> Vec<f64> {
    let walked = walk(random, len, |random, value| (value + random.normal()).clamp(0.0, 100.0));
    walked.into_iter().map(f64::trunc).collect()
}

fn counter_of_decimals(random: &mut Random, len: usize) -> Vec<f64> {
    let mut thousandths = random.within(10_000_000) as i64;
    let rate = random.within(20_000) as f64;
    let mut values = Vec::with_capacity(len);
    for _ in 0..len {
        thousandths += (rate * (1.0 + 0.1 * random.normal())).max(0.0) as i64;
        if random.within(2000) == 0 {
            thousandths = 0;
        }
        values.push(thousandths as f64 / 1000.0);
    }
    values
}

fn counter_of_bytes(random: &mut Random, len: usize) -> Vec<f64> {
    let start = (random.unit() * 1e12).floor();
    let rate = random.unit() * 1e6;
    let mut value = start;
    let mut values = Vec::with_capacity(len);
    for _ in 0..len {
        value += (rate * (1.0 + 0.3 * random.normal())).max(0.0).floor();
        values.push(value);
    }
    values
}

fn counter_of_sectors(random: &mut Random, len: usize) -> Vec<f64> {
    let bytes = counter_of_bytes(random, len);
    bytes.into_iter().map(|value| (value / 4096.0).floor() * 4096.0).collect()
}

fn steady_counter(random: &mut Random, len: usize) -> Vec<f64> {
    let (start, step) = (random.within(1_000_000) as f64, (1 + random.within(100)) as f64);
    (0..len).map(|i| start + step * i as f64).collect()
}

fn gauge_of_decimals(random: &mut Random, len: usize) -> Vec<f64> {
    let walked = walk(random, len, |random, value| value + 0.1 * random.normal());
    walked.into_iter().map(|value| (value * 100.0).round() / 100.0 + 0.0).collect()
}

fn constant_per_slot(random: &mut Random, len: usize) -> Vec<f64> {
    vec![random.within(1_000_000) as f64; len]
}

fn constant(_: &mut Random, len: usize) -> Vec<f64> {
    vec![0.25; len]
}

fn up_then_stale(random: &mut Random, len: usize) -> Vec<f64> {
    let mut values: Vec<f64> =
        (0..len).map(|_| if random.within(300) == 0 { 0.0 } else { 1.0 }).collect();
    if let Some(last) = values.last_mut() {
        *last = f64::from_bits(STALE);
    }
    values
}

fn flapping(random: &mut Random, len: usize) -> Vec<f64> {
    (0..len).map(|_| random.within(2) as f64).collect()
}

fn half_stale(random: &mut Random, len: usize) -> Vec<f64> {
    let stale = f64::from_bits(STALE);
    (0..len).map(|_| if random.within(2) == 0 { stale } else { random.within(50) as f64 }).collect()
}

fn full_mantissa(random: &mut Random, len: usize) -> Vec<f64> {
    (0..len).map(|_| random.unit()).collect()
}

fn drifting_doubles(random: &mut Random, len: usize) -> Vec<f64> {
    walk(random, len, |random, value| value + 0.001 * random.normal())
}

fn floats_of_32_bits(random: &mut Random, len: usize) -> Vec<f64> {
    let walked = walk(random, len, |random, value| value + 0.01 * random.normal());
    walked.into_iter().map(|value| f64::from(value as f32)).collect()
}

fn mixed_magnitudes(random: &mut Random, len: usize) -> Vec<f64> {
    (0..len).map(|_| random.normal() * 10f64.powi(random.within(40) as i32 - 20)).collect()
}

fn integers_over_53_bits(random: &mut Random, len: usize) -> Vec<f64> {
    (0..len).map(|_| (random.next() as i64 >> random.within(12)) as f64).collect()
}

fn thirds(random: &mut Random, len: usize) -> Vec<f64> {
    (0..len).map(|_| random.within(1000) as f64 / 3.0).collect()
}

fn specials(random: &mut Random, len: usize) -> Vec<f64> {
    let table = [
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(STALE),
        f64::from_bits(0xfff8_dead_beef_0001),
        f64::MIN_POSITIVE / 7.0,
        f64::from_bits(1),
        f64::MAX,
        f64::MIN,
        1.5,
    ];
    (0..len).map(|_| table[random.within(table.len() as u64) as usize]).collect()
}

fn any_bits(random: &mut Random, len: usize) -> Vec<f64> {
    (0..len).map(|_| f64::from_bits(random.next())).collect()
}

/// Makes the timestamps of some slots.
pub type Times = fn(&mut Random, &[u32]) -> Vec<i64>;

/// The shapes of timestamps, by name.
pub const TIMESTAMPS: [(&str, Times); 6] = [
    ("grid", grid),
    ("three grids", three_grids),
    ("own phase", own_phase),
    ("jitter", jitter),
    ("gaps", gaps),
    ("any", any_times),
];

const START: i64 = 1_700_000_000_000_000_000;
const MILLI: i64 = 1_000_000;

fn per_slot(lens: &[u32], mut slot: impl FnMut(usize, usize) -> Vec<i64>) -> Vec<i64> {
    lens.iter().enumerate().flat_map(|(i, &len)| slot(i, len as usize)).collect()
}

fn grid(_: &mut Random, lens: &[u32]) -> Vec<i64> {
    per_slot(lens, |_, len| (0..len as i64).map(|i| START + i * 10_000 * MILLI).collect())
}

fn three_grids(_: &mut Random, lens: &[u32]) -> Vec<i64> {
    per_slot(lens, |slot, len| {
        let phase = (slot as i64 % 3) * 1234 * MILLI;
        (0..len as i64).map(|i| START + phase + i * 15_000 * MILLI).collect()
    })
}

fn own_phase(random: &mut Random, lens: &[u32]) -> Vec<i64> {
    per_slot(lens, |_, len| {
        let phase = random.within(15_000) as i64 * MILLI;
        (0..len as i64).map(|i| START + phase + i * 15_000 * MILLI).collect()
    })
}

fn jitter(random: &mut Random, lens: &[u32]) -> Vec<i64> {
    per_slot(lens, |_, len| {
        let phase = random.within(15_000) as i64;
        let mut at = |i: i64| (phase + i * 15_000 + random.within(9) as i64 - 4) * MILLI;
        (0..len as i64).map(|i| START + at(i)).collect()
    })
}

fn gaps(random: &mut Random, lens: &[u32]) -> Vec<i64> {
    per_slot(lens, |_, len| {
        let mut at = START;
        let mut list = Vec::with_capacity(len);
        for _ in 0..len {
            at += if random.within(50) == 0 { 20_000 * MILLI } else { 10_000 * MILLI };
            list.push(at);
        }
        list
    })
}

fn any_times(random: &mut Random, lens: &[u32]) -> Vec<i64> {
    per_slot(lens, |_, len| {
        let mut list: Vec<i64> = (0..len).map(|_| random.next() as i64).collect();
        list.sort_unstable();
        list.dedup();
        while list.len() < len {
            list.push(list.last().map_or(0, |last| last + 1));
        }
        list
    })
}
