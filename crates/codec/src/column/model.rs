//! The dense packing: one pco model for a whole column, one pco page for each page.
//!
//! A model is an entropy coder's table over bins of values; it takes 20 to 500 bytes.
//! pco's wrapped format lets every page be decoded with the model and its own bytes alone.
//! The decoder is given bytes from a disk: pco answers `Err` to what it cannot read, and we refuse
//! beforehand the modes that our encoder never chooses, for some of them allocate what bytes claim.

use super::directory::PageBytes;
use super::format::PCO_VERSION;
use crate::bytes::{Reader, put_varint};
use crate::error::Error;
use pco::data_types::Number;
use pco::metadata::{DeltaEncoding, Mode};
use pco::wrapped::{ChunkCompressor, ChunkDecompressor, FileCompressor, FileDecompressor};
use pco::{ChunkConfig, DecompressorScratch, DeltaSpec, ModeSpec, PagingSpec};
use std::ops::Range;

/// Measured on random walks: 4 costs 5 % more bytes, 12 gains nothing, and the time is the same.
const LEVEL: usize = 8;

/// A multiple of pco's batch of 256, small enough for the nearest cache.
const WINDOW_LEN: usize = 1024;

/// Bytes of memory that a model is taken for: pco does not tell. Measured on columns of random
/// walks, most of it is the entropy coder's table of 2^8 to 2^10 states.
pub const MODEL_SIZE: usize = 12 << 10;

/// pco decodes batches of this many values.
const BATCH_LEN: usize = 256;

/// How much of a page to decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Values of the page.
    pub len: usize,
    /// Which of them are wanted: those before have to be decoded too, those behind do not.
    pub wanted: Range<usize>,
}

/// What pco may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// Values as they are: whoever calls has subtracted what there is to subtract.
    Plain,
    /// Whatever pco finds out about floats: multiples of a base, few significant bits, deltas.
    Float,
}

/// A model fitted to a column's values, ready to write its pages.
pub struct ModelWriter {
    chunk: ChunkCompressor,
    page: usize,
}

impl ModelWriter {
    /// Fits a model to `values`, of which there is at least one, that will be written in pages
    /// of `lens`; empty pages are not listed.
    pub fn fit<T: Number>(values: &[T], lens: Vec<usize>, modes: Modes) -> ModelWriter {
        assert!(!values.is_empty(), "nothing to fit a model to");
        assert!(lens.iter().sum::<usize>() == values.len(), "pages do not add up");
        // pco fails only on arguments that the assertions and the constants here exclude.
        let chunk = FileCompressor::default()
            .chunk_compressor(values, &config(modes, lens))
            .expect("pco takes what was asserted");
        ModelWriter { chunk, page: 0 }
    }

    /// Appends the model with its size.
    pub fn put_model(&self, out: &mut Vec<u8>) {
        let mut model = Vec::with_capacity(self.chunk.meta_size_hint());
        self.chunk.write_meta(&mut model).expect("a Vec takes every write");
        put_varint(out, model.len() as u64);
        out.extend_from_slice(&model);
    }

    /// Appends the next page.
    pub fn put_page(&mut self, out: &mut Vec<u8>) {
        self.chunk.write_page(self.page, out).expect("a Vec takes every write");
        self.page += 1;
    }
}

fn config(modes: Modes, lens: Vec<usize>) -> ChunkConfig {
    let config = ChunkConfig::default()
        .with_compression_level(LEVEL)
        .with_enable_8_bit(true)
        .with_paging_spec(PagingSpec::Exact(lens));
    match modes {
        Modes::Plain => config.with_mode_spec(ModeSpec::Classic).with_delta_spec(DeltaSpec::NoOp),
        // No deltas: pages hold several slots, and a pco delta would run across them.
        Modes::Float => config.with_mode_spec(ModeSpec::Auto).with_delta_spec(DeltaSpec::NoOp),
    }
}

/// What pages are decoded in; made when the first one is read, for it is some kilobytes.
#[derive(Default)]
pub struct PcoScratch {
    batch: Option<DecompressorScratch>,
    windows: Windows,
}

/// A window of numbers of each kind, empty until it is used: to clear one for each page would take
/// as long as to decode some of it.
#[derive(Default)]
pub struct Windows {
    i8s: Vec<i8>,
    i16s: Vec<i16>,
    i32s: Vec<i32>,
    i64s: Vec<i64>,
    f64s: Vec<f64>,
}

/// Numbers that a model may be of.
pub trait Modelled: Number + Default {
    /// Their window.
    fn window(windows: &mut Windows) -> &mut Vec<Self>;
}

macro_rules! modelled {
    ($($number:ty, $window:ident;)*) => {
        $(impl Modelled for $number {
            fn window(windows: &mut Windows) -> &mut Vec<$number> {
                &mut windows.$window
            }
        })*
    };
}

modelled! {
    i8, i8s;
    i16, i16s;
    i32, i32s;
    i64, i64s;
    f64, f64s;
}

/// A model that was read, ready to decode pages.
#[derive(Debug)]
pub struct Model<T: Number> {
    chunk: ChunkDecompressor<T>,
}

impl<T: Modelled> Model<T> {
    /// Parses the model.
    pub fn read(bytes: &[u8], modes: Modes) -> Result<Model<T>, Error> {
        let mode = bytes.first().copied().unwrap_or(0) & 0x0f;
        // Low bits of the first byte: 0 classic, 2 multiples, 3 quantised. See `Mode::Dict` for
        // one that would allocate before it reads.
        if !matches!(mode, 0 | 2 | 3) {
            return Err(Error { offset: 0, what: "mode that is never written" });
        }
        let (file, _) = FileDecompressor::new(&PCO_VERSION[..]).map_err(corrupt_model)?;
        let (chunk, _) = file.chunk_decompressor::<T, _>(bytes).map_err(corrupt_model)?;
        let meta = chunk.meta();
        let is_plain = matches!(meta.mode, Mode::Classic);
        let is_delta_free = matches!(meta.delta_encoding, DeltaEncoding::NoOp);
        if !is_delta_free || (modes == Modes::Plain && !is_plain) {
            return Err(Error { offset: 0, what: "mode that is never written" });
        }
        Ok(Model { chunk })
    }

    /// Decodes a page window by window, up to the last value that is wanted. The sink is given the
    /// wanted values alone.
    pub fn read_page(
        &self,
        bytes: PageBytes,
        Extent { len, wanted }: Extent,
        scratch: &mut PcoScratch,
        sink: &mut dyn FnMut(&[T]),
    ) -> Result<(), Error> {
        if len == 0 {
            return match bytes.size {
                0 => Ok(()),
                _ => Err(Error { offset: 0, what: "page of another size" }),
            };
        }
        let window = T::window(&mut scratch.windows);
        window.resize(WINDOW_LEN, T::default());
        let scratch = scratch.batch.get_or_insert_default();
        let mut page = self
            .chunk
            .page_decompressor_with_scratch(bytes.and_beyond, len, scratch)
            .map_err(corrupt_page)?;
        debug_assert!(wanted.start <= wanted.end && wanted.end <= len);
        // Whole batches, except at the page's end.
        let end = wanted.end.next_multiple_of(BATCH_LEN).min(len);
        let mut done = 0;
        while done < end {
            let want = (end - done).min(WINDOW_LEN);
            let progress = page.read(&mut window[..want]).map_err(corrupt_page)?;
            if progress.n_processed != want {
                return Err(Error { offset: 0, what: "page cut short" });
            }
            let seen = done..done + want;
            let inside = wanted.start.clamp(seen.start, seen.end) - done
                ..wanted.end.clamp(seen.start, seen.end) - done;
            sink(&window[inside]);
            done += want;
        }
        if end < len {
            return Ok(());
        }
        if bytes.and_beyond.len() - page.into_src().len() != bytes.size {
            return Err(Error { offset: 0, what: "page of another size" });
        }
        Ok(())
    }
}

/// Where the bytes are of the model that [`ModelWriter::put_model`] wrote at the reader's place.
pub fn read_model(reader: &mut Reader<'_>) -> Result<Range<usize>, Error> {
    let size = reader.varint_size(reader.remaining())?;
    let start = reader.offset();
    reader.slice(size)?;
    Ok(start..reader.offset())
}

fn corrupt_model(_: pco::errors::PcoError) -> Error {
    Error { offset: 0, what: "model that pco does not read" }
}

fn corrupt_page(_: pco::errors::PcoError) -> Error {
    Error { offset: 0, what: "page that pco does not read" }
}
