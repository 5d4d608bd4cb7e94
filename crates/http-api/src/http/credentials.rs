//! How a request over HTTP says who sends it: basic authentication, bearer tokens, and the ways
//! InfluxDB's clients say the same.

use super::Http;
use super::answer::Wording;
use super::arrived::Arrived;
use super::connection::HttpConnection;
use super::router::Access;
use base64::Engine as _;
use hyper::header::{AUTHORIZATION, HeaderMap};
use net::auth::Credentials;
use net::failure::{Failure, Kind};
use net::login_limiter;
use net::telemetry::Limit;
use tokio::time::sleep;

/// Whether the request may come in. The answer to wrong credentials waits as [`LoginLimiter`] says.
///
/// [`LoginLimiter`]: net::login_limiter::LoginLimiter
///
/// # Errors
/// [`Kind::Unauthorized`] with wrong or missing credentials, [`Kind::Busy`] after too many wrong ones.
pub(super) async fn check_credentials(
    http: &Http,
    connection: &HttpConnection,
    arrived: &Arrived,
) -> Result<(), Failure> {
    let credentials = &http.app.config.credentials;
    if arrived.route.access == Access::Open || !credentials.are_required() {
        return Ok(());
    }
    let speaks_influx = matches!(arrived.route.wording, Wording::InfluxV1 | Wording::InfluxV2);
    let parameter = |name| arrived.params.get(name).filter(|_| speaks_influx);
    let has_some = arrived.headers.contains_key(AUTHORIZATION) || parameter("p").is_some();
    let logins = &http.app.logins;
    if has_some && !connection.is_authenticated() && !logins.may_try(arrived.peer) {
        return Err(Failure::busy(login_limiter::REFUSAL).hit(Limit::FailedLogins));
    }
    if allow(credentials, &arrived.headers, parameter("u"), parameter("p")) {
        connection.set_authenticated(true);
        return Ok(());
    }
    http.counters.unauthorized.add(1);
    if has_some {
        connection.set_authenticated(false);
        sleep(logins.fail("HTTP", arrived.peer)).await;
    }
    Err(Failure::new(Kind::Unauthorized, refusal(arrived.route.wording, has_some)))
}

/// Cause and remedy of a 401. InfluxDB's clients look for its first words.
fn refusal(wording: Wording, has_some: bool) -> String {
    let influx = match wording {
        Wording::InfluxV1 => "authorization failed: ",
        Wording::InfluxV2 => "unauthorized access: ",
        _ => "",
    };
    let cause = match (has_some, wording) {
        (true, _) => {
            "wrong user name, password or token: compare them with --http-user, --http-password and \
             --bearer-token of the server"
        }
        (false, Wording::InfluxV1) => {
            "the request has no credentials: send the header Authorization, or the parameters u and p"
        }
        (false, Wording::InfluxV2 | Wording::InfluxV3) => {
            "the request has no credentials: send the header Authorization: Token TOKEN, or Token \
             USER:PASSWORD"
        }
        (false, _) => {
            "the request has no credentials: send the header Authorization with basic \
             authentication or a bearer token"
        }
    };
    format!("{influx}{cause}")
}

/// Whether these headers, or these `u` and `p` parameters, are good enough.
fn allow(
    credentials: &Credentials,
    headers: &HeaderMap,
    user: Option<&str>,
    password: Option<&str>,
) -> bool {
    if !credentials.are_required() {
        return true;
    }
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if header.is_some_and(|text| allow_header(credentials, text)) {
        return true;
    }
    match (user, password) {
        (Some(user), Some(password)) => credentials.allow_user(user, password),
        _ => false,
    }
}

fn allow_header(credentials: &Credentials, text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(' ') else { return false };
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return credentials.allow_token(rest);
    }
    if scheme.eq_ignore_ascii_case("token") {
        return credentials.allow_token(rest) || credentials.allow_pair(rest);
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return false;
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(rest).unwrap_or_default();
    std::str::from_utf8(&decoded).is_ok_and(|pair| credentials.allow_pair(pair))
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
        assert!(allow(&Credentials::default(), &HeaderMap::new(), None, None));
    }

    #[test]
    fn each_way_to_say_the_same() {
        let both = Credentials::new(Some(("u".into(), "p:q".into())), Some("t".into()));
        for good in ["Bearer t", "bearer t", "Token t", "Token u:p:q"] {
            assert!(allow(&both, &headers(good), None, None), "{good}");
        }
        assert!(allow(&both, &basic("u:p:q"), None, None));
        assert!(allow(&both, &basic("u:t"), None, None), "token as password");
        assert!(allow(&both, &HeaderMap::new(), Some("u"), Some("p:q")));
        for bad in ["Bearer", "Bearer ", "Bearer x", "Token u:x", "Basic !!!", "Digest t", "t"] {
            assert!(!allow(&both, &headers(bad), None, None), "{bad}");
        }
        assert!(!allow(&both, &basic("u:"), None, None));
        assert!(!allow(&both, &HeaderMap::new(), Some("u"), None));
        assert!(!allow(&both, &HeaderMap::new(), None, None));
    }

    #[test]
    fn no_token_set_means_no_token_fits() {
        let user = Credentials::new(Some(("u".into(), "p".into())), None);
        assert!(!allow(&user, &headers("Bearer "), None, None));
        assert!(!allow(&user, &basic("u:"), None, None));
    }
}
