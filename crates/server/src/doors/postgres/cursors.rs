//! Cursors: portals that are declared, fetched and closed by statements.

use super::answers::error;
use super::extended::{failed_rows, send_rows};
use super::handlers::Queries;
use super::prepared::{Described, Prepared, Purpose};
use futures::{Sink, SinkExt as _};
use pgwire::api::ClientPortalStore;
use pgwire::api::portal::{Format, Portal, PortalExecutionState};
use pgwire::api::results::{Response, Tag};
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

impl Queries {
    /// Makes a portal of that name; `bound` has its parameters, where there are any.
    ///
    /// # Errors
    /// Outside a transaction, and when there is one of that name.
    pub fn declare<C>(
        &self,
        client: &C,
        status: TransactionStatus,
        (name, described): (&str, &Described),
        bound: Option<&Portal<Prepared>>,
    ) -> PgWireResult<()>
    where
        C: ClientPortalStore,
        C::PortalStore: PortalStore,
    {
        if status == TransactionStatus::Idle {
            let words = "DECLARE CURSOR can only be used in transaction blocks";
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
        portals.put_portal(Arc::new(portal));
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
            let words = format!("cursor \"{name}\" does not exist, or had its time");
            return Err(error("34000", words));
        };
        let Prepared::Query(described) = &portal.statement.statement else {
            return Err(error("34000", format!("cursor \"{name}\" is no query's")));
        };
        let fields = super::answers::fields(&described.schema, &Format::UnifiedText)?;
        let description = RowDescription::new(fields.iter().map(Into::into).collect());
        client.feed(PgWireBackendMessage::RowDescription(description)).await?;
        let state = portal.state();
        let mut state = state.lock().await;
        if matches!(*state, PortalExecutionState::Initial) {
            let parameters = super::parameters::values(described, &portal)?;
            let statement = &portal.statement.statement;
            let answer = self.run_prepared(statement, parameters, &Format::UnifiedText).await;
            let answer =
                answer.inspect_err(|_| *state = PortalExecutionState::Suspended(failed_rows()))?;
            let Response::Query(rows) = answer else {
                return Err(error("XX000", "a query without rows"));
            };
            *state = PortalExecutionState::Suspended(rows);
        }
        let sent = match &mut *state {
            PortalExecutionState::Suspended(rows) => send_rows(client, rows, count).await?,
            _ => super::extended::Sent { count: 0, is_over: true },
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
