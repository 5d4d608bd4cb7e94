//! `prometheus.WriteRequest` to rows.

use super::histograms::push_histogram;
use super::{
    KEY_SIZE_MAX, METADATA_MAX, RemoteWriteKeys, Series, exemplars, kind, push_sample, refuse_key,
};
use crate::Error;
use crate::decoded::{Decoded, Growing, check_body_size};
use crate::narrow::body_offset;
use crate::protobuf::Message;
use model::{KeyHasher, Metadata, Shape};
use std::borrow::Cow;

/// The content type's `proto` parameter; also what a request without one means.
pub const PROTO: &str = "prometheus.WriteRequest";

/// Tag of `timeseries`, and of `labels` inside it.
const TAG_1: u8 = 0x0a;
/// Tag of `samples`.
const TAG_2: u8 = 0x12;

/// Decodes an uncompressed request.
///
/// # Errors
/// The bytes are no such message, or a limit is exceeded; nothing is taken then.
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
    let mut requests = Request { request, hasher, shape_hash, grown, assembled: Vec::new() };
    requests.read()?;
    let Request { grown, assembled, .. } = requests;
    let bytes = if assembled.is_empty() { Cow::Borrowed(request) } else { Cow::Owned(assembled) };
    Ok(Decoded { context: keys.context(), ..grown.finish(bytes, keys, None) })
}

/// One request while it is read.
struct Request<'a, 'h> {
    request: &'a [u8],
    hasher: &'h KeyHasher,
    shape_hash: u64,
    grown: Growing,
    /// The request and behind it the keys whose labels were scattered; empty while there is none.
    assembled: Vec<u8>,
}

impl Request<'_, '_> {
    fn read(&mut self) -> Result<(), Error> {
        let mut message = Message::new(self.request);
        let mut position = 0;
        while !message.is_done() {
            if let Some(series) = message.next_if(TAG_1)? {
                let start = message.offset() - series.len();
                if position == 0 {
                    self.reserve(series.len());
                }
                self.series(series, start, position)?;
                position += 1;
                continue;
            }
            match message.next_field()? {
                Some((1, field)) => {
                    field.bytes()?;
                }
                Some((3, field)) if self.grown.metadata.len() < METADATA_MAX => {
                    self.grown.metadata.push(metadata(field.bytes()?)?);
                }
                _ => {}
            }
        }
        self.grown.counts.lines = u64::from(position);
        Ok(())
    }

    /// Sizes the vectors as if all series were as the first one.
    fn reserve(&mut self, series_size: usize) {
        let row_count = (self.request.len() / (series_size + 3)).min(1 << 20);
        self.grown.rows.reserve(row_count);
        self.grown.values.reserve(row_count);
    }

    /// Reads the series that lies at `start` of the request.
    #[inline]
    fn series(&mut self, bytes: &[u8], start: usize, position: u32) -> Result<(), Error> {
        let mut message = Message::new(bytes);
        while message.next_if(TAG_1)?.is_some() {}
        let key_size = message.offset();
        if KEY_SIZE_MAX < key_size {
            refuse_key(&mut self.grown, position, key_size);
            return Ok(());
        }
        let key = bytes.get(..key_size).unwrap_or_default();
        let hash = self.hasher.hash(key, self.shape_hash);
        let series = Series {
            hash,
            key_offset: body_offset(start),
            key_size: body_offset(key_size),
            position,
        };
        let rows_start = self.grown.rows.len();
        let mut is_scattered = false;
        while !message.is_done() {
            if let Some(sample) = message.next_if(TAG_2)? {
                push_sample(&mut self.grown, &series, sample)?;
                continue;
            }
            match message.next_field()? {
                Some((1, field)) => {
                    field.bytes()?;
                    is_scattered = true;
                }
                Some((2, field)) => {
                    field.bytes()?;
                }
                Some((3, field)) => exemplars::push_v1(&mut self.grown, &series, field.bytes()?)?,
                Some((4, field)) => {
                    push_histogram(&mut self.grown, &series, field.bytes()?)?;
                }
                _ => {}
            }
        }
        if is_scattered { self.gather(bytes, rows_start, position) } else { Ok(()) }
    }

    /// Puts the labels of a series together that do not all come first, and corrects its rows.
    #[cold]
    fn gather(&mut self, bytes: &[u8], rows_start: usize, position: u32) -> Result<(), Error> {
        if self.assembled.is_empty() {
            self.assembled.extend_from_slice(self.request);
        }
        let start = self.assembled.len();
        let mut message = Message::new(bytes);
        loop {
            let field_start = message.offset();
            let Some((number, _)) = message.next_field()? else { break };
            if number == 1 {
                let field = bytes.get(field_start..message.offset()).unwrap_or_default();
                self.assembled.extend_from_slice(field);
            }
        }
        let key = self.assembled.get(start..).unwrap_or_default();
        if KEY_SIZE_MAX < key.len() {
            refuse_key(&mut self.grown, position, key.len());
            self.grown.rows.truncate(rows_start);
            self.grown.values.truncate(rows_start);
            self.grown.histograms.rows.retain(|row| row.position != position);
            self.assembled.truncate(start);
            exemplars::forget(&mut self.grown, position);
            return Ok(());
        }
        let hash = self.hasher.hash(key, self.shape_hash);
        for row in self.grown.rows.iter_mut().skip(rows_start) {
            row.hash = hash;
            row.key_offset = body_offset(start);
            row.key_size = body_offset(key.len());
        }
        let histograms = self.grown.histograms.rows.iter_mut().rev();
        for row in histograms.take_while(|row| row.position == position) {
            row.key_offset = body_offset(start);
            row.key_size = body_offset(key.len());
        }
        let (key_offset, key_size) = (body_offset(start), body_offset(key.len()));
        exemplars::rekey(&mut self.grown, &Series { hash, key_offset, key_size, position });
        Ok(())
    }
}

/// Reads `{ type = 1, metric_family_name = 2, help = 4, unit = 5 }`.
fn metadata(bytes: &[u8]) -> Result<Metadata, Error> {
    let mut metadata = Metadata::default();
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next_field()? {
        match number {
            1 => metadata.kind = kind(field.signed()?),
            2 => metadata.metric = field.text()?,
            4 => metadata.help = field.text()?,
            5 => metadata.unit = field.text()?,
            _ => {}
        }
    }
    Ok(metadata)
}
