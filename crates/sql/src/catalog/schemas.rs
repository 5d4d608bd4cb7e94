//! Where a session finds tables by their names: those that all share, and beside them its own sight of
//! ordinary ones.

use crate::catalog::names::INFORMATION;
use crate::catalog::system_catalog::Catalog;
use crate::tables::heap::prometheus_tables::PrometheusTable;
use crate::tables::heap::retention_policies::policies;
use crate::tables::heap::scan::Ordinary;
use crate::tables::heap::stored_settings::settings;
use crate::tables::heap::stored_views;
use crate::tables::heap::view::View;
use crate::types::error::SqlError;
use crate::types::facts::Facts;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use futures::future::BoxFuture;
use std::sync::Arc;
use tables::Table;

/// The schema of tables with the numbers of their rows. No client can write such a name.
pub const ROWS_SCHEMA: &str = "\0rows";
/// The schema of tables that a statement hands to its own queries.
pub const HANDED_SCHEMA: &str = "\0handed";

/// The catalogs of a session, of which there is one.
#[derive(Debug)]
pub struct OwnCatalogs {
    name: &'static str,
    own: Arc<OwnCatalog>,
}

#[derive(Debug)]
struct OwnCatalog {
    shared: Arc<dyn CatalogProvider>,
    /// The schema of ordinary tables.
    public: &'static str,
    catalog: Arc<Catalog>,
    view: Arc<View>,
    client: Client,
    state: State,
}

/// The client whose session it is.
#[derive(Clone)]
pub struct Client {
    /// Its user, database and settings.
    pub facts: Arc<dyn Facts>,
    /// The database by the name that the client gave it.
    pub database: Arc<str>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// Plans the query of a view, as a table with the view's columns. The layer `plan` has it.
pub(crate) type PlanView =
    fn(SessionState, Arc<Table>, stored_views::View) -> BoxFuture<'static, PlannedView>;
/// The result of [`PlanView`].
pub(crate) type PlannedView = std::result::Result<Arc<dyn TableProvider>, SqlError>;

/// What a session's statements are planned with, as long as it is there.
#[derive(Clone)]
pub struct State {
    /// Returns the session's state; none when the session is gone.
    pub(crate) now: Arc<dyn Fn() -> Option<SessionState> + Send + Sync>,
    /// Plans views.
    pub(crate) plan_view: PlanView,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State")
    }
}

/// What is in a schema beside what all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Ordinary tables.
    Public,
    /// The same, and the numbers of their rows.
    Rows,
    /// What a statement hands to its own queries.
    Handed,
    /// PostgreSQL's own tables, which tell of ordinary ones, too.
    Told,
    /// TimescaleDB's, which tell of hypertables.
    Timescale,
}

#[derive(Debug)]
struct OwnSchema {
    kind: Kind,
    shared: Option<Arc<dyn SchemaProvider>>,
    catalog: Arc<Catalog>,
    view: Arc<View>,
    client: Client,
    state: State,
}

impl OwnCatalogs {
    /// Of a session that sees `view` in the database of `client`, in a catalog of that name; `state` is what its
    /// statements are planned with.
    pub fn new(
        name: &'static str,
        public: &'static str,
        shared: Arc<dyn CatalogProvider>,
        (catalog, view, client): (Arc<Catalog>, Arc<View>, Client),
        state: State,
    ) -> OwnCatalogs {
        let own = OwnCatalog { shared, public, catalog, view, client, state };
        OwnCatalogs { name, own: Arc::new(own) }
    }
}

impl CatalogProviderList for OwnCatalogs {
    fn register_catalog(
        &self,
        _: String,
        _: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.name.to_string()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == self.name).then(|| self.own.clone() as Arc<dyn CatalogProvider>)
    }
}

impl CatalogProvider for OwnCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.shared.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let shared = self.shared.schema(name);
        let kind = match name {
            ROWS_SCHEMA => Kind::Rows,
            HANDED_SCHEMA => Kind::Handed,
            name if name == self.public => Kind::Public,
            name if Catalog::tells(name) => Kind::Told,
            INFORMATION => Kind::Timescale,
            _ => return shared,
        };
        let (catalog, view, state) = (self.catalog.clone(), self.view.clone(), self.state.clone());
        let client = self.client.clone();
        Some(Arc::new(OwnSchema { kind, shared, catalog, view, client, state }))
    }
}

#[async_trait::async_trait]
impl SchemaProvider for OwnSchema {
    fn table_names(&self) -> Vec<String> {
        self.shared.as_ref().map(|shared| shared.table_names()).unwrap_or_default()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let own = match self.kind {
            // What is written down comes first: nobody makes a table of such a name.
            Kind::Public if !self.table_exist(name) => match self.view_of(name) {
                Some((table, view)) => Some(self.planned(table, view).await?),
                None => self.ordinary(name, false),
            },
            Kind::Public => None,
            Kind::Rows => self.ordinary(name, true),
            Kind::Handed => self.view.handed(name),
            Kind::Told => {
                self.told(name).map_err(|error| DataFusionError::External(Box::new(error)))?
            }
            Kind::Timescale => self
                .catalog
                .table_of_timescale(name, &self.view.list(), &policies(&self.view.set()))
                .map_err(|error| DataFusionError::External(Box::new(error)))?,
        };
        match (own, &self.shared) {
            (None, Some(shared)) => shared.table(name).await,
            (own, _) => Ok(own),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.table_exist(name))
    }
}

impl OwnSchema {
    fn view_of(&self, name: &str) -> Option<(Arc<Table>, stored_views::View)> {
        let table = self.view.get(name)?;
        let view = stored_views::View::of(table.schema())?;
        Some((table, view))
    }

    async fn planned(
        &self,
        table: Arc<Table>,
        view: stored_views::View,
    ) -> Result<Arc<dyn TableProvider>> {
        let state = (self.state.now)();
        let state = state.ok_or_else(|| DataFusionError::Internal("no session".into()))?;
        let planned = (self.state.plan_view)(state, table, view).await;
        planned.map_err(|error| DataFusionError::External(Box::new(error)))
    }

    /// What PostgreSQL's tables tell of what there is for the session; none where all share what is told.
    fn told(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, SqlError> {
        let (set, ordinary) = (self.view.set(), self.view.list());
        let Client { facts, database } = &self.client;
        let of_session = self.catalog.table_of_session(name, &settings(&set), facts.as_ref())?;
        match of_session {
            None if !(ordinary.is_empty() && database.is_empty()) => {
                self.catalog.table_of(name, &ordinary, database)
            }
            told => Ok(told),
        }
    }

    fn ordinary(&self, name: &str, has_row: bool) -> Option<Arc<dyn TableProvider>> {
        let table = self.view.get(name)?;
        if let Some(samples) = PrometheusTable::of(table.schema()) {
            return Some(Arc::new(samples.samples(&self.view)));
        }
        Some(Arc::new(Ordinary::new(&self.view, &table, has_row)))
    }
}
