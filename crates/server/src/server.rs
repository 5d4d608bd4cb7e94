//! One server from start to end: open the store, open the door, wait, close.
//!
//! ```text
//! start: store.open > listen > self scrape
//! stop:  no new connections > open ones finish (bounded) > store.close
//! ```

use crate::app::App;
use crate::config::Config;
use crate::doors::http::connection::Connections;
use crate::doors::http::sockets::listen;
use crate::{process, self_scrape, tls};
use anyhow::{Context as _, anyhow};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use store::Store;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use vfs::Vfs;

/// How often a stop looks whether the last connection is gone.
const STOP_POLL: Duration = Duration::from_millis(20);

/// Connections that the system completes before they are accepted; it allows 4,096 by default.
const BACKLOG: u32 = 4096;

/// A server that accepts requests.
pub struct Server {
    app: Arc<App>,
    connections: Arc<Connections>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the store and begins to listen.
    ///
    /// # Errors
    /// When the address is taken, a file is missing, or the store cannot be opened.
    pub async fn start(config: Config, vfs: Arc<dyn Vfs>) -> anyhow::Result<Server> {
        let tls = match &config.http.tls {
            Some((cert, key)) => Some(tls::acceptor(cert, key)?),
            None => None,
        };
        // The address first: it fails fast, and nobody is served before the store is open.
        let wanted = config.http.listen;
        let listener =
            bind(wanted).with_context(|| format!("cannot listen on {wanted} (--http-listen)"))?;
        let address = listener.local_addr()?;
        let store = open_store(&config, vfs.clone()).await?;
        let connections = Connections::new(connections_max(&config));
        let app = Arc::new(App::new(config, store, vfs, address));
        let (stop, stopped) = watch::channel(false);
        let tasks = vec![
            tokio::spawn(listen(app.clone(), listener, tls, connections.clone(), stopped.clone())),
            tokio::spawn(self_scrape::run(app.clone(), stopped.clone())),
            tokio::spawn(crate::watch::run(app.clone(), stopped)),
        ];
        Ok(Server { app, connections, stop, tasks })
    }

    /// Where it listens.
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
        let Server { app, connections, stop, tasks } = self;
        app.is_stopping.store(true, Relaxed);
        stop.send_replace(true);
        for task in tasks {
            task.await.context("a background task panicked")?;
        }
        let patience = app.config.http.shutdown_timeout;
        let deadline = Instant::now() + patience;
        while 0 < connections.count() && Instant::now() < deadline {
            sleep(STOP_POLL).await;
        }
        match connections.count() {
            0 => {}
            left => {
                tracing::warn!(left, ?patience, "connections still open after shutdown-timeout")
            }
        }
        let store = app.store.clone();
        tokio::task::spawn_blocking(move || store.close()).await?.context("closing the store")
    }
}

/// A listener with a long queue: a fleet that reconnects all at once must not be turned away.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait for connections of the process before it.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Replaying the log may take a while and must not hold up signals.
async fn open_store(config: &Config, vfs: Arc<dyn Vfs>) -> anyhow::Result<Arc<Store>> {
    let (directory, store_config) = (config.data_dir.clone(), config.store.clone());
    let shown = directory.display().to_string();
    let store = tokio::task::spawn_blocking(move || Store::open(vfs, &directory, store_config))
        .await
        .map_err(|error| anyhow!("opening the store panicked: {error}"))?
        .with_context(|| {
            format!(
                "cannot open the store in {shown} (--data-dir); where it is damaged, `quipu verify` \
                 says how, and `quipu verify --repair` mends what can be mended"
            )
        })?;
    let cut = store.stats().log_cut_bytes;
    if 0 < cut {
        tracing::warn!(
            "the end of the log was cut off, {cut} bytes: a write that was interrupted, and not \
             acknowledged, unless the disk has lost something"
        );
    }
    Ok(store)
}

/// Sockets must leave files for the store.
fn connections_max(config: &Config) -> usize {
    let wanted = config.http.connections_max;
    let Some(files) = process::open_files_max() else { return wanted };
    let allowed = usize::try_from(files / 2).unwrap_or(usize::MAX).max(1);
    if allowed < wanted {
        tracing::info!(
            allowed,
            files,
            "http.max-connections lowered to half of the process' file limit (ulimit -n)"
        );
    }
    wanted.min(allowed)
}
