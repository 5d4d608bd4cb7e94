//! Strings of fields as numbers of a dictionary that somebody else keeps.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// What the names of fields of strings end with as metrics: their samples are numbers of texts.
pub const TEXT_SUFFIX: &str = ":text";

/// A dictionary of texts.
pub trait Texts: Debug + Send + Sync {
    /// The number of a text, the same for ever.
    ///
    /// # Errors
    /// Why it gets none, in words that name the limit.
    fn number(&self, text: &str) -> Result<u32, String>;
}

/// A dictionary for a while: of what somebody reads who keeps texts as texts.
#[derive(Debug, Default)]
pub struct TextsRead(Mutex<Read>);

#[derive(Debug, Default)]
struct Read {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl TextsRead {
    /// All texts, that of number 1 first; none is left.
    pub fn take(&self) -> Vec<Arc<str>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all).texts
    }
}

impl Texts for TextsRead {
    fn number(&self, text: &str) -> Result<u32, String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Read { numbers, texts } = &mut *all;
        if let Some(number) = numbers.get(text) {
            return Ok(*number);
        }
        let number = u32::try_from(texts.len() + 1).map_err(|_| "too many texts".to_string())?;
        let text: Arc<str> = text.into();
        texts.push(text.clone());
        numbers.insert(text, number);
        Ok(number)
    }
}

/// What stands between the quotes, its escapes undone; `None` for what is not UTF-8.
pub(super) fn unquoted(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let text = std::str::from_utf8(inner).ok()?;
    if !text.contains('\\') {
        return Some(Cow::Borrowed(text));
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // Any other backslash stands for itself.
        match chars.peek() {
            Some(next @ ('"' | '\\')) if c == '\\' => {
                plain.push(*next);
                chars.next();
            }
            _ => plain.push(c),
        }
    }
    Some(Cow::Owned(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extra_labels::ExtraLabels;
    use crate::influx::{InfluxKeys, Options, Precision, bad_lines, decode};
    use crate::{Decoded, Start};
    use model::KeyHasher;

    /// As many texts as there is room for.
    #[derive(Debug, Default)]
    struct Few(Mutex<Vec<String>>);

    impl Texts for Few {
        fn number(&self, text: &str) -> Result<u32, String> {
            let mut all = self.0.lock().expect("nobody panics");
            if let Some(at) = all.iter().position(|known| known == text) {
                return Ok(at as u32 + 1);
            }
            if all.len() == 4 {
                return Err("more than 4 texts (influx.max-strings)".to_string());
            }
            all.push(text.to_string());
            Ok(all.len() as u32)
        }
    }

    /// Metrics without tags, and their values, of each row.
    fn rows(decoded: &Decoded<'_>) -> Vec<Vec<(String, f64)>> {
        let batch = &decoded.batch;
        let row = |row: &model::Row| {
            let fields = &batch.shapes[row.shape as usize].fields;
            let values = &batch.values[row.values_start as usize..];
            fields.iter().map(|field| field.to_string()).zip(values.iter().copied()).collect()
        };
        batch.rows.iter().map(row).collect()
    }

    #[test]
    fn strings_are_numbers_of_their_texts() {
        let few = Arc::new(Few::default());
        let keys = InfluxKeys::new(ExtraLabels::none()).with_texts(Some(few.clone()));
        let options = Options { precision: Precision::Nanosecond, now: 0 };
        let body = b"m a=1,s=\"on\",b=2 1\nm a=2,s=\"off\",b=3 2\nm a=3,s=\"5,b=\",b=4 3\n\
                     m s=7,a=1 4\nm s=\"on\" 5\nm s=\"a \\\"b\\\\ \n c\\d\",time=\"x\" 6\nm s=\"more\",a=1 7\n\
                     m s:text=1 8\n";
        let decoded =
            decode(body, Start::default(), &options, &KeyHasher::new(1), &keys).expect("lines");
        let expected: &[&[(&str, f64)]] = &[
            &[("a", 1.0), ("s:text", 1.0), ("b", 2.0)],
            &[("a", 2.0), ("s:text", 2.0), ("b", 3.0)],
            &[("a", 3.0), ("s:text", 3.0), ("b", 4.0)],
            &[("s", 7.0), ("a", 1.0)],
            &[("s:text", 1.0)],
            &[("s:text", 4.0)],
            &[("a", 1.0)],
        ];
        let expected: Vec<Vec<(String, f64)>> = expected
            .iter()
            .map(|row| row.iter().map(|(name, value)| ((*name).to_string(), *value)).collect())
            .collect();
        assert_eq!(rows(&decoded), expected);
        assert_eq!(*few.0.lock().expect("texts"), ["on", "off", "5,b=", "a \"b\\ \n c\\d"]);
        let told: Vec<(u32, String)> = bad_lines(body, &decoded.errors, &[])
            .into_iter()
            .map(|line| (line.number, line.reason))
            .collect();
        let over = "field \"s\" is left out: more than 4 texts (influx.max-strings)";
        let reserved = "field names that end in :text are those of strings";
        assert_eq!(told, [(8, over.to_string()), (9, reserved.to_string())]);
    }

    /// A string and a number of one name are one field in a line: the last counts.
    #[test]
    fn the_last_of_string_and_number_counts() {
        let keys = InfluxKeys::new(ExtraLabels::none()).with_long_integers();
        let options = Options { precision: Precision::Nanosecond, now: 0 };
        for (line, expected) in [
            ("m x=9i,x=\"s\" 1", &[("x:text", 1.0)][..]),
            ("m x=\"s\",x=9i 1", &[("x", 9.0)]),
            ("m x=1,x=\"s\",x=2 1", &[("x", 2.0)]),
            ("m x=\"s\",x=1,x=\"t\",y=3 1", &[("x:text", 2.0), ("y", 3.0)]),
            ("m x=t,x=\"s\" 1", &[("x:text", 1.0)]),
            ("m x=9007199254740993i,x=\"s\" 1", &[("x:text", 1.0)]),
            ("m x=\"s\",y=\"s\",x=\"t\" 1", &[("y:text", 1.0), ("x:text", 2.0)]),
        ] {
            let texts = Some(Arc::new(Few::default()) as Arc<dyn Texts>);
            let keys = keys.clone().with_texts(texts);
            let hasher = KeyHasher::new(1);
            let decoded = decode(line.as_bytes(), Start::default(), &options, &hasher, &keys);
            let decoded = decoded.expect("a line");
            let expected: Vec<(String, f64)> =
                expected.iter().map(|(name, value)| ((*name).to_string(), *value)).collect();
            assert_eq!(rows(&decoded), [expected], "{line}");
        }
    }
}
