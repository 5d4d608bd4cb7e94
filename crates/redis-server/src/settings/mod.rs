//! The parameters that `CONFIG` shows and sets. Those that mean something here are read from
//! [`Hot`]; the others are kept as text.

pub mod event_classes;
pub mod parse;
mod table;

use parse::Parameter;
use std::collections::HashMap;
use std::sync::OnceLock;
use table::PARAMETERS;

/// Numbers that commands ask for often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hot {
    /// Commands that take so many microseconds are noted; none if negative.
    pub slow_from_us: i64,
    /// How many of them are kept.
    pub slow_len_max: usize,
    /// Events that take so many milliseconds are noted; none if 0.
    pub latency_from_ms: u64,
    /// Whether the times of commands are kept by command.
    pub tracks_latency: bool,
    /// Clients.
    pub clients_max: usize,
    /// Seconds after which a silent client is closed; 0 never.
    pub timeout_s: u64,
    /// Bytes of an argument.
    pub bulk_size_max: usize,
    /// Bytes of a command that is not whole.
    pub query_size_max: usize,
    /// Refusals that `ACL LOG` keeps.
    pub refusals_max: usize,
    /// Keys that clients are told of when they change.
    pub tracked_keys_max: usize,
    /// Milliseconds after which a script may be ended.
    pub busy_after_ms: u64,
    /// Classes of events that are published.
    pub events: u32,
    /// Whether commands that may need memory are refused.
    pub refuses_growth: bool,
    /// Replicas without which nothing is written; 0 for none, as where no lag is allowed.
    pub replicas_min: usize,
    /// Whole seconds since one of them was heard.
    pub replicas_lag_max_s: i64,
}

/// Bytes of an argument, whatever `proto-max-bulk-len` says: a string has no more.
const BULK_SIZE_MAX: usize = 512 << 20;
/// Bytes of a command, whatever `client-query-buffer-limit` says: what one command may add to a value is
/// counted on (`KvConfig::growth_max`).
const QUERY_SIZE_MAX: usize = 1 << 30;

/// The least memory that keys get, whatever is said.
pub const MEMORY_MIN: u64 = 1 << 20;
/// Bytes of a keyspace without keys, about. Who allows less wants nothing more written.
pub const MEMORY_BASE: u64 = 800 << 10;

/// All parameters as they are now.
#[derive(Clone)]
pub struct Settings {
    values: Vec<String>,
    /// What is read often.
    pub hot: Hot,
}

/// The place of a parameter in the table, by either of its names, in any case.
fn place_of(name: &str) -> Option<usize> {
    static PLACES: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();
    let places = PLACES.get_or_init(|| {
        let rows = PARAMETERS.iter().enumerate();
        rows.flat_map(|(place, row)| [(row.name, place), (row.alias, place)])
            .filter(|(name, _)| !name.is_empty())
            .collect()
    });
    places.get(name.to_ascii_lowercase().as_str()).copied()
}

impl Default for Settings {
    fn default() -> Settings {
        let values = PARAMETERS.iter().map(|row| row.default.to_owned()).collect();
        let mut settings = Settings { values, hot: Hot::default() };
        settings.heat();
        settings
    }
}

impl Settings {
    /// A parameter's text; empty if there is none of that name.
    pub fn text(&self, name: &str) -> &str {
        place_of(name).and_then(|place| self.values.get(place)).map_or("", String::as_str)
    }

    /// A parameter's number; 0 if it has none.
    pub fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Whether a parameter says `yes`.
    pub fn is_on(&self, name: &str) -> bool {
        self.text(name) == "yes"
    }

    /// What is known of a parameter.
    pub fn parameter(name: &str) -> Option<&'static Parameter> {
        PARAMETERS.get(place_of(name)?)
    }

    /// Sets a parameter to what the server itself knows of it.
    pub fn put(&mut self, name: &str, text: String) {
        if let Some(value) = place_of(name).and_then(|place| self.values.get_mut(place)) {
            *value = text;
        }
        self.heat();
    }

    /// Sets a parameter to what somebody says.
    ///
    /// # Errors
    /// In words, when it may not be that.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let place = place_of(name).ok_or("there is no such parameter")?;
        let (Some(row), Some(value)) = (PARAMETERS.get(place), self.values.get_mut(place)) else {
            return Ok(());
        };
        *value = row.parse(text, value)?;
        self.heat();
        Ok(())
    }

    /// Names and texts of the parameters that fit one of the patterns.
    pub fn fitting(&self, patterns: &[&[u8]]) -> Vec<(&'static str, &str)> {
        let mut found = Vec::new();
        for (row, value) in PARAMETERS.iter().zip(&self.values) {
            for name in [row.name, row.alias] {
                let fits =
                    |pattern: &&[u8]| kv::glob::matches_ignoring_case(pattern, name.as_bytes());
                if !name.is_empty() && patterns.iter().any(fits) {
                    found.push((name, value.as_str()));
                }
            }
        }
        found
    }

    /// Those that differ from others, as lines of a file.
    pub fn lines_unlike(&self, other: &Settings) -> String {
        let rows = PARAMETERS.iter().zip(self.values.iter().zip(&other.values));
        rows.filter(|(_, (value, before))| value != before)
            .map(|(row, (value, _))| format!("{} {}\n", row.name, quoted(value)))
            .collect()
    }

    /// Brings what is read often up to date.
    fn heat(&mut self) {
        let size = |name: &str| usize::try_from(self.number(name)).unwrap_or(usize::MAX);
        let count = |name: &str| u64::try_from(self.number(name)).unwrap_or(0);
        let lag_max_s = self.number("min-replicas-max-lag");
        self.hot = Hot {
            slow_from_us: self.number("slowlog-log-slower-than"),
            slow_len_max: size("slowlog-max-len"),
            latency_from_ms: count("latency-monitor-threshold"),
            tracks_latency: self.is_on("latency-tracking"),
            clients_max: size("maxclients"),
            timeout_s: count("timeout"),
            bulk_size_max: size("proto-max-bulk-len").min(BULK_SIZE_MAX),
            query_size_max: size("client-query-buffer-limit").min(QUERY_SIZE_MAX),
            refusals_max: size("acllog-max-len"),
            tracked_keys_max: size("tracking-table-max-keys"),
            busy_after_ms: count("busy-reply-threshold"),
            events: event_classes::parse_events(self.text("notify-keyspace-events")).unwrap_or(0),
            refuses_growth: (1..MEMORY_BASE).contains(&count("maxmemory")),
            replicas_min: if 0 < lag_max_s { size("min-replicas-to-write") } else { 0 },
            replicas_lag_max_s: lag_max_s,
        };
    }
}

/// A value as a line of the file of settings has it.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// The name and value of a line that [`Settings::lines_unlike`] wrote.
pub fn read_line(line: &str) -> Option<(&str, String)> {
    let (name, value) = line.trim().split_once(' ')?;
    let value = value.strip_prefix('"')?.strip_suffix('"')?;
    let mut plain = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next()? {
                'n' => plain.push('\n'),
                other => plain.push(other),
            },
            other => plain.push(other),
        }
    }
    Some((name, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_written_and_read() {
        let (before, mut after) = (Settings::default(), Settings::default());
        after.set("proc-title-template", "a \"b\" \\ c\nd").expect("any text");
        after.set("SLAVE-priority", "7").expect("an older name");
        assert!(after.set("maxclients", "0").is_err());
        let lines = after.lines_unlike(&before);
        let mut read = Settings::default();
        for line in lines.lines() {
            let (name, value) = read_line(line).expect("a line of ours");
            read.set(name, &value).expect("what was set");
        }
        assert_eq!(read.values, after.values);
        assert_eq!(read.number("replica-priority"), 7);
        assert_eq!(read.fitting(&[b"*-PRIORITY"]).len(), 2);
    }
}
