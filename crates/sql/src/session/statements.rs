//! What a client may say: statements that DataFusion plans, and those that are about the session.
//!
//! A text is cut at its semicolons first, by tokens.

use crate::copy::copy_parquet::copy_parquet;
use crate::copy::statement::{CopyIn, CopyOut, copy_in, copy_out, word};
use crate::ddl_dml::definitions::define::Definition;
use crate::ddl_dml::insert::Insert;
use crate::ddl_dml::policies::said::PolicyStatement;
use crate::ddl_dml::prometheus::{Creation, Shapes, written};
use crate::ddl_dml::rows::writes::{Write, insert_target};
use crate::ddl_dml::timescale_options;
use crate::ddl_dml::upkeep::{Done, Upkeep, asked_chunks, asked_hypertable};
use crate::ddl_dml::views::define::without_data;
use crate::parse::dialect::{Postgres, check_nesting, with_matchers};
use crate::parse::rewrite::functions::promscale::dropped_metric;
use crate::parse::rewrite::{Hints, Rewritten, rewrite};
use crate::parse::token_forms::{
    array_types, capital_type, join_literals, name_values_of_settings, plain_forms,
    split_operators, unknown_type, values_as_queries,
};
use crate::plan::declared::Declared;
use crate::plan::expansion::check_written;
use crate::plan::explain::{Shape, shape_of};
use crate::session::cursor_statements::fetch_next;
use crate::session::prepared;
use crate::session::prepared::Template;
use crate::session::session_statements;
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use datafusion::sql::sqlparser::ast::{self, CopyTarget, ObjectName, ObjectType, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Bytes of a text with statements.
pub const TEXT_SIZE_MAX: usize = 4 << 20;
/// Words and signs of a statement, but for rows of values, commas and spaces.
const WORDS_MAX: usize = 20_000;
/// Steps that the parser takes into a statement; parentheses take two each.
pub(crate) const STEPS_MAX: usize = 200;
/// Tables joined, and queries united, in a statement.
const JOINS_MAX: usize = 200;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// One that DataFusion plans.
    Query(Query),
    /// `COPY .. FROM STDIN`.
    CopyIn(CopyIn),
    /// `COPY .. TO STDOUT`.
    CopyOut(CopyOut),
    /// `INSERT INTO table` of samples.
    Insert(Insert),
    /// `INSERT`, `UPDATE` or `DELETE` of an ordinary table.
    Write(Write),
    /// A statement about ordinary tables themselves.
    Define(Definition),
    /// `DECLARE name CURSOR FOR query`.
    Declare {
        /// The cursor.
        name: String,
        /// The text of its query.
        text: String,
        /// True for a cursor that outlives its transaction (`WITH HOLD`).
        is_held: bool,
    },
    /// `FETCH count FROM name`; all without a count.
    Fetch {
        /// The cursor.
        name: String,
        /// How many rows.
        count: Option<usize>,
    },
    /// `CLOSE name`; all without one.
    Close(Option<String>),
    /// `LISTEN channel`.
    Listen(String),
    /// `UNLISTEN channel`; all for none.
    Unlisten(Option<String>),
    /// `NOTIFY channel, payload`.
    Notify {
        /// The channel.
        channel: String,
        /// The text that listeners get.
        payload: String,
    },
    /// `SET name = value`.
    Set {
        /// The setting, in small letters.
        name: String,
        /// None for `DEFAULT`.
        value: Option<String>,
        /// Whether it holds for the transaction alone.
        is_local: bool,
    },
    /// `SHOW name`.
    Show(String),
    /// `SHOW ALL`.
    ShowAll,
    /// `RESET name`; none for all.
    Reset(Option<String>),
    /// `BEGIN`.
    Begin {
        /// The command tag of its answer.
        tag: &'static str,
        /// Whether nothing may be written in it; none where it does not say.
        is_read_only: Option<bool>,
        /// What it sees; none where it does not say.
        isolation: Option<Isolation>,
    },
    /// `SET TRANSACTION`, or `SET SESSION CHARACTERISTICS`.
    SetTransaction {
        /// Whether nothing may be written; none where it does not say.
        is_read_only: Option<bool>,
        /// What is seen; none where it does not say.
        isolation: Option<Isolation>,
        /// Whether it is of this transaction, and not of those to come.
        is_local: bool,
    },
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint(String),
    /// `RELEASE name`.
    Release(String),
    /// `ROLLBACK TO name`.
    RollbackTo(String),
    /// `PREPARE name AS statement`.
    Prepare {
        /// What it is called.
        name: String,
        /// The statement.
        template: Template,
    },
    /// `EXECUTE name (values)`.
    Execute {
        /// The statement that was prepared.
        name: String,
        /// Expressions, as they were written.
        values: Vec<String>,
    },
    /// `DEALLOCATE name`; none for all.
    Deallocate(Option<String>),
    /// `DISCARD ALL`: settings and prepared statements are forgotten.
    DiscardAll,
    /// `CREATE EXTENSION name`.
    CreateExtension(String),
    /// `SELECT drop_metric('name')`: its samples are deleted.
    DropMetric(String),
    /// What is done already.
    Upkeep(Upkeep),
    /// Something that has no meaning here and does no harm; what is answered.
    Nothing(&'static str),
}

/// A statement that DataFusion plans, in words that it knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    rephrased: Hidden<Rephrased>,
    /// Whether its text is so short that it is planned at once.
    is_short: bool,
    /// What its client said of its parameters.
    declared: Declared,
}

/// A statement in DataFusion's words.
#[derive(Debug, PartialEq)]
pub(crate) struct Rephrased {
    /// How it is explained, where it is.
    pub(crate) explained: Option<Shape>,
    pub(crate) statement: Statement,
    pub(crate) hints: Hints,
    pub(crate) parameters: BTreeSet<String>,
    pub(crate) is_reusable: bool,
}

impl Query {
    fn parsed(mut statement: Statement) -> Result<Parsed, SqlError> {
        let explained = shape_of(&mut statement)?;
        let Rewritten { hints, parameters, is_reusable } = rewrite(&mut statement)?;
        let rephrased = Rephrased { explained, statement, hints, parameters, is_reusable };
        let (rephrased, declared) = (Hidden::new(rephrased), Declared::default());
        Ok(Parsed::Query(Query { rephrased, is_short: false, declared }))
    }

    /// Of a query that was read.
    pub(crate) fn of(query: Box<ast::Query>) -> Result<Parsed, SqlError> {
        Query::parsed(Statement::Query(query))
    }

    pub(crate) fn rephrased(&self) -> &Rephrased {
        &self.rephrased
    }

    /// The same, of whose parameters something is said.
    #[must_use]
    pub fn with_declared(self, declared: Declared) -> Query {
        Query { declared, ..self }
    }

    /// Returns true for an `EXPLAIN`.
    pub fn is_explain(&self) -> bool {
        self.rephrased.explained.is_some()
            || matches!(self.rephrased.statement, Statement::Explain { .. })
    }

    pub(crate) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Whether it names a table that `is_one` says.
    pub(crate) fn names(&self, is_one: impl Fn(&ObjectName) -> bool) -> bool {
        let none = ast::visit_relations(&self.rephrased.statement, |name| match is_one(name) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        none.is_break()
    }

    /// Whether its text is short, and it reads no tables but those that `is_one` says.
    pub(crate) fn is_short(&self, is_one: impl Fn(&ObjectName) -> bool) -> bool {
        let all = ast::visit_relations(&self.rephrased.statement, |name| match is_one(name) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
        self.is_short && all.is_continue()
    }
}

/// Bytes of a text that is read and planned where it came in: less than a millisecond's work.
pub(crate) const SHORT_SIZE_MAX: usize = 1 << 10;

/// The statements of a text.
///
/// # Errors
/// When one cannot be read.
pub fn parse(text: &str) -> Result<Vec<Parsed>, SqlError> {
    parse_with(text, &written)
}

/// The same where there are these tables of samples.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn parse_with(text: &str, shapes: Shapes<'_>) -> Result<Vec<Parsed>, SqlError> {
    if TEXT_SIZE_MAX < text.len() {
        let words = format!("a statement has at most {TEXT_SIZE_MAX} bytes: use COPY for data");
        return Err(SqlError::limit(words));
    }
    if text.contains(char::REPLACEMENT_CHARACTER) {
        let words = "invalid byte sequence for encoding \"UTF8\", or the character U+FFFD, which \
                     stands for one here";
        return Err(SqlError::not_text(words));
    }
    let tokens = Tokenizer::new(&Postgres::new(0), text).tokenize().map_err(invalid)?;
    let tokens = array_types(split_operators(plain_forms(join_literals(tokens)?)));
    let mut tokens = values_as_queries(with_matchers(tokens));
    name_values_of_settings(&mut tokens);
    let pieces = tokens.split(|token| *token == Token::SemiColon);
    let is_said = |piece: &&[Token]| piece.iter().any(|one| !matches!(one, Token::Whitespace(_)));
    let is_short = text.len() <= SHORT_SIZE_MAX;
    let marked = |parsed| match parsed {
        Parsed::Query(query) => Parsed::Query(Query { is_short, ..query }),
        other => other,
    };
    pieces.filter(is_said).map(|piece| statement(piece, shapes).map(marked)).collect()
}

fn invalid(error: impl std::fmt::Display) -> SqlError {
    SqlError::from_parser(&error.to_string())
}

impl From<Done> for Parsed {
    fn from(done: Done) -> Parsed {
        match done {
            Done::Already(upkeep) => Parsed::Upkeep(upkeep),
            Done::Table(table, upkeep) => Parsed::Define(Definition::upkeep(table, upkeep)),
            Done::Of(definition) => Parsed::Define(definition),
        }
    }
}

fn unreadable(error: ParserError) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => {
            let message = "stack depth limit exceeded: parts stand too deep in each other";
            SqlError::new("54001", message)
        }
        other => invalid(other),
    }
}

fn statement(tokens: &[Token], shapes: Shapes<'_>) -> Result<Parsed, SqlError> {
    let words: Vec<&Token> =
        tokens.iter().filter(|one| !matches!(one, Token::Whitespace(_))).collect();
    check_size(&words)?;
    check_values(&words)?;
    check_nesting(&words)?;
    check_frames(&words)?;
    if word(words.first()).is_some_and(|first| first.eq_ignore_ascii_case("copy"))
        && let Some(copy) = copy_in(&words[1..], shapes)?
    {
        return Ok(Parsed::CopyIn(copy));
    }
    if let Some((lines, to)) = copy_parquet(tokens, &words)? {
        return match statement(&lines, shapes)? {
            Parsed::CopyOut(copy) => Ok(Parsed::CopyOut(CopyOut { to, ..copy })),
            _ => Err(SqlError::unexpected("a COPY that is none")),
        };
    }
    if let Some(tag) = session_statements::tag_of_nothing(&words) {
        return Ok(Parsed::Nothing(tag));
    }
    if let Some(fetch) = fetch_next(&words) {
        return Ok(fetch);
    }
    if let Some(longer) = session_statements::in_full(&words) {
        return statement(&longer, shapes);
    }
    if let Some(prepared) = prepared::prepare(tokens)? {
        return checked(prepared);
    }
    if let Some(executed) = prepared::execute(tokens)? {
        return Ok(executed);
    }
    if let Some(done) = Upkeep::of_words(&words)? {
        return Ok(done.into());
    }
    if let Some((rest, options)) = timescale_options::created(tokens, &words)? {
        return match statement(&rest, shapes)? {
            Parsed::Define(definition) => Ok(Parsed::Define(definition.with_options(&options)?)),
            _ => Err(SqlError::unsupported("options of TimescaleDB are those of tables")),
        };
    }
    if let Some(rest) = without_data(tokens, &words) {
        return statement(&rest, shapes);
    }
    if let Some(definition) = Definition::of_words(&words)? {
        return Ok(Parsed::Define(definition));
    }
    if let Some((name, rest)) = unknown_type(tokens) {
        // A syntax error of the rest is reported first.
        statement(&rest, shapes)?;
        return Err(SqlError::new("42704", format!("type \"{name}\" does not exist")));
    }
    let dialect = Postgres::new(words.len());
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(STEPS_MAX).with_tokens(tokens.to_vec());
    let statement = parser.parse_statement().map_err(unreadable)?;
    if let Some(name) = capital_type(tokens) {
        return Err(SqlError::new("42704", format!("type \"{name}\" does not exist")));
    }
    if matches!(statement, Statement::CreateExtension(_)) {
        // Here before SCHEMA and VERSION alone, in PostgreSQL behind them.
        let _ = parser.parse_keyword(Keyword::CASCADE);
    }
    parser.expect_token(&Token::EOF).map_err(unreadable)?;
    classify(statement, shapes)
}

/// A statement that is prepared, if it may be.
fn checked(prepared: Parsed) -> Result<Parsed, SqlError> {
    if let Parsed::Prepare { template, .. } = &prepared {
        let known = parse(&template.text())?;
        let is_one =
            matches!(known.as_slice(), [Parsed::Query(_) | Parsed::Insert(_) | Parsed::Write(_)]);
        if !is_one {
            let words = "PREPARE is for SELECT, INSERT, UPDATE and DELETE";
            return Err(SqlError::invalid(words));
        }
    }
    Ok(prepared)
}

/// Statements are trees, and what looks at trees calls itself: the stack has an end.
fn check_size(words: &[&Token]) -> Result<(), SqlError> {
    let is_value = |token: &&&Token| match token {
        Token::Word(word) => word.keyword == Keyword::NULL,
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => true,
        Token::Comma => true,
        _ => false,
    };
    let joins = |token: &&&Token| match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::JOIN | Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT
        ),
        _ => false,
    };
    // A row of values among others: its parentheses, of which the first one is behind a comma.
    let rows = words.windows(2).filter(|two| *two[0] == Token::Comma && *two[1] == Token::LParen);
    let count = words.len() - words.iter().filter(is_value).count();
    let count = count.saturating_sub(2 * rows.count());
    let tables = words.iter().filter(joins).count();
    if WORDS_MAX < count || JOINS_MAX < tables {
        let message = format!(
            "a statement of {count} words and {tables} joins and unions; {WORDS_MAX} and \
             {JOINS_MAX} are the most"
        );
        return Err(SqlError::new("54001", message));
    }
    Ok(())
}

/// Refuses `EXCLUDE` in the frame of a window, which the parser does not know.
fn check_frames(words: &[&Token]) -> Result<(), SqlError> {
    let is =
        |at: usize, one: &str| word(words.get(at)).is_some_and(|w| w.eq_ignore_ascii_case(one));
    let is_frame = |at: usize| {
        is(at, "exclude")
            && (is(at + 1, "ties")
                || is(at + 1, "group")
                || is(at + 1, "current") && is(at + 2, "row")
                || is(at + 1, "no") && is(at + 2, "others"))
    };
    match (0..words.len()).any(is_frame) {
        true => Err(SqlError::unsupported("EXCLUDE in the frame of a window is not known here")),
        false => Ok(()),
    }
}

/// Refuses a query of too many values before it is read: a row of `VALUES` takes a kilobyte then. Plain values of an
/// `INSERT` have no limit.
fn check_values(words: &[&Token]) -> Result<(), SqlError> {
    let is_value = |token: &&&Token| match token {
        Token::Word(word) => {
            matches!(word.keyword, Keyword::NULL | Keyword::TRUE | Keyword::FALSE)
        }
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::Placeholder(_) => true,
        _ => false,
    };
    let kind = words.iter().find_map(|token| match token {
        Token::Word(word) => match word.keyword {
            Keyword::SELECT | Keyword::VALUES | Keyword::INSERT | Keyword::WITH => {
                Some(word.keyword)
            }
            _ => None,
        },
        _ => None,
    });
    match kind {
        Some(Keyword::INSERT) => Ok(()),
        _ => check_written(words.iter().filter(is_value).count() as u64),
    }
}

/// What a query does by the one function that it calls, if it is one of those that do something.
fn done_by_calls(query: &ast::Query) -> Result<Option<Parsed>, SqlError> {
    if let Some(made) = Creation::of_query(query)? {
        return Ok(Some(Parsed::Define(Definition::prometheus(made))));
    }
    let dropped = dropped_metric(&query.body).map(Parsed::DropMetric);
    if let Some(done) = dropped.or(Upkeep::of_query(query)?.map(Parsed::from)) {
        return Ok(Some(done));
    }
    if let Some(policy) = PolicyStatement::of_query(query)? {
        return Ok(Some(Parsed::Define(Definition::policy(policy))));
    }
    if let Some(dropping) = asked_chunks(query)? {
        return Ok(Some(Parsed::Define(Definition::chunks(dropping))));
    }
    let asked = asked_hypertable(query)?;
    Ok(asked.map(|asking| Parsed::Define(Definition::hypertable(asking))))
}

fn classify(statement: Statement, shapes: Shapes<'_>) -> Result<Parsed, SqlError> {
    let statement = match session_statements::classify(statement)? {
        ControlFlow::Break(parsed) => return Ok(parsed),
        ControlFlow::Continue(statement) => statement,
    };
    Ok(match statement {
        Statement::Query(query) if changes_rows(&query) => changed_with(*query, shapes)?,
        Statement::Query(query) => asked(query)?,
        Statement::Call(ref function) => {
            if let Some(policy) = PolicyStatement::of_call(function)? {
                return Ok(Parsed::Define(Definition::policy(policy)));
            }
            let done = Upkeep::of_call(function)?.ok_or_else(|| unknown(&statement))?;
            done.called().into()
        }
        Statement::CreateSchema { ref schema_name, if_not_exists, .. }
            if schema_name.to_string().trim_matches('"') == "public" =>
        {
            match if_not_exists {
                true => Parsed::Upkeep(Upkeep::schema("CREATE SCHEMA")),
                false => return Err(SqlError::new("42P06", "schema \"public\" already exists")),
            }
        }
        Statement::Drop { object_type: ObjectType::Type, if_exists: true, .. } => {
            Parsed::Upkeep(Upkeep::absent("DROP TYPE"))
        }
        Statement::Drop { object_type: ObjectType::Sequence, if_exists: true, .. } => {
            Parsed::Upkeep(Upkeep::absent("DROP SEQUENCE"))
        }
        Statement::Drop { object_type: ObjectType::Role, if_exists: true, .. } => {
            Parsed::Upkeep(Upkeep::absent("DROP ROLE"))
        }
        Statement::DropFunction(ref dropped) if dropped.if_exists => {
            Parsed::Upkeep(Upkeep::absent("DROP FUNCTION"))
        }
        Statement::CreateDatabase { .. } => Parsed::Upkeep(Upkeep::database("CREATE DATABASE")),
        Statement::Drop { object_type: ObjectType::Database, if_exists: true, .. } => {
            Parsed::Upkeep(Upkeep::database("DROP DATABASE"))
        }
        Statement::Insert(insert) => inserted(insert, shapes)?,
        Statement::Update(update) => changed(Write::update(update), shapes)?,
        Statement::Copy {
            source,
            to: true,
            target: CopyTarget::Stdout,
            options,
            legacy_options,
            ..
        } => Parsed::CopyOut(copy_out(source, options, legacy_options)?),
        explain @ Statement::Explain { .. } => explained(explain)?,
        Statement::Delete(delete) => changed(Write::delete(delete), shapes)?,
        other if Definition::is_one(&other) => Parsed::Define(Definition::new(other)),
        other => return Err(unknown(&other)),
    })
}

/// A query, or what is done by one.
fn asked(mut query: Box<ast::Query>) -> Result<Parsed, SqlError> {
    if selects_into(&query) {
        let made = table_of_rows(&mut query).ok_or_else(|| unknown(&Statement::Query(query)))?;
        return Ok(Parsed::Define(Definition::new(made)));
    }
    match done_by_calls(&query)? {
        Some(done) => Ok(done),
        None => Query::of(query),
    }
}

fn changes_rows(query: &ast::Query) -> bool {
    use ast::SetExpr::{Delete, Insert, Update};
    matches!(&*query.body, Insert(_) | Update(_) | Delete(_))
}

/// `WITH .. INSERT`, `UPDATE` or `DELETE`.
fn changed_with(query: ast::Query, shapes: Shapes<'_>) -> Result<Parsed, SqlError> {
    let (ast::SetExpr::Insert(inner) | ast::SetExpr::Update(inner) | ast::SetExpr::Delete(inner)) =
        *query.body
    else {
        return Err(SqlError::unexpected("a change that is none"));
    };
    let Some(with) = query.with else { return classify(inner, shapes) };
    if with.cte_tables.iter().any(|one| changes_rows(&one.query)) {
        let words = "a statement that changes rows, within WITH, is not known here";
        return Err(SqlError::unsupported(words));
    }
    match classify(inner, shapes)? {
        Parsed::Write(write) => Ok(Parsed::Write(write.with(with))),
        _ => Err(SqlError::unsupported("WITH before an INSERT of samples is not known here")),
    }
}

fn selects_into(query: &ast::Query) -> bool {
    matches!(&*query.body, ast::SetExpr::Select(select) if select.into.is_some())
}

/// `SELECT .. INTO table` as `CREATE TABLE table AS SELECT ..`; none where it says more.
fn table_of_rows(query: &mut ast::Query) -> Option<Statement> {
    let ast::SetExpr::Select(select) = &mut *query.body else { return None };
    let into = select.into.take()?;
    if into.temporary || into.unlogged {
        return None;
    }
    let name = into.name;
    let text = format!("CREATE TABLE {name} AS {query}");
    let dialect = Postgres::new(text.len());
    Parser::new(&dialect).try_with_sql(&text).ok()?.parse_statement().ok()
}

/// `EXPLAIN` of a query.
fn explained(explain: Statement) -> Result<Parsed, SqlError> {
    match &explain {
        Statement::Explain { statement, .. } if !matches!(**statement, Statement::Query(_)) => {
            let words = "EXPLAIN is of queries here: what changes rows is not explained";
            Err(SqlError::unsupported(words))
        }
        _ => Query::parsed(explain),
    }
}

/// An `INSERT` of samples, or of rows of an ordinary table.
fn inserted(insert: ast::Insert, shapes: Shapes<'_>) -> Result<Parsed, SqlError> {
    let (table, _) = insert_target(&insert)?;
    match shapes(&table).is_some() {
        true => Insert::of(insert).map(Parsed::Insert),
        false => Ok(Parsed::Write(Write::insert(insert))),
    }
}

/// A change of rows of a table; of samples they are deleted, and stay as they are else.
fn changed(write: Write, shapes: Shapes<'_>) -> Result<Parsed, SqlError> {
    let (table, _) = write.target()?;
    if write.word() == "DELETE" || shapes(&table).is_none() {
        return Ok(Parsed::Write(write));
    }
    let words = "UPDATE of samples is not known here: of two samples of one series at one time the later \
                 one stays, INSERT it";
    Err(SqlError::unsupported(words))
}

/// That a statement is none of those known here, which its first words name.
fn unknown(statement: &Statement) -> SqlError {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    SqlError::unsupported(format!("{} is not supported here yet", words.join(" ")))
}

/// What a transaction sees of ordinary tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// What was committed before each statement, until it changes something itself.
    #[default]
    ReadCommitted,
    /// What was committed before its first statement.
    RepeatableRead,
    /// The same, and it fails where somebody else has changed what it read.
    Serializable,
}

impl Isolation {
    /// By the name of a setting.
    pub fn of_name(name: &str) -> Option<Isolation> {
        match name.to_ascii_lowercase().as_str() {
            "read committed" | "read uncommitted" => Some(Isolation::ReadCommitted),
            "repeatable read" => Some(Isolation::RepeatableRead),
            "serializable" => Some(Isolation::Serializable),
            _ => None,
        }
    }

    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::session_statements::set;

    fn one(text: &str) -> Parsed {
        let mut all = parse(text).unwrap();
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0)
    }

    #[test]
    fn cursors() {
        for (words, is_held) in [("WITHOUT HOLD ", false), ("", false), ("WITH HOLD ", true)] {
            let declared = Parsed::Declare { name: "Sc".into(), text: "SELECT 1".into(), is_held };
            let text = format!("DECLARE \"Sc\" NO SCROLL CURSOR {words}FOR SELECT 1");
            assert_eq!(one(&text), declared);
        }
        let fetch = |count| Parsed::Fetch { name: "sc".into(), count };
        assert_eq!(one("FETCH FORWARD 100 FROM \"sc\""), fetch(Some(100)));
        assert_eq!(one("FETCH ALL FROM SC"), fetch(None));
        assert_eq!(one("FETCH FROM sc"), fetch(Some(1)));
        assert_eq!(one("fetch SC"), fetch(Some(1)));
        assert_eq!(one("CLOSE sc"), Parsed::Close(Some("sc".into())));
        assert_eq!(one("CLOSE ALL"), Parsed::Close(None));
        let backward = parse("FETCH BACKWARD 1 FROM sc");
        assert_eq!(backward.err().map(|error| error.code), Some("0A000"));
    }

    #[test]
    fn settings() {
        assert_eq!(one("SET a.B = 'c d'"), set("a.b", "c d"));
        assert_eq!(one("SET extra_float_digits TO 3"), set("extra_float_digits", "3"));
        let unset = Parsed::Set { name: "x".into(), value: None, is_local: false };
        assert_eq!(one("set x to default"), unset);
        assert!(matches!(one("SET LOCAL x = 1"), Parsed::Set { is_local: true, .. }));
        assert_eq!(one("SHOW server_version"), Parsed::Show("server_version".into()));
        assert_eq!(one("RESET ALL"), Parsed::Reset(None));
        assert_eq!(one("SET TIME ZONE 'UTC'"), set("timezone", "UTC"));
    }

    #[test]
    fn several_at_once() {
        let all = parse(";BEGIN; SELECT ';' ;; commit").unwrap();
        assert!(matches!(all.as_slice(), [Parsed::Begin { .. }, Parsed::Query(_), Parsed::Commit]));
        assert!(parse(" ; ; -- nothing\n").unwrap().is_empty());
        assert!(parse("SELEC 1").is_err());
        let created = "SELECT create_prometheus_cx_table('m')";
        let answers = match one(created) {
            Parsed::Define(definition) => definition.answers().map(str::to_string),
            _ => None,
        };
        assert_eq!(answers.as_deref(), Some("create_prometheus_cx_table"));
        let code = |text: &str| parse(text).err().map(|error| error.code);
        assert_eq!(code(&"x".repeat(TEXT_SIZE_MAX + 1)), Some("54000"));
        assert_eq!(code("SELECT '\u{fffd}'"), Some("22021"));
        assert_eq!(one("ROLLBACK TO SAVEPOINT a"), Parsed::RollbackTo("a".into()));
        assert_eq!(one("DEALLOCATE ALL"), Parsed::Deallocate(None));
        assert_eq!(one("DEALLOCATE \"all\""), Parsed::Deallocate(Some("all".into())));
    }
}
