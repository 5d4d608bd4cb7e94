//! Texts that a legacy backend has and this server's dictionary has not: they get numbers for as long as
//! the process runs, far from those of the dictionary, which nobody else's texts should fill.
//!
//! While an answer is read its texts have a place in a [`Loan`]; numbers are given out when it is whole,
//! all or none, so that an answer which is refused takes none away from others.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Where their numbers begin: the dictionary counts in 32 bits, and a float64 tells both apart.
const FIRST: u64 = 1 << 40;

/// Numbers of texts, which nothing keeps.
#[derive(Debug, Default)]
pub struct BorrowedTexts(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    numbers: HashMap<Arc<str>, u64>,
    texts: Vec<Arc<str>>,
}

/// The texts of one answer that have no numbers yet.
#[derive(Debug, Default)]
pub struct Loan {
    places: HashMap<Arc<str>, usize>,
    texts: Vec<Arc<str>>,
}

impl Loan {
    /// What stands for a text until it has its number: less than 0. None when there are as many as may
    /// be.
    pub fn place(&mut self, text: &str, count_max: usize) -> Option<f64> {
        let at = match self.places.get(text) {
            Some(at) => *at,
            None if count_max <= self.texts.len() => return None,
            None => {
                let text: Arc<str> = text.into();
                self.texts.push(text.clone());
                self.places.insert(text, self.texts.len() - 1);
                self.texts.len() - 1
            }
        };
        Some(-1.0 - at as f64)
    }

    /// The texts, each at its place.
    pub fn texts(&self) -> &[Arc<str>] {
        &self.texts
    }
}

/// The numbers of the texts of an answer.
#[derive(Debug, Default)]
pub struct Lent(pub Vec<f64>);

impl Lent {
    /// The number for what stood for a text; numbers that were known stay what they are.
    pub fn number(&self, sample: f64) -> f64 {
        let place = if sample < 0.0 { (-1.0 - sample) as usize } else { return sample };
        self.0.get(place).copied().unwrap_or(f64::NAN)
    }
}

impl BorrowedTexts {
    /// The numbers of some texts; none at all when there would be more than may be.
    pub fn numbers(&self, texts: &[Arc<str>], count_max: usize) -> Option<Vec<f64>> {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let news = texts.iter().filter(|text| !state.numbers.contains_key(*text)).count();
        if count_max < state.texts.len() + news {
            return None;
        }
        Some(texts.iter().map(|text| state.number(text) as f64).collect())
    }

    /// The text that a number stands for; none of a sample that is no whole number.
    pub fn text(&self, sample: f64) -> Option<Arc<str>> {
        if sample.fract() != 0.0 {
            return None;
        }
        let at = usize::try_from((sample as u64).checked_sub(FIRST)?).ok()?;
        self.0.read().unwrap_or_else(PoisonError::into_inner).texts.get(at).cloned()
    }
}

impl State {
    fn number(&mut self, text: &Arc<str>) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = FIRST + self.texts.len() as u64;
        self.texts.push(text.clone());
        self.numbers.insert(text.clone(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of an answer with some texts.
    fn lend(all: &BorrowedTexts, texts: &[&str], count_max: usize) -> Option<Vec<f64>> {
        let mut loan = Loan::default();
        let places: Option<Vec<f64>> = texts.iter().map(|text| loan.place(text, 9)).collect();
        let lent = Lent(all.numbers(loan.texts(), count_max)?);
        Some(places?.into_iter().map(|place| lent.number(place)).collect())
    }

    #[test]
    fn numbers_are_told_apart_and_bounded() {
        let all = BorrowedTexts::default();
        let first = lend(&all, &["a", "b", "a"], 2).expect("numbers");
        assert!(first[0] != first[1] && first[0] == first[2], "{first:?}");
        assert_eq!(lend(&all, &["b"], 2), Some(vec![first[1]]), "the same ever after");
        assert_eq!(lend(&all, &["c"], 2), None);
        let text = |number: f64| all.text(number);
        assert_eq!(text(first[0]).as_deref(), Some("a"));
        assert_eq!(text(first[1]).as_deref(), Some("b"));
        for other in [0.0, 1.0, -1.0, f64::NAN, 1e300, first[0] + 0.5, (FIRST + 2) as f64] {
            assert_eq!(all.text(other), None, "{other}");
        }
    }

    #[test]
    fn an_answer_that_is_refused_takes_no_numbers() {
        let all = BorrowedTexts::default();
        assert_eq!(lend(&all, &["a", "b", "c"], 2), None, "too many");
        let mut dropped = Loan::default();
        assert_eq!((dropped.place("x", 1), dropped.place("y", 1)), (Some(-1.0), None));
        assert_eq!(dropped.place("x", 1), Some(-1.0));
        drop(dropped);
        assert_eq!(lend(&all, &["d", "e"], 2).map(|all| all.len()), Some(2), "all are left");
        assert_eq!(Lent::default().number(7.0), 7.0, "one of the dictionary");
    }
}
