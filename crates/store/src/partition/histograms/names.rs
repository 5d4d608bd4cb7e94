//! What hidden series are called.

use model::{LabelError, Labels, LabelsBuilder, METRIC_NAME};

/// The label of all hidden series; its value is the name of the metric that they belong to.
pub const LABEL: &str = "__quipu_histogram__";
/// The label that says which run of buckets or bounds a hidden entity holds; the entity of the
/// numbers that every histogram has lacks it.
pub const RUN_LABEL: &str = "__quipu_run__";
/// The value of [`RUN_LABEL`] of entities that hold no part of a histogram but the start timestamps
/// of a series ([`crate::write::append_starts`]).
pub const START_RUN: &str = "start";
/// Their columns; no entity of a histogram has as few.
pub const START_COLUMNS: [&str; 1] = ["start"];
/// Buckets, or custom bounds, of one hidden entity.
pub const RUN_LEN: usize = 16;
/// The same, as the indexes of buckets count.
pub const RUN_STEP: i32 = 16;
/// The column with the layout, among those that every histogram has.
pub const BASE_LAYOUT: usize = 4;

/// Columns of the entity that every histogram has.
const BASE_COLUMNS: [&str; 5] = ["count", "sum", "zero_count", "zero_threshold", "layout"];
/// Columns of a run.
const RUN_COLUMNS: [&str; RUN_LEN + 1] = [
    "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11", "b12", "b13", "b14",
    "b15", "layout",
];

const _: () = assert!(RUN_STEP as usize == RUN_LEN);
const _: () = assert!(BASE_LAYOUT + 1 == BASE_COLUMNS.len());
const _: () = assert!(START_COLUMNS.len() < BASE_COLUMNS.len());

/// What a hidden entity holds of a histogram. Ordered as histograms are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// What every histogram has.
    Base,
    /// Buckets above zero from this one times [`RUN_LEN`] on.
    Positive(i32),
    /// Buckets below zero.
    Negative(i32),
    /// Custom bounds.
    Bounds(i32),
}

impl Piece {
    /// The names of the entity's columns.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Piece::Base => &BASE_COLUMNS,
            _ => &RUN_COLUMNS,
        }
    }

    /// The column with the layout.
    pub fn layout_column(self) -> usize {
        self.columns().len() - 1
    }

    /// The value of [`RUN_LABEL`]; empty when the entity lacks it.
    pub fn label_value(self) -> String {
        match self {
            Piece::Base => String::new(),
            Piece::Positive(run) => format!("p{run}"),
            Piece::Negative(run) => format!("n{run}"),
            Piece::Bounds(run) => format!("b{run}"),
        }
    }

    /// What [`Piece::label_value`] printed.
    pub fn parse(label_value: &str) -> Option<Piece> {
        let Some(kind) = label_value.chars().next() else { return Some(Piece::Base) };
        let run: i32 = label_value[kind.len_utf8()..].parse().ok()?;
        match kind {
            'p' => Some(Piece::Positive(run)),
            'n' => Some(Piece::Negative(run)),
            'b' => Some(Piece::Bounds(run)),
            _ => None,
        }
    }
}

/// Refuses a label that only hidden series have.
///
/// # Errors
/// [`LabelError::Refused`].
pub fn check_name(name: &str) -> Result<(), LabelError> {
    if name == LABEL || name == RUN_LABEL {
        let what = format!("label {name} is reserved: the store keeps native histograms with it");
        return Err(LabelError::Refused(what));
    }
    Ok(())
}

/// The labels, sorted, of a hidden entity beside a series of these tags.
pub fn hidden_tags<'a>(
    tags: &[(&'a str, &'a str)],
    metric: &'a str,
    run: &'a str,
) -> Vec<(&'a str, &'a str)> {
    let mut all = Vec::with_capacity(tags.len() + 2);
    all.extend_from_slice(tags);
    all.push((LABEL, metric));
    if !run.is_empty() {
        all.push((RUN_LABEL, run));
    }
    all.sort_unstable();
    debug_assert!(tags.iter().all(|(name, _)| *name != METRIC_NAME));
    all
}

/// The labels of the series that a hidden one with these labels belongs to.
pub fn plain_labels(hidden: &mut LabelsBuilder) -> Labels {
    let metric = hidden.get(LABEL).unwrap_or_default().to_string();
    hidden.remove(LABEL);
    hidden.remove(RUN_LABEL);
    hidden.set(METRIC_NAME, &metric);
    hidden.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_told_by_their_label() {
        for run in [0, 7, -3, i32::MAX / 16, i32::MIN / 16] {
            for piece in
                [Piece::Base, Piece::Positive(run), Piece::Negative(run), Piece::Bounds(run)]
            {
                assert_eq!(Piece::parse(&piece.label_value()), Some(piece));
                assert_eq!(piece.columns()[piece.layout_column()], "layout");
            }
        }
        for bad in [START_RUN, "p", "x1", "é1", "p1x", "p99999999999", "1"] {
            assert_eq!(Piece::parse(bad), None, "{bad}");
        }
    }
}
