//! Logs: one line per event on standard error.

use tracing::Level;
use tracing_subscriber::fmt;

/// Starts logging at the level that the flag's word names; a second call changes nothing.
pub fn start(level: &str) {
    let level: Level = level.parse().unwrap_or(Level::INFO);
    let subscriber = fmt::Subscriber::builder()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .finish();
    let _ = tracing::subscriber::set_global_default(subscriber);
}
