//! Statements that change ordinary tables, and the transactions that they are in.

use crate::protocol::handlers::Queries;
use crate::session::settings::Settings;
use crate::values::answers::{self, error, of_sql};
use pgwire::api::ClientInfo;
use pgwire::api::ClientPortalStore;
use pgwire::api::portal::Format;
use pgwire::api::results::{Response, Tag};
use pgwire::api::store::PortalStore;
use pgwire::error::PgWireResult;
use pgwire::messages::response::TransactionStatus;
use sql::datafusion::common::ScalarValue;
use sql::ordinary::{Defined, Definition, Fate, PlannedWrite};
use sql::statements::{Isolation, Parsed};
use std::sync::Arc;

/// The end of a statement that changed so many rows.
pub fn tag_of(word: &str, rows: usize) -> Tag {
    match word {
        "EXPLAIN" => Tag::new(word),
        "INSERT" => Tag::new(word).with_rows(rows).with_oid(0),
        _ => Tag::new(word).with_rows(rows),
    }
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
        let fate = Arc::new(Fate::default());
        let running = self.session()?.sql.write(planned, parameters, &fate);
        let (changed, ends, permit) = self.until_its_end(running, Some(&fate)).await?;
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
        if let Some((name, value)) = definition.sets() {
            // What no session could set is not kept for those to come.
            Settings::default().set(name, value).map_err(of_sql)?;
        }
        let fate = Arc::new(Fate::default());
        let running = self.session()?.sql.define(definition, &fate);
        Ok(self.until_its_end(running, Some(&fate)).await?.0)
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
            (Parsed::Begin { isolation, .. }, TransactionStatus::Idle) => {
                let isolation = isolation.unwrap_or_else(|| self.default_isolation());
                sql.begin(isolation).await;
            }
            (Parsed::SetTransaction { isolation: Some(isolation), is_local: true, .. }, _) => {
                sql.isolate(*isolation).await;
            }
            // Several statements of one text: what stands before is committed, what follows begins anew.
            (Parsed::Commit, TransactionStatus::Idle) if self.session()?.state().is_text_one => {
                let committed = sql.commit().await;
                sql.begin(Isolation::default()).await;
                committed.map_err(of_sql)?;
            }
            (Parsed::Rollback, TransactionStatus::Idle) if self.session()?.state().is_text_one => {
                sql.roll_back().await;
                sql.begin(Isolation::default()).await;
            }
            (Parsed::Commit, TransactionStatus::Transaction) => {
                let committed = sql.commit().await;
                if self.session()?.state().is_text_one {
                    sql.begin(Isolation::default()).await;
                }
                if let Err(failure) = committed {
                    // It is over, and has left nothing.
                    client.set_transaction_status(TransactionStatus::Idle);
                    self.session()?.settings().end_transaction(false);
                    self.end_transaction(client, false)?;
                    return Err(of_sql(failure));
                }
            }
            (Parsed::Commit | Parsed::Rollback, _) => {
                sql.roll_back().await;
                if self.session()?.state().is_text_one {
                    sql.begin(Isolation::default()).await;
                }
            }
            (Parsed::Savepoint(name), _) => sql.save(name).await.map_err(of_sql)?,
            (Parsed::Release(name), _) => sql.release(name).await.map_err(of_sql)?,
            (Parsed::RollbackTo(name), _) => {
                sql.back_to(name).await.map_err(of_sql)?;
                // They may have been declared after the savepoint.
                let names = self.session()?.state().kept.take_uncommitted();
                names.iter().for_each(|name| client.portal_store().rm_portal(name));
            }
            _ => {}
        }
        Ok(())
    }

    fn default_isolation(&self) -> Isolation {
        let session = self.session().ok();
        let named = session.and_then(|session| {
            session.settings().get("default_transaction_isolation").and_then(Isolation::of_name)
        });
        named.unwrap_or_default()
    }

    /// Several statements of one text begin: they are one transaction, as far as they do not say
    /// otherwise.
    ///
    /// # Errors
    /// When the session has not begun.
    pub async fn begin_text(&self, status: TransactionStatus) -> PgWireResult<()> {
        let session = self.session()?;
        session.state().is_text_one = true;
        if status == TransactionStatus::Idle {
            session.sql.begin(Isolation::default()).await;
        }
        Ok(())
    }

    /// They end. What they did outside of a transaction that goes on is committed, unless one failed.
    ///
    /// # Errors
    /// When it cannot be committed.
    pub async fn end_text(&self, status: TransactionStatus, is_good: bool) -> PgWireResult<()> {
        let session = self.session()?;
        session.state().is_text_one = false;
        match (status, is_good) {
            (TransactionStatus::Idle, true) => session.sql.commit().await.map_err(of_sql),
            (TransactionStatus::Idle, false) => {
                session.sql.roll_back().await;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
