//! HTTP on a connection: HTTP/1.1 or HTTP/2, the times that close it, its graceful end.

use super::Http;
use super::connection::{HttpConnection, Verdict};
use super::exchange::exchange;
use super::foreign;
use super::request::body::ReplyBody;
use super::watched::Watched;
use hyper::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use net::listeners::accept::{Door, Stop};
use net::listeners::connections::Connection;
use net::listeners::table::Listener;
use net::telemetry::Limit;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{MissedTickBehavior, interval};

/// Bytes of a request's head, and of one read from a socket; hyper answers 431 beyond.
const HEAD_SIZE_MAX: usize = 256 << 10;

impl Door for Http {
    /// The only answer that is not made by hyper.
    const NO_ROOM: &'static [u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 105\r\n\
connection: close\r\n\r\ntoo many open connections, all busy (http.max-connections): \
close some, or raise --http.max-connections\r\n";

    fn refuse_clear_text(first: u8) -> Option<Vec<u8>> {
        let message = "this port speaks TLS";
        Some(match first {
            b'*' => format!("-ERR {message}, and HTTP within it\r\n").into_bytes(),
            _ => foreign::http_answer(
                "400 Bad Request",
                &format!("{message}: use an address with https://"),
            ),
        })
    }

    async fn serve<S>(self: Arc<Self>, stream: S, connection: Arc<Connection>, mut stop: Stop)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let app = &self.app;
        let connection = Arc::new(HttpConnection::new(connection));
        let service = {
            let (http, connection) = (self.clone(), connection.clone());
            service_fn(move |request: hyper::Request<Incoming>| {
                let (http, connection) = (http.clone(), connection.clone());
                async move {
                    Ok::<Response<ReplyBody>, Infallible>(exchange(http, connection, request).await)
                }
            })
        };
        let builder = builder();
        let io = TokioIo::new(Watched::new(stream, connection.clone(), self.others.clone()));
        let mut serving = pin!(builder.serve_connection(io, service));
        let http = &app.config.http;
        let mut tick =
            interval(http.header_timeout.min(http.idle_timeout).max(Duration::from_millis(20)) / 2);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_ending = false;
        loop {
            tokio::select! {
                _ = serving.as_mut() => return,
                _ = connection.connection.evicted.notified() => return,
                _ = stop.wait_for(|is_stopping| *is_stopping), if !is_ending => {
                    is_ending = true;
                    serving.as_mut().graceful_shutdown();
                }
                _ = tick.tick() => match connection.verdict(http) {
                    Verdict::Keep => {}
                    Verdict::Idle if is_ending => {}
                    Verdict::Idle => {
                        app.telemetry.listener(Listener::Http).silent.add(1);
                        is_ending = true;
                        serving.as_mut().graceful_shutdown();
                    }
                    Verdict::SlowHead => return app.telemetry.limit_hit(Limit::HeaderTimeout),
                    Verdict::Stuck => return app.telemetry.limit_hit(Limit::WriteTimeout),
                },
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_of_a_connection_is_a_whole_answer() {
        let text = std::str::from_utf8(Http::NO_ROOM).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let length = format!("content-length: {}", body.len());
        assert!(head.lines().any(|line| line == length), "{head}: {length}");
        assert!(body.contains("--http.max-connections"), "{body}");
    }
}
