//! Functions of single points.

use crate::metricsql::{CallContext, Series, without_name};

/// Functions of single points after which the number still means what the metric's name says.
pub(super) const KEEPS_NAME: &[&str] =
    &["ceil", "clamp", "clamp_max", "clamp_min", "floor", "round"];

/// Changes every series' values in place, and its labels if the function drops the name.
pub(super) fn map_rows(
    context: &CallContext<'_>,
    mut series: Vec<Series>,
    mut map: impl FnMut(&mut [f64]),
) -> Vec<Series> {
    let keeps_name = context.keep_metric_names || KEEPS_NAME.contains(&context.name);
    for one in &mut series {
        if !keeps_name {
            one.labels = without_name(&one.labels);
        }
        map(&mut one.values);
    }
    series
}
