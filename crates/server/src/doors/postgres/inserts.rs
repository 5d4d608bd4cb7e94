//! `INSERT INTO metrics`: the rows of a query to samples, all of them or none.

use super::answers::{of_sql, until};
use super::copy::Came;
use super::handlers::Queries;
use futures::StreamExt as _;
use pgwire::api::results::Tag;
use pgwire::error::PgWireResult;
use pgwire::messages::response::TransactionStatus;
use sql::copy::CopyIn;
use sql::datafusion::common::ScalarValue;
use sql::insert::Columns;
use std::pin::pin;

/// Where rows go.
#[derive(Clone, Debug)]
pub struct Target {
    /// The table.
    pub table: String,
    /// What the values of a row are.
    pub columns: Columns,
}

impl Queries {
    /// Stores the rows of a query that is planned; `status` is that of the transaction under way.
    ///
    /// # Errors
    /// When the table takes no samples, those of the query, and those of a `COPY`.
    pub async fn insert(
        &self,
        target: &Target,
        statement: sql::Statement,
        parameters: Vec<ScalarValue>,
        status: TransactionStatus,
    ) -> PgWireResult<Tag> {
        let asked = CopyIn { table: target.table.clone(), ..CopyIn::default() };
        let came = Came::Inserted(target.columns.format());
        let mut copying = self.copying(self.session()?, asked, came)?;
        let (answer, ends, permit) = self.run(statement, parameters).await?;
        let mut batches = pin!(until(answer.batches, ends));
        let mut lines = Vec::new();
        while let Some(batch) = batches.next().await {
            lines.clear();
            target.columns.push_lines(&batch?, &mut lines).map_err(of_sql)?;
            copying = self.push(copying, &lines).await?;
        }
        // Storing is no query.
        drop(permit);
        let copied = self.finish(copying, status).await?;
        let rows = usize::try_from(copied.samples).unwrap_or(usize::MAX);
        Ok(Tag::new("INSERT").with_oid(0).with_rows(rows))
    }
}
