//! `types`: tests of the type of a value.

use super::{Builtin, Call, function};
use crate::error::{Error, Result};
use crate::value::{Kind, Value};

pub(super) const FUNCTIONS: &[Builtin] =
    &[function("types", "isType", is_type), function("types", "isNumeric", is_numeric)];

const NAMES: &[&str] =
    &["string", "bytes", "int", "uint", "float", "bool", "time", "duration", "regexp"];

/// `types.isType(v:, type:)`
fn is_type(call: Call<'_>) -> Result<Value> {
    let (value, name) = (call.required("v")?, call.required_text("type")?);
    call.done()?;
    if !NAMES.contains(&&*name) {
        let message = format!("isType: invalid type {name:?}, must be one of {NAMES:?}");
        return Err(Error::runtime(message));
    }
    Ok(Value::Boolean(value.type_words() == &*name))
}

fn is_numeric(call: Call<'_>) -> Result<Value> {
    let value = call.required("v")?;
    call.done()?;
    Ok(Value::Boolean(value.kind().is_some_and(Kind::is_number)))
}
