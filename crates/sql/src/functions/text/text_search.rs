//! `strpos`, `btrim`, `ltrim` and `rtrim` in linear time: those of DataFusion take the product of the sizes of
//! both arguments. `upper` and `lower` of single characters.

use crate::types::function::function;
use crate::types::runtime::cancellation;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int32Builder, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use std::collections::HashSet;

/// The functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let two = Signature::any(2, Volatility::Immutable);
    let trimming = |name: &'static str, at_start: bool, at_end: bool| {
        let counts = vec![TypeSignature::Any(1), TypeSignature::Any(2)];
        let signature = Signature::one_of(counts, Volatility::Immutable);
        let work = move |args: &[ArrayRef], rows: usize| trim(args, rows, at_start, at_end);
        function(name, signature, |_| DataType::Utf8View, work)
    };
    [
        function("strpos", two, |_| DataType::Int32, positions),
        trimming("btrim", true, true),
        trimming("ltrim", true, false),
        trimming("rtrim", false, true),
        in_case("upper", |one| only(one.to_uppercase())),
        in_case("lower", |one| only(one.to_lowercase())),
    ]
    .into_iter()
}

/// The one character of several; none of more.
fn only(mut all: impl Iterator<Item = char>) -> Option<char> {
    all.next().filter(|_| all.next().is_none())
}

/// A function of characters: those that would become several stay what they are, as in PostgreSQL.
fn in_case(name: &'static str, of: fn(char) -> Option<char>) -> ScalarUDF {
    let work = move |args: &[ArrayRef], _: usize| {
        let texts = cast(&args[0], &DataType::Utf8View)?;
        let changed =
            |text: &str| -> String { text.chars().map(|one| of(one).unwrap_or(one)).collect() };
        let made: StringViewArray =
            texts.as_string_view().iter().map(|one| one.map(changed)).collect();
        Ok(std::sync::Arc::new(made) as ArrayRef)
    };
    function(name, Signature::string(1, Volatility::Immutable), |_| DataType::Utf8View, work)
}

/// `strpos(text, part)`: the character at which the part begins, counted from 1; 0 if it is not there.
fn positions(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (texts, parts) =
        (cast(&args[0], &DataType::Utf8View)?, cast(&args[1], &DataType::Utf8View)?);
    let mut out = Int32Builder::with_capacity(rows);
    for pair in texts.as_string_view().iter().zip(parts.as_string_view()) {
        cancellation::check()?;
        let (Some(text), Some(part)) = pair else {
            out.append_null();
            continue;
        };
        let place = text.find(part).map_or(0, |at| text[..at].chars().count() + 1);
        out.append_value(i32::try_from(place).unwrap_or(i32::MAX));
    }
    Ok(std::sync::Arc::new(out.finish()))
}

/// Characters that are trimmed, of the last row that had others.
#[derive(Default)]
struct CharacterSet {
    text: String,
    set: HashSet<char>,
}

impl CharacterSet {
    fn set_to(&mut self, text: &str) {
        if self.text != text {
            self.text = text.to_string();
            self.set = text.chars().collect();
        }
    }
}

fn trim(args: &[ArrayRef], rows: usize, at_start: bool, at_end: bool) -> Result<ArrayRef> {
    let texts = cast(&args[0], &DataType::Utf8View)?;
    let sets = args.get(1).map(|array| cast(array, &DataType::Utf8View)).transpose()?;
    let sets = sets.as_ref().map(|sets| sets.as_string_view());
    let mut characters = CharacterSet::default();
    characters.set_to(" ");
    let mut out = StringViewBuilder::with_capacity(rows);
    for (row, text) in texts.as_string_view().iter().enumerate() {
        cancellation::check()?;
        let is_null = sets.is_some_and(|sets| sets.is_null(row));
        let Some(mut text) = text.filter(|_| !is_null) else {
            out.append_null();
            continue;
        };
        if let Some(sets) = sets {
            characters.set_to(sets.value(row));
        }
        let is_trimmed = |character: char| characters.set.contains(&character);
        if at_start {
            text = text.trim_start_matches(is_trimmed);
        }
        if at_end {
            text = text.trim_end_matches(is_trimmed);
        }
        out.append_value(text);
    }
    Ok(std::sync::Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringArray;
    use std::sync::Arc;

    fn column(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn values_are_those_of_postgresql() {
        let texts = column(&[Some("äbc"), Some("abc"), Some(""), None, Some("aaab")]);
        let parts = column(&[Some("c"), Some("x"), Some(""), Some("a"), Some("ab")]);
        let found = positions(&[texts, parts], 5).unwrap();
        let found = found.as_primitive::<datafusion::arrow::datatypes::Int32Type>();
        assert_eq!(found.iter().collect::<Vec<_>>(), [Some(3), Some(0), Some(1), None, Some(3)]);
        let texts = column(&[Some("xxaxx"), Some("  a "), Some("xyaéy"), Some("a")]);
        let sets = column(&[Some("x"), Some(" "), Some("éyx"), None]);
        for (at_start, at_end, right) in [
            (true, true, [Some("a"), Some("a"), Some("a"), None]),
            (true, false, [Some("axx"), Some("a "), Some("aéy"), None]),
            (false, true, [Some("xxa"), Some("  a"), Some("xya"), None]),
        ] {
            let trimmed = trim(&[texts.clone(), sets.clone()], 4, at_start, at_end).unwrap();
            assert_eq!(trimmed.as_string_view().iter().collect::<Vec<_>>(), right);
        }
    }
}
