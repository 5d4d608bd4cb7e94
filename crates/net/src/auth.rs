//! Who may come in: a user with a password, a token. Every door finds its own way to be told either.
//!
//! Secrets are compared in constant time and never printed.

use std::fmt;
use subtle::ConstantTimeEq as _;

/// The one user and the one token that are let in. None of both: everybody is.
#[derive(Clone, Default)]
pub struct Credentials {
    /// `user:password`.
    user_password: Option<String>,
    /// The user's name alone.
    user: String,
    token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.are_required() { "Credentials(hidden)" } else { "Credentials(none)" })
    }
}

impl Credentials {
    /// Credentials of a user with a password, a token, either or neither.
    pub fn new(user: Option<(String, String)>, token: Option<String>) -> Credentials {
        Credentials {
            user: user.as_ref().map(|(user, _)| user.clone()).unwrap_or_default(),
            user_password: user.map(|(user, password)| format!("{user}:{password}")),
            token,
        }
    }

    /// Whether a client must bring any.
    pub fn are_required(&self) -> bool {
        self.user_password.is_some() || self.token.is_some()
    }

    /// What a client must prove that it knows without saying it: a password and whose it is, else the
    /// token, whoever has it.
    pub fn for_challenge(&self) -> (Option<&str>, &str) {
        let password = self.user_password.as_deref().and_then(|pair| pair.split_once(':'));
        match password {
            Some((user, password)) => (Some(user), password),
            None => (None, self.token.as_deref().unwrap_or_default()),
        }
    }

    /// Whether the token is the known one.
    pub fn allow_token(&self, token: &str) -> bool {
        self.token.as_deref().is_some_and(|known| is_same(known, token))
    }

    /// Whether the user may come in with that password, in whose place a token may stand.
    pub fn allow_user(&self, user: &str, password: &str) -> bool {
        self.allow_pair(&format!("{user}:{password}"))
    }

    /// Whether it is the one user's password, or the token: for protocols whose clients may leave the
    /// user's name out.
    pub fn allow_password(&self, password: &str) -> bool {
        self.allow_user(&self.user, password)
    }

    /// The same of `user:password`; InfluxDB 2's clients send the token in the password's place.
    pub fn allow_pair(&self, pair: &str) -> bool {
        if self.user_password.as_deref().is_some_and(|known| is_same(known, pair)) {
            return true;
        }
        let Some((user, password)) = pair.split_once(':') else { return false };
        (self.user.is_empty() || user == self.user) && self.allow_token(password)
    }
}

fn is_same(known: &str, given: &str) -> bool {
    known.as_bytes().ct_eq(given.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_tokens() {
        let both = Credentials::new(Some(("u".into(), "p:q".into())), Some("t".into()));
        assert!(both.are_required() && !Credentials::default().are_required());
        assert!(both.allow_token("t") && !both.allow_token("") && !both.allow_token("tt"));
        assert!(both.allow_user("u", "p:q") && both.allow_user("u", "t"));
        assert!(!both.allow_user("u", "p") && !both.allow_user("v", "t"));
        let token = Credentials::new(None, Some("t".into()));
        assert!(token.allow_user("whoever", "t") && !token.allow_user("t", ""));
        let user = Credentials::new(Some(("u".into(), "p".into())), None);
        assert!(!user.allow_token("") && !user.allow_user("u", ""));
    }
}
