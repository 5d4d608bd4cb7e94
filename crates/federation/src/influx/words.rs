//! What is said in InfluxQL: names and texts in quotes, and conditions on tags.
//!
//! A condition may let through more than the matchers do, never less: what comes is looked at again
//! here. So only that is said which both sides read alike: values that must be there, and what they
//! begin with. What Prometheus calls an empty label, anchors and Go's regular expressions stay here.

pub use http_client::influxdb::is_sayable;
use http_client::influxql::quoted;
use index::{Demand, demand_of};
use model::{Matcher, TimeRange};
use wire::influx::FieldType;

/// Values of one matcher that are said; more are looked for here.
const VALUES_MAX: usize = 500;
/// Bytes of them.
const VALUES_SIZE_MAX: usize = 32 << 10;

/// A table of InfluxQL.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// The database.
    pub database: &'a str,
    /// Its retention policy.
    pub policy: &'a str,
    /// The measurement.
    pub measurement: &'a str,
}

/// How much of a series is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All samples.
    Whole,
    /// Whether it is there.
    First,
}

/// The statement that asks for fields of a table.
pub fn select(
    table: Table<'_>,
    fields: &[&(String, FieldType)],
    (range, condition): (&TimeRange, &str),
    extent: Extent,
) -> String {
    let column = |(at, field): (usize, &&(String, FieldType))| {
        let (name, kind) = *field;
        let kind = match kind {
            FieldType::Float => "float",
            FieldType::Integer | FieldType::Long => "integer",
            FieldType::Boolean => "boolean",
            FieldType::String => "string",
        };
        format!("{}::{kind} AS c{at}", quoted(name))
    };
    let columns: Vec<String> = fields.iter().enumerate().map(column).collect();
    let Table { database, policy, measurement } = table;
    let limit = if extent == Extent::First { " LIMIT 1" } else { "" };
    format!(
        "SELECT {} FROM {}.{}.{} WHERE {}{condition} GROUP BY *{limit}",
        columns.join(", "),
        quoted(database),
        quoted(policy),
        quoted(measurement),
        span(range)
    )
}

/// A condition on time.
pub fn span(range: &TimeRange) -> String {
    // Its first and last instant are no numbers that it reads.
    let (start, end) = (range.start.max(i64::MIN + 2), range.end.min(i64::MAX - 1));
    format!("time >= {start} AND time <= {end}")
}

/// What is said of matchers on tags, behind a condition on time.
pub fn conditions<'m>(matchers: impl Iterator<Item = &'m Matcher>) -> String {
    matchers.filter_map(condition).map(|one| format!(" AND {one}")).collect()
}

/// A text as a value: in single quotes.
fn text(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('\'');
    for c in value.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

/// An expression for what begins so, between slashes.
fn beginning(prefix: &str) -> String {
    let mut pattern = String::from("/^");
    for c in prefix.chars() {
        match c {
            '\n' => pattern.push_str("\\n"),
            // The slash behind a backslash would not be the end, whatever stands before it.
            '\\' => pattern.push_str("\\x5C"),
            '/' => pattern.push_str("\\x2F"),
            // Every sign of ASCII may have a backslash before it, and then stands for itself.
            c if c.is_ascii_punctuation() && c != '_' => pattern.extend(['\\', c]),
            c => pattern.push(c),
        }
    }
    pattern.push('/');
    pattern
}

/// Whether a name can be said as that of a tag: `_name` and its kin mean something else there, and
/// `time` is no tag anywhere.
pub fn is_tag(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('_') && name != "time" && is_sayable(name)
}

fn condition(matcher: &Matcher) -> Option<String> {
    if !is_tag(&matcher.name) {
        return None;
    }
    let demand = demand_of(matcher)?;
    let (Demand::Values(values) | Demand::Prefixes(values)) = &demand;
    let size: usize = values.iter().map(String::len).sum();
    let is_short = values.len() <= VALUES_MAX && size <= VALUES_SIZE_MAX;
    if values.is_empty() || !is_short || !values.iter().all(|value| is_sayable(value)) {
        return None;
    }
    // A field may have the name of a tag.
    let tag = format!("{}::tag", quoted(&matcher.name));
    let one = |value: &String| match &demand {
        Demand::Values(_) => format!("{tag} = {}", text(value)),
        Demand::Prefixes(_) => format!("{tag} =~ {}", beginning(value)),
    };
    let all: Vec<String> = values.iter().map(one).collect();
    match all.as_slice() {
        [one] => Some(one.clone()),
        all => Some(format!("({})", all.join(" OR "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::MatchOp;

    #[track_caller]
    fn check(name: &str, op: MatchOp, value: &str, expected: &str) {
        let matcher = Matcher::new(name, op, value);
        assert_eq!(conditions(std::iter::once(&matcher)), expected, "{matcher}");
    }

    #[test]
    fn only_what_both_sides_read_alike_is_said() {
        check("host", MatchOp::Equal, "a", r#" AND "host"::tag = 'a'"#);
        check("h\"o\\st\n", MatchOp::Equal, "a", r#" AND "h\"o\\st\n"::tag = 'a'"#);
        check("host", MatchOp::Equal, "it's \\ \n é", r#" AND "host"::tag = 'it\'s \\ \n é'"#);
        check("host", MatchOp::Regex, "a|b'", r#" AND ("host"::tag = 'a' OR "host"::tag = 'b\'')"#);
        check("host", MatchOp::Regex, "a/\\.é_\n'.*", " AND \"host\"::tag =~ /^a\\x2F\\.é_\\n\\'/");
        check("host", MatchOp::Regex, "a\\\\.*", " AND \"host\"::tag =~ /^a\\x5C/");
        check(
            "host",
            MatchOp::Regex,
            "(x|y).*z",
            " AND (\"host\"::tag =~ /^x/ OR \"host\"::tag =~ /^y/)",
        );
        for (name, op, value) in [
            ("host", MatchOp::Equal, ""),
            ("host", MatchOp::NotEqual, "a"),
            ("host", MatchOp::NotRegex, "a|b"),
            ("host", MatchOp::Regex, "a|"),
            ("host", MatchOp::Regex, ".*a"),
            ("host", MatchOp::Equal, "a\r"),
            ("host", MatchOp::Equal, "a\0b"),
            ("host", MatchOp::Equal, "a\u{fffd}"),
            ("ho\rst", MatchOp::Equal, "a"),
            ("_name", MatchOp::Equal, "a"),
            ("time", MatchOp::Equal, "a"),
        ] {
            check(name, op, value, "");
        }
        let many: Vec<String> = (0..600).map(|n| format!("h{n}")).collect();
        check("host", MatchOp::Regex, &many.join("|"), "");
    }

    #[test]
    fn statements_have_their_names_in_quotes() {
        let table = Table { database: "d\"", policy: "r p", measurement: "m\\\n; DROP" };
        let fields = [("a\"b".to_string(), FieldType::Float), ("s".to_string(), FieldType::String)];
        let range = TimeRange::new(i64::MIN, 7);
        let fields: Vec<_> = fields.iter().collect();
        let found = select(table, &fields, (&range, " AND x"), Extent::First);
        assert_eq!(
            found,
            "SELECT \"a\\\"b\"::float AS c0, \"s\"::string AS c1 FROM \"d\\\"\".\"r p\".\"m\\\\\\n; DROP\" \
             WHERE time >= -9223372036854775806 AND time <= 7 AND x GROUP BY * LIMIT 1"
        );
    }
}
