//! Requests for the points of some variables.

use super::plan::Plan;
use super::point::Direction;
use super::window::Windows;
use crate::ast::DataType;

/// A variable that is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ref {
    pub name: String,
    pub kind: DataType,
}

/// What a statement's parts share.
#[derive(Clone)]
pub struct Scope<'p> {
    pub plan: &'p Plan,
    pub windows: Windows,
    /// The names of the tags that rows are grouped by, sorted.
    pub dimensions: Vec<String>,
    pub direction: Direction,
    /// The first and the last nanosecond that may be read: those of the query around a subquery.
    pub bounds: (i64, i64),
}

/// What is asked of the sources.
#[derive(Clone, Copy)]
pub struct Wanted<'r> {
    pub refs: &'r [Ref],
    /// Whether the first is the one that a function takes: the others stand beside it.
    pub has_driver: bool,
    /// Whether points of one time are wanted in the order of their series.
    pub is_ordered: bool,
    /// How many points of each series will do; 0 is all.
    pub most: usize,
    /// How many of the variables decide which of two points of one time comes first.
    pub ordering: usize,
}

impl Wanted<'_> {
    /// How many values stand beside each point.
    pub fn aux_len(&self) -> usize {
        self.refs.len() - usize::from(self.has_driver && !self.refs.is_empty())
    }

    /// The places of these values, in the order of their names.
    pub fn beside_by_name(&self) -> Vec<usize> {
        let refs = self.refs.get(..self.ordering).unwrap_or_default();
        let refs = refs.get(self.refs.len() - self.aux_len()..).unwrap_or_default();
        let mut places: Vec<usize> = (0..refs.len()).collect();
        places.sort_by_key(|at| refs.get(*at));
        places
    }
}

/// The page of a list; no limit is all.
pub(super) fn paged<T>(list: &[T], limit: usize, offset: usize) -> &[T] {
    let rest = list.get(offset..).unwrap_or_default();
    let len = if limit == 0 { rest.len() } else { rest.len().min(limit) };
    &rest[..len]
}
