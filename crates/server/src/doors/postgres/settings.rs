//! Settings of a session: what `SET`, `SHOW`, `RESET` and the options of a connection are about.

use sql::SqlError;
use std::collections::BTreeMap;

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
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("extra_float_digits", "1"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("is_superuser", "on"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_identifier_length", "63"),
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

/// The settings of one session.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    own: BTreeMap<String, String>,
}

impl Settings {
    /// What a setting is; `name` in small letters.
    pub fn get(&self, name: &str) -> Option<&str> {
        let default = || DEFAULTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        self.own.get(name).map(String::as_str).or_else(default)
    }

    /// Sets one.
    ///
    /// # Errors
    /// A code and words.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let name = name.to_ascii_lowercase();
        if FIXED.contains(&name.as_str()) {
            let message = format!("parameter \"{name}\" cannot be changed");
            return Err(SqlError { code: "55P02", message });
        }
        let is_known = self.get(&name).is_some() || name.contains('.');
        if !is_known && !IGNORED.contains(&name.as_str()) {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            return Err(SqlError { code: "42704", message });
        }
        if name == "client_encoding" && !is_utf8(value) {
            let words = format!("client encoding {value:?} is not supported: use UTF8");
            return Err(SqlError::wrong_value(words));
        }
        if name == "timezone" && !is_utc(value) {
            let words = format!("time zone {value:?} is not supported yet: times are shown in UTC");
            return Err(SqlError::wrong_value(words));
        }
        if VALUE_SIZE_MAX < value.len() || COUNT_MAX <= self.own.len() {
            let words =
                format!("a session has {COUNT_MAX} settings of {VALUE_SIZE_MAX} bytes at most");
            return Err(SqlError::limit(words));
        }
        self.own.insert(name, value.to_string());
        Ok(())
    }

    /// Forgets what was set; all for none.
    pub fn reset(&mut self, name: Option<&str>) {
        match name {
            Some(name) => drop(self.own.remove(name)),
            None => self.own.clear(),
        }
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

/// Settings that drivers make and that mean nothing here.
const IGNORED: &[&str] = &[
    "idle_in_transaction_session_timeout",
    "lock_timeout",
    "row_security",
    "synchronous_commit",
    "work_mem",
];

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
}
