//! The place of a connection among the running queries: one for all its portals, which would wait for each other
//! else. It is given back while the connection only waits, for its client or in `pg_sleep`.

use app::App;
use net::admission::Permit;
use net::failure::Failure;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A place that can be left and taken again.
pub struct Place {
    app: Arc<App>,
    permit: Mutex<Option<Permit>>,
    /// Held by whoever waits for a place, so that a connection waits for one alone.
    turn: tokio::sync::Mutex<()>,
}

impl Place {
    /// A place that is not taken yet.
    pub fn new(app: &Arc<App>) -> Place {
        Place { app: app.clone(), permit: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    fn permit(&self) -> MutexGuard<'_, Option<Permit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place, unless it is taken already.
    ///
    /// # Errors
    /// When none comes free in time.
    pub async fn take(&self) -> Result<(), Failure> {
        self.take_unless(|| false).await
    }

    /// As above, for a statement that needs no place while it is asleep.
    ///
    /// # Errors
    /// As [`Place::take`].
    pub async fn take_unless(&self, is_asleep: impl Fn() -> bool) -> Result<(), Failure> {
        let needs_none = || is_asleep() || self.permit().is_some();
        if needs_none() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        if needs_none() {
            return Ok(());
        }
        let permit = self.app.queries.enter().await?;
        let mut held = self.permit();
        // It may have fallen asleep while it waited.
        if !is_asleep() {
            *held = Some(permit);
        }
        Ok(())
    }

    /// Gives the place to others.
    pub fn leave(&self) {
        self.permit().take();
    }
}
