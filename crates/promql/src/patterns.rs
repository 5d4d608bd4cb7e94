//! Regular expressions of matchers: each is compiled once, to check it, and all of a text together
//! have a size.

use crate::options::REGEX_SIZE_MAX;
use re2::{ErrorCode, Expression, Limits, Regexp};
use std::collections::HashMap;

/// Bytes of all compiled regular expressions of the matchers that are checked together.
const PATTERNS_SIZE_MAX: usize = 64 << 20;
/// Bytes of one, tried one after the other: a compilation ends where it goes over its limit, so the
/// first that is enough tells the size and costs little.
const SIZES: [usize; 4] = [16 << 10, 256 << 10, 2 << 20, REGEX_SIZE_MAX];

/// Patterns with more bytes are never taken for plain ones.
const PLAIN_SIZE_MAX: usize = 64 << 10;

/// Checks the regular expressions of matchers, for one text or several of one request.
pub struct PatternChecker {
    /// Bytes that further ones may take.
    left: usize,
    /// Whether those that were compiled match the empty string.
    known: HashMap<String, bool>,
}

impl Default for PatternChecker {
    fn default() -> PatternChecker {
        PatternChecker { left: PATTERNS_SIZE_MAX, known: HashMap::new() }
    }
}

impl PatternChecker {
    /// Refuses a pattern that is no regular expression, and one for which no memory is left.
    pub(crate) fn check(&mut self, pattern: &str) -> Result<(), String> {
        // Lists of plain words, which people and dashboards write most, are recognised without the
        // compiler: it takes longer than the query that they stand in.
        if is_word_list(pattern) || self.known.contains_key(pattern) {
            return Ok(());
        }
        let (regex, size) = compile(pattern, self.left)?;
        self.left -= size;
        self.known.insert(pattern.to_string(), regex.is_match(""));
        Ok(())
    }

    /// Whether a pattern that was checked matches the empty string.
    pub(crate) fn matches_empty(&self, pattern: &str) -> bool {
        !is_word_list(pattern) && self.known.get(pattern).copied().unwrap_or(false)
    }
}

/// The anchored regular expression of a matcher, and the bytes that it takes, at most `size_max`.
fn compile(pattern: &str, size_max: usize) -> Result<(Regexp, usize), String> {
    let expression = Expression::parse(pattern, true).map_err(|error| error.to_string())?;
    for size in SIZES.into_iter().filter(|size| *size <= size_max) {
        match expression.compile_anchored(Limits::new(size)) {
            Ok(regexp) => return Ok((regexp, size)),
            Err(error) if error.code == ErrorCode::Large && size < REGEX_SIZE_MAX => {}
            Err(error) if error.code == ErrorCode::Large => {
                return Err(format!("error parsing regexp: it needs more than {size} bytes"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!(
        "error parsing regexp: the regular expressions need more than {PATTERNS_SIZE_MAX} bytes together"
    ))
}

/// Whether a pattern is a list of plain words, none of them empty.
fn is_word_list(pattern: &str) -> bool {
    is_plain(pattern) && !has_gap(pattern)
}

/// Whether a pattern is made of plain characters, dots, `|` and balanced parentheses that do not nest too deep:
/// then it is a regular expression.
fn is_plain(pattern: &str) -> bool {
    let mut depth = 0usize;
    for byte in pattern.bytes() {
        match byte {
            b'(' if depth < re2::NESTING_MAX => depth += 1,
            b')' if 0 < depth => depth -= 1,
            b'|' | b'.' | b'_' | b':' | b'-' | b'/' | b' ' | b',' => {}
            _ if byte.is_ascii_alphanumeric() => {}
            _ => return false,
        }
    }
    depth == 0 && pattern.len() <= PLAIN_SIZE_MAX
}

/// Whether a plain pattern has an alternative or a group with nothing in it.
fn has_gap(pattern: &str) -> bool {
    let is_at_edge = pattern.is_empty() || pattern.starts_with('|') || pattern.ends_with('|');
    let is_gap = |pair: &[u8]| matches!(pair, b"||" | b"(|" | b"|)" | b"()");
    is_at_edge || pattern.as_bytes().windows(2).any(is_gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_patterns_are_told_as_the_compiler_would() {
        for pattern in [
            "",
            "a",
            "a|b",
            "a||b",
            "|a",
            "a|",
            "cpu_(a|b)",
            "(a|)",
            "()",
            "(a)(b|c)",
            "a)",
            "(a",
            ")(",
            "a.b|c",
            ".",
            "((a|b)|c)d",
            "a-b:9/c d,e",
            "(|a)b",
            "a()",
            "(())",
            "a*",
            "a{2}",
            "é",
        ] {
            let alone = regex::Regex::new(pattern);
            let compiled = alone.and_then(|_| regex::Regex::new(&format!("^(?s:{pattern})$")));
            let mut checker = PatternChecker::default();
            assert_eq!(checker.check(pattern).is_ok(), compiled.is_ok(), "{pattern}");
            let matches_empty = compiled.is_ok_and(|regex| regex.is_match(""));
            assert_eq!(checker.matches_empty(pattern), matches_empty, "{pattern}");
        }
    }

    #[test]
    fn deep_parentheses_are_refused() {
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        let check = |depth| PatternChecker::default().check(&nested(depth));
        assert_eq!(check(re2::NESTING_MAX), Ok(()));
        assert!(check(re2::NESTING_MAX + 1).is_err());
    }

    #[test]
    fn patterns_of_one_text_have_a_size_together() {
        let mut checker = PatternChecker::default();
        let large = |number: usize| format!(r"\pL{{200}}x?{number}");
        let first = (0..).find_map(|number| Some((number, checker.check(&large(number)).err()?)));
        let (count, why) = first.expect("an end");
        assert!((4..300).contains(&count), "{count}");
        assert!(why.contains("67108864 bytes together"), "{why}");
        assert!(checker.check(&large(0)).is_ok(), "equal ones count once");
        assert!(checker.check("a|b").is_ok(), "lists of words take no memory");
        let alone = PatternChecker::default().check(r"\pL{999}\pL{999}").expect_err("too large");
        assert!(alone.contains("more than 16777216 bytes"), "{alone}");
    }
}
