//! What is done to a tree before it is evaluated.

use promql::metricsql::{Binary, BinaryOp, Expr};

/// Turns `1 < q` into `q > 1` everywhere: a comparison keeps the points of its left side, and
/// what is asked for are those of the series.
pub(super) fn turn_comparisons(expr: &mut Expr) {
    expr.for_each_child_mut(&mut turn_comparisons);
    if let Expr::Binary(binary) = expr {
        turn(binary);
    }
}

fn turn(binary: &mut Binary) {
    let turned = match binary.op {
        BinaryOp::Equal => BinaryOp::Equal,
        BinaryOp::NotEqual => BinaryOp::NotEqual,
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessEqual => BinaryOp::GreaterEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterEqual => BinaryOp::LessEqual,
        _ => return,
    };
    let is_scalar = match &binary.left {
        Expr::Number(_) => true,
        Expr::Call(call) => call.function.name == "time",
        _ => false,
    };
    if is_scalar && !matches!(binary.right, Expr::Number(_)) {
        binary.op = turned;
        std::mem::swap(&mut binary.left, &mut binary.right);
    }
}
