//! The HTTP client of the commands, and of the server where it asks others: one connection, one
//! request at a time, TLS when the URL says so.
//!
//! Plain calls for plain code: a runtime of its own waits inside.

use super::server_trust::{TlsRefusal, connector, handshake_error};
use anyhow::{Context as _, bail};
use base64::Engine as _;
use bytes::Bytes;
use clap::{ArgMatches, Command};
use cli::arguments::option;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, TRANSFER_ENCODING,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use wire::partial_answer as partial;

/// Tries of one request while the server is away or asks to wait.
const TRIES_MAX: u32 = 10;
/// How long to try to reach a server that this process has never reached: its address may be wrong.
const FIRST_CONTACT_PATIENCE: Duration = Duration::from_secs(10);
/// Longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Who says nothing for so long, to a request or in the middle of an answer, is not there any more.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// Time for a connection to be accepted, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an error's text that are kept.
const ERROR_SIZE_MAX: usize = 16 << 10;

/// Servers that this process has reached. A server that was there comes back.
static REACHED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// What stands before a token.
pub const BEARER: &str = "Bearer";

/// What an error says first of an answer that ended before its end.
pub const BROKE_OFF: &str = "the answer broke off";

/// Takes the bytes of an answer as they arrive.
pub type OnBytes<'a> = &'a mut dyn FnMut(&[u8]) -> anyhow::Result<()>;

/// What waits for sockets. It ends without waiting, so that it may end within another one.
struct Waiting(Option<Runtime>);

impl Waiting {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("there until it is dropped").block_on(future)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A connection to a server that may not be open yet.
pub struct Client {
    runtime: Waiting,
    host: String,
    port: u16,
    /// `host:port` as the URL has it.
    authority: String,
    /// What stands before the path of every request.
    prefix: String,
    tls: Option<TlsConnector>,
    authorization: Option<String>,
    login_flags: &'static str,
    ca_flag: &'static str,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// When the answer has to be there.
    deadline: Option<Instant>,
    /// Whether an answer that lacks samples is an error.
    refuses_partial: bool,
}

/// A request.
pub struct Asked<'a> {
    /// How it is asked.
    pub method: Method,
    /// What is asked for, with the query.
    pub path: &'a str,
    /// Headers beside those of every request.
    pub headers: &'a [(&'a str, &'a str)],
    /// What is sent.
    pub body: Bytes,
}

/// Error: a server answered without the samples of its damaged files.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path}: the answer is partial, as the server cannot read some of its files: repair its data \
     directory first (quipu verify --repair)"
)]
pub struct PartialAnswer {
    path: String,
}

/// Error: a server answered with a status that is no success.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {status}: {words}")]
pub struct StatusError {
    /// Path of the request.
    pub path: String,
    /// Status of the answer.
    pub status: StatusCode,
    /// Text of the answer.
    pub words: String,
}

/// How the server answered.
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its text, when the status is no success.
    pub error: String,
    /// Content type; empty if the server sends none.
    pub content_type: String,
    /// Bytes of its body, when the status is a success.
    pub size: u64,
}

/// Error: an answer has neither a body nor the content type that the server sends with an empty one.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path}: an empty answer of content type {found:?}, not {expected:?}: did a proxy answer instead of \
     the server?"
)]
pub struct EmptyAnswer {
    path: String,
    found: String,
    expected: &'static str,
}

impl Reply {
    /// Checks that an empty answer has a content type: then it is the server that has nothing. A proxy
    /// whose server is away may answer 200 without a body.
    ///
    /// # Errors
    /// [`EmptyAnswer`].
    pub fn check_empty(&self, path: &str, expected: &'static str) -> Result<(), EmptyAnswer> {
        if 0 < self.size || self.content_type.starts_with(expected) {
            return Ok(());
        }
        let (path, found) = (path.to_string(), self.content_type.clone());
        Err(EmptyAnswer { path, found, expected })
    }

    /// Checks that the status is a success.
    ///
    /// # Errors
    /// [`StatusError`].
    pub fn check(self, path: &str) -> anyhow::Result<()> {
        let Reply { status, error: words, .. } = self;
        match status.is_success() {
            true => Ok(()),
            false => Err(StatusError { path: path.to_string(), status, words }.into()),
        }
    }
}

/// Adds the arguments that every client command has.
pub fn arguments(command: Command) -> Command {
    command
        .arg(option("url", "URL", "The server").default_value("http://127.0.0.1:8428"))
        .arg(option("user", "NAME", "User of basic authentication"))
        .arg(option("password-file", "PATH", "File with that user's password"))
        .arg(option("bearer-token-file", "PATH", "File with a bearer token"))
        .arg(option("tls-ca", "PATH", "PEM file with certificates to trust besides the system's"))
}

/// Who a client is, by the files that say so.
pub struct Access<'a> {
    /// User of basic authentication.
    pub user: Option<&'a str>,
    /// File with that user's password.
    pub password_file: Option<&'a str>,
    /// File with a bearer token.
    pub bearer_token_file: Option<&'a str>,
    /// What stands before the token.
    pub token_word: &'a str,
    /// PEM file with certificates to trust besides the system's.
    pub tls_ca: Option<&'a str>,
    /// Name of the flag that gives that file, for errors.
    pub ca_flag: &'static str,
    /// Names of the flags that give credentials, for errors.
    pub login_flags: &'static str,
}

/// The flags for credentials that every client command has.
const LOGIN_FLAGS: &str = "--user with --password-file, or --bearer-token-file";

/// The flag for certificates that every client command has.
const CA_FLAG: &str = "--tls-ca FILE";

impl Access<'_> {
    /// Access to a server that asks for nothing.
    pub fn anonymous() -> Access<'static> {
        Access {
            user: None,
            password_file: None,
            bearer_token_file: None,
            token_word: BEARER,
            tls_ca: None,
            ca_flag: CA_FLAG,
            login_flags: LOGIN_FLAGS,
        }
    }
}

impl Client {
    /// A client for the server that the arguments name.
    ///
    /// # Errors
    /// A URL or a file that cannot be used.
    pub fn new(matches: &ArgMatches) -> anyhow::Result<Client> {
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
        let url = text("url").unwrap_or_default();
        let access = Access {
            user: text("user"),
            password_file: text("password-file"),
            bearer_token_file: text("bearer-token-file"),
            token_word: BEARER,
            tls_ca: text("tls-ca"),
            ca_flag: CA_FLAG,
            login_flags: LOGIN_FLAGS,
        };
        let shown = without_logins(url);
        let client = Client::open(url, &access).with_context(|| format!("--url {shown}"))?;
        if !client.prefix.is_empty() {
            bail!("--url {shown}: give the server only, without a path");
        }
        Ok(client)
    }

    /// A client for the server at `url`, whose path stands before the paths of all requests.
    ///
    /// # Errors
    /// A URL or a file that cannot be used.
    pub fn open(url: &str, access: &Access<'_>) -> anyhow::Result<Client> {
        let uri: Uri = url.parse()?;
        let (tls, port) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => (Some(connector(access.tls_ca)?), 443),
            _ => bail!("must begin with http:// or https://"),
        };
        let authority = uri.authority().context("no host")?;
        if authority.as_str().contains('@') {
            bail!("a user or a password in a URL is shown to others: {LOGIN_WORDS}");
        }
        Ok(Client {
            runtime: Waiting(Some(Builder::new_current_thread().enable_all().build()?)),
            host: authority.host().trim_matches(['[', ']']).to_string(),
            port: authority.port_u16().unwrap_or(port),
            authority: authority.to_string(),
            prefix: uri.path().trim_end_matches('/').to_string(),
            tls,
            authorization: authorization(access)?,
            login_flags: access.login_flags,
            ca_flag: access.ca_flag,
            connection: None,
            deadline: None,
            refuses_partial: false,
        })
    }

    /// Makes a partial answer an error ([`PartialAnswer`]). A Quipu marks one by a header, where it
    /// knows that before the body; `deny_partial_response=1` in the request covers the rest.
    pub fn refusing_partial(self) -> Client {
        Client { refuses_partial: true, ..self }
    }

    /// Tells apart who asks, by a digest of what logs in; nothing where nothing does.
    pub fn login_digest(&self) -> String {
        let Some(said) = &self.authorization else { return String::new() };
        let digest = ::ring::digest::digest(&::ring::digest::SHA256, said.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Sends a request until it is answered; waits while the server is away or says 503 and when to
    /// come again.
    ///
    /// # Errors
    /// After many tries, or when a server that was never reached stays away; at once when TLS is
    /// refused, `on_bytes` fails or an answer breaks off midway.
    pub fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
        on_bytes: OnBytes<'_>,
    ) -> anyhow::Result<Reply> {
        self.ask(&Asked { method, path, headers: &[], body }, on_bytes)
    }

    /// The same of a request with headers.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn ask(&mut self, asked: &Asked<'_>, on_bytes: OnBytes<'_>) -> anyhow::Result<Reply> {
        let mut pause = Duration::from_millis(250);
        let begun = Instant::now();
        for tried in 1.. {
            let outcome = self.try_once(asked, on_bytes);
            let is_last = tried == TRIES_MAX;
            match outcome {
                Ok(Attempt::Answered(reply)) => return Ok(reply),
                Ok(Attempt::Busy(reply, _)) if is_last => return Ok(reply),
                Ok(Attempt::Busy(reply, seconds)) => {
                    self.say_why_it_waits(&reply.error, tried);
                    let asked = Duration::from_secs(seconds.unwrap_or(0));
                    self.wait(pause.max(asked).min(PAUSE_MAX));
                }
                Ok(Attempt::Away(error)) if is_last => return Err(error),
                Ok(Attempt::Away(error)) if !self.was_reached() => {
                    if FIRST_CONTACT_PATIENCE < begun.elapsed() + pause {
                        let seconds = FIRST_CONTACT_PATIENCE.as_secs();
                        return Err(error.context(format!(
                            "{} was not there within {seconds} s: is the server running, and is the \
                             URL right?",
                            self.authority
                        )));
                    }
                    self.say_first_wait(&error, tried);
                    self.wait(pause);
                }
                Ok(Attempt::Away(error)) => {
                    self.say_why_it_waits(&format!("{error:#}"), tried);
                    self.wait(pause);
                }
                Err(error) => return Err(error),
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        unreachable!("the last try returns")
    }

    /// Sends a request once, and is back with the answer before the deadline, or with why there is
    /// none: for who has something better to do than to wait.
    ///
    /// # Errors
    /// When the server is away or slow, `on_bytes` fails, or an answer breaks off midway.
    pub fn ask_until(
        &mut self,
        deadline: Instant,
        asked: &Asked<'_>,
        on_bytes: OnBytes<'_>,
    ) -> anyhow::Result<Reply> {
        self.deadline = Some(deadline);
        let answered = self.ask_now(asked, on_bytes);
        // Later requests of this client have no deadline.
        self.deadline = None;
        answered
    }

    fn ask_now(&mut self, asked: &Asked<'_>, on_bytes: OnBytes<'_>) -> anyhow::Result<Reply> {
        let mut may_be_closed = self.connection.is_some();
        loop {
            match self.try_once(asked, on_bytes)? {
                Attempt::Answered(reply) | Attempt::Busy(reply, _) => return Ok(reply),
                // A connection that waited may have been closed meanwhile.
                Attempt::Away(_) if may_be_closed => may_be_closed = false,
                Attempt::Away(error) => return Err(error),
            }
        }
    }

    /// How long to wait for the next that the server does.
    fn patience(&self) -> Duration {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        self.deadline.map_or(SILENCE_MAX, |at| left(at).min(SILENCE_MAX))
    }

    fn was_reached(&self) -> bool {
        REACHED.lock().unwrap_or_else(PoisonError::into_inner).contains(&self.authority)
    }

    /// Says once that it waits for a server to start.
    fn say_first_wait(&self, error: &anyhow::Error, tried: u32) {
        if tried == 1 {
            let seconds = FIRST_CONTACT_PATIENCE.as_secs();
            eprintln!("quipu: {error:#}; waiting up to {seconds} s for {}", self.authority);
        }
    }

    /// Tells why nothing happens: a server that is away looks like a long answer.
    fn say_why_it_waits(&self, reason: &str, tried: u32) {
        let left = TRIES_MAX - tried;
        match tried {
            1 => eprintln!("quipu: {}; trying again, {left} times at most", reason.trim_end()),
            _ => eprintln!("quipu: {} is still away or busy; {left} tries left", self.authority),
        }
    }

    fn wait(&self, pause: Duration) {
        // The timer is made inside, where the runtime is known.
        self.runtime.block_on(async { tokio::time::sleep(pause).await });
    }

    /// One try. Fails when trying again would be wrong.
    fn try_once(&mut self, asked: &Asked<'_>, on_bytes: OnBytes<'_>) -> anyhow::Result<Attempt> {
        let Asked { method, path, headers, body } = asked;
        let uri = format!("{}{path}", self.prefix);
        let mut request = Request::builder().method(method).uri(uri).header(HOST, &self.authority);
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Full::new(body.clone()))?;
        let mut connection = match self.connection.take().filter(SendRequest::is_ready) {
            Some(connection) => connection,
            None => match self.connect() {
                Ok(connection) => connection,
                Err(error) if error.is::<TlsRefusal>() => return Err(error),
                Err(error) => return Ok(Attempt::Away(error)),
            },
        };
        let patience = self.patience();
        let asking = async { timeout(patience, connection.send_request(request)).await };
        let answered = self.runtime.block_on(asking).with_context(|| self.silent())?;
        let mut response = match answered {
            Ok(response) => response,
            Err(error) => return Ok(Attempt::Away(error.into())),
        };
        let status = response.status();
        let is_partial = response.headers().contains_key(partial::HEADER);
        if self.refuses_partial && status.is_success() && is_partial {
            let path = path.split('?').next().unwrap_or(path).to_string();
            return Err(PartialAnswer { path }.into());
        }
        let (error, size) = self.read_body(&mut response, on_bytes)?;
        self.connection = Some(connection);
        let error = self.without_secret(String::from_utf8_lossy(&error).trim_end());
        let error = self.with_login_hint(status, error);
        let text = |value: &HeaderValue| value.to_str().map(str::to_string).ok();
        let content_type = response.headers().get(CONTENT_TYPE).and_then(text).unwrap_or_default();
        let reply = Reply { status, error, content_type, size };
        let header = response.headers().get(RETRY_AFTER);
        let is_busy = match status {
            StatusCode::TOO_MANY_REQUESTS => true,
            // Without it there is nothing to wait for.
            StatusCode::SERVICE_UNAVAILABLE => header.is_some(),
            _ => false,
        };
        if is_busy {
            let text = header.and_then(|value| value.to_str().ok());
            return Ok(Attempt::Busy(reply, text.and_then(|text| text.parse().ok())));
        }
        Ok(Attempt::Answered(reply))
    }

    /// Reads the body: hands on that of a success, and returns its size; returns that of an error.
    fn read_body(
        &self,
        response: &mut Response<Incoming>,
        on_bytes: OnBytes<'_>,
    ) -> anyhow::Result<(Vec<u8>, u64)> {
        let status = response.status();
        let (mut error, mut size) = (Vec::new(), 0);
        let has_end = says_its_end(response);
        loop {
            let patience = self.patience();
            let reading = async { timeout(patience, response.frame()).await };
            let frame = self.runtime.block_on(reading).with_context(|| self.silent())?;
            let Some(frame) = frame else { break };
            let frame = frame.context(BROKE_OFF)?;
            if !has_end && status.is_success() {
                bail!(
                    "the answer does not say how long it is: nobody can tell whether it is whole"
                );
            }
            let Some(bytes) = frame.data_ref() else { continue };
            match status.is_success() {
                true => {
                    size += bytes.len() as u64;
                    on_bytes(bytes)?;
                }
                false if error.len() < ERROR_SIZE_MAX => error.extend_from_slice(bytes),
                false => {}
            }
        }
        Ok((error, size))
    }

    /// Some servers show the request in their errors, and these stand in logs and in answers to others.
    fn without_secret(&self, text: &str) -> String {
        let secret = self.authorization.as_deref().and_then(|text| text.split_once(' '));
        match secret.map(|(_, secret)| secret).filter(|secret| !secret.is_empty()) {
            Some(secret) => text.replace(secret, "***"),
            None => text.to_string(),
        }
    }

    /// Adds the server and the flags for credentials to the error of a refused login.
    fn with_login_hint(&self, status: StatusCode, error: String) -> String {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return error;
        }
        let (server, flags) = (&self.authority, self.login_flags);
        let hint = match self.authorization {
            None => format!("{server} asks for credentials: give {flags}"),
            Some(_) => format!("{server} refuses the credentials given by {flags}"),
        };
        match error.is_empty() {
            true => hint,
            false => format!("{error} ({hint})"),
        }
    }

    fn connect(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let patience = self.patience().min(CONNECT_TIMEOUT);
        let connecting = async { timeout(patience, self.connecting()).await };
        let silent =
            || format!("{} does not accept a connection within {patience:?}", self.authority);
        let connection = self.runtime.block_on(connecting).with_context(silent)??;
        let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
        reached.insert(self.authority.clone());
        Ok(connection)
    }

    async fn connecting(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let socket = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .with_context(|| format!("cannot reach {}", self.authority))?;
        socket.set_nodelay(true)?;
        match &self.tls {
            None => shake_hands(socket).await,
            Some(connector) => {
                let name = ServerName::try_from(self.host.clone())?;
                let stream = connector
                    .connect(name, socket)
                    .await
                    .map_err(|error| handshake_error(error, &self.authority, self.ca_flag))?;
                shake_hands(stream).await
            }
        }
    }

    fn silent(&self) -> String {
        match self.deadline {
            None => format!("nothing came for {} minutes", SILENCE_MAX.as_secs() / 60),
            Some(_) => "not within its time".to_string(),
        }
    }
}

/// How one try went.
enum Attempt {
    Answered(Reply),
    /// Asked to wait, for so many seconds if it said.
    Busy(Reply, Option<u64>),
    Away(anyhow::Error),
}

/// Whether an answer that ends early can be told from one that is whole.
fn says_its_end<B>(response: &Response<B>) -> bool {
    [CONTENT_LENGTH, TRANSFER_ENCODING].iter().any(|name| response.headers().contains_key(name))
}

async fn shake_hands<S>(stream: S) -> anyhow::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

fn authorization(access: &Access<'_>) -> anyhow::Result<Option<String>> {
    let read = |path: &str| -> anyhow::Result<String> {
        let secret = std::fs::read_to_string(path).with_context(|| path.to_string())?;
        match secret.trim_end() {
            "" => bail!("{path} is empty: write the password or the token into it"),
            secret => Ok(secret.to_string()),
        }
    };
    match (access.user, access.password_file, access.bearer_token_file) {
        (None, None, None) => Ok(None),
        (None, None, Some(path)) => Ok(Some(format!("{} {}", access.token_word, read(path)?))),
        (Some(user), Some(path), None) => {
            let pair = format!("{user}:{}", read(path)?);
            let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
            Ok(Some(format!("Basic {encoded}")))
        }
        _ => bail!("give --user with --password-file, or --bearer-token-file"),
    }
}

/// What to say instead of a URL with a password.
pub const LOGIN_WORDS: &str = "say it by the flags for a user and a file with the password";

/// A text with URLs, without the users and passwords in them.
pub fn without_logins(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, behind)) = rest.split_once("://") {
        shown.extend([before, "://"]);
        let is_end = |c: char| matches!(c, '/' | '?' | '#') || c.is_whitespace();
        let authority = behind.split(is_end).next().unwrap_or(behind);
        let login = authority.rfind('@').map_or(0, |at| at + 1);
        rest = behind.get(login..).unwrap_or(behind);
    }
    shown + rest
}

/// A query string's value, every byte but letters and digits in percent form.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers two requests on one connection.
    fn answer_twice(listener: &std::net::TcpListener) {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().expect("a connection");
        for _ in 0..2 {
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).expect("a request");
                request.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("an answer");
        }
    }

    #[test]
    fn a_deadline_ends_with_its_request() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = std::thread::spawn(move || answer_twice(&listener));
        let access = Access::anonymous();
        let mut client = Client::open(&url, &access).expect("a client");
        let asked = Asked { method: Method::GET, path: "/", headers: &[], body: Bytes::new() };
        let deadline = Instant::now() + Duration::from_millis(500);
        let first = client.ask_until(deadline, &asked, &mut |_| Ok(())).expect("in time");
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
        let second = client.ask(&asked, &mut |_| Ok(())).expect("without a deadline");
        assert!(first.status.is_success() && second.status.is_success());
        server.join().expect("both were answered");
    }

    #[test]
    fn logins_are_not_shown() {
        for (text, shown) in [
            ("http://a:8428/x", "http://a:8428/x"),
            ("redis://:p@w@h:6379 https://u:p@b/c@d", "redis://h:6379 https://b/c@d"),
            ("s3://bucket/a@b", "s3://bucket/a@b"),
            ("no URL u:p@h", "no URL u:p@h"),
            ("http://u@", "http://"),
        ] {
            assert_eq!(without_logins(text), shown);
        }
        let access = Access::anonymous();
        let refused = Client::open("http://u:secret@a", &access).err().expect("refused");
        let words = format!("{refused:#}");
        assert!(words.contains("flags for a user") && !words.contains("secret"), "{words}");
    }
}
