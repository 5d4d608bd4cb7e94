//! Cursors: portals that are declared, fetched and closed by statements.

use super::prepared::{Cursor, Described, Prepared, Purpose};
use crate::protocol::extended::{failed_rows, send_rows};
use crate::protocol::handlers::Queries;
use crate::values::answers::error;
use futures::{Sink, SinkExt as _, StreamExt as _, stream};
use pgwire::api::ClientPortalStore;
use pgwire::api::portal::{Format, Portal, PortalExecutionState};
use pgwire::api::results::{QueryResponse, Response, Tag};
use pgwire::api::stmt::StoredStatement;
use pgwire::api::store::{Entry, MemPortalStore, PortalStore};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::RowDescription;
use pgwire::messages::response::TransactionStatus;
use std::sync::Arc;

/// The portals of a connection, whose kind the handlers of simple queries are not told.
fn portals<C>(client: &C) -> PgWireResult<&MemPortalStore<Prepared>>
where
    C: ClientPortalStore,
    C::PortalStore: PortalStore,
{
    let store = client.portal_store().as_any().downcast_ref();
    store.ok_or_else(|| error("XX000", "portals of another kind"))
}

/// Waits for the first row of a portal: until it is there, the statement has its place among the running queries.
async fn first_row_of(begun: PortalExecutionState) -> PgWireResult<PortalExecutionState> {
    let PortalExecutionState::Suspended(mut rows) = begun else { return Ok(begun) };
    let first = rows.data_rows().next().await.transpose()?;
    let schema = rows.row_schema.clone();
    let rest = stream::unfold(rows, |mut rows| async move {
        let row = rows.data_rows().next().await;
        row.map(|row| (row, rows))
    });
    let all = stream::iter(first.map(Ok)).chain(rest);
    Ok(PortalExecutionState::Suspended(QueryResponse::new(schema, all)))
}

impl Queries {
    /// Makes a portal of that name; `bound` has its parameters, where there are any. The query of one that
    /// is held begins at once: it answers from the data of this moment.
    ///
    /// # Errors
    /// Outside a transaction, when there is one of that name, and those of the query.
    pub async fn declare<C>(
        &self,
        client: &C,
        status: TransactionStatus,
        (cursor, described): (&Cursor, &Described),
        bound: Option<&Portal<Prepared>>,
    ) -> PgWireResult<()>
    where
        C: ClientPortalStore + Sync,
        C::PortalStore: PortalStore,
    {
        let name = cursor.name.as_str();
        if status == TransactionStatus::Idle && !cursor.is_held {
            let words = "DECLARE CURSOR can only be used in transaction blocks, \
                         but for DECLARE .. CURSOR WITH HOLD";
            return Err(error("25P01", words));
        }
        let portals = portals(client)?;
        if portals.get_portal(name).is_some() {
            return Err(error("42P03", format!("cursor \"{name}\" already exists")));
        }
        let parameters = bound.map(|portal| portal.parameters.clone()).unwrap_or_default();
        let size = parameters.iter().flatten().map(|bytes| bytes.len()).sum();
        let kept = self.session()?.state().kept.put_portal(name, size);
        kept.map_err(|words| error("54000", words))?;
        let types = bound.map(|portal| portal.statement.parameter_types.clone());
        let query = Prepared::Query(described.clone().with_purpose(Purpose::Answer));
        let statement = StoredStatement::new(String::new(), query, types.unwrap_or_default());
        let mut portal = Portal::new_cursor(name.to_string(), Arc::new(statement));
        portal.parameters = parameters;
        if let Some(bound) = bound {
            portal.parameter_format = bound.parameter_format.clone();
        }
        let portal = Arc::new(portal);
        if cursor.is_held {
            let begun = self.begin_portal(described, &portal).await;
            let begun = begun.inspect_err(|_| self.forget_size(name))?;
            let begun = first_row_of(begun).await.inspect_err(|_| self.forget_size(name))?;
            *portal.state().lock().await = begun;
            self.session()?.state().kept.hold_portal(name);
            self.portal_waits(name)?;
        }
        portals.put_portal(portal);
        Ok(())
    }

    fn forget_size(&self, name: &str) {
        if let Ok(session) = self.session() {
            session.state().kept.remove_portal(name);
        }
    }

    /// Runs the query of a cursor up to its first rows.
    async fn begin_portal(
        &self,
        described: &Described,
        portal: &Portal<Prepared>,
    ) -> PgWireResult<PortalExecutionState> {
        let parameters = crate::values::parameters::values(described, portal)?;
        let statement = &portal.statement.statement;
        match self.run_prepared(statement, parameters, &Format::UnifiedText).await? {
            Response::Query(rows) => Ok(PortalExecutionState::Suspended(rows)),
            _ => Err(error("XX000", "a query without rows")),
        }
    }

    /// Ends the portals of a transaction, and frees what they hold. Cursors that are held stay if the
    /// transaction is committed.
    ///
    /// # Errors
    /// When the session has not begun.
    pub fn end_portals<C>(&self, client: &C, is_committed: bool) -> PgWireResult<()>
    where
        C: ClientPortalStore,
        C::PortalStore: PortalStore,
    {
        let held = self.session()?.state().kept.end_transaction(is_committed);
        let portals = portals(client)?;
        let kept: Vec<_> = held.iter().filter_map(|name| portals.get_portal(name)).collect();
        portals.clear_portals();
        for entry in kept {
            if let Entry::Value(portal) = entry {
                portals.put_portal(portal);
            }
        }
        Ok(())
    }

    /// Sends so many rows of a cursor, all that are left for none.
    ///
    /// # Errors
    /// When there is no such cursor, and those of its query.
    pub async fn fetch_cursor<C>(
        &self,
        client: &mut C,
        name: &str,
        count: Option<usize>,
    ) -> PgWireResult<()>
    where
        C: ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let Some(Entry::Value(portal)) = portals(client)?.get_portal(name) else {
            let words = format!(
                "cursor \"{name}\" does not exist, or was open for longer than --query.timeout"
            );
            return Err(error("34000", words));
        };
        let Prepared::Query(described) = &portal.statement.statement else {
            return Err(error("34000", format!("cursor \"{name}\" is no query's")));
        };
        let fields = crate::values::answers::fields(&described.schema, &Format::UnifiedText)?;
        let description = RowDescription::new(fields.iter().map(Into::into).collect());
        client.feed(PgWireBackendMessage::RowDescription(description)).await?;
        let state = portal.state();
        let mut state = state.lock().await;
        if matches!(*state, PortalExecutionState::Initial) {
            let begun = self.begin_portal(described, &portal).await;
            *state =
                begun.inspect_err(|_| *state = PortalExecutionState::Suspended(failed_rows()))?;
        }
        let sent = match &mut *state {
            PortalExecutionState::Suspended(rows) => send_rows(client, rows, count).await?,
            _ => crate::protocol::extended::Sent { count: 0, is_over: true },
        };
        match sent.is_over {
            true => {
                *state = PortalExecutionState::Finished;
                self.session()?.state().kept.portal_is_over(name);
            }
            false => self.portal_waits(name)?,
        }
        let tag = Tag::new("FETCH").with_rows(sent.count);
        client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
        Ok(())
    }
}
