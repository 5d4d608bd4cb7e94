//! What can be copied from: a row for each kind.

use super::series::Filter;
use super::source::Source;
use super::{blocks, remote_read, text, victoriametrics};
use crate::commands::client::{Access, BEARER, Client};
use anyhow::{Context as _, bail};
use clap::ArgMatches;
use model::TimeRange;
use std::path::Path;
use std::sync::Arc;

/// A kind of source.
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// What stands behind it on the command line.
    place: &'static str,
    /// What it is, for `--help`.
    about: &'static str,
    /// Whether `--legacy` can ask it while it is copied.
    pub is_legacy: bool,
    open: fn(&Asked<'_>) -> anyhow::Result<Box<dyn Source>>,
}

/// What a source is opened with.
pub struct Asked<'a> {
    /// All that was said.
    pub matches: &'a ArgMatches,
    /// URLs, files or directories; at least one.
    pub places: Vec<&'a str>,
    /// Which series.
    pub filter: Arc<Filter>,
    /// Of which time.
    pub range: TimeRange,
}

#[rustfmt::skip] // a table
const KINDS: &[Kind] = &[
    Kind { name: "victoriametrics", place: "URL", is_legacy: true,
           about: "a running VictoriaMetrics (of a cluster the URL of a vmselect with its path)",
           open: |asked| Ok(Box::new(victoriametrics::VictoriaMetrics::new(asked.client(BEARER)?, asked.filter.clone(), asked.range))) },
    Kind { name: "prometheus", place: "URL", is_legacy: true,
           about: "a running Prometheus, or whatever answers its remote read",
           open: remote_read },
    Kind { name: "prometheus-blocks", place: "DIR", is_legacy: false,
           about: "Prometheus' data directory, a snapshot of it, or Thanos' blocks fetched from a bucket",
           open: |asked| Ok(Box::new(blocks::Blocks::new(Path::new(asked.place()?), asked.filter.clone(), asked.range))) },
    Kind { name: "quipu", place: "URL", is_legacy: true,
           about: "another Quipu",
           open: remote_read },
];

fn remote_read(asked: &Asked<'_>) -> anyhow::Result<Box<dyn Source>> {
    let client = asked.client(BEARER)?;
    Ok(Box::new(remote_read::RemoteRead::new(client, asked.filter.clone(), asked.range)))
}

/// The names of all kinds.
pub fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// A line for each kind.
pub fn about() -> String {
    let line = |kind: &Kind| {
        let said = format!("{} {}", kind.name, kind.place);
        format!("{said:<27} {}\n", kind.about)
    };
    KINDS.iter().map(line).collect()
}

impl Kind {
    /// The kind that the arguments name.
    ///
    /// # Errors
    /// Never, after the arguments were checked.
    pub fn of(matches: &ArgMatches) -> anyhow::Result<&'static Kind> {
        let name = text(matches, "kind");
        KINDS.iter().find(|kind| kind.name == name).with_context(|| format!("no kind {name}"))
    }

    /// The source that the arguments name, of a time.
    ///
    /// # Errors
    /// When an argument makes no sense.
    pub fn open(
        &self,
        matches: &ArgMatches,
        filter: &Arc<Filter>,
        range: TimeRange,
    ) -> anyhow::Result<Box<dyn Source>> {
        (self.open)(&Asked { matches, places: places(matches), filter: filter.clone(), range })
    }
}

/// URLs, files or directories that the arguments name.
pub fn places(matches: &ArgMatches) -> Vec<&str> {
    matches.get_many::<String>("place").into_iter().flatten().map(String::as_str).collect()
}

impl<'a> Asked<'a> {
    /// The one place.
    ///
    /// # Errors
    /// When there are several.
    pub fn place(&self) -> anyhow::Result<&'a str> {
        match self.places.as_slice() {
            [place] => Ok(place),
            _ => bail!("{} places: this kind is copied from one", self.places.len()),
        }
    }

    /// A client for the server at the one place, whose token stands behind a word.
    ///
    /// # Errors
    /// A URL or a file that cannot be used.
    pub fn client(&self, token_word: &str) -> anyhow::Result<Client> {
        let said = |name: &str| self.matches.get_one::<String>(name).map(String::as_str);
        let access = Access {
            user: said("from-user"),
            password_file: said("from-password-file"),
            bearer_token_file: said("from-bearer-token-file"),
            token_word,
            tls_ca: said("from-tls-ca"),
        };
        let place = self.place()?;
        Client::open(place, &access).with_context(|| place.to_string())
    }
}
