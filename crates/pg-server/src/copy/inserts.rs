//! `INSERT INTO metrics`: the rows of a query to samples, all of them or none.

use super::Came;
use crate::protocol::handlers::Queries;
use crate::values::answers::{error, of_sql, until};
use futures::StreamExt as _;
use pgwire::api::results::Tag;
use pgwire::error::PgWireResult;
use pgwire::messages::response::TransactionStatus;
use sql::copy::CopyIn;
use sql::datafusion::arrow::array::RecordBatch;
use sql::datafusion::common::ScalarValue;
use sql::insert::Columns;
use std::pin::pin;

/// Bytes of rows that are made lines of where they come.
const SOME_SIZE: usize = 64 << 10;

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
        let mut batches = pin!(until(answer.batches, ends, permit.clone()));
        while let Some(batch) = batches.next().await {
            let lines = lines_of(&target.columns, batch?).await?;
            copying = self.push(copying, &lines).await?;
        }
        // Storing is no query.
        permit.leave();
        let copied = self.finish(copying, status).await?;
        let rows = usize::try_from(copied.samples).unwrap_or(usize::MAX);
        Ok(Tag::new("INSERT").with_oid(0).with_rows(rows))
    }
}

/// The lines of some rows. Those of many labels take their time, on a thread that may block.
async fn lines_of(columns: &Columns, batch: RecordBatch) -> PgWireResult<Vec<u8>> {
    let columns = columns.clone();
    let is_much = SOME_SIZE < batch.get_array_memory_size();
    let make = move || {
        let mut lines = Vec::new();
        columns.push_lines(&batch, &mut lines).map(|_| lines).map_err(of_sql)
    };
    match is_much {
        true => {
            let made = tokio::task::spawn_blocking(make).await;
            made.map_err(|failure| error("XX000", format!("INSERT: {failure}")))?
        }
        false => make(),
    }
}
