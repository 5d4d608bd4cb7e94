//! From the exemplars of a request to the queue, and out of it again.
//!
//! An exemplar belongs to a series that has samples near it in time: those of its request are
//! appended before it. One of a series that nobody knows, or that was refused, is refused too; so
//! limits on series hold here without being asked. Only where the request says nothing else of the
//! series, and its protocol allows that ([`ExemplarRow::may_be_first`]), may an exemplar be the
//! first that is known of it; the queue's own limits hold for those.

use crate::base::period::Period;
use crate::log::exemplar_record::LABELS_SIZE_MAX;
use crate::log::exemplars::Verdict;
use crate::write::appender::Appender;
use crate::write::refusal::{Postponed, REJECTIONS_TOLD_MAX, Refusal, Told};
use crate::write::row_labels::RowLabels;
use crate::{Durability, Result};
use model::{Exemplar, ExemplarRow, Labels, METRIC_NAME, Rejection, Timestamp, WriteBatch};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Exemplars that go into one record of the log.
const RECORD_EXEMPLARS_MAX: usize = 1024;
/// Bytes of their labels and those of their series, about.
const RECORD_LABELS_SIZE_MAX: usize = 1 << 20;

/// What became of a request's exemplars.
#[derive(Clone, Debug, Default)]
pub struct AppendedExemplars {
    /// Those that are kept now, whether they are new or were there already.
    pub written: u64,
    /// Those older than the newest of their series.
    pub out_of_order: u64,
    /// Those refused for other reasons.
    pub refused: u64,
    /// The first that are not kept, with reasons.
    pub rejections: Vec<Rejection>,
}

/// Exemplars on their way into one record.
#[derive(Default)]
struct Pending {
    all: Vec<(Arc<Labels>, Exemplar)>,
    /// What a person calls each.
    positions: Vec<u32>,
    labels_size: usize,
}

impl Appender {
    /// Takes exemplars of a batch whose samples were appended; blocks until both are as durable as
    /// asked.
    ///
    /// # Errors
    /// As [`crate::Store::append`].
    pub fn append_exemplars(
        &self,
        batch: &WriteBatch<'_>,
        rows: &[ExemplarRow],
        durability: Durability,
    ) -> Result<AppendedExemplars> {
        self.check_writable()?;
        let mut appended = AppendedExemplars::default();
        let mut pending = Pending::default();
        let mut scratch = RowLabels::default();
        // Those of one series follow each other.
        let mut last: Option<(u32, Arc<Labels>)> = None;
        let mut postponed = Postponed::default();
        for row in rows {
            let key = row.row.key_offset;
            let known = last.take().filter(|(offset, _)| *offset == key).map(|(_, labels)| labels);
            match self.resolve_exemplar(batch, row, known, &mut scratch) {
                Ok(labels) => {
                    pending.push(&labels, row);
                    last = Some((key, labels));
                }
                Err(Refusal::Row(reason)) => appended.refuse(row.row.position, reason),
                Err(other) => postponed.add(other.to_string()),
            }
            if pending.is_full() {
                self.log_exemplars(&mut pending, &mut appended)?;
            }
        }
        self.log_exemplars(&mut pending, &mut appended)?;
        if durability == Durability::Synced {
            // Also what the same request brought before.
            self.log.wait_for_all()?;
        }
        postponed.check()?;
        Ok(appended)
    }

    /// The series of an exemplar, or a sentence that says why it is refused.
    fn resolve_exemplar(
        &self,
        batch: &WriteBatch<'_>,
        row: &ExemplarRow,
        known: Option<Arc<Labels>>,
        scratch: &mut RowLabels,
    ) -> Told<Arc<Labels>> {
        let refuse = |reason: String| Err(Refusal::Row(reason));
        if self.ground.config.exemplars_max == 0 {
            return refuse("exemplars are turned off (max-exemplars)".into());
        }
        let timestamp = row.exemplar.timestamp;
        let accepted = self.retention.accepted_span();
        if !accepted.contains(timestamp) {
            return refuse(format!(
                "exemplar's timestamp {timestamp} ns is older than the retention keeps or too far \
                 in the future (retention, future-retention)"
            ));
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let labels = scratch.of_series(batch, &row.row, &self.ground.config.limits)?;
        let size = labels.as_bytes().len();
        if LABELS_SIZE_MAX < size {
            return refuse(format!(
                "labels of {size} bytes, a series with exemplars may have {LABELS_SIZE_MAX}"
            ));
        }
        let is_known = row.may_be_first
            || self.exemplars.has_series(&labels)
            || self.has_series_near(&labels, timestamp)?;
        if !is_known {
            return refuse(format!("exemplar of a series without samples: {labels}"));
        }
        Ok(Arc::new(labels))
    }

    /// Whether a series is known in the exemplar's partition, or in one beside it: a sample a
    /// moment away may be there.
    fn has_series_near(&self, labels: &Labels, timestamp: Timestamp) -> index::Result<bool> {
        let period = self.ground.length.of(timestamp);
        let near: RangeInclusive<Period> =
            period.previous().unwrap_or(period)..=period.next().unwrap_or(period);
        let tags: Vec<(&str, &str)> =
            labels.iter().filter(|(name, _)| *name != METRIC_NAME).collect();
        for partition in self.partitions.of_periods(near).iter().rev() {
            if partition.read().series.has(labels.metric_name(), &tags)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn log_exemplars(&self, pending: &mut Pending, appended: &mut AppendedExemplars) -> Result<()> {
        self.log.wait_for_room()?;
        let Pending { all, positions, .. } = std::mem::take(pending);
        let done = self.exemplars.append(&self.log.wal, &all);
        let verdicts = done.map_err(|error| self.ground.health.latch_if_failed(error))?;
        for ((verdict, (_, exemplar)), position) in verdicts.iter().zip(&all).zip(positions) {
            match verdict {
                Verdict::Taken | Verdict::Known => appended.written += 1,
                Verdict::OutOfOrder(newest) => {
                    appended.out_of_order += 1;
                    let reason = format!(
                        "out of order exemplar: its timestamp is {} ns, the newest of its series \
                         has {newest} ns",
                        exemplar.timestamp
                    );
                    appended.tell(position, reason);
                }
            }
        }
        Ok(())
    }
}

impl Pending {
    fn push(&mut self, labels: &Arc<Labels>, row: &ExemplarRow) {
        self.labels_size += labels.as_bytes().len() + row.exemplar.labels.as_bytes().len();
        self.all.push((Arc::clone(labels), row.exemplar.clone()));
        self.positions.push(row.row.position);
    }

    fn is_full(&self) -> bool {
        RECORD_EXEMPLARS_MAX <= self.all.len() || RECORD_LABELS_SIZE_MAX <= self.labels_size
    }
}

impl AppendedExemplars {
    /// Takes over what became of a later batch of the same request.
    pub fn add(&mut self, other: AppendedExemplars) {
        self.written += other.written;
        self.out_of_order += other.out_of_order;
        self.refused += other.refused;
        let room = REJECTIONS_TOLD_MAX.saturating_sub(self.rejections.len());
        self.rejections.extend(other.rejections.into_iter().take(room));
    }

    fn refuse(&mut self, position: u32, reason: String) {
        self.refused += 1;
        self.tell(position, reason);
    }

    fn tell(&mut self, position: u32, reason: String) {
        if self.rejections.len() < REJECTIONS_TOLD_MAX {
            self.rejections.push(Rejection { position, reason });
        }
    }
}
