//! Line protocol over TCP: whole lines are stored as they come, and nothing more is read meanwhile,
//! so that a sender is no faster than the store.
//!
//! ```text
//! a bad line                            counted, logged, skipped
//! a line longer than the limit          what stood before it is stored, the connection closed
//! a large line that does not end        the connection is closed after the time that a body has
//! a request of HTTP                     answered with 400, the connection closed
//! the store takes nothing just now      tried again for influx.retry-duration, then closed
//! the client ends                       the rest is a line, even without its newline
//! the server ends                       what the system holds is stored; half a line is refused
//! ```

use super::lines::{Block, Lines};
use app::App;
use net::admission::{BYTES_PER_SECOND_MIN, BodyMemory, BodyShare, Pace};
use net::failure::Failure;
use net::listeners::accept::{Door, Stop};
use net::listeners::connections::Connection;
use net::listeners::table::Listener;
use net::telemetry::{Limit, Protocol};
use std::future::{pending, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Bytes that a connection has room for while it says nothing; they take no share of the memory
/// for bodies.
const READ_SIZE: usize = 16 << 10;
/// Bytes that are stored together.
const BLOCK_SIZE_MAX: usize = 1 << 20;
/// Bytes that are still read from a connection when the server ends: more than the system holds.
const LAST_SIZE_MAX: usize = 64 << 20;
/// Between two times that lines are tried, at most.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The door.
pub(super) struct Streams {
    lines: Arc<Lines>,
    line_size_max: usize,
    retry_duration: Duration,
    idle_timeout: Option<Duration>,
    /// For a line that takes memory, without the part that grows with its size.
    line_timeout: Duration,
}

impl Streams {
    /// A door to those lines.
    pub fn new(lines: Arc<Lines>) -> Streams {
        let config = &lines.app.config;
        let idle_timeout = config.listener(Listener::Influx).and_then(|one| one.idle_timeout);
        Streams {
            line_size_max: config.influx.line_size_max,
            retry_duration: config.influx.retry_duration,
            idle_timeout,
            line_timeout: config.http.body_timeout,
            lines,
        }
    }
}

impl Door for Streams {
    /// Nobody reads an answer.
    const NO_ROOM: &'static [u8] = b"";

    async fn serve<S>(self: Arc<Self>, stream: S, connection: Arc<Connection>, stop: Stop)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let app = self.lines.app.clone();
        let mut client = Client {
            streams: &self,
            stream,
            buffer: Vec::new(),
            searched: 0,
            share: app.body_memory.share(),
            large_since: None,
            pace: Pace::start(),
            has_spoken: false,
            connection,
            stop,
        };
        let ended = client.serve().await;
        if matches!(ended, Ended::Foreign) {
            client.answer_http().await;
        }
        client.leave(ended);
    }
}

/// Answer to a client that takes the port of line protocol for that of HTTP.
const HTTP_ANSWER: &str = "{\"error\":\"this port takes line protocol over TCP without HTTP: send the \
    request to the port of --http-listen of the server\"}\n";
/// Time for a client to take that answer.
const HTTP_ANSWER_TIME: Duration = Duration::from_secs(1);

/// Why no more is read from a connection.
enum Ended {
    /// The client closed it.
    ByClient,
    /// It broke.
    Broken(io::Error),
    /// It had to make room.
    Evicted,
    /// It said nothing for too long.
    Silent,
    /// The server ends.
    ByServer,
    /// A line is longer than it may be.
    LongLine,
    /// A large line did not end in time.
    SlowLine,
    /// A large line came slowly while others waited for memory.
    Reclaimed,
    /// It speaks HTTP.
    Foreign,
    /// The store did not take the lines for too long.
    NotTaken(Failure),
}

struct Client<'a, S> {
    streams: &'a Streams,
    stream: S,
    /// What was read and is not yet stored.
    buffer: Vec<u8>,
    /// So many bytes of it are known to hold no newline.
    searched: usize,
    /// Memory for it, when it is large.
    share: BodyShare<'a>,
    /// Since when there is a line that takes a share.
    large_since: Option<Instant>,
    /// Receive rate of a line that holds memory.
    pace: Pace,
    /// Whether its first line was seen.
    has_spoken: bool,
    connection: Arc<Connection>,
    stop: Stop,
}

impl<S: AsyncRead + Unpin> Client<'_, S> {
    async fn serve(&mut self) -> Ended {
        loop {
            let ended = match self.wait().await {
                Ok(()) => self.store_lines().await.err(),
                Err(ended) => Some(ended),
            };
            match ended {
                None => {}
                Some(Ended::ByClient) => return self.finish().await,
                Some(Ended::ByServer) => return self.read_last().await,
                Some(ended) => return ended,
            }
        }
    }

    /// Waits for bytes, and takes what else is there.
    async fn wait(&mut self) -> Result<(), Ended> {
        let silent_at = self.streams.idle_timeout.map(|time| Instant::now() + time);
        if READ_SIZE <= self.buffer.len() {
            self.large_since.get_or_insert_with(Instant::now);
        } else {
            self.pace = Pace::start();
        }
        let slow_at = self.slow_at();
        let late = self.large_since.map(|_| self.pace);
        let before = self.buffer.len();
        let Client { streams, stream, buffer, share, connection, stop, .. } = self;
        let memory = &streams.lines.app.body_memory;
        let read = async {
            make_room(streams, buffer, share).await?;
            stream.read_buf(buffer).await.map_err(Ended::Broken)
        };
        let read = tokio::select! {
            read = read => read?,
            _ = connection.evicted.notified() => return Err(Ended::Evicted),
            _ = stop.wait_for(|is_stopping| *is_stopping) => return Err(Ended::ByServer),
            () = until(silent_at) => return Err(Ended::Silent),
            () = until(slow_at) => return Err(Ended::SlowLine),
            () = reclaim(memory, late) => return Err(Ended::Reclaimed),
        };
        self.connection.touch();
        if read == 0 {
            return Err(Ended::ByClient);
        }
        let ready = self.read_ready().await;
        self.pace.receive(self.buffer.len() - before);
        ready
    }

    /// When a line that takes memory which others wait for must have ended.
    fn slow_at(&self) -> Option<Instant> {
        let earned = Duration::from_secs(self.buffer.len() as u64 / BYTES_PER_SECOND_MIN);
        self.large_since.map(|since| since + self.streams.line_timeout + earned)
    }

    /// Reads what is there without waiting for more, up to a block; less where memory is short, for
    /// whole lines are better stored than held.
    async fn read_ready(&mut self) -> Result<(), Ended> {
        let size_max = BLOCK_SIZE_MAX.max(self.streams.line_size_max);
        while self.buffer.len() == self.buffer.capacity() && self.buffer.len() < size_max {
            let size = grown(&self.buffer);
            if !self.share.try_grow(size) {
                return Ok(());
            }
            self.buffer.reserve_exact(size - self.buffer.len());
            match read_now(&mut self.stream, &mut self.buffer).await {
                // The end comes again with the next read.
                None | Some(Ok(0)) => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Ended::Broken(error)),
            }
        }
        Ok(())
    }

    /// Stores the whole lines of the buffer and keeps what is behind them.
    async fn store_lines(&mut self) -> Result<(), Ended> {
        let cut = cut(&self.buffer, self.searched, self.streams.line_size_max);
        self.searched = 0;
        let (size, is_long) = match cut {
            Cut::Lines(size) => (size, false),
            Cut::LongLine(at) => (at, true),
        };
        if 0 < size {
            let rest = self.buffer.get(size..).unwrap_or_default();
            let mut next = Vec::with_capacity(READ_SIZE.max(rest.len()));
            next.extend_from_slice(rest);
            let mut block = std::mem::replace(&mut self.buffer, next);
            block.truncate(size);
            if !self.has_spoken && is_http(&block) {
                return Err(Ended::Foreign);
            }
            self.has_spoken = true;
            self.store(block).await?;
            self.share = self.streams.lines.app.body_memory.share();
            // What is kept may itself be large.
            let kept = self.buffer.capacity();
            self.large_since = (READ_SIZE < kept).then(Instant::now);
            if READ_SIZE < kept {
                wait_for_share(self.streams, &mut self.share, kept).await?;
            }
        }
        if is_long {
            return Err(Ended::LongLine);
        }
        self.searched = self.buffer.len();
        Ok(())
    }

    /// Stores a block, trying again while the store takes nothing. The connection is busy
    /// meanwhile, and makes room for no other.
    async fn store(&mut self, bytes: Vec<u8>) -> Result<(), Ended> {
        let _at_work = self.connection.begin();
        let lines = &self.streams.lines;
        let app: &App = &lines.app;
        let deadline = Instant::now() + self.streams.retry_duration;
        let mut block = Block::new(app, bytes);
        block.peer = self.connection.peer;
        loop {
            let (back, result) = lines.store(block, app.config.insert.durability).await;
            block = back;
            let Err(failure) = result else {
                lines.finish(block, Protocol::InfluxTcp);
                return Ok(());
            };
            if let Some(limit) = failure.limit {
                app.telemetry.limit_hit(limit);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let pause = failure.retry_after.unwrap_or(Duration::ZERO).min(RETRY_PAUSE_MAX);
            if pause.is_zero() || left <= pause {
                lines.give_up(block, Protocol::InfluxTcp);
                return Err(Ended::NotTaken(failure));
            }
            if lines.not_taken.is_due(lines.now_ms()) {
                tracing::warn!("lines over TCP wait: {failure}");
            }
            let stopping = self.stop.wait_for(|is_stopping| *is_stopping);
            if timeout(pause, stopping).await.is_ok() {
                // One more try, which is the last: a server that ends does not wait.
                let (block, result) = lines.store(block, app.config.insert.durability).await;
                match &result {
                    Ok(()) => lines.finish(block, Protocol::InfluxTcp),
                    Err(_) => lines.give_up(block, Protocol::InfluxTcp),
                }
                return result.map_err(Ended::NotTaken);
            }
        }
    }

    /// The client has said all: what is left is a line, if it is not too long.
    async fn finish(&mut self) -> Ended {
        if self.buffer.is_empty() {
            return Ended::ByClient;
        }
        self.buffer.push(b'\n');
        self.store_lines().await.err().unwrap_or(Ended::ByClient)
    }

    /// The server ends: what the system holds was sent before, and is stored.
    async fn read_last(&mut self) -> Ended {
        let mut size = 0;
        while size < LAST_SIZE_MAX {
            let before = self.buffer.len();
            let Client { streams, buffer, share, .. } = self;
            if let Err(ended) = make_room(streams, buffer, share).await {
                return ended;
            }
            match read_now(&mut self.stream, &mut self.buffer).await {
                None => break,
                Some(Ok(0)) => return self.finish().await,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Ended::Broken(error),
            }
            if let Err(ended) = self.read_ready().await {
                return ended;
            }
            size += self.buffer.len() - before;
            if let Err(ended) = self.store_lines().await {
                return ended;
            }
        }
        Ended::ByServer
    }

    /// Says what an owner should know of the end, and counts what was lost with it.
    fn leave(&self, ended: Ended) {
        let telemetry = &self.streams.lines.app.telemetry;
        let peer = self.connection.peer.map_or(String::new(), |peer| peer.to_string());
        match &ended {
            Ended::ByClient | Ended::Evicted | Ended::ByServer => {}
            Ended::Broken(error) => tracing::debug!(%error, peer, "a connection broke"),
            Ended::Silent => telemetry.listener(Listener::Influx).silent.add(1),
            Ended::LongLine => {
                telemetry.limit_hit(Limit::LineSize);
                let max = self.streams.line_size_max;
                tracing::warn!(
                    "closed the connection of {peer}: a line of line protocol is longer than \
                     {max} bytes (influx.max-line-size)"
                );
            }
            Ended::SlowLine => {
                telemetry.limit_hit(Limit::BodyTimeout);
                let time = self.streams.line_timeout;
                tracing::warn!(
                    "closed the connection of {peer}: a line of {} bytes has not ended in {time:?} \
                     plus 1 s per 64 KiB (http.body-timeout)",
                    self.buffer.len()
                );
            }
            Ended::Reclaimed => {
                telemetry.limit_hit(Limit::BodyTimeout);
                tracing::warn!(
                    "closed the connection of {peer}: a line of {} bytes came at less than 64 KiB a \
                     second while others waited for memory (max-bodies-size)",
                    self.buffer.len()
                );
            }
            Ended::Foreign => {
                tracing::warn!(
                    "closed the connection of {peer}: it speaks HTTP, not line protocol"
                );
            }
            Ended::NotTaken(failure) => {
                telemetry.limit_hit(Limit::LineRetries);
                let time = self.streams.retry_duration;
                tracing::warn!(
                    "closed the connection of {peer}: its lines could not be stored for {time:?} \
                     (influx.retry-duration): {failure}"
                );
            }
        }
        if !self.buffer.is_empty() {
            telemetry.protocol(Protocol::InfluxTcp).lines_refused.add(1);
        }
    }
}

/// Waits until a moment; for ever without one.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Completes when memory must be given back; never without a line that holds some.
async fn reclaim(memory: &BodyMemory, pace: Option<Pace>) {
    match pace {
        Some(pace) => memory.reclaim(pace).await,
        None => pending().await,
    }
}

/// Bytes that a full buffer should have room for.
fn grown(buffer: &Vec<u8>) -> usize {
    READ_SIZE.max(2 * buffer.capacity())
}

/// Grows a full buffer, in doubling steps. Memory that others hold comes back as the store takes
/// what they hold.
async fn make_room(
    streams: &Streams,
    buffer: &mut Vec<u8>,
    share: &mut BodyShare<'_>,
) -> Result<(), Ended> {
    if buffer.len() < buffer.capacity() {
        return Ok(());
    }
    let size = grown(buffer);
    if READ_SIZE < size {
        wait_for_share(streams, share, size).await?;
    }
    buffer.reserve_exact(size - buffer.len());
    Ok(())
}

async fn wait_for_share(
    streams: &Streams,
    share: &mut BodyShare<'_>,
    size: usize,
) -> Result<(), Ended> {
    let deadline = Instant::now() + streams.retry_duration;
    loop {
        let Err(failure) = share.grow(size).await else { return Ok(()) };
        if deadline <= Instant::now() {
            return Err(Ended::NotTaken(failure));
        }
        sleep(RETRY_PAUSE_MAX.min(streams.retry_duration)).await;
    }
}

/// Whether a connection begins as a request of HTTP, which no line of line protocol can look like. A
/// page of any site may have a browser send lines to any address, but not at the very beginning.
fn is_http(block: &[u8]) -> bool {
    let line = block.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.trim_ascii_end().splitn(4, |byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return false };
    method.iter().all(u8::is_ascii_uppercase)
        && (target.starts_with(b"/") || target.starts_with(b"*") || target.starts_with(b"http"))
        && version.starts_with(b"HTTP/")
}

/// Reads into the room that a buffer has, if anything is there.
async fn read_now<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut Vec<u8>,
) -> Option<io::Result<usize>> {
    let mut read = std::pin::pin!(stream.read_buf(buffer));
    poll_fn(|context| match read.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<'_, S> {
    /// Tells a client of HTTP which port it means.
    async fn answer_http(&mut self) {
        let size = HTTP_ANSWER.len();
        let answer = format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {size}\r\n\r\n{HTTP_ANSWER}"
        );
        let answer = async {
            self.stream.write_all(answer.as_bytes()).await?;
            self.stream.shutdown().await
        };
        // A client that does not read goes without.
        let _ = timeout(HTTP_ANSWER_TIME, answer).await;
    }
}

/// What can be done with the bytes of a buffer.
#[derive(Debug, PartialEq, Eq)]
enum Cut {
    /// So many of them are whole lines.
    Lines(usize),
    /// So many are whole lines, and what stands behind them is too long for one.
    LongLine(usize),
}

/// Finds the end of the last whole line, or the first line that is too long. There is no newline
/// before `searched`.
fn cut(buffer: &[u8], searched: usize, line_size_max: usize) -> Cut {
    let (mut start, mut from) = (0, searched);
    loop {
        let rest = buffer.get(from..).unwrap_or_default();
        let newline = rest.iter().position(|byte| *byte == b'\n').map(|offset| from + offset);
        let end = newline.unwrap_or(buffer.len());
        if line_size_max < end - start {
            return Cut::LongLine(start);
        }
        let Some(newline) = newline else { return Cut::Lines(start) };
        start = newline + 1;
        from = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_http() {
        for text in [
            "POST / HTTP/1.1\r\nHost: x\r\n",
            "GET /a?b=c HTTP/1.0\nm v=1\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "CONNECT http://x/ HTTP/1.1\n",
        ] {
            assert!(is_http(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "\n",
            "POST v=1 1709208000000000000\n",
            "M f=\"GET / HTTP/1.1\nHost: x\"\n",
            "M f=\"/ HTTP/1.1\nx\"\n",
            "m v=1\nPOST / HTTP/1.1\n",
        ] {
            assert!(!is_http(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn cuts() {
        for (text, expected) in [
            ("", Cut::Lines(0)),
            ("ab", Cut::Lines(0)),
            ("ab\n", Cut::Lines(3)),
            ("ab\ncd", Cut::Lines(3)),
            ("ab\n\ncd\n", Cut::Lines(7)),
            ("abcd\nx", Cut::Lines(5)),
            ("abcde", Cut::LongLine(0)),
            ("ab\nabcde\nx\n", Cut::LongLine(3)),
            ("ab\nabcde", Cut::LongLine(3)),
        ] {
            assert_eq!(cut(text.as_bytes(), 0, 4), expected, "{text:?}");
            let searched = text.find('\n').unwrap_or(text.len());
            assert_eq!(cut(text.as_bytes(), searched, 4), expected, "{text:?}");
        }
    }
}
