//! Answers of InfluxQL by columns, for who wants each field's own samples: what a row has not costs
//! nothing, and how much one line may become in memory is bounded by a few times its bytes.
//!
//! The format is that of [`super::answer`]; `"partial":true` says that more of the same follows.

use super::envelope::{self, Part};
use crate::Error;
use crate::json_lines::scan::{Fault, Scan};

/// Fields of a series.
const COLUMNS_MAX: usize = 1024;
/// Tags of a series.
const TAGS_MAX: usize = 4096;
/// Series of a line: a chunked answer has one.
const SERIES_MAX: usize = 64 << 10;

/// What a line says of one statement.
pub type ColumnsPart = Part<ColumnsSeries>;

/// A part of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnsSeries {
    /// Its tags; those that it has not are empty.
    pub tags: Vec<(String, String)>,
    /// Its fields, in the order of the question, as far as there is anything of them.
    pub columns: Vec<Column>,
    /// Whether more of it follows.
    pub is_cut: bool,
}

/// What there is of one field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Numbers; a boolean is 1 or 0.
    pub numbers: Points,
    /// Numbers that stand for texts.
    pub texts: Points,
}

/// Samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// Times in nanoseconds, where the question said so.
    pub times: Vec<i64>,
    /// As many values.
    pub values: Vec<f64>,
}

impl Points {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    fn push(&mut self, time: i64, value: f64) {
        self.times.push(time);
        self.values.push(value);
    }
}

/// Gives the number of a text; none leaves it out.
pub type NumberOf<'a> = dyn FnMut(&str) -> Option<f64> + 'a;

/// Reads a line.
///
/// # Errors
/// When it is none, or says that something went wrong: then in the server's words.
pub fn read_columns(line: &[u8], number_of: &mut NumberOf<'_>) -> Result<Vec<ColumnsPart>, Error> {
    let mut count = 0;
    envelope::read(line, |scan| {
        count += 1;
        if SERIES_MAX < count {
            return scan.fault("fewer series");
        }
        series(scan, number_of)
    })
}

fn series(scan: &mut Scan<'_>, number_of: &mut NumberOf<'_>) -> Result<ColumnsSeries, Fault> {
    let mut series = ColumnsSeries::default();
    scan.members(|scan, name| {
        match name {
            "tags" => scan.members(|scan, name| {
                if TAGS_MAX <= series.tags.len() {
                    return scan.fault("fewer tags");
                }
                series.tags.push((name.to_string(), scan.string()?.into_owned()));
                Ok(())
            })?,
            "values" => scan.elements(|scan| row(scan, &mut series.columns, number_of))?,
            "partial" => series.is_cut = envelope::yes_or_no(scan)?,
            _ => scan.skip(0)?,
        }
        Ok(())
    })?;
    Ok(series)
}

fn row(
    scan: &mut Scan<'_>,
    columns: &mut Vec<Column>,
    number_of: &mut NumberOf<'_>,
) -> Result<(), Fault> {
    let mut at = 0;
    envelope::row(scan, |scan, time| {
        cell(scan, time, (columns, at), number_of)?;
        at += 1;
        Ok(())
    })?;
    Ok(())
}

/// Puts what stands at a place of a row into its column.
fn cell(
    scan: &mut Scan<'_>,
    time: i64,
    (columns, at): (&mut Vec<Column>, usize),
    number_of: &mut NumberOf<'_>,
) -> Result<(), Fault> {
    let is_text = scan.peek() == Some(b'"');
    let value = match is_text {
        true => number_of(&scan.string()?),
        false => envelope::number_or_none(scan)?,
    };
    let Some(value) = value else { return Ok(()) };
    if COLUMNS_MAX <= at {
        return scan.fault("fewer columns");
    }
    if columns.len() <= at {
        columns.resize_with(at + 1, Column::default);
    }
    if let Some(column) = columns.get_mut(at) {
        let points = if is_text { &mut column.texts } else { &mut column.numbers };
        points.push(time, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Vec<ColumnsPart>, Error> {
        let mut seen = Vec::new();
        read_columns(line.as_bytes(), &mut |text| {
            if text.len() > 9 {
                return None;
            }
            seen.push(text.to_string());
            Some(seen.len() as f64)
        })
    }

    #[test]
    fn columns_have_what_is_there() {
        let line = r#"{"results":[{"statement_id":3,"series":[{"name":"a b","tags":{"host":"x\u003c","zone":""},
            "columns":["time","v","n","s"],"values":[[-1451606400000000001,0.1,null,"t\"1"], [1, null, true,7],
            [2,null,null,"more than nine"]],"partial":true}],"partial":true},{"statement_id":4}]}"#;
        let parts = read(line).unwrap();
        assert_eq!((parts.len(), parts[0].statement, parts[0].is_cut), (2, 3, true));
        assert_eq!((parts[1].statement, parts[1].is_cut, parts[1].series.len()), (4, false, 0));
        let series = &parts[0].series[0];
        assert!(series.is_cut);
        assert_eq!(series.tags[0], ("host".to_string(), "x<".to_string()));
        assert_eq!(series.tags[1], ("zone".to_string(), String::new()));
        let points = |times: &[i64], values: &[f64]| Points {
            times: times.to_vec(),
            values: values.to_vec(),
        };
        let first = -1_451_606_400_000_000_001;
        let expected = [
            Column { numbers: points(&[first], &[0.1]), texts: points(&[], &[]) },
            Column { numbers: points(&[1], &[1.0]), texts: points(&[], &[]) },
            Column { numbers: points(&[1], &[7.0]), texts: points(&[first], &[1.0]) },
        ];
        assert_eq!(series.columns, expected);
    }

    #[test]
    fn what_went_wrong_is_said() {
        let words = |line: &str| read(line).unwrap_err().to_string();
        assert_eq!(words(r#"{"error":"no database"}"#), "no database");
        assert_eq!(words(r#"{"results":[{"statement_id":0,"error":"timeout"}]}"#), "timeout");
        assert!(words("{}").contains("results"));
        assert!(words(r#"{"results":[{"series":[{"values":[[]]}]}]}"#).contains("a time"));
        assert!(words(r#"{"results":[{"series":[{"values":[[1.5]]}]}]}"#).contains("whole"));
        let wide =
            format!(r#"{{"results":[{{"series":[{{"values":[[1{}]]}}]}}]}}"#, ",1".repeat(2000));
        assert!(words(&wide).contains("fewer columns"));
        let many = format!(r#"{{"results":[{{"series":[{}{{}}]}}]}}"#, "{},".repeat(70_000));
        assert!(words(&many).contains("fewer series"));
        let whole = r#"{"results":[{"series":[{"name":"a","values":[[1,2]],"partial":true}]}]}"#;
        assert!((0..whole.len()).all(|size| read(&whole[..size]).is_err()));
    }
}
