//! Where history is copied from: what every kind of source can do.

use super::series::Series;
use model::TimeRange;
use std::fmt;

/// A piece of history that is copied as one: all of its samples are stored before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// What it is called where people and the progress file tell of it.
    pub name: String,
    /// Its time; the end is in it.
    pub range: TimeRange,
    /// How many samples it has, where the source says so.
    pub samples: Option<u64>,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Takes series, each with samples in the order of their times; those of one series may come in pieces.
pub type Sink<'s> = dyn FnMut(Series) -> anyhow::Result<()> + 's;

/// A place with samples of the past.
pub trait Source: Send {
    /// Its windows, the newest first.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn windows(&mut self) -> anyhow::Result<Vec<Window>>;

    /// Whether a window that cannot be read says nothing of the others, and reading it again is of no use:
    /// so it is with files.
    fn is_apart(&self) -> bool {
        false
    }

    /// Hands on all series of a window. The same again gives the same, and more where samples came since.
    ///
    /// # Errors
    /// When it breaks off: then only a part was handed on.
    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()>;
}
