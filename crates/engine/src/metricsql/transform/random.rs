//! Random rows. The same seed gives the row that VictoriaMetrics gives, whose generator is that
//! of Go's `math/rand`.
//!
//! It adds the numbers 607 and 273 places back to get the next one, modulo 2^64. What it begins
//! with is the seed's numbers mixed with the state of the same generator after 7.8e12 numbers,
//! which nobody has to draw: the recurrence is linear, so the state so far on is a sum of
//! multiples of the first one, and the factors are those of a power of `x` modulo its polynomial.
//! Normal and exponential numbers are drawn by the ziggurat method of Marsaglia and Tsang.

use super::super::{Argument, CallContext, Series};
use crate::error::Result;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// How far back the two numbers are that make the next one.
const LENGTH: usize = 607;
const TAP: usize = 273;
/// Where the first number goes in the order of the seed's numbers.
const FIRST_PLACE: usize = LENGTH - TAP - 1;
/// Numbers drawn before the state that seeds are mixed with.
const DRAWN_BEFORE: u64 = 7_800_000_000_000;
/// The modulus of the generator that stretches a seed, and what stands for a seed of zero.
const SEED_MODULUS: i64 = (1 << 31) - 1;
const SEED_OF_ZERO: i64 = 89_482_311;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 0, 1)?;
    let seed = match arguments.is_empty() {
        true => RandomState::new().build_hasher().finish() as i64,
        false => to_seed(context.number(arguments, 0)?),
    };
    let mut numbers = Numbers::new(seed);
    let next: fn(&mut Numbers) -> f64 = match context.name {
        "rand_normal" => Numbers::normal,
        "rand_exponential" => Numbers::exponential,
        _ => Numbers::uniform,
    };
    let row = (0..context.grid.len).map(|_| next(&mut numbers)).collect();
    Ok(vec![context.nameless(row)])
}

/// The number without its fraction; what has no place in 64 bits is the smallest integer.
fn to_seed(value: f64) -> i64 {
    let is_inside = (i64::MIN as f64..-(i64::MIN as f64)).contains(&value);
    if is_inside { value as i64 } else { i64::MIN }
}

/// Numbers in the order in which they are drawn: the last 607, the oldest at `oldest`.
struct Numbers {
    last: Vec<u64>,
    oldest: usize,
}

impl Numbers {
    fn new(seed: i64) -> Numbers {
        let mut last = stretch(seed, 20);
        for (number, mixed) in last.iter_mut().zip(STATE_MIXED_IN.iter()) {
            *number ^= mixed;
        }
        Numbers { last: in_order(&last), oldest: 0 }
    }

    fn bits(&mut self) -> u64 {
        let tap = (self.oldest + LENGTH - TAP) % LENGTH;
        let next = self.last[self.oldest].wrapping_add(self.last[tap]);
        self.last[self.oldest] = next;
        self.oldest = (self.oldest + 1) % LENGTH;
        next
    }

    /// Bits 31 to 62, as the ziggurats take them.
    fn bits_32(&mut self) -> u32 {
        (self.bits() >> 31) as u32
    }

    /// From 0 up to but without 1.
    fn uniform(&mut self) -> f64 {
        loop {
            let number = (self.bits() & i64::MAX as u64) as f64 / (1_u64 << 63) as f64;
            if number < 1.0 {
                return number;
            }
        }
    }

    /// Of average 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        let ziggurat: &Ziggurat = &NORMAL;
        loop {
            let drawn = self.bits_32() as i32;
            let layer = (drawn & 0x7f) as usize;
            let x = f64::from(drawn) * f64::from(ziggurat.widths[layer]);
            if drawn.unsigned_abs() < ziggurat.sure[layer] {
                return x;
            }
            if layer == 0 {
                let tail = NORMAL_EDGE + self.normal_tail();
                return if 0 < drawn { tail } else { -tail };
            }
            if self.is_below(ziggurat, layer, (-0.5 * x * x).exp()) {
                return x;
            }
        }
    }

    /// How far beyond the ziggurat's edge a number is.
    fn normal_tail(&mut self) -> f64 {
        loop {
            let x = -self.uniform().ln() * (1.0 / NORMAL_EDGE);
            let y = -self.uniform().ln();
            if x * x <= y + y {
                return x;
            }
        }
    }

    /// Of rate 1.
    fn exponential(&mut self) -> f64 {
        let ziggurat: &Ziggurat = &EXPONENTIAL;
        loop {
            let drawn = self.bits_32();
            let layer = (drawn & 0xff) as usize;
            let x = f64::from(drawn) * f64::from(ziggurat.widths[layer]);
            if drawn < ziggurat.sure[layer] {
                return x;
            }
            if layer == 0 {
                return EXPONENTIAL_EDGE - self.uniform().ln();
            }
            if self.is_below(ziggurat, layer, (-x).exp()) {
                return x;
            }
        }
    }

    /// Whether a point in the part of a layer that the curve crosses is below the curve.
    fn is_below(&mut self, ziggurat: &Ziggurat, layer: usize, curve: f64) -> bool {
        let (low, high) = (ziggurat.heights[layer], ziggurat.heights[layer - 1]);
        low + self.uniform() as f32 * (high - low) < curve as f32
    }
}

/// 607 numbers out of a seed, each of three steps of a small generator that are `shift` bits apart.
fn stretch(seed: i64, shift: u32) -> Vec<u64> {
    let mut state = match seed.rem_euclid(SEED_MODULUS) {
        0 => SEED_OF_ZERO,
        state => state,
    };
    let mut step = || {
        state = state * 48_271 % SEED_MODULUS;
        state as u64
    };
    (0..20).for_each(|_| {
        step();
    });
    (0..LENGTH).map(|_| step() << (2 * shift) ^ step() << shift ^ step()).collect()
}

/// Numbers that stand in the order of a seed, in the order in which they are drawn.
fn in_order(numbers: &[u64]) -> Vec<u64> {
    (0..LENGTH).map(|idx| numbers[(LENGTH + FIRST_PLACE - idx) % LENGTH]).collect()
}

/// The state that seeds are mixed with, in the order of a seed.
static STATE_MIXED_IN: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut drawn = in_order(&stretch(1, 10));
    for idx in LENGTH..2 * LENGTH {
        drawn.push(drawn[idx - LENGTH].wrapping_add(drawn[idx - TAP]));
    }
    let factors = power_of_x(DRAWN_BEFORE);
    let number = |idx: usize| {
        let terms = factors.iter().zip(&drawn[idx..]);
        terms.fold(0_u64, |sum, (factor, number)| sum.wrapping_add(factor.wrapping_mul(*number)))
    };
    // The number at `idx` was written `idx` places behind where the last round ended.
    let end = (DRAWN_BEFORE % LENGTH as u64) as usize;
    let mut state = vec![0_u64; LENGTH];
    for idx in 0..LENGTH {
        state[(2 * LENGTH + FIRST_PLACE - end - idx) % LENGTH] = number(idx);
    }
    state
});

/// `x` to a power, modulo the recurrence: `x^607 = x^334 + 1`.
fn power_of_x(exponent: u64) -> Vec<u64> {
    let mut power = vec![0_u64; LENGTH];
    power[0] = 1;
    for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
        let is_set = exponent >> bit & 1 == 1;
        let mut square = vec![0_u64; 2 * LENGTH];
        for (i, a) in power.iter().enumerate() {
            let shift = i + usize::from(is_set);
            for (into, b) in square[shift..].iter_mut().zip(&power) {
                *into = into.wrapping_add(a.wrapping_mul(*b));
            }
        }
        for high in (LENGTH..square.len()).rev() {
            square[high - LENGTH] = square[high - LENGTH].wrapping_add(square[high]);
            square[high - TAP] = square[high - TAP].wrapping_add(square[high]);
        }
        square.truncate(LENGTH);
        power = square;
    }
    power
}

/// Layers of equal area below the curve of a distribution.
struct Ziggurat {
    /// Below this, a drawn number is below the curve for sure.
    sure: Vec<u32>,
    /// From a drawn number to the distribution's.
    widths: Vec<f32>,
    /// The curve at each layer's edge.
    heights: Vec<f32>,
}

/// Where the lowest layers end, and the area of a layer.
const NORMAL_EDGE: f64 = 3.442_619_855_899;
const NORMAL_AREA: f64 = 9.912_563_035_262_17e-3;
const EXPONENTIAL_EDGE: f64 = 7.697_117_470_131_05;
const EXPONENTIAL_AREA: f64 = 3.949_659_822_581_572e-3;

static NORMAL: LazyLock<Ziggurat> = LazyLock::new(|| {
    let curve = |x: f64| (-0.5 * x * x).exp();
    let inverse = |y: f64| (-2.0 * y.ln()).sqrt();
    ziggurat(128, (1_u64 << 31) as f64, (NORMAL_EDGE, NORMAL_AREA), curve, inverse)
});

static EXPONENTIAL: LazyLock<Ziggurat> = LazyLock::new(|| {
    let curve = |x: f64| (-x).exp();
    let inverse = |y: f64| -y.ln();
    ziggurat(256, (1_u64 << 32) as f64, (EXPONENTIAL_EDGE, EXPONENTIAL_AREA), curve, inverse)
});

/// The layers of a curve. Drawn numbers are below `scale`.
fn ziggurat(
    layers: usize,
    scale: f64,
    (edge, area): (f64, f64),
    curve: fn(f64) -> f64,
    inverse: fn(f64) -> f64,
) -> Ziggurat {
    let last = layers - 1;
    let base = area / curve(edge);
    let mut ziggurat =
        Ziggurat { sure: vec![0; layers], widths: vec![0.0; layers], heights: vec![0.0; layers] };
    ziggurat.sure[0] = (edge / base * scale) as u32;
    ziggurat.widths[0] = (base / scale) as f32;
    ziggurat.heights[0] = 1.0;
    ziggurat.widths[last] = (edge / scale) as f32;
    ziggurat.heights[last] = curve(edge) as f32;
    let mut outer = edge;
    for layer in (1..last).rev() {
        let inner = inverse(area / outer + curve(outer));
        ziggurat.sure[layer + 1] = (inner / outer * scale) as u32;
        ziggurat.widths[layer] = (inner / scale) as f32;
        ziggurat.heights[layer] = curve(inner) as f32;
        outer = inner;
    }
    ziggurat
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum, largest and smallest of the first 10,000 numbers of seed 1, as VictoriaMetrics gives
    /// them; enough to come by the ziggurats' edges and tails.
    #[test]
    fn many_numbers_are_those_observed() {
        let check = |next: fn(&mut Numbers) -> f64, expected: [f64; 3]| {
            let mut numbers = Numbers::new(1);
            let row: Vec<f64> = (0..10_000).map(|_| next(&mut numbers)).collect();
            let sum: f64 = row.iter().sum();
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let smallest = row.iter().copied().fold(f64::INFINITY, f64::min);
            for (found, expected) in [sum, largest, smallest].iter().zip(expected) {
                assert!((found - expected).abs() <= 1e-10 * expected.abs(), "{found} {expected}");
            }
        };
        check(
            Numbers::uniform,
            [4_974.604_695_166_006, 0.999_996_811_656_576_3, 9.729_857_456_683_671e-5],
        );
        check(
            Numbers::normal,
            [99.536_783_492_605_37, 3.798_048_653_298_912, -3.678_450_320_459_222],
        );
        check(
            Numbers::exponential,
            [9_997.408_178_932_386, 10.720_564_401_387_872, 4.826_056_275_355_345e-5],
        );
    }

    #[test]
    fn seeds_without_a_place_are_one() {
        assert_eq!(to_seed(-2.9), -2);
        for value in [f64::NAN, 1e300, -1e300, 9_223_372_036_854_775_808.0] {
            assert_eq!(to_seed(value), i64::MIN);
        }
    }
}
