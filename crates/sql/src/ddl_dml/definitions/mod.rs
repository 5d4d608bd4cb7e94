//! `CREATE`, `ALTER` and `DROP` of ordinary tables and their indexes.

pub(crate) mod alters;
pub(crate) mod defaults;
pub(crate) mod define;
pub(crate) mod defined;
pub(crate) mod indexes;
pub(crate) mod maintenance;
pub(crate) mod role_settings;
pub(crate) mod schema_changes;
