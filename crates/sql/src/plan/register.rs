//! Functions that passes over plans use.

use crate::plan::typing::casts::literal_arguments;
use crate::plan::whole_rows;
use datafusion::prelude::SessionContext;

/// Registers them.
pub fn register(context: &SessionContext) {
    whole_rows::functions().for_each(|function| context.register_udf(function));
    literal_arguments::register(context);
}
