//! TimescaleDB's `time_bucket_gapfill`, `locf` and `interpolate`
//! (<https://docs.tigerdata.com/api/latest/hyperfunctions/gapfilling/>).
//!
//! ```text
//! GROUP BY time_bucket_gapfill(..) ─ plan ─► GROUP BY time_bucket(..), and a node over it (node)
//!   ─► rows sorted by their group and bucket ─ exec ─► the same rows, and one for each bucket without
//! ```
//! What is missing is made while the rows go by: nothing is kept but the last row and a batch, whose
//! bytes are bounded and counted for the statement's memory before there are any.

use crate::types::error::SqlError;
use crate::types::time::intervals::{counted, time_bucket};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The call that a statement is grouped by: width, time, start and finish.
pub const GAPFILL: &str = "time_bucket_gapfill";
/// The last value where there is none: the value, and whether nulls are none, too.
pub const LOCF: &str = "locf";
/// What lies on the line between two values.
pub const INTERPOLATE: &str = "interpolate";

/// Functions that stand for something until `plan/gapfill` has seen them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    [GAPFILL, LOCF, INTERPOLATE].into_iter().map(|name| {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::from(Mark { name, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mark {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Mark {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.name, types) {
            (GAPFILL, [width, time, start, finish]) => {
                let bucketed = time_bucket().coerce_types(&[width.clone(), time.clone()])?;
                let bucketed = bucketed.iter().map(counted);
                Ok(bucketed.chain([start.clone(), finish.clone()]).collect())
            }
            (LOCF, [_, DataType::Boolean]) => Ok(types.to_vec()),
            (INTERPOLATE, [value]) if value.is_numeric() => Ok(types.to_vec()),
            _ => {
                let types: Vec<String> = types.iter().map(ToString::to_string).collect();
                plan_err!("No function matches {}({})", self.name, types.join(", "))
            }
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let at = usize::from(self.name == GAPFILL);
        Ok(types.get(at).cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(misplaced(self.name))
    }
}

pub(crate) fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// That a function stands where it says nothing.
pub(crate) fn misplaced(name: &str) -> DataFusionError {
    external(match name {
        GAPFILL => SqlError::unsupported("no top level time_bucket_gapfill in group by clause")
            .with_hint("Name it in GROUP BY, by itself, by its alias or by its number."),
        _ => SqlError::unsupported(format!(
            "{name} stands in the select list of a query with time_bucket_gapfill only"
        ))
        .with_hint("Group by time_bucket_gapfill, and let no window or aggregate be around it."),
    })
}

pub(crate) fn wrong(words: &str) -> DataFusionError {
    external(SqlError::wrong_value(format!("invalid time_bucket_gapfill argument: {words}")))
}
