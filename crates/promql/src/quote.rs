//! String literals: from source to string and back.
//!
//! Double and single quotes know the escapes of Go (`\n`, `\x41`, `\101`, `\u00e4`, `\U0001f600`);
//! back quotes know none.

/// Why a literal has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnquoteError {
    /// A malformed escape or a stray quote.
    Syntax,
    /// Escapes made these bytes, which are not UTF-8.
    InvalidUtf8(Vec<u8>),
}

/// The string that a literal with its quotes stands for.
pub(crate) fn unquote(literal: &str) -> Result<String, UnquoteError> {
    let mut chars = literal.chars();
    let (Some(quote), Some(last)) = (chars.next(), chars.next_back()) else {
        return Err(UnquoteError::Syntax);
    };
    if quote != last || !matches!(quote, '"' | '\'' | '`') {
        return Err(UnquoteError::Syntax);
    }
    let body = chars.as_str();
    if quote == '`' {
        return if body.contains('`') { Err(UnquoteError::Syntax) } else { Ok(body.to_string()) };
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => unescape(&mut rest, quote, &mut out)?,
            '\n' => return Err(UnquoteError::Syntax),
            _ if c == quote => return Err(UnquoteError::Syntax),
            _ => push_char(&mut out, c),
        }
    }
    String::from_utf8(out).map_err(|error| UnquoteError::InvalidUtf8(error.into_bytes()))
}

/// Why bytes that are not UTF-8 are no string.
pub(crate) const INVALID_UTF8: &str = "invalid UTF-8";

/// Says that a literal has no value.
pub(crate) fn unquoting_failed(literal: &str, reason: &str) -> String {
    format!("error unquoting string {}: {reason}", quote(literal))
}

/// Reads what follows a backslash.
fn unescape(
    rest: &mut std::str::Chars<'_>,
    quote: char,
    out: &mut Vec<u8>,
) -> Result<(), UnquoteError> {
    let c = rest.next().ok_or(UnquoteError::Syntax)?;
    match c {
        'a' => out.push(7),
        'b' => out.push(8),
        'f' => out.push(12),
        'n' => out.push(b'\n'),
        'r' => out.push(b'\r'),
        't' => out.push(b'\t'),
        'v' => out.push(11),
        '\\' => out.push(b'\\'),
        'x' => out.push(digits(rest, 2, 16)? as u8),
        'u' | 'U' => {
            let code = digits(rest, if c == 'u' { 4 } else { 8 }, 16)?;
            push_char(out, char::from_u32(code).ok_or(UnquoteError::Syntax)?);
        }
        '0'..='7' => {
            let code = c.to_digit(8).unwrap_or(0) * 64 + digits(rest, 2, 8)?;
            out.push(u8::try_from(code).map_err(|_| UnquoteError::Syntax)?);
        }
        _ if c == quote => push_char(out, c),
        _ => return Err(UnquoteError::Syntax),
    }
    Ok(())
}

fn digits(rest: &mut std::str::Chars<'_>, count: usize, radix: u32) -> Result<u32, UnquoteError> {
    let mut value = 0u32;
    for _ in 0..count {
        let digit = rest.next().and_then(|c| c.to_digit(radix)).ok_or(UnquoteError::Syntax)?;
        value = value.checked_mul(radix).ok_or(UnquoteError::Syntax)? + digit;
    }
    Ok(value)
}

fn push_char(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The double-quoted literal that stands for `value`.
pub fn quote(value: &str) -> String {
    quote_bytes(value.as_bytes())
}

/// As [`quote`] for what may not be UTF-8: bytes that are not are `\xc5`.
pub(crate) fn quote_bytes(value: &[u8]) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for chunk in value.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push_escaped(&mut out, c, '"'));
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out.push('"');
    out
}

/// A character in single quotes, as error messages show it.
pub(crate) fn quote_char(c: char) -> String {
    let mut out = String::from("'");
    push_escaped(&mut out, c, '\'');
    out.push('\'');
    out
}

fn push_escaped(out: &mut String, c: char, quote: char) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        _ if c == quote => {
            out.push('\\');
            out.push(c);
        }
        _ if (c as u32) < 0x80 && c.is_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
        _ if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(unquote(r#""a\n\t\\\"\x41\101\u00e4\U0001f600""#).unwrap(), "a\n\t\\\"AAä😀");
        assert_eq!(unquote(r"'it\'s'").unwrap(), "it's");
        assert_eq!(unquote("`a\\n`").unwrap(), "a\\n");
        assert_eq!(unquote(r#""\xff""#), Err(UnquoteError::InvalidUtf8(vec![0xff])));
        assert_eq!(unquote(r#""\c3\xa4""#), Err(UnquoteError::Syntax));
        assert_eq!(unquote(r#""\xc3\xa4""#).unwrap(), "ä");
        assert_eq!(unquote(r#""\400""#), Err(UnquoteError::Syntax));
        assert_eq!(unquote(r#""\ud800""#), Err(UnquoteError::Syntax));
        assert_eq!(unquote("\""), Err(UnquoteError::Syntax));
        assert_eq!(unquote("\"a'"), Err(UnquoteError::Syntax));
    }

    #[test]
    fn quoting_and_back() {
        for value in ["", "a", "\"\\\n\u{1}\u{85}ä😀", "`'"] {
            assert_eq!(unquote(&quote(value)).unwrap(), value);
        }
        assert_eq!(quote_bytes(b"a\xc5z\n"), r#""a\xc5z\n""#);
    }
}
