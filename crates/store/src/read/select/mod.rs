//! From matchers to series, and to their samples on demand.
//!
//! ```text
//! matchers ──► per partition: index.search ──► views ──► places (view, group, column, slot)
//!                                                          └► floats, histograms
//! ```
//!
//! Read the files in this order: [`crate::base::select_limits`], [`matchers`], [`views`], [`places`], [`scope`],
//! [`floats`], [`selection`]; histograms are put together in [`crate::read::histogram_reader`].

pub(crate) mod floats;
pub(crate) mod matchers;
pub(crate) mod places;
pub(crate) mod scope;
pub(crate) mod selection;
mod views;
