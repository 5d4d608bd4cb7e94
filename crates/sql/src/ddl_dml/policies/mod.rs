//! Retention by policies: for how long rows of a hypertable, samples of a metric, or of all metrics are kept, where that
//! is shorter than `--retention`.
//!
//! ```text
//! SELECT add_retention_policy('cpu', INTERVAL '30 days') ─► said ─► a row that is kept (ordinary/kept)
//! once a minute, or CALL run_job(1000) ─► carried_out ─► what is older is deleted, as DELETE does
//! ```

pub(crate) mod carried_out;
pub(crate) mod said;
