//! Statements about a session and its transactions: `SET`, `SHOW`, `BEGIN`, cursors, prepared statements.

use crate::parse::token_forms::word;
use crate::session::cursor_statements::{read_declare, read_direction};
use crate::session::parsed::Parsed;
use crate::tables::heap::isolation::Isolation;
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::sql::sqlparser::ast::{
    self, CloseCursor, ContextModifier, DiscardObject, Expr, ObjectName, Reset, Set, Statement,
    TransactionAccessMode, TransactionMode, Value,
};
use datafusion::sql::sqlparser::tokenizer::{Token, Whitespace};
use std::ops::ControlFlow;

/// Reads a statement about the session; continues with other statements.
///
/// # Errors
/// Returns `0A000` for what is not supported.
pub fn classify(statement: Statement) -> Result<ControlFlow<Parsed, Statement>, SqlError> {
    Ok(ControlFlow::Break(match statement {
        Statement::Set(set) => setting(set)?,
        Statement::ShowVariable { variable } => shown(variable),
        Statement::Reset(reset) => match reset.reset {
            Reset::ALL => Parsed::Reset(None),
            Reset::ConfigurationParameter(name) => Parsed::Reset(Some(plain(&name))),
        },
        Statement::StartTransaction { modes, begin, .. } => Parsed::Begin {
            tag: if begin { "BEGIN" } else { "START TRANSACTION" },
            is_read_only: read_only(&modes),
            isolation: isolation(&modes),
        },
        Statement::Commit { chain: true, .. } | Statement::Rollback { chain: true, .. } => {
            return Err(SqlError::unsupported("AND CHAIN is not known here: say BEGIN"));
        }
        Statement::Commit { .. } => Parsed::Commit,
        Statement::Rollback { savepoint: Some(name), .. } => Parsed::RollbackTo(folded(&name)),
        Statement::Rollback { .. } => Parsed::Rollback,
        Statement::LISTEN { channel } => Parsed::Listen(folded(&channel)),
        Statement::UNLISTEN { channel } => {
            Parsed::Unlisten((channel.value != "*").then(|| folded(&channel)))
        }
        Statement::NOTIFY { channel, payload } => {
            Parsed::Notify { channel: folded(&channel), payload: payload.unwrap_or_default() }
        }
        Statement::Close { cursor: CloseCursor::All } => Parsed::Close(None),
        Statement::Close { cursor: CloseCursor::Specific { name } } => {
            Parsed::Close(Some(folded(&name)))
        }
        Statement::Declare { ref stmts } => match read_declare(stmts)? {
            Some(declared) => declared,
            None => return Ok(ControlFlow::Continue(statement)),
        },
        Statement::Fetch { ref name, ref direction, into: None, .. } => {
            match read_direction(direction) {
                Some(count) => Parsed::Fetch { name: folded(name), count },
                None => return Ok(ControlFlow::Continue(statement)),
            }
        }
        Statement::Savepoint { name } => Parsed::Savepoint(folded(&name)),
        Statement::ReleaseSavepoint { name } => Parsed::Release(folded(&name)),
        Statement::CreateExtension(extension) => Parsed::CreateExtension(extension.name.value),
        Statement::Discard { object_type: DiscardObject::ALL } => Parsed::DiscardAll,
        Statement::Discard { .. } => Parsed::Nothing("DISCARD"),
        Statement::Deallocate { name, .. } => {
            let is_all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
            Parsed::Deallocate((!is_all).then(|| folded(&name)))
        }
        other => return Ok(ControlFlow::Continue(other)),
    }))
}

fn shown(variable: Vec<ast::Ident>) -> Parsed {
    let names: Vec<String> = variable.into_iter().map(|ident| ident.value).collect();
    let name = names.join(".").to_ascii_lowercase();
    Parsed::Show(match name.as_str() {
        "all" => return Parsed::ShowAll,
        "transaction.isolation.level" => "transaction_isolation".into(),
        "session.authorization" => "session_authorization".into(),
        "time.zone" => "timezone".into(),
        _ => name,
    })
}

fn setting(statement: Set) -> Result<Parsed, SqlError> {
    match statement {
        Set::SingleAssignment { scope, variable, values, .. } => {
            let value = match values.as_slice() {
                [Expr::Identifier(ident)] if ident.value.eq_ignore_ascii_case("default") => None,
                values => Some(values.iter().map(value_text).collect::<Vec<_>>().join(", ")),
            };
            let is_local = scope == Some(ContextModifier::Local);
            if plain(&variable) == "transaction_isolation" {
                let isolation = value.as_deref().and_then(Isolation::of_name);
                return match isolation {
                    Some(_) => {
                        Ok(Parsed::SetTransaction { is_read_only: None, isolation, is_local: true })
                    }
                    None => {
                        let words = format!(
                            "invalid value for parameter \"transaction_isolation\": \"{}\"",
                            value.unwrap_or_default()
                        );
                        Err(SqlError::new("22023", words))
                    }
                };
            }
            Ok(Parsed::Set { name: plain(&variable), value, is_local })
        }
        Set::SetTimeZone { value: Expr::Identifier(word), local }
            if ["local", "default"].iter().any(|one| word.value.eq_ignore_ascii_case(one)) =>
        {
            Ok(Parsed::Set { name: "timezone".into(), value: None, is_local: local })
        }
        Set::SetTimeZone { value: Expr::Interval(offset), .. } => {
            Ok(set("timezone", &value_text(&offset.value)))
        }
        Set::SetTimeZone { value, .. } => Ok(set("timezone", &value_text(&value))),
        Set::SetNames { charset_name, .. } => Ok(set("client_encoding", &charset_name.value)),
        Set::SetTransaction { modes, session, .. } => Ok(Parsed::SetTransaction {
            is_read_only: read_only(&modes),
            isolation: isolation(&modes),
            is_local: !session,
        }),
        Set::SetRole { role_name, .. } => {
            let name = role_name.as_ref().map_or_else(|| "none".to_string(), folded);
            Ok(set("role", &name))
        }
        Set::SetSessionAuthorization(_) => Ok(Parsed::Nothing("SET")),
        other => Err(SqlError::unsupported(format!("{other}: this way of SET is not known"))),
    }
}

fn isolation(modes: &[TransactionMode]) -> Option<Isolation> {
    modes.iter().rev().find_map(|mode| match mode {
        TransactionMode::IsolationLevel(level) => Isolation::of_name(&level.to_string()),
        TransactionMode::AccessMode(_) => None,
    })
}

fn read_only(modes: &[TransactionMode]) -> Option<bool> {
    modes.iter().rev().find_map(|mode| match mode {
        TransactionMode::AccessMode(mode) => Some(*mode == TransactionAccessMode::ReadOnly),
        TransactionMode::IsolationLevel(_) => None,
    })
}

pub fn set(name: &str, value: &str) -> Parsed {
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

/// The tag of a statement that changes nothing and that the parser does not know.
pub fn tag_of_nothing(words: &[&Token]) -> Option<&'static str> {
    let first: Vec<String> =
        words.iter().take(3).map(|one| one.to_string().to_ascii_lowercase()).collect();
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    match first.as_slice() {
        // No constraint is deferrable.
        ["set", "constraints", ..] if 3 < words.len() => Some("SET CONSTRAINTS"),
        ["reset", "session", "authorization"] if words.len() == 3 => Some("RESET"),
        _ => None,
    }
}

/// Tokens with spaces between them.
fn spaced(first: impl IntoIterator<Item = Token>, rest: &[&Token]) -> Vec<Token> {
    let rest = rest.iter().map(|&token| token.clone());
    let all = first.into_iter().chain(rest);
    all.flat_map(|token| [token, Token::Whitespace(Whitespace::Space)]).collect()
}

/// A statement about a transaction without `[NOT] DEFERRABLE`, which concerns transactions that wait for others: none do.
fn without_deferrable(words: &[&Token]) -> Option<Vec<Token>> {
    let is = |one: &Token, wanted: &str| {
        word(Some(&one)).is_some_and(|word| word.eq_ignore_ascii_case(wanted))
    };
    let (first, second) = (words.first()?, words.get(1)?);
    let begins = ["begin", "start"].iter().any(|one| is(first, one))
        || is(first, "set") && ["transaction", "session"].iter().any(|one| is(second, one));
    let mut rest = words.to_vec();
    if !begins || !is(rest.pop()?, "deferrable") {
        return None;
    }
    if rest.last().is_some_and(|one| is(one, "not")) {
        rest.pop();
    }
    if rest.last() == Some(&&Token::Comma) {
        rest.pop();
    }
    Some(spaced([], &rest))
}

/// Expands abbreviated statements such as `TABLE name` and `ABORT` into their full form.
pub fn in_full(words: &[&Token]) -> Option<Vec<Token>> {
    let plain = |keyword: &str| Token::make_keyword(keyword);
    let rest = words.iter().skip(1).map(|&token| token.clone());
    let rest = rest.flat_map(|token| [Token::Whitespace(Whitespace::Space), token]);
    let is = |at: usize, one: &str| {
        word(words.get(at)).is_some_and(|word| word.eq_ignore_ascii_case(one))
    };
    if let Some(plain) = without_deferrable(words) {
        return Some(plain);
    }
    let renames =
        words.iter().any(|one| word(Some(one)).is_some_and(|w| w.eq_ignore_ascii_case("rename")));
    let mut all = match word(words.first())?.to_ascii_lowercase().as_str() {
        "alter" if is(1, "view") && renames => {
            return Some(spaced([plain("ALTER"), plain("TABLE")], &words[2..]));
        }
        "alter" if is(1, "materialized") && is(2, "view") && renames => {
            return Some(spaced([plain("ALTER"), plain("TABLE")], &words[3..]));
        }
        "set" if is(1, "schema") && words.len() == 3 => {
            return Some(spaced([plain("SET"), plain("search_path"), plain("TO")], &words[2..]));
        }
        "table" => vec![plain("SELECT"), Token::Mul, plain("FROM")],
        "abort" => vec![plain("ROLLBACK")],
        _ => return None,
    };
    all.extend(rest);
    Some(all)
}
