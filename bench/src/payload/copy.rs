//! What is sent to a server that speaks SQL: a statement on the first line, and rows after it when
//! it is a COPY; else the statement is all there is.
//!
//! ```text
//! COPY cpu FROM STDIN\n
//! 2016-01-01T00:00:00Z\t1\t58\t2\t..\n         a row: time, its host's number, ten fields
//! ```

use crate::tsbs::FIELDS;
use anyhow::{Context, Result};

/// The first line of a body of rows.
pub const COPY_CPU: &str = "COPY cpu FROM STDIN\n";
/// A row holds that many samples.
pub const SAMPLES_PER_ROW: u64 = FIELDS.len() as u64;

/// Takes a body apart: its statement, and its rows if it is a COPY.
///
/// # Errors
/// When its statement is no text.
pub fn split(body: &[u8]) -> Result<(&str, Option<&[u8]>)> {
    if body.starts_with(b"COPY ") {
        let end = body.iter().position(|byte| *byte == b'\n').context("COPY without rows")?;
        let (statement, rows) = (&body[..end], &body[end + 1..]);
        return Ok((std::str::from_utf8(statement)?, Some(rows)));
    }
    Ok((std::str::from_utf8(body)?, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_taken_apart() {
        let body = format!("{COPY_CPU}1\t2\n3\t4\n");
        let (statement, rows) = split(body.as_bytes()).unwrap();
        assert_eq!((statement, rows), ("COPY cpu FROM STDIN", Some(&b"1\t2\n3\t4\n"[..])));
        assert_eq!(split(b"INSERT INTO tags\nVALUES").unwrap(), ("INSERT INTO tags\nVALUES", None));
        assert!(split(b"COPY cpu").is_err());
        assert!(split(b"\xff").is_err());
    }
}
