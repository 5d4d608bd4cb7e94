//! What the server tells about itself: signs of life, versions, flags, metrics.

use crate::http::answer::Answer;
use crate::http::request::Request;
use app::App;
use cli::calendar::rfc3339;
use model::sample::NANOS_PER_MILLI;
use net::failure::{Failure, Kind};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The version of Prometheus whose API this is, as Grafana decides by it what to ask for.
const PROMETHEUS_VERSION: &str = "3.5.0";

/// `/-/healthy`: the process lives.
pub fn healthy(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::text("Quipu is healthy.\n"))
}

/// `/-/ready`: requests are welcome.
pub fn ready(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    if app.is_stopping.load(Relaxed) {
        let message = "Quipu is stopping.";
        return Err(Failure::new(Kind::Stopping, message));
    }
    if let Some(reason) = app.store.read_only_reason() {
        return Err(Failure::new(Kind::ReadOnly, format!("Quipu takes no writes: {reason}")));
    }
    let mut text = "Quipu is ready.\n".to_owned();
    for reason in app.closed.reasons_for_clients() {
        text.push_str(&format!("{reason}\n"));
    }
    Ok(Answer::text(text))
}

/// `/metrics`
pub fn metrics(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let mut answer = Answer::text(app.exposition());
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    Ok(answer)
}

/// `/api/v1/status/buildinfo`: the shape and a version that Grafana's Prometheus source knows.
pub fn build(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(build_info()))
}

fn build_info() -> Value {
    json!({
        "version": PROMETHEUS_VERSION,
        "revision": "",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
        "application": "quipu",
        "quipuVersion": env!("CARGO_PKG_VERSION"),
    })
}

/// `/version`: the same without the shape of answers of the API.
pub fn version(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::json(&build_info()))
}

/// `/api/v1/status/runtimeinfo`
pub fn runtime(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let stats = app.store.stats();
    let until = app.legacy.until();
    Ok(Answer::success(json!({
        "startTime": rfc3339(app.started_at),
        "CWD": std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
        "hostname": "",
        "serverTime": rfc3339(app.vfs.now()),
        "reloadConfigSuccess": true,
        "lastConfigTime": rfc3339(app.started_at),
        "corruptionCount": stats.damage_noticed_total,
        // Clients in Go decode an integer.
        "goroutineCount": net::process::figures().threads as u64,
        "GOMAXPROCS": app::config::cpus(),
        "GOMEMLIMIT": 0,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": app.config.settings.text("retention"),
        "partitionLength": app.store.partition_length().word(),
        "readOnlyReason": stats.read_only_reason,
        "minTimeMs": stats.time_min_max.map(|(min, _)| min.div_euclid(NANOS_PER_MILLI)),
        "maxTimeMs": stats.time_min_max.map(|(_, max)| max.div_euclid(NANOS_PER_MILLI)),
        // What is before it may be elsewhere, and older than all of this.
        "legacyUntilMs": until.map(|until| until.div_euclid(NANOS_PER_MILLI)),
    })))
}

/// `/api/v1/status/damage`: what is known to be missing or rotten, and how far the scrub is.
pub fn damage(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let stats = app.store.stats();
    let one = |damage: &store::Damage| {
        let span = damage.period.map(|_| damage.span);
        json!({
            "place": damage.place.word(),
            "file": damage.file,
            "partition": damage.period.map(|period| period.name()),
            "startMs": span.map(|span| span.start.div_euclid(NANOS_PER_MILLI)),
            "endMs": span.map(|span| span.end.div_euclid(NANOS_PER_MILLI)),
            "series": damage.series,
            "samples": damage.samples,
            "what": damage.what,
            "noticed": rfc3339(damage.noticed_ns),
        })
    };
    let scrub = stats.scrub;
    Ok(Answer::success(json!({
        "closed": app.closed.reasons_for_clients().collect::<Vec<_>>(),
        "damage": app.store.damage().iter().map(one).collect::<Vec<Value>>(),
        "noticedTotal": stats.damage_noticed_total,
        "scrub": {
            "finished": scrub.finished_ns.map(rfc3339),
            "passBytes": scrub.pass_bytes,
            "passDone": scrub.pass_done,
            "bytesTotal": scrub.bytes_total,
        },
    })))
}

/// `/api/v1/status/store`: the identity of the store, which a data directory made anew does not share.
pub fn store(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let id = store::store_id(app.vfs.as_ref(), &app.config.data_dir)?;
    Ok(Answer::success(json!({ "id": id })))
}

/// `/api/v1/status/flags`
pub fn flags(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let mut flags: Map<String, Value> =
        app.config.settings.shown().map(|(name, text)| (name.to_string(), json!(text))).collect();
    // The data directory has one length for ever, said at this start or not.
    flags.insert("partition".to_string(), json!(app.store.partition_length().word()));
    Ok(Answer::success(Value::Object(flags)))
}

/// `/api/v1/status/config`: the settings as a TOML file would hold them.
pub fn config(app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let lines: String = app
        .config
        .settings
        .shown()
        .filter(|(name, text)| *name != "config" && !text.is_empty())
        .map(|(name, text)| format!("{name:?} = {text:?}\n"))
        .collect();
    Ok(Answer::success(json!({ "yaml": lines })))
}

/// `/api/v1/targets`: Quipu scrapes none.
pub fn no_targets(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let targets = json!({ "activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {} });
    Ok(Answer::success(targets))
}

/// `/api/v1/targets/metadata`, `/api/v1/notifications`: empty lists.
pub fn empty_list(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!([])))
}

/// `/api/v1/scrape_pools`: there are none.
pub fn no_scrape_pools(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "scrapePools": [] })))
}

/// `/api/v1/alertmanagers`: Quipu sends no alerts.
pub fn no_alertmanagers(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    let none = json!({ "activeAlertmanagers": [], "droppedAlertmanagers": [] });
    Ok(Answer::success(none))
}

/// `/api/v1/status/walreplay`: the log was replayed before the first request.
pub fn wal_replay(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "min": 0, "max": 0, "current": 0, "state": "done" })))
}

/// `/api/v1/status/tsdb/blocks`: parts are no blocks of Prometheus.
pub fn no_blocks(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "blocks": [] })))
}

/// `/api/v1/rules`: there are none; Grafana asks.
pub fn no_rules(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "groups": [] })))
}

/// `/api/v1/notifiers`: there are none; Grafana asks VictoriaMetrics.
pub fn no_notifiers(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "notifiers": [] })))
}

/// `/api/v1/alerts`: there are none; Grafana asks.
pub fn no_alerts(_app: &Arc<App>, _request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!({ "alerts": [] })))
}
