//! The messages of a `COPY`: its lines, its end.

use super::{Copied, CopyError, Copying};
use crate::protocol::handlers::Queries;
use crate::values::answers::{error, of_copy};
use app::App;
use async_trait::async_trait;
use futures::{Sink, SinkExt as _};
use net::admission::{BodyMemory, Pace};
use pgwire::api::ClientInfo;
use pgwire::api::copy::CopyHandler;
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyFail};
use pgwire::messages::response::{CommandComplete, TransactionStatus};
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

impl Queries {
    /// The `COPY` under way; none after it failed, when what the client still sends is passed over.
    fn take_copying(&self) -> PgWireResult<Option<Copying>> {
        Ok(self.session()?.state().copying.take())
    }

    /// Waits until the `COPY` under way is cancelled or its time is over, and gives it up; for ever
    /// where there is none. Returns what its client is told.
    pub async fn copy_is_over(&self) -> PgWireError {
        let ends = self.session().ok().and_then(|session| {
            let state = session.state();
            let of_rows = || state.filling.as_ref().map(|rows| (rows.ends(), rows.pace()));
            state.copying.as_ref().map(|lines| (lines.ends(), lines.pace())).or_else(of_rows)
        });
        let Some((ends, pace)) = ends else { return std::future::pending().await };
        let why = tokio::select! {
            biased;
            () = self.cancelled.heard() => PgWireError::QueryCanceled,
            why = late(ends) => why,
            why = reclaimed(&self.door.app.body_memory, pace) => why,
        };
        let _ = self.forget_rows();
        let _ = self.take_copying();
        why
    }

    /// Says how many rows came, and how many were left out.
    pub async fn answer_copy<C>(&self, client: &mut C, rows: u64, rejected: u64) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if rejected != 0 {
            let words = format!("{rejected} rows were skipped due to data type incompatibility");
            let notice = pgwire::error::ErrorInfo::new("NOTICE".into(), "00000".into(), words);
            client.feed(PgWireBackendMessage::NoticeResponse(notice.into())).await?;
        }
        let tag = CommandComplete::new(format!("COPY {rows}"));
        client.send(PgWireBackendMessage::CommandComplete(tag)).await?;
        Ok(())
    }

    fn put_copying(&self, copying: Copying) -> PgWireResult<()> {
        self.session()?.state().copying = Some(copying);
        Ok(())
    }

    /// A piece comes.
    ///
    /// # Errors
    /// As [`Copying::push`] and [`Copying::work`].
    pub async fn push(&self, mut copying: Copying, piece: &[u8]) -> PgWireResult<Copying> {
        let memory = &self.door.app.body_memory;
        if !copying.push(piece, memory).await.map_err(of_copy)? {
            return Ok(copying);
        }
        let (mut copying, ()) = self.work(copying, Copying::read).await?;
        match copying.push_made(memory).await.map_err(of_copy)? {
            true => Ok(self.work(copying, Copying::work).await?.0),
            false => Ok(copying),
        }
    }

    /// All have come, and are stored.
    ///
    /// # Errors
    /// As [`Copying::finish`].
    pub async fn finish(
        &self,
        copying: Copying,
        status: TransactionStatus,
    ) -> PgWireResult<Copied> {
        let (_, copied) = self.work(copying, Copying::finish).await?;
        if status == TransactionStatus::Transaction {
            self.session()?.state().has_copied = true;
        }
        Ok(copied)
    }

    /// Does something with a `COPY`, on a thread that may block and when it is its turn.
    pub async fn work<T: Send + 'static>(
        &self,
        mut copying: Copying,
        work: impl FnOnce(&mut Copying, &App) -> Result<T, CopyError> + Send + 'static,
    ) -> PgWireResult<(Copying, T)> {
        let app = self.door.app.clone();
        let permit =
            app.inserts.enter().await.map_err(|failure| error("53000", failure.to_string()))?;
        let worked = tokio::task::spawn_blocking(move || {
            let done = work(&mut copying, &app);
            drop(permit);
            done.map(|done| (copying, done))
        });
        let worked = worked.await.map_err(|failure| error("XX000", format!("COPY: {failure}")))?;
        worked.map_err(of_copy)
    }
}

/// Waits until the time is over, for ever where there is no end of it.
async fn late(ends: Option<(Instant, Duration)>) -> PgWireError {
    match ends {
        Some((deadline, time)) => {
            sleep_until(deadline).await;
            overdue(time)
        }
        None => std::future::pending().await,
    }
}

/// Completes when a `COPY` must give up memory that others wait for; never if it holds none.
async fn reclaimed(memory: &BodyMemory, pace: Option<Pace>) -> PgWireError {
    let Some(pace) = pace else { return std::future::pending().await };
    memory.reclaim(pace).await;
    let message = "canceling COPY: less than 64 KiB a second came, and other requests wait for the \
                   memory that it holds (max-bodies-size)";
    error("53200", message)
}

/// Whether there is time left.
pub fn in_time(ends: Option<(Instant, Duration)>) -> PgWireResult<()> {
    match ends {
        Some((deadline, time)) if deadline <= Instant::now() => Err(overdue(time)),
        _ => Ok(()),
    }
}

fn overdue(time: Duration) -> PgWireError {
    error("57014", format!("canceling statement due to statement timeout ({time:?})"))
}

#[async_trait]
impl CopyHandler for Queries {
    async fn on_copy_data<C>(&self, _: &mut C, piece: CopyData) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if self.fills_table()? {
            return self.push_rows(&piece.data).await;
        }
        let Some(copying) = self.take_copying()? else { return Ok(()) };
        in_time(copying.ends())?;
        let copying = self.push(copying, &piece.data).await?;
        self.put_copying(copying)
    }

    async fn on_copy_done<C>(&self, client: &mut C, _: CopyDone) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if let Some((rows, rejected)) = self.end_rows().await? {
            return self.answer_copy(client, rows, rejected).await;
        }
        let copying = self.take_copying()?;
        let copying = copying.ok_or_else(|| error("08P01", "no COPY is under way"))?;
        in_time(copying.ends())?;
        let copying = self.read_file(copying).await?;
        let (mut copying, ()) = self.work(copying, Copying::read_last).await?;
        let memory = &self.door.app.body_memory;
        copying.push_made(memory).await.map_err(of_copy)?;
        // From here on it is stored, whatever the time.
        in_time(copying.ends())?;
        let copied = self.finish(copying, client.transaction_status()).await?;
        self.answer_copy(client, copied.samples, copied.rejected).await
    }

    async fn on_copy_fail<C>(&self, _: &mut C, fail: CopyFail) -> PgWireError
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let forgotten = self.forget_rows().and_then(|()| self.take_copying());
        match forgotten {
            Ok(_) => error("57014", format!("COPY from stdin failed: {}", fail.message)),
            Err(failure) => failure,
        }
    }
}
