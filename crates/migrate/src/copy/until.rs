//! Moves the `until` of the new server's legacy backend as a copy advances, so that queries of what is
//! copied do not ask the old server any more (`docs/legacy.md`).
//!
//! ```text
//! windows   [ day -3 ][ day -2 ][ day -1 ][ today .. ]
//!             open      done      done      done
//!                      ▲                     ▲
//!                    moves to              until, up to which the old one is asked
//! ```
//!
//! It moves over what was copied whole alone: all series, with their labels as they were, nothing
//! refused, and no time between it and the present `until` that was not copied. Every step names where
//! it starts from, so that neither another copy nor a person who moves it is overtaken.

use super::progress::Progress;
use crate::arguments::text;
use crate::source::Window;
use crate::sources::kinds::Kind;
use crate::sources::source_arguments::{client, places};
use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use clap::ArgMatches;
use cli::calendar::rfc3339;
use cli::error_text::sentence;
use federation::until::{NOTHING, parse, text_of};
use http_client::client::{Asked, BEARER, Client, encode};
use hyper::{Method, StatusCode};
use model::sample::NANOS_PER_SECOND;
use model::{TimeRange, Timestamp};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use vfs::{RealVfs, Vfs};

/// What an old server has taken is found by readers a little later: nothing is believed to be there
/// before `until` is so long ago.
const SETTLING: i64 = 60 * NANOS_PER_SECOND;
/// How long the new server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked at what has become whole, at most.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes of an answer.
const ANSWER_SIZE_MAX: usize = 1 << 20;
/// What takes a part of the series away, or changes them: then no day is whole.
const CHANGES: [&str; 5] = ["match", "drop-label", "rename-label", "set-label", "database"];

/// Who moves it.
pub struct Mover {
    client: Client,
    url: String,
    kind: &'static str,
    /// Who copies: somebody else may see less than the server does.
    login: String,
    /// The time that is copied.
    copied: TimeRange,
    /// When it was last looked.
    looked: Option<Instant>,
    /// What was said last of what keeps it.
    said: String,
    /// Windows of an earlier run that never moved it: whether the server still has them nobody knows,
    /// for it would look the same if it had lost all.
    doubted: BTreeSet<String>,
}

/// What the new server says of its legacy backends.
struct Found {
    /// Up to when it asks what is copied from; nothing where it does not.
    until: Option<Timestamp>,
    /// How many other backends it has.
    others: usize,
}

/// Whether all series are copied as they are: otherwise nothing moves.
pub fn is_whole(matches: &ArgMatches) -> bool {
    let is_said = |name: &str| matches.get_many::<String>(name).is_some();
    !CHANGES.iter().any(|name| is_said(name))
}

/// Why nothing moves, whatever is copied.
fn why_not(matches: &ArgMatches, kind: &Kind) -> Option<&'static str> {
    match kind.name {
        // One of several databases of a server has no until of its own.
        "influxdb" => Some("not of an InfluxDB; start the server with another until"),
        _ if !kind.is_legacy => Some("no server is asked for old samples of this kind"),
        _ if !is_whole(matches) => {
            Some("a part of the series is copied, or labels are changed, so no day is whole")
        }
        _ => None,
    }
}

/// How `--legacy` calls what is copied from.
fn legacy_kind(kind: &Kind) -> &'static str {
    match kind.name {
        // Asked like a Prometheus.
        "quipu" => "prometheus",
        name => name,
    }
}

/// Until when all that is older was copied, of what is asked up to `until`: where that may move.
/// Nothing where it may not.
fn copied_since(
    windows: &[Window],
    is_done: &dyn Fn(&Window) -> bool,
    copied: &TimeRange,
    until: Timestamp,
) -> Option<Timestamp> {
    if copied.end < until.saturating_sub(1) {
        return None;
    }
    let open = windows.iter().filter(|one| one.range.start < until && !is_done(one));
    let since = open.map(|one| one.range.end.saturating_add(1)).max();
    let since = since.unwrap_or(Timestamp::MIN).max(copied.start);
    (since < until).then_some(since)
}

/// Since when a kind of server tells for sure that it has nothing else. A Prometheus takes samples that are
/// older than what it calls its oldest time, where they may come out of order.
fn first_of(kind: &str, windows: &[Window]) -> Timestamp {
    match kind {
        "victoriametrics" => Timestamp::MIN,
        // Before its oldest day nothing was there when that was looked for; later something may come.
        _ => {
            let starts = windows.iter().map(|one| one.range.start);
            starts.filter(|start| *start != Timestamp::MIN).min().unwrap_or(Timestamp::MAX)
        }
    }
}

impl Mover {
    /// Who moves the `until` of what is copied from, where the new server asks that. Says what will be
    /// done, and waits until what the old one has taken can be found there.
    ///
    /// # Errors
    /// An argument that makes no sense.
    pub fn new(
        matches: &ArgMatches,
        kind: &Kind,
        progress: &mut Progress,
    ) -> anyhow::Result<Option<Mover>> {
        if !matches.get_flag("move-until") {
            return Ok(None);
        }
        if let Some(why) = why_not(matches, kind) {
            eprintln!("quipu: --move-until moves nothing: {why}");
            return Ok(None);
        }
        let mut mover = Mover::of(matches, kind, progress)?;
        let until = match mover.until() {
            Ok(Found { until: Some(Timestamp::MIN), .. } | Found { until: None, others: 0 }) => {
                return Ok(None);
            }
            Ok(Found { until: Some(until), .. }) => until,
            Ok(Found { until: None, .. }) => {
                eprintln!(
                    "quipu: no legacy backend of the server is url={} kind={}: no until moves",
                    mover.url, mover.kind
                );
                return Ok(None);
            }
            Err(error) => {
                let words = sentence(&error);
                eprintln!("quipu: the until of legacy backends is not moved: {words}");
                return Ok(None);
            }
        };
        // Where it is already: whether it may be moved by this copy.
        let may_move = mover.order(&text_of(until), &text_of(until));
        let why_not = may_move.err().map(|error| sentence(&error));
        if let Some(why) = why_not.or_else(|| mover.begin(until, progress)) {
            eprintln!("quipu: --move-until moves nothing: {why}");
            return Ok(None);
        }
        let server = text(matches, "url");
        eprintln!(
            "{server} asks {} up to {}: that moves back over what is copied whole",
            mover.url,
            text_of(until)
        );
        if !mover.doubted.is_empty() {
            eprintln!(
                "quipu: it does not move over the {} windows of an earlier run that never moved it, nor over \
                 what lies behind them: the server may have lost them since; to have it moved copy all once \
                 more, with another --progress",
                mover.doubted.len()
            );
        }
        Ok(Some(mover))
    }

    fn of(matches: &ArgMatches, kind: &Kind, progress: &Progress) -> anyhow::Result<Mover> {
        let place = places(matches).first().copied().context("no place")?;
        Ok(Mover {
            client: Client::new(matches)?,
            url: place.trim_end_matches('/').to_string(),
            kind: legacy_kind(kind),
            login: client(matches, place, BEARER)?.login_digest(),
            copied: TimeRange::new(progress.time.0, progress.time.1),
            looked: None,
            said: String::new(),
            doubted: BTreeSet::new(),
        })
    }

    /// Begins to copy, or goes on, where the server asks up to `until`; why nothing moves, if that is so.
    fn begin(&mut self, until: Timestamp, progress: &mut Progress) -> Option<String> {
        if progress.began.is_none() && progress.done.is_empty() {
            self.settle(until);
            progress.began = Some(RealVfs::new().now());
            progress.until = Some(until);
        }
        if progress.began.is_none() {
            let words = "this copy began without it, so nobody knows what was there by then; name \
                         another --progress to copy all once more";
            return Some(words.to_string());
        }
        if progress.until.is_none_or(|before| before < until) {
            return Some(format!(
                "until={} is later than this copy left it, so the server may have lost what was copied; \
                 name another --progress to copy all once more",
                text_of(until)
            ));
        }
        if !progress.has_moved {
            self.doubted.extend(progress.done.keys().cloned());
        }
        None
    }

    /// Waits until all that the old server has from before `until` can be read there.
    fn settle(&self, until: Timestamp) {
        let left = until.saturating_add(SETTLING).saturating_sub(RealVfs::new().now());
        if 0 < left && until.saturating_sub(1) <= self.copied.end {
            let left = Duration::from_nanos(left.unsigned_abs());
            eprintln!(
                "waiting for {} s: what came to {} just before {} may not be found there yet",
                left.as_secs() + 1,
                self.url,
                rfc3339(until)
            );
            std::thread::sleep(left);
        }
    }

    /// Up to when the new server asks what is copied from.
    fn until(&mut self) -> anyhow::Result<Found> {
        let (status, text) = self.ask(Method::GET, "/api/v1/status/legacy", Bytes::new())?;
        if status == StatusCode::NOT_FOUND {
            bail!("the server is older than this command, and does not know how");
        }
        if !status.is_success() {
            bail!("{status}: {text}");
        }
        let answer: serde_json::Value =
            serde_json::from_str(&text).context("an answer that is no JSON")?;
        let all = answer["data"]["backends"].as_array().context("no list of backends")?;
        let is_it =
            |one: &&serde_json::Value| one["url"] == self.url.as_str() && one["kind"] == self.kind;
        let Some(found) = all.iter().find(is_it) else {
            return Ok(Found { until: None, others: all.len() });
        };
        let text = found["until"].as_str().context("a backend without its until")?;
        let until = parse(text).map_err(|why| anyhow!(why))?;
        Ok(Found { until: Some(until), others: all.len() - 1 })
    }

    /// Moves it from one time to another.
    fn order(&mut self, from: &str, to: &str) -> anyhow::Result<()> {
        let (url, kind, login) = (encode(&self.url), self.kind, &self.login);
        let (from, to) = (encode(from), encode(to));
        let form = format!("url={url}&kind={kind}&from={from}&until={to}&login={login}");
        let path = "/api/v1/admin/legacy/until";
        let (status, text) = self.ask(Method::POST, path, Bytes::from(form))?;
        if !status.is_success() {
            bail!("{status}: {text}");
        }
        Ok(())
    }

    fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, String)> {
        let headers = &[("content-type", "application/x-www-form-urlencoded")];
        let asked = Asked { method, path, headers, body };
        let mut text = Vec::new();
        let reply = self.client.ask_until(Instant::now() + PATIENCE, &asked, &mut |bytes| {
            text.extend_from_slice(bytes);
            match text.len() <= ANSWER_SIZE_MAX {
                true => Ok(()),
                false => bail!("an answer of more than {ANSWER_SIZE_MAX} bytes"),
            }
        })?;
        let words = if reply.error.is_empty() { text } else { reply.error.into_bytes() };
        Ok((reply.status, String::from_utf8_lossy(&words).into_owned()))
    }

    /// Moves it over what is copied by now, if a moment has passed since it was last looked. Words for
    /// whoever looks on, if there is something new to say.
    pub fn advance(&mut self, windows: &[Window], progress: &mut Progress) -> Option<String> {
        if self.looked.is_some_and(|at| at.elapsed() < EVERY) {
            return None;
        }
        self.looked = Some(Instant::now());
        self.advance_now(windows, progress)
    }

    /// The same at once.
    pub fn advance_now(&mut self, windows: &[Window], progress: &mut Progress) -> Option<String> {
        let words = match self.try_advance(windows, progress) {
            Ok(words) => words?,
            Err(error) => format!("until is not moved: {}", sentence(&error)),
        };
        if words == self.said {
            return None;
        }
        self.said.clone_from(&words);
        Some(words)
    }

    fn try_advance(
        &mut self,
        windows: &[Window],
        progress: &mut Progress,
    ) -> anyhow::Result<Option<String>> {
        let Some(until) = self.until()?.until else { return Ok(None) };
        if self.copied.end < until.saturating_sub(1) {
            return Ok(Some(format!(
                "until={} of {} stays: the copy ends before it, at {}",
                rfc3339(until),
                self.url,
                rfc3339(self.copied.end)
            )));
        }
        let is_done = |one: &Window| {
            progress.done.contains_key(&one.name) && !self.doubted.contains(&one.name)
        };
        let first = first_of(self.kind, windows);
        let since = copied_since(windows, &is_done, &self.copied, until);
        let Some(to) = since.map(|to| to.max(first)).filter(|to| *to < until) else {
            return Ok(None);
        };
        // The newest was read by then.
        if progress.began.is_none_or(|began| began < until.saturating_add(SETTLING)) {
            return Ok(Some(format!(
                "until={} of {} stays: the copy began before what came to it until then was sure to be \
                 found there; copy once more to have it moved",
                rfc3339(until),
                self.url
            )));
        }
        let to = text_of(to);
        self.order(&text_of(until), &to)?;
        progress.until = Some(parse(&to).map_err(|why| anyhow!(why))?);
        progress.has_moved = true;
        Ok(Some(match to.as_str() {
            NOTHING => format!("{} is not asked any more: all of it is here", self.url),
            _ => format!("{} is asked up to {to} from now on", self.url),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::days;
    use http_client::client::Access;
    use model::sample::NANOS_PER_DAY as DAY;

    /// Where `until` may move when some days of days 10 to 20 at noon are done.
    fn since(done: &[i64], copied: (i64, i64), until: i64) -> Option<i64> {
        let copied = TimeRange::new(copied.0, copied.1);
        let windows = days::windows(&TimeRange::new(copied.start.max(10 * DAY), copied.end));
        let is_done = |one: &Window| done.contains(&one.range.start.div_euclid(DAY));
        copied_since(&windows, &is_done, &copied, until)
    }

    #[test]
    fn it_moves_over_what_is_whole() {
        let noon = 20 * DAY + DAY / 2;
        let all = (i64::MIN, noon);
        assert_eq!(since(&[], all, noon), None);
        assert_eq!(since(&[20], all, noon), Some(20 * DAY));
        assert_eq!(since(&[20], all, noon + 1), Some(20 * DAY), "the end was copied");
        assert_eq!(since(&[20], all, noon + 2), None, "it was not copied so far");
        assert_eq!(since(&[20, 19], all, noon), Some(19 * DAY));
        assert_eq!(since(&[20, 18], all, noon), Some(20 * DAY), "not over a hole");
        assert_eq!(since(&[19, 18], all, noon), None);
        assert_eq!(since(&[19, 18], all, 20 * DAY), Some(18 * DAY), "another copied the last one");
        assert_eq!(since(&[19, 18], all, 18 * DAY), None, "it is there");
        assert_eq!(since(&[20], all, i64::MIN), None);
        let every: Vec<i64> = (0..=20).collect();
        assert_eq!(since(&every, all, noon), Some(i64::MIN), "nothing is left");
        let start = 12 * DAY + 5;
        assert_eq!(since(&every, (start, noon), noon), Some(start));
        assert_eq!(since(&every, (start, noon), start), None);
        assert_eq!(since(&every, (start, noon), 11 * DAY), None);
    }

    /// A copy that goes on, of a server that asks up to `until`: why nothing moves, and the windows that
    /// nobody believes in.
    fn going_on(progress: &Progress, until: i64) -> (Option<String>, Vec<String>) {
        let client = |url: &str| Client::open(url, &Access::anonymous()).expect("a client");
        let mut mover = Mover {
            client: client("http://127.0.0.1:1"),
            url: String::new(),
            kind: "prometheus",
            login: String::new(),
            copied: TimeRange::new(i64::MIN, 0),
            looked: None,
            said: String::new(),
            doubted: BTreeSet::new(),
        };
        let why = mover.begin(until, &mut progress.clone());
        (why, mover.doubted.into_iter().collect())
    }

    #[test]
    fn a_copy_that_goes_on_believes_what_it_has_moved_over() {
        let done = [("2026-08-29".to_string(), 7)].into();
        let before = Progress {
            done,
            began: Some(100),
            until: Some(50),
            has_moved: true,
            ..Progress::default()
        };
        assert_eq!(going_on(&before, 50), (None, vec![]));
        assert_eq!(going_on(&before, 40), (None, vec![]), "somebody moved it further");
        let (why, _) = going_on(&before, 51);
        assert!(why.expect("it is later").contains("later than this copy left it"));
        let never = Progress { has_moved: false, ..before.clone() };
        assert_eq!(going_on(&never, 50), (None, vec!["2026-08-29".to_string()]));
        let (why, _) = going_on(&Progress { began: None, until: None, ..before }, 50);
        assert!(why.expect("it is not known").contains("began without it"));
    }

    #[test]
    fn of_a_prometheus_it_stays_at_the_oldest_day_that_was_copied() {
        let windows = days::windows(&TimeRange::new(10 * DAY + 5, 12 * DAY));
        assert_eq!(first_of("prometheus", &windows), 10 * DAY + 5);
        let before = TimeRange::new(i64::MIN, 10 * DAY - 1);
        let before = Window { name: "before".to_string(), range: before, samples: None };
        let with_older = [&windows[..], &[before]].concat();
        assert_eq!(first_of("prometheus", &with_older), 10 * DAY + 5);
        assert_eq!(first_of("prometheus", &[]), i64::MAX, "nothing was copied, and nothing moves");
        assert_eq!(first_of("victoriametrics", &windows), i64::MIN);
    }
}
