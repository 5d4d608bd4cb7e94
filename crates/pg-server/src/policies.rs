//! Carries out what policies of retention say, once a minute, as long as the door is open.

use super::Postgres;
use super::session::settings::VERSION;
use net::listeners::accept::Stop;
use sql::{Facts, SqlError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How often it is looked at which of them are due.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(60);

/// The server itself, as a session sees it.
struct Itself;

impl Facts for Itself {
    fn user(&self) -> String {
        "quipu".to_string()
    }

    fn database(&self) -> String {
        self.user()
    }

    fn pid(&self) -> i32 {
        0
    }

    fn version(&self) -> String {
        VERSION.to_string()
    }

    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    fn set(&self, _: &str, _: &str, _: bool) -> Result<(), SqlError> {
        Ok(())
    }
}

/// Until the door is closed.
pub async fn keep(door: Arc<Postgres>, mut stop: Stop) {
    let itself: Arc<dyn Facts> = Arc::new(Itself);
    loop {
        tokio::select! {
            // Whoever would tell has gone: it stops, too.
            _ = stop.wait_for(|is_stopping| *is_stopping) => return,
            () = sleep(LOOKED_AT_EVERY) => {}
        }
        if let Err(error) = door.database.keep_policies(&itself).await {
            tracing::warn!("a policy of retention was not carried out: {error}");
        }
    }
}
