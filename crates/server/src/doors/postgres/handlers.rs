//! What the messages of a connection mean: pgwire's handlers.

use super::answers::{self, Ends, error, fatal, of_copy, of_sql};
use super::copy::Copying;
use super::session::{Session, takes_samples};
use super::settings::Settings;
use super::startup::Parameters;
use super::{Postgres, labels};
use crate::admission::Permit;
use async_trait::async_trait;
use futures::{Sink, SinkExt as _};
use pgwire::api::auth::sasl::SASLAuthStartupHandler;
use pgwire::api::auth::{
    StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::cancel::CancelHandler;
use pgwire::api::copy::CopyHandler;
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use pgwire::api::results::{CopyResponse, FieldFormat, FieldInfo, QueryResponse, Response, Tag};
use pgwire::api::stmt::QueryParser;
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, PidSecretKeyGenerator, Type};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::copy::{CopyData, CopyDone, CopyFail};
use pgwire::messages::response::CommandComplete;
use pgwire::messages::startup::SecretKey;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use sql::datafusion::common::ScalarValue;
use sql::statements::{self, Parsed};
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use wire::exposition::ExpositionKeys;

/// What a connection answers with.
pub struct Handlers {
    pub startup: Arc<Welcome>,
    pub query: Arc<Queries>,
}

impl Handlers {
    /// Of a connection that has just begun.
    pub fn new(door: Arc<Postgres>) -> Handlers {
        let query = Arc::new(Queries {
            door: door.clone(),
            parser: Arc::default(),
            cancelled: Arc::new(Notify::new()),
        });
        let names = Arc::new(Names { door: door.clone(), cancelled: query.cancelled.clone() });
        let sasl = door.startup.challenge().map(|scram| {
            SASLAuthStartupHandler::new(Arc::new(Parameters))
                .with_scram(scram)
                .with_pid_secret_key_generator(names.clone())
        });
        let startup = Arc::new(Welcome { names, sasl, query: query.clone() });
        Handlers { startup, query }
    }
}

/// Lets clients in.
pub struct Welcome {
    names: Arc<Names>,
    sasl: Option<SASLAuthStartupHandler<Parameters>>,
    query: Arc<Queries>,
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
            self.query.begin_session(client)?;
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

/// Gives a connection the number and the key by which it may be cancelled.
struct Names {
    door: Arc<Postgres>,
    cancelled: Arc<Notify>,
}

impl PidSecretKeyGenerator for Names {
    fn generate(&self, client: &dyn ClientInfo) -> (i32, SecretKey) {
        let (pid, key) = self.door.pids.generate(client);
        self.door.cancels.add(pid, &key, &self.cancelled);
        (pid, key)
    }
}

/// A statement that is kept.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// One that `sql` planned.
    Planned(sql::Statement),
    /// One about the session.
    Other(Parsed),
}

/// Answers statements.
pub struct Queries {
    door: Arc<Postgres>,
    parser: Arc<Parser>,
    cancelled: Arc<Notify>,
}

/// Understands statements for a session.
#[derive(Default)]
pub struct Parser {
    session: OnceLock<Arc<Session>>,
}

impl Parser {
    fn session(&self) -> PgWireResult<&Arc<Session>> {
        self.session.get().ok_or_else(|| fatal("08P01", "no startup message came"))
    }

    async fn prepare(&self, parsed: Parsed) -> PgWireResult<Prepared> {
        Ok(match parsed {
            Parsed::Query(statement) => {
                let planned = self.session()?.sql.plan(statement).await.map_err(of_sql)?;
                Prepared::Planned(planned)
            }
            other => Prepared::Other(other),
        })
    }
}

impl Drop for Queries {
    fn drop(&mut self) {
        self.door.cancels.forget(&self.cancelled);
    }
}

impl Queries {
    fn begin_session<C: ClientInfo>(&self, client: &C) -> PgWireResult<()> {
        let mut settings = Settings::default();
        for (name, value) in client.metadata() {
            let set = match name.as_str() {
                "user" | "database" | "replication" => Ok(()),
                "options" => settings.take_options(value),
                _ if name.starts_with("_pq_.") => Ok(()),
                name => settings.set(name, value),
            };
            set.map_err(|(code, words)| fatal(code, words))?;
        }
        let session = Session::new(&self.door, settings).map_err(of_sql)?;
        // A second startup message is refused before it comes here.
        let _ = self.parser.session.set(session);
        Ok(())
    }

    fn session(&self) -> PgWireResult<&Arc<Session>> {
        self.parser.session()
    }

    async fn run(
        &self,
        prepared: Prepared,
        parameters: Vec<ScalarValue>,
        format: &Format,
    ) -> PgWireResult<Response> {
        match prepared {
            Prepared::Planned(statement) => self.query(statement, parameters, format).await,
            Prepared::Other(parsed) => self.do_other(parsed, format),
        }
    }

    async fn query(
        &self,
        statement: sql::Statement,
        parameters: Vec<ScalarValue>,
        format: &Format,
    ) -> PgWireResult<Response> {
        let app = &self.door.app;
        let permit: Permit =
            app.queries.enter().await.map_err(|failure| error("53300", failure.to_string()))?;
        let time = app.config.query.timeout;
        let ends = Ends {
            cancelled: self.cancelled.clone(),
            deadline: Instant::now() + time,
            timeout: time,
        };
        let running = self.session()?.sql.run(statement, parameters);
        let answer = tokio::select! {
            biased;
            () = self.cancelled.notified() => return Err(PgWireError::QueryCanceled),
            answer = timeout(time, running) => answer.map_err(|_| answers::timed_out(time))?,
        };
        answers::response(answer.map_err(of_sql)?, format, ends, permit)
    }

    fn do_other(&self, parsed: Parsed, format: &Format) -> PgWireResult<Response> {
        let session = self.session()?;
        let done = |tag: &str| Ok(Response::Execution(Tag::new(tag)));
        match parsed {
            // It is planned before it comes here.
            Parsed::Query(_) => Err(error("XX000", "a query that was not planned")),
            Parsed::CopyIn(asked) => self.begin_copy(session, asked),
            Parsed::Set(name, value) => {
                let settings = &mut session.state().settings;
                let set = match value {
                    Some(value) => settings.set(&name, &value),
                    None => {
                        settings.reset(Some(&name));
                        Ok(())
                    }
                };
                set.map_err(|(code, words)| error(code, words))?;
                done("SET")
            }
            Parsed::Reset(name) => {
                session.state().settings.reset(name.as_deref());
                done("RESET")
            }
            Parsed::Show(name) => show(session, &name, format),
            Parsed::Begin => Ok(Response::TransactionStart(Tag::new("BEGIN"))),
            Parsed::Commit => Ok(Response::TransactionEnd(Tag::new("COMMIT"))),
            Parsed::Rollback => Ok(Response::TransactionEnd(Tag::new("ROLLBACK"))),
            Parsed::CreateExtension(name) => match EXTENSIONS.contains(&name.as_str()) {
                true => done("CREATE EXTENSION"),
                false => Err(error("0A000", format!("extension \"{name}\" is not available"))),
            },
            Parsed::CreatePrometheusTable(name, _) => match takes_samples(&name) {
                true => one_text("create_prometheus_table", "", format),
                false => {
                    let words = format!(
                        "table \"{name}\" cannot be made yet: the samples are in \"metrics\""
                    );
                    Err(error("0A000", words))
                }
            },
            Parsed::Nothing(tag) => done(tag),
        }
    }

    fn begin_copy(&self, session: &Session, asked: statements::CopyIn) -> PgWireResult<Response> {
        if !takes_samples(&asked.table) {
            let words = format!("relation \"{}\" does not exist, or takes no samples", asked.table);
            return Err(error("42P01", words));
        }
        let mut state = session.state();
        let extra = labels::of(&state.settings).map_err(|words| error("22023", words))?;
        let now = self.door.app.vfs.now();
        state.copying = Some(Copying::new(asked, ExpositionKeys::new(extra), now));
        let nothing = futures::stream::empty();
        Ok(Response::CopyIn(CopyResponse::new(0, 1, nothing)))
    }

    /// Does something with the `COPY` under way, on a thread that may block and when it is its turn.
    async fn with_copy<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Copying, &crate::app::App) -> Result<T, super::copy::CopyError>
        + Send
        + 'static,
    ) -> PgWireResult<T> {
        let session = self.session()?;
        let copying = session.state().copying.take();
        let mut copying = copying.ok_or_else(|| error("08P01", "no COPY is under way"))?;
        let app = self.door.app.clone();
        let permit =
            app.inserts.enter().await.map_err(|failure| error("53300", failure.to_string()))?;
        let worked = tokio::task::spawn_blocking(move || {
            let done = work(&mut copying, &app);
            drop(permit);
            (copying, done)
        });
        let (copying, done) =
            worked.await.map_err(|failure| error("XX000", format!("COPY: {failure}")))?;
        let done = done.map_err(of_copy)?;
        session.state().copying = Some(copying);
        Ok(done)
    }
}

/// Extensions whose objects are here.
const EXTENSIONS: &[&str] = &["pg_prometheus", "pg_prometheus_cx", "timescaledb", "plpgsql"];

fn show(session: &Session, name: &str, format: &Format) -> PgWireResult<Response> {
    let name = match name.to_ascii_lowercase().as_str() {
        "transaction.isolation.level" => "transaction_isolation".to_string(),
        "time.zone" => "timezone".to_string(),
        other => other.to_string(),
    };
    let state = session.state();
    let Some(value) = state.settings.get(&name) else {
        let words = format!("unrecognized configuration parameter \"{name}\"");
        return Err(error("42704", words));
    };
    one_text(&name, value, format)
}

/// A row of one text.
fn one_text(name: &str, value: &str, _: &Format) -> PgWireResult<Response> {
    let field = FieldInfo::new(name.into(), None, None, Type::TEXT, FieldFormat::Text);
    let fields = Arc::new(vec![field.with_type_size(-1)]);
    let mut encoder = pgwire::api::results::DataRowEncoder::new(fields.clone());
    encoder.encode_field(&value)?;
    let row = encoder.take_row();
    Ok(Response::Query(QueryResponse::new(fields, futures::stream::iter([Ok(row)]))))
}

#[async_trait]
impl SimpleQueryHandler for Queries {
    async fn do_query<C>(&self, _: &mut C, text: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut responses = Vec::new();
        for parsed in statements::parse(text).map_err(of_sql)? {
            let ran = async {
                let prepared = self.parser.prepare(parsed).await?;
                self.run(prepared, Vec::new(), &Format::UnifiedText).await
            };
            match ran.await {
                Ok(response) => responses.push(response),
                Err(failure) if responses.is_empty() => return Err(failure),
                Err(failure) => {
                    // Those before it are answered first.
                    let info: pgwire::error::ErrorInfo = failure.into();
                    responses.push(Response::Error(Box::new(info)));
                    break;
                }
            }
        }
        Ok(responses)
    }
}

#[async_trait]
impl QueryParser for Parser {
    type Statement = Prepared;

    async fn parse_sql<C>(
        &self,
        _: &C,
        text: &str,
        _: &[Option<Type>],
    ) -> PgWireResult<Option<Prepared>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let mut all = statements::parse(text).map_err(of_sql)?;
        if 1 < all.len() {
            let words = "cannot insert multiple commands into a prepared statement";
            return Err(error("42601", words));
        }
        match all.pop() {
            Some(parsed) => Ok(Some(self.prepare(parsed).await?)),
            None => Ok(None),
        }
    }

    fn get_parameter_types(&self, statement: &Prepared) -> PgWireResult<Vec<Type>> {
        match statement {
            Prepared::Planned(planned) => super::parameters::types(planned),
            Prepared::Other(_) => Ok(Vec::new()),
        }
    }

    fn get_result_schema(
        &self,
        statement: &Prepared,
        format: Option<&Format>,
    ) -> PgWireResult<Vec<FieldInfo>> {
        match statement {
            Prepared::Planned(planned) => {
                answers::fields(&planned.schema(), format.unwrap_or(&Format::UnifiedText))
            }
            Prepared::Other(Parsed::Show(name)) => {
                let field = FieldInfo::new(name.clone(), None, None, Type::TEXT, FieldFormat::Text);
                Ok(vec![field])
            }
            Prepared::Other(_) => Ok(Vec::new()),
        }
    }
}

#[async_trait]
impl ExtendedQueryHandler for Queries {
    type Statement = Prepared;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        self.parser.clone()
    }

    async fn do_query<C>(
        &self,
        _: &mut C,
        portal: &Portal<Prepared>,
        _: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let prepared = portal.statement.statement.clone();
        let parameters = match &prepared {
            Prepared::Planned(planned) => super::parameters::values(planned, portal)?,
            Prepared::Other(_) => Vec::new(),
        };
        self.run(prepared, parameters, &portal.result_column_format).await
    }
}

#[async_trait]
impl CopyHandler for Queries {
    async fn on_copy_data<C>(&self, _: &mut C, piece: CopyData) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let is_enough = {
            let mut state = self.session()?.state();
            // One that failed takes no more; what a client still sends is passed over.
            let Some(copying) = &mut state.copying else { return Ok(()) };
            let pushed = copying.push(&piece.data);
            if pushed.is_err() {
                state.copying = None;
            }
            pushed.map_err(of_copy)?
        };
        match is_enough {
            true => self.with_copy(Copying::work).await,
            false => Ok(()),
        }
    }

    async fn on_copy_done<C>(&self, client: &mut C, _: CopyDone) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let copied = self.with_copy(Copying::finish).await?;
        self.session()?.state().copying = None;
        if copied.rejected != 0 {
            let words =
                format!("{} rows were skipped due to data type incompatibility", copied.rejected);
            let notice = pgwire::error::ErrorInfo::new("NOTICE".into(), "00000".into(), words);
            client.feed(PgWireBackendMessage::NoticeResponse(notice.into())).await?;
        }
        let tag = CommandComplete::new(format!("COPY {}", copied.samples));
        client.send(PgWireBackendMessage::CommandComplete(tag)).await?;
        Ok(())
    }

    async fn on_copy_fail<C>(&self, _: &mut C, fail: CopyFail) -> PgWireError
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if let Ok(session) = self.session() {
            session.state().copying = None;
        }
        error("57014", format!("COPY from stdin failed: {}", fail.message))
    }
}

#[async_trait]
impl CancelHandler for Queries {
    async fn on_cancel_request(&self, request: CancelRequest) {
        self.door.cancels.cancel(request.pid, &request.secret_key);
    }
}
