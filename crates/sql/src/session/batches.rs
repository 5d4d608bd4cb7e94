//! Rows of an answer on their way to whoever asked.

use crate::session::threads::{Task, Threads};
use crate::types::error::SqlError;
use crate::types::runtime::memory::copied_size;
use crate::types::runtime::sleep_state::SleepState;
use crate::types::runtime::statement_scope;
use crate::types::runtime::statement_scope::StatementScope;
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::{FutureExt as _, StreamExt as _};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Batches of rows that wait for who reads them.
const BATCHES_WAITING: usize = 2;

type Made = mpsc::Receiver<Result<RecordBatch, SqlError>>;

/// Bytes of rows that are sent without being charged.
const SENT_SIZE_MIN: usize = 1 << 20;
/// Bytes of the rows of a batch, as PostgreSQL has it of one row. Long rows come one by one.
const SENT_SIZE_MAX: usize = 1 << 30;
/// Copies of a row on its way to the client: a message, and the bytes that wait to be written.
const COPIES: usize = 2;

/// Rows that are being made. Who drops it stops that.
pub struct Batches {
    memory: Arc<dyn MemoryPool>,
    /// Charges the rows that are on their way to the client.
    sent: Option<MemoryReservation>,
    /// Those that were there at once.
    ready: VecDeque<RecordBatch>,
    /// Says whether the statement sleeps.
    sleep: Arc<SleepState>,
    /// Pauses what makes the others.
    is_paused: Option<watch::Sender<bool>>,
    /// What makes the others, unless those are all.
    made: Option<(Made, Task<()>)>,
    /// Whether the statement has failed. Its rows never end then, so that nobody takes those before the error
    /// for all of them.
    has_failed: bool,
}

impl Batches {
    /// Rows that are there. Copies of them that are sent are charged to `memory`.
    pub(crate) fn new(ready: VecDeque<RecordBatch>, memory: Arc<dyn MemoryPool>) -> Batches {
        let (sleep, is_paused, made, has_failed) = (Arc::default(), None, None, false);
        Batches { memory, sent: None, ready, sleep, is_paused, made, has_failed }
    }

    /// Rows that are made behind those that are there, as long as nothing pauses that. `scope` is that of the
    /// statement.
    pub(crate) fn follow(
        &mut self,
        rows: SendableRecordBatchStream,
        (threads, scope): (&Threads, StatementScope),
        is_paused: watch::Sender<bool>,
    ) {
        let (sender, made) = mpsc::channel(BATCHES_WAITING);
        self.sleep = scope.sleep.clone();
        let work = hand_over(rows, sender, is_paused.subscribe(), self.sleep.clone());
        self.is_paused = Some(is_paused);
        self.made = Some((made, threads.spawn_for(scope, work)));
    }

    /// Whether the statement sleeps: it needs no place among the running queries, and takes one when it wakes.
    pub fn is_asleep(&self) -> bool {
        self.sleep.is_asleep()
    }

    /// The next rows; none when there are no more. Those before them have been sent. Nothing is paused meanwhile.
    /// After an error each call gives one.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        self.sent = None;
        if self.has_failed {
            return Some(Err(SqlError::new("55000", "the statement failed before its last row")));
        }
        if let Some(is_paused) = &self.is_paused {
            is_paused.send_if_modified(std::mem::take);
        }
        let batch = self.take().await?;
        let batch = batch.and_then(|batch| self.charge(&batch).map(|()| batch));
        self.has_failed = batch.is_err();
        Some(batch)
    }

    /// Charges the copies of rows that are sent.
    fn charge(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        let shared = batch.get_array_memory_size();
        if shared.saturating_mul(batch.num_rows()) < SENT_SIZE_MIN {
            return Ok(());
        }
        let sizes = batch.columns().iter().map(|column| copied_size(column));
        let size = sizes.fold(0, usize::saturating_add);
        if size < SENT_SIZE_MIN {
            return Ok(());
        }
        if SENT_SIZE_MAX < size {
            let words = format!("a row of {size} bytes; {SENT_SIZE_MAX} are the most");
            return Err(SqlError::limit(words));
        }
        let sent = MemoryConsumer::new("rows that are sent").register(&self.memory);
        sent.try_grow(size.saturating_mul(COPIES))?;
        self.sent = Some(sent);
        Ok(())
    }

    async fn take(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        if let Some(batch) = self.ready.pop_front() {
            return Some(Ok(batch));
        }
        if let Some(batch) = self.made.as_mut()?.0.recv().await {
            return Some(batch);
        }
        let (_, mut task) = self.made.take()?;
        // Rows of work that ended in a panic are not all of them.
        let failure = task.join().await.err()?;
        Some(Err(SqlError::unexpected(format!("the statement failed: {failure}"))))
    }
}

/// Makes rows until there are no more, or nobody takes them; none while that is paused, except that a statement
/// that sleeps goes on sleeping.
async fn hand_over(
    mut rows: SendableRecordBatchStream,
    to: mpsc::Sender<Result<RecordBatch, SqlError>>,
    mut is_paused: watch::Receiver<bool>,
    sleep: Arc<SleepState>,
) {
    loop {
        // Without its session nothing is paused.
        let _ = is_paused.wait_for(|is_paused| !is_paused).await;
        let batch = tokio::select! {
            biased;
            () = paused(&mut is_paused, &sleep) => continue,
            batch = rows.next() => batch,
        };
        let Some(batch) = batch else { return };
        let is_last = batch.is_err();
        // Nobody hears when whoever asked has gone.
        if to.send(batch.map_err(SqlError::from)).await.is_err() || is_last {
            return;
        }
    }
}

/// Waits until a statement that is awake is paused; for ever without a session. One that sleeps is polled on: else it
/// could wait in line for a place, and keep the place that it is given.
async fn paused(is_paused: &mut watch::Receiver<bool>, sleep: &SleepState) {
    let has_session = is_paused.wait_for(|is_paused| *is_paused).await.is_ok();
    match has_session {
        true => sleep.awake().await,
        false => std::future::pending().await,
    }
}

/// Rows that are there at once: who is told of them need not wait for another thread.
#[derive(Default)]
pub(crate) struct Ready {
    pub(crate) batches: VecDeque<RecordBatch>,
    pub(crate) are_all: bool,
    /// Of the statement that makes the others.
    pub(crate) scope: StatementScope,
}

impl Ready {
    /// None yet, of the statement that this task works for.
    pub(crate) fn new() -> Ready {
        let scope = statement_scope::current().unwrap_or_default();
        Ready { scope, ..Ready::default() }
    }
}

/// Takes the rows that are there at once.
///
/// # Errors
/// Errors of the statement.
pub(crate) fn ready(
    mut rows: SendableRecordBatchStream,
) -> Result<(Ready, SendableRecordBatchStream), SqlError> {
    let mut ready = Ready::new();
    while ready.batches.len() < BATCHES_WAITING {
        match rows.next().now_or_never() {
            Some(Some(batch)) => ready.batches.push_back(batch?),
            Some(None) => {
                ready.are_all = true;
                break;
            }
            None => break,
        }
    }
    Ok((ready, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Schema;
    use datafusion::common::DataFusionError;
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;
    use std::time::Duration;

    /// Reads rows that come one by one until the second of two errors.
    fn read(rows: impl Fn(usize) -> Option<Result<RecordBatch, DataFusionError>> + Send + 'static) {
        let schema = Arc::new(Schema::empty());
        let rows = RecordBatchStreamAdapter::new(schema, stream::iter((0..).map_while(rows)));
        let memory: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let threads = Threads::new(memory.clone(), Duration::from_secs(60)).unwrap();
        let mut batches = Batches::new(VecDeque::new(), memory);
        let scope = StatementScope::default();
        batches.follow(Box::pin(rows), (&threads, scope), watch::channel(false).0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(runtime.block_on(batches.next()).unwrap().is_ok());
        for _ in 0..2 {
            assert!(runtime.block_on(batches.next()).unwrap().is_err());
        }
    }

    #[test]
    fn rows_of_a_failed_statement_never_end() {
        let batch = || RecordBatch::new_empty(Arc::new(Schema::empty()));
        read(move |at| match at {
            0 => Some(Ok(batch())),
            1 => Some(Err(DataFusionError::Execution("on purpose".to_string()))),
            _ => None,
        });
        read(move |at| match at {
            0 => Some(Ok(batch())),
            _ => panic!("on purpose"),
        });
    }
}
