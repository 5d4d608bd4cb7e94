//! Encodes pages, and decodes each before it is written to compare it bit by bit with its samples.
//!
//! A part replaces its source: rows of the log, or the parts that it was merged from. An encoder that
//! does not read back what it wrote would change stored samples for ever, under a correct checksum.
//! Such a page is encoded again in the plain form, in which every integer stands as it is, and
//! counted. If that does not read back either, [`Error::Encoder`] ends the part and the source stays.
//!
//! Timestamps are always read back, and columns with a value at the edges of floats or integers, where
//! encodings have their special cases: zeros with a sign, NaNs, infinities, subnormals, magnitudes
//! above 2^53 or below 2^-30. Of other columns one in [`SAMPLED`] is: a decode of all costs a tenth of
//! the CPU of ingestion, this 1 to 2 %.

use crate::{Error, Result};
use codec::{
    ColumnScratch, Effort, Layout, Paging, TimestampsOutline, ValuesOutline, encode_timestamps,
    encode_timestamps_plainly, encode_values, encode_values_plainly,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Columns with usual values only: one in this number is read back.
const SAMPLED: u32 = 16;

/// Pages of this process that were encoded again in the plain form.
static REENCODED_PAGES: AtomicU64 = AtomicU64::new(0);

/// Number of pages that did not read back as they were encoded and were written in the plain form.
pub fn reencoded_pages() -> u64 {
    REENCODED_PAGES.load(Ordering::Relaxed)
}

/// Position of a page in the part that is being written, for errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct PagePlace {
    /// Ordinal of the first series of the block.
    pub series_start: u32,
    /// The column.
    pub column: u32,
}

/// Encoder of pages that reads them back; holds its buffers.
#[derive(Default)]
pub(super) struct ReadBack {
    scratch: ColumnScratch,
    times: Vec<i64>,
    values: Vec<f64>,
    /// Columns with usual values alone so far.
    usual_columns: u32,
    /// Turns a bit of each page that is not in the plain form.
    #[cfg(test)]
    pub is_encoder_broken: bool,
}

impl ReadBack {
    /// Appends a column of timestamps to `page`; returns how its slots lie, for the values at these
    /// times.
    ///
    /// # Errors
    /// [`Error::Encoder`].
    pub fn put_times(
        &mut self,
        times: &[i64],
        lens: &[u32],
        effort: Effort,
        page: &mut Vec<u8>,
        place: &PagePlace,
    ) -> Result<Arc<Layout>> {
        let start = page.len();
        encode_timestamps(times, lens, effort, page);
        #[cfg(test)]
        self.break_page(page);
        if let Ok(layout) = self.read_times(&page[start..], lens, times) {
            return Ok(layout);
        }
        page.truncate(start);
        encode_timestamps_plainly(times, lens, page);
        let read = self.read_times(&page[start..], lens, times);
        REENCODED_PAGES.fetch_add(1, Ordering::Relaxed);
        read.map_err(|found| place.error("timestamps", found))
    }

    /// Appends a column of values to `page`, whose slots lie as `layout` says.
    ///
    /// # Errors
    /// [`Error::Encoder`].
    pub fn put_values(
        &mut self,
        values: &[f64],
        lens: &[u32],
        layout: &Arc<Layout>,
        effort: Effort,
        page: &mut Vec<u8>,
        place: &PagePlace,
    ) -> Result<()> {
        let start = page.len();
        encode_values(values, lens, effort, page);
        #[cfg(test)]
        self.break_page(page);
        if !self.is_to_read(values) || self.read_values(&page[start..], layout, values).is_ok() {
            return Ok(());
        }
        page.truncate(start);
        encode_values_plainly(values, lens, page);
        let read = self.read_values(&page[start..], layout, values);
        REENCODED_PAGES.fetch_add(1, Ordering::Relaxed);
        read.map_err(|found| place.error("values", found))
    }

    /// Whether a column of these values is read back.
    fn is_to_read(&mut self, values: &[f64]) -> bool {
        if !are_usual(values) {
            return true;
        }
        let number = self.usual_columns;
        self.usual_columns = number.wrapping_add(1);
        number.is_multiple_of(SAMPLED)
    }

    fn read_times(
        &mut self,
        column: &[u8],
        lens: &[u32],
        times: &[i64],
    ) -> std::result::Result<Arc<Layout>, &'static str> {
        let outline = TimestampsOutline::open(column, Paging::NEWEST).map_err(|e| e.what)?;
        let is_same = if outline.lens() != lens {
            false
        } else if let Some(grid) = outline.grid() {
            // Slots with one list in common need no copy of it each.
            times.chunks(grid.len()).all(|list| list == grid)
        } else {
            self.times.clear();
            outline.read(column, 0..lens.len(), &mut self.times).map_err(|e| e.what)?;
            self.times == times
        };
        if is_same { Ok(Arc::clone(outline.layout())) } else { Err("other timestamps") }
    }

    fn read_values(
        &mut self,
        column: &[u8],
        layout: &Arc<Layout>,
        values: &[f64],
    ) -> std::result::Result<(), &'static str> {
        let outline = ValuesOutline::open(column, Arc::clone(layout)).map_err(|e| e.what)?;
        self.values.clear();
        let slots = 0..layout.slots();
        let read = outline.read(column, slots, &mut self.scratch, &mut self.values);
        read.map_err(|error| error.what)?;
        if is_same_bits(&self.values, values) { Ok(()) } else { Err("other values") }
    }

    #[cfg(test)]
    fn break_page(&self, page: &mut [u8]) {
        if self.is_encoder_broken
            && let Some(last) = page.last_mut()
        {
            *last ^= 1;
        }
    }
}

/// Compares bits: a NaN equals itself, -0.0 is not 0.0.
fn is_same_bits(a: &[f64], b: &[f64]) -> bool {
    // One sum of differences needs no branch for each value.
    let differs = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a.to_bits() ^ b.to_bits()));
    a.len() == b.len() && differs == 0
}

/// Whether all values are 0.0 or have magnitudes from 2^-30 to 2^53.
fn are_usual(values: &[f64]) -> bool {
    const LOWEST: u64 = (1023 - 30) << 52;
    const SPAN: u64 = 83 << 52;
    let is_unusual = |value: &f64| {
        let bits = value.to_bits();
        let magnitude = bits & (u64::MAX >> 1);
        u64::from(bits != 0 && SPAN < magnitude.wrapping_sub(LOWEST))
    };
    values.iter().fold(0, |sum, value| sum | is_unusual(value)) == 0
}

impl PagePlace {
    fn error(&self, what: &'static str, found: &str) -> Error {
        let place = format!("series from {} on, column {}", self.series_start, self.column);
        Error::Encoder { what, place, found: found.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: PagePlace = PagePlace { series_start: 7, column: 1 };
    const LENS: [u32; 3] = [2, 0, 3];
    const TIMES: [i64; 5] = [10, 20, 10, 20, 35];
    const VALUES: [f64; 5] = [1.0, f64::NAN, -0.0, 2.5, f64::MIN_POSITIVE];
    const EFFORTS: [Effort; 2] = [Effort::Fast, Effort::Dense];

    #[test]
    fn a_page_of_other_samples_is_noticed() {
        for effort in EFFORTS {
            let mut read_back = ReadBack::default();
            let (mut times, mut values) = (Vec::new(), Vec::new());
            let layout = read_back.put_times(&TIMES, &LENS, effort, &mut times, &PLACE).unwrap();
            read_back.put_values(&VALUES, &LENS, &layout, effort, &mut values, &PLACE).unwrap();
            for at in 0..TIMES.len() {
                let mut others = TIMES;
                others[at] += 1;
                assert!(read_back.read_times(&times, &LENS, &others).is_err(), "{at}");
                for bit in [0, 51, 63] {
                    let mut others = VALUES;
                    others[at] = f64::from_bits(others[at].to_bits() ^ 1 << bit);
                    assert!(read_back.read_values(&values, &layout, &others).is_err(), "{at}");
                }
            }
            assert!(read_back.read_times(&times, &[3, 0, 2], &TIMES).is_err());
            assert!(read_back.read_values(&values, &layout, &VALUES[1..]).is_err());
        }
    }

    #[test]
    fn a_list_that_slots_have_in_common_is_compared_with_each() {
        let (lens, times) = ([2, 0, 2, 2], [10, 20, 10, 20, 10, 20]);
        let (mut read_back, mut column) = (ReadBack::default(), Vec::new());
        read_back.put_times(&times, &lens, Effort::Dense, &mut column, &PLACE).unwrap();
        for at in 0..times.len() {
            let mut others = times;
            others[at] += 1;
            assert!(read_back.read_times(&column, &lens, &others).is_err(), "{at}");
        }
    }

    #[test]
    fn pages_of_a_broken_encoder_are_written_in_the_plain_form() {
        for effort in EFFORTS {
            let mut read_back = ReadBack { is_encoder_broken: true, ..ReadBack::default() };
            let before = reencoded_pages();
            let (mut times, mut values) = (b"head".to_vec(), b"head".to_vec());
            let layout = read_back.put_times(&TIMES, &LENS, effort, &mut times, &PLACE).unwrap();
            read_back.put_values(&VALUES, &LENS, &layout, effort, &mut values, &PLACE).unwrap();
            assert!(before + 2 <= reencoded_pages(), "both are counted");
            assert!(times.starts_with(b"head") && values.starts_with(b"head"));
            assert!(read_back.read_times(&times[4..], &LENS, &TIMES).is_ok());
            assert!(read_back.read_values(&values[4..], &layout, &VALUES).is_ok());
        }
    }

    #[test]
    fn values_at_the_edges_are_always_read_back() {
        let usual = [0.0, 1.0, -1.0, 0.1, 1e9, -2f64.powi(53), 2f64.powi(-30)];
        assert!(are_usual(&usual));
        let edges = [
            -0.0,
            f64::NAN,
            f64::INFINITY,
            5e-324,
            2f64.powi(-31),
            2f64.powi(53) + 2.0,
            i64::MIN as f64,
            i64::MAX as f64,
        ];
        let mut read_back = ReadBack { usual_columns: 1, ..ReadBack::default() };
        for edge in edges {
            assert!(!are_usual(&[1.0, edge, 2.0]), "{edge}");
            assert!(read_back.is_to_read(&[1.0, edge]), "{edge}");
        }
        let read = (0..160).filter(|_| read_back.is_to_read(&usual)).count();
        assert_eq!(read, 10);
    }

    #[test]
    fn constant_values_of_a_broken_encoder_come_back() {
        let layout = Arc::new(Layout::new(&[3], Paging::NEWEST).unwrap());
        for value in [0.0, -0.0, f64::NAN, i64::MIN as f64, 0.1] {
            // The first columns of a part are always read back.
            let mut read_back = ReadBack { is_encoder_broken: true, ..ReadBack::default() };
            let (values, mut page) = ([value; 3], Vec::new());
            read_back.put_values(&values, &[3], &layout, Effort::Dense, &mut page, &PLACE).unwrap();
            assert!(read_back.read_values(&page, &layout, &values).is_ok(), "{value}");
        }
    }
}
