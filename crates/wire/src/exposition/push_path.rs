//! Labels in the path of a push, as Pushgateway has them.
//!
//! ```text
//! /metrics/job/node/instance/a%3A9100          job="node", instance="a:9100"
//! /metrics/job@base64/L3Zhci90bXA/path/        job="/var/tmp", path=""
//! ```

use crate::Error;

/// The labels in `path`, which is what follows `/metrics/`, still percent-encoded.
///
/// # Errors
/// A name without a value, or a value that does not decode to UTF-8.
pub fn labels_of_path(path: &str) -> Result<Vec<(String, String)>, Error> {
    let mut labels = Vec::new();
    let mut segments = path.split('/');
    while let Some(name) = segments.next() {
        let Some(value) = segments.next() else {
            if name.is_empty() {
                break;
            }
            return Err(Error::Invalid(format!("label {name:?} in the path has no value")));
        };
        let (name, value) = (percent_decode(name)?, percent_decode(value)?);
        match name.strip_suffix("@base64") {
            Some(name) => labels.push((name.to_string(), base64_decode(&value)?)),
            None => labels.push((name, value)),
        }
    }
    Ok(labels)
}

fn percent_decode(text: &str) -> Result<String, Error> {
    let invalid = || Error::Invalid(format!("cannot decode {text:?} in the path"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, tail) = rest.split_first_chunk::<2>().ok_or_else(invalid)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = digit(digits[0]).zip(digit(digits[1])).ok_or_else(invalid)?;
        bytes.push((high * 16 + low) as u8);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

/// Base64 with either alphabet, padding optional; a lone `=` is the empty text.
fn base64_decode(text: &str) -> Result<String, Error> {
    let invalid = || Error::Invalid(format!("cannot decode {text:?} as base64"));
    let (mut bytes, mut bits, mut bit_count) = (Vec::new(), 0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return Err(invalid()),
        };
        bits = bits << 6 | u32::from(digit);
        bit_count += 6;
        if 8 <= bit_count {
            bit_count -= 8;
            bytes.push((bits >> bit_count) as u8);
        }
    }
    if bit_count == 6 {
        return Err(invalid());
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, want: &[(&str, &str)]) {
        let want: Vec<_> = want.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        assert_eq!(labels_of_path(path), Ok(want), "{path}");
    }

    #[test]
    fn paths_of_pushgateway() {
        check("job/node/instance/a%3A9100", &[("job", "node"), ("instance", "a:9100")]);
        check("job@base64/L3Zhci90bXA", &[("job", "/var/tmp")]);
        check("job/x/path@base64/=", &[("job", "x"), ("path", "")]);
        check("job/x/", &[("job", "x")]);
        check("job@base64/8J-YgA==", &[("job", "\u{1f600}")]);
        check("", &[]);
        for path in ["job", "job/x/y", "job/%", "job/%zz", "job/%ff", "a@base64/A", "a@base64/!!"] {
            assert!(labels_of_path(path).is_err(), "{path}");
        }
    }
}
