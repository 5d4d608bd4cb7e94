//! Rounds: the same load to each server in turn, and the medians.

use crate::median::median;
use anyhow::Result;

/// What one load came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Operations in a second.
    pub per_second: f64,
    /// Half of the answers came within so many milliseconds.
    pub p50_ms: f64,
    /// 99 of 100 answers did.
    pub p99_ms: f64,
    /// CPU of the server's process for an operation, in microseconds.
    pub cpu_us: f64,
}

/// Runs so many rounds of `measure` for so many servers, in alternating order, and returns each
/// server's medians and those of its figures over the last server's, round by round.
///
/// # Errors
/// When a measurement fails.
pub fn rounds(
    rounds: u64,
    servers: usize,
    mut measure: impl FnMut(usize) -> Result<Rate>,
) -> Result<Rounds> {
    let mut rates: Vec<Vec<Rate>> = vec![Vec::new(); servers];
    for round in 0..rounds {
        for step in 0..servers {
            // First, second; second, first: what gets slower with time does so for both.
            let server = if round % 2 == 0 { step } else { servers - 1 - step };
            rates[server].push(measure(server)?);
        }
    }
    Ok(Rounds { rates })
}

/// What the rounds came to, server by server.
pub struct Rounds {
    rates: Vec<Vec<Rate>>,
}

impl Rounds {
    /// A server's medians.
    pub fn medians(&self, server: usize) -> Rate {
        let of = |figure: fn(&Rate) -> f64| median(self.rates[server].iter().map(figure));
        Rate {
            per_second: of(|rate| rate.per_second),
            p50_ms: of(|rate| rate.p50_ms),
            p99_ms: of(|rate| rate.p99_ms),
            cpu_us: of(|rate| rate.cpu_us),
        }
    }

    /// The median of a figure of one server over that of another in the same round.
    pub fn ratio(&self, one: usize, other: usize, figure: fn(&Rate) -> f64) -> f64 {
        let pairs = self.rates[one].iter().zip(&self.rates[other]);
        median(pairs.map(|(one, other)| figure(one) / figure(other).max(1e-9)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_alternate_and_pairs_are_compared() {
        let mut order = Vec::new();
        let rounds = rounds(3, 2, |server| {
            order.push(server);
            let per_second = (order.len() * (server + 1)) as f64;
            Ok(Rate { per_second, ..Rate::default() })
        });
        let rounds = rounds.expect("no failure");
        assert_eq!(order, [0, 1, 1, 0, 0, 1]);
        // 1, 4, 5 and 4, 6, 12.
        assert_eq!(rounds.medians(0).per_second, 4.0);
        assert_eq!(rounds.ratio(0, 1, |rate| rate.per_second), 5.0 / 12.0);
    }
}
