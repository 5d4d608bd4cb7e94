//! What keys have in common: names with numbers and identifiers folded.

/// Names of what stands for a folded piece.
const NUMBER: &str = "<n>";
const UUID: &str = "<uuid>";
const HEX: &str = "<hex>";
const BINARY: &str = "<binary>";
/// Hexadecimal digits that are taken for an identifier.
const HEX_LEN_MIN: usize = 16;
/// Bytes of a pattern.
const PATTERN_SIZE_MAX: usize = 96;

/// The pattern of a key: `user:17:cart` is `user:<n>:cart`.
pub fn fold(key: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(key) else { return BINARY.to_owned() };
    let mut pattern = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if PATTERN_SIZE_MAX <= pattern.len() {
            pattern.push('…');
            break;
        }
        let word = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
        let is_start = !pattern.ends_with(|c: char| c.is_ascii_alphanumeric());
        if is_start && is_uuid(rest) {
            pattern.push_str(UUID);
            rest = &rest[36..];
        } else if is_start && HEX_LEN_MIN <= word && is_hex(&rest[..word]) {
            pattern.push_str(HEX);
            rest = &rest[word..];
        } else if letter.is_ascii_digit() {
            pattern.push_str(NUMBER);
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        } else {
            pattern.push(if letter.is_control() { '?' } else { letter });
            rest = &rest[letter.len_utf8()..];
        }
    }
    pattern
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit()) && text.bytes().any(|b| b.is_ascii_digit())
}

/// Whether text begins with eight, four, four, four and twelve hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_right = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    36 <= bytes.len()
        && bytes[..36].iter().enumerate().all(is_right)
        && !bytes.get(36).is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_identifiers_are_folded() {
        let cases = [
            ("user:17:cart", "user:<n>:cart"),
            ("user:18", "user:<n>"),
            ("session:123e4567-e89b-12d3-a456-426614174000", "session:<uuid>"),
            ("etag/9e107d9d372bb6826bd81d3542a419d6.html", "etag/<hex>.html"),
            ("v2:page", "v<n>:page"),
            ("plain", "plain"),
            ("defaced:facade", "defaced:facade"),
            ("ä:5:ö", "ä:<n>:ö"),
            ("", ""),
        ];
        for (key, pattern) in cases {
            assert_eq!(fold(key.as_bytes()), pattern, "{key}");
        }
        assert_eq!(fold(&[0xff, 0xfe]), "<binary>");
        assert!(fold(&[b'x'; 5000]).len() < 120);
    }
}
