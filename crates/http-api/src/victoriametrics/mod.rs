//! VictoriaMetrics' formats: JSON lines in and out, CSV out.

mod csv;
pub mod csv_import;
pub mod export;
mod export_millis;
mod export_starts;
mod go_layout;
pub mod import;
mod strings;
