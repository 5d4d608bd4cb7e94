//! The HTTP listener: accept, TLS, HTTP/1.1 or HTTP/2, limits on connections, graceful end.

use super::body::ReplyBody;
use super::connection::{Connection, Connections, Registered, Room, Verdict, Watched};
use super::exchange::exchange;
use crate::app::App;
use crate::telemetry::Limit;
use hyper::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Bytes of a request's head, and of one read from a socket; hyper answers 431 beyond.
const HEAD_SIZE_MAX: usize = 256 << 10;
/// How long to wait before accepting again when the system has no more sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Said to connections for which there is no room; the only answer that is not made by hyper.
const NO_ROOM: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 37\r\n\
connection: close\r\n\r\ntoo many open connections, all busy\r\n";

/// Accepts connections until `stop` says so; then returns, while open ones end by themselves.
pub async fn listen(
    app: Arc<App>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    connections: Arc<Connections>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|is_stopping| *is_stopping) => return,
        };
        match accepted {
            Ok((socket, peer)) => admit(&app, socket, peer, &tls, &connections, &stop),
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn admit(
    app: &Arc<App>,
    socket: TcpStream,
    peer: SocketAddr,
    tls: &Option<TlsAcceptor>,
    connections: &Arc<Connections>,
    stop: &watch::Receiver<bool>,
) {
    app.telemetry.connections_total.add(1);
    let Some((place, room)) = connections.register(Some(peer)) else {
        app.telemetry.limit_hit(Limit::Connections);
        refuse(socket);
        return;
    };
    if room == Room::Made {
        app.telemetry.limit_hit(Limit::Connections);
    }
    app.telemetry.connections.add(1);
    let (app, tls, stop) = (app.clone(), tls.clone(), stop.clone());
    tokio::spawn(async move {
        serve_socket(&app, socket, tls, &place, stop).await;
        app.telemetry.connections.subtract(1);
        drop(place);
    });
}

/// Says why and closes, without waiting for anything.
fn refuse(socket: TcpStream) {
    let _ = socket.try_write(NO_ROOM);
}

async fn serve_socket(
    app: &Arc<App>,
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    place: &Registered,
    stop: watch::Receiver<bool>,
) {
    // Answers are written whole; waiting for more bytes only makes them late.
    let _ = socket.set_nodelay(true);
    let connection = place.connection.clone();
    let Some(tls) = tls else {
        return serve_stream(app, socket, connection, stop).await;
    };
    match timeout(app.config.http.header_timeout, tls.accept(socket)).await {
        Ok(Ok(stream)) => serve_stream(app, stream, connection, stop).await,
        Ok(Err(error)) => {
            app.telemetry.tls_failures.add(1);
            tracing::debug!(%error, "TLS handshake failed");
        }
        Err(_) => app.telemetry.limit_hit(Limit::HeaderTimeout),
    }
}

async fn serve_stream<S>(
    app: &Arc<App>,
    stream: S,
    connection: Arc<Connection>,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = {
        let (app, connection) = (app.clone(), connection.clone());
        service_fn(move |request: hyper::Request<Incoming>| {
            let (app, connection) = (app.clone(), connection.clone());
            async move {
                Ok::<Response<ReplyBody>, Infallible>(exchange(app, connection, request).await)
            }
        })
    };
    let builder = builder();
    let io = TokioIo::new(Watched::new(stream, connection.clone()));
    let mut serving = pin!(builder.serve_connection(io, service));
    let http = &app.config.http;
    let mut tick =
        interval(http.header_timeout.min(http.idle_timeout).max(Duration::from_millis(20)) / 2);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_ending = false;
    loop {
        tokio::select! {
            _ = serving.as_mut() => return,
            _ = connection.evicted.notified() => return,
            _ = stop.wait_for(|is_stopping| *is_stopping), if !is_ending => {
                is_ending = true;
                serving.as_mut().graceful_shutdown();
            }
            _ = tick.tick() => match connection.verdict(http) {
                Verdict::Keep => {}
                Verdict::Idle if is_ending => {}
                Verdict::Idle => {
                    app.telemetry.limit_hit(Limit::IdleTimeout);
                    is_ending = true;
                    serving.as_mut().graceful_shutdown();
                }
                Verdict::SlowHead => return app.telemetry.limit_hit(Limit::HeaderTimeout),
                Verdict::Stuck => return app.telemetry.limit_hit(Limit::WriteTimeout),
            },
        }
    }
}

/// hyper's own timer for heads is off: it would also close connections between requests.
fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEAD_SIZE_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_SIZE_MAX as u32)
        .max_concurrent_streams(64)
        .adaptive_window(true);
    builder
}
