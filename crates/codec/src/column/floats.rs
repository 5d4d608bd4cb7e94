//! Floats that are no decimals, modelled by pco, which looks for what they have in common.
//!
//! ```text
//! floats   model   directory   pages
//! ```

use super::directory::{Pages, put_directory};
use super::layout::Layout;
use super::model::{Extent, MODEL_SIZE, Model, ModelWriter, Modes, PcoScratch, read_model};
use crate::bytes::Reader;
use crate::error::Error;
use std::ops::Range;
use std::sync::OnceLock;

/// Appends the stream of `values`, of which there is at least one.
pub fn put_floats(values: &[f64], layout: &Layout, out: &mut Vec<u8>) {
    let pages = 0..layout.pages();
    let len = |page| layout.samples_of(&layout.page_slots(page)).len();
    let lens = pages.clone().map(len).filter(|&len| 0 < len).collect();
    let mut writer = ModelWriter::fit(values, lens, Modes::Float);
    let mut bytes = Vec::with_capacity(values.len() * 8);
    let mut ends = Vec::with_capacity(layout.pages());
    for page in pages {
        if 0 < len(page) {
            writer.put_page(&mut bytes);
        }
        ends.push(bytes.len());
    }
    writer.put_model(out);
    put_directory(&ends, out);
    out.extend_from_slice(&bytes);
}

/// Reads the pages of modelled floats.
#[derive(Debug)]
pub struct FloatsReader {
    /// Where the model is in the column.
    bytes: Range<usize>,
    /// Built when the first page is read.
    model: OnceLock<Result<Box<Model<f64>>, Error>>,
    pages: Pages,
}

impl FloatsReader {
    /// Parses the headers of the stream, which reaches to the reader's end.
    pub fn open(reader: &mut Reader<'_>, layout: &Layout) -> Result<FloatsReader, Error> {
        let bytes = read_model(reader)?;
        let pages = Pages::read(reader, layout.pages(), 0)?;
        Ok(FloatsReader { bytes, model: OnceLock::new(), pages })
    }

    /// Bytes of memory that the parsed headers and the model take.
    pub fn memory_size(&self) -> usize {
        self.pages.memory_size() + MODEL_SIZE
    }

    /// Appends the floats `samples` of the column, which are all of `page`, to `out`.
    pub fn read(
        &self,
        column: &[u8],
        layout: &Layout,
        page: usize,
        samples: &Range<usize>,
        scratch: &mut PcoScratch,
        out: &mut Vec<f64>,
    ) -> Result<(), Error> {
        let read_model = || Model::read(&column[self.bytes.clone()], Modes::Float).map(Box::new);
        let model = self.model.get_or_init(read_model);
        let model = model.as_ref().map_err(Clone::clone)?;
        let page_samples = layout.samples_of(&layout.page_slots(page));
        let first = page_samples.start;
        let wanted = samples.start - first..samples.end - first;
        let extent = Extent { len: page_samples.len(), wanted };
        model.read_page(self.pages.around(column, page, 0), extent, scratch, &mut |window| {
            out.extend_from_slice(window);
        })
    }
}
