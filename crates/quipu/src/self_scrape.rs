//! Quipu stores its own metrics in itself, so that a fresh install has something to show.
//!
//! The text of `/metrics` takes the way that a client's text would take, without the socket.
//! Relaxed durability is enough: nobody is told that these samples are safe.

use anyhow::{Context as _, anyhow};
use app::App;
use app::ingest::Outcome;
use model::Timestamp;
use model::sample::NANOS_PER_MILLI;
use net::telemetry::Protocol;
use std::sync::Arc;
use std::time::Duration;
use store::Durability;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use wire::exposition::{Created, ExpositionKeys, Format, Options, decode};
use wire::{ExtraLabels, Start};

/// A failure is logged again after so many scrapes in a row that failed alike.
const SILENCE: u64 = 60;

/// Labels of the series. A server that scrapes Quipu and writes to it has the address as its `instance`:
/// its series must be others.
const LABELS: [(&str, &str); 2] = [("job", "quipu"), ("instance", "self")];

/// Stores `/metrics` every interval until told to stop.
pub async fn run(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let Some(pause) = app.config.self_scrape_interval else { return };
    let mut ticks = interval(pause.max(Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut failures = 0;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|is_stopping| *is_stopping) => return,
        }
        let app = app.clone();
        let result = tokio::task::spawn_blocking(move || scrape(&app)).await;
        let result = result.unwrap_or_else(|error| Err(anyhow!("panicked: {error}")));
        match result {
            Ok(_) => failures = 0,
            Err(error) => {
                if failures % SILENCE == 0 {
                    tracing::warn!("cannot store own metrics: {error:#}");
                }
                failures += 1;
            }
        }
    }
}

/// Stores the metrics of this moment; returns how many samples that were.
///
/// # Errors
/// When the store takes nothing.
pub fn scrape(app: &App) -> anyhow::Result<u64> {
    let text = app.exposition() + "# HELP up Whether the scrape worked.\n# TYPE up gauge\nup 1\n";
    let labels = ExtraLabels::new(&LABELS)?;
    let keys = ExpositionKeys::new(labels);
    let options = Options {
        format: Format::Text,
        now: whole_millis(app.vfs.now()),
        created: Created::Samples,
    };
    let hasher = app.store.hasher();
    let decoded = decode(text.as_bytes(), Start::default(), &options, &hasher, &keys)?;
    let mut outcome = Outcome::default();
    let appended = outcome.append(app, decoded, Durability::Relaxed);
    let finished = appended.and_then(|()| outcome.finish(app, Protocol::SelfScrape, text.len()));
    finished.map_err(|failure| anyhow!(failure)).context("append")?;
    Ok(outcome.samples)
}

/// Scrapes have milliseconds everywhere; more would only cost disk.
fn whole_millis(now: Timestamp) -> Timestamp {
    now - now.rem_euclid(NANOS_PER_MILLI)
}
