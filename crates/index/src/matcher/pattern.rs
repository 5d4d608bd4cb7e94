//! What a matcher asks of one value, in the cheapest form that means the same.
//!
//! ```text
//! foo            Exact {foo}             foo.*      Prefix foo, Any
//! foo|bar[12]    Exact {bar1 bar2 foo}   foo.+      Prefix foo, NonEmpty
//! .*             Anything                .*foo      Suffix foo
//! .+             NonEmpty                .*foo.*    Infix foo
//! (a|b).*c       Regex, only to be run on values that start with a or b
//! ```

use memchr::memmem;
use re2::{ErrorCode, Expression, Limits};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};
use std::collections::HashMap;

/// Strings that an expression may be expanded to; beyond, it stays an automaton.
const EXPANSION_LEN_MAX: usize = 4096;
/// Bytes of all those strings: nested repetitions make long ones of short texts.
const EXPANSION_SIZE_MAX: usize = 256 << 10;
/// Bytes of a compiled automaton, tried one after the other: a compilation ends where it goes over its
/// limit, so the first that is enough tells the size and costs little. The last one is that of
/// PromQL's matchers.
const REGEX_SIZES: [usize; 6] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 10 << 20, 16 << 20];
/// Bytes that the matches of an automaton may cache, for each of its own, and at most.
const CACHE_SHARE: usize = 4;
const CACHE_SIZE_MAX: usize = 2 << 20;
/// Bytes that a string takes besides its own.
const STRING_SIZE: usize = 40;
/// Bytes of all automata and lists of strings of one request, with what their matches cache.
const REGEXES_MEMORY_MAX: usize = 256 << 20;

/// A set of strings.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// Every string.
    Anything,
    /// Every string but the empty one.
    NonEmpty,
    /// These strings, sorted, without repeats.
    Exact(Vec<String>),
    /// Strings that start so and continue as the rest says.
    Prefix(String, Rest),
    /// Strings that end so.
    Suffix(String),
    /// Strings that have this inside.
    Infix(Box<memmem::Finder<'static>>),
    /// Strings that start with one of `prefixes` (any, when there is none) and match.
    Regex {
        /// Sorted, none a prefix of another.
        prefixes: Vec<String>,
        /// Anchored at both ends.
        regex: regex::Regex,
    },
}

/// What may follow a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// `.*`
    Any,
    /// `.+`
    NonEmpty,
}

/// The memory that the regular expressions of one request may still take. Equal ones are compiled
/// once.
pub struct RegexBudget {
    left: usize,
    known: HashMap<String, Pattern>,
}

impl Default for RegexBudget {
    fn default() -> RegexBudget {
        RegexBudget { left: REGEXES_MEMORY_MAX, known: HashMap::new() }
    }
}

impl RegexBudget {
    /// The pattern of an expression as Prometheus reads it; the error is the parser's, or tells that
    /// there is no memory left.
    pub(super) fn compile(&mut self, text: &str) -> Result<Pattern, String> {
        if let Some(known) = self.known.get(text) {
            return Ok(known.clone());
        }
        let (pattern, automaton_size) = compile_regex(text, self.left)?;
        let memory = automaton_size + pattern.strings_size();
        self.left = self.left.checked_sub(memory).ok_or_else(over_budget)?;
        if matches!(pattern, Pattern::Regex { .. }) {
            self.known.insert(text.to_string(), pattern.clone());
        }
        Ok(pattern)
    }
}

/// The pattern of an expression, and the bytes that its automaton takes, if it needs one.
fn compile_regex(text: &str, memory_max: usize) -> Result<(Pattern, usize), String> {
    if let Some(strings) = plain_words(text) {
        return Ok((Pattern::Exact(strings), 0));
    }
    if let Some(pattern) = plain_affix(text) {
        return Ok((pattern, 0));
    }
    let expression = Expression::parse(text, true).map_err(|error| error.to_string())?;
    let hir = expression.hir();
    if let Some(pattern) = without_automaton(&hir) {
        return Ok((pattern, 0));
    }
    let largest = REGEX_SIZES[REGEX_SIZES.len() - 1];
    for size in REGEX_SIZES {
        let cache_size_max = (size * CACHE_SHARE).min(CACHE_SIZE_MAX);
        if memory_max < size + cache_size_max {
            break;
        }
        match expression.compile_anchored(Limits { size_max: size, cache_size_max }) {
            Ok(regexp) => {
                let (prefixes, regex) = (prefixes_of(&hir), regexp.into_regex());
                return Ok((Pattern::Regex { prefixes, regex }, size + cache_size_max));
            }
            Err(error) if error.code == ErrorCode::Large && size < largest => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(over_budget())
}

fn over_budget() -> String {
    format!(
        "the regular expressions of one request take more than {REGEXES_MEMORY_MAX} bytes of memory"
    )
}

impl Pattern {
    /// One string.
    pub(crate) fn exactly(value: &str) -> Pattern {
        Pattern::Exact(vec![value.to_string()])
    }

    /// From the text of a regular expression as Prometheus reads it; the error is the parser's.
    pub(crate) fn from_regex(text: &str) -> Result<Pattern, String> {
        RegexBudget::default().compile(text)
    }

    /// Bytes that the strings of the pattern take, about.
    fn strings_size(&self) -> usize {
        match self {
            Pattern::Exact(strings) | Pattern::Regex { prefixes: strings, .. } => {
                strings.iter().map(|string| STRING_SIZE + string.len()).sum()
            }
            _ => 0,
        }
    }

    /// Whether the strings of the set are found in a sorted dictionary without a walk.
    pub(crate) fn is_range(&self) -> bool {
        match self {
            Pattern::Anything | Pattern::NonEmpty | Pattern::Exact(_) | Pattern::Prefix(..) => true,
            Pattern::Suffix(_) | Pattern::Infix(_) | Pattern::Regex { .. } => false,
        }
    }

    /// Whether the string is in the set.
    pub(crate) fn matches(&self, value: &str) -> bool {
        match self {
            Pattern::Anything => true,
            Pattern::NonEmpty => !value.is_empty(),
            Pattern::Exact(set) => set.binary_search_by(|one| one.as_str().cmp(value)).is_ok(),
            Pattern::Prefix(prefix, rest) => {
                value.starts_with(prefix.as_str())
                    && (*rest == Rest::Any || prefix.len() < value.len())
            }
            Pattern::Suffix(suffix) => value.ends_with(suffix.as_str()),
            Pattern::Infix(finder) => finder.find(value.as_bytes()).is_some(),
            Pattern::Regex { prefixes, regex } => {
                (prefixes.is_empty() || prefixes.iter().any(|p| value.starts_with(p.as_str())))
                    && regex.is_match(value)
            }
        }
    }
}

/// The strings of `a|b|c` or `head(a|b|c)tail` without special characters, sorted: what people and
/// dashboards write most needs no parser.
fn plain_words(text: &str) -> Option<Vec<String>> {
    let is_plain = |byte: u8| byte == b'|' || is_plain(byte);
    let (head, group, tail) = match text.split_once('(') {
        None => ("", text, ""),
        Some((head, rest)) => {
            let (group, tail) = rest.split_once(')')?;
            (head, group, tail)
        }
    };
    let are_plain = [head, group, tail].iter().all(|piece| piece.bytes().all(is_plain));
    let count = group.split('|').count();
    let size = group.len() + (head.len() + tail.len()) * count;
    if !are_plain
        || head.contains('|')
        || tail.contains('|')
        || EXPANSION_LEN_MAX < count
        || EXPANSION_SIZE_MAX < size
    {
        return None;
    }
    let mut words: Vec<String> = group.split('|').map(|word| [head, word, tail].concat()).collect();
    words.sort_unstable();
    words.dedup();
    Some(words)
}

/// Whether a byte means itself in every expression.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'/' | b' ' | b',')
}

/// The pattern of a plain word with `.*` or `.+` beside it, as the parser would find it, without the
/// parser: most expressions that are no list of words are so.
fn plain_affix(text: &str) -> Option<Pattern> {
    let pattern = match text {
        ".*" => return Some(Pattern::Anything),
        ".+" => return Some(Pattern::NonEmpty),
        _ => text.strip_prefix(".*"),
    };
    let has_start = pattern.is_some();
    let rest = pattern.unwrap_or(text);
    let (word, end) = match (rest.strip_suffix(".*"), rest.strip_suffix(".+")) {
        (Some(word), _) => (word, Some(Rest::Any)),
        (None, Some(word)) => (word, Some(Rest::NonEmpty)),
        (None, None) => (rest, None),
    };
    if word.is_empty() || EXPANSION_SIZE_MAX < word.len() || !word.bytes().all(is_plain) {
        return None;
    }
    match (has_start, end) {
        (false, Some(end)) => Some(Pattern::Prefix(word.to_string(), end)),
        (true, None) => Some(Pattern::Suffix(word.to_string())),
        (true, Some(Rest::Any)) => Some(infix(word)),
        _ => None,
    }
}

fn infix(word: &str) -> Pattern {
    Pattern::Infix(Box::new(memmem::Finder::new(word.as_bytes()).into_owned()))
}

/// The pattern of an expression that is one of the simple shapes.
fn without_automaton(hir: &Hir) -> Option<Pattern> {
    if !hir.properties().look_set().is_empty() {
        return None;
    }
    if let Some(mut strings) = expand(hir) {
        strings.sort_unstable();
        strings.dedup();
        return Some(Pattern::Exact(strings));
    }
    match pieces(hir)?.as_slice() {
        [Piece::Any(Rest::Any)] => Some(Pattern::Anything),
        [Piece::Any(Rest::NonEmpty)] => Some(Pattern::NonEmpty),
        [Piece::Text(text), Piece::Any(rest)] => Some(Pattern::Prefix(text.clone(), *rest)),
        [Piece::Any(Rest::Any), Piece::Text(text)] => Some(Pattern::Suffix(text.clone())),
        [Piece::Any(Rest::Any), Piece::Text(text), Piece::Any(Rest::Any)] => Some(infix(text)),
        _ => None,
    }
}

/// A part of a concatenation.
enum Piece {
    Text(String),
    Any(Rest),
}

/// The expression as a concatenation of literals, `.*` and `.+`.
fn pieces(hir: &Hir) -> Option<Vec<Piece>> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(vec![Piece::Text(text_of(&literal.0)?)]),
        HirKind::Capture(capture) => pieces(&capture.sub),
        HirKind::Repetition(repetition) => Some(vec![Piece::Any(any_of(repetition)?)]),
        HirKind::Concat(list) => {
            let mut out = Vec::new();
            for sub in list {
                match pieces(sub)?.as_mut_slice() {
                    [] => {}
                    [one] => push_piece(&mut out, std::mem::replace(one, Piece::Any(Rest::Any))),
                    _ => return None,
                }
            }
            Some(out)
        }
        HirKind::Empty => Some(Vec::new()),
        _ => None,
    }
}

/// Neighbouring literals, as in `a(b)`, are one.
fn push_piece(out: &mut Vec<Piece>, piece: Piece) {
    if let (Some(Piece::Text(last)), Piece::Text(text)) = (out.last_mut(), &piece) {
        last.push_str(text);
    } else {
        out.push(piece);
    }
}

fn any_of(repetition: &Repetition) -> Option<Rest> {
    if repetition.max.is_some() || !is_any_char(&repetition.sub) {
        return None;
    }
    match repetition.min {
        0 => Some(Rest::Any),
        1 => Some(Rest::NonEmpty),
        _ => None,
    }
}

fn is_any_char(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            matches!(class.ranges(), [one] if one.start() == '\0' && one.end() == char::MAX)
        }
        HirKind::Capture(capture) => is_any_char(&capture.sub),
        _ => false,
    }
}

/// All strings of a finite and small expression without look-around.
fn expand(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Empty => Some(vec![String::new()]),
        HirKind::Literal(literal) => Some(vec![text_of(&literal.0)?]),
        HirKind::Class(class) => expand_class(class),
        HirKind::Capture(capture) => expand(&capture.sub),
        HirKind::Alternation(list) => {
            let mut out = Vec::new();
            for sub in list {
                out.extend(expand(sub)?);
                if EXPANSION_LEN_MAX < out.len() {
                    return None;
                }
            }
            Some(out)
        }
        HirKind::Concat(list) => {
            list.iter().try_fold(vec![String::new()], |heads, sub| product(&heads, &expand(sub)?))
        }
        HirKind::Repetition(repetition) => expand_repetition(repetition),
        HirKind::Look(_) => None,
    }
}

fn expand_repetition(repetition: &Repetition) -> Option<Vec<String>> {
    let max = repetition.max?;
    if 64 < max {
        return None;
    }
    let sub = expand(&repetition.sub)?;
    let mut out = Vec::new();
    let mut level = vec![String::new()];
    for count in 0..=max {
        if repetition.min <= count {
            out.extend_from_slice(&level);
        }
        if EXPANSION_LEN_MAX < out.len() {
            return None;
        }
        if count < max {
            level = product(&level, &sub)?;
        }
    }
    Some(out)
}

fn expand_class(class: &Class) -> Option<Vec<String>> {
    let Class::Unicode(class) = class else {
        return None;
    };
    let count: u64 =
        class.ranges().iter().map(|r| u64::from(r.end() as u32 - r.start() as u32) + 1).sum();
    if EXPANSION_LEN_MAX as u64 / 16 < count {
        return None;
    }
    Some(class.ranges().iter().flat_map(|r| r.start()..=r.end()).map(String::from).collect())
}

/// Every head with every tail behind it.
fn product(heads: &[String], tails: &[String]) -> Option<Vec<String>> {
    let size_of = |strings: &[String]| strings.iter().map(String::len).sum::<usize>();
    let size = size_of(heads) * tails.len() + size_of(tails) * heads.len();
    if EXPANSION_LEN_MAX < heads.len() * tails.len() || EXPANSION_SIZE_MAX < size {
        return None;
    }
    let pairs = heads.iter().flat_map(|head| tails.iter().map(move |tail| (head, tail)));
    Some(pairs.map(|(head, tail)| format!("{head}{tail}")).collect())
}

/// Prefixes one of which every match has; empty when nothing can be promised.
fn prefixes_of(hir: &Hir) -> Vec<String> {
    let mut prefixes = leading_texts(hir).unwrap_or_default();
    prefixes.sort_unstable();
    // A shorter prefix covers the longer ones behind it.
    prefixes.dedup_by(|later, earlier| later.starts_with(earlier.as_str()));
    if prefixes.first().is_some_and(String::is_empty) {
        prefixes.clear();
    }
    prefixes
}

/// Texts one of which every match starts with.
fn leading_texts(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(vec![text_of(&literal.0)?]),
        HirKind::Capture(capture) => leading_texts(&capture.sub),
        HirKind::Alternation(list) => {
            let mut out = Vec::new();
            for sub in list {
                out.extend(leading_texts(sub)?);
            }
            (out.len() <= EXPANSION_LEN_MAX).then_some(out)
        }
        HirKind::Concat(list) => leading_texts_of_concat(list),
        HirKind::Repetition(repetition) if 1 <= repetition.min => leading_texts(&repetition.sub),
        HirKind::Class(class) => expand_class(class),
        _ => None,
    }
}

/// Parts that expand to few strings are multiplied up to the first that does not.
fn leading_texts_of_concat(list: &[Hir]) -> Option<Vec<String>> {
    let mut heads = vec![String::new()];
    for sub in list {
        let is_plain = sub.properties().look_set().is_empty();
        match expand(sub).filter(|_| is_plain).and_then(|tails| product(&heads, &tails)) {
            Some(longer) => heads = longer,
            None => {
                if let Some(longer) = leading_texts(sub).and_then(|tails| product(&heads, &tails)) {
                    heads = longer;
                }
                break;
            }
        }
    }
    Some(heads)
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, form: &str) {
        let pattern = Pattern::from_regex(text).unwrap();
        let got = match &pattern {
            Pattern::Anything => "anything".to_string(),
            Pattern::NonEmpty => "non-empty".to_string(),
            Pattern::Exact(set) => format!("exact {}", set.join(" ")),
            Pattern::Prefix(prefix, rest) => format!("prefix {prefix} {rest:?}"),
            Pattern::Suffix(suffix) => format!("suffix {suffix}"),
            Pattern::Infix(finder) => {
                format!("infix {}", std::str::from_utf8(finder.needle()).unwrap())
            }
            Pattern::Regex { prefixes, .. } => format!("regex {}", prefixes.join(" ")),
        };
        assert_eq!(got, form, "{text}");
    }

    #[test]
    fn expressions_share_a_budget() {
        let fill = |text: &dyn Fn(usize) -> String| {
            let mut budget = RegexBudget::default();
            (0..).find_map(|number| budget.compile(&text(number)).err().map(|why| (number, why)))
        };
        // Small automata, large ones, and lists of 4,096 strings.
        for (text, least, most) in [
            (&(|number: usize| format!("a.*{number}.*b")) as &dyn Fn(usize) -> String, 1000, 5000),
            (&|number: usize| format!(r"\pL{{200}}x?{number}"), 15, 300),
            (&|number: usize| format!("[a-p][a-p][a-p]{number}"), 500, 2000),
        ] {
            let (count, why) = fill(text).expect("an end");
            assert!((least..most).contains(&count), "{count} of {:?}", text(0));
            assert!(why.contains("268435456 bytes of memory"), "{why}");
        }
        let mut budget = RegexBudget::default();
        assert!((0..100_000).all(|_| budget.compile("a.*b.*c").is_ok()), "equal ones count once");
    }

    #[test]
    fn common_shapes_need_no_automaton() {
        check("", "exact ");
        check("foo", "exact foo");
        check("foo|bar", "exact bar foo");
        check("(foo|bar)[12]", "exact bar1 bar2 foo1 foo2");
        check("a|ab", "exact a ab");
        check("ab?", "exact a ab");
        check("foo|", "exact  foo");
        check("cpu_(b|a)x", "exact cpu_ax cpu_bx");
        check("a-b|c d|a-b", "exact a-b c d");
        check("(?i)ab", "exact AB Ab aB ab");
        check("a{1,3}", "exact a aa aaa");
        check(".*", "anything");
        check("(.*)", "anything");
        check(".+", "non-empty");
        check("foo.*", "prefix foo Any");
        check("fo(o).+", "prefix foo NonEmpty");
        check(".*foo", "suffix foo");
        check(".*foo.*", "infix foo");
        check("1.+", "prefix 1 NonEmpty");
        check(r"10\.0\..*", "prefix 10.0. Any");
    }

    #[test]
    fn plain_affixes_are_what_the_parser_finds() {
        for text in [
            ".*",
            ".+",
            "a.*",
            "a.+",
            ".*a",
            ".*a.*",
            ".*a.+",
            ".+a",
            ".+a.*",
            "",
            "a",
            ".*.*",
            ".*.+",
            "a.*b",
            "a b.*",
            "-.*",
            ".*a-b/c:d_e,f",
            "a|b.*",
            ".*a|b",
            "(a).*",
            "a*.*",
            "a.",
        ] {
            let expression = Expression::parse(text, true).expect("an expression");
            let Some(pattern) = plain_affix(text) else { continue };
            let parsed = without_automaton(&expression.hir()).expect("a simple shape");
            assert_eq!(format!("{pattern:?}"), format!("{parsed:?}"), "{text}");
        }
        assert!(plain_affix("a.*").is_some() && plain_affix("a|b.*").is_none());
    }

    #[test]
    fn automata_know_their_prefixes() {
        check("foo.*bar", "regex foo");
        check("(foo|bar).*x", "regex bar foo");
        check("foo|bar.*", "regex bar foo");
        check("fo+.*", "regex fo");
        check("[ab]c+", "regex ac bc");
        check(".*foo|bar", "regex ");
        check("(foo)?.*bar", "regex ");
        check("^foo.*x", "regex ");
        check("a.*|ab.*x", "regex a");
    }

    #[test]
    fn errors_fit_a_line() {
        let error = Pattern::from_regex("a(").unwrap_err();
        assert_eq!(error, "error parsing regexp: missing closing ): `a(`");
        assert!(Pattern::from_regex("((((a{64}){64}){64}){64}){64}").is_err(), "too large");
        assert!(!Pattern::from_regex("(a{1000}){1000}").unwrap_err().contains('\n'));
    }

    #[test]
    fn forms_match_as_the_regex_would() {
        let values = ["", "a", "ab", "foo", "foobar", "barfoo", "xfoox", "fo", "FOO", "é", "a\nb"];
        let texts = [
            "",
            "a",
            "a|ab",
            ".*",
            ".+",
            "foo.*",
            "foo.+",
            ".*foo",
            ".*foo.*",
            "(?i)foo",
            "(foo|bar).*",
            "f(o)+",
            "[^a]*",
            "a.b",
            "é?",
            "fo{2}(bar)?",
            "^foo$",
            "foo.*r",
            "a.*b|f.*r",
            "x?foo.*",
            ".+foo",
            ".?",
            "(a|b|f).*",
        ];
        for text in texts {
            let pattern = Pattern::from_regex(text).unwrap();
            let regex = regex::Regex::new(&format!("^(?s:{text})$")).unwrap();
            for value in values {
                assert_eq!(pattern.matches(value), regex.is_match(value), "{text} on {value:?}");
            }
        }
    }
}
