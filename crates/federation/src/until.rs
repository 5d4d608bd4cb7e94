//! Up to when backends are asked: what the flag says, or an earlier time that somebody has moved it to.
//!
//! ```text
//! --legacy '.. until=U' ─► asked up to U ─ move_until(T < U) ─► DATA/legacy, synced ─► asked up to T
//!                              ▲ start: T again, as long as the flag says U (docs/format/legacy.md)
//! ```
//!
//! - Nobody is asked for more than the flag says. What cannot be read of the file asks for more than
//!   must be, never for less.
//! - The flag that says another time than when it was moved wins, and so does a rule that is gone.

use super::Legacy;
use super::backend::Backend;
use super::rule::{Kind, Rule};
use cli::calendar::rfc3339;
use model::Timestamp;
use net::failure::Failure;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};
use store::{MovedUntil, Store};
use vfs::Vfs;

/// The word for a time before all others: nothing is asked any more.
pub const NOTHING: &str = "none";

/// Where the file is.
#[derive(Clone, Copy)]
pub struct Home<'a> {
    /// Its disk.
    pub vfs: &'a dyn Vfs,
    /// The data directory.
    pub dir: &'a Path,
}

/// What is wished of an `until`.
pub struct Wish<'a> {
    /// The backend's, as the flag has it but for a slash at its end.
    pub url: &'a str,
    /// How it is spoken to.
    pub kind: Kind,
    /// Where it is to be; [`Timestamp::MIN`] asks nothing any more.
    pub until: Timestamp,
    /// Where it has to be before; others may have moved it meanwhile.
    pub from: Option<Timestamp>,
    /// Where to.
    pub direction: Direction,
    /// Digest of the login that copied the samples it moves over ([`http_client::client::Client::login_digest`]):
    /// somebody else may see less than this server does. A person does not say it.
    pub login: Option<&'a str>,
}

/// Where an `until` may move to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To an earlier time.
    Back,
    /// To a later one, too: then the backend is asked again for what was said to be here.
    Both,
}

/// The text of a time, [`NOTHING`] for the one before all others.
pub fn text_of(until: Timestamp) -> String {
    if until == Timestamp::MIN { NOTHING.to_string() } else { rfc3339(until) }
}

/// The time of a text.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<Timestamp, String> {
    if text == NOTHING { Ok(Timestamp::MIN) } else { super::rule::parse_until(text) }
}

fn is_of(moved: &MovedUntil, rule: &Rule) -> bool {
    moved.url == rule.url && moved.kind == rule.kind.word()
}

impl Legacy {
    /// Takes up what was moved before the last stop, where the flags still say what they said then.
    pub(super) fn recall(&self, home: Home<'_>) {
        let moved = match MovedUntil::read_all(home.vfs, home.dir) {
            Ok(moved) => moved,
            Err(error) => {
                let words = format!(
                    "{error}: it is not known how far the until of legacy backends was moved, so \
                     they are asked up to what --legacy says; moving one of them again writes it anew"
                );
                tracing::warn!("{words}");
                *self.problem() = Some(words);
                return;
            }
        };
        let count = moved.len();
        let taken = moved.into_iter().filter(|one| self.take_up(one)).count();
        // What is forgotten stays so, also when a flag is set back.
        if taken < count
            && let Err(error) = MovedUntil::write_all(home.vfs, home.dir, &self.moved())
        {
            tracing::warn!("what was moved of legacy backends is not forgotten: {error}");
        }
    }

    /// Whether an entry of the file counts; says so.
    fn take_up(&self, moved: &MovedUntil) -> bool {
        let MovedUntil { url, kind, said, until } = moved;
        let (from, to) = (text_of(*said), text_of(*until));
        let Some(backend) = self.backends.iter().find(|one| is_of(moved, one.rule())) else {
            tracing::info!(
                "no rule of --legacy has url={url} kind={kind} any more: that its until was moved \
                 from {from} to {to} is forgotten"
            );
            return false;
        };
        let now = backend.rule().until;
        if now != *said {
            tracing::warn!(
                "--legacy says until={} of {url}, and said {from} when that was moved to {to}: the \
                 flag counts, what was moved is forgotten",
                text_of(now)
            );
            return false;
        }
        tracing::info!("{url} is asked up to {to}: it was moved there from until={from}");
        backend.set_until(*until);
        true
    }

    /// What the file is to have.
    fn moved(&self) -> Vec<MovedUntil> {
        let all = self.backends.iter().filter(|one| one.until_now() != one.rule().until);
        all.map(|one| entry(one, one.until_now())).collect()
    }

    fn problem(&self) -> MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with the file, since start and until it is written anew.
    pub fn problem_words(&self) -> Option<String> {
        self.problem().clone()
    }

    /// All backends.
    pub fn backends(&self) -> &[Arc<Backend>] {
        &self.backends
    }

    /// The latest time up to which any of them is asked; `None` when none is.
    pub fn until(&self) -> Option<Timestamp> {
        let all = self.backends.iter().map(|one| one.until_now());
        all.max().filter(|until| *until != Timestamp::MIN)
    }

    /// Moves the `until` of a backend; durable when it counts.
    ///
    /// # Errors
    /// When there is no such backend, it may not move there, it is not where it should be, or the
    /// file cannot be written.
    pub fn move_until(
        &self,
        store: &Store,
        home: Home<'_>,
        wish: &Wish<'_>,
    ) -> Result<Arc<Backend>, Failure> {
        let mut problem = self.problem();
        let url = wish.url.trim_end_matches('/');
        let is_it = |one: &&Arc<Backend>| one.url() == url && one.rule().kind == wish.kind;
        let Some(backend) = self.backends.iter().find(is_it) else {
            let kind = wish.kind.word();
            let failure = Failure::not_found(format!("no legacy backend url={url} kind={kind}"));
            return Err(failure.advised("/api/v1/status/legacy lists them"));
        };
        check(backend, wish)?;
        let before = backend.until_now();
        if wish.until == before {
            return Ok(backend.clone());
        }
        let mut moved = self.moved();
        moved.retain(|one| !is_of(one, backend.rule()));
        if wish.until != backend.rule().until {
            moved.push(entry(backend, wish.until));
        }
        MovedUntil::write_all(home.vfs, home.dir, &moved)?;
        store.move_until(|| backend.set_until(wish.until));
        *problem = None;
        let (from, to) = (text_of(before), text_of(wish.until));
        tracing::info!("{url} is asked up to {to} from now on: it was moved there from {from}");
        Ok(backend.clone())
    }
}

fn entry(backend: &Backend, until: Timestamp) -> MovedUntil {
    let rule = backend.rule();
    let (url, kind) = (rule.url.clone(), rule.kind.word().to_string());
    MovedUntil { url, kind, said: rule.until, until }
}

/// Whether an `until` may move where it is wished.
fn check(backend: &Backend, wish: &Wish<'_>) -> Result<(), Failure> {
    if let Some(login) = wish.login {
        let own =
            backend.login_digest().map_err(|error| Failure::internal(format!("{error:#}")))?;
        if own != login {
            let words = format!(
                "the copy logs in to {} as somebody else than this server does, and may see less",
                backend.url()
            );
            let remedy = "copy as the user, or with the token, that --legacy names";
            return Err(Failure::bad_input(words).advised(remedy));
        }
    }
    let (now, flag) = (backend.until_now(), backend.rule().until);
    let (to, now_text) = (text_of(wish.until), text_of(now));
    if let Some(from) = wish.from.filter(|from| *from != now) {
        let words = format!("it is at {now_text}, and not at {}", text_of(from));
        return Err(Failure::bad_input(format!("until is not moved to {to}: {words}")));
    }
    if flag < wish.until {
        let words = format!("{to} is later than the flag's until={}", text_of(flag));
        return Err(Failure::bad_input(words).advised("change --legacy for that"));
    }
    if now < wish.until && wish.direction == Direction::Back {
        let words = format!("{to} is later than {now_text}, up to which it is asked now");
        let remedy = "say forward=1 to have it asked again for the time between";
        return Err(Failure::bad_input(words).advised(remedy));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LegacyConfig, rule};
    use std::path::PathBuf;
    use vfs::SimVfs;

    const OLD: &str = "url=http://old:1/ kind=prometheus until=1000; ";

    struct Place {
        disk: Arc<SimVfs>,
        dir: PathBuf,
        store: Arc<Store>,
    }

    fn place() -> Place {
        let (disk, dir) = (Arc::new(SimVfs::new(1)), PathBuf::from("/data"));
        let store = Store::open(disk.clone(), &dir, store::StoreConfig::standard());
        Place { disk, dir, store: store.expect("a new one") }
    }

    impl Place {
        fn home(&self) -> Home<'_> {
            Home { vfs: self.disk.as_ref(), dir: &self.dir }
        }

        /// As after a start with these rules.
        fn legacy(&self, rules: &str) -> Legacy {
            let rules = rule::parse(rules).expect("rules");
            let config = LegacyConfig { rules, ..LegacyConfig::default() };
            let legacy = Legacy::new(&config).expect("backends");
            legacy.recall(self.home());
            legacy
        }

        fn move_to(&self, legacy: &Legacy, until: i64, more: &str) -> Result<i64, String> {
            let from = more.strip_prefix("from=").map(|text| parse(text).expect("a time"));
            let direction = if more == "forward" { Direction::Both } else { Direction::Back };
            let (url, kind) = ("http://old:1", Kind::Prometheus);
            let wish = Wish { url, kind, until, from, direction, login: None };
            let moved = legacy.move_until(&self.store, self.home(), &wish);
            moved.map(|one| one.until_now()).map_err(|failure| failure.to_string())
        }
    }

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn it_moves_back_and_stays_there() {
        let place = place();
        let legacy = place.legacy(OLD);
        assert_eq!(legacy.until(), Some(1000 * SECOND));
        assert_eq!(place.move_to(&legacy, 500 * SECOND, ""), Ok(500 * SECOND));
        assert_eq!(place.move_to(&legacy, 500 * SECOND, ""), Ok(500 * SECOND), "it is there");
        for (until, more, part) in [
            (600, "", "say forward=1"),
            (1001, "forward", "later than the flag's"),
            (400, "from=1000", "it is at 1970-01-01T00:08:20Z"),
        ] {
            let refused = place.move_to(&legacy, until * SECOND, more).expect_err(more);
            assert!(refused.contains(part), "{refused}");
        }
        assert_eq!(place.move_to(&legacy, 600 * SECOND, "forward"), Ok(600 * SECOND));
        assert_eq!(place.move_to(&legacy, 450 * SECOND, "from=600"), Ok(450 * SECOND));
        let two = format!("{OLD} url=http://b kind=prometheus until=7");
        let again = place.legacy(&two);
        assert_eq!(again.backends[0].until_now(), 450 * SECOND);
        assert_eq!(again.backends[1].until_now(), 7 * SECOND);
        assert_eq!(place.move_to(&again, Timestamp::MIN, ""), Ok(Timestamp::MIN));
        let again = place.legacy(OLD);
        assert_eq!(again.until(), None, "nothing is asked");
        assert_eq!(place.move_to(&again, 1000 * SECOND, "forward"), Ok(1000 * SECOND));
        assert_eq!(MovedUntil::read_all(place.disk.as_ref(), &place.dir).expect("a file"), []);
    }

    #[test]
    fn who_logs_in_as_somebody_else_moves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, name).expect("a file");
            path.display().to_string()
        };
        let (own, other) = (file("own"), file("other"));
        let place = place();
        let legacy = place.legacy(&OLD.replace("; ", &format!(" user=a password-file={own};")));
        let digest = |user: &str, path: &str| {
            let rule =
                format!("url=http://x kind=prometheus until=1 user={user} password-file={path}");
            let rule = rule::parse(&rule).expect("a rule").remove(0);
            let backend = Backend::new(rule, Default::default()).expect("a backend");
            backend.login_digest().expect("a digest")
        };
        let order = |login: &str| {
            let (url, kind, until) = ("http://old:1", Kind::Prometheus, 500 * SECOND);
            let (from, direction) = (None, Direction::Back);
            let wish = Wish { url, kind, until, from, direction, login: Some(login) };
            let moved = legacy.move_until(&place.store, place.home(), &wish);
            moved.map(|one| one.until_now()).map_err(|failure| failure.to_string())
        };
        for login in [String::new(), digest("a", &other), digest("b", &own)] {
            let refused = order(&login).expect_err("somebody else");
            assert!(refused.contains("somebody else"), "{refused}");
            assert!(!refused.contains(&digest("a", &own)), "{refused}");
        }
        assert_eq!(order(&digest("a", &own)), Ok(500 * SECOND));
    }

    #[test]
    fn a_flag_that_says_something_else_wins() {
        for rules in [
            "url=http://old:1 kind=prometheus until=999",
            "url=http://old:1 kind=victoriametrics until=1000",
            "url=http://old:2 kind=prometheus until=1000",
            "",
        ] {
            let place = place();
            place.move_to(&place.legacy(OLD), 500 * SECOND, "").expect("it moves");
            let legacy = place.legacy(rules);
            let at_flag = |one: &Arc<Backend>| one.until_now() == one.rule().until;
            assert!(legacy.backends.iter().all(at_flag), "{rules}");
            assert_eq!(place.legacy(OLD).until(), Some(1000 * SECOND), "it is forgotten");
        }
    }

    #[test]
    fn what_cannot_be_read_asks_for_more() {
        let place = place();
        place.move_to(&place.legacy(OLD), 500 * SECOND, "").expect("it moves");
        let path = place.dir.join("legacy");
        let good = place.disk.read(&path).expect("a file");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            for bytes in [&bad[..], &good[..at]] {
                vfs::write_atomic(place.disk.as_ref(), &path, bytes).expect("a good disk");
                let legacy = place.legacy(OLD);
                assert_eq!(legacy.until(), Some(1000 * SECOND));
                assert!(legacy.problem_words().is_some_and(|words| words.contains("/data/legacy")));
            }
        }
        let legacy = place.legacy(OLD);
        place.move_to(&legacy, 400 * SECOND, "").expect("it moves");
        assert_eq!(legacy.problem_words(), None);
        assert_eq!(place.legacy(OLD).until(), Some(400 * SECOND));
    }

    #[test]
    fn what_is_not_on_disk_does_not_count() {
        let place = place();
        let legacy = place.legacy(OLD);
        place.disk.set_free_space(0);
        place.move_to(&legacy, 500 * SECOND, "").expect_err("a full disk");
        assert_eq!(legacy.until(), Some(1000 * SECOND));
    }
}
