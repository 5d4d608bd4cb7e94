//! Expressions that Go accepts and refuses, with what they match.

use super::*;

const LIMITS: Limits = Limits::new(10 << 20);

#[track_caller]
fn check(pattern: &str, yes: &[&str], no: &[&str]) {
    let regexp = Expression::parse(pattern, true).unwrap().compile_anchored(LIMITS).unwrap();
    yes.iter().for_each(|text| assert!(regexp.is_match(text), "{pattern} on {text:?}"));
    no.iter().for_each(|text| assert!(!regexp.is_match(text), "{pattern} on {text:?}"));
}

#[track_caller]
fn refuse(pattern: &str, error: &str) {
    let found = Expression::parse(pattern, true).unwrap_err().to_string();
    assert_eq!(found, format!("error parsing regexp: {error}"), "{pattern}");
}

#[test]
fn expressions_mean_what_they_mean_in_go() {
    check(r"\d+", &["12"], &["١٢", ""]);
    check(r"[\d.]+", &["1.2"], &["١"]);
    check(r"[^\D]+", &["12"], &["a"]);
    check(r"\w", &["a", "_"], &["é"]);
    check(r"(?i)\w+", &["K", "\u{212a}", "ſ"], &["é"]);
    check(r"a\sb", &["a b", "a\tb"], &["a\u{a0}b", "a\u{b}b"]);
    check(r"\Qa.b*\E.", &["a.b*c"], &["axb*c"]);
    check(r"\Qab\E*", &["a", "abbb"], &["abab"]);
    check(r"\Qa.b", &["a.b"], &["axb"]);
    check("a{2}", &["aa"], &["a{2}"]);
    check("a{,2}", &["a{,2}"], &["aa"]);
    check("a{02}", &["a{02}"], &["aa"]);
    check("a{x}", &["a{x}"], &[]);
    check("{.*", &["{", "{a"], &["a"]);
    check("[[]", &["["], &["]"]);
    check("[]a]+", &["]a"], &["[", ""]);
    check("[^]a]+", &["b["], &["]", "a"]);
    check("[a&&b]+", &["a&b"], &["c"]);
    check("[a~~b]+", &["a~b"], &["c"]);
    check("[+--]+", &["+,-"], &["."]);
    check("[--0]+", &["-./0"], &["1", ","]);
    check("[a-\\x{64}]+", &["abcd"], &["e"]);
    check("[[:alpha:]-]+", &["a-b"], &["1"]);
    check("[[:^alpha:]]+", &["1-"], &["a"]);
    check("[[:alpha]+", &["[:a"], &["b"]);
    check(r"[\]\\]+", &["]\\"], &["["]);
    check(".", &["\n", "é", "x"], &["", "xx"]);
    check("(?-s).", &["é", "x"], &["\n"]);
    check(r"\bfoo\b.*", &["foo", "foo bar", "fooé"], &["foobar"]);
    check(r"fo\Bo", &["foo"], &["fo", "fo o"]);
    check("(?i)host", &["HOST"], &["hos"]);
    check("(?i:h)ost", &["Host"], &["HOST"]);
    check("a(?i)b|c", &["aB", "C"], &["AB"]);
    check("(a(?i)b)c", &["aBc"], &["aBC"]);
    check("ab(?i)*", &["a", "abb"], &["aB"]);
    check("a|b(?-i)*", &["a", "bb", ""], &["aa"]);
    check("(?m)a$\n^b", &["a\nb"], &["ab"]);
    check("(^a$)|()", &["a", ""], &["b"]);
    check(r"\x41\x{1F600}\101\0", &["A\u{1F600}A\0"], &["A"]);
    check(r"\x{d800}|a", &["a"], &["\u{fffd}"]);
    check(r"[\x{d7ff}-\x{e000}]", &["\u{d7ff}", "\u{e000}"], &["\u{e001}"]);
    check(r"\p{L}+\pN\P{Lu}\p{^Lu}", &["aé1bb"], &["aé1BB"]);
    check(r"\p{Greek}\p{greek}\p{Letter}", &["αβγ"], &["aβγ"]);
    check(r"[\p{Greek}\d]+", &["α1"], &["a"]);
    check(r"\<a\_\ \-", &["<a_ -"], &["a"]);
    check("(?P<n>a)(?<n>b)(?P<1>c)", &["abc"], &["ab"]);
    check("é+", &["éé"], &["e"]);
    check("", &[""], &["a"]);
    check("(|a)*", &["", "aa"], &["b"]);
    check("[^\\x00-\\x{10FFFF}]?", &[""], &["a"]);
    check("(?:^)*(?:\\b)+a", &["a"], &[""]);
}

#[test]
fn bad_expressions_have_the_errors_of_go() {
    refuse("a**", "invalid nested repetition operator: `**`");
    refuse("a*??", "invalid nested repetition operator: `*??`");
    refuse("a+{2}", "invalid nested repetition operator: `+{2}`");
    refuse("a{1001}", "invalid repeat count: `{1001}`");
    refuse("a{2,1}", "invalid repeat count: `{2,1}`");
    refuse("a{99999999999}", "invalid repeat count: `{99999999999}`");
    refuse("((a{100}){100}){100}", "invalid repeat count: `{100}`");
    refuse("(?x)a b", "invalid or unsupported Perl syntax: `(?x`");
    refuse("(?=a)", "invalid or unsupported Perl syntax: `(?=`");
    refuse("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`");
    refuse("(?", "invalid or unsupported Perl syntax: `(?`");
    refuse("(?P<n", "invalid named capture: `(?P<n`");
    refuse("(?P<é>a)", "invalid named capture: `(?P<é>`");
    refuse("*a", "missing argument to repetition operator: `*`");
    refuse("(?i)*", "missing argument to repetition operator: `*`");
    refuse("a|+?", "missing argument to repetition operator: `+?`");
    refuse("(a", "missing closing ): `(a`");
    refuse("a)b", "unexpected ): `a)b`");
    refuse("[a", "missing closing ]: `[a`");
    refuse("x[]", "missing closing ]: `[]`");
    refuse("[z-a]", "invalid character class range: `z-a`");
    refuse("[[:word2:]]", "invalid character class range: `[:word2:]`");
    refuse(r"[a-\d]", r"invalid escape sequence: `\d`");
    refuse(r"[\b]", r"invalid escape sequence: `\b`");
    refuse(r"\8", r"invalid escape sequence: `\8`");
    refuse(r"\1", r"invalid escape sequence: `\1`");
    refuse(r"\q", r"invalid escape sequence: `\q`");
    refuse(r"\é", r"invalid escape sequence: `\é`");
    refuse(r"\C", r"invalid escape sequence: `\C`");
    refuse(r"\x{110000}", r"invalid escape sequence: `\x{110000`");
    refuse("a\\", "trailing backslash at end of expression: ``");
    refuse(r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`");
    refuse(r"\p{Grek}", r"invalid character class range: `\p{Grek}`");
    refuse(r"\pX", r"invalid character class range: `\pX`");
    refuse(r"\p{L", r"invalid character class range: `\p{L`");
    refuse(
        &"(".repeat(NESTING_MAX + 1),
        &format!("expression nests too deeply: `{}...`", "(".repeat(200)),
    );
    let large =
        Expression::parse(r"\pL{1000}\pL{1000}", true).unwrap().compile(Limits::new(1 << 20));
    assert_eq!(large.unwrap_err().code, ErrorCode::Large);
}

#[test]
fn deep_expressions_compile() {
    let nested = format!("{}a{}", "((|b".repeat(NESTING_MAX / 2), "c)+d)*".repeat(NESTING_MAX / 2));
    Expression::parse(&nested, true).unwrap().compile(LIMITS).unwrap();
    let folded = format!("(?i){nested}");
    Expression::parse(&folded, true).unwrap().compile_anchored(LIMITS).unwrap();
}

#[test]
fn templates_expand_as_in_go() {
    let regexp = Expression::parse("(?P<a>.)(.)(?P<a>.)?", true).unwrap();
    let regexp = regexp.compile_anchored(LIMITS).unwrap();
    let captures = regexp.regex().captures("xy").unwrap();
    let expand = |template: &str| {
        let mut out = String::new();
        regexp.expand(template, &captures, &mut out);
        out
    };
    assert_eq!(expand("$0-${1}-$2.$3"), "xy-x-y.");
    assert_eq!(expand("$a ${a}b $ab $b"), "x xb  ");
    assert_eq!(expand("$1é"), "");
    assert_eq!(expand("${a-b}"), "${a-b}");
    assert_eq!(expand("${a"), "${a");
    assert_eq!(expand("$$1 $ $-"), "$1 $ $-");
    assert_eq!(expand("$01 $99999999999999999999"), " ");
    assert_eq!(expand("$1_"), "");
}

/// Random expressions from the signs of the dialect: whatever is read compiles.
#[test]
fn read_expressions_compile() {
    const PIECES: [&str; 40] = [
        "a",
        "b",
        "é",
        "K",
        ".",
        "*",
        "+",
        "?",
        "{2}",
        "{1,3}",
        "{,2}",
        "|",
        "(",
        "(?:",
        "(?i)",
        "(?i:",
        "(?m)",
        "(?U)",
        "(?s-i)",
        "(?P<n>",
        ")",
        ")",
        "[",
        "[^",
        "]",
        "-",
        "\\d",
        "\\W",
        "\\pL",
        "\\P{Greek}",
        "\\Q",
        "\\E",
        "^",
        "$",
        "\\b",
        "\\x{d800}",
        "\\x41",
        "&&",
        "[:alpha:]",
        "\\",
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut read = 0;
    for _ in 0..20_000 {
        let length = 1 + next() % 12;
        let text: String = (0..length).map(|_| PIECES[(next() % 40) as usize]).collect();
        let Ok(expression) = Expression::parse(&text, next() % 2 == 0) else { continue };
        expression.compile(LIMITS).unwrap_or_else(|error| panic!("{text}: {error}"));
        read += 1;
    }
    assert!(3_000 < read, "{read}");
}
