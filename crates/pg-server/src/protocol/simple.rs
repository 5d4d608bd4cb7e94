//! Simple queries: a text of statements, each answered before the next one begins.

use super::extended::send_rows;
use super::handlers::Queries;
use crate::copy::inserts::Target;
use crate::statements::commands::one_text;
use crate::statements::prepared::Cursor;
use crate::values::answers::{error, notice, of_sql, warning, with_position};
use async_trait::async_trait;
use futures::{Sink, SinkExt as _};
use pgwire::api::portal::Format;
use pgwire::api::query::{
    SimpleQueryHandler, send_execution_response, send_query_response, send_ready_for_query,
};
use pgwire::api::results::{Response, Tag};
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, PgWireConnectionState, copy};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::RowDescription;
use pgwire::messages::response::{EmptyQueryResponse, TransactionStatus};
use pgwire::messages::simplequery::Query;
use sql::ordinary::Definition;
use sql::statements::Parsed;
use std::fmt::Debug;

#[async_trait]
impl SimpleQueryHandler for Queries {
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if !matches!(client.state(), PgWireConnectionState::ReadyForQuery) {
            return Err(PgWireError::NotReadyForQuery);
        }
        client.set_state(PgWireConnectionState::QueryInProgress);
        let answered = self.answer_text(client, &query.query).await;
        answered.map_err(|failure| with_position(failure, &query.query))?;
        if !matches!(client.state(), PgWireConnectionState::CopyInProgress(_)) {
            client.set_state(PgWireConnectionState::ReadyForQuery);
            let status = client.transaction_status();
            if status == TransactionStatus::Idle {
                self.end_portals(client, true)?;
            }
            self.settle_notifications(client).await?;
            send_ready_for_query(client, status).await?;
        }
        Ok(())
    }

    async fn do_query<C>(&self, _: &mut C, _: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Err(error("XX000", "simple queries are answered as they come"))
    }
}

/// Warning at the end of a transaction whose samples PostgreSQL would roll back.
const STAYS: &str = "samples that were copied or inserted stay, and those that were dropped are gone: that is done at once";

impl Queries {
    /// Answers all statements of a text.
    async fn answer_text<C>(&self, client: &mut C, text: &str) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let all = self.session()?.sql.parse(text).await.map_err(of_sql)?;
        if all.is_empty() {
            client
                .feed(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()))
                .await?;
        }
        // The lines of a COPY come where the next statement's answer would begin.
        let comes = |one: &Parsed| matches!(one, Parsed::CopyIn(copy) if copy.file().is_none());
        let copies = all.iter().position(comes);
        if copies.is_some_and(|at| at + 1 < all.len()) {
            let words = "COPY FROM STDIN must be the last statement of a query";
            return Err(error("0A000", words));
        }
        // A text of several statements is one transaction, unless it says otherwise.
        let changes = |one: &Parsed| {
            matches!(one, Parsed::Write(_) | Parsed::Define(_) | Parsed::Execute { .. })
        };
        let is_one = 1 < all.len() && all.iter().any(changes);
        if is_one && copies.is_some() {
            let words = "COPY FROM STDIN stands in a query of its own where others change tables";
            return Err(error("0A000", words));
        }
        if is_one {
            self.begin_text(client.transaction_status()).await?;
        }
        let answered = self.answer_all(client, all).await;
        if is_one {
            self.end_text(client.transaction_status(), answered.is_ok()).await?;
        }
        answered
    }

    async fn answer_all<C>(&self, client: &mut C, all: Vec<Parsed>) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        for parsed in all {
            let parsed = match parsed {
                Parsed::Execute { name, values } => self.parser.executed(&name, &values).await?.1,
                other => other,
            };
            self.answer_one(client, parsed).await?;
        }
        Ok(())
    }

    async fn answer_one<C>(&self, client: &mut C, parsed: Parsed) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        self.begin(client.transaction_status(), Some(&parsed))?;
        self.before(client, &parsed).await?;
        if let Parsed::CopyOut(copy) = parsed {
            return self.copy_out(client, copy).await;
        }
        if let Parsed::CopyIn(copy) = &parsed
            && copy.file().is_some()
        {
            return self.copy_file_in(client, copy.clone()).await;
        }
        match &parsed {
            Parsed::Declare { name, text, is_held } => {
                let described = self.parser.describe_text(text, &sql::Declared::default()).await?;
                let status = client.transaction_status();
                let cursor = Cursor { name: name.clone(), is_held: *is_held };
                self.declare(client, status, (&cursor, &described), None).await?;
                return send_execution_response(client, Tag::new("DECLARE CURSOR")).await;
            }
            Parsed::Fetch { name, count } => {
                return self.fetch_cursor(client, name, *count).await;
            }
            Parsed::Insert(insert) => {
                let target = Target { table: insert.table.clone(), columns: insert.columns() };
                let plan = self.session()?.sql.plan(insert.query.clone()).await.map_err(of_sql)?;
                let status = client.transaction_status();
                let tag = self.insert(&target, plan, Vec::new(), status).await?;
                return send_execution_response(client, tag).await;
            }
            _ => {}
        }
        if let Parsed::Define(definition) = parsed {
            return self.answer_definition(client, definition, false).await;
        }
        let tag = match &parsed {
            Parsed::Show(_) | Parsed::ShowAll => Some("SHOW"),
            Parsed::Query(query) if query.is_explain() => Some("EXPLAIN"),
            _ => None,
        };
        match (self.run_parsed(parsed).await?, tag) {
            (Response::Query(mut rows), Some(tag)) => {
                let fields = rows.row_schema.iter().map(Into::into).collect();
                let description = RowDescription::new(fields);
                client.feed(PgWireBackendMessage::RowDescription(description)).await?;
                send_rows(client, &mut rows, None).await?;
                send_execution_response(client, Tag::new(tag)).await
            }
            (Response::Query(rows), None) => send_query_response(client, rows, true).await,
            (other, _) => self.send_other(client, other, false).await,
        }
    }

    /// Makes, alters or drops tables, and says what came of it.
    pub async fn answer_definition<C>(
        &self,
        client: &mut C,
        definition: Definition,
        is_extended: bool,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let done = self.define(definition.clone()).await?;
        for words in &done.notices {
            client.feed(PgWireBackendMessage::NoticeResponse(notice(words))).await?;
        }
        if let Some(answer) = &done.answer {
            let parsed = Parsed::Define(definition);
            let Response::Query(row) = one_text(&parsed, answer, &Format::UnifiedText)? else {
                return Ok(());
            };
            return send_query_response(client, row, !is_extended).await;
        }
        let tag = Tag::new(done.tag);
        let rows = done.rows.and_then(|rows| usize::try_from(rows).ok());
        let tag = match rows {
            Some(rows) => tag.with_rows(rows),
            None => tag,
        };
        send_execution_response(client, tag).await
    }

    /// What a statement does to the connection itself, whichever way it came.
    pub async fn before<C>(&self, client: &mut C, parsed: &Parsed) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let session = self.session()?;
        let status = client.transaction_status();
        let is_idle = status == TransactionStatus::Idle;
        if matches!(parsed, Parsed::DropMetric(_)) && !is_idle {
            session.state().has_copied = true;
        }
        let said = match parsed {
            Parsed::Deallocate(Some(name)) if session.forget_template(name) => None,
            Parsed::Deallocate(Some(name)) => {
                if client.portal_store().get_statement(name).is_none() {
                    let words = format!("prepared statement \"{name}\" does not exist");
                    return Err(error("26000", words));
                }
                client.portal_store().rm_statement(name);
                session.state().kept.remove_statement(name);
                None
            }
            Parsed::Deallocate(None) => {
                self.forget_statements(client)?;
                None
            }
            Parsed::DiscardAll => {
                self.forget_statements(client)?;
                self.forget_portals(client);
                session.inbox().clear();
                None
            }
            Parsed::Close(Some(name)) => {
                self.close_cursor(client, name)?;
                None
            }
            Parsed::Close(None) => {
                self.forget_portals(client);
                None
            }
            Parsed::Begin { .. } if !is_idle => {
                Some(("25001", "there is already a transaction in progress"))
            }
            Parsed::Commit | Parsed::Rollback if is_idle => {
                Some(("25P01", "there is no transaction in progress"))
            }
            Parsed::RollbackTo(_) | Parsed::Savepoint(_) | Parsed::Release(_) if is_idle => {
                let words = "savepoints can only be used in transaction blocks";
                return Err(error("25P01", words));
            }
            Parsed::Rollback | Parsed::RollbackTo(_) if session.state().has_copied => {
                Some(("01000", STAYS))
            }
            // What has failed is rolled back.
            Parsed::Commit if session.state().has_copied && status == TransactionStatus::Error => {
                Some(("01000", STAYS))
            }
            _ => None,
        };
        self.turn_transaction(client, parsed).await?;
        if let Parsed::Upkeep(upkeep) = parsed {
            client.feed(PgWireBackendMessage::NoticeResponse(notice(upkeep.notice))).await?;
        }
        if let Some((code, words)) = said {
            client.feed(PgWireBackendMessage::NoticeResponse(warning(code, words))).await?;
        }
        Ok(())
    }

    fn close_cursor<C>(&self, client: &C, name: &str) -> PgWireResult<()>
    where
        C: ClientPortalStore,
        C::PortalStore: PortalStore,
    {
        if client.portal_store().get_portal(name).is_none() {
            return Err(error("34000", format!("cursor \"{name}\" does not exist")));
        }
        client.portal_store().rm_portal(name);
        self.session()?.state().kept.remove_portal(name);
        Ok(())
    }

    /// Forgets all prepared statements.
    fn forget_statements<C>(&self, client: &C) -> PgWireResult<()>
    where
        C: ClientPortalStore,
        C::PortalStore: PortalStore,
    {
        let mut state = self.session()?.state();
        state.templates.clear();
        let names = state.kept.clear_statements();
        names.iter().for_each(|name| client.portal_store().rm_statement(name));
        Ok(())
    }

    /// Sends what is no rows.
    pub async fn send_other<C>(
        &self,
        client: &mut C,
        response: Response,
        is_extended: bool,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let status = client.transaction_status();
        match response {
            Response::Execution(tag) => send_execution_response(client, tag).await,
            Response::TransactionStart(tag) => {
                client.set_transaction_status(TransactionStatus::Transaction);
                send_execution_response(client, tag).await
            }
            Response::TransactionEnd(tag) => {
                // What has failed cannot be committed.
                let tag = match status {
                    TransactionStatus::Error => Tag::new("ROLLBACK"),
                    _ => tag,
                };
                client.set_transaction_status(TransactionStatus::Idle);
                let is_kept = tag != Tag::new("ROLLBACK");
                self.session()?.settings().end_transaction(is_kept);
                self.end_transaction(client, is_kept)?;
                send_execution_response(client, tag).await
            }
            Response::CopyIn(response) => {
                copy::send_copy_in_response(client, response).await?;
                client.set_state(PgWireConnectionState::CopyInProgress(is_extended));
                Ok(())
            }
            _ => Err(error("XX000", "an answer of no known kind")),
        }
    }

    /// Ends the portals of a transaction, all but cursors that are held.
    pub fn end_transaction<C>(&self, client: &C, is_committed: bool) -> PgWireResult<()>
    where
        C: ClientPortalStore,
        C::PortalStore: PortalStore,
    {
        self.end_portals(client, is_committed)?;
        if !is_committed {
            self.session()?.actions().clear();
        }
        self.session()?.state().has_copied = false;
        Ok(())
    }
}
