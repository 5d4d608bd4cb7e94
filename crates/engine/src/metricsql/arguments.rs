//! What functions ask of their arguments, beyond what [`CallContext`] itself offers.

use super::{Argument, CallContext, Series};
use crate::error::Result;
use model::{Labels, LabelsBuilder};
use re2::{Expression, Limits, Regexp};

/// Points that one call may make out of fewer: 160 MB of them.
const MADE_POINTS_MAX: usize = 20_000_000;
/// Bytes of the labels of one series, which calls inside calls could double again and again.
const LABELS_SIZE_MAX: usize = 64 << 10;

impl CallContext<'_> {
    /// Fails unless there are `min` arguments or more.
    pub(super) fn expect_at_least(&self, arguments: &[Argument], min: usize) -> Result<()> {
        if arguments.len() < min {
            let count = arguments.len();
            return self.fail(format!("{count} arguments given, at least {min} expected"));
        }
        Ok(())
    }

    /// The argument's series, taken out of it.
    pub(super) fn take(&self, arguments: &mut [Argument], idx: usize) -> Result<Vec<Series>> {
        self.series(arguments, idx)?;
        match std::mem::replace(&mut arguments[idx], Argument::Series(Vec::new())) {
            Argument::Series(series) => Ok(series),
            Argument::Text(text) => Ok(text.series(self.grid.len).to_vec()),
        }
    }

    /// The only argument's series.
    pub(super) fn take_only(&self, arguments: &mut [Argument]) -> Result<Vec<Series>> {
        self.expect_count(arguments, 1, 1)?;
        self.take(arguments, 0)
    }

    /// The series of all arguments, one after the other.
    pub(super) fn take_all(&self, arguments: &mut [Argument]) -> Result<Vec<Series>> {
        self.expect_at_least(arguments, 1)?;
        let mut all = self.take(arguments, 0)?;
        for idx in 1..arguments.len() {
            all.append(&mut self.take(arguments, idx)?);
        }
        Ok(all)
    }

    /// The argument's number at the first step, as parameters that hold for all steps are read.
    pub(super) fn number(&self, arguments: &[Argument], idx: usize) -> Result<f64> {
        Ok(self.numbers(arguments, idx)?.first().copied().unwrap_or(0.0))
    }

    /// The same without its fraction; NaN is the smallest number, as in Go.
    pub(super) fn integer(&self, arguments: &[Argument], idx: usize) -> Result<i64> {
        let number = self.number(arguments, idx)?;
        Ok(if number.is_nan() { i64::MIN } else { number as i64 })
    }

    /// The strings from argument `from` on.
    pub(super) fn texts<'b>(&self, arguments: &'b [Argument], from: usize) -> Result<Vec<&'b str>> {
        (from..arguments.len()).map(|idx| self.text(arguments, idx)).collect()
    }

    /// The strings from argument `from` on, two by two.
    pub(super) fn text_pairs<'b>(
        &self,
        arguments: &'b [Argument],
        from: usize,
    ) -> Result<Vec<(&'b str, &'b str)>> {
        let texts = self.texts(arguments, from)?;
        if !texts.len().is_multiple_of(2) {
            return self.fail(format!("pairs of strings expected, {} strings given", texts.len()));
        }
        Ok(texts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    /// A series without labels.
    pub(super) fn nameless(&self, values: Vec<f64>) -> Series {
        Series { labels: Labels::default(), values }
    }

    /// The answer of functions that give one number.
    pub(super) fn constant(&self, value: f64) -> Vec<Series> {
        vec![self.nameless(vec![value; self.grid.len])]
    }

    /// The regular expression that is written in an argument; it matches anywhere in a text.
    pub(super) fn regexp(&self, pattern: &str) -> Result<Regexp> {
        self.compile(pattern, Expression::compile)
    }

    /// The regular expression that is written in an argument; it matches whole texts.
    pub(super) fn anchored_regexp(&self, pattern: &str) -> Result<Regexp> {
        self.compile(pattern, Expression::compile_anchored)
    }

    fn compile(
        &self,
        pattern: &str,
        compile: fn(&Expression, Limits) -> std::result::Result<Regexp, re2::Error>,
    ) -> Result<Regexp> {
        let limits = Limits::new(promql::REGEX_SIZE_MAX);
        match Expression::parse(pattern, false).and_then(|parsed| compile(&parsed, limits)) {
            Ok(regexp) => Ok(regexp),
            Err(error) => self.fail(format!("invalid regular expression {pattern:?}: {error}")),
        }
    }

    /// Charges a series' new labels to the memory of the query. Fails beyond [`LABELS_SIZE_MAX`].
    pub(super) fn check_labels(&self, labels: &Labels) -> Result<()> {
        let size = labels.as_bytes().len();
        self.check_size(size)?;
        self.label_memory.map_or(Ok(()), |memory| memory.charge(size))
    }

    /// The same for what is to become a label.
    pub(super) fn check_size(&self, size: usize) -> Result<()> {
        if LABELS_SIZE_MAX < size {
            return self.fail(format!("labels of {size} bytes, the limit is {LABELS_SIZE_MAX}"));
        }
        Ok(())
    }

    /// Fails when the call makes more series than a server's memory should hold.
    pub(super) fn check_made(&self, series_count: usize) -> Result<()> {
        let max = MADE_POINTS_MAX / self.grid.len.max(1);
        if max < series_count {
            return self.fail(format!(
                "more than {max} series of {} points each would be made",
                self.grid.len
            ));
        }
        Ok(())
    }
}

/// Whether the argument is a number: one series without any label.
pub(super) fn is_scalar(argument: &Argument) -> bool {
    match argument {
        Argument::Series(series) => matches!(&series[..], [one] if one.labels.is_empty()),
        Argument::Text(text) => text.value.is_empty(),
    }
}

/// The labels with one of them changed; an empty value removes it.
pub(super) fn with_label(labels: &Labels, name: &str, value: &str) -> Labels {
    let mut builder = labels.to_builder();
    builder.set(name, value);
    builder.finish()
}

/// The labels for which `is_kept` holds.
pub(super) fn filter_labels(labels: &Labels, is_kept: impl Fn(&str) -> bool) -> Labels {
    let mut builder = LabelsBuilder::new();
    for (name, value) in labels.iter().filter(|(name, _)| is_kept(name)) {
        builder.push(name, value);
    }
    builder.finish()
}

/// Drops the series that have nothing but gaps.
pub(super) fn drop_empty(series: &mut Vec<Series>) {
    series.retain(|one| one.values.iter().any(|value| !value.is_nan()));
}

/// A number as the language's numbers in labels are read; what is too large is none.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let is_overflow = value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (!is_overflow).then_some(value)
}

/// A number as it is written into labels: in the shortest form, with an exponent from a million
/// up and below a ten-thousandth.
pub(super) fn format_shortest(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || (1e-4..1e6).contains(&value.abs()) {
        return promql::format_number(value);
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_labels() {
        let cases = [
            (0.5, "0.5"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (999_999.5, "999999.5"),
            (1e6, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (-2.5e-7, "-2.5e-07"),
            (f64::INFINITY, "+Inf"),
        ];
        for (value, expected) in cases {
            assert_eq!(format_shortest(value), expected);
        }
        assert_eq!(parse_float("+Inf"), Some(f64::INFINITY));
        assert_eq!(parse_float("1e999"), None);
        assert_eq!(parse_float(""), None);
    }
}
