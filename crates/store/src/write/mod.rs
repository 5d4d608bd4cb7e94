//! Write path: from a request to the log and the arena.
//!
//! [`appender`] is the entry. [`append`] takes rows, [`append_histograms`] and [`append_starts`] take
//! values with hidden series, [`append_exemplars`] takes exemplars. [`series_limits`] admits new
//! series, [`refusal`] reports rejected rows.

pub(crate) mod appender;
pub(crate) mod append;
pub(crate) mod refusal;
pub(crate) mod refused_rows;
pub(crate) mod row_labels;
pub(crate) mod append_hidden;
pub(crate) mod append_histograms;
pub(crate) mod histogram_scratch;
pub(crate) mod append_starts;
pub(crate) mod append_exemplars;
pub(crate) mod series_limits;
pub(crate) mod active_series;
