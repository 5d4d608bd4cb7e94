//! Request targets as clients type them: `curl -g '...?query=up{job="api"}'`.
//!
//! The HTTP library refuses characters that the standard wants escaped. Servers in Go take them, and
//! documentation of Prometheus relies on it. They are escaped here, before the library sees them, in
//! the first line of a request only.

/// Bytes of a method at most; what is longer is no request line.
const METHOD_SIZE_MAX: u8 = 16;

/// Reads the bytes of a connection until the target of a request is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum TargetScanner {
    /// In the method, of which so many bytes were read.
    Method(u8),
    /// In the target.
    Target,
    /// Behind it.
    Done,
}

impl TargetScanner {
    /// Reads more bytes. Returns them with escapes, if there is anything to escape.
    pub fn scan(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut escaped: Option<Vec<u8>> = None;
        for (at, &byte) in bytes.iter().enumerate() {
            let must_escape = match *self {
                TargetScanner::Method(count) => {
                    *self = match byte {
                        b'A'..=b'Z' if count < METHOD_SIZE_MAX => TargetScanner::Method(count + 1),
                        b' ' if 0 < count => TargetScanner::Target,
                        _ => TargetScanner::Done,
                    };
                    false
                }
                TargetScanner::Target if matches!(byte, b' ' | b'\r' | b'\n') => {
                    *self = TargetScanner::Done;
                    false
                }
                TargetScanner::Target => matches!(byte, b'"' | b'<' | b'>' | b'#' | 0x80..),
                TargetScanner::Done => {
                    if let Some(escaped) = &mut escaped {
                        escaped.extend_from_slice(&bytes[at..]);
                    }
                    break;
                }
            };
            if must_escape {
                let escaped = escaped.get_or_insert_with(|| bytes[..at].to_vec());
                escaped.extend_from_slice(format!("%{byte:02X}").as_bytes());
            } else if let Some(escaped) = &mut escaped {
                escaped.push(byte);
            }
        }
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_escaped_and_nothing_else() {
        for (sent, expected) in [
            (
                "GET /a?q=up{job=\"api\"} HTTP/1.1\r\nx: \"<>\"\r\n",
                Some("GET /a?q=up{job=%22api%22} HTTP/1.1\r\nx: \"<>\"\r\n"),
            ),
            (
                "GET /a?q=1<2>\u{e9}#b HTTP/1.1\r\n",
                Some("GET /a?q=1%3C2%3E%C3%A9%23b HTTP/1.1\r\n"),
            ),
            ("GET /a?q=1%22 HTTP/1.1\r\nx: \"\r\n\r\n\"<>", None),
            ("GET /a?q=b c\" HTTP/1.1\r\n", None),
            ("{\"a\": \"<b> c\"}", None),
            ("a=\"b\" <c>", None),
            ("VERYLONGMETHODNAME /\" HTTP/1.1", None),
            (" /\" HTTP/1.1", None),
            ("\r\nGET /\" HTTP/1.1", None),
        ] {
            let whole = TargetScanner::Method(0).scan(sent.as_bytes());
            assert_eq!(whole.as_deref(), expected.map(str::as_bytes), "{sent}");
            // However it comes in pieces.
            for cut in 0..sent.len() {
                let (first, second) = sent.as_bytes().split_at(cut);
                let mut scanner = TargetScanner::Method(0);
                let pieces =
                    [first, second].map(|piece| scanner.scan(piece).unwrap_or(piece.to_vec()));
                assert_eq!(pieces.concat(), expected.unwrap_or(sent).as_bytes(), "{sent} at {cut}");
            }
        }
    }
}
