//! What a client may say: statements that DataFusion plans, and those that are about the session.
//!
//! A text is cut at its semicolons first, by tokens. `COPY` is read here: the options that
//! PostgreSQL 17 added to it are not known to the parser.

use crate::dialect::{Postgres, check_nesting};
use crate::error::SqlError;
use crate::hidden::Hidden;
use crate::insert::Insert;
use crate::names::folded;
use crate::rewrite::{Hints, Rewritten, rewrite};
use datafusion::sql::sqlparser::ast::{
    self, CloseCursor, ContextModifier, CopyLegacyCsvOption, CopyLegacyOption, CopyOption,
    CopySource, CopyTarget, Declare, DiscardObject, Expr, FetchDirection, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, ObjectName, Reset, SelectItem, Set, SetExpr,
    Statement, TransactionAccessMode, TransactionMode, Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, Tokenizer};
use std::collections::BTreeSet;

/// Bytes of a text with statements.
pub const TEXT_SIZE_MAX: usize = 1 << 20;
/// Words and signs of a statement, but for values, commas and spaces.
const WORDS_MAX: usize = 20_000;
/// Steps that the parser takes into a statement; parentheses take two each.
const STEPS_MAX: usize = 200;
/// Tables joined, and queries united, in a statement.
const TABLES_MAX: usize = 200;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// One that DataFusion plans.
    Query(Query),
    /// `COPY .. FROM STDIN`.
    CopyIn(CopyIn),
    /// `COPY .. TO STDOUT`.
    CopyOut(CopyOut),
    /// `INSERT INTO table`.
    Insert(Insert),
    /// `DECLARE name CURSOR FOR query`.
    Declare {
        /// The cursor.
        name: String,
        /// The text of its query.
        text: String,
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
    /// `RESET name`; none for all.
    Reset(Option<String>),
    /// `BEGIN`.
    Begin {
        /// Whether nothing may be written in it; none where it does not say.
        is_read_only: Option<bool>,
    },
    /// `SET TRANSACTION`, or `SET SESSION CHARACTERISTICS`, `READ ONLY` or `READ WRITE`.
    SetReadOnly {
        /// Whether nothing may be written.
        is_read_only: bool,
        /// Whether it is of this transaction, and not of those to come.
        is_local: bool,
    },
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `ROLLBACK TO` a savepoint.
    RollbackTo,
    /// `DEALLOCATE name`; none for all.
    Deallocate(Option<String>),
    /// `DISCARD ALL`: settings and prepared statements are forgotten.
    DiscardAll,
    /// `CREATE EXTENSION name`.
    CreateExtension(String),
    /// `SELECT create_prometheus_table('name')`, or its kin.
    CreatePrometheusTable(String),
    /// Something that has no meaning here and does no harm; what is answered.
    Nothing(&'static str),
}

/// A statement that DataFusion plans, in words that it knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Query(Hidden<Rephrased>);

/// A statement in DataFusion's words.
#[derive(Debug, PartialEq)]
pub(crate) struct Rephrased {
    pub(crate) statement: Statement,
    pub(crate) hints: Hints,
    pub(crate) parameters: BTreeSet<String>,
    pub(crate) is_reusable: bool,
}

impl Query {
    fn parsed(mut statement: Statement) -> Result<Parsed, SqlError> {
        let Rewritten { hints, parameters, is_reusable } = rewrite(&mut statement)?;
        let rephrased = Rephrased { statement, hints, parameters, is_reusable };
        Ok(Parsed::Query(Query(Hidden::new(rephrased))))
    }

    /// Of a query that was read.
    pub(crate) fn of(query: Box<ast::Query>) -> Result<Parsed, SqlError> {
        Query::parsed(Statement::Query(query))
    }

    pub(crate) fn rephrased(&self) -> &Rephrased {
        &self.0
    }
}

/// `COPY table FROM STDIN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyIn {
    /// The table.
    pub table: String,
    /// Whether bad lines are left out and counted.
    pub skips_errors: bool,
    /// How many bad lines are too many, with [`CopyIn::skips_errors`].
    pub reject_limit: Option<u64>,
}

/// `COPY (query) TO STDOUT`.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyOut {
    /// Whose rows.
    pub query: Query,
    /// What a line looks like.
    pub format: CopyFormat,
}

/// What the lines of a `COPY` look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFormat {
    /// Whether values that need it stand in quotes, as in CSV, or are escaped.
    pub is_csv: bool,
    /// Between two values.
    pub delimiter: char,
    /// What stands for no value.
    pub null: String,
    /// Whether the first line has the names.
    pub has_header: bool,
}

/// The statements of a text.
///
/// # Errors
/// When one cannot be read.
pub fn parse(text: &str) -> Result<Vec<Parsed>, SqlError> {
    if TEXT_SIZE_MAX < text.len() {
        let words = format!("a statement has at most {TEXT_SIZE_MAX} bytes: use COPY for data");
        return Err(SqlError::limit(words));
    }
    if text.contains(char::REPLACEMENT_CHARACTER) {
        let words = "invalid byte sequence for encoding \"UTF8\", or the character U+FFFD, which \
                     stands for one here";
        return Err(SqlError::not_text(words));
    }
    let tokens = Tokenizer::new(&Postgres, text).tokenize().map_err(invalid)?;
    let pieces = tokens.split(|token| *token == Token::SemiColon);
    let is_said = |piece: &&[Token]| piece.iter().any(|one| !matches!(one, Token::Whitespace(_)));
    pieces.filter(is_said).map(statement).collect()
}

fn invalid(error: impl std::fmt::Display) -> SqlError {
    SqlError::invalid(error.to_string())
}

fn unreadable(error: ParserError) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => {
            let message = "stack depth limit exceeded: parts stand too deep in each other".into();
            SqlError { code: "54001", message }
        }
        other => invalid(other),
    }
}

fn statement(tokens: &[Token]) -> Result<Parsed, SqlError> {
    let words: Vec<&Token> =
        tokens.iter().filter(|one| !matches!(one, Token::Whitespace(_))).collect();
    check_size(&words)?;
    check_nesting(&words)?;
    if word(words.first()).is_some_and(|first| first.eq_ignore_ascii_case("copy"))
        && let Some(copy) = (Words { words: &words, at: 1 }).copy_in()?
    {
        return Ok(Parsed::CopyIn(copy));
    }
    if let Some(fetch) = fetch_next(&words) {
        return Ok(fetch);
    }
    let mut parser =
        Parser::new(&Postgres).with_recursion_limit(STEPS_MAX).with_tokens(tokens.to_vec());
    let statement = parser.parse_statement().map_err(unreadable)?;
    parser.expect_token(&Token::EOF).map_err(unreadable)?;
    classify(statement)
}

/// `FETCH FROM name` and `FETCH name`, which the parser does not know: the next row.
fn fetch_next(words: &[&Token]) -> Option<Parsed> {
    let is =
        |at: usize, one: &str| word(words.get(at)).is_some_and(|w| w.eq_ignore_ascii_case(one));
    let name = match words {
        [_, name] if is(0, "fetch") => name,
        [_, _, name] if is(0, "fetch") && (is(1, "from") || is(1, "in")) => name,
        _ => return None,
    };
    let Token::Word(name) = name else { return None };
    let name = folded(&name.clone().into_ident(Span::empty()));
    Some(Parsed::Fetch { name, count: Some(1) })
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
    let count = words.len() - words.iter().filter(is_value).count();
    let tables = words.iter().filter(joins).count();
    if WORDS_MAX < count || TABLES_MAX < tables {
        let message = format!(
            "a statement of {count} words and {tables} joins and unions; {WORDS_MAX} and \
             {TABLES_MAX} are the most"
        );
        return Err(SqlError { code: "54001", message });
    }
    Ok(())
}

fn classify(statement: Statement) -> Result<Parsed, SqlError> {
    Ok(match statement {
        Statement::Set(set) => setting(set)?,
        Statement::ShowVariable { variable } => {
            let names: Vec<String> = variable.into_iter().map(|ident| ident.value).collect();
            Parsed::Show(match names.join(".").to_ascii_lowercase().as_str() {
                "transaction.isolation.level" => "transaction_isolation".into(),
                "time.zone" => "timezone".into(),
                other => other.into(),
            })
        }
        Statement::Reset(reset) => match reset.reset {
            Reset::ALL => Parsed::Reset(None),
            Reset::ConfigurationParameter(name) => Parsed::Reset(Some(plain(&name))),
        },
        Statement::StartTransaction { modes, .. } => {
            Parsed::Begin { is_read_only: read_only(&modes) }
        }
        Statement::Commit { chain: true, .. } | Statement::Rollback { chain: true, .. } => {
            return Err(SqlError::unsupported("AND CHAIN is not known here: say BEGIN"));
        }
        Statement::Commit { .. } => Parsed::Commit,
        Statement::Rollback { savepoint: Some(_), .. } => Parsed::RollbackTo,
        Statement::Rollback { .. } => Parsed::Rollback,
        Statement::LISTEN { .. } => Parsed::Nothing("LISTEN"),
        Statement::UNLISTEN { .. } => Parsed::Nothing("UNLISTEN"),
        Statement::Close { cursor: CloseCursor::All } => Parsed::Close(None),
        Statement::Close { cursor: CloseCursor::Specific { name } } => {
            Parsed::Close(Some(folded(&name)))
        }
        Statement::Declare { ref stmts } => declared(stmts).ok_or_else(|| unknown(&statement))?,
        Statement::Fetch { ref name, ref direction, into: None, .. } => {
            let count = forward(direction).ok_or_else(|| unknown(&statement))?;
            Parsed::Fetch { name: folded(name), count }
        }
        Statement::Savepoint { .. } => Parsed::Nothing("SAVEPOINT"),
        Statement::ReleaseSavepoint { .. } => Parsed::Nothing("RELEASE"),
        Statement::CreateExtension(extension) => Parsed::CreateExtension(extension.name.value),
        Statement::Discard { object_type: DiscardObject::ALL } => Parsed::DiscardAll,
        Statement::Discard { .. } => Parsed::Nothing("DISCARD"),
        Statement::Deallocate { name, .. } => {
            let is_all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
            Parsed::Deallocate((!is_all).then_some(name.value))
        }
        Statement::Query(query) => match created_table(&query.body) {
            Some(name) => Parsed::CreatePrometheusTable(name),
            None => Query::of(query)?,
        },
        Statement::Insert(insert) => Parsed::Insert(Insert::of(insert)?),
        Statement::Copy {
            source,
            to: true,
            target: CopyTarget::Stdout,
            options,
            legacy_options,
            ..
        } => Parsed::CopyOut(copy_out(source, options, legacy_options)?),
        explain @ Statement::Explain { .. } => Query::parsed(explain)?,
        other => return Err(unknown(&other)),
    })
}

fn copy_out(
    source: CopySource,
    mut options: Vec<CopyOption>,
    older: Vec<CopyLegacyOption>,
) -> Result<CopyOut, SqlError> {
    for option in older {
        options.extend(match option {
            CopyLegacyOption::Csv(csv) => {
                let has_header = csv.iter().any(|one| matches!(one, CopyLegacyCsvOption::Header));
                vec![CopyOption::Format(Ident::new("csv")), CopyOption::Header(has_header)]
            }
            CopyLegacyOption::Delimiter(delimiter) => vec![CopyOption::Delimiter(delimiter)],
            CopyLegacyOption::Null(null) => vec![CopyOption::Null(null)],
            other => {
                return Err(SqlError::unsupported(format!("COPY: option {other} is not known")));
            }
        });
    }
    let query = match source {
        CopySource::Query(query) => query,
        CopySource::Table { table_name, columns } => {
            let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
            let columns = if columns.is_empty() { "*".to_string() } else { columns.join(", ") };
            let text = format!("SELECT {columns} FROM {table_name}");
            let mut parser = Parser::new(&Postgres).try_with_sql(&text).map_err(invalid)?;
            parser.parse_query().map_err(invalid)?
        }
    };
    let is_csv = options.iter().any(|option| match option {
        CopyOption::Format(name) => name.value.eq_ignore_ascii_case("csv"),
        _ => false,
    });
    let mut format = CopyFormat {
        is_csv,
        delimiter: if is_csv { ',' } else { '\t' },
        null: if is_csv { String::new() } else { "\\N".to_string() },
        has_header: false,
    };
    for option in options {
        match option {
            CopyOption::Format(name)
                if ["csv", "text"].iter().any(|one| name.value.eq_ignore_ascii_case(one)) => {}
            CopyOption::Delimiter(delimiter) => format.delimiter = delimiter,
            CopyOption::Null(null) => format.null = null,
            CopyOption::Header(has_header) => format.has_header = has_header,
            other => {
                return Err(SqlError::unsupported(format!("COPY: option {other} is not known")));
            }
        }
    }
    check_format(&format)?;
    match Query::of(query)? {
        Parsed::Query(query) => Ok(CopyOut { query, format }),
        _ => Err(SqlError::unexpected("a query that is none")),
    }
}

/// Whether lines of a format can be read again, by PostgreSQL's rules.
fn check_format(format: &CopyFormat) -> Result<(), SqlError> {
    let CopyFormat { is_csv, delimiter, null, .. } = format;
    let wrong = |words: &str| Err(SqlError::wrong_value(words));
    if !delimiter.is_ascii() {
        return wrong("COPY delimiter must be a single one-byte character");
    }
    if ['\n', '\r'].contains(delimiter) {
        return wrong("COPY delimiter cannot be newline or carriage return");
    }
    let means_something =
        |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || "\\.".contains(one);
    if !is_csv && means_something(*delimiter) {
        return wrong("COPY delimiter cannot be a small letter, a digit, a dot or a backslash");
    }
    if *is_csv && *delimiter == '"' {
        return wrong("COPY delimiter and quote must be different");
    }
    if null.contains(['\n', '\r']) {
        return wrong("COPY null representation cannot use newline or carriage return");
    }
    if null.contains(*delimiter) {
        return wrong("COPY delimiter must not appear in the NULL specification");
    }
    Ok(())
}

/// A cursor that goes forward, through one query.
fn declared(all: &[Declare]) -> Option<Parsed> {
    let [Declare { names, for_query: Some(query), hold, .. }] = all else { return None };
    let [name] = names.as_slice() else { return None };
    // One that outlives its transaction would have to keep all its rows.
    (*hold != Some(true)).then(|| Parsed::Declare { name: folded(name), text: query.to_string() })
}

/// How many rows a direction asks for; none of those that go back, nothing for all of them.
fn forward(direction: &FetchDirection) -> Option<Option<usize>> {
    let number = |limit: &ValueWithSpan| limit.to_string().parse().ok();
    match direction {
        FetchDirection::Next | FetchDirection::Forward { limit: None } => Some(Some(1)),
        FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => {
            number(limit).map(Some)
        }
        FetchDirection::All | FetchDirection::ForwardAll => Some(None),
        _ => None,
    }
}

/// That a statement is none of those known here, which its first words name.
fn unknown(statement: &Statement) -> SqlError {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    SqlError::unsupported(format!("{} is not supported here yet", words.join(" ")))
}

fn setting(statement: Set) -> Result<Parsed, SqlError> {
    match statement {
        Set::SingleAssignment { scope, variable, values, .. } => {
            let value = match values.as_slice() {
                [Expr::Identifier(ident)] if ident.value.eq_ignore_ascii_case("default") => None,
                values => Some(values.iter().map(value_text).collect::<Vec<_>>().join(", ")),
            };
            let is_local = scope == Some(ContextModifier::Local);
            Ok(Parsed::Set { name: plain(&variable), value, is_local })
        }
        Set::SetTimeZone { value, .. } => Ok(set("timezone", &value_text(&value))),
        Set::SetNames { charset_name, .. } => Ok(set("client_encoding", &charset_name.value)),
        Set::SetTransaction { modes, session, .. } => Ok(match read_only(&modes) {
            Some(is_read_only) => Parsed::SetReadOnly { is_read_only, is_local: !session },
            None => Parsed::Nothing("SET"),
        }),
        Set::SetRole { .. } | Set::SetSessionAuthorization(_) => Ok(Parsed::Nothing("SET")),
        other => Err(SqlError::unsupported(format!("{other}: this way of SET is not known"))),
    }
}

/// Whether modes of a transaction let nothing be written in it.
fn read_only(modes: &[TransactionMode]) -> Option<bool> {
    modes.iter().rev().find_map(|mode| match mode {
        TransactionMode::AccessMode(mode) => Some(*mode == TransactionAccessMode::ReadOnly),
        TransactionMode::IsolationLevel(_) => None,
    })
}

fn set(name: &str, value: &str) -> Parsed {
    Parsed::Set { name: name.into(), value: Some(value.into()), is_local: false }
}

fn plain(name: &ObjectName) -> String {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    parts.map(|ident| ident.value.to_ascii_lowercase()).collect::<Vec<_>>().join(".")
}

fn value_text(expr: &Expr) -> String {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::EscapedStringLiteral(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(ident) => ident.value.clone(),
        other => other.to_string(),
    }
}

/// The table that a query makes by calling `create_prometheus_table('name')`.
fn created_table(body: &SetExpr) -> Option<String> {
    let SetExpr::Select(select) = body else { return None };
    let [SelectItem::UnnamedExpr(Expr::Function(function))] = select.projection.as_slice() else {
        return None;
    };
    let makers = ["create_prometheus_table", "create_prometheus_cx_table"];
    if !makers.contains(&plain(&function.name).as_str()) {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(value_text(expr)),
        _ => None,
    }
}

fn word<'t>(token: Option<&&'t Token>) -> Option<&'t str> {
    match token {
        Some(Token::Word(word)) => Some(&word.value),
        Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => Some(text),
        Some(Token::Number(digits, _)) => Some(digits),
        _ => None,
    }
}

/// The words of a statement, read from left to right.
struct Words<'t> {
    words: &'t [&'t Token],
    at: usize,
}

impl<'t> Words<'t> {
    fn word(&mut self) -> Option<&'t str> {
        let found = word(self.words.get(self.at))?;
        self.at += 1;
        Some(found)
    }

    fn eat(&mut self, token: &Token) -> bool {
        let is_next = self.words.get(self.at) == Some(&token);
        self.at += usize::from(is_next);
        is_next
    }

    /// `table [(columns)] FROM STDIN [[WITH] (option value, ...)]`; none when it copies elsewhere.
    fn copy_in(mut self) -> Result<Option<CopyIn>, SqlError> {
        let Some(mut table) = self.word() else { return Ok(None) };
        if self.eat(&Token::Period) {
            // The schema says nothing.
            table = self.word().ok_or_else(|| invalid("COPY needs a table's name"))?;
        }
        if self.eat(&Token::LParen) {
            while !self.eat(&Token::RParen) {
                if self.word().is_none() && !self.eat(&Token::Comma) {
                    return Err(invalid("COPY: the list of columns does not end"));
                }
            }
        }
        if !self.word().is_some_and(|next| next.eq_ignore_ascii_case("from")) {
            return Ok(None);
        }
        if !self.word().is_some_and(|next| next.eq_ignore_ascii_case("stdin")) {
            let words = "COPY reads FROM STDIN only: files are the client's, as with psql's \\copy";
            return Err(SqlError::unsupported(words));
        }
        let mut copy = CopyIn { table: table.to_ascii_lowercase(), ..CopyIn::default() };
        self.options(&mut copy)?;
        Ok(Some(copy))
    }

    fn options(&mut self, copy: &mut CopyIn) -> Result<(), SqlError> {
        if word(self.words.get(self.at)).is_some_and(|next| next.eq_ignore_ascii_case("with")) {
            self.at += 1;
        }
        // Older clients say how values stand apart, of which a line has one.
        while let Some(name) = word(self.words.get(self.at))
            && ["delimiter", "null"].iter().any(|one| name.eq_ignore_ascii_case(one))
        {
            self.at += 1;
            if word(self.words.get(self.at)).is_some_and(|next| next.eq_ignore_ascii_case("as")) {
                self.at += 1;
            }
            self.word().ok_or_else(|| invalid("COPY: an option has no value"))?;
        }
        if self.eat(&Token::LParen) {
            loop {
                let name = self.word().ok_or_else(|| invalid("COPY: an option has no name"))?;
                let value = self.word().unwrap_or("true");
                copy.set(&name.to_ascii_lowercase(), &value.to_ascii_lowercase())?;
                if self.eat(&Token::RParen) {
                    break;
                }
                if !self.eat(&Token::Comma) {
                    return Err(invalid("COPY: options stand apart by commas"));
                }
            }
        }
        match self.words.get(self.at) {
            Some(rest) => Err(invalid(format!("COPY: syntax error at or near \"{rest}\""))),
            None => Ok(()),
        }
    }
}

impl CopyIn {
    fn set(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        match (name, value) {
            ("format", "text") => {}
            ("on_error", "stop") => self.skips_errors = false,
            ("on_error", "ignore") => self.skips_errors = true,
            ("log_verbosity", _) => {}
            ("reject_limit", value) => {
                let limit = value.parse().ok().filter(|limit| 0 < *limit);
                let words = "COPY: REJECT_LIMIT is a number from 1 on";
                self.reject_limit = Some(limit.ok_or_else(|| invalid(words))?);
            }
            ("format", other) => {
                let words = format!("COPY: lines of exposition text have FORMAT text, not {other}");
                return Err(SqlError::unsupported(words));
            }
            _ => {
                let words = format!("COPY: option \"{name} {value}\" is not known");
                return Err(SqlError::unsupported(words));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Parsed {
        let mut all = parse(text).unwrap();
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0)
    }

    #[test]
    fn copies() {
        let copy = CopyIn { table: "metrics".into(), ..CopyIn::default() };
        for text in [
            "COPY metrics FROM STDIN",
            "copy Metrics from stdin;",
            "COPY public.metrics (sample) FROM STDIN WITH (FORMAT text)",
            "COPY metrics FROM STDIN (ON_ERROR stop, FORMAT 'text')",
            "COPY metrics FROM stdin WITH DELIMITER AS E'\\t' NULL AS E'\\\\N'",
        ] {
            assert_eq!(one(text), Parsed::CopyIn(copy.clone()), "{text}");
        }
        let skipping = CopyIn { skips_errors: true, reject_limit: Some(7), ..copy };
        let text = "COPY metrics FROM STDIN WITH (ON_ERROR ignore, REJECT_LIMIT 7)";
        assert_eq!(one(text), Parsed::CopyIn(skipping));
        for text in [
            "COPY metrics FROM '/etc/passwd'",
            "COPY metrics FROM STDIN WITH (FORMAT csv)",
            "COPY metrics FROM STDIN WITH (REJECT_LIMIT 0)",
            "COPY metrics FROM STDIN oops",
            "COPY metrics (a b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn copies_out() {
        let text = "COPY (SELECT 1) TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';')";
        let Parsed::CopyOut(copy) = one(text) else { panic!("{text}") };
        let (null, has_header) = (String::new(), true);
        let expected = CopyFormat { is_csv: true, delimiter: ';', null, has_header };
        assert_eq!(copy.format, expected);
        assert!(matches!(one("COPY metrics (name) TO STDOUT"), Parsed::CopyOut(_)));
        for text in ["COPY metrics TO '/tmp/x'", "COPY metrics TO STDOUT WITH (FORMAT binary)"] {
            assert_eq!(parse(text).err().map(|error| error.code), Some("0A000"), "{text}");
        }
    }

    #[test]
    fn cursors() {
        let declared = Parsed::Declare { name: "Sc".into(), text: "SELECT 1".into() };
        assert_eq!(one("DECLARE \"Sc\" NO SCROLL CURSOR WITHOUT HOLD FOR SELECT 1"), declared);
        let fetch = |count| Parsed::Fetch { name: "sc".into(), count };
        assert_eq!(one("FETCH FORWARD 100 FROM \"sc\""), fetch(Some(100)));
        assert_eq!(one("FETCH ALL FROM SC"), fetch(None));
        assert_eq!(one("FETCH FROM sc"), fetch(Some(1)));
        assert_eq!(one("fetch SC"), fetch(Some(1)));
        assert_eq!(one("CLOSE sc"), Parsed::Close(Some("sc".into())));
        assert_eq!(one("CLOSE ALL"), Parsed::Close(None));
        for text in ["FETCH BACKWARD 1 FROM sc", "DECLARE sc CURSOR WITH HOLD FOR SELECT 1"] {
            assert_eq!(parse(text).err().map(|error| error.code), Some("0A000"), "{text}");
        }
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
        assert!(matches!(
            all.as_slice(),
            [Parsed::Begin { is_read_only: None }, Parsed::Query(_), Parsed::Commit]
        ));
        assert!(parse(" ; ; -- nothing\n").unwrap().is_empty());
        assert!(parse("SELEC 1").is_err());
        let created = "SELECT create_prometheus_cx_table('m')";
        let expected = Parsed::CreatePrometheusTable("m".into());
        assert_eq!(one(created), expected);
        let code = |text: &str| parse(text).err().map(|error| error.code);
        assert_eq!(code(&"x".repeat(TEXT_SIZE_MAX + 1)), Some("54000"));
        assert_eq!(code("SELECT '\u{fffd}'"), Some("22021"));
        assert_eq!(one("ROLLBACK TO SAVEPOINT a"), Parsed::RollbackTo);
        assert_eq!(one("DEALLOCATE ALL"), Parsed::Deallocate(None));
        assert_eq!(one("DEALLOCATE \"all\""), Parsed::Deallocate(Some("all".into())));
    }
}
