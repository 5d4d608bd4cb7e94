//! `x operator ANY (array)` and `ALL`: as conditions for which indexes and NULL are known.

use crate::parse::rewrite::expressions::{literal, text_or_null};
use crate::parse::rewrite::special_array_casts::is_uuid_array;
use crate::parse::rewrite::values::numerals::without_type;
use crate::types::text::array_literals::array_of;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator,
    Value,
};

/// `x = ANY ('{a,b}')` as `x IN ('a', 'b')`, and `x = ANY (query)` as `x IN (query)`; returns none for arrays whose elements
/// the statement does not list.
pub fn as_membership(left: &Expr, right: &Expr, negated: bool) -> Option<Expr> {
    let expr = Box::new(left.clone());
    if let Expr::Subquery(query) = right {
        return Some(Expr::InSubquery { expr, subquery: query.clone(), negated });
    }
    let list = elements(right)?;
    Some(match list.is_empty() {
        true => Expr::Value(Value::Boolean(negated).into()),
        false => Expr::InList { expr, list, negated },
    })
}

fn elements(array: &Expr) -> Option<Vec<Expr>> {
    match array {
        Expr::Array(array) => Some(array.elem.iter().map(without_type).collect()),
        Expr::Cast { expr, .. } if matches!(**expr, Expr::Array(_)) => elements(expr),
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. })
            if is_uuid_array(name) =>
        {
            match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner @ Expr::Array(_)))] => {
                    elements(inner)
                }
                _ => None,
            }
        }
        plain => {
            let all = literal(plain).and_then(|text| array_of(&text))?;
            Some(all.into_iter().map(text_or_null).collect())
        }
    }
}

/// `x > ANY (array)` as `NOT (x <= ALL (array))`: DataFusion ignores elements that are NULL in the first form.
pub fn any_as_all(expr: &Expr) -> Option<Expr> {
    use BinaryOperator::{Gt, GtEq, Lt, LtEq, NotEq};
    let Expr::AnyOp { left, compare_op, right, .. } = expr else { return None };
    let compare_op = match compare_op {
        Lt => GtEq,
        LtEq => Gt,
        Gt => LtEq,
        GtEq => Lt,
        NotEq => BinaryOperator::Eq,
        _ => return None,
    };
    if matches!(&**right, Expr::Subquery(_)) {
        return None;
    }
    let all = Expr::AllOp { left: left.clone(), compare_op, right: right.clone() };
    Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(all))) })
}
