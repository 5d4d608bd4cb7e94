//! A connection from its first byte to its last.
//!
//! ```text
//! first messages: TLS? encryption by GSS? ─► startup, password ─► messages until it ends
//! ```

use super::Postgres;
use super::answers::fatal;
use super::frames::Bounded;
use super::handlers::Handlers;
use crate::listeners::accept::{Door, Stop};
use crate::listeners::connections::Connection;
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use pgwire::api::{ClientInfo as _, DefaultClient, PgWireConnectionState};
use pgwire::error::{ErrorInfo, PgWireError};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::server::{PgWireMessageServerCodec, process_error, process_message};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};
use tokio_util::codec::{Framed, FramedParts};

/// What asks for TLS, and for encryption by GSS, where a version of the protocol would stand.
const TLS_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
/// Such requests of one connection.
const REQUESTS_MAX: usize = 3;

/// Bytes of messages that wait to be written together.
const WRITE_SIZE: usize = 64 << 10;

type Messages<S> = Framed<Bounded<S>, PgWireMessageServerCodec<super::prepared::Prepared>>;

impl Door for Postgres {
    /// `FATAL 53300`, as a message.
    const NO_ROOM: &'static [u8] =
        b"E\0\0\0\x3bSFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0";

    async fn serve<S>(self: Arc<Self>, stream: S, connection: Arc<Connection>, stop: Stop)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        let evicted = connection.clone();
        // Decoding of some messages that are cut short panics in pgwire; that ends their connection
        // and nothing else.
        let listening = AssertUnwindSafe(self.begin(stream, &connection, stop)).catch_unwind();
        let served = tokio::select! {
            served = listening => served,
            () = evicted.evicted.notified() => Ok(Ok(())),
        };
        match served {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "a connection of PostgreSQL's protocol ended");
            }
            Err(_) => tracing::warn!("a message that cannot be decoded ended its connection"),
        }
    }
}

impl Postgres {
    /// Answers requests for encryption, then listens.
    async fn begin<S>(
        self: Arc<Self>,
        mut stream: S,
        connection: &Arc<Connection>,
        stop: Stop,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        for _ in 0..REQUESTS_MAX {
            let first = timeout(self.handshake_timeout, first_message(&mut stream)).await??;
            match (first, &self.tls) {
                (First::Tls, Some(tls)) => {
                    stream.write_all(b"S").await?;
                    stream.flush().await?;
                    let shaken = timeout(self.handshake_timeout, tls.accept(stream)).await?;
                    let stream = shaken.inspect_err(|_| self.app.telemetry.tls_failures.add(1))?;
                    return self.listen(stream, Vec::new(), (true, connection), stop).await;
                }
                (First::Tls | First::Gss, _) => {
                    stream.write_all(b"N").await?;
                    stream.flush().await?;
                }
                (First::Other(bytes), _) => {
                    return self.listen(stream, bytes, (false, connection), stop).await;
                }
            }
        }
        Ok(())
    }

    /// Answers messages until the client goes, or has to.
    async fn listen<S>(
        self: Arc<Self>,
        stream: S,
        begun: Vec<u8>,
        (is_secure, connection): (bool, &Arc<Connection>),
        mut stop: Stop,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        let peer = connection.peer.unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        let client = DefaultClient::new(peer, is_secure);
        let mut stream = Bounded::new(stream, self.app.config.http.write_timeout);
        stream.follow(&begun)?;
        let mut parts = FramedParts::new(stream, PgWireMessageServerCodec::new(client));
        parts.read_buf.extend_from_slice(&begun);
        let mut messages: Messages<S> = Framed::from_parts(parts);
        messages.set_backpressure_boundary(WRITE_SIZE);
        messages.set_state(PgWireConnectionState::AwaitingStartup);
        let handlers = Handlers::new(self.clone());
        loop {
            let is_new = is_new(messages.state());
            let patience = if is_new { Some(self.handshake_timeout) } else { self.idle };
            let next = tokio::select! {
                biased;
                // Before messages: a client that never stops sending them is told, too.
                () = stopping(&mut stop) => {
                    let words = "terminating connection due to administrator command";
                    Some(Err(fatal("57P01", words)))
                }
                message = messages.next() => message.map(|message| {
                    message.map_err(|failure| fatal("08P01", failure.to_string()))
                }),
                why = handlers.query.copy_is_over() => {
                    handlers.end_copy(why, &mut messages).await?;
                    continue;
                }
                () = handlers.query.portals_had_their_time() => {
                    handlers.query.forget_late_portals(&messages);
                    continue;
                }
                () = patient(patience) => {
                    let words = "terminating connection due to idle-session timeout";
                    Some(Err(fatal("57P05", words)))
                }
            };
            let message = match next {
                None | Some(Ok(PgWireFrontendMessage::Terminate(_))) => return Ok(()),
                Some(Ok(message)) => message,
                Some(Err(failure)) => return say_last(&mut messages, failure).await,
            };
            let work = connection.begin();
            handlers.answer(message, &mut messages).await?;
            drop(work);
        }
    }
}

fn is_new(state: PgWireConnectionState) -> bool {
    matches!(
        state,
        PgWireConnectionState::AwaitingStartup | PgWireConnectionState::AuthenticationInProgress
    )
}

async fn stopping(stop: &mut Stop) {
    // Whoever would tell has gone: it stops, too.
    let _ = stop.wait_for(|is_stopping| *is_stopping).await;
}

async fn patient(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => std::future::pending().await,
    }
}

fn is_fatal(failure: &PgWireError) -> bool {
    matches!(failure, PgWireError::UserError(info) if info.is_fatal())
}

async fn say_last<S>(messages: &mut Messages<S>, failure: PgWireError) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let info: ErrorInfo = failure.into();
    messages.send(PgWireBackendMessage::ErrorResponse(info.into())).await?;
    messages.close().await
}

impl Handlers {
    /// Ends a `COPY` that was cancelled; what the client still sends of it is passed over.
    async fn end_copy<S>(&self, why: PgWireError, messages: &mut Messages<S>) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        let is_extended = matches!(messages.state(), PgWireConnectionState::CopyInProgress(true));
        process_error(messages, why, is_extended).await
    }

    async fn answer<S>(
        &self,
        message: PgWireFrontendMessage,
        messages: &mut Messages<S>,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        let is_extended = match messages.state() {
            PgWireConnectionState::CopyInProgress(is_extended) => is_extended,
            _ => message.is_extended_query(),
        };
        let (startup, query, copy) = (self.startup.clone(), self.query.clone(), self.query.clone());
        let (extended, cancel) = (self.query.clone(), self.query.clone());
        let answered =
            process_message(message, messages, startup, query, extended, copy, cancel).await;
        match answered {
            Ok(()) => Ok(()),
            Err(PgWireError::IoError(failure)) => Err(failure),
            // Nothing is ready for a query after this.
            Err(failure) if is_fatal(&failure) => say_last(messages, failure).await,
            Err(failure) => process_error(messages, failure, is_extended).await,
        }
    }
}

/// What a connection begins with.
enum First {
    Tls,
    Gss,
    /// Something else, of which these bytes were read.
    Other(Vec<u8>),
}

async fn first_message<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<First> {
    let mut bytes = vec![0; 8];
    stream.read_exact(&mut bytes).await?;
    let number =
        |at: usize| bytes[at..at + 4].iter().fold(0u32, |all, one| all << 8 | u32::from(*one));
    Ok(match (number(0), number(4)) {
        (8, TLS_REQUEST) => First::Tls,
        (8, GSS_REQUEST) => First::Gss,
        _ => First::Other(bytes),
    })
}
