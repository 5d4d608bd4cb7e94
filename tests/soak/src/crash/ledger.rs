//! What one writer has sent, line by line, and what became of it.

/// The fate of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Never sent: must not be found.
    Unsent,
    /// Sent, without an answer: may be found.
    Unknown,
    /// Acknowledged: must be found.
    Acknowledged,
}

/// A writer's lines from the first on.
#[derive(Debug, Default)]
pub struct Ledger {
    fates: Vec<Fate>,
    acknowledged: u64,
}

impl Ledger {
    /// How many lines were sent.
    pub fn len(&self) -> u64 {
        self.fates.len() as u64
    }

    /// How many lines were acknowledged.
    pub fn acknowledged_lines(&self) -> u64 {
        self.acknowledged
    }

    /// What became of a line.
    pub fn fate(&self, line: u64) -> Fate {
        usize::try_from(line).ok().and_then(|idx| self.fates.get(idx)).map_or(Fate::Unsent, |f| *f)
    }

    /// Notes that lines are about to be sent; those sent before keep what they have reached.
    pub fn sending(&mut self, lines: std::ops::Range<u64>) {
        assert!(lines.start <= self.len(), "{lines:?} leaves a gap after {}", self.len());
        let len = (lines.end as usize).max(self.fates.len());
        self.fates.resize(len, Fate::Unknown);
    }

    /// Notes that the server has acknowledged lines.
    pub fn acknowledge(&mut self, lines: std::ops::Range<u64>) {
        for fate in &mut self.fates[lines.start as usize..lines.end as usize] {
            self.acknowledged += u64::from(*fate != Fate::Acknowledged);
            *fate = Fate::Acknowledged;
        }
    }

    /// The lines at the end whose fate is unknown.
    pub fn unknown_tail(&self) -> std::ops::Range<u64> {
        let known = self.fates.iter().rposition(|fate| *fate != Fate::Unknown);
        known.map_or(0, |idx| idx as u64 + 1)..self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_only_improve() {
        let mut ledger = Ledger::default();
        ledger.sending(0..10);
        ledger.acknowledge(0..10);
        ledger.sending(10..15);
        assert_eq!(ledger.unknown_tail(), 10..15);
        ledger.sending(5..12);
        assert_eq!((ledger.fate(9), ledger.fate(11)), (Fate::Acknowledged, Fate::Unknown));
        ledger.acknowledge(8..12);
        assert_eq!((ledger.len(), ledger.acknowledged_lines()), (15, 12));
        assert_eq!(ledger.unknown_tail(), 12..15);
        assert_eq!(ledger.fate(15), Fate::Unsent);
    }
}
