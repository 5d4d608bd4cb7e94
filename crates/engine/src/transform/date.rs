//! Functions that take a number for a date, in UTC.

use crate::date::part;
use crate::error::Result;
use crate::eval::Evaluator;
use crate::row::Key;
use crate::time::Grid;
use crate::vector::Vector;
use model::Labels;
use promql::Call;

/// Evaluates a call of such a function; without argument the step's time is the date.
pub(crate) fn call(evaluator: &Evaluator<'_>, call: &Call, grid: Grid) -> Result<Vector> {
    let part = part(call.function.name);
    let Some(argument) = call.arguments.first() else {
        let row: Vec<f64> =
            (0..grid.len).map(|step| part(grid.at_ms(step).div_euclid(1000))).collect();
        let mut vector = Vector::new(evaluator.context, grid.len);
        vector.push(evaluator.context, Key::new(Labels::default()), &row)?;
        return Ok(vector);
    };
    let mut vector = evaluator.vector(argument, grid)?;
    vector.drop_histograms();
    vector.map_values(|value| part(value as i64));
    vector.without_names(evaluator.context.options.name_removal)
}
