//! `pg_sleep`: a statement waits, on no thread, and may be cancelled and timed out meanwhile.
//!
//! ```text
//! leave the place ─► sleep ─► wait until the client asks for rows ─► take the place
//! ├──────────────────────── the statement is asleep ────────────────────────┤
//! ```
//!
//! A statement that is asleep takes no place, whatever else its connection does.

use crate::functions::numbers::degrees::as_float8;
use crate::types::facts::Facts;
use crate::types::runtime::sleep_state::Asleep;
use crate::types::runtime::statement_scope::with_current;
use async_trait::async_trait;
use datafusion::arrow::array::{Array as _, AsArray as _, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The longest that anybody waits: statements end before.
const SECONDS_MAX: f64 = 86_400.0 * 365.0;

/// The function of a session. While it sleeps the session's place among the running queries is free, if
/// nothing else of the statement goes on meanwhile. It takes the place again once nothing pauses the session.
pub fn pg_sleep(facts: &Arc<dyn Facts>, is_paused: watch::Receiver<bool>) -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Volatile);
    let sleep = Sleep { signature, facts: facts.clone(), is_paused };
    AsyncScalarUDF::new(Arc::new(sleep)).into_scalar_udf()
}

struct Sleep {
    signature: Signature,
    facts: Arc<dyn Facts>,
    is_paused: watch::Receiver<bool>,
}

impl Sleep {
    /// Takes the place of a statement that has slept. A paused one takes none: its client may never ask for more.
    async fn take_place(&self) -> Result<()> {
        let mut is_paused = self.is_paused.clone();
        loop {
            // Without its session nothing is paused.
            let _ = is_paused.wait_for(|is_paused| !is_paused).await;
            let taken = tokio::select! {
                biased;
                Ok(_) = is_paused.wait_for(|is_paused| *is_paused) => continue,
                taken = self.facts.take_place() => taken,
            };
            taken.map_err(|error| DataFusionError::External(Box::new(error)))?;
            if !*is_paused.borrow() {
                return Ok(());
            }
            self.facts.leave_place();
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleep")
    }
}

impl PartialEq for Sleep {
    fn eq(&self, other: &Sleep) -> bool {
        Arc::ptr_eq(&self.facts, &other.facts)
    }
}

impl Eq for Sleep {}

impl Hash for Sleep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        "pg_sleep".hash(state);
    }
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &str {
        "pg_sleep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// `void`, which clients show as an empty text.
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        datafusion::common::internal_err!("it waits, and is not called otherwise")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Sleep {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let seconds = as_float8(&args.args[0].to_array(rows)?)?;
        let seconds = seconds.as_primitive::<Float64Type>().clone();
        let state = with_current(|scope| scope.sleep.clone());
        let leaving = state.filter(|state| state.is_serial());
        let asleep = leaving.map(Asleep::begin);
        if asleep.is_some() {
            self.facts.leave_place();
        }
        // Row by row, as PostgreSQL does.
        for one in seconds.iter().flatten() {
            let seconds = if one.is_nan() { 0.0 } else { one.clamp(0.0, SECONDS_MAX) };
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
        if asleep.is_some() {
            self.take_place().await?;
        }
        drop(asleep);
        let made: StringViewArray =
            (0..rows).map(|row| seconds.is_valid(row).then_some("")).collect();
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}
