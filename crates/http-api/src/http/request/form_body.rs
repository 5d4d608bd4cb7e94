//! Bodies that are forms: `application/x-www-form-urlencoded`, and `multipart/form-data` as
//! `curl -F query=up` sends it.

use super::{FORM_PARAMETERS_MAX, Params, media_type};
use net::failure::Failure;
use net::telemetry::Limit;

/// Form of a body, by its `Content-Type`.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) enum Form<'a> {
    /// `a=1&b=2`
    Pairs,
    /// Parts between lines with this boundary.
    Parts(&'a str),
}

impl<'a> Form<'a> {
    /// The form that a `Content-Type` names, if it names one.
    pub fn of(content_type: &'a str) -> Option<Form<'a>> {
        let name = media_type(content_type);
        if name.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Some(Form::Pairs);
        }
        if !name.eq_ignore_ascii_case("multipart/form-data") {
            return None;
        }
        let boundary = parameter(content_type, "boundary").unwrap_or("");
        Some(Form::Parts(boundary))
    }

    /// Adds the parameters of a body.
    ///
    /// # Errors
    /// [`net::failure::Kind::TooLarge`] for too many, 400 for a body without its boundary.
    pub fn append(&self, body: &[u8], params: &mut Params) -> Result<(), Failure> {
        match self {
            Form::Pairs => params.append(body),
            Form::Parts(boundary) => append_parts(body, boundary, params),
        }
    }
}

/// A parameter of a header, quoted or not.
fn parameter<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = header;
    loop {
        let (_, after) = rest.split_once(';')?;
        let (found, value) = after.split_once('=')?;
        let value = value.trim_start();
        let (value, tail) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => value.split_at(value.find(';').unwrap_or(value.len())),
        };
        if found.trim().eq_ignore_ascii_case(name) {
            return Some(value.trim());
        }
        rest = tail;
    }
}

fn append_parts(body: &[u8], boundary: &str, params: &mut Params) -> Result<(), Failure> {
    let malformed = || Failure::bad_input("malformed multipart form");
    if boundary.is_empty() {
        return Err(malformed());
    }
    let (first, between) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let start = memchr::memmem::find(body, first.as_bytes()).ok_or_else(malformed)?;
    let mut rest = &body[start + first.len()..];
    for count in 0.. {
        if rest.starts_with(b"--") {
            return Ok(());
        }
        if FORM_PARAMETERS_MAX <= count {
            let message = format!("form of more than {FORM_PARAMETERS_MAX} parameters");
            return Err(Failure::too_large(Limit::BodySize, message));
        }
        let end = memchr::memmem::find(rest, between.as_bytes()).ok_or_else(malformed)?;
        append_part(&rest[..end], params);
        rest = &rest[end + between.len()..];
    }
    Ok(())
}

/// Adds a part, unless it is a file.
fn append_part(part: &[u8], params: &mut Params) {
    let Some(end) = memchr::memmem::find(part, b"\r\n\r\n") else { return };
    let head = String::from_utf8_lossy(&part[..end]);
    let disposition = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let Some(disposition) = disposition.filter(|text| parameter(text, "filename").is_none()) else {
        return;
    };
    if let Some(name) = parameter(disposition, "name") {
        params.push_part(name, &String::from_utf8_lossy(&part[end + 4..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_have_any_case() {
        for (content_type, expected) in [
            ("application/x-www-form-urlencoded", Some(Form::Pairs)),
            ("APPLICATION/X-WWW-FORM-URLENCODED", Some(Form::Pairs)),
            (" Application/x-www-form-urlencoded ; charset=UTF-8", Some(Form::Pairs)),
            ("application/x-www-form-urlencoded2", None),
            ("application/json", None),
            ("", None),
            ("multipart/form-data; boundary=ab", Some(Form::Parts("ab"))),
            (
                "MultiPart/Form-Data; charset=utf-8; BOUNDARY=\"a b;c\"; x=y",
                Some(Form::Parts("a b;c")),
            ),
            ("multipart/form-data", Some(Form::Parts(""))),
            ("multipart/mixed; boundary=ab", None),
        ] {
            assert_eq!(Form::of(content_type), expected, "{content_type}");
        }
    }

    #[test]
    fn parts_become_parameters() {
        let part = |head: &str, value: &str| format!("--ab\r\n{head}\r\n\r\n{value}\r\n");
        let body = [
            "preamble\r\n".to_string(),
            part("Content-Disposition: form-data; name=\"query\"", "a\r\n--b + 1"),
            part("content-type: text/plain\r\nCONTENT-DISPOSITION: form-data; name=match[]", "x"),
            part("Content-Disposition: form-data; name=\"match[]\"", ""),
            part("Content-Disposition: form-data; name=\"f\"; filename=\"g\"", "file"),
            part("Content-Disposition: form-data", "nameless"),
            "--ab--\r\n".to_string(),
        ]
        .concat();
        let mut params = Params::default();
        Form::Parts("ab").append(body.as_bytes(), &mut params).expect("a form");
        assert_eq!(params.get("query"), Some("a\r\n--b + 1"));
        assert_eq!(params.all("match[]").collect::<Vec<_>>(), ["x", ""]);
        assert_eq!(params.get("f"), None);
        for (boundary, body) in [("ab", "--ab\r\n"), ("", "--\r\n"), ("ab", ""), ("x", "--ab--")] {
            let appended = Form::Parts(boundary).append(body.as_bytes(), &mut params);
            assert!(appended.is_err(), "{body:?} with {boundary:?}");
        }
    }
}
