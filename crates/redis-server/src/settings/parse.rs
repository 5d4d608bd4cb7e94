//! What a parameter may be: its text checked, and brought into the form in which it is shown.

use super::event_classes::{events_text, parse_events};

/// What a parameter may be.
#[derive(Clone, Copy)]
pub enum Kind {
    /// What it is at the start, for as long as the server runs.
    Fixed,
    /// `yes` or `no`.
    Bool,
    /// An integer from one to another.
    Int(i64, i64),
    /// The same, of which what lies outside becomes the nearest.
    Within(i64, i64),
    /// Bytes, with a unit if wanted, and so many at least.
    Memory(i64),
    /// The same, or a share of memory.
    MemoryOrPercent,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// Anything.
    Text,
    /// Classes of events, as letters.
    Events,
    /// Pairs of seconds and changes.
    Save,
    /// For each class of clients two sizes and a time.
    OutputLimits,
    /// Shares of 100.
    Percentiles,
    /// Three integers that rise.
    OomValues,
    /// Words on how to stop.
    Shutdown,
}

/// A parameter.
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its older name, empty if there is none.
    pub alias: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it is at first.
    pub default: &'static str,
}

/// How to stop, in the order in which the words are shown.
const SHUTDOWN_WORDS: &[&str] = &["default", "save", "nosave", "now", "force"];
/// Classes of clients whose answers are bounded, as they are shown.
const CLIENT_CLASSES: &[&str] = &["normal", "slave", "pubsub"];
const OOM_MIN: i64 = -2000;
const OOM_MAX: i64 = 2000;

impl Parameter {
    /// The text in the form in which it is shown.
    ///
    /// # Errors
    /// In words, when the text does not fit.
    pub fn parse(&self, text: &str, before: &str) -> Result<String, String> {
        match self.kind {
            Kind::Fixed if text == before => Ok(text.to_owned()),
            Kind::Fixed => Err("can't set immutable config".to_owned()),
            Kind::Bool => match text.to_ascii_lowercase().as_str() {
                word @ ("yes" | "no") => Ok(word.to_owned()),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Kind::Int(min, max) => int(text, min, max),
            Kind::Within(min, max) => {
                let text = int(text, i64::MIN, i64::MAX)?;
                let number = text.parse::<i64>().unwrap_or(min);
                Ok(number.clamp(min, max).to_string())
            }
            Kind::Memory(min) => match parse_memory(text) {
                Some(bytes) => int(&bytes.to_string(), min, i64::MAX),
                None => Err("argument must be a memory value".to_owned()),
            },
            Kind::MemoryOrPercent => memory_or_percent(text),
            Kind::Choice(words) => choice(text, words),
            Kind::Text => Ok(text.to_owned()),
            Kind::Events => match parse_events(text) {
                Some(classes) => Ok(events_text(classes)),
                None => Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
            },
            Kind::Save => save(text),
            Kind::OutputLimits => output_limits(text, before),
            Kind::Percentiles => percentiles(text),
            Kind::OomValues => oom_values(text),
            Kind::Shutdown => shutdown(text),
        }
    }
}

fn int(text: &str, min: i64, max: i64) -> Result<String, String> {
    let number = kv::number::parse_i64(text.as_bytes());
    let number = number.ok_or("argument couldn't be parsed into an integer")?;
    match (min..=max).contains(&number) {
        true => Ok(number.to_string()),
        false => Err(format!("argument must be between {min} and {max} inclusive")),
    }
}

/// Bytes, as `100`, `1k` (1000) or `1kb` (1024) say them.
pub fn parse_memory(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|one: char| one.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn memory_or_percent(text: &str) -> Result<String, String> {
    if let Some(percent) = text.strip_suffix('%') {
        let percent: u32 =
            percent.parse().map_err(|_| "argument must be a memory or percent value")?;
        return match percent {
            0..=100 => Ok(format!("{percent}%")),
            _ => Err("percentage argument must be less or equal to 100".to_owned()),
        };
    }
    let bytes = parse_memory(text).ok_or("argument must be a memory or percent value")?;
    Ok(bytes.to_string())
}

fn choice(text: &str, words: &[&str]) -> Result<String, String> {
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(text));
    let found = found.ok_or_else(|| one_of(words))?;
    Ok((*found).to_owned())
}

fn one_of(words: &[&str]) -> String {
    format!("argument(s) must be one of the following: {}", words.join(", "))
}

// ---- texts of several words ----

fn save(text: &str) -> Result<String, String> {
    let invalid = || "Invalid save parameters".to_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    if !words.len().is_multiple_of(2) {
        return Err(invalid());
    }
    for (at, word) in words.iter().enumerate() {
        let number: i64 = word.parse().map_err(|_| invalid())?;
        let least = if at % 2 == 0 { 1 } else { 0 };
        if number < least {
            return Err(invalid());
        }
    }
    Ok(words.join(" "))
}

fn output_limits(text: &str, before: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let mut limits: Vec<String> = before.split_whitespace().map(str::to_owned).collect();
    for limit in words.chunks(4) {
        let [class, hard, soft, seconds] = limit else { continue };
        let class = match class.to_ascii_lowercase().as_str() {
            "replica" => "slave".to_owned(),
            other => other.to_owned(),
        };
        let Some(at) = CLIENT_CLASSES.iter().position(|known| *known == class) else {
            return Err("Invalid client class specified in buffer limit configuration.".to_owned());
        };
        let (hard, soft) = (parse_memory(hard), parse_memory(soft));
        let seconds: Option<u32> = seconds.parse().ok();
        let (Some(hard), Some(soft), Some(seconds)) = (hard, soft, seconds) else {
            return Err(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration."
                    .to_owned(),
            );
        };
        let numbers = [hard.to_string(), soft.to_string(), seconds.to_string()];
        for (offset, number) in numbers.into_iter().enumerate() {
            if let Some(word) = limits.get_mut(at * 4 + 1 + offset) {
                *word = number;
            }
        }
    }
    Ok(limits.join(" "))
}

fn percentiles(text: &str) -> Result<String, String> {
    let mut shown = Vec::new();
    for word in text.split_whitespace() {
        let share: f64 = word
            .parse()
            .map_err(|_| "Invalid latency-tracking-info-percentiles parameters".to_owned())?;
        if !(0.0..=100.0).contains(&share) {
            return Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                    .to_owned(),
            );
        }
        shown.push(share.to_string());
    }
    Ok(shown.join(" "))
}

fn oom_values(text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() != 3 {
        return Err("wrong number of arguments".to_owned());
    }
    let invalid = || {
        format!("Invalid oom-score-adj-values, elements must be between {OOM_MIN} and {OOM_MAX}.")
    };
    let mut last = OOM_MIN;
    for word in &words {
        let number: i64 = word.parse().map_err(|_| invalid())?;
        if !(OOM_MIN..=OOM_MAX).contains(&number) {
            return Err(invalid());
        }
        if number < last {
            return Err(
                "Error setting oom-score-adj-values, values must be non-decreasing".to_owned()
            );
        }
        last = number;
    }
    Ok(words.join(" "))
}

fn shutdown(text: &str) -> Result<String, String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_ascii_lowercase).collect();
    if words.is_empty() || words.iter().any(|word| !SHUTDOWN_WORDS.contains(&word.as_str())) {
        return Err(one_of(SHUTDOWN_WORDS));
    }
    let has = |word: &str| words.iter().any(|one| one == word);
    if has("save") && has("nosave") {
        return Err("argument(s) must be one of the following: save, nosave".to_owned());
    }
    let shown: Vec<&str> = SHUTDOWN_WORDS.iter().copied().filter(|word| has(word)).collect();
    Ok(match shown.as_slice() {
        ["default"] => "default".to_owned(),
        all => all.iter().copied().filter(|word| *word != "default").collect::<Vec<_>>().join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::table::PARAMETERS;

    #[test]
    fn defaults_are_what_they_may_be() {
        for parameter in PARAMETERS {
            let parsed = parameter.parse(parameter.default, parameter.default);
            assert_eq!(parsed.as_deref(), Ok(parameter.default), "{}", parameter.name);
        }
        assert!(PARAMETERS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn texts_are_shown_as_clients_know_them() {
        for (kind, text, shown) in [
            (Kind::Memory(0), "1mb", Ok("1048576")),
            (Kind::Memory(0), "1m", Ok("1000000")),
            (
                Kind::Memory(5),
                "4",
                Err("argument must be between 5 and 9223372036854775807 inclusive"),
            ),
            (Kind::Within(1, 500), "100000", Ok("500")),
            (Kind::Memory(0), "-1", Err("argument must be a memory value")),
            (
                Kind::MemoryOrPercent,
                "200%",
                Err("percentage argument must be less or equal to 100"),
            ),
            (Kind::Events, "KEA", Ok("AKE")),
            (Kind::Events, "K$lshzxeg", Ok("g$lshzxeK")),
            (Kind::Bool, "YES", Ok("yes")),
            (Kind::Int(0, 5), "6", Err("argument must be between 0 and 5 inclusive")),
            (Kind::Shutdown, "now NOSAVE", Ok("nosave now")),
            (Kind::Save, "3600 1  300 100", Ok("3600 1 300 100")),
            (Kind::Save, "3600", Err("Invalid save parameters")),
            (Kind::Percentiles, "0.0 50 100.0", Ok("0 50 100")),
        ] {
            let parameter = Parameter { name: "p", alias: "", kind, default: "" };
            let parsed = parameter.parse(text, "");
            assert_eq!(parsed.as_deref().map_err(String::as_str), shown, "{text}");
        }
    }
}
