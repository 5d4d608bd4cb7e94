//! Names and numbers of what is always there: the database, the schema `public` and the role.

/// The database, however a client calls it when it comes.
pub const DATABASE: &str = "quipu";

/// The number of the schema of all tables.
pub const PUBLIC_OID: i32 = 2200;

/// The name of the one role.
pub const ROLE: &str = "quipu";

/// The number of the one role.
pub const ROLE_OID: i32 = 10;

/// The schema.
pub const INFORMATION: &str = "timescaledb_information";
