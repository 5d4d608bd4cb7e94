//! The door for PostgreSQL's clients, and psql.

use crate::{Launch, Server, poll};
use anyhow::{Context, Result, ensure};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Seconds that psql may take. A statement that never ends fails its test.
const PSQL_TIMEOUT: &str = "600";

/// A server with the door, which stores nothing of its own.
pub fn launch(directory: &Path) -> Launch {
    let launch = Launch::new(directory).flag("postgres-listen", "127.0.0.1:0");
    launch.flag("self-scrape-interval", "0")
}

/// The same, started, and psql to it.
///
/// # Errors
/// When it does not start.
pub fn start(directory: &Path) -> Result<(Server, Psql)> {
    let server = launch(directory).start()?;
    let psql = Psql::of(&server)?;
    Ok((server, psql))
}

/// The port of the door of a server that was started with `--postgres-listen`.
///
/// # Errors
/// When it has none.
pub fn door_port(server: &Server) -> Result<u16> {
    poll("the address of the door", PATIENCE, || {
        let log = server.log();
        let (_, rest) =
            log.rsplit_once("PostgreSQL's clients are served at ").context("not said")?;
        let (address, _) = rest.split_once(' ').context("not whole")?;
        let (_, port) = address.rsplit_once(':').context("no port")?;
        Ok(port.parse()?)
    })
}

/// psql, as somebody types it.
pub struct Psql {
    port: u16,
    environment: Vec<(&'static str, String)>,
}

/// What psql said.
#[derive(Debug)]
pub struct Said {
    /// On its output.
    pub out: String,
    /// On the other.
    pub error: String,
    /// Whether all went well.
    pub is_ok: bool,
}

impl Psql {
    /// To a server.
    ///
    /// # Errors
    /// When it has no door.
    pub fn of(server: &Server) -> Result<Psql> {
        Ok(Psql { port: door_port(server)?, environment: Vec::new() })
    }

    /// The same with a variable of the environment.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Psql {
        self.environment.push((name, value.to_string()));
        self
    }

    /// Runs statements, each with `-c`; `input` is what the client's standard input says.
    ///
    /// # Errors
    /// When psql cannot be run.
    pub fn say(&self, statements: &[&str], input: &str) -> Result<Said> {
        let port = self.port.to_string();
        let mut command = Command::new("timeout");
        command.args([
            PSQL_TIMEOUT,
            "psql",
            "-X",
            "-A",
            "-t",
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "somebody",
        ]);
        command.args(["-d", "metrics", "-v", "ON_ERROR_STOP=1"]);
        for statement in statements {
            command.args(["-c", statement]);
        }
        command.env("PGCONNECT_TIMEOUT", "10").envs(self.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("psql")?;
        let mut stdin = child.stdin.take().context("no input")?;
        // Who fails early does not read all of it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output()?;
        Ok(Said {
            out: String::from_utf8(output.stdout)?.trim_end().to_string(),
            error: String::from_utf8(output.stderr)?.trim_end().to_string(),
            is_ok: output.status.success(),
        })
    }

    /// What statements print that go well.
    ///
    /// # Errors
    /// When one does not.
    pub fn ask(&self, statements: &[&str], input: &str) -> Result<String> {
        let said = self.say(statements, input)?;
        ensure!(said.is_ok, "{statements:?}: {}", said.error);
        Ok(said.out)
    }
}

/// Says statements one after the other, each in a session of its own, and looks at what is answered.
///
/// # Errors
/// When one fails.
///
/// # Panics
/// When an answer is another.
pub fn play(psql: &Psql, scenes: &[(&str, &str)]) -> Result<()> {
    for (said, expected) in scenes {
        let answer = psql.say(&[said], "")?;
        ensure!(answer.is_ok, "{said}: {}", answer.error);
        assert_eq!(answer.out, *expected, "{said}");
    }
    Ok(())
}

/// The same of statements that are refused, with a code and some words.
///
/// # Errors
/// When one is not, or with other words.
pub fn refuse(psql: &Psql, scenes: &[(&str, &str, &str)]) -> Result<()> {
    for (said, code, words) in scenes {
        let answer = psql.say(&["\\set VERBOSITY verbose", said], "")?;
        let is_told = answer.error.contains(code) && answer.error.contains(words);
        ensure!(!answer.is_ok && is_told, "{said}: {answer:?}");
    }
    Ok(())
}

/// A connection that says messages as they are given, whatever sense they make.
pub struct Raw {
    stream: TcpStream,
}

/// A message of the server: its type and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// One of PostgreSQL's letters.
    pub kind: char,
    /// All behind the size.
    pub body: Vec<u8>,
}

impl Message {
    /// A field of an error: `C` is its code, `M` its words.
    pub fn field(&self, name: char) -> Option<String> {
        let mut fields = self.body.split(|byte| *byte == 0);
        let found = fields.find(|field| field.first() == Some(&(name as u8)))?;
        Some(String::from_utf8_lossy(&found[1..]).into_owned())
    }
}

impl Raw {
    /// One that has come in.
    ///
    /// # Errors
    /// When it is not let in.
    pub fn of(server: &Server) -> Result<Raw> {
        let stream = TcpStream::connect(("127.0.0.1", door_port(server)?))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut raw = Raw { stream };
        raw.stream.write_all(b"\0\0\0\x1c\0\x03\0\0user\0me\0database\0x\0\0")?;
        raw.until('Z')?;
        Ok(raw)
    }

    /// Says a message.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn say(&mut self, kind: char, body: &[u8]) -> Result<()> {
        let mut message = vec![kind as u8];
        message.extend_from_slice(&u32::try_from(body.len() + 4)?.to_be_bytes());
        message.extend_from_slice(body);
        Ok(self.stream.write_all(&message)?)
    }

    /// A statement in the simple way.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn query(&mut self, text: &str) -> Result<()> {
        self.say('Q', format!("{text}\0").as_bytes())
    }

    /// Prepares the nameless statement, binds it to a portal and executes that for so many rows.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn execute(&mut self, text: &str, portal: &str, rows_max: i32) -> Result<()> {
        self.say('P', format!("\0{text}\0\0\0").as_bytes())?;
        self.say('B', format!("{portal}\0\0\0\0\0\0\0\0").as_bytes())?;
        self.fetch(portal, rows_max)
    }

    /// Executes a portal for so many rows.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn fetch(&mut self, portal: &str, rows_max: i32) -> Result<()> {
        let mut body = format!("{portal}\0").into_bytes();
        body.extend_from_slice(&rows_max.to_be_bytes());
        self.say('E', &body)
    }

    /// Ends a pipeline of such.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn sync(&mut self) -> Result<Vec<Message>> {
        self.say('S', b"")?;
        self.until('Z')
    }

    /// What comes, up to and with a message of that type.
    ///
    /// # Errors
    /// When the connection ends before.
    pub fn until(&mut self, kind: char) -> Result<Vec<Message>> {
        let mut all = Vec::new();
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head).with_context(|| format!("after {all:?}"))?;
            let size = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut body = vec![0; size - 4];
            self.stream.read_exact(&mut body)?;
            let is_last = head[0] == kind as u8;
            all.push(Message { kind: head[0] as char, body });
            if is_last {
                return Ok(all);
            }
        }
    }

    /// The code of the error among messages.
    ///
    /// # Errors
    /// When there is none.
    pub fn code(messages: &[Message]) -> Result<String> {
        let error = messages.iter().find(|one| one.kind == 'E').context("no error")?;
        error.field('C').context("no code")
    }

    /// The types of messages, in their order.
    pub fn kinds(messages: &[Message]) -> String {
        messages.iter().map(|one| one.kind).collect()
    }
}
