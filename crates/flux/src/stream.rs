//! A stream of tables: what a bucket will be asked for, or tables in memory.

use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::scan::Scan;
use crate::table::Table;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tables of one stream.
pub const TABLES_MAX: usize = 100_000;

/// What `from() |> ...` is.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) tables: Tables,
    /// Whether a `yield` was the last thing: then it is an answer already.
    pub(crate) is_yielded: bool,
}

impl Stream {
    /// Whether its tables are read, and counted.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.tables, Tables::Ready { .. })
    }

    /// Bytes of memory beside those of its tables, about.
    pub(crate) fn size(&self) -> usize {
        let nodes = match &self.tables {
            Tables::Scan(scan) => scan.filters.iter().map(Predicate::nodes).sum(),
            Tables::Ready { .. } => 0,
        };
        size_of::<Stream>() + nodes * size_of::<Predicate>()
    }

    /// How many values are within each other in the conditions that it keeps.
    pub(crate) fn depth(&self) -> u32 {
        match &self.tables {
            Tables::Scan(scan) => scan.filters.iter().map(Predicate::depth).max().unwrap_or(0),
            Tables::Ready { .. } => 0,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Tables {
    /// Not read yet.
    Scan(Scan),
    Ready {
        list: Arc<Vec<Table>>,
        charge: Arc<Charge>,
    },
}

/// Memory that a query has, and has taken.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicU64,
    max: u64,
}

impl Budget {
    pub(crate) fn new(max: u64) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicU64::new(0), max })
    }

    /// Takes memory.
    ///
    /// # Errors
    /// When there is not that much left.
    pub(crate) fn take(&self, size: u64) -> Result<()> {
        let used = self.used.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if self.max < used {
            let message = format!(
                "the query needs more than {} bytes of memory: ask for less time or fewer series, or \
                 raise --query.max-memory",
                self.max
            );
            return Err(Error::limit(message));
        }
        Ok(())
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&self, size: u64) {
        self.used.fetch_sub(size, Ordering::Relaxed);
    }
}

/// Memory that is given back at the end.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    size: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.size);
    }
}

/// Tables that are being made.
pub(crate) struct Collector {
    list: Vec<Table>,
    charge: Charge,
}

impl Collector {
    pub(crate) fn new(budget: &Arc<Budget>) -> Collector {
        Collector { list: Vec::new(), charge: Charge { budget: budget.clone(), size: 0 } }
    }

    /// Memory for what will be pushed, or is held meanwhile.
    ///
    /// # Errors
    /// When there is not that much.
    pub(crate) fn reserve(&mut self, size: usize) -> Result<()> {
        let size = size as u64;
        // Counted before it is checked: what `take` has counted is given back by the charge.
        self.charge.size = self.charge.size.saturating_add(size);
        self.charge.budget.take(size)
    }

    /// One more table.
    ///
    /// # Errors
    /// When there are too many, or too large ones.
    pub(crate) fn push(&mut self, table: Table) -> Result<()> {
        self.reserve(table.size())?;
        if TABLES_MAX <= self.list.len() {
            let message = format!("more than {TABLES_MAX} tables: group() them, or ask for fewer");
            return Err(Error::limit(message));
        }
        self.list.push(table);
        Ok(())
    }

    pub(crate) fn finish(self) -> Tables {
        Tables::Ready { list: Arc::new(self.list), charge: Arc::new(self.charge) }
    }
}

impl Tables {
    /// As a stream.
    pub(crate) fn stream(self) -> Arc<Stream> {
        Arc::new(Stream { tables: self, is_yielded: false })
    }
}

/// One of the results of a query.
#[derive(Debug)]
pub struct Outcome {
    pub(crate) name: Arc<str>,
    pub(crate) tables: Arc<Vec<Table>>,
    /// Memory of the tables, until they are written.
    pub(crate) _charge: Arc<Charge>,
}
