//! Random rows. The same seed gives the same row, though not the one that VictoriaMetrics gives.

use super::super::{Argument, CallContext, Series};
use crate::error::Result;
use std::f64::consts::TAU;
use std::hash::{BuildHasher, Hasher, RandomState};

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 0, 1)?;
    let seed = match arguments.is_empty() {
        true => RandomState::new().build_hasher().finish(),
        false => context.integer(arguments, 0)? as u64,
    };
    let mut numbers = Numbers { state: seed };
    let next: fn(&mut Numbers) -> f64 = match context.name {
        "rand_normal" => Numbers::normal,
        "rand_exponential" => Numbers::exponential,
        _ => Numbers::uniform,
    };
    let row = (0..context.grid.len).map(|_| next(&mut numbers)).collect();
    Ok(vec![context.nameless(row)])
}

/// SplitMix64: every seed, 0 included, gives a good sequence.
struct Numbers {
    state: u64,
}

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// From 0 up to but without 1.
    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Of average 0 and deviation 1, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }

    /// Of rate 1.
    fn exponential(&mut self) -> f64 {
        -(-self.uniform()).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions() {
        let moments = |next: fn(&mut Numbers) -> f64| {
            let mut numbers = Numbers { state: 7 };
            let row: Vec<f64> = (0..20_000).map(|_| next(&mut numbers)).collect();
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
            (mean, variance)
        };
        let check = |(mean, variance): (f64, f64), expected: (f64, f64)| {
            assert!((mean - expected.0).abs() < 0.05, "{mean}");
            assert!((variance - expected.1).abs() < 0.05, "{variance}");
        };
        check(moments(Numbers::uniform), (0.5, 1.0 / 12.0));
        check(moments(Numbers::normal), (0.0, 1.0));
        check(moments(Numbers::exponential), (1.0, 1.0));
    }
}
