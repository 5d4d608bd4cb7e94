//! A client of the Redis door for the commands: words go out in batches, answers are counted.

use anyhow::{Context as _, bail};
use hyper::Uri;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// The port of the door.
const PORT: u16 = 7379;
/// Bytes that are gathered before they are sent, with their answers awaited.
const BATCH_SIZE: usize = 1 << 20;
/// Commands of a batch.
const BATCH_LEN: usize = 4096;
/// Bytes of an answer, at most.
const ANSWER_SIZE_MAX: u64 = 64 << 10;

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// It is not, for that reason.
    Refused(String),
}

/// A connection to a server.
pub struct Connection {
    stream: BufReader<TcpStream>,
    /// Commands that were not sent yet.
    batch: Vec<u8>,
    /// What each of them is about, for whoever reads the answers.
    awaited: Vec<Vec<u8>>,
}

impl Connection {
    /// Connects to the server of a URL, `redis://host:port`.
    ///
    /// # Errors
    /// When it cannot be reached, or the URL is of another kind.
    pub fn open(url: &str) -> anyhow::Result<Connection> {
        let uri: Uri = url.parse().with_context(|| format!("--url {url}"))?;
        if uri.scheme_str() != Some("redis") {
            bail!("--url {url}: must begin with redis://");
        }
        let host = uri.host().with_context(|| format!("--url {url}: no host"))?;
        let port = uri.port_u16().unwrap_or(PORT);
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port))
            .with_context(|| format!("cannot reach {host}:{port}"))?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream: BufReader::new(stream), batch: Vec::new(), awaited: Vec::new() })
    }

    /// Sends a command and waits for its answer. Nothing else may be awaited.
    ///
    /// # Errors
    /// When the connection breaks, or the server refuses.
    pub fn call(&mut self, words: &[&[u8]]) -> anyhow::Result<()> {
        self.add(b"", words);
        let mut refused = None;
        self.flush(&mut |_, answer| {
            if let Answer::Refused(reason) = answer {
                refused = Some(reason);
            }
        })?;
        match refused {
            Some(reason) => bail!("{}: {reason}", String::from_utf8_lossy(words[0])),
            None => Ok(()),
        }
    }

    /// Gathers a command about something.
    pub fn add(&mut self, about: &[u8], words: &[&[u8]]) {
        self.batch.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.batch.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.batch.extend_from_slice(word);
            self.batch.extend_from_slice(b"\r\n");
        }
        self.awaited.push(about.to_vec());
    }

    /// Whether enough is gathered to be sent.
    pub fn is_full(&self) -> bool {
        BATCH_SIZE <= self.batch.len() || BATCH_LEN <= self.awaited.len()
    }

    /// Sends what is gathered; `each` gets every answer and what it is about.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn flush(&mut self, each: &mut dyn FnMut(&[u8], Answer)) -> anyhow::Result<()> {
        self.stream.get_mut().write_all(&self.batch).context("the server went away")?;
        self.batch.clear();
        for about in std::mem::take(&mut self.awaited) {
            let answer = self.answer()?;
            each(&about, answer);
        }
        Ok(())
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = Vec::new();
        self.stream.by_ref().take(ANSWER_SIZE_MAX).read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").context("the server went away")?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let line = self.line()?;
        match line.split_at_checked(1) {
            Some(("-", reason)) => Ok(Answer::Refused(reason.to_owned())),
            Some(("+" | ":", _)) => Ok(Answer::Done),
            Some(("$", "-1")) => Ok(Answer::Done),
            Some(("$", size)) => {
                let size: u64 = size.parse().context("an answer of no size")?;
                if ANSWER_SIZE_MAX < size {
                    bail!("an answer of {size} bytes");
                }
                let mut text = vec![0; usize::try_from(size + 2)?];
                self.stream.read_exact(&mut text)?;
                Ok(Answer::Done)
            }
            _ => bail!("an answer that was not expected: {line}"),
        }
    }
}
