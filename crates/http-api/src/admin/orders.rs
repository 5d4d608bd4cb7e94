//! Orders: delete, snapshot, flush, merge.

use crate::http::answer::Answer;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use net::failure::{Failure, Kind};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// `POST /api/v1/admin/tsdb/delete_series?match[]=...&start=...&end=...`
pub fn delete_series(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let sets = selection::matcher_sets(app, request)?;
    if sets.is_empty() {
        return Err(Failure::bad_input("no match[] parameter provided"));
    }
    let range = selection::time_range(request)?;
    let sets = store::confine(&sets, &request.filters)?;
    let limits = selection::limits(app, request)?;
    let series = app.store.delete_within(&sets, range, &limits)?;
    tracing::info!(series, "deleted samples on request");
    Ok(Answer::no_content())
}

/// `POST /api/v1/admin/tsdb/clean_tombstones`: merging does that by itself; this does it now.
pub fn clean_tombstones(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    app.store.force_merge("")?;
    Ok(Answer::no_content())
}

/// `POST /api/v1/admin/tsdb/snapshot`, in Prometheus' shape.
pub fn snapshot(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let name = create_snapshot(app, None)?;
    Ok(Answer::success(json!({ "name": name })))
}

/// Makes a snapshot of samples, schema records, keys and tables.
fn create_snapshot(app: &App, ending: Option<u32>) -> Result<String, Failure> {
    if let Some(reason) = app.closed.reasons().next() {
        let message = format!("no snapshot is made: it would lack what is closed: {reason}");
        return Err(Failure::new(Kind::Damaged, message));
    }
    let name = app.store.create_snapshot_with(ending, &mut |directory| {
        app.schema.snapshot(directory).map_err(|error| match error {
            store::Error::Io(error) => error,
            other => of_others("link schema records to", directory, other),
        })?;
        if let Some(kv) = &app.kv {
            kv.snapshot(directory).map_err(|error| match error {
                kv::Error::Vfs(error) => error,
                other => of_others("link keys to", directory, other),
            })?;
        }
        if let Some(tables) = &app.tables {
            tables.snapshot(directory).map_err(|error| match error {
                tables::Error::Vfs(error) => error,
                other => of_others("link tables to", directory, other),
            })?;
        }
        Ok(())
    })?;
    Ok(name)
}

/// What others who are in a snapshot say, as the store says it.
fn of_others(
    operation: &'static str,
    directory: &Path,
    error: impl std::error::Error + Send + Sync + 'static,
) -> vfs::Error {
    vfs::Error::new(operation, directory, std::io::Error::other(error))
}

/// `POST /snapshot/create?ending=...`
pub fn snapshot_create(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let ending = request.params.filled("ending").map(|text| match text.len() {
        8 => u32::from_str_radix(text, 16).ok(),
        _ => None,
    });
    let ending = match ending {
        Some(None) => return Err(Failure::bad_input("ending is not 8 hexadecimal digits")),
        given => given.flatten(),
    };
    let name = create_snapshot(app, ending)?;
    Ok(Answer::json(&json!({ "status": "ok", "snapshot": name })))
}

/// `/snapshot/list`
pub fn snapshot_list(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::json(&json!({ "status": "ok", "snapshots": app.store.snapshots()? })))
}

/// `POST /snapshot/delete?snapshot=...`
pub fn snapshot_delete(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let name = request.params.filled("snapshot");
    let name = name.ok_or_else(|| Failure::bad_input("no snapshot parameter provided"))?;
    if !app.store.snapshots()?.iter().any(|known| known == name) {
        return Err(Failure::not_found(format!("there is no snapshot {name:?}")));
    }
    app.store.delete_snapshot(name)?;
    Ok(Answer::json(&json!({ "status": "ok" })))
}

/// `POST /snapshot/delete_all`
pub fn snapshot_delete_all(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    for name in app.store.snapshots()? {
        app.store.delete_snapshot(&name)?;
    }
    Ok(Answer::json(&json!({ "status": "ok" })))
}

/// `POST /internal/force_flush`
pub fn force_flush(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    app.store.flush()?;
    Ok(Answer::json(&json!({ "status": "ok" })))
}

/// `POST /internal/force_merge?partition_prefix=YYYY-MM`, how the names of partitions begin; `YYYY_MM`,
/// as others spell it, will do.
pub fn force_merge(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let prefix = request.params.get("partition_prefix").unwrap_or("").replace('_', "-");
    app.store.force_merge(&prefix)?;
    Ok(Answer::json(&json!({ "status": "ok" })))
}
