//! Functions of series' labels, and of their order by labels. The metric's name is the label
//! `__name__`; only `label_value` takes it away by itself.

mod edit;
mod order;
mod pattern;
mod pick;
#[cfg(test)]
mod tests;

use super::{Argument, CallContext, Series};
use crate::error::Result;

/// Calls the label function of that name.
///
/// # Errors
/// Wrong arguments, or a name that is none of a label function.
pub(crate) fn call(context: &CallContext<'_>, mut arguments: Vec<Argument>) -> Result<Vec<Series>> {
    let arguments = arguments.as_mut_slice();
    match context.name {
        "label_replace" | "label_transform" | "label_match" | "label_mismatch" => {
            pattern::call(context, arguments)
        }
        "label_value" | "labels_equal" | "drop_common_labels" => pick::call(context, arguments),
        name if name.starts_with("sort_by_label") => order::call(context, arguments),
        _ => edit::call(context, arguments),
    }
}
