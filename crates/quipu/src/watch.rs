//! Looks after the whole now and then, and tells the log what its owner should know.

use allocator::{self, Freed};
use app::App;
use cli::quantity::format_size;
use net::memory;
use net::memory::Pressure;
use std::sync::Arc;
use std::time::Duration;
use store::{Refusals, Store};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// How often the watch looks: memory may grow by some tens of megabytes meanwhile.
const PAUSE: Duration = Duration::from_millis(200);
/// Looks between two lines about refused series, so that a flood of them does not flood the log.
const LOOKS_PER_LINE: u64 = 50;
/// Looks between two lines about a clock that is not believed: an hour.
const LOOKS_PER_CLOCK_LINE: u64 = 18_000;
/// Looks between two times that caches are emptied while memory stays tight.
const LOOKS_PER_CLEANING: u64 = 25;
/// Looks between two times that idle memory goes back to the system.
const LOOKS_PER_GIVING: u64 = 5;

/// Watches until told to stop.
pub async fn run(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut pressure = Pressure::Calm;
    let mut told = Told::default();
    for look in 0u64.. {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|is_stopping| *is_stopping) => return,
        }
        // The store may be locked for a moment.
        let (of_all, before) = (app.clone(), pressure);
        let known = std::mem::take(&mut told);
        let looked = tokio::task::spawn_blocking(move || {
            of_all.refuse_writes();
            let pressure = look_once(&of_all, look, before);
            (pressure, tell_of_store(&of_all.store, look, known))
        });
        (pressure, told) = looked.await.unwrap_or((before, Told::default()));
    }
}

/// What was told of the store, so that it is told once.
#[derive(Default)]
struct Told {
    failures: u64,
    /// Why writes are refused, without numbers.
    read_only: Option<String>,
    damaged_partitions: usize,
}

/// Logs what failed in the background, why writes are refused, what is damaged, and that the
/// retention does not believe the clock.
fn tell_of_store(store: &Store, look: u64, mut told: Told) -> Told {
    let read_only = store.read_only_reason();
    let news = read_only.as_deref().map(without_numbers);
    if news != told.read_only {
        match &read_only {
            Some(reason) => tracing::error!("writes are refused: {reason}"),
            None => tracing::info!("writes are taken again"),
        }
        told.read_only = news;
    }
    if !look.is_multiple_of(LOOKS_PER_LINE) {
        return told;
    }
    if let Some((count, last)) = store.failures_since(told.failures) {
        let news = count - told.failures;
        tracing::error!("{news} failures of background work; the last: {last}");
        told.failures = count;
    }
    let damaged = store.damaged_partitions();
    if damaged.len() != told.damaged_partitions {
        for damaged in &damaged {
            tracing::error!("{} is left out: {}", damaged.period.name(), damaged.reason);
        }
        told.damaged_partitions = damaged.len();
    }
    if look.is_multiple_of(LOOKS_PER_CLOCK_LINE)
        && let Some((ahead_ns, left_ns)) = store.retention_clock_waits()
    {
        tracing::warn!("{}", clock_line(ahead_ns, left_ns));
    }
    told
}

/// What stays the same of a reason while the bytes that are free change with every look.
fn without_numbers(reason: &str) -> String {
    reason.replace(|character: char| character.is_ascii_digit(), "")
}

/// What an owner needs to decide whether the clock is right.
fn clock_line(ahead_ns: i64, left_ns: i64) -> String {
    let minutes = |ns: i64| ns / (60 * model::sample::NANOS_PER_SECOND);
    let words = |minutes: i64| match minutes {
        ..120 => format!("{minutes} min"),
        _ => format!("{} h", minutes / 60),
    };
    format!(
        "the clock is {} ahead of the time that passed; the retention believes it in {}, if it \
         stays so (retention-clock-wait)",
        words(minutes(ahead_ns)),
        words(minutes(left_ns) + 1)
    )
}

fn look_once(app: &App, look: u64, before: Pressure) -> Pressure {
    let pressure = pressure_now(app);
    let is_news = pressure != before;
    if is_news || (pressure != Pressure::Calm && look.is_multiple_of(LOOKS_PER_CLEANING)) {
        relieve(app, pressure);
    }
    if look.is_multiple_of(LOOKS_PER_GIVING) {
        allocator::give_back(Freed::Idle);
    }
    if is_news {
        tell(app, before, pressure);
    }
    if look.is_multiple_of(LOOKS_PER_LINE)
        && let Some(refusals) = app.store.take_refusals()
    {
        tracing::warn!("{}", refusals_line(&refusals));
    }
    app.schema.report_damage();
    for damage in app.store.take_damage_news() {
        tracing::error!("{}", damage.sentence());
    }
    pressure
}

fn pressure_now(app: &App) -> Pressure {
    match memory::used() {
        Some(used) => app.memory.note(used, app.store.memory_ahead()),
        None => Pressure::Calm,
    }
}

/// Does what the pressure asks for.
fn relieve(app: &App, pressure: Pressure) {
    app.store.set_memory_tight(pressure != Pressure::Calm);
    app.results.set_tight(pressure != Pressure::Calm);
    let refusal = (pressure == Pressure::Full).then(|| app.memory.refusal());
    app.store.refuse_new_series(refusal);
    if pressure != Pressure::Calm {
        allocator::give_back(Freed::All);
    }
}

/// Logs that the pressure changed, where that is worth a line.
fn tell(app: &App, before: Pressure, now: Pressure) {
    let limit = format_size(app.memory.limit());
    match (before, now) {
        (_, Pressure::Full) => tracing::warn!("{}", app.memory.refusal()),
        (Pressure::Full, _) => {
            tracing::info!("memory is below {limit} again: new series are taken")
        }
        (_, Pressure::Tight) => {
            tracing::info!("memory nears {limit} (memory-limit): caches shrink")
        }
        (_, Pressure::Calm) => {}
    }
}

/// What an owner needs to find who makes the series.
fn refusals_line(refusals: &Refusals) -> String {
    let Refusals { count, reason, example, label } = refusals;
    let label = match label {
        Some((label, values)) => {
            format!("; of their labels {label:?} has most values, about {values}")
        }
        None => String::new(),
    };
    format!("{count} series since the last such line: {reason}{label}; for example {example}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_whatever_its_numbers() {
        let words = |free: u64| without_numbers(&format!("{free} bytes are free, 9 must be"));
        assert_eq!(words(5), words(77));
        assert_ne!(words(5), without_numbers("sync of the log failed"));
    }

    #[test]
    fn the_line_of_the_clock_names_the_flag() {
        let hour = model::sample::NANOS_PER_HOUR;
        assert_eq!(
            clock_line(800 * hour, 23 * hour + 5),
            "the clock is 800 h ahead of the time that passed; the retention believes it in 23 h, \
             if it stays so (retention-clock-wait)"
        );
    }

    #[test]
    fn the_line_names_limit_label_and_example() {
        let refusals = Refusals {
            count: 12,
            reason: "new series refused: 9 active series, the limit is 9 (max-active-series)"
                .into(),
            example: "up{pod=\"a\"}".into(),
            label: Some(("pod".into(), 11)),
        };
        assert_eq!(
            refusals_line(&refusals),
            "12 series since the last such line: new series refused: 9 active series, the limit is \
             9 (max-active-series); of their labels \"pod\" has most values, about 11; for example \
             up{pod=\"a\"}"
        );
    }
}
