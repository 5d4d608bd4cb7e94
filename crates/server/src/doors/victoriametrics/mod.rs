//! VictoriaMetrics' formats: JSON lines in and out, CSV out.

pub mod csv;
pub mod export;
mod export_starts;
pub mod import;
mod strings;
