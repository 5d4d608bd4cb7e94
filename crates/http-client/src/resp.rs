//! A client of the Redis door for the commands: words go out in batches, answers are read one by one.

use anyhow::{Context as _, bail, ensure};
use clap::{ArgMatches, Command};
use cli::arguments::option;
use hyper::Uri;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The port of the door.
pub const PORT: u16 = 7379;
/// Bytes that are gathered before they are sent, with their answers awaited.
const BATCH_SIZE: usize = 1 << 20;
/// Commands of a batch.
const BATCH_LEN: usize = 4096;
/// Bytes of a line.
const LINE_SIZE_MAX: u64 = 64 << 10;
/// Bytes of an answer.
const ANSWER_SIZE_MAX: u64 = 512 << 20;
/// Lists within each other in an answer.
const DEPTH_MAX: u32 = 4;
/// Items of an answer.
const ITEMS_MAX: usize = 1 << 20;
/// A server that says nothing for so long is gone.
const TIMEOUT: Duration = Duration::from_secs(300);

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done; perhaps in words.
    Done(String),
    /// It is not, for that reason.
    Refused(String),
    /// A number.
    Int(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Nothing.
    Null,
    /// Several answers.
    Items(Vec<Answer>),
}

/// The arguments that say which server it is, and as whom.
pub fn arguments(command: Command) -> Command {
    let url = "The server: redis://host:port, or redis://user:password@host:port";
    command
        .arg(option("url", "URL", url).default_value("redis://127.0.0.1:7379"))
        .arg(option("user", "NAME", "User to log in as").default_value("default"))
        .arg(option("password-file", "PATH", "File with that user's password"))
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
    /// Connects to the server that the arguments name and logs in.
    ///
    /// # Errors
    /// When it cannot be reached, or refuses.
    pub fn open(matches: &ArgMatches) -> anyhow::Result<Connection> {
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
        let user = text("user").unwrap_or_default();
        let url = text("url").unwrap_or_default();
        let opened = Connection::to(url, PORT, user, text("password-file"));
        opened.with_context(|| format!("--url {url}"))
    }

    /// Connects to a server and logs in: as a user with the password of a file, or as the URL says. The
    /// port is that of a URL without one.
    ///
    /// # Errors
    /// When it cannot be reached, or refuses.
    pub fn to(
        url: &str,
        port: u16,
        user: &str,
        password_file: Option<&str>,
    ) -> anyhow::Result<Connection> {
        let uri: Uri = url.parse()?;
        if uri.scheme_str() != Some("redis") {
            bail!("must begin with redis://");
        }
        let host = uri.host().context("no host")?;
        let port = uri.port_u16().unwrap_or(port);
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port))
            .with_context(|| format!("cannot reach {host}:{port}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let stream = BufReader::new(stream);
        let mut connection = Connection { stream, batch: Vec::new(), awaited: Vec::new() };
        let login = uri.authority().and_then(|one| one.as_str().rsplit_once('@'));
        if let Some(path) = password_file {
            let password = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
            connection.log_in(user, password.trim_end())?;
        } else if let Some((login, _)) = login {
            let (user, password) = login.split_once(':').unwrap_or(("default", login));
            connection.log_in(if user.is_empty() { "default" } else { user }, password)?;
        }
        connection.call(&[b"PING"])?;
        Ok(connection)
    }

    fn log_in(&mut self, user: &str, password: &str) -> anyhow::Result<()> {
        self.call(&[b"AUTH", user.as_bytes(), password.as_bytes()]).map(|_| ())
    }

    /// Sends a command and waits for its answer. Nothing else may be awaited.
    ///
    /// # Errors
    /// When the connection breaks, or the server refuses.
    pub fn call(&mut self, words: &[&[u8]]) -> anyhow::Result<Answer> {
        self.add(b"", words);
        let mut answered = Answer::Null;
        self.flush(&mut |_, answer| answered = answer)?;
        match answered {
            Answer::Refused(reason) => bail!("{}: {reason}", String::from_utf8_lossy(words[0])),
            answer => Ok(answer),
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

    /// Sends a command whose answer is read by other means.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn say(&mut self, words: &[&[u8]]) -> anyhow::Result<()> {
        self.add(b"", words);
        self.awaited.clear();
        self.flush(&mut |_, _| {})
    }

    /// The bytes that the server sends.
    pub fn reader(&mut self) -> &mut BufReader<TcpStream> {
        &mut self.stream
    }

    /// A line without its end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn line(&mut self) -> anyhow::Result<String> {
        let mut line = Vec::new();
        let read = self.stream.by_ref().take(LINE_SIZE_MAX).read_until(b'\n', &mut line);
        read.context("the server went away")?;
        let line = line.strip_suffix(b"\n").context("the server went away")?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// An answer whose lists are as deep as that of `TS.INFO`, at most.
    fn answer(&mut self) -> anyhow::Result<Answer> {
        self.answer_within(DEPTH_MAX)
    }

    fn answer_within(&mut self, depth: u32) -> anyhow::Result<Answer> {
        let line = self.line()?;
        let size = |text: &str| text.parse::<i64>().context("an answer of no size");
        Ok(match line.split_at_checked(1) {
            Some(("-", reason)) => Answer::Refused(reason.to_owned()),
            Some(("+", words)) => Answer::Done(words.to_owned()),
            Some((":", number)) => Answer::Int(size(number)?),
            Some(("$" | "*", "-1")) => Answer::Null,
            Some(("$", text)) => Answer::Bytes(self.bytes(u64::try_from(size(text)?)?)?),
            Some(("*", text)) => {
                let count = usize::try_from(size(text)?)?;
                ensure!(count <= ITEMS_MAX, "an answer of {count} items");
                let depth = depth.checked_sub(1).context("an answer nested too deep")?;
                (0..count)
                    .map(|_| self.answer_within(depth))
                    .collect::<anyhow::Result<_>>()
                    .map(Answer::Items)?
            }
            _ => bail!("an answer that was not expected: {line}"),
        })
    }

    fn bytes(&mut self, size: u64) -> anyhow::Result<Vec<u8>> {
        ensure!(size <= ANSWER_SIZE_MAX, "an answer of {size} bytes");
        let mut bytes = Vec::new();
        self.stream.by_ref().take(size + 2).read_to_end(&mut bytes)?;
        let is_whole = bytes.ends_with(b"\r\n") && bytes.len() as u64 == size + 2;
        ensure!(is_whole, "the server went away");
        bytes.truncate(bytes.len() - 2);
        Ok(bytes)
    }
}
