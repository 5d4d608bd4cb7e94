//! Lets clients in: who they are, what they set as they come, what they are told first.

use super::Postgres;
use super::answers::fatal;
use super::cancels::Cancelled;
use super::prepared::Parser;
use super::session::{Client, Session};
use super::settings::Settings;
use super::startup::Parameters;
use async_trait::async_trait;
use futures::Sink;
use pgwire::api::auth::sasl::SASLAuthStartupHandler;
use pgwire::api::auth::{
    StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::{ClientInfo, PidSecretKeyGenerator};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::startup::SecretKey;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use sql::ordinary::Setting;
use std::fmt::Debug;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

/// Lets a client in.
pub struct Welcome {
    door: Arc<Postgres>,
    parser: Arc<Parser>,
    names: Arc<Names>,
    sasl: Option<SASLAuthStartupHandler<Parameters>>,
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
        parser: &Arc<Parser>,
        cancelled: &Arc<Cancelled>,
    ) -> Arc<Welcome> {
        let names = Arc::new(Names {
            door: door.clone(),
            cancelled: cancelled.clone(),
            pid: Arc::default(),
        });
        let sasl = door.startup.challenge().map(|scram| {
            SASLAuthStartupHandler::new(Arc::new(Parameters))
                .with_scram(scram)
                .with_pid_secret_key_generator(names.clone())
        });
        Arc::new(Welcome { door: door.clone(), parser: parser.clone(), names, sasl })
    }

    fn begin_session<C: ClientInfo>(&self, client: &C) -> PgWireResult<()> {
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
        let client = Client { user, database, settings: Mutex::new(settings), pid };
        self.parser.begin(Session::new(&self.door, client));
        Ok(())
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
            self.begin_session(client)?;
        }
        if let Some(sasl) = &self.sasl {
            return sasl.on_startup(client, message).await.map_err(|failure| match failure {
                PgWireError::InvalidPassword(_) => {
                    let user = client.metadata().get("user").map_or("", String::as_str);
                    let words = format!("password authentication failed for user \"{user}\"");
                    fatal("28P01", words)
                }
                other => other,
            });
        }
        if let PgWireFrontendMessage::Startup(startup) = &message {
            protocol_negotiation(client, startup).await?;
            let (pid, key) = self.names.generate(client);
            client.set_pid_and_secret_key(pid, key);
            finish_authentication(client, &Parameters).await?;
        }
        Ok(())
    }
}
