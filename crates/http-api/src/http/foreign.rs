//! Clients of other protocols on the port of HTTP. Each gets an answer in the form that it shows, with
//! the address where it should connect.
//!
//! ```text
//! TLS           16 ..                   an answer of HTTP: clients say that the server has no TLS
//! Redis         *1\r\n$4\r\nPING\r\n    an error of RESP
//! PostgreSQL    00 00 00 08 04 d2 ..    N to requests for encryption, an error to the start-up packet
//! ```
//!
//! The HTTP library gets all other bytes. It refuses malformed and too long heads without a body;
//! [`refusal`] adds a body with the remedy.

use app::config::Config;
use net::listeners::table::Listener;

/// Bytes of a start-up packet of PostgreSQL, at most.
const STARTUP_SIZE_MAX: usize = 10_000;
/// Bytes of the start-up packet of PostgreSQL that tell what it is: its size and a code.
const STARTUP_HEAD_SIZE: usize = 8;
/// Codes of packets that ask for TLS and for GSSAPI.
const ENCRYPTION_CODES: [u32; 2] = [80_877_103, 80_877_104];
/// Bytes of the beginning of a connection that are kept for the answer to a malformed head.
pub const OPENING_SIZE: usize = 128;

/// Addresses of the other listeners, for answers.
#[derive(Clone, Debug, Default)]
pub struct OtherListeners {
    redis: String,
    postgres: String,
    lines: String,
}

impl OtherListeners {
    /// Addresses that are configured.
    pub fn new(config: &Config) -> OtherListeners {
        let place = |listener: Listener| {
            let flag = format!("--{}-listen", listener.row().name);
            match config.listener(listener).map(|one| one.address) {
                None => format!("{flag}, which is not set"),
                Some(address) if address.port() == 0 => flag,
                Some(address) => format!("{flag}, {address}"),
            }
        };
        OtherListeners {
            redis: place(Listener::Redis),
            postgres: place(Listener::Postgres),
            lines: place(Listener::Influx),
        }
    }
}

/// A protocol that is not HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tls,
    Redis,
    Postgres,
}

/// Next action on a connection of another protocol.
#[derive(Debug, PartialEq, Eq)]
pub enum NextStep {
    /// More bytes are needed.
    Read,
    /// These bytes are sent, then more are read.
    Reply(Vec<u8>),
    /// These bytes are sent, then the connection is closed.
    Close(Vec<u8>),
}

/// A conversation with a client of another protocol.
#[derive(Debug)]
pub struct ForeignClient {
    protocol: Protocol,
    received: Vec<u8>,
}

impl ForeignClient {
    /// The conversation with a client that begins so, unless it may be one of HTTP.
    pub fn begin(bytes: &[u8]) -> Option<ForeignClient> {
        let protocol = match bytes.first()? {
            0x16 => Protocol::Tls,
            b'*' => Protocol::Redis,
            0 => Protocol::Postgres,
            _ => return None,
        };
        Some(ForeignClient { protocol, received: Vec::new() })
    }

    /// Takes bytes from the client.
    pub fn receive(&mut self, bytes: &[u8], others: &OtherListeners) -> NextStep {
        match self.protocol {
            Protocol::Tls => NextStep::Close(http_answer(
                "400 Bad Request",
                "this port speaks HTTP without TLS: use an address with http://, or start the server \
                 with --tls-cert and --tls-key",
            )),
            Protocol::Redis => NextStep::Close(
                format!(
                    "-ERR this port speaks HTTP; Redis clients connect to the address of {}\r\n",
                    others.redis
                )
                .into_bytes(),
            ),
            Protocol::Postgres => {
                self.received.extend_from_slice(bytes);
                self.receive_startup(others)
            }
        }
    }

    /// Reads a packet of PostgreSQL before a session.
    fn receive_startup(&mut self, others: &OtherListeners) -> NextStep {
        let Some(head) = self.received.get(..STARTUP_HEAD_SIZE) else { return NextStep::Read };
        let number = |at: usize| {
            let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            u32::from_be_bytes(bytes.unwrap_or_default())
        };
        let (size, code) = (number(0) as usize, number(4));
        if !(STARTUP_HEAD_SIZE..=STARTUP_SIZE_MAX).contains(&size) {
            return NextStep::Close(Vec::new());
        }
        if self.received.len() < size {
            return NextStep::Read;
        }
        if ENCRYPTION_CODES.contains(&code) {
            self.received.drain(..size);
            return NextStep::Reply(b"N".to_vec());
        }
        let message = format!(
            "this port speaks HTTP; PostgreSQL clients connect to the address of {}",
            others.postgres
        );
        NextStep::Close(postgres_error(&message))
    }
}

/// An error that ends a session of PostgreSQL before it begins.
fn postgres_error(message: &str) -> Vec<u8> {
    let fields = format!("SFATAL\0VFATAL\0C08P01\0M{message}\0\0");
    let size = u32::try_from(4 + fields.len()).unwrap_or(u32::MAX);
    [&b"E"[..], &size.to_be_bytes(), fields.as_bytes()].concat()
}

/// An answer to bytes that are no request.
pub fn http_answer(status: &str, message: &str) -> Vec<u8> {
    let size = message.len() + 1;
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {size}\r\n\
         connection: close\r\n\r\n{message}\n"
    )
    .into_bytes()
}

/// The answer with a body that takes the place of one that the HTTP library makes of a malformed head,
/// if `sent` is one. `opening` is how the connection began.
pub fn refusal(sent: &[u8], opening: &[u8], others: &OtherListeners) -> Option<Vec<u8>> {
    if !sent.starts_with(b"HTTP/1.1 4") {
        return None;
    }
    let head = std::str::from_utf8(sent).ok()?.strip_suffix("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?;
    // Answers of ours have a body, whose type they name.
    let mut names = lines.clone().filter_map(|line| line.split_once(':'));
    let has_type = names.any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if has_type || !lines.any(|line| line.eq_ignore_ascii_case("content-length: 0")) {
        return None;
    }
    Some(match status {
        "400" if is_request_line(opening) => http_answer(
            "400 Bad Request",
            "malformed head of a request: it begins with METHOD TARGET HTTP/1.1, lines of the form NAME: \
             VALUE follow, and Content-Length is a number",
        ),
        "400" => http_answer(
            "400 Bad Request",
            &format!(
                "this port speaks HTTP, and what came is no request of HTTP; send line protocol by POST \
                 /write, or to the address of {}; Graphite's plaintext protocol is not supported",
                others.lines
            ),
        ),
        "414" => http_answer(
            "414 URI Too Long",
            "the address of the request has more than 65,534 bytes: send the parameters as a form by \
             POST, in Grafana by the data source's HTTP method",
        ),
        "431" => http_answer(
            "431 Request Header Fields Too Large",
            "the head of the request has more than 256 KiB or 100 headers: send long parameters as a \
             form by POST",
        ),
        _ => return None,
    })
}

/// Whether bytes begin like a request of HTTP/1.
fn is_request_line(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    is_method && (target.starts_with(b"/") || target.starts_with(b"http"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others() -> OtherListeners {
        let place = |name: &str| format!("--{name}-listen");
        OtherListeners {
            redis: place("redis"),
            postgres: place("postgres"),
            lines: place("influx"),
        }
    }

    #[test]
    fn http_is_left_alone() {
        for text in ["GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n", "cpu v=1 1\n", "\r\nGET /", ""] {
            assert!(ForeignClient::begin(text.as_bytes()).is_none(), "{text:?}");
        }
    }

    #[test]
    fn redis_and_tls_are_answered_at_once() {
        let bytes = b"*1\r\n$4\r\nPING\r\n";
        let next = ForeignClient::begin(bytes).expect("RESP").receive(bytes, &others());
        let NextStep::Close(reply) = next else { panic!("{next:?}") };
        assert!(reply.starts_with(b"-ERR this port speaks HTTP") && reply.ends_with(b"\r\n"));
        let next =
            ForeignClient::begin(b"\x16\x03\x01").expect("TLS").receive(b"\x16\x03\x01", &others());
        let NextStep::Close(reply) = next else { panic!("{next:?}") };
        assert!(reply.starts_with(b"HTTP/1.1 400 "));
    }

    #[test]
    fn postgres_gets_an_error_after_its_question_for_tls() {
        let ssl = b"\0\0\0\x08\x04\xd2\x16\x2f";
        let startup = b"\0\0\0\x12\0\x03\0\0user\0ann\0\0";
        // However the bytes come in pieces.
        for cut in 1..ssl.len() {
            let mut foreign = ForeignClient::begin(ssl).expect("a packet");
            assert_eq!(foreign.receive(&ssl[..cut], &others()), NextStep::Read);
            assert_eq!(foreign.receive(&ssl[cut..], &others()), NextStep::Reply(b"N".to_vec()));
            assert_eq!(foreign.receive(&startup[..9], &others()), NextStep::Read);
            let next = foreign.receive(&startup[9..], &others());
            let NextStep::Close(reply) = next else { panic!("{next:?}") };
            let size = u32::from_be_bytes(reply[1..5].try_into().expect("4 bytes")) as usize;
            assert_eq!((reply[0], size), (b'E', reply.len() - 1));
            let text = String::from_utf8_lossy(&reply);
            assert!(text.contains("address of --postgres-listen"), "{text}");
        }
        let mut foreign = ForeignClient::begin(b"\0").expect("a packet");
        assert_eq!(foreign.receive(&[0; 8], &others()), NextStep::Close(Vec::new()));
    }

    #[test]
    fn refusals_of_the_library_get_words() {
        let text = |status: &str, opening: &str| {
            let sent = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
            let answer = refusal(sent.as_bytes(), opening.as_bytes(), &others())?;
            let answer = String::from_utf8(answer).expect("text");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
            Some(body.to_string())
        };
        let words = |status: &str, opening: &str| text(status, opening).expect("an answer");
        assert!(words("400", "GET /a HTTP/1.1\r\nb\r\n").starts_with("malformed head"));
        assert!(words("400", "cpu,host=a v=1 1\n").contains("POST /write"));
        assert!(words("414", "GET /").contains("form by POST"));
        assert!(words("431", "GET /").contains("256 KiB"));
        assert_eq!(text("200", "GET /"), None);
        let own = b"HTTP/1.1 400 Bad Request\r\ncontent-type: a\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(refusal(own, b"", &others()), None);
        let own = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n";
        assert_eq!(refusal(own, b"", &others()), None);
        assert_eq!(refusal(b"HTTP/1.1 4", b"", &others()).map(|_| ()), None);
        assert_eq!(refusal(b"\x00\x00\x12", b"", &others()).map(|_| ()), None);
    }
}
