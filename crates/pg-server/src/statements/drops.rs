//! `SELECT drop_metric('name')`: all samples of a metric are deleted, for good and at once.

use super::prepared::fields_of;
use crate::protocol::handlers::Queries;
use crate::values::answers::error;
use app::App;
use model::{METRIC_NAME, Matcher, TimeRange};
use net::failure::Failure;
use pgwire::api::portal::Format;
use pgwire::api::results::{DataRowEncoder, QueryResponse, Response};
use pgwire::error::PgWireResult;
use sql::statements::Parsed;
use std::sync::Arc;
use store::SelectLimits;

impl Queries {
    /// Does what a statement says that no plan is made of, on a thread that may block if it must.
    ///
    /// # Errors
    /// When it makes no sense, and when nothing may be changed.
    pub async fn run_other(&self, parsed: Parsed, format: &Format) -> PgWireResult<Response> {
        let Parsed::DropMetric(name) = &parsed else { return self.do_other(parsed, format) };
        let has_dropped = self.drop_metric(name).await?;
        let fields = Arc::new(fields_of(&parsed, format));
        let mut encoder = DataRowEncoder::new(fields.clone());
        encoder.encode_field(&has_dropped)?;
        let row = encoder.take_row();
        Ok(Response::Query(QueryResponse::new(fields, futures::stream::iter([Ok(row)]))))
    }

    /// Whether there was anything of that metric.
    async fn drop_metric(&self, name: &str) -> PgWireResult<bool> {
        if self.session()?.settings().is_read_only() {
            let words = "cannot execute drop_metric() in a read-only transaction";
            return Err(error("25006", words));
        }
        if name.is_empty() {
            return Err(error("22023", "drop_metric(name): a metric has a name"));
        }
        let app = self.door.app.clone();
        let permit = app.inserts.enter().await;
        let permit = permit.map_err(|failure| error("53000", failure.to_string()))?;
        let set = vec![Matcher::equal(METRIC_NAME, name)];
        let deleted = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            delete(&app, set)
        });
        match deleted.await {
            Ok(Ok(has_dropped)) => Ok(has_dropped),
            Ok(Err(failure)) => Err(error("58000", failure.to_string())),
            Err(failure) => Err(error("XX000", format!("drop_metric failed: {failure}"))),
        }
    }
}

/// Deletes all there is; whether there was anything, of which the store counts what was deleted
/// before, too.
fn delete(app: &App, set: Vec<Matcher>) -> Result<bool, Failure> {
    let (sets, range) = ([set], TimeRange::ALL);
    let labels = app.store.strict().own().label_names(&sets, range, &SelectLimits::UNLIMITED)?;
    let series = app.store.delete(&sets, range)?;
    tracing::info!(series, "deleted samples on request");
    Ok(!labels.is_empty())
}
