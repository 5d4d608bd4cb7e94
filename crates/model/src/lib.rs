//! The nouns that every room shares: labels, samples, matchers, time ranges, write batches, limits.
//!
//! No I/O, no clock, no global state.
//! Read in this order: [`labels`], [`sample`], [`time_range`], [`matcher`],
//! [`path_pattern`], [`batch`], [`exemplar`], [`start`], [`go_number`], [`limits`], [`narrow`].

pub mod labels;
pub mod sample;
pub mod start;
pub mod time_range;
pub mod matcher;
pub mod path_pattern;
pub mod metadata;
pub mod batch;
pub mod exemplar;
pub mod go_number;
pub mod limits;
pub mod narrow;
pub mod similar_name;
pub mod size;

pub use batch::{KeyDecoder, KeyHasher, Rejection, Row, Shape, WriteBatch};
pub use exemplar::{Exemplar, ExemplarRow};
pub use labels::{LabelError, Labels, LabelsBuilder, METRIC_NAME, SortedLabels};
pub use matcher::{MatchOp, Matcher};
pub use metadata::{Metadata, MetricKind};
pub use path_pattern::{PathCut, PathPattern, PathPatternError};
pub use sample::{STALE_NAN_BITS, Sample, Timestamp, is_stale_marker, stale_marker};
pub use start::StartRow;
pub use time_range::TimeRange;
