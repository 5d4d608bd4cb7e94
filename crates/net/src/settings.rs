//! Text of every flag and its source: command line, environment, file or default.
//!
//! ```text
//! command line > environment > file > default   (per flag)   ->   Settings
//! ```
//!
//! Secrets are hidden where settings are shown. Each crate parses its own flags from here.

use crate::config_file;
use crate::flag::{Flag, Kind};
use crate::flags;
use cli::quantity::{parse_duration, parse_size};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the settings cannot be used; each names the flag and where its value came from.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value that does not parse or is out of range.
    #[error("{flag} ({source_name}): {reason}")]
    Value {
        /// The flag.
        flag: String,
        /// Command line, environment or file.
        source_name: String,
        /// What is wrong.
        reason: String,
    },
    /// A key of the file that is no flag.
    #[error("{path}: unknown key {key:?}; did you mean {nearest:?}?")]
    UnknownKey {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// A key that there is.
        nearest: &'static str,
    },
    /// A top-level key that the file has within a section.
    #[error(
        "{path}: unknown key {key:?}: move {nearest:?} to the top level, before the first [section]"
    )]
    MisplacedKey {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// The key at the top level.
        nearest: &'static str,
    },
    /// The file cannot be read or is no TOML.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// Values that do not go together.
    #[error("{0}")]
    Together(String),
}

/// What a flag's value was set by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The table of flags.
    Default,
    /// The configuration file.
    File,
    /// An environment variable.
    Environment,
    /// The command line.
    CommandLine,
}

/// The text of every flag, and what set it.
#[derive(Clone, Debug)]
pub struct Settings {
    values: BTreeMap<&'static str, (String, SetBy)>,
}

impl Settings {
    /// Collects the values of all flags.
    ///
    /// `command_line` and `environment` answer what they hold for a flag's or variable's name.
    ///
    /// # Errors
    /// When the file that `config` names cannot be used.
    pub fn collect(
        command_line: &dyn Fn(&str) -> Option<String>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Settings, ConfigError> {
        let outer = |name: &str| {
            command_line(name).map(|text| (text, SetBy::CommandLine)).or_else(|| {
                environment(&flags::environment_name(name)).map(|t| (t, SetBy::Environment))
            })
        };
        let file = match outer("config") {
            Some((path, _)) if !path.is_empty() => config_file::read(Path::new(&path))?,
            _ => BTreeMap::new(),
        };
        let values = flags::all()
            .map(|flag| {
                let value = outer(flag.name)
                    .or_else(|| file.get(flag.name).map(|text| (text.clone(), SetBy::File)))
                    .unwrap_or_else(|| (flag.default.to_string(), SetBy::Default));
                (flag.name, value)
            })
            .collect();
        Ok(Settings { values })
    }

    /// The defaults, with the given flags set as if on the command line.
    ///
    /// # Errors
    /// As [`Settings::collect`].
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let find = |name: &str| {
            pairs.iter().find(|(flag, _)| *flag == name).map(|(_, value)| value.to_string())
        };
        Settings::collect(&find, &|_| None)
    }

    /// Every flag with its text; secrets are hidden.
    pub fn shown(&self) -> impl Iterator<Item = (&'static str, &str)> {
        flags::all().map(|flag| match (flag.kind, self.text(flag.name)) {
            (Kind::Secret, text) if !text.is_empty() => (flag.name, "<hidden>"),
            (_, text) => (flag.name, text),
        })
    }

    /// The text of a flag.
    pub fn text(&self, name: &str) -> &str {
        &self.values.get(name).expect("a flag of the table").0
    }

    /// Whether neither the command line, the environment nor the file sets a flag.
    pub fn is_default(&self, name: &str) -> bool {
        self.values.get(name).expect("a flag of the table").1 == SetBy::Default
    }

    /// Error: the value of a flag cannot be used.
    pub fn refuse(&self, name: &str, reason: impl Into<String>) -> ConfigError {
        let (flag, source_name) = match self.values[name].1 {
            SetBy::Default => (format!("--{name}"), "default".to_string()),
            SetBy::File => (name.to_string(), self.text("config").to_string()),
            SetBy::Environment => (flags::environment_name(name), "environment".to_string()),
            SetBy::CommandLine => (format!("--{name}"), "command line".to_string()),
        };
        ConfigError::Value { flag, source_name, reason: reason.into() }
    }

    /// The value of a flag, parsed.
    ///
    /// # Errors
    /// When `parse` refuses the text; its reason becomes the message.
    pub fn parsed<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        parse(self.text(name)).map_err(|reason| self.refuse(name, reason))
    }

    /// A duration.
    ///
    /// # Errors
    /// For text that is no duration.
    pub fn duration(&self, name: &str) -> Result<Duration, ConfigError> {
        self.parsed(name, |text| parse_duration(text).map(Duration::from_nanos))
    }

    /// A duration longer than zero.
    ///
    /// # Errors
    /// For text that is no duration, and for zero.
    pub fn timeout(&self, name: &str) -> Result<Duration, ConfigError> {
        match self.duration(name)? {
            Duration::ZERO => Err(self.refuse(name, "must be longer than 0")),
            duration => Ok(duration),
        }
    }

    /// A number of bytes.
    ///
    /// # Errors
    /// For text that is no size.
    pub fn size(&self, name: &str) -> Result<u64, ConfigError> {
        self.parsed(name, parse_size)
    }

    /// A number of bytes within bounds, both included.
    ///
    /// # Errors
    /// For text that is no size, and for a size out of bounds.
    pub fn size_between(&self, name: &str, min: u64, max: u64) -> Result<u64, ConfigError> {
        let size = self.size(name)?;
        if size < min || max < size {
            return Err(self.refuse(name, format!("{size} bytes are not within {min} to {max}")));
        }
        Ok(size)
    }

    /// A whole number.
    ///
    /// # Errors
    /// For text that is no whole number.
    pub fn count(&self, name: &str) -> Result<usize, ConfigError> {
        self.parsed(name, |text| {
            text.trim().parse().map_err(|_| format!("{text:?} is no whole number"))
        })
    }

    /// A count where 0 stands for `automatic`.
    ///
    /// # Errors
    /// For text that is no whole number.
    pub fn count_or(&self, name: &str, automatic: usize) -> Result<usize, ConfigError> {
        Ok(match self.count(name)? {
            0 => automatic,
            count => count,
        })
    }

    /// A switch that is on or off.
    ///
    /// # Errors
    /// For text that is neither.
    pub fn switch(&self, name: &str) -> Result<bool, ConfigError> {
        self.parsed(name, |text| match text {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" | "" => Ok(false),
            _ => Err(format!("{text:?} is neither true nor false")),
        })
    }

    /// One of the words that the flag allows.
    ///
    /// # Errors
    /// For any other word.
    pub fn choice(&self, name: &str) -> Result<&str, ConfigError> {
        let text = self.text(name);
        match flags::find(name) {
            Some(Flag { kind: Kind::Choice(words), .. }) if !words.contains(&text) => {
                Err(self.refuse(name, format!("{text:?} is none of: {}", words.join(", "))))
            }
            _ => Ok(text),
        }
    }

    /// A path; none for an empty text.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(PathBuf::from)
    }
}

/// Warnings about variables that start with `QUIPU_` and set no flag, such as a misspelled one.
///
/// Kubernetes sets variables for every Service of a namespace. Those of a Service called `quipu` start
/// with `QUIPU_`, too, and get no warning.
pub fn check_environment(names: impl Iterator<Item = String>) -> Vec<String> {
    let known: Vec<String> = flags::all().map(|flag| flags::environment_name(flag.name)).collect();
    let unknown = names.filter(|name| {
        name.starts_with("QUIPU_") && !known.contains(name) && !is_service_variable(name)
    });
    let warning = |name: String| {
        let key = name["QUIPU_".len()..].to_ascii_lowercase().replace('_', "-");
        match flags::similar(&key) {
            Some(flag) => {
                let nearest = flags::environment_name(flag);
                format!("environment variable {name} sets no flag; did you mean {nearest}?")
            }
            None => format!("environment variable {name} sets no flag and is ignored"),
        }
    };
    unknown.map(warning).collect()
}

/// Whether Kubernetes or Docker links set a variable of that name for a Service:
/// `QUIPU_SERVICE_HOST`, `QUIPU_SERVICE_PORT_HTTP`, `QUIPU_PORT`, `QUIPU_PORT_8428_TCP_ADDR`.
fn is_service_variable(name: &str) -> bool {
    let words: Vec<&str> = name.split('_').collect();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_protocol = |word: &str| matches!(word, "TCP" | "UDP" | "SCTP");
    let is_port = |words: &[&str]| match words {
        [] => true,
        [number, protocol, rest @ ..] => {
            let ends = matches!(rest, [] | ["ADDR" | "PORT" | "PROTO"]);
            is_number(number) && is_protocol(protocol) && ends
        }
        _ => false,
    };
    (1..words.len()).any(|at| match (words[at], &words[at + 1..]) {
        ("SERVICE", ["HOST"] | ["PORT", ..]) => true,
        ("PORT", rest) => is_port(rest),
        _ => false,
    })
}
