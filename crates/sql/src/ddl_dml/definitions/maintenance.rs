//! `VACUUM`, `ANALYZE`, `REINDEX`, `CLUSTER` and `CHECKPOINT`, which clients and their scheduled jobs say and which
//! leave nothing to be done here; and `COMMENT ON`, of which a notice says that it is not kept.
//!
//! The parser knows few of them, so they are read word by word. What they name has to be there.

use crate::ddl_dml::definitions::defined::{Defined, is_written};
use crate::parse::table_names::table_name;
use crate::tables::heap::stored_views;
use crate::tables::heap::view::{View, no_such_table};
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, Word};

/// What is said before tables, in any order.
const OPTIONS: &[&str] = &["full", "freeze", "verbose", "analyze", "analyse"];
const ALWAYS_FRESH: &str =
    "it is worked out from its rows whenever it is asked: there is nothing to be done";
const NOT_KEPT: &str = "comments are not kept here";

/// A statement that changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    tag: &'static str,
    names: Vec<Named>,
}

/// What has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Table(ObjectName),
    Column(ObjectName, Ident),
    Index(ObjectName),
    /// A view; whether it is materialized.
    View(ObjectName, bool),
}

/// Words that are still to be read.
pub(crate) struct Words<'a>(&'a [&'a Token]);

impl<'a> Words<'a> {
    /// Of a statement, without spaces.
    pub(crate) fn new(words: &'a [&'a Token]) -> Words<'a> {
        Words(words)
    }

    /// Reads whatever comes next.
    pub(crate) fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Reads a sign if it is this one.
    pub(crate) fn take_sign(&mut self, wanted: &Token) -> bool {
        let is_it = self.0.first().is_some_and(|one| *one == wanted);
        self.0 = if is_it { &self.0[1..] } else { self.0 };
        is_it
    }

    fn word(&self) -> Option<&Word> {
        match self.0.first() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Reads a word if it is this one.
    pub(crate) fn take(&mut self, wanted: &str) -> bool {
        let is_it = self
            .word()
            .is_some_and(|one| one.quote_style.is_none() && one.value.eq_ignore_ascii_case(wanted));
        self.0 = if is_it { &self.0[1..] } else { self.0 };
        is_it
    }

    pub(crate) fn take_any(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        wanted.iter().copied().find(|one| self.take(one))
    }

    /// Reads what stands in parentheses, if it does.
    fn take_parentheses(&mut self) -> Result<(), SqlError> {
        if self.0.first() != Some(&&Token::LParen) {
            return Ok(());
        }
        let end = self.0.iter().position(|one| **one == Token::RParen);
        let end = end.ok_or_else(|| SqlError::invalid("a parenthesis is not closed"))?;
        self.0 = &self.0[end + 1..];
        Ok(())
    }

    pub(crate) fn ident(&mut self) -> Result<Ident, SqlError> {
        let word = self.word().cloned().ok_or_else(|| match self.0.first() {
            Some(other) => SqlError::invalid(format!("syntax error at or near \"{other}\"")),
            None => SqlError::invalid("syntax error at end of input"),
        })?;
        self.0 = &self.0[1..];
        Ok(word.into_ident(Span::empty()))
    }

    pub(crate) fn parts(&mut self) -> Result<Vec<Ident>, SqlError> {
        let mut parts = vec![self.ident()?];
        while self.0.first() == Some(&&Token::Period) {
            self.0 = &self.0[1..];
            parts.push(self.ident()?);
        }
        Ok(parts)
    }

    pub(crate) fn name(&mut self) -> Result<ObjectName, SqlError> {
        Ok(ObjectName::from(self.parts()?))
    }

    /// Tables with commas between, each with columns or without.
    fn tables(&mut self) -> Result<Vec<Named>, SqlError> {
        let mut all = Vec::new();
        while !self.0.is_empty() {
            all.push(Named::Table(self.name()?));
            self.take_parentheses()?;
            match self.0.split_first() {
                Some((Token::Comma, rest)) if !rest.is_empty() => self.0 = rest,
                _ => break,
            }
        }
        Ok(all)
    }

    pub(crate) fn end(&self) -> Result<(), SqlError> {
        match self.0.first() {
            Some(other) => Err(SqlError::invalid(format!("syntax error at or near \"{other}\""))),
            None => Ok(()),
        }
    }
}

impl Maintenance {
    /// What a statement is, if its first word is that of one.
    ///
    /// # Errors
    /// When the others make no sense.
    pub fn of_words(words: &[&Token]) -> Result<Option<Maintenance>, SqlError> {
        let mut words = Words::new(words);
        let known = [
            "vacuum",
            "analyze",
            "analyse",
            "reindex",
            "cluster",
            "checkpoint",
            "comment",
            "refresh",
        ];
        let (tag, names) = match words.take_any(&known) {
            Some("vacuum") => ("VACUUM", cleaned(&mut words)?),
            Some("analyze" | "analyse") => ("ANALYZE", cleaned(&mut words)?),
            Some("reindex") => ("REINDEX", reindexed(&mut words)?),
            Some("cluster") => ("CLUSTER", clustered(&mut words)?),
            Some("refresh") => ("REFRESH MATERIALIZED VIEW", refreshed(&mut words)?),
            Some("checkpoint") => ("CHECKPOINT", Vec::new()),
            Some(_) => ("COMMENT", commented(&mut words)?),
            None => return Ok(None),
        };
        words.end()?;
        Ok(Some(Maintenance { tag, names }))
    }

    /// What the statement is called.
    pub fn word(&self) -> &'static str {
        self.tag
    }

    /// Says that it is done, if what it names is there.
    ///
    /// # Errors
    /// When it is not.
    pub fn done(&self, view: &View, done: &mut Defined) -> Result<(), SqlError> {
        for named in &self.names {
            named.check(view)?;
        }
        if self.tag == "REFRESH MATERIALIZED VIEW" {
            done.notices.push(ALWAYS_FRESH.to_string());
        }
        if self.tag == "COMMENT" {
            done.notices.push(NOT_KEPT.to_string());
        }
        Ok(())
    }
}

/// Of `VACUUM` and `ANALYZE`.
fn cleaned(words: &mut Words<'_>) -> Result<Vec<Named>, SqlError> {
    words.take_parentheses()?;
    while words.take_any(OPTIONS).is_some() {}
    words.tables()
}

fn reindexed(words: &mut Words<'_>) -> Result<Vec<Named>, SqlError> {
    words.take_parentheses()?;
    let kind = words.take_any(&["index", "table", "schema", "database", "system"]);
    words.take("concurrently");
    match kind {
        Some("index") => Ok(vec![Named::Index(words.name()?)]),
        Some("table") => Ok(vec![Named::Table(words.name()?)]),
        Some(_) => {
            if !words.0.is_empty() {
                words.name()?;
            }
            Ok(Vec::new())
        }
        None => Err(SqlError::invalid("REINDEX is of INDEX, TABLE, SCHEMA, DATABASE or SYSTEM")),
    }
}

fn refreshed(words: &mut Words<'_>) -> Result<Vec<Named>, SqlError> {
    if !(words.take("materialized") && words.take("view")) {
        return Err(SqlError::invalid("REFRESH is of a MATERIALIZED VIEW"));
    }
    words.take("concurrently");
    let name = words.name()?;
    if words.take("with") {
        words.take("no");
        if !words.take("data") {
            return Err(SqlError::invalid("REFRESH MATERIALIZED VIEW .. WITH [NO] DATA"));
        }
    }
    Ok(vec![Named::View(name, true)])
}

fn clustered(words: &mut Words<'_>) -> Result<Vec<Named>, SqlError> {
    words.take_parentheses()?;
    words.take("verbose");
    if words.0.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = vec![Named::Table(words.name()?)];
    if words.take("using") {
        all.push(Named::Index(words.name()?));
    }
    Ok(all)
}

/// Of `COMMENT ON kind name [ON table] IS 'text'`.
fn commented(words: &mut Words<'_>) -> Result<Vec<Named>, SqlError> {
    if !words.take("on") {
        return Err(SqlError::invalid("COMMENT is ON something"));
    }
    let kinds = [
        "table",
        "column",
        "index",
        "constraint",
        "database",
        "schema",
        "extension",
        "role",
        "view",
        "materialized",
    ];
    let names = match words.take_any(&kinds) {
        Some("table") => vec![Named::Table(words.name()?)],
        Some("index") => vec![Named::Index(words.name()?)],
        Some("view") => vec![Named::View(words.name()?, false)],
        Some("materialized") if words.take("view") => vec![Named::View(words.name()?, true)],
        Some("column") => {
            let mut parts = words.parts()?;
            let column = parts.pop().filter(|_| !parts.is_empty());
            let column =
                column.ok_or_else(|| SqlError::invalid("column name must be qualified"))?;
            vec![Named::Column(ObjectName::from(parts), column)]
        }
        Some("constraint") => {
            let name = words.name()?;
            match words.take("on") {
                true => vec![Named::Table(words.name()?), Named::Index(name)],
                false => {
                    return Err(SqlError::invalid("COMMENT ON CONSTRAINT is of one ON a table"));
                }
            }
        }
        Some(_) => {
            words.name()?;
            Vec::new()
        }
        None => {
            let words = "COMMENT is known here ON TABLE, COLUMN, INDEX, CONSTRAINT, DATABASE, SCHEMA, \
                         EXTENSION and ROLE";
            return Err(SqlError::unsupported(words));
        }
    };
    let is_said = words.take("is")
        && match words.0.first() {
            Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)) => true,
            Some(Token::Word(word)) => word.value.eq_ignore_ascii_case("null"),
            _ => false,
        };
    if !is_said {
        return Err(SqlError::invalid("COMMENT ON .. IS 'text', or IS NULL"));
    }
    words.0 = &words.0[1..];
    Ok(names)
}

impl Named {
    fn check(&self, view: &View) -> Result<(), SqlError> {
        match self {
            Named::Table(name) => match table_name(name)? {
                written if is_written(&written) => Ok(()),
                other => view.expect(&other).map(drop),
            },
            // Those of samples are always there, and their columns are known where they are read.
            Named::Column(table, column) => match table_name(table)? {
                written if is_written(&written) => Ok(()),
                other => crate::ddl_dml::definitions::schema_changes::column_of(
                    &*view.expect(&other)?,
                    column,
                )
                .map(drop),
            },
            Named::View(name, is_materialized) => {
                let name = table_name(name)?;
                let found = view.get(&name).ok_or_else(|| no_such_table(&name))?;
                match stored_views::View::of(found.schema()) {
                    Some(one) if (one.kind != stored_views::Kind::Plain) == *is_materialized => {
                        Ok(())
                    }
                    _ => {
                        let kind = if *is_materialized { "materialized view" } else { "view" };
                        Err(SqlError::new("42809", format!("\"{name}\" is not a {kind}")))
                    }
                }
            }
            Named::Index(name) => {
                let index = table_name(name)?;
                let has_it = |table: &std::sync::Arc<tables::Table>| {
                    table.schema().constraints.iter().any(|one| one.name == index)
                };
                match view.list().iter().any(has_it) {
                    true => Ok(()),
                    false => {
                        let words = format!("index \"{index}\" does not exist");
                        Err(SqlError::new("42704", words))
                    }
                }
            }
        }
    }
}
