//! Path patterns: how Graphite names many dotted metrics at once.
//!
//! ```text
//! web.host[12].{cpu,mem}.*     parts between delimiters, each a text with
//! │   │        │         │       *      anything but the delimiter, nothing too
//! │   │        │         │       ?      one character
//! part part    part      part    [12]   one of these; [a-z] a range; [^a], [!a] none of these
//!                                {a,b}  one of these patterns, nested as deep as needed
//! ```
//!
//! A pattern never looks across a delimiter, so each part stands for exactly one part of a name.
//! What opens and never closes is text. A pattern is turned into the regular expression of the
//! names that it means, which the index knows how to cut at a prefix.

/// Bytes of a pattern.
pub const PATTERN_SIZE_MAX: usize = 4096;
/// Alternatives of all braces of a pattern together.
pub const ALTERNATIVES_MAX: usize = 1000;
/// Braces inside braces.
pub const NESTING_MAX: usize = 16;

const _: () = assert!(ALTERNATIVES_MAX < PATTERN_SIZE_MAX);

/// Why a pattern was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathPatternError {
    /// A limit of patterns.
    #[error("a path pattern with {value} {what}, the limit is {max}; ask for fewer paths at once")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        value: usize,
        /// How much there may be.
        max: usize,
    },
    /// A range such as `[z-a]`.
    #[error("the range {start:?}-{end:?} in a path pattern ends before it starts")]
    EmptyRange {
        /// Its first character.
        start: char,
        /// Its last character.
        end: char,
    },
    /// The delimiter is no single ASCII character.
    #[error("delimiter {0:?}, which must be one ASCII character")]
    Delimiter(String),
}

/// A parsed pattern.
#[derive(Clone, Debug)]
pub struct PathPattern {
    text: String,
    delimiter: u8,
    /// The regular expression of each part; at least one.
    parts: Vec<String>,
    /// Whether the pattern ends with a delimiter: it means inner nodes only.
    is_open: bool,
}

/// Where a name's parts that a pattern spoke of end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCut {
    /// Where the last of these parts starts.
    pub last_start: usize,
    /// Where it ends, behind the delimiter if the name goes on.
    pub end: usize,
}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// For a delimiter that is no single character, a limit, or a range that is none.
    pub fn parse(text: &str, delimiter: &str) -> Result<PathPattern, PathPatternError> {
        let &[delimiter] = delimiter.as_bytes() else {
            return Err(PathPatternError::Delimiter(delimiter.chars().take(16).collect()));
        };
        check("bytes", text.len(), PATTERN_SIZE_MAX)?;
        check("alternatives", text.bytes().filter(|byte| *byte == b',').count(), ALTERNATIVES_MAX)?;
        let is_open = text.ends_with(char::from(delimiter));
        let closed = if is_open { &text[..text.len() - 1] } else { text };
        let parts = closed
            .split(char::from(delimiter))
            .map(|part| PartParser { rest: part, delimiter: char::from(delimiter) }.all())
            .collect::<Result<Vec<String>, _>>()?;
        assert!(!parts.is_empty(), "splitting gives at least one piece");
        Ok(PathPattern { text: text.to_string(), delimiter, parts, is_open })
    }

    /// The delimiter.
    pub fn delimiter(&self) -> char {
        char::from(self.delimiter)
    }

    /// The pattern's text before its last part, the delimiter included.
    pub fn head(&self) -> &str {
        let end = self.text.len() - usize::from(self.is_open);
        let start = self.text[..end].rfind(self.delimiter()).map_or(0, |idx| idx + 1);
        &self.text[..start]
    }

    /// The regular expression of the names with as many parts as the pattern.
    pub fn names(&self) -> String {
        let mut regex = self.joined();
        if self.is_open {
            regex.push_str(&self.escaped_delimiter());
        }
        regex
    }

    /// The regular expression of the names that start with the pattern's parts, and of those that
    /// have more.
    pub fn subtree(&self) -> String {
        let (joined, delimiter) = (self.joined(), self.escaped_delimiter());
        if self.is_open {
            return joined + &delimiter + ".*";
        }
        // A star at the end and what may follow it are one "anything", which is a plain prefix.
        match joined.strip_suffix(&any_run(self.delimiter())) {
            Some(prefix) => prefix.to_string() + ".*",
            None => joined + "(?:" + &delimiter + ".*)?",
        }
    }

    /// Where the parts that the pattern speaks of end in a name of [`PathPattern::subtree`].
    pub fn cut(&self, name: &str) -> PathCut {
        let mut last_start = 0;
        let mut depth = 1;
        for (idx, byte) in name.bytes().enumerate() {
            if byte != self.delimiter {
                continue;
            }
            if depth == self.parts.len() {
                return PathCut { last_start, end: idx + 1 };
            }
            depth += 1;
            last_start = idx + 1;
        }
        PathCut { last_start, end: name.len() }
    }

    fn joined(&self) -> String {
        self.parts.join(&self.escaped_delimiter())
    }

    fn escaped_delimiter(&self) -> String {
        let mut text = String::new();
        push_escaped(&mut text, self.delimiter());
        text
    }
}

fn check(what: &'static str, value: usize, max: usize) -> Result<(), PathPatternError> {
    if max < value {
        return Err(PathPatternError::TooLarge { what, value, max });
    }
    Ok(())
}

/// The regular expression of `*`.
fn any_run(delimiter: char) -> String {
    any_one(delimiter) + "*"
}

/// The regular expression of `?`.
fn any_one(delimiter: char) -> String {
    let mut text = "[^".to_string();
    push_escaped(&mut text, delimiter);
    text.push(']');
    text
}

/// Appends a character that stands for itself, inside brackets and outside.
fn push_escaped(regex: &mut String, character: char) {
    if r"\.+*?()|[]{}^$#&-~".contains(character) {
        regex.push('\\');
    }
    regex.push(character);
}

/// Turns one part into a regular expression.
struct PartParser<'a> {
    rest: &'a str,
    delimiter: char,
}

impl PartParser<'_> {
    fn all(mut self) -> Result<String, PathPatternError> {
        let mut regex = self.sequence(0)?;
        // A comma or brace that closes nothing is text.
        while let Some(character) = self.next() {
            push_escaped(&mut regex, character);
            regex.push_str(&self.sequence(0)?);
        }
        Ok(regex)
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let first = characters.next();
        self.rest = characters.as_str();
        first
    }

    /// Up to the end, or before the comma or brace that ends an alternative.
    fn sequence(&mut self, nesting: usize) -> Result<String, PathPatternError> {
        check("braces in braces", nesting, NESTING_MAX)?;
        let mut regex = String::new();
        while !self.rest.starts_with([',', '}']) {
            let Some(character) = self.next() else { break };
            match character {
                '*' => regex.push_str(&any_run(self.delimiter)),
                '?' => regex.push_str(&any_one(self.delimiter)),
                '[' => self.class(&mut regex)?,
                '{' => self.alternatives(&mut regex, nesting)?,
                _ => push_escaped(&mut regex, character),
            }
        }
        Ok(regex)
    }

    /// Behind an opening brace.
    fn alternatives(&mut self, regex: &mut String, nesting: usize) -> Result<(), PathPatternError> {
        let mut list = vec![self.sequence(nesting + 1)?];
        loop {
            match self.next() {
                Some(',') => list.push(self.sequence(nesting + 1)?),
                Some(_) => {
                    regex.push_str(&format!("(?:{})", list.join("|")));
                    return Ok(());
                }
                None => {
                    regex.push_str(r"\{");
                    regex.push_str(&list.join(","));
                    return Ok(());
                }
            }
        }
    }

    /// Behind an opening bracket.
    fn class(&mut self, regex: &mut String) -> Result<(), PathPatternError> {
        let Some((inside, after)) = self.rest.split_once(']').filter(|(text, _)| is_class(text))
        else {
            push_escaped(regex, '[');
            return Ok(());
        };
        self.rest = after;
        regex.push('[');
        let members = inside.strip_prefix(['^', '!']);
        if members.is_some() {
            regex.push('^');
            push_escaped(regex, self.delimiter);
        }
        let members: Vec<char> = members.unwrap_or(inside).chars().collect();
        let mut idx = 0;
        while let Some(&start) = members.get(idx) {
            push_escaped(regex, start);
            idx += 1;
            let Some(&end) = members.get(idx + 1).filter(|_| members[idx] == '-') else { continue };
            if end < start {
                return Err(PathPatternError::EmptyRange { start, end });
            }
            regex.push('-');
            push_escaped(regex, end);
            idx += 2;
        }
        regex.push(']');
        Ok(())
    }
}

/// Whether anything stands between the brackets.
fn is_class(text: &str) -> bool {
    !text.strip_prefix(['^', '!']).unwrap_or(text).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(pattern: &str, delimiter: &str, expected: &str) {
        let parsed = PathPattern::parse(pattern, delimiter).expect("a pattern");
        assert_eq!(parsed.names(), expected, "{pattern}");
    }

    #[track_caller]
    fn subtree(pattern: &str, delimiter: &str, expected: &str) {
        let parsed = PathPattern::parse(pattern, delimiter).expect("a pattern");
        assert_eq!(parsed.subtree(), expected, "{pattern}");
    }

    #[test]
    fn wildcards_become_expressions() {
        names("", ".", "");
        names("foo.bar", ".", r"foo\.bar");
        names("*", "_", "[^_]*");
        names("a.*.b?", ".", r"a\.[^\.]*\.b[^\.]");
        names("a*_b", "_", "a[^_]*_b");
        names("fo*b{ar,aaa}[a-z]xx*.d", ".", r"fo[^\.]*b(?:ar|aaa)[a-z]xx[^\.]*\.d");
        names("{foo,x*,x{y,a*b}c}a", "/", "(?:foo|x[^/]*|x(?:y|a[^/]*b)c)a");
        names("{foo*,}", ".", r"(?:foo[^\.]*|)");
    }

    #[test]
    fn classes() {
        names("[ab]", ".", "[ab]");
        names("[^a]x[!b-d]", ".", r"[^\.a]x[^\.b-d]");
        names("[a-]", ".", r"[a\-]");
        names("[-a]", ".", r"[\-a]");
        names(r"[[&\]", ".", r"[\[\&\\]");
        names("[é-ü]", ".", "[é-ü]");
        let refused = PathPattern::parse("a[z-a]", ".").expect_err("a range");
        assert_eq!(refused, PathPatternError::EmptyRange { start: 'z', end: 'a' });
    }

    #[test]
    fn what_does_not_close_is_text() {
        names("foo[bar", ".", r"foo\[bar");
        names("foo[]x", ".", r"foo\[\]x");
        names("foo{ba,r", ".", r"foo\{ba,r");
        names("a,b}c{d", ".", r"a,b\}c\{d");
        names("foo{b{ar*,ba*z[1-9]}", ".", r"foo\{b(?:ar[^\.]*|ba[^\.]*z[1-9])");
        names("{a.b}", ".", r"\{a\.b\}");
        names("a+(b)|c$", ".", r"a\+\(b\)\|c\$");
    }

    #[test]
    fn subtrees_are_prefixes_where_they_can_be() {
        subtree("*", ".", ".*");
        subtree("a.*", ".", r"a\..*");
        subtree("a.b*", ".", r"a\.b.*");
        subtree("metric_name_*", "_", "metric_name_.*");
        subtree("a.b", ".", r"a\.b(?:\..*)?");
        subtree("a.*.c", ".", r"a\.[^\.]*\.c(?:\..*)?");
        subtree("a.*.", ".", r"a\.[^\.]*\..*");
    }

    #[test]
    fn cuts_and_heads() {
        let cut = |pattern: &str, name: &str| {
            let pattern = PathPattern::parse(pattern, ".").expect("a pattern");
            let PathCut { last_start, end } = pattern.cut(name);
            (pattern.head().to_string(), name[last_start..end].to_string())
        };
        let check = |pattern, name, head: &str, last: &str| {
            assert_eq!(
                cut(pattern, name),
                (head.to_string(), last.to_string()),
                "{pattern} {name}"
            );
        };
        check("*", "foo", "", "foo");
        check("*", "foo.bar", "", "foo.");
        check("a.*", "a.b.c", "a.", "b.");
        check("a.*.c*", "a.b.cd", "a.*.", "cd");
        check("a.*.", "a.b.c", "a.", "b.");
        check("*", "", "", "");
        check("a.*", "a..b", "a.", ".");
        check("é.*", "é.ü.ö", "é.", "ü.");
    }

    #[test]
    fn limits() {
        let refused = |pattern: &str, delimiter: &str| {
            PathPattern::parse(pattern, delimiter).expect_err("a limit").to_string()
        };
        assert!(refused(&"a".repeat(PATTERN_SIZE_MAX + 1), ".").contains("4097 bytes"));
        assert!(refused(&",".repeat(ALTERNATIVES_MAX + 1), ".").contains("1001 alternatives"));
        assert!(refused(&"{".repeat(NESTING_MAX + 1), ".").contains("17 braces in braces"));
        assert!(refused("a", "").contains("one ASCII character"));
        assert!(refused("a", "é").contains("one ASCII character"));
        assert!(refused("a", "..").contains("one ASCII character"));
    }
}
