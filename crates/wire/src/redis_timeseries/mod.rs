//! A key of RedisTimeSeries as its module (`TSDB-TYPE`) writes it to dump files: words, one after the other.
//!
//! ```text
//! name │ retention │ bytes of a chunk │ options │ last time, last value │ samples │ policy │ source
//!      │ labels: count { name value } │ rules: count { target duration .. state }
//!      │ chunks: count { their heads, their bytes }        before version 2: samples: count { time value }
//! ```
//! Versions 0 to 9 are known; each has more words than the one before. What the words are framed by, a dump's
//! reader knows: here they come one by one. Bytes of chunks are decoded in `chunk`.

mod chunk;

use crate::Error;
use crate::remote_write::encode::MillisSample;

/// The newest version that is known.
pub const VERSION_MAX: u16 = 9;
/// Labels of a key, and rules that it has.
const LABELS_MAX: u64 = 1 << 12;
/// Bytes of all labels of a key.
const LABELS_SIZE_MAX: usize = 1 << 20;
const RULES_MAX: u64 = 1 << 16;
/// Samples of the oldest versions, which have no chunks, that are handed on at once.
const SAMPLES_AT_ONCE: usize = 8 << 10;
/// Since which version there are chunks; policies; an average's overflow; times that buckets are aligned to;
/// no word of a sum's beginning; bounds of what is ignored; buckets that may have no valid sample.
const CHUNKS: u16 = 2;
const POLICY: u16 = 3;
const OVERFLOW: u16 = 4;
const ALIGNMENT: u16 = 6;
const NO_RESET: u16 = 7;
const IGNORE: u16 = 8;
const VALIDITY: u16 = 9;

/// A word of a module's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// A whole number.
    Number(u64),
    /// A float.
    Double(f64),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// What a key is, beside its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// How long samples are kept, in milliseconds behind the newest; 0 for ever.
    pub retention_ms: u64,
    /// What becomes of samples with the same time, as `DUPLICATE_POLICY` names it; nothing where the server
    /// decides.
    pub policy: &'static str,
    /// The time of the newest sample, in milliseconds; none where the version does not say it.
    pub last_ms: Option<u64>,
    /// Pairs of names and values.
    pub labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// How many rules it has, by which other keys are made of it.
    pub rules: u64,
}

/// What gives the next word; none at the end.
pub type Next<'a, E> = dyn FnMut() -> Result<Option<Word>, E> + 'a;
/// What takes samples, oldest first, with what the key is.
pub type Each<'a, E> = dyn FnMut(&About, Vec<MillisSample>) -> Result<(), E> + 'a;

/// Reads a key of that version; hands on its samples a chunk at a time.
///
/// # Errors
/// As those who give and take, and when the words are not those of a key: the place is a word's number.
pub fn read<E: From<Error>>(
    version: u16,
    next: &mut Next<'_, E>,
    each: &mut Each<'_, E>,
) -> Result<About, E> {
    let mut words = Words { next, at: 0 };
    if VERSION_MAX < version {
        return Err(words.wrong("a version of 0 to 9"));
    }
    let mut about = About::default();
    // The name that it had when it was made: RENAME does not change it.
    words.bytes()?;
    about.retention_ms = words.number()?;
    words.number()?;
    let is_plain = 0 < version && words.number()? & 1 == 1;
    if CHUNKS <= version {
        let last = words.number()?;
        words.double()?;
        about.last_ms = (words.number()? != 0).then_some(last);
        if POLICY <= version {
            about.policy = policy(words.number()?).ok_or_else(|| words.wrong("a policy"))?;
        }
        if words.number()? != 0 {
            words.bytes()?;
        }
    }
    if IGNORE <= version {
        words.number()?;
        words.double()?;
    }
    let mut labels_size = 0;
    for _ in 0..words.count(LABELS_MAX, "up to 4096 labels")? {
        let label = (words.bytes()?, words.bytes()?);
        labels_size += label.0.len() + label.1.len();
        if LABELS_SIZE_MAX < labels_size {
            return Err(words.wrong("up to 1 MiB of labels"));
        }
        about.labels.push(label);
    }
    about.rules = words.count(RULES_MAX, "up to 65536 rules")?;
    for _ in 0..about.rules {
        rule(&mut words, version)?;
    }
    if version < CHUNKS {
        samples(&mut words, &about, each)?;
    } else {
        let mut after = None;
        for _ in 0..words.number()? {
            let samples = match is_plain {
                true => plain(&mut words)?,
                false => compressed(&mut words)?,
            };
            let Some((first, last)) = samples.first().zip(samples.last()) else { continue };
            if after.is_some_and(|after| first.millis <= after) {
                return Err(words.wrong("chunks in the order of their times"));
            }
            after = Some(last.millis);
            each(&about, samples)?;
        }
    }
    match words.try_next()? {
        None => Ok(about),
        Some(_) => Err(words.wrong("the end of the key")),
    }
}

/// The words of a key.
struct Words<'w, 'n, E> {
    next: &'w mut Next<'n, E>,
    /// How many there were.
    at: usize,
}

impl<E: From<Error>> Words<'_, '_, E> {
    fn wrong(&self, reason: &'static str) -> E {
        Error::malformed("word of TSDB-TYPE", self.at, reason).into()
    }

    fn try_next(&mut self) -> Result<Option<Word>, E> {
        self.at += 1;
        (self.next)()
    }

    fn number(&mut self) -> Result<u64, E> {
        match self.try_next()? {
            Some(Word::Number(number)) => Ok(number),
            _ => Err(self.wrong("a whole number")),
        }
    }

    fn double(&mut self) -> Result<f64, E> {
        match self.try_next()? {
            Some(Word::Double(double)) => Ok(double),
            _ => Err(self.wrong("a float")),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, E> {
        match self.try_next()? {
            Some(Word::Bytes(bytes)) => Ok(bytes),
            _ => Err(self.wrong("bytes")),
        }
    }

    fn count(&mut self, max: u64, reason: &'static str) -> Result<u64, E> {
        match self.number()? {
            count if count <= max => Ok(count),
            _ => Err(self.wrong(reason)),
        }
    }
}

/// The name of a policy; nothing for that of the server.
fn policy(number: u64) -> Option<&'static str> {
    const NAMES: [&str; 7] = ["", "block", "last", "first", "min", "max", "sum"];
    NAMES.get(usize::try_from(number).ok()?).copied()
}

/// Passes over a rule: what becomes of it, whoever copies decides.
fn rule<E: From<Error>>(words: &mut Words<'_, '_, E>, version: u16) -> Result<(), E> {
    words.bytes()?;
    words.number()?;
    if ALIGNMENT <= version {
        words.number()?;
    }
    let kind = words.number()?;
    words.number()?;
    if VALIDITY <= version {
        words.number()?;
    }
    // What it has gathered of the bucket that is open.
    words.double()?;
    match kind {
        // The least, the greatest, the range.
        1 | 2 | 8 => {
            words.double()?;
            if version < ALIGNMENT {
                words.bytes()?;
            }
        }
        // The average.
        4 => {
            words.double()?;
            if OVERFLOW <= version {
                words.number()?;
            }
        }
        // The first.
        6 if POLICY <= version => drop(words.number()?),
        6 => {}
        // The sum, the count, the last, and the counts of later versions.
        3 | 5 | 7 | 14 | 15 => {
            if (POLICY..NO_RESET).contains(&version) {
                words.number()?;
            }
        }
        // Deviations and variances.
        9..=12 => {
            words.double()?;
            words.number()?;
        }
        // The average weighted by time.
        13 => {
            words.number()?;
            words.double()?;
            for _ in 0..7 {
                words.number()?;
            }
        }
        _ => return Err(words.wrong("an aggregation that is known")),
    }
    Ok(())
}

/// Samples of the oldest versions.
fn samples<E: From<Error>>(
    words: &mut Words<'_, '_, E>,
    about: &About,
    each: &mut Each<'_, E>,
) -> Result<(), E> {
    let mut found = Vec::new();
    for _ in 0..words.number()? {
        let (time, value) = (words.number()?, words.double()?);
        let Ok(millis) = i64::try_from(time) else { return Err(words.wrong("a time")) };
        found.push(MillisSample { millis, value });
        if found.len() == SAMPLES_AT_ONCE {
            each(about, std::mem::take(&mut found))?;
        }
    }
    match found.is_empty() {
        true => Ok(()),
        false => each(about, found),
    }
}

/// A chunk of samples as they are.
fn plain<E: From<Error>>(words: &mut Words<'_, '_, E>) -> Result<Vec<MillisSample>, E> {
    words.number()?;
    let (count, size) = (words.number()?, words.number()?);
    let bytes = words.bytes()?;
    if bytes.len() as u64 != size {
        return Err(words.wrong("a chunk of the bytes that it says"));
    }
    Ok(chunk::plain(&bytes, count)?)
}

/// A chunk of differences.
fn compressed<E: From<Error>>(words: &mut Words<'_, '_, E>) -> Result<Vec<MillisSample>, E> {
    let size = words.number()?;
    let head = chunk::Head {
        count: words.number()?,
        bits: words.number()?,
        first_value: words.number()?,
        first_time: words.number()?,
        last_time: words.number()?,
        last_delta: words.number()?,
        last_value: words.number()?,
    };
    // With which zeros a writer would go on.
    words.number()?;
    words.number()?;
    let bytes = words.bytes()?;
    if bytes.len() as u64 != size {
        return Err(words.wrong("a chunk of the bytes that it says"));
    }
    Ok(chunk::compressed(&head, &bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key in the words of a version, with a rule of that aggregation and what it has gathered.
    fn key(version: u16, rule: &[Word], samples: &[(i64, f64)]) -> Vec<Word> {
        use Word::{Double, Number};
        let bytes = |text: &str| Word::Bytes(text.as_bytes().to_vec());
        let mut words = vec![bytes("k"), Number(1000), Number(4096)];
        if 0 < version {
            words.push(Number(2));
        }
        if CHUNKS <= version {
            words.extend([Number(9), Double(1.5), Number(samples.len() as u64)]);
            if POLICY <= version {
                words.push(Number(2));
            }
            words.extend([Number(1), bytes("source")]);
        }
        if IGNORE <= version {
            words.extend([Number(0), Double(0.0)]);
        }
        words.extend([Number(1), bytes("city"), bytes("Cusco")]);
        words.push(Number(u64::from(!rule.is_empty())));
        words.extend(rule.iter().cloned());
        if version < CHUNKS {
            words.push(Number(samples.len() as u64));
            samples.iter().for_each(|(at, value)| {
                words.extend([Number(*at as u64), Double(*value)]);
            });
        } else {
            words.push(Number(1));
            let (head, data) = chunk::encode(samples);
            words.push(Number(data.len() as u64));
            let said = [head.count, head.bits, head.first_value, head.first_time, head.last_time];
            words.extend(said.map(Number));
            words.extend([head.last_delta, head.last_value, 32, 32].map(Number));
            words.push(Word::Bytes(data));
        }
        words
    }

    fn read_all(version: u16, words: Vec<Word>) -> Result<(About, Vec<(i64, f64)>), Error> {
        let mut words = words.into_iter();
        let mut found = Vec::new();
        let about = read(version, &mut || Ok(words.next()), &mut |about, samples| {
            assert_eq!(about.labels.len(), 1);
            found.extend(samples.iter().map(|one| (one.millis, one.value)));
            Ok(())
        })?;
        Ok((about, found))
    }

    const SAMPLES: [(i64, f64); 4] = [(5, 0.1), (6, 0.1), (8, -7.0), (9, 1.5)];

    #[test]
    fn labels_have_a_limit_of_bytes() {
        let labelled = |size: usize| {
            let mut words = key(VERSION_MAX, &[], &SAMPLES);
            let is_value = |word: &Word| matches!(word, Word::Bytes(text) if text == b"Cusco");
            let at = words.iter().position(is_value).expect("a label");
            words[at] = Word::Bytes(vec![b'x'; size - "city".len()]);
            read_all(VERSION_MAX, words)
        };
        labelled(LABELS_SIZE_MAX).expect("as many as may be");
        let error = labelled(LABELS_SIZE_MAX + 1).expect_err("one more").to_string();
        assert!(error.contains("up to 1 MiB of labels"), "{error}");
    }

    #[test]
    fn every_version_is_read() {
        for version in 0..=VERSION_MAX {
            let (about, found) = read_all(version, key(version, &[], &SAMPLES)).unwrap();
            assert_eq!(found, SAMPLES, "{version}");
            assert_eq!((about.retention_ms, about.rules), (1000, 0));
            assert_eq!(about.policy, if POLICY <= version { "last" } else { "" });
            assert_eq!(about.last_ms, (CHUNKS <= version).then_some(9));
            assert_eq!(about.labels[0].1, b"Cusco");
        }
        assert!(read_all(10, key(9, &[], &SAMPLES)).is_err());
    }

    #[test]
    fn rules_have_what_their_aggregation_gathers() {
        use Word::{Bytes, Double, Number};
        let rule = |version: u16, kind: u64, state: &[Word]| {
            let mut words = vec![Bytes(b"to".to_vec()), Number(60_000)];
            words.extend((ALIGNMENT <= version).then_some(Number(0)));
            words.extend([Number(kind), Number(0)]);
            words.extend((VALIDITY <= version).then_some(Number(1)));
            words.extend(state.iter().cloned());
            read_all(version, key(version, &words, &SAMPLES))
        };
        let good = |version, kind, state: &[Word]| {
            let (about, found) = rule(version, kind, state).unwrap();
            assert_eq!((about.rules, found.len()), (1, 4), "{version} {kind}");
        };
        let (double, number) = (Double(1.0), Number(1));
        good(5, 1, &[double.clone(), double.clone(), Bytes(b"\0".to_vec())]);
        good(6, 2, &[double.clone(), double.clone()]);
        good(2, 3, std::slice::from_ref(&double));
        good(3, 3, &[double.clone(), number.clone()]);
        good(9, 15, std::slice::from_ref(&double));
        good(3, 4, &[double.clone(), double.clone()]);
        good(4, 4, &[double.clone(), double.clone(), number.clone()]);
        good(9, 6, &[double.clone(), number.clone()]);
        good(9, 12, &[double.clone(), double.clone(), number.clone()]);
        let mut weighted = vec![double.clone(), number.clone(), double.clone()];
        weighted.extend((0..7).map(Number));
        good(9, 13, &weighted);
        let error = rule(9, 99, &[double, number]).unwrap_err().to_string();
        assert!(error.contains("aggregation"), "{error}");
    }

    #[test]
    fn what_is_no_key_is_an_error() {
        let good = key(9, &[], &SAMPLES);
        for size in 0..good.len() {
            assert!(read_all(9, good[..size].to_vec()).is_err(), "{size}");
        }
        let with = |at: usize, word: Word| {
            let mut words = good.clone();
            words[at] = word;
            read_all(9, words).unwrap_err().to_string()
        };
        assert!(with(7, Word::Number(7)).contains("policy"));
        assert!(with(12, Word::Number(u64::MAX)).contains("4096 labels"));
        assert!(with(15, Word::Number(u64::MAX)).contains("rules"));
        assert!(with(17, Word::Number(7)).contains("the bytes that it says"));
        assert!(with(22, Word::Number(7)).contains("last time"));
        let long = [good.clone(), vec![Word::Number(1)]].concat();
        assert!(read_all(9, long).unwrap_err().to_string().contains("the end of the key"));
    }
}
