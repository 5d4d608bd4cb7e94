//! What the exemplars of all protocols have in common: the bound on their labels, and where a batch
//! collects them.

use crate::decoded::Growing;
use crate::{Error, Limit};
use model::limits::{BATCH_EXEMPLARS_MAX, EXEMPLAR_CHARS_MAX};
use model::{ExemplarRow, LabelError, Labels, LabelsBuilder};

/// Bytes of a text that cannot have too many characters.
const CHARACTER_SIZE_MAX: usize = 4;

/// The labels of one exemplar as they come in.
#[derive(Default)]
pub(crate) struct ExemplarLabels {
    labels: LabelsBuilder,
    chars: usize,
}

impl ExemplarLabels {
    /// Adds a label.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), LabelError> {
        // Before anything is copied: a symbol may be large and be referred to often.
        if EXEMPLAR_CHARS_MAX * CHARACTER_SIZE_MAX < name.len() + value.len() {
            return Err(too_long());
        }
        let text =
            |bytes, what| std::str::from_utf8(bytes).map_err(|_| LabelError::InvalidUtf8(what));
        let (name, value) = (text(name, "label name")?, text(value, "label value")?);
        if name.is_empty() {
            return Err(LabelError::EmptyName);
        }
        self.chars += name.chars().count() + value.chars().count();
        if EXEMPLAR_CHARS_MAX < self.chars {
            return Err(too_long());
        }
        self.labels.push(name, value);
        Ok(())
    }

    /// The label set; an exemplar may have no label.
    pub fn finish(self) -> Result<Labels, LabelError> {
        Ok(self.labels.sorted()?.into_labels())
    }
}

#[cold]
fn too_long() -> LabelError {
    LabelError::Refused(format!(
        "more than {EXEMPLAR_CHARS_MAX} characters in an exemplar's labels"
    ))
}

/// Adds an exemplar to a batch that is one request.
pub(crate) fn push(grown: &mut Growing, exemplar: ExemplarRow) -> Result<(), Error> {
    if BATCH_EXEMPLARS_MAX <= grown.exemplars.len() {
        return Err(Error::LimitExceeded {
            limit: Limit::Exemplars,
            value: grown.exemplars.len() as u64 + 1,
            max: BATCH_EXEMPLARS_MAX as u64,
        });
    }
    grown.exemplars.push(exemplar);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pairs: &[(&[u8], &[u8])], expected: Result<&[(&str, &str)], &str>) {
        let mut labels = ExemplarLabels::default();
        let pushed = pairs.iter().try_for_each(|(name, value)| labels.push(name, value));
        let found = pushed.and_then(|()| labels.finish()).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(Labels::from_pairs).map_err(str::to_string));
    }

    #[test]
    fn labels_are_bounded_in_characters() {
        let long = "é".repeat(EXEMPLAR_CHARS_MAX - 1);
        check(&[], Ok(&[]));
        check(&[(b"b", b"2"), (b"a", b"1")], Ok(&[("a", "1"), ("b", "2")]));
        check(&[(b"a", long.as_bytes())], Ok(&[("a", &long)]));
        let refusal = Err("more than 128 characters in an exemplar's labels");
        check(&[(b"ab", long.as_bytes())], refusal);
        check(&[(b"a", long.as_bytes()), (b"b", b"c")], refusal);
        check(&[(b"a", &[b'x'; 513])], refusal);
        check(&[(b"a", b"1"), (b"a", b"2")], Err("duplicate label name \"a\""));
        check(&[(b"", b"1")], Err("empty label name"));
        check(&[(b"\xff", b"1")], Err("invalid UTF-8 in label name"));
        check(&[(b"a", b"\xff")], Err("invalid UTF-8 in label value"));
    }
}
