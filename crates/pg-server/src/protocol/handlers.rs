//! What a connection answers with: pgwire's handlers, all of one [`Queries`] but the first.

use super::welcome::Welcome;
use crate::Postgres;
use crate::session::Session;
use crate::session::cancels::Cancelled;
use crate::session::place::Place;
use crate::statements::prepared::{Parser, Prepared, Purpose};
use crate::values::answers::{self, Ends, error, of_sql};
use async_trait::async_trait;
use pgwire::api::cancel::CancelHandler;
use pgwire::api::portal::Format;
use pgwire::api::results::Response;
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::response::TransactionStatus;
use sql::datafusion::common::ScalarValue;
use sql::ordinary::Fate;
use sql::statements::Parsed;
use sql::{Answer, Declared, SqlError};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// What a connection answers with.
pub struct Handlers {
    pub startup: Arc<Welcome>,
    pub query: Arc<Queries>,
}

impl Handlers {
    /// Creates the handlers of a new connection, with or without TLS.
    pub fn new(door: Arc<Postgres>, is_secure: bool) -> Handlers {
        let (parser, cancelled) = (Arc::default(), Arc::default());
        let startup = Welcome::new(&door, is_secure, &parser, &cancelled);
        Handlers { startup, query: Arc::new(Queries { door, parser, cancelled }) }
    }
}

/// Answers statements, `simple`, `extended` or `copies` for short.
pub struct Queries {
    pub door: Arc<Postgres>,
    pub parser: Arc<Parser>,
    pub cancelled: Arc<Cancelled>,
}

impl Drop for Queries {
    fn drop(&mut self) {
        self.door.cancels.forget(&self.cancelled);
    }
}

impl Queries {
    pub fn session(&self) -> PgWireResult<&Arc<Session>> {
        self.parser.session()
    }

    /// A statement begins; whether it may, in a transaction of that status.
    ///
    /// # Errors
    /// In a transaction that has failed, but for what ends it.
    pub fn begin(&self, status: TransactionStatus, parsed: Option<&Parsed>) -> PgWireResult<()> {
        self.cancelled.begin();
        let ends_it =
            matches!(parsed, Some(Parsed::Commit | Parsed::Rollback | Parsed::RollbackTo(_)));
        if status == TransactionStatus::Error && !ends_it {
            let words = "current transaction is aborted, commands ignored until end of \
                         transaction block";
            return Err(error("25P02", words));
        }
        Ok(())
    }

    /// Runs a statement that was prepared.
    pub async fn run_prepared(
        &self,
        prepared: &Prepared,
        parameters: Vec<ScalarValue>,
        format: &Format,
    ) -> PgWireResult<Response> {
        match prepared {
            Prepared::Query(described) if matches!(described.purpose, Purpose::Write { .. }) => {
                let planned = self.parser.plan_write(described).await?;
                self.write(planned, parameters, format).await
            }
            Prepared::Query(described) => {
                let statement = self.parser.plan(described).await?;
                let (answer, ends, permit) = self.run(statement, parameters).await?;
                // Of the types that the client was told, whatever the bound values have made of them.
                let answer = Answer { schema: described.schema.clone(), ..answer };
                answers::response(answer, format, ends, permit)
            }
            Prepared::Other(parsed) => self.run_other(parsed.clone(), format).await,
        }
    }

    /// Runs a statement that was just read.
    pub async fn run_parsed(&self, parsed: Parsed) -> PgWireResult<Response> {
        match parsed {
            Parsed::Query(statement) => {
                let asking = self.session()?.sql.ask(statement);
                let (answer, ends, permit) = self.until_its_end(asking, None).await?;
                answers::response(answer, &Format::UnifiedText, ends, permit)
            }
            Parsed::Write(write) => {
                let planned = self.session()?.sql.plan_write(write, Declared::default()).await;
                let planned = planned.map_err(of_sql)?;
                self.write(planned, Vec::new(), &Format::UnifiedText).await
            }
            other => self.run_other(other, &Format::UnifiedText).await,
        }
    }

    /// Takes the connection's place among the running queries; its portals go on.
    async fn place(&self) -> PgWireResult<Arc<Place>> {
        let session = self.session()?;
        let place = session.place(&self.door.app);
        place.take().await.map_err(|failure| error("53000", failure.to_string()))?;
        session.sql.resume();
        Ok(place)
    }

    /// The connection waits for its client: others may have its place.
    pub fn rest(&self) {
        if let Ok(session) = self.session() {
            session.rest();
        }
    }

    /// Runs what is planned; its rows come as they are made.
    ///
    /// # Errors
    /// When it cannot be run, is cancelled or takes too long before its first row.
    pub async fn query(
        &self,
        statement: sql::Statement,
        parameters: Vec<ScalarValue>,
        format: &Format,
    ) -> PgWireResult<Response> {
        let (answer, ends, permit) = self.run(statement, parameters).await?;
        answers::response(answer, format, ends, permit)
    }

    /// Runs what is planned: its rows, what ends them, and its place among the queries.
    ///
    /// # Errors
    /// As [`Queries::query`].
    pub async fn run(
        &self,
        statement: sql::Statement,
        parameters: Vec<ScalarValue>,
    ) -> PgWireResult<(Answer, Ends, Arc<Place>)> {
        let running = self.session()?.sql.run(statement, parameters);
        self.until_its_end(running, None).await
    }

    /// Waits for a statement, once it has its place among those that run; until it is cancelled, or its
    /// time is over, and `fate` has not yet decided that it comes to be.
    ///
    /// # Errors
    /// Those of the statement, and where it is ended.
    pub async fn until_its_end<T>(
        &self,
        running: impl Future<Output = Result<T, SqlError>>,
        fate: Option<&Fate>,
    ) -> PgWireResult<(T, Ends, Arc<Place>)> {
        let app = &self.door.app;
        let own = self.session()?.settings().statement_timeout();
        let time = app.config.query.timeout.min(own.unwrap_or(Duration::MAX));
        let deadline = Instant::now() + time;
        let permit = tokio::select! {
            biased;
            () = self.cancelled.heard() => return Err(PgWireError::QueryCanceled),
            permit = timeout_at(deadline, self.place()) => {
                permit.map_err(|_| answers::timed_out(time))??
            }
        };
        let ends = Ends { cancelled: self.cancelled.clone(), deadline, timeout: time };
        let mut running = std::pin::pin!(running);
        let ended = tokio::select! {
            biased;
            () = self.cancelled.heard() => Err(PgWireError::QueryCanceled),
            done = timeout_at(deadline, &mut running) => {
                done.map_err(|_| answers::timed_out(time))
            }
        };
        let done = match ended {
            Ok(done) => done,
            Err(failure) if fate.is_none_or(Fate::is_forgotten) => return Err(failure),
            // What is on its way to the disk cannot be called back, and is told as it is.
            Err(_) => running.await,
        };
        Ok((done.map_err(of_sql)?, ends, permit))
    }
}

#[async_trait]
impl CancelHandler for Queries {
    async fn on_cancel_request(&self, request: CancelRequest) {
        self.door.cancels.cancel(request.pid, &request.secret_key);
    }
}
