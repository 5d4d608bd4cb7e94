//! The labels in a path of Pushgateway's: its group.

use crate::http::request::decode_percent;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use net::failure::Failure;

/// Labels in a path, behind its `job`: `/J/name/value`, or `@base64/J64/name@base64/value64`.
///
/// # Errors
/// A label without a value, or base64 that is none.
pub fn labels_of_path(captured: &str) -> Result<Vec<(String, String)>, Failure> {
    if captured.is_empty() {
        return Ok(Vec::new());
    }
    let path = format!("job{captured}");
    let pieces: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    if !pieces.len().is_multiple_of(2) {
        let message =
            format!("/metrics/{path}: the label {:?} has no value", pieces[pieces.len() - 1]);
        return Err(Failure::bad_input(message));
    }
    pieces.chunks_exact(2).map(|pair| path_label(pair[0], pair[1])).collect()
}

fn path_label(name: &str, value: &str) -> Result<(String, String), Failure> {
    let name = decode_percent(name.as_bytes());
    let value = decode_percent(value.as_bytes());
    let Some(name) = name.strip_suffix("@base64") else {
        return Ok((name.into_owned(), value.into_owned()));
    };
    let decoded = URL_SAFE_NO_PAD.decode(value.trim_end_matches('='));
    let text = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| {
        Failure::bad_input(format!("label {name:?}: {value:?} is no text in URL-safe base64"))
    })?;
    Ok((name.to_string(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(captured: &str, expected: &[(&str, &str)]) {
        let labels = labels_of_path(captured).expect("labels");
        let labels: Vec<(&str, &str)> =
            labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(labels, expected);
    }

    #[test]
    fn labels_in_paths() {
        check("", &[]);
        check("/j", &[("job", "j")]);
        check("/j/instance/a%2Fb/", &[("job", "j"), ("instance", "a/b")]);
        check("@base64/YS9i/x@base64/=", &[("job", "a/b"), ("x", "")]);
        assert!(labels_of_path("/j/instance").is_err());
        assert!(labels_of_path("@base64/!!").is_err());
    }
}
