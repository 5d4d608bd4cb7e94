//! Schema of a remote InfluxDB: the parts that were read from it.

use super::catalog::Catalog;
use super::plan::Naming;
use influx_schema::schema::{Fields, Lender, MeasurementTable, Measurements};
use influx_schema::strings::TextTable;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Catalog of a server, as far as it was read.
#[derive(Default)]
pub struct Known {
    pub(super) settings: OnceLock<Settings>,
    state: RwLock<State>,
    /// Held by who asks for the catalog.
    pub(super) asking: Mutex<()>,
}

/// How things are called here.
pub(super) struct Settings {
    label: String,
    pub(super) texts: Arc<TextTable>,
    /// Names of fields.
    names: Arc<MeasurementTable>,
}

#[derive(Default)]
struct State {
    catalog: Option<(Instant, Arc<Catalog>)>,
    /// By what Quipu's label says.
    measurements: BTreeMap<String, Arc<Measurements>>,
}

impl Known {
    /// Says how databases and fields are called here and where texts get numbers; only the first call
    /// counts.
    pub fn settle(&self, label: &str, texts: &Arc<TextTable>, names: &Arc<MeasurementTable>) {
        let (texts, names) = (texts.clone(), names.clone());
        let _ = self.settings.set(Settings { label: label.to_string(), texts, names });
    }

    pub(super) fn naming(&self) -> Naming<'_> {
        match self.settings.get() {
            Some(Settings { label, texts, names }) => {
                Naming { label, has_texts: texts.is_on(), names: Some(names) }
            }
            None => Naming { label: "", has_texts: false, names: None },
        }
    }

    /// Result of the last read of the catalog, while it is fresh.
    pub(super) fn kept(&self, time: Duration) -> Option<Arc<Catalog>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let (at, catalog) = state.catalog.as_ref()?;
        // An empty catalog may have entries by now.
        (at.elapsed() < time && !catalog.is_empty()).then(|| catalog.clone())
    }

    /// Result of the last read of the catalog, of any age.
    pub(super) fn last(&self) -> Option<Arc<Catalog>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.catalog.as_ref().map(|(_, catalog)| catalog.clone())
    }

    pub(super) fn keep(&self, catalog: Arc<Catalog>) -> anyhow::Result<()> {
        let has_label = !self.naming().label.is_empty();
        if has_label {
            catalog.check_labels()?;
        }
        let measurements = catalog.measurements(has_label)?;
        for (label, measurements) in &measurements {
            self.naming().claim(label, measurements);
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = State { catalog: Some((Instant::now(), catalog)), measurements };
        Ok(())
    }
}

impl Lender for Known {
    fn measurements(&self, database: &str) -> Measurements {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.measurements.get(database).map(|known| (**known).clone()).unwrap_or_default()
    }

    fn fields(&self, database: &str, measurement: &str) -> Option<Fields> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.measurements.get(database)?.get(measurement).cloned()
    }
}
