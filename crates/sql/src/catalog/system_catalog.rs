//! What PostgreSQL's clients ask of PostgreSQL itself before and beside their own statements: its own
//! tables (`pg_catalog`), the standard's (`information_schema`), and functions about the session.
//!
//! Tables are rows made once and shared by all sessions. Those of things that are not here, as
//! views and triggers, are empty and not missing: clients join with them.

use crate::catalog::cells::Table;
use crate::catalog::{keywords, layout, names, relations, roles, settings, time_zones, timescale};
use crate::tables::heap::retention_policies::Policy;
use crate::tables::heap::stored_settings::Setting;
use crate::types::error::SqlError;
use crate::types::facts::Facts;
use crate::types::names::{CATALOG_SCHEMA, folded};
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider as _, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use crate::catalog::names::INFORMATION;
use crate::catalog::relations::Relation;

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
        let own = schema_of(with_layouts(CATALOG_SCHEMA, own_tables(&written)))?;
        let standard = relations::standard_tables(&written);
        let standard = schema_of(with_layouts(INFORMATION_SCHEMA, standard))?;
        let timescale = schema_of(timescale::tables().collect())?;
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
        let told = told.map(|table| table.of_database(names::DATABASE, own));
        told.map(|table| Ok(provider(&table)? as Arc<dyn TableProvider>)).transpose()
    }

    /// The table of that name, if its rows depend on the session: its settings, database and role.
    ///
    /// # Errors
    /// When rows do not fit their columns.
    pub fn table_of_session(
        &self,
        name: &str,
        kept: &[Setting],
        facts: &dyn Facts,
    ) -> Result<Option<Arc<dyn TableProvider>>, SqlError> {
        let table = match name {
            "pg_settings" => Some(settings::table(&|name| facts.setting(name))),
            "pg_stat_activity" => Some(roles::activity(facts)),
            "pg_timezone_names" => Some(time_zones::names(facts.now_us())),
            "pg_timezone_abbrevs" => Some(time_zones::abbreviated()),
            _ => roles::told(name, kept, &facts.database(), &facts.user()),
        };
        table.map(|table| Ok(provider(&table)? as Arc<dyn TableProvider>)).transpose()
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

/// Tables whose rows are made for each statement, see [`Catalog::table_of_session`].
const SESSION_TABLES: [&str; 4] =
    ["pg_settings", "pg_stat_activity", "pg_timezone_abbrevs", "pg_timezone_names"];

/// The tables of `pg_catalog` whose rows depend on the database.
fn own_tables(relations: &[Relation]) -> Vec<Table> {
    let tables = relations::tables(relations).into_iter().chain(roles::tables());
    let of_session = SESSION_TABLES.map(|name| Table { name, columns: "", rows: Vec::new() });
    tables.chain([keywords::table()]).chain(of_session).collect()
}

/// Adds the other tables of PostgreSQL's schema: with rows that every database has, or with none.
fn with_layouts(schema: &str, mut tables: Vec<Table>) -> Vec<Table> {
    for name in layout::tables_of(schema) {
        if tables.iter().all(|table| table.name != name) {
            tables.push(layout::table(name));
        }
    }
    tables
}

/// Whether a name of a relation is one of PostgreSQL's or TimescaleDB's own tables, whose rows are made while a
/// statement is planned.
pub fn is_catalog_name(name: &ObjectName) -> bool {
    let parts: Vec<String> =
        name.0.iter().filter_map(ObjectNamePart::as_ident).map(folded).collect();
    match parts.as_slice() {
        [.., schema, _] => {
            [CATALOG_SCHEMA, INFORMATION_SCHEMA].contains(&schema.as_str())
                || schema.starts_with("timescaledb")
        }
        [one] => one.starts_with("pg_"),
        [] => false,
    }
}

/// Whether a table of `pg_catalog` is about things that are not here.
pub fn has_no_rows(name: &str) -> bool {
    static FILLED: LazyLock<BTreeSet<&'static str>> =
        LazyLock::new(|| own_tables(&[]).iter().map(|table| table.name).collect());
    let is_of_schema = layout::tables_of(CATALOG_SCHEMA).any(|one| one == name);
    is_of_schema && !FILLED.contains(name) && !layout::has_rows(name)
}

fn schema_of(tables: Vec<Table>) -> Result<Arc<MemorySchemaProvider>, SqlError> {
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
