//! Tag keys of the measurements that `*` was asked for lately: which there are in all of time is a look
//! into every partition.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Age up to which keys are used. Newer ones are found in the time that is asked for.
const AGE_MAX: Duration = Duration::from_secs(60);
/// Measurements that are remembered.
const MEASUREMENTS_MAX: usize = 1000;

/// Database and measurement.
type Key = (String, String);

/// Tag keys by measurement.
#[derive(Default)]
pub struct TagKeys(Mutex<HashMap<Key, (Instant, Vec<String>)>>);

impl TagKeys {
    fn locked(&self) -> MutexGuard<'_, HashMap<Key, (Instant, Vec<String>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keys of a measurement, if they were asked for lately.
    pub fn get(&self, database: &str, measurement: &str) -> Option<Vec<String>> {
        let key = (database.to_string(), measurement.to_string());
        let all = self.locked();
        let (at, keys) = all.get(&key)?;
        (at.elapsed() < AGE_MAX).then(|| keys.clone())
    }

    /// Remembers the keys of a measurement.
    pub fn put(&self, database: &str, measurement: &str, keys: &[String]) {
        let mut all = self.locked();
        if MEASUREMENTS_MAX <= all.len() {
            all.clear();
        }
        let key = (database.to_string(), measurement.to_string());
        all.insert(key, (Instant::now(), keys.to_vec()));
    }

    /// Forgets all of them, as something was deleted.
    pub fn clear(&self) {
        self.locked().clear();
    }
}
