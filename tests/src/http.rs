//! A plain HTTP/1.1 client: one connection, one request at a time, everything visible to the test.

use crate::answers::{self, Export, Matrix, Vector};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No answer of a test takes longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// A client with at most one open connection, which later requests use again.
pub struct Client {
    authority: String,
    stream: Option<BufReader<TcpStream>>,
}

/// What a server answered.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, chunks joined.
    pub body: Vec<u8>,
}

/// Opens a connection without sending anything.
///
/// # Errors
/// When nobody listens.
pub fn connect(authority: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(authority).with_context(|| format!("connect {authority}"))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Client {
    /// A client of `host:port`; connects with its first request.
    pub fn new(authority: &str) -> Client {
        Client { authority: authority.to_string(), stream: None }
    }

    /// Gets a path.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn get(&mut self, path: &str) -> Result<Response> {
        self.send("GET", path, &[], &[])
    }

    /// Posts a body.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Response> {
        self.send("POST", path, headers, body)
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// When no answer comes; the connection is then gone.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(connect(&self.authority)?),
        };
        let head = head(method, path, &self.authority, headers, body.len());
        let sent = stream.get_mut().write_all(head.as_bytes());
        let sent = sent.and_then(|()| stream.get_mut().write_all(body));
        // A server may refuse before it has read everything: its answer says more than the error.
        let response = match read_response(&mut stream) {
            Ok(response) => response,
            Err(error) => {
                sent.context("sending the request")?;
                return Err(error);
            }
        };
        if sent.is_ok() && response.header("connection") != "close" {
            self.stream = Some(stream);
        }
        Ok(response)
    }
}

/// The head of a request.
pub fn head(
    method: &str,
    path: &str,
    authority: &str,
    headers: &[(&str, &str)],
    body_size: usize,
) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if method != "GET" {
        head.push_str(&format!("Content-Length: {body_size}\r\n"));
    }
    head + "\r\n"
}

/// Reads one answer.
///
/// # Errors
/// When the connection breaks off or what comes is no HTTP.
pub fn read_response(stream: &mut impl BufRead) -> Result<Response> {
    let status_line = line(stream).context("status line")?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.with_context(|| format!("no status in {status_line:?}"))?;
    let mut response = Response { status, headers: Vec::new(), body: Vec::new() };
    loop {
        let text = line(stream).context("headers")?;
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':').with_context(|| format!("header {text:?}"))?;
        response.headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
    if response.header("transfer-encoding") == "chunked" {
        read_chunks(stream, &mut response.body)?;
    } else if let Ok(size) = response.header("content-length").parse() {
        response.body.resize(size, 0);
        stream.read_exact(&mut response.body).context("body")?;
    } else if status != 204 {
        stream.read_to_end(&mut response.body)?;
    }
    Ok(response)
}

fn read_chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> Result<()> {
    loop {
        let size = line(stream).context("size of a chunk")?;
        let size = usize::from_str_radix(&size, 16).with_context(|| format!("chunk {size:?}"))?;
        let start = body.len();
        body.resize(start + size, 0);
        stream.read_exact(&mut body[start..]).context("chunk")?;
        ensure!(line(stream)?.is_empty(), "a chunk must end in a line end");
        if size == 0 {
            return Ok(());
        }
    }
}

fn line(stream: &mut impl BufRead) -> Result<String> {
    let mut text = String::new();
    let size = stream.take(64 << 10).read_line(&mut text)?;
    ensure!(0 < size, "the connection was closed");
    Ok(text.trim_end_matches(['\r', '\n']).to_string())
}

impl Response {
    /// A header's value, empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Status and the body's beginning, for messages.
    pub fn excerpt(&self) -> String {
        let text: String = self.text().chars().take(500).collect();
        format!("status {}: {text}", self.status)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// When it is none.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| self.excerpt())
    }

    /// The `data` of an answer of Prometheus' API that must be a success.
    ///
    /// # Errors
    /// When it is not.
    pub fn data(&self) -> Result<Value> {
        ensure!(self.status == 200, "{}", self.excerpt());
        let mut answer = self.json()?;
        ensure!(answer["status"] == "success", "{}", self.excerpt());
        Ok(answer["data"].take())
    }

    /// The body as the lines of an export.
    ///
    /// # Errors
    /// When it is none.
    pub fn export(&self) -> Result<Export> {
        ensure!(self.status == 200, "{}", self.excerpt());
        Export::parse(&self.text())
    }

    /// The body as the result of an instant query.
    ///
    /// # Errors
    /// When it is no vector.
    pub fn vector(&self) -> Result<Vector> {
        answers::vector(&self.data()?)
    }

    /// The body as ranges of samples.
    ///
    /// # Errors
    /// When it is no matrix.
    pub fn matrix(&self) -> Result<Matrix> {
        answers::matrix(&self.data()?)
    }

    /// A sample of exposition text, by its name and labels as they stand there.
    ///
    /// # Errors
    /// When it is not there.
    pub fn metric(&self, series: &str) -> Result<f64> {
        let text = self.text();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        let value =
            value.with_context(|| format!("no {series} among {} lines", text.lines().count()))?;
        value.split(' ').next().unwrap_or("").parse().with_context(|| value.to_string())
    }
}
