//! Functions of series' values.

use super::{Argument, CallContext, Series};
use crate::error::Result;

/// Calls the transform of that name.
///
/// # Errors
/// Wrong arguments, or a name that is none of a transform.
pub(crate) fn call(context: &CallContext<'_>, _arguments: Vec<Argument>) -> Result<Vec<Series>> {
    context.fail("no such function")
}
