//! Arguments of the command line as sources get them.

use super::keys::{Keys, Login};
use crate::series::Filter;
use anyhow::{Context as _, bail};
use clap::ArgMatches;
use http_client::client::{Access, Client, without_logins};
use http_client::resp::PORT;
use model::TimeRange;
use std::sync::Arc;

/// Arguments of a source.
pub struct SourceArguments<'a> {
    /// All that was said.
    pub matches: &'a ArgMatches,
    /// URLs, files or directories; at least one.
    pub places: Vec<&'a str>,
    /// Which series.
    pub filter: Arc<Filter>,
    /// Of which time.
    pub range: TimeRange,
}

/// URLs, files or directories that the arguments name.
pub fn places(matches: &ArgMatches) -> Vec<&str> {
    matches.get_many::<String>("place").into_iter().flatten().map(String::as_str).collect()
}

impl<'a> SourceArguments<'a> {
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

    fn said(&self, name: &str) -> Option<String> {
        self.matches.try_get_one::<String>(name).ok().flatten().cloned()
    }

    /// Whom to log in to a Redis as: the arguments of those names say the user and the password's file.
    pub fn login(&self, url: String, port: u16, [user, password_file]: [&str; 2]) -> Login {
        let user = self.said(user).unwrap_or_else(|| "default".to_string());
        Login { url, port, user, password_file: self.said(password_file) }
    }

    /// What makes keys, where somebody wants that.
    pub fn keys(&self) -> Keys {
        let url = self.said("keys-url");
        Keys::new(url.map(|url| self.login(url, PORT, ["user", "password-file"])))
    }

    /// A client for the server at the one place, whose token stands behind a word.
    ///
    /// # Errors
    /// A URL or a file that cannot be used.
    pub fn client(&self, token_word: &str) -> anyhow::Result<Client> {
        client(self.matches, self.place()?, token_word)
    }
}

/// A client for the server at a place that is copied from, whose token stands behind a word.
///
/// # Errors
/// A URL or a file that cannot be used.
pub fn client(matches: &ArgMatches, place: &str, token_word: &str) -> anyhow::Result<Client> {
    let said = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let access = Access {
        user: said("from-user"),
        password_file: said("from-password-file"),
        bearer_token_file: said("from-bearer-token-file"),
        token_word,
        tls_ca: said("from-tls-ca"),
        ca_flag: "--from-tls-ca FILE",
        login_flags: "--from-user with --from-password-file, or --from-bearer-token-file",
    };
    let client = Client::open(place, &access).with_context(|| without_logins(place))?;
    Ok(client.refusing_partial())
}
