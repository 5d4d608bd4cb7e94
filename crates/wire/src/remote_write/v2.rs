//! `io.prometheus.write.v2.Request` to rows.

use super::histograms::push_histogram;
use super::symbols::{symbol, text_of};
use super::{
    KEY_SIZE_MAX, METADATA_MAX, RemoteWriteKeys, Series, exemplars, kind, push_sample, push_start,
    refuse_key,
};
use crate::decoded::{Decoded, Growing, check_body_size};
use crate::narrow::body_offset;
use crate::protobuf::{Message, Value, put_varint};
use crate::{Error, Limit};
use model::limits::BODY_SIZE_MAX;
use model::{KeyHasher, METRIC_NAME, Metadata, MetricKind, Shape};
use std::borrow::Cow;
use std::collections::HashSet;

/// The content type's `proto` parameter.
pub const PROTO: &str = "io.prometheus.write.v2.Request";

/// Symbols of a request: four for each of as many samples as it may have. One takes two bytes of the
/// request and sixteen of memory.
pub const SYMBOLS_MAX: usize = 4 << 20;
/// References of one series that are kept: of more each pair has a byte of labels at least, so that
/// the labels are too large and refused.
const REFS_MAX: usize = KEY_SIZE_MAX;
const _: () = assert!(REFS_MAX.is_multiple_of(2));

/// Decodes an uncompressed request.
///
/// # Errors
/// The bytes are no such message, a symbol does not exist, or a limit is exceeded; nothing is
/// taken then.
pub fn decode<'a>(
    request: &'a [u8],
    hasher: &KeyHasher,
    keys: &'a RemoteWriteKeys,
) -> Result<Decoded<'a>, Error> {
    check_body_size(request)?;
    let fields: Vec<Box<str>> = vec!["".into()];
    let shape_hash = hasher.shape(keys.context(), &fields);
    let mut grown = Growing::default();
    grown.shapes.push(Shape { fields, hash: shape_hash });
    let mut reader = Request {
        symbols: symbols(request)?,
        hasher,
        shape_hash,
        grown,
        keys: Vec::new(),
        refs: Vec::new(),
        start_ms: 0,
        described: HashSet::new(),
        families: HashSet::new(),
    };
    reader.read(request)?;
    let decoded = reader.grown.finish(Cow::Owned(reader.keys), keys, None);
    Ok(Decoded { context: keys.context(), ..decoded })
}

/// All symbols, each with its length before it as in the request; they may stand before or behind
/// the series.
fn symbols(request: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let mut symbols = Vec::new();
    let mut message = Message::new(request);
    loop {
        let start = message.offset();
        let Some((number, field)) = message.next_field()? else { return Ok(symbols) };
        if number == 4 {
            field.bytes()?;
            if SYMBOLS_MAX <= symbols.len() {
                return Err(Error::LimitExceeded {
                    limit: Limit::Symbols,
                    value: symbols.len() as u64 + 1,
                    max: SYMBOLS_MAX as u64,
                });
            }
            let symbol = request.get(start..message.offset()).unwrap_or_default();
            // A length of its own must follow the tag, which has one byte here in practice.
            match symbol.split_first() {
                Some((&TAG_SYMBOLS, sized)) => symbols.push(sized),
                _ => return Err(Error::malformed("protobuf", start, "a short field tag")),
            }
        }
    }
}

/// Tag of `symbols`.
const TAG_SYMBOLS: u8 = 4 << 3 | 2;

/// What a series says of its metric: symbols and the kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Description {
    name: u32,
    help: u32,
    unit: u32,
    kind: i64,
}

/// One request while it is read.
struct Request<'a, 'h> {
    symbols: Vec<&'a [u8]>,
    hasher: &'h KeyHasher,
    shape_hash: u64,
    grown: Growing,
    /// The keys, put together in the form of version 1.0.
    keys: Vec<u8>,
    /// The symbols of the series being read.
    refs: Vec<u32>,
    /// Its start timestamp, 0 for none.
    start_ms: i64,
    /// What was already taken into the metadata.
    described: HashSet<Description>,
    /// The families in the metadata; of several descriptions of one the first is kept.
    families: HashSet<String>,
}

impl<'a> Request<'a, '_> {
    fn read(&mut self, request: &'a [u8]) -> Result<(), Error> {
        let mut message = Message::new(request);
        let mut position = 0;
        while let Some((number, field)) = message.next_field()? {
            if number == 5 {
                self.series(field.bytes()?, position)?;
                position += 1;
            }
        }
        self.grown.counts.lines = u64::from(position);
        Ok(())
    }

    fn series(&mut self, bytes: &'a [u8], position: u32) -> Result<(), Error> {
        let description = self.scan(bytes)?;
        let start = self.keys.len();
        let key_size = self.assemble()?;
        if KEY_SIZE_MAX < key_size {
            refuse_key(&mut self.grown, position, key_size);
            return Ok(());
        }
        let key = self.keys.get(start..).unwrap_or_default();
        let series = Series {
            hash: self.hasher.hash(key, self.shape_hash),
            key_offset: body_offset(start),
            key_size: body_offset(key.len()),
            position,
        };
        let mut message = Message::new(bytes);
        let (mut has_samples, mut has_exemplars) = (false, false);
        while let Some((number, field)) = message.next_field()? {
            has_samples |= matches!(number, 2 | 3);
            has_exemplars |= number == 4;
            match number {
                2 => self.sample(&series, field.bytes()?)?,
                3 => self.histogram(&series, field.bytes()?)?,
                4 => {
                    let symbols = &self.symbols;
                    exemplars::push_v2(&mut self.grown, &series, field.bytes()?, symbols)?;
                }
                _ => {}
            }
        }
        if has_exemplars && !has_samples {
            exemplars::let_begin(&mut self.grown, &series);
        }
        match description {
            Some(description) => self.describe(description),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn sample(&mut self, series: &Series, bytes: &[u8]) -> Result<(), Error> {
        let known = self.grown.rows.len();
        let own = push_sample(&mut self.grown, series, bytes)?;
        if own | self.start_ms != 0 {
            let row = self.grown.rows.get(known).map(|row| row.timestamp);
            self.start(series, row, own);
        }
        Ok(())
    }

    fn histogram(&mut self, series: &Series, bytes: &[u8]) -> Result<(), Error> {
        let known = self.grown.histograms.rows.len();
        let own = push_histogram(&mut self.grown, series, bytes)?;
        if own | self.start_ms != 0 {
            let row = self.grown.histograms.rows.get(known).map(|row| row.timestamp);
            self.start(series, row, own);
        }
        Ok(())
    }

    /// Gives the sample that was read last its own start timestamp, else that of the series; none
    /// if it was refused.
    #[cold]
    fn start(&mut self, series: &Series, timestamp: Option<i64>, own: i64) {
        let start_ms = if own == 0 { self.start_ms } else { own };
        push_start(&mut self.grown, series, timestamp, start_ms);
    }

    /// Reads all but samples and exemplars: symbols of labels into `refs`, and the start timestamp.
    fn scan(&mut self, bytes: &[u8]) -> Result<Option<Description>, Error> {
        self.refs.clear();
        self.start_ms = 0;
        let mut description = None;
        let mut message = Message::new(bytes);
        while let Some((number, field)) = message.next_field()? {
            match (number, field) {
                (1, Value::Bytes(packed)) => {
                    let mut refs = Message::new(packed);
                    while !refs.is_done() {
                        self.push_ref(refs.varint()?);
                    }
                }
                (1, _) => self.push_ref(field.signed()? as u64),
                (5, _) => description = Some(read_description(field.bytes()?)?),
                (6, _) => self.start_ms = field.signed()?,
                _ => {}
            }
        }
        Ok(description)
    }

    #[inline(always)]
    fn push_ref(&mut self, one: u64) {
        if self.refs.len() < REFS_MAX {
            self.refs.push(one.try_into().unwrap_or(u32::MAX));
        }
    }

    /// Appends the label messages that `refs` stand for to `keys`; returns how many bytes they
    /// have, and appends nothing when that is more than [`KEY_SIZE_MAX`].
    fn assemble(&mut self) -> Result<usize, Error> {
        let (pairs, odd) = self.refs.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(Error::malformed("remote write 2.0", 0, "an even number of labels_refs"));
        }
        let start = self.keys.len();
        for &[name, value] in pairs {
            let (name, value) = (symbol(&self.symbols, name)?, symbol(&self.symbols, value)?);
            let size = 2 + name.len() + value.len();
            let key_size = self.keys.len() - start + size;
            if KEY_SIZE_MAX < key_size {
                self.keys.truncate(start);
                return Ok(key_size);
            }
            self.keys.push(1 << 3 | 2);
            put_varint(&mut self.keys, size as u64);
            self.keys.push(1 << 3 | 2);
            self.keys.extend_from_slice(name);
            self.keys.push(2 << 3 | 2);
            self.keys.extend_from_slice(value);
        }
        if BODY_SIZE_MAX < self.keys.len() {
            return Err(Error::LimitExceeded {
                limit: Limit::LabelsSize,
                value: self.keys.len() as u64,
                max: BODY_SIZE_MAX as u64,
            });
        }
        Ok(self.keys.len() - start)
    }

    /// Takes the metadata of a series unless it is known or says nothing.
    fn describe(&mut self, mut description: Description) -> Result<(), Error> {
        if description == Description::default() || METADATA_MAX <= self.grown.metadata.len() {
            return Ok(());
        }
        for &[label, value] in self.refs.as_chunks::<2>().0 {
            if text_of(symbol(&self.symbols, label)?) == METRIC_NAME.as_bytes() {
                description.name = value;
            }
        }
        if !self.described.insert(description) {
            return Ok(());
        }
        let kind = kind(description.kind);
        let text = |id| {
            let text = text_of(symbol(&self.symbols, id)?);
            Ok::<_, Error>(String::from_utf8_lossy(text).into_owned())
        };
        let metric = family(text(description.name)?, kind);
        let (help, unit) = (text(description.help)?, text(description.unit)?);
        if self.families.insert(metric.clone()) {
            self.grown.metadata.push(Metadata { metric, kind, help, unit });
        }
        Ok(())
    }
}

/// The family that a series of a histogram or summary belongs to.
fn family(mut metric: String, kind: MetricKind) -> String {
    let suffixes: &[&str] = match kind {
        MetricKind::Histogram | MetricKind::GaugeHistogram => &["_bucket", "_count", "_sum"],
        MetricKind::Summary => &["_count", "_sum"],
        _ => &[],
    };
    if let Some(suffix) = suffixes.iter().find(|suffix| metric.ends_with(**suffix)) {
        metric.truncate(metric.len() - suffix.len());
    }
    metric
}

/// Reads `{ type = 1, help_ref = 3, unit_ref = 4 }`.
fn read_description(bytes: &[u8]) -> Result<Description, Error> {
    let mut description = Description::default();
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        let id = || Ok::<_, Error>(u32::try_from(field.signed()?).unwrap_or(u32::MAX));
        match number {
            1 => description.kind = field.signed()?,
            3 => description.help = id()?,
            4 => description.unit = id()?,
            _ => {}
        }
    }
    Ok(description)
}
