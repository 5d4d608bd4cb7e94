//! What each writer has sent, line by line, what became of it, and what a check must find.

use super::sample::BATCH;
use std::ops::Range;

/// The fate of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Sent, without a good answer.
    Unknown,
    /// Acknowledged.
    Acknowledged,
    /// Its samples were found after a start; its exemplar had no good answer.
    Found,
    /// Acknowledged, and a deletion had no good answer.
    PerhapsDeleted,
    /// Its samples are gone; its exemplar had no good answer.
    Lingering,
    /// Gone: deleted, or not there after a start.
    Gone,
}

/// A writer's lines from the first on.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    fates: Vec<Fate>,
}

/// What a check must find of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It is there.
    Must,
    /// Its samples are there, its exemplar may be.
    MustSample,
    /// It may be there.
    May,
    /// Its exemplar may be there, its samples are not.
    MayExemplar,
    /// It is not there.
    MustNot,
}

impl Ledger {
    /// How many lines were sent.
    pub fn len(&self) -> u64 {
        self.fates.len() as u64
    }

    /// How many lines are there for sure.
    pub fn acknowledged(&self) -> u64 {
        let is_there = |fate: &&Fate| matches!(fate, Fate::Acknowledged | Fate::Found);
        self.fates.iter().filter(is_there).count() as u64
    }

    /// Notes that lines are about to be sent, perhaps again.
    pub fn sending(&mut self, lines: Range<u64>) {
        let len = self.fates.len().max(lines.end as usize);
        self.fates.resize(len, Fate::Unknown);
    }

    /// Notes that lines were acknowledged.
    pub fn acknowledge(&mut self, lines: Range<u64>) {
        self.fates[lines.start as usize..lines.end as usize].fill(Fate::Acknowledged);
    }

    /// Whole batches before the last line.
    pub fn batches(&self) -> u64 {
        self.len() / BATCH
    }

    /// Notes that a batch is about to be deleted.
    pub fn deleting(&mut self, batch: u64) {
        for fate in self.batch_mut(batch) {
            if matches!(fate, Fate::Acknowledged | Fate::Found) {
                *fate = Fate::PerhapsDeleted;
            }
        }
    }

    /// Notes that the deletion of a batch was acknowledged.
    pub fn deleted(&mut self, batch: u64) {
        self.batch_mut(batch).fill(Fate::Gone);
    }

    fn batch_mut(&mut self, batch: u64) -> &mut [Fate] {
        let end = self.fates.len().min(((batch + 1) * BATCH) as usize);
        &mut self.fates[(batch * BATCH) as usize..end]
    }

    /// What must be found of a line now.
    pub fn demand(&self, line: u64) -> Demand {
        match self.fates.get(line as usize) {
            Some(Fate::Acknowledged) => Demand::Must,
            Some(Fate::Found) => Demand::MustSample,
            Some(Fate::Lingering) => Demand::MayExemplar,
            Some(Fate::Unknown | Fate::PerhapsDeleted) => Demand::May,
            Some(Fate::Gone) | None => Demand::MustNot,
        }
    }

    /// What must be found of each line in something made between two moments.
    ///
    /// A line first sent in between may be in it though both moments agree that it is not there: it
    /// may have been acknowledged, seen and deleted, all in between.
    pub fn demands_between(before: &Ledger, after: &Ledger) -> Vec<Demand> {
        let one = |line| match (before.demand(line), after.demand(line)) {
            _ if before.len() <= line => Demand::May,
            (before, after) if before == after => before,
            // The deletion was of samples that were gone already.
            (Demand::MayExemplar, Demand::MustNot) => Demand::MayExemplar,
            _ => Demand::May,
        };
        (0..after.len()).map(one).collect()
    }

    /// What must be found of each line.
    pub fn demands(&self) -> Vec<Demand> {
        (0..self.len()).map(|line| self.demand(line)).collect()
    }

    /// Takes what was found after a start for what is there.
    pub fn resolve(&mut self, is_found: &[bool]) {
        for (fate, is_found) in self.fates.iter_mut().zip(is_found) {
            *fate = match (*fate, is_found) {
                (Fate::Unknown | Fate::PerhapsDeleted, true) => Fate::Found,
                (Fate::Unknown | Fate::PerhapsDeleted, false) => Fate::Lingering,
                (known, _) => known,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_follow_from_fates() {
        let mut ledger = Ledger::default();
        ledger.sending(0..BATCH + 2);
        ledger.acknowledge(0..BATCH + 1);
        let before = ledger.clone();
        assert_eq!((ledger.batches(), ledger.acknowledged()), (1, BATCH + 1));
        ledger.deleting(0);
        assert_eq!(
            [0, BATCH, BATCH + 1, BATCH + 2].map(|line| ledger.demand(line)),
            [Demand::May, Demand::Must, Demand::May, Demand::MustNot]
        );
        ledger.deleted(0);
        assert_eq!(ledger.demand(1), Demand::MustNot);
        let between = Ledger::demands_between(&before, &ledger);
        assert_eq!((between[0], between[BATCH as usize]), (Demand::May, Demand::Must));
        ledger.resolve(&[vec![false; BATCH as usize], vec![true, true]].concat());
        assert_eq!(ledger.acknowledged(), 2);
        let demands = [BATCH, BATCH + 1].map(|line| ledger.demand(line));
        assert_eq!(demands, [Demand::Must, Demand::MustSample]);
    }

    #[test]
    fn what_came_and_went_between_two_moments_may_have_been_seen() {
        let mut ledger = Ledger::default();
        ledger.sending(0..3 * BATCH);
        ledger.acknowledge(0..3 * BATCH);
        ledger.deleting(0);
        ledger.deleted(0);
        // A line of the batch that the first moment does not know.
        let unknown = 2 * BATCH - 1;
        let mut before = ledger.clone();
        before.fates.truncate(unknown as usize);
        ledger.deleting(1);
        ledger.deleted(1);
        let between = Ledger::demands_between(&before, &ledger);
        let demands = [0, unknown - 1, unknown, 2 * BATCH].map(|line| between[line as usize]);
        assert_eq!(demands, [Demand::MustNot, Demand::May, Demand::May, Demand::May]);
        assert_eq!(between.len() as u64, ledger.len(), "a line never sent is in no demand");
    }

    #[test]
    fn samples_that_were_gone_before_a_deletion_do_not_come_back_in_between() {
        let mut before = Ledger::default();
        before.sending(0..BATCH);
        before.resolve(&vec![false; BATCH as usize]);
        let mut after = before.clone();
        after.deleted(0);
        assert_eq!(Ledger::demands_between(&before, &after)[0], Demand::MayExemplar);
    }
}
