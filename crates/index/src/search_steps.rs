//! A search whose owner holds the lock of the index only for short steps.
//!
//! ```text
//! under the lock      step: quick searches │ copy values of labels │ test columns in memory
//! without the lock    run:  search frozen parts │ match copied values
//! ```
//!
//! Segments and sealed memory indexes never change, so a search shares them. Ids of the memory index
//! never change their meaning: values are copied piece by piece and matched without the lock, and a
//! short step tests the columns for the ids that match.
//! When the memory index is sealed meanwhile, it is searched as one more frozen part.

use crate::entity::EntityId;
use crate::error::Result;
use crate::frozen::FrozenParts;
use crate::index::{Index, OnRot, Part, append, search_parts};
use crate::interrupt::Pace;
use crate::match_union::MatchUnion;
use crate::matcher::{CompiledMatcher, CompiledMatchers};
use crate::memory::MemoryIndex;
use crate::memory::ids::IdBits;
use crate::memory::search::TriedIds;
use crate::segment::Segment;
use crate::subset::BlockMatch;
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Blocks and values that one step looks at under the lock: about a millisecond.
const STEP_LOOKS_MAX: u64 = 8192;
/// Values that one step copies under the lock, and their bytes.
const COPIED_VALUES_MAX: usize = 4096;
const COPIED_SIZE_MAX: usize = 256 << 10;
/// Sets whose values are tried at once: each has a bit for each value.
const SETS_AT_ONCE: usize = 64;
/// Values that the matchers of one set may name before longer lists are matched without the lock.
const LOOKUPS_MAX: u32 = 4096;
/// Values that a matcher names and that are looked up whatever the others name.
const LOOKUPS_SMALL: u32 = 64;

/// Which series a search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// All that were registered before its first step.
    AtStart,
    /// All that were registered before its last step.
    AtEnd,
}

/// What comes after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Give the lock back, call [`Search::run`], take the lock, and call [`Search::step`] again.
    Run,
    /// Nothing: [`Search::take`] has the matches. With [`Completeness::AtEnd`] only as long as the lock
    /// is held.
    Done,
}

/// A search for the series of several sets of matchers.
pub struct Search<'m> {
    sets: &'m [CompiledMatchers],
    completeness: Completeness,
    order: MatchOrder,
    state: SearchState<'m>,
    /// Matches so far; with [`Completeness::AtEnd`] those in frozen parts only.
    found: Found,
    /// Matches in memory of the last step of a search with [`Completeness::AtEnd`].
    in_memory: Found,
}

/// Matches of one set, or of several with each series once.
enum Found {
    OfOne(Vec<BlockMatch>),
    OfMany(MatchUnion),
}

/// The order of matches.
enum MatchOrder {
    /// By increasing entity.
    Entities,
    /// None inside of a part. Blocks of segments without one of these series may be left out.
    Any { among: Option<RoaringBitmap> },
}

/// How far a search is.
enum SearchState<'m> {
    /// No step came yet, or one that was quick.
    New,
    Running(Box<Running<'m>>),
    /// All sets of a search with [`Completeness::AtStart`] were searched.
    Done,
}

/// A search that is not quick.
struct Running<'m> {
    sets: &'m [CompiledMatchers],
    /// The sets that are searched at present.
    batch: Range<usize>,
    /// Their values; none before the next run.
    trials: Option<ValueTrials<'m>>,
    /// Series of the present batch with lower entities were searched.
    searched_to: EntityId,
    /// Sets of the present batch below this one were searched in memory, too.
    done: usize,
    /// Searched by the next run, with the entity that the memory index starts with behind them.
    frozen: Option<(Arc<FrozenParts>, EntityId)>,
}

impl<'m> Search<'m> {
    /// A search whose matches are by increasing entity; of several sets each series is there once.
    pub fn new(sets: &'m [CompiledMatchers], completeness: Completeness) -> Search<'m> {
        let (order, state) = (MatchOrder::Entities, SearchState::New);
        let (found, in_memory) = (Found::of(sets), Found::of(sets));
        Search { sets, completeness, order, state, found, in_memory }
    }

    /// A search whose matches are in the order of the parts; blocks without a series of `among` may be
    /// left out.
    pub fn among(
        sets: &'m [CompiledMatchers],
        completeness: Completeness,
        among: Option<RoaringBitmap>,
    ) -> Search<'m> {
        Search { order: MatchOrder::Any { among }, ..Search::new(sets, completeness) }
    }

    /// The next step, under the lock of the index.
    ///
    /// # Errors
    /// As [`Index::search_noting`].
    pub fn step(&mut self, index: &Index, on_rot: &mut OnRot<'_>) -> Result<Step> {
        match &mut self.state {
            SearchState::Done => return Ok(Step::Done),
            SearchState::New if index.is_quick(self.sets) => {
                self.found.clear();
                for set in self.sets {
                    self.found.add(self.order.search(index.parts(), set, on_rot)?);
                }
                if self.completeness == Completeness::AtStart {
                    self.state = SearchState::Done;
                }
                return Ok(Step::Done);
            }
            SearchState::New => {
                let running = Running::new(self.sets, self.completeness);
                self.state = SearchState::Running(Box::new(running));
            }
            SearchState::Running(_) => {}
        }
        let SearchState::Running(running) = &mut self.state else { return Ok(Step::Run) };
        if !running.is_prepared(index, self.completeness) {
            return Ok(Step::Run);
        }
        match self.completeness {
            Completeness::AtStart => {
                if running.search_batch(index.memory(), &self.order, &mut self.found)? == Step::Run
                {
                    return Ok(Step::Run);
                }
                self.state = SearchState::Done;
            }
            Completeness::AtEnd => {
                self.in_memory.clear();
                for set in 0..self.sets.len() {
                    let found = running.search_memory(index.memory(), set, &self.order)?;
                    self.in_memory.add(found);
                }
            }
        }
        Ok(Step::Done)
    }

    /// The part of the work that needs no lock.
    ///
    /// # Errors
    /// As [`Search::step`].
    pub fn run(&mut self, on_rot: &mut OnRot<'_>) -> Result<()> {
        match &mut self.state {
            SearchState::Running(running) => running.run(&self.order, &mut self.found, on_rot),
            _ => Ok(()),
        }
    }

    /// Takes the matches; a second call returns none.
    pub fn take(&mut self) -> Vec<BlockMatch> {
        let mut out = self.found.take();
        append(&mut out, self.in_memory.take());
        out
    }
}

impl Found {
    fn of(sets: &[CompiledMatchers]) -> Found {
        match sets {
            [] | [_] => Found::OfOne(Vec::new()),
            _ => Found::OfMany(MatchUnion::default()),
        }
    }

    /// Adds the matches of a set. Those of one set come by increasing entity.
    fn add(&mut self, matches: Vec<BlockMatch>) {
        match self {
            Found::OfOne(found) => append(found, matches),
            Found::OfMany(union) => union.add(matches),
        }
    }

    fn take(&mut self) -> Vec<BlockMatch> {
        match self {
            Found::OfOne(found) => std::mem::take(found),
            Found::OfMany(union) => union.take(),
        }
    }

    fn clear(&mut self) {
        self.take();
    }
}

impl<'m> Running<'m> {
    fn new(sets: &'m [CompiledMatchers], completeness: Completeness) -> Running<'m> {
        // What is complete at the end is searched in memory in one step.
        let first = match completeness {
            Completeness::AtStart => sets.len().min(SETS_AT_ONCE),
            Completeness::AtEnd => sets.len(),
        };
        let (trials, frozen) = (None, None);
        Running { sets, batch: 0..first, trials, searched_to: 0, done: 0, frozen }
    }

    /// Whether all that needs no lock is done for the present batch; else it is what the next run does.
    fn is_prepared(&mut self, index: &Index, completeness: Completeness) -> bool {
        let start = index.memory().entities_start();
        if self.searched_to < start {
            self.frozen = Some((Arc::clone(index.frozen()), start));
            // The values are those of another memory index.
            self.trials = None;
            return false;
        }
        match &mut self.trials {
            Some(trials) => !trials.copy_next(index.memory(), completeness),
            None => false,
        }
    }

    /// Searches the memory index for sets of the present batch, as many as one step may.
    fn search_batch(
        &mut self,
        memory: &MemoryIndex,
        order: &MatchOrder,
        found: &mut Found,
    ) -> Result<Step> {
        let mut looks = 0;
        while self.done < self.batch.end {
            if STEP_LOOKS_MAX < looks {
                return Ok(Step::Run);
            }
            looks += 1 + memory.block_looks();
            found.add(self.search_memory(memory, self.done, order)?);
            self.done += 1;
        }
        if self.done == self.sets.len() {
            return Ok(Step::Done);
        }
        self.batch = self.done..self.sets.len().min(self.done + SETS_AT_ONCE);
        (self.searched_to, self.trials) = (0, None);
        Ok(Step::Run)
    }

    /// Tests the columns of the memory index for the values that match one set.
    fn search_memory(
        &self,
        memory: &MemoryIndex,
        set: usize,
        order: &MatchOrder,
    ) -> Result<Vec<BlockMatch>> {
        let matchers = &self.sets[set];
        matchers.check_cost(memory.search_cost(matchers))?;
        let looks_up = looks_up(matchers);
        let tried = match &self.trials {
            Some(trials) => trials.of_set(set - self.batch.start),
            None => Vec::new(),
        };
        let mut found = memory.search_tried(matchers, &|matcher| !looks_up(matcher), &tried)?;
        if matches!(order, MatchOrder::Entities) {
            crate::subset::sort_by_entity(&mut found);
        }
        Ok(found)
    }

    fn run(&mut self, order: &MatchOrder, found: &mut Found, on_rot: &mut OnRot<'_>) -> Result<()> {
        if let Some((frozen, end)) = self.frozen.take() {
            for set in self.done..self.batch.end {
                found.add(self.search_frozen(&frozen, set, order, on_rot)?);
            }
            self.searched_to = end;
        }
        let sets = &self.sets[self.batch.clone()];
        // Steps may be many and short.
        sets.first().map_or(Ok(()), |set| set.interrupt().check())?;
        match &mut self.trials {
            Some(trials) => trials.try_copied(sets),
            None => {
                self.trials = Some(ValueTrials::new(sets));
                Ok(())
            }
        }
    }

    /// Searches the frozen parts that were not searched yet.
    fn search_frozen(
        &self,
        frozen: &FrozenParts,
        set: usize,
        order: &MatchOrder,
        on_rot: &mut OnRot<'_>,
    ) -> Result<Vec<BlockMatch>> {
        let (matchers, searched_to) = (&self.sets[set], self.searched_to);
        matchers.interrupt().check()?;
        let parts = frozen.parts().filter(|part| searched_to < part.entities().end);
        let mut found = order.search(parts, matchers, on_rot)?;
        if searched_to != 0 {
            // A merge may have joined what was searched with what was not.
            found.retain(|one| searched_to <= one.block.entity_start);
        }
        Ok(found)
    }
}

impl MatchOrder {
    fn search<'a>(
        &self,
        parts: impl Iterator<Item = Part<'a>>,
        set: &CompiledMatchers,
        on_rot: &mut OnRot<'_>,
    ) -> Result<Vec<BlockMatch>> {
        match self {
            MatchOrder::Entities => {
                let in_segment = |segment: &Segment| segment.search(set);
                let in_memory = |memory: &MemoryIndex| memory.search(set);
                search_parts(parts, set, (&in_segment, &in_memory), on_rot)
            }
            MatchOrder::Any { among } => {
                let in_segment = |segment: &Segment| segment.search_among(set, among.as_ref());
                let in_memory = |memory: &MemoryIndex| memory.search_unsorted(set);
                search_parts(parts, set, (&in_segment, &in_memory), on_rot)
            }
        }
    }
}

/// Whether a matcher of a set names so few values that each is looked up; all values are tried for
/// the others.
fn looks_up(set: &CompiledMatchers) -> impl Fn(&CompiledMatcher) -> bool {
    let named: u64 = set.iter().filter_map(|one| one.lookups()).map(u64::from).sum();
    let max = if named <= u64::from(LOOKUPS_MAX) { LOOKUPS_MAX } else { LOOKUPS_SMALL };
    move |matcher| matcher.lookups().is_some_and(|lookups| lookups <= max)
}

/// Tries the values of labels of the memory index, without the lock.
#[derive(Default)]
struct ValueTrials<'m> {
    labels: Vec<LabelTrials<'m>>,
    /// By set, the labels and their trials.
    by_set: Vec<Vec<(usize, usize)>>,
    /// Values that were copied and not tried yet.
    copied: CopiedValues,
}

/// Matchers that try all values of one label.
struct LabelTrials<'m> {
    name: &'m str,
    /// Values of lower ids were tried.
    tried: u32,
    /// Values of lower ids are tried at all, once that is known.
    end: Option<u32>,
    trials: Vec<Trial<'m>>,
    /// Whether some matcher is one: a match may take long, so values are copied for it.
    has_automaton: bool,
}

/// Matchers of one set and one label.
struct Trial<'m> {
    set: usize,
    matchers: Vec<&'m CompiledMatcher>,
    matching: IdBits,
}

/// Values of one label, whose ids follow each other.
#[derive(Default)]
struct CopiedValues {
    label: usize,
    text: String,
    ends: Vec<usize>,
}

impl<'m> ValueTrials<'m> {
    fn new(sets: &'m [CompiledMatchers]) -> ValueTrials<'m> {
        let mut labels: Vec<LabelTrials<'m>> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut by_set = vec![Vec::new(); sets.len()];
        for (set, of_set) in by_set.iter_mut().enumerate() {
            let looks_up = looks_up(&sets[set]);
            for label in sets[set].by_label() {
                let tried = label.all.iter().filter(|one| !looks_up(one));
                let matchers: Vec<&CompiledMatcher> = tried.collect();
                if matchers.is_empty() {
                    continue;
                }
                let place = *places.entry(label.name()).or_insert(labels.len());
                if place == labels.len() {
                    labels.push(LabelTrials::new(label.name()));
                }
                let label = &mut labels[place];
                label.has_automaton |= matchers.iter().any(|one| one.is_automaton());
                of_set.push((place, label.trials.len()));
                label.trials.push(Trial { set, matchers, matching: IdBits::default() });
            }
        }
        ValueTrials { labels, by_set, copied: CopiedValues::default() }
    }

    /// Copies the next values that have to be tried, or tries them; false when there are none.
    fn copy_next(&mut self, memory: &MemoryIndex, completeness: Completeness) -> bool {
        debug_assert!(self.copied.ends.is_empty(), "values are tried before the next step");
        for (idx, label) in self.labels.iter_mut().enumerate() {
            if label.end.is_none() || completeness == Completeness::AtEnd {
                label.end = Some(memory.value_count(label.name));
            }
            let left = label.end.unwrap_or(0).saturating_sub(label.tried) as usize;
            if left == 0 {
                continue;
            }
            if !label.has_automaton {
                label.try_in_place(memory, left);
                return true;
            }
            self.copied.label = idx;
            memory.visit_values(label.name, label.tried, &mut |value| {
                self.copied.push(value);
                self.copied.ends.len() < left.min(COPIED_VALUES_MAX)
                    && self.copied.text.len() < COPIED_SIZE_MAX
            });
            return true;
        }
        false
    }

    /// Tries the values that were copied.
    fn try_copied(&mut self, sets: &[CompiledMatchers]) -> Result<()> {
        let Some(label) = self.labels.get_mut(self.copied.label) else { return Ok(()) };
        for trial in &mut label.trials {
            let mut pace = Pace::new(sets[trial.set].interrupt());
            for (value, id) in self.copied.iter().zip(label.tried..) {
                let mut is_match = true;
                for matcher in &trial.matchers {
                    pace.add(1)?;
                    is_match = matcher.matches(value);
                    if !is_match {
                        break;
                    }
                }
                if is_match {
                    trial.matching.insert(id);
                }
            }
        }
        label.tried += crate::narrow::to_u32(self.copied.ends.len());
        self.copied.clear();
        Ok(())
    }

    /// The ids that match for one set.
    fn of_set(&self, set: usize) -> Vec<TriedIds<'_>> {
        let tried = |(label, trial): &(usize, usize)| {
            let label = &self.labels[*label];
            TriedIds { name: label.name, bits: &label.trials[*trial].matching }
        };
        self.by_set[set].iter().map(tried).collect()
    }
}

impl<'m> LabelTrials<'m> {
    fn new(name: &'m str) -> LabelTrials<'m> {
        LabelTrials { name, tried: 0, end: None, trials: Vec::new(), has_automaton: false }
    }

    /// Tries up to `count` values under the lock, without a copy.
    fn try_in_place(&mut self, memory: &MemoryIndex, count: usize) {
        let matchers: u64 = self.trials.iter().map(|trial| trial.matchers.len() as u64).sum();
        let share = (STEP_LOOKS_MAX / matchers.max(1)).max(1);
        let max = usize::try_from(share).map_or(count, |share| share.min(count));
        let (first, mut left) = (self.tried, max);
        memory.visit_values(self.name, first, &mut |value| {
            for trial in &mut self.trials {
                if trial.matchers.iter().all(|matcher| matcher.matches(value)) {
                    trial.matching.insert(self.tried);
                }
            }
            self.tried += 1;
            left -= 1;
            left != 0
        });
    }
}

impl CopiedValues {
    fn push(&mut self, value: &str) {
        self.text.push_str(value);
        self.ends.push(self.text.len());
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.text[std::mem::replace(&mut start, *end)..*end])
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

impl Index {
    /// Whether a search for these sets looks at so little that it may hold the lock of the index.
    /// Automata never do: one match may take long.
    fn is_quick(&self, sets: &[CompiledMatchers]) -> bool {
        let is_read = |part: Part<'_>| match part {
            Part::Segment(segment) => segment.is_known_searchable(),
            Part::Memory(_) => true,
        };
        if !self.parts().all(is_read) {
            // The first search of a segment reads all of it.
            return false;
        }
        let block_looks: u64 = self.parts().map(|part| part.block_looks()).sum();
        let mut looks = 0u64;
        for set in sets {
            looks = looks.saturating_add(1 + block_looks);
            for matcher in set.iter() {
                looks = looks.saturating_add(self.value_looks(matcher));
                if STEP_LOOKS_MAX < looks {
                    return false;
                }
            }
        }
        looks <= STEP_LOOKS_MAX
    }

    /// How many values a matcher looks at, at most.
    fn value_looks(&self, matcher: &CompiledMatcher) -> u64 {
        if let Some(lookups) = matcher.lookups() {
            return u64::from(lookups);
        }
        if matcher.is_automaton() {
            return u64::MAX;
        }
        let looks = self.parts().map(|part| match part {
            Part::Memory(memory) => u64::from(memory.value_count(&matcher.name)),
            Part::Segment(_) if matcher.pattern.is_range() => 1,
            // The search itself tells of rot.
            Part::Segment(segment) => segment.value_count(&matcher.name).unwrap_or(0),
        });
        looks.fold(0, u64::saturating_add)
    }
}

impl Part<'_> {
    /// How many groups and blocks there are.
    fn block_looks(&self) -> u64 {
        match self {
            Part::Segment(segment) => segment.block_looks(),
            Part::Memory(memory) => memory.block_looks(),
        }
    }
}

#[cfg(test)]
mod tests;
