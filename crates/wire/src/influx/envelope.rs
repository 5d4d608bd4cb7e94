//! What stands around series in an answer of InfluxQL, whoever makes what of them: [`super::answer`] rows,
//! [`super::columns`] columns.
//!
//! ```text
//! {"results":[{"statement_id":0,"series":[ .. ],"partial":true}]}     {"error":"words"}
//! ```

use crate::Error;
use crate::json_lines::scan::{Fault, Scan};
use crate::number;

/// Statements of a line: a chunked answer has one.
const STATEMENTS_MAX: usize = 64 << 10;

/// What a line says of one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<S> {
    /// Which statement of the question it is; beyond all of them where that is no number of one.
    pub statement: u64,
    /// Whether more of it follows.
    pub is_cut: bool,
    /// Parts of series.
    pub series: Vec<S>,
}

/// Reads a line, whose series `on_series` reads.
///
/// # Errors
/// When it is none, or says that something went wrong: then in the server's words.
pub(super) fn read<S>(
    line: &[u8],
    mut on_series: impl FnMut(&mut Scan<'_>) -> Result<S, Fault>,
) -> Result<Vec<Part<S>>, Error> {
    let (mut parts, mut wrong, mut is_answer) = (Vec::new(), None, false);
    let mut scan = Scan::new(line);
    let read = scan.members(|scan, name| match name {
        "results" => {
            is_answer = true;
            scan.elements(|scan| {
                if STATEMENTS_MAX <= parts.len() {
                    return scan.fault("fewer statements");
                }
                parts.push(part(scan, &mut wrong, &mut on_series)?);
                Ok(())
            })
        }
        "error" => {
            wrong = Some(scan.string()?.into_owned());
            Ok(())
        }
        _ => scan.skip(0),
    });
    let bad = |Fault { offset, expected }| Error::malformed("answer of InfluxQL", offset, expected);
    read.map_err(bad)?;
    match wrong {
        Some(words) => Err(Error::Invalid(words)),
        None if !is_answer => Err(bad(Fault { offset: 0, expected: "results" })),
        None => Ok(parts),
    }
}

fn part<S>(
    scan: &mut Scan<'_>,
    wrong: &mut Option<String>,
    on_series: &mut impl FnMut(&mut Scan<'_>) -> Result<S, Fault>,
) -> Result<Part<S>, Fault> {
    let mut part = Part { statement: 0, is_cut: false, series: Vec::new() };
    scan.members(|scan, name| {
        match name {
            "statement_id" => part.statement = u64::try_from(integer(scan)?).unwrap_or(u64::MAX),
            "error" => *wrong = Some(scan.string()?.into_owned()),
            "partial" => part.is_cut = yes_or_no(scan)?,
            "series" => scan.elements(|scan| {
                part.series.push(on_series(scan)?);
                Ok(())
            })?,
            _ => scan.skip(0)?,
        }
        Ok(())
    })?;
    Ok(part)
}

/// A row: its time first, then `on_cell` reads what stands behind it.
pub(super) fn row(
    scan: &mut Scan<'_>,
    mut on_cell: impl FnMut(&mut Scan<'_>, i64) -> Result<(), Fault>,
) -> Result<i64, Fault> {
    let mut time = None;
    scan.elements(|scan| {
        match time {
            None => time = Some(integer(scan)?),
            Some(time) => on_cell(scan, time)?,
        }
        Ok(())
    })?;
    time.map_or_else(|| scan.fault("a row with a time"), Ok)
}

/// A whole number.
fn integer(scan: &mut Scan<'_>) -> Result<i64, Fault> {
    // Behind a comma there may be a space.
    scan.peek();
    let found = number::decimal(scan.text, scan.at);
    let whole = found
        .as_ref()
        .and_then(|one| one.integer.and_then(|size| number::signed_of(size, one.is_negative)));
    match (found, whole) {
        (Some(found), Some(whole)) => {
            scan.at = found.end;
            Ok(whole)
        }
        _ => scan.fault("a whole number"),
    }
}

/// What stands where no text does: a number, a boolean, which is 1 or 0, or nothing.
pub(super) fn number_or_none(scan: &mut Scan<'_>) -> Result<Option<f64>, Fault> {
    let words: [(&[u8], Option<f64>); 3] =
        [(b"null", None), (b"true", Some(1.0)), (b"false", Some(0.0))];
    let rest = scan.text.get(scan.at..).unwrap_or_default();
    if let Some((word, value)) = words.iter().find(|(word, _)| rest.starts_with(word)) {
        scan.at += word.len();
        return Ok(*value);
    }
    match number::decimal(scan.text, scan.at) {
        Some(number) => {
            scan.at = number.end;
            Ok(Some(number.value))
        }
        None => scan.fault("a number, a boolean, text or null"),
    }
}

/// A boolean.
pub(super) fn yes_or_no(scan: &mut Scan<'_>) -> Result<bool, Fault> {
    scan.peek();
    match number_or_none(scan)? {
        Some(value) => Ok(value != 0.0),
        None => scan.fault("true or false"),
    }
}
