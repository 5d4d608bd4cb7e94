//! The text of `--legacy`: which databases have what was before.
//!
//! ```text
//! url=http://old:8428 kind=victoriametrics until=2026-11-22T00:00:00Z timeout=10s; url=.. kind=..
//! ```

use cli::quantity;
use hyper::Uri;
use model::Timestamp;
use std::time::Duration;

/// Backends at most: each is asked by every query of old samples.
const RULES_MAX: usize = 16;
/// How long a backend may take, where nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The words of a rule.
const WORDS: &str = "url, kind, until, user, password-file, bearer-token-file, timeout, ca, export, \
                     aggregates, database, retention-policy";

/// How a backend is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By its exports.
    VictoriaMetrics,
    /// By remote read.
    Prometheus,
    /// By InfluxQL.
    InfluxDb,
}

impl Kind {
    /// As the flag has it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::VictoriaMetrics => "victoriametrics",
            Kind::Prometheus => "prometheus",
            Kind::InfluxDb => "influxdb",
        }
    }
}

/// How VictoriaMetrics is to send samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// Blocks as they are on its disk, cheap for both sides, before what `-dedup.minScrapeInterval`
    /// takes away at every read.
    Blocks,
    /// Lines of JSON.
    Lines,
}

/// Where aggregations of samples that a VictoriaMetrics has are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregates {
    /// There, where it makes of them what we would.
    There,
    /// Here, of its samples.
    Here,
}

/// One backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The server, with the path that stands before those of its requests.
    pub url: String,
    /// How it is spoken to.
    pub kind: Kind,
    /// It has what is before this time, in nanoseconds.
    pub until: Timestamp,
    /// How long it may take.
    pub timeout: Duration,
    /// User of basic authentication.
    pub user: Option<String>,
    /// File with that user's password.
    pub password_file: Option<String>,
    /// File with a bearer token.
    pub bearer_token_file: Option<String>,
    /// PEM file with certificates to trust besides the system's.
    pub ca: Option<String>,
    /// How samples come; otherwise what its flags ask for.
    pub export: Option<Export>,
    /// Where aggregations are made.
    pub aggregates: Aggregates,
    /// Databases of an InfluxDB; none for all.
    pub databases: Vec<String>,
    /// Retention policies of them; none for all.
    pub policies: Vec<String>,
}

/// Parses all rules, apart by semicolons; no text is no rule.
///
/// # Errors
/// What is wrong with the first rule that is.
pub fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let rules = text.split(';').map(str::trim).filter(|rule| !rule.is_empty());
    let rules = rules.map(parse_rule).collect::<Result<Vec<_>, _>>()?;
    if RULES_MAX < rules.len() {
        return Err(format!("{} backends, the limit is {RULES_MAX}", rules.len()));
    }
    // Metrics and warnings tell them apart by it.
    let is_twice = |rule: &&Rule| 1 < rules.iter().filter(|one| one.url == rule.url).count();
    if let Some(rule) = rules.iter().find(is_twice) {
        return Err(format!("{} is there twice", rule.url));
    }
    Ok(rules)
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let (mut url, mut kind, mut until) = (None, None, None);
    let mut rule = Rule {
        url: String::new(),
        kind: Kind::Prometheus,
        until: 0,
        timeout: TIMEOUT,
        user: None,
        password_file: None,
        bearer_token_file: None,
        ca: None,
        export: None,
        aggregates: Aggregates::There,
        databases: Vec::new(),
        policies: Vec::new(),
    };
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        if value.is_empty() {
            return Err(format!("{word:?} is none of NAME=VALUE with a name of: {WORDS}"));
        }
        let owned = Some(value.to_string());
        match name {
            "url" => url = Some(parse_url(value)?),
            "kind" => kind = Some(parse_kind(value)?),
            "until" => until = Some(parse_until(value)?),
            "timeout" => rule.timeout = parse_timeout(value)?,
            "user" => rule.user = owned,
            "password-file" => rule.password_file = owned,
            "bearer-token-file" => rule.bearer_token_file = owned,
            "ca" => rule.ca = owned,
            "export" => rule.export = Some(parse_export(value)?),
            "aggregates" => rule.aggregates = parse_aggregates(value)?,
            "database" => rule.databases.push(parse_name(value)?),
            "retention-policy" => rule.policies.push(parse_name(value)?),
            // Without its value, which may be a password: errors stand in logs.
            _ => return Err(format!("{name:?} is none of the words {WORDS}")),
        }
    }
    rule.url = url.ok_or_else(|| lacks(text, "url=http://HOST:PORT"))?;
    rule.kind =
        kind.ok_or_else(|| lacks(text, "kind=victoriametrics, kind=prometheus or kind=influxdb"))?;
    rule.until = until.ok_or_else(|| {
        lacks(text, "until=TIME, from when on this server has all samples: when its clients came")
    })?;
    check_kind(&rule)?;
    Ok(rule)
}

/// Fails for words that another kind understands.
fn check_kind(rule: &Rule) -> Result<(), String> {
    let is_influx = rule.kind == Kind::InfluxDb;
    let has_names = !rule.databases.is_empty() || !rule.policies.is_empty();
    if has_names && !is_influx {
        return Err("database= and retention-policy= are for kind=influxdb".to_string());
    }
    if rule.export.is_some() && is_influx {
        return Err("export= is for kind=victoriametrics".to_string());
    }
    Ok(())
}

/// A name in which what a word cannot have is said as in a URL: `%20` is a space, `%3B` a semicolon.
fn parse_name(text: &str) -> Result<String, String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut name, mut bytes) = (Vec::with_capacity(text.len()), text.bytes());
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let pair = bytes.next().and_then(digit).zip(bytes.next().and_then(digit));
                let (high, low) = pair.ok_or_else(|| {
                    format!("{text:?} has a % without two hexadecimal digits; itself it is %25")
                })?;
                high << 4 | low
            }
            other => other,
        };
        name.push(byte);
    }
    String::from_utf8(name).map_err(|_| format!("{text:?} is no UTF-8"))
}

fn lacks(text: &str, what: &str) -> String {
    format!("{text:?} lacks {what}")
}

fn parse_url(text: &str) -> Result<String, String> {
    let uri: Uri = text.parse().map_err(|error| format!("{text:?} is no URL: {error}"))?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    match uri.scheme_str() {
        _ if authority.contains('@') => {
            Err("a URL with a password would be shown in answers; use user= and password-file="
                .to_string())
        }
        // Labels of metrics and warnings have it as it is.
        _ if text.contains(['"', '\\']) || uri.query().is_some() => {
            Err(format!("{text:?} may have a path, and neither a query nor quotes"))
        }
        Some("http" | "https") if !authority.is_empty() => {
            Ok(text.trim_end_matches('/').to_string())
        }
        _ => Err(format!("{text:?} must begin with http:// or https://")),
    }
}

fn parse_export(text: &str) -> Result<Export, String> {
    match text {
        "blocks" => Ok(Export::Blocks),
        "lines" => Ok(Export::Lines),
        _ => Err(format!("export={text} is neither export=blocks nor export=lines")),
    }
}

fn parse_aggregates(text: &str) -> Result<Aggregates, String> {
    match text {
        "there" => Ok(Aggregates::There),
        "here" => Ok(Aggregates::Here),
        _ => Err(format!("aggregates={text} is neither aggregates=there nor aggregates=here")),
    }
}

/// A kind of backend by its word.
///
/// # Errors
/// For a word that is none.
pub fn parse_kind(text: &str) -> Result<Kind, String> {
    match text {
        "victoriametrics" => Ok(Kind::VictoriaMetrics),
        "prometheus" => Ok(Kind::Prometheus),
        "influxdb" => Ok(Kind::InfluxDb),
        _ => Err(format!("kind={text} is none of victoriametrics, prometheus, influxdb")),
    }
}

/// A time that does not depend on when it is read.
///
/// # Errors
/// For a text that is none.
pub fn parse_until(text: &str) -> Result<Timestamp, String> {
    // What is relative to now would be another time after each restart.
    let is_absolute = text.starts_with(|c: char| c.is_ascii_digit());
    let time = wire::params::parse_time(text, 0).ok().filter(|_| is_absolute);
    time.ok_or_else(|| format!("until={text} is no time such as 2026-11-22T00:00:00Z"))
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    match quantity::parse_duration(text)? {
        0 => Err("timeout=0 is no time to answer in".to_string()),
        nanos => Ok(Duration::from_nanos(nanos)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_say_who_has_what() {
        let text = " url=http://old:8428/ kind=victoriametrics until=2026-11-22T00:00:00Z ;
            until=1000 timeout=500ms user=a password-file=/p ca=/c kind=prometheus
            url=https://b/select/0/prometheus; ";
        let rules = parse(text).expect("rules");
        let [first, second] = rules.as_slice() else { panic!("{rules:?}") };
        assert_eq!((first.url.as_str(), first.kind), ("http://old:8428", Kind::VictoriaMetrics));
        assert_eq!((first.until, first.timeout), (1_795_305_600_000_000_000, TIMEOUT));
        assert_eq!(second.until, 1_000_000_000_000);
        assert_eq!((second.kind, second.timeout.as_millis()), (Kind::Prometheus, 500));
        assert_eq!(second.user.as_deref(), Some("a"));
        assert_eq!(parse(""), Ok(Vec::new()));
        let text = "url=http://a kind=influxdb until=1 database=my%20d%25b database=é retention-policy=a%3Bb";
        let rule = parse(text).expect("a rule").remove(0);
        assert_eq!(
            (rule.kind, rule.databases),
            (Kind::InfluxDb, vec!["my d%b".to_string(), "é".to_string()])
        );
        assert_eq!(rule.policies, ["a;b"]);
    }

    #[test]
    fn help_names_every_word() {
        let help = net::flags::find("legacy").expect("a flag").help;
        for word in WORDS.split(", ").map(|word| format!("{word}=")) {
            assert!(help.contains(&word), "{word} is not in {help:?}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("kind=prometheus until=1", "lacks url="),
            ("url=http://a until=1", "lacks kind="),
            ("url=http://a kind=prometheus", "lacks until="),
            ("url=http://a kind=influxdb until=1 export=lines", "export= is for"),
            ("url=http://a kind=prometheus until=1 database=x", "are for kind=influxdb"),
            ("url=http://a kind=victoriametrics until=1 aggregates=no", "neither aggregates=there"),
            ("url=http://a kind=influxdb until=1 database=a%2", "two hexadecimal digits"),
            ("url=http://a kind=influxdb until=1 database=%ff", "no UTF-8"),
            ("url=http://a kind=thanos until=1", "none of victoriametrics"),
            ("url=ftp://a kind=prometheus until=1", "must begin with http://"),
            ("url=http://a:b@c kind=prometheus until=1", "password would be shown"),
            ("url=http://a?b=c kind=prometheus until=1", "neither a query"),
            ("url=http://a kind=prometheus until=now-1d", "is no time such as"),
            ("url=http://a kind=prometheus until=1 timeout=0", "no time to answer"),
            (
                "url=http://a kind=prometheus until=1; url=http://a/ kind=prometheus until=2",
                "is there twice",
            ),
            ("url=http://a kind=prometheus until=1 speed=9", "none of the words"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        let secret = parse("url=http://a kind=prometheus until=1 password=hunter2");
        assert!(secret.is_err_and(|error| !error.contains("hunter2")), "secrets stay out of logs");
        assert!(parse(&"url=http://a kind=prometheus until=1;".repeat(17)).is_err(), "a limit");
    }
}
