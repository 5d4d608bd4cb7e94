//! Functions that take a number for a date, in UTC.

use crate::call::CallContext;
use crate::error::Result;
use crate::names::Key;
use crate::vector::Vector;
use model::Labels;

/// A part of the date that each number stands for; without argument the step's time is the date.
pub(crate) fn each(call: &CallContext<'_>, part: fn(i64) -> f64) -> Result<Vector> {
    if call.call.arguments.is_empty() {
        let grid = call.grid;
        let row: Vec<f64> =
            (0..grid.len).map(|step| part(grid.at_ms(step).div_euclid(1000))).collect();
        let mut vector = Vector::new(call.context, grid.len);
        vector.push(call.context, Key::new(Labels::default()), &row)?;
        return Ok(vector);
    }
    let mut vector = call.numbers(0)?;
    vector.map_values(|value| part(value as i64));
    call.without_names(vector)
}
