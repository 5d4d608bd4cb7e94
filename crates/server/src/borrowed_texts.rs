//! Texts that a legacy backend has and this server's dictionary has not: they get numbers for as long as
//! the process runs, far from those of the dictionary, which nobody else's texts should fill.

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

impl BorrowedTexts {
    /// The number of a text; none when there are as many as may be.
    pub fn number(&self, text: &str, count_max: usize) -> Option<f64> {
        let known =
            self.0.read().unwrap_or_else(PoisonError::into_inner).numbers.get(text).copied();
        if let Some(number) = known {
            return Some(number as f64);
        }
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = state.numbers.get(text) {
            return Some(*number as f64);
        }
        if count_max <= state.texts.len() {
            return None;
        }
        let number = FIRST + state.texts.len() as u64;
        let text: Arc<str> = text.into();
        state.texts.push(text.clone());
        state.numbers.insert(text, number);
        Some(number as f64)
    }

    /// The text that a number stands for.
    pub fn text(&self, sample: f64) -> Option<Arc<str>> {
        let at = usize::try_from((sample as u64).checked_sub(FIRST)?).ok()?;
        self.0.read().unwrap_or_else(PoisonError::into_inner).texts.get(at).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_apart_and_bounded() {
        let all = BorrowedTexts::default();
        let (a, b) = (all.number("a", 2), all.number("b", 2));
        assert!(a.is_some() && b.is_some() && a != b);
        assert_eq!((all.number("a", 2), all.number("c", 2)), (a, None));
        let text = |number: Option<f64>| all.text(number.unwrap_or(0.0));
        assert_eq!((text(a).as_deref(), text(b).as_deref()), (Some("a"), Some("b")));
        for other in [0.0, 1.0, -1.0, f64::NAN, 1e300, (FIRST + 2) as f64] {
            assert_eq!(all.text(other), None, "{other}");
        }
    }
}
