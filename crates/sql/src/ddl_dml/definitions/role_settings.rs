//! `ALTER ROLE .. SET`, `ALTER DATABASE .. SET` and their `RESET`: settings that sessions begin with.

use crate::ddl_dml::definitions::maintenance::Words;
use crate::tables::heap::kept::{SETTINGS, text, text_of};
use crate::tables::heap::view::View;
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};
use tables::{Datum, TableSet};

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

/// What a session begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Whose; empty for everybody's.
    pub role: String,
    /// Of which database; empty for all.
    pub database: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: String,
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

/// All settings that are kept.
pub fn settings(set: &TableSet) -> Vec<Setting> {
    let one = |row: Vec<Datum>| {
        let text = |at: usize| row.get(at).map(text_of).unwrap_or_default().to_string();
        Setting { database: text(0), role: text(1), name: text(2), value: text(3) }
    };
    SETTINGS.rows(set).into_iter().map(one).collect()
}

/// Those that a session of somebody begins with: what is said of less stands behind what is said of more.
pub fn settings_of(set: &TableSet, role: &str, database: &str) -> Vec<Setting> {
    let mut all = settings(set);
    all.retain(|one| {
        (one.role.is_empty() || one.role == role)
            && (one.database.is_empty() || one.database == database)
    });
    // Of a role goes before of a database.
    all.sort_by_key(|one| (!one.role.is_empty(), !one.database.is_empty()));
    all
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

#[cfg(test)]
mod tests {
    use crate::ddl_dml::definitions::define::Definition;
    use crate::session::statements::{Parsed, parse};

    fn said(text: &str) -> Result<Definition, &'static str> {
        match parse(text).map(|mut all| all.remove(0)) {
            Ok(Parsed::Define(definition)) => Ok(definition),
            Ok(_) => Err("another"),
            Err(error) => Err(error.code),
        }
    }

    #[test]
    fn settings_are_read() {
        for (text, name, value) in [
            ("ALTER ROLE me SET a.b = 'c d'", "a.b", "c d"),
            ("alter user \"Me\" in database d set A.b to on", "a.b", "on"),
            ("ALTER DATABASE d SET search_path TO a, 'b'", "search_path", "a, b"),
            ("ALTER ROLE ALL SET x.y = -1", "x.y", "-1"),
            ("ALTER ROLE current_user SET TIME ZONE 'UTC'", "timezone", "UTC"),
        ] {
            let said = said(text).unwrap_or_else(|code| panic!("{text}: {code}"));
            assert_eq!(said.sets(), Some((name, value)), "{text}");
        }
        for text in ["ALTER ROLE me RESET a.b", "ALTER ROLE me SET a.b TO DEFAULT"] {
            assert_eq!(said(text).map(|said| said.sets().is_none()), Ok(true), "{text}");
        }
        for (text, code) in [
            ("ALTER ROLE me SET a.b", "42601"),
            ("ALTER ROLE me SET a.b = 1 2", "42601"),
            ("ALTER ROLE me SET a.b FROM CURRENT", "0A000"),
            ("ALTER ROLE me IN x SET a.b = 1", "42601"),
            ("ALTER ROLE me LOGIN", "0A000"),
        ] {
            assert_eq!(said(text).err(), Some(code), "{text}");
        }
    }
}
