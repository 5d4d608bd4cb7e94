//! VictoriaMetrics' JSON lines, `/api/v1/import` and `/api/v1/export`: one series a line.
//!
//! ```text
//! {"metric":{"__name__":"up","job":"x"},"values":[1,0.5],"timestamps":[1549891472010,1549891487010]}
//! ```
//!
//! Timestamps are milliseconds; digits behind a point are nanoseconds: `1549891472010.000001`.
//! Values are exact in both directions:
//!
//! ```text
//! finite             shortest digits that read back to the same bits
//! infinite           "Infinity", "-Infinity"
//! NaN as scraped     null                        (bits 7ff8000000000001)
//! stale marker       "NaN:7ff0000000000002"
//! any other NaN      "NaN:" and its bits in hexadecimal
//! ```
//!
//! Native histograms stand in `"histograms":[{..}],"histogram_timestamps":[..]`, an extension of
//! ours: see `histograms`. So do start timestamps, in `"start_timestamps"` beside `"timestamps"` and
//! in `"histogram_start_timestamps"`: whole milliseconds, one for each sample, 0 where it has none.
//!
//! Strings of line protocol are an extension of ours, too: see `strings`.
//!
//! `null`, `"null"` and `"NaN"` are read as a scraped NaN.
//! A row's key is the `metric` object as it stands.

pub mod decode;
pub mod encode;
mod histograms;
pub mod keys;
mod read;
pub(crate) mod scan;
pub mod strings;
mod value;
#[cfg(test)]
mod tests;

pub use decode::decode;
pub use encode::{LineWriter, Times, histogram_text, push_histogram_text};
pub use keys::JsonKeys;
pub use read::read_line;
pub use strings::{SAMPLES_PER_LINE, StringLine, has_strings, rename_metric};

/// Bytes of one `metric` object.
pub const KEY_SIZE_MAX: usize = 512 << 10;
/// Native histograms of one line.
pub const HISTOGRAMS_PER_LINE_MAX: usize = 256 << 10;
/// Samples of one line; exporters cut longer series into several lines.
pub const SAMPLES_PER_LINE_MAX: usize = 2 << 20;
/// The NaN that stands for one without a payload: what Prometheus stores for a scraped NaN.
pub(crate) const NORMAL_NAN_BITS: u64 = 0x7ff8_0000_0000_0001;
