//! A client that speaks as little of Redis' protocol as the cases need.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer may take so long.
const PATIENCE: Duration = Duration::from_secs(300);

/// A connection.
pub struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    line: Vec<u8>,
}

/// Appends a command.
pub fn put(out: &mut Vec<u8>, words: &[&[u8]]) {
    head(out, b'*', words.len());
    for word in words {
        head(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn head(out: &mut Vec<u8>, sign: u8, number: usize) {
    out.push(sign);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

impl Connection {
    /// To that port of loopback.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn open(port: u16) -> Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let reader = BufReader::with_capacity(64 << 10, stream.try_clone()?);
        Ok(Connection { stream, reader, line: Vec::new() })
    }

    /// Sends what [`put`] has made.
    ///
    /// # Errors
    /// When the server has hung up.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Reads answers; an error among them ends it.
    ///
    /// # Errors
    /// When one is an error, or the server has hung up.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        let mut left = count;
        while 0 < left {
            left -= 1;
            self.line.clear();
            self.reader.read_until(b'\n', &mut self.line)?;
            let number = || -> Option<i64> {
                let digits = self.line.get(1..self.line.len().checked_sub(2)?)?;
                std::str::from_utf8(digits).ok()?.parse().ok()
            };
            match self.line.first() {
                Some(b'+' | b':') => {}
                Some(b'$') => {
                    let size = number().context("no size")?;
                    if let Ok(size) = usize::try_from(size) {
                        let rest = u64::try_from(size + 2).unwrap_or(0);
                        std::io::copy(&mut (&mut self.reader).take(rest), &mut std::io::sink())?;
                    }
                }
                Some(b'*') => left += usize::try_from(number().context("no count")?).unwrap_or(0),
                Some(b'-') => bail!("{}", String::from_utf8_lossy(&self.line).trim_end()),
                _ => bail!("the server hung up"),
            }
        }
        Ok(())
    }

    /// The answer to one command: its first line, and what a bulk string has behind it.
    ///
    /// # Errors
    /// When the server has hung up.
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        put(&mut bytes, words);
        self.send(&bytes)?;
        let mut answer = Vec::new();
        self.reader.read_until(b'\n', &mut answer)?;
        if answer.is_empty() {
            bail!("the server hung up");
        }
        if answer.starts_with(b"$") && !answer.starts_with(b"$-") {
            let digits = String::from_utf8_lossy(&answer[1..]).trim_end().to_string();
            let size: usize = digits.parse().context("no size")?;
            let mut rest = vec![0; size + 2];
            self.reader.read_exact(&mut rest)?;
            return Ok(rest[..size].to_vec());
        }
        Ok(answer)
    }

    /// A number that `INFO` shows.
    ///
    /// # Errors
    /// When it does not.
    pub fn info(&mut self, name: &str) -> Result<f64> {
        let text = self.ask(&[b"INFO", b"everything"])?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let found = found.with_context(|| format!("INFO has no {name}"))?;
        found.trim().parse().with_context(|| format!("{name} is no number"))
    }
}
