//! Regular expressions: in Go's dialect, with how much memory each takes and what a match may cost.

use re2::{ErrorCode, Expression, Limits, Regexp};
use regex::{Captures, Regex};

/// Regular expressions of one text.
pub const REGEXES_MAX: usize = 1_000;
/// Bytes of memory of all regular expressions of one text.
pub const REGEXES_SIZE_MAX: usize = 16 << 20;
/// Sizes that are tried one after the other: a compilation ends where it goes over its limit, so that
/// the first that is enough says how large an expression is, about, and costs little.
const SIZES: [usize; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Bytes of a pattern's automaton times bytes of a text that one match may take: the slowest way to
/// match does some 2^31 of them a second.
const MATCH_COST_MAX: u64 = 1 << 32;

/// A regular expression and its text.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// As it was written.
    pub text: String,
    /// Compiled.
    regexp: Regexp,
    /// Bytes of memory that it takes, at most, without what matches remember.
    pub size: usize,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

/// What the regular expressions of one text may still be.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    count: usize,
    size: usize,
    memory: usize,
    size_max: usize,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance::of(REGEXES_SIZE_MAX)
    }
}

impl Allowance {
    /// For expressions of so many bytes of memory together.
    pub fn of(size_max: usize) -> Allowance {
        Allowance { count: 0, size: 0, memory: 0, size_max }
    }

    /// Bytes of memory of those so far, with what matches remember.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// One more regular expression.
    ///
    /// # Errors
    /// Why it is none, or that there are too many.
    pub fn pattern(&mut self, text: &str) -> Result<Pattern, String> {
        self.count += 1;
        if REGEXES_MAX < self.count {
            return Err(format!("more than {REGEXES_MAX} regular expressions"));
        }
        let left = self.size_max - self.size;
        let pattern = compiled(text, left)?.ok_or_else(|| {
            let max = self.size_max;
            format!("the regular expressions of this query take more than {max} bytes of memory")
        })?;
        self.size += pattern.size;
        self.memory += pattern.memory();
        Ok(pattern)
    }
}

/// A compiled regular expression.
///
/// # Errors
/// Why it is none.
pub fn pattern(text: &str) -> Result<Pattern, String> {
    Allowance::default().pattern(text)
}

/// The regular expression, unless it takes more than that.
fn compiled(text: &str, size_max: usize) -> Result<Option<Pattern>, String> {
    let expression = Expression::parse(text, false).map_err(|error| error.to_string())?;
    let largest = SIZES[SIZES.len() - 1];
    for size in SIZES.into_iter().filter(|size| *size <= size_max) {
        let limits = Limits { size_max: size, cache_size_max: remembered(size) };
        match expression.compile(limits) {
            Ok(regexp) => {
                return Ok(Some(Pattern { text: text.to_string(), regexp, size }));
            }
            Err(error) if error.code == ErrorCode::Large && size < largest => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(None)
}

/// Bytes of memory that matches may remember of an expression of that size.
fn remembered(size: usize) -> usize {
    (size * 8).min(2 << 20)
}

impl Pattern {
    /// Bytes of memory that it takes, at most, with what matches remember.
    pub fn memory(&self) -> usize {
        self.size + remembered(self.size)
    }

    /// The compiled expression of the `regex` crate. Its groups have no names.
    pub fn regex(&self) -> &Regex {
        self.regexp.regex()
    }

    /// Appends a replacement template with the text of the groups, as Go's `Regexp.Expand` does.
    pub fn expand(&self, template: &str, captures: &Captures<'_>, out: &mut String) {
        self.regexp.expand(template, captures, out);
    }

    /// Bytes that a template may become for a match of a text.
    pub fn expanded_size_max(template: &str, text: &str) -> usize {
        re2::expanded_size_max(template, text)
    }

    /// What a match with a text of so many bytes may cost.
    pub fn cost(&self, bytes: usize) -> u64 {
        (self.size as u64).saturating_mul(bytes as u64)
    }

    /// Whether a text matches.
    ///
    /// # Errors
    /// When that would take longer than anybody waits.
    pub fn is_match(&self, text: &str) -> Result<bool, String> {
        self.check(text.len())?;
        Ok(self.regex().is_match(text))
    }

    /// Fails where a match with a text of so many bytes would take too long.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self, bytes: usize) -> Result<(), String> {
        if self.cost(bytes) <= MATCH_COST_MAX {
            return Ok(());
        }
        Err(format!(
            "a regular expression of {} bytes of memory and a string of {bytes} bytes: their product \
             may be {MATCH_COST_MAX} at most",
            self.size
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_what_go_means() {
        let is_match = |text: &str, subject: &str| pattern(text).unwrap().regex().is_match(subject);
        assert!(is_match(r"^m\w$", "me"));
        assert!(!is_match(r"^m\w$", "mé"));
        assert!(is_match(r"\Qm{x\E", "m{x"));
        assert!(is_match("a{,2}", "a{,2}"));
        assert!(!is_match("[a-z&&[e]]", "e"));
        assert_eq!(pattern(r"\w").unwrap().text, r"\w");
        let letter = pattern("n").unwrap();
        let mut out = String::new();
        letter.expand("${}$é.$$", &letter.regex().captures("null").unwrap(), &mut out);
        assert_eq!(out, "${}.$");
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(pattern("^host-[0-9]+$").unwrap().size, SIZES[0]);
        assert!(SIZES[1] <= pattern(r"\pL{24}").unwrap().size);
        let error = pattern(r"\pL{1000}").unwrap_err();
        assert!(error.contains("expression too large"), "{error}");
        let mut few = Allowance::of(64 << 10);
        let error = few.pattern(r"\pL{1000}").unwrap_err();
        assert!(error.contains("take more than 65536 bytes of memory"), "{error}");
        for _ in 0..4 {
            few.pattern("a").unwrap();
        }
        assert!(few.pattern("a").is_err());
        let mut all = Allowance::default();
        let count = (0..REGEXES_MAX * 2).take_while(|_| all.pattern("a").is_ok()).count();
        assert_eq!(count, REGEXES_MAX);
    }

    #[test]
    fn a_match_is_bounded() {
        let heavy = pattern("([ab]?){1000}([ab]?){1000}([ab]?){1000}[^a]").unwrap();
        assert_eq!(heavy.is_match("ab"), Ok(true));
        assert!(heavy.is_match(&"a".repeat(512 << 10)).is_err());
        let light = pattern("^a.*b$").unwrap();
        assert_eq!(light.is_match(&"a".repeat(256 << 10)), Ok(false));
    }
}
