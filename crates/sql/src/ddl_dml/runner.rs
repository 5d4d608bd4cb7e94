//! Runs the queries that a statement consists of, with its parameters.

use crate::parse::declared_types::Declared;
use crate::parse::query::Query;
use crate::parse::rewrite::expressions::query;
use crate::plan::context::Context;
use crate::plan::queries::{begin, plan};
use crate::plan::ready::Statement;
use crate::tables::heap::view::View;
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use crate::types::names::folded;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, TableWithJoins};
use futures::StreamExt as _;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parameters of a statement.
pub struct Parameters {
    /// By their names, as far as their types are known.
    pub(crate) known: BTreeMap<String, Option<DataType>>,
    declared: Declared,
}

impl Parameters {
    pub(crate) fn new(declared: &Declared) -> Parameters {
        Parameters { known: BTreeMap::new(), declared: declared.clone() }
    }

    /// Whether the client has said of which type one is.
    pub fn is_declared(&self, name: &str) -> bool {
        self.declared.says(name)
    }

    /// The type of one is known.
    pub fn insert(&mut self, name: &str, ty: DataType) {
        self.known.insert(name.to_string(), Some(ty));
    }
}

/// Plans and runs the queries that a statement is made of.
#[derive(Clone)]
pub struct Runner {
    /// The session's.
    pub context: Hidden<Context>,
    /// What the session sees.
    pub view: Arc<View>,
    /// Who came.
    pub user: Arc<str>,
    /// What the client has said of the parameters of what is planned.
    pub declared: Declared,
    /// Queries that the statement names in WITH.
    pub with: Option<Hidden<ast::With>>,
}

impl Runner {
    /// Plans a query.
    ///
    /// # Errors
    /// When it makes no sense.
    pub async fn plan(&self, query: Box<ast::Query>) -> Result<Statement, SqlError> {
        let query = Query::of(query)?.with_declared(self.declared.clone());
        plan(self.context.clone(), &self.view, query).await
    }

    /// Plans a query of a statement that changes rows: it may read the queries of the statement's WITH.
    ///
    /// # Errors
    /// When it makes no sense.
    pub async fn plan_with(&self, mut query: Box<ast::Query>) -> Result<Statement, SqlError> {
        if let Some(with) = &self.with {
            let mut all = ast::With::clone(with);
            if let Some(own) = query.with.take() {
                all.recursive |= own.recursive;
                all.cte_tables.retain(|one| {
                    let hides =
                        |other: &ast::Cte| folded(&other.alias.name) == folded(&one.alias.name);
                    !own.cte_tables.iter().any(hides)
                });
                all.cte_tables.extend(own.cte_tables);
            }
            query.with = Some(all);
        }
        self.plan(query).await
    }

    /// Runs what was planned.
    ///
    /// # Errors
    /// When it cannot be run.
    pub async fn run(
        &self,
        statement: &Statement,
        parameters: &[ScalarValue],
    ) -> Result<SendableRecordBatchStream, SqlError> {
        self.view.reads(statement);
        begin(self.context.clone(), statement.clone(), parameters.to_vec()).await
    }

    /// Runs what was planned; `take` gets its rows.
    ///
    /// # Errors
    /// When it cannot be run, and those of `take`.
    pub async fn each(
        &self,
        statement: &Statement,
        parameters: &[ScalarValue],
        mut take: impl FnMut(&RecordBatch) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut batches = self.run(statement, parameters).await?;
        while let Some(batch) = batches.next().await {
            take(&batch?)?;
        }
        Ok(())
    }

    /// A share of the memory that all statements have.
    pub fn memory(&self, name: &str) -> MemoryReservation {
        MemoryConsumer::new(name).register(&self.context.task().runtime_env().memory_pool)
    }
}

/// A name in quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A table of a schema as it stands in `FROM`.
///
/// # Errors
/// Never, unless names cannot be quoted.
pub fn relation(schema: &str, name: &str, alias: &str) -> Result<TableWithJoins, SqlError> {
    let (schema, name, alias) = (quoted(schema), quoted(name), quoted(alias));
    let made = query(&format!("SELECT 1 FROM {schema}.{name} AS {alias}"));
    let found = made.and_then(|made| match *made.body {
        SetExpr::Select(select) => select.from.into_iter().next(),
        _ => None,
    });
    found.ok_or_else(|| SqlError::unexpected(format!("{name} cannot be asked")))
}

/// A query of some tables.
///
/// # Errors
/// Never.
pub fn selecting(
    items: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
) -> Result<Box<ast::Query>, SqlError> {
    let mut made = query("SELECT 1").ok_or_else(|| SqlError::unexpected("no query"))?;
    if let SetExpr::Select(select) = &mut *made.body {
        (select.projection, select.from, select.selection) = (items, from, selection);
    }
    Ok(made)
}

/// Adds what a statement's query says of parameters to what is known.
pub fn add_parameters(known: &mut Parameters, statement: &Statement) -> Result<(), SqlError> {
    for (name, data_type) in statement.parameter_types()? {
        let one = known.known.entry(name).or_default();
        *one = one.take().or(data_type);
    }
    Ok(())
}
