//! Test scripts: Prometheus' format for "given these samples, this query gives that".
//!
//! ```text
//! load 30s
//!   requests_total{job="a"} 0+10x20          # one sample each 30 s from the epoch on
//!   temperature{room="1"}   20 21 _ 22 stale
//!
//! eval instant at 5m rate(requests_total[5m])
//!   expect no_warn
//!   {job="a"} 0.3333333333
//!
//! eval range from 0 to 1m step 30s temperature
//!   temperature{room="1"} 20 21 21
//!
//! eval instant at 0 sum(
//!   expect fail
//!
//! clear
//! ```
//!
//! A line `requests_total{job="a"}@st -30s-1mx2 _ 5ms` before that of the series gives its samples
//! start timestamps, each by how far it lies from its sample.
//!
//! A block ends at an empty line or a comment. The older forms `eval_fail`, `eval_warn`,
//! `eval_info` and `eval_ordered` are understood. Native histograms are written `{{...}}`;
//! `load_with_nhcb` makes some of the classic ones that it loads.
//!
//! What a script is run against is a [`Subject`]: samples in memory ([`InMemory`]), a store on a
//! simulated disk (`tests/scripts/over_a_store.rs`), the binary behind its doors (the end-to-end
//! tests). The files, the runner and the expectations are the same for all.

mod files;
mod load;
mod parse;
mod run;
mod sequence;
mod subject;

pub use files::scripts_in;
pub use parse::{
    Command, Eval, Expect, ExpectKind, MessageMatch, Point, ScriptError, Times, parse,
};
pub use run::{Outcome, Report, Runner};
pub use subject::{
    Answer, Answered, Found, InMemory, Loaded, LoadedSample, LoadedSeries, ShownHistogram, Subject,
    Unanswered, ask_source,
};
