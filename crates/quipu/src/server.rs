//! One server from start to end: open the store, open the doors, wait, close.
//!
//! ```text
//! start: bind > store.open > accept, self scrape
//! stop:  no new connections > open ones finish (bounded) > store.close
//!        a command that does not let go by then is left: the process ends without closing
//! ```

use crate::opening::open;
use crate::protocols;
use crate::self_scrape;
use anyhow::{Context as _, anyhow};
use app::App;
use app::config::{Config, ListenerConfig};
use federation::{Legacy, Registration};
use net::file_metrics::FileMetrics;
use net::listeners::accept::Accepting;
use net::listeners::bind::{Bound, bind};
use net::listeners::connections::Connections;
use net::listeners::cores::Cores;
use net::listeners::table::Listener;
use net::listeners::tls;
use net::process;
use net::shutdown::StopGuard;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;
use vfs::Vfs;
use wal::Log;

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
        let (vfs, file_metrics) = FileMetrics::watch(vfs);
        let (opened, log) = open(&config, vfs.clone()).await?;
        let app = Arc::new(App::new(config, opened, legacy.clone(), vfs, address));
        app.telemetry.register(Arc::new(file_metrics));
        legacy.register(&Registration {
            vfs: &app.vfs,
            data_dir: &app.config.data_dir,
            store: &app.store,
            strings: &app.texts,
            measurements: &app.measurements,
            database_label: &app.config.insert.database_label,
            telemetry: &app.telemetry,
        });
        app.store.check_disk();
        app.refuse_writes();
        // Whoever is away must not hold up the start.
        std::thread::spawn(move || legacy.look());
        let (stop, stopped) = watch::channel(false);
        let mut tasks = vec![
            tokio::spawn(self_scrape::run(app.clone(), stopped.clone())),
            tokio::spawn(crate::watch::run(app.clone(), stopped.clone())),
        ];
        let mut connections = Vec::new();
        let cores =
            Arc::new(Cores::start(app.config.requests_max()).context("cannot start threads")?);
        for (one, tls) in bound {
            // The other listeners log their own line.
            if one.listener == Listener::Http {
                let encryption = if tls.is_some() { " with TLS" } else { "" };
                tracing::info!("HTTP is served at {}{encryption} (--http-listen)", one.address);
            }
            let accepting = accepting(&app, &one, tls, &cores);
            connections.push(accepting.connections.clone());
            tasks.extend(protocols::open(&app, one, accepting, &stopped));
        }
        Ok(Server { app, connections, addresses, stop, log, tasks })
    }

    /// Where a listener listens, if it does.
    pub fn address_of(&self, listener: Listener) -> Option<SocketAddr> {
        let found = self.addresses.iter().find(|(known, _)| *known == listener);
        found.map(|(_, address)| *address)
    }

    /// Every listener with its address.
    pub fn addresses(&self) -> &[(Listener, SocketAddr)] {
        &self.addresses
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
        let (store, schema) = (app.store.clone(), app.schema.clone());
        let (kv, tables) = (app.kv.clone(), app.tables.clone());
        tokio::task::spawn_blocking(move || {
            if let Some(kv) = &kv {
                drop(kv.lock());
            }
            drop(guard);
            let keys = kv.map_or(Ok(()), |kv| kv.close());
            let rows = tables.map_or(Ok(()), |tables| tables.close());
            let records = schema.close();
            let samples = store.close();
            let logged = log.close();
            samples.context("closing the store")?;
            records.context("closing the schema records")?;
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
            Some((cert, key)) => Some(
                tls::acceptor(cert, key, row.alpn)
                    .context("cannot use --tls-cert and --tls-key")?,
            ),
            None => None,
        };
        let one = bind(*listener, *address).map_err(|error| {
            let flag = format!("--{}-listen", row.name);
            let remedy = remedy_for(&error, &flag);
            anyhow!("cannot listen on {address} ({flag}): {error}{remedy}")
        })?;
        bound.push((one, tls));
    }
    Ok(bound)
}

/// Advice for an address that cannot be bound.
fn remedy_for(error: &io::Error, flag: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "; another program, perhaps another Quipu, has this port: stop it, or choose another \
             port by {flag}"
        ),
        io::ErrorKind::PermissionDenied => {
            format!("; ports below 1024 need a privilege: choose a higher one by {flag}")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("; this machine does not have the address: choose one of its own by {flag}")
        }
        _ => String::new(),
    }
}

/// What a listener accepts with.
fn accepting(app: &App, bound: &Bound, tls: Option<TlsAcceptor>, cores: &Arc<Cores>) -> Accepting {
    let config = app.config.listener(bound.listener).expect("only what is configured is bound");
    let by_all: Vec<usize> = app.config.listeners.iter().map(|one| one.connections_max).collect();
    let wanted = config.connections_max;
    let files = process::open_files_max().unwrap_or(u64::MAX);
    let allowed = wanted.min(share_of_files(by_all, files));
    let name = bound.listener.row().name;
    // The operator did not ask for the default.
    if allowed < wanted && !app.config.settings.is_default(&format!("{name}.max-connections")) {
        tracing::warn!(
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
