//! Operators of `jsonb` as functions, and the name of its type.

use crate::error::SqlError;
use crate::jsonb;
use crate::rewrite::JSONB_IN;
use crate::tables::ZONE;
use datafusion::arrow::array::{Array, ArrayRef, BooleanBuilder, StringViewBuilder};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::cast::as_string_view_array;
use datafusion::common::{DFSchema, DataFusionError, Result, plan_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, TypePlanner};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable as _, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType as SqlType, TimezoneInfo};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// `->>`.
pub const FIELD_TEXT: &str = "jsonb_field_text";
/// `->`.
pub const FIELD: &str = "jsonb_field";
/// `@>`.
pub const CONTAINS: &str = "jsonb_contains";
/// `?`.
pub const HAS_KEY: &str = "jsonb_exists";

/// What a field of that type says of itself: arrow has no `jsonb`.
pub const TYPE_KEY: &str = "quipu.type";
/// See [`TYPE_KEY`].
pub const JSONB: &str = "jsonb";

/// A field of `jsonb`.
pub fn jsonb_field(name: &str, is_nullable: bool) -> Field {
    let metadata = HashMap::from([(TYPE_KEY.to_string(), JSONB.to_string())]);
    Field::new(name, DataType::Utf8View, is_nullable).with_metadata(metadata)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    FieldText,
    Field,
    Contains,
    HasKey,
}

/// An operator with a `jsonb` to its left and a text to its right.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonbFunction {
    name: &'static str,
    operation: Operation,
    signature: Signature,
}

impl JsonbFunction {
    fn udf(name: &'static str, operation: Operation) -> Arc<ScalarUDF> {
        let texts = vec![DataType::Utf8View, DataType::Utf8View];
        let signature = Signature::exact(texts, Volatility::Immutable);
        Arc::new(ScalarUDF::from(JsonbFunction { name, operation, signature }))
    }
}

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 5]> = LazyLock::new(|| {
    [
        JsonbFunction::udf(FIELD_TEXT, Operation::FieldText),
        JsonbFunction::udf(FIELD, Operation::Field),
        JsonbFunction::udf(CONTAINS, Operation::Contains),
        JsonbFunction::udf(HAS_KEY, Operation::HasKey),
        JsonbIn::udf(),
    ]
});

/// The functions that operators become.
pub fn functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    FUNCTIONS.iter().cloned()
}

impl ScalarUDFImpl for JsonbFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.operation {
            Operation::FieldText | Operation::Field => DataType::Utf8View,
            Operation::Contains | Operation::HasKey => DataType::Boolean,
        })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(match self.operation {
            Operation::FieldText => Field::new(self.name, DataType::Utf8View, true),
            Operation::Field => jsonb_field(self.name, true),
            Operation::Contains | Operation::HasKey => {
                Field::new(self.name, DataType::Boolean, true)
            }
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else {
            return plan_err!("{} takes two arguments", self.name);
        };
        let (left, right) = (as_string_view_array(left)?, as_string_view_array(right)?);
        let pairs = left.iter().zip(right.iter());
        let mut memory = Memory::default();
        let array: ArrayRef = match self.operation {
            Operation::FieldText | Operation::Field => {
                let mut out = StringViewBuilder::with_capacity(left.len());
                for pair in pairs {
                    out.append_option(memory.field(pair, self.operation));
                }
                Arc::new(out.finish())
            }
            Operation::Contains | Operation::HasKey => {
                let mut out = BooleanBuilder::with_capacity(left.len());
                for pair in pairs {
                    out.append_option(memory.test(pair, self.operation)?);
                }
                Arc::new(out.finish())
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

/// The last value that was parsed: rows of one series follow each other.
#[derive(Default)]
struct Memory {
    left: Option<(String, Option<serde_json::Value>)>,
    right: Option<(String, Option<serde_json::Value>)>,
}

fn parsed<'m>(
    memory: &'m mut Option<(String, Option<serde_json::Value>)>,
    text: &str,
) -> Option<&'m serde_json::Value> {
    if memory.as_ref().is_none_or(|(known, _)| known != text) {
        *memory = Some((text.to_string(), jsonb::parse(text)));
    }
    memory.as_ref()?.1.as_ref()
}

impl Memory {
    fn field(
        &mut self,
        pair: (Option<&str>, Option<&str>),
        operation: Operation,
    ) -> Option<String> {
        let (Some(left), Some(key)) = pair else { return None };
        let found = jsonb::field(parsed(&mut self.left, left)?, key)?;
        match operation {
            Operation::FieldText => jsonb::text_of(found),
            _ => Some(jsonb::shown(found)),
        }
    }

    fn test(
        &mut self,
        pair: (Option<&str>, Option<&str>),
        operation: Operation,
    ) -> Result<Option<bool>> {
        let (Some(left), Some(right)) = pair else { return Ok(None) };
        let value = parsed(&mut self.left, left).ok_or_else(|| no_json(left))?;
        Ok(Some(match operation {
            Operation::HasKey => jsonb::has_key(value, right),
            _ => {
                let right = parsed(&mut self.right, right).ok_or_else(|| no_json(right))?;
                jsonb::contains(value, right)
            }
        }))
    }
}

fn no_json(text: &str) -> DataFusionError {
    let shown: String = text.chars().take(SHOWN_LEN_MAX).collect();
    let message = format!("invalid input syntax for type json: \"{shown}\"");
    DataFusionError::External(Box::new(SqlError { code: "22P02", message }))
}

/// Characters of a text that an error shows.
const SHOWN_LEN_MAX: usize = 100;

/// A text as `jsonb`: read, and shown as PostgreSQL shows it, which makes equal values equal texts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonbIn {
    signature: Signature,
}

impl JsonbIn {
    fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
        Arc::new(ScalarUDF::from(JsonbIn { signature }))
    }
}

impl ScalarUDFImpl for JsonbIn {
    fn name(&self) -> &str {
        JSONB_IN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(jsonb_field(JSONB_IN, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [texts] = arrays.as_slice() else { return plan_err!("{JSONB_IN} takes a text") };
        let texts = as_string_view_array(texts)?;
        let mut out = StringViewBuilder::with_capacity(texts.len());
        for text in texts {
            let value = text.map(|text| jsonb::parse(text).ok_or_else(|| no_json(text)));
            out.append_option(value.transpose()?.map(|value| jsonb::shown(&value)));
        }
        Ok(ColumnarValue::Array(Arc::new(out.finish())))
    }
}

/// Makes functions of operators.
#[derive(Debug)]
pub struct JsonbOperators;

impl ExprPlanner for JsonbOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let name = match expr.op {
            BinaryOperator::LongArrow => FIELD_TEXT,
            BinaryOperator::Arrow => FIELD,
            BinaryOperator::AtArrow | BinaryOperator::ArrowAt => CONTAINS,
            BinaryOperator::Question => HAS_KEY,
            BinaryOperator::Eq | BinaryOperator::NotEq => {
                return Ok(PlannerResult::Original(compared(expr, schema)?));
            }
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let is_swapped = expr.op == BinaryOperator::ArrowAt;
        let mut args = vec![expr.left, expr.right];
        if is_swapped {
            args.reverse();
        }
        Ok(PlannerResult::Planned(call(name, args)))
    }
}

/// A text that is compared with a `jsonb` is one, too.
fn compared(mut expr: RawBinaryExpr, schema: &DFSchema) -> Result<RawBinaryExpr> {
    let is_text =
        |side: &Expr| matches!(side, Expr::Literal(value, _) if value.data_type().is_string());
    if is_text(&expr.right) && is_jsonb(&expr.left, schema)? {
        expr.right = call(JSONB_IN, vec![expr.right]);
    } else if is_text(&expr.left) && is_jsonb(&expr.right, schema)? {
        expr.left = call(JSONB_IN, vec![expr.left]);
    }
    Ok(expr)
}

fn is_jsonb(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    // A cast keeps what the field said before; to `jsonb` none is a cast.
    if matches!(expr, Expr::Cast(_) | Expr::TryCast(_)) {
        return Ok(false);
    }
    let (_, field) = expr.to_field(schema)?;
    Ok(field.metadata().get(TYPE_KEY).is_some_and(|name| name == JSONB))
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let function = functions().find(|function| function.name() == name);
    function.expect("each operator has its function").call(args)
}

/// Types that DataFusion does not know by PostgreSQL's names.
#[derive(Debug)]
pub struct PostgresTypes;

impl TypePlanner for PostgresTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        Ok(match sql_type {
            SqlType::JSONB | SqlType::JSON => Some(Arc::new(jsonb_field("jsonb", true))),
            SqlType::Timestamp(_, zone) => {
                let is_instant = matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
                let zone = is_instant.then(|| ZONE.into());
                let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
                Some(Arc::new(Field::new("timestamp", micros, true)))
            }
            // What PostgreSQL's own tables are asked with.
            SqlType::Custom(name, _) => {
                let name = name.0.last().and_then(|part| part.as_ident());
                match name.map(|ident| ident.value.to_ascii_lowercase()).as_deref() {
                    Some("oid") => Some(Arc::new(Field::new("oid", DataType::Int32, true))),
                    Some("name" | "regproc" | "char") => {
                        Some(Arc::new(Field::new("name", DataType::Utf8View, true)))
                    }
                    _ => None,
                }
            }
            _ => None,
        })
    }
}
