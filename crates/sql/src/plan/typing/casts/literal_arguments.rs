//! `coalesce`, `greatest`, `least` and `nullif` of a value and a literal in quotes: `coalesce(day, '2024-01-01')`.
//! DataFusion finds no type for both, though the literal is read as the type of the value later.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err, plan_datafusion_err};
use datafusion::functions::core::{coalesce, greatest, least, nullif};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Puts the functions in the place of DataFusion's.
pub fn register(context: &SessionContext) {
    for inner in [coalesce(), greatest(), least(), nullif()] {
        let signature = Signature::user_defined(Volatility::Immutable);
        context.register_udf(ScalarUDF::from(LiteralArguments { inner, signature }));
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LiteralArguments {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl LiteralArguments {
    fn common_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [one, other] if self.name() == "nullif" => {
                let common = comparison_coercion(one, other);
                let common = common.ok_or_else(|| {
                    plan_datafusion_err!("nullif types {one} and {other} cannot be matched")
                })?;
                Ok(vec![common; 2])
            }
            _ => self.inner.inner().coerce_types(types),
        }
    }
}

impl ScalarUDFImpl for LiteralArguments {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let coerced = self.common_types(types);
        // Columns of texts are views: this type is a literal's. A parameter without a type has none.
        let is_literal = |ty: &DataType| *ty == DataType::Utf8 || ty.is_null();
        if coerced.is_ok() || !types.iter().any(is_literal) || types.iter().all(is_literal) {
            return coerced;
        }
        let known: Vec<DataType> = types.iter().filter(|ty| !is_literal(ty)).cloned().collect();
        let common = match known.as_slice() {
            [one] => one.clone(),
            several => self.common_types(several)?.swap_remove(0),
        };
        Ok(vec![common; types.len()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type comes from the fields")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}
