//! Accepts the connections of one listener: room for each, TLS, then the door, until the server ends.

use super::connections::{Connection, Connections, Registered, Room};
use super::cores::Cores;
use super::table::Listener;
use crate::telemetry::{Limit, Telemetry};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// How long to wait before accepting again when the system has no more sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections that are still accepted when the server ends: as many as the system holds.
const LAST_ACCEPTED_MAX: usize = 4096;

/// Becomes true when the server ends.
pub type Stop = watch::Receiver<bool>;

/// What a door does with a connection.
pub trait Door: Send + Sync + 'static {
    /// Answer to clients for which there is no room, in the protocol; empty where it has none.
    const NO_ROOM: &'static [u8];

    /// Answer to a client that sends clear text, beginning with the byte `first`, to a port with TLS.
    /// `None` where the protocol has no such answer.
    fn refuse_clear_text(first: u8) -> Option<Vec<u8>> {
        let _ = first;
        None
    }

    /// Serves a connection until it ends, which it does soon once `stop` says so, and at once when
    /// the connection is evicted.
    fn serve<S>(
        self: Arc<Self>,
        stream: S,
        connection: Arc<Connection>,
        stop: Stop,
    ) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static;
}

/// What accepting needs besides the door.
#[derive(Clone)]
pub struct Accepting {
    /// Whose connections they are.
    pub listener: Listener,
    /// Room for them.
    pub connections: Arc<Connections>,
    /// Who serves them; none where those do who accept them.
    pub cores: Option<Arc<Cores>>,
    /// What is counted.
    pub telemetry: Arc<Telemetry>,
    /// For handshakes, where TLS is on.
    pub tls: Option<TlsAcceptor>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
}

/// Accepts connections until `stop` says so, and those that the system holds then; returns while
/// open ones end by themselves.
pub async fn accept<D: Door>(accepting: Accepting, streams: TcpListener, door: Arc<D>, stop: Stop) {
    let mut stopped = stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = streams.accept() => accepted,
            _ = stopped.wait_for(|is_stopping| *is_stopping) => break,
        };
        match accepted {
            Ok((socket, peer)) => accepting.admit(socket, peer, &door, &stop),
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // What was sent before the end is heard, where nobody waits for an answer.
    for _ in 0..LAST_ACCEPTED_MAX {
        let Some(Ok((socket, peer))) = accept_now(&streams).await else { return };
        accepting.admit(socket, peer, &door, &stop);
    }
}

/// A connection that is there already.
async fn accept_now(streams: &TcpListener) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    poll_fn(|context| match streams.poll_accept(context) {
        Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// First byte of a handshake of TLS.
const HANDSHAKE: u8 = 0x16;

/// The words for a client that speaks no TLS.
async fn refuse_clear_text<D: Door>(socket: &TcpStream) -> Option<Vec<u8>> {
    let mut first = [0];
    match socket.peek(&mut first).await {
        Ok(1..) if first[0] != HANDSHAKE => D::refuse_clear_text(first[0]),
        _ => None,
    }
}

impl Accepting {
    fn admit<D: Door>(&self, socket: TcpStream, peer: SocketAddr, door: &Arc<D>, stop: &Stop) {
        let counters = self.telemetry.listener(self.listener);
        counters.accepted.add(1);
        let Some((place, room)) = self.connections.register(Some(peer)) else {
            counters.full.add(1);
            // Says why and closes, without waiting for anything.
            let _ = socket.try_write(D::NO_ROOM);
            return;
        };
        if room == Room::Made {
            counters.full.add(1);
        }
        counters.open.add(1);
        let (accepting, door, stop) = (self.clone(), door.clone(), stop.clone());
        let serving = |socket| async move {
            if let Some(socket) = socket {
                accepting.serve(socket, &place, door, stop).await;
            }
            accepting.telemetry.listener(accepting.listener).open.subtract(1);
            drop(place);
        };
        match &self.cores {
            Some(cores) => cores.serve(socket, serving),
            None => drop(tokio::spawn(serving(Some(socket)))),
        }
    }

    async fn serve<D: Door>(
        &self,
        socket: TcpStream,
        place: &Registered,
        door: Arc<D>,
        mut stop: Stop,
    ) {
        // Answers are written whole; waiting for more bytes only makes them late.
        let _ = socket.set_nodelay(true);
        let connection = place.connection.clone();
        let Some(tls) = &self.tls else {
            return door.serve(socket, connection, stop).await;
        };
        // Who has to make room goes at once, or those that never shake hands would be over the limit.
        // They have not said anything yet that a server that ends should wait for.
        let handshake = async move {
            if let Some(words) = refuse_clear_text::<D>(&socket).await {
                refuse(socket, &words).await;
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the client speaks no TLS"));
            }
            tls.accept(socket).await
        };
        let shaken = tokio::select! {
            shaken = timeout(self.handshake_timeout, handshake) => shaken,
            _ = connection.evicted.notified() => return,
            _ = stop.wait_for(|is_stopping| *is_stopping) => return,
        };
        match shaken {
            Ok(Ok(stream)) => door.serve(stream, connection, stop).await,
            Ok(Err(error)) => {
                self.telemetry.tls_failures.add(1);
                tracing::debug!(%error, "TLS handshake failed");
            }
            Err(_) => self.telemetry.limit_hit(Limit::HeaderTimeout),
        }
    }
}

/// Bytes that a refused client may have sent: they are read, or the answer would be lost with them.
const REFUSED_SIZE_MAX: u64 = 64 << 10;

/// Answers a client and ends the connection. The caller bounds the time.
async fn refuse(mut socket: TcpStream, answer: &[u8]) {
    if socket.write_all(answer).await.is_ok() && socket.shutdown().await.is_ok() {
        let mut rest = socket.take(REFUSED_SIZE_MAX);
        let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    }
}
