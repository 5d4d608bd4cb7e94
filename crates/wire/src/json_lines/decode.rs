//! Lines to rows.

use super::histograms::histogram;
use super::keys::JsonKeys;
use super::scan::{Fault, Scan};
use super::strings::{RefusedTexts, STRINGS, StringLine};
use super::value::value;
use super::{HISTOGRAMS_PER_LINE_MAX, KEY_SIZE_MAX, SAMPLES_PER_LINE_MAX};
use crate::decoded::{Decoded, Growing, ROWS_PER_BATCH, Start, check_body_size};
use crate::narrow::body_offset;
use crate::{Error, number};
use histogram::{Histogram, HistogramRow};
use model::limits::LINE_SIZE_MAX;
use model::sample::NANOS_PER_MILLI;
use model::start::START_MS_MAX;
use model::{KeyHasher, Row, Shape, StartRow, Timestamp};
use std::borrow::Cow;

/// Decodes lines from `start` on, until the body or the batch is full ([`Decoded::rest`]).
///
/// # Errors
/// Only when the body is larger than [`model::limits::BODY_SIZE_MAX`]; bad lines are in
/// [`Decoded::errors`].
pub fn decode<'a>(
    body: &'a [u8],
    start: Start,
    hasher: &KeyHasher,
    keys: &'a JsonKeys,
) -> Result<Decoded<'a>, Error> {
    check_body_size(body)?;
    let fields: Vec<Box<str>> = vec!["".into()];
    let shape_hash = hasher.shape(keys.context(), &fields);
    let mut grown = Growing::default();
    grown.shapes.push(Shape { fields, hash: shape_hash });
    let mut lines = Lines {
        body,
        hasher,
        keys,
        shape_hash,
        grown,
        timestamps: Vec::new(),
        histograms: Vec::new(),
        histogram_timestamps: Vec::new(),
        starts: Vec::new(),
        histogram_starts: Vec::new(),
        bucket_count: 0,
        is_of_strings: false,
    };
    let rest = lines.decode(start);
    let decoded = lines.grown.finish(Cow::Borrowed(body), keys, rest);
    Ok(Decoded { context: keys.context(), ..decoded })
}

/// The state between lines.
struct Lines<'a, 'h> {
    body: &'a [u8],
    hasher: &'h KeyHasher,
    keys: &'a JsonKeys,
    shape_hash: u64,
    grown: Growing,
    /// The line's timestamps.
    timestamps: Vec<Timestamp>,
    /// The line's histograms.
    histograms: Vec<Histogram>,
    /// And their timestamps.
    histogram_timestamps: Vec<Timestamp>,
    /// The line's start timestamps, in milliseconds: none, or one for each sample.
    starts: Vec<i64>,
    /// The same of its histograms.
    histogram_starts: Vec<i64>,
    /// Buckets and bounds in the batch.
    bucket_count: usize,
    /// Whether the line has strings.
    is_of_strings: bool,
}

impl Lines<'_, '_> {
    fn decode(&mut self, start: Start) -> Option<Start> {
        let body = self.body;
        let (mut at, mut line) = (start.offset, start.line);
        while at < body.len() {
            if self.is_full() {
                return Some(Start { offset: at, line });
            }
            let rest = body.get(at..).unwrap_or_default();
            let size = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let text = rest.get(..size).unwrap_or_default();
            if !text.trim_ascii().is_empty() {
                self.grown.counts.lines += 1;
                let values_start = self.grown.values.len();
                if let Err(reason) = self.line(text, at, line) {
                    self.grown.values.truncate(values_start);
                    self.grown.errors.push(line, || format!("cannot parse JSON line: {reason}"));
                }
            }
            at += size + 1;
            line = line.saturating_add(1);
        }
        None
    }

    fn is_full(&self) -> bool {
        let histogram_count = self.grown.histograms.rows.len();
        ROWS_PER_BATCH <= self.grown.rows.len() + histogram_count
            || BUCKETS_PER_BATCH <= self.bucket_count
    }

    /// Decodes the line `text`, which starts at `offset` of the body.
    fn line(&mut self, text: &[u8], offset: usize, line: u32) -> Result<(), Cow<'static, str>> {
        if LINE_SIZE_MAX < text.len() {
            let size = text.len();
            return Err(format!(
                "line of {size} bytes, the limit is {LINE_SIZE_MAX} (max-line-size)"
            )
            .into());
        }
        let values_start = self.grown.values.len();
        self.timestamps.clear();
        self.histograms.clear();
        self.histogram_timestamps.clear();
        self.starts.clear();
        self.histogram_starts.clear();
        self.is_of_strings = false;
        let key = self.members(text).map_err(|fault| fault.to_string())?;
        let Some((key_start, key_end)) = key else { return Err("missing \"metric\"".into()) };
        if KEY_SIZE_MAX < key_end - key_start {
            let size = key_end - key_start;
            return Err(format!("metric of {size} bytes, the limit is {KEY_SIZE_MAX}").into());
        }
        if self.is_of_strings && !self.push_strings(text, values_start, line)? {
            return Ok(());
        }
        let value_count = self.grown.values.len() - values_start;
        if value_count != self.timestamps.len() {
            return Err(unlike_counts(text, value_count, self.timestamps.len()));
        }
        let histogram_count = self.histograms.len();
        if histogram_count != self.histogram_timestamps.len() {
            let count = self.histogram_timestamps.len();
            return Err(
                format!("{histogram_count} histograms but {count} histogram_timestamps").into()
            );
        }
        if value_count == 0 && histogram_count == 0 {
            return Err("no values".into());
        }
        if !self.starts.is_empty() || !self.histogram_starts.is_empty() {
            self.check_starts()?;
        }
        for (idx, histogram) in self.histograms.iter().enumerate() {
            histogram.validate().map_err(|invalid| format!("histogram {idx}: {invalid}"))?;
        }
        if !self.starts.is_empty() || !self.histogram_starts.is_empty() {
            self.push_starts(offset + key_start, key_end - key_start, line);
        }
        self.push_histograms(offset + key_start, key_end - key_start, line);
        let hash =
            self.hasher.hash(text.get(key_start..key_end).unwrap_or_default(), self.shape_hash);
        let rows = self.timestamps.iter().enumerate().map(|(idx, &timestamp)| Row {
            hash,
            timestamp,
            key_offset: body_offset(offset + key_start),
            key_size: body_offset(key_end - key_start),
            shape: 0,
            values_start: body_offset(values_start + idx),
            position: line,
        });
        self.grown.rows.extend(rows);
        Ok(())
    }

    /// Takes a line of strings: the numbers of its texts. Those that get none are left out of it, and
    /// said. Whether some are left.
    #[cold]
    fn push_strings(
        &mut self,
        text: &[u8],
        values_start: usize,
        position: u32,
    ) -> Result<bool, Cow<'static, str>> {
        if self.grown.values.len() != values_start || !self.histograms.is_empty() {
            return Err("strings and other values in one line".into());
        }
        let line = StringLine::read(text).map_err(|error| error.to_string())?;
        let Some(texts) = self.keys.texts() else {
            return Err(
                "strings are kept by /api/v1/import alone, and not where influx.max-strings is 0"
                    .into(),
            );
        };
        // A start timestamp that belongs to no sample is not to be taken for another's.
        check_starts("", &self.starts, &self.timestamps)?;
        let mut refused = RefusedTexts::default();
        let mut kept = 0;
        for (idx, (_, text)) in line.samples.iter().enumerate() {
            match texts.number(text) {
                Ok(number) => {
                    self.grown.values.push(f64::from(number));
                    keep(&mut self.timestamps, idx, kept);
                    keep(&mut self.starts, idx, kept);
                    kept += 1;
                }
                Err(reason) => refused.add(reason),
            }
        }
        self.timestamps.truncate(kept);
        self.starts.truncate(kept);
        if refused.count != 0 {
            self.grown.counts.strings += refused.count;
            self.grown.errors.push_samples(position, refused.count, || refused.words(&line));
        }
        Ok(kept != 0)
    }

    #[cold]
    fn check_starts(&self) -> Result<(), Cow<'static, str>> {
        check_starts("", &self.starts, &self.timestamps)?;
        check_starts("histogram_", &self.histogram_starts, &self.histogram_timestamps)
    }

    /// Turns the line's start timestamps into rows of the key at `key_offset` of the body.
    #[cold]
    fn push_starts(&mut self, key_offset: usize, key_size: usize, position: u32) {
        let of_values = self.timestamps.iter().zip(&self.starts);
        let of_histograms = self.histogram_timestamps.iter().zip(&self.histogram_starts);
        let rows = of_values.chain(of_histograms).filter(|(_, start_ms)| **start_ms != 0);
        self.grown.starts.extend(rows.map(|(&timestamp, &start_ms)| StartRow {
            timestamp,
            start_ms,
            key_offset: body_offset(key_offset),
            key_size: body_offset(key_size),
            position,
        }));
    }

    /// Turns the line's histograms into rows of the key at `key_offset` of the body.
    fn push_histograms(&mut self, key_offset: usize, key_size: usize, position: u32) {
        let timestamps = self.histogram_timestamps.iter();
        for (histogram, &timestamp) in self.histograms.drain(..).zip(timestamps) {
            let Histogram { positive, negative, custom_bounds, .. } = &histogram;
            self.bucket_count += positive.len() + negative.len() + custom_bounds.len();
            self.grown.histograms.rows.push(HistogramRow {
                key_offset: body_offset(key_offset),
                key_size: body_offset(key_size),
                timestamp,
                position,
                histogram,
            });
        }
    }

    /// Reads the object's members; returns where in `text` the metric is.
    fn members(&mut self, text: &[u8]) -> Result<Option<(usize, usize)>, Fault> {
        let (values, timestamps) = (&mut self.grown.values, &mut self.timestamps);
        let (histograms, histogram_timestamps) =
            (&mut self.histograms, &mut self.histogram_timestamps);
        let (starts, histogram_starts) = (&mut self.starts, &mut self.histogram_starts);
        let is_of_strings = &mut self.is_of_strings;
        let mut key = None;
        let (mut has_values, mut has_timestamps) = (false, false);
        let mut scan = Scan::new(text);
        scan.members(|scan, name| match name {
            "metric" if key.is_none() => {
                if scan.peek() != Some(b'{') {
                    return scan.fault("an object with labels");
                }
                let start = scan.at;
                scan.skip(0)?;
                key = Some((start, scan.at));
                Ok(())
            }
            "values" if !has_values => {
                has_values = true;
                let start = values.len();
                scan.elements(|scan| {
                    if start + SAMPLES_PER_LINE_MAX <= values.len() {
                        return scan.fault("at most 2097152 values in a line");
                    }
                    values.push(value(scan)?);
                    Ok(())
                })
            }
            "timestamps" if !has_timestamps => {
                has_timestamps = true;
                scan.elements(|scan| {
                    if SAMPLES_PER_LINE_MAX <= timestamps.len() {
                        return scan.fault("at most 2097152 timestamps in a line");
                    }
                    timestamps.push(timestamp(scan)?);
                    Ok(())
                })
            }
            STRINGS if !*is_of_strings && scan.peek() == Some(b'[') => {
                *is_of_strings = true;
                scan.skip(0)
            }
            "histograms" if histograms.is_empty() => read_histograms(scan, histograms),
            "histogram_timestamps" if histogram_timestamps.is_empty() => {
                read_histogram_timestamps(scan, histogram_timestamps)
            }
            "start_timestamps" if starts.is_empty() => read_starts(scan, starts),
            "histogram_start_timestamps" if histogram_starts.is_empty() => {
                read_starts(scan, histogram_starts)
            }
            "metric"
            | "values"
            | "timestamps"
            | "histograms"
            | "histogram_timestamps"
            | "start_timestamps"
            | "histogram_start_timestamps" => scan.fault("each member once"),
            _ => scan.skip(0),
        })?;
        if scan.peek().is_some() { scan.fault("the line's end") } else { Ok(key) }
    }
}

/// The error of a line whose values and timestamps are not equally many.
#[cold]
fn unlike_counts(text: &[u8], values: usize, timestamps: usize) -> Cow<'static, str> {
    match (values, timestamps) {
        (0, _) if !has_member(text, "values") => {
            "missing \"values\", the list of samples beside \"timestamps\"".into()
        }
        (_, 0) if !has_member(text, "timestamps") => {
            "missing \"timestamps\", the list of milliseconds beside \"values\"".into()
        }
        _ => format!("{values} values but {timestamps} timestamps").into(),
    }
}

/// Whether a line seems to have a member of that name.
#[cold]
fn has_member(text: &[u8], name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    text.windows(quoted.len()).any(|window| window == quoted.as_bytes())
}

#[cold]
fn read_histograms(scan: &mut Scan<'_>, histograms: &mut Vec<Histogram>) -> Result<(), Fault> {
    scan.elements(|scan| {
        if HISTOGRAMS_PER_LINE_MAX <= histograms.len() {
            return scan.fault("at most 262144 histograms in a line");
        }
        histograms.push(histogram(scan)?);
        Ok(())
    })
}

#[cold]
fn read_histogram_timestamps(
    scan: &mut Scan<'_>,
    timestamps: &mut Vec<Timestamp>,
) -> Result<(), Fault> {
    scan.elements(|scan| {
        if HISTOGRAMS_PER_LINE_MAX <= timestamps.len() {
            return scan.fault("at most 262144 histogram_timestamps in a line");
        }
        timestamps.push(timestamp(scan)?);
        Ok(())
    })
}

#[cold]
fn read_starts(scan: &mut Scan<'_>, starts: &mut Vec<i64>) -> Result<(), Fault> {
    scan.elements(|scan| {
        if SAMPLES_PER_LINE_MAX <= starts.len() {
            return scan.fault("at most 2097152 start timestamps in a line");
        }
        starts.push(start_ms(scan)?);
        Ok(())
    })
}

/// Whole milliseconds that the store keeps exactly.
fn start_ms(scan: &mut Scan<'_>) -> Result<i64, Fault> {
    let is_negative = scan.eat(b'-');
    let digits = number::long_digits(scan.text, scan.at);
    let is_whole = !matches!(scan.text.get(scan.at + digits.count), Some(b'.' | b'e' | b'E'));
    let is_known = 0 < digits.count && digits.count <= 19 && is_whole;
    let magnitude = i64::try_from(digits.value).ok().filter(|value| *value <= START_MS_MAX);
    let Some(magnitude) = magnitude.filter(|_| is_known) else {
        return scan.fault("a start timestamp in whole milliseconds");
    };
    scan.at += digits.count;
    Ok(if is_negative { -magnitude } else { magnitude })
}

/// Moves what is kept of a line's samples forward.
fn keep<T: Copy>(all: &mut [T], from: usize, to: usize) {
    if let Some(one) = all.get(from).copied()
        && let Some(slot) = all.get_mut(to)
    {
        *slot = one;
    }
}

/// Each sample of a line has a start timestamp, 0 for none, or none has.
fn check_starts(of: &str, starts: &[i64], timestamps: &[i64]) -> Result<(), Cow<'static, str>> {
    let (count, start_count) = (timestamps.len(), starts.len());
    if starts.is_empty() || start_count == count {
        return Ok(());
    }
    Err(format!("{start_count} {of}start_timestamps but {count} {of}timestamps").into())
}

/// Buckets of all histograms of a batch, after which the batch ends: 16 MiB.
const BUCKETS_PER_BATCH: usize = 1 << 20;

const _: () = assert!(SAMPLES_PER_LINE_MAX == 2_097_152);
const _: () = assert!(HISTOGRAMS_PER_LINE_MAX == 262_144);

/// Milliseconds, with up to six decimals.
#[inline(always)]
pub(super) fn timestamp(scan: &mut Scan<'_>) -> Result<Timestamp, Fault> {
    let is_negative = scan.eat(b'-');
    let whole = number::long_digits(scan.text, scan.at);
    if whole.count == 0 || 19 < whole.count {
        return scan.fault("a timestamp in milliseconds");
    }
    let mut end = scan.at + whole.count;
    let mut nanos = 0;
    if scan.text.get(end) == Some(&b'.') {
        let fraction = number::digits(scan.text, end + 1);
        if fraction.count == 0 || 6 < fraction.count {
            return scan.fault("a timestamp with at most six decimals");
        }
        nanos = fraction.value as i128 * 10i128.pow(6 - body_offset(fraction.count));
        end += 1 + fraction.count;
    }
    if matches!(scan.text.get(end), Some(b'e' | b'E')) {
        return scan.fault("a timestamp without an exponent");
    }
    let total = i128::from(whole.value) * i128::from(NANOS_PER_MILLI) + nanos;
    let Ok(timestamp) = Timestamp::try_from(if is_negative { -total } else { total }) else {
        return scan.fault("a timestamp in the years 1677 to 2262");
    };
    scan.at = end;
    Ok(timestamp)
}
