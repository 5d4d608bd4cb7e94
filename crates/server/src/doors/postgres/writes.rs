//! Statements that change ordinary tables, and the transactions that they are in.

use super::answers::{self, error, of_sql};
use super::handlers::Queries;
use pgwire::api::ClientInfo;
use pgwire::api::ClientPortalStore;
use pgwire::api::portal::Format;
use pgwire::api::results::{Response, Tag};
use pgwire::api::store::PortalStore;
use pgwire::error::PgWireResult;
use pgwire::messages::response::TransactionStatus;
use sql::SqlError;
use sql::datafusion::common::ScalarValue;
use sql::ordinary::{Defined, Definition, PlannedWrite};
use sql::statements::Parsed;
use std::future::Future;

/// The end of a statement that changed so many rows.
pub fn tag_of(word: &str, rows: usize) -> Tag {
    let tag = Tag::new(word).with_rows(rows);
    if word == "INSERT" { tag.with_oid(0) } else { tag }
}

impl Queries {
    /// Changes rows of an ordinary table.
    ///
    /// # Errors
    /// When nothing may be changed, and what is wrong with it: nothing is changed then.
    pub async fn write(
        &self,
        planned: PlannedWrite,
        parameters: Vec<ScalarValue>,
        format: &Format,
    ) -> PgWireResult<Response> {
        self.check_writes(planned.word())?;
        let running = self.session()?.sql.write(planned, parameters);
        let (changed, ends, permit) = self.until_its_end(running).await?;
        let rows = usize::try_from(changed.rows).unwrap_or(usize::MAX);
        let Some(answer) = changed.answer else {
            return Ok(Response::Execution(tag_of(changed.tag, rows)));
        };
        match answers::response(answer, format, ends, permit)? {
            Response::Query(mut returned) => {
                // What is counted behind it are its rows.
                let word = if changed.tag == "INSERT" { "INSERT 0" } else { changed.tag };
                returned.set_command_tag(word);
                Ok(Response::Query(returned))
            }
            other => Ok(other),
        }
    }

    /// Makes, alters or drops tables.
    ///
    /// # Errors
    /// As [`Queries::write`].
    pub async fn define(&self, definition: Definition) -> PgWireResult<Defined> {
        self.check_writes(definition.word())?;
        let running = self.session()?.sql.define(definition);
        Ok(self.until_its_end(running).await?.0)
    }

    fn check_writes(&self, word: &str) -> PgWireResult<()> {
        match self.session()?.settings().is_read_only() {
            true => {
                Err(error("25006", format!("cannot execute {word} in a read-only transaction")))
            }
            false => Ok(()),
        }
    }

    /// What a statement does to the transaction that ordinary tables are changed in.
    ///
    /// # Errors
    /// When it cannot be committed, and of savepoints that are not there.
    pub async fn turn_transaction<C>(&self, client: &mut C, parsed: &Parsed) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Send + Sync,
        C::PortalStore: PortalStore,
    {
        let sql = &self.session()?.sql;
        match (parsed, client.transaction_status()) {
            (Parsed::Begin { .. }, TransactionStatus::Idle) => sql.begin().await,
            (Parsed::Commit, TransactionStatus::Transaction) => {
                if let Err(failure) = sql.commit().await {
                    // It is over, and has left nothing.
                    client.set_transaction_status(TransactionStatus::Idle);
                    self.session()?.settings().end_transaction(false);
                    self.end_transaction(client)?;
                    return Err(of_sql(failure));
                }
            }
            (Parsed::Commit | Parsed::Rollback, _) => sql.roll_back().await,
            (Parsed::Savepoint(name), _) => sql.save(name).await.map_err(of_sql)?,
            (Parsed::Release(name), _) => sql.release(name).await.map_err(of_sql)?,
            (Parsed::RollbackTo(name), _) => sql.back_to(name).await.map_err(of_sql)?,
            _ => {}
        }
        Ok(())
    }

    /// Does several statements of one text as one transaction, unless one is under way.
    ///
    /// # Errors
    /// Those of the statements: nothing of them is there then.
    pub async fn as_one<T>(
        &self,
        is_one: bool,
        work: impl Future<Output = PgWireResult<T>> + Send,
    ) -> PgWireResult<T> {
        if !is_one {
            return work.await;
        }
        let sql = &self.session()?.sql;
        sql.begin().await;
        let done = work.await;
        match &done {
            Ok(_) => {}
            Err(_) => sql.roll_back().await,
        }
        done
    }

    /// Ends such a transaction.
    ///
    /// # Errors
    /// When it cannot be committed.
    pub async fn end_one(&self) -> PgWireResult<()> {
        let committed: Result<(), SqlError> = self.session()?.sql.commit().await;
        committed.map_err(of_sql)
    }
}
