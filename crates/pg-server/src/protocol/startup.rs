//! Who comes in, and what a client is told first.

use crate::session::settings::Settings;
use app::App;
use async_trait::async_trait;
use net::auth::Credentials;
use pgwire::api::ClientInfo;
use pgwire::api::auth::sasl::scram::{SCRAM_ITERATIONS, ScramAuth, gen_salted_password};
use pgwire::api::auth::{AuthSource, LoginInfo, Password, ServerParameterProvider};
use pgwire::error::PgWireResult;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of salt.
const SALT_SIZE: usize = 16;
/// Bytes of a salted password.
const SALTED_SIZE: usize = 32;

/// What is known before anybody comes.
pub struct Startup {
    /// None where nobody is asked.
    passwords: Option<Arc<Passwords>>,
    /// The certificate that TLS shows, as PEM, to which SCRAM binds; none without TLS.
    certificate: Option<Vec<u8>>,
}

impl Startup {
    /// As credentials are set.
    pub fn new(app: &App) -> Startup {
        let credentials = &app.config.credentials;
        if !credentials.are_required() {
            return Startup { passwords: None, certificate: None };
        }
        let random = |size: usize| -> Vec<u8> {
            let numbers = std::iter::repeat_with(|| app.vfs.random().to_le_bytes());
            numbers.flatten().take(size).collect()
        };
        let passwords = Passwords::new(credentials, random(SALT_SIZE), random(SALTED_SIZE));
        let passwords = Arc::new(passwords);
        let certificate = certificate(app, &passwords);
        Startup { passwords: Some(passwords), certificate }
    }

    /// Authentication that a client must pass; none without credentials. Over TLS the proof may be bound to
    /// the certificate (SCRAM-SHA-256-PLUS), so that a man in the middle cannot relay it.
    pub fn challenge(&self, is_secure: bool) -> Option<ScramAuth> {
        let passwords = self.passwords.clone()?;
        let mut scram = ScramAuth::new(passwords);
        if let Some(certificate) = self.certificate.as_ref().filter(|_| is_secure)
            && let Err(error) = scram.configure_certificate(certificate)
        {
            tracing::debug!(%error, "no channel binding");
        }
        Some(scram)
    }
}

/// The certificate, if proofs can be bound to it.
fn certificate(app: &App, passwords: &Arc<Passwords>) -> Option<Vec<u8>> {
    let (path, _) = app.config.tls.as_ref()?;
    let pem = std::fs::read(path).ok()?;
    match ScramAuth::new(passwords.clone()).configure_certificate(&pem) {
        Ok(()) => Some(pem),
        Err(error) => {
            tracing::warn!(%error, "PostgreSQL's clients get no channel binding (SCRAM-SHA-256-PLUS)");
            None
        }
    }
}

/// The one password, salted; the token stands in its place where there is no user.
struct Passwords {
    user: Option<String>,
    salt: Vec<u8>,
    salted: Vec<u8>,
    /// What nobody's password is, for users who are not known: they fail where wrong passwords do.
    nobodys: Vec<u8>,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passwords(hidden)")
    }
}

impl Passwords {
    fn new(credentials: &Credentials, salt: Vec<u8>, nobodys: Vec<u8>) -> Passwords {
        let (user, secret) = credentials.for_challenge();
        let salted = gen_salted_password(secret, &salt, SCRAM_ITERATIONS);
        Passwords { user: user.map(str::to_string), salt, salted, nobodys }
    }
}

#[async_trait]
impl AuthSource for Passwords {
    async fn get_password(&self, login: &LoginInfo) -> PgWireResult<Password> {
        let name = login.user().unwrap_or_default();
        let is_known = self.user.as_deref().is_none_or(|known| known == name);
        let salted = if is_known { &self.salted } else { &self.nobodys };
        Ok(Password::new(Some(self.salt.clone()), salted.clone()))
    }
}

/// What a client is told of the server.
pub struct Parameters;

impl ServerParameterProvider for Parameters {
    fn server_parameters<C: ClientInfo>(&self, client: &C) -> Option<HashMap<String, String>> {
        let mut settings = Settings::default();
        for name in ["application_name", "client_encoding"] {
            if let Some(value) = client.metadata().get(name) {
                // What cannot be set is said by who makes the session.
                let _ = settings.set(name, value);
            }
        }
        let reported = settings.reported().into_iter();
        Some(reported.map(|(name, value)| (name.to_string(), value)).collect())
    }
}
