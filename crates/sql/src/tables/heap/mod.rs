//! Ordinary tables: values, columns, scans, and the snapshot that a session sees.

pub(crate) mod arrays;
pub(crate) mod binary;
pub(crate) mod column_defaults;
pub(crate) mod columns;
pub(crate) mod index_properties;
pub(crate) mod isolation;
pub(crate) mod kept;
pub(crate) mod lookups;
pub(crate) mod prometheus_tables;
pub(crate) mod retention_policies;
pub(crate) mod scan;
pub(crate) mod stored_settings;
pub(crate) mod stored_views;
pub(crate) mod values;
pub(crate) mod view;
