//! Many series to one of each group.

use super::{Argument, CallContext, Series};
use crate::error::Result;
use promql::Grouping;

/// Calls the aggregate of that name over all series of all its arguments.
///
/// # Errors
/// Wrong arguments, or a name that is none of an aggregate.
pub(crate) fn call(
    context: &CallContext<'_>,
    _arguments: Vec<Argument>,
    _grouping: Option<&Grouping>,
    _limit: u64,
) -> Result<Vec<Series>> {
    context.fail("no such aggregate")
}
