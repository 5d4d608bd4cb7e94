//! Progress of a copy, as its file stores it.

use crate::source::Mark;
use anyhow::{Context as _, anyhow};
use cli::checkpoint::Checkpoint;
use http_client::client::without_logins;
use http_client::target_store::{IS_ANOTHER, is_same};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Samples of days, by their dates.
pub type Days = BTreeMap<String, u64>;

/// How far a copy is; what it copies is in it, so that another is not taken for its continuation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Where from, and which of it.
    pub asked: BTreeMap<String, String>,
    /// Store that the samples are sent to, where the server names it.
    #[serde(default)]
    pub store: Option<String>,
    /// First and last instant in nanoseconds.
    pub time: (i64, i64),
    /// Windows that are stored, with their samples.
    pub done: BTreeMap<String, u64>,
    /// Samples that the target had in the time of a window when it was done, of it and of others.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Windows that were looked at and are not done, and why.
    #[serde(default)]
    pub undone: BTreeMap<String, String>,
    /// How far the window is that is under way.
    #[serde(default)]
    pub part: Option<Part>,
    /// Samples of days that were here before the copy began, and those that came to the same days.
    #[serde(default)]
    pub had: Days,
    #[serde(default)]
    pub came: Days,
    /// When the first window was read, where that matters to who moves an `until`, in nanoseconds.
    #[serde(default)]
    pub began: Option<i64>,
    /// Where the `until` of a legacy backend was when this copy saw it last, in nanoseconds.
    #[serde(default)]
    pub until: Option<i64>,
    /// Whether this copy has moved it.
    #[serde(default)]
    pub has_moved: bool,
    /// Whether something was left out of a window that is done: then no `until` moves.
    #[serde(default)]
    pub lacks: bool,
}

impl Progress {
    /// Forgets what was sent. The time of the copy stays, and what moves an `until`.
    pub fn start_anew(&mut self) {
        let Progress { asked, store, time, began, until, has_moved, .. } = std::mem::take(self);
        *self = Progress { asked, store, time, began, until, has_moved, ..Progress::default() };
    }
}

/// How far a window is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub window: String,
    /// All before it is stored.
    pub mark: Mark,
    /// Samples of it that were sent.
    pub samples: u64,
}

/// What the progress file of an earlier run of the same copy says, or a new beginning; and whether there was
/// one. What was sent to another store does not count.
///
/// # Errors
/// When the file is of another copy.
pub fn begin(checkpoint: &Checkpoint, asked: Progress) -> anyhow::Result<(Progress, bool)> {
    let Some(mut found) = checkpoint.read::<Progress>()? else { return Ok((asked, false)) };
    // Earlier versions wrote passwords of URLs down.
    found.asked.values_mut().for_each(|value| *value = without_logins(value));
    let differs = |(name, value): (&String, &String)| {
        let before = found.asked.get(name);
        (before != Some(value))
            .then(|| format!("{name} was {}", before.map_or("not said", |one| one)))
    };
    match asked.asked.iter().find_map(differs) {
        Some(words) => Err(anyhow!("{words}")).context(
            "the progress file is of another copy; name another with --progress, or remove it",
        ),
        None if is_same(found.store.as_ref(), asked.store.as_ref()) => Ok((found, true)),
        None => {
            eprintln!("quipu: {IS_ANOTHER}");
            Ok((asked, false))
        }
    }
}
