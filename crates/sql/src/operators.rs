//! Operators of `jsonb` as functions, and the name of its type.

use crate::jsonb;
use datafusion::arrow::array::{Array, ArrayRef, BooleanBuilder, StringViewBuilder};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::cast::as_string_view_array;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, TypePlanner};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType as SqlType};
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

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
    [
        JsonbFunction::udf(FIELD_TEXT, Operation::FieldText),
        JsonbFunction::udf(FIELD, Operation::Field),
        JsonbFunction::udf(CONTAINS, Operation::Contains),
        JsonbFunction::udf(HAS_KEY, Operation::HasKey),
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
                    out.append_option(memory.test(pair, self.operation));
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

    fn test(&mut self, pair: (Option<&str>, Option<&str>), operation: Operation) -> Option<bool> {
        let (Some(left), Some(right)) = pair else { return None };
        let value = parsed(&mut self.left, left)?;
        match operation {
            Operation::HasKey => Some(jsonb::has_key(value, right)),
            _ => Some(jsonb::contains(value, parsed(&mut self.right, right)?)),
        }
    }
}

/// Makes functions of operators.
#[derive(Debug)]
pub struct JsonbOperators;

impl ExprPlanner for JsonbOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        _: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let name = match expr.op {
            BinaryOperator::LongArrow => FIELD_TEXT,
            BinaryOperator::Arrow => FIELD,
            BinaryOperator::AtArrow | BinaryOperator::ArrowAt => CONTAINS,
            BinaryOperator::Question => HAS_KEY,
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
            _ => None,
        })
    }
}
