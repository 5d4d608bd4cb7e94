//! Lets clients in: who they are, what they set as they come, what they are told first.

use super::startup::Parameters;
use crate::Postgres;
use crate::session::cancels::Cancelled;
use crate::session::notifications::Actions;
use crate::session::settings::Settings;
use crate::session::{Client, Session};
use crate::statements::prepared::Parser;
use crate::values::answers::fatal;
use async_trait::async_trait;
use futures::Sink;
use net::login_limiter;
use net::telemetry::Limit;
use pgwire::api::auth::sasl::scram::ScramAuth;
use pgwire::api::auth::sasl::{
    SASLAuthStartupHandler, SCRAM_SHA_256_METHOD, SCRAM_SHA_256_PLUS_METHOD,
};
use pgwire::api::auth::{
    StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::{ClientInfo, PgWireConnectionState, PidSecretKeyGenerator};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::startup::{PasswordMessageFamily, SecretKey};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use sql::ordinary::Setting;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::sleep;

/// Proof that a connection has finished its authentication. Only this module can make one, and a
/// session, without which no statement runs, takes one.
pub struct Authenticated(());

/// Lets a client in.
pub struct Welcome {
    door: Arc<Postgres>,
    parser: Arc<Parser>,
    names: Arc<Names>,
    sasl: Option<SASLAuthStartupHandler<Parameters>>,
    /// Whether channel binding is offered.
    binds: bool,
    /// Whether the client has chosen a mechanism.
    has_chosen: AtomicBool,
    /// Client that authenticates; none once it has finished.
    applicant: Mutex<Option<Client>>,
}

/// Gives a connection the number and the key by which it may be cancelled.
struct Names {
    door: Arc<Postgres>,
    cancelled: Arc<Cancelled>,
    /// The number that was given.
    pid: Arc<AtomicI32>,
}

impl PidSecretKeyGenerator for Names {
    fn generate(&self, client: &dyn ClientInfo) -> (i32, SecretKey) {
        let (pid, key) = self.door.pids.generate(client);
        self.door.cancels.add(pid, &key, &self.cancelled);
        self.pid.store(pid, Ordering::Relaxed);
        (pid, key)
    }
}

impl Welcome {
    /// Of a connection whose statements `parser` understands.
    pub fn new(
        door: &Arc<Postgres>,
        is_secure: bool,
        parser: &Arc<Parser>,
        cancelled: &Arc<Cancelled>,
    ) -> Arc<Welcome> {
        let names = Arc::new(Names {
            door: door.clone(),
            cancelled: cancelled.clone(),
            pid: Arc::default(),
        });
        let scram = door.startup.challenge(is_secure);
        let binds = scram.as_ref().is_some_and(ScramAuth::supports_channel_binding);
        let sasl = scram.map(|scram| {
            SASLAuthStartupHandler::new(Arc::new(Parameters))
                .with_scram(scram)
                .with_pid_secret_key_generator(names.clone())
        });
        let (door, parser, applicant) = (door.clone(), parser.clone(), Mutex::default());
        let has_chosen = AtomicBool::new(false);
        Arc::new(Welcome { door, parser, names, sasl, binds, has_chosen, applicant })
    }

    /// Reads what a client sets as it comes. There is no session before [`Welcome::begin_session`].
    fn take_application<C: ClientInfo>(&self, client: &C) -> PgWireResult<()> {
        let named = |name: &str| client.metadata().get(name).cloned().unwrap_or_default();
        let (user, database) = (named("user"), named("database"));
        // As PostgreSQL, which calls it after who asks.
        let database = if database.is_empty() { user.clone() } else { database };
        let mut settings = Settings::default();
        for Setting { name, value, .. } in self.door.database.settings(&user, &database) {
            // One that was known when it was kept, and is not any more, keeps nobody out.
            let _ = settings.set(&name, &value);
        }
        for (name, value) in client.metadata() {
            let set = match name.as_str() {
                "user" | "database" | "replication" => Ok(()),
                "options" => settings.take_options(value),
                // Times stay those of UTC and say so; a client that names its own zone, as JDBC's
                // does, reads them rightly.
                "TimeZone" | "timezone" => Ok(()),
                _ if name.starts_with("_pq_.") => Ok(()),
                name => settings.set(name, value),
            };
            set.map_err(|failure| fatal(failure.code, failure.message))?;
        }
        let pid = self.names.pid.clone();
        let client = Client {
            user,
            database,
            app: self.door.app.clone(),
            settings: Mutex::new(settings),
            pid,
            place: Mutex::default(),
            actions: Actions::default(),
            inbox: Arc::default(),
        };
        *self.applicant.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
        Ok(())
    }

    /// Refuses a client while tables are damaged: names could mean something else without them.
    fn check_tables(&self) -> PgWireResult<()> {
        match &self.door.app.closed.tables {
            Some(reason) => Err(fatal("58030", reason.clone())),
            None => Ok(()),
        }
    }

    /// Fails where a client's first message of SASL does not fit what was offered.
    fn check_mechanism(
        &self,
        message: PgWireFrontendMessage,
    ) -> PgWireResult<PgWireFrontendMessage> {
        let first = match message {
            PgWireFrontendMessage::PasswordMessageFamily(first) => first,
            other => return Ok(other),
        };
        if self.has_chosen.swap(true, Ordering::Relaxed) {
            return Ok(PgWireFrontendMessage::PasswordMessageFamily(first));
        }
        let first = first.into_sasl_initial_response()?;
        let data = first.data.as_deref().unwrap_or_default();
        if !is_fitting(self.binds, &first.auth_method, data) {
            return Err(fatal("28000", "SCRAM channel binding negotiation error"));
        }
        let first = PasswordMessageFamily::SASLInitialResponse(first);
        Ok(PgWireFrontendMessage::PasswordMessageFamily(first))
    }

    /// Fails after too many wrong passwords of the client's address.
    fn check_attempts<C: ClientInfo>(&self, client: &C) -> PgWireResult<()> {
        let app = &self.door.app;
        if app.logins.may_try(Some(client.socket_addr())) {
            return Ok(());
        }
        app.telemetry.limit_hit(Limit::FailedLogins);
        Err(fatal("28000", login_limiter::REFUSAL))
    }

    /// The answer to a wrong password, after its delay.
    async fn refuse_password<C: ClientInfo>(&self, client: &C) -> PgWireError {
        sleep(self.door.app.logins.fail("PostgreSQL", Some(client.socket_addr()))).await;
        let user = client.metadata().get("user").map_or("", String::as_str);
        fatal("28P01", format!("password authentication failed for user \"{user}\""))
    }

    /// Begins the session of a client whose authentication has finished.
    fn begin_session<C: ClientInfo>(&self, client: &C) -> PgWireResult<()> {
        if !matches!(client.state(), PgWireConnectionState::ReadyForQuery) {
            return Ok(());
        }
        let applicant = self.applicant.lock().unwrap_or_else(PoisonError::into_inner).take();
        let applicant =
            applicant.ok_or_else(|| fatal("08P01", "authentication without a startup message"))?;
        self.check_tables()?;
        self.parser.begin(Session::new(&self.door, applicant, Authenticated(())));
        Ok(())
    }
}

/// Whether the header of a client's first message goes with its mechanism. One that says that only the
/// server cannot bind, where the server offers to, has met somebody who takes that out.
fn is_fitting(binds: bool, mechanism: &str, data: &[u8]) -> bool {
    match (mechanism, data.first()) {
        (SCRAM_SHA_256_PLUS_METHOD, _) => binds && data.starts_with(b"p=tls-server-end-point,"),
        (SCRAM_SHA_256_METHOD, Some(b'y')) => !binds,
        (SCRAM_SHA_256_METHOD, Some(b'p')) => false,
        _ => true,
    }
}

#[async_trait]
impl StartupHandler for Welcome {
    async fn on_startup<C>(
        &self,
        client: &mut C,
        message: PgWireFrontendMessage,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if let PgWireFrontendMessage::Startup(startup) = &message {
            save_startup_parameters_to_metadata(client, startup);
            self.take_application(client)?;
            if self.sasl.is_none() {
                self.check_tables()?;
            }
        }
        if let Some(sasl) = &self.sasl {
            self.check_attempts(client)?;
            let message = self.check_mechanism(message)?;
            let answered = match sasl.on_startup(client, message).await {
                Err(PgWireError::InvalidPassword(_)) => Err(self.refuse_password(client).await),
                answered => answered,
            };
            answered?;
            return self.begin_session(client);
        }
        if let PgWireFrontendMessage::Startup(startup) = &message {
            protocol_negotiation(client, startup).await?;
            let (pid, key) = self.names.generate(client);
            client.set_pid_and_secret_key(pid, key);
            finish_authentication(client, &Parameters).await?;
        }
        self.begin_session(client)
    }
}
