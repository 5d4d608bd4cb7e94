//! A small HTTP/1.1 client on one kept-alive connection: the loader shares its cores with the
//! server, so the client must cost next to nothing.
//!
//! A request's head and body go out in one vectored write. An answer's body ends by its length,
//! by chunks, or with the connection. Any error drops the connection; the next request opens one.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Largest answer head that is read.
const HEAD_SIZE_MAX: usize = 64 * 1024;
/// Bytes asked of the socket at a time.
const READ_SIZE: usize = 64 * 1024;

/// A client of one server.
pub struct HttpClient {
    /// `127.0.0.1:8428`.
    authority: String,
    timeout: Duration,
    stream: Option<TcpStream>,
    /// What was read and not yet used starts at `used`.
    buffer: Vec<u8>,
    used: usize,
}

/// What a server answered.
#[derive(Debug, Default)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// `X-Prometheus-Remote-Write-Samples-Written`, if there.
    pub samples_written: Option<u64>,
    /// The body, empty when it went to a sink.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body's first characters, for messages.
    pub fn excerpt(&self) -> String {
        let size = self.body.len().min(300);
        String::from_utf8_lossy(&self.body[..size]).trim_end().to_string()
    }
}

/// Takes pieces of a body as they come.
pub type Sink<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

enum Length {
    Known(u64),
    Chunked,
    UntilClosed,
}

struct Head {
    status: u16,
    samples_written: Option<u64>,
    length: Length,
    keep_alive: bool,
}

impl HttpClient {
    /// A client of `http://host:port`; nothing is connected yet.
    pub fn new(authority: &str, timeout: Duration) -> HttpClient {
        let authority = authority.to_string();
        HttpClient { authority, timeout, stream: None, buffer: Vec::new(), used: 0 }
    }

    /// Posts `body`; `headers` are whole lines, each ended.
    ///
    /// # Errors
    /// When the connection breaks or the answer is no HTTP; the connection is then dropped.
    pub fn post(&mut self, path: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
        let mut answer_body = Vec::new();
        let mut answer = self.exchange("POST", path, headers, Some(body), &mut |piece| {
            answer_body.extend_from_slice(piece);
            Ok(())
        })?;
        answer.body = answer_body;
        Ok(answer)
    }

    /// Gets `path` whole.
    ///
    /// # Errors
    /// As [`HttpClient::post`].
    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        let mut body = Vec::new();
        let mut answer = self.get_into(path, &mut |piece| {
            body.extend_from_slice(piece);
            Ok(())
        })?;
        answer.body = body;
        Ok(answer)
    }

    /// Gets `path` piece by piece.
    ///
    /// # Errors
    /// As [`HttpClient::post`], or when the sink fails.
    pub fn get_into(&mut self, path: &str, sink: &mut Sink<'_>) -> io::Result<Answer> {
        self.exchange("GET", path, "", None, sink)
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&[u8]>,
        sink: &mut Sink<'_>,
    ) -> io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect()?,
        };
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}", self.authority);
        if let Some(body) = body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        write_both(&mut stream, head.as_bytes(), body.unwrap_or_default())?;
        let head = self.read_head(&mut stream)?;
        self.read_body(&mut stream, &head.length, sink)?;
        if head.keep_alive {
            self.stream = Some(stream);
        }
        Ok(Answer { status: head.status, samples_written: head.samples_written, body: Vec::new() })
    }

    fn connect(&mut self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.authority)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))?;
        self.buffer.clear();
        self.used = 0;
        Ok(stream)
    }

    /// Reads more into the buffer; false at the end of the stream.
    fn fill(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        if self.used > 0 {
            self.buffer.drain(..self.used);
            self.used = 0;
        }
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ_SIZE, 0);
        let read = stream.read(&mut self.buffer[filled..]);
        self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }

    /// Reads heads until one is final: 1xx heads only announce another.
    fn read_head(&mut self, stream: &mut TcpStream) -> io::Result<Head> {
        loop {
            let mut searched = 0;
            let size = loop {
                let unread = &self.buffer[self.used..];
                let found = unread[searched..].windows(4).position(|bytes| bytes == b"\r\n\r\n");
                if let Some(position) = found {
                    break searched + position + 4;
                }
                if unread.len() > HEAD_SIZE_MAX {
                    return Err(malformed("head too long"));
                }
                searched = unread.len().saturating_sub(3);
                if !self.fill(stream)? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            };
            let head = parse_head(&self.buffer[self.used..self.used + size])?;
            self.used += size;
            if head.status >= 200 {
                return Ok(head);
            }
        }
    }

    fn read_body(
        &mut self,
        stream: &mut TcpStream,
        length: &Length,
        sink: &mut Sink<'_>,
    ) -> io::Result<()> {
        match *length {
            Length::Known(size) => self.read_exactly(stream, size, sink),
            Length::UntilClosed => loop {
                sink(&self.buffer[self.used..])?;
                self.used = self.buffer.len();
                if !self.fill(stream)? {
                    return Ok(());
                }
            },
            Length::Chunked => loop {
                let line = self.read_line(stream)?;
                let digits = line.split(';').next().unwrap_or_default().trim();
                let size =
                    u64::from_str_radix(digits, 16).map_err(|_| malformed("bad chunk size"))?;
                if size == 0 {
                    while !self.read_line(stream)?.is_empty() {}
                    return Ok(());
                }
                self.read_exactly(stream, size, sink)?;
                self.read_line(stream)?;
            },
        }
    }

    fn read_exactly(
        &mut self,
        stream: &mut TcpStream,
        size: u64,
        sink: &mut Sink<'_>,
    ) -> io::Result<()> {
        let mut left = size;
        while left > 0 {
            if self.used == self.buffer.len() && !self.fill(stream)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let unread = &self.buffer[self.used..];
            let taken = unread.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            sink(&unread[..taken])?;
            self.used += taken;
            left -= taken as u64;
        }
        Ok(())
    }

    fn read_line(&mut self, stream: &mut TcpStream) -> io::Result<String> {
        loop {
            let unread = &self.buffer[self.used..];
            if let Some(position) = unread.windows(2).position(|bytes| bytes == b"\r\n") {
                let line = String::from_utf8_lossy(&unread[..position]).into_owned();
                self.used += position + 2;
                return Ok(line);
            }
            if unread.len() > HEAD_SIZE_MAX || !self.fill(stream)? {
                return Err(malformed("line does not end"));
            }
        }
    }
}

fn write_both(stream: &mut TcpStream, head: &[u8], body: &[u8]) -> io::Result<()> {
    let mut slices = [IoSlice::new(head), IoSlice::new(body)];
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match stream.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(size) => IoSlice::advance_slices(&mut rest, size),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn parse_head(bytes: &[u8]) -> io::Result<Head> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("head is not UTF-8"))?;
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1."))
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| malformed("bad status line"))?;
    let has_no_body = status < 200 || status == 204 || status == 304;
    let length = if has_no_body { Length::Known(0) } else { Length::UntilClosed };
    let mut head = Head { status, samples_written: None, length, keep_alive: true };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        read_header(&name.to_ascii_lowercase(), value.trim(), &mut head)?;
    }
    head.keep_alive &= !matches!(head.length, Length::UntilClosed);
    Ok(head)
}

fn read_header(name: &str, value: &str, head: &mut Head) -> io::Result<()> {
    match name {
        "content-length" if matches!(head.length, Length::UntilClosed) => {
            head.length =
                Length::Known(value.parse().map_err(|_| malformed("bad content length"))?);
        }
        "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => {
            head.length = Length::Chunked;
        }
        "connection" if value.eq_ignore_ascii_case("close") => head.keep_alive = false,
        "x-prometheus-remote-write-samples-written" => head.samples_written = value.parse().ok(),
        _ => {}
    }
    Ok(())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed answer: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Serves the given bytes as answers, one a request, on one connection.
    fn serve(answers: Vec<Vec<u8>>) -> (HttpClient, std::thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            for answer in answers {
                let mut piece = [0; 4096];
                while !received.ends_with(b"\r\n\r\n") && !received.ends_with(b"BODY") {
                    let size = stream.read(&mut piece).unwrap();
                    received.extend_from_slice(&piece[..size]);
                }
                // In two pieces, so that answers are cut anywhere.
                let (first, second) = answer.split_at(answer.len() / 2);
                stream.write_all(first).unwrap();
                stream.flush().unwrap();
                stream.write_all(second).unwrap();
                received.extend_from_slice(b"|");
            }
            received
        });
        (HttpClient::new(&authority, Duration::from_secs(10)), server)
    }

    #[test]
    fn answers_end_by_length_by_chunks_and_with_the_connection() {
        let (mut client, server) = serve(vec![
            b"HTTP/1.1 204 No Content\r\nX-Prometheus-Remote-Write-Samples-Written: 7\r\n\r\n".into(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".into(),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"
                .into(),
            b"HTTP/1.1 400 Bad Request\r\n\r\nbad line".into(),
        ]);
        let answer = client.post("/write", "A: b\r\n", b"BODY").unwrap();
        assert_eq!((answer.status, answer.samples_written), (204, Some(7)));
        let answer = client.get("/one").unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello"[..]));
        assert_eq!(client.get("/two").unwrap().body, b"abc0123456789");
        let answer = client.get("/three").unwrap();
        assert_eq!((answer.status, answer.excerpt().as_str()), (400, "bad line"));
        let received = String::from_utf8(server.join().unwrap()).unwrap();
        let first = received.split('|').next().unwrap();
        assert!(first.starts_with("POST /write HTTP/1.1\r\nHost: 127.0.0.1:"), "{first}");
        assert!(first.ends_with("\r\nA: b\r\nContent-Length: 4\r\n\r\nBODY"), "{first}");
    }

    #[test]
    fn a_broken_answer_is_an_error() {
        for answer in ["HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "nonsense\r\n\r\n"] {
            let (mut client, server) = serve(vec![answer.into()]);
            assert!(client.get("/").is_err(), "{answer}");
            server.join().unwrap();
        }
    }
}
