//! From the regular expressions of Prometheus (RE2 as in Go) to those of the `regex` crate.
//!
//! Both are linear-time and nearly the same language. What differs is rewritten here, character
//! by character, outside and inside of classes:
//!
//! | RE2 | here |
//! |---|---|
//! | `\d \w \s` are ASCII | `[0-9]`, `[0-9A-Za-z_]`, `[\t\n\f\r ]` |
//! | `\b \B` are ASCII | `(?-u:\b)`, `(?-u:\B)` |
//! | `\Q...\E` quotes | each character escaped |
//! | `{` that starts no repetition is itself | `\{` |
//! | `[`, `&&`, `--`, `~~` in a class are themselves | escaped |
//!
//! What neither language has fails in the parser behind this.

/// The expression in the other dialect.
pub fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '\\' => translate_escape(rest, EscapeContext::Outside, &mut out),
            '[' => translate_class(rest, &mut out),
            '{' if !is_repetition(rest) => {
                out.push_str("\\{");
                &rest[1..]
            }
            other => {
                out.push(other);
                &rest[other.len_utf8()..]
            }
        };
    }
    out
}

/// Where an escape stands.
#[derive(Clone, Copy, PartialEq)]
enum EscapeContext {
    Outside,
    InClass,
}

/// Translates the escape at the start of `rest` and returns what follows it.
fn translate_escape<'a>(rest: &'a str, context: EscapeContext, out: &mut String) -> &'a str {
    let tail = &rest[1..];
    let Some(kind) = tail.chars().next() else {
        out.push('\\');
        return tail;
    };
    let tail = &tail[kind.len_utf8()..];
    if kind == 'Q' && context == EscapeContext::Outside {
        return translate_quoted(tail, out);
    }
    let perl = match kind {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\f\\r ]",
        'S' => "[^\\t\\n\\f\\r ]",
        'b' if context == EscapeContext::Outside => "(?-u:\\b)",
        'B' if context == EscapeContext::Outside => "(?-u:\\B)",
        _ => "",
    };
    if perl.is_empty() {
        out.push('\\');
        out.push(kind);
    } else {
        out.push_str(perl);
    }
    tail
}

/// Everything up to `\E` stands for itself.
fn translate_quoted<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let (quoted, tail) = rest.split_once("\\E").unwrap_or((rest, ""));
    for c in quoted.chars() {
        if is_sign(c) {
            out.push('\\');
        }
        out.push(c);
    }
    tail
}

/// Whether a character means something in an expression.
fn is_sign(c: char) -> bool {
    "\\.+*?()|[]{}^$#&-~".contains(c)
}

/// Translates the bracket expression at the start of `rest` and returns what follows it.
fn translate_class<'a>(rest: &'a str, out: &mut String) -> &'a str {
    out.push('[');
    let mut rest = &rest[1..];
    if let Some(tail) = rest.strip_prefix('^') {
        out.push('^');
        rest = tail;
    }
    // A bracket that comes first is a member.
    if let Some(tail) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = tail;
    }
    let members_start = out.len();
    while let Some(first) = rest.chars().next() {
        rest = match first {
            ']' => {
                out.push(']');
                return &rest[1..];
            }
            '\\' => translate_escape(rest, EscapeContext::InClass, out),
            '[' => match posix_class(rest) {
                Some(size) => {
                    out.push_str(&rest[..size]);
                    &rest[size..]
                }
                None => {
                    out.push_str("\\[");
                    &rest[1..]
                }
            },
            '&' | '~' => {
                out.push('\\');
                out.push(first);
                &rest[1..]
            }
            // The first dash of a class is a member, a later one makes a range up to the second.
            '-' if rest.starts_with("--") && out.len() == members_start => {
                out.push_str("\\-");
                &rest[1..]
            }
            '-' if rest.starts_with("--") => {
                out.push_str("-\\-");
                &rest[2..]
            }
            other => {
                out.push(other);
                &rest[other.len_utf8()..]
            }
        };
    }
    rest
}

/// The size of `[:alpha:]` and its like at the start of `rest`.
fn posix_class(rest: &str) -> Option<usize> {
    let end = rest.strip_prefix("[:")?.find(":]")? + 4;
    let inner = rest[2..end - 2].trim_start_matches('^');
    inner.bytes().all(|byte| byte.is_ascii_lowercase()).then_some(end)
}

/// Whether `rest` starts with `{n}`, `{n,}` or `{n,m}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inner, _)) = rest[1..].split_once('}') else {
        return false;
    };
    let (low, high) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !low.is_empty() && is_number(low) && is_number(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let regex = regex::Regex::new(&format!("^(?s:{})$", translate(pattern))).unwrap();
        yes.iter().for_each(|text| assert!(regex.is_match(text), "{pattern} on {text:?}"));
        no.iter().for_each(|text| assert!(!regex.is_match(text), "{pattern} on {text:?}"));
    }

    #[test]
    fn means_what_re2_means() {
        check(r"\d+", &["12"], &["١٢", ""]);
        check(r"[\d.]+", &["1.2"], &["١"]);
        check(r"[^\D]+", &["12"], &["a"]);
        check(r"\w", &["a", "_"], &["é"]);
        check(r"a\sb", &["a b", "a\tb"], &["a\u{a0}b", "a\u{b}b"]);
        check(r"\Qa.b*\E.", &["a.b*c"], &["axb*c"]);
        check(r"\Qa.b", &["a.b"], &["axb"]);
        check("a{2}", &["aa"], &["a{2}"]);
        check("a{,2}", &["a{,2}"], &["aa"]);
        check("a{x}", &["a{x}"], &[]);
        check("{.*", &["{", "{a"], &["a"]);
        check("[[]", &["["], &["]"]);
        check("[]a]+", &["]a"], &["[", ""]);
        check("[^]a]+", &["b["], &["]", "a"]);
        check("[a&&b]+", &["a&b"], &["c"]);
        check("[a~~b]+", &["a~b"], &["c"]);
        check("[+--]+", &["+,-"], &["."]);
        check("[--0]+", &["-./0"], &["1", ","]);
        check("[[:alpha:]-]+", &["a-b"], &["1"]);
        check(r"[\]\\]+", &["]\\"], &["["]);
        check(".", &["\n", "é", "x"], &["", "xx"]);
        check(r"\bfoo\b.*", &["foo", "foo bar"], &["foobar"]);
        check(r"fo\Bo", &["foo"], &["fo", "fo o"]);
        check("(?i)host", &["HOST"], &["hos"]);
        check("é+", &["éé"], &["e"]);
        check("", &[""], &["a"]);
    }
}
