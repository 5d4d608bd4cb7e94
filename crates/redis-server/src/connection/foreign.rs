//! Clients of other protocols on the port of Redis' clients: each gets an answer that it shows.

/// A protocol that a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// HTTP/1 or HTTP/2.
    Http,
    /// TLS.
    Tls,
}

/// Bytes of a first line that is looked at.
const LINE_SIZE_MAX: usize = 16 << 10;

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Commands.
    Commands,
    /// Another protocol.
    Foreign(Foreign),
    /// Too few bytes to tell.
    Short,
}

/// Tells by the first bytes of a connection what its client speaks.
pub fn beginning_of(bytes: &[u8]) -> Beginning {
    match bytes {
        [] | [0x16] => return Beginning::Short,
        [b'*', ..] => return Beginning::Commands,
        [0x16, 0x03, ..] => return Beginning::Foreign(Foreign::Tls),
        _ => {}
    }
    match bytes.iter().take(LINE_SIZE_MAX).position(|byte| *byte == b'\n') {
        Some(end) if is_http(&bytes[..end]) => Beginning::Foreign(Foreign::Http),
        None if bytes.len() < LINE_SIZE_MAX => Beginning::Short,
        _ => Beginning::Commands,
    }
}

/// Whether a line is the first one of a request: no command has `HTTP/` as its third word.
fn is_http(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = line.trim_ascii_end().splitn(4, |byte| *byte == b' ').collect();
    let [method, _, version] = words[..] else { return false };
    !method.is_empty() && method.iter().all(u8::is_ascii_uppercase) && version.starts_with(b"HTTP/")
}

/// Bytes to answer a client of another protocol with. `url` is where the server speaks HTTP.
pub fn answer(foreign: Foreign, url: &str) -> Vec<u8> {
    match foreign {
        Foreign::Http => {
            let text = format!(
                "This port (--redis-listen) is for Redis clients and does not speak HTTP. \
                 Send HTTP requests to {url}\n"
            );
            let size = text.len();
            format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
                 Content-Length: {size}\r\nConnection: close\r\n\r\n{text}"
            )
            .into_bytes()
        }
        // TLS has no words: OpenSSL shows "wrong version number", which means a server without TLS.
        Foreign::Tls => {
            b"-ERR this port does not speak TLS: connect without TLS, or start the server \
                          with --tls-cert and --tls-key\r\n"
                .to_vec()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_told_apart_by_their_first_bytes() {
        let (http, tls) = (Beginning::Foreign(Foreign::Http), Beginning::Foreign(Foreign::Tls));
        let cases: [(&[u8], Beginning); 12] = [
            (b"*1\r\n$4\r\nPING\r\n", Beginning::Commands),
            (b"PING\r\n", Beginning::Commands),
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", http),
            (b"GET / HTTP/1.1", Beginning::Short),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http),
            (b"POST /api/v1/write?db=x HTTP/1.0\n", http),
            (b"SET a HTTP\r\n", Beginning::Commands),
            (b"SET a HTTP/1.1 x\r\n", Beginning::Commands),
            (b"set a HTTP/1.1\r\n", Beginning::Commands),
            (b"\x16\x03\x01\x02\x00", tls),
            (b"\x16", Beginning::Short),
            (b"\x16\x00\n", Beginning::Commands),
        ];
        for (bytes, expected) in cases {
            assert_eq!(beginning_of(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(beginning_of(&[b'a'; LINE_SIZE_MAX]), Beginning::Commands);
    }

    #[test]
    fn answers_name_cause_and_remedy() {
        let http = String::from_utf8(answer(Foreign::Http, "http://localhost:8428")).expect("text");
        let (head, body) = http.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(body.ends_with("to http://localhost:8428\n"), "{body}");
        assert!(answer(Foreign::Tls, "").starts_with(b"-ERR this port does not speak TLS"));
    }
}
