//! Tables that queries read: samples, hypertables and ordinary tables.

pub(crate) mod heap;
pub(crate) mod hypertables;
pub(crate) mod metrics;

pub use crate::types::time::zones::ZONE;
pub use metrics::tables::Column;
pub use metrics::tables::Rows;
pub use metrics::tables::Shows;
pub use metrics::tables::TABLES;
pub use metrics::tables::Table;
pub use metrics::tables::schema_of;
