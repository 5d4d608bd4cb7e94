//! Functions of series' labels, and of their order by labels.

use super::{Argument, CallContext, Series};
use crate::error::Result;

/// Calls the label function of that name.
///
/// # Errors
/// Wrong arguments, or a name that is none of a label function.
pub(crate) fn call(context: &CallContext<'_>, _arguments: Vec<Argument>) -> Result<Vec<Series>> {
    context.fail("no such function")
}
