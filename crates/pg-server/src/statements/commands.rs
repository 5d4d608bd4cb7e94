//! Statements about the session, and those that begin a `COPY`.

use super::prepared::fields_of;
use crate::copy::labels;
use crate::copy::{Came, Copying, Keys};
use crate::protocol::handlers::Queries;
use crate::session::Session;
use crate::session::notifications::Action;
use crate::session::settings::Scope;
use crate::values::answers::{error, of_sql};
use pgwire::api::portal::Format;
use pgwire::api::results::{CopyResponse, DataRowEncoder, QueryResponse, Response, Tag};
use pgwire::error::PgWireResult;
use sql::copy::{CopyIn, Given, RowFormat};
use sql::copy_rows::RowReader;
use sql::statements::Parsed;
use std::sync::Arc;

/// Extensions whose objects are here.
const EXTENSIONS: &[&str] = &["pg_prometheus", "pg_prometheus_cx", "timescaledb", "plpgsql"];

impl Queries {
    /// Does what a statement says that no plan is made of.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn do_other(&self, parsed: Parsed, format: &Format) -> PgWireResult<Response> {
        let session = self.session()?;
        let done = |tag: &str| Ok(Response::Execution(Tag::new(tag)));
        match parsed {
            // It is planned, or done, before it comes here.
            Parsed::Query(_)
            | Parsed::CopyOut(_)
            | Parsed::Insert(_)
            | Parsed::Write(_)
            | Parsed::Define(_)
            | Parsed::Execute { .. }
            | Parsed::DropMetric(_) => {
                Err(error("XX000", "a statement that comes here by mistake"))
            }
            Parsed::CopyIn(asked) => self.begin_copy(session, asked),
            Parsed::Prepare { name, template } => {
                session.prepare(&name, template).map_err(of_sql)?;
                done("PREPARE")
            }
            Parsed::Show(ref name) => {
                let value = session.settings().get(name).map(str::to_string);
                let words = format!("unrecognized configuration parameter \"{name}\"");
                let value = value.ok_or_else(|| error("42704", words))?;
                one_text(&parsed, &value, format)
            }
            Parsed::ShowAll => show_all(session, &parsed, format),
            Parsed::Begin { tag, is_read_only, isolation } => {
                session.settings().begin_transaction(is_read_only, isolation);
                Ok(Response::TransactionStart(Tag::new(tag)))
            }
            set @ (Parsed::Set { .. } | Parsed::Reset(_) | Parsed::SetTransaction { .. }) => {
                change_setting(session, set)
            }
            Parsed::Commit => Ok(Response::TransactionEnd(Tag::new("COMMIT"))),
            Parsed::Rollback => Ok(Response::TransactionEnd(Tag::new("ROLLBACK"))),
            Parsed::Savepoint(_) => done("SAVEPOINT"),
            Parsed::Release(_) => done("RELEASE"),
            Parsed::RollbackTo(_) => Ok(Response::TransactionStart(Tag::new("ROLLBACK"))),
            Parsed::Deallocate(Some(_)) => done("DEALLOCATE"),
            Parsed::Deallocate(None) => done("DEALLOCATE ALL"),
            Parsed::DiscardAll => {
                session.settings().reset(None);
                done("DISCARD ALL")
            }
            Parsed::Close(Some(_)) => done("CLOSE CURSOR"),
            Parsed::Close(None) => done("CLOSE CURSOR ALL"),
            Parsed::Declare { .. } | Parsed::Fetch { .. } => {
                Err(error("0A000", "FETCH is not known in this way: ask for text"))
            }
            Parsed::CreateExtension(name) => match EXTENSIONS.contains(&name.as_str()) {
                true => done("CREATE EXTENSION"),
                false => Err(error("0A000", format!("extension \"{name}\" is not available"))),
            },
            Parsed::Upkeep(ref upkeep) => match &upkeep.answer {
                Some(answer) => one_text(&parsed, answer, format),
                None => done(&upkeep.name),
            },
            Parsed::Nothing(tag) => done(tag),
            Parsed::Listen(channel) => notified(session, Action::Listen(channel), "LISTEN"),
            Parsed::Unlisten(channel) => notified(session, Action::Unlisten(channel), "UNLISTEN"),
            Parsed::Notify { channel, payload } => {
                notified(session, Action::Notify { channel, payload }, "NOTIFY")
            }
        }
    }

    fn begin_copy(&self, session: &Session, asked: CopyIn) -> PgWireResult<Response> {
        if let Given::Table(said) = &asked.given {
            let (columns, is_binary) = self.begin_rows(asked.clone(), said)?;
            let nothing = futures::stream::empty();
            return Ok(Response::CopyIn(CopyResponse::new(i8::from(is_binary), columns, nothing)));
        }
        let (came, format, columns) = match &asked.given {
            Given::Table(_) => return Err(error("XX000", "rows of a table come here by mistake")),
            Given::Lines => (Came::Copied, 0, 1),
            Given::Parquet(_) => (Came::Parquet, 1, 1),
            Given::Rows(rows) => {
                let is_binary = rows.format == RowFormat::Binary;
                let came = Came::Rows(RowReader::line_format(rows));
                (came, i8::from(is_binary), rows.columns.len())
            }
        };
        let time = session.settings().statement_timeout();
        let copying = self.copying(session, asked, came)?.within(time);
        session.state().copying = Some(copying);
        let nothing = futures::stream::empty();
        Ok(Response::CopyIn(CopyResponse::new(format, columns, nothing)))
    }

    /// What takes lines for a table.
    ///
    /// # Errors
    /// When it takes none, and when a setting of labels cannot be understood.
    pub fn copying(&self, session: &Session, asked: CopyIn, came: Came) -> PgWireResult<Copying> {
        let Some(own) = session.sql.takes_samples(&asked.table) else {
            let words = format!("relation \"{}\" does not exist, or takes no samples", asked.table);
            return Err(error("42P01", words));
        };
        if session.settings().is_read_only() {
            let words = format!("cannot execute {} in a read-only transaction", came.word());
            return Err(error("25006", words));
        }
        let extra = labels::of(&session.settings(), own).map_err(|words| error("22023", words))?;
        let now = self.door.app.vfs.now();
        Ok(Copying::new(asked, came, Keys::new(came, extra), now))
    }
}

fn show_all(session: &Session, parsed: &Parsed, format: &Format) -> PgWireResult<Response> {
    let all = session.settings().all();
    let rows = all.iter().map(|(name, value)| vec![*name, value.as_str(), ""]);
    rows_of_texts(parsed, rows, format)
}

/// Adds a statement about notifications to the transaction.
fn notified(session: &Session, action: Action, tag: &str) -> PgWireResult<Response> {
    session.actions().add(action).map_err(|(code, words)| error(code, words))?;
    Ok(Response::Execution(Tag::new(tag)))
}

/// Changes what a session, or its transaction, has set.
fn change_setting(session: &Session, parsed: Parsed) -> PgWireResult<Response> {
    let done = |tag: &str| Ok(Response::Execution(Tag::new(tag)));
    let mut settings = session.settings();
    match parsed {
        Parsed::Set { name, value, is_local } => {
            if let Some(value) = value.as_deref().filter(|_| name == "role") {
                check_role(session, value)?;
            }
            let scope = if is_local { Scope::Transaction } else { Scope::Session };
            match value {
                Some(value) => settings.set_for(scope, &name, &value).map_err(of_sql)?,
                None => settings.reset(Some(&name)),
            }
            done("SET")
        }
        Parsed::Reset(name) => {
            settings.reset(name.as_deref());
            done("RESET")
        }
        Parsed::SetTransaction { is_read_only, isolation, is_local: true } => {
            if let Some(isolation) = isolation {
                settings.set_isolation(isolation);
            }
            if let Some(is_read_only) = is_read_only {
                settings.set_read_only(is_read_only);
            }
            done("SET")
        }
        Parsed::SetTransaction { is_read_only, isolation, is_local: false } => {
            if let Some(is_read_only) = is_read_only {
                let value = if is_read_only { "on" } else { "off" };
                settings.set("default_transaction_read_only", value).map_err(of_sql)?;
            }
            if let Some(isolation) = isolation {
                let name = "default_transaction_isolation";
                settings.set(name, isolation.name()).map_err(of_sql)?;
            }
            done("SET")
        }
        other => Err(error("XX000", format!("{other:?} sets nothing"))),
    }
}

/// Checks that a session may take a role: there is one beside that of the client, and it may do no more.
fn check_role(session: &Session, role: &str) -> PgWireResult<()> {
    match role == "none" || role == session.user() || role == sql::OWNER {
        true => Ok(()),
        false => Err(error("22023", format!("role \"{role}\" does not exist"))),
    }
}

/// A row of one text, in the column of [`fields_of`].
pub fn one_text(parsed: &Parsed, value: &str, format: &Format) -> PgWireResult<Response> {
    rows_of_texts(parsed, [vec![value]], format)
}

/// Rows of texts, in the columns of [`fields_of`].
fn rows_of_texts<'a>(
    parsed: &Parsed,
    rows: impl IntoIterator<Item = Vec<&'a str>>,
    format: &Format,
) -> PgWireResult<Response> {
    let fields = Arc::new(fields_of(parsed, format));
    let mut encoder = DataRowEncoder::new(fields.clone());
    let mut encoded = Vec::new();
    for row in rows {
        for value in row {
            encoder.encode_field(&value)?;
        }
        encoded.push(Ok(encoder.take_row()));
    }
    Ok(Response::Query(QueryResponse::new(fields, futures::stream::iter(encoded))))
}
