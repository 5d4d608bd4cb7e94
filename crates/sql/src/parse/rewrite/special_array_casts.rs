//! Casts to arrays of types that arrow has as texts become calls.

use crate::types::casts::special_arrays::{BPCHARS, JSONBS, JSONS, UUIDS, VARCHARS};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as SqlType, Expr, ObjectName, Value,
};

/// Returns the call that does a cast, or none for a cast to another type.
pub fn special_array(inner: &Expr, to: &SqlType) -> Option<Expr> {
    let SqlType::Array(ArrayElemTypeDef::SquareBracket(of, _)) = to else { return None };
    let (name, length) = match &**of {
        SqlType::Uuid => (UUIDS, None),
        SqlType::JSONB => (JSONBS, None),
        SqlType::JSON => (JSONS, None),
        SqlType::Varchar(length) | SqlType::CharacterVarying(length) => (VARCHARS, *length),
        SqlType::Char(length) | SqlType::Character(length) => {
            let one = CharacterLength::IntegerLength { length: 1, unit: None };
            (BPCHARS, Some(length.unwrap_or(one)))
        }
        _ => return None,
    };
    let mut args = vec![inner.clone()];
    if let Some(CharacterLength::IntegerLength { length, .. }) = length {
        args.push(Expr::Value(Value::Number(length.to_string(), false).into()));
    }
    Some(crate::parse::rewrite::expressions::call(name, args))
}

/// Returns true for the function that casts to `uuid[]`.
pub fn is_uuid_array(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [only] if only.as_ident().is_some_and(|ident| ident.value == UUIDS))
}
