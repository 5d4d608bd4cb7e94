//! Chunks of histograms whose counts are whole numbers, as Prometheus stores those that it scrapes. Read
//! back by [`super::histogram_chunk::decode_whole_chunk`].
//!
//! ```text
//! chunk    u16 samples, u8 flags, then bits: layout as chunks of float counts have it, samples
//! sample 0 int(time) uint(count) uint(zero_count) sum:64, each bucket int
//! others   how each differs from its step before: int(time) int(count) int(zero_count), xor(sum), each
//!          bucket int
//! ```
//! A bucket is how its count differs from that of the bucket before.

use super::bits::BitWriter;
use super::histogram_chunk::{CHUNK_SIZE_MAX, flags, goes_on, put_int, put_layout, put_uint};
use crate::narrow::whole;
use histogram::Histogram;

/// Up to here every whole number is a float.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Whether all counts are whole numbers, that a float tells apart.
pub fn is_whole(of: &Histogram) -> bool {
    let buckets = of.positive.iter().chain(&of.negative).map(|bucket| bucket.count);
    let mut counts = [of.count, of.zero_count].into_iter().chain(buckets);
    counts.all(|count| (0.0..=WHOLE_MAX).contains(&count) && count.trunc() == count)
}

/// A number and its last step.
#[derive(Clone, Copy)]
struct Stepping {
    value: i64,
    step: i64,
}

impl Stepping {
    fn at(value: i64) -> Stepping {
        Stepping { value, step: 0 }
    }

    /// How its step differs from the one before.
    fn to(&mut self, value: i64) -> i64 {
        let step = value.wrapping_sub(self.value);
        let change = step.wrapping_sub(self.step);
        *self = Stepping { value, step };
        change
    }
}

/// Time, count and count of zeros, then the buckets, each as it differs from the one before.
fn numbers(millis: i64, of: &Histogram) -> Vec<i64> {
    let mut all = vec![millis, whole(of.count), whole(of.zero_count)];
    for side in [&of.positive, &of.negative] {
        let mut before = 0;
        for bucket in side {
            let count = whole(bucket.count);
            all.push(count - before);
            before = count;
        }
    }
    all
}

/// Appends as many of the histograms as fit into one chunk, and returns how many: at least one of any. Times
/// rise, all counts are whole.
pub fn push_chunk(out: &mut Vec<u8>, histograms: &[(i64, &Histogram)], count_max: usize) -> usize {
    let Some(&(millis, first)) = histograms.first() else { return 0 };
    let start = out.len();
    out.extend_from_slice(&[0, 0, flags(first)]);
    let mut bits = BitWriter::new(out);
    put_layout(&mut bits, first);
    let mut known: Vec<Stepping> = numbers(millis, first).into_iter().map(Stepping::at).collect();
    for (at, number) in known.iter().enumerate() {
        match at {
            1 | 2 => put_uint(&mut bits, number.value as u64),
            _ => put_int(&mut bits, number.value),
        }
        if at == 2 {
            bits.put(first.sum.to_bits(), 64);
        }
    }
    let (mut window, mut count) = (None, 1usize);
    for pair in histograms.windows(2) {
        let &[(_, before), (millis, next)] = pair else { continue };
        let is_full = count_max <= count || CHUNK_SIZE_MAX <= bits.size() - start;
        // Of a series that has ended the buckets are not told, so none follows it.
        if is_full || before.is_stale() != next.is_stale() || !goes_on(before, next) {
            break;
        }
        let both = known.iter_mut().zip(numbers(millis, next));
        for (at, (known, number)) in both.enumerate() {
            put_int(&mut bits, known.to(number));
            if at == 2 {
                bits.put_xor(&mut window, before.sum.to_bits() ^ next.sum.to_bits());
            }
        }
        count += 1;
    }
    if let Some(head) = out.get_mut(start..start + 2) {
        head.copy_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
    }
    count
}
