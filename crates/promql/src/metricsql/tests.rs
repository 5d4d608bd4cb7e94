//! Tables of good and bad expressions.

use crate::metricsql::*;
use crate::{NESTING_MAX, fuzzing};

/// `text` parses and prints as `printed`, which parses to the same print.
#[track_caller]
fn good(text: &str, printed: &str) {
    let expr = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(expr.to_string(), printed);
    let again = parse(printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(again.to_string(), printed);
}

/// `text` prints as it is.
#[track_caller]
fn same(text: &str) {
    good(text, text);
}

/// `text` is refused with `message`, position included.
#[track_caller]
fn bad(text: &str, message: &str) {
    assert_eq!(parse(text).expect_err(text).to_string(), message);
}

#[test]
fn literals() {
    same("1");
    good("+1", "1");
    good("-1", "-1");
    good("1_000", "1000");
    good("0x1F + 0b11 + 0o17 + 017", "64");
    good("1.5Ki", "1536");
    good("2kb", "2000");
    good("1M", "1000000");
    good("3GiB", "3221225472");
    good(".5e1", "5");
    good("inf", "Inf");
    good("-INF", "-Inf");
    good("nan", "NaN");
    good("1e100", "1e100");
    good("90m", "1h30m");
    good("1.5h", "1h30m");
    good("1H30m", "1h30m");
    good("1d-2h", "22h");
    same("5i");
    same("1h5i");
    same("0.5ms");
    good("$__interval", "1i");
    good("1h * 2", "1h * 2");
    good("-1h", "0 - 1h");
    good("'it\\'s'", "\"it's\"");
    good("`a\\n` + \"b\"", "\"a\\\\nb\"");
    good("# c\n1 # d\n+ 2", "3");
    bad("", "unknown position: parse error: no expression found in input");
    bad("# only", "1:1: parse error: no expression found in input");
    bad("1e", "1:1: parse error: bad number \"1\"");
    bad("1__0", "1:1: parse error: bad number \"1__0\"");
    bad("\"a", "1:1: parse error: unterminated string \"\\\"a\"");
    bad("\"\\xff\"", "1:1: parse error: bad string \"\\xff\"");
    bad("a $", "1:3: parse error: unexpected character \"$\"");
}

#[test]
fn operators() {
    good("a + b * c", "a + (b * c)");
    good("a * b + c", "(a * b) + c");
    good("a - b - c", "(a - b) - c");
    good("a ^ b ^ c", "a ^ (b ^ c)");
    good("a default b if c or d and e == f", "a default (b if (c or (d and (e == f))))");
    good("a IFNOT b unless c", "a ifnot (b unless c)");
    good("a % b atan2 c", "(a % b) atan2 c");
    good("a == BOOL b", "a == bool b");
    good("a + on (x, y,) b", "a + on(x,y) b");
    good("a / ignoring() b", "a / ignoring() b");
    good("a * on(x) group_left b", "a * on(x) group_left() b");
    good("a * on(x) GROUP_RIGHT(y) b", "a * on(x) group_right(y) b");
    same("a * on(x) group_left(*) prefix \"p_\" b");
    same("a * on(\"x y\",z) b");
    good("a + fill(0) b", "a + fill(0) b");
    good("a + fill_left(1) fill_right(-Inf) b", "a + fill_left(1) fill_right(-Inf) b");
    good("a + fill_left(2) fill_right(2) b", "a + fill(2) b");
    good("q == (1, 2, 3,)", "q == (1, 2, 3)");
    good("a + fill", "a + {\"fill\"}");
    good("a and and", "a and {\"and\"}");
    bad("a + bool b", "1:5: parse error: bool modifier cannot be applied to \"+\"");
    bad("a and on(x) group_left() b", "1:13: parse error: group_left cannot be applied to \"and\"");
    bad("a if fill(0) b", "1:6: parse error: fill modifier cannot be applied to \"if\"");
    bad("a + fill(b) c", "1:10: parse error: unexpected \"b\", expected a number");
    bad("a + on(x) group_left(*, y) b", "1:23: parse error: unexpected \",\", expected \")\"");
    bad("a +", "1:4: parse error: unexpected end of input, expected an expression");
    bad("a +\n  * b", "2:3: parse error: unexpected \"*\", expected an expression");
    bad("a b", "1:3: parse error: unexpected \"b\", expected an operator or the end");
    bad("a = b", "1:3: parse error: unexpected \"=\", expected an operator or the end");
}

#[test]
fn signs() {
    good("-a", "0 - a");
    good("- - a", "0 - (0 - a)");
    good("+-+a", "0 - a");
    good("-a ^ b", "0 - (a ^ b)");
    good("-2 ^ 2", "-4");
    good("(-2) ^ 2", "4");
    good("(-2) ^ a", "(-2) ^ a");
    good("-a * b", "0 - (a * b)");
    good("a * -b * c", "(a * (0 - b)) * c");
    good("a * -b ^ c", "a * (0 - (b ^ c))");
    good("a ^ -b ^ c", "a ^ (0 - (b ^ c))");
    good("a - -1", "a - -1");
    good("1 - -1", "2");
    good("0 * -1", "(0 * -1)");
    good("1 / (0 * -1)", "-Inf");
    // VictoriaMetrics binds a suffix to the operand that has the sign.
    good("m @ -1 offset 5m", "m @ (0 - (1 offset 5m))");
    good("m @ -a[5m]", "m @ (0 - a[5m])");
    good("m @ -WITH (a = 1) a", "m @ (-1)");
    assert!(parse("m @ WITH (a = 1) a").is_err());
    good("m @ (-1) offset 5m", "m offset 5m @ (-1)");
}

#[test]
fn metric_names_are_kept_where_it_is_said() {
    same("rate(m[5m]) keep_metric_names");
    good("a + b keep_metric_names", "(a + b) keep_metric_names");
    good("a + b * c keep_metric_names", "a + (b * c) keep_metric_names");
    good("a * b + c keep_metric_names", "((a * b) + c) keep_metric_names");
    good("a + -b keep_metric_names", "(a + (0 - b)) keep_metric_names");
    good("(a + b) keep_metric_names / c", "(a + b) keep_metric_names / c");
    good("a + abs(b) keep_metric_names", "a + (abs(b) keep_metric_names)");
    good("a + (abs(b)) keep_metric_names", "(a + (abs(b))) keep_metric_names");
    bad(
        "a keep_metric_names",
        "1:3: parse error: unexpected \"keep_metric_names\", expected an operator or the end",
    );
}

#[test]
fn constants() {
    good("1 + 2 * 3", "7");
    good("a * (2 + 3)", "a * 5");
    good("a * 2 * 3", "(a * 2) * 3");
    good("1 < 2", "1");
    good("2 < 1", "NaN");
    good("2 < bool 1", "0");
    good("nan == nan", "NaN");
    good("nan == bool nan", "1");
    good("nan default 2", "2");
    good("\"a\" == \"a\"", "1");
    good("\"a\" > \"b\"", "NaN");
    good("\"a\" != bool \"a\"", "0");
    good("rate(m[5m] @ (1 + 2))", "rate(m[5m] @ 3)");
}

#[test]
fn selectors() {
    same("m");
    good("m{}", "m");
    same("{}");
    good(
        "m { a = 'b' , c != \"d\" , e =~ `f.*` , g !~ 'h' , }",
        "m{a=\"b\",c!=\"d\",e=~\"f.*\",g!~\"h\"}",
    );
    same("m{a=\"1\" or b=\"2\",c=\"3\"}");
    same("{a=\"1\" or b=\"2\"}");
    good("{a=\"1\", OR=\"2\" OR b=\"3\",}", "{a=\"1\",OR=\"2\" or b=\"3\"}");
    good("{__name__=\"m\",a=\"b\"}", "m{a=\"b\"}");
    good("{a=\"b\",__name__=\"m\"}", "m{a=\"b\"}");
    good("{\"a b\", \"c d\"=\"e\"}", "{\"a b\",\"c d\"=\"e\"}");
    good("{\"m\",a=\"1\" or b=\"2\"}", "m{a=\"1\" or b=\"2\"}");
    same("{\"m\",a=\"1\" or \"n\" or b=\"2\"}");
    good("m{a=\"b\",a=\"b\"}", "m{a=\"b\"}");
    good("m{a=\"x\" + 'y'}", "m{a=\"xy\"}");
    same("{__graphite__=\"a.*.b{1,2}\"}");
    good("a\\-b{c\\x2dd=\"e\"}", "{\"a-b\",\"c-d\"=\"e\"}");
    same("a:b.c");
    same("température{größe=\"é\"}");
    good("{__name__=\"offset\"}", "{\"offset\"}");
    same("sum");
    same("sum{a=\"b\"}");
    bad("m{", "1:3: parse error: unexpected end of input, expected the name of a label");
    bad("m{a}", "1:3: parse error: there is no template \"a\"");
    bad("m{a=}", "1:5: parse error: unexpected \"}\", expected a string");
    bad("m{a=b}", "1:5: parse error: there is no template \"b\"");
    bad("m{a=\"b\" c}", "1:9: parse error: unexpected \"c\", expected \",\", \"or\" or \"}\"");
    bad("m{a=\"b\",,}", "1:9: parse error: unexpected \",\", expected the name of a label");
    bad("m{__name__=\"n\"}", "1:3: parse error: metric name must not be set twice: \"m\" or \"n\"");
    bad(
        "m{a<\"b\"}",
        "1:4: parse error: unexpected \"<\", expected \"=\", \"!=\", \"=~\", \"!~\", \",\" or \"}\"",
    );
    assert!(
        parse("m{a=~\"(\"}")
            .unwrap_err()
            .to_string()
            .starts_with("1:3: parse error: error parsing regexp")
    );
}

#[test]
fn suffixes() {
    same("m[5m]");
    same("m[5m:1m]");
    same("m[5m:]");
    same("m[:1m]");
    same("m[5i]");
    good("m[100]", "m[1m40s]");
    good("m[1.5]", "m[1s500ms]");
    good("m[ 5m : 1m ]", "m[5m:1m]");
    good("m[$__interval]", "m");
    good("sum(m)[$__rate_interval]", "sum(m)[1i]");
    good("m[5m:$__interval]", "m[5m:1i]");
    good("m OFFSET 5m", "m offset 5m");
    same("m offset -1h30m");
    same("m offset 1i-5m");
    same("m[5m-1i]");
    good("m[5m-10m]", "m[0s-5m]");
    good("m offset -90", "m offset -1m30s");
    good("m @ 10 offset 5m", "m offset 5m @ 10");
    good("m[5m] @ end()", "m[5m] @ end()");
    good("m @ (now() - 1h)", "m @ (now() - 1h)");
    good("m @ -n", "m @ (0 - n)");
    good("(a + b)[5m:] offset 1h", "(a + b)[5m:] offset 1h");
    good("(m offset 5m)[5m]", "(m offset 5m)[5m]");
    good("a + b offset 5m", "a + (b offset 5m)");
    good("5[5m]", "5[5m]");
    good("(-5)[5m]", "(-5)[5m]");
    good("sum(m) by (a)[5m]", "(sum(m) by(a))[5m]");
    bad("m[]", "1:3: parse error: unexpected \"]\", expected a duration");
    bad("m[5M]", "1:3: parse error: unexpected \"5M\", expected a duration or a number of seconds");
    bad("m[5m", "1:5: parse error: unexpected end of input, expected \"]\"");
    bad("m[5m][5m]", "1:6: parse error: unexpected \"[\", expected an operator or the end");
    bad(
        "m offset 1m offset 1m",
        "1:13: parse error: unexpected \"offset\", expected an operator or the end",
    );
    bad("m @ 1 @ 2", "1:7: parse error: unexpected \"@\", expected an operator or the end");
    bad("m @", "1:4: parse error: unexpected end of input, expected an expression");
}

#[test]
fn calls_and_aggregations() {
    good("RATE(m)", "rate(m)");
    good("time()", "time()");
    good("(a, b,)", "(a, b)");
    same("union(a, b)");
    same("()");
    good("((a))", "a");
    good("Sum(a, b,) BY (c, d,) LIMIT 5", "sum(a, b) by(c,d) limit 5");
    good("sum without (a) (m) limit 3", "sum(m) without(a) limit 3");
    good("sum by () (m)", "sum(m) by()");
    good("count_values('x', m) by (\"a b\")", "count_values(\"x\", m) by(\"a b\")");
    good("sum or by", "sum or {\"by\"}");
    bad("nope(m)", "1:1: parse error: unknown function \"nope\"");
    bad("1 + nope(m)", "1:5: parse error: unknown function \"nope\"");
    bad("sum(m", "1:6: parse error: unexpected end of input, expected \",\" or \")\"");
    bad("sum(,)", "1:5: parse error: unexpected \",\", expected an expression");
    bad("sum(m) by a", "1:11: parse error: unexpected \"a\", expected \"(\"");
    bad("sum(m) by (1)", "1:12: parse error: unexpected \"1\", expected a name or \")\"");
    bad(
        "sum(m) limit 1.5",
        "1:14: parse error: unexpected \"1.5\", expected a whole number of groups",
    );
    bad(
        "sum by (a) (m) by (b)",
        "1:16: parse error: unexpected \"by\", expected an operator or the end",
    );
}

#[test]
fn templates() {
    good("WITH (x = 5) x + m", "5 + m");
    good("WITH (x = m) x{a=\"b\"}", "m{a=\"b\"}");
    good("WITH (c = {job=\"a\"}) m{c, b=\"c\"}", "m{job=\"a\",b=\"c\"}");
    good("WITH (c = {job=\"a\"}) m{b=\"1\",c or c}", "m{b=\"1\",job=\"a\" or job=\"a\"}");
    good("WITH (c = {}) m{c}", "m");
    good("WITH (x = m{a=\"b\"}[5m]) rate(x{c=\"d\"})", "rate(m{a=\"b\",c=\"d\"}[5m])");
    good("WITH (x = m{a=\"1\" or a=\"2\"}) x{c=\"d\"}", "m{a=\"1\",c=\"d\" or a=\"2\",c=\"d\"}");
    good("WITH (f(a, b) = a / (a + b)) f(x, y)", "x / (x + y)");
    good("WITH (f(a) = a + a) f{b=\"c\"}", "f{b=\"c\"}");
    good("WITH (f(q, w) = rate(q[w])) f(m, 5m)", "rate(m[5m])");
    good("WITH (w = 90, s = 1m) m[w:s] offset w", "m[1m30s:1m] offset 1m30s");
    good("WITH (f(l) = sum(m) by (l, c)) f((a, b))", "sum(m) by(a,b,c)");
    good("WITH (l = (a, b)) sum(m) by (l, b)", "sum(m) by(a,b)");
    good("WITH (s = \"y\") m{a=\"x\" + s + \"z\"}", "m{a=\"xyz\"}");
    good("WITH (s = \"y\") label_set(m, \"a\", s + \"z\")", "label_set(m, \"a\", \"yz\")");
    good(
        "WITH (p = \"x\") a * on(b) group_left(c) prefix p d",
        "a * on(b) group_left(c) prefix \"x\" d",
    );
    good("WITH (x = x) x", "x");
    good("WITH (x = y, y = 1) x", "y");
    good("WITH (x = 1, y = x) WITH (x = 2) x + y + m", "3 + m");
    good("WITH (f(x) = x, x = 3) f(x)", "3");
    good("WITH (rate(x) = x) rate(m)", "m");
    good("WITH (sum(x) = x + 1) sum(m) by (a)", "m + 1");
    good("WITH (a = nope(m)) 1", "1");
    good("WITH () m", "m");
    good("a + WITH (x = 2,) x * b", "a + (2 * b)");
    good("with", "{\"with\"}");
    good("WITH (ru = 5) ru", "5");
    good("ru(a, b)", "(clamp_min(b - clamp_min(a, 0), 0) / clamp_min(b, 0)) * 100");
    good("alias(m, \"n\")", "label_set(m, \"__name__\", \"n\")");
    good("range_median(m)", "range_quantile(0.5, m)");
    good(
        "ttf(m)",
        "smooth_exponential(clamp_max(clamp_max(0 - m, 0) / clamp_max(deriv_fast(m), 0), 31536000), \
         clamp_max(step() / 300, 1))",
    );
    assert_eq!(expand_with("WITH (x = 1) x").unwrap(), "1");
}

#[test]
fn bad_templates() {
    bad("WITH (x = 1, x = 2) x", "1:14: parse error: template \"x\" is defined twice");
    bad("WITH (f(a, a) = a) f(1, 2)", "1:8: parse error: template has two parameters \"a\"");
    bad("WITH (f(a) = a) f(1, 2)", "1:17: parse error: template \"f\" takes 1 argument(s), got 2");
    bad("WITH (x = 1) x(2)", "1:14: parse error: template \"x\" takes 0 argument(s), got 1");
    bad("WITH (f(x) = x(1)) f(2)", "1:14: parse error: template \"x\" takes 0 argument(s), got 1");
    bad("ru(m)", "1:1: parse error: template \"ru\" takes 2 argument(s), got 1");
    bad(
        "WITH (x = sum(m)) x{a=\"b\"}",
        "1:19: parse error: filters can only be added to a template that is a selector",
    );
    bad(
        "WITH (x = m) n{x}",
        "1:16: parse error: template \"x\" has a metric's name, expected {...}",
    );
    bad(
        "WITH (x = {a=\"1\" or b=\"2\"}) n{x}",
        "1:31: parse error: template \"x\" has an \"or\", expected {...}",
    );
    bad("WITH (x = 1) n{x}", "1:16: parse error: template \"x\" is no {...}, expected {...}");
    bad(
        "WITH (x = {a=\"1\" or b=\"2\"}) x{c=\"3\" or d=\"4\"}",
        "1:29: parse error: filters with \"or\" cannot be added to a template with \"or\"",
    );
    bad("WITH (x = 1) m{a=x}", "1:18: parse error: template \"x\" is no string");
    bad("WITH (x = m) m[x]", "1:16: parse error: template \"x\" is no duration");
    bad("m[x]", "1:3: parse error: there is no template \"x\"");
    bad("WITH (x = 1) sum(m) by (x)", "1:14: parse error: template \"x\" is no list of labels");
    bad("WITH x = 1", "1:6: parse error: unexpected \"x\", expected an operator or the end");
    bad("WITH (x 1) x", "1:9: parse error: unexpected \"1\", expected \"=\"");
    bad("WITH (1 = 1) x", "1:7: parse error: unexpected \"1\", expected the name of a template");
    bad("WITH (x = nope(m)) 1 + x", "1:11: parse error: unknown function \"nope\"");
}

/// `text` is printed in these lines, which mean the same.
#[track_caller]
fn pretty(text: &str, lines: &str) {
    let printed = prettify(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(printed, lines);
    assert_eq!(prettify(&printed).unwrap(), lines);
    assert_eq!(expand_with(&printed), expand_with(text));
}

#[test]
fn lines() {
    pretty("1+0x1F*1.5Ki", "1 + (0x1F * 1.5Ki)");
    pretty("-a^-'b'", "-(a ^ (-'b'))");
    pretty("m[90s:$__interval]offset -1h@end()", "m[90s:$__interval] offset -1h @ end()");
    pretty("a+on(x)group_left(*)prefix 'p' b", "a + on(x) group_left(*) prefix \"p\" b");
    pretty("(a+b)keep_metric_names*c", "(a + b) keep_metric_names * c");
    pretty("SUM(m)BY(a)LIMIT 5", "SUM(m) by(a) limit 5");
    pretty(
        "WITH(c={a='b'},f(q)=q+q,)f(m{c,d=\"e\"})",
        "WITH (c = {a=\"b\"}, f(q) = q + q) f(m{c,d=\"e\"})",
    );
    pretty("a+{\"b c\",d=~'e' or f!=\"g\"}", "a + {\"b c\",d=~\"e\" or f!=\"g\"}");
    pretty("(on)", "{\"on\"}");
    let (long, other) = ("l".repeat(50), "o".repeat(50));
    pretty(&format!("{long}/-{other}"), &format!("{long}\n  /\n(-{other})"));
    pretty(
        &format!("rate({long}{{a=\"{other}\" or b='c'}}[5m]) keep_metric_names"),
        &format!(
            "rate(\n  {long}{{\n    a=\"{other}\"\n      or\n    b=\"c\"\n  }}[5m]\n) keep_metric_names"
        ),
    );
    pretty(
        &format!("WITH (x = {long} + {other}, y = 1) ({long} + x)[5m:]"),
        &format!(
            "WITH (\n  x = (\n    {long}\n      +\n    {other}\n  ),\n  y = 1,\n)\n({long} + x)[5m:]"
        ),
    );
    assert!(prettify("sum(").is_err());
}

/// Templates that double what they use stop at the limit, not when the memory is full.
#[test]
fn templates_cannot_blow_up() {
    let doubling = |last: &str, body: &dyn Fn(&str) -> String| {
        let mut text = String::from("WITH (t0 = ");
        text.push_str(last);
        for idx in 1..60 {
            text.push_str(&format!(", t{idx} = {}", body(&format!("t{}", idx - 1))));
        }
        text + ") t59"
    };
    for text in [
        doubling("m", &|name| format!("({name}, {name})")),
        doubling("\"ab\"", &|name| format!("{name} + {name}")),
        doubling("{a=\"b\"}", &|name| format!("{{{name},{name}}}")),
        doubling("m", &|name| format!("WITH (f(x) = (x, x)) f({name})")),
    ] {
        let message = parse(&text).unwrap_err().message;
        assert!(message.contains("is larger than"), "{message}");
    }
    let mut many = String::from("WITH (");
    for idx in 0..600 {
        many.push_str(&format!("t{idx} = 1,"));
    }
    let message = parse(&(many + ") t1")).unwrap_err().message;
    assert!(message.contains("templates at one place"), "{message}");
    let name = "n".repeat(200_000);
    let sets = vec!["a=\"b\""; 50_000].join(" or ");
    assert!(parse(&format!("{name}{{{sets}}}")).unwrap_err().message.contains("is larger than"));
}

/// Depth is bounded, so a small stack is enough for any text.
#[test]
fn deep_texts_are_refused() {
    let run = || {
        let deep = |open: &str, close: &str, count: usize| {
            format!("{}m{}", open.repeat(count), close.repeat(count))
        };
        for text in [
            deep("(", ")", 10_000),
            deep("-", "", 10_000),
            deep("-(", ")", 10_000),
            deep("abs(", ")", 10_000),
            deep("sum(", ")", 10_000),
            deep("m+", "", 10_000),
            deep("m^", "", 10_000),
            deep("(", "[5m:])", 10_000),
            deep("m @ (", ")", 10_000),
            deep("m @ -(", ")", 10_000),
            format!("m @ {}", deep("-", "", 10_000)),
            deep("WITH (x = ", ") x", 10_000),
            deep("WITH (x = 1) ", "", 10_000),
            deep("WITH (f(x) = abs(x)) f(", ")", 10_000),
        ] {
            let message = parse(&text).unwrap_err().message;
            assert!(message.contains("nested deeper"), "{message}");
        }
        // Printed with parentheses, the deepest tree is still parsed.
        for (open, close) in [("m+", ""), ("abs(", ")"), ("m^", ""), ("-", "")] {
            let fine = parse(&deep(open, close, NESTING_MAX - 1)).unwrap().to_string();
            good(&fine, &fine);
            assert_eq!(expand_with(&prettify(&fine).unwrap()).unwrap(), fine);
        }
        let kept = deep("(m + ", ") keep_metric_names", NESTING_MAX - 1);
        good(&kept, &kept);
        assert!(parse(&"a".repeat(TEXT_SIZE_MAX + 1)).is_err());
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}

#[test]
fn every_example_of_a_template_parses() {
    for template in TEMPLATES {
        good(template.example, &parse(template.example).unwrap().to_string());
    }
}

/// What random texts are made of; many of them fit together.
const PIECES: &[&str] = &[
    "a",
    "b{c=\"d\"}",
    "{x=\"y\" or z=~\"w\"}",
    "{",
    "}",
    "(",
    ")",
    "[5m]",
    "[1h:5m]",
    "[1i-5m:]",
    "[",
    "]",
    "1",
    "-1",
    "0x1f",
    "1.5Ki",
    "5m",
    "1h-30m",
    "-",
    "+",
    "*",
    "^",
    " and ",
    " or ",
    " default ",
    " ifnot ",
    " offset ",
    " offset -5m",
    " @ ",
    "end()",
    "sum",
    " by ",
    "(a)",
    " limit 3",
    "rate(",
    ",",
    "\"s\"",
    "`r`",
    "'",
    "=",
    "=~",
    "!=",
    "==",
    " bool ",
    " on(a) ",
    " group_left(*) prefix \"p\" ",
    " fill(0) ",
    " keep_metric_names ",
    "topk(1,",
    "\n",
    "#",
    "inf",
    "nan",
    "é",
    "\\-",
    "$__interval",
    "WITH (t = ",
    "f(x) = ",
    " t ",
    "ru(",
    "m{t}",
    "WITH (t = {a=\"b\"}, f(x, y) = x / y) ",
    "f(",
    "f(1, a)",
];

/// Seeded.
#[test]
fn random_texts() {
    let mut state: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut random = move |bound: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound
    };
    for _ in 0..20_000 {
        let mut text: Vec<u8> =
            (0..1 + random(12)).flat_map(|_| PIECES[random(PIECES.len())].bytes()).collect();
        fuzzing::fuzz_metricsql(&text);
        let at = random(text.len());
        text[at] = random(128) as u8;
        fuzzing::fuzz_metricsql(&text);
    }
}

#[test]
fn templates_are_refused_where_they_are_not_expected() {
    for (text, is_taken) in [
        ("WITH (x = up) x", false),
        ("with(x = up) x", false),
        ("sum(With # why\n (x = up) x)", false),
        ("sum without (host) (up)", true),
        ("sum(up) WITHOUT(host)", true),
        ("sum(bandwidth)", true),
        ("with", true),
        ("up", true),
    ] {
        assert!(parse(text).is_ok(), "{text}");
        assert_eq!(parse_without_templates(text).is_ok(), is_taken, "{text}");
    }
}
