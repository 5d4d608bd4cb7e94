//! Matchers as the text of a selector that a backend understands.

use super::rule::Kind;
use index::CompiledMatchers;
use model::{Labels, METRIC_NAME, MatchOp, Matcher};

/// The texts of all sets, each a selector; of no set one that selects everything.
pub fn texts(kind: Kind, sets: &[Vec<Matcher>]) -> Vec<String> {
    match sets {
        [] => vec![text(kind, &[])],
        some => some.iter().map(|set| text(kind, set)).collect(),
    }
}

/// The same as matchers.
pub fn sets_of(sets: &[Vec<Matcher>]) -> Vec<Vec<Matcher>> {
    match sets {
        [] => vec![demanding(&[])],
        some => some.iter().map(|set| demanding(set)).collect(),
    }
}

fn text(kind: Kind, set: &[Matcher]) -> String {
    let one = |matcher: &Matcher| {
        let Matcher { name, op, value } = matcher;
        format!("{}{op}{}", label_name(kind, name), quoted(value))
    };
    let all: Vec<String> = demanding(set).iter().map(one).collect();
    format!("{{{}}}", all.join(","))
}

/// A selector that every series matches is refused: it must demand something.
fn demanding(set: &[Matcher]) -> Vec<Matcher> {
    let mut set = set.to_vec();
    let demands_nothing =
        CompiledMatchers::compile(&set).is_ok_and(|compiled| compiled.matches(&Labels::default()));
    if demands_nothing {
        set.push(Matcher::new(METRIC_NAME, MatchOp::NotEqual, ""));
    }
    set
}

fn label_name(kind: Kind, name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_plain = !name.starts_with(|c: char| c.is_ascii_digit());
    if starts_plain && name.chars().all(is_plain) {
        return name.to_string();
    }
    match kind {
        Kind::Prometheus | Kind::InfluxDb => quoted(name),
        Kind::VictoriaMetrics => {
            let mut escaped = String::with_capacity(2 * name.len());
            for (at, c) in name.chars().enumerate() {
                if !is_plain(c) || (at == 0 && c.is_ascii_digit()) {
                    escaped.push('\\');
                }
                escaped.push(c);
            }
            escaped
        }
    }
}

/// A string as both languages read it.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_back_as_they_were() {
        let set = vec![
            Matcher::equal(METRIC_NAME, "cpu"),
            Matcher::new("host", MatchOp::Regex, r#"a\.b|"c""#),
            Matcher::new("zone", MatchOp::NotEqual, "é\nf"),
            Matcher::new("disk", MatchOp::NotRegex, "x.*"),
        ];
        let text = texts(Kind::Prometheus, std::slice::from_ref(&set)).remove(0);
        let expected = r#"{__name__="cpu",host=~"a\\.b|\"c\"",zone!="é\nf",disk!~"x.*"}"#;
        assert_eq!(text, expected);
        let expr = promql::parse(&text).expect("a selector");
        let read = promql::matchers_of(expr).expect("matchers");
        assert!(set.iter().all(|one| read.contains(one)), "{read:?}");
    }

    #[test]
    fn every_selector_demands_something() {
        let all = r#"{__name__!=""}"#;
        assert_eq!(texts(Kind::VictoriaMetrics, &[]), [all]);
        let set = vec![Matcher::new("a", MatchOp::Regex, ".*")];
        assert_eq!(texts(Kind::Prometheus, &[set]), [r#"{a=~".*",__name__!=""}"#]);
        assert_eq!(sets_of(&[])[0], [Matcher::new(METRIC_NAME, MatchOp::NotEqual, "")]);
    }

    #[test]
    fn odd_names_are_quoted_or_escaped() {
        let set = [vec![Matcher::equal("a.b c", "1"), Matcher::equal("0x", "2")]];
        assert_eq!(texts(Kind::Prometheus, &set), [r#"{"a.b c"="1","0x"="2"}"#]);
        assert_eq!(texts(Kind::VictoriaMetrics, &set), [r#"{a\.b\ c="1",\0x="2"}"#]);
    }
}
