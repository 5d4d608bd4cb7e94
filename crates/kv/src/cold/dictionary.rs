//! Dictionaries: what values of one group of keys have in common, so that each takes less on disk.
//!
//! ```text
//! key ─► group: digits and long hexadecimal words become `#`
//! group   gathers samples ─► trained (keeper's thread) ─► file, synced ─► values are coded with it
//!         └ its ratio gets worse: gathers again, a new dictionary      └ no gain: group is off
//! ```
//!
//! A dictionary has a number and never changes. All of it happens when a segment is written, on the
//! keeper's thread: a `SET` pays nothing, and the record of a key says which dictionary it needs.

use super::meter::{Meter, Totals, nanoseconds_since};
use crate::error::{Error, Result};
use codec::checksum::crc32;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use vfs::{Vfs, write_atomic};
use zstd::bulk::Compressor;
use zstd::zstd_safe::{DCtx, DDict, get_error_name};

/// Groups that are told apart; keys of others share one.
const GROUPS_MAX: usize = 256;
/// Dictionaries there may be, old ones included: each takes memory for ever.
const DICTIONARIES_MAX: usize = 1024;
/// Bytes of values from which a dictionary is made at most, so that few large ones do as well.
const SAMPLES_SIZE_MAX: usize = 4 << 20;
/// Values that are too large to be like others.
const SAMPLE_SIZE_MAX: usize = 64 << 10;
/// Bytes of a dictionary.
const DICTIONARY_SIZE: usize = 16 << 10;
const LEVEL: i32 = 1;
/// Shorter values are kept as they are.
const CODED_SIZE_MIN: usize = 32;
/// Without a dictionary only longer ones are worth the work.
const PLAIN_CODED_SIZE_MIN: usize = 256;
/// Bytes of values after which a group is judged.
const JUDGED_SIZE: u64 = 4 << 20;
/// A group that keeps more than this of its bytes is left alone: a thousandth.
const WORTH_PERMILLE: u64 = 900;
/// A group whose values keep so much more than when its dictionary was new gets another: a hundredth.
const WORSE_PERCENT: u64 = 130;
/// How often a group that gains nothing is left out before it is tried again.
const OFF_VALUES: u64 = 1 << 20;

/// How a value is coded.
pub(crate) const CODING_PLAIN: u64 = 0;
/// With zstd alone.
pub(crate) const CODING_ZSTD: u64 = 1;
/// With the dictionary of this number and above.
pub(crate) const CODING_DICTIONARY: u64 = 2;

/// What was gained, for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompressionStats {
    /// Bytes of values before.
    pub plain_size: u64,
    /// Bytes after.
    pub coded_size: u64,
    /// Values that were tried.
    pub values: u64,
    /// Values that got shorter.
    pub coded: u64,
    /// Values that were too short to be tried.
    pub skipped: u64,
    /// Time of coding, in nanoseconds.
    pub ns: u64,
    /// Dictionaries that were trained.
    pub trained: u64,
    /// Time of training, in nanoseconds.
    pub train_ns: u64,
    /// Values that wait as samples of dictionaries.
    pub samples: u64,
}

/// Values coded with one dictionary since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct DictionaryStats {
    /// Values.
    pub values: u64,
    /// Bytes before.
    pub plain_size: u64,
    /// Bytes after.
    pub coded_size: u64,
}

/// Codes values group by group.
pub(crate) struct Groups {
    by_name: HashMap<Vec<u8>, Group>,
    plain: Option<Compressor<'static>>,
    next_number: u64,
    /// Values from which a dictionary is made.
    sample_count: usize,
    pub(crate) stats: CompressionStats,
    /// By number.
    pub(crate) by_dictionary: BTreeMap<u64, DictionaryStats>,
}

#[derive(Default)]
struct Group {
    state: Stage,
    /// Since the group was last judged.
    plain_size: u64,
    coded_size: u64,
    /// What its values kept when the dictionary was new, in thousandths.
    first_permille: Option<u64>,
}

/// What becomes of a group's values.
enum Stage {
    /// They are samples.
    Gathering(Vec<Vec<u8>>, usize),
    /// They are coded with a dictionary.
    Coded(u64, Box<Compressor<'static>>),
    /// They are kept as they are, for so many values.
    Off(u64),
}

impl Default for Stage {
    fn default() -> Stage {
        Stage::Gathering(Vec::new(), 0)
    }
}

/// A dictionary that was just trained, and that nothing is coded with yet.
pub(crate) struct Trained {
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
    group: Vec<u8>,
    compressor: Compressor<'static>,
}

impl Groups {
    /// Bytes of each group's values before and after, since it was last judged.
    pub(crate) fn sizes(&self) -> Vec<(Vec<u8>, u64, u64)> {
        let all = self.by_name.iter();
        all.map(|(name, group)| (name.clone(), group.plain_size, group.coded_size)).collect()
    }

    /// Groups whose next dictionary has that number and is made of so many values.
    pub(crate) fn new(next_number: u64, sample_count: usize) -> Groups {
        Groups {
            by_name: HashMap::new(),
            plain: compressor(&[]),
            next_number: next_number.max(CODING_DICTIONARY),
            sample_count,
            stats: CompressionStats::default(),
            by_dictionary: BTreeMap::new(),
        }
    }

    /// Codes a key's value, if it gets shorter: the coding and the bytes.
    pub(crate) fn code(&mut self, key: &[u8], value: &[u8]) -> Option<(u64, Vec<u8>)> {
        if value.len() < CODED_SIZE_MIN {
            self.stats.skipped += 1;
            return None;
        }
        let started = Instant::now();
        let coded = self.code_in_group(key, value);
        self.stats.ns += nanoseconds_since(started);
        let (plain_size, coded_size) = (
            value.len() as u64,
            coded.as_ref().map_or(value.len(), |(_, coded)| coded.len()) as u64,
        );
        self.stats.values += 1;
        self.stats.plain_size += plain_size;
        self.stats.coded_size += coded_size;
        self.stats.coded += u64::from(coded.is_some());
        if let Some((number, _)) = &coded
            && CODING_DICTIONARY <= *number
        {
            let one = self.by_dictionary.entry(*number).or_default();
            one.values += 1;
            one.plain_size += plain_size;
            one.coded_size += coded_size;
        }
        coded
    }

    fn code_in_group(&mut self, key: &[u8], value: &[u8]) -> Option<(u64, Vec<u8>)> {
        let is_full = GROUPS_MAX <= self.by_name.len();
        let mut name = group_of(key);
        if is_full && !self.by_name.contains_key(&name) {
            name.clear();
        }
        let group = self.by_name.entry(name).or_default();
        let (number, compressor) = match &mut group.state {
            Stage::Off(0) => {
                group.state = Stage::default();
                return None;
            }
            Stage::Off(left) => {
                *left -= 1;
                return None;
            }
            Stage::Gathering(samples, size) => {
                let has_room = *size < SAMPLES_SIZE_MAX && samples.len() < self.sample_count;
                if has_room && value.len() <= SAMPLE_SIZE_MAX {
                    self.stats.samples += 1;
                    *size += value.len();
                    samples.push(value.to_vec());
                }
                if value.len() < PLAIN_CODED_SIZE_MIN {
                    return None;
                }
                (CODING_ZSTD, self.plain.as_mut()?)
            }
            Stage::Coded(number, compressor) => (*number, compressor.as_mut()),
        };
        let coded = compressor.compress(value).ok().filter(|coded| coded.len() < value.len());
        if CODING_DICTIONARY <= number {
            let size = coded.as_ref().map_or(value.len(), Vec::len);
            group.note(value.len(), size);
        }
        coded.map(|coded| (number, coded))
    }

    /// Trains a dictionary for one group that has samples enough. Values are coded with it once the
    /// caller has made it durable and says so: [`Groups::adopt`].
    pub(crate) fn train(&mut self) -> Option<Trained> {
        if CODING_DICTIONARY + DICTIONARIES_MAX as u64 <= self.next_number {
            return None;
        }
        let sample_count = self.sample_count;
        let is_ready = |group: &Group| match &group.state {
            Stage::Gathering(samples, size) => {
                sample_count <= samples.len() || SAMPLES_SIZE_MAX <= *size
            }
            _ => false,
        };
        let (name, group) = self.by_name.iter_mut().find(|(_, group)| is_ready(group))?;
        let Stage::Gathering(samples, _) = std::mem::take(&mut group.state) else { return None };
        self.stats.samples -= samples.len() as u64;
        (group.plain_size, group.coded_size, group.first_permille) = (0, 0, None);
        group.state = Stage::Off(OFF_VALUES);
        // Values without anything in common make no dictionary.
        let started = Instant::now();
        let bytes = dictionary_of(&samples);
        self.stats.train_ns += nanoseconds_since(started);
        let bytes = bytes?;
        let compressor = compressor(&bytes)?;
        let number = self.next_number;
        self.next_number += 1;
        Some(Trained { number, bytes, group: name.clone(), compressor })
    }

    /// Has values coded with a dictionary, which is durable.
    pub(crate) fn adopt(&mut self, trained: Trained) {
        let Some(group) = self.by_name.get_mut(&trained.group) else { return };
        self.stats.trained += 1;
        group.state = Stage::Coded(trained.number, Box::new(trained.compressor));
    }
}

/// A dictionary of samples; where training finds none, as for values that are all alike, some of them
/// do as one.
fn dictionary_of(samples: &[Vec<u8>]) -> Option<Vec<u8>> {
    if let Ok(bytes) = zstd::dict::from_samples(samples, DICTIONARY_SIZE) {
        return Some(bytes);
    }
    let mut bytes = Vec::new();
    for sample in samples.iter().take(8) {
        bytes.extend_from_slice(sample.get(..sample.len().min(1024)).unwrap_or_default());
    }
    // Shorter content is taken for none.
    (8 <= bytes.len()).then_some(bytes)
}

impl Group {
    /// Notes what a value kept, and judges the group now and then.
    fn note(&mut self, plain_size: usize, coded_size: usize) {
        self.plain_size += plain_size as u64;
        self.coded_size += coded_size as u64;
        if self.plain_size < JUDGED_SIZE {
            return;
        }
        let permille = self.coded_size * 1000 / self.plain_size;
        (self.plain_size, self.coded_size) = (0, 0);
        let first = *self.first_permille.get_or_insert(permille);
        if WORTH_PERMILLE < permille {
            self.state = Stage::Off(OFF_VALUES);
        } else if first.max(50) * WORSE_PERCENT < permille * 100 {
            self.state = Stage::default();
        }
    }
}

/// The group of a key: its name with numbers and long hexadecimal words folded.
fn group_of(key: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(key.len().min(64));
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let mut rest = key;
    while let Some(first) = rest.first() {
        let size = rest.iter().take_while(|byte| is_word(byte)).count();
        let (word, after) = rest.split_at(size.max(1));
        rest = after;
        let is_hex = 8 <= word.len() && word.iter().all(u8::is_ascii_hexdigit);
        match is_word(first) {
            false => name.push(*first),
            true if is_hex => name.push(b'#'),
            true => fold_digits(word, &mut name),
        }
    }
    name.truncate(256);
    name
}

fn fold_digits(word: &[u8], name: &mut Vec<u8>) {
    for byte in word {
        match byte.is_ascii_digit() {
            false => name.push(*byte),
            true if name.last() == Some(&b'#') => {}
            true => name.push(b'#'),
        }
    }
}

/// Frames without what the record says anyway.
fn compressor(dictionary: &[u8]) -> Option<Compressor<'static>> {
    let mut compressor = Compressor::with_dictionary(LEVEL, dictionary).ok()?;
    compressor.include_checksum(false).ok()?;
    compressor.include_dictid(false).ok()?;
    compressor.include_contentsize(false).ok()?;
    Some(compressor)
}

thread_local! {
    /// What a thread decodes with, whatever the dictionary.
    static DECODER: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// The dictionaries that records on disk name. Cloned for who reads while others have the keys.
#[derive(Clone, Default)]
pub(crate) struct Dictionaries {
    by_number: HashMap<u64, Arc<DDict<'static>>>,
    /// Values that were decompressed for readers.
    decompressed: Arc<Meter>,
}

impl Dictionaries {
    /// Adds one.
    pub(crate) fn insert(&mut self, number: u64, bytes: &[u8]) -> std::io::Result<()> {
        let digested = DDict::try_create(bytes);
        let digested = digested.ok_or_else(|| std::io::Error::other("zstd does not take it"))?;
        self.by_number.insert(number, Arc::new(digested));
        Ok(())
    }

    /// Their numbers, in order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.by_number.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Values that were decompressed for readers, and their bytes afterwards.
    pub(crate) fn decompressed(&self) -> Totals {
        self.decompressed.totals()
    }

    /// As [`Dictionaries::decode`], and counts it.
    pub(crate) fn decode_metered(
        &self,
        coding: u64,
        coded: &[u8],
        plain_size: usize,
    ) -> std::result::Result<Vec<u8>, String> {
        let started = Instant::now();
        let plain = self.decode(coding, coded, plain_size)?;
        self.decompressed.add(plain.len(), started);
        Ok(plain)
    }

    /// What a value was before it was coded.
    pub(crate) fn decode(
        &self,
        coding: u64,
        coded: &[u8],
        plain_size: usize,
    ) -> std::result::Result<Vec<u8>, String> {
        let dictionary = match coding {
            CODING_ZSTD => None,
            _ => Some(self.by_number.get(&coding)),
        };
        let dictionary = dictionary
            .map(|found| found.ok_or_else(|| format!("dictionary {coding} is not there")));
        let dictionary = dictionary.transpose()?;
        let mut plain = Vec::with_capacity(plain_size);
        let decoded = DECODER.with_borrow_mut(|decoder| match dictionary {
            None => decoder.decompress(&mut plain, coded),
            Some(dictionary) => decoder.decompress_using_ddict(&mut plain, coded, dictionary),
        });
        let size =
            decoded.map_err(|code| format!("not coded as it says: {}", get_error_name(code)))?;
        match size == plain_size {
            true => Ok(plain),
            false => Err("of another size than it says".to_owned()),
        }
    }
}

/// The file of a dictionary: its bytes and their CRC-32.
pub(crate) fn dictionary_name(number: u64) -> String {
    format!("{number:08}.dict")
}

/// Writes a dictionary, durably, and reads it back.
pub(crate) fn write(vfs: &dyn Vfs, dir: &Path, trained: &Trained) -> Result<()> {
    let mut bytes = trained.bytes.clone();
    bytes.extend_from_slice(&crc32(&trained.bytes).to_le_bytes());
    let path = dir.join(dictionary_name(trained.number));
    write_atomic(vfs, &path, &bytes)?;
    // Values that it codes cannot be read without it.
    match read(vfs, dir, trained.number)? == trained.bytes {
        true => Ok(()),
        false => Err(Error::Corrupt { path, reason: "reads back differently".to_owned() }),
    }
}

/// Reads one.
pub(crate) fn read(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<Vec<u8>> {
    let path: PathBuf = dir.join(dictionary_name(number));
    let mut bytes = vfs.read(&path)?;
    let body = bytes
        .split_last_chunk::<4>()
        .filter(|(body, crc)| crc32(body) == u32::from_le_bytes(**crc));
    let Some(size) = body.map(|(body, _)| body.len()) else {
        return Err(Error::Corrupt { path, reason: "the checksum does not hold".to_owned() });
    };
    bytes.truncate(size);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_grouped() {
        for (key, group) in [
            ("key:000000012345", "key:#"),
            ("user:17:session:9f86d081884c7d65", "user:#:session:#"),
            ("a1b2", "a#b#"),
            ("550e8400-e29b-41d4-a716-446655440000", "#-e#b-#d#-a#-#"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&group_of(key.as_bytes())), group);
        }
    }

    #[test]
    fn a_group_learns_and_everything_comes_back() {
        let mut groups = Groups::new(0, 1000);
        let mut dictionaries = Dictionaries::default();
        let value = |n: u64| {
            format!(
                "{{\"user\":{},\"name\":\"user {n}\",\"roles\":[\"reader\",\"writer\"],\"active\":true}}",
                rng::mix(n)
            )
        };
        for round in 0..2 {
            let (mut plain, mut coded) = (0, 0);
            for n in 0..2000 {
                let value = value(n).into_bytes();
                plain += value.len();
                match groups.code(format!("s:{n}").as_bytes(), &value) {
                    None => coded += value.len(),
                    Some((coding, bytes)) => {
                        coded += bytes.len();
                        assert_eq!(dictionaries.decode(coding, &bytes, value.len()), Ok(value));
                    }
                }
                while let Some(trained) = groups.train() {
                    dictionaries.insert(trained.number, &trained.bytes).expect("memory");
                    groups.adopt(trained);
                }
            }
            println!("round {round}: {coded} of {plain}");
            let stats = groups.stats;
            assert_eq!(stats.values, 2000 * (round + 1));
            assert!(0 < stats.ns && 0 < stats.train_ns && stats.coded <= stats.values);
            assert!(stats.trained == 1 && stats.samples == 0, "{stats:?}");
            let used = groups.by_dictionary.values().fold((0, 0), |(values, size), one| {
                assert!(one.coded_size < one.plain_size, "{one:?}");
                (values + one.values, size + one.coded_size)
            });
            assert!(0 < used.0 && used.0 <= stats.coded && used.1 < stats.coded_size, "{used:?}");
            assert!(round == 0 || coded * 100 < plain * 50, "{coded} of {plain}");
        }
        let noise = |n: u64| (0..40).flat_map(|i| rng::mix(n * 40 + i).to_le_bytes()).collect();
        for n in 0..30_000u64 {
            let value: Vec<u8> = noise(n + 1);
            if let Some((coding, bytes)) = groups.code(b"noise", &value) {
                assert_eq!(dictionaries.decode(coding, &bytes, value.len()), Ok(value));
            }
            if let Some(trained) = groups.train() {
                dictionaries.insert(trained.number, &trained.bytes).expect("memory");
                groups.adopt(trained);
            }
        }
        let noisy = groups.by_name.get(b"noise".as_slice()).expect("a group");
        assert!(matches!(noisy.state, Stage::Off(_)), "what gains nothing is left alone");
    }
}
