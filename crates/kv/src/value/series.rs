//! A time series: what its key says of it. Its samples are elsewhere, with whoever keeps samples;
//! this room knows nothing of them.

use super::{Stored, boxed_variant, put_bytes, read_bytes, read_len};
use codec::bytes::{Reader, put_i64_zigzag, put_varint, unzigzag};

/// What becomes of a sample at a time that has one already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicatePolicy {
    /// It is refused.
    Block,
    /// The old one stays.
    First,
    /// The new one takes its place.
    Last,
    /// The smaller one stays.
    Min,
    /// The larger one stays.
    Max,
    /// They are added.
    Sum,
}

/// All policies, in the order of their numbers on disk.
const POLICIES: &[(DuplicatePolicy, &str)] = &[
    (DuplicatePolicy::Block, "block"),
    (DuplicatePolicy::First, "first"),
    (DuplicatePolicy::Last, "last"),
    (DuplicatePolicy::Min, "min"),
    (DuplicatePolicy::Max, "max"),
    (DuplicatePolicy::Sum, "sum"),
];

impl DuplicatePolicy {
    /// The policy of that name, in any case.
    pub fn parse(name: &[u8]) -> Option<DuplicatePolicy> {
        let found = POLICIES.iter().find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name));
        found.map(|(policy, _)| *policy)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        POLICIES.iter().find(|(policy, _)| *policy == self).map_or("block", |(_, name)| name)
    }
}

/// Labels in the order in which they were given.
pub type LabelList = Box<[(Box<str>, Box<str>)]>;

/// That another series gets aggregates of this one.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The key of that other one.
    pub target: Box<[u8]>,
    /// The name of what is computed.
    pub aggregator: Box<str>,
    /// How long a bucket is.
    pub bucket_ms: i64,
    /// Where one begins.
    pub align_ms: i64,
    /// Samples later than this count; none for all.
    pub after_ms: Option<i64>,
}

/// What is known of the newest sample without reading any. Not kept on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Newest {
    /// Nothing.
    #[default]
    Unknown,
    /// There is no sample.
    None,
    /// When and what.
    At(i64, f64),
}

/// A time series.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The key under which its samples are.
    pub name: Box<str>,
    /// Its labels.
    pub labels: LabelList,
    /// Other labels that it had while samples were added.
    pub past_labels: Vec<LabelList>,
    /// Samples so much older than the newest are not shown; 0 for none.
    pub retention_ms: i64,
    /// What becomes of a second sample at a time, if the series says so.
    pub policy: Option<DuplicatePolicy>,
    /// With [`Series::ignore_value`]: a sample so near to the one before is left out.
    pub ignore_ms: i64,
    /// See [`Series::ignore_ms`].
    pub ignore_value: f64,
    /// What clients asked for; only shown.
    pub chunk_size: u32,
    /// What clients asked for; only shown.
    pub is_uncompressed: bool,
    /// Whether there may be samples under the labels that it has now.
    pub is_sampled: bool,
    /// Whether somebody else's samples are under its labels, which are not to be deleted with it.
    pub is_shared: bool,
    /// The key of which this one gets aggregates.
    pub source: Option<Box<[u8]>>,
    /// Who gets aggregates of this one.
    pub rules: Vec<Rule>,
    /// What is known of the newest sample.
    pub newest: Newest,
    /// Bytes on the heap, as of [`Series::resize`].
    size: usize,
}

const UNCOMPRESSED: u8 = 1;
const SAMPLED: u8 = 1 << 1;
const SHARED: u8 = 1 << 2;
const HAS_SOURCE: u8 = 1 << 3;

impl Series {
    /// A series that keeps everything and has no labels.
    pub fn new(name: &str, chunk_size: u32) -> Series {
        let mut series = Series { name: name.into(), chunk_size, ..Series::default() };
        series.resize();
        series
    }

    /// Counts its bytes again. For who changed text in it.
    pub fn resize(&mut self) {
        const PAIR: usize = size_of::<(Box<str>, Box<str>)>() + 16;
        let of = |labels: &LabelList| {
            labels.iter().map(|(name, value)| PAIR + name.len() + value.len()).sum::<usize>()
        };
        let rules = self
            .rules
            .iter()
            .map(|rule| size_of::<Rule>() + rule.target.len() + rule.aggregator.len());
        self.size = size_of::<Series>()
            + self.name.len()
            + of(&self.labels)
            + self.past_labels.iter().map(of).sum::<usize>()
            + rules.sum::<usize>()
            + self.source.as_ref().map_or(0, |source| source.len());
    }
}

fn put_labels(out: &mut Vec<u8>, labels: &LabelList) {
    put_varint(out, labels.len() as u64);
    for (name, value) in labels {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}

fn read_text(reader: &mut Reader<'_>) -> Result<Box<str>, codec::Error> {
    let bytes = read_bytes(reader)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(reader.corrupt("text that is none")),
    }
}

fn read_labels(reader: &mut Reader<'_>) -> Result<LabelList, codec::Error> {
    let mut labels = Vec::new();
    for _ in 0..read_len(reader)? {
        labels.push((read_text(reader)?, read_text(reader)?));
    }
    Ok(labels.into())
}

fn read_f64(reader: &mut Reader<'_>) -> Result<f64, codec::Error> {
    let bytes = reader.slice(8)?;
    Ok(f64::from_le_bytes(bytes.try_into().unwrap_or_default()))
}

fn put_rule(out: &mut Vec<u8>, rule: &Rule) {
    put_bytes(out, &rule.target);
    put_bytes(out, rule.aggregator.as_bytes());
    put_i64_zigzag(out, rule.bucket_ms);
    put_i64_zigzag(out, rule.align_ms);
    // Times are not negative.
    put_i64_zigzag(out, rule.after_ms.unwrap_or(-1));
}

fn read_rule(reader: &mut Reader<'_>) -> Result<Rule, codec::Error> {
    let rule = Rule {
        target: read_bytes(reader)?.into(),
        aggregator: read_text(reader)?,
        bucket_ms: unzigzag(reader.varint()?),
        align_ms: unzigzag(reader.varint()?),
        after_ms: Some(unzigzag(reader.varint()?)).filter(|after| 0 <= *after),
    };
    match 0 < rule.bucket_ms {
        true => Ok(rule),
        false => Err(reader.corrupt("buckets without length")),
    }
}

impl Stored for Series {
    boxed_variant!(Series);

    fn encode(&self, out: &mut Vec<u8>) {
        let flags = [
            (UNCOMPRESSED, self.is_uncompressed),
            (SAMPLED, self.is_sampled),
            (SHARED, self.is_shared),
            (HAS_SOURCE, self.source.is_some()),
        ];
        out.push(flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).sum());
        let policy = POLICIES.iter().position(|(policy, _)| Some(*policy) == self.policy);
        out.push(policy.map_or(0, |at| at as u8 + 1));
        put_varint(out, u64::from(self.chunk_size));
        put_i64_zigzag(out, self.retention_ms);
        put_i64_zigzag(out, self.ignore_ms);
        out.extend_from_slice(&self.ignore_value.to_le_bytes());
        put_bytes(out, self.name.as_bytes());
        put_labels(out, &self.labels);
        put_varint(out, self.past_labels.len() as u64);
        self.past_labels.iter().for_each(|labels| put_labels(out, labels));
        if let Some(source) = &self.source {
            put_bytes(out, source);
        }
        put_varint(out, self.rules.len() as u64);
        self.rules.iter().for_each(|rule| put_rule(out, rule));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Series, codec::Error> {
        let flags = reader.u8()?;
        let policy = reader.u8()?;
        let mut series = Series {
            is_uncompressed: flags & UNCOMPRESSED != 0,
            is_sampled: flags & SAMPLED != 0,
            is_shared: flags & SHARED != 0,
            policy: match policy.checked_sub(1) {
                None => None,
                Some(at) => match POLICIES.get(usize::from(at)) {
                    Some((policy, _)) => Some(*policy),
                    None => return Err(reader.corrupt("unknown policy")),
                },
            },
            chunk_size: reader.varint_u32()?,
            retention_ms: unzigzag(reader.varint()?),
            ignore_ms: unzigzag(reader.varint()?),
            ignore_value: read_f64(reader)?,
            name: read_text(reader)?,
            labels: read_labels(reader)?,
            ..Series::default()
        };
        for _ in 0..read_len(reader)? {
            series.past_labels.push(read_labels(reader)?);
        }
        if flags & HAS_SOURCE != 0 {
            series.source = Some(read_bytes(reader)?.into());
        }
        for _ in 0..read_len(reader)? {
            series.rules.push(read_rule(reader)?);
        }
        series.resize();
        Ok(series)
    }

    fn heap_size(&self) -> usize {
        self.size
    }

    fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn comes_back_from_bytes() {
        let mut series = Series {
            name: "cpu".into(),
            labels: vec![("host".into(), "a".into()), ("core".into(), "1".into())].into(),
            past_labels: vec![Box::new([])],
            retention_ms: 5000,
            policy: Some(DuplicatePolicy::Sum),
            ignore_ms: 7,
            ignore_value: 0.5,
            chunk_size: 128,
            is_uncompressed: true,
            is_sampled: true,
            source: Some(b"raw"[..].into()),
            rules: vec![Rule {
                target: b"hourly"[..].into(),
                aggregator: "avg".into(),
                bucket_ms: 3_600_000,
                align_ms: 10,
                after_ms: None,
            }],
            ..Series::default()
        };
        series.resize();
        let mut bytes = Vec::new();
        series.clone().into_value().encode(&mut bytes);
        let value = Value::decode(&bytes).expect("own encoding");
        let read = Series::of(&value).expect("a series");
        assert_eq!(format!("{read:?}"), format!("{series:?}"));
        for end in 0..bytes.len() {
            assert!(Value::decode(&bytes[..end]).is_err(), "{end}");
        }
    }
}
