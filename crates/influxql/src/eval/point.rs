//! What functions take and give: points, in streams of one name and one set of tags.

use crate::value::Value;
use std::cmp::Ordering;
use std::sync::Arc;

/// A value at a time, with what stands beside it.
#[derive(Clone, Debug, Default)]
pub struct Point {
    pub time: i64,
    pub value: Value,
    pub aux: Vec<Value>,
}

impl Point {
    pub fn new(time: i64, value: Value) -> Point {
        Point { time, value, aux: Vec::new() }
    }
}

/// Whose points they are. Tags are values in the order of the names that rows are grouped by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub name: Arc<str>,
    pub tags: Vec<String>,
}

/// Points in the order of the statement.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub key: Key,
    pub points: Vec<Point>,
}

/// Which way time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
}

impl Direction {
    /// The order of two times.
    pub fn order(self, a: i64, b: i64) -> Ordering {
        match self {
            Direction::Up => a.cmp(&b),
            Direction::Down => b.cmp(&a),
        }
    }

    /// The order of two keys: series go backwards with their times.
    pub fn order_keys(self, a: &Key, b: &Key) -> Ordering {
        match self {
            Direction::Up => a.cmp(b),
            Direction::Down => b.cmp(a),
        }
    }
}
