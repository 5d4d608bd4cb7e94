//! Read path: from a question to series and samples.
//!
//! [`questions`] is the entry and [`reader`] runs it: [`select`] finds the series of every partition,
//! [`view`] freezes a partition, [`read_column`] gathers samples. [`catalog`] and
//! [`cardinality`] answer without samples.

pub(crate) mod questions;
pub(crate) mod reader;
pub(crate) mod elsewhere;
pub(crate) mod missing;
pub(crate) mod path_matcher;
pub(crate) mod select;
pub(crate) mod view;
pub(crate) mod read_column;
pub(crate) mod hidden_series;
pub(crate) mod histogram_reader;
pub(crate) mod starts;
pub(crate) mod glance;
pub(crate) mod live;
pub(crate) mod catalog;
pub(crate) mod cardinality;
