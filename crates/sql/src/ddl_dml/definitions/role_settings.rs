//! `ALTER ROLE .. SET`, `ALTER DATABASE .. SET` and their `RESET`: settings that sessions begin with.

use crate::ddl_dml::definitions::maintenance::Words;
use crate::tables::heap::kept::{SETTINGS, text, text_of};
use crate::tables::heap::view::View;
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};
use tables::Datum;

/// Whose sessions begin so.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// Everybody's.
    All,
    /// Those of who says it.
    Current,
    Named(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Set(String, String),
    Reset(String),
    ResetAll,
}

/// Such a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSetting {
    tag: &'static str,
    role: Role,
    /// Empty for all.
    database: String,
    change: Change,
}

impl RoleSetting {
    /// What a statement is, if it is one.
    ///
    /// # Errors
    /// When the words behind `SET` make no sense.
    pub fn of_words(words: &[&Token]) -> Result<Option<RoleSetting>, SqlError> {
        let mut words = Words::new(words);
        if !words.take("alter") {
            return Ok(None);
        }
        let (tag, role, database) = match words.take_any(&["role", "user", "database"]) {
            Some("database") => ("ALTER DATABASE", Role::All, name(&mut words)?),
            Some(_) => {
                let role = role(&mut words)?;
                let is_of_one = words.take("in");
                if is_of_one && !words.take("database") {
                    return Err(SqlError::invalid("IN DATABASE is what stands there"));
                }
                let database = if is_of_one { name(&mut words)? } else { String::new() };
                ("ALTER ROLE", role, database)
            }
            None => return Ok(None),
        };
        let Some(verb) = words.take_any(&["set", "reset"]) else { return Ok(None) };
        // `ALTER DATABASE .. SET TABLESPACE` moves files, of which there are none.
        let change = if verb == "set" { set(&mut words)? } else { reset(&mut words)? };
        words.end()?;
        Ok(Some(RoleSetting { tag, role, database, change }))
    }

    /// What the statement is called.
    pub fn word(&self) -> &'static str {
        self.tag
    }

    /// The setting that it sets, and to what.
    pub fn sets(&self) -> Option<(&str, &str)> {
        match &self.change {
            Change::Set(name, value) => Some((name, value)),
            Change::Reset(_) | Change::ResetAll => None,
        }
    }

    /// Does it, said by `user`, within the transaction under way.
    ///
    /// # Errors
    /// When there are too many.
    pub fn done(&self, view: &View, user: &str) -> Result<(), SqlError> {
        let role = match &self.role {
            Role::All => "",
            Role::Current => user,
            Role::Named(name) => name,
        };
        let is_its = |row: &[Datum]| text_of(&row[0]) == self.database && text_of(&row[1]) == role;
        match &self.change {
            Change::Set(name, value) => {
                let row = [self.database.as_str(), role, name, value].map(text).to_vec();
                SETTINGS.put(view, row)
            }
            Change::Reset(name) => {
                let is_it = |row: &[Datum]| is_its(row) && text_of(&row[2]) == name;
                SETTINGS.forget(view, is_it).map(drop)
            }
            Change::ResetAll => SETTINGS.forget(view, is_its).map(drop),
        }
    }
}

fn name(words: &mut Words<'_>) -> Result<String, SqlError> {
    Ok(folded(&words.ident()?))
}

fn role(words: &mut Words<'_>) -> Result<Role, SqlError> {
    if words.take("all") {
        return Ok(Role::All);
    }
    let current = ["current_user", "session_user", "current_role"];
    match words.take_any(&current) {
        Some(_) => Ok(Role::Current),
        None => Ok(Role::Named(name(words)?)),
    }
}

/// The name of a setting.
fn setting_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    if words.take("time") {
        return match words.take("zone") {
            true => Ok("timezone".to_string()),
            false => Err(SqlError::invalid("TIME ZONE is what is set")),
        };
    }
    let parts = words.parts()?;
    let parts: Vec<String> = parts.iter().map(|one| one.value.to_ascii_lowercase()).collect();
    Ok(parts.join("."))
}

fn set(words: &mut Words<'_>) -> Result<Change, SqlError> {
    let name = setting_name(words)?;
    if words.take("from") {
        let hint = "Say the value: SET name = value.";
        return Err(SqlError::unsupported("SET .. FROM CURRENT is not known here").with_hint(hint));
    }
    if !words.take("to") && !words.take_sign(&Token::Eq) && name != "timezone" {
        return Err(SqlError::invalid("SET name = value, or SET name TO value"));
    }
    if words.take("default") {
        return Ok(Change::Reset(name));
    }
    let mut values = vec![value(words)?];
    while words.take_sign(&Token::Comma) {
        values.push(value(words)?);
    }
    Ok(Change::Set(name, values.join(", ")))
}

fn value(words: &mut Words<'_>) -> Result<String, SqlError> {
    let sign = if words.take_sign(&Token::Minus) { "-" } else { "" };
    let text = match words.next() {
        Some(
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::Number(text, _),
        ) => text.clone(),
        Some(Token::Word(Word { value, .. })) => value.clone(),
        Some(other) => {
            return Err(SqlError::invalid(format!("syntax error at or near \"{other}\"")));
        }
        None => return Err(SqlError::invalid("syntax error at end of input")),
    };
    Ok(format!("{sign}{text}"))
}

fn reset(words: &mut Words<'_>) -> Result<Change, SqlError> {
    match words.take("all") {
        true => Ok(Change::ResetAll),
        false => Ok(Change::Reset(setting_name(words)?)),
    }
}
