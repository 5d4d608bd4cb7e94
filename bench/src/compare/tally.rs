//! Over many figures of one kind: how many are better, by how much on average, and which least.

use super::spread::spread;
use super::{Run, Tally};
use std::fmt::Write;

/// Appends a line for each other contender.
pub(super) fn put(text: &mut String, tally: &Tally, names: &[&str], runs: &[Run]) {
    for other in names.iter().skip(1) {
        let median = |name, figure| spread(name, figure, runs).map(|spread| spread.median);
        let mut ratios = Vec::new();
        for figure in &tally.figures {
            let both = median(other, figure).zip(median(names[0], figure));
            let ratio = both.map(|(theirs, ours)| theirs / ours);
            ratios.extend(ratio.filter(|ratio| ratio.is_finite()).map(|ratio| (ratio, figure)));
        }
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some((least, figure)) = ratios.first() else { continue };
        let better = ratios.iter().filter(|(ratio, _)| *ratio > 1.0).count();
        let logarithms = ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>();
        let mean = (logarithms / ratios.len() as f64).exp();
        let _ = writeln!(
            text,
            "\n{}: {} less than {other} in {better} of {}, geometric mean {mean:.2} x, least \
             {least:.2} x ({figure}).",
            tally.title,
            names[0],
            ratios.len()
        );
    }
}
