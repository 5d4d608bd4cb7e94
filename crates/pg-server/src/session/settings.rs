//! Settings of a session: what `SET`, `SHOW`, `RESET` and the options of a connection are about.

use sql::statements::Isolation;
use sql::{KnownSetting, SqlError, known_setting, known_settings};
use std::collections::BTreeMap;
use std::time::Duration;

/// Settings that a session may have beside those with meaning: drivers set many.
const COUNT_MAX: usize = 256;
/// Bytes of a value.
const VALUE_SIZE_MAX: usize = 16 << 10;

/// Settings with a value from the beginning.
const DEFAULTS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("datestyle", "ISO, MDY"),
    ("default_table_access_method", "heap"),
    ("default_tablespace", ""),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("extra_float_digits", "1"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("is_superuser", "on"),
    ("jit", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("lc_messages", "C"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("role", "none"),
    ("session_authorization", "default"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", VERSION),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("timezone", "UTC"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "off"),
];

/// What clients choose their statements by.
pub const VERSION: &str = "15.0 (Quipu)";

/// Those that nobody may set.
const FIXED: &[&str] = &[
    "integer_datetimes",
    "is_superuser",
    "lc_collate",
    "lc_ctype",
    "max_identifier_length",
    "server_encoding",
    "server_version",
    "server_version_num",
];

/// The settings of one session, from those that hold shortest to those that hold longest.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Until the transaction ends.
    local: BTreeMap<String, String>,
    own: BTreeMap<String, String>,
    /// As the client came: what `RESET` goes back to.
    first: BTreeMap<String, String>,
    /// Those of its own when the transaction began.
    before: Option<BTreeMap<String, String>>,
}

/// How long a setting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Until the session ends.
    Session,
    /// Until the transaction ends.
    Transaction,
}

impl Settings {
    /// What a setting is; `name` in small letters.
    pub fn get(&self, name: &str) -> Option<&str> {
        // Outside a transaction it is that of the next one.
        let name = match name {
            "transaction_isolation" if !self.local.contains_key(name) => {
                "default_transaction_isolation"
            }
            name => name,
        };
        let own = || DEFAULTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let default = || own().or_else(|| known_setting(name).map(|known| known.shown));
        let mut all = [&self.local, &self.own, &self.first].into_iter();
        all.find_map(|some| some.get(name)).map(String::as_str).or_else(default)
    }

    /// All of PostgreSQL's with their values, in the order of their names.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let value = |known: &'static KnownSetting| {
            let value = self.get(&known.name.to_ascii_lowercase()).unwrap_or(known.shown);
            (known.name, value.to_string())
        };
        known_settings().map(value).collect()
    }

    /// Sets one.
    ///
    /// # Errors
    /// A code and words.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        self.set_for(Scope::Session, name, value)
    }

    /// Sets one for a while.
    ///
    /// # Errors
    /// A code and words.
    pub fn set_for(&mut self, scope: Scope, name: &str, value: &str) -> Result<(), SqlError> {
        let name = name.to_ascii_lowercase();
        if FIXED.contains(&name.as_str()) {
            let message = format!("parameter \"{name}\" cannot be changed");
            return Err(SqlError::new("55P02", message));
        }
        let is_known = self.get(&name).is_some() || name.contains('.');
        if !is_known {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            return Err(SqlError::new("42704", message));
        }
        if let Some(message) = known_setting(&name).and_then(KnownSetting::why_fixed) {
            return Err(SqlError::new("55P02", message));
        }
        if name == "client_encoding" && !is_utf8(value) {
            let words = format!("client encoding {value:?} is not supported: use UTF8");
            return Err(SqlError::wrong_value(words));
        }
        if name == "timezone" && !is_utc(value) {
            let words = format!("time zone {value:?} is not supported yet: times are shown in UTC");
            let hint = "Say time AT TIME ZONE 'Europe/Berlin' where a clock there is wanted.";
            return Err(SqlError::wrong_value(words).with_hint(hint));
        }
        check_style(&name, value)?;
        let why_wrong = |known: &KnownSetting| known.why_wrong(value);
        if let Some(words) = known_setting(&name).and_then(why_wrong) {
            return Err(SqlError::wrong_value(words));
        }
        if name == "statement_timeout" && milliseconds(value).is_none() {
            let words = format!("invalid value for parameter \"statement_timeout\": {value:?}");
            return Err(SqlError::wrong_value(words));
        }
        let count = self.own.len() + self.local.len();
        if VALUE_SIZE_MAX < value.len() || COUNT_MAX <= count {
            let words =
                format!("a session has {COUNT_MAX} settings of {VALUE_SIZE_MAX} bytes at most");
            return Err(SqlError::limit(words));
        }
        match (scope, self.before.is_some()) {
            (Scope::Session, _) => {
                self.local.remove(&name);
                self.own.insert(name, value.to_string());
            }
            (Scope::Transaction, true) => drop(self.local.insert(name, value.to_string())),
            // It would hold until the end of this very statement.
            (Scope::Transaction, false) => {}
        }
        Ok(())
    }

    /// Forgets what was set since the client came; all for none.
    pub fn reset(&mut self, name: Option<&str>) {
        match name {
            Some(name) => {
                self.local.remove(name);
                self.own.remove(name);
            }
            None => {
                self.local.clear();
                self.own.clear();
            }
        }
    }

    /// The client has come in: what is set now is what it came with.
    pub fn begin_session(&mut self) {
        self.first = std::mem::take(&mut self.own);
    }

    /// A transaction begins, unless one is under way.
    pub fn begin_transaction(&mut self, is_read_only: Option<bool>, isolation: Option<Isolation>) {
        let default = self.get("default_transaction_read_only").is_some_and(is_on);
        if self.before.is_none() {
            self.before = Some(self.own.clone());
            self.set_read_only(default);
        }
        if let Some(is_read_only) = is_read_only {
            self.set_read_only(is_read_only);
        }
        if let Some(isolation) = isolation {
            self.set_isolation(isolation);
        }
    }

    /// Shows the isolation level of the transaction under way.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        if self.before.is_some() {
            self.local.insert("transaction_isolation".into(), isolation.name().into());
        }
    }

    /// Whether nothing may be written in the transaction under way; does nothing outside one.
    pub fn set_read_only(&mut self, is_read_only: bool) {
        if self.before.is_some() {
            let value = if is_read_only { "on" } else { "off" };
            self.local.insert("transaction_read_only".into(), value.into());
        }
    }

    /// Whether nothing may be written: in the transaction under way, or else in those to come.
    pub fn is_read_only(&self) -> bool {
        let name = match self.before {
            Some(_) => "transaction_read_only",
            None => "default_transaction_read_only",
        };
        self.get(name).is_some_and(is_on)
    }

    /// A transaction ends; whether what was set in it holds on.
    pub fn end_transaction(&mut self, is_kept: bool) {
        self.local.clear();
        if let Some(before) = self.before.take().filter(|_| !is_kept) {
            self.own = before;
        }
    }

    /// How long a statement may take by the client's own will; none without a bound.
    pub fn statement_timeout(&self) -> Option<Duration> {
        let millis = self.get("statement_timeout").and_then(milliseconds)?;
        (millis != 0).then(|| Duration::from_millis(millis))
    }

    /// Those that clients are told of when they come.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        const REPORTED: &[(&str, &str)] = &[
            ("server_version", "server_version"),
            ("server_encoding", "server_encoding"),
            ("client_encoding", "client_encoding"),
            ("application_name", "application_name"),
            ("DateStyle", "datestyle"),
            ("IntervalStyle", "intervalstyle"),
            ("TimeZone", "timezone"),
            ("integer_datetimes", "integer_datetimes"),
            ("is_superuser", "is_superuser"),
            ("standard_conforming_strings", "standard_conforming_strings"),
            ("default_transaction_read_only", "default_transaction_read_only"),
        ];
        let value = |name: &str| self.get(name).unwrap_or_default().to_string();
        REPORTED.iter().map(|(shown, name)| (*shown, value(name))).collect()
    }

    /// Takes those of `options` of a connection: `-c name=value`, as `PGOPTIONS` has them.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn take_options(&mut self, text: &str) -> Result<(), SqlError> {
        let words = unescaped_words(text);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let pair = match word.strip_prefix("-c").or_else(|| word.strip_prefix("--")) {
                Some("") => words.next().map(String::as_str),
                Some(rest) => Some(rest),
                None => None,
            };
            let Some((name, value)) = pair.and_then(|pair| pair.split_once('=')) else {
                let words = format!("connection options: {word:?} is not -c name=value");
                return Err(SqlError::invalid(words));
            };
            self.set(name, value)?;
        }
        Ok(())
    }
}

/// Refuses styles in which values are not written: a client would read others than there are.
fn check_style(name: &str, value: &str) -> Result<(), SqlError> {
    let is_known = match name {
        "bytea_output" => value.eq_ignore_ascii_case("hex"),
        "intervalstyle" => value.eq_ignore_ascii_case("postgres"),
        // ISO is written; a date whose first number may be a month is read so.
        "datestyle" => value
            .split(',')
            .all(|word| ["iso", "mdy", "us", "noneuropean"].iter().any(is_like(word))),
        _ => true,
    };
    match is_known {
        true => Ok(()),
        false => {
            let words = format!(
                "{name} {value:?} is not supported: values are written in the default style"
            );
            Err(SqlError::unsupported(words))
        }
    }
}

fn is_on(value: &str) -> bool {
    ["on", "true", "tru", "tr", "t", "yes", "ye", "y", "1"].iter().any(is_like(value))
}

fn is_like(value: &str) -> impl Fn(&&str) -> bool {
    move |one| value.trim().eq_ignore_ascii_case(one)
}

/// A time as PostgreSQL's settings have it: a number of milliseconds, or with a unit.
fn milliseconds(value: &str) -> Option<u64> {
    let value = value.trim();
    let digits = value.len() - value.trim_start_matches(|one: char| one.is_ascii_digit()).len();
    let (number, unit) = value.split_at(digits);
    let factor = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

fn is_utf8(value: &str) -> bool {
    let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    // SQL_ASCII is what psql asks for in a plain locale: bytes are sent as they are.
    ["utf8", "unicode", "sqlascii"].iter().any(|known| plain.eq_ignore_ascii_case(known))
}

fn is_utc(value: &str) -> bool {
    ["utc", "gmt", "etc/utc", "z", "00", "+00:00", "0"]
        .iter()
        .any(|known| value.eq_ignore_ascii_case(known))
}

/// Words apart by spaces; a backslash takes the next character as it is.
fn unescaped_words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => word.extend(characters.next()),
            space if space.is_whitespace() => words.push(std::mem::take(&mut word)),
            plain => word.push(plain),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_connection() {
        let mut settings = Settings::default();
        let options = "-c pg_prometheus.job_label=no\\ de --statement_timeout=5s";
        settings.take_options(options).unwrap();
        assert_eq!(settings.get("pg_prometheus.job_label"), Some("no de"));
        assert_eq!(settings.get("statement_timeout"), Some("5s"));
        assert!(settings.take_options("-x").is_err());
        settings.reset(Some("statement_timeout"));
        assert_eq!(settings.get("statement_timeout"), Some("0"));
    }

    #[test]
    fn settings_hold_as_long_as_they_should() {
        let mut settings = Settings::default();
        settings.set("a.b", "first").unwrap();
        settings.begin_session();
        settings.set_for(Scope::Transaction, "a.b", "nowhere").unwrap();
        assert_eq!(settings.get("a.b"), Some("first"));
        settings.begin_transaction(None, None);
        settings.set("a.b", "own").unwrap();
        settings.set_for(Scope::Transaction, "a.b", "local").unwrap();
        assert_eq!(settings.get("a.b"), Some("local"));
        settings.end_transaction(true);
        assert_eq!(settings.get("a.b"), Some("own"));
        settings.begin_transaction(None, None);
        settings.set("a.b", "lost").unwrap();
        settings.end_transaction(false);
        assert_eq!(settings.get("a.b"), Some("own"));
        settings.reset(None);
        assert_eq!(settings.get("a.b"), Some("first"));
        settings.set("statement_timeout", "2min").unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(120)));
        assert!(settings.set("statement_timeout", "soon").is_err());
    }

    #[test]
    fn what_cannot_be_set_is_said() {
        let mut settings = Settings::default();
        for (name, value, code) in [
            ("server_version", "9", "55P02"),
            ("no_such", "1", "42704"),
            ("client_encoding", "LATIN1", "22023"),
            ("TimeZone", "Europe/Berlin", "22023"),
        ] {
            assert_eq!(settings.set(name, value).map_err(|error| error.code), Err(code), "{name}");
        }
        settings.set("Client_Encoding", "UTF-8").unwrap();
        for number in 0..COUNT_MAX {
            let _ = settings.set(&format!("a.b{number}"), "x");
        }
        assert_eq!(settings.set("a.z", "x").map_err(|error| error.code), Err("54000"));
    }

    #[test]
    fn what_may_not_be_written_to() {
        let mut settings = Settings::default();
        assert!(!settings.is_read_only());
        settings.begin_transaction(Some(true), None);
        assert!(settings.is_read_only());
        // Within a transaction it may be said again.
        settings.begin_transaction(Some(false), None);
        assert!(!settings.is_read_only());
        settings.end_transaction(true);
        settings.set("default_transaction_read_only", "T").unwrap();
        assert!(settings.is_read_only());
        settings.begin_transaction(None, None);
        assert!(settings.is_read_only());
        settings.set_for(Scope::Transaction, "transaction_read_only", "off").unwrap();
        assert!(!settings.is_read_only());
        settings.end_transaction(true);
        settings.reset(None);
        settings.set_read_only(true);
        assert!(!settings.is_read_only(), "there is no transaction");
        assert!(settings.set("default_transaction_read_only", "perhaps").is_err());
    }
}
