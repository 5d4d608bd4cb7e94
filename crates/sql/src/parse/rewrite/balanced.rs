//! Long chains of AND and OR as balanced trees. The parser reads `a OR b OR c ..` as a chain in which each operator is
//! the left side of the next. The planner computes the types of a chain again at each of its steps, which took seconds
//! for some hundred members.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value};

/// Members of a chain that stays as it is.
const CHAIN_MAX: usize = 8;

/// Balances a chain of AND or OR that begins with an expression; the order of its members stays.
pub fn balance_chain(expr: &mut Expr) {
    let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr else {
        return;
    };
    let op = op.clone();
    if chain_len(expr, &op) <= CHAIN_MAX {
        return;
    }
    let placeholder = Expr::Value(Value::Null.into());
    let mut members = Vec::new();
    take_members(std::mem::replace(expr, placeholder), &op, &mut members);
    let mut level = members;
    while 1 < level.len() {
        let mut pairs = level.into_iter();
        level = Vec::new();
        while let Some(left) = pairs.next() {
            level.push(match pairs.next() {
                Some(right) => {
                    let (left, right) = (Box::new(left), Box::new(right));
                    Expr::BinaryOp { left, op: op.clone(), right }
                }
                None => left,
            });
        }
    }
    if let Some(whole) = level.pop() {
        *expr = whole;
    }
}

/// Members of a chain of left sides, up to one more than stay.
fn chain_len(expr: &Expr, op: &BinaryOperator) -> usize {
    let (mut expr, mut len) = (expr, 1);
    while let Expr::BinaryOp { left, op: own, .. } = expr {
        if own != op || CHAIN_MAX < len {
            break;
        }
        len += 1;
        expr = left;
    }
    len
}

fn take_members(expr: Expr, op: &BinaryOperator, members: &mut Vec<Expr>) {
    let (mut expr, mut behind) = (expr, Vec::new());
    loop {
        match expr {
            Expr::BinaryOp { left, op: own, right } if own == *op => {
                behind.push(*right);
                expr = *left;
            }
            first => {
                members.push(first);
                break;
            }
        }
    }
    members.extend(behind.into_iter().rev());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::dialect::Postgres;
    use datafusion::sql::sqlparser::parser::Parser;

    fn parse(text: &str) -> Expr {
        let dialect = Postgres::new(1000);
        Parser::new(&dialect).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            _ => 0,
        }
    }

    #[test]
    fn members_keep_their_order() {
        for (word, op) in [("OR", BinaryOperator::Or), ("AND", BinaryOperator::And)] {
            for count in [1, 2, 8, 9, 100, 128] {
                let names: Vec<String> = (0..count).map(|at| format!("c{at}")).collect();
                let mut expr = parse(&names.join(&format!(" {word} ")));
                balance_chain(&mut expr);
                assert!(depth(&expr) <= CHAIN_MAX, "{count}");
                let shown = expr.to_string();
                assert_eq!(shown.split(&format!(" {op} ")).collect::<Vec<_>>(), names);
            }
        }
    }
}
