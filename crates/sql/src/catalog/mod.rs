//! What PostgreSQL's clients ask of PostgreSQL itself before and beside their own statements: its own
//! tables (`pg_catalog`), the standard's (`information_schema`), and functions about the session.
//!
//! Tables are rows made once and shared by all sessions. Those of things that are not here, as
//! views and triggers, are empty and not missing: clients join with them.

mod cells;
mod empty;
pub mod functions;
mod keys;
mod keywords;
mod relations;
mod roles;
mod timescale;
pub mod types;

use crate::error::SqlError;
use crate::ordinary::Setting;
use crate::policies::Policy;
use crate::rewrite::CATALOG_SCHEMA;
use cells::Table;
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider as _, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

pub use empty::has_no_rows;
pub use keys::VECTORS;
pub use keywords::KEYWORDS;
pub use relations::Relation;
pub use timescale::INFORMATION;

/// The standard's schema.
const INFORMATION_SCHEMA: &str = "information_schema";

/// The tables, shared by all sessions.
#[derive(Debug)]
pub struct Catalog {
    own: Arc<MemorySchemaProvider>,
    standard: Arc<MemorySchemaProvider>,
    timescale: Arc<MemorySchemaProvider>,
    /// The tables that are there without anybody making them.
    written: Vec<Relation>,
}

impl Catalog {
    /// Of a database with these relations.
    ///
    /// # Errors
    /// When rows do not fit their columns.
    pub fn new(written: Vec<Relation>) -> Result<Catalog, SqlError> {
        let own =
            types::tables().into_iter().chain(relations::tables(&written)).chain(empty::tables());
        let own = own.chain(roles::tables()).chain([keywords::table()]);
        let standard = relations::standard_tables(&written);
        let (own, standard) = (schema_of(own)?, schema_of(standard.into_iter())?);
        let timescale = schema_of(timescale::tables())?;
        Ok(Catalog { own, standard, timescale, written })
    }

    /// Whether a schema is one of those that tell of tables.
    pub fn tells(schema: &str) -> bool {
        [CATALOG_SCHEMA, INFORMATION_SCHEMA].contains(&schema)
    }

    /// All relations, where there are these ordinary tables.
    pub fn relations(&self, ordinary: &[Arc<tables::Table>]) -> Vec<Relation> {
        self.written.iter().cloned().chain(ordinary.iter().map(Relation::ordinary)).collect()
    }

    /// The one of its tables that has that name, if it is one of those that tell of ordinary tables; what they
    /// call the database is `own`.
    ///
    /// # Errors
    /// When rows do not fit their columns.
    pub fn table_of(
        &self,
        name: &str,
        ordinary: &[Arc<tables::Table>],
        own: &str,
    ) -> Result<Option<Arc<dyn TableProvider>>, SqlError> {
        let told = relations::told(name, &self.relations(ordinary));
        let told = told.map(|table| table.of_database(relations::DATABASE, own));
        told.map(|table| Ok(provider(&table)? as Arc<dyn TableProvider>)).transpose()
    }

    /// The one of its tables that has that name, if it tells of what settings are kept, or of the database
    /// `own`.
    ///
    /// # Errors
    /// When rows do not fit their columns.
    pub fn table_of_settings(
        &self,
        name: &str,
        settings: &[Setting],
        own: &str,
    ) -> Result<Option<Arc<dyn TableProvider>>, SqlError> {
        let told = roles::told(name, settings, own);
        told.map(|table| Ok(provider(&table)? as Arc<dyn TableProvider>)).transpose()
    }

    /// The one of TimescaleDB's tables that has that name.
    ///
    /// # Errors
    /// When rows do not fit their columns.
    pub(crate) fn table_of_timescale(
        &self,
        name: &str,
        ordinary: &[Arc<tables::Table>],
        policies: &[Policy],
    ) -> Result<Option<Arc<dyn TableProvider>>, SqlError> {
        let told = timescale::told(name, ordinary, policies);
        told.map(|table| Ok(provider(&table)? as Arc<dyn TableProvider>)).transpose()
    }

    /// Lets a session see them.
    ///
    /// # Errors
    /// When it has no catalog of that name.
    pub fn register(&self, context: &SessionContext, name: &str) -> Result<(), SqlError> {
        let catalog = context.catalog(name);
        let catalog = catalog.ok_or_else(|| SqlError::unexpected(format!("no catalog {name}")))?;
        catalog.register_schema(CATALOG_SCHEMA, self.own.clone())?;
        catalog.register_schema(INFORMATION_SCHEMA, self.standard.clone())?;
        catalog.register_schema(INFORMATION, self.timescale.clone())?;
        Ok(())
    }
}

fn schema_of(tables: impl Iterator<Item = Table>) -> Result<Arc<MemorySchemaProvider>, SqlError> {
    let schema = Arc::new(MemorySchemaProvider::new());
    for table in tables {
        schema.register_table(table.name.to_string(), provider(&table)?)?;
    }
    Ok(schema)
}

fn provider(table: &Table) -> Result<Arc<MemTable>, SqlError> {
    let batch = table.batch()?;
    let described: Schema = batch.schema().as_ref().clone();
    Ok(Arc::new(MemTable::try_new(Arc::new(described), vec![vec![batch]])?))
}
