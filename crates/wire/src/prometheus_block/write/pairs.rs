//! The strings of a block and the labels of its series as numbers of strings, in little memory: each string
//! once, and eight bytes for each label of a series.

use model::Labels;
use std::collections::HashMap;
use std::sync::Arc;

/// Strings, each once, by the number that it got when it came.
#[derive(Default)]
pub struct Strings {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Strings {
    /// The labels as numbers, by name; none when there are more strings than numbers.
    pub fn number(&mut self, labels: &Labels) -> Option<Box<[(u32, u32)]>> {
        labels.iter().map(|(name, value)| Some((self.of(name)?, self.of(value)?))).collect()
    }

    fn of(&mut self, text: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        let number = u32::try_from(self.texts.len()).ok()?;
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        Some(number)
    }

    /// The strings in their order, and for each number the place of its string among them.
    pub fn sorted(self) -> Sorted {
        drop(self.numbers);
        let mut order: Vec<(Arc<str>, usize)> =
            self.texts.into_iter().enumerate().map(|(number, text)| (text, number)).collect();
        order.sort_unstable();
        let mut ranks = vec![0u32; order.len()];
        for (rank, (_, number)) in (0u32..).zip(&order) {
            if let Some(place) = ranks.get_mut(*number) {
                *place = rank;
            }
        }
        Sorted { texts: order.into_iter().map(|(text, _)| text).collect(), ranks }
    }
}

/// Strings in their order.
pub struct Sorted {
    texts: Vec<Arc<str>>,
    ranks: Vec<u32>,
}

impl Sorted {
    /// The strings.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// The string at a place.
    pub fn text(&self, rank: u32) -> &str {
        self.texts.get(rank as usize).map(|text| &**text).unwrap_or_default()
    }

    /// Makes places of numbers: labels of places are in the order of their strings.
    pub fn rank(&self, labels: &mut [(u32, u32)]) {
        let rank = |number: u32| self.ranks.get(number as usize).copied().unwrap_or(0);
        labels.iter_mut().for_each(|(name, value)| (*name, *value) = (rank(*name), rank(*value)));
    }
}
