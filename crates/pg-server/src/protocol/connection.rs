//! A connection from its first byte to its last.
//!
//! ```text
//! first messages: TLS? encryption by GSS? ─► startup, password ─► messages until it ends
//! ```

use super::frames::{Bounded, EndWatch};
use super::handlers::Handlers;
use crate::Postgres;
use crate::values::answers::fatal;
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use net::listeners::accept::{Door, Stop};
use net::listeners::connections::Connection;
use pgwire::api::{ClientInfo as _, DefaultClient, PgWireConnectionState};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::server::{PgWireMessageServerCodec, process_error, process_message};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};
use tokio_util::codec::{Framed, FramedParts};

/// What asks for TLS, and for encryption by GSS, where a version of the protocol would stand.
const TLS_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
/// Request code for canceling a statement of another connection.
const CANCEL_REQUEST: u32 = 80_877_102;
/// Bytes of a client's first message, as PostgreSQL takes it.
const STARTUP_SIZE_MAX: usize = 10_000;
/// `FATAL 28000`, as a message.
const NO_TLS: &[u8] = b"E\0\0\0\x67SFATAL\0VFATAL\0C28000\0Mthis server takes encrypted connections only: use sslmode=require or better\0\0";
/// Such requests of one connection.
const REQUESTS_MAX: usize = 3;

/// How long a statement runs before the server looks whether its client is still there.
const UNWATCHED: Duration = Duration::from_millis(500);

/// Bytes of messages that wait to be written together.
const WRITE_SIZE: usize = 64 << 10;

type Messages<S> =
    Framed<Bounded<S>, PgWireMessageServerCodec<crate::statements::prepared::Prepared>>;

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
                (First::Other(bytes), Some(_)) if !self.may_be_clear(&bytes) => {
                    return self.refuse_cleartext(stream, &bytes).await;
                }
                (First::Other(bytes), _) => {
                    return self.listen(stream, bytes, (false, connection), stop).await;
                }
            }
        }
        Ok(())
    }

    /// Whether a first message may come without TLS where it is on. A request to cancel has a secret
    /// of its own, and old clients never encrypt it.
    fn may_be_clear(&self, first: &[u8]) -> bool {
        self.app.config.allows_cleartext || number(first, 4) == CANCEL_REQUEST
    }

    /// Ends a connection that does not ask for TLS, once its first message is read.
    async fn refuse_cleartext<S>(&self, mut stream: S, first: &[u8]) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let size = number(first, 0) as usize;
        let rest = size.saturating_sub(first.len()).min(STARTUP_SIZE_MAX);
        // An answer before the message has come is lost with the connection.
        let mut unread = vec![0; rest];
        let _ = timeout(self.handshake_timeout, stream.read_exact(&mut unread)).await;
        stream.write_all(NO_TLS).await?;
        stream.shutdown().await
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
        let end = stream.end_watch();
        let mut parts = FramedParts::new(stream, PgWireMessageServerCodec::new(client));
        parts.read_buf.extend_from_slice(&begun);
        let mut messages: Messages<S> = Framed::from_parts(parts);
        messages.set_backpressure_boundary(WRITE_SIZE);
        messages.set_state(PgWireConnectionState::AwaitingStartup);
        let handlers = Handlers::new(self.clone(), is_secure);
        loop {
            let is_new = is_new(messages.state());
            let is_idle = is_idle(&messages);
            let patience = if is_new { Some(self.handshake_timeout) } else { self.idle };
            let next = tokio::select! {
                biased;
                // Before messages: a client that never stops sending them is told, too.
                () = stopping(&mut stop) => {
                    let words = "terminating connection due to administrator command";
                    Some(Err(fatal("57P01", words)))
                }
                message = messages.next() => message.map(or_fatal),
                why = handlers.query.copy_is_over() => {
                    handlers.end_copy(why, &mut messages).await?;
                    continue;
                }
                () = handlers.query.portals_had_their_time() => {
                    handlers.query.forget_late_portals(&messages);
                    continue;
                }
                () = handlers.query.notification_arrived(is_idle) => {
                    match handlers.query.settle_notifications(&mut messages).await {
                        Ok(()) => messages.flush().await?,
                        Err(failure) => return say_last(&mut messages, failure).await,
                    }
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
            let _work = connection.begin();
            let goes_on = tokio::select! {
                biased;
                goes_on = handlers.answer(message, &mut messages) => goes_on?,
                never = cancel_at_end(&end, &handlers) => match never {},
            };
            if goes_on.is_break() {
                return Ok(());
            }
            handlers.query.rest();
        }
    }
}

fn or_fatal(message: PgWireResult<PgWireFrontendMessage>) -> PgWireResult<PgWireFrontendMessage> {
    message.map_err(|failure| fatal("08P01", failure.to_string()))
}

/// Whether a connection waits for a statement outside a transaction.
fn is_idle<S>(messages: &Messages<S>) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    matches!(messages.state(), PgWireConnectionState::ReadyForQuery)
        && messages.transaction_status() == TransactionStatus::Idle
}

fn is_new(state: PgWireConnectionState) -> bool {
    matches!(
        state,
        PgWireConnectionState::AwaitingStartup | PgWireConnectionState::AuthenticationInProgress
    )
}

/// Cancels what a connection does once its client has closed it.
async fn cancel_at_end<S: AsyncRead>(end: &EndWatch<S>, handlers: &Handlers) -> Infallible {
    sleep(UNWATCHED).await;
    end.ended().await;
    handlers.query.cancelled.client_is_gone();
    std::future::pending().await
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

/// Whether a message may come in a state of the connection. Before authentication has finished, only
/// what authentication consists of may; afterwards, none of that.
fn is_allowed(state: PgWireConnectionState, message: &PgWireFrontendMessage) -> bool {
    use PgWireFrontendMessage::{CancelRequest, PasswordMessageFamily, SslNegotiation, Startup};
    match state {
        PgWireConnectionState::AwaitingSslRequest => false,
        PgWireConnectionState::AwaitingStartup => matches!(message, Startup(_) | CancelRequest(_)),
        PgWireConnectionState::AuthenticationInProgress => {
            matches!(message, PasswordMessageFamily(_))
        }
        _ => !matches!(
            message,
            Startup(_) | CancelRequest(_) | PasswordMessageFamily(_) | SslNegotiation(_)
        ),
    }
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

    /// Answers a message. After `Break` the connection has ended: nothing more of it is read.
    async fn answer<S>(
        &self,
        message: PgWireFrontendMessage,
        messages: &mut Messages<S>,
    ) -> io::Result<ControlFlow<()>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
    {
        let state = messages.state();
        if !is_allowed(state, &message) {
            let words = match is_new(state) {
                true => "expected a message of the authentication, got another one",
                false => "a message of the authentication came after its end",
            };
            say_last(messages, fatal("08P01", words)).await?;
            return Ok(ControlFlow::Break(()));
        }
        let is_cancel = matches!(message, PgWireFrontendMessage::CancelRequest(_));
        let is_extended = match state {
            PgWireConnectionState::CopyInProgress(is_extended) => is_extended,
            _ => message.is_extended_query(),
        };
        let (startup, query, copy) = (self.startup.clone(), self.query.clone(), self.query.clone());
        let (extended, cancel) = (self.query.clone(), self.query.clone());
        let answered =
            process_message(message, messages, startup, query, extended, copy, cancel).await;
        let info: ErrorInfo = match answered {
            Ok(()) if is_cancel => return Ok(ControlFlow::Break(())),
            Ok(()) => return Ok(ControlFlow::Continue(())),
            Err(PgWireError::IoError(failure)) => return Err(failure),
            Err(failure) => failure.into(),
        };
        // `process_error` would make a connection ready for queries that has not authenticated.
        if is_new(state) || info.is_fatal() {
            let info = as_fatal(info);
            say_last(messages, PgWireError::UserError(Box::new(info))).await?;
            return Ok(ControlFlow::Break(()));
        }
        if messages.transaction_status() == TransactionStatus::Idle {
            self.query.forget_notifications();
            // Cursors that the failed text declared are not there.
            if let Err(failure) = self.query.end_portals(messages, false) {
                return Err(io::Error::other(failure.to_string()));
            }
        }
        process_error(messages, PgWireError::UserError(Box::new(info)), is_extended).await?;
        Ok(ControlFlow::Continue(()))
    }
}

fn as_fatal(mut info: ErrorInfo) -> ErrorInfo {
    info.severity = "FATAL".to_string();
    info
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
    Ok(match (number(&bytes, 0), number(&bytes, 4)) {
        (8, TLS_REQUEST) => First::Tls,
        (8, GSS_REQUEST) => First::Gss,
        _ => First::Other(bytes),
    })
}

/// The number of four bytes that begins there; 0 where there are fewer.
fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).unwrap_or_default();
    four.iter().fold(0, |all, one| all << 8 | u32::from(*one))
}
