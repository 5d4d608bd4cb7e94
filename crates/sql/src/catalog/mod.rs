//! The system catalogs of PostgreSQL, the information schema and the views of TimescaleDB.

pub(crate) mod cells;
pub(crate) mod functions;
pub(crate) mod keys;
pub(crate) mod keywords;
pub(crate) mod layout;
pub(crate) mod names;
pub(crate) mod regproc;
pub(crate) mod relations;
pub(crate) mod roles;
pub(crate) mod schemas;
pub(crate) mod settings;
pub(crate) mod shown_defaults;
pub(crate) mod statistics;
pub(crate) mod system_catalog;
pub(crate) mod time_zones;
pub(crate) mod timescale;
