//! PostgreSQL's settings, which `SHOW ALL` and `pg_settings` list and clients may set
//! (<https://www.postgresql.org/docs/15/view-pg-settings.html>).
//!
//! `settings.txt` has a line for each: name, value as `SHOW` writes it, value, unit, category, context, type, least and
//! largest value, words of an enum; separated by tabs. Most mean nothing here.

use crate::catalog::cells::{Cell, Table, text, yes};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const LINES: &str = include_str!("settings.txt");

/// A setting of PostgreSQL's.
#[derive(Clone, Copy, Debug)]
pub struct KnownSetting {
    /// The name as `SHOW ALL` writes it.
    pub name: &'static str,
    /// The value that `SHOW` answers with where nothing was set.
    pub shown: &'static str,
    value: &'static str,
    unit: &'static str,
    category: &'static str,
    context: &'static str,
    kind: &'static str,
    least: &'static str,
    largest: &'static str,
    words: &'static str,
}

static KNOWN: LazyLock<BTreeMap<String, KnownSetting>> = LazyLock::new(|| {
    let known = |line: &'static str| {
        let mut cells = line.split('\t');
        let mut next = || cells.next();
        let known = KnownSetting {
            name: next()?,
            shown: next()?,
            value: next()?,
            unit: next()?,
            category: next()?,
            context: next()?,
            kind: next()?,
            least: next()?,
            largest: next()?,
            words: next()?,
        };
        Some((known.name.to_ascii_lowercase(), known))
    };
    LINES.lines().filter_map(known).collect()
});

/// All settings, in the order of their names.
pub fn known_settings() -> impl Iterator<Item = &'static KnownSetting> {
    KNOWN.values()
}

/// The setting of a name in small letters.
pub fn known_setting(name: &str) -> Option<&'static KnownSetting> {
    KNOWN.get(name)
}

impl KnownSetting {
    /// Why a session cannot change it; none if it can.
    pub fn why_fixed(&self) -> Option<String> {
        let name = self.name;
        match self.context {
            "internal" => Some(format!("parameter \"{name}\" cannot be changed")),
            "postmaster" => Some(format!(
                "parameter \"{name}\" cannot be changed without restarting the server"
            )),
            "sighup" => Some(format!("parameter \"{name}\" cannot be changed now")),
            "backend" | "superuser-backend" => {
                Some(format!("parameter \"{name}\" cannot be set after connection start"))
            }
            _ => None,
        }
    }

    /// What is wrong with a value; none if it is of the setting's type and within its bounds.
    pub fn why_wrong(&self, value: &str) -> Option<String> {
        let (name, value) = (self.name, value.trim());
        match self.kind {
            "bool" if is_boolean(value) => None,
            "bool" => Some(format!("parameter \"{name}\" requires a Boolean value")),
            "enum" => {
                let is_word = |word: &str| word.eq_ignore_ascii_case(value);
                let is_known = self.words.split(',').any(is_word) || is_boolean(value);
                let wrong = || format!("invalid value for parameter \"{name}\": \"{value}\"");
                (!is_known).then(wrong)
            }
            "integer" | "real" => match self.number(value) {
                None => Some(format!("invalid value for parameter \"{name}\": \"{value}\"")),
                Some(number) if self.has_within(number) => None,
                Some(_) => Some(format!(
                    "{value} is outside the valid range for parameter \"{name}\" ({} .. {})",
                    self.least, self.largest
                )),
            },
            _ => None,
        }
    }

    fn has_within(&self, number: f64) -> bool {
        let bound = |text: &str, open: f64| text.parse().unwrap_or(open);
        bound(self.least, f64::NEG_INFINITY) <= number
            && number <= bound(self.largest, f64::INFINITY)
    }

    /// A value in the setting's unit, which may have a unit of its own.
    fn number(&self, value: &str) -> Option<f64> {
        let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
        let digits = value.len() - value.trim_start_matches(is_digit).len();
        let (number, unit) = value.split_at(digits);
        let number: f64 = number.parse().ok()?;
        match unit.trim() {
            "" => Some(number),
            unit => Some((number * scale(unit)? / scale(self.unit)?).round()),
        }
    }

    /// The value in the setting's unit, as `pg_settings` has it.
    fn plain(&self, shown: &str) -> String {
        match self.kind {
            "integer" | "real" => match self.number(shown) {
                Some(number) => number.to_string(),
                None => shown.to_string(),
            },
            _ => shown.to_string(),
        }
    }
}

fn is_boolean(value: &str) -> bool {
    ["on", "off", "true", "false", "yes", "no", "t", "f", "y", "n", "1", "0"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(value))
}

/// Bytes or milliseconds of a unit.
fn scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "B" => 1.0,
        "kB" => 1024.0,
        "8kB" => 8192.0,
        "MB" => 1048576.0,
        "GB" => 1073741824.0,
        "TB" => 1099511627776.0,
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    })
}

/// `pg_settings` of a session; `setting` finds a value by a name in small letters.
pub fn table(setting: &dyn Fn(&str) -> Option<String>) -> Table {
    let optional = |value: &str| if value.is_empty() { Cell::Null } else { text(value) };
    let row = |(name, known): (&String, &KnownSetting)| {
        let now = setting(name).unwrap_or_else(|| known.shown.to_string());
        let source = if now == known.shown { "default" } else { "session" };
        let words = known.words.split(',').map(str::to_string).collect();
        vec![
            text(known.name),
            text(&known.plain(&now)),
            optional(known.unit),
            text(known.category),
            text(""),
            Cell::Null,
            text(known.context),
            text(known.kind),
            text(source),
            optional(known.least),
            optional(known.largest),
            if known.words.is_empty() { Cell::Null } else { Cell::Texts(words) },
            text(known.value),
            text(known.value),
            Cell::Null,
            Cell::Null,
            yes(false),
        ]
    };
    Table { name: "pg_settings", columns: "", rows: KNOWN.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_setting() {
        assert_eq!(KNOWN.len(), LINES.lines().count());
        for known in known_settings() {
            assert_eq!(known.why_wrong(known.shown), None, "{known:?}");
            assert_eq!(known.plain(known.shown), known.value, "{known:?}");
        }
        table(&|_| None).batch().expect("rows fit");
    }

    #[test]
    fn values_have_types_and_bounds() {
        let wrong = |name: &str, value: &str| known_setting(name).expect(name).why_wrong(value);
        assert_eq!(wrong("work_mem", "64MB"), None);
        assert_eq!(known_setting("work_mem").map(|one| one.plain("64MB")), Some("65536".into()));
        assert!(wrong("work_mem", "1kB").is_some_and(|words| words.contains("(64 .. 2147483647)")));
        assert!(wrong("work_mem", "much").is_some());
        assert!(wrong("enable_seqscan", "perhaps").is_some());
        assert!(wrong("intervalstyle", "roman").is_some());
        assert!(known_setting("shared_buffers").and_then(KnownSetting::why_fixed).is_some());
    }
}
