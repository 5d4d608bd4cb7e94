//! What a client may say: statements that DataFusion plans, and those that are about the session.
//!
//! A text is cut at its semicolons first, by tokens.

use crate::copy::copy_parquet::copy_parquet;
use crate::copy::statement::{CopyOut, copy_in, copy_out};
use crate::ddl_dml::definitions::define::Definition;
use crate::ddl_dml::insert::Insert;
use crate::ddl_dml::policies::said::PolicyStatement;
use crate::ddl_dml::prometheus::{Creation, Shapes, written};
use crate::ddl_dml::rows::writes::{Write, insert_target};
use crate::ddl_dml::timescale_options;
use crate::ddl_dml::upkeep::{Done, Upkeep, asked_chunks, asked_hypertable};
use crate::ddl_dml::views::define::without_data;
pub use crate::parse::query::Query;
use crate::parse::rewrite::functions::promscale::dropped_metric;
pub use crate::parse::text::TEXT_SIZE_MAX;
use crate::parse::text::{SHORT_SIZE_MAX, check_words, read_statement, tokens_of};
use crate::parse::token_forms::{unknown_type, word};
use crate::session::cursor_statements::fetch_next;
pub use crate::session::parsed::Parsed;
use crate::session::{prepared, session_statements};
pub use crate::tables::heap::isolation::Isolation;
use crate::types::dialect::Postgres;
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{self, CopyTarget, ObjectType, Statement};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

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
    let pieces = tokens_of(text)?;
    let is_short = text.len() <= SHORT_SIZE_MAX;
    let marked = |parsed| match parsed {
        Parsed::Query(query) => Parsed::Query(query.with_short_text(is_short)),
        other => other,
    };
    pieces.iter().map(|piece| statement(piece, shapes).map(marked)).collect()
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

fn statement(tokens: &[Token], shapes: Shapes<'_>) -> Result<Parsed, SqlError> {
    let words: Vec<&Token> =
        tokens.iter().filter(|one| !matches!(one, Token::Whitespace(_))).collect();
    check_words(&words)?;
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
    classify(read_statement(tokens, words.len())?, shapes)
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
        None => Query::of(query).map(Parsed::Query),
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
        _ => Query::new(explain).map(Parsed::Query),
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
        let dropped = one("SELECT prom_api.drop_metric('a b')");
        assert_eq!(dropped, Parsed::DropMetric("a b".into()));
        assert_eq!(one("ROLLBACK TO SAVEPOINT a"), Parsed::RollbackTo("a".into()));
        assert_eq!(one("DEALLOCATE ALL"), Parsed::Deallocate(None));
        assert_eq!(one("DEALLOCATE \"all\""), Parsed::Deallocate(Some("all".into())));
    }
}
