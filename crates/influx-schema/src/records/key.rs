//! Keys of schema records: a word for the kind, then names, with a zero byte between them.
//!
//! ```text
//! database \0 DATABASE                          a database that a client has created
//! field \0 DATABASE \0 MEASUREMENT \0 FIELD     type of a field
//! strings \0 DATABASE \0 MEASUREMENT \0 FIELD   the field has strings besides numbers
//! string \0 NUMBER                              string of the dictionary, by 8 hexadecimal digits
//! policies \0 DATABASE                          retention policies
//! ```
//!
//! Names have no zero byte: line protocol and InfluxQL refuse them before they get here.

/// Key of a schema record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// Database that a client has created.
    Database {
        /// Its name.
        database: &'a str,
    },
    /// Type of a field.
    Field {
        /// Its database.
        database: &'a str,
        /// Its measurement.
        measurement: &'a str,
        /// Its name.
        field: &'a str,
    },
    /// A field of numbers or booleans has strings, too.
    AlsoString {
        /// Its database.
        database: &'a str,
        /// Its measurement.
        measurement: &'a str,
        /// Its name.
        field: &'a str,
    },
    /// String of the dictionary.
    String {
        /// Its number.
        number: u32,
    },
    /// Retention policies of a database.
    Policies {
        /// Its name.
        database: &'a str,
    },
}

/// Word that the keys of a kind begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// [`Key::Database`]
    Database,
    /// [`Key::Field`]
    Field,
    /// [`Key::AlsoString`]
    AlsoString,
    /// [`Key::String`]
    String,
    /// [`Key::Policies`]
    Policies,
}

impl KeyKind {
    /// The word, as it is on disk.
    pub fn word(self) -> &'static str {
        match self {
            KeyKind::Database => "database",
            KeyKind::Field => "field",
            KeyKind::AlsoString => "strings",
            KeyKind::String => "string",
            KeyKind::Policies => "policies",
        }
    }
}

impl<'a> Key<'a> {
    /// The key as text.
    pub fn encode(&self) -> String {
        let join = |kind: KeyKind, names: &[&str]| {
            let mut text = kind.word().to_string();
            for name in names {
                text.push('\0');
                text.push_str(name);
            }
            text
        };
        match *self {
            Key::Database { database } => join(KeyKind::Database, &[database]),
            Key::Field { database, measurement, field } => {
                join(KeyKind::Field, &[database, measurement, field])
            }
            Key::AlsoString { database, measurement, field } => {
                join(KeyKind::AlsoString, &[database, measurement, field])
            }
            Key::String { number } => join(KeyKind::String, &[&format!("{number:08x}")]),
            Key::Policies { database } => join(KeyKind::Policies, &[database]),
        }
    }

    /// Reads a key; `None` for one of a kind that this version does not know.
    pub fn parse(text: &'a str) -> Option<Key<'a>> {
        let (kind, names) = text.split_once('\0')?;
        let mut parts = names.split('\0');
        let first = parts.next()?;
        let key = match kind {
            "database" => Key::Database { database: first },
            "field" => {
                Key::Field { database: first, measurement: parts.next()?, field: parts.next()? }
            }
            "strings" => Key::AlsoString {
                database: first,
                measurement: parts.next()?,
                field: parts.next()?,
            },
            "string" => Key::String { number: u32::from_str_radix(first, 16).ok()? },
            "policies" => Key::Policies { database: first },
            _ => return None,
        };
        parts.next().is_none().then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_these_texts_and_are_read_again() {
        let (database, measurement, field) = ("db", "m", "f:text");
        for (key, text) in [
            (Key::Database { database }, "database\0db"),
            (Key::Field { database, measurement, field }, "field\0db\0m\0f:text"),
            (Key::AlsoString { database, measurement, field }, "strings\0db\0m\0f:text"),
            (Key::String { number: 0xabc }, "string\x0000000abc"),
            (Key::Policies { database }, "policies\0db"),
        ] {
            assert_eq!(key.encode(), text);
            assert_eq!(Key::parse(text), Some(key));
        }
        for none in ["", "field", "field\0a\0b", "field\0a\0b\0c\0d", "string\0x", "other\0a"] {
            assert_eq!(Key::parse(none), None, "{none:?}");
        }
    }
}
