//! Rows that would be refused, found before they are appended: strings of theirs need no number.

use crate::write::appender::Appender;
use crate::write::refusal::{Refusal, refused_time};
use crate::write::row_labels::RowLabels;
use index::NewEntity;
use model::{Rejection, Row, WriteBatch};
use std::sync::atomic::Ordering;

impl Appender {
    /// Takes out the rows that would be refused now for their time, their labels or a limit on new
    /// series, among those that `is_checked` names by their values.
    pub fn take_refused(
        &self,
        batch: &mut WriteBatch<'_>,
        is_checked: &dyn Fn(&[f64]) -> bool,
    ) -> Vec<Rejection> {
        let mut rejections = Vec::new();
        let rows = std::mem::take(&mut batch.rows);
        let (mut left, mut labels) = (Vec::with_capacity(rows.len()), RowLabels::default());
        for row in rows {
            let reason = is_checked(batch.row_values(&row))
                .then(|| self.find_refusal(batch, &row, &mut labels))
                .flatten();
            match reason {
                Some(reason) => rejections.push(Rejection { position: row.position, reason }),
                None => left.push(row),
            }
        }
        batch.rows = left;
        let count = rejections.len() as u64;
        self.ground.counters.rows_rejected.fetch_add(count, Ordering::Relaxed);
        rejections
    }

    /// The reason to refuse all values of a row.
    fn find_refusal(
        &self,
        batch: &WriteBatch<'_>,
        row: &Row,
        labels: &mut RowLabels,
    ) -> Option<String> {
        let accepted = self.retention.accepted_span();
        if !accepted.contains(row.timestamp) {
            return Some(refused_time(row.timestamp, &accepted));
        }
        let partition = self.partitions.get(self.ground.length.of(row.timestamp));
        let is_known = |hash| {
            let known = partition.as_ref().map(|partition| {
                partition.read().series.map.unknown(std::iter::once(hash)).is_empty()
            });
            known.unwrap_or(false)
        };
        if is_known(row.hash) {
            return None;
        }
        let fields = &batch.shapes.get(row.shape as usize)?.fields;
        let limits = &self.ground.config.limits;
        if let Err(error) = labels.decode(batch.decoder, batch.key(row), fields, limits) {
            return Some(error.to_string());
        }
        let names: Vec<&str> = labels.names.iter().map(String::as_str).collect();
        let tags: Vec<(&str, &str)> = labels.tags.iter().collect();
        if let Some(partition) = &partition {
            let state = partition.read();
            let wanted = NewEntity::new(&names, &tags);
            // What cannot be read is for the append to tell.
            let has_entity = state.series.index.find_entity(&wanted).ok()?.is_some();
            let each = state.series.find_each(&wanted, &names).ok()?;
            if has_entity || each.iter().any(Option::is_some) {
                return None;
            }
        }
        match self.gate.check(self.ground.vfs.now(), &names, &tags) {
            Err(Refusal::Row(reason)) => Some(reason),
            _ => None,
        }
    }
}
