//! The paths of the HTTP server, from its own table.

use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Parameters with which most paths answer, if they may.
pub const PARAMETERS: &str = "match[]=%7B__name__!=%22%22%7D&query=%7B__name__!=%22%22%7D&q=SHOW+MEASUREMENTS&db=quipu&expr=name=~.%2B&tag=name&bucket=quipu&snapshot=x&id=1&format=t";

/// Every path of the table; `captured` stands where a pattern takes anything.
///
/// # Errors
/// When the table is not where it was.
pub fn paths(captured: &str) -> Result<Vec<String>> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/http-api/src/routes.rs");
    let text = std::fs::read_to_string(table)?;
    let (_, rows) = text.split_once("pub const ROUTES").context("the table")?;
    let (rows, _) = rows.split_once("\n];").context("its end")?;
    let literals = rows.split('"').skip(1).step_by(2).filter(|text| text.starts_with('/'));
    let filled = literals.map(|pattern| match pattern.split_once('{') {
        Some((before, rest)) => {
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            let own = if before.ends_with("/job") { "/j" } else { captured };
            format!("{before}{own}{after}")
        }
        None => pattern.to_string(),
    });
    let mut paths: Vec<String> = filled.collect();
    paths.dedup();
    ensure!(50 < paths.len(), "{paths:?}");
    Ok(paths)
}
