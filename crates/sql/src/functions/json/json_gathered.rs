//! `json_agg`, `jsonb_object_agg` and their kin: `array_agg` gathers JSON of each row, and these put it
//! together.

use crate::functions::bounded::{Growth, bounded};
use crate::types::error::SqlError;
use crate::types::json::json_value::{Map, Value};
use crate::types::json::jsonb;
use crate::types::json::jsonb::no_json;
use crate::types::special_fields::{json_field, jsonb_field};
use datafusion::arrow::array::{Array as _, AsArray as _, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;

/// An array of all values of a list.
pub const ARRAY_OF: &str = "jsonb_array_of_gathered";
/// The same as a text of `json`.
pub const JSON_ARRAY_OF: &str = "json_array_of_gathered";
/// An object of a list of pairs, each an array of two.
pub const OBJECT_OF: &str = "jsonb_object_of_gathered";

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    [(ARRAY_OF, Makes::Array), (JSON_ARRAY_OF, Makes::Array), (OBJECT_OF, Makes::Object)]
        .into_iter()
        .map(|(name, makes)| {
            let signature = Signature::any(1, Volatility::Immutable);
            let plain = ScalarUDF::from(Gathered { name, makes, signature });
            bounded(Arc::new(plain), Growth::Times(2))
        })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Makes {
    Array,
    Object,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Gathered {
    name: &'static str,
    makes: Makes,
    signature: Signature,
}

impl ScalarUDFImpl for Gathered {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(match self.name {
            JSON_ARRAY_OF => json_field(self.name, true),
            name => jsonb_field(name, true),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = args.args[0].to_array(args.number_rows)?;
        let mut out = StringViewBuilder::with_capacity(lists.len());
        let Some(lists) = lists.as_list_opt::<i32>() else {
            (0..args.number_rows).for_each(|_| out.append_null());
            return Ok(ColumnarValue::Array(Arc::new(out.finish())));
        };
        for list in lists.iter() {
            let Some(list) = list else {
                out.append_null();
                continue;
            };
            let texts = cast(&list, &DataType::Utf8View)?;
            let made = match self.makes {
                Makes::Array => array(texts.as_string_view().iter())?,
                Makes::Object => object(texts.as_string_view().iter())?,
            };
            out.append_value(made);
        }
        Ok(ColumnarValue::Array(Arc::new(out.finish())))
    }
}

/// The values as they stand: each is JSON already.
fn array<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Result<String> {
    let mut out = String::from("[");
    for (at, value) in values.enumerate() {
        if at != 0 {
            out.push_str(", ");
        }
        out.push_str(value.unwrap_or("null"));
    }
    out.push(']');
    Ok(out)
}

fn object<'a>(pairs: impl Iterator<Item = Option<&'a str>>) -> Result<String> {
    let mut map = Map::new();
    for pair in pairs.flatten() {
        let Some(Value::Array(two)) = jsonb::parse(pair) else { return Err(no_json(pair)) };
        let Ok([key, value]) = <[Value; 2]>::try_from(two) else { return Err(no_json(pair)) };
        let key = jsonb::text_of(&key).ok_or_else(|| {
            let error = SqlError::new("22023", "field name must not be null");
            DataFusionError::External(Box::new(error))
        })?;
        map.insert(key, value);
    }
    Ok(jsonb::shown(&Value::Object(map)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_together() {
        let all = [Some("1"), None, Some("\"a\""), Some("{\"b\": 2}")];
        assert_eq!(array(all.into_iter()).unwrap(), "[1, null, \"a\", {\"b\": 2}]");
        let pairs = [Some("[\"b\", 1]"), Some("[\"a\", null]"), Some("[\"b\", 3]")];
        assert_eq!(object(pairs.into_iter()).unwrap(), "{\"a\": null, \"b\": 3}");
        let code = |pair| SqlError::from(object([Some(pair)].into_iter()).unwrap_err()).code;
        assert_eq!(code("[null, 1]"), "22023");
    }
}
