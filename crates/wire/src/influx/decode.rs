//! Lines to rows: one pass, no allocation per line.

use super::fault::Fault;
use super::keys::{InfluxKeys, unescaped};
use super::long::{LONG_MIN, low_bits};
use super::precision::Precision;
use super::report::{self, line_end};
use super::scan::{
    boolean, is_line_end, is_value_end, key_end, long_integer, name_end, newline, newline_at,
    newline_count, skip, string_end, usual_fields,
};
use super::shapes::{NONE, Shapes};
use super::texts::unquoted;
use crate::decoded::{
    Decoded, Growing, ROWS_PER_BATCH, SHAPE_FIELDS_PER_BATCH, Start, check_body_size,
};
use crate::narrow::body_offset;
use crate::{Error, number};
use model::limits::{FIELDS_PER_LINE_MAX, LINE_SIZE_MAX};
use model::{KeyDecoder, KeyHasher, LabelsBuilder, Row, Timestamp};
use std::borrow::Cow;

/// Bytes of the shortest field, with what separates it from the next: `a=1,`.
const FIELD_SIZE_MIN: usize = 4;

/// What a request says besides its body.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The unit of timestamps.
    pub precision: Precision,
    /// The time of lines that have none.
    pub now: Timestamp,
}

/// Decodes lines from `start` on, until the body or the batch is full ([`Decoded::rest`]).
///
/// # Errors
/// Only when the body is larger than [`model::limits::BODY_SIZE_MAX`]; bad lines are in
/// [`Decoded::errors`].
pub fn decode<'a>(
    body: &'a [u8],
    start: Start,
    options: &Options,
    hasher: &KeyHasher,
    keys: &'a InfluxKeys,
) -> Result<Decoded<'a>, Error> {
    decode_pieces(body, &[body.len()], start, options, hasher, keys)
}

/// As [`decode`] of a body of pieces, of which each ends where `ends` says, in their order. Lines end
/// with their piece: a string that is open there takes nothing of the next one.
///
/// # Errors
/// As [`decode`].
pub fn decode_pieces<'a>(
    body: &'a [u8],
    ends: &[usize],
    start: Start,
    options: &Options,
    hasher: &KeyHasher,
    keys: &'a InfluxKeys,
) -> Result<Decoded<'a>, Error> {
    check_body_size(body)?;
    let mut lines = Lines {
        all_size: body.len(),
        body,
        hasher,
        keys,
        precision: options.precision,
        now: options.precision.truncate(options.now),
        shapes: Shapes::new(hasher, keys),
        grown: Growing::default(),
        raw: Vec::new(),
        ends: Vec::new(),
        previous: NONE,
        inner_newlines: 0,
        longs: Vec::new(),
    };
    let mut next = start;
    let mut rest = None;
    for &end in ends {
        let Some(piece) = body.get(..end) else { continue };
        lines.body = piece;
        match lines.decode(next) {
            Reached::End(line) => next = Start { offset: next.offset.max(end), line },
            Reached::Full(start) => {
                rest = Some(start);
                break;
            }
        }
    }
    Ok(lines.grown.finish(Cow::Borrowed(body), keys, rest))
}

/// How far the decoding of a piece came.
enum Reached {
    /// To its end; the number of the next line.
    End(u32),
    /// The batch is full; where to go on.
    Full(Start),
}

/// The state between lines.
struct Lines<'a, 'h> {
    /// All of it up to the end of the piece that is decoded.
    body: &'a [u8],
    /// Bytes of all pieces.
    all_size: usize,
    hasher: &'h KeyHasher,
    keys: &'a InfluxKeys,
    precision: Precision,
    now: Timestamp,
    shapes: Shapes<'h>,
    grown: Growing,
    /// Names of the line's numeric fields, filled only when the prediction failed.
    raw: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
    /// The field list of the line before.
    previous: u32,
    /// Newlines inside strings of the line.
    inner_newlines: u32,
    /// Low bits of the line's integers beyond float64, each with its place among the line's values.
    longs: Vec<(u32, f64)>,
}

/// Where a line's fields are in the predicted list.
struct Fields {
    /// The list that the line is expected to have.
    predicted: u32,
    /// Fields with values so far.
    count: usize,
    /// Where the line begins, and its number.
    line: (usize, u32),
    /// Whether a string of the line was refused, which is told once.
    is_told: bool,
    /// Whether all of them were as predicted, so that `raw` and `ends` are not filled.
    is_as_predicted: bool,
}

impl<'a> Lines<'a, '_> {
    fn decode(&mut self, start: Start) -> Reached {
        let (mut at, mut line) = (start.offset, start.line);
        while let Some(&first) = self.body.get(at) {
            if self.is_full() {
                return Reached::Full(Start { offset: at, line });
            }
            let end = match first {
                b'\n' => Ok(at),
                b' ' | b'\t' | 0 | b'#' | b'\r' => self.odd_start(at, line),
                _ => self.line(at, line),
            };
            at = match end {
                Ok(end) => end,
                Err(fault) => self.refuse(at, line, &fault),
            };
            line = line.saturating_add(1 + std::mem::take(&mut self.inner_newlines));
            if at < self.body.len() {
                at += 1;
            }
        }
        Reached::End(line)
    }

    fn is_full(&self) -> bool {
        ROWS_PER_BATCH <= self.grown.rows.len()
            || SHAPE_FIELDS_PER_BATCH <= self.shapes.field_count()
    }

    /// A line that starts with white space, or is a comment.
    fn odd_start(&mut self, start: usize, line: u32) -> Result<usize, Fault> {
        let at = skip(self.body, start, b" \t\0");
        match self.body.get(at) {
            None | Some(b'\n') => Ok(at),
            Some(b'\r') if matches!(self.body.get(at + 1), None | Some(b'\n')) => Ok(at + 1),
            Some(b'#') => Ok(newline(self.body, at)),
            Some(_) => self.line(at, line),
        }
    }

    /// Decodes the line at `start`; returns where its newline is, or the body's end.
    #[inline]
    fn line(&mut self, start: usize, line: u32) -> Result<usize, Fault> {
        self.grown.counts.lines += 1;
        let key_end = key_end(self.body, start).map_err(|fault| self.key_fault(start, fault))?;
        let values_start = self.grown.values.len();
        let end = self.values_and_time(start, key_end, line);
        if end.is_err() {
            self.grown.values.truncate(values_start);
        }
        end
    }

    /// Decodes what is behind the key.
    #[inline(never)]
    fn values_and_time(&mut self, start: usize, key_end: usize, line: u32) -> Result<usize, Fault> {
        let values_start = self.grown.values.len();
        self.longs.clear();
        let predicted = self.shapes.get(self.previous).map_or(NONE, |previous| previous.follower);
        let mut fields = Fields {
            predicted,
            count: 0,
            line: (start, line),
            is_told: false,
            is_as_predicted: true,
        };
        let usual = match self.shapes.get(predicted) {
            Some(shape) if !shape.has_texts => {
                usual_fields(self.body, key_end, shape, &mut self.grown.values)
            }
            _ => None,
        };
        let fields_end = match usual {
            Some(end) => {
                fields.count = self.grown.values.len() - values_start;
                end
            }
            None => {
                self.grown.values.truncate(values_start);
                self.fields(key_end, &mut fields)?
            }
        };
        let (timestamp, end) = self.timestamp(fields_end)?;
        if LINE_SIZE_MAX < end - start {
            return Err(Fault::LineTooLong(end - start));
        }
        self.row(start, key_end, line, values_start, timestamp, &fields)?;
        Ok(end)
    }

    /// Appends the row of a line whose values are already there.
    #[inline]
    fn row(
        &mut self,
        start: usize,
        key_end: usize,
        line: u32,
        values_start: usize,
        timestamp: Timestamp,
        fields: &Fields,
    ) -> Result<(), Fault> {
        if fields.count == 0 {
            return Ok(());
        }
        let idx = self.shape_of(fields)?;
        let Some(shape) = self.shapes.get(idx) else { return Ok(()) };
        let key = self.body.get(start..key_end).unwrap_or_default();
        if let Some(kept) = &shape.kept {
            compact(&mut self.grown.values, values_start, kept);
            if kept.is_empty() {
                let measurement = key.get(..unescaped(key, b',').unwrap_or(key.len()));
                let measurement = report::shorten(measurement.unwrap_or_default());
                self.grown.errors.push(line, || {
                    format!(
                        "invalid field name: input field \"time\" on measurement {measurement:?} is \
                         invalid"
                    )
                });
                return Ok(());
            }
        }
        let mut row = Row {
            hash: self.hasher.hash(key, shape.hash),
            timestamp,
            key_offset: body_offset(start),
            key_size: body_offset(key.len()),
            shape: shape.shape,
            values_start: body_offset(values_start),
            position: line,
        };
        let is_first = self.grown.rows.is_empty();
        if !self.longs.is_empty() {
            self.low_row(idx, key, &mut row)?;
        }
        self.grown.rows.push(row);
        if is_first {
            self.reserve(start);
        }
        Ok(())
    }

    /// Appends the row of the low bits of a line's integers, before the line's own: who sees the one
    /// sees the other.
    #[cold]
    fn low_row(&mut self, idx: u32, key: &[u8], own: &mut Row) -> Result<(), Fault> {
        let Some(list) = self.shapes.get(idx) else { return Ok(()) };
        // Of several fields with one name the last counts, and has its low bits.
        self.longs.retain(|(place, _)| list.keeps(*place));
        let places: Vec<u32> = self.longs.iter().map(|(place, _)| *place).collect();
        if places.is_empty() {
            return Ok(());
        }
        let low = self.shapes.of_longs(idx, places, &mut self.grown.shapes)?;
        // Values stand in the order of their rows.
        let start = own.values_start as usize;
        self.grown.values.splice(start..start, self.longs.iter().map(|(_, bits)| *bits));
        let hash = self.hasher.hash(key, low.hash);
        self.grown.rows.push(Row { hash, shape: low.shape, ..*own });
        own.values_start += body_offset(self.longs.len());
        Ok(())
    }

    /// Remembers the low bits of an integer that is the line's value at `place`.
    #[cold]
    fn long(&mut self, place: usize, magnitude: u64, is_negative: bool) {
        let number = i128::from(magnitude);
        let number = if is_negative { -number } else { number };
        self.longs.push((body_offset(place), low_bits(number)));
    }

    /// Sizes the vectors by the first line, up to a batch.
    fn reserve(&mut self, start: usize) {
        let line_size = newline(self.body, start) - start + 1;
        let row_count = (self.all_size - start).div_ceil(line_size).min(ROWS_PER_BATCH);
        self.grown.rows.reserve(row_count);
        // A quoted line break makes the first line look short and its fields look many.
        let value_count_max = (self.all_size - start) / FIELD_SIZE_MIN;
        let value_count = self.grown.values.len().saturating_mul(row_count);
        self.grown.values.reserve(value_count.min(value_count_max).min(8 << 20));
    }

    /// The field list of the line just read.
    #[inline]
    fn shape_of(&mut self, fields: &Fields) -> Result<u32, Fault> {
        let mut idx = fields.predicted;
        if fields.is_as_predicted {
            let Some(shape) = self.shapes.get(idx) else { return Ok(NONE) };
            if shape.ends.len() == fields.count {
                self.previous = idx;
                return Ok(idx);
            }
            self.copy_names(fields);
        }
        idx = self.shapes.find(&self.raw, &self.ends, &mut self.grown.shapes)?;
        let previous = if self.previous == NONE { idx } else { self.previous };
        self.shapes.follow(previous, idx);
        self.previous = idx;
        Ok(idx)
    }

    /// Reads all fields from `at`, a space, on; returns where they end.
    #[inline]
    fn fields(&mut self, at: usize, fields: &mut Fields) -> Result<usize, Fault> {
        let body = self.body;
        let mut at = at + 1;
        if matches!(body.get(at), Some(b' ' | b'\t' | 0)) {
            at = skip(body, at, b" \t\0");
        }
        if is_line_end(body, at) {
            return Err(Fault::MissingFields);
        }
        loop {
            let start = at;
            let (value_start, new_name) = match self.predicted_name(fields, at) {
                Some(end) => (end, None),
                None => {
                    let end = name_end(body, at)?;
                    (end, body.get(start..end))
                }
            };
            at = match body.get(value_start) {
                Some(b'0'..=b'9' | b'-' | b'.') => {
                    let (value, end) = self.number(value_start, fields.count)?;
                    self.value(value, fields, new_name)?;
                    end
                }
                Some(b'"') => {
                    let end = string_end(body, value_start)?;
                    self.inner_newlines += newline_count(body.get(value_start..end));
                    self.text((start, value_start, end), fields)?;
                    end
                }
                _ if is_value_end(body, value_start) => return Err(Fault::MissingFieldValue),
                // `NaN` is a number to InfluxDB, and one that it refuses.
                Some(b'N' | b'n') => return Err(Fault::InvalidNumber),
                _ => {
                    let (value, end) = boolean(body, value_start)?;
                    self.grown.counts.booleans += 1;
                    self.value(value, fields, new_name)?;
                    end
                }
            };
            match body.get(at) {
                Some(b',') => at += 1,
                _ => return Ok(at),
            }
        }
    }

    /// Where the value starts if the field at `at` has the predicted name.
    #[inline(always)]
    fn predicted_name(&self, fields: &Fields, at: usize) -> Option<usize> {
        let name = self.predicted_raw(fields)?;
        let is_it = self.body.get(at..)?.starts_with(name);
        // A string's value begins with the quote that stands behind its name there.
        is_it.then_some(at + name.len() - usize::from(name.ends_with(b"\"")))
    }

    /// The predicted name of the next field, as it stands in the list.
    #[inline(always)]
    fn predicted_raw(&self, fields: &Fields) -> Option<&[u8]> {
        if !fields.is_as_predicted {
            return None;
        }
        let shape = self.shapes.get(fields.predicted)?;
        let end = *shape.ends.get(fields.count)? as usize;
        let start = match fields.count.checked_sub(1) {
            Some(before) => *shape.ends.get(before)? as usize,
            None => 0,
        };
        shape.raw.get(start..end)
    }

    /// Takes a string: its number, if there is somebody who gives numbers. `new_name` of
    /// [`Lines::value`] is the name with the quote.
    fn text(
        &mut self,
        (start, value_start, end): (usize, usize, usize),
        fields: &mut Fields,
    ) -> Result<(), Fault> {
        let body = self.body;
        let name = body.get(start..value_start).unwrap_or_default();
        let (Some(texts), false) = (self.keys.texts(), name == b"time=") else {
            self.grown.counts.strings += 1;
            return Ok(());
        };
        let text = body.get(value_start..end).and_then(unquoted);
        let number = text.ok_or_else(|| "invalid UTF-8".to_string());
        match number.and_then(|text| texts.number(&text)) {
            Ok(number) => {
                let name = body.get(start..=value_start).unwrap_or_default();
                let is_predicted = self.predicted_raw(fields) == Some(name);
                self.value(f64::from(number), fields, (!is_predicted).then_some(name))
            }
            Err(reason) => {
                self.grown.counts.strings += 1;
                if std::mem::replace(&mut fields.is_told, true) {
                    return Ok(());
                }
                let (start, line) = fields.line;
                let whole = body.get(start..line_end(body, start)).unwrap_or_default();
                let name = name.strip_suffix(b"=").unwrap_or(name);
                self.grown.errors.push(line, || {
                    let name = report::shorten(name);
                    let fault = format!("field {name:?} is left out: {reason}");
                    report::unable_to_parse(whole, &fault)
                });
                Ok(())
            }
        }
    }

    /// Takes a value; `new_name` is its name where the prediction does not have it.
    #[inline(always)]
    fn value(
        &mut self,
        value: f64,
        fields: &mut Fields,
        new_name: Option<&[u8]>,
    ) -> Result<(), Fault> {
        self.grown.values.push(value);
        if let Some(name) = new_name {
            self.unpredicted(name, fields)?;
        }
        fields.count += 1;
        Ok(())
    }

    /// Remembers a name that is not where the prediction has it.
    fn unpredicted(&mut self, name: &[u8], fields: &mut Fields) -> Result<(), Fault> {
        if fields.is_as_predicted {
            fields.is_as_predicted = false;
            self.copy_names(fields);
        }
        if FIELDS_PER_LINE_MAX <= fields.count {
            return Err(Fault::TooManyFields);
        }
        self.raw.extend_from_slice(name);
        self.ends.push(body_offset(self.raw.len()));
        Ok(())
    }

    /// Fills `raw` and `ends` with the names that were as predicted.
    fn copy_names(&mut self, fields: &Fields) {
        self.raw.clear();
        self.ends.clear();
        let Some(shape) = self.shapes.get(fields.predicted) else { return };
        let ends = shape.ends.get(..fields.count).unwrap_or_default();
        let size = ends.last().map_or(0, |end| *end as usize);
        self.raw.extend_from_slice(shape.raw.get(..size).unwrap_or_default());
        self.ends.extend_from_slice(ends);
    }

    /// Reads a number with its type's letter, the line's value at `place`.
    #[inline(always)]
    fn number(&mut self, at: usize, place: usize) -> Result<(f64, usize), Fault> {
        let body = self.body;
        let number = number::decimal(body, at).ok_or(Fault::InvalidNumber)?;
        let suffix = body.get(number.end).copied();
        if !matches!(suffix, Some(b'i' | b'u')) {
            let is_whole = is_value_end(body, number.end);
            return if is_whole {
                Ok((number.value, number.end))
            } else {
                Err(Fault::InvalidNumber)
            };
        }
        if !is_value_end(body, number.end + 1) {
            return Err(Fault::InvalidNumber);
        }
        let magnitude = match number.integer {
            Some(magnitude) => magnitude,
            None => long_integer(body, at, number.end)?,
        };
        let is_inside = match (suffix, number.is_negative) {
            (Some(b'i'), is_negative) => number::signed_of(magnitude, is_negative).is_some(),
            (_, is_negative) => !is_negative,
        };
        if !is_inside {
            return Err(Fault::IntegerOutOfRange);
        }
        if !number::is_exact_integer(magnitude) {
            self.grown.counts.inexact_integers += 1;
        }
        if LONG_MIN <= magnitude && self.keys.keeps_longs() {
            self.long(place, magnitude, number.is_negative);
        }
        let value = magnitude as f64;
        Ok((if number.is_negative && 0 < magnitude { -value } else { value }, number.end + 1))
    }

    /// Reads what is behind the fields; returns the time and where the line ends.
    #[inline]
    fn timestamp(&self, at: usize) -> Result<(Timestamp, usize), Fault> {
        let body = self.body;
        let start = skip(body, at, b" \t\0");
        if is_line_end(body, start) {
            return Ok((self.now, newline_at(body, start)));
        }
        let is_negative = body.get(start) == Some(&b'-');
        let first_digit = start + usize::from(is_negative);
        let digits = number::long_digits(body, first_digit);
        let digits_end = first_digit + digits.count;
        let end = skip(body, digits_end, b" \t\0");
        if digits.count == 0 || !is_line_end(body, end) {
            return Err(Fault::BadTimestamp);
        }
        let value = if digits.count <= 19 {
            number::signed_of(digits.value, is_negative)
        } else {
            body.get(start..digits_end).and_then(number::signed)
        };
        let timestamp = self.precision.timestamp(value.ok_or(Fault::TimeOutOfRange)?)?;
        Ok((timestamp, newline_at(body, end)))
    }

    /// Records the fault and finds the line's end, for lines that cannot be read to it.
    #[cold]
    fn refuse(&mut self, start: usize, line: u32, fault: &Fault) -> usize {
        let end = line_end(self.body, start);
        let text = self.body.get(start..end).unwrap_or_default();
        // At the end of a piece the line may have taken its own newline.
        let own = usize::from(end == self.body.len() && text.ends_with(b"\n"));
        self.inner_newlines = newline_count(text.get(..text.len() - own));
        self.grown.errors.push(line, || report::unable_to_parse(text, fault));
        end
    }

    /// The fault of a line whose key does not end: of the key itself, if it has one.
    #[cold]
    fn key_fault(&self, start: usize, fault: Fault) -> Fault {
        if fault != Fault::MissingFields {
            return fault;
        }
        let end = line_end(self.body, start);
        let key = self.body.get(start..end).unwrap_or_default();
        let key = key.strip_suffix(b"\r").unwrap_or(key);
        match self.keys.tags(key, &mut LabelsBuilder::new()) {
            Ok(()) => fault,
            Err(error) => Fault::Key(error),
        }
    }
}

/// Keeps only the values at `kept`, which increases, of those from `start` on.
fn compact(values: &mut Vec<f64>, start: usize, kept: &[u32]) {
    for (to, from) in kept.iter().enumerate() {
        if let Some(value) = values.get(start + *from as usize).copied()
            && let Some(slot) = values.get_mut(start + to)
        {
            *slot = value;
        }
    }
    values.truncate(start + kept.len());
}
