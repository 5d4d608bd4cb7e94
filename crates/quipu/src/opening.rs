//! Opens what stands on the data directory: samples, schema records, keys and tables on one log.
//!
//! ```text
//! look (each reads its own files) ─► log: replay ─► finish ─► Opened
//!   └ keys or tables are damaged: they stay closed, their records stay in the log, all else opens
//! ```

use anyhow::{Context as _, anyhow};
use app::config::Config;
use app::{ClosedParts, Opened};
use cli::quantity::format_size;
use influx_schema::records::{self, RecordsConfig, RecordsOpening};
use kv::KvOpening;
use kv::config::EarlierKeys;
use net::data_dir;
use net::listeners::table::Listener;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{DirectoryState, Store, StoreConfig, StoreOpening, WAL_DIR};
use tables::{TablesConfig, TablesOpening};
use vfs::Vfs;
use wal::{Consumers, Log};

/// What the operator can do about a store that does not open; empty where the error says it.
fn remedy(error: &anyhow::Error) -> &'static str {
    if let Some(io) = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()) {
        match io.kind() {
            ErrorKind::PermissionDenied => {
                return "the user that runs quipu must own the directory and all files in it \
                        (chown -R)";
            }
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                return "the path leads to a file: name a directory";
            }
            ErrorKind::ReadOnlyFilesystem => return "the file system is mounted read-only",
            _ => {}
        }
    }
    match may_be_damage(error) {
        true => {
            "where it is damaged, `quipu verify` says how, and `quipu verify --repair` mends what can \
             be mended"
        }
        false => "",
    }
}

/// Whether a store that does not open may want repair: not when its owner asked for something else
/// than it is, when another process has it, or when there is nothing yet to be damaged.
fn may_be_damage(error: &anyhow::Error) -> bool {
    use store::Error;
    match error.downcast_ref::<Error>() {
        Some(
            Error::OtherLength { .. }
            | Error::UnknownVersion { .. }
            | Error::ForeignDirectory { .. }
            | Error::Invalid(_),
        ) => false,
        Some(Error::Io(error)) => !error.is_locked() && error.operation != "create directory",
        Some(_) => true,
        // Errors of keys and tables name their part.
        None => false,
    }
}

/// Opens what stands on the data directory. Replaying the log may take a while and must not hold up
/// signals.
pub async fn open(config: &Config, vfs: Arc<dyn Vfs>) -> anyhow::Result<(Opened, Arc<Log>)> {
    let shown = config.data_dir.display().to_string();
    let (directory, store_config) = (config.data_dir.clone(), config.store.clone());
    let kv_config = config.kv.clone();
    let is_served = config.listener(Listener::Redis).is_some();
    let begun = Instant::now();
    let state = store::inspect_directory(vfs.as_ref(), &directory);
    // An error is reported where the directory is opened.
    let state = state.unwrap_or(DirectoryState::Store);
    let opening = move || {
        let kv_config = kv_config_for(vfs.as_ref(), &directory, kv_config, is_served);
        open_directory(vfs, &directory, store_config, kv_config)
    };
    let (opened, log) = tokio::task::spawn_blocking(opening)
        .await
        .map_err(|error| anyhow!("opening the store panicked: {error}"))?
        .map_err(|error| {
            let mut text = format!("cannot open the store in {shown} (--data-dir)");
            let remedy = remedy(&error);
            if !remedy.is_empty() {
                text.push_str("; ");
                text.push_str(remedy);
            }
            error.context(text)
        })?;
    log_opened_store(&opened.store, &log, state, &shown, begun.elapsed());
    Ok((opened, log))
}

/// Settings to open keys; none if there are none and no listener serves them. Existing keys are open
/// without a listener, too: snapshots and backups have them, and the log does not keep their records for
/// ever. They are left as they are then: none expires, whatever number of databases they have.
fn kv_config_for(
    vfs: &dyn Vfs,
    directory: &Path,
    config: kv::KvConfig,
    is_served: bool,
) -> Option<kv::KvConfig> {
    let earlier_keys = match store::is_file_lost(vfs, directory, &kv::kv::manifest_file()) {
        true => EarlierKeys::Lost,
        false => EarlierKeys::Unknown,
    };
    let config = kv::KvConfig { earlier_keys, ..config };
    // A folder that cannot be listed closes the keys, as other damage does.
    let has_keys = || kv::kv::has_keys(vfs, directory).unwrap_or(true);
    match is_served {
        true => Some(config),
        false if earlier_keys == EarlierKeys::Lost || has_keys() => {
            Some(kv::KvConfig { databases: kv::config::DATABASES_AS_THERE, ..config })
        }
        false => None,
    }
}

/// Opens all that share the log. Damage to keys or tables closes those alone.
fn open_directory(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    store_config: StoreConfig,
    kv_config: Option<kv::KvConfig>,
) -> anyhow::Result<(Opened, Arc<Log>)> {
    let mut store = StoreOpening::look(vfs.clone(), directory, store_config)?;
    let mut schema = RecordsOpening::look(vfs.clone(), directory, RecordsConfig::default())?;
    data_dir::restrict(directory);
    let mut closed = ClosedParts::default();
    let keys = kv_config.map(|config| KvOpening::look(vfs.clone(), directory, config));
    let mut keys = match keys {
        Some(looked) => keys_or_damage(looked, directory, &mut closed)?,
        None => None,
    };
    let looked = TablesOpening::look(vfs.clone(), directory, TablesConfig::default());
    let mut tables = tables_or_damage(looked, directory, &mut closed)?;
    let log_config = store.log_config();
    let mut consumers = Consumers::default();
    store.declare(&mut consumers);
    schema.declare(&mut consumers);
    if let Some(keys) = &mut keys {
        keys.declare(&mut consumers);
    }
    if let Some(tables) = &mut tables {
        tables.declare(&mut consumers);
    }
    let log = Log::open(vfs, &directory.join(WAL_DIR), log_config, consumers);
    let log = Arc::new(log.map_err(store::Error::from)?);
    let (store, schema) = records::finish(store, schema, &log)?;
    let notes = keys.iter().flat_map(|keys| keys.notes().cloned().collect::<Vec<_>>());
    let notes = notes.chain(tables.iter().flat_map(TablesOpening::notes));
    notes.for_each(|note| tracing::warn!("{note}"));
    let kv = match keys.map(|keys| keys.finish(log.clone())) {
        Some(opened) => keys_or_damage(opened, directory, &mut closed)?,
        None => None,
    };
    let tables = match tables.map(|tables| tables.finish(log.clone())) {
        Some(opened) => tables_or_damage(opened, directory, &mut closed)?,
        None => None,
    };
    Ok((Opened { store, schema, kv, tables, closed }, log))
}

/// Keys that opened, or none and the reason. Only a newer format and fewer databases than are in use
/// stop the start.
fn keys_or_damage<T>(
    opened: kv::Result<T>,
    directory: &Path,
    closed: &mut ClosedParts,
) -> anyhow::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.is_no_damage() => Err(error).context("the keys do not open"),
        Err(error) => {
            closed.keys = Some(close("keys", &error.to_string(), directory));
            Ok(None)
        }
    }
}

/// As [`keys_or_damage`], for tables.
fn tables_or_damage<T>(
    opened: tables::Result<T>,
    directory: &Path,
    closed: &mut ClosedParts,
) -> anyhow::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.is_newer() => Err(error).context("the tables do not open"),
        Err(error) => {
            closed.tables = Some(close("tables", &error.to_string(), directory));
            Ok(None)
        }
    }
}

/// Logs that a part is closed. Returns the reason for clients, with paths within the data directory.
fn close(part: &str, error: &str, directory: &Path) -> String {
    tracing::error!(
        "{part} do not open and are closed, all else is served: {error}. Where a file is damaged, stop \
         the server and run `quipu verify --dry-run`"
    );
    let reason = error.replace(&format!("{}/", directory.display()), "");
    format!("{part} do not open and are closed: {reason}")
}

/// Logs which store was opened, and what its operator should know.
fn log_opened_store(
    store: &Store,
    log: &Log,
    state: DirectoryState,
    directory: &str,
    elapsed: Duration,
) {
    let length = store.partition_length();
    match state {
        DirectoryState::Empty => {
            tracing::info!("created a new store in {directory}, a partition is a {length}");
        }
        DirectoryState::Store => {
            let recovery = log.wal().recovery();
            tracing::info!(
                "opened the store in {directory} in {:.1} s, a partition is a {length}: replayed {} \
                 records ({}) of the log",
                elapsed.as_secs_f64(),
                recovery.record_count,
                format_size(recovery.payload_size)
            );
        }
    }
    let cut = store.stats().log_cut_bytes;
    if 0 < cut {
        tracing::warn!(
            "the end of the log was cut off, {cut} bytes: a write that was interrupted, and not \
             acknowledged, unless the disk has lost something"
        );
    }
    for off in store.off_in_log() {
        tracing::warn!(
            "the log has {} records of {}, which is switched off: from segment {} on it is kept",
            off.record_count,
            off.consumer,
            off.from_segment
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_keys_stay_closed_until_a_repair() {
        let disk = vfs::SimVfs::new(1);
        let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
        let directory = Path::new("/data");
        let open = |is_served: bool| {
            let config = kv_config_for(vfs.as_ref(), directory, kv::KvConfig::default(), is_served);
            open_directory(vfs.clone(), directory, StoreConfig::standard(), config).expect("opens")
        };
        let close = |(opened, log): (Opened, Arc<Log>)| {
            opened.kv.iter().for_each(|kv| kv.close().expect("a good disk"));
            opened.tables.iter().for_each(|tables| tables.close().expect("a good disk"));
            opened.schema.close().expect("a good disk");
            opened.store.close().expect("a good disk");
            log.close().expect("a good disk");
        };
        close(open(true));
        for name in vfs.list(&directory.join("keys")).expect("a folder") {
            vfs.remove(&directory.join("keys").join(name)).expect("a file");
        }
        for is_served in [true, false, true] {
            let opened = open(is_served);
            let reason = opened.0.closed.keys.clone().expect("closed");
            assert!(reason.contains("keys/MANIFEST: is missing"), "{reason}");
            assert!(opened.0.kv.is_none());
            close(opened);
        }
    }

    #[test]
    fn tables_share_the_log_and_are_there_again() {
        let vfs: Arc<dyn Vfs> = Arc::new(vfs::SimVfs::new(1));
        let open = |directory: &str| {
            let config = StoreConfig::standard();
            let kv_config = Some(kv::KvConfig::default());
            open_directory(vfs.clone(), Path::new(directory), config, kv_config).expect("it opens")
        };
        let (Opened { store, schema, kv, tables, .. }, log) = open("/data");
        let (kv, tables) = (kv.expect("it is on"), tables.expect("they are on"));
        let create = |table: &str| {
            let schema = tables::Schema::default();
            vec![tables::Change::Create { table: table.into(), schema }]
        };
        tables.apply(create("first")).expect("a new one");
        let mut link = |to: &Path| {
            schema.snapshot(to).expect("a good disk");
            tables.snapshot(to).expect("a good disk");
            Ok(())
        };
        let snapshot = store.create_snapshot_with(None, &mut link).expect("a good disk");
        tables.apply(create("second")).expect("a new one");
        kv.close().expect("a good disk");
        tables.close().expect("a good disk");
        schema.close().expect("a good disk");
        store.close().expect("a good disk");
        log.close().expect("a good disk");
        drop((store, schema, kv, tables, log));
        let names = |directory: &str| {
            let (opened, _log) = open(directory);
            let tables = opened.tables.expect("they are on").list();
            tables.iter().map(|table| table.name().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("/data"), ["first", "second"]);
        assert_eq!(names(&format!("/data/snapshots/{snapshot}")), ["first"]);
        let report =
            store::verify(vfs.clone(), Path::new("/data"), &mut |_| {}).expect("it can be read");
        assert!(report.notes.iter().all(|note| !note.file.ends_with("tables")), "{report:?}");
    }
}
