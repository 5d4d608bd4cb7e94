//! Labels that a request adds to each of its series: `?extra_label=k=v`, `?db=`, Pushgateway paths.
//!
//! An extra label replaces a label of that name that the series brings itself, but for the label of
//! InfluxDB's databases and those of Pushgateway's paths, which move it aside.

use crate::moved_labels::move_aside;
use crate::{Error, Limit};
use model::{LabelError, LabelsBuilder, METRIC_NAME};

/// Most extra labels a request may have.
pub const EXTRA_LABELS_MAX: usize = 32;

/// The extra labels of one request, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraLabels {
    pairs: Vec<(String, String)>,
    /// Names of some of them: a series' own label of that name is moved aside, not replaced.
    aside: Vec<(String, Moved)>,
}

/// Which own labels of a name are moved aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    /// All of them.
    Always,
    /// Labels with another value than the extra label.
    IfOther,
}

impl ExtraLabels {
    /// None.
    pub fn none() -> ExtraLabels {
        ExtraLabels::default()
    }

    /// The given pairs; of equal names the last one wins.
    ///
    /// # Errors
    /// Empty names, `__name__`, more than [`EXTRA_LABELS_MAX`].
    pub fn new<N: AsRef<str>, V: AsRef<str>>(pairs: &[(N, V)]) -> Result<ExtraLabels, Error> {
        let mut extra = ExtraLabels::default();
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            if name.is_empty() || name == METRIC_NAME {
                return Err(Error::Invalid(format!("extra label cannot be named {name:?}")));
            }
            extra.pairs.retain(|(known, _)| known != name);
            extra.pairs.push((name.to_string(), value.to_string()));
        }
        if EXTRA_LABELS_MAX < extra.pairs.len() {
            return Err(Error::LimitExceeded {
                limit: Limit::ExtraLabels,
                value: extra.pairs.len() as u64,
                max: EXTRA_LABELS_MAX as u64,
            });
        }
        extra.pairs.sort();
        Ok(extra)
    }

    /// The same where a series' own label `name` is moved aside ([`crate::moved_labels`]), if an extra
    /// label has that name.
    #[must_use]
    pub fn moving_aside(mut self, name: &str) -> ExtraLabels {
        if self.iter().any(|(extra, _)| extra == name) {
            self.aside.push((name.to_string(), Moved::Always));
        }
        self
    }

    /// The same where a series' own labels of these names are moved aside if they have other values.
    #[must_use]
    pub fn moving_others_aside(mut self, names: Vec<String>) -> ExtraLabels {
        self.aside.extend(names.into_iter().map(|name| (name, Moved::IfOther)));
        self
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The pairs, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Replaces or adds the extra labels in what a series brought.
    ///
    /// # Errors
    /// [`LabelError::Duplicate`] when the series brought a name twice. Looked for once all are
    /// there: comparing each with all before it would take seconds for a key full of labels.
    pub(crate) fn complete(&self, tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        // Most senders sort.
        if !tags.iter().is_sorted_by(|(a, _), (b, _)| a < b) {
            let mut names: Vec<&str> = tags.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(LabelError::Duplicate(pair[0].to_string()));
            }
        }
        for (name, moved) in &self.aside {
            let value = self.iter().find(|(extra, _)| extra == name).map(|(_, value)| value);
            move_aside(tags, name, value.filter(|_| *moved == Moved::IfOther));
        }
        for (name, value) in self.iter() {
            tags.set(name, value);
        }
        Ok(())
    }

    /// Bytes that differ whenever the protocol or the extra labels differ: the context of
    /// [`model::KeyHasher::shape`].
    pub(crate) fn context(&self, protocol: &str) -> Vec<u8> {
        let mut context = Vec::with_capacity(32);
        for text in std::iter::once(protocol).chain(self.iter().flat_map(|(n, v)| [n, v])) {
            context.extend_from_slice(&(text.len() as u64).to_le_bytes());
            context.extend_from_slice(text.as_bytes());
        }
        context
    }
}
