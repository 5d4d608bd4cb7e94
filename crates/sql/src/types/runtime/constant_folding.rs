//! Long constants that are not folded: the value of `repeat('x', 60000000)` would become a part of the plan, which
//! is copied while it is optimized, and counts in no memory. Such calls are evaluated when the statement runs.
//! Functions that make no more than is written in the statement are folded, however long that is.

use crate::types::error::SqlError;
use datafusion::common::{DataFusionError, Result};
use std::cell::Cell;

/// Bytes of a value that becomes a part of a plan.
const FOLDED_SIZE_MAX: usize = 8 << 10;

thread_local! {
    static IS_FOLDING: Cell<bool> = const { Cell::new(false) };
}

/// Runs an optimizer rule, in which functions of constants are called to fold them.
pub fn folding<T>(rule: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_FOLDING.set(self.0);
        }
    }
    let _restore = Restore(IS_FOLDING.replace(true));
    rule()
}

/// Whether an optimizer rule calls functions of constants.
pub fn is_folding() -> bool {
    IS_FOLDING.get()
}

/// Fails where a value of that many bytes would become a part of a plan: the optimizer then leaves the call as
/// it is.
///
/// # Errors
/// `54000`, which reaches no client.
pub fn check_folded(size: usize) -> Result<()> {
    if !IS_FOLDING.get() || size <= FOLDED_SIZE_MAX {
        return Ok(());
    }
    let error = SqlError::limit(format!("a constant of {size} bytes is not folded"));
    Err(DataFusionError::External(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_constants_are_refused_and_only_while_folding() {
        assert!(check_folded(usize::MAX).is_ok());
        folding(|| {
            assert!(check_folded(FOLDED_SIZE_MAX).is_ok());
            assert!(check_folded(FOLDED_SIZE_MAX + 1).is_err());
        });
        assert!(check_folded(usize::MAX).is_ok());
    }
}
