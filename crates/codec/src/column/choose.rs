//! Pure decisions from a look at a column's data: the order of differences, the decimal exponent.
//!
//! Decisions change how many bytes a column takes, never what comes back.

use super::Effort;
use super::bitpack;
use super::decimal;
use super::format::values::EXPONENT_MAX;
use super::layout::Layout;
use super::model::{ModelWriter, Modes};
use super::order::{Order, Parts};
use crate::bytes::zigzag;
use std::ops::Range;

/// Windows of a look, spread evenly.
const WINDOWS: usize = 4;
/// Columns of floats from this len on are encoded once, after a try on a sample.
const SAMPLE_COLUMN_MIN: usize = 1 << 14;
/// Values of one window of such a sample.
const SAMPLE_WINDOW_LEN: usize = 1024;
/// Values looked at to find the decimal exponent.
const EXPONENT_SAMPLES: usize = 64;

/// The order of differences that makes `ints` smallest.
pub fn order(ints: &[i64], layout: &Layout, effort: Effort) -> Order {
    // A look must cost little next to the encoding, and a model needs more data to show itself.
    let window_len = match effort {
        Effort::Fast => 64,
        Effort::Dense => 512,
    };
    let windows = windows(layout, window_len);
    let [zero, one, two] = Order::ALL.map(|order| Look::of(ints, layout, &windows, order));
    if effort == Effort::Fast {
        let best = if two.packed_bits < one.packed_bits { two } else { one };
        return if zero.packed_bits <= best.packed_bits { Order::Zero } else { best.order };
    }
    let best = if two.magnitude_bits() < one.magnitude_bits() { two } else { one };
    // Levels that pack to much more than differences do not win once modelled either; those that
    // do not may be few different numbers, of which only a model sees the advantage.
    if best.packed_bits * 3 / 2 + best.parts.residues.len() / 2 < zero.packed_bits
        || best.modelled_bits() <= zero.modelled_bits()
    {
        return best.order;
    }
    Order::Zero
}

/// Slots to look at: ranges of slots, of each of which at most the first samples count.
struct Windows {
    slots: Vec<Range<usize>>,
    slot_len_max: usize,
}

/// What some windows of a column take in one order.
struct Look {
    order: Order,
    parts: Parts,
    /// Bit-packed, in blocks that do not span windows.
    packed_bits: usize,
    /// First values and first differences alone.
    firsts_bits: usize,
}

impl Look {
    fn of(ints: &[i64], layout: &Layout, windows: &Windows, order: Order) -> Look {
        let mut look = Look { order, parts: Parts::default(), packed_bits: 0, firsts_bits: 0 };
        for window in &windows.slots {
            let start = look.parts.residues.len();
            look.parts.firsts.clear();
            look.parts.seconds.clear();
            for slot in window.clone() {
                let len = layout.len(slot).min(windows.slot_len_max);
                let samples = layout.samples_of(&(slot..slot + 1));
                let slot = &ints[samples.start..samples.start + len];
                look.parts.split(slot, std::iter::once(len), order);
            }
            look.firsts_bits += packed_bits(&look.parts.firsts) + packed_bits(&look.parts.seconds);
            look.packed_bits += packed_bits(&look.parts.residues[start..]);
        }
        look.packed_bits += look.firsts_bits;
        look
    }

    /// The bits that the residues' distances to their median need at least: less than what they
    /// take, but in step with it, and not moved by outliers.
    fn magnitude_bits(&self) -> usize {
        let mut sorted = self.parts.residues.clone();
        if sorted.is_empty() {
            return self.firsts_bits;
        }
        let middle = sorted.len() / 2;
        let median = *sorted.select_nth_unstable(middle).1;
        let bits = |&residue: &i64| 64 - zigzag(residue.wrapping_sub(median)).leading_zeros();
        self.firsts_bits + sorted.iter().map(bits).sum::<u32>() as usize
    }

    /// What the windows take with a model of their own, the model apart: it serves more than them.
    fn modelled_bits(&self) -> usize {
        let residues = &self.parts.residues;
        if residues.is_empty() {
            return self.firsts_bits;
        }
        let mut bytes = Vec::new();
        ModelWriter::fit(residues, vec![residues.len()], Modes::Plain).put_page(&mut bytes);
        self.firsts_bits + bytes.len() * 8
    }
}

/// Without headers: at this scale they are the same in every order.
fn packed_bits(values: &[i64]) -> usize {
    let mut bits = 0;
    for block in values.chunks(bitpack::BLOCK_LEN) {
        let (lowest, highest) = bitpack::range(block);
        bits += block.len() * bitpack::width(lowest, highest) as usize;
    }
    bits
}

/// Ranges of slots whose samples are looked at; of each slot at most the first `window_len`.
/// A window has two slots at least, for what they have in common is stored once.
fn windows(layout: &Layout, window_len: usize) -> Windows {
    let slots = layout.slots();
    let mut windows: Vec<Range<usize>> = Vec::with_capacity(WINDOWS);
    for window in 0..WINDOWS {
        let start = (slots * window / WINDOWS).max(windows.last().map_or(0, |last| last.end));
        let mut end = start;
        let mut samples = 0;
        while end < slots && (samples < window_len || end < start + 2) {
            samples += layout.len(end).min(window_len);
            end += 1;
        }
        if start < end {
            windows.push(start..end);
        }
    }
    Windows { slots: windows, slot_len_max: window_len }
}

/// Some values of a column, and the lens of their slots, to try encodings on. None when the
/// column is so short that it can be tried as a whole.
pub fn sample(values: &[f64], layout: &Layout) -> Option<(Vec<f64>, Vec<u32>)> {
    if values.len() < SAMPLE_COLUMN_MIN {
        return None;
    }
    let windows = windows(layout, SAMPLE_WINDOW_LEN);
    let (mut sample, mut lens) = (Vec::new(), Vec::new());
    for slot in windows.slots.into_iter().flatten() {
        let len = layout.len(slot).min(windows.slot_len_max);
        let start = layout.samples_of(&(slot..slot + 1)).start;
        sample.extend_from_slice(&values[start..start + len]);
        lens.push(len as u32);
    }
    Some((sample, lens))
}

/// The smallest exponent at which most of `values` are decimals; none when few are.
pub fn exponent(values: &[f64]) -> Option<u8> {
    let step = values.len().div_ceil(EXPONENT_SAMPLES).max(1);
    let (mut exponent, mut looked_at, mut misses) = (0, 0, 0);
    for &value in values.iter().step_by(step) {
        looked_at += 1;
        // Not finite: an exception at any exponent, and no sign that the others are no decimals.
        if !value.is_finite() {
            continue;
        }
        match (exponent..=EXPONENT_MAX).find(|&try_| decimal::mantissa(value, try_).is_some()) {
            Some(found) => exponent = found,
            None => misses += 1,
        }
    }
    (misses * 8 <= looked_at).then_some(exponent)
}
