//! `regexp_replace(text, pattern, replacement [, start [, n]] [, flags])`, with `\1` and `\&` in the replacement
//! (<https://www.postgresql.org/docs/15/functions-matching.html#FUNCTIONS-POSIX-REGEXP>).

use crate::functions::bounded::{Growth, bounded};
use crate::functions::text::regexps::each;
use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::runtime::cancellation;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use regex::{Captures, Regex};
use std::sync::Arc;

/// The function.
pub fn regexp_replace() -> ScalarUDF {
    let signatures = (3..=6).map(TypeSignature::Any).collect();
    let signature = Signature::one_of(signatures, Volatility::Immutable);
    let inner = function("regexp_replace", signature, |_| DataType::Utf8View, replace);
    bounded(Arc::new(inner), Growth::Matched)
}

fn replace(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let replacements = cast(&args[2], &DataType::Utf8View)?;
    let replacements = replacements.as_string_view();
    // The fourth of four is flags, unless it is a number.
    let has_short_flags = args.len() == 4 && !args[3].data_type().is_integer();
    let (flags_at, start_at) = if has_short_flags { (3, usize::MAX) } else { (5, 3) };
    let starts = Numbers::new(args.get(start_at), "start", 1)?;
    let counts = Numbers::new(args.get(4), "n", 0)?;
    let mut out = StringViewBuilder::with_capacity(rows);
    let mut row = 0;
    each(args, rows, flags_at, |given| {
        let at = row;
        row += 1;
        let (start, nth) = (starts.value(at)?, counts.value(at)?);
        let is_null = replacements.is_null(at) || start == Some(None) || nth == Some(None);
        let Some((text, regex, is_global)) = given.filter(|_| !is_null) else {
            out.append_null();
            return Ok(());
        };
        let start = start.flatten().unwrap_or(1);
        let nth = nth.flatten().unwrap_or(usize::from(!is_global));
        out.append_value(replaced(text, regex, replacements.value(at), start, nth)?);
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

/// Numbers of an argument that may be missing.
struct Numbers {
    values: Option<ArrayRef>,
    name: &'static str,
    least: i64,
}

impl Numbers {
    fn new(array: Option<&ArrayRef>, name: &'static str, least: i64) -> Result<Numbers> {
        let values = array.map(|array| cast(array, &DataType::Int64)).transpose()?;
        Ok(Numbers { values, name, least })
    }

    /// The number of a row, which may be NULL; none without the argument.
    fn value(&self, row: usize) -> Result<Option<Option<usize>>> {
        let Some(values) = &self.values else { return Ok(None) };
        let values = values.as_primitive::<Int64Type>();
        if values.is_null(row) {
            return Ok(Some(None));
        }
        let value = values.value(row);
        if value < self.least {
            let words = format!("invalid value for parameter \"{}\": {value}", self.name);
            return Err(DataFusionError::External(Box::new(SqlError::wrong_value(words))));
        }
        Ok(Some(usize::try_from(value).ok()))
    }
}

/// The text with a replacement for the nth match from a character on, or for all matches if n is 0.
fn replaced(text: &str, regex: &Regex, with: &str, start: usize, nth: usize) -> Result<String> {
    let Some((mut at, _)) =
        text.char_indices().map(|(at, _)| (at, ())).chain([(text.len(), ())]).nth(start - 1)
    else {
        return Ok(text.to_string());
    };
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut count) = (0, 0);
    while at <= text.len() {
        cancellation::check()?;
        let Some(found) = regex.captures_at(text, at) else { break };
        let (from, to) = found.get(0).map_or((at, at), |whole| (whole.start(), whole.end()));
        count += 1;
        if nth == 0 || count == nth {
            out.push_str(&text[copied..from]);
            push_replacement(&mut out, with, &found);
            copied = to;
        }
        if count == nth {
            break;
        }
        // Behind a match of nothing the next character begins.
        let step = text[to..].chars().next().map_or(1, char::len_utf8);
        at = if from == to { to + step } else { to };
    }
    out.push_str(&text[copied..]);
    Ok(out)
}

/// Appends a replacement with the parts of a match that it names.
fn push_replacement(out: &mut String, with: &str, found: &Captures<'_>) {
    let mut characters = with.chars();
    while let Some(one) = characters.next() {
        if one != '\\' {
            out.push(one);
            continue;
        }
        match characters.next() {
            Some('&') => out.push_str(&found[0]),
            Some('\\') => out.push('\\'),
            Some(digit @ '1'..='9') => {
                let part = digit.to_digit(10).and_then(|part| found.get(part as usize));
                out.push_str(part.map_or("", |part| part.as_str()));
            }
            other => {
                out.push('\\');
                out.extend(other);
            }
        }
    }
}
