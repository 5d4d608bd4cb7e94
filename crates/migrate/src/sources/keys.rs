//! Keys of RedisTimeSeries that are made anew where somebody wants that, and what of them does not come along.

use anyhow::{Context as _, bail};
use http_client::client::without_logins;
use http_client::resp::{Answer, Connection};
use model::{Labels, METRIC_NAME};
use std::collections::BTreeSet;

/// What Redis calls the type.
pub const TYPE: &str = "TSDB-TYPE";
/// Rules that are named.
const RULES_SHOWN: usize = 10;

/// Who is asked, and as whom.
#[derive(Clone, Debug)]
pub struct Login {
    /// `redis://host:port`.
    pub url: String,
    /// The port of a URL without one.
    pub port: u16,
    /// Whom to log in as.
    pub user: String,
    /// File with that user's password.
    pub password_file: Option<String>,
}

/// Asks; what broke is connected anew the next time.
///
/// # Errors
/// When the server cannot be reached, or refuses.
pub fn ask(
    login: &Login,
    connection: &mut Option<Connection>,
    words: &[&[u8]],
) -> anyhow::Result<Answer> {
    let mut open = match connection.take() {
        Some(open) => open,
        None => {
            let Login { url, port, user, password_file } = login;
            Connection::to(url, *port, user, password_file.as_deref())
                .with_context(|| without_logins(url))?
        }
    };
    open.add(b"", words);
    let mut answered = Answer::Null;
    open.flush(&mut |_, answer| answered = answer)?;
    // It is whole: what is refused is no reason to leave.
    *connection = Some(open);
    match answered {
        Answer::Refused(why) => {
            let command = words.first().copied().unwrap_or_default();
            bail!("{}: {why}", String::from_utf8_lossy(command))
        }
        answer => Ok(answer),
    }
}

/// Makes keys where somebody wants that.
pub struct Keys {
    target: Option<(Login, Option<Connection>)>,
}

impl Keys {
    /// By the Redis door of a server; not at all where none is named.
    pub fn new(target: Option<Login>) -> Keys {
        Keys { target: target.map(|login| (login, None)) }
    }

    /// Whether keys are made.
    pub fn are_wanted(&self) -> bool {
        self.target.is_some()
    }

    /// Makes the key of a series; one that is there stays as it is. Without a policy the server decides.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    pub fn make(&mut self, labels: &Labels, retention_ms: u64, policy: &str) -> anyhow::Result<()> {
        let Some((login, connection)) = &mut self.target else { return Ok(()) };
        let retention = retention_ms.to_string();
        let mut words: Vec<&[u8]> =
            vec![b"TS.CREATE", labels.metric_name().as_bytes(), b"RETENTION", retention.as_bytes()];
        if !policy.is_empty() {
            words.extend([&b"DUPLICATE_POLICY"[..], policy.as_bytes()]);
        }
        words.push(b"LABELS");
        for (name, value) in labels.iter().filter(|(name, _)| *name != METRIC_NAME) {
            words.extend([name.as_bytes(), value.as_bytes()]);
        }
        match ask(login, connection, &words) {
            Err(error) if !format!("{error:#}").contains("already exists") => {
                Err(error.context(format!("--keys-url {}", without_logins(&login.url))))
            }
            _ => Ok(()),
        }
    }
}

/// What is left out of keys that have compaction rules: nothing where none has.
pub fn rules_left_out(rules: &BTreeSet<String>) -> Option<String> {
    if rules.is_empty() {
        return None;
    }
    let named: Vec<&str> = rules.iter().take(RULES_SHOWN).map(String::as_str).collect();
    let more = if named.len() < rules.len() { ", .." } else { "" };
    Some(format!(
        "the compaction rules of {}{more}: TS.CREATERULE makes them here",
        named.join(", ")
    ))
}
