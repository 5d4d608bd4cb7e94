//! A manifest that is lost, made again from what the files say of themselves.
//!
//! - *Parts.* Each says its place in the order of writing; its number is its name. Of two with the
//!   same place the later file was merged from the earlier one, and has all of it. `applied` is the
//!   file's number, so that no deletion to come is missed: its sequence is higher. One that cannot be
//!   opened is named all the same, at the place of its number, which flushes give: so what is lost
//!   with it is said. Where another has that place, it was merged into it.
//! - *Index segments.* Their names say which entities they hold and which is younger. A merge and its
//!   inputs may both be there; the inputs are taken if all are there and sound, for they can lack
//!   nothing.
//! - *`wal_from`*: see [`super::replay_start`].
//! - *Deletions* that no merge has applied are gone; the samples come back.

use crate::Result;
use crate::base::file_names::{INDEX_DIR, PARTS_DIR};
use crate::offline::verify::partition::open_segment;
use crate::partition::disk::live_part::open_part;
use crate::partition::disk::manifest::{Manifest, PartEntry};
use index::{SegmentEntry, parse_segment_name};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use vfs::Vfs;

/// A manifest of what is in a partition's directory, which replays all of the log.
///
/// # Errors
/// When a directory cannot be listed.
pub fn rebuild(vfs: &dyn Vfs, dir: &Path) -> Result<Manifest> {
    let list = |folder: &Path| match vfs.exists(folder)? {
        true => Ok::<_, crate::Error>(vfs.list(folder)?),
        false => Ok(Vec::new()),
    };
    let folder = dir.join(PARTS_DIR);
    let names = list(&folder)?;
    let mut newest_of: BTreeMap<u64, u64> = BTreeMap::new();
    for name in &names {
        let Some(file) = Manifest::part_number(name) else { continue };
        let order = match open_part(vfs, &folder.join(name)) {
            Ok(part) => part.summary().sequence,
            Err(error) if error.is_passing() => return Err(error),
            Err(_) => file,
        };
        let newest = newest_of.entry(order).or_insert(file);
        *newest = file.max(*newest);
    }
    let parts: Vec<PartEntry> = newest_of
        .iter()
        .map(|(order, file)| PartEntry { file: *file, order: *order, applied: *file.max(order) })
        .collect();
    let segments = choose_segments(vfs, &dir.join(INDEX_DIR), &list(&dir.join(INDEX_DIR))?);
    let mut manifest = Manifest { parts, segments, ..Manifest::default() };
    manifest.sequence_next = next_number(&manifest, &names);
    Ok(manifest)
}

/// A number that neither the manifest nor a file has had.
pub fn next_number(manifest: &Manifest, names: &[String]) -> u64 {
    // A file that was set aside kept its number in front.
    let stem = |name: &String| name.split('.').next().map(str::to_string);
    let numbers = names.iter().filter_map(|name| u64::from_str_radix(&stem(name)?, 16).ok());
    let named = manifest.parts.iter().flat_map(|part| [part.file, part.order, part.applied]);
    let deleted = manifest.tombstones.iter().map(|tombstone| tombstone.sequence);
    let last = numbers.chain(named).chain(deleted).max().unwrap_or(0);
    manifest.sequence_next.max(last.saturating_add(1))
}

/// Which segments tell all that is known, by increasing entities.
fn choose_segments(vfs: &dyn Vfs, dir: &Path, names: &[String]) -> Vec<SegmentEntry> {
    struct Candidate {
        entry: SegmentEntry,
        entities: Range<u32>,
        sequence: u32,
        is_sound: bool,
    }
    let mut all: Vec<Candidate> = Vec::new();
    for name in names {
        let Some((entities, sequence)) = parse_segment_name(name) else { continue };
        let unchecked = SegmentEntry::unchecked(name.clone());
        let opened = open_segment(vfs, &dir.join(name), &unchecked);
        let is_sound = opened.is_ok();
        let entry = opened.map_or(unchecked, |segment| segment.entry());
        all.push(Candidate { entry, entities, sequence, is_sound });
    }
    all.sort_by_key(|one| (one.entities.start, one.sequence));
    // From the youngest to the oldest: what it covers goes, unless that is as good.
    let mut by_age: Vec<usize> = (0..all.len()).collect();
    by_age.sort_by_key(|idx| std::cmp::Reverse(all[*idx].sequence));
    let mut is_out = vec![false; all.len()];
    for young in by_age {
        if is_out[young] {
            continue;
        }
        let range = all[young].entities.clone();
        let overlaps =
            |one: &Candidate| one.entities.start < range.end && range.start < one.entities.end;
        let older: Vec<usize> = (0..all.len())
            .filter(|idx| *idx != young && !is_out[*idx] && overlaps(&all[*idx]))
            .collect();
        if older.is_empty() {
            continue;
        }
        let mut at = range.start;
        for idx in &older {
            at = if all[*idx].entities.start == at { all[*idx].entities.end } else { u32::MAX };
        }
        let is_whole = at == range.end && older.iter().all(|idx| all[*idx].is_sound);
        let is_some_sound = older.iter().any(|idx| all[*idx].is_sound);
        if is_whole || (!all[young].is_sound && is_some_sound) {
            is_out[young] = true;
        } else {
            older.iter().for_each(|idx| is_out[*idx] = true);
        }
    }
    let kept = all.iter().zip(&is_out).filter(|(_, is_out)| !**is_out);
    kept.map(|(one, _)| one.entry.clone()).collect()
}
