//! Deletions in a merge: samples that a tombstone covers are not written again.

use super::order::{List, View};

/// Replaces the last list by its pieces that no tombstone covers.
pub(super) fn remove_deleted(lists: &mut Vec<List<'_>>, view: &View<'_>, ordinal: u32) {
    let from = lists.len() - 1;
    for (series, range) in view.tombstones.iter().copied() {
        if range.is_empty() || !series.contains(ordinal) {
            continue;
        }
        for at in from..lists.len() {
            let list = lists[at];
            let before = list.times.partition_point(|&timestamp| timestamp < range.start);
            let upto = list.times.partition_point(|&timestamp| timestamp <= range.end);
            lists[at].times = &list.times[..before];
            let mut rest = list;
            rest.skip(upto);
            lists.push(rest);
        }
        let mut at = from;
        while at < lists.len() {
            if lists[at].times.is_empty() {
                lists.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }
}
