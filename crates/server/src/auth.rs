//! Who may come in: basic authentication, bearer tokens, and the ways InfluxDB's clients say the same.
//!
//! Secrets are compared in constant time and never printed.

use base64::Engine as _;
use hyper::header::{AUTHORIZATION, HeaderMap};
use std::fmt;
use subtle::ConstantTimeEq as _;

/// The one user and the one token that are let in. None of both: everybody is.
#[derive(Clone, Default)]
pub struct Credentials {
    /// `user:password`.
    user_password: Option<String>,
    /// The user's name alone, for `?u=`.
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

    /// Whether a request must bring any.
    pub fn are_required(&self) -> bool {
        self.user_password.is_some() || self.token.is_some()
    }

    /// Whether a request with these headers and these `u` and `p` parameters may come in.
    pub fn allow(&self, headers: &HeaderMap, user: Option<&str>, password: Option<&str>) -> bool {
        if !self.are_required() {
            return true;
        }
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if header.is_some_and(|text| self.allow_header(text)) {
            return true;
        }
        match (user, password) {
            (Some(user), Some(password)) => self.allow_pair(&format!("{user}:{password}")),
            _ => false,
        }
    }

    fn allow_header(&self, text: &str) -> bool {
        let Some((scheme, rest)) = text.split_once(' ') else { return false };
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.allow_token(rest);
        }
        if scheme.eq_ignore_ascii_case("token") {
            return self.allow_token(rest) || self.allow_pair(rest);
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return false;
        }
        let decoded = base64::engine::general_purpose::STANDARD.decode(rest).unwrap_or_default();
        std::str::from_utf8(&decoded).is_ok_and(|pair| self.allow_pair(pair))
    }

    fn allow_token(&self, token: &str) -> bool {
        self.token
            .as_ref()
            .is_some_and(|known| bool::from(known.as_bytes().ct_eq(token.as_bytes())))
    }

    /// `user:password`; InfluxDB 2's clients send the token in the password's place.
    fn allow_pair(&self, pair: &str) -> bool {
        let known = self.user_password.as_deref();
        if known.is_some_and(|known| bool::from(known.as_bytes().ct_eq(pair.as_bytes()))) {
            return true;
        }
        let Some((user, password)) = pair.split_once(':') else { return false };
        (self.user.is_empty() || user == self.user) && self.allow_token(password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(text).expect("header"));
        headers
    }

    fn basic(pair: &str) -> HeaderMap {
        headers(&format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair)))
    }

    #[test]
    fn without_credentials_everybody_comes_in() {
        assert!(Credentials::default().allow(&HeaderMap::new(), None, None));
    }

    #[test]
    fn each_way_to_say_the_same() {
        let both = Credentials::new(Some(("u".into(), "p:q".into())), Some("t".into()));
        for good in ["Bearer t", "bearer t", "Token t", "Token u:p:q"] {
            assert!(both.allow(&headers(good), None, None), "{good}");
        }
        assert!(both.allow(&basic("u:p:q"), None, None));
        assert!(both.allow(&basic("u:t"), None, None), "token as password");
        assert!(both.allow(&HeaderMap::new(), Some("u"), Some("p:q")));
        for bad in ["Bearer", "Bearer ", "Bearer x", "Token u:x", "Basic !!!", "Digest t", "t"] {
            assert!(!both.allow(&headers(bad), None, None), "{bad}");
        }
        assert!(!both.allow(&basic("u:"), None, None));
        assert!(!both.allow(&HeaderMap::new(), Some("u"), None));
        assert!(!both.allow(&HeaderMap::new(), None, None));
    }

    #[test]
    fn no_token_set_means_no_token_fits() {
        let user = Credentials::new(Some(("u".into(), "p".into())), None);
        assert!(!user.allow(&headers("Bearer "), None, None));
        assert!(!user.allow(&basic("u:"), None, None));
    }
}
