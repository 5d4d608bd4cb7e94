//! The bytes of a HyperLogLog.
//!
//! ```text
//! head      "HYLL" │ encoding u8: 0 dense, 1 sparse │ 3 bytes │ count u64, highest bit: not known
//! dense     16,384 registers of 6 bits, the lowest bits first
//! sparse    runs that cover all registers:
//!           00llllll            l + 1 registers of 0
//!           01llllll llllllll   l + 1 registers of 0
//!           1vvvvvll            l + 1 registers of v + 1
//! ```
//!
//! The bytes come from clients too, who may set any string: nothing here relies on them.

use crate::murmur::murmur64a;

/// Registers.
pub const COUNT: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 14;
const REGISTER_BITS: usize = 6;
const HEAD_SIZE: usize = 16;
const DENSE_SIZE: usize = HEAD_SIZE + COUNT * REGISTER_BITS / 8;
/// The highest value of a register, as the hash has only so many bits.
const VALUE_MAX: usize = 64 - INDEX_BITS as usize + 1;
const HASH_SEED: u64 = 0xadc8_3b19;
const MAGIC: &[u8] = b"HYLL";
const ENCODING_AT: usize = 4;
const COUNT_AT: usize = 8;
/// In the last byte of the count: it is not known.
const IS_UNKNOWN: u8 = 0x80;

/// The largest sparse one, in bytes.
const SPARSE_SIZE_MAX: usize = 3000;
const SPARSE_VALUE_MAX: u8 = 32;
const SPARSE_RUN_MAX: usize = 4;
const ZERO_RUN_MAX: usize = 64;
/// Runs that are looked at for such as can be joined.
const JOINED_MAX: usize = 5;

/// The bytes are no HyperLogLog after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// How registers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// All of them.
    Dense,
    /// In runs.
    Sparse,
}

impl Encoding {
    /// That of bytes that are valid.
    pub fn of(bytes: &[u8]) -> Encoding {
        if bytes.get(ENCODING_AT) == Some(&0) { Encoding::Dense } else { Encoding::Sparse }
    }
}

/// One in which nothing was counted.
pub fn empty() -> Vec<u8> {
    let mut bytes = vec![0; HEAD_SIZE];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[ENCODING_AT] = 1;
    push_zeros(&mut bytes, COUNT);
    bytes
}

/// Whether bytes may be a HyperLogLog, as far as their head says.
pub fn is_valid(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
        && HEAD_SIZE <= bytes.len()
        && match bytes[ENCODING_AT] {
            0 => bytes.len() == DENSE_SIZE,
            encoding => encoding == 1,
        }
}

/// The register of an element, and what it is raised to.
pub fn place_of(element: &[u8]) -> (usize, u8) {
    let hash = murmur64a(element, HASH_SEED);
    let index = hash as usize & (COUNT - 1);
    let rest = hash >> INDEX_BITS | 1 << (64 - INDEX_BITS);
    (index, u8::try_from(rest.trailing_zeros() + 1).unwrap_or(0))
}

// ---- the count that is kept ----

/// The count, if it is known.
pub fn known_count(bytes: &[u8]) -> Option<i64> {
    let (count, _) = bytes.get(COUNT_AT..)?.split_first_chunk()?;
    i64::try_from(u64::from_le_bytes(*count)).ok()
}

/// Keeps a count.
pub fn keep_count(bytes: &mut [u8], count: i64) {
    bytes[COUNT_AT..HEAD_SIZE].copy_from_slice(&count.to_le_bytes());
}

/// Notes that the count is not known any more.
pub fn forget_count(bytes: &mut [u8]) {
    bytes[HEAD_SIZE - 1] |= IS_UNKNOWN;
}

// ---- dense ----

fn dense_value(bytes: &[u8], index: usize) -> u8 {
    let (at, shift) = (HEAD_SIZE + index * REGISTER_BITS / 8, index * REGISTER_BITS % 8);
    let low = bytes.get(at).copied().unwrap_or(0);
    let high = bytes.get(at + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([low, high]) >> shift & 0x3f) as u8
}

fn set_dense(bytes: &mut [u8], index: usize, value: u8) {
    let (at, shift) = (HEAD_SIZE + index * REGISTER_BITS / 8, index * REGISTER_BITS % 8);
    let [low, high] = (u16::from(value) << shift).to_le_bytes();
    let [low_mask, high_mask] = (0x3f_u16 << shift).to_le_bytes();
    for (at, bits, mask) in [(at, low, low_mask), (at + 1, high, high_mask)] {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = *byte & !mask | bits;
        }
    }
}

/// Makes a sparse one dense.
pub fn make_dense(bytes: &mut Vec<u8>) -> Result<(), Corrupt> {
    if Encoding::of(bytes) == Encoding::Dense {
        return Ok(());
    }
    let mut registers = Registers::default();
    registers.merge(bytes)?;
    let mut dense = vec![0; DENSE_SIZE];
    dense[..HEAD_SIZE].copy_from_slice(&bytes[..HEAD_SIZE]);
    dense[ENCODING_AT] = 0;
    for (index, value) in registers.set() {
        set_dense(&mut dense, index, value);
    }
    *bytes = dense;
    Ok(())
}

// ---- sparse ----

/// Registers of the same value, one behind the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    value: u8,
    len: usize,
    /// Bytes of it.
    size: usize,
}

/// The run that bytes begin with.
fn run_at(bytes: &[u8]) -> Option<Run> {
    match bytes {
        [byte, ..] if byte & 0x80 != 0 => {
            Some(Run { value: (byte >> 2 & 0x1f) + 1, len: usize::from(byte & 3) + 1, size: 1 })
        }
        [byte, ..] if byte & 0x40 == 0 => {
            Some(Run { value: 0, len: usize::from(byte & 0x3f) + 1, size: 1 })
        }
        [high, low, ..] => {
            let len = usize::from(u16::from_be_bytes([high & 0x3f, *low])) + 1;
            Some(Run { value: 0, len, size: 2 })
        }
        _ => None,
    }
}

fn push_zeros(out: &mut Vec<u8>, len: usize) {
    match len.checked_sub(1) {
        None => {}
        Some(less) if len <= ZERO_RUN_MAX => out.push(less as u8),
        Some(less) => {
            let [high, low] = (less as u16).to_be_bytes();
            out.extend_from_slice(&[0x40 | high, low]);
        }
    }
}

/// The run of so many registers, none for no register.
fn push_run(out: &mut Vec<u8>, value: u8, len: usize) {
    match len {
        0 => {}
        _ if value == 0 => push_zeros(out, len),
        _ => out.push(0x80 | (value - 1) << 2 | (len - 1) as u8),
    }
}

/// Raises a register to a value, if it is lower. Returns whether it was.
pub fn raise(bytes: &mut Vec<u8>, index: usize, value: u8) -> Result<bool, Corrupt> {
    match Encoding::of(bytes) {
        Encoding::Dense => {
            let is_lower = dense_value(bytes, index) < value;
            if is_lower {
                set_dense(bytes, index, value);
            }
            Ok(is_lower)
        }
        Encoding::Sparse => raise_sparse(bytes, index, value),
    }
}

fn raise_sparse(bytes: &mut Vec<u8>, index: usize, value: u8) -> Result<bool, Corrupt> {
    if SPARSE_VALUE_MAX < value {
        make_dense(bytes)?;
        return raise(bytes, index, value);
    }
    let (mut at, mut previous, mut first) = (HEAD_SIZE, HEAD_SIZE, 0);
    let run = loop {
        let run = run_at(&bytes[at..]).ok_or(Corrupt)?;
        if index < first + run.len {
            break run;
        }
        (previous, at, first) = (at, at + run.size, first + run.len);
    };
    if value <= run.value {
        return Ok(false);
    }
    let mut split = Vec::with_capacity(5);
    push_run(&mut split, run.value, index - first);
    push_run(&mut split, value, 1);
    push_run(&mut split, run.value, first + run.len - 1 - index);
    if run.size < split.len() && SPARSE_SIZE_MAX < bytes.len() + split.len() - run.size {
        make_dense(bytes)?;
        return raise(bytes, index, value);
    }
    bytes.splice(at..at + run.size, split);
    join_runs(bytes, previous);
    forget_count(bytes);
    Ok(true)
}

/// Joins runs of the same value among the next few.
fn join_runs(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOINED_MAX {
        let Some(run) = bytes.get(at..).and_then(run_at) else { return };
        let next = bytes.get(at + run.size..).and_then(run_at);
        let joined = next
            .filter(|next| 0 < run.value && next.value == run.value)
            .map(|next| next.len + run.len)
            .filter(|len| *len <= SPARSE_RUN_MAX);
        let Some(len) = joined else {
            at += run.size;
            continue;
        };
        bytes.remove(at);
        bytes[at] = 0x80 | (run.value - 1) << 2 | (len - 1) as u8;
    }
}

/// The runs of a sparse one as text, for who looks for errors.
pub fn decode(bytes: &[u8]) -> Option<String> {
    if Encoding::of(bytes) == Encoding::Dense {
        return None;
    }
    let (mut text, mut at) = (String::new(), HEAD_SIZE);
    while let Some(run) = bytes.get(at..).and_then(run_at) {
        text += &match run {
            Run { value: 0, len, size: 1 } => format!("z:{len} "),
            Run { value: 0, len, .. } => format!("Z:{len} "),
            Run { value, len, .. } => format!("v:{value},{len} "),
        };
        at += run.size;
    }
    Some(text.trim_end().to_owned())
}

// ---- all registers ----

/// The highest values of registers among several HyperLogLogs.
pub struct Registers(Vec<u8>);

impl Default for Registers {
    fn default() -> Registers {
        Registers(vec![0; COUNT])
    }
}

impl Registers {
    /// Raises them to those of one more.
    pub fn merge(&mut self, bytes: &[u8]) -> Result<(), Corrupt> {
        if Encoding::of(bytes) == Encoding::Dense {
            for (index, value) in self.0.iter_mut().enumerate() {
                *value = dense_value(bytes, index).max(*value);
            }
            return Ok(());
        }
        let (mut at, mut first) = (HEAD_SIZE, 0);
        while let Some(run) = bytes.get(at..).and_then(run_at) {
            let covered = self.0.get_mut(first..first + run.len).ok_or(Corrupt)?;
            covered.iter_mut().for_each(|value| *value = run.value.max(*value));
            (at, first) = (at + run.size, first + run.len);
        }
        if first == COUNT { Ok(()) } else { Err(Corrupt) }
    }

    /// All of them.
    pub fn values(&self) -> &[u8] {
        &self.0
    }

    /// Those that are not 0.
    pub fn set(&self) -> impl Iterator<Item = (usize, u8)> {
        self.0.iter().copied().enumerate().filter(|(_, value)| 0 < *value)
    }
}

/// How many elements were counted, about: Ertl's estimator, "New cardinality estimation algorithms
/// for HyperLogLog sketches" (2017), algorithm 6.
pub fn count(registers: &Registers) -> i64 {
    let mut histogram = [0_u32; 64];
    for value in registers.values() {
        histogram[usize::from(value & 0x3f)] += 1;
    }
    let all = COUNT as f64;
    let mut sum = all * tau((all - f64::from(histogram[VALUE_MAX])) / all);
    for &with_value in histogram[1..VALUE_MAX].iter().rev() {
        sum = (sum + f64::from(with_value)) * 0.5;
    }
    sum += all * sigma(f64::from(histogram[0]) / all);
    (ALPHA * all * all / sum).round() as i64
}

/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_and_dense_count_alike() {
        let (mut sparse, mut dense) = (empty(), empty());
        make_dense(&mut dense).expect("an empty one");
        for element in 0..20_000_u32 {
            let (index, value) = place_of(&element.to_le_bytes());
            let raised = raise(&mut sparse, index, value).expect("a valid one");
            assert_eq!(raised, raise(&mut dense, index, value).expect("a valid one"));
            if element % 500 == 0 {
                let (mut one, mut other) = (Registers::default(), Registers::default());
                one.merge(&sparse).expect("a valid one");
                other.merge(&dense).expect("a valid one");
                assert_eq!(one.values(), other.values());
                let error = count(&one) - i64::from(element + 1);
                assert!(error.abs() <= i64::from(element / 30 + 2), "{element}: {error}");
            }
        }
        assert_eq!(Encoding::of(&sparse), Encoding::Dense);
    }

    #[test]
    fn any_bytes_are_borne() {
        let mut random = rng::Random::seeded(7);
        for _ in 0..3_000 {
            let mut bytes = empty();
            bytes.truncate(HEAD_SIZE);
            bytes.extend((0..random.below(40)).map(|_| random.next() as u8));
            assert!(is_valid(&bytes));
            let _ = Registers::default().merge(&bytes);
            let _ = raise(&mut bytes, random.index(COUNT), 1 + random.below(50) as u8);
            let _ = decode(&bytes);
        }
    }
}
