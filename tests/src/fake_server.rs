//! An HTTP server that answers as a test says, one request for each connection.

use anyhow::Result;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::spawn;

/// Answer to a request.
#[derive(Clone, Debug)]
pub struct FakeAnswer {
    /// Status.
    pub status: u16,
    /// Content type; no such header where there is none.
    pub content_type: Option<&'static str>,
    /// Body.
    pub body: Vec<u8>,
}

impl FakeAnswer {
    /// Success with a body.
    pub fn ok(content_type: &'static str, body: impl Into<Vec<u8>>) -> FakeAnswer {
        FakeAnswer { status: 200, content_type: Some(content_type), body: body.into() }
    }

    /// What a proxy may answer whose server is away: success, and nothing else.
    pub fn nothing() -> FakeAnswer {
        FakeAnswer { status: 200, content_type: None, body: Vec::new() }
    }
}

/// Gets the first line of a request and its body.
type AnswerFn = dyn Fn(&str, &str) -> FakeAnswer + Send + Sync;

/// Starts a server; returns its URL. It lives as long as the test.
///
/// # Errors
/// When there is no free port.
pub fn fake_server(
    answer: impl Fn(&str, &str) -> FakeAnswer + Send + Sync + 'static,
) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let answer: Arc<AnswerFn> = Arc::new(answer);
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            spawn(move || serve(stream, &*answer));
        }
    });
    Ok(url)
}

/// Reads one request: its first line and its body. `None` when the client breaks off.
pub fn read_request(stream: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut size) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some((_, value)) = line.to_lowercase().split_once("content-length:") {
            size = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut asked = Vec::new();
    reader.take(size).read_to_end(&mut asked).ok()?;
    Some((first.trim_end().to_string(), String::from_utf8_lossy(&asked).into_owned()))
}

fn serve(mut stream: TcpStream, answer: &AnswerFn) -> Option<()> {
    let (first, asked) = read_request(&stream)?;
    let FakeAnswer { status, content_type, body } = answer(&first, &asked);
    let content_type = content_type.map(|word| format!("Content-Type: {word}\r\n"));
    let (content_type, size) = (content_type.unwrap_or_default(), body.len());
    write!(
        stream,
        "HTTP/1.1 {status} As told\r\nConnection: close\r\n{content_type}Content-Length: {size}\r\n\r\n"
    )
    .ok()?;
    stream.write_all(&body).ok()
}
