//! Tables of good and bad expressions.

use crate::*;

fn parse_all(text: &str) -> Result<Expr, ParseError> {
    parse_with(text, &Options { experimental_functions: true })
}

/// `text` parses and prints as `printed`.
#[track_caller]
fn good(text: &str, printed: &str) {
    let expr = parse_all(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(expr.to_string(), printed);
    assert_eq!(parse_all(printed).expect("prints what parses").to_string(), printed);
}

/// `text` is refused with `message`, position included.
#[track_caller]
fn bad(text: &str, message: &str) {
    assert_eq!(parse_all(text).expect_err(text).to_string(), message);
}

#[test]
fn literals() {
    good("1", "1");
    good("+1", "1");
    good("-1", "-1");
    good("1e3", "1000");
    good("0x1f", "31");
    good("1_000", "1000");
    good("inf", "Inf");
    good("-INF", "-Inf");
    good("NaN", "NaN");
    good("1h30m", "1h30m");
    good("-90m", "-1h30m");
    good("\"a\\tb\"", "\"a\\tb\"");
    good("'it\\'s'", "\"it's\"");
    good("`a\\nb`", "\"a\\\\nb\"");
    bad("", "unknown position: parse error: no expression found in input");
    bad("# only a comment", "1:1: parse error: no expression found in input");
    bad("2.5.", "1:1: parse error: bad number or duration syntax: \"2.5.\"");
    bad("5mm", "1:1: parse error: bad number or duration syntax: \"5mm\"");
    bad("\"a", "1:1: parse error: unterminated quoted string");
    bad("`a", "1:1: parse error: unterminated raw string");
    bad("\"\\c\"", "1:1: parse error: unknown escape sequence U+0063 'c'");
    bad("1m1h", "1:1: parse error: not a valid duration string: \"1m1h\"");
    assert!(parse_all(&"9".repeat(400)).unwrap_err().message.contains("value out of range"));
}

#[test]
fn operators() {
    good("1+2*3", "1 + 2 * 3");
    good("-1^2", "-1 ^ 2");
    good("2^3^2", "2 ^ 3 ^ 2");
    good("a or b and c unless d", "a or b and c unless d");
    good("a atan2 b", "a atan2 b");
    good("1 == bool 2", "1 == bool 2");
    good("a == on(x) b", "a == on (x) b");
    good("a * ignoring(x,y) group_left(z,) b", "a * ignoring (x, y) group_left (z) b");
    good("a * on() group_right b", "a * on () group_right () b");
    good("a + ON(\"sp ace\", by) b", "a + on (\"sp ace\", by) b");
    good("--a", "--a");
    good("# c\n1 # d\n+ 2", "1 + 2");
    bad("1 == 1", "1:3: parse error: comparisons between scalars must use BOOL modifier");
    bad("1 +", "1:4: parse error: unexpected end of input");
    bad("*a", "1:1: parse error: unexpected <op:*>");
    bad("a b", "1:3: parse error: unexpected identifier \"b\"");
    bad(
        "1 and a",
        "1:1: parse error: set operator \"and\" not allowed in binary scalar expression",
    );
    bad("a + bool b", "1:3: parse error: bool modifier can only be used on comparison operators");
    bad(
        "a + on(x) group_left(x) b",
        "1:3: parse error: label \"x\" must not occur in ON and GROUP clause at once",
    );
    bad(
        "a and on(x) group_left() b",
        "1:1: parse error: no grouping allowed for \"and\" operation",
    );
    bad("a == on(x) 1", "1:1: parse error: vector matching only allowed between instant vectors");
    bad("a + group_left(x) b", "1:5: parse error: unexpected <group_left>");
    bad("a +\n  ^ b", "2:3: parse error: unexpected <op:^>");
    bad("1 !~ 2", "1:3: parse error: unexpected character after '!': '~'");
    bad("a fill(0) b", "1:3: parse error: unexpected <fill>");
    good("a + fill(0) b", "a + fill (0) b");
    good(
        "a + on(x) fill_right(-Inf) fill_left(1m) b",
        "a + on (x) fill_left (60) fill_right (-Inf) b",
    );
    good("a == bool fill_left(NaN) b", "a == bool fill_left (NaN) b");
    bad(
        "a + fill(b) c",
        "1:10: parse error: unexpected identifier \"b\" in fill modifier, expected number",
    );
    bad(
        "1 + fill(0) a",
        "1:1: parse error: filling in missing series only allowed between instant vectors",
    );
    bad(
        "a or fill(0) b",
        "1:1: parse error: filling in missing series not allowed for set operators",
    );
}

#[test]
fn precedence_is_in_the_tree() {
    let Ok(Expr::Binary(pow)) = parse_all("2^3^2") else { panic!("a binary") };
    assert!(matches!((&pow.left, &pow.right), (Expr::Number(_), Expr::Binary(_))));
    let Ok(Expr::Binary(sub)) = parse_all("3-2-1") else { panic!("a binary") };
    assert!(matches!((&sub.left, &sub.right), (Expr::Binary(_), Expr::Number(_))));
    let Ok(Expr::Unary(minus)) = parse_all("-1^2") else { panic!("a unary") };
    assert!(matches!(minus.expr, Expr::Binary(_)));
    let Ok(Expr::Binary(mul)) = parse_all("-a*b") else { panic!("a binary") };
    assert!(matches!(mul.left, Expr::Unary(_)));
}

#[test]
fn selectors() {
    good("up", "up");
    good("a:b:c", "a:b:c");
    good("up{}", "up");
    good("up{job=\"a\",}", "up{job=\"a\"}");
    good("up{job!='a', b=~\"x.*\", c!~`y`}", "up{b=~\"x.*\",c!~\"y\",job!=\"a\"}");
    good("{__name__=~\"a|b\"}", "{__name__=~\"a|b\"}");
    good("{\"a.b\", \"c d\"=\"e\"}", "{\"c d\"=\"e\",__name__=\"a.b\"}");
    good("sum", "sum");
    good("offset{start=\"1\"}", "offset{start=\"1\"}");
    good("up offset 5m", "up offset 5m");
    good("up offset -1h", "up offset -1h");
    good("up offset 90", "up offset 1m30s");
    good("up @ 1609746000", "up @ 1609746000.000");
    good("up @ -1.5 offset 1m", "up @ -1.500 offset 1m");
    good("up offset 1m @ start()", "up @ start() offset 1m");
    good("rate(up[300] @ end())", "rate(up[5m] @ end())");
    good("up[5m:1m] offset 1d", "up[5m:1m] offset 1d");
    good("sum(up)[1h:]", "sum(up)[1h:]");
    good("up[ 5m : 1m ]", "up[5m:1m]");
    bad("{}", "1:1: parse error: vector selector must contain at least one non-empty matcher");
    bad(
        "{a=~\".*\"}",
        "1:1: parse error: vector selector must contain at least one non-empty matcher",
    );
    bad("a{__name__=\"b\"}", "1:1: parse error: metric name must not be set twice: \"a\" or \"b\"");
    bad("a{", "1:3: parse error: unexpected end of input inside braces");
    bad("a}", "1:2: parse error: unexpected character: '}'");
    bad(
        "a{b=c}",
        "1:5: parse error: unexpected identifier \"c\" in label matching, expected string",
    );
    bad(
        "a{b}",
        "1:4: parse error: unexpected \"}\" in label matching, expected label matching operator",
    );
    bad(
        "a{,}",
        "1:3: parse error: unexpected \",\" in label matching, expected identifier or \"}\"",
    );
    bad(
        "a[]",
        "1:3: parse error: unexpected \"]\" in subquery or range selector, \
         expected number, duration, step(), or range()",
    );
    bad("a[0s]", "1:3: parse error: duration must be greater than 0");
    bad("a offset 1m[5m]", "1:12: parse error: no offset modifiers allowed before range");
    bad("a @ 1 [5m]", "1:7: parse error: no @ modifiers allowed before range");
    bad("sum(a)[5m]", "1:7: parse error: ranges only allowed for vector selectors");
    bad("a offset 1m offset 1m", "1:1: parse error: offset may not be set multiple times");
    bad("a @ Inf", "1:1: parse error: timestamp out of bounds for @ modifier: +Inf");
    bad(
        "a[5m][5m:]",
        "1:1: parse error: subquery is only allowed on instant vector, got matrix instead",
    );
    good("a[5m+1m]", "a[5m + 1m]");
    assert!(parse_all("a{b=~\"(\"}").unwrap_err().to_string().contains("error parsing regexp"));
}

#[test]
fn selectors_that_list_may_match_everything() {
    let listing = |text| parse_listing(text);
    for text in ["{}", "{__name__=~\".*\"}", "{a=\"\"}", "up", "{a!=\"b\"}"] {
        assert!(matches!(listing(text), Ok(Expr::Vector(_))), "{text}");
    }
    let twice = "1:1: parse error: metric name must not be set twice: \"a\" or \"b\"";
    let error = listing("a{__name__=\"b\"}").unwrap_err();
    assert_eq!(error.to_string(), twice);
    assert!(listing("sum({})").is_err(), "only the whole text");
    assert!(listing("{}[5m]").is_err(), "only the whole text");
}

#[test]
fn calls_and_aggregations() {
    good("rate(up[5m])", "rate(up[5m])");
    good("hour()", "hour()");
    good("round(up, 5)", "round(up, 5)");
    good("label_join(up, 'a', ',')", "label_join(up, \"a\", \",\")");
    good("sum by (a) (up)", "sum by (a) (up)");
    good("sum(up) by (a,b,)", "sum by (a, b) (up)");
    good("sum without() (up)", "sum without () (up)");
    good("sum by () (up)", "sum(up)");
    good("topk(5, up)", "topk(5, up)");
    good("count_values('x', up)", "count_values(\"x\", up)");
    good("SUM BY (a) (up)", "sum by (a) (up)");
    good("limitk(2, up)", "limitk(2, up)");
    bad("nope(up)", "1:1: parse error: unknown function with name \"nope\"");
    bad("floor()", "1:1: parse error: expected 1 argument(s) in call to \"floor\", got 0");
    bad(
        "hour(a, b)",
        "1:1: parse error: expected at most 1 argument(s) in call to \"hour\", got 2",
    );
    bad(
        "label_join(a, 'b')",
        "1:1: parse error: expected at least 3 argument(s) in call to \"label_join\", got 2",
    );
    bad(
        "rate(up)",
        "1:6: parse error: expected type range vector in call to function \"rate\", \
         got instant vector",
    );
    bad(
        "sum(1)",
        "1:5: parse error: expected type instant vector in aggregation expression, got scalar",
    );
    bad(
        "topk(up, up)",
        "1:6: parse error: expected type scalar in aggregation parameter, got instant vector",
    );
    bad("sum()", "1:1: parse error: no arguments for aggregate expression provided");
    bad(
        "topk(up)",
        "1:1: parse error: wrong number of arguments for aggregate expression provided, \
         expected 2, got 1",
    );
    bad("sum(a,)", "1:6: parse error: trailing commas not allowed in function call args");
    bad("sum(", "1:5: parse error: unclosed left parenthesis");
    bad("(a))", "1:5: parse error: unexpected right parenthesis ')'");
    bad(
        "sum by a (up)",
        "1:8: parse error: unexpected identifier \"a\" in grouping opts, expected \"(\"",
    );
    bad("sum up", "1:5: parse error: unexpected identifier \"up\"");
    bad(
        "-up[5m]",
        "1:1: parse error: unary expression only allowed on expressions of type scalar or \
         instant vector, got \"range vector\"",
    );
}

#[test]
fn experimental_modifiers() {
    good("a offset 1m smoothed", "a smoothed offset 1m");
    good("a[5m]anchored @ 1", "a[5m] anchored @ 1.000");
    bad("a[5m:] anchored", "1:1: parse error: anchored modifier is not supported for subqueries");
    bad("abs(a) smoothed", "1:1: parse error: smoothed modifier not implemented");
    bad(
        "a[5m] smoothed anchored",
        "1:1: parse error: anchored and smoothed modifiers cannot be used together",
    );
    bad("a offset -step() offset 1m", "1:1: parse error: offset may not be set multiple times");
    bad(
        "info(a, b)",
        "1:9: parse error: expected label selectors only, got vector selector instead",
    );
    bad("info(a, abs(b))", "1:9: parse error: expected label selectors only");
}

#[test]
fn experimental_functions_need_their_option() {
    let message = |text| parse(text).unwrap_err().message;
    for (text, what) in [
        ("mad_over_time(a[5m])", "function \"mad_over_time\" is not enabled"),
        ("limitk(1, a)", "limitk() is experimental and not enabled"),
        ("info(a)", "function \"info\" is not enabled"),
        ("a[5m] anchored", "anchored modifier is experimental and not enabled"),
        ("a smoothed", "smoothed modifier is experimental and not enabled"),
        ("a + fill (0) b", "binop fill modifiers are experimental and not enabled"),
    ] {
        let expected = format!("{what}; start with --query.experimental-functions");
        assert_eq!(message(text), expected, "{text}");
    }
}

/// Prometheus knows them without a flag since 3.14.
#[test]
fn calculated_durations_need_no_option() {
    for text in [
        "rate(a[2 * step()])",
        "a offset (1m + 1m)",
        "a offset step()",
        "a offset -step()",
        "a[1m + 1m]",
        "a[range()]",
        "a[max_of(step(), 1m)]",
        "sum_over_time(a[2 * 10s:10 / 2s])",
        "max_over_time(rate(a[1m])[5m * 2:step()] offset (2 * 1m))",
    ] {
        let parsed = parse(text);
        assert!(parsed.is_ok(), "{text}: {parsed:?}");
    }
    for text in ["rate(a[step() + range(1)])", "a[1m / 0]", "a offset (1m", "a[start()]"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

/// Depth is bounded, so a small stack is enough for any text.
#[test]
fn deep_texts_are_refused() {
    let run = || {
        let deep = |open: &str, close: &str, count: usize| {
            format!("{}1{}", open.repeat(count), close.repeat(count))
        };
        for text in [
            deep("(", ")", 10_000),
            deep("-(", ")", 10_000),
            deep("abs(", ")", 10_000),
            deep("sum(", ")", 10_000),
            deep("-", "", 10_000),
            deep("1+", "", 10_000),
            deep("1^", "", 10_000),
            deep("", "[5m:]", 10_000),
            deep("(", "", 10_000),
        ] {
            let error = parse_all(&text).unwrap_err();
            assert!(
                error.message.contains("nested deeper") || error.message.contains("unclosed"),
                "{error}"
            );
        }
        let fine = deep("(", ")", NESTING_MAX - 2);
        assert_eq!(parse_all(&fine).unwrap().to_string(), fine);
        assert!(parse_all(&"a".repeat(TEXT_SIZE_MAX + 1)).is_err());
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}

#[test]
fn every_example_parses() {
    for function in FUNCTIONS {
        let expr = parse_all(function.example).unwrap_or_else(|error| {
            panic!("{}: {error}", function.example);
        });
        assert_eq!(expr.value_type(), function.returns, "{}", function.name);
    }
}

/// Seeded random texts, made of pieces that are likely to fit together.
#[test]
fn random_texts() {
    const PIECES: &[&str] = &[
        "a",
        "b{c=\"d\"}",
        "{__name__=~\"x\"}",
        "(",
        ")",
        "[5m]",
        "[1h:5m]",
        "[",
        "]",
        "1",
        "0x",
        "1.5",
        "5m",
        "-",
        "+",
        "*",
        "^",
        " and ",
        " or ",
        " unless ",
        " offset ",
        " @ ",
        "start()",
        "sum",
        " by ",
        "(a)",
        "rate(",
        ",",
        "\"s\"",
        "`r",
        "'",
        "{",
        "}",
        "=",
        "=~",
        "!",
        "==",
        " bool ",
        " on(a) ",
        " group_left ",
        "topk(1,",
        "\n",
        "#",
        "inf",
        "é",
        "\\",
        "\u{1}",
    ];
    let mut state: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut random = move |bound: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound
    };
    for _ in 0..20_000 {
        let mut text: Vec<u8> =
            (0..1 + random(12)).flat_map(|_| PIECES[random(PIECES.len())].bytes()).collect();
        fuzzing::fuzz_parse(&text);
        let at = random(text.len());
        text[at] = random(128) as u8;
        fuzzing::fuzz_parse(&text);
    }
}
