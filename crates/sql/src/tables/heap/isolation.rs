//! Isolation levels of transactions.

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
