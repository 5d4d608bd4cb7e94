//! Extended queries: parse, bind, execute, as often as a client likes, until it says sync.
//!
//! A portal that has more rows than its client asked for waits for it, and so do its reading of the
//! store and its place among the running queries: until the transaction ends, or its time is over.

use super::handlers::Queries;
use crate::session::notifications::Notification;
use crate::statements::prepared::{Described, Parser, Prepared, Purpose};
use crate::statements::writes::tag_of;
use crate::values::answers::{error, fatal, with_position};
use async_trait::async_trait;
use futures::{Sink, SinkExt as _, StreamExt as _, stream};
use pgwire::api::portal::{Portal, PortalExecutionState};
use pgwire::api::query::{ExtendedQueryHandler, send_execution_response};
use pgwire::api::results::{QueryResponse, Response, Tag};
use pgwire::api::stmt::StoredStatement;
use pgwire::api::store::{Entry, PortalStore};
use pgwire::api::{ClientInfo, ClientPortalStore, DEFAULT_NAME};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Execute, Parse, ParseComplete, PortalSuspended,
    Sync as PgSync, TARGET_TYPE_BYTE_PORTAL, TARGET_TYPE_BYTE_STATEMENT,
};
use pgwire::messages::response::{
    EmptyQueryResponse, NotificationResponse, ReadyForQuery, TransactionStatus,
};
use sql::statements::Parsed;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};

#[async_trait]
impl ExtendedQueryHandler for Queries {
    type Statement = Prepared;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        self.parser.clone()
    }

    async fn on_parse<C>(&self, client: &mut C, message: Parse) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        if name != DEFAULT_NAME && client.portal_store().get_statement(name).is_some() {
            return Err(error("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let size = message.query.len() + 4 * message.type_oids.len();
        let kept = self.session()?.state().kept.put_statement(name, size);
        kept.map_err(|words| error("54000", words))?;
        let parsed = StoredStatement::parse(client, &message, self.query_parser()).await;
        let parsed = parsed.map_err(|failure| with_position(failure, &message.query));
        let parsed = parsed.and_then(|parsed| {
            let other = parsed.as_ref().and_then(|one| one.statement.other());
            self.begin(client.transaction_status(), other)?;
            Ok(parsed)
        });
        match parsed {
            Ok(Some(statement)) => client.portal_store().put_statement(Arc::new(statement)),
            Ok(None) => client.portal_store().put_empty_statement(name),
            Err(failure) => {
                client.portal_store().rm_statement(name);
                self.session()?.state().kept.remove_statement(name);
                return Err(failure);
            }
        }
        client.feed(PgWireBackendMessage::ParseComplete(ParseComplete::new())).await?;
        Ok(())
    }

    async fn on_bind<C>(&self, client: &mut C, message: Bind) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let statement_name = message.statement_name.as_deref().unwrap_or(DEFAULT_NAME);
        let name = message.portal_name.as_deref().unwrap_or(DEFAULT_NAME);
        if name != DEFAULT_NAME && client.portal_store().get_portal(name).is_some() {
            return Err(error("42P03", format!("cursor \"{name}\" already exists")));
        }
        let Some(statement) = client.portal_store().get_statement(statement_name) else {
            let words = format!("prepared statement \"{statement_name}\" does not exist");
            return Err(error("26000", words));
        };
        let sizes = message.parameters.iter().flatten().map(|bytes| bytes.len());
        let kept = self.session()?.state().kept.put_portal(name, sizes.sum());
        kept.map_err(|words| error("54000", words))?;
        match statement {
            Entry::Value(statement) => {
                let portal = Portal::try_new(&message, statement)?;
                crate::values::parameters::check(&portal)?;
                client.portal_store().put_portal(Arc::new(portal));
            }
            Entry::Empty => client.portal_store().put_empty_portal(name),
        }
        client.feed(PgWireBackendMessage::BindComplete(BindComplete::new())).await?;
        Ok(())
    }

    async fn on_execute<C>(&self, client: &mut C, message: Execute) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        let portal = match client.portal_store().get_portal(name) {
            Some(Entry::Value(portal)) => portal,
            Some(Entry::Empty) => {
                let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
                client.feed(empty).await?;
                return Ok(());
            }
            None => {
                let words = format!("portal \"{name}\" does not exist, or had its time");
                return Err(error("34000", words));
            }
        };
        let state = portal.state();
        let mut state = state.lock().await;
        let prepared = &portal.statement.statement;
        self.begin(client.transaction_status(), prepared.other())?;
        if matches!(*state, PortalExecutionState::Finished) && !prepared.has_rows() {
            return Err(error("55000", format!("portal \"{name}\" cannot be run")));
        }
        if self.do_at_once(client, &portal).await? {
            *state = PortalExecutionState::Finished;
            return Ok(());
        }
        if matches!(*state, PortalExecutionState::Initial) {
            let first = self.first_execution(client, &portal).await;
            match first.inspect_err(|_| *state = PortalExecutionState::Suspended(failed_rows()))? {
                Response::Query(rows) => *state = PortalExecutionState::Suspended(rows),
                other => {
                    *state = PortalExecutionState::Finished;
                    return self.send_other(client, other, true).await;
                }
            }
        }
        // None is all of them.
        let rows_max = usize::try_from(message.max_rows).ok().filter(|rows| *rows != 0);
        let sent = match &mut *state {
            PortalExecutionState::Suspended(rows) => send_rows(client, rows, rows_max).await?,
            _ => Sent { count: 0, is_over: true },
        };
        match sent.is_over {
            true => {
                *state = PortalExecutionState::Finished;
                self.session()?.state().kept.portal_is_over(name);
                let tag = match prepared {
                    Prepared::Query(described) => tag_of(described.word(), sent.count),
                    Prepared::Other(Parsed::Show(_) | Parsed::ShowAll) => Tag::new("SHOW"),
                    Prepared::Other(_) => Tag::new("SELECT").with_rows(sent.count),
                };
                client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
            }
            false => {
                self.portal_waits(name)?;
                let waits = PgWireBackendMessage::PortalSuspended(PortalSuspended::new());
                client.feed(waits).await?;
            }
        }
        Ok(())
    }

    async fn on_sync<C>(&self, client: &mut C, _: PgSync) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let status = client.transaction_status();
        if status == TransactionStatus::Idle {
            self.end_transaction(client, true)?;
            self.settle_notifications(client).await?;
        }
        client.send(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status))).await?;
        Ok(())
    }

    async fn on_close<C>(&self, client: &mut C, message: Close) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        match message.target_type {
            TARGET_TYPE_BYTE_STATEMENT => {
                client.portal_store().rm_statement(name);
                self.session()?.state().kept.remove_statement(name);
            }
            TARGET_TYPE_BYTE_PORTAL => {
                client.portal_store().rm_portal(name);
                self.session()?.state().kept.remove_portal(name);
            }
            other => return Err(PgWireError::InvalidTargetType(other)),
        }
        client.feed(PgWireBackendMessage::CloseComplete(CloseComplete::new())).await?;
        Ok(())
    }

    async fn do_query<C>(&self, _: &mut C, _: &Portal<Prepared>, _: usize) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Err(error("XX000", "portals are executed as they come"))
    }
}

impl Queries {
    /// Executes LISTEN, UNLISTEN and NOTIFY of a committed transaction, and sends the waiting notifications. Does nothing
    /// within a transaction.
    ///
    /// # Errors
    /// Returns errors of the connection, and `54000` if notifications are lost.
    pub async fn settle_notifications<C>(&self, client: &mut C) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if client.transaction_status() != TransactionStatus::Idle {
            return Ok(());
        }
        let session = self.session()?;
        let committed =
            self.door.notifications.commit(session.pid(), session.actions(), session.inbox());
        committed.map_err(|words| error("54000", words))?;
        let waiting = session.inbox().take().map_err(|words| fatal("54000", words))?;
        for Notification { pid, channel, payload } in waiting {
            let message = NotificationResponse::new(pid, channel, payload);
            client.feed(PgWireBackendMessage::NotificationResponse(message)).await?;
        }
        Ok(())
    }

    /// Waits until a notification has come; for ever where none may be sent now.
    pub async fn notification_arrived(&self, may_send: bool) {
        match self.session() {
            Ok(session) if may_send => session.inbox().arrived().await,
            _ => std::future::pending().await,
        }
    }

    /// Discards LISTEN, UNLISTEN and NOTIFY of a failed statement.
    pub fn forget_notifications(&self) {
        if let Ok(session) = self.session() {
            session.actions().clear();
        }
    }

    /// Waits until a portal that waits for its client has had its time; for ever where none waits.
    pub async fn portals_had_their_time(&self) {
        let until = self.session().ok().and_then(|session| session.state().kept.waiting_until());
        match until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// A portal waits for its client from now on, and not for ever.
    ///
    /// # Errors
    /// When the session has not begun.
    pub fn portal_waits(&self, name: &str) -> PgWireResult<()> {
        let until = Instant::now() + self.door.app.config.query.timeout;
        self.session()?.state().kept.portal_waits(name, until);
        Ok(())
    }

    /// Forgets the portals that have waited too long for their client, and frees what they hold.
    pub fn forget_late_portals<C>(&self, client: &C)
    where
        C: ClientPortalStore,
        C::PortalStore: PortalStore,
    {
        let Ok(session) = self.session() else { return };
        let late = session.state().kept.take_late(Instant::now());
        late.iter().for_each(|name| client.portal_store().rm_portal(name));
    }

    /// Forgets all portals, and frees what they hold.
    pub fn forget_portals<C>(&self, client: &C)
    where
        C: ClientPortalStore,
        C::PortalStore: PortalStore,
    {
        client.portal_store().clear_portals();
        if let Ok(session) = self.session() {
            session.state().kept.clear_portals();
        }
    }

    /// Does what has no rows that wait in a portal; whether it was such.
    async fn do_at_once<C>(&self, client: &mut C, portal: &Portal<Prepared>) -> PgWireResult<bool>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match &portal.statement.statement {
            Prepared::Other(Parsed::CopyOut(copy)) => self.copy_out(client, copy.clone()).await?,
            Prepared::Other(Parsed::CopyIn(copy)) if copy.file().is_some() => {
                self.copy_file_in(client, copy.clone()).await?;
            }
            Prepared::Other(Parsed::Define(definition)) => {
                self.answer_definition(client, definition.clone(), true).await?;
            }
            Prepared::Other(_) => return Ok(false),
            Prepared::Query(described) => match self.keep_rows(client, described, portal).await? {
                Some(tag) => send_execution_response(client, tag).await?,
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// Does what a query is for whose rows are not answered; none for others.
    async fn keep_rows<C>(
        &self,
        client: &C,
        described: &Described,
        portal: &Portal<Prepared>,
    ) -> PgWireResult<Option<Tag>>
    where
        C: ClientInfo + ClientPortalStore + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
    {
        let status = client.transaction_status();
        match &described.purpose {
            Purpose::Answer | Purpose::Explain | Purpose::Write { .. } => Ok(None),
            Purpose::Cursor(cursor) => {
                self.declare(client, status, (cursor, described), Some(portal)).await?;
                Ok(Some(Tag::new("DECLARE CURSOR")))
            }
            Purpose::Insert(target) => {
                let parameters = crate::values::parameters::values(described, portal)?;
                let plan = self.parser.plan(described).await?;
                self.insert(target, plan, parameters, status).await.map(Some)
            }
        }
    }

    async fn first_execution<C>(
        &self,
        client: &mut C,
        portal: &Portal<Prepared>,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let prepared = &portal.statement.statement;
        let parameters = match prepared {
            Prepared::Query(described) => crate::values::parameters::values(described, portal)?,
            Prepared::Other(parsed) => {
                self.before(client, parsed).await?;
                Vec::new()
            }
        };
        self.run_prepared(prepared, parameters, &portal.result_column_format).await
    }
}

/// What was sent of a portal.
pub struct Sent {
    /// How many rows.
    pub count: usize,
    /// Whether there are no more.
    pub is_over: bool,
}

/// Sends so many rows, all that are left for none. After an error the portal has failed: it cannot be run
/// again, not even where a savepoint revives its transaction.
///
/// # Errors
/// Those of the query, and of the connection.
pub async fn send_rows<C>(
    client: &mut C,
    rows: &mut QueryResponse,
    rows_max: Option<usize>,
) -> PgWireResult<Sent>
where
    C: Sink<PgWireBackendMessage> + Unpin + Send + Sync,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let mut count = 0;
    while rows_max.is_none_or(|rows_max| count < rows_max) {
        let row = match rows.data_rows().next().await {
            None => return Ok(Sent { count, is_over: true }),
            Some(Ok(row)) => row,
            Some(Err(failure)) => {
                *rows = failed_rows();
                return Err(failure);
            }
        };
        // A client that was told of no columns expects no rows; the command tag has their number.
        if row.field_count != 0 {
            client.feed(PgWireBackendMessage::DataRow(row)).await?;
        }
        count += 1;
    }
    Ok(Sent { count, is_over: false })
}

/// The rows of a portal that has failed: an error, however often they are asked for.
pub fn failed_rows() -> QueryResponse {
    let words = "portal cannot be run: its query failed before";
    QueryResponse::new(Arc::default(), stream::repeat_with(move || Err(error("55000", words))))
}
