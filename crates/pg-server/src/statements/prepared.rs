//! Statements that are kept: their texts and what they answer with, not their plans, which take a
//! hundred times as much. The plans of those last used are kept beside them.

use crate::copy::inserts::Target;
use crate::session::Session;
use crate::values::answers::{self, error, fatal, of_sql};
use async_trait::async_trait;
use pgwire::api::portal::Format;
use pgwire::api::results::{FieldFormat, FieldInfo};
use pgwire::api::stmt::QueryParser;
use pgwire::api::{ClientInfo, Type};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use sql::Declared;
use sql::datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use sql::insert::Insert;
use sql::ordinary::{PlannedWrite, Write};
use sql::statements::{Parsed, Query};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Plans that a connection keeps.
const PLANS_MAX: usize = 32;

/// Bytes of a text of which many plans are kept: a plan takes a hundred times as much. Of longer ones the last
/// is kept.
const SHORT_TEXT_SIZE: usize = 16 << 10;

/// A statement that is kept.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// One that `sql` plans.
    Query(Described),
    /// Another one.
    Other(Parsed),
}

impl Prepared {
    /// What it is, if `sql` plans nothing of it.
    pub fn other(&self) -> Option<&Parsed> {
        match self {
            Prepared::Query(_) => None,
            Prepared::Other(parsed) => Some(parsed),
        }
    }

    /// Whether it answers with rows.
    pub fn has_rows(&self) -> bool {
        match self {
            Prepared::Query(described) => described.has_rows(),
            Prepared::Other(parsed) => !fields_of(parsed, &Format::UnifiedText).is_empty(),
        }
    }
}

/// A cursor that a statement declares.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// Its name.
    pub name: String,
    /// Whether it outlives its transaction.
    pub is_held: bool,
}

/// What becomes of the rows of a query.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// They are the answer.
    Answer,
    /// They are the answer of an EXPLAIN.
    Explain,
    /// They wait until they are fetched from a cursor.
    Cursor(Cursor),
    /// They are stored.
    Insert(Target),
    /// It changes an ordinary table.
    Write {
        /// What the statement is called.
        word: &'static str,
        /// Whether it answers with rows.
        has_rows: bool,
    },
}

/// What a plan is found by: a text, and what its client says of its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    text: Arc<str>,
    declared: Declared,
}

impl Key {
    fn new(text: &str, declared: &Declared) -> Key {
        Key { text: text.into(), declared: declared.clone() }
    }
}

/// What is known of a statement that `sql` plans.
#[derive(Clone, Debug)]
pub struct Described {
    key: Key,
    /// What becomes of its rows.
    pub purpose: Purpose,
    /// Its columns.
    pub schema: SchemaRef,
    /// The types of its parameters, as far as they are known.
    pub parameters: Vec<Option<DataType>>,
}

/// A plan that is kept.
enum Kept {
    Query(sql::Statement),
    Write(PlannedWrite),
}

impl Described {
    /// Whether it answers with rows.
    pub fn has_rows(&self) -> bool {
        matches!(
            self.purpose,
            Purpose::Answer | Purpose::Explain | Purpose::Write { has_rows: true, .. }
        )
    }

    /// What its end is called.
    pub fn word(&self) -> &'static str {
        match self.purpose {
            Purpose::Write { word, .. } => word,
            Purpose::Explain => "EXPLAIN",
            _ => "SELECT",
        }
    }

    /// The same, for something else.
    pub fn with_purpose(self, purpose: Purpose) -> Described {
        Described { purpose, ..self }
    }
}

/// Understands statements for a session.
#[derive(Default)]
pub struct Parser {
    session: OnceLock<Arc<Session>>,
    plans: Mutex<HashMap<Key, Kept>>,
}

impl Parser {
    /// Its session has begun.
    pub fn begin(&self, session: Arc<Session>) {
        // A second startup message is refused before it comes here.
        let _ = self.session.set(session);
    }

    /// Its session.
    ///
    /// # Errors
    /// When it has not begun.
    pub fn session(&self) -> PgWireResult<&Arc<Session>> {
        self.session.get().ok_or_else(|| fatal("08P01", "the connection has not authenticated"))
    }

    /// Plans a statement that was prepared.
    ///
    /// # Errors
    /// When it makes no sense any more.
    pub async fn plan(&self, described: &Described) -> PgWireResult<sql::Statement> {
        let known = |parser: &Parser| {
            let plans = parser.plans.lock().unwrap_or_else(PoisonError::into_inner);
            match plans.get(&described.key) {
                Some(Kept::Query(plan)) => Some(plan.clone()),
                _ => None,
            }
        };
        if let Some(plan) = known(self)
            && self.session()?.sql.is_current(&plan)
        {
            return Ok(plan);
        }
        match self.session()?.sql.parse(&described.key.text).await.map_err(of_sql)?.pop() {
            Some(Parsed::Query(query) | Parsed::Insert(Insert { query, .. })) => {
                let query = query.with_declared(described.key.declared.clone());
                let plan = self.session()?.sql.plan(query).await.map_err(of_sql)?;
                // A metric may have labels that it had not when its columns were told.
                if !is_alike(&plan.schema(), &described.schema) {
                    return Err(outdated());
                }
                self.remember_query(described.key.clone(), plan.clone());
                Ok(plan)
            }
            other => Err(error("XX000", format!("{other:?} was prepared as a query"))),
        }
    }

    /// Plans a query, and keeps of the plan what takes little.
    async fn describe(&self, key: Key, statement: Query) -> PgWireResult<Described> {
        let statement = statement.with_declared(key.declared.clone());
        let purpose = if statement.is_explain() { Purpose::Explain } else { Purpose::Answer };
        let plan = self.session()?.sql.plan(statement).await.map_err(of_sql)?;
        let (schema, parameters) = (plan.schema(), plan.parameters().map_err(of_sql)?);
        self.remember_query(key.clone(), plan);
        Ok(Described { key, purpose, schema, parameters })
    }

    /// The same of a statement that changes an ordinary table.
    async fn describe_write(&self, key: Key, write: Write) -> PgWireResult<Described> {
        let word = write.word();
        let plan = self.session()?.sql.plan_write(write, key.declared.clone()).await;
        let plan = plan.map_err(of_sql)?;
        let (returned, parameters) = (plan.returned(), plan.parameters());
        let purpose = Purpose::Write { word, has_rows: returned.is_some() };
        self.remember(key.clone(), Kept::Write(plan));
        let schema = returned.unwrap_or_else(|| SchemaRef::new(Schema::empty()));
        Ok(Described { key, purpose, schema, parameters })
    }

    /// Plans a statement that changes an ordinary table and was prepared.
    ///
    /// # Errors
    /// When it makes no sense any more.
    pub async fn plan_write(&self, described: &Described) -> PgWireResult<PlannedWrite> {
        let known = |parser: &Parser| {
            let plans = parser.plans.lock().unwrap_or_else(PoisonError::into_inner);
            match plans.get(&described.key) {
                Some(Kept::Write(plan)) => Some(plan.clone()),
                _ => None,
            }
        };
        if let Some(plan) = known(self)
            && self.session()?.sql.is_write_current(&plan)
        {
            return Ok(plan);
        }
        match self.session()?.sql.parse(&described.key.text).await.map_err(of_sql)?.pop() {
            Some(Parsed::Write(write)) => {
                let declared = described.key.declared.clone();
                let plan = self.session()?.sql.plan_write(write, declared).await;
                let plan = plan.map_err(of_sql)?;
                let returned = plan.returned();
                if returned.is_some_and(|returned| !is_alike(&returned, &described.schema)) {
                    return Err(outdated());
                }
                self.remember(described.key.clone(), Kept::Write(plan.clone()));
                Ok(plan)
            }
            other => Err(error("XX000", format!("{other:?} was prepared as a change"))),
        }
    }

    /// The same of the text of one query.
    ///
    /// # Errors
    /// When it is none.
    pub async fn describe_text(&self, text: &str, declared: &Declared) -> PgWireResult<Described> {
        match self.session()?.sql.parse(text).await.map_err(of_sql)?.pop() {
            Some(Parsed::Query(statement)) => {
                self.describe(Key::new(text, declared), statement).await
            }
            _ => Err(error("42601", "a cursor is for a query")),
        }
    }

    /// What a statement is that `EXECUTE` names, with its values: its text, and what it says.
    ///
    /// # Errors
    /// When there is none of that name, and where it takes other values.
    pub async fn executed(&self, name: &str, values: &[String]) -> PgWireResult<(String, Parsed)> {
        let session = self.session()?;
        let text = session.executed(name, values).map_err(of_sql)?;
        let mut all = session.sql.parse(&text).await.map_err(of_sql)?;
        match (all.pop(), all.is_empty()) {
            (Some(parsed), true) if !matches!(parsed, Parsed::Execute { .. }) => Ok((text, parsed)),
            _ => Err(error("42601", "EXECUTE of values that are statements")),
        }
    }

    fn remember_query(&self, key: Key, plan: sql::Statement) {
        if plan.is_reusable() {
            self.remember(key, Kept::Query(plan));
        }
    }

    fn remember(&self, key: Key, plan: Kept) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if PLANS_MAX <= plans.len() {
            plans.clear();
        }
        if SHORT_TEXT_SIZE < key.text.len() {
            plans.retain(|known, _| known.text.len() <= SHORT_TEXT_SIZE);
        }
        plans.insert(key, plan);
    }
}

#[async_trait]
impl QueryParser for Parser {
    type Statement = Prepared;

    async fn parse_sql<C>(
        &self,
        _: &C,
        text: &str,
        types: &[Option<Type>],
    ) -> PgWireResult<Option<Prepared>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let mut all = self.session()?.sql.parse(text).await.map_err(of_sql)?;
        if 1 < all.len() {
            let words = "cannot insert multiple commands into a prepared statement";
            return Err(error("42601", words));
        }
        let mut text = Cow::Borrowed(text);
        let parsed = match all.pop() {
            Some(Parsed::Execute { name, values }) => {
                let (executed, parsed) = self.executed(&name, &values).await?;
                text = Cow::Owned(executed);
                Some(parsed)
            }
            other => other,
        };
        let declared = crate::values::parameters::declared(types);
        let key = Key::new(text.as_ref(), &declared);
        Ok(match parsed {
            Some(Parsed::Query(statement)) => {
                Some(Prepared::Query(self.describe(key, statement).await?))
            }
            Some(Parsed::Declare { name, text, is_held }) => {
                let described = self.describe_text(&text, &declared).await?;
                let purpose = Purpose::Cursor(Cursor { name, is_held });
                Some(Prepared::Query(described.with_purpose(purpose)))
            }
            Some(Parsed::Insert(insert)) => {
                let target = Target { columns: insert.columns(), table: insert.table };
                let described = self.describe(key, insert.query).await?;
                Some(Prepared::Query(described.with_purpose(Purpose::Insert(target))))
            }
            Some(Parsed::Write(write)) => {
                Some(Prepared::Query(self.describe_write(key, write).await?))
            }
            Some(other) => Some(Prepared::Other(other)),
            None => None,
        })
    }

    fn get_parameter_types(&self, statement: &Prepared) -> PgWireResult<Vec<Type>> {
        match statement {
            Prepared::Query(described) => crate::values::parameters::types(described),
            Prepared::Other(_) => Ok(Vec::new()),
        }
    }

    fn get_result_schema(
        &self,
        statement: &Prepared,
        format: Option<&Format>,
    ) -> PgWireResult<Vec<FieldInfo>> {
        let format = format.unwrap_or(&Format::UnifiedText);
        match statement {
            Prepared::Query(described) => match described.has_rows() {
                true => answers::fields(&described.schema, format),
                false => Ok(Vec::new()),
            },
            Prepared::Other(parsed) => Ok(fields_of(parsed, format)),
        }
    }
}

/// Whether rows of both look the same to a client.
fn is_alike(one: &SchemaRef, other: &SchemaRef) -> bool {
    let shown = |schema: &SchemaRef| {
        let field = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
        schema.fields().iter().map(field).collect::<Vec<_>>()
    };
    shown(one) == shown(other)
}

/// The columns that some statements about the session answer with.
pub fn fields_of(parsed: &Parsed, format: &Format) -> Vec<FieldInfo> {
    let format_at = |at: usize| match answers::is_binary(format, at) {
        true => FieldFormat::Binary,
        false => FieldFormat::Text,
    };
    let name = match parsed {
        Parsed::ShowAll => {
            let field = |(at, name): (usize, &&str)| {
                FieldInfo::new(name.to_string(), None, None, Type::TEXT, format_at(at))
                    .with_type_size(-1)
            };
            return ["name", "setting", "description"].iter().enumerate().map(field).collect();
        }
        Parsed::Show(name) => sql::known_setting(name).map_or(name.as_str(), |known| known.name),
        Parsed::DropMetric(_) => "drop_metric",
        Parsed::Define(definition) if definition.answers().is_some() => {
            definition.answers().unwrap_or_default()
        }
        Parsed::Upkeep(upkeep) if upkeep.answer.is_some() => upkeep.name.as_str(),
        _ => return Vec::new(),
    };
    let (kind, size) = match parsed {
        Parsed::DropMetric(_) => (Type::BOOL, 1),
        _ => (Type::TEXT, -1),
    };
    vec![FieldInfo::new(name.into(), None, None, kind, format_at(0)).with_type_size(size)]
}

/// Returns the error for a prepared statement whose columns have changed. Clients recognize it by the routine, and
/// prepare the statement again.
fn outdated() -> PgWireError {
    let words = "cached plan must not change result type".to_string();
    let mut info = ErrorInfo::new("ERROR".into(), "0A000".into(), words);
    info.routine = Some("RevalidateCachedQuery".to_string());
    PgWireError::UserError(Box::new(info))
}
