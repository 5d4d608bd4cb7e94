//! A matcher over a segment: which ids of a sorted dictionary it selects, as ranges.
//!
//! Neighbouring strings have neighbouring ids, so `=`, prefixes and their negations are one or
//! two ranges; only suffixes, infixes and automata walk over strings, and those over the part of
//! the dictionary that their prefixes leave.

use super::Segment;
use super::strings::Strings;
use crate::error::{Result, corrupt};
use crate::interrupt::Pace;
use crate::matcher::pattern::{Pattern, Rest};
use crate::matcher::{CompiledMatcher, CompiledMatchers, LabelMatchers};
use model::METRIC_NAME;

/// With more ranges than this, columns are decoded and each id is looked up in a bitmap.
pub(super) const PLANE_RANGES_MAX: usize = 8;

/// A set of ids as disjoint, increasing ranges with both ends included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IdSet {
    ranges: Vec<(u32, u32)>,
    /// One bit per id, when there are too many ranges.
    bitmap: Vec<u64>,
}

impl IdSet {
    fn from_range(start: u32, end: u32) -> IdSet {
        let ranges = if start < end { vec![(start, end - 1)] } else { Vec::new() };
        IdSet { ranges, bitmap: Vec::new() }
    }

    /// Adds an id above all that are in the set. Others, which only a dictionary out of order
    /// gives, are ignored.
    fn push(&mut self, id: u32) {
        match self.ranges.last_mut() {
            Some(last) if id <= last.1 => {}
            Some(last) if last.1 + 1 == id => last.1 = id,
            _ => self.ranges.push((id, id)),
        }
    }

    fn complement(&self, count: u32) -> IdSet {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = 0;
        for (low, high) in &self.ranges {
            if next < *low {
                ranges.push((next, low - 1));
            }
            next = high + 1;
        }
        if next < count {
            ranges.push((next, count - 1));
        }
        IdSet { ranges, bitmap: Vec::new() }
    }

    /// The ids of both sets.
    fn intersect(&self, other: &IdSet) -> IdSet {
        let mut ranges = Vec::new();
        let (mut own, mut others) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(&&(low, high)), Some(&&(other_low, other_high))) =
            (own.peek(), others.peek())
        {
            let (start, end) = (low.max(other_low), high.min(other_high));
            if start <= end {
                ranges.push((start, end));
            }
            if high <= other_high {
                own.next()
            } else {
                others.next()
            };
        }
        IdSet { ranges, bitmap: Vec::new() }
    }

    fn with_bitmap(mut self, count: u32) -> IdSet {
        if PLANE_RANGES_MAX < self.ranges.len() {
            self.bitmap = vec![0; (count as usize).div_ceil(64)];
            for id in self.ranges.iter().flat_map(|(low, high)| *low..=*high) {
                self.bitmap[id as usize / 64] |= 1 << (id % 64);
            }
        }
        self
    }

    /// Whether an id is in the set.
    #[inline]
    pub(super) fn contains(&self, id: u32) -> bool {
        if let Some(word) = self.bitmap.get(id as usize / 64) {
            return word >> (id % 64) & 1 == 1;
        }
        let after = self.ranges.partition_point(|(low, _)| *low <= id);
        after.checked_sub(1).is_some_and(|idx| id <= self.ranges[idx].1)
    }

    /// The ranges that have ids between `low` and `high`.
    pub(super) fn overlapping(&self, low: u32, high: u32) -> &[(u32, u32)] {
        let start = self.ranges.partition_point(|range| range.1 < low);
        let end = self.ranges.partition_point(|range| range.0 <= high);
        &self.ranges[start..end.max(start)]
    }

    /// The ids, when there are at most `max`.
    pub(super) fn few(&self, max: u64) -> Option<impl Iterator<Item = u32> + '_> {
        (self.len() <= max).then(|| self.ranges.iter().flat_map(|(low, high)| *low..=*high))
    }

    fn len(&self) -> u64 {
        self.ranges.iter().map(|(low, high)| u64::from(high - low) + 1).sum()
    }
}

/// Which ids of a label match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selected {
    All,
    None,
    Ids(IdSet),
}

/// The matchers of a tag.
pub(super) struct TagCondition {
    /// The tag, when the segment has it.
    pub tag: Option<u32>,
    /// Whether entities without the tag match.
    pub matches_absent: bool,
    pub values: Selected,
}

/// The matchers of a search over one segment.
pub(super) struct Conditions {
    /// On the metric's name.
    pub names: Vec<Selected>,
    pub tags: Vec<TagCondition>,
}

impl Segment {
    pub(super) fn conditions(&self, matchers: &CompiledMatchers) -> Result<Conditions> {
        let mut conditions = Conditions { names: Vec::new(), tags: Vec::new() };
        let mut pace = Pace::new(matchers.interrupt());
        for label in matchers.by_label() {
            let walks = label.all.iter().filter(|one| !one.pattern.is_range()).count() as u64;
            if walks != 0 {
                matchers.check_cost(walks.saturating_mul(self.value_count(label.name())?))?;
            }
            if label.name() == METRIC_NAME {
                conditions.names.push(select(label, &self.metric_names()?, &mut pace)?);
                continue;
            }
            let tag = self.tag_names()?.find(label.name().as_bytes())?;
            let matches_absent = label.matches_absent();
            let values = match tag {
                Some(tag) => select(label, &self.values(tag)?, &mut pace)?,
                // Holds for every series here.
                None if matches_absent => continue,
                None => Selected::None,
            };
            conditions.tags.push(TagCondition { tag, matches_absent, values });
        }
        Ok(conditions)
    }
}

impl Segment {
    /// How many values of a label there are.
    pub(crate) fn value_count(&self, name: &str) -> Result<u64> {
        if name == METRIC_NAME {
            return Ok(u64::from(self.metric_names()?.count()));
        }
        Ok(match self.tag_names()?.find(name.as_bytes())? {
            Some(tag) => u64::from(self.values(tag)?.count()),
            None => 0,
        })
    }
}

/// The ids of the strings that satisfy all matchers of a label.
fn select(
    label: LabelMatchers<'_>,
    strings: &Strings<'_>,
    pace: &mut Pace<'_>,
) -> Result<Selected> {
    let count = strings.count();
    let ids = match label.all {
        [matcher] => select_one(matcher, strings, pace)?,
        all => select_all(all, strings, pace)?,
    };
    Ok(match ids.ranges.as_slice() {
        [] => Selected::None,
        [(0, last)] if last + 1 == count => Selected::All,
        _ => Selected::Ids(ids.with_bitmap(count)),
    })
}

fn select_one(
    matcher: &CompiledMatcher,
    strings: &Strings<'_>,
    pace: &mut Pace<'_>,
) -> Result<IdSet> {
    let ids = select_pattern(&matcher.pattern, strings, pace)?;
    Ok(if matcher.is_negated { ids.complement(strings.count()) } else { ids })
}

/// Matchers that are ranges leave few strings, most often, for the others to walk over.
fn select_all(
    matchers: &[CompiledMatcher],
    strings: &Strings<'_>,
    pace: &mut Pace<'_>,
) -> Result<IdSet> {
    let mut ids = IdSet::from_range(0, strings.count());
    for matcher in matchers.iter().filter(|one| one.pattern.is_range()) {
        pace.add(1 + ids.ranges.len() as u64)?;
        ids = ids.intersect(&select_one(matcher, strings, pace)?);
    }
    let walks: Vec<&CompiledMatcher> =
        matchers.iter().filter(|one| !one.pattern.is_range()).collect();
    for matcher in walks.iter().filter(|one| !one.is_negated) {
        if let Some(prefixed) = prefixed(&matcher.pattern, strings)? {
            ids = ids.intersect(&prefixed);
        }
    }
    if walks.is_empty() {
        return Ok(ids);
    }
    let mut found = IdSet::default();
    let matches = |string: &str| walks.iter().all(|matcher| matcher.matches(string));
    for (low, high) in &ids.ranges {
        walk((&matches, walks.len()), strings, *low..high + 1, pace, &mut found)?;
    }
    Ok(found)
}

/// The ids of the strings that start with a prefix of a pattern, if it has prefixes.
fn prefixed(pattern: &Pattern, strings: &Strings<'_>) -> Result<Option<IdSet>> {
    let Pattern::Regex { prefixes, .. } = pattern else { return Ok(None) };
    if prefixes.is_empty() {
        return Ok(None);
    }
    let mut ids = IdSet::default();
    for prefix in prefixes {
        let range = strings.prefix_range(prefix.as_bytes())?;
        // Only a dictionary out of order gives ranges that do not increase.
        let is_next = ids.ranges.last().is_none_or(|(_, last)| *last < range.start);
        if range.start < range.end && is_next {
            ids.ranges.push((range.start, range.end - 1));
        }
    }
    Ok(Some(ids))
}

fn select_pattern(pattern: &Pattern, strings: &Strings<'_>, pace: &mut Pace<'_>) -> Result<IdSet> {
    let count = strings.count();
    let matches = |string: &str| pattern.matches(string);
    match pattern {
        Pattern::Anything => Ok(IdSet::from_range(0, count)),
        Pattern::NonEmpty => {
            let start = u32::from(strings.find(b"")?.is_some());
            Ok(IdSet::from_range(start, count))
        }
        Pattern::Exact(set) => {
            let mut ids = IdSet::default();
            for one in set {
                pace.add(1)?;
                if let Some(id) = strings.find(one.as_bytes())? {
                    ids.push(id);
                }
            }
            Ok(ids)
        }
        Pattern::Prefix(prefix, rest) => {
            let mut range = strings.prefix_range(prefix.as_bytes())?;
            // The prefix itself comes first of all that start with it.
            if *rest == Rest::NonEmpty && strings.find(prefix.as_bytes())?.is_some() {
                range.start += 1;
            }
            Ok(IdSet::from_range(range.start, range.end))
        }
        Pattern::Regex { prefixes, .. } if !prefixes.is_empty() => {
            let mut ids = IdSet::default();
            for prefix in prefixes {
                let range = strings.prefix_range(prefix.as_bytes())?;
                walk((&matches, 1), strings, range, pace, &mut ids)?;
            }
            Ok(ids)
        }
        _ => {
            let mut ids = IdSet::default();
            walk((&matches, 1), strings, 0..count, pace, &mut ids)?;
            Ok(ids)
        }
    }
}

/// Tries the strings of a range of ids one by one, with so many matchers each.
fn walk(
    (matches, matchers): (&impl Fn(&str) -> bool, usize),
    strings: &Strings<'_>,
    range: std::ops::Range<u32>,
    pace: &mut Pace<'_>,
    ids: &mut IdSet,
) -> Result<()> {
    let mut cursor = strings.cursor(range.start)?;
    while let Some((string, id)) = cursor.current().filter(|(_, id)| *id < range.end) {
        let string = std::str::from_utf8(string).map_err(|_| corrupt("UTF-8 of a label"))?;
        pace.add(matchers as u64)?;
        if matches(string) {
            ids.push(id);
        }
        cursor.advance()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_ids_are_ranges() {
        let mut set = IdSet::default();
        [1, 2, 3, 7, 9, 10].into_iter().for_each(|id| set.push(id));
        assert_eq!(set.ranges, [(1, 3), (7, 7), (9, 10)]);
        let rest = set.complement(11);
        assert_eq!(rest.ranges, [(0, 0), (4, 6), (8, 8)]);
        for set in [set.clone(), set.clone().with_bitmap(11)] {
            for id in 0..20 {
                assert_eq!(set.contains(id), [1, 2, 3, 7, 9, 10].contains(&id), "{id}");
                assert!(id > 10 || set.contains(id) != rest.contains(id));
            }
        }
        let other = IdSet { ranges: vec![(0, 1), (3, 9), (11, 11)], bitmap: Vec::new() };
        assert_eq!(set.intersect(&other).ranges, [(1, 1), (3, 3), (7, 7), (9, 9)]);
        assert_eq!(other.intersect(&set), set.intersect(&other));
        assert_eq!(set.intersect(&IdSet::default()), IdSet::default());
        assert_eq!(set.overlapping(3, 8), [(1, 3), (7, 7)]);
        assert_eq!(set.overlapping(4, 6), []);
        assert_eq!(set.overlapping(11, 20), []);
        assert_eq!(set.few(6).unwrap().collect::<Vec<u32>>(), [1, 2, 3, 7, 9, 10]);
        assert!(set.few(5).is_none());
        assert_eq!(IdSet::default().complement(0), IdSet::default());
    }
}
