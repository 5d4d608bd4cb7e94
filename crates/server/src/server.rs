//! One server from start to end: open the store, open the doors, wait, close.
//!
//! ```text
//! start: bind > store.open > accept, self scrape
//! stop:  no new connections > open ones finish (bounded) > store.close
//!        a command that does not let go by then is left: the process ends without closing
//! ```

use crate::app::{App, Opened};
use crate::config::{Config, ListenerConfig};
use crate::doors;
use crate::legacy::Legacy;
use crate::listeners::accept::Accepting;
use crate::listeners::bind::{Bound, bind};
use crate::listeners::connections::Connections;
use crate::listeners::cores::Cores;
use crate::listeners::table::Listener;
use crate::listeners::tls;
use crate::shutdown::StopGuard;
use crate::{process, self_scrape};
use anyhow::{Context as _, anyhow};
use kv::KvOpening;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use store::{Store, StoreConfig, StoreOpening, WAL_DIR};
use tables::{TablesConfig, TablesOpening};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;
use vfs::Vfs;
use wal::{Consumers, Log};

/// How often a stop looks whether the last connection is gone.
const STOP_POLL: Duration = Duration::from_millis(20);
/// Time beyond `--shutdown-timeout` in which what is under way has to let go of what is closed.
const LET_GO_PATIENCE: Duration = Duration::from_secs(2);

/// A server that accepts requests.
pub struct Server {
    app: Arc<App>,
    connections: Vec<Arc<Connections>>,
    addresses: Vec<(Listener, SocketAddr)>,
    stop: watch::Sender<bool>,
    /// What the store, the keys and the tables share; closed after all of them.
    log: Arc<Log>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the store and begins to listen.
    ///
    /// # Errors
    /// When the address is taken, a file is missing, or the store cannot be opened.
    pub async fn start(config: Config, vfs: Arc<dyn Vfs>) -> anyhow::Result<Server> {
        // What is quick to fail comes first, and nobody is served before the store is open.
        let bound = bind_all(&config)?;
        let legacy = Arc::new(Legacy::new(&config.legacy)?);
        let addresses: Vec<_> = bound.iter().map(|(one, _)| (one.listener, one.address)).collect();
        let http = addresses.iter().find(|(listener, _)| *listener == Listener::Http);
        let (_, address) = *http.context("HTTP always listens")?;
        let (opened, log) = open(&config, vfs.clone()).await?;
        let app = Arc::new(App::new(config, opened, legacy.clone(), vfs, address));
        legacy.register(&app);
        // Whoever is away must not hold up the start.
        std::thread::spawn(move || legacy.look());
        let (stop, stopped) = watch::channel(false);
        let mut tasks = vec![
            tokio::spawn(self_scrape::run(app.clone(), stopped.clone())),
            tokio::spawn(crate::watch::run(app.clone(), stopped.clone())),
        ];
        let mut connections = Vec::new();
        let cores = Arc::new(Cores::start(&app.config).context("cannot start threads")?);
        for (one, tls) in bound {
            let accepting = accepting(&app, &one, tls, &cores);
            connections.push(accepting.connections.clone());
            tasks.extend(doors::open(&app, one, accepting, &stopped));
        }
        Ok(Server { app, connections, addresses, stop, log, tasks })
    }

    /// Where a listener listens, if it does.
    pub fn address_of(&self, listener: Listener) -> Option<SocketAddr> {
        let found = self.addresses.iter().find(|(known, _)| *known == listener);
        found.map(|(_, address)| *address)
    }

    /// Where it listens for HTTP.
    pub fn address(&self) -> SocketAddr {
        self.app.address
    }

    /// What its doors share.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Finishes what is under way, flushes, syncs, closes.
    ///
    /// # Errors
    /// When the store cannot be closed cleanly; the log then holds what was acknowledged.
    pub async fn stop(self) -> anyhow::Result<()> {
        let Server { app, connections, stop, log, tasks, .. } = self;
        app.is_stopping.store(true, Relaxed);
        stop.send_replace(true);
        let patience = app.config.shutdown_timeout;
        let guard = StopGuard::begin(patience + LET_GO_PATIENCE);
        for task in tasks {
            task.await.context("a background task panicked")?;
        }
        let deadline = Instant::now() + patience;
        let open = || connections.iter().map(|one| one.count()).sum::<usize>();
        while 0 < open() && Instant::now() < deadline {
            sleep(STOP_POLL).await;
        }
        match open() {
            0 => {}
            left => {
                tracing::warn!(left, ?patience, "connections still open after shutdown-timeout")
            }
        }
        let (store, kv, tables) = (app.store.clone(), app.kv.clone(), app.tables.clone());
        tokio::task::spawn_blocking(move || {
            if let Some(kv) = &kv {
                drop(kv.lock());
            }
            drop(guard);
            let keys = kv.map_or(Ok(()), |kv| kv.close());
            let rows = tables.map_or(Ok(()), |tables| tables.close());
            let samples = store.close();
            let logged = log.close();
            samples.context("closing the store")?;
            keys.context("closing the keys")?;
            rows.context("closing the tables")?;
            logged.context("closing the log")
        })
        .await?
    }
}

/// The sockets of all listeners, and what makes TLS of their connections where that is on.
fn bind_all(config: &Config) -> anyhow::Result<Vec<(Bound, Option<TlsAcceptor>)>> {
    let mut bound = Vec::new();
    for ListenerConfig { listener, address, .. } in &config.listeners {
        let row = listener.row();
        let tls = match &config.tls {
            Some((cert, key)) => Some(tls::acceptor(cert, key, row.alpn)?),
            None => None,
        };
        let one = bind(*listener, *address)
            .with_context(|| format!("cannot listen on {address} (--{}-listen)", row.name))?;
        bound.push((one, tls));
    }
    Ok(bound)
}

/// Whether a store that does not open may want repair: not when its owner asked for something else
/// than it is, when another process has it, or when there is nothing yet to be damaged.
fn may_be_damage(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<store::Error>() {
        Some(store::Error::OtherLength { .. } | store::Error::UnknownVersion { .. }) => false,
        Some(store::Error::Io(error)) => {
            !error.is_locked() && error.operation != "create directory"
        }
        Some(_) => true,
        // Those of keys and tables say it themselves.
        None => false,
    }
}

/// Opens what stands on the data directory. Replaying the log may take a while and must not hold up
/// signals.
async fn open(config: &Config, vfs: Arc<dyn Vfs>) -> anyhow::Result<(Opened, Arc<Log>)> {
    let shown = config.data_dir.display().to_string();
    let (directory, store_config) = (config.data_dir.clone(), config.store.clone());
    let kv_config = config.listener(Listener::Redis).map(|_| config.kv.clone());
    let opening = move || open_directory(vfs, &directory, store_config, kv_config);
    let (opened, log) = tokio::task::spawn_blocking(opening)
        .await
        .map_err(|error| anyhow!("opening the store panicked: {error}"))?
        .map_err(|error| {
            let mut text = format!("cannot open the store in {shown} (--data-dir)");
            if may_be_damage(&error) {
                text.push_str(
                    "; where it is damaged, `quipu verify` says how, and `quipu verify --repair` \
                     mends what can be mended",
                );
            }
            error.context(text)
        })?;
    say_what_was_found(&opened.store);
    Ok((opened, log))
}

/// All that share the log look at their files, are handed their records, and are open.
fn open_directory(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    store_config: StoreConfig,
    kv_config: Option<kv::KvConfig>,
) -> anyhow::Result<(Opened, Arc<Log>)> {
    let mut store = StoreOpening::look(vfs.clone(), directory, store_config)?;
    let mut keys = match kv_config {
        Some(config) => {
            let looked = KvOpening::look(vfs.clone(), directory, config);
            Some(looked.context("the keys do not open; stop and run `quipu verify --dry-run`")?)
        }
        None => None,
    };
    let looked = TablesOpening::look(vfs.clone(), directory, TablesConfig::default());
    let mut tables =
        looked.context("the tables do not open; stop and run `quipu verify --dry-run`")?;
    let log_config = store.log_config();
    let mut consumers = Consumers::default();
    store.declare(&mut consumers);
    if let Some(keys) = &mut keys {
        keys.declare(&mut consumers);
    }
    tables.declare(&mut consumers);
    let log = Log::open(vfs, &directory.join(WAL_DIR), log_config, consumers);
    let log = Arc::new(log.map_err(store::Error::from)?);
    let store = store.finish(log.clone())?;
    let kv = keys.map(|keys| keys.finish(log.clone())).transpose()?;
    let tables = Some(tables.finish(log.clone())?);
    Ok((Opened { store, kv, tables }, log))
}

/// Says what an owner should know of an opened store.
fn say_what_was_found(store: &Store) {
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

/// What a listener accepts with.
fn accepting(app: &App, bound: &Bound, tls: Option<TlsAcceptor>, cores: &Arc<Cores>) -> Accepting {
    let config = app.config.listener(bound.listener).expect("only what is configured is bound");
    let by_all: Vec<usize> = app.config.listeners.iter().map(|one| one.connections_max).collect();
    let wanted = config.connections_max;
    let files = process::open_files_max().unwrap_or(u64::MAX);
    let allowed = wanted.min(share_of_files(by_all, files));
    if allowed < wanted {
        let name = bound.listener.row().name;
        tracing::info!(
            allowed,
            files,
            "{name}.max-connections lowered: all listeners together may have half of the process' \
             file limit (ulimit -n)"
        );
    }
    Accepting {
        listener: bound.listener,
        connections: Connections::new(allowed, bound.listener.row().at_limit),
        cores: Some(cores.clone()),
        telemetry: app.telemetry.clone(),
        tls,
        handshake_timeout: app.config.http.header_timeout,
    }
}

/// How many connections a listener may have: sockets must leave half of the files for the store. Who
/// wants less than the others gets it; those that want more have the rest in equal parts, so that no
/// listener goes short because another one wants very many.
fn share_of_files(mut wanted: Vec<usize>, files: u64) -> usize {
    wanted.sort_unstable();
    let mut left = usize::try_from(files / 2).unwrap_or(usize::MAX);
    let mut share = left;
    for (at, one) in wanted.iter().enumerate() {
        share = left / (wanted.len() - at);
        if share < *one {
            break;
        }
        share = *one;
        left -= one;
    }
    share.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_share_the_log_and_are_there_again() {
        let vfs: Arc<dyn Vfs> = Arc::new(vfs::SimVfs::new(1));
        let open = |directory: &str| {
            let config = StoreConfig::standard();
            let kv_config = Some(kv::KvConfig::default());
            open_directory(vfs.clone(), Path::new(directory), config, kv_config).expect("it opens")
        };
        let (Opened { store, kv, tables }, log) = open("/data");
        let (kv, tables) = (kv.expect("it is on"), tables.expect("they are on"));
        let create = |table: &str| {
            let schema = tables::Schema::default();
            vec![tables::Change::Create { table: table.into(), schema }]
        };
        tables.apply(create("first")).expect("a new one");
        let mut link = |to: &Path| {
            tables.snapshot(to).expect("a good disk");
            Ok(())
        };
        let snapshot = store.create_snapshot_with(None, &mut link).expect("a good disk");
        tables.apply(create("second")).expect("a new one");
        kv.close().expect("a good disk");
        tables.close().expect("a good disk");
        store.close().expect("a good disk");
        log.close().expect("a good disk");
        drop((store, kv, tables, log));
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

    #[test]
    fn the_sockets_of_all_listeners_leave_files_for_the_store() {
        let each = |wanted: &[usize], files| -> Vec<usize> {
            let share = share_of_files(wanted.to_vec(), files);
            wanted.iter().map(|one| share.min(*one)).collect()
        };
        assert_eq!(each(&[10_000, 1000], 1 << 20), [10_000, 1000]);
        assert_eq!(each(&[10_000, 1000], u64::MAX), [10_000, 1000]);
        assert_eq!(each(&[10_000], 1024), [512]);
        assert_eq!(each(&[10_000, 1000], 1024), [256, 256]);
        assert_eq!(each(&[10_000, 100, 10_000], 1024), [206, 100, 206], "who wants little gets it");
        assert_eq!(each(&[10_000, 1], 0), [1, 1], "one is always served");
        assert_eq!(each(&[usize::MAX, usize::MAX], 1024), [256, 256]);
    }
}
