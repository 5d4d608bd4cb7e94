//! `COPY table FROM STDIN` of ordinary tables: rows are kept until all have come, then they are added.

use super::copies::in_time;
use super::{CopyError, failed};
use crate::protocol::handlers::Queries;
use crate::values::answers::{error, of_copy, of_sql};
use net::admission::{Pace, SHARE_UNIT};
use pgwire::error::PgWireResult;
use sql::copy::CopyIn;
use sql::copy_values::RowError;
use sql::ordinary::RowsInto;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Bytes that are read at once; with more others would wait.
const AT_ONCE_SIZE_MAX: usize = 64 << 10;

/// A `COPY` into an ordinary table under way.
pub struct Filling {
    asked: CopyIn,
    into: RowsInto,
    rejected: u64,
    /// Its share of the memory that all connections have for what they receive.
    held: Option<OwnedSemaphorePermit>,
    held_size: usize,
    /// Receive rate.
    pace: Pace,
    /// When its time is over, and how long that was.
    ends: Option<(Instant, Duration)>,
}

impl Filling {
    /// One that has just begun, and may take so long.
    pub fn new(asked: CopyIn, into: RowsInto, time: Option<Duration>) -> Filling {
        let ends = time.and_then(|time| Instant::now().checked_add(time).map(|at| (at, time)));
        Filling { asked, into, rejected: 0, held: None, held_size: 0, pace: Pace::start(), ends }
    }

    /// When its time is over, and how long that was.
    pub fn ends(&self) -> Option<(Instant, Duration)> {
        self.ends
    }

    /// Receive rate, if the COPY holds memory.
    pub fn pace(&self) -> Option<Pace> {
        (self.held_size != 0).then_some(self.pace)
    }

    /// Takes a piece.
    fn push(&mut self, piece: &[u8]) -> Result<(), CopyError> {
        self.pace.receive(piece.len());
        let pushed = self.into.push(piece, self.asked.skips_errors);
        let rejected = pushed.map_err(|failure| self.failed(failure))?;
        self.reject(rejected)
    }

    fn failed(&self, failure: RowError) -> CopyError {
        let RowError { code, message, row, column } = failure;
        let column = column.map(|column| format!(", column {column}")).unwrap_or_default();
        let context = Some(format!("COPY {}, row {row}{column}", self.into.table()));
        CopyError { code, message, context, hint: None }
    }

    /// Counts rows that were left out, which may be too many.
    fn reject(&mut self, count: u64) -> Result<(), CopyError> {
        self.rejected += count;
        match self.asked.reject_limit.filter(|limit| *limit < self.rejected) {
            Some(limit) => Err(CopyError {
                code: "22P02",
                message: format!(
                    "skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility"
                ),
                context: Some(format!("COPY {}", self.into.table())),
                hint: None,
            }),
            None => Ok(()),
        }
    }
}

impl Queries {
    /// Whether rows come for an ordinary table.
    pub fn fills_table(&self) -> PgWireResult<bool> {
        Ok(self.session()?.state().filling.is_some())
    }

    /// The rows that came are forgotten.
    pub fn forget_rows(&self) -> PgWireResult<()> {
        self.session()?.state().filling = None;
        Ok(())
    }

    /// A piece comes.
    ///
    /// # Errors
    /// Of a bad row, and when there is no memory for more; what came is forgotten then.
    pub async fn push_rows(&self, piece: &[u8]) -> PgWireResult<()> {
        let Some(mut filling) = self.session()?.state().filling.take() else { return Ok(()) };
        let size = (filling.into.size() + piece.len()).next_multiple_of(SHARE_UNIT);
        if filling.held_size < size {
            let mut share = self.door.app.body_memory.share();
            let grown = share.grow(size - filling.held_size).await;
            grown.map_err(|failure| of_copy(failed(&failure)))?;
            match (&mut filling.held, share.into_held()) {
                (Some(held), Some(more)) => held.merge(more),
                (held, more) => *held = more,
            }
            filling.held_size = size;
        }
        in_time(filling.ends)?;
        if piece.len() <= AT_ONCE_SIZE_MAX {
            filling.push(piece).map_err(of_copy)?;
        } else {
            let piece = piece.to_vec();
            let pushed = spawn_blocking(move || filling.push(&piece).map(|()| filling)).await;
            let pushed = pushed.map_err(|failure| error("XX000", format!("COPY: {failure}")))?;
            filling = pushed.map_err(of_copy)?;
        }
        self.session()?.state().filling = Some(filling);
        Ok(())
    }

    /// All rows have come: they are added. Returns how many, and how many were left out; none where no
    /// ordinary table is filled.
    ///
    /// # Errors
    /// Of a bad row, and of one that cannot be added: none is then.
    pub async fn end_rows(&self) -> PgWireResult<Option<(u64, u64)>> {
        let Some(mut filling) = self.session()?.state().filling.take() else { return Ok(None) };
        in_time(filling.ends)?;
        let finished = filling.into.finish(filling.asked.skips_errors);
        let rejected = finished.map_err(|failure| of_copy(filling.failed(failure)))?;
        filling.reject(rejected).map_err(of_copy)?;
        let Filling { into, rejected, held, .. } = filling;
        let stored = self.session()?.sql.store(into).await.map_err(of_sql)?;
        drop(held);
        Ok(Some((stored, rejected)))
    }

    /// Begins a `COPY` into an ordinary table.
    ///
    /// # Errors
    /// When there is none of that name, and when nothing may be changed.
    pub fn begin_rows(
        &self,
        asked: CopyIn,
        said: &sql::copy::TableRows,
    ) -> PgWireResult<(usize, bool)> {
        let session = self.session()?;
        if session.settings().is_read_only() {
            return Err(error("25006", "cannot execute COPY FROM in a read-only transaction"));
        }
        let into = session.sql.copy_into(&asked.table, said).map_err(of_sql)?;
        let begun = (into.column_count(), into.is_binary());
        let time = session.settings().statement_timeout();
        session.state().filling = Some(Filling::new(asked, into, time));
        Ok(begun)
    }
}
