//! Keys and values: as `redis-benchmark` makes them, as applications do, and such as nothing helps with.

use crate::random::{mix, mix_pair, unit};
use rng::below;
use std::io::Write as _;

/// What values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// 200 times the same letter, as `redis-benchmark -d 200` has it.
    Constant,
    /// Sessions of a web application, as JSON.
    Sessions,
    /// 200 random bytes.
    Random,
    /// Letters, of 16 bytes to 16 KiB: many short ones, few long ones.
    Mixed,
}

impl Values {
    /// What tables call them.
    pub fn name(self) -> &'static str {
        match self {
            Values::Constant => "one letter, 200 B",
            Values::Sessions => "JSON sessions",
            Values::Random => "random bytes, 200 B",
            Values::Mixed => "mixed sizes",
        }
    }

    /// Appends the value of a key.
    pub fn put(self, number: u64, out: &mut Vec<u8>) {
        match self {
            Values::Constant => out.resize(out.len() + 200, b'x'),
            Values::Sessions => put_session(number, out),
            Values::Random => {
                for word in 0..25 {
                    out.extend_from_slice(&mix_pair(number, word).to_le_bytes());
                }
            }
            Values::Mixed => {
                // 2^4 to 2^14, small ones more often: half below 64 bytes.
                let steps = unit(mix(number)).powi(3) * 10.0;
                let size = 16.0 * steps.exp2();
                out.resize(out.len() + size as usize, b'a' + (number % 26) as u8);
            }
        }
    }
}

const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    "okhttp/4.12.0",
];
const PAGES: [&str; 6] =
    ["/", "/cart", "/search?q=shoes", "/account/orders", "/product/", "/checkout/payment"];

fn put_session(number: u64, out: &mut Vec<u8>) {
    let draw = |nth: u64, bound: u64| below(mix_pair(number, nth), bound);
    let agent = AGENTS[draw(1, 4) as usize];
    let page = PAGES[draw(2, 6) as usize];
    // Writing to memory does not fail.
    let _ = write!(
        out,
        "{{\"session_id\":\"{:016x}{:016x}\",\"user_id\":{},\"name\":\"user{}\",\"logged_in\":{},\
         \"ip\":\"10.{}.{}.{}\",\"user_agent\":\"{agent}\",\"created_at\":{},\"last_page\":\"{page}\",\
         \"cart\":[{{\"sku\":\"{:08x}\",\"quantity\":{}}}],\"locale\":\"en_GB\",\"csrf\":\"{:016x}\"}}",
        mix_pair(number, 3),
        mix_pair(number, 4),
        draw(5, 10_000_000),
        draw(6, 100_000),
        draw(7, 2) == 0,
        draw(8, 256),
        draw(9, 256),
        draw(10, 256),
        1_700_000_000 + draw(11, 50_000_000),
        mix_pair(number, 12) >> 32,
        1 + draw(13, 5),
        mix_pair(number, 14),
    );
}

/// Which keys are asked for.
#[derive(Clone, Debug)]
pub enum Choice {
    /// One after the other, from 0 on.
    Sequence,
    /// Each as often as any other.
    Uniform,
    /// Few of them often, as Zipf's law has it with an exponent of 0.99.
    Skewed(Zipf),
}

impl Choice {
    /// The key of the `nth` request of `keys`.
    pub fn pick(&self, nth: u64, keys: u64) -> u64 {
        match self {
            Choice::Sequence => nth % keys,
            Choice::Uniform => below(mix(nth), keys),
            // Often asked for, but anywhere among them.
            Choice::Skewed(zipf) => mix(zipf.rank(unit(mix(nth)))) % keys,
        }
    }
}

/// Ranks by Zipf's law, as YCSB draws them (Gray et al., "Quickly generating billion-record
/// synthetic databases").
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    theta: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// Of so many ranks.
    pub fn new(count: u64) -> Zipf {
        let theta = 0.99;
        let zeta_of = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
        let (zeta, zeta_2) = (zeta_of(count), zeta_of(2));
        let count = count as f64;
        let eta = (1.0 - (2.0 / count).powf(1.0 - theta)) / (1.0 - zeta_2 / zeta);
        Zipf { count, theta, zeta, eta }
    }

    /// The rank for a number in `0.0..1.0`; 0 is the most frequent.
    pub fn rank(&self, draw: f64) -> u64 {
        let scaled = draw * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let power = (self.eta * draw - self.eta + 1.0).powf(1.0 / (1.0 - self.theta));
        (self.count * power) as u64
    }
}

/// A key as `redis-benchmark -r` makes it.
pub fn put_key(number: u64, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(out, "key:{number:012}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_are_asked_for_often() {
        let zipf = Zipf::new(10_000);
        let mut counts = vec![0u32; 10_000];
        for nth in 0..100_000 {
            counts[zipf.rank(unit(mix(nth))) as usize] += 1;
        }
        let top: u32 = counts[..100].iter().sum();
        assert!((45_000..62_000).contains(&top), "{top} of 100,000 for the first hundred");
        assert!(counts[0] > counts[10] && counts[10] > counts[1000], "{:?}", &counts[..12]);
    }

    #[test]
    fn values_have_their_sizes() {
        let size = |values: Values, number| {
            let mut out = Vec::new();
            values.put(number, &mut out);
            out.len()
        };
        assert_eq!((size(Values::Constant, 1), size(Values::Random, 1)), (200, 200));
        let sizes: Vec<usize> = (0..10_000).map(|number| size(Values::Mixed, number)).collect();
        assert!(sizes.iter().all(|size| (16..=16 << 10).contains(size)));
        let small = sizes.iter().filter(|size| **size < 64).count();
        assert!((4000..7000).contains(&small), "{small} of 10,000 below 64 bytes");
        assert!((300..600).contains(&size(Values::Sessions, 7)), "{}", size(Values::Sessions, 7));
    }
}
