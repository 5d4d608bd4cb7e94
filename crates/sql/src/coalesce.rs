//! `coalesce` of a value and a literal in quotes: `coalesce(day, '2024-01-01')`. DataFusion finds no type for both, though
//! the literal is read as the type of the value later.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Puts the function in the place of DataFusion's.
pub fn register(context: &SessionContext) {
    let signature = Signature::user_defined(Volatility::Immutable);
    context.register_udf(ScalarUDF::from(Coalesce { inner: coalesce(), signature }));
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Coalesce {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let coerced = self.inner.inner().coerce_types(types);
        // Columns of texts are views: this type is a literal's.
        let is_literal = |ty: &DataType| *ty == DataType::Utf8;
        if coerced.is_ok() || !types.iter().any(is_literal) || types.iter().all(is_literal) {
            return coerced;
        }
        let known: Vec<DataType> = types.iter().filter(|ty| !is_literal(ty)).cloned().collect();
        let mut coerced = self.inner.inner().coerce_types(&known)?.into_iter();
        let common = coerced.next().unwrap_or(DataType::Utf8View);
        Ok(vec![common; types.len()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("coalesce has its type from its fields")
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
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}
