//! Tables that `create_prometheus_table` made: relations over the samples that have a label `__table__`.

use crate::tables::heap::view::View;
use crate::tables::hypertables::shape::TABLE_LABEL;
use crate::tables::metrics::samples::Samples;
use crate::tables::metrics::tables::{Rows, TABLES, Table as Shape};
use model::Matcher;
use tables::Schema;

/// The properties of such a relation: whose samples they are, and which table it looks like.
pub(crate) const OF: &str = "prometheus: of";

pub(crate) const LIKE: &str = "prometheus: like";

/// A relation of such samples.
#[derive(Clone, Debug)]
pub struct PrometheusTable {
    /// The name of the view, which all its samples have as a label.
    pub of: String,
    /// The table of all samples that it looks like.
    pub like: &'static Shape,
}

impl PrometheusTable {
    /// Of a table, if it is one.
    pub fn of(schema: &Schema) -> Option<PrometheusTable> {
        let property = |name: &str| {
            let mut all = schema.properties.iter();
            all.find(|(one, _)| one == name).map(|(_, value)| value.as_str())
        };
        let (of, like) = (property(OF)?, property(LIKE)?);
        let like = TABLES.iter().find(|one| one.name == like)?;
        Some(PrometheusTable { of: of.to_string(), like })
    }

    /// Whether its samples go with it.
    pub fn keeps_samples(&self) -> bool {
        self.like.rows == Rows::Samples && !self.is_view()
    }

    /// Whether it is the view over the others.
    pub fn is_view(&self) -> bool {
        self.like.columns.len() == TABLES[0].columns.len()
    }

    /// It as it is read.
    pub fn samples(&self, view: &View) -> Samples {
        let (store, limits) = (view.series().store.clone(), view.series().limits.clone());
        let matchers = vec![Matcher::equal(TABLE_LABEL, &self.of)];
        let all = Samples::of_metric(store, limits, self.like.rows, self.like.shows(), matchers);
        all.without(TABLE_LABEL)
    }
}
