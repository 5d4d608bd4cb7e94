//! Flags that several commands share, and what their values mean.

use crate::instant::{parse_duration, parse_rfc3339};
use crate::load::LoadOptions;
use crate::load::limits::Limits;
use crate::load::settle::Settle;
use crate::observe::Observed;
use crate::payload::Protocol;
use crate::shapes::ShapeScale;
use crate::tsbs::Scale;
use crate::workload::RequestFormat;
use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A flag with a value and perhaps a default.
pub fn value(name: &'static str, default: Option<&'static str>, help: &'static str) -> Arg {
    let arg = Arg::new(name).long(name).help(help);
    match default {
        Some(default) => arg.default_value(default),
        None => arg,
    }
}

/// A flag without a value.
pub fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// The text of a flag that has a default or is required.
///
/// # Errors
/// When it has neither.
pub fn text<'a>(matches: &'a ArgMatches, name: &str) -> Result<&'a str> {
    optional_text(matches, name).with_context(|| format!("--{name} is missing"))
}

/// The text of a flag, if given.
pub fn optional_text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

/// The number of a flag.
///
/// # Errors
/// When it is none.
pub fn number<T: FromStr>(matches: &ArgMatches, name: &str) -> Result<T> {
    let text = text(matches, name)?;
    text.parse().ok().with_context(|| format!("--{name} {text:?} is not a number"))
}

/// The duration of a flag.
///
/// # Errors
/// When it is none.
pub fn duration(matches: &ArgMatches, name: &str) -> Result<Duration> {
    parse_duration(text(matches, name)?).with_context(|| format!("--{name}"))
}

/// The path of a flag, if given.
pub fn path(matches: &ArgMatches, name: &str) -> Option<PathBuf> {
    optional_text(matches, name).map(PathBuf::from)
}

/// Bytes: `500MB`, `4GiB`, `1000`.
///
/// # Errors
/// When the text has another shape.
pub fn parse_size(text: &str) -> Result<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().with_context(|| format!("{text:?} is not a size"))?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => bail!("{text:?}: unknown unit {unit:?}, use KiB, MiB, GiB, KB, MB or GB"),
    };
    number.checked_mul(factor).with_context(|| format!("{text:?} is too large"))
}

/// What a TSBS data set is made of.
pub fn scale_flags() -> Vec<Arg> {
    vec![
        value("scale", Some("10000"), "Hosts; ten times as many series"),
        value("interval", Some("10m"), "Distance between two samples of a series"),
        value("start", Some("2016-01-01T00:00:00Z"), "First instant"),
        value("end", Some("2016-01-02T00:00:00Z"), "End, exclusive"),
        value("seed", Some("123"), "The same seed gives the same data"),
    ]
}

/// Reads [`scale_flags`].
///
/// # Errors
/// When one is malformed.
pub fn scale(matches: &ArgMatches) -> Result<Scale> {
    Ok(Scale {
        hosts: number(matches, "scale")?,
        interval_ns: duration(matches, "interval")?.as_nanos() as i64,
        start_ns: parse_rfc3339(text(matches, "start")?).context("--start")?,
        end_ns: parse_rfc3339(text(matches, "end")?).context("--end")?,
        seed: number(matches, "seed")?,
    })
}

/// What a shape is made of.
pub fn shape_flags() -> Vec<Arg> {
    vec![
        value("series", Some("100000"), "Series at any one time"),
        value("samples", Some("100"), "Samples of each"),
        value("interval", Some("60s"), "Distance between two samples of a series"),
        value("start", Some("2026-01-01T00:00:00Z"), "First instant"),
        value("seed", Some("123"), "The same seed gives the same data"),
    ]
}

/// Reads [`shape_flags`].
///
/// # Errors
/// When one is malformed.
pub fn shape_scale(matches: &ArgMatches) -> Result<ShapeScale> {
    Ok(ShapeScale {
        series: number(matches, "series")?,
        samples_each: number(matches, "samples")?,
        interval_ns: duration(matches, "interval")?.as_nanos() as i64,
        start_ns: parse_rfc3339(text(matches, "start")?).context("--start")?,
        seed: number(matches, "seed")?,
    })
}

/// How requests are cut, and by how many workers they are sent.
pub fn request_flags() -> Vec<Arg> {
    vec![
        value("protocol", Some("influx"), "What requests speak")
            .value_parser(clap::builder::PossibleValuesParser::new(Protocol::NAMES)),
        value("workers", Some("2"), "Threads, each with a connection"),
        value("batch-lines", Some("10000"), "Lines in a request of line protocol"),
        value("batch-samples", Some("10000"), "Series samples in a request of remote write"),
        value("give-up-after", Some("60s"), "A request that fails for so long ends the load"),
        value("row-interval", Some("5s"), "Distance of the rows of the rate over time"),
    ]
}

/// When a run is stopped.
pub fn limit_flags() -> Vec<Arg> {
    vec![
        value("time-limit", None, "Stop a load after so long"),
        value("memory-limit", None, "Stop a load when the server's RSS is larger"),
        value("disk-limit", None, "Stop a load when the server's directory is larger"),
    ]
}

/// Reads [`limit_flags`].
///
/// # Errors
/// When one is malformed.
pub fn limits(matches: &ArgMatches) -> Result<Limits> {
    let size = |name| optional_text(matches, name).map(parse_size).transpose().context(name);
    Ok(Limits {
        time: optional_text(matches, "time-limit").map(parse_duration).transpose()?,
        memory_bytes: size("memory-limit")?,
        disk_bytes: size("disk-limit")?,
    })
}

/// Reads [`request_flags`] and [`limit_flags`] for a server at `authority`.
///
/// # Errors
/// When one is malformed.
pub fn load_options(matches: &ArgMatches, authority: &str) -> Result<LoadOptions> {
    let protocol = Protocol::parse(text(matches, "protocol")?)?;
    let workers = number(matches, "workers")?;
    ensure!((1..=1000).contains(&workers), "--workers must be 1 to 1000");
    Ok(LoadOptions {
        authority: authority.to_string(),
        path: protocol.path().to_string(),
        format: RequestFormat {
            protocol,
            lines_max: number(matches, "batch-lines")?,
            samples_max: number(matches, "batch-samples")?,
        },
        workers,
        give_up_after: duration(matches, "give-up-after")?,
        row_interval: duration(matches, "row-interval")?.max(Duration::from_millis(100)),
        settle: Settle::default(),
        limits: limits(matches)?,
    })
}

/// A server that runs already.
pub fn server_flags() -> Vec<Arg> {
    vec![
        value("url", Some("http://127.0.0.1:8428"), "The server"),
        value("server-pid", None, "Its process, to report CPU, memory and I/O"),
        value("server-pidfile", None, "A file with its process id"),
        value("server-data-dir", None, "Its directory, to report bytes on disk"),
    ]
}

/// `host:port` of `--url`.
///
/// # Errors
/// When it is no plain HTTP address.
pub fn authority(matches: &ArgMatches) -> Result<String> {
    let url = text(matches, "url")?;
    let rest = url.strip_prefix("http://").with_context(|| format!("{url:?}: not http://"))?;
    let authority = rest.trim_end_matches('/');
    ensure!(!authority.contains('/'), "{url:?}: give only host and port");
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if has_port { authority.to_string() } else { format!("{authority}:80") })
}

/// Reads what [`server_flags`] say of the process.
///
/// # Errors
/// When the pid is malformed or its file cannot be read.
pub fn observed(matches: &ArgMatches) -> Result<Observed> {
    let pid = match (optional_text(matches, "server-pid"), path(matches, "server-pidfile")) {
        (Some(pid), _) => Some(pid.to_string()),
        (None, Some(file)) => {
            let context = || format!("cannot read {}", file.display());
            Some(std::fs::read_to_string(&file).with_context(context)?)
        }
        (None, None) => None,
    };
    let pid = pid.map(|pid| pid.trim().parse()).transpose().context("malformed server pid")?;
    Ok(Observed { pid, data_dir: path(matches, "server-data-dir"), ..Observed::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("1000").unwrap(), 1000);
        assert_eq!(parse_size("4GiB").unwrap(), 4 << 30);
        assert_eq!(parse_size("500MB").unwrap(), 500_000_000);
        for bad in ["", "GiB", "4 TB", "99999999999GiB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
